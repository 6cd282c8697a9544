"""The statements of the paper: when the wrapper updates (Section 3), and regret bounds (Sections 1, 4 and 5).

The three sizes of a problem (Section 2) are K = `n_arms` arms, at least 2; d = `max_delay`, the longest delay of an
effect in rounds, at least 0; T = `horizon` rounds, at least 1.

Updates (Definition 1, Lemmas 2 and 11). The coins B_1, B_2, ... are independent Bernoulli(β), β = `update_probability`.
Round t is an update round if t >= 2d+1, B_t = 1 and the 2d coins before it are 0. A block runs from the round after an
update (or from round 1) to the next update round, so a block ends at the first gap of at least 2d+1 between ones, where
the round before the block counts as a one: it is either an update round, or round 0, for which the rule t >= 2d+1 has
the same effect. Hence all blocks, including the first, have the same law.

Regret (Theorems 4 to 6 and 10, Corollary 7, Lemma 14). An algorithm is ξ-stable (Definition 3) if E Σ_i (q_{n+1}(i) −
q_n(i))⁺ <= ξ in every round n, for all losses in [0, 1]. The sum is half the ℓ1 distance of two distributions, so ξ = 1
holds for every algorithm. Stabilities are returned as the paper states them, even if they exceed 1.

The multiplier (Lemmas 12 and 13, Appendix B). With weights w (the estimated losses so far) and learning rate η > 0,
Algorithm 2 plays the minimiser over the simplex of Σ_i w(i) q(i) − 2η Σ_i √q(i), which is q(i) = η²/(w(i) − λ)², where
λ < min w makes these numbers sum to 1. `solve` in `bandits/tsallis.py` finds λ by Newton's method. Here it is found by
bisection, which requires only that the sum increases in λ: the reference for the fast solver.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from aftereffect.core import checks
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument


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
    return checks.owned(law)


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
    # The three factors are the least of their three formulas, wherever t is.
    left = (float(min(t - a, 0, b - t) + d + 1) * value for t, value in enumerate(values, start=a - d))
    windows = (value for tau in range(a, b + d + 1) for value in values[tau - a : tau - a + d + 1])
    return math.fsum(left), math.fsum(windows)


class Tuning(NamedTuple):
    """β and η for the wrapper around a base algorithm, and the resulting bound on R_T.

    >>> from aftereffect import theory
    >>> theory.tuning(n_arms=2, max_delay=0, horizon=200).learning_rate
    10.0
    """

    update_probability: float
    learning_rate: float
    bound: float


def tsallis_stability(n_arms: int, learning_rate: float) -> float:
    """Return 2(1 + ln K)/η, the stability of FTRL with Tsallis entropy (Theorem 5).

    K = `n_arms`, η = `learning_rate` as in Algorithm 2: a *larger* η means smaller steps. At η = 0 (follow
    the leader) the theorem does not apply, and the value is infinite. Theorem 5 assumes the same η in all rounds.

    >>> round(tsallis_stability(n_arms=2, learning_rate=10.0), 6)
    0.338629
    >>> tsallis_stability(n_arms=2, learning_rate=0.0)
    inf
    """
    K = checks.integer("n_arms", n_arms, low=2)
    eta = checks.real("learning_rate", learning_rate, low=0.0)
    return 2.0 * (1.0 + math.log(K)) / eta if eta > 0.0 else math.inf


def exp3_stability(learning_rate: float) -> float:
    """Return η, the stability of Exp3 with `learning_rate` η (Lemma 14).

    It holds in every run, not only on average. The probability of the arm j that was played is multiplied by
    exp(−ηℓ/q_n(j)) before normalisation, so the mass removed is at most q_n(j)·ηℓ/q_n(j) <= η, and the other arms
    gain no more than that.

    >>> exp3_stability(learning_rate=0.05)
    0.05
    """
    return checks.real("learning_rate", learning_rate, low=0.0)


def tsallis_regret_bound(n_arms: int, rounds: int, learning_rate: float | None = None) -> float:
    """Return 2η√K + N√K/η, a bound on the regret of Algorithm 2 after N rounds, for any η > 0.

    K = `n_arms`, N = `rounds`, η = `learning_rate`; None means η = √(N/2), for which the value is 2√(2KN),
    Theorem 6.

    Proof for any η: the regret of FTRL with regulariser F(q) = −2η Σ√q(i) is at most a penalty plus a price per
    round. The penalty, F(corner) − F(uniform), is 2η(√K − 1); the bound uses 2η√K, larger by 2η, so that the tuned
    value is Theorem 6 as printed. The price of round n is at most the largest value over y >= 0 of

        Σ_i (x_i − y_i) c_i − D_F(y, x),    D_F(y, x) = η Σ_i (√y_i − √x_i)²/√x_i,

    with x = q_n and c the estimated losses. The best y has √y_i = √x_i/(1 + a_i), a_i = c_i√x_i/η, with value
    Σ_i x_i c_i a_i/(1 + a_i) <= Σ_i c_i² x_i^{3/2}/η. Only the arm J that was played has a nonzero c_J = ℓ/x_J:
    the price is at most x_J^{−1/2}/η, on average over J at most Σ_i √x_i/η <= √K/η.

    At η = 0 (follow the leader) the value is the trivial bound N.

    >>> tsallis_regret_bound(n_arms=4, rounds=200)
    80.0
    >>> tsallis_regret_bound(n_arms=4, rounds=200, learning_rate=20.0)
    100.0
    """
    K = checks.integer("n_arms", n_arms, low=2)
    N = checks.integer("rounds", rounds, low=0)
    if learning_rate is None:
        return 2.0 * math.sqrt(2 * K * N)
    eta = checks.real("learning_rate", learning_rate, low=0.0)
    return 2.0 * eta * math.sqrt(K) + N * math.sqrt(K) / eta if eta > 0.0 else float(N)


def exp3_regret_bound(n_arms: int, rounds: int, learning_rate: float) -> float:
    """Return ln K/η + ηKN/2, a bound on the regret of Exp3 after N rounds (Section 4).

    K = `n_arms`, N = `rounds`, η = `learning_rate`. At η = 0, where Exp3 always plays uniformly and the formula
    is undefined, it is the trivial bound N.

    >>> round(exp3_regret_bound(n_arms=2, rounds=100, learning_rate=0.1), 6)
    16.931472
    """
    K = checks.integer("n_arms", n_arms, low=2)
    N = checks.integer("rounds", rounds, low=0)
    eta = checks.real("learning_rate", learning_rate, low=0.0)
    return math.log(K) / eta + eta * K * N / 2.0 if eta > 0.0 else float(N)


def wrapper_regret_bound(
    max_delay: int, horizon: int, update_probability: float, stability: float, base_regret: float
) -> float:
    """Return the bound of Theorem 4 on the regret R_T of the wrapper around a base algorithm, as printed.

    With d = `max_delay`, T = `horizon` >= 2d+1, p = β(1−β)^{2d} for β = `update_probability`, ξ = `stability`
    of the base algorithm and 𝓡 = `base_regret`, its regret bound after ⌊T/(2d+1)⌋ rounds,

        R_T <= 2d + (2d+1)/(d+1) · (3d + 2d·p·ξ·T + 𝓡/p).

    It is not clipped: R_T <= T holds as well, and is often smaller. ξ and 𝓡 may be infinite if no bound is known.
    At d = 0 the value is 𝓡/p for every ξ. If p = 0 (β = 1 and d >= 1: no update ever happens) it is infinite.

    >>> wrapper_regret_bound(1, 100, update_probability=0.5, stability=0.04, base_regret=8.0)
    104.0
    """
    d = checks.integer("max_delay", max_delay, low=0)
    T = checks.integer("horizon", horizon, low=1)
    p = update_rate(d, update_probability)
    xi = checks.real("stability", stability, low=0.0, infinite=True)
    regret = checks.real("base_regret", base_regret, low=0.0, infinite=True)
    enough_rounds(d, T)
    if p == 0.0:
        return math.inf
    moved = 2 * d * p * xi * T if d > 0 else 0.0
    return 2 * d + (2 * d + 1) / (d + 1) * (3 * d + moved + regret / p)


def corollary_learning_rate(max_delay: int, horizon: int) -> float:
    """Return η = √(⌊T/(2d+1)⌋/2), the rate of Algorithm 2 in Corollary 7.

    It is 0 for T < 2d+1. No update can happen then, so play is uniform and the rate does not matter.

    >>> corollary_learning_rate(max_delay=1, horizon=24)
    2.0
    """
    return math.sqrt(most_updates(max_delay, horizon) / 2)


def exp3_learning_rate(n_arms: int, max_delay: int, horizon: int) -> float:
    """Return the rate of Exp3 that minimises the bound of Theorem 4 at β = 1/(2d+1).

    With ξ = η (Lemma 14), 𝓡_N <= ln K/η + ηKN/2 and N = T/(2d+1) (without the floor), the terms of Theorem 4 that
    depend on η are 2dp·T·η + (ln K/η + ηKT/(2(2d+1)))/p. This is a·η + b/η, least at √(b/a):

        η = √( (ln K/p) / (2dpT + KT/(2p(2d+1))) ).

    At d = 0 it is the usual √(2 ln K/(KT)).

    >>> round(exp3_learning_rate(n_arms=2, max_delay=0, horizon=100), 6)
    0.083255
    """
    K, d, T = checks.sizes(n_arms, max_delay, horizon)
    p = update_rate(d, best_update_probability(d))
    return math.sqrt(math.log(K) / p / (2 * d * p * T + K * T / (2 * p * (2 * d + 1))))


def exp3_learning_rate_printed(n_arms: int, max_delay: int, horizon: int) -> float:
    """Return η = √(d ln K/(KT)), the rate of Exp3 as Section 4 prints it.

    It gives the stated order for d >= 1, but is 0 at d = 0, where Exp3 would never learn: prefer
    `exp3_learning_rate`.

    >>> exp3_learning_rate_printed(n_arms=2, max_delay=0, horizon=100)
    0.0
    """
    K, d, T = checks.sizes(n_arms, max_delay, horizon)
    return math.sqrt(d * math.log(K) / (K * T))


def corollary_bound(n_arms: int, max_delay: int, horizon: int) -> float:
    """Return c·√((d+1)KT) with c = 2√2 for d = 0 and c = 28 for d >= 1 (Corollary 7).

    The constant 28 does not follow from Theorems 4, 5 and 6 alone, which give up to 29.3 (K = 2, T = 2d+1 and
    a large d). It holds because R_T <= T as well: the smaller of the two bounds is always below it.

    >>> corollary_bound(n_arms=2, max_delay=1, horizon=100)
    560.0
    """
    K, d, T = checks.sizes(n_arms, max_delay, horizon)
    c = 28.0 if d > 0 else 2.0 * math.sqrt(2.0)
    return c * math.sqrt((d + 1) * K * T)


def standard_regret_bound(max_delay: int, bound: float) -> float:
    """Return bound + d, a bound on the regret in which every action pays its whole loss (Section 2).

    bound: a bound on R_T, which counts what arrives by round T. In E[Σ_t ℓ_t(I_t)] − min_i Σ_t ℓ_t(i) the last d
    actions also pay what arrives later: at most 1 each for the player, at least 0 for the comparison arm.

    >>> standard_regret_bound(max_delay=3, bound=100.0)
    103.0
    """
    return checks.real("bound", bound, infinite=True) + checks.integer("max_delay", max_delay, low=0)


class Rates(NamedTuple):
    """Minimax regret in three settings, up to constants and logarithms (the table of Section 1).

    >>> from aftereffect import theory
    >>> theory.rates(n_arms=4, max_delay=3, horizon=100).composite
    40.0
    """

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
    K, d, T = checks.sizes(n_arms, max_delay, horizon)
    return Rates(math.sqrt(K * T), math.sqrt((d + K) * T), math.sqrt((d + 1) * K * T))


def lower_bound_rate(n_arms: int, max_delay: int, horizon: int) -> float:
    """Return √((d+1)KT/max(1, ln T)), the order of Theorem 10 with the √(ln T) that its notation hides.

    This is an order, without a constant. For an actual bound, see `lower_bound`.

    >>> round(lower_bound_rate(n_arms=4, max_delay=5, horizon=100), 4)
    22.8288
    """
    K, d, T = checks.sizes(n_arms, max_delay, horizon)
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
    K, d, T = checks.sizes(n_arms, max_delay, horizon)
    n = T // (d + 1)
    if n == 0:
        return 0.0
    s = 1.0 / math.sqrt(8.0 * math.log(2 * K * n))
    return s / 16.0 * (d + 1) * min(math.sqrt(K * n), 2.0 * n)


def _scaled(weights: ArrayLike, learning_rate: float) -> tuple[float, float, list[float], float]:
    """Return min w, η, v = (w − min w)/η and the root u of Σ_i (v(i) − u)^{−2} = 1, so that λ = min w + η·u.

    At u = −1 an arm with v = 0 contributes 1, so the sum is at least 1; at u = −√K each arm contributes at most
    1/K. The loop ends when no double lies between `left` and `right`.
    """
    w: list[float] = checks.array("weights", weights, shape=("K",)).tolist()
    if len(w) < 2:
        raise InvalidArgument(f"weights must hold at least 2 numbers, one per arm, but got {len(w)}")
    eta, lowest = checks.real("learning_rate", learning_rate, above=0.0), min(w)
    checks.real("max(weights) - min(weights)", max(w) - lowest)
    v = [(x - lowest) / eta for x in w]
    left, right = -math.sqrt(len(v)), -1.0
    while True:
        middle = 0.5 * (left + right)
        if not left < middle < right:
            return lowest, eta, v, middle
        if math.fsum((x - middle) ** -2.0 for x in v) < 1.0:
            left = middle
        else:
            right = middle


def multiplier(weights: ArrayLike, learning_rate: float) -> float:
    """Return λ_{w,η}, the only number below min w with Σ_i η²/(w(i) − λ)² = 1 (Lemma 12).

    For equal weights it is w − η√K.

    >>> multiplier([1.0, 1.0, 1.0, 1.0], learning_rate=3.0)
    -5.0
    """
    lowest, eta, _, u = _scaled(weights, learning_rate)
    return lowest + eta * u


def tsallis_distribution(weights: ArrayLike, learning_rate: float) -> FloatArray:
    """Return q(i) = η²/(w(i) − λ)², the distribution of Algorithm 2 for estimated losses w (Lemma 12).

    It is computed from the differences w(i) − min w, so that no precision is lost if the weights are large.

    >>> tsallis_distribution([7.0, 7.0, 7.0, 7.0], learning_rate=3.0).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    _, _, v, u = _scaled(weights, learning_rate)
    return np.array([(x - u) ** -2.0 for x in v])


def multiplier_variation_bound(rank: int, delta: float) -> float:
    """Return δ/j, a bound on the increase of λ when the j-th smallest weight increases by δ (Lemma 13).

    λ_{w+δe_j,η} − λ_{w,η} <= δ/j for w(1) <= ... <= w(K), with j = `rank` from 1 and δ = `delta`. Equal weights may
    be ordered arbitrarily, so the largest of their ranks gives the best bound.

    >>> multiplier_variation_bound(rank=4, delta=2.0)
    0.5
    """
    j = checks.integer("rank", rank, low=1)
    return checks.real("delta", delta, low=0.0) / j
