"""Minimax rates: the table of Section 1, and the lower bound of Section 5 (Theorem 10)."""

import math
from typing import NamedTuple

from aftereffect.theory.updates import sizes


class Rates(NamedTuple):
    """Minimax regret in three settings, up to constants and logarithms (the table of Section 1)."""

    no_delay: float
    delayed: float
    composite: float


def rates(n_arms: int, max_delay: int, horizon: int) -> Rates:
    """Return √(KT), √((d+K)T) and √((d+1)KT), the three columns of the table in Section 1.

    `no_delay`: each loss is observed at once. `delayed`: up to d rounds later, labelled with its round.
    `composite`: spread over d+1 rounds and summed with others, without labels. These are orders, not bounds.

    >>> rates(n_arms=4, max_delay=5, horizon=100)
    Rates(no_delay=20.0, delayed=30.0, composite=48.98979485566356)
    """
    K, d, T = sizes(n_arms, max_delay, horizon)
    return Rates(math.sqrt(K * T), math.sqrt((d + K) * T), math.sqrt((d + 1) * K * T))


def lower_bound_rate(n_arms: int, max_delay: int, horizon: int) -> float:
    """Return √((d+1)KT/max(1, ln T)), the order of Theorem 10 with the √(ln T) that its notation hides.

    This is an order, without a constant. For an actual bound, see `lower_bound`.

    >>> round(lower_bound_rate(n_arms=4, max_delay=5, horizon=100), 4)
    22.8288
    """
    K, d, T = sizes(n_arms, max_delay, horizon)
    return math.sqrt((d + 1) * K * T / max(1.0, math.log(T)))


def lower_bound(n_arms: int, max_delay: int, horizon: int) -> float:
    """Return a lower bound on the worst-case regret of every algorithm (Theorem 10 with its constants).

    With n = ⌊T/(d+1)⌋ and s = 1/√(8 ln(2Kn)) it is (s/16)·(d+1)·min(√(Kn), 2n). If d+1 divides T and
    n >= K/4, this is (s/16)·√((d+1)KT). For T < d+1 it is 0.

    The instance (Shamir, 2015, Theorem 5, in the scale of Lemma 8): J is uniform on the arms, x_1, ..., x_n
    are independent normal vectors of variance 1/4 per arm and mean 0 except −μ at J, μ = min(√(K/n)/4, 1/2);
    ℓ_τ = 1/2 + s·x_τ. Each ℓ_τ is charged, for all d+1 plays of its stretch, in the stretch's last round;
    the rounds after n stretches cost 0.

    Proof. A stretch costs (d+1)·ℓ_τ·q_τ, where q_τ(i) is the fraction of its plays that play arm i, and only this
    number is observed. After t−1 stretches the laws with and without −μ at j differ by KL_j with Σ_j KL_j <= 2μ²(t−1),
    so by Pinsker's inequality the mean of q_t(J) is at most 1/K + μ√((t−1)/K). In units of s(d+1) the regret is
    therefore at least μ·Σ_t (1 − 1/K − μ√((t−1)/K)) >= nμ(1 − 1/K − (2/3)μ√(n/K)), which is at least √(Kn)/12
    for n >= K/4, and above 0.3n for n < K/4. The part of this above √(Kn)/16, or n/8, covers the effect of
    boundedness: a table with an entry outside [0, 1], i.e. |x| > √(2 ln(2Kn)), is replaced by a table of zeros. An
    entry is outside with probability (2Kn)^{−4}, slightly more at J.

    At this gap μ no algorithm can tell the arms apart, so uniform play is as good as any other.

    >>> round(lower_bound(n_arms=4, max_delay=3, horizon=40_000), 2)
    5.26
    """
    K, d, T = sizes(n_arms, max_delay, horizon)
    n = T // (d + 1)
    if n == 0:
        return 0.0
    s = 1.0 / math.sqrt(8.0 * math.log(2 * K * n))
    return s / 16.0 * (d + 1) * min(math.sqrt(K * n), 2.0 * n)
