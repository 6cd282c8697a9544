"""UCB1 (Auer, Cesa-Bianchi and Fischer 2002) for losses: play the arm with the least lower confidence bound.

It is designed for losses drawn independently from the same laws in every round, where its regret is of order
Σ_i (ln n)/Δ_i for gaps Δ_i between the means. It is deterministic, so an oblivious adversary that knows the algorithm
can make it lose in every round: in the paper's setting it has no guarantee, and Theorem 4 gives no useful bound for
the wrapper around it.
"""

import math
from typing import NamedTuple

from aftereffect.bandits.kernel_bandit import Unguaranteed
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
    """No arm has been played; arm 0 is next."""
    for i in range(2 * n_arms + 2):
        state[i] = 0.0


def draw(params: UCB1Params, n_arms: int, state: FloatState, u: float) -> int:
    """Return the arm chosen by the latest update; u is not used."""
    return int(state[2 * n_arms + 1])


def update(params: UCB1Params, n_arms: int, state: FloatState, arm: int, loss: float) -> None:
    """Record the loss, then choose the first arm never played, or else the first arm of least index."""
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
    """1 for the arm to play next, 0 for the others."""
    for i in range(n_arms):
        q[i] = 0.0
    q[int(state[2 * n_arms + 1])] = 1.0


kernel.register(UCB1Params, kernel.BanditKernel(size, start, draw, update, probabilities))


class UCB1(Unguaranteed):
    """Plays each arm once, then the arm of least index: mean loss minus a confidence width.

    After n updates, N_i of them with arm i and losses of sum S_i, the index is S_i/N_i − √(α ln n/N_i). Ties go to
    the first arm. The signs are reversed because these are losses, not rewards; an index below 0 is not clipped.

    width: α ≥ 0. Auer et al. use 2; smaller values are greedier and often better in practice; 0 plays the arm of least
        mean loss.

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
        """N: the number of updates with each arm."""
        return self._state[: self.n_arms].copy()
