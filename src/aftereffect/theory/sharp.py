"""Theorem 4 with smaller constants: for any base algorithm, for the paper's two, and the best β and η for it.

The algorithm is the paper's, and the proof refines the paper's; it is given in full in docs/theory/sharper.md.
Losses are fixed in advance, coins are independent Bernoulli(β), T >= 2d+1. With p = β(1−β)^{2d}:

    R_T <= d(3d+2)/(d+1)  +  (3d/2)·E[S]  +  (2d+1)/((d+1)p) · E[regret of the base over its updates],

where S is the mass moved by updates up to round T−1: the sum over updates of Σ_i (q_{n+1}(i) − q_n(i))⁺. Where
Theorem 4 has 2d, 3d and 2d this has d, d and at most d, and where it has ⌊T/(2d+1)⌋ updates this has their mean,
p(T−2d).

For Algorithm 2 and Exp3 the price of an update can be bounded more tightly than by a bound on the base's regret (see
"The price of an update" there): it is proportional to the loss fed, and the windows of all rounds together contain
each loss d+1 times, while each window is divided by 2d+1. This removes the factor (2d+1)/(d+1) from the price. With
P = 2η(√K−1), C = min(√K, 3K/7) and M = (3d/2)·p(T−2d−1), for FTRL with Tsallis entropy

    R_T <= d(3d+2)/(d+1) + (2d+1)/(d+1)·P/p + M·6/(7η) + min( T·C/η + M/η², (2d+1)/(d+1)·(T−2d)·C/η ).

A reward r is fed as the loss 1 − r, so that small effects are large losses: for rewards only the second argument of
the minimum is a valid bound.
"""

import math
from typing import NamedTuple

from aftereffect.core import checks
from aftereffect.core.effects import DIRECTIONS
from aftereffect.theory import paper
from aftereffect.theory.paper import Tuning, update_rate

FORMS = ("printed", "sharp")
"""The forms of the wrapper's regret bound that can be minimised. "printed": Theorem 4. "sharp": the bounds below."""


class SharpTerms(NamedTuple):
    """R_T <= boundary + per_moved·E[S] + per_regret·E[regret of the base over its updates up to T].

    >>> sharp_terms(max_delay=1, horizon=100, update_probability=0.5).per_moved
    1.5
    """

    boundary: float
    per_moved: float
    per_regret: float


def sharp_terms(max_delay: int, horizon: int, update_probability: float) -> SharpTerms:
    """Return the three coefficients of the sharper Theorem 4, for d = `max_delay` and β = `update_probability`.

    They do not depend on T = `horizon`, which must be at least 2d+1. If p = 0 (β = 1 and d >= 1) the last one is
    infinite.

    >>> sharp_terms(max_delay=1, horizon=100, update_probability=0.5)
    SharpTerms(boundary=2.5, per_moved=1.5, per_regret=12.0)
    """
    d = checks.integer("max_delay", max_delay, low=0)
    paper.enough_rounds(d, horizon)
    p = update_rate(d, update_probability)
    per_regret = (2 * d + 1) / ((d + 1) * p) if p > 0.0 else math.inf
    return SharpTerms(d * (3 * d + 2) / (d + 1), 1.5 * d, per_regret)


def wrapper_regret_bound_sharp(
    max_delay: int, horizon: int, update_probability: float, stability: float, base_regret: float
) -> float:
    """Return d(3d+2)/(d+1) + (3d/2)·p(T−2d−1)·ξ + (2d+1)/(d+1) · 𝓡/p, a bound on R_T; not clipped at T.

    ξ = `stability` of the base algorithm. 𝓡 = `base_regret` bounds its mean regret over its updates, whose number is
    random, at most ⌊T/(2d+1)⌋ and p(T−2d) on average. So 𝓡 may be its regret bound at ⌊T/(2d+1)⌋ rounds if the bound
    increases with the rounds, or at p(T−2d) rounds if it is concave (Jensen's inequality).

    >>> wrapper_regret_bound_sharp(1, 103, update_probability=0.5, stability=0.04, base_regret=8.0)
    99.25
    """
    boundary, per_moved, per_regret = sharp_terms(max_delay, horizon, update_probability)
    xi = checks.real("stability", stability, low=0.0, infinite=True)
    regret = checks.real("base_regret", base_regret, low=0.0, infinite=True)
    if math.isinf(per_regret):
        return math.inf
    moves = update_rate(max_delay, update_probability) * (horizon - 2 * max_delay - 1)
    moved = per_moved * moves * xi if max_delay > 0 else 0.0
    return boundary + moved + per_regret * regret


