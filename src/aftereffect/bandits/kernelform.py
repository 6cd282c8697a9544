"""The object around a base algorithm in kernel form: checks, copies, saves; the arithmetic stays in the kernel."""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import checks, kernel, saved
from aftereffect.core.errors import InvalidArgument, InvalidState
from aftereffect.core.random import uniform

# What an interactive object calls, compiled: each reaches the kernel through the type of `params`.


def draw_arm(params: Any, n_arms: int, state: kernel.FloatState, rng: kernel.WordState) -> int:
    """Draw an arm with the next uniform number of a stream."""
    return kernel.bandit_draw(params, n_arms, state, uniform(rng))


def start_state(params: Any, n_arms: int, state: kernel.FloatState) -> None:
    """Write the initial state."""
    kernel.bandit_start(params, n_arms, state)


def learn_loss(params: Any, n_arms: int, state: kernel.FloatState, arm: int, loss: float) -> None:
    """Feed the loss of an arm."""
    kernel.bandit_update(params, n_arms, state, arm, loss)


def write_probabilities(params: Any, n_arms: int, state: kernel.FloatState, q: kernel.FloatState) -> None:
    """Write the distribution into q."""
    kernel.bandit_probabilities(params, n_arms, state, q)


class KernelBandit:
    """A base algorithm whose parameters, a NamedTuple, name its kernel.

    Subclasses set `params_type`, fill `params` and give `stability` and `regret_bound`.
    """

    params_type: ClassVar[type]

    def __init__(self, n_arms: int, params: NamedTuple) -> None:
        """Start the kernel's state for K = `n_arms`."""
        # numba's import costs a quarter of a second: here, not with the package.
        from aftereffect.core.jit import entry

        self._n_arms = checks.integer("n_arms", n_arms, low=2)
        self.params = params
        form = kernel.BANDITS[type(params)]
        self._state = np.zeros(form.size(self._n_arms))
        at = (self._n_arms, self._state)
        self._update = entry(learn_loss, params, *at, 0, 0.0)
        self._draw = entry(draw_arm, params, *at, np.zeros(4, np.uint64))
        self._probabilities = entry(write_probabilities, params, *at, self._state)
        entry(start_state, params, *at)(params, *at)

    @property
    def n_arms(self) -> int:
        """K."""
        return self._n_arms

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """q_n, as a new array."""
        q = np.empty(self._n_arms)
        self._probabilities(self.params, self._n_arms, self._state, q)
        return q

    def draw(self, rng: kernel.WordState) -> int:
        """Draw an arm from `probabilities` with the next uniform number of a stream (core/random.py)."""
        arm: int = self._draw(self.params, self._n_arms, self._state, rng)
        return arm

    def update(self, arm: int, loss: float) -> None:
        """Feed the loss of an arm that was drawn from `probabilities`."""
        arm = checks.integer("arm", arm, low=0, high=self._n_arms - 1)
        loss = checks.real("loss", loss, low=0.0, high=1.0)
        if self.probabilities[arm] == 0.0:
            raise InvalidArgument(f"arm must be one of positive probability, but arm {arm} has probability 0")
        self.learn(arm, loss)

    def learn(self, arm: int, loss: float) -> None:
        """Do what `update` does, without checks: for callers that guarantee an arm in 0..K-1 and a loss in [0, 1]."""
        self._update(self.params, self._n_arms, self._state, arm, loss)

    def fresh(self) -> Self:
        """Return an unplayed bandit with the same parameters."""
        return type(self)(self._n_arms, *self.params)

    def state(self) -> dict[str, Any]:
        """Return all there is to know, in plain JSON types."""
        fields = {"n_arms": self._n_arms, "params": list(self.params), "numbers": self._state.tolist()}
        return saved.seal(type(self).__name__, fields)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the bandit that `state()` described."""
        fields = saved.unseal(state, cls.__name__, ("n_arms", "params", "numbers"))
        if not isinstance(fields["params"], list):
            raise InvalidState(f"params must be a list, but got {checks.shown(fields['params'])}")
        bandit = cls(fields["n_arms"], *fields["params"])
        bandit._state[:] = saved.numbers("numbers", fields["numbers"], len(bandit._state))
        return bandit

    def __repr__(self) -> str:
        """Name the algorithm, its arms and its parameters."""
        named = "".join(f", {name}={value!r}" for name, value in self.params._asdict().items())
        return f"{type(self).__name__}(n_arms={self._n_arms}{named})"
