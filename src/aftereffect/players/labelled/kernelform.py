"""The object around a labelled player in kernel form: turns, checks, outstanding plays, copies, saves."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.core import checks, effects, kernel, random, saved
from aftereffect.core.errors import InvalidArgument, InvalidState, InvalidTotal, OutOfTurn
from aftereffect.players import turns
from aftereffect.players.labelled.protocol import Arrival, LabelledRound

FIELDS = ("subject", "settings", "seed", "streams", "numbers", "outstanding", "round", "open", "arm")

# What an interactive object calls, compiled: each reaches the kernel through the type of `params`.


def begin_labelled(params: Any, n_arms: int, state: kernel.FloatState) -> None:
    """Write the initial state."""
    kernel.labelled_begin(params, n_arms, state)


def ask_labelled(params: Any, n_arms: int, state: kernel.FloatState, rng: kernel.WordState) -> int:
    """Return the arm of this round."""
    return kernel.labelled_ask(params, n_arms, state, rng)


def tell_labelled(
    params: Any,
    n_arms: int,
    state: kernel.FloatState,
    rng: kernel.WordState,
    played: int,
    arm: int,
    loss: float,
) -> int:
    """Tell the loss of one play."""
    return kernel.labelled_tell_one(params, n_arms, state, rng, played, arm, loss)


class LabelledKernelPlayer:
    """A labelled player whose parameters, a NamedTuple with a field `span`, name its kernel.

    A subclass's `__init__(self, subject, ..., seed=None)` takes the number of arms, or a base algorithm in
    kernel form, as its first argument, checks its settings, and calls `super().__init__` with the kernel's
    parameters, the seed and those settings as plain JSON values under the names of its arguments: from them
    copies are made, saved and restored.

    The kernel is told the losses of a round in ascending order of their rounds, whatever the order they are
    reported in; a lost report reaches it as NaN, so that it can forget the play. `max_delay` says how many
    rounds after its own a play may still be reported, which is what a kernel has room for; None if it keeps
    nothing for each play.
    """

    needs: ClassVar[tuple[str, ...]] = ("labels",)

    def __init__(
        self, subject: Any, params: Any, max_delay: int | None, seed: int | None, settings: Mapping[str, Any]
    ) -> None:
        """Start the kernel's state."""
        # numba's import costs a quarter of a second: here, not with the package.
        from aftereffect.core.jit import entry

        base = isinstance(subject, KernelBandit)
        self._n_arms = checks.integer("n_arms", subject.n_arms if base else subject, low=2)
        self.subject: Any = subject if base else self._n_arms
        self.max_delay = max_delay
        self.seed = random.checked_seed("seed", seed)
        self.settings = dict(settings)
        self.effects: effects.Effects = params.span
        self.direction = "maximize" if self.effects.maximize else "minimize"
        self._params = params
        self._numbers = np.zeros(kernel.LABELLED[type(params)].size(params, self._n_arms))
        self._streams = random.streams(self.seed, 0, 1)[0]
        at = (self._n_arms, self._numbers)
        self._ask = entry(ask_labelled, params, *at, self._streams)
        self._tell = entry(tell_labelled, params, *at, self._streams, 0, 0, 0.0)
        entry(begin_labelled, params, *at)(params, *at)
        # The arms of the plays that are not reported yet, by round, in ascending order.
        self._outstanding: dict[int, int] = {}
        self._round = 0
        self._open = False
        self._arm = 0

    @property
    def n_arms(self) -> int:
        """K."""
        return self._n_arms

    @property
    def outstanding(self) -> tuple[int, ...]:
        """The rounds, ascending, whose losses have not been reported."""
        return tuple(self._outstanding)

    def ask(self) -> int:
        """Return the arm to play in this round; the same until `tell`."""
        if not self._open:
            self._arm = self._ask(self._params, self._n_arms, self._numbers, self._streams)
            self._round += 1
            self._outstanding[self._round] = self._arm
            self._open = True
        return self._arm

    def tell(self, arrivals: Iterable[Arrival]) -> LabelledRound:
        """Report the (round, loss) pairs that became known in this round (loss None: lost) and end it."""
        if not self._open:
            raise OutOfTurn("tell must follow ask, but no round is open")
        reports = self._checked(arrivals)
        updates = 0
        for played in sorted(reports):
            arm = self._outstanding.pop(played)
            at = (self._params, self._n_arms, self._numbers, self._streams)
            updates += self._tell(*at, played, arm, reports[played])
        self._open = False
        fed = float(self._numbers[kernel.FED])
        drew = bool(self._numbers[kernel.DREW] == 1.0)
        return LabelledRound(self._round, self._arm, drew, updates, None if fed != fed else fed)

    def _checked(self, arrivals: Iterable[Arrival]) -> dict[int, float]:
        """Return the losses by round (NaN: lost) after checking all of them."""
        least, most = effects.total_bounds(self.effects, 0)
        reports: dict[int, float] = {}
        try:
            pairs = [(played, loss) for played, loss in arrivals]
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"arrivals must be pairs of a round and its loss, but got {checks.shown(arrivals)}"
            ) from None
        for given, loss in pairs:
            played = checks.integer("round", given, low=1, high=self._round)
            if played not in self._outstanding or played in reports:
                raise OutOfTurn(f"round must be one that is not reported yet, but got {played}")
            try:
                value = float("nan") if loss is None else checks.real("loss", loss, low=least, high=most)
            except InvalidArgument as error:
                raise InvalidTotal(f"{error}, in the report of round {played}") from None
            reports[played] = value
        if self.max_delay is not None:
            late = self._round - self.max_delay
            if late in self._outstanding and late not in reports:
                raise OutOfTurn(
                    f"arrivals must report each play within max_delay={self.max_delay} rounds (None: lost), "
                    f"but at the end of round {self._round} that of round {late} is missing"
                )
        return reports

    def kernel(self) -> Any:
        """Return the player in kernel form."""
        return self._params

    def fresh(self, seed: int, run: int = 0) -> Self:
        """Return an unplayed copy with the streams of (seed, run); only an unplayed player has one."""
        if self._round:
            raise InvalidArgument(f"player must be unplayed to be copied, but it is in round {self._round}")
        seed, run = checks.integer("seed", seed, low=0), checks.integer("run", run, low=0)
        base = isinstance(self.subject, KernelBandit)
        subject = turns.unplayed_copy(self.subject) if base else self.subject
        twin = self._made(subject, self.settings, seed)
        twin._streams[:] = random.streams(seed, run, 1)[0]
        return twin

    @classmethod
    def _made(cls, subject: Any, settings: Mapping[str, Any], seed: int) -> Self:
        """Call the subclass's constructor, whose arguments are its own."""
        build: Any = cls
        made: Self = build(subject, **settings, seed=seed)
        return made

    def state(self) -> dict[str, Any]:
        """Return all there is to know, in plain JSON types; what is restored goes on bit for bit."""
        fields = {
            "subject": self.subject.state() if isinstance(self.subject, KernelBandit) else self.subject,
            "settings": copy.deepcopy(self.settings),
            "seed": f"{self.seed:x}",
            "streams": saved.words_to_hex(self._streams.ravel()),
            # JSON has no NaN: None stands for it.
            "numbers": [None if number != number else number for number in self._numbers.tolist()],
            "outstanding": [[played, arm] for played, arm in self._outstanding.items()],
        }
        return saved.seal(type(self).__name__, fields | turns.dump(self, FIELDS[6:]))

    @classmethod
    def from_state(cls, state: Mapping[str, Any], subject: Any) -> Self:
        """Return the player that `state()` described, around a base that has been restored already."""
        fields = saved.unseal(state, cls.__name__, FIELDS)
        if not isinstance(fields["settings"], dict) or not isinstance(fields["numbers"], list):
            raise InvalidState(f"settings must be a dict and numbers a list, but got {checks.shown(fields)}")
        try:
            player = cls._made(subject, fields["settings"], saved.whole_number("seed", fields["seed"]))
        except TypeError:
            raise InvalidState(
                f"settings must be the arguments of {cls.__name__}, but got {checks.shown(fields['settings'])}"
            ) from None
        numbers = [float("nan") if number is None else number for number in fields["numbers"]]
        player._numbers[:] = saved.numbers("numbers", numbers, len(player._numbers))
        player._streams[:] = saved.hex_to_words("streams", fields["streams"], 8).reshape(2, 4)
        try:
            player._outstanding = {int(played): int(arm) for played, arm in fields["outstanding"]}
        except (TypeError, ValueError):
            raise InvalidState(
                f"outstanding must be pairs of round and arm, but got {checks.shown(fields['outstanding'])}"
            ) from None
        turns.load(player, FIELDS[6:], fields)
        return player

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy through the saved state: machine code does not travel."""
        return type(self).from_state, (self.state(), self.subject)

    def __repr__(self) -> str:
        """Name the player, its arms and its settings."""
        first = repr(self.subject) if isinstance(self.subject, KernelBandit) else f"n_arms={self._n_arms}"
        named = "".join(f", {name}={value!r}" for name, value in self.settings.items())
        return f"{type(self).__name__}({first}{named})"