def tsallis_stability_sharp(learning_rate: float) -> float:
    """Return 6/(7η), a stability of FTRL with Tsallis entropy at η = `learning_rate`, for any number of arms.

    An update increases the estimated loss of one arm J, whose probability is q = q_n(J) before it, by at most 1/q.
    During this increase q(J) falls at the rate (2/η)/(q(J)^{−3/2} + R^{−1}), where R, the sum of q(i)^{3/2} over the
    other arms, is at most (1−q(J))^{3/2}. With this value of R the rate is (2/η)h(q(J)), and h increases up to 1/2 and
    decreases after it. So the mass moved is at most 2h(min(q, 1/2))/(ηq). As h(q) <= 3q/7 up to 1/2, that is at most
    6/(7η).

    At η = 0 no bound is known, and the value is infinite (ξ = 1 holds for every algorithm).

    >>> tsallis_stability_sharp(learning_rate=6.0)
    0.14285714285714285
    """
    eta = checks.real("learning_rate", learning_rate, low=0.0)
    return 6.0 / (7.0 * eta) if eta > 0.0 else math.inf


def exp3_stability_sharp(n_arms: int, learning_rate: float) -> float:
    """Return η(1 − 1/K), a stability of Exp3 with K = `n_arms` and η = `learning_rate`.

    While the estimated loss of J increases by at most 1/q, q = q_n(J), q(J) falls at the rate ηq(J)(1−q(J)). So
    the mass moved is at most ηH(q)/q with H(q) = q(1−q) up to 1/2 and 1/4 after it; on average over J it is at
    most ηΣH(q_n(i)), and H is concave.

    >>> exp3_stability_sharp(n_arms=4, learning_rate=0.2)
    0.15000000000000002
    """
    K = checks.integer("n_arms", n_arms, low=2)
    return checks.real("learning_rate", learning_rate, low=0.0) * (1.0 - 1.0 / K)


def price_factor(n_arms: int) -> float:
    """Return C = min(√K, 3K/7): a round with losses in [0, 1] costs FTRL with Tsallis entropy at most C/η.

    This is the mean over the arm played, in addition to the regulariser's penalty; arm i contributes at most
    ℓ(i)·min(√q(i), 3/7)/η.

    >>> (price_factor(9), price_factor(7), round(price_factor(2), 4))
    (3.0, 2.6457513110645907, 0.8571)
    """
    K = checks.integer("n_arms", n_arms, low=2)
    return min(math.sqrt(K), 3.0 * K / 7.0)


def tsallis_regret_bound_sharp(n_arms: int, rounds: float, learning_rate: float) -> float:
    """Return 2η(√K − 1) + N·min(√K, 3K/7)/η, a bound on the regret of Algorithm 2 after N rounds, for any η > 0.

    It is affine in N = `rounds`, so N may be the mean of a random number of rounds that does not depend on the arms
    drawn. The first term is the regulariser's range, the second is N times the price of a round. At η = 0 the value
    is the trivial bound N.

    >>> tsallis_regret_bound_sharp(n_arms=9, rounds=400.0, learning_rate=10.0)
    160.0
    """
    C = price_factor(n_arms)
    N = checks.real("rounds", rounds, low=0.0)
    eta = checks.real("learning_rate", learning_rate, low=0.0)
    return 2.0 * eta * (math.sqrt(n_arms) - 1.0) + N * C / eta if eta > 0.0 else N


def _sizes(n_arms: int, max_delay: int, horizon: int, direction: str) -> tuple[int, int, int]:
    """Return K, d and T, checked, after a check of the direction."""
    checks.choice("direction", direction, DIRECTIONS)
    return checks.sizes(n_arms, max_delay, horizon)


def _expected(d: int, T: int, beta: float) -> tuple[float, float, float, float]:
    """Return the first term, (2d+1)/((d+1)p), (3d/2)·p(T−2d−1), and the second times the mean number of updates."""
    boundary, per_moved, per_regret = sharp_terms(d, T, beta)
    p = update_rate(d, beta)
    return boundary, per_regret, per_moved * p * (T - 2 * d - 1), per_regret * p * (T - 2 * d)


