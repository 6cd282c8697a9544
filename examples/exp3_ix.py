"""Exp3-IX (Neu 2015), exponential weights with implicit exploration: a base of one's own on the kernel of another.

Its kernel is that of Exp3 but for the update, which passes a smaller loss on to it.
"""

import math
from typing import NamedTuple

from aftereffect.bandits.exp3 import Exp3Params, draw, probabilities, size, start
from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.core import checks, kernel
from aftereffect.core.kernel import FloatState


class Exp3IXParams(NamedTuple):
    """η, the learning rate, and γ, the implicit exploration."""

    learning_rate: float
    exploration: float


def update_ix(params: Exp3IXParams, n_arms: int, state: FloatState, arm: int, loss: float) -> None:
    """ln w(J) −= ηℓ/(q(J) + γ), which is the update of Exp3 with the smaller loss ℓ·q(J)/(q(J) + γ)."""
    share = state[arm] / (state[arm] + params.exploration * state[2 * n_arms])
    base = Exp3Params(params.learning_rate)
    kernel.bandit_update(base, n_arms, state, arm, loss * share)


kernel.register(Exp3IXParams, kernel.BanditKernel(size, start, draw, update_ix, probabilities))


class Exp3IX(KernelBandit):
    """Exponential weights with estimates biased downwards: q_n(i) ∝ exp(−η L̂_{n−1}(i)), L̂(J) += ℓ/(q_n(J) + γ).

    The loss of the arm played is divided by q(J) + γ, not q(J) (implicit exploration). Estimates are then at most 1/γ,
    so the regret bound holds with high probability and not only on average. They are biased downwards, which makes
    rarely played arms look better than they are; hence the name. The bounds below are derived here, not in the
    references. With the default γ = η/2 the second term of the regret bound is at most twice that of Exp3.

    learning_rate: η > 0. √(ln K/(KN)) minimises the bound on its regret over N rounds for the default γ,
        without the denominator 1 + Kγ.
    exploration: γ ≥ 0; None means η/2. 0 gives Exp3.

    >>> bandit = Exp3IX(n_arms=2, learning_rate=0.5)
    >>> bandit.update(0, 1.0)                    # q was (1/2, 1/2), γ = 1/4: L̂ = (4/3, 0), odds e^(−2/3)
    >>> bandit.probabilities.round(6)
    array([0.339244, 0.660756])

    References: Neu, "Explore no more", NeurIPS 2015; Kocák, Neu, Valko and Munos, NeurIPS 2014.
    """

    def __init__(self, n_arms: int, *, learning_rate: float, exploration: float | None = None) -> None:
        self.learning_rate = checks.real("learning_rate", learning_rate, above=0.0)
        gamma = self.learning_rate / 2.0 if exploration is None else exploration
        self.exploration = checks.real("exploration", gamma, low=0.0)
        super().__init__(n_arms, Exp3IXParams(self.learning_rate, self.exploration))

    def stability(self) -> float:
        """Return ξ = η/(1 + γ).

        As for Exp3 (Lemma 14), the other arms gain at most the decrease of the sum of weights, and with q = q_n(J)
        that is q(1 − exp(−ηℓ/(q + γ))) <= ηq/(q + γ) <= η/(1 + γ), in every run.
        """
        return self.learning_rate / (1.0 + self.exploration)

    def regret_bound(self, n: int) -> float:
        """Return ln K/η + (η/2 + γ)·nK/(1 + Kγ), a bound on the expected regret.

        For estimates c_m >= 0 in rounds m = 1..n, exponential weights satisfy, for every arm i,

            Σ_m (⟨q_m, c_m⟩ − c_m(i)) <= ln K/η + (η/2) Σ_m Σ_j q_m(j) c_m(j)².

        On average over the arm drawn, with r_j = q_m(j)/(q_m(j) + γ) and losses of at most 1: c_m(i) is at
        most the loss of i; ⟨q_m, c_m⟩ falls short of the loss suffered by at most γ Σ r_j; and the sum over j
        on the right is at most Σ r_j² <= Σ r_j. Each r_j is concave in q_m(j), so Σ r_j is greatest for uniform
        q_m: K/(1 + Kγ). γ = 0 gives the bound of Exp3.
        """
        n = checks.integer("n", n, low=0)
        K, eta, gamma = self.n_arms, self.learning_rate, self.exploration
        return math.log(K) / eta + (eta / 2.0 + gamma) * n * K / (1.0 + K * gamma)
