"""The Python object of a base algorithm in kernel form: it checks, copies and saves; the kernel does the arithmetic."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import checks, kernel, saved
from aftereffect.core.errors import InvalidArgument, InvalidState
from aftereffect.core.kernel import FloatState, IntState, Terms, WordState
from aftereffect.core.random import scan, uniform

# Functions of kernels whose state begins with the distribution.


@kernel.helper
def start_uniform(n_arms: int, others: int, state: FloatState) -> None:
    """Let all arms be equally likely, and set so many other numbers to 0."""
    for i in range(n_arms):
        state[i] = 1.0 / n_arms
    for i in range(n_arms, n_arms + others):
        state[i] = 0.0


def stored_draw(params: Any, n_arms: int, state: FloatState, u: float) -> int:
    """Return the arm whose interval of the cumulative sum of q contains u."""
    return scan(state, n_arms, u)


def stored_probabilities(params: Any, n_arms: int, state: FloatState, q: FloatState) -> None:
    """Copy q."""
    for i in range(n_arms):
        q[i] = state[i]


# Functions that the object calls, compiled, besides those of `core/kernel.py`.


def draw_arm(params: Any, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Return an arm, drawn with the next uniform number of a stream."""
    return kernel.bandit_draw(params, n_arms, state, uniform(rng))


def learn_losses(params: Any, n_arms: int, state: FloatState, arms: IntState, losses: FloatState) -> None:
    """Feed the losses of several units' arms; for a single unit this equals `learn` bit for bit."""
    if arms.shape[0] == 1:
        kernel.bandit_update(params, n_arms, state, arms[0], losses[0])
    else:
        kernel.bandit_update_many(params, n_arms, state, arms, losses)


def learn_sums(params: Any, n_arms: int, state: FloatState, arms: IntState, losses: FloatState, terms: Terms) -> None:
    """Feed losses in [0, top] of one or several units' arms, expected to be offset + weight · the usual loss."""
    if arms.shape[0] == 1:
        kernel.bandit_update_sum(params, n_arms, state, arms[0], losses[0], terms)
    else:
        kernel.bandit_update_many_sums(params, n_arms, state, arms, losses, terms)


