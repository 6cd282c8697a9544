"""Uniform play, the baseline for every learning algorithm."""

from typing import Any, NamedTuple

from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.core import checks, kernel
from aftereffect.core.kernel import FloatState


class UniformParams(NamedTuple):
    """No parameters; the type identifies the algorithm."""


def size(n_arms: int) -> int:
    """One unused number, to avoid arrays of length 0."""
    return 1


def start(params: Any, n_arms: int, state: FloatState) -> None:
    """Set the unused number to 0."""
    state[0] = 0.0


def draw(params: Any, n_arms: int, state: FloatState, u: float) -> int:
    """Return ⌊uK⌋; u < 1, but uK may round up to K."""
    return min(int(u * n_arms), n_arms - 1)


def update(params: Any, n_arms: int, state: FloatState, arm: int, loss: float) -> None:
    """Do nothing."""


def probabilities(params: Any, n_arms: int, state: FloatState, q: FloatState) -> None:
    """1/K each."""
    for i in range(n_arms):
        q[i] = 1.0 / n_arms


kernel.register(UniformParams, kernel.BanditKernel(size, start, draw, update, probabilities))


class Uniform(KernelBandit):
    """Plays every arm with probability 1/K in every round.

    >>> Uniform(n_arms=4).probabilities
    array([0.25, 0.25, 0.25, 0.25])
    """

    def __init__(self, n_arms: int) -> None:
        super().__init__(n_arms, UniformParams())

    def stability(self) -> float:
        """Return 0: the distribution never changes."""
        return 0.0

    def regret_bound(self, n: int) -> float:
        """Return n(1 − 1/K): all arms but one may lose 1 in every round."""
        return checks.integer("n", n, low=0) * (1.0 - 1.0 / self.n_arms)