def tsallis_wrapper_bound(
    n_arms: int,
    max_delay: int,
    horizon: int,
    update_probability: float,
    learning_rate: float,
    direction: str = "minimize",
) -> float:
    """Return the sharper bound on R_T of the wrapper around Algorithm 2, for any β and η; not clipped at T.

    K = `n_arms`, d = `max_delay`, T = `horizon` >= 2d+1, β = `update_probability`, η = `learning_rate`;
    `direction`: effects are losses ("minimize") or rewards ("maximize"). Infinite if no bound is known: η = 0, or
    β = 1 and d >= 1.

    >>> tsallis_wrapper_bound(n_arms=9, max_delay=0, horizon=400, update_probability=1.0, learning_rate=10.0)
    160.0
    """
    K, d, T = _sizes(n_arms, max_delay, horizon, direction)
    boundary, per_regret, moves, fed = _expected(d, T, update_probability)
    eta = checks.real("learning_rate", learning_rate, low=0.0)
    if eta == 0.0 or math.isinf(per_regret):
        return math.inf
    C = price_factor(K)
    price = fed * C / eta
    if direction == "minimize":
        price = min(price, T * C / eta + moves / eta**2)
    return boundary + per_regret * 2.0 * eta * (math.sqrt(K) - 1.0) + moves * tsallis_stability_sharp(eta) + price


def exp3_wrapper_bound(
    n_arms: int,
    max_delay: int,
    horizon: int,
    update_probability: float,
    learning_rate: float,
    direction: str = "minimize",
) -> float:
    """Return the sharper bound on R_T of the wrapper around Exp3, for any β and η; not clipped at T.

    With M = (3d/2)·p(T−2d−1) it is d(3d+2)/(d+1) + (2d+1)/(d+1)·ln K/(ηp) + η·(M(1 − 1/K) + KV/2). The price of an
    update is at most ηℓ(i)/2 for arm i, so V is the smaller of T and (2d+1)/(d+1)·(T−2d); for rewards it is the latter.

    >>> round(exp3_wrapper_bound(2, 0, 200, update_probability=1.0, learning_rate=0.1), 6)
    26.931472
    """
    K, d, T = _sizes(n_arms, max_delay, horizon, direction)
    boundary, per_regret, moves, fed = _expected(d, T, update_probability)
    eta = checks.real("learning_rate", learning_rate, low=0.0)
    if eta == 0.0 or math.isinf(per_regret):
        return math.inf
    return boundary + per_regret * math.log(K) / eta + eta * _exp3_slope(K, T, moves, fed, direction)


def _exp3_slope(K: int, T: int, moves: float, fed: float, direction: str) -> float:
    """Return the coefficient of η in the bound on the wrapper around Exp3; moves, fed: as `_expected` returns them."""
    return moves * (1.0 - 1.0 / K) + K * (min(fed, float(T)) if direction == "minimize" else fed) / 2.0


def tsallis_tuning_sharp(n_arms: int, max_delay: int, horizon: int, direction: str = "minimize") -> Tuning:
    """Return the β and η that minimise `tsallis_wrapper_bound`, and that bound, or T if that is smaller.

    For either argument of its minimum, the terms that depend on η are A·η + B/η + D/η² with A = a/p, B = b + b′p and
    D = δp. At the best η, where A = B/η² + 2D/η³, the derivative in p is −(b/η + δp/η²)/p < 0 by the envelope theorem:
    the largest p is best for all K, d and T, so β = 1/(2d+1). The best η is the positive root of
    η³ − (B/A)η − 2D/A = 0. For T < 2d+1 no update can happen: η is 0 and the bound is T.

    >>> tsallis_tuning_sharp(n_arms=9, max_delay=0, horizon=400)
    Tuning(update_probability=1.0, learning_rate=17.320508075688775, bound=138.56406460551017)
    """
    K, d, T = _sizes(n_arms, max_delay, horizon, direction)
    beta = paper.best_update_probability(d)
    if paper.most_updates(d, T) == 0:
        return Tuning(beta, 0.0, float(T))
    _, per_regret, moves, fed = _expected(d, T, beta)
    C = price_factor(K)
    A = 2.0 * per_regret * (math.sqrt(K) - 1.0)
    drift = moves * tsallis_stability_sharp(1.0)
    rates = [math.sqrt((fed * C + drift) / A)]
    if direction == "minimize":
        rates.append(_cubic_root((T * C + drift) / A, 2.0 * moves / A))
    bound, eta = min((tsallis_wrapper_bound(K, d, T, beta, rate, direction), rate) for rate in rates)
    return Tuning(beta, eta, min(bound, float(T)))


