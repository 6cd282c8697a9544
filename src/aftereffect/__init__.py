"""Aftereffect: choose well when the effects of actions arrive late, spread over time and unlabelled.

arm = player.ask()
player.tell(total)        # play the arm, then report the total observed in that round
"""

from importlib import import_module
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
    AftereffectWarning,
    BadDistribution,
    CoinsExhausted,
    InvalidArgument,
    InvalidLosses,
    InvalidState,
    InvalidTotal,
    OutOfTurn,
)
from aftereffect.engines.simulation import Simulation, compare, plot, simulate
from aftereffect.losses import spreads, tables
from aftereffect.losses.composite import CompositeLosses
from aftereffect.losses.hard import hard
from aftereffect.losses.protocol import Losses
from aftereffect.losses.replay import History, replay_series
from aftereffect.players import labelled, rivals
from aftereffect.players.default import default_player
from aftereffect.players.linear import LinearBandit
from aftereffect.players.protocol import PanelRound, Player, Round
from aftereffect.players.registry import restore
from aftereffect.players.rivals.naive import Naive
from aftereffect.players.wrapper.certificate import Certificate
from aftereffect.players.wrapper.coin_clean import CoinCleanWrapper
from aftereffect.players.wrapper.panel import Panel
from aftereffect.players.wrapper.wrapper import CompositeLossWrapper

if TYPE_CHECKING:
    from aftereffect.service.client import Client, ProblemError
    from aftereffect.service.local import Local
    from aftereffect.studies import Study
    from aftereffect.studies.histories import read_history

__version__ = VERSION

__all__ = [
    "UCB1",
    "AdaptiveTsallis",
    "AftereffectError",
    "AftereffectWarning",
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
    "History",
    "InvalidArgument",
    "InvalidLosses",
    "InvalidState",
    "InvalidTotal",
    "LinearBandit",
    "Local",
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
    "plot",
    "read_history",
    "replay_series",
    "restore",
    "rivals",
    "simulate",
    "spreads",
    "tables",
    "theory",
]

# Imported on first access, because they need an optional dependency: name -> (module, extra).
_LAZY = {
    "Client": ("service.client", "service"),
    "Local": ("service.local", "service"),
    "ProblemError": ("service.client", "service"),
    "Study": ("studies", "studies"),
    "read_history": ("studies.histories", "studies"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, extra = _LAZY[name]
    try:
        found = getattr(import_module(f"{__name__}.{module}"), name)
    except ModuleNotFoundError as error:
        # An AttributeError, so that hasattr and getattr with a default work where the extra is not installed.
        raise AttributeError(f"{__name__}.{name} needs {error.name}: pip install '{__name__}[{extra}]'") from error
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
