"""Bounds for effects that last longer than the d rounds that the player is told; proofs in docs/theory/soft_windows.md.

The head of an effect is what arrives up to d rounds after the action, its tail what arrives later. The player is
Algorithm 1 fed stretches, with the sums that are out of range clipped. All values are in units of the range, hi − lo.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from aftereffect.core import checks, effects
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument


def tail_price(direction: str = "minimize", low: float = 0.0, high: float = 1.0) -> float:
    """Return the factor of E, the sum of the tails, in `tail_bound`: 2 for losses, 1 for rewards, 5 for either sign.

    direction, low, high: as for players. Negative losses count as rewards, and negative rewards as losses.

    >>> tail_price(), tail_price("maximize"), tail_price("maximize", low=-1.0), tail_price("maximize", -1.0, 0.0)
    (2.0, 1.0, 5.0, 2.0)
    """
    lo, hi, maximize = effects.effects(direction, low, high)
    if lo < 0.0 < hi:
        return 5.0
    return 1.0 if maximize == (lo == 0.0) else 2.0


def tail_bound(bound: float, tail: float, direction: str = "minimize", low: float = 0.0, high: float = 1.0) -> float:
    """Return a bound on R_T if effects have tails: bound + 2E for losses; see `tail_price` for other effects.

    bound: a bound on R_T for effects without tails, such as `stretch_worst_case` or the mean of a certificate. E =
    `tail`: the sum over all rounds of the largest tail of any arm; if effects change sign, of the absolute values of
    its components. Both are in units of the range.

    >>> tail_bound(bound=100.0, tail=10.0), tail_bound(bound=100.0, tail=10.0, direction="maximize")
    (120.0, 110.0)
    """
    price = tail_price(direction, low, high)
    return checks.real("bound", bound, infinite=True) + price * checks.real("tail", tail, low=0.0)


def seen_share(weights: ArrayLike, max_delay: int, update_probability: float) -> float:
    """Return κ, the share of an effect that is attributed to its own arm, if all effects are spread alike.

    weights: w_0, w_1, ..., the shares of an effect by delay; their sum is at most 1. What arrives up to d rounds after
    the action counts with weight 1, and what arrives d + j rounds after it with the probability that no block ends in
    j given rounds.

    >>> seen_share([0.5, 0.25, 0.25], max_delay=0, update_probability=1.0)
    0.5
    >>> seen_share([0.5, 0.25, 0.25], max_delay=1, update_probability=0.5)
    0.9375
    """
    w = checked_weights(weights)
    return float(w @ _attributed(len(w), max_delay, update_probability) / w.sum())


def alike_bound(bound: float, weights: ArrayLike, max_delay: int, update_probability: float) -> float:
    """Return a bound on R_T if the effects of all arms are spread alike: bound/κ + e.

    Component s of an effect is w_s times the effect. bound: as in `tail_bound`. κ: `seen_share`; infinite if κ = 0.
    e: for effects that are cut off at T, at most the mean delay Σ s·w_s.

    >>> alike_bound(100.0, weights=[0.5, 0.5], max_delay=0, update_probability=1.0)    # κ = 1/2, e = 1/2
    200.5
    """
    w = checked_weights(weights)
    seen = _attributed(len(w), max_delay, update_probability)
    share = float(w @ seen / w.sum())
    if share == 0.0:
        return math.inf
    return (checks.real("bound", bound, infinite=True) + float(np.cumsum(w * (seen - share)).sum())) / share


def late_price(spreads: ArrayLike, max_delay: int, update_probability: float) -> tuple[float, float]:
    """Return (price, ends) such that effects that last longer than d add at most price·T + ends to the bound on R_T.

    spreads[k]: the greatest difference between two arms in what arrives more than k rounds after the action; 0 after
    the last. What all arms have in common does not count. It holds if no sum is out of range.

    >>> late_price([0.75, 0.25, 0.0], max_delay=0, update_probability=1.0)
    (0.75, 0.25)
    """
    left = checks.array("spreads", spreads, shape=("any",))
    seen = _attributed(len(left) + 1, max_delay, update_probability)
    later = left[max_delay:]
    price = float((seen[max_delay:-1] - seen[max_delay + 1 :]) @ later)
    return price, float(later[1:].sum() + max_delay * later.max(initial=0.0))


def checked_weights(weights: ArrayLike, name: str = "weights") -> FloatArray:
    """Return weights by delay as an array: at least 0, with a sum that is greater than 0 and at most 1."""
    w = checks.array(name, weights, shape=("any",), unit=True)
    if not 0.0 < w.sum() <= 1.0 + 1e-9:
        raise InvalidArgument(f"{name} must have a sum greater than 0 and at most 1, but got {float(w.sum())!r}")
    return w


def _attributed(length: int, max_delay: int, update_probability: float) -> FloatArray:
    """Return for s = 0, 1, ... the probability that no block ends in max(s − d, 0) given rounds.

    A block ends in the j-th of these rounds, and in none before it, if its coin is 1, the d before it are 0 and no
    block ends before those: with probability p = β(1−β)^d times that of no end in the first j − d − 1 rounds.
    """
    d = checks.integer("max_delay", max_delay, low=0)
    beta = checks.real("update_probability", update_probability, above=0.0, high=1.0)
    p = beta * (1.0 - beta) ** d
    seen = np.zeros(length)
    seen[: d + 1] = 1.0
    # d + 1 delays at a time, until the rest is negligible.
    for start in range(d + 1, length, d + 1):
        before = seen[start - 1 - d : min(start, length - 1 - d)]
        now = seen[start : start + len(before)]
        now[:] = np.maximum(seen[start - 1] - p * np.cumsum(before), 0.0)
        if now[-1] < 1e-15:
            break
    return seen
