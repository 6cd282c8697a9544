"""The sharper bounds on the wrapper around Algorithm 2 and Exp3, and the β and η that make them smallest.

What the base pays per update can be counted more closely than a bound on its regret says (docs/theory/sharper.md,
"The price of an update"): it is proportional to the loss fed, and the windows of all rounds together hold each loss
d+1 times, while each is divided by 2d+1. So the factor (2d+1)/(d+1) falls off the price. With P = 2η(√K−1), C =
min(√K, 3K/7) and M = (3d/2)·p(T−2d−1), for FTRL with Tsallis entropy

    R_T <= d(3d+2)/(d+1) + (2d+1)/(d+1)·P/p + M·6/(7η) + min( T·C/η + M/η², (2d+1)/(d+1)·(T−2d)·C/η ).

Rewards are fed upside down, so that small effects are large losses: only the second way to count is then left.
"""

import math

from aftereffect.core import checks
from aftereffect.core.effects import DIRECTIONS
from aftereffect.theory.blocks import best_update_probability, update_rate
from aftereffect.theory.sharp import price_factor, sharp_terms, tsallis_stability_sharp
from aftereffect.theory.sizes import Tuning, most_updates, sizes


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
    `direction`: effects are losses ("minimize") or rewards ("maximize"). Infinite where nothing is known: η = 0, or
    β = 1 with d >= 1.

    >>> tsallis_wrapper_bound(n_arms=9, max_delay=0, horizon=400, update_probability=1.0, learning_rate=10.0)
    160.0
    """
    K, d, T = sizes(n_arms, max_delay, horizon)
    checks.choice("direction", direction, DIRECTIONS)
    boundary, per_moved, per_regret = sharp_terms(d, T, update_probability)
    eta = checks.real("learning_rate", learning_rate, low=0.0)
    if eta == 0.0 or math.isinf(per_regret):
        return math.inf
    p, C = update_rate(d, update_probability), price_factor(K)
    moves = per_moved * p * (T - 2 * d - 1)
    price = per_regret * p * (T - 2 * d) * C / eta
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
    update is at most ηℓ(i)/2 for arm i, so that V is the lesser of T and (2d+1)/(d+1)·(T−2d), for rewards the latter.

    >>> round(exp3_wrapper_bound(2, 0, 200, update_probability=1.0, learning_rate=0.1), 6)
    26.931472
    """
    K, d, T = sizes(n_arms, max_delay, horizon)
    checks.choice("direction", direction, DIRECTIONS)
    boundary, _, per_regret = sharp_terms(d, T, update_probability)
    eta = checks.real("learning_rate", learning_rate, low=0.0)
    if eta == 0.0 or math.isinf(per_regret):
        return math.inf
    return boundary + per_regret * math.log(K) / eta + eta * _exp3_slope(K, d, T, update_probability, direction)


def _exp3_slope(K: int, d: int, T: int, beta: float, direction: str) -> float:
    """Return what is multiplied by η in the bound on the wrapper around Exp3."""
    _, per_moved, per_regret = sharp_terms(d, T, beta)
    p = update_rate(d, beta)
    fed = per_regret * p * (T - 2 * d)
    if direction == "minimize":
        fed = min(fed, float(T))
    return per_moved * p * (T - 2 * d - 1) * (1.0 - 1.0 / K) + K * fed / 2.0


def tsallis_tuning_sharp(n_arms: int, max_delay: int, horizon: int, direction: str = "minimize") -> Tuning:
    """Return the β and η that make `tsallis_wrapper_bound` smallest, and that bound, never above T.

    In either way to count the price, what depends on η is A·η + B/η + D/η² with A = a/p, B = b + b′p and D = δp.
    At the best η, where A = B/η² + 2D/η³, its derivative in p is −(b/η + δp/η²)/p < 0 by the envelope theorem: the
    larger p the better, whatever the sizes, so that β = 1/(2d+1). The best η is the positive root of
    η³ − (B/A)η − 2D/A = 0. For T < 2d+1 no update can happen: η is 0 and the bound T.

    >>> tsallis_tuning_sharp(n_arms=9, max_delay=0, horizon=400)
    Tuning(update_probability=1.0, learning_rate=17.320508075688775, bound=138.56406460551017)
    """
    K, d, T = sizes(n_arms, max_delay, horizon)
    checks.choice("direction", direction, DIRECTIONS)
    beta = best_update_probability(d)
    if most_updates(d, T) == 0:
        return Tuning(beta, 0.0, float(T))
    _, per_moved, per_regret = sharp_terms(d, T, beta)
    p, C = update_rate(d, beta), price_factor(K)
    moves = per_moved * p * (T - 2 * d - 1)
    A = 2.0 * per_regret * (math.sqrt(K) - 1.0)
    drift = moves * tsallis_stability_sharp(1.0)
    rates = [math.sqrt((per_regret * p * (T - 2 * d) * C + drift) / A)]
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
    """Return the β and η that make `exp3_wrapper_bound` smallest, and that bound, never above T.

    What depends on η is A/η + B·η, smallest at √(A/B), and AB = const/p + const: β = 1/(2d+1) is best. For
    T < 2d+1 no update can happen; the rate, which does not matter, is √(2 ln K/(KT)), and the bound T.

    >>> exp3_tuning_sharp(n_arms=2, max_delay=0, horizon=100).learning_rate == math.sqrt(math.log(2) / 100)
    True
    """
    K, d, T = sizes(n_arms, max_delay, horizon)
    checks.choice("direction", direction, DIRECTIONS)
    beta = best_update_probability(d)
    if most_updates(d, T) == 0:
        return Tuning(beta, math.sqrt(2.0 * math.log(K) / (K * T)), float(T))
    per_regret = sharp_terms(d, T, beta).per_regret
    eta = math.sqrt(per_regret * math.log(K) / _exp3_slope(K, d, T, beta, direction))
    return Tuning(beta, eta, min(exp3_wrapper_bound(K, d, T, beta, eta, direction), float(T)))
