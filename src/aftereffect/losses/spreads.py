"""Spreads: how the whole effects of a table arrive over the rounds, without storing (T, d+1, K) numbers.

    at_once            the whole effect in the round of the play
    delayed            the whole effect some rounds later: one delay for all, per round, or per round and arm
    randomly_delayed   the same, with delays drawn from a law (`delay_laws.py`)
    anonymous_iid      Bernoulli rewards with independent delays
    geometric          fading with a half-life (adstock)
    kernels            a fixed kernel per arm
    linear_composite   the same coefficients for every arm
    random_split       split into random parts, uniform on the simplex, for each round and arm

Each takes a `Table` or a plain (T, K) array, and the keywords `direction`, `low` and `high`; a Table has its own range,
which these may widen. Delays and splits are drawn with the losses, before play begins.

There are three kernels. `Delayed` adds a whole effect in one round: the delayed anonymous feedback of Section 1.
`Weighted` adds table[t, i] · weights[i, s] for s = 0..d, which includes the linear composite losses of Section 2.
`Split` splits an effect into Dirichlet(1, ..., 1) parts: exponential numbers E_s = −ln U_s divided by their sum. They
are not stored, since U_s is a hash of (key, t, i, s): number (tK + i)(d+1) + s of `core.random.hashed_uniform`.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aftereffect.core import checks, kernel
from aftereffect.core.checks import FloatArray
from aftereffect.core.effects import extreme_parts
from aftereffect.core.errors import InvalidLosses
from aftereffect.core.random import DELAYS, SPLIT, children, hashed_uniform, sequence
from aftereffect.losses.delay_laws import draw_delays, largest_delay
from aftereffect.losses.protocol import TOLERANCE, Losses
from aftereffect.losses.tables import Bound, Table, TableLike, as_table, iid

__all__ = [
    "anonymous_iid", "at_once", "delayed", "geometric", "kernels", "linear_composite", "random_split",
    "randomly_delayed"
]

Law = str | tuple[str | float, ...]

# A product of 16 numbers of at least 2^-53 cannot underflow, so one logarithm is enough for all of them.
GROUP = 16


class Delayed(NamedTuple):
    """values[t, i]: whole effects. delays[t, i], or delays[t, 0] for all arms: their delays in rounds."""

    values: FloatArray
    delays: NDArray[np.int32]


class Weighted(NamedTuple):
    """values[t, i]: whole effects. weights[i, s]: the fraction of an effect of arm i that arrives s rounds later."""

    values: FloatArray
    weights: FloatArray


class Split(NamedTuple):
    """values[t, i]: whole effects. key: the start of the hash sequence. max_delay: d."""

    values: FloatArray
    key: np.uint64
    max_delay: int


def spread_delayed(params: Any, t: int, arm: int, pending: FloatArray, at: int) -> None:
    """Add the whole effect in the round in which it arrives."""
    column = arm if params.delays.shape[1] > 1 else 0
    pending[at + params.delays[t, column]] += params.values[t, arm]


def spread_weighted(params: Any, t: int, arm: int, pending: FloatArray, at: int) -> None:
    """Add values[t, arm] · weights[arm, s] for s = 0..d."""
    value, weights, due = params.values[t, arm], params.weights[arm], pending[at:]
    for s in range(len(weights)):
        due[s] += value * weights[s]


def spread_split(params: Any, t: int, arm: int, pending: FloatArray, at: int) -> None:
    """Add values[t, arm] · E_s / (E_0 + ... + E_d)."""
    parts = params.max_delay + 1
    first = (t * params.values.shape[1] + arm) * parts
    whole = 0.0
    for begin in range(0, parts, GROUP):
        product = 1.0
        for s in range(begin, min(begin + GROUP, parts)):
            product *= hashed_uniform(params.key, first + s)
        whole -= math.log(product)
    scale = -params.values[t, arm] / whole
    for s in range(parts):
        pending[at + s] += scale * math.log(hashed_uniform(params.key, first + s))


kernel.register(Delayed, kernel.LossKernel(spread_delayed))
kernel.register(Weighted, kernel.LossKernel(spread_weighted))
kernel.register(Split, kernel.LossKernel(spread_split, costly=True))


def at_once(
    table: TableLike, *, max_delay: int = 0, direction: str = "minimize", low: Bound = None, high: Bound = None
) -> Losses:
    """Charge the whole effect in the round of the play; `max_delay` is only the value that players are given.

    >>> at_once([[0.5, 1.0], [0.25, 0.0]]).totals([1, 0])
    array([1.  , 0.25])
    """
    return delayed(table, delays=0, max_delay=max_delay, direction=direction, low=low, high=high)


def delayed(
    table: TableLike,
    *,
    delays: ArrayLike,
    max_delay: int | None = None,
    direction: str = "minimize",
    low: Bound = None,
    high: Bound = None,
) -> Losses:
    """Charge the whole effect of a play some rounds later.

    delays: one for all plays, or an array of shape (T,) or (T, K). max_delay: by default the longest of them.

    >>> delayed([[0.5, 1.0], [0.25, 0.0], [0.0, 0.0]], delays=[2, 0, 0]).totals([1, 0, 0])
    array([0.  , 0.25, 1.  ])
    """
    whole = as_table(table, low, high)
    checked = _checked_delays(delays, whole.values.shape)
    longest = int(checked.max())
    max_delay = longest if max_delay is None else checks.integer("max_delay", max_delay, low=0)
    if longest > max_delay:
        raise InvalidLosses(f"delays must be at most max_delay={max_delay}, but the longest is {longest}")
    return _delayed(checked, max_delay, direction, whole)


def randomly_delayed(
    table: TableLike,
    *,
    seed: int,
    max_delay: int | None = None,
    law: Law = "uniform",
    per_arm: bool = False,
    direction: str = "minimize",
    low: Bound = None,
    high: Bound = None,
) -> Losses:
    """Draw one delay per round (with `per_arm`, per round and arm) independently from `law`, capped at `max_delay`.

    law: see `delay_laws.py`; "uniform" alone means uniform on 0..max_delay. max_delay: by default the greatest delay of
    a bounded law.

    >>> losses = randomly_delayed([[1.0, 0.5], [1.0, 0.5]], max_delay=3, seed=1)
    >>> np.count_nonzero(losses.components(), axis=1).tolist()            # each effect arrives whole
    [[1, 1], [1, 1]]
    """
    whole = as_table(table, low, high)
    horizon, n_arms = whole.values.shape
    longest = largest_delay(law, max_delay)
    random = np.random.default_rng(sequence(seed, DELAYS))
    drawn = draw_delays(law, longest, (horizon, n_arms if per_arm else 1), random)
    build = partial(randomly_delayed, max_delay=longest, law=law, per_arm=per_arm, direction=direction)
    return _losses(Delayed(whole.values, checks.owned(drawn)), whole, longest, direction, build, drawn=True)


def anonymous_iid(
    horizon: int,
    *,
    means: ArrayLike,
    delay_law: Law,
    seed: int,
    max_delay: int | None = None,
    direction: str = "maximize",
) -> Losses:
    """Draw Bernoulli rewards (or losses) and their delays, all independent: stochastic anonymous feedback.

    Reference: Pike-Burke, Agrawal, Szepesvári and Grünewälder, "Bandits with delayed, aggregated anonymous
    feedback", ICML 2018; the experiments there use means (0.5, 0.6), T = 250,000 and delays with mean 25 or 50.

    >>> losses = anonymous_iid(1000, means=[0.5, 0.6], delay_law=("uniform", 0, 50), seed=1)
    >>> losses.max_delay, losses.direction, losses.means
    (50, 'maximize', array([0.5, 0.6]))
    """
    for_table, for_delays = children(seed, 2)
    table = iid(horizon, means=means, seed=for_table)
    return randomly_delayed(table, max_delay=max_delay, seed=for_delays, law=delay_law, direction=direction)


def geometric(
    table: TableLike,
    *,
    half_life: float,
    max_delay: int | None = None,
    direction: str = "minimize",
    low: Bound = None,
    high: Bound = None,
) -> Losses:
    """Spread effects with geometric decay (adstock): the weight of delay s is proportional to 2^(-s/half_life).

    The weights are truncated at d = `max_delay` and normalised to sum to 1. By default d is the least for which the
    truncation removes less than 1% of the mass: the smallest d with 2^(-(d+1)/half_life) < 0.01.

    >>> geometric([[1.0, 0.0]], half_life=1.0, max_delay=2).components()[0, :, 0] * 7
    array([4., 2., 1.])
    """
    half_life = checks.real("half_life", half_life, above=0.0)
    if max_delay is None:
        # With a longer half-life the weights alone would exhaust the memory.
        max_delay = math.floor(checks.real("half_life without max_delay", half_life, high=1e6) * math.log2(100.0))
    delays = np.arange(checks.integer("max_delay", max_delay, low=0) + 1)
    weights = np.exp2(-delays / half_life)
    return linear_composite(table, coefficients=weights / weights.sum(), direction=direction, low=low, high=high)


def linear_composite(
    table: TableLike, *, coefficients: ArrayLike, direction: str = "minimize", low: Bound = None, high: Bound = None
) -> Losses:
    """Use the same coefficients a_0..a_d for every arm: the total of round t is Σ_s a_s ℓ_{t-s}(i_{t-s}).

    Coefficients may be negative or exceed 1, as long as every contiguous part of an effect stays in the range.

    Reference: Dekel, Ding, Koren and Peres, "Online learning with composite loss functions", COLT 2014.

    >>> linear_composite([[0.5, 1.0]], coefficients=[0.75, 0.25]).components()[0]
    array([[0.375, 0.75 ],
           [0.125, 0.25 ]])
    """
    row = checks.array("coefficients", coefficients, shape=("d+1",), error=InvalidLosses)
    whole = as_table(table, low, high)
    return _weighted(np.repeat(row[np.newaxis, :], whole.values.shape[1], axis=0), "coefficients", direction, whole)


def kernels(
    table: TableLike, *, weights: ArrayLike, direction: str = "minimize", low: Bound = None, high: Bound = None
) -> Losses:
    """Use a separate kernel for each arm: `weights` of shape (K, d+1), as the coefficients of `linear_composite`.

    >>> kernels([[0.5, 1.0]], weights=[[1.0, 0.0], [0.25, 0.75]]).components()[0]
    array([[0.5 , 0.25],
           [0.  , 0.75]])
    """
    whole = as_table(table, low, high)
    rows = checks.array("weights", weights, shape=(whole.values.shape[1], "d+1"), error=InvalidLosses)
    return _weighted(rows, "weights", direction, whole)


def random_split(
    table: TableLike, *, max_delay: int, seed: int, direction: str = "minimize", low: Bound = None, high: Bound = None
) -> Losses:
    """Split each effect into d+1 random parts, uniform on the simplex.

    >>> parts = random_split([[1.0, 0.5]], max_delay=4, seed=3).components()[0]
    >>> parts.shape, parts.sum(axis=0).round(12)
    ((5, 2), array([1. , 0.5]))
    """
    whole = as_table(table, low, high)
    max_delay = checks.integer("max_delay", max_delay, low=0)
    key = sequence(seed, SPLIT).generate_state(1, np.uint64)[0]
    build = partial(random_split, max_delay=max_delay, direction=direction)
    return _losses(Split(whole.values, key, max_delay), whole, max_delay, direction, build, drawn=True)


def _checked_delays(delays: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.int32]:
    """Return the delays as int32 of shape (T, 1) or (T, K)."""
    given = checks.as_array("delays", delays, InvalidLosses)
    if given.dtype.kind not in "iu" or given.shape not in ((), shape[:1], shape):
        raise InvalidLosses(
            f"delays must be whole numbers of shape (), {shape[:1]} or {shape}, "
            f"but got {given.dtype} of shape {given.shape}"
        )
    wrong = (given < 0) | (given > np.iinfo(np.int32).max)
    if wrong.any():
        raise InvalidLosses(f"delays must lie in 0..2147483647, but got {int(given[wrong].flat[0])}")
    full = given if given.shape == shape else np.broadcast_to(given, shape[:1])[:, np.newaxis]
    return checks.frozen(full.astype(np.int32))


def _delayed(delays: NDArray[np.int32], max_delay: int, direction: str, table: Table) -> Losses:
    """Return delayed losses; a redraw keeps the delays and draws a new table."""
    build = partial(_delayed, delays, max_delay, direction)
    return _losses(Delayed(table.values, delays), table, max_delay, direction, build)


def _weighted(weights: FloatArray, name: str, direction: str, table: Table) -> Losses:
    """Return weighted losses after checking that every contiguous part of every effect lies in the range."""
    if weights.shape[1] < 1:
        raise InvalidLosses(f"{name} must have at least one number, for delay 0, but got none")
    build = partial(_weighted, weights, name, direction)
    params = Weighted(table.values, checks.frozen(weights))
    losses = _losses(params, table, weights.shape[1] - 1, direction, build, weights.sum(axis=1))
    lo, hi, _ = losses.effects
    # A part of an effect is a value times a sum of consecutive weights: check the extremes of both.
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


def _losses(
    params: Any,
    table: Table,
    max_delay: int,
    direction: str,
    build: Callable[..., Losses],
    shares: FloatArray | None = None,
    drawn: bool = False,
) -> Losses:
    """Return the losses of a table in kernel form.

    build: makes them from a table and, if delays or splits are `drawn`, their seed. shares: the fraction of an arm's
    effect that arrives, if not 1.
    """
    horizon, n_arms = table.values.shape
    means = table.means if table.means is None or shares is None else table.means * shares
    again = partial(_drawn_again, build, table, drawn) if drawn or table.recipe else None
    return Losses.made(params, (horizon, max_delay, n_arms), (direction, table.low, table.high), means, again)


def _drawn_again(build: Callable[..., Losses], table: Table, drawn: bool, seed: int) -> Losses:
    """Redraw the table, if it has a recipe, within the same range, and the delays or splits, if they are drawn."""
    for_table, for_spread = children(seed, 2) if drawn else (seed, 0)
    fresh = as_table(table.redraw(for_table), table.low, table.high) if table.recipe else table
    return build(fresh, seed=for_spread) if drawn else build(fresh)
