"""Aftereffect: choose well when the effects of actions arrive late, spread over time and unlabelled.

arm = player.ask()
player.tell(total)        # play the arm, then report the total observed in that round
"""

import ast
import inspect
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from aftereffect.core import VERSION

if TYPE_CHECKING:
    from aftereffect import carryover as carryover
    from aftereffect import theory as theory
    from aftereffect.bandits.adaptive_tsallis import AdaptiveTsallis as AdaptiveTsallis
    from aftereffect.bandits.adaptive_tsallis import MatchedTsallis as MatchedTsallis
    from aftereffect.bandits.baselines import UCB1 as UCB1
    from aftereffect.bandits.baselines import EpsilonGreedy as EpsilonGreedy
    from aftereffect.bandits.baselines import GaussianThompson as GaussianThompson
    from aftereffect.bandits.baselines import Uniform as Uniform
    from aftereffect.bandits.exp3 import Exp3 as Exp3
    from aftereffect.bandits.exp3 import Exp3IX as Exp3IX
    from aftereffect.bandits.log_barrier import LogBarrier as LogBarrier
    from aftereffect.bandits.protocol import Bandit as Bandit
    from aftereffect.bandits.tsallis import TsallisFTRL as TsallisFTRL
    from aftereffect.bandits.tsallis_inf import TsallisINF as TsallisINF
    from aftereffect.carryover.delay import DelayChoice as DelayChoice
    from aftereffect.carryover.delay import choose_delay as choose_delay
    from aftereffect.core.errors import AftereffectError as AftereffectError
    from aftereffect.core.errors import AftereffectWarning as AftereffectWarning
    from aftereffect.core.errors import BadDistribution as BadDistribution
    from aftereffect.core.errors import CoinsExhausted as CoinsExhausted
    from aftereffect.core.errors import InvalidArgument as InvalidArgument
    from aftereffect.core.errors import InvalidLosses as InvalidLosses
    from aftereffect.core.errors import InvalidState as InvalidState
    from aftereffect.core.errors import InvalidTotal as InvalidTotal
    from aftereffect.core.errors import OutOfTurn as OutOfTurn
    from aftereffect.core.examples import load_example as load_example
    from aftereffect.core.frames import RoundTable as RoundTable
    from aftereffect.core.frames import round_table as round_table
    from aftereffect.engines.planner import Forecast as Forecast
    from aftereffect.engines.planner import plan as plan
    from aftereffect.engines.simulation import Simulation as Simulation
    from aftereffect.engines.simulation import compare as compare
    from aftereffect.engines.simulation import plot as plot
    from aftereffect.engines.simulation import simulate as simulate
    from aftereffect.lags.model import LagModel as LagModel
    from aftereffect.losses import environments as environments
    from aftereffect.losses import spreads as spreads
    from aftereffect.losses import tables as tables
    from aftereffect.losses.hard import hard as hard
    from aftereffect.losses.protocol import CompositeLosses as CompositeLosses
    from aftereffect.losses.protocol import Losses as Losses
    from aftereffect.losses.replay import History as History
    from aftereffect.losses.replay import replay_series as replay_series
    from aftereffect.losses.year import year as year
    from aftereffect.players import advisers as advisers
    from aftereffect.players import labelled as labelled
    from aftereffect.players import rivals as rivals
    from aftereffect.players.default import Prior as Prior
    from aftereffect.players.default import default_player as default_player
    from aftereffect.players.lag_player import LagPlayer as LagPlayer
    from aftereffect.players.linear import LinearBandit as LinearBandit
    from aftereffect.players.protocol import PanelRound as PanelRound
    from aftereffect.players.protocol import Player as Player
    from aftereffect.players.protocol import Round as Round
    from aftereffect.players.registry import restore as restore
    from aftereffect.players.rivals.naive import Naive as Naive
    from aftereffect.players.wrapper.certificate import Certificate as Certificate
    from aftereffect.players.wrapper.coin_clean import CoinCleanWrapper as CoinCleanWrapper
    from aftereffect.players.wrapper.panel import Panel as Panel
    from aftereffect.players.wrapper.wrapper import CompositeLossWrapper as CompositeLossWrapper
    from aftereffect.service.client import Client as Client
    from aftereffect.service.errors import Refused as Refused
    from aftereffect.service.local import Local as Local
    from aftereffect.studies.histories import read_history as read_history
    from aftereffect.studies.study import Study as Study

__version__ = VERSION

# The imports above are for type checkers. Public names are imported on first access, from the modules named there: this
# saves time, and names of `service` and `studies` need the extras of the same names.
_IMPORTS = [
    node for node in ast.walk(ast.parse(inspect.getsource(sys.modules[__name__]))) if isinstance(node, ast.ImportFrom)
]
_HOMES = {name.name: str(node.module) for node in _IMPORTS if node.col_offset for name in node.names}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        home = import_module(_HOMES[name])
    except ModuleNotFoundError as error:
        extra = f"{_HOMES[name]}.".split(".")[1]
        if extra not in ("service", "studies"):
            raise
        # An AttributeError, so that hasattr and getattr with a default work where the extra is not installed.
        raise AttributeError(f"{__name__}.{name} needs {error.name}: pip install '{__name__}[{extra}]'") from error
    # What is imported from a package is a module.
    found = import_module(f"{home.__name__}.{name}") if hasattr(home, "__path__") else getattr(home, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
