"""The default player with a useless and with a malicious adviser, for `benchmarks/advice.py`."""

from typing import Any, NamedTuple

import aftereffect as ae
from aftereffect.core import kernel
from aftereffect.core.kernel import FloatState
from aftereffect.players.advisers import KernelAdviser, Learner, Setting


class Malicious(Learner):
    """UCB1 that is told the opposite direction: it looks for the worst arm, and proposes it with certainty."""

    def begin(self, setting: Setting) -> None:
        """Begin before round 1."""
        other = "minimize" if setting.direction == "maximize" else "maximize"
        super().begin(setting._replace(direction=other))


class RandomParams(NamedTuple):
    """No parameters; the type identifies the adviser."""


def random_size(params: RandomParams, n_arms: int) -> int:
    """One number."""
    return 1


def random_begin(params: RandomParams, n_arms: int, state: FloatState) -> None:
    """Begin with 1."""
    state[0] = 1.0


def random_hear(params: RandomParams, n_arms: int, state: FloatState, unit: int, arm: int, total: float) -> None:
    """Hear nothing."""


def random_advise(params: RandomParams, n_arms: int, state: FloatState, p: FloatState) -> int:
    """Propose one arm with certainty, by the generator of Park and Miller."""
    state[0] = (16807.0 * state[0]) % 2147483647.0
    for i in range(n_arms):
        p[i] = 0.0
    p[int(state[0] * n_arms / 2147483647.0)] = 1.0
    return 1


kernel.register(RandomParams, kernel.AdviserKernel(random_size, random_begin, random_hear, random_advise))


class Useless(KernelAdviser):
    """Another arm at random for each block, whatever is heard, and always with certainty."""

    def form(self, setting: Setting) -> RandomParams:
        """Return the parameters of the kernel."""
        return RandomParams()


def malicious(n_arms: int, max_delay: int, **common: Any) -> Any:
    """Return the default player with the malicious adviser."""
    return ae.default_player(n_arms, max_delay=max_delay, adviser=Malicious(ae.UCB1(n_arms)), **common)


def useless(n_arms: int, max_delay: int, **common: Any) -> Any:
    """Return the default player with the useless adviser."""
    return ae.default_player(n_arms, max_delay=max_delay, adviser=Useless(), **common)
