"""The range of one action's effect, and the bounds it implies on totals, windows and fed losses.

`low` and `high` bound the whole effect of one action. With lo = min(low, 0) and hi = max(high, 0), the
assumption is that *every contiguous part of one action's effect lies in [lo, hi]*. For losses in [0, 1] this
is the paper's assumption: components >= 0 that sum to at most 1. It follows that a total, to which d+1 actions
contribute one part each, lies in (d+1)·[lo, hi], and that the window of Lemma 2, to which 2d+1 actions
contribute one contiguous part each, lies in (2d+1)·[lo, hi].
"""

from typing import NamedTuple

import numpy as np

from aftereffect.core import checks
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.kernel import helper, quotient

DIRECTIONS = ("minimize", "maximize")

# The rounding error of a sum of d+1 doubles is far below this fraction of the range; the components of a play may
# exceed the range by 1e-9 of it in total.
ROUNDING = 1e-8


class Effects(NamedTuple):
    """lo, hi: bounds on every contiguous part of an action's effect. maximize: effects are rewards."""

    lo: float
    hi: float
    maximize: bool


def effects(direction: str, low: float, high: float) -> Effects:
    """Check `direction`, `low` and `high` and return them as `Effects`."""
    checks.choice("direction", direction, DIRECTIONS)
    low = checks.real("low", low)
    high = checks.real("high", high)
    if not low < high:
        raise InvalidArgument(f"low must be less than high, but got low={low!r} and high={high!r}")
    lo, hi = min(low, 0.0), max(high, 0.0)
    # Sums over windows must not overflow, and fractions of the range must not underflow.
    checks.real("high - low", hi - lo, low=1e-303, high=1e303)
    return Effects(lo, hi, direction == "maximize")


@helper
def stretch_bounds(span: Effects, max_delay: int, rounds: int) -> tuple[float, float]:
    """Return the least and the greatest possible sum of the totals of `rounds` rounds, with a margin for rounding.

    A single total has rounds = 1, the clean window of Lemma 2 has rounds = d+1.
    """
    margin = ROUNDING * (rounds + max_delay) * (span.hi - span.lo)
    return (rounds + max_delay) * span.lo - margin, (rounds + max_delay) * span.hi + margin


@helper
def average_loss(span: Effects, parts: int, whole: float) -> float:
    """Return a sum of parts as a loss in [0, 1]: (sum/parts − lo)/(hi − lo), or 1 minus that for rewards.

    The result is clipped to [0, 1]. Where a lemma bounds the sum, the clip removes rounding errors only.
    """
    loss = quotient(quotient(whole, parts) - span.lo, span.hi - span.lo)
    if span.maximize:
        loss = 1.0 - loss
    return min(max(loss, 0.0), 1.0)


@helper
def fed_loss(span: Effects, max_delay: int, window: float) -> float:
    """Return the loss in [0, 1] that Algorithm 1 feeds for a window of sum W: the average over 2d+1 parts (Lemma 2)."""
    return average_loss(span, 2 * max_delay + 1, window)


@helper
def stretch_terms(span: Effects, max_delay: int, rounds: int, scale: float) -> tuple[float, float, float]:
    """Return (weight, offset, top) for the loss fed by a clean stretch of `rounds` rounds, in units of `scale` actions.

    The stretch contains one contiguous part of each of rounds + d actions, so the loss is at most
    top = (rounds + d)/scale. Its expected value is weight = rounds/scale times the usual loss of one action, plus the
    offset, which is the loss of the other d parts if their effects are 0: positive unless an effect of 0 is a loss of
    0.
    """
    edge = span.hi if span.maximize else -span.lo
    offset = quotient(max_delay * edge, (span.hi - span.lo) * scale)
    return quotient(rounds, scale), offset, quotient(rounds + max_delay, scale)


@helper
def stretch_loss(span: Effects, max_delay: int, rounds: int, scale: float, whole: float) -> float:
    """Return the loss in [0, top] for the sum of a clean stretch; it is linear in the sum."""
    parts = rounds + max_delay
    loss = parts * span.hi - whole if span.maximize else whole - parts * span.lo
    return min(max(quotient(loss, (span.hi - span.lo) * scale), 0.0), quotient(parts, scale))


def extreme_parts(components: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest sum over contiguous parts (including the empty one) along axis 1.

    The greatest sum that ends at s is component s plus the greatest sum that ends at s − 1, if that is positive
    (Kadane's algorithm).

    >>> least, most = extreme_parts(np.array([[[2.0], [-3.0], [1.0], [4.0]]]))
    >>> float(least[0, 0]), float(most[0, 0])
    (-3.0, 5.0)
    """
    falling, least, rising, most = np.zeros((4, components.shape[0], components.shape[2]))
    for s in range(components.shape[1]):
        falling = np.minimum(falling, 0.0) + components[:, s]
        rising = np.maximum(rising, 0.0) + components[:, s]
        np.minimum(least, falling, out=least)
        np.maximum(most, rising, out=most)
    return least, most
