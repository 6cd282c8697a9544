"""Cells: the units of a study, each a plain JSON dict whose id is a hash of its content; their losses, their players.

    measure      "regret", or a module with a class of the user's own (`measure.Measure`)
    instance     {"name": ..., settings...}: the losses
    player       {"name": ..., settings...}: the player, one of `players/registry.py` or the user's own
    n_arms, max_delay, horizon     K, d, T of the losses
    n_units                        the number of units of a panel, only if there are several
    runs, instances                the number of runs, divided evenly over this many draws of the losses
    seed, checkpoints
    player_max_delay               the d given to the player, only if it differs from that of the losses

The id depends on nothing else, so equal cells of two studies have the same id. Cells that differ only in player,
measure, runs or checkpoints form a group: they share the same losses and the same random streams.

The instances are:

    split, delays, fixed, geometric, immediate     iid losses, one good arm; the name says how they are spread
    switching, constrained, drifting, seasonal     a table of `losses/tables.py`; `spread` is one of the names above
    hard                                           the adversary of the lower bound, `gap_factor` times its gap
    stacked                                        the same with a `gap`, its noise shared by all arms by default
    anonymous                                      rewards with random delays, stochastic anonymous feedback
    late_bills                                     the worse an arm, the later its losses arrive
    advertising                                    an advertising system with carry-over (`losses/linear_system.py`)
    year                                           a world at human scale (`losses/year.py`)
    module:function                                the user's own: a function of n_arms, max_delay, horizon and seed
    module                                         the same, for the function `losses` of a module

The good arm is better by `gap`, or by `gap_scale` times √(K(d+1)/T), at most 1/2: with a gap of this order a problem is
about equally hard at every size.
"""

import hashlib
import importlib.util
import inspect
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.random import children
from aftereffect.core.saved import canonical
from aftereffect.losses import spreads, tables
from aftereffect.losses.delay_laws import checked_law
from aftereffect.losses.hard import NOISES, hard, noise_scale, published_gap
from aftereffect.losses.linear_system import ADVERTISING, system_rewards
from aftereffect.losses.protocol import Losses, stored
from aftereffect.losses.year import CHANGES, CURVES, PATHS, year
from aftereffect.players import registry
from aftereffect.players.wrapper import panel

Cell = dict[str, Any]

SHARED = ("instance", "n_arms", "max_delay", "horizon", "n_units", "seed")
"""The keys that the cells of a group have in common; the losses depend on these alone."""
GAP = 0.2
SIZES = ("n_arms", "max_delay", "horizon")
TOLD = {"instance.name": (*SIZES, "seed"), "player.name": (*SIZES, "seed", "direction", "low", "high")}
"""What a study gives the user's own losses and players; their other parameters are settings."""
OFTEN = 3
"""How often each play must be needed, on average, to be stored."""
SPREADS = ("split", "delays", "fixed", "geometric", "immediate")


def _delay_law(name: str, value: Any) -> Any:
    checked_law(value, 0)
    return value


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgument(f"{name} must be true or false, but got {checks.shown(value)}")
    return value


def _one_of(options: Collection[str]) -> registry.Check:
    return partial(checks.choice, options=options)


_NOT_NEGATIVE = partial(checks.real, low=0.0)
_POSITIVE = partial(checks.real, above=0.0)
_TO_HALF = partial(checks.real, low=0.0, high=0.5)
_TO_ONE = partial(checks.real, low=0.0, high=1.0)
_NOISE: dict[str, registry.Check] = {"noise": _one_of(NOISES)}
_LAW: dict[str, registry.Check] = {"law": _one_of(tables.LAWS)}
_GAP: dict[str, registry.Check] = {"gap": _TO_HALF, "gap_scale": _NOT_NEGATIVE}
_SPREAD: dict[str, registry.Check] = {"spread": _one_of(SPREADS), "half_life": _POSITIVE}
_YEAR = {"curves": _one_of(CURVES), "path": _one_of(PATHS), "change": _one_of(CHANGES)}

