"""The registry of players: for each Python name the label in tables, the required knowledge, the settings, the factory.

`aftereffect compare`, study files, backtests, `restore` and the documentation use it. To add a player, write one module
and add one entry below.

    entry = find("CompositeLossWrapper")
    entry.label({"base": "exp3"})               'wrapper, Exp3'
    entry.needs({"base": "exp3"})               ('max_delay', 'horizon')
    entry.lacks(problem, {"base": "exp3"})      the needs that the problem does not meet; empty if it can play
    entry.build(problem, seed=0, base="exp3")   the unplayed player, tuned to the problem

Labels, needs and settings are available without building a player.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from aftereffect import theory
from aftereffect.bandits.adaptive_tsallis import AdaptiveTsallis, MatchedTsallis
from aftereffect.bandits.baselines import UCB1, EpsilonGreedy, GaussianThompson, Uniform
from aftereffect.bandits.exp3 import Exp3
from aftereffect.bandits.tsallis import TsallisFTRL
from aftereffect.bandits.tsallis_inf import ESTIMATORS, TsallisINF
from aftereffect.core import checks, saved
from aftereffect.core.errors import AftereffectError, InvalidArgument, InvalidState
from aftereffect.losses.linear_system import SYSTEMS
from aftereffect.players import advisers, labelled, rivals
from aftereffect.players.base import BasePlayer, LabelledKernelPlayer, tuned_base
from aftereffect.players.default import default_player
from aftereffect.players.labelled.zimmert_seldin import TUNINGS
from aftereffect.players.lag_player import LagPlayer
from aftereffect.players.limits import OUT_OF_RANGE
from aftereffect.players.rivals.ab_test import ORDERS, WINNERS
from aftereffect.players.rivals.naive import Naive
from aftereffect.players.wrapper.advised import AdvisedWrapper
from aftereffect.players.wrapper.coin_clean import CoinCleanWrapper
from aftereffect.players.wrapper.panel import Panel
from aftereffect.players.wrapper.wrapper import CompositeLossWrapper

Check = Callable[[str, Any], Any]
Settings = Mapping[str, Any]
NONE: Mapping[str, Any] = MappingProxyType({})

BASES: Mapping[str, tuple[str, type]] = {
    "tsallis": ("Tsallis FTRL", TsallisFTRL),
    "exp3": ("Exp3", Exp3),
    "tsallis_inf": ("Tsallis-INF", TsallisINF),
    "ucb1": ("UCB1", UCB1),
    "thompson": ("Thompson", GaussianThompson),
    "epsilon_greedy": ("ε-greedy", EpsilonGreedy),
    "uniform": ("uniform", Uniform),
}
"""The names of base algorithms in settings, their labels and classes."""


class Problem(NamedTuple):
    """What a player may be told about a problem before it plays; None if not known.

    max_delay: the maximal delay that the player is told. mean_delay, delay_variance: mean and variance of the delay
    after which a unit of effect arrives. coefficients: those of a linear composite loss.
    """

    n_arms: int
    max_delay: int
    horizon: int
    mean_delay: float | None = None
    delay_variance: float | None = None
    coefficients: Sequence[float] | None = None
    direction: str = "minimize"
    low: float = 0.0
    high: float = 1.0


# The needs that a problem may fail to meet. Every problem has "max_delay" and "horizon". "stochastic losses" is an
# assumption: if it fails, a player can still play, but without a guarantee.
CONDITIONS: Mapping[str, Callable[[Problem], bool]] = {
    "short delay": lambda problem: problem.max_delay <= 1,
    "mean delay": lambda problem: problem.mean_delay is not None,
    "delay variance": lambda problem: problem.delay_variance is not None,
    "coefficients": lambda problem: problem.coefficients is not None,
}


class Entry(NamedTuple):
    """A registered player.

    player: the class of the player that is built.
    title: its label, with {base} and {tuning} as placeholders for the settings of these names.
    told: the fields of the problem that are passed to the factory, in addition to n_arms, direction, low and high.
    assumptions: what the player needs to know or assume, if that does not depend on the base.
    settings: the settings it takes, each with its check. defaults: the defaults of the settings in the title.
    bases: the base algorithms it may have, each with what the player then needs.
    make: the factory, called with keyword arguments; by default `tuned` of the class, or the class itself.
    name: the Python name; PLAYERS has that of the class where it is left out.
    """

    player: type
    title: str
    told: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    settings: Mapping[str, Check] = NONE
    defaults: Mapping[str, str] = NONE
    bases: Mapping[str, tuple[str, ...]] = NONE
    make: Callable[..., Any] | None = None
    name: str = ""

    @property
    def labelled(self) -> bool:
        """Whether the player is told which round each loss belongs to."""
        return issubclass(self.player, LabelledKernelPlayer)

    def label(self, settings: Settings = NONE) -> str:
        """Return the player's label in tables: its title, followed by the settings that the title does not show."""
        shown = {key: settings.get(key, usual) for key, usual in self.defaults.items()}
        rest = {key: value for key, value in settings.items() if key not in shown}
        words = {key: BASES[value][0] if value in BASES else value for key, value in shown.items()}
        title = "uniform play" if shown.get("base") == "uniform" else self.title.format(**words)
        return ", ".join([title, *setting_words(rest)])

    def needs(self, settings: Settings = NONE) -> tuple[str, ...]:
        """Return what the player needs to know or assume with these settings."""
        return self.bases[settings.get("base", self.defaults["base"])] if self.bases else self.assumptions

    def lacks(self, problem: Problem, settings: Settings = NONE) -> tuple[str, ...]:
        """Return the needs that the problem does not meet; empty if the player can play it."""
        return tuple(need for need in self.needs(settings) if need in CONDITIONS and not CONDITIONS[need](problem))

    def build(self, problem: Problem, seed: int = 0, **settings: Any) -> Any:
        """Return the unplayed player, tuned to the problem."""
        clean = checked_settings("player", self.name, self.settings, settings)
        if lacking := self.lacks(problem, clean):
            raise InvalidArgument(f"problem must have what {self.name} needs, {', '.join(lacking)}, but got {problem}")
        fields = ("n_arms", *self.told, "direction", "low", "high")
        make: Any = self.make or getattr(self.player, "tuned", self.player)
        return make(**{name: getattr(problem, name) for name in fields}, seed=seed, **clean)


