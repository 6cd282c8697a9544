"""The choice of β and η, and the resulting regret bound (Section 4: Corollary 7, and the rate of Exp3)."""

import math

from aftereffect.core import checks
from aftereffect.theory.paper import (
    Tuning,
    best_update_probability,
    most_updates,
    sizes,
    tsallis_regret_bound,
    tsallis_stability,
    update_rate,
    wrapper_regret_bound,
)
from aftereffect.theory.sharp import tsallis_tuning_sharp

FORMS = ("printed", "sharp")
"""The forms of the wrapper's regret bound that can be minimised. "printed": Theorem 4. "sharp": the same algorithm
with smaller constants, see `sharp`."""


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
    K, d, T = sizes(n_arms, max_delay, horizon)
    p = update_rate(d, best_update_probability(d))
    return math.sqrt(math.log(K) / p / (2 * d * p * T + K * T / (2 * p * (2 * d + 1))))


def exp3_learning_rate_printed(n_arms: int, max_delay: int, horizon: int) -> float:
    """Return η = √(d ln K/(KT)), the rate of Exp3 as Section 4 prints it.

    It gives the stated order for d >= 1, but is 0 at d = 0, where Exp3 would never learn: prefer
    `exp3_learning_rate`.

    >>> exp3_learning_rate_printed(n_arms=2, max_delay=0, horizon=100)
    0.0
    """
    K, d, T = sizes(n_arms, max_delay, horizon)
    return math.sqrt(d * math.log(K) / (K * T))


def corollary_bound(n_arms: int, max_delay: int, horizon: int) -> float:
    """Return c·√((d+1)KT) with c = 2√2 for d = 0 and c = 28 for d >= 1 (Corollary 7).

    The constant 28 does not follow from Theorems 4, 5 and 6 alone, which give up to 29.3 (K = 2, T = 2d+1 and
    a large d). It holds because R_T <= T as well: the smaller of the two bounds is always below it.

    >>> corollary_bound(n_arms=2, max_delay=1, horizon=100)
    560.0
    """
    K, d, T = sizes(n_arms, max_delay, horizon)
    c = 28.0 if d > 0 else 2.0 * math.sqrt(2.0)
    return c * math.sqrt((d + 1) * K * T)


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
    K, d, T = sizes(n_arms, max_delay, horizon)
    if checks.choice("form", form, FORMS) == "sharp":
        return tsallis_tuning_sharp(K, d, T)
    beta = best_update_probability(d)
    N = most_updates(d, T)
    if N == 0:
        return Tuning(beta, 0.0, float(T))
    p = update_rate(d, beta)
    eta = math.sqrt(2 * d * p**2 * T * (1.0 + math.log(K)) / math.sqrt(K) + N / 2)
    bound = wrapper_regret_bound(d, T, beta, tsallis_stability(K, eta), tsallis_regret_bound(K, N, eta))
    return Tuning(beta, eta, min(bound, float(T)))


def tuned_bound(n_arms: int, max_delay: int, horizon: int, form: str = "printed") -> float:
    """Return the least bound on R_T that `form` gives over all β and η, at most T; see `tuning`.

    >>> tuned_bound(n_arms=4, max_delay=3, horizon=100)
    100.0
    """
    return tuning(n_arms, max_delay, horizon, form).bound