def _cubic_root(linear: float, constant: float) -> float:
    """Return the positive root x of x³ = linear·x + constant, linear > 0 and constant >= 0 (Viète's formulas)."""
    r = math.sqrt(linear / 3.0)
    t = constant / (2.0 * r**3)
    return 2.0 * r * (math.cos(math.acos(t) / 3.0) if t <= 1.0 else math.cosh(math.acosh(t) / 3.0))


def exp3_tuning_sharp(n_arms: int, max_delay: int, horizon: int, direction: str = "minimize") -> Tuning:
    """Return the β and η that minimise `exp3_wrapper_bound`, and that bound, or T if that is smaller.

    The terms that depend on η are A/η + B·η, least at √(A/B), and AB = const/p + const, so β = 1/(2d+1) is best. For
    T < 2d+1 no update can happen; the rate, which does not matter then, is √(2 ln K/(KT)), and the bound is T.

    >>> exp3_tuning_sharp(n_arms=2, max_delay=0, horizon=100).learning_rate == math.sqrt(math.log(2) / 100)
    True
    """
    K, d, T = _sizes(n_arms, max_delay, horizon, direction)
    beta = paper.best_update_probability(d)
    if paper.most_updates(d, T) == 0:
        return Tuning(beta, math.sqrt(2.0 * math.log(K) / (K * T)), float(T))
    _, per_regret, moves, fed = _expected(d, T, beta)
    eta = math.sqrt(per_regret * math.log(K) / _exp3_slope(K, T, moves, fed, direction))
    return Tuning(beta, eta, min(exp3_wrapper_bound(K, d, T, beta, eta, direction), float(T)))


def tuning(n_arms: int, max_delay: int, horizon: int, form: str = "printed") -> Tuning:
    """Return the β and η that minimise the bound on the wrapper around Algorithm 2, and that bound.

    For form="sharp" see `tsallis_tuning_sharp`; the following is for form="printed".

    Put ξ = 2(1+ln K)/η (Theorem 5) and 𝓡_N <= 2η√K + N√K/η (Theorem 6, any η), N = ⌊T/(2d+1)⌋, into
    Theorem 4. For a given p, the terms that depend on η are A·η + C/η with

        A = 2√K/p,    C = 4dpT(1+ln K) + N√K/p,

    least at η = √(C/A), with value 2√(AC), and AC = 8dT√K(1+ln K) + 2KN/p². Only the second summand depends on p,
    and it decreases in p: the best β is the one with the largest p, 1/(2d+1), and then

        η = √( 2dp²T(1+ln K)/√K + N/2 ).

    At d = 0 this is Corollary 7's rate. The bound returned is at most T, which is always a bound. For
    T < 2d+1 Theorem 4 does not apply: no update can happen, η is 0 and the bound is T.

    >>> tuning(n_arms=2, max_delay=0, horizon=200)
    Tuning(update_probability=1.0, learning_rate=10.0, bound=56.568542494923804)
    """
    K, d, T = checks.sizes(n_arms, max_delay, horizon)
    if checks.choice("form", form, FORMS) == "sharp":
        return tsallis_tuning_sharp(K, d, T)
    beta = paper.best_update_probability(d)
    N = paper.most_updates(d, T)
    if N == 0:
        return Tuning(beta, 0.0, float(T))
    p = update_rate(d, beta)
    eta = math.sqrt(2 * d * p**2 * T * (1.0 + math.log(K)) / math.sqrt(K) + N / 2)
    known = paper.tsallis_stability(K, eta), paper.tsallis_regret_bound(K, N, eta)
    bound = paper.wrapper_regret_bound(d, T, beta, *known)
    return Tuning(beta, eta, min(bound, float(T)))


def tuned_bound(n_arms: int, max_delay: int, horizon: int, form: str = "printed") -> float:
    """Return the least bound on R_T that `form` gives over all β and η, at most T; see `tuning`.

    >>> tuned_bound(n_arms=4, max_delay=3, horizon=100)
    100.0
    """
    return tuning(n_arms, max_delay, horizon, form).bound