def checked_settings(kind: str, name: str, known: Mapping[str, Check], given: Settings) -> dict[str, Any]:
    """Return the settings given to a player or an instance, each checked; an unknown one raises an error."""
    clean = {}
    for key, value in given.items():
        if key not in known:
            listed = ", ".join(known) or "none"
            raise InvalidArgument(f"{kind}.{key} must be a setting of {name!r} (it has {listed}), but it is not")
        clean[key] = known[key](f"{kind}.{key}", value)
    return clean


def setting_words(settings: Settings) -> list[str]:
    """Return settings in the words used in labels.

    >>> setting_words({"learning_rate_factor": 2.0})
    ['learning rate factor 2']
    """
    words = []
    for key, value in settings.items():
        text = f"{value:g}" if isinstance(value, float) else str(value).replace("_", " ")
        words.append(f"{key.replace('_', ' ')} {text}")
    return words


def _choice(*options: str) -> Check:
    return lambda name, value: checks.choice(name, value, options)


def _base(base: str, n_arms: int, learning_rate: float, estimator: str = "reduced_variance") -> Any:
    """Return a base algorithm, with this rate or estimator if it has one."""
    rate: dict[str, Any] = {"learning_rate": learning_rate}
    own = {"tsallis": rate, "exp3": rate, "tsallis_inf": {"estimator": estimator}}
    return BASES[base][1](n_arms, **own.get(base, {}))


