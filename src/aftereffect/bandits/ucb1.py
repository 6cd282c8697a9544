"""UCB1 (Auer, Cesa-Bianchi and Fischer 2002) for losses: play the arm that might be best.

A rival of the bases of Section 4, for losses drawn anew each round from the same laws. It is deterministic,
so an oblivious adversary who knows it can make it lose in every round: the paper's setting is not its own,
and Theorem 4 says nothing about the wrapper around it. In its own setting, with gaps Δ_i between the means,
its regret is of order Σ_i (ln n)/Δ_i.
"""

import math
from typing import NamedTuple

from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.core import checks, kernel
from aftereffect.core.kernel import FloatState


class UCB1Params(NamedTuple):
    """α, the width of the confidence interval."""

    width: float


# state: the counts N in [0, K), the sums of losses in [K, 2K), then n and the arm to play next.


def size(n_arms: int) -> int:
    """K counts, K sums, two scalars."""
    return 2 * n_arms + 2


def start(params: UCB1Params, n_arms: int, state: FloatState) -> None:
    """Nothing played yet: arm 0 is next."""
    for i in range(2 * n_arms + 2):
        state[i] = 0.0


def draw(params: UCB1Params, n_arms: int, state: FloatState, u: float) -> int:
    """Return the arm chosen by the latest update; u plays no part."""
    return int(state[2 * n_arms + 1])


def update(params: UCB1Params, n_arms: int, state: FloatState, arm: int, loss: float) -> None:
    """Count the loss, then choose the first arm never played, else the first of least index."""
    state[arm] += 1.0
    state[n_arms + arm] += loss
    state[2 * n_arms] += 1.0
    spread = params.width * math.log(state[2 * n_arms])
    best = 0
    least = math.inf
    for i in range(n_arms):
        if state[i] == 0.0:
            best = i
            break
        index = state[n_arms + i] / state[i] - math.sqrt(spread / state[i])
        if index < least:
            best = i
            least = index
    state[2 * n_arms + 1] = best


def probabilities(params: UCB1Params, n_arms: int, state: FloatState, q: FloatState) -> None:
    """All on the arm to play next."""
    for i in range(n_arms):
        q[i] = 0.0
    q[int(state[2 * n_arms + 1])] = 1.0


kernel.register(UCB1Params, kernel.BanditKernel(size, start, draw, update, probabilities))


class UCB1(KernelBandit):
    """Plays each arm once, then the arm of least index: mean loss less a confidence width.

    After n updates, N_i of them with arm i and losses that add up to S_i, the index is
    S_i/N_i − √(α ln n/N_i). Ties go to the first arm. For losses instead of rewards all signs are turned; an
    index below 0 is not cut off.

    width: α ≥ 0. 2 is Auer et al.'s; less is greedier and often better in practice; 0 follows the best mean.

    >>> bandit = UCB1(n_arms=2)
    >>> bandit.update(0, 1.0)                    # the first arm has been played, the second not yet
    >>> bandit.probabilities
    array([0., 1.])
    >>> bandit.update(1, 0.5)                    # indices 1 − √(2 ln 2) and 0.5 − √(2 ln 2)
    >>> bandit.probabilities
    array([0., 1.])

    Reference: Auer, Cesa-Bianchi and Fischer, "Finite-time analysis of the multiarmed bandit problem",
    Machine Learning 47 (2002).
    """

    @checks.by_keyword
    def __init__(self, n_arms: int, *, width: float = 2.0) -> None:
        self.width = checks.real("width", width, low=0.0)
        super().__init__(n_arms, UCB1Params(self.width))

    @property
    def counts(self) -> checks.FloatArray:
        """N: how often each arm has been fed."""
        return self._state[: self.n_arms].copy()

    def stability(self) -> float:
        """Return 1, which holds for every algorithm; it is tight, as one update can move all the mass."""
        return 1.0

    def regret_bound(self, n: int) -> float:
        """Return n: whoever foresees every arm can make each of them lose, so no guarantee is better."""
        return float(checks.integer("n", n, low=0))
