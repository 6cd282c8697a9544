"""Aftereffect: choose well when the effect of an action lingers and nobody labels it.

arm = player.ask()
player.tell(total)        # play a round, report the one total you saw
"""

from typing import TYPE_CHECKING, Any

from aftereffect import theory
from aftereffect.bandits.adaptive_tsallis import AdaptiveTsallis
from aftereffect.bandits.exp3 import Exp3
from aftereffect.bandits.exp3_ix import Exp3IX
from aftereffect.bandits.log_barrier import LogBarrier
from aftereffect.bandits.protocol import Bandit
from aftereffect.bandits.tsallis import TsallisFTRL
from aftereffect.bandits.tsallis_inf import TsallisINF
from aftereffect.bandits.ucb1 import UCB1
from aftereffect.bandits.uniform import Uniform
from aftereffect.core import VERSION
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
from aftereffect.engines.simulation import Simulation, compare, simulate
from aftereffect.losses import spreads, tables
from aftereffect.losses.composite import CompositeLosses
from aftereffect.losses.hard import hard
from aftereffect.losses.protocol import Losses
from aftereffect.players import labelled, rivals
from aftereffect.players.certificate import Certificate
from aftereffect.players.coin_clean import CoinCleanWrapper
from aftereffect.players.default import default_player
from aftereffect.players.linear import LinearBandit
from aftereffect.players.naive import Naive
from aftereffect.players.panel import Panel, PanelRound
from aftereffect.players.protocol import Player, Round
from aftereffect.players.registry import restore
from aftereffect.players.wrapper import CompositeLossWrapper

if TYPE_CHECKING:
    from aftereffect.service.client import Client, ProblemError
    from aftereffect.studies.spec import Study

__version__ = VERSION

__all__ = [
    "UCB1",
    "AdaptiveTsallis",
    "AftereffectError",
    "BadDistribution",
    "Bandit",
    "Certificate",
    "Client",
    "CoinCleanWrapper",
    "CoinsExhausted",
    "CompositeLossWrapper",
    "CompositeLosses",
    "Exp3",
    "Exp3IX",
    "InvalidArgument",
    "InvalidLosses",
    "InvalidState",
    "InvalidTotal",
    "LinearBandit",
    "LogBarrier",
    "Losses",
    "Naive",
    "OutOfTurn",
    "Panel",
    "PanelRound",
    "Player",
    "ProblemError",
    "Round",
    "Simulation",
    "Study",
    "TsallisFTRL",
    "TsallisINF",
    "Uniform",
    "compare",
    "default_player",
    "hard",
    "labelled",
    "restore",
    "rivals",
    "simulate",
    "spreads",
    "tables",
    "theory",
]


def __getattr__(name: str) -> Any:
    """Import what needs an extra only when it is asked for: polars for studies, httpx for the service's client."""
    if name in ("Client", "ProblemError"):
        from aftereffect.service import client

        return getattr(client, name)
    if name == "Study":
        from aftereffect.studies.spec import Study

        return Study
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