def _wrapper(
    n_arms: int,
    max_delay: int,
    horizon: int,
    base: str = "tsallis",
    tuning: str = "corollary",
    estimator: str = "reduced_variance",
    learning_rate_factor: float = 1.0,
    update_probability_factor: float = 1.0,
    **others: Any,
) -> CompositeLossWrapper:
    """Return Algorithm 1 with the rates of Corollary 7 or, if tuning="best", those that minimise Theorem 4."""
    coins = theory.best_update_probability(max_delay) * update_probability_factor
    if coins > 1.0:
        raise InvalidArgument(f"update_probability_factor must keep β at most 1, but β would be {coins!r}")
    if base == "exp3":
        eta = theory.exp3_learning_rate(n_arms, max_delay, horizon)
    elif tuning == "best":
        eta = theory.tuning(n_arms, max_delay, horizon).learning_rate
    else:
        eta = theory.corollary_learning_rate(max_delay, horizon)
    bandit = _base(base, n_arms, learning_rate_factor * eta, estimator)
    return CompositeLossWrapper(bandit, max_delay=max_delay, coins=coins, **others)


def _naive(n_arms: int, horizon: int, base: str = "exp3", **others: Any) -> Naive:
    """Return a naive player whose base has its usual rate for immediate feedback."""
    return Naive(_base(base, n_arms, tuned_base("exp3", n_arms, horizon).learning_rate), **others)


def _dyn_lin_ucb(system: str | None = None, **told: Any) -> rivals.DynLinUCB:
    """Return DynLin-UCB with the constants of a known system, or for effects that have almost ended after max_delay."""
    if system is None:
        return rivals.DynLinUCB.tuned(**told)
    others = {name: value for name, value in told.items() if name not in ("n_arms", "max_delay")}
    player = rivals.DynLinUCB.for_system(SYSTEMS[system], **others)
    if told["n_arms"] != player.n_arms:
        raise InvalidArgument(f"n_arms must be {player.n_arms} for the system {system!r}, but got {told['n_arms']}")
    return player


def _lag_player(max_delay: int, low: float, high: float, max_lag: int = 14, **others: Any) -> LagPlayer:
    """Return a LagPlayer; the range of effects is of no use to it, as it would bound totals."""
    return LagPlayer(max_lag=max(max_lag, max_delay), **others)


def _bold(n_arms: int, max_delay: int, horizon: int, **others: Any) -> labelled.BOLD:
    rate = math.sqrt(2.0 * math.log(n_arms) * (max_delay + 1) / (n_arms * horizon))
    return labelled.BOLD(Exp3(n_arms, learning_rate=rate), max_delay=max_delay, **others)


_IID = ("stochastic losses",)
_DELAY, _HORIZON, _SIZES = ("max_delay",), ("horizon",), ("max_delay", "horizon")
_WRAPPER: dict[str, Check] = {
    "base": _choice(*BASES),
    "tuning": _choice("corollary", "best"),
    "estimator": _choice(*ESTIMATORS),
    "learning_rate_factor": partial(checks.real, above=0.0),
    "update_probability_factor": partial(checks.real, above=0.0),
}
_WRAPPED = {
    "tsallis": _SIZES, "exp3": _SIZES, "tsallis_inf": _DELAY, "uniform": (),
    **dict.fromkeys(("ucb1", "thompson", "epsilon_greedy"), (*_DELAY, *_IID)),
}  # fmt: skip
_NAIVE = {"exp3": _HORIZON, "ucb1": _IID, "tsallis_inf": (), "thompson": _IID, "epsilon_greedy": _IID}
_MEAN, _MIX = ("horizon", "mean_delay"), ("horizon", "coefficients")
_OFFSET: dict[str, Check] = {"mean_delay_offset": partial(checks.integer, low=0)}
_TUNING = {"tuning": _choice(*TUNINGS)}
_ORDER: dict[str, Check] = {"order": partial(checks.integer, low=0), "noise": partial(checks.real, low=0.0)}
_ADVISER: dict[str, Check] = {"adviser": _choice(*advisers.NAMED)}
_SYSTEM: dict[str, Check] = {"system": _choice(*SYSTEMS), "ridge": partial(checks.real, above=0.0)}
_LAGS: dict[str, Check] = {
    "max_lag": partial(checks.integer, low=0),
    "season": partial(checks.integer, low=2),
    "horizon": partial(checks.integer, low=1),
}
_AB_TEST: dict[str, Check] = {
    "share": partial(checks.real, above=0.0, high=1.0),
    "hold": partial(checks.integer, low=1),
    "order": _choice(*ORDERS),
    "winner": _choice(*WINNERS),
    "max_lag": partial(checks.integer, low=0),
}

