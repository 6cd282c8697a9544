"""Spreads with fixed weights: component s of arm i is table[t, i] · weights[i, s], the same in every round.

Adstock, a kernel per arm, and the linear composite losses that Section 2 names as a special case.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from aftereffect.core import checks, kernel
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidLosses
from aftereffect.losses.composite import TOLERANCE, extreme_parts
from aftereffect.losses.protocol import Losses
from aftereffect.losses.tables import Table, as_table


class Weighted(NamedTuple):
    """values[t, i]: whole effects. weights[i, s]: the share of arm i that arrives s rounds later."""

    values: FloatArray
    weights: FloatArray


def spread(params: Any, t: int, arm: int, pending: FloatArray, at: int) -> None:
    """Add values[t, arm] · weights[arm, s] for s = 0..d."""
    value = params.values[t, arm]
    for s in range(params.weights.shape[1]):
        pending[at + s] += value * params.weights[arm, s]


kernel.register(Weighted, kernel.LossKernel(spread))


def geometric(
    table: Table | ArrayLike,
    half_life: float,
    max_delay: int | None = None,
    *,
    direction: str = "minimize",
    low: float | None = None,
    high: float | None = None,
) -> Losses:
    """Let effects fade as adstock does: the weight of delay s is proportional to 2^(-s/half_life).

    The weights are cut at d = `max_delay` and add up to 1. By default d is the least that cuts off less than
    1% of the mass: the smallest d with 2^(-(d+1)/half_life) < 0.01.

    >>> geometric([[1.0, 0.0]], half_life=1.0, max_delay=2).components()[0, :, 0] * 7
    array([4., 2., 1.])
    """
    half_life = checks.real("half_life", half_life, above=0.0)
    if max_delay is None:
        # Beyond this nobody means it, and the weights alone would fill the memory.
        checks.real("half_life without max_delay", half_life, high=1e6)
    chosen = math.floor(half_life * math.log2(100.0)) if max_delay is None else max_delay
    delays = np.arange(checks.integer("max_delay", chosen, low=0) + 1)
    weights = np.exp2(-delays / half_life)
    return linear_composite(table, weights / weights.sum(), direction=direction, low=low, high=high)


def linear_composite(
    table: Table | ArrayLike,
    coefficients: ArrayLike,
    *,
    direction: str = "minimize",
    low: float | None = None,
    high: float | None = None,
) -> Losses:
    """Let every arm have the same coefficients a_0..a_d: the total of round t is Σ_s a_s ℓ_{t-s}(i_{t-s}).

    Coefficients may be negative or exceed 1, as long as no contiguous part of an effect leaves the range.

    Reference: Dekel, Ding, Koren and Peres, "Online learning with composite loss functions", COLT 2014.

    >>> linear_composite([[0.5, 1.0]], [0.75, 0.25]).components()[0]
    array([[0.375, 0.75 ],
           [0.125, 0.25 ]])
    """
    row = checks.array("coefficients", coefficients, shape=("d+1",), error=InvalidLosses)
    whole = as_table(table, low, high)
    weights = np.repeat(row[np.newaxis, :], whole.values.shape[1], axis=0)
    return _build(whole, weights, "coefficients", direction)


def kernels(
    table: Table | ArrayLike,
    weights: ArrayLike,
    *,
    direction: str = "minimize",
    low: float | None = None,
    high: float | None = None,
) -> Losses:
    """Give each arm its own kernel: `weights` of shape (K, d+1), none negative, rows that sum to at most 1.

    >>> kernels([[0.5, 1.0]], [[1.0, 0.0], [0.25, 0.75]]).components()[0]
    array([[0.5 , 0.25],
           [0.  , 0.75]])
    """
    whole = as_table(table, low, high)
    rows = checks.array("weights", weights, shape=(whole.values.shape[1], "d+1"), error=InvalidLosses)
    if (rows < 0.0).any():
        i, s = (int(n) for n in np.argwhere(rows < 0.0)[0])
        raise InvalidLosses(f"weights must not be negative, but weights[{i}, {s}] is {float(rows[i, s])!r}")
    sums = rows.sum(axis=1)
    if (sums > 1.0 + TOLERANCE).any():
        i = int(sums.argmax())
        raise InvalidLosses(f"weights[i] must sum to at most 1, but weights[{i}] sums to {float(sums[i])!r}")
    return _build(whole, rows, "weights", direction)


def _build(table: Table, weights: FloatArray, name: str, direction: str) -> Losses:
    """Return the losses after checking that every contiguous part of every effect lies in the range."""
    if weights.shape[1] < 1:
        raise InvalidLosses(f"{name} must hold a number for delay 0 at least, but got none")
    horizon, n_arms = table.values.shape
    losses = Losses(
        Weighted(table.values, checks.frozen(weights)),
        horizon=horizon,
        max_delay=weights.shape[1] - 1,
        n_arms=n_arms,
        direction=direction,
        low=table.low,
        high=table.high,
        means=None if table.means is None else table.means * weights.sum(axis=1),
        recipe=None if table.recipe is None else partial(_again, table, weights, name, direction),
    )
    lo, hi, _ = losses.effects
    # A part of an effect is a value times a sum of neighbouring weights: look at the extremes of both.
    least, most = (parts[0] for parts in extreme_parts(weights.T[np.newaxis]))
    ends = np.array([table.values.min(axis=0), table.values.max(axis=0)])
    parts = np.concatenate([ends * least, ends * most])
    margin = TOLERANCE * (hi - lo)
    outside = (parts < lo - margin) | (parts > hi + margin)
    if outside.any():
        e, i = (int(n) for n in np.argwhere(outside)[0])
        raise InvalidLosses(
            f"{name} must keep every contiguous part of an effect in [{lo:g}, {hi:g}], "
            f"but a part of an effect of arm {i} is {float(parts[e, i])!r}"
        )
    return losses


def _again(table: Table, weights: FloatArray, name: str, direction: str, seed: int) -> Losses:
    """Redraw the table under the same weights."""
    fresh = as_table(table.redraw(seed), table.low, table.high)
    return _build(fresh, weights, name, direction)
