"""How little one update moves a base algorithm: ξ of Definition 3 (Section 4) for the paper's two.

An algorithm is ξ-stable if E Σ_i (q_{n+1}(i) − q_n(i))⁺ <= ξ in every round n, whatever the losses in [0, 1].
The sum is half the ℓ1 distance of two distributions, so ξ = 1 holds for every algorithm. The functions return
what the paper states, also where that is above 1.
"""

import math

from aftereffect.core import checks


def tsallis_stability(n_arms: int, learning_rate: float) -> float:
    """Return 2(1 + ln K)/η, the stability of FTRL with Tsallis entropy (Theorem 5).

    K = `n_arms`, η = `learning_rate` as in Algorithm 2: a *larger* η means smaller steps. At η = 0 (follow
    the leader) the theorem says nothing, and the value is infinite. Theorem 5 is about one η for all rounds.

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

    It holds in every run, not only on average. The arm j that was played is scaled by exp(−ηℓ/q_n(j)) before
    all are divided by their sum, so the sum lost is at most q_n(j)·ηℓ/q_n(j) <= η, and no more than that can
    go to the others.

    >>> exp3_stability(learning_rate=0.05)
    0.05
    """
    return checks.real("learning_rate", learning_rate, low=0.0)