class KernelBandit:
    """A base algorithm whose kernel is identified by the type of its parameters, a NamedTuple.

    Subclasses pass `params` to the constructor and may define `stability` and `regret_bound`.
    """

    def __init__(self, n_arms: int, params: NamedTuple) -> None:
        self.n_arms = checks.integer("n_arms", n_arms, low=2)
        self.params = params
        form = kernel.BANDITS[type(params)]
        self._state = np.zeros(form.size(self.n_arms))
        form.start(params, self.n_arms, self._state)
        self._compiled: dict[Callable[..., Any], Callable[..., Any]] = {}

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a kernel function of (params, n_arms, state, *arguments), compiled; it may change the state.

        It is compiled for the types of the arguments of the first call: engines compile kernels as a whole.
        """
        call = self._compiled.get(function)
        if call is None:
            call = kernel.entry(function, self.params, self.n_arms, self._state, *arguments)
            self._compiled[function] = call
        return call(self.params, self.n_arms, self._state, *arguments)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """q_n, as a new array."""
        q = np.empty(self.n_arms)
        self.run(kernel.bandit_probabilities, q)
        return q

    def draw(self, rng: WordState) -> int:
        """Draw an arm from `probabilities` with the next uniform number of a stream (core/random.py)."""
        arm: int = self.run(draw_arm, rng)
        return arm

    def update(self, arm: int, loss: float) -> None:
        """Feed the loss of an arm that was drawn from `probabilities`."""
        self.learn(*self._checked("arm", arm, "loss", loss))

    def _checked(self, name: str, arm: int, loss_name: str, loss: float) -> tuple[int, float]:
        """Return an arm and its loss, which were given under these names, after checks."""
        arm = checks.integer(name, arm, low=0, high=self.n_arms - 1)
        loss = checks.real(loss_name, loss, low=0.0, high=1.0)
        if self.probabilities[arm] == 0.0:
            raise InvalidArgument(f"{name} must have positive probability, but arm {arm} has probability 0")
        return arm, loss

    def learn(self, arm: int, loss: float) -> None:
        """Update without checks, for callers that guarantee an arm in 0..K-1 and a loss in [0, 1]."""
        self.run(kernel.bandit_update, arm, loss)

    def update_many(self, arms: Sequence[int], losses: Sequence[float]) -> None:
        """Feed the losses of arms that several units drew from `probabilities`; their estimates are averaged."""
        check_many(self)
        if not len(arms) == len(losses) > 0:
            raise InvalidArgument(
                f"losses must have the length of arms, at least 1, but got {len(losses)} for {len(arms)} arms"
            )
        checked = [self._checked("arms", arm, "losses", loss) for arm, loss in zip(arms, losses, strict=True)]
        self.learn_many([arm for arm, _ in checked], [loss for _, loss in checked])

    def learn_many(self, arms: Sequence[int], losses: Sequence[float]) -> None:
        """Do the same as `update_many` without checks; see `learn`."""
        self.run(learn_losses, np.array(arms, np.int64), np.array(losses))

    def learn_sums(self, arms: Sequence[int], losses: Sequence[float], *terms: float) -> None:
        """Update with one or several units' sums, without checks; terms: weight, offset and top (`core/kernel.py`)."""
        self.run(learn_sums, np.array(arms, np.int64), np.array(losses), terms)

    def stability(self) -> float:
        """Return ξ of Definition 3; an error unless the subclass defines it."""
        raise self._no_bound()

    def regret_bound(self, n: int) -> float:
        """Return 𝓡_n: a bound on the expected regret after n rounds, for all losses; an error unless defined."""
        raise self._no_bound()

    def _no_bound(self) -> InvalidArgument:
        return InvalidArgument(f"bandit must have stability() and regret_bound(n) for a bound, but got {self!r}")

    def shared_regret_bound(self, n: int, n_units: int) -> float:
        """Return 𝓡_n if each round's estimate is an average over `n_units` units (`update_many`).

        By default `regret_bound(n)`. The author of an `update_many` must make sure that this bound and `stability()`
        hold for averages too.
        """
        checks.integer("n_units", n_units, low=1)
        return self.regret_bound(n)

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments after `n_arms`, as plain JSON values; by default the kernel's parameters."""
        return self.params._asdict()

    def fresh(self) -> Self:
        """Return an unplayed bandit with the same settings."""
        return type(self)(self.n_arms, **self.settings)

    def check_unplayed(self, purpose: str = "") -> None:
        """Raise an error if the bandit has learned; purpose: what it must be unplayed for, in the message."""
        initial = np.zeros(len(self._state))
        kernel.BANDITS[type(self.params)].start(self.params, self.n_arms, initial)
        if self._state.tobytes() != initial.tobytes():
            raise InvalidArgument(f"bandit must be unplayed{purpose}, but {self!r} has learned")

    def state(self) -> dict[str, Any]:
        """Return the complete state in plain JSON types."""
        return saved.seal(type(self).__name__, self.unsealed())

    def unsealed(self) -> dict[str, Any]:
        """Return the state without digest, to be saved as a part of another."""
        fields = {"n_arms": self.n_arms, "settings": self.settings, "numbers": self._state.tolist()}
        return {"kind": type(self).__name__, "version": saved.VERSION, **fields}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return a bandit with the state that `state()` returned."""
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
        """Pickle and copy through the saved state: machine code cannot be pickled."""
        return type(self).from_state, (self.state(),)

    def __repr__(self) -> str:
        named = "".join(f", {name}={value!r}" for name, value in self.settings.items())
        return f"{type(self).__name__}(n_arms={self.n_arms}{named})"


def check_many(bandit: Any) -> None:
    """Raise an error if a base algorithm has no averaged updates."""
    how, known = "a method update_many(arms, losses)", hasattr(bandit, "update_many")
    if isinstance(bandit, KernelBandit):
        how, known = "an update_many in its kernel", kernel.BANDITS[type(bandit.params)].update_many is not None
    if not known:
        raise InvalidArgument(
            f"bandit must have averaged updates, {how}, to be shared by units, but {bandit!r} has none"
        )


def kernel_base(bandit: Any) -> Any:
    """Return a copy of `bandit` if it is an unplayed base algorithm in kernel form, as players in kernel form need."""
    if not isinstance(bandit, KernelBandit):
        raise InvalidArgument(
            f"bandit must be a base algorithm in kernel form, such as Exp3, but got {checks.shown(bandit)}"
        )
    # The player restarts the kernel, so anything the object has learned would be lost.
    bandit.check_unplayed()
    return bandit.fresh()
