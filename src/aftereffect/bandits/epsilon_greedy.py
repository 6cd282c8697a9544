"""ε-greedy: the arm of least mean loss, and now and then any arm; what many people would run.

With a fixed ε it explores for ever, so its regret grows linearly; it has no guarantee in the paper's setting.
"""

from typing import NamedTuple

from aftereffect.bandits.kernel_bandit import Unguaranteed
from aftereffect.core import checks, kernel
from aftereffect.core.kernel import FloatState
from aftereffect.core.random import scan


class EpsilonGreedyParams(NamedTuple):
    """ε, the probability of a random arm."""

    epsilon: float


# state: the number of losses of each arm in [0, K), their sums in [K, 2K), the distribution in [2K, 3K).


def size(n_arms: int) -> int:
    """Three numbers per arm."""
    return 3 * n_arms


def start(params: EpsilonGreedyParams, n_arms: int, state: FloatState) -> None:
    """No arm has been played; all are equally likely."""
    for i in range(n_arms):
        state[i] = 0.0
        state[n_arms + i] = 0.0
        state[2 * n_arms + i] = 1.0 / n_arms


def draw(params: EpsilonGreedyParams, n_arms: int, state: FloatState, u: float) -> int:
    """Return the arm in whose interval u lies."""
    return scan(state[2 * n_arms :], n_arms, u)


def update(params: EpsilonGreedyParams, n_arms: int, state: FloatState, arm: int, loss: float) -> None:
    """Record the loss; the arms of least mean share 1 − ε, and an arm never played counts as one of mean 0."""
    state[arm] += 1.0
    state[n_arms + arm] += loss
    least, ties = 2.0, 0
    for i in range(n_arms):
        mean = state[n_arms + i] / max(state[i], 1.0)
        if mean < least:
            least, ties = mean, 0
        ties += mean == least
    for i in range(n_arms):
        leads = state[n_arms + i] / max(state[i], 1.0) == least
        state[2 * n_arms + i] = params.epsilon / n_arms + (1.0 - params.epsilon) / ties * leads


def probabilities(params: EpsilonGreedyParams, n_arms: int, state: FloatState, q: FloatState) -> None:
    """Copy the distribution."""
    for i in range(n_arms):
        q[i] = state[2 * n_arms + i]


kernel.register(EpsilonGreedyParams, kernel.BanditKernel(size, start, draw, update, probabilities))


class EpsilonGreedy(Unguaranteed):
    """Plays the arm of least mean loss with probability 1 − ε, else any arm with equal probabilities.

    Ties share the probability. An arm that was never played counts as one of mean loss 0, so each is tried early.

    epsilon: ε in [0, 1].

    >>> bandit = EpsilonGreedy(n_arms=2, epsilon=0.1)
    >>> bandit.update(0, 1.0)
    >>> bandit.probabilities
    array([0.05, 0.95])

    Reference: Sutton and Barto, "Reinforcement learning" (2018), Section 2.2.
    """

    @checks.by_keyword
    def __init__(self, n_arms: int, *, epsilon: float = 0.1) -> None:
        self.epsilon = checks.real("epsilon", epsilon, low=0.0, high=1.0)
        super().__init__(n_arms, EpsilonGreedyParams(self.epsilon))
