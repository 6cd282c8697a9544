"""The object around a base algorithm in kernel form: checks, copies, saves; the arithmetic stays in the kernel."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

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


class KernelBandit(ABC):
    """A base algorithm whose parameters, a NamedTuple, name its kernel.

    Subclasses hand `params` over and give `stability` and `regret_bound`.
    """

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

    @abstractmethod
    def stability(self) -> float:
        """Return ξ of Definition 3."""

    @abstractmethod
    def regret_bound(self, n: int) -> float:
        """Return 𝓡_n: a bound on the expected regret after n rounds, whatever the losses."""

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments after `n_arms`, as plain JSON values; by default the kernel's parameters."""
        return self.params._asdict()

    def fresh(self) -> Self:
        """Return an unplayed bandit with the same settings."""
        return type(self)(self._n_arms, **self.settings)

    def state(self) -> dict[str, Any]:
        """Return all there is to know, in plain JSON types."""
        fields = {"n_arms": self._n_arms, "settings": self.settings, "numbers": self._state.tolist()}
        return saved.seal(type(self).__name__, fields)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the bandit that `state()` described."""
        fields = saved.unseal(state, cls.__name__, ("n_arms", "settings", "numbers"))
        try:
            bandit = cls(fields["n_arms"], **fields["settings"])
        except TypeError:
            raise InvalidState(
                f"settings must be the arguments of {cls.__name__}, but got {checks.shown(fields['settings'])}"
            ) from None
        bandit._state[:] = saved.numbers("numbers", fields["numbers"], len(bandit._state))
        return bandit

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy through the saved state: machine code does not travel."""
        return type(self).from_state, (self.state(),)

    def __repr__(self) -> str:
        """Name the algorithm, its arms and its settings."""
        named = "".join(f", {name}={value!r}" for name, value in self.settings.items())
        return f"{type(self).__name__}(n_arms={self._n_arms}{named})"
