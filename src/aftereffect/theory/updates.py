"""When the wrapper updates and what a window contains: Definition 1 and Lemma 2 (Section 3), Lemma 11 (Appendix A).

The coins B_1, B_2, ... are independent Bernoulli(β), β = `update_probability`. Round t is an update round if
t >= 2d+1, B_t = 1 and the 2d coins before it are 0. A block runs from the round after an update (or from
round 1) to the next update round, so a block ends at the first gap of at least 2d+1 between ones, where the round
before the block counts as a one: it is either an update round, or round 0, for which the rule t >= 2d+1 has the same
effect. Hence all blocks, including the first, have the same law.

The three sizes of a problem (Section 2) are K = `n_arms` arms, at least 2; d = `max_delay`, the longest delay of an
effect in rounds, at least 0; T = `horizon` rounds, at least 1.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from aftereffect.core import checks
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument


def sizes(n_arms: int, max_delay: int, horizon: int) -> tuple[int, int, int]:
    """Return K, d and T, checked."""
    d, T = checks.integer("max_delay", max_delay, low=0), checks.integer("horizon", horizon, low=1)
    return checks.integer("n_arms", n_arms, low=2), d, T


def most_updates(max_delay: int, horizon: int) -> int:
    """Return ⌊T/(2d+1)⌋, the most updates possible in T rounds: a block has at least 2d+1 rounds (Figure 1).

    >>> most_updates(max_delay=2, horizon=23)
    4
    """
    d = checks.integer("max_delay", max_delay, low=0)
    T = checks.integer("horizon", horizon, low=1)
    return T // (2 * d + 1)


def enough_rounds(max_delay: int, horizon: int) -> None:
    """Raise an error unless an update can happen: T >= 2d+1."""
    if most_updates(max_delay, horizon) < 1:
        raise InvalidArgument(f"horizon must be at least 2*max_delay + 1 = {2 * max_delay + 1}, but got {horizon}")


def update_rate(max_delay: int, update_probability: float) -> float:
    """Return p = β(1−β)^{2d}, the probability that a round t >= 2d+1 is an update round (proof of Theorem 4).

    It is 0 for β = 1 and d >= 1: every coin is then 1, so no round is preceded by 0s.

    >>> update_rate(max_delay=1, update_probability=0.5)
    0.125
    """
    d = checks.integer("max_delay", max_delay, low=0)
    beta = checks.real("update_probability", update_probability, above=0.0, high=1.0)
    return float(beta * (1.0 - beta) ** (2 * d))


def best_update_probability(max_delay: int) -> float:
    """Return β = 1/(2d+1), which makes p = β(1−β)^{2d} largest (Corollary 7).

    The derivative of ln p is 1/β − 2d/(1−β); it decreases in β and is 0 at 1/(2d+1).

    >>> best_update_probability(max_delay=2)
    0.2
    """
    return 1.0 / (2 * checks.integer("max_delay", max_delay, low=0) + 1)


def mean_block_length(max_delay: int, update_probability: float) -> float:
    """Return 1/p, the mean number of rounds in a block; infinite if p = 0.

    With S(n) = P(L > n), E[L] = Σ_{n>=0} S(n), and summing P(L = n) = p·S(n−2d−1) over n gives 1 = p·E[L]
    (see `block_length_law`). At β = 1/(2d+1) it is (2d+1)(1 + 1/(2d))^{2d}, less than e(2d+1).

    >>> mean_block_length(max_delay=1, update_probability=0.5)
    8.0
    """
    p = update_rate(max_delay, update_probability)
    return 1.0 / p if p > 0.0 else math.inf


def block_length_law(max_delay: int, update_probability: float, longest: int) -> FloatArray:
    """Return P(L = n) for n = 0, ..., `longest`, where L is the number of rounds in a block.

    Number the rounds of the block from 1. It ends in round n if B_n = 1, the 2d coins before are 0, and it
    has not ended by round n−2d−1: in rounds n−2d, ..., n−1 it cannot end, as their coins are 0. The first two
    events depend on different coins than the third, so, with S(n) = P(L > n),

        P(L = n) = 0 for n < 2d+1,    P(L = n) = p·S(n−2d−1) after,    S(n) = S(n−1) − P(L = n),    S(0) = 1.

    >>> block_length_law(max_delay=1, update_probability=0.5, longest=6).tolist()
    [0.0, 0.0, 0.0, 0.125, 0.125, 0.125, 0.109375]
    """
    p = update_rate(max_delay, update_probability)
    longest = checks.integer("longest", longest, low=0)
    shortest = 2 * max_delay + 1
    law = np.zeros(longest + 1)
    survival = np.ones(longest + 1)
    for n in range(shortest, longest + 1):
        law[n] = p * survival[n - shortest]
        survival[n] = survival[n - 1] - law[n]
    law.flags.writeable = False
    return law


def expected_updates(max_delay: int, horizon: int, update_probability: float) -> float:
    """Return (T−2d)⁺·p, the mean number of update rounds among T rounds.

    >>> expected_updates(max_delay=1, horizon=10, update_probability=0.5)
    1.0
    """
    p = update_rate(max_delay, update_probability)
    T = checks.integer("horizon", horizon, low=1)
    return max(T - 2 * max_delay, 0) * p


def window_bound(max_delay: int) -> float:
    """Return 2d+1, an upper bound on the sum of d+1 consecutive totals while one arm i is played (Lemma 2).

    For t >= 2d+1: Σ_{τ=t−d}^{t} ℓ°_τ(i, ..., i) <= 2d+1. Only the 2d+1 plays of rounds t−2d, ..., t have
    components in the window, and the components of one play sum to at most 1. This is why the wrapper divides
    by 2d+1.

    >>> window_bound(max_delay=3)
    7.0
    """
    return 2.0 * checks.integer("max_delay", max_delay, low=0) + 1.0


def accountants_sums(c: ArrayLike, a: int, b: int, max_delay: int) -> tuple[float, float]:
    """Return both sides of the accountants' identity (Lemma 11); they are equal up to rounding.

    For a <= b and d >= 0,

        Σ_{t=a−d}^{a−1} (t−a+d+1) c_t + (d+1) Σ_{t=a}^{b} c_t + Σ_{t=b+1}^{b+d} (b+d+1−t) c_t
            = Σ_{τ=a}^{b+d} Σ_{t=τ−d}^{τ} c_t.

    The left side counts the windows that contain each round, the right side sums over the windows. `c` contains
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