_ENTRIES = (
    Entry(CompositeLossWrapper, "wrapper, {base}", _SIZES, (), _WRAPPER, {"base": "tsallis"}, _WRAPPED, _wrapper),
    Entry(CoinCleanWrapper, "default player", _DELAY, _DELAY, _ADVISER, make=default_player, name="default_player"),
    Entry(LagPlayer, "lag player", _DELAY, _IID, _LAGS, make=_lag_player),
    Entry(rivals.CLW2018, "CLW 2018", _SIZES, _SIZES),
    Entry(rivals.FixedBlock, "fixed blocks", _SIZES, _SIZES),
    Entry(rivals.MiniBatch, "mini-batches", _SIZES, _HORIZON),
    Entry(rivals.Blinded, "blinded bandit", _SIZES, (*_SIZES, "short delay")),
    Entry(rivals.BlockUCB, "UCB on clean windows", _DELAY, (*_DELAY, *_IID), {"width": partial(checks.real, low=0.0)}),
    Entry(rivals.ABTest, "A/B test", _HORIZON, (*_HORIZON, *_IID), _AB_TEST),
    Entry(rivals.ARSUCB, "ARS-UCB", (), _IID),
    Entry(rivals.ARSExp3, "ARS-Exp3"),
    Entry(rivals.ODAAF, "ODAAF", _MEAN, ("horizon", "mean delay", *_IID), _OFFSET),
    Entry(rivals.ODAAFB, "ODAAF-B", (*_MEAN, *_DELAY), ("max_delay", "horizon", "mean delay", *_IID)),
    Entry(rivals.ODAAFV, "ODAAF-V", (*_MEAN, "delay_variance"), ("horizon", "mean delay", "delay variance", *_IID)),
    Entry(rivals.GargAkash, "Garg-Akash", _SIZES, (*_SIZES, *_IID)),
    Entry(rivals.DynLinUCB, "DynLin-UCB", _SIZES, (*_SIZES, *_IID), _SYSTEM, make=_dyn_lin_ucb),
    Entry(rivals.ARUCB, "AR-UCB", _SIZES, (*_HORIZON, *_IID), _ORDER),
    Entry(rivals.LinearComposite, "linear composite", _MIX, _MIX),
    Entry(Naive, "naive {base}", _SIZES, (), {"base": _choice(*_NAIVE)}, {"base": "exp3"}, _NAIVE, _naive),
    Entry(labelled.DelayedExp3, "delayed Exp3", _SIZES, _SIZES),
    Entry(labelled.BOLD, "BOLD, Exp3", _SIZES, _DELAY, make=_bold),
    Entry(labelled.QPMD, "QPM-D, UCB1", _DELAY, _IID, make=lambda n_arms, **told: labelled.QPMD(UCB1(n_arms), **told)),
    Entry(labelled.DelayedUCB1, "delayed UCB1", (), _IID),
    Entry(labelled.SuccessiveElimination, "successive elimination", _HORIZON, (*_HORIZON, *_IID)),
    Entry(labelled.ZimmertSeldin2020, "Zimmert-Seldin, {tuning}", _DELAY, (), _TUNING, {"tuning": "simple"}),
)
# Every player under anonymous feedback takes the setting out_of_range.
_POLICY = {"out_of_range": _choice(*OUT_OF_RANGE)}
_NAMED = (entry._replace(name=entry.name or entry.player.__name__) for entry in _ENTRIES)
PLAYERS: Mapping[str, Entry] = {
    entry.name: entry if entry.labelled else entry._replace(settings={**entry.settings, **_POLICY}) for entry in _NAMED
}

