"""What players have in common: turns, reading a total, holding a base algorithm, copies and saved states."""

import copy
import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from aftereffect.bandits.exp3 import Exp3
from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.bandits.protocol import Bandit
from aftereffect.bandits.tsallis import TsallisFTRL
from aftereffect.core import checks, effects, kernel, random, saved
from aftereffect.core.errors import BadDistribution, InvalidArgument, InvalidState, InvalidTotal, OutOfTurn
from aftereffect.core.kernel import WordState
from aftereffect.core.random import scan, uniform
from aftereffect.players.protocol import Arrival, LabelledRound, Round


def draw_from(q: Any, n_arms: int, rng: WordState) -> int:
    """Draw an arm from a distribution with the next uniform number of a stream."""
    return scan(q, n_arms, uniform(rng))


def checked_bandit(bandit: Any) -> Bandit:
    """Return `bandit` if it has what the Bandit protocol asks for."""
    if isinstance(bandit, type):
        raise InvalidArgument(f"bandit must be an object, not a class (call it first), but got {checks.shown(bandit)}")
    for name in ("n_arms", "probabilities", "update", "stability", "regret_bound"):
        if not hasattr(bandit, name):
            raise InvalidArgument(
                f"bandit must have the attribute {name!r} (see aftereffect.Bandit), but got {bandit!r}"
            )
    checks.integer("bandit.n_arms", bandit.n_arms, low=2)
    found: Bandit = bandit
    return found


def checked_distribution(bandit: Bandit) -> checks.FloatArray:
    """Return the distribution of a base algorithm written elsewhere, or say what is wrong with it."""
    try:
        q = checks.array("bandit.probabilities", bandit.probabilities, shape=(bandit.n_arms,))
    except InvalidArgument as error:
        raise BadDistribution(str(error)) from None
    if q.min() < 0.0:
        raise BadDistribution(
            f"bandit.probabilities must be at least 0, but arm {int(q.argmin())} has {float(q.min())!r}"
        )
    if abs(math.fsum(q) - 1.0) > 1e-9:
        raise BadDistribution(f"bandit.probabilities must sum to 1, but sum to {math.fsum(q)!r}")
    return np.ascontiguousarray(q)


def draw_arm(bandit: Bandit, rng: WordState) -> int:
    """Draw an arm from a base algorithm's distribution; nothing changes if it is not one."""
    if isinstance(bandit, KernelBandit):
        return bandit.draw(rng)
    # Compiling is for whoever draws: a player with a kernel base never comes here.
    from aftereffect.core.jit import compiled

    return int(compiled(draw_from)(checked_distribution(bandit), bandit.n_arms, rng))


def feed(bandit: Bandit, arm: int, loss: float) -> None:
    """Feed a base algorithm a loss in [0, 1]."""
    if isinstance(bandit, KernelBandit):
        bandit.learn(arm, loss)
    else:
        bandit.update(arm, loss)


def feed_all(bandit: Any, arms: list[int], losses: list[float]) -> None:
    """Feed a base algorithm the losses of units that drew from it together, or of one."""
    if len(arms) == 1 and not hasattr(bandit, "update_many"):
        bandit.update(arms[0], losses[0])
    elif len(arms) == 1 and isinstance(bandit, KernelBandit):
        bandit.learn(arms[0], losses[0])
    elif isinstance(bandit, KernelBandit):
        bandit.learn_many(arms, losses)
    else:
        bandit.update_many(arms, losses)


def unplayed_copy(bandit: Bandit) -> Bandit:
    """Return a base algorithm like this unplayed one, which shares nothing with it."""
    if not isinstance(bandit, KernelBandit):
        return copy.deepcopy(bandit)
    twin = bandit.fresh()
    if twin.state() != bandit.state():
        raise InvalidArgument(f"bandit must be unplayed for its player to be copied, but {bandit!r} has learned")
    return twin


def checked_total(total: Any) -> float:
    """Return a reported total as a finite float."""
    try:
        return checks.real("total", total)
    except InvalidArgument as error:
        raise InvalidTotal(str(error)) from None


def bandit_state(bandit: Bandit) -> dict[str, Any]:
    """Return the saved state of a base algorithm."""
    if not hasattr(bandit, "state"):
        raise InvalidArgument(f"bandit must have a method state() to be saved, but got {bandit!r}")
    state: dict[str, Any] = bandit.state()
    return state


