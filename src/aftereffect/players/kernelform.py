"""The object around a player in kernel form: turns, checks, copies, saves; the idea itself stays in the kernel."""

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.core import checks, kernel, random, saved
from aftereffect.core.errors import InvalidArgument, InvalidState, InvalidTotal, OutOfTurn
from aftereffect.players import turns
from aftereffect.players.protocol import Round

FIELDS = ("subject", "settings", "seed", "streams", "numbers", "round", "open", "arm")


# What an interactive object calls, compiled: each reaches the kernel through the type of `params`.


def begin_player(params: Any, n_arms: int, state: kernel.FloatState) -> None:
    """Write the initial state."""
    kernel.player_begin(params, n_arms, state)


def ask_player(params: Any, n_arms: int, state: kernel.FloatState, rng: kernel.WordState) -> int:
    """Return the arm of this round."""
    return kernel.player_ask(params, n_arms, state, rng)


def tell_player(
    params: Any, n_arms: int, state: kernel.FloatState, rng: kernel.WordState, arm: int, total: float
) -> int:
    """Tell the total of this round."""
    return kernel.player_tell(params, n_arms, state, rng, arm, total)


class KernelPlayer:
    """A player whose parameters, a NamedTuple, name its kernel.

    A subclass's `__init__(self, subject, *, ..., seed=None)` takes the number of arms, or a base algorithm in
    kernel form, as its first argument, checks its settings, and calls `super().__init__` with the kernel's
    parameters, the seed and those settings as plain JSON values under the names of its keyword arguments:
    from them copies are made, saved and restored. A missing total reaches the kernel as NaN. The kernel keeps
    infinities out of its state, which JSON cannot write.
    """

    def __init__(self, subject: Any, params: Any, seed: int | None, settings: Mapping[str, Any]) -> None:
        """Start the kernel's state."""
        # numba's import costs a quarter of a second: here, not with the package.
        from aftereffect.core.jit import entry

        base = isinstance(subject, KernelBandit)
        self._n_arms = checks.integer("n_arms", subject.n_arms if base else subject, low=2)
        self.subject: Any = subject if base else self._n_arms
        self.seed = random.checked_seed("seed", seed)
        self.settings = dict(settings)
        self._params = params
        self._numbers = np.zeros(kernel.PLAYERS[type(params)].size(params, self._n_arms))
        self._streams = random.streams(self.seed, 0, 1)[0]
        at = (self._n_arms, self._numbers)
        self._ask = entry(ask_player, params, *at, self._streams)
        self._tell = entry(tell_player, params, *at, self._streams, 0, 0.0)
        entry(begin_player, params, *at)(params, *at)
        self._round = 0
        self._open = False
        self._arm = 0

    @property
    def n_arms(self) -> int:
        """K."""
        return self._n_arms

    def ask(self) -> int:
        """Return the arm to play in this round; the same until `tell`."""
        if not self._open:
            self._arm = self._ask(self._params, self._n_arms, self._numbers, self._streams)
            self._round += 1
            self._open = True
        return self._arm

    def tell(self, total: float | None) -> Round:
        """Report the total of the round `ask` opened (None: missing) and end it."""
        if not self._open:
            raise OutOfTurn("tell must follow ask, but no round is open")
        value = float("nan") if total is None else turns.checked_total(total)
        before = self._numbers.copy()
        told = self._tell(self._params, self._n_arms, self._numbers, self._streams, self._arm, value)
        if told < 0:
            self._numbers[:] = before
            raise InvalidTotal(f"{self.refusal()}, but got {value!r}")
        self._open = False
        fed = float(self._numbers[kernel.FED])
        drew = bool(self._numbers[kernel.DREW] == 1.0)
        return Round(self._round, self._arm, drew, told > 0, None if fed != fed else fed)

    def refusal(self) -> str:
        """Say what a total must be that the kernel does not refuse."""
        return "total must be one that the player's range allows"

    def kernel(self) -> Any:
        """Return the player in kernel form."""
        return self._params

    def fresh(self, seed: int, run: int = 0) -> Self:
        """Return an unplayed copy with the streams of (seed, run); only an unplayed player has one."""
        if self._round:
            raise InvalidArgument(f"player must be unplayed to be copied, but it is in round {self._round}")
        seed, run = checks.integer("seed", seed, low=0), checks.integer("run", run, low=0)
        subject = turns.unplayed_copy(self.subject) if isinstance(self.subject, KernelBandit) else self.subject
        twin = type(self)(subject, **self.settings, seed=seed)
        twin._streams[:] = random.streams(seed, run, 1)[0]
        return twin

    def state(self) -> dict[str, Any]:
        """Return all there is to know, in plain JSON types; `aftereffect.restore` goes on from it bit for bit."""
        # JSON has no NaN: None stands for it.
        numbers = [None if number != number else number for number in self._numbers.tolist()]
        fields = {
            "subject": self.subject.state() if isinstance(self.subject, KernelBandit) else self.subject,
            "settings": copy.deepcopy(self.settings),
            "seed": f"{self.seed:x}",
            "streams": saved.words_to_hex(self._streams.ravel()),
            "numbers": numbers,
        }
        return saved.seal(type(self).__name__, fields | turns.dump(self, FIELDS[5:]))

    @classmethod
    def from_state(cls, state: Mapping[str, Any], subject: Any) -> Self:
        """Return the player that `state()` described, around a base that has been restored already."""
        fields = saved.unseal(state, cls.__name__, FIELDS)
        if not isinstance(fields["settings"], dict) or not isinstance(fields["numbers"], list):
            raise InvalidState(f"settings must be a dict and numbers a list, but got {checks.shown(fields)}")
        try:
            player = cls(subject, **fields["settings"], seed=saved.whole_number("seed", fields["seed"]))
        except TypeError:
            raise InvalidState(
                f"settings must be the arguments of {cls.__name__}, but got {checks.shown(fields['settings'])}"
            ) from None
        numbers = [float("nan") if number is None else number for number in fields["numbers"]]
        player._numbers[:] = saved.numbers("numbers", numbers, len(player._numbers))
        player._streams[:] = saved.hex_to_words("streams", fields["streams"], 8).reshape(2, 4)
        turns.load(player, FIELDS[5:], fields)
        return player

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy through the saved state: machine code does not travel."""
        return type(self).from_state, (self.state(), self.subject)

    def __repr__(self) -> str:
        """Name the player, its arms and its settings."""
        first = repr(self.subject) if isinstance(self.subject, KernelBandit) else f"n_arms={self._n_arms}"
        named = "".join(f", {name}={value!r}" for name, value in self.settings.items())
        return f"{type(self).__name__}({first}{named})"
