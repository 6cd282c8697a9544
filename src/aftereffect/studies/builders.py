"""Building what a cell names: its losses, by instance, and what a player may know of them beforehand.

Names and settings are those of `settings.py`, already checked.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from aftereffect.core.checks import FloatArray
from aftereffect.losses import spreads, tables
from aftereffect.losses.delay_laws import checked_law
from aftereffect.losses.hard import hard, noise_scale, published_gap
from aftereffect.losses.protocol import Losses
from aftereffect.losses.seeds import children
from aftereffect.losses.tables import Table
from aftereffect.studies.cells import Cell, losses_seed
from aftereffect.studies.pieces import shaped

GAP = 0.2


class Known(NamedTuple):
    """mean, variance: of the delay after which a unit of effect arrives. coefficients: of a linear composite loss."""

    mean: float | None = None
    variance: float | None = None
    coefficients: Sequence[float] | None = None


def gap_of(cell: Cell) -> float:
    """Return by how much the good arm is better.

    >>> gap_of({"instance": {"gap_scale": 2.0}, "n_arms": 4, "max_delay": 0, "horizon": 1600})
    0.1
    """
    given = cell["instance"]
    if "gap_scale" in given:
        scale: float = given["gap_scale"]
        return min(0.5, scale * math.sqrt(cell["n_arms"] * (cell["max_delay"] + 1) / cell["horizon"]))
    return float(given.get("gap", GAP))


def build(cell: Cell, draw: int = 0) -> Losses:
    """Return draw number `draw` of a cell's losses; players of the same group meet the same."""
    name = cell["instance"]["name"]
    seed = losses_seed(cell, draw)
    if name in BUILDERS:
        return BUILDERS[name](cell, seed)
    for_table, for_spread = children(seed, 2)
    return _spread(cell, _table(cell, for_table), for_spread)


def known(cell: Cell) -> Known:
    """Return what a player may know of a cell's delays, from the instance's name and d alone."""
    given, d = cell["instance"], cell["max_delay"]
    name = spread_of(given)
    if given["name"] == "anonymous":
        return _known_law(given.get("delay_law", "uniform"), d)
    if name in ("late_bills", "campaigns"):
        return Known()
    lags = np.arange(d + 1)
    weights = {
        "fixed": (lags == d).astype(np.float64),
        "immediate": (lags == 0).astype(np.float64),
        "geometric": _fading(given, d),
    }.get(name, np.full(d + 1, 1.0 / (d + 1)))
    mean = float(weights @ lags)
    coefficients = weights.tolist() if name in ("fixed", "immediate", "geometric") else None
    return Known(mean, float(weights @ (lags - mean) ** 2), coefficients)


def spread_of(instance: dict[str, Any]) -> str:
    """Return how an instance spreads its losses; one that is no table spreads them in its own way."""
    name: str = instance["name"]
    return instance.get("spread", "split") if name in TABLES else name


def _known_law(law: Any, max_delay: int) -> Known:
    """Return mean and variance of a law of delays before it is rounded and cut; nothing of one without a formula."""
    name, numbers = checked_law(tuple(law) if isinstance(law, list) else law, max_delay)
    if name == "uniform":
        return Known((numbers[0] + numbers[1]) / 2.0, ((numbers[1] - numbers[0] + 1.0) ** 2 - 1.0) / 12.0)
    if name == "half_normal":
        return Known(numbers[0], numbers[1] * (1.0 - 2.0 / math.pi))
    variances = {"fixed": 0.0, "exponential": numbers[0] ** 2, "poisson": numbers[0]}
    return Known(numbers[0], variances[name]) if name in variances else Known()


def _fading(given: dict[str, Any], max_delay: int) -> FloatArray:
    """Return weights that halve every `half_life` rounds, d/4 unless given, and add up to 1."""
    half_life = given.get("half_life", max(max_delay / 4.0, 0.25))
    weights = np.exp2(-np.arange(max_delay + 1) / half_life)
    scaled: FloatArray = weights / weights.sum()
    return scaled


def _one_good_arm(cell: Cell, seed: int) -> Table:
    """Arm 0 has mean 1/2 − gap, all others 1/2."""
    means = [0.5 - gap_of(cell)] + [0.5] * (cell["n_arms"] - 1)
    return tables.iid(cell["horizon"], means=means, seed=seed, law=cell["instance"].get("law", "bernoulli"))


def _seasonal(horizon: int, n_arms: int, seed: int, **given: Any) -> Table:
    """Let a season last a fourth of the horizon unless its period is given."""
    return tables.seasonal(horizon, n_arms=n_arms, seed=seed, **({"period": horizon / 4.0} | given))


