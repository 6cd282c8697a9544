"""Sums over windows of d+1 rounds: their size (Lemma 2, Section 3) and their sum (Lemma 11, Appendix A)."""

import math

from numpy.typing import ArrayLike

from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument


def window_bound(max_delay: int) -> float:
    """Return 2d+1, the most that d+1 consecutive totals add up to while one arm i is played (Lemma 2).

    For t >= 2d+1: Σ_{τ=t−d}^{t} ℓ°_τ(i, ..., i) <= 2d+1. Only the 2d+1 plays of rounds t−2d, ..., t have
    components in the window, and the components of one play sum to at most 1. This is why the wrapper divides
    by 2d+1.

    >>> window_bound(max_delay=3)
    7.0
    """
    d = checks.integer("max_delay", max_delay, low=0)
    return float(2 * d + 1)


def accountants_sums(c: ArrayLike, a: int, b: int, max_delay: int) -> tuple[float, float]:
    """Return both sides of the accountants' identity (Lemma 11); they are equal up to rounding.

    For a <= b and d >= 0,

        Σ_{t=a−d}^{a−1} (t−a+d+1) c_t + (d+1) Σ_{t=a}^{b} c_t + Σ_{t=b+1}^{b+d} (b+d+1−t) c_t
            = Σ_{τ=a}^{b+d} Σ_{t=τ−d}^{τ} c_t.

    The left side counts how many windows hold each round, the right side walks through the windows. `c` holds
    c_{a−d}, ..., c_{b+d}, in this order: b−a+1+2d numbers. The rounds a and b may be any integers.

    >>> accountants_sums([1.0, 10.0, 100.0, 1000.0], a=2, b=3, max_delay=1)
    (1221.0, 1221.0)
    """
    d = checks.integer("max_delay", max_delay, low=0)
    a = checks.integer("a", a)
    b = checks.integer("b", b)
    if a > b:
        raise InvalidArgument(f"a must be at most b, but got a={a} and b={b}")
    values = checks.array("c", c, shape=(b - a + 1 + 2 * d,)).tolist()
    first = a - d
    before = (float(t - a + d + 1) * values[t - first] for t in range(a - d, a))
    inside = (float(d + 1) * values[t - first] for t in range(a, b + 1))
    after = (float(b + d + 1 - t) * values[t - first] for t in range(b + 1, b + d + 1))
    left = math.fsum((*before, *inside, *after))
    windows = (values[t - first] for tau in range(a, b + d + 1) for t in range(tau - d, tau + 1))
    return left, math.fsum(windows)