def dump(player: object, names: Iterable[str]) -> dict[str, Any]:
    """Return a player's plain private numbers and flags by name."""
    return {name: getattr(player, f"_{name}") for name in names}


def load(player: object, names: Iterable[str], fields: Mapping[str, Any]) -> None:
    """Set a player's plain private numbers and flags, each to a value of the type it has."""
    for name in names:
        wanted = type(getattr(player, f"_{name}"))
        if type(fields[name]) is not wanted:
            raise InvalidState(f"{name} must be of type {wanted.__name__}, but got {checks.shown(fields[name])}")
        setattr(player, f"_{name}", fields[name])


def shown_range(direction: str, low: float, high: float) -> str:
    """Return direction and range as they appear in a repr: only where they are not losses in [0, 1]."""
    named = (("direction", direction, "minimize"), ("low", low, 0.0), ("high", high, 1.0))
    return "".join(f", {name}={value!r}" for name, value, usual in named if value != usual)


def kernel_base(bandit: Any) -> KernelBandit:
    """Return a copy of `bandit` if it is an unplayed base algorithm in kernel form, as players in kernel form need."""
    if not isinstance(bandit, KernelBandit):
        raise InvalidArgument(
            f"bandit must be a base algorithm in kernel form, such as Exp3, but got {checks.shown(bandit)}"
        )
    # The player starts the kernel afresh; what the object has learned would be lost without a word.
    twin = bandit.fresh()
    if bandit.state() != twin.state():
        raise InvalidArgument(f"bandit must be unplayed, but {bandit!r} has learned")
    return twin


def tuned_base(base: str, n_arms: int, updates: int) -> TsallisFTRL | Exp3:
    """Return Algorithm 2 ("tsallis", Theorem 6) or Exp3 ("exp3") at its best rate for so many updates.

    The rates are √(N/2) and √(2 ln K/(KN)). With no update at all the rate does not matter.
    """
    checks.choice("base", base, ("tsallis", "exp3"))
    n_arms = checks.integer("n_arms", n_arms, low=2)
    if base == "tsallis":
        return TsallisFTRL(n_arms, learning_rate=math.sqrt(updates / 2))
    return Exp3(n_arms, learning_rate=math.sqrt(2 * math.log(n_arms) / (n_arms * max(updates, 1))))


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
        value = float("nan") if total is None else checked_total(total)
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
        subject = unplayed_copy(self.subject) if isinstance(self.subject, KernelBandit) else self.subject
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
        return saved.seal(type(self).__name__, fields | dump(self, FIELDS[5:]))

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
        load(player, FIELDS[5:], fields)
        return player

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy through the saved state: machine code does not travel."""
        return type(self).from_state, (self.state(), self.subject)

    def __repr__(self) -> str:
        """Name the player, its arms and its settings."""
        first = repr(self.subject) if isinstance(self.subject, KernelBandit) else f"n_arms={self._n_arms}"
        named = "".join(f", {name}={value!r}" for name, value in self.settings.items())
        return f"{type(self).__name__}({first}{named})"


LABELLED_FIELDS = ("subject", "settings", "seed", "streams", "numbers", "outstanding", "round", "open", "arm")

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
        subject = unplayed_copy(self.subject) if base else self.subject
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
        return saved.seal(type(self).__name__, fields | dump(self, LABELLED_FIELDS[6:]))

    @classmethod
    def from_state(cls, state: Mapping[str, Any], subject: Any) -> Self:
        """Return the player that `state()` described, around a base that has been restored already."""
        fields = saved.unseal(state, cls.__name__, LABELLED_FIELDS)
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
        load(player, LABELLED_FIELDS[6:], fields)
        return player

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy through the saved state: machine code does not travel."""
        return type(self).from_state, (self.state(), self.subject)

    def __repr__(self) -> str:
        """Name the player, its arms and its settings."""
        first = repr(self.subject) if isinstance(self.subject, KernelBandit) else f"n_arms={self._n_arms}"
        named = "".join(f", {name}={value!r}" for name, value in self.settings.items())
        return f"{type(self).__name__}({first}{named})"