SETTINGS: Mapping[str, Mapping[str, registry.Check]] = {
    **dict.fromkeys(("split", "delays", "fixed", "immediate"), _GAP | _LAW),
    "geometric": _GAP | _LAW | {"half_life": _POSITIVE, "rise": _NOT_NEGATIVE},
    "switching": _SPREAD | _LAW | {"gap": _TO_ONE, "period": partial(checks.integer, low=1)},
    "constrained": _SPREAD | _LAW | {"gap": _TO_ONE, "growth": partial(checks.real, low=1.0)},
    "drifting": _SPREAD | _LAW | {"step": _TO_ONE},
    "seasonal": _SPREAD | _LAW | {"period": _POSITIVE, "amplitude": _TO_HALF},
    "hard": _NOISE | {"gap_factor": _NOT_NEGATIVE},
    "stacked": _NOISE | {"gap": partial(checks.real, low=0.0, high=0.25)},
    "anonymous": _GAP | {"delay_law": _delay_law, "best_arm": partial(checks.integer, low=0), "late_zeros": _flag},
    "late_bills": _LAW | {"half_life": _POSITIVE},
    "advertising": {"noise": _NOT_NEGATIVE},
    "year": {"half_life": _POSITIVE, "gap": _TO_HALF, "noise": _NOT_NEGATIVE} | _YEAR,
}
"""The settings of each instance, with their checks."""


def cell_id(cell: Cell) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of the cell's canonical JSON."""
    return hashlib.sha256(canonical(cell).encode()).hexdigest()[:16]


def cell_seed(cell: Cell, purpose: str) -> int:
    """Return the seed for a draw of the losses ("losses 0", "losses 1", ...) or for the players' streams ("runs").

    All cells of a group have the same seed, and no other cell has it: players get the same losses, and run r of each
    player uses common random numbers. Sizes enter the seed, so that points of a grid are independent, as fits assume.
    """
    text = f"{purpose} {canonical({key: cell[key] for key in SHARED if key in cell})}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")