TABLES: dict[str, Callable[..., Table]] = {
    "switching": tables.switching,
    "constrained": tables.constrained,
    "drifting": tables.drifting,
    "seasonal": _seasonal,
    "pieces": shaped,
}


def _table(cell: Cell, seed: int) -> Table:
    given = cell["instance"]
    if given["name"] not in TABLES:
        return _one_good_arm(cell, seed)
    rest = {key: value for key, value in given.items() if key not in ("name", "spread", "half_life")}
    return TABLES[given["name"]](cell["horizon"], n_arms=cell["n_arms"], seed=seed, **rest)


def _spread(cell: Cell, table: Table, seed: int) -> Losses:
    d, name = cell["max_delay"], spread_of(cell["instance"])
    if name == "split":
        return spreads.random_split(table, max_delay=d, seed=seed)
    if name == "delays":
        return spreads.randomly_delayed(table, max_delay=d, seed=seed)
    if name == "fixed":
        return spreads.delayed(table, delays=d, max_delay=d)
    if name == "geometric":
        return spreads.linear_composite(table, coefficients=_fading(cell["instance"], d))
    return spreads.at_once(table, max_delay=d)


def _hard(cell: Cell, seed: int) -> Losses:
    given, d = cell["instance"], cell["max_delay"]
    published = published_gap(cell["n_arms"], rounds=max(1, cell["horizon"] // (d + 1)))
    gap = given.get("gap_factor", 1.0) * published
    noise = given.get("noise", "independent")
    return hard(cell["n_arms"], max_delay=d, horizon=cell["horizon"], seed=seed, gap=gap, noise=noise)


def _stacked(cell: Cell, seed: int) -> Losses:
    """Stack linear losses with common noise, as the adversary does, one arm better by `gap`."""
    given, d = cell["instance"], cell["max_delay"]
    noise = given.get("noise", "shared")
    scale = noise_scale(cell["n_arms"], max(1, cell["horizon"] // (d + 1)), noise)
    return hard(
        cell["n_arms"], max_delay=d, horizon=cell["horizon"], seed=seed, gap=given.get("gap", 0.1) / scale, noise=noise
    )


def _anonymous(cell: Cell, seed: int) -> Losses:
    """Draw rewards, arm 0 of mean 1/2 + gap, all others 1/2, that come whole after random delays."""
    law = cell["instance"].get("delay_law", "uniform")
    means = [0.5 + gap_of(cell)] + [0.5] * (cell["n_arms"] - 1)
    law = tuple(law) if isinstance(law, list) else law
    return spreads.anonymous_iid(
        horizon=cell["horizon"], means=means, delay_law=law, seed=seed, max_delay=cell["max_delay"]
    )


def _late_bills(cell: Cell, seed: int) -> Losses:
    """Arm 0 costs 0.3 and bills at once, the others cost 0.5 to 0.7 and bill later, the dearer the later."""
    K, d = cell["n_arms"], cell["max_delay"]
    means = [0.3, *np.linspace(0.5, 0.7, K - 1)]
    table = tables.iid(cell["horizon"], means=means, seed=seed, law=cell["instance"].get("law", "bernoulli"))
    due = [round(i * d / (K - 1)) for i in range(K)]
    return spreads.kernels(table, weights=np.eye(d + 1)[due])


def _campaigns(cell: Cell, seed: int) -> Losses:
    from aftereffect.studies import campaigns

    settings = {key: value for key, value in cell["instance"].items() if key != "name"}
    sizes = {"n_arms": cell["n_arms"], "max_delay": cell["max_delay"]}
    return campaigns.losses(cell["horizon"], seed=seed, **sizes, **settings)


BUILDERS: dict[str, Callable[[Cell, int], Losses]] = {
    "hard": _hard,
    "stacked": _stacked,
    "anonymous": _anonymous,
    "late_bills": _late_bills,
    "campaigns": _campaigns,
}


class Draws:
    """The losses of a group, draw by draw; the first few stay in memory, as many as have room."""

    ROOM = 1 << 29

    def __init__(self, cell: Cell) -> None:
        """Stand for any cell of the group."""
        self._cell = cell
        self._kept: dict[int, Losses] = {}
        # The table itself, and D and W of the block engine, which live as long as the losses.
        self._most = max(1, self.ROOM // (24 * cell["n_arms"] * cell["horizon"]))

    def __getitem__(self, draw: int) -> Losses:
        """Return draw number `draw`."""
        if draw in self._kept:
            return self._kept[draw]
        losses = build(self._cell, draw)
        if draw < self._most:
            self._kept[draw] = losses
        return losses