COMPARED: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("CompositeLossWrapper", {"base": base}) for base in ("tsallis", "exp3", "tsallis_inf", "ucb1")),
    *((name, {}) for name, entry in PLAYERS.items() if not entry.bases and not entry.labelled),
    *(("Naive", {"base": base}) for base in ("exp3", "ucb1", "thompson", "epsilon_greedy")),
    ("CompositeLossWrapper", {"base": "uniform"}),
    *((name, {}) for name, entry in PLAYERS.items() if entry.labelled),
    ("ZimmertSeldin2020", {"tuning": "advanced"}),
)
"""The players of `aftereffect compare`, with their settings: anonymous feedback, naive, uniform, labelled feedback."""


def label_of(player: Any) -> str:
    """Return the label of a player in tables; the name of its class if the registry does not build such a player.

    >>> label_of(CompositeLossWrapper(Exp3(2, learning_rate=0.1), max_delay=1, coins=0.3)), label_of(object())
    ('wrapper, Exp3', 'object')
    """
    if isinstance(player, AdvisedWrapper):
        return f"default player, adviser {type(player.adviser).__name__.lower()}"
    if isinstance(player, Panel):
        return f"{label_of(player.player)}, {player.n_units} units"
    entry = next((entry for entry in PLAYERS.values() if entry.player is type(player)), None)
    base = type(getattr(player, "bandit", None))
    if entry is None or (entry.make is default_player and base is not MatchedTsallis):
        return type(player).__name__
    name = next((name for name, (_, kind) in BASES.items() if kind is base), base.__name__)
    shown = {"base": name, "tuning": getattr(player, "tuning", "")}
    return entry.label({key: shown[key] for key in entry.defaults})


def find(name: Any) -> Entry:
    """Return the entry registered under a name."""
    if not isinstance(name, str) or name not in PLAYERS:
        raise InvalidArgument(f"player.name must be one of {', '.join(PLAYERS)}, but got {checks.shown(name)}")
    return PLAYERS[name]


BANDITS: tuple[type, ...] = (*(kind for _, kind in BASES.values()), AdaptiveTsallis, MatchedTsallis)
_SAVED = {cls.__name__: cls for cls in (*(entry.player for entry in PLAYERS.values()), AdvisedWrapper, Panel, *BANDITS)}


def restore(state: Mapping[str, Any], classes: Iterable[type] = (), sealed: bool = True, *, adviser: Any = None) -> Any:
    """Return the player or bandit whose `state()` was saved; it continues bit for bit, also in another process.

    classes: user-defined classes that may occur in the state: bandits, each with `state()`, whose field "kind" is the
        name of the class, and a class method `from_state(state)`; players derived from a class in `players/base.py`.
    sealed: whether the state must have a digest; False for a state saved as a part of another.
    adviser: the adviser of an advised player, new or as it was; needed unless it is one of `aftereffect.advisers` that
        is made from plain values.

    >>> from aftereffect import CompositeLossWrapper, restore
    >>> player = CompositeLossWrapper.tuned(n_arms=3, max_delay=2, horizon=1000, seed=1)
    >>> twin = restore(player.state())
    >>> twin.ask() == player.ask()
    True
    """
    try:
        return _restored(state, _SAVED | {cls.__name__: cls for cls in classes}, sealed, adviser)
    except InvalidState:
        raise
    except AftereffectError as error:
        raise InvalidState(f"state must hold what state() saved, but {error}") from None


def _restored(state: Mapping[str, Any], known: Mapping[str, Any], sealed: bool = False, adviser: Any = None) -> Any:
    """Return the player or base algorithm that a state describes; its inside is restored first."""
    kind = saved.kind_of(state)
    if kind not in known:
        raise InvalidState(f"kind must be one of {sorted(known)} or given in classes, but got {kind!r}")
    if sealed and "digest" not in state and hasattr(known[kind], "unsealed"):
        raise InvalidState(f"state of kind {kind!r} must have the field 'digest', but it is missing")
    if not issubclass(known[kind], BasePlayer | Panel):
        return known[kind].from_state(state)
    # The state of a base algorithm or player, or a number of arms.
    inside = state.get("inside")
    within = _restored(inside, known, adviser=adviser) if isinstance(inside, Mapping) else inside
    made = known[kind].from_state(state, within)
    if isinstance(made, AdvisedWrapper):
        made.take_up(adviser, state)
    return made