def groups(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Return the cells by group; groups and cells keep their order.

    >>> one, other = {"player": 1}, {"player": 2}
    >>> sizes = {"instance": {"name": "split"}, "n_arms": 2, "max_delay": 1, "horizon": 9, "seed": 0}
    >>> [len(group) for group in groups([one | sizes, one | sizes | {"seed": 1}, other | sizes])]
    [2, 1]
    """
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(canonical({key: cell[key] for key in SHARED if key in cell}), []).append(cell)
    return list(found.values())


def instance_table(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the name and settings of an instance's table and return it as plain JSON types."""
    name = given.get("name")
    module = isinstance(name, str) and name.isidentifier() and importlib.util.find_spec(name)
    if not isinstance(name, str) or not (name in SETTINGS or ":" in name or module):
        rule = f"one of {', '.join(SETTINGS)}, module:function or a module with a function losses"
        raise InvalidArgument(f"instance.name must be {rule}, but got {checks.shown(name)}")
    clean = _checked("instance", name, SETTINGS.get(name) or own("instance.name", name)[1], given)
    if "gap" in clean and "gap_scale" in clean:
        raise InvalidArgument(f"instance.gap must be left out where gap_scale is given, but got {clean['gap']!r}")
    return clean


def _checked(kind: str, name: str, known: Mapping[str, registry.Check], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of an instance or a player with its settings checked."""
    settings = {key: value for key, value in given.items() if key != "name"}
    return {"name": name, **registry.checked_settings(kind, name, known, settings)}


def own(key: str, path: str, usual: str = "losses") -> tuple[Any, dict[str, registry.Check]]:
    """Return the user's class or function at an import path, module:name, and its settings, which it checks itself.

    A module alone stands for what has the usual name in it.
    """
    module, colon, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name if colon else usual)
        parameters = [each for each in inspect.signature(found).parameters.values() if each.kind != each.VAR_KEYWORD]
    except (ImportError, AttributeError, ValueError, TypeError, SyntaxError) as error:
        raise InvalidArgument(f"{key} must be importable as module:name, but {path!r} is not: {error}") from error
    return found, {each.name: lambda name, value: value for each in parameters if each.name not in TOLD.get(key, ())}


def gap_of(cell: Cell) -> float:
    """Return the gap between the good arm and the others.

    >>> gap_of({"instance": {"gap_scale": 2.0}, "n_arms": 4, "max_delay": 0, "horizon": 1600})
    0.1
    """
    given = cell["instance"]
    if "gap_scale" in given:
        scale = math.sqrt(cell["n_arms"] * (cell["max_delay"] + 1) / cell["horizon"])
        return min(0.5, float(given["gap_scale"]) * scale)
    return float(given.get("gap", GAP))


class Draws:
    """The losses of a group of cells, by draw, as many at a time as fit into ROOM bytes; the first one stays.

    Losses that are costly to compute and played often are stored play by play, if all draws fit.
    """

    ROOM = 1 << 30

    def __init__(self, *cells: Cell) -> None:
        self._cell = one = cells[0]
        self._kept: dict[int, Losses] = {}
        self._most = max(cell["instances"] for cell in cells)
        table = 8 * one["n_arms"] * one["horizon"]
        played = sum(max(cell["runs"] // cell["instances"], one["n_arms"]) for cell in cells)
        fits = (4 + one["max_delay"]) * table * self._most <= self.ROOM
        self._stores = fits and played >= OFTEN * one["n_arms"]
        # Without that three arrays (T, K) of doubles: the table, and D and W of the block engine.
        self._step = self._most if self._stores else max(1, self.ROOM // (3 * table))

    def waves(self) -> Iterator[range]:
        """Yield the draws in waves; the losses of a wave are built once, and let go of at the next one."""
        for first in range(0, self._most, self._step):
            self._kept = {draw: losses for draw, losses in self._kept.items() if draw == 0}
            yield range(first, min(first + self._step, self._most))

    def __getitem__(self, draw: int) -> Losses:
        if draw not in self._kept:
            losses = build_losses(self._cell, draw)
            self._kept[draw] = stored(losses) if losses.costly and self._stores else losses
        return self._kept[draw]


def build_losses(cell: Cell, draw: int = 0) -> Losses:
    """Return draw number `draw` of a cell's losses; all cells of a group have the same."""
    given, K, T = cell["instance"], cell["n_arms"], cell["horizon"]
    seed = cell_seed(cell, f"losses {draw}")
    if given["name"] in BUILDERS or given["name"] not in SETTINGS:
        return BUILDERS.get(given["name"], _called)(cell, seed)
    for_table, for_spread = children(seed, 2)
    if "spread" in SETTINGS[given["name"]]:
        settings = {key: value for key, value in given.items() if key not in ("name", "spread", "half_life")}
        if given["name"] == "seasonal":
            settings = {"period": T / 4.0} | settings
        table = getattr(tables, given["name"])(T, n_arms=K, seed=for_table, **settings)
    else:
        means = [0.5 - gap_of(cell)] + [0.5] * (K - 1)
        table = tables.iid(T, means=means, seed=for_table, law=given.get("law", "bernoulli"))
    return spread_out(table, cell, for_spread)


def spread_out(table: tables.Table, cell: Cell, seed: int) -> Losses:
    """Return whole losses spread over rounds as the cell's instance says."""
    given, d = cell["instance"], cell["max_delay"]
    spread = spread_of(given)
    if spread == "split":
        return spreads.random_split(table, max_delay=d, seed=seed)
    if spread == "delays":
        return spreads.randomly_delayed(table, max_delay=d, seed=seed)
    if spread == "fixed":
        return spreads.delayed(table, delays=d, max_delay=d)
    if spread == "geometric":
        return spreads.linear_composite(table, coefficients=_fading(given, d))
    return spreads.at_once(table, max_delay=d)


def _hard(cell: Cell, seed: int) -> Losses:
    """Return the lower-bound adversary's losses; if stacked, with one arm better by `gap`, in units of losses."""
    given, K, d, T = cell["instance"], cell["n_arms"], cell["max_delay"], cell["horizon"]
    n, noise = max(1, T // (d + 1)), given.get("noise", "shared" if given["name"] == "stacked" else "independent")
    gap = given.get("gap_factor", 1.0) * published_gap(K, rounds=n)
    if given["name"] == "stacked":
        gap = given.get("gap", 0.1) / noise_scale(K, n, noise)
    return hard(K, max_delay=d, horizon=T, seed=seed, gap=gap, noise=noise)


def _anonymous(cell: Cell, seed: int) -> Losses:
    """Return rewards that arrive whole after random delays, with mean 1/2 + gap for the best arm, 1/2 for the others.

    A labelled player is told of a reward of 0 at once, since nothing will arrive; with `late_zeros`, only after a delay
    like that of any other reward.
    """
    given, T, d = cell["instance"], cell["horizon"], cell["max_delay"]
    means = np.full(cell["n_arms"], 0.5)
    means[checks.integer("instance.best_arm", given.get("best_arm", 0), high=cell["n_arms"] - 1)] += gap_of(cell)
    for_table, for_delays = children(seed, 2)
    table = tables.iid(T, means=means, seed=for_table)
    if given.get("late_zeros"):
        # Too small to change a total.
        table = tables.Table(checks.owned(np.maximum(table.values, 1e-100)), means=means)
    law = given.get("delay_law", "uniform")
    return spreads.randomly_delayed(table, max_delay=d, seed=for_delays, law=law, direction="maximize")


def _advertising(cell: Cell, seed: int) -> Losses:
    """Return rewards of the advertising system; `noise`: the standard deviation of each noise, by default its own."""
    if cell["n_arms"] != len(ADVERTISING.arms):
        raise InvalidArgument(f"n_arms must be {len(ADVERTISING.arms)} for 'advertising', but got {cell['n_arms']}")
    system = replace(ADVERTISING, noise=cell["instance"].get("noise", ADVERTISING.noise))
    return system_rewards(system, max_delay=cell["max_delay"], horizon=cell["horizon"], seed=seed)


def _late_bills(cell: Cell, seed: int) -> Losses:
    """Return immediate losses of mean 0.3 for arm 0; means of 0.5 to 0.7 for the others, later for larger means.

    With a `half_life` all of them fade: that of the worst arm is the longest, that of arm 0 is 1/K of it.
    """
    given, K, d = cell["instance"], cell["n_arms"], cell["max_delay"]
    means = [0.3, *np.linspace(0.5, 0.7, K - 1)]
    table = tables.iid(cell["horizon"], means=means, seed=seed, law=given.get("law", "bernoulli"))
    weights = np.eye(d + 1)[[round(i * d / (K - 1)) for i in range(K)]]
    if "half_life" in given:
        weights = np.array([_fading({"half_life": given["half_life"] * (i + 1) / K}, d) for i in range(K)])
    return spreads.kernels(table, weights=weights)


def _called(cell: Cell, seed: int) -> Losses:
    """Return the losses made by a function of sizes, seed and settings: `year`, or the user's."""
    settings, sizes = dict(cell["instance"]), {name: cell[name] for name in SIZES}
    path = settings.pop("name")
    make = year if path == "year" else own("instance.name", path)[0]
    made: Losses = make(**sizes, seed=seed, **settings)
    if not isinstance(made, Losses) or any(getattr(made, name) != size for name, size in sizes.items()):
        raise InvalidArgument(f"{path} must return losses of the sizes it is given, {sizes}, but returned {made!r}")
    return made


BUILDERS: dict[str, Callable[[Cell, int], Losses]] = {
    "hard": _hard,
    "stacked": _hard,
    "anonymous": _anonymous,
    "late_bills": _late_bills,
    "advertising": _advertising,
    "year": _called,
}


def known(cell: Cell) -> tuple[float | None, float | None, list[float] | None]:
    """Return what a player may know about a cell's delays: from the instance's settings and d, not from its losses.

    Mean and variance of the delay after which a unit of effect arrives, and the coefficients of a linear composite
    loss; None if unknown.
    """
    given, d = cell["instance"], cell["max_delay"]
    name, lags = spread_of(given), np.arange(d + 1)
    if name == "anonymous":
        return *_moments(given.get("delay_law", "uniform"), d), None
    if name in ("late_bills", "year") or name not in SETTINGS:
        return None, None, None
    weights = np.full(d + 1, 1.0 / (d + 1))
    if name in ("fixed", "immediate"):
        weights = (lags == (d if name == "fixed" else 0)).astype(np.float64)
    elif name == "geometric":
        weights = _fading(given, d)
    elif name == "advertising":
        # Effects have both signs; the mean delay is that of their absolute values, over all arms.
        weights = np.abs(ADVERTISING.responses(d)).sum(axis=1)
        weights /= weights.sum()
    mean = float(weights @ lags)
    coefficients = weights.tolist() if name in ("fixed", "immediate", "geometric") else None
    return mean, float(weights @ (lags - mean) ** 2), coefficients


def _moments(law: Any, max_delay: int) -> tuple[float | None, float | None]:
    """Return mean and variance of a delay law before rounding and truncation; None for laws without a formula."""
    name, numbers = checked_law(law, max_delay)
    if name == "uniform":
        return (numbers[0] + numbers[1]) / 2.0, ((numbers[1] - numbers[0] + 1.0) ** 2 - 1.0) / 12.0
    if name == "half_normal":
        return numbers[0], numbers[1] * (1.0 - 2.0 / math.pi)
    variances = {"fixed": 0.0, "exponential": numbers[0] ** 2, "poisson": numbers[0]}
    return (numbers[0], variances[name]) if name in variances else (None, None)


def spread_of(instance: dict[str, Any]) -> str:
    """Return how an instance spreads its losses: its setting `spread`, or its name if it has no such setting.

    The user's own losses may have this setting too.
    """
    name: str = instance["name"]
    usual = "split" if "spread" in SETTINGS.get(name, ()) else name
    return instance["spread"] if instance.get("spread") in SPREADS else usual


def _fading(given: dict[str, Any], max_delay: int) -> checks.FloatArray:
    """Return weights that halve every `half_life` rounds (by default d/4, at least 1/4) and sum to 1.

    With a `rise` r, the weight of delay s has the factor s^r: nothing arrives at once, most after r·half_life/ln 2.
    """
    half_life, lags = given.get("half_life", max(max_delay / 4.0, 0.25)), np.arange(max_delay + 1)
    weights = np.exp2(-lags / half_life)
    if given.get("rise"):
        weights *= lags ** float(given["rise"])
    return np.asarray(weights / weights.sum())


def find(name: Any) -> registry.Entry:
    """Return the entry of a player in the registry, or one for the user's own at an import path, module:Class."""
    if not isinstance(name, str) or ":" not in name:
        return registry.find(name)
    made, settings = own("player.name", name)
    told = tuple(key for key in ("max_delay", "horizon") if key in inspect.signature(made).parameters)
    return registry.Entry(made if isinstance(made, type) else object, name, told, (), settings, make=made, name=name)


def player_table(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the name and settings of a player's table and return it as plain JSON types."""
    entry = find(given.get("name"))
    return _checked("player", entry.name, entry.settings, given)


def can_play(cell: Cell) -> bool:
    """Whether the cell's player can play: some need d <= 1, or must know the law of delays; few can be shared."""
    entry = find(cell["player"]["name"])
    return ("n_units" not in cell or entry.player in panel.SHARED) and not entry.lacks(_problem(cell), cell["player"])


def build_player(cell: Cell, losses: Losses) -> Any:
    """Return a new player of the cell for these losses.

    >>> cell = {"player": {"name": "CompositeLossWrapper", "base": "exp3"}, "instance": {"name": "split"}}
    >>> from aftereffect import CompositeLosses
    >>> import numpy as np
    >>> sizes = {"n_arms": 2, "max_delay": 3, "horizon": 1000}
    >>> player = build_player(cell | sizes, CompositeLosses(np.zeros((1000, 4, 2))))
    >>> round(player.bandit.learning_rate, 4)    # p = (1/7)(6/7)^6 = 0.05665: sqrt(12.235 / (339.9 + 2521.6))
    0.0654
    """
    settings = dict(cell["player"])
    entry = find(settings.pop("name"))
    problem = _problem(cell)._replace(direction=losses.direction, low=losses.low, high=losses.high)
    if problem.max_delay < losses.max_delay and "out_of_range" in entry.settings:
        # Effects that last longer than the player's d lead to totals outside its range.
        settings = {"out_of_range": "clip"} | settings
    player = entry.build(problem, **settings)
    return panel.Panel(player, n_units=cell["n_units"]) if "n_units" in cell else player


def _problem(cell: Cell) -> registry.Problem:
    """Return what the cell's player may know: K, d and T, and the law of delays."""
    told = cell["player_max_delay"] if "player_max_delay" in cell else cell["max_delay"]
    return registry.Problem(cell["n_arms"], told, cell["horizon"], *known(cell))
