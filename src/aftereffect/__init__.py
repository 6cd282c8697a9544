"""Aftereffect: choose well when the effects of actions arrive late, spread over time and unlabelled.

arm = player.ask()
player.tell(total)        # play the arm, then report the total observed in that round
"""

from importlib import import_module
from typing import Any

from aftereffect.core import VERSION

__version__ = VERSION

# Public names are imported on first access: this saves time, and names of `service` and `studies` need the extras of
# the same names. Type checkers find them in `__init__.pyi`.
_MODULES = (
    "carryover",
    "theory",
    "losses.environments",
    "losses.spreads",
    "losses.tables",
    "players.advisers",
    "players.labelled",
    "players.rivals",
)
_NAMES = {
    "bandits.adaptive_tsallis": "AdaptiveTsallis MatchedTsallis",
    "bandits.baselines": "UCB1 EpsilonGreedy GaussianThompson Uniform",
    "bandits.exp3": "Exp3 Exp3IX",
    "bandits.protocol": "Bandit",
    "bandits.tsallis": "TsallisFTRL",
    "bandits.tsallis_inf": "TsallisINF",
    "carryover.delay": "DelayChoice choose_delay",
    "core.errors": (
        "AftereffectError AftereffectWarning BadDistribution CoinsExhausted "
        "InvalidArgument InvalidLosses InvalidState InvalidTotal OutOfTurn"
    ),
    "core.examples": "load_example",
    "core.frames": "RoundTable round_table",
    "engines.planner": "Forecast plan",
    "engines.simulation": "Simulation compare plot simulate",
    "lags.model": "LagModel",
    "losses.hard": "hard",
    "losses.protocol": "CompositeLosses Losses",
    "losses.replay": "History replay_series",
    "losses.year": "year",
    "players.default": "Prior default_player",
    "players.lag_player": "LagPlayer",
    "players.protocol": "PanelRound Player Round",
    "players.registry": "restore",
    "players.rivals.naive": "Naive",
    "players.wrapper.certificate": "Certificate",
    "players.wrapper.coin_clean": "CoinCleanWrapper",
    "players.wrapper.panel": "Panel",
    "players.wrapper.wrapper": "CompositeLossWrapper",
    "service.client": "Client",
    "service.errors": "Refused",
    "service.local": "Local",
    "studies.histories": "read_history",
    "studies.study": "Study",
}
_HOMES = {module.rpartition(".")[2]: module for module in _MODULES}
_HOMES |= {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _HOMES[name]
    try:
        home = import_module(f"{__name__}.{module}")
    except ModuleNotFoundError as error:
        extra = module.partition(".")[0]
        if extra not in ("service", "studies"):
            raise
        # An AttributeError, so that hasattr and getattr with a default work where the extra is not installed.
        raise AttributeError(f"{__name__}.{name} needs {error.name}: pip install '{__name__}[{extra}]'") from error
    found = home if module in _MODULES else getattr(home, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
