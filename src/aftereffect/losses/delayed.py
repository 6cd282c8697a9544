"""Spreads that let an effect arrive whole, but late: the delayed anonymous feedback of Section 1.

The delay of a play is chosen with the losses, before play begins: one for all, one a round, or one a round
and arm.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aftereffect.core import checks, kernel
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidLosses
from aftereffect.losses.laws import draw_delays, largest_delay
from aftereffect.losses.protocol import Losses
from aftereffect.losses.seeds import DELAYS, children, generator
from aftereffect.losses.tables import Table, as_table, iid

Law = str | tuple[str | float, ...]


class Delayed(NamedTuple):
    """values[t, i]: whole effects. delays[t, i], or delays[t, 0] for all arms: how much later they arrive."""

    values: FloatArray
    delays: NDArray[np.int32]


def spread(params: Any, t: int, arm: int, pending: FloatArray, at: int) -> None:
    """Add the whole effect in the one round in which it arrives."""
    column = arm if params.delays.shape[1] > 1 else 0
    pending[at + params.delays[t, column]] += params.values[t, arm]


kernel.register(Delayed, kernel.LossKernel(spread))


def at_once(
    table: Table | ArrayLike,
    max_delay: int = 0,
    *,
    direction: str = "minimize",
    low: float | None = None,
    high: float | None = None,
) -> Losses:
    """Charge everything in the round of the play; `max_delay` is then only what is claimed.

    >>> at_once([[0.5, 1.0], [0.25, 0.0]]).totals([1, 0])
    array([1.  , 0.25])
    """
    return delayed(table, 0, max_delay, direction=direction, low=low, high=high)


def delayed(
    table: Table | ArrayLike,
    delays: int | Sequence[int] | NDArray[Any],
    max_delay: int | None = None,
    *,
    direction: str = "minimize",
    low: float | None = None,
    high: float | None = None,
) -> Losses:
    """Charge the whole effect of a play some rounds later.

    delays: one for all plays, or an array of shape (T,) or (T, K). max_delay: the greatest of them unless
    given.

    >>> delayed([[0.5, 1.0], [0.25, 0.0], [0.0, 0.0]], [2, 0, 0]).totals([1, 0, 0])
    array([0.  , 0.25, 1.  ])
    """
    whole = as_table(table, low, high)
    checked = _checked_delays(delays, whole.values.shape)
    longest = int(checked.max())
    max_delay = longest if max_delay is None else checks.integer("max_delay", max_delay, low=0)
    if longest > max_delay:
        raise InvalidLosses(f"delays must be at most max_delay={max_delay}, but the longest is {longest}")
    recipe = None
    if whole.recipe is not None:
        recipe = partial(_again, whole, checked, max_delay, direction)
    return _build(whole, checked, max_delay, direction, recipe)


def randomly_delayed(
    table: Table | ArrayLike,
    max_delay: int | None,
    seed: int,
    *,
    law: Law = "uniform",
    per_arm: bool = False,
    direction: str = "minimize",
    low: float | None = None,
    high: float | None = None,
) -> Losses:
    """Draw each round's delay (with `per_arm`, each arm's too) independently from `law`, cut at `max_delay`.

    law: see `laws.py`; "uniform" alone means uniform on 0..max_delay. max_delay may be None if the law is
    bounded.
    """
    whole = as_table(table, low, high)
    horizon, n_arms = whole.values.shape
    longest = largest_delay(law, max_delay)
    delays = draw_delays(law, longest, (horizon, n_arms if per_arm else 1), generator(seed, DELAYS))
    recipe = partial(_again_randomly, whole, longest, law, per_arm, direction)
    return _build(whole, checks.owned(delays), longest, direction, recipe)


def anonymous_iid(
    horizon: int,
    means: ArrayLike,
    delay_law: Law,
    seed: int,
    *,
    max_delay: int | None = None,
    direction: str = "maximize",
) -> Losses:
    """Draw Bernoulli rewards (or losses) and their delays, all independent: stochastic anonymous feedback.

    Reference: Pike-Burke, Agrawal, Szepesvári and Grünewälder, "Bandits with delayed, aggregated anonymous
    feedback", ICML 2018; its experiments have means (0.5, 0.6), T = 250,000 and delays with mean 25 or 50.

    >>> losses = anonymous_iid(1000, [0.5, 0.6], ("uniform", 0, 50), seed=1)
    >>> losses.max_delay, losses.direction, losses.means
    (50, 'maximize', array([0.5, 0.6]))
    """
    for_table, for_delays = children(seed, 2)
    table = iid(horizon, means, for_table)
    return randomly_delayed(table, max_delay, for_delays, law=delay_law, direction=direction)


def _checked_delays(delays: int | Sequence[int] | NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.int32]:
    """Return the delays as int32 of shape (T, 1) or (T, K)."""
    given = np.asarray(delays)
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


def _build(table: Table, delays: NDArray[np.int32], max_delay: int, direction: str, recipe: Any) -> Losses:
    horizon, n_arms = table.values.shape
    return Losses(
        Delayed(table.values, checks.frozen(delays)),
        horizon=horizon,
        max_delay=max_delay,
        n_arms=n_arms,
        direction=direction,
        low=table.low,
        high=table.high,
        means=table.means,
        recipe=recipe,
    )


def _again(table: Table, delays: NDArray[np.int32], max_delay: int, direction: str, seed: int) -> Losses:
    """Redraw the table under the same delays."""
    fresh = as_table(table.redraw(seed), table.low, table.high)
    recipe = partial(_again, table, delays, max_delay, direction)
    return _build(fresh, delays, max_delay, direction, recipe)


def _again_randomly(
    table: Table, max_delay: int, law: Law, per_arm: bool, direction: str, seed: int
) -> Losses:
    """Redraw the delays, and the table where it has a recipe."""
    for_table, for_delays = children(seed, 2)
    fresh = table if table.recipe is None else as_table(table.redraw(for_table), table.low, table.high)
    return randomly_delayed(fresh, max_delay, for_delays, law=law, per_arm=per_arm, direction=direction)
