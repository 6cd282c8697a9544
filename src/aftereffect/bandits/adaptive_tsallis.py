"""½-Tsallis FTRL that sets its own rate, with a baseline that leaves only the noise to importance weighting.

Algorithm 2 (Section 4) multiplies the whole loss by 1/q(J). Here a prediction b(i), fixed before the draw, is
subtracted first and given to every arm: ẑ(i) = b(i) + 1{J=i}(ℓ − b(i))/q(i) has the same mean and far less spread.
A loss below its baseline makes ẑ(J) negative, which the regulariser can bear down to −η/√q(J) only. So for losses in
[0, v] the baseline is capped, at a harmonic sum that makes the worst surprise no dearer than a loss of full size:

    1/cap(i) = 1/v + 1/(η√q(i)),      b(i) = min(prediction, cap(i)).

The rate grows by what each update costs: with z = ẑ − c for a shift c (FTRL does not see shifts),

    cost = Σ z(i)² q(i)^{3/2} / (η (1 + s(i))),  s(i) = z(i)√q(i)/η > −1,      η += ϱ·cost/h,

with h = 2(√K − 1), ϱ = 5/2. For the arms not played a bound of 1/(1 + s) that is the same for all of them will do, so
that two moments of their baselines give the cost (adaptive_kernel.py). Nothing is tuned to a horizon, and
E[regret] ≤ hη₁ + 4.43√(K Σv²), which is hη₁ + 4.43√(KN) for losses in [0, 1]; the sum of costs bounds the regret of the
run at hand on average.
docs/theory/adaptive.md has the proofs.
"""

import math

import numpy as np
from numpy.typing import NDArray

from aftereffect import theory
from aftereffect.bandits.adaptive_kernel import AdaptiveParams
from aftereffect.bandits.adaptive_passes import COST, MOVED, PENALTY, RATE, SEEN, SQUARES
from aftereffect.bandits.kernelform import KernelBandit
from aftereffect.core import checks

FIRST_RATE = 1.5
MEMORY = 20.0


class AdaptiveTsallis(KernelBandit):
    """½-Tsallis FTRL with a capped baseline and a rate that follows its costs; no horizon, nothing to tune.

    first_rate: η₁ > 0, the rate before anything is known; it is added to the bound once, times 2(√K − 1).
    memory: over how many updates the prediction averages, at least 1.

    >>> bandit = AdaptiveTsallis(n_arms=2)
    >>> bandit.update(0, 1.0)
    >>> bandit.learning_rate > 1.5               # it cost something
    True
    >>> bandit.regret_bound(10_000) < 630.0      # at most hη₁ + 4.43√(KN), whatever the losses
    True

    Reference: docs/theory/adaptive.md; Algorithm 2 of the paper is the same with b = 0 and η fixed.
    """

    def __init__(self, n_arms: int, first_rate: float = FIRST_RATE, memory: float = MEMORY) -> None:
        """Take K = `n_arms` and η₁ = `first_rate`."""
        self.first_rate = checks.real("first_rate", first_rate, low=1e-100, high=1e100)
        self.memory = checks.real("memory", memory, low=1.0)
        super().__init__(n_arms, AdaptiveParams(self.first_rate, self.memory))

    @property
    def learning_rate(self) -> float:
        """η, as it is now."""
        return self._number(RATE)

    @property
    def estimated_losses(self) -> NDArray[np.float64]:
        """L̂ of every arm, less that of the leader."""
        return self._state[self.n_arms : 2 * self.n_arms].copy()

    @property
    def updates(self) -> int:
        """How many updates there have been."""
        return int(self._number(SEEN))

    @property
    def cost(self) -> float:
        """Σ cost: what instability has been charged so far."""
        return self._number(COST)

    @property
    def penalty(self) -> float:
        """Σ 2(η_{n+1} − η_n)(Σ√q_{n+1} − 1): what the growth of the rate has been charged so far."""
        return self._number(PENALTY)

    @property
    def moved(self) -> float:
        """S: the probability that has changed hands so far."""
        return self._number(MOVED)

    @property
    def squares(self) -> float:
        """Σ v², v the most that the loss of an update could be."""
        return self._number(SQUARES)

    def realised_bound(self) -> float:
        """Return hη₁ + Σ penalty + Σ cost: on average, at least the regret so far."""
        return 2.0 * (math.sqrt(self.n_arms) - 1.0) * self.first_rate + self.penalty + self.cost

    def stability(self) -> float:
        """Return 1: one update may move everything, though all of them together move little (`mass_moved`)."""
        return 1.0

    def mass_moved(self, n: int, squares: float | None = None) -> float:
        """Return a bound on E[S] over n updates, whose v² add up to `squares` on average (n unless given)."""
        n = checks.integer("n", n, low=0)
        return theory.adaptive_mass_moved(self.n_arms, n, float(n) if squares is None else squares, self.first_rate)

    def regret_bound(self, n: int) -> float:
        """Return hη₁ + 4.43√(Kn)."""
        n = checks.integer("n", n, low=0)
        return theory.adaptive_regret_bound(self.n_arms, float(n), self.first_rate)

    def _number(self, which: int) -> float:
        return float(self._state[4 * self.n_arms + which])
