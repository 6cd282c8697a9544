"""Aftereffect: choose well when the effect of an action lingers and nobody labels it.

arm = player.ask()
player.tell(total)        # play a round, report the one total you saw
"""

from aftereffect import theory
from aftereffect.bandits.exp3 import Exp3
from aftereffect.bandits.protocol import Bandit
from aftereffect.bandits.tsallis import TsallisFTRL
from aftereffect.bandits.uniform import Uniform
from aftereffect.core.errors import (
    AftereffectError,
    BadDistribution,
    CoinsExhausted,
    InvalidArgument,
    InvalidLosses,
    InvalidState,
    InvalidTotal,
    OutOfTurn,
)
from aftereffect.core.records import Round
from aftereffect.engines.results import Simulation, compare
from aftereffect.engines.simulate import simulate
from aftereffect.losses import spreads, tables
from aftereffect.losses.composite import CompositeLosses
from aftereffect.losses.hard import hard
from aftereffect.losses.protocol import Losses
from aftereffect.players.linear import LinearBandit
from aftereffect.players.naive import Naive
from aftereffect.players.protocol import Player
from aftereffect.players.restore import restore
from aftereffect.players.wrapper import CompositeLossWrapper

__version__ = "0.1.0"

__all__ = [
    "AftereffectError",
    "BadDistribution",
    "Bandit",
    "CoinsExhausted",
    "CompositeLossWrapper",
    "CompositeLosses",
    "Exp3",
    "InvalidArgument",
    "InvalidLosses",
    "InvalidState",
    "InvalidTotal",
    "LinearBandit",
    "Losses",
    "Naive",
    "OutOfTurn",
    "Player",
    "Round",
    "Simulation",
    "TsallisFTRL",
    "Uniform",
    "compare",
    "hard",
    "restore",
    "simulate",
    "spreads",
    "tables",
    "theory",
]
