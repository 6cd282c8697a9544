"""Exp3 (Auer, Cesa-Bianchi, Freund and Schapire 2002) for losses, without mixing, in log space.

The weights are w(i) = exp(−ηL(i)) for the estimated losses L. Their logarithms are stored; a weight is the
exponential of its logarithm minus a common reference. An update changes one logarithm, so it costs one
exponential; when the sum of weights falls below 2⁻⁶⁴, the reference is set to the greatest logarithm and all weights
are recomputed. No weight is ever updated by multiplication, so rounding errors do not accumulate, and an arm whose
weight has underflowed recovers when the other weights have decreased.
"""

import math
from typing import NamedTuple

from aftereffect import theory
from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.core import checks, kernel
from aftereffect.core.kernel import FloatState, IntState, helper
from aftereffect.core.random import scan

REFRESH = 2.0**-64
LEAST_LOG = -1e300


class Exp3Params(NamedTuple):
    """η, the learning rate."""

    learning_rate: float


# state: the weights in [0, K), their logarithms in [K, 2K), then the sum of weights and the reference.


def size(n_arms: int) -> int:
    """K weights, K logarithms, two scalars."""
    return 2 * n_arms + 2


def start(params: Exp3Params, n_arms: int, state: FloatState) -> None:
    """All weights 1."""
    for i in range(n_arms):
        state[i] = 1.0
        state[n_arms + i] = 0.0
    state[2 * n_arms] = n_arms
    state[2 * n_arms + 1] = 0.0


def draw(params: Exp3Params, n_arms: int, state: FloatState, u: float) -> int:
    """Return the arm whose interval of the cumulative sum of weights contains u times their sum."""
    return scan(state, n_arms, u * state[2 * n_arms])


def update(params: Exp3Params, n_arms: int, state: FloatState, arm: int, loss: float) -> None:
    """ln w(J) −= ηℓ/q(J), with 1/q(J) = Σw/w(J)."""
    # A loss of 0 changes nothing, and would give 0·∞ if 1/q(J) overflows.
    if loss == 0.0:
        return
    lower(n_arms, state, arm, params.learning_rate * loss * (state[2 * n_arms] / state[arm]))


@helper
def lower(n_arms: int, state: FloatState, arm: int, step: float) -> None:
    """ln w(i) −= step for one arm; update its weight and the sum of weights."""
    log = max(state[n_arms + arm] - step, LEAST_LOG)
    state[n_arms + arm] = log
    state[arm] = math.exp(log - state[2 * n_arms + 1])
    add_up(n_arms, state)


def update_many(params: Exp3Params, n_arms: int, state: FloatState, arms: IntState, losses: FloatState) -> None:
    """ln w(i) −= η Σ ℓ/(M q(i)) over those of the M units that played arm i."""
    units = arms.shape[0]
    heard = False
    for m in range(units):
        if losses[m] > 0.0:
            heard = True
            step = params.learning_rate * losses[m] * (state[2 * n_arms] / state[arms[m]]) / units
            at = n_arms + arms[m]
            state[at] = max(state[at] - step, LEAST_LOG)
    # Not in the loop above, because the units drew from the old weights.
    for m in range(units):
        state[arms[m]] = math.exp(state[n_arms + arms[m]] - state[2 * n_arms + 1])
    if heard:
        add_up(n_arms, state)


@helper
def add_up(n_arms: int, state: FloatState) -> None:
    """Sum the weights; change the reference if the sum is too small."""
    # Two independent sums, because each addition waits for the previous one.
    whole = state[0]
    other = state[1]
    for i in range(1, n_arms // 2):
        whole += state[2 * i]
        other += state[2 * i + 1]
    if n_arms % 2 == 1:
        whole += state[n_arms - 1]
    whole += other
    if whole < REFRESH:
        reference = state[n_arms]
        for i in range(1, n_arms):
            reference = max(reference, state[n_arms + i])
        whole = 0.0
        for i in range(n_arms):
            state[i] = math.exp(state[n_arms + i] - reference)
            whole += state[i]
        state[2 * n_arms + 1] = reference
    state[2 * n_arms] = whole


def probabilities(params: Exp3Params, n_arms: int, state: FloatState, q: FloatState) -> None:
    """The weights divided by their sum."""
    for i in range(n_arms):
        q[i] = state[i] / state[2 * n_arms]


kernel.register(Exp3Params, kernel.BanditKernel(size, start, draw, update, probabilities, update_many))


class Exp3(KernelBandit):
    """Exponential weights on importance-weighted losses: q_n(i) ∝ exp(−η L̂_{n−1}(i)).

    learning_rate: η > 0. √(2 ln K/(KN)) minimises its regret bound over N rounds.

    >>> bandit = Exp3(n_arms=2, learning_rate=0.5)
    >>> bandit.update(0, 1.0)                    # q was (1/2, 1/2), so L̂ = (2, 0) and the odds are e⁻¹ to 1
    >>> bandit.probabilities.round(6)
    array([0.268941, 0.731059])

    References: Auer et al. (2002); stability by Lemma 14 of the paper.
    """

    def __init__(self, n_arms: int, *, learning_rate: float) -> None:
        self.learning_rate = checks.real("learning_rate", learning_rate, above=0.0)
        super().__init__(n_arms, Exp3Params(self.learning_rate))

    def stability(self) -> float:
        """Return ξ = η (Lemma 14)."""
        return theory.exp3_stability(self.learning_rate)

    def regret_bound(self, n: int) -> float:
        """Return ln K/η + ηKn/2."""
        n = checks.integer("n", n, low=0)
        return theory.exp3_regret_bound(self.n_arms, n, self.learning_rate)

    def shared_regret_bound(self, n: int, n_units: int) -> float:
        """Return ln K/η + ηn(K/M + 1 − 1/M)/2, for averages over M = `n_units` units; `stability` holds as well.

        *Regret.* A round's price is at most (η/2) Σ_i q(i) c_i² for estimates c ≥ 0. Here c_i is the average of
        M independent estimates, each of mean at most 1 and mean square at most 1/q(i), so that
        E[c_i²] ≤ 1/(Mq(i)) + 1 − 1/M.

        *Stability.* The mass moved is at most the decrease of the sum of weights,
        Σ_i q(i)(1 − exp(−ηc_i)) ≤ η Σ_i q(i) c_i. Each unit contributes its loss divided by M to the last sum, which
        is therefore at most 1 in every run (Lemma 14: M = 1).
        """
        alone = self.regret_bound(n)
        M = checks.integer("n_units", n_units, low=1)
        return alone - self.learning_rate / 2.0 * n * (1.0 - 1.0 / M) * (self.n_arms - 1)
