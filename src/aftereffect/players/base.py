"""Base classes of players.

    BasePlayer                  range of effects, seed, settings, copies, saved states
      AnonymousPlayer           told totals, of one unit or of several that share it
        KernelPlayer            in kernel form
        BanditPlayer            with any Bandit as base, in kernel form or not
      LabelledKernelPlayer      told losses with their rounds, in kernel form
"""

import copy
import math
import secrets
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from inspect import signature
from typing import Any, Never, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from aftereffect.bandits.exp3 import Exp3
from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.bandits.protocol import Bandit, checked_distribution
from aftereffect.bandits.tsallis import TsallisFTRL
from aftereffect.core import checks, effects, kernel, random, saved
from aftereffect.core.errors import InvalidArgument, InvalidState, InvalidTotal, OutOfTurn
from aftereffect.core.kernel import DREW, FED, FloatState, WordState
from aftereffect.players import limits
from aftereffect.players.limits import Common, Limits
from aftereffect.players.protocol import Arrival, LabelledRound, PanelRound, Round

# A player warns if it plays more than this many times the rounds for which it was tuned.
PAST = 4
# The player of each base algorithm, by the id of the algorithm; a player is removed when it is deleted.
OWNERS: "weakref.WeakValueDictionary[int, BanditPlayer]" = weakref.WeakValueDictionary()


def number(place: int, title: str, kind: type = float) -> Any:
    """Return an attribute of a player in kernel form: the number in this place of its state."""
    return property(lambda player: kind(player._numbers[place]), doc=title)


class BasePlayer:
    """Range, seed, settings, copies and saved states of a player.

    The first argument of a subclass's constructor is the number of arms or a base algorithm, stored as `inside`; all
    others are keyword arguments, each stored as an attribute of its name. Copies and restored players are constructed
    from `inside` and `settings`, the keyword arguments as plain JSON values.
    """

    inside: Any
    n_arms: int

    # The fields of a saved state: those of every player, and those of a subclass.
    SAVED = ("inside", "settings", "seed", "round", "open", "arm")
    OWN_SAVED: tuple[str, ...] = ()
    # Fields that are saved only if there is something to save.
    LATER_SAVED: tuple[str, ...] = ()
    # The settings: those of every player, and all keyword arguments but those with a state or field of their own.
    COMMON: tuple[str, ...] = ("direction", "low", "high")
    SETTINGS: tuple[str, ...] = ()
    NO_SETTINGS = ("seed", "coins", "adviser")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for made in (vars(cls).get("__init__"), getattr(vars(cls).get("tuned"), "__func__", None)):
            if made is not None:
                limits.spelled_out(made)
        own = [name for name, each in signature(cls).parameters.items() if each.kind != each.VAR_KEYWORD][1:]
        cls.SETTINGS = tuple(name for name in dict.fromkeys((*own, *cls.COMMON)) if name not in cls.NO_SETTINGS)

    def init_common(self, **given: Any) -> effects.Effects:
        """Check and store the arguments common to all players, set the state before round 1, and return the range."""
        if unknown := given.keys() - {*self.COMMON, "seed"}:
            calls = (type(self), getattr(type(self), "tuned", None))
            accepted = "; tuned accepts ".join(", ".join(signature(call).parameters) for call in calls if call)
            raise TypeError(f"{type(self).__name__} has no argument {min(unknown)!r}; it accepts {accepted}")
        direction, low, high, out_of_range, seed = (limits.USUAL | given).values()
        self.effects = effects.effects(direction, low, high)
        self.direction, self.low, self.high = direction, float(low), float(high)
        self.out_of_range = checks.choice("out_of_range", out_of_range, limits.OUT_OF_RANGE)
        self.seed = secrets.randbits(64) if seed is None else checks.integer("seed", seed, low=0)
        self._round, self._open, self._arms = 0, False, [0]
        return self.effects

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments except the first and the seed, as plain JSON values."""
        found = {name: getattr(self, name) for name in self.SETTINGS}
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in found.items()}

    @property
    def rounds_played(self) -> int:
        """The number of completed rounds."""
        return self._round - self._open

    @classmethod
    def _made(cls, inside: Any, settings: Mapping[str, Any], seed: int) -> Self:
        """Call the constructor of the subclass."""
        build: Any = cls
        made: Self = build(inside, **settings, seed=seed)
        return made

    def fresh(self, seed: int, run: int = 0) -> Self:
        """Return an unplayed copy with the streams of (seed, run); the player itself must be unplayed."""
        self.check_unplayed()
        seed, run = checks.integer("seed", seed, low=0), checks.integer("run", run, low=0)
        base = isinstance(self.inside, KernelBandit)
        twin = self._made(self.inside.fresh() if base else copy.deepcopy(self.inside), self.settings, seed)
        twin._begin_run(self, seed, run)
        return twin

    def check_unplayed(self) -> None:
        """Raise an error if the player has been asked, or if its base algorithm, one in kernel form, has learned."""
        if self._round:
            raise InvalidArgument(f"player must be unplayed to be copied, but it is in round {self._round}")
        if isinstance(self.inside, KernelBandit):
            self.inside.check_unplayed(" for its player to be copied")

    def _begin_run(self, template: Self, seed: int, run: int) -> None:
        """Set the random streams of a run; everything else is as in the template."""
        raise NotImplementedError

    def _tell_error(self, extra: tuple[object, ...] = (), totals: Sequence[float | None] = ()) -> Exception:
        """Return the error for a `tell` with more than the total, without an `ask`, or with too few or many totals."""
        if extra:
            return TypeError("tell takes the total alone, as in tell(0.3): the player knows which arm it played")
        if not self._open:
            return OutOfTurn("tell must follow ask, but no round is open")
        rule = f"totals must be {len(self._arms)}, one per unit"
        return InvalidTotal(f"{rule}, but got {len(totals)}: {checks.shown(totals)}")

    def state(self) -> dict[str, Any]:
        """Return the state in plain JSON types, from which `aftereffect.restore` continues bit for bit."""
        own = self.unsealed()
        return saved.seal(own["kind"], own if isinstance(self.inside, int) else own | {"inside": self.inside.state()})

    def unsealed(self) -> dict[str, Any]:
        """Return the state without digests, to be saved as a part of another."""
        inside = self.inside
        if not isinstance(inside, int) and not hasattr(inside, "state"):
            raise InvalidArgument(f"bandit must have a method state() to be saved, but got {inside!r}")
        return {
            "kind": type(self).__name__,
            "version": saved.VERSION,
            "inside": inside if isinstance(inside, int) else getattr(inside, "unsealed", inside.state)(),
            "settings": {name: copy.deepcopy(value) for name, value in self.settings.items()},
            "seed": f"{self.seed:x}",
            "round": self._round,
            "open": self._open,
            "arm": self._arms[0],
            **self._saved(),
        }

    def _saved(self) -> dict[str, Any]:
        """Return the fields OWN_SAVED of a saved state."""
        raise NotImplementedError

    @classmethod
    def from_state(cls, state: Mapping[str, Any], inside: Any) -> Self:
        """Return the player saved by `state()`; inside: the number of arms, or the base algorithm already restored."""
        later = [name for name in cls.LATER_SAVED if name in state]
        fields = saved.unseal(state, cls.__name__, (*cls.SAVED, *cls.OWN_SAVED, *later))
        try:
            player = cls._made(inside, fields["settings"], saved.whole_number("seed", fields["seed"]))
        except TypeError:
            raise InvalidState(
                f"settings must be the arguments of {cls.__name__}, but got {checks.shown(fields['settings'])}"
            ) from None
        load(player, ("round", "open"), fields)
        player._arms = player._valid_arms([fields["arm"]])
        player._resume(fields)
        return player

    def _resume(self, fields: Mapping[str, Any]) -> None:
        """Load the fields OWN_SAVED of a saved state."""
        raise NotImplementedError

    def _valid_arms(self, arms: Any) -> list[int]:
        """Return a list of one or more arms, after checks."""
        given = arms if isinstance(arms, list) and arms else [arms]
        return [checks.integer("arms", arm, low=0, high=self.n_arms - 1) for arm in given]

    def __repr__(self) -> str:
        shown = {name: value for name, value in self.settings.items() if limits.USUAL.get(name) != value}
        first = f"n_arms={self.inside}" if isinstance(self.inside, int) else repr(self.inside)
        named = "".join(f", {name}={value!r}" for name, value in shown.items())
        return f"{type(self).__name__}({first}{named}, seed={self.seed})"


class AnonymousPlayer(BasePlayer):
    """A player that is told totals: of one unit, or of several that share it and are asked and told together."""

    COMMON = (*BasePlayer.COMMON, "out_of_range")
    # Whether the latest `ask` drew new arms.
    _drawn: Any

    @property
    def n_units(self) -> int:
        """M, the number of units that share the player (see `share`)."""
        return len(self._arms)

    def share(self, n_units: int) -> None:
        """Let `n_units` units share this player, which must be unplayed; then use `ask_units` and `tell_units`."""
        n_units = checks.integer("n_units", n_units, low=1)
        if self._round:
            raise InvalidArgument(f"player must be unplayed to be shared by units, but it is in round {self._round}")
        self._set_units(n_units)

    def _set_units(self, n_units: int) -> None:
        """Prepare for so many units, before round 1."""
        raise InvalidArgument(f"player must be one that several units can share, but got {self!r}")

    def ask(self) -> int:
        """Return the arm to play in this round; the same until `tell`."""
        raise NotImplementedError

    def ask_units(self) -> list[int]:
        """Return the arm of each unit in this round; the same until `tell_units`."""
        self.ask()
        return self._arms.copy()

    def tell(self, total: float | None, *extra: Never) -> Round:
        """Report the total of the open round (None: missing) and end the round."""
        if extra or not self._open or len(self._arms) != 1:
            raise self._tell_error(extra, [total])
        fed: list[float | None] = []
        measured = self._tell_all([total], fed)
        return Round(self._round, self._arms[0], self._drawn, measured > 0, fed[0])

    def tell_units(self, totals: Sequence[float | None]) -> PanelRound:
        """Report the total of each unit (None: missing) and end the round."""
        if not self._open or len(totals) != len(self._arms):
            raise self._tell_error((), totals)
        fed: list[float | None] = []
        try:
            measured = self._tell_all(totals, fed)
        except InvalidTotal as error:
            raise InvalidTotal(f"totals[{len(fed)}]: {error}") from None
        return PanelRound(self._round, self._arms.copy(), self._drawn, measured > 0, fed, measured)

    def _unit_arms(self, arms: Any) -> list[int]:
        """Return these arms, one of each unit, if they can be played."""
        given = list(arms) if isinstance(arms, Iterable) else []
        if len(given) != self.n_units:
            raise InvalidArgument(f"arms must be {self.n_units}, one per unit, but got {checks.shown(arms)}")
        return [checks.integer("arm", arm, low=0, high=self.n_arms - 1) for arm in given]

    def _tell_all(self, totals: Sequence[float | None], fed: list[float | None]) -> int:
        """End the round of all units, and append what each feeds; return how many rounds were learned from."""
        raise NotImplementedError


class _InKernelForm(BasePlayer):
    """A player whose kernel is selected by the type of its parameters, a NamedTuple.

    The state of the kernel must not contain infinities, which JSON cannot represent.
    """

    OWN_SAVED: tuple[str, ...] = ("streams", "numbers")
    # The function to tell, and arguments of the types that it takes last.
    TELL: tuple[Any, tuple[float, ...]]

    def __init__(self, inside: Any, params: Any) -> None:
        base = isinstance(inside, KernelBandit)
        self.n_arms = checks.integer("n_arms", inside.n_arms if base else inside, low=2)
        self.inside = inside if base else self.n_arms
        self.tuned_horizon = getattr(self, "horizon", None)
        self._params = params
        self._size: int = kernel.PLAYERS[type(params)].size(params, self.n_arms)
        self._streams = random.streams(self.seed, 0, 1)[0]

    # Functions of the kernel are compiled on first use, as engines need none of them.

    @cached_property
    def _numbers(self) -> FloatState:
        numbers = np.zeros(self._size)
        kernel.call(kernel.player_begin, self._params, self.n_arms, numbers)
        return numbers

    @cached_property
    def _ask(self) -> Callable[..., Any]:
        return kernel.entry(kernel.player_ask, self._params, self.n_arms, self._numbers, self._streams)

    @cached_property
    def _tell(self) -> Callable[..., Any]:
        return kernel.entry(self.TELL[0], self._params, self.n_arms, self._numbers, self._streams, *self.TELL[1])

    _drawn: Any = number(DREW, "Whether the latest `ask` drew a new arm.", bool)

    @property
    def _kept(self) -> int:
        """How many of the numbers are saved; the others follow from what else is saved."""
        return self._size

    def ask(self) -> int:
        """Return the arm to play in this round; the same until `tell`."""
        if not self._open:
            ask, at = self._ask, (self._params, self.n_arms, self._numbers, self._streams)
            arms: list[int] = [ask(*at) for _ in self._arms]
            self._arms = arms
            self._round += 1
            self._open = True
        return self._arms[0]

    def kernel(self) -> Any:
        """Return the player in kernel form."""
        return self._params

    def _begin_run(self, template: Self, seed: int, run: int) -> None:
        self._streams[:] = random.streams(seed, run, 1)[0]

    def _saved(self) -> dict[str, Any]:
        # JSON has no NaN; None replaces it.
        numbers = [None if number != number else number for number in self._numbers[: self._kept].tolist()]
        return {"streams": saved.words_to_hex(self._streams.ravel()), "numbers": numbers}

    def _resume(self, fields: Mapping[str, Any]) -> None:
        numbers = fields["numbers"]
        if isinstance(numbers, list):
            numbers = [math.nan if number is None else number for number in numbers]
        self._numbers[: self._kept] = saved.numbers("numbers", numbers, self._kept)
        self._streams[:] = saved.hex_to_words("streams", fields["streams"], 8).reshape(2, 4)

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle and copy through the saved state, because compiled code cannot be pickled.
        return type(self).from_state, (self.state(), self.inside)


class KernelPlayer(_InKernelForm, AnonymousPlayer):
    """A player under anonymous feedback in kernel form.

    A subclass's constructor checks its own settings and stores each as an attribute of its name, calls `limits` with
    the arguments common to all players, and then `super().__init__` with the kernel's parameters. A missing total is
    NaN in the kernel.

    If the parameters have a field `n_units`, several units can share the player: in each round the kernel is asked once
    for each of them, in their order, then told once for each.
    """

    LATER_SAVED = ("arms",)
    _shared = False
    TELL = limits.tell_total, (0, 0.0, 0)

    def limits(self, parts: int | None, **common: Unpack[Common]) -> Limits:
        """Return the limits of a total to which `parts` actions contribute; None: as many as rounds so far."""
        self._parts = parts
        return limits.limits_of(self.init_common(**common), parts, self.out_of_range)

    def _tell_all(self, totals: Sequence[float | None], fed: list[float | None]) -> int:
        numbers, learned = self._numbers, False
        tell, at, before = self._tell, (self._params, self.n_arms, numbers, self._streams), numbers.copy()
        try:
            for arm, total in zip(self._arms, totals, strict=True):
                value = math.nan if total is None else checks.total(total)
                told = tell(*at, arm, value, self._round)
                if told < 0:
                    raise InvalidTotal(f"{self.refusal()}, but got {value!r}")
                learned = learned or told > 0
                loss = float(numbers[FED])
                fed.append(None if loss != loss else loss)
        except InvalidTotal:
            numbers[:] = before
            raise
        self._open = False
        return int(learned)

    def _set_units(self, n_units: int) -> None:
        if "n_units" not in self._params._fields:
            super()._set_units(n_units)
        model = {"model": self._params.model._replace(n_units=n_units)} if "model" in self._params._fields else {}
        self._params = self._params._replace(n_units=n_units, **model)
        self._size = kernel.PLAYERS[type(self._params)].size(self._params, self.n_arms)
        self._arms, self._shared = [0] * n_units, True
        for name in ("_numbers", "_ask", "_tell"):
            self.__dict__.pop(name, None)

    def _saved(self) -> dict[str, Any]:
        return super()._saved() | ({"arm": 0, "arms": self._arms.copy()} if self._shared else {})

    def _resume(self, fields: Mapping[str, Any]) -> None:
        if "arms" in fields:
            arms = self._valid_arms(fields["arms"])
            self._set_units(len(arms))
            self._arms = arms
        super()._resume(fields)

    def refusal(self) -> str:
        """Return the rule for a total, for error messages."""
        return limits.total_rule(self.effects, self._parts, self._round)


class LabelledKernelPlayer(_InKernelForm):
    """A player under labelled feedback in kernel form, whose parameters have a field `span`.

    The losses reported in a round are passed to the kernel in ascending order of the rounds they belong to. A lost
    report is passed as NaN, so that it can discard the play. `max_delay` is the maximal number of rounds between
    a play and its report, for which the kernel has memory; None if the kernel stores nothing per play.
    """

    OWN_SAVED = (*_InKernelForm.OWN_SAVED, "outstanding")
    TELL = kernel.player_tell, (0, 0, 0.0)

    max_delay: int | None = None

    def __init__(self, inside: Any, params: Any) -> None:
        super().__init__(inside, params)
        # The arms of the plays not yet reported, by round, in ascending order.
        self._outstanding: dict[int, int] = {}

    @property
    def outstanding(self) -> tuple[int, ...]:
        """The rounds, ascending, whose losses have not been reported."""
        return tuple(self._outstanding)

    def ask(self) -> int:
        """Return the arm to play in this round; the same until `tell`."""
        arm = super().ask()
        self._outstanding[self._round] = arm
        return arm

    def tell(self, arrivals: Iterable[Arrival]) -> LabelledRound:
        """Report the (round, loss) pairs that became known in this round (loss None: lost) and end the round."""
        if not self._open:
            raise self._tell_error()
        reports = self._checked(arrivals)
        updates = 0
        for played in sorted(reports):
            arm = self._outstanding.pop(played)
            at = (self._params, self.n_arms, self._numbers, self._streams)
            updates += self._tell(*at, played, arm, reports[played])
        self._open = False
        fed = float(self._numbers[FED])
        return LabelledRound(self._round, self._arms[0], self._drawn, updates, None if fed != fed else fed)

    def _checked(self, arrivals: Iterable[Arrival]) -> dict[int, float]:
        """Return the losses by round (NaN: lost) after checking all of them."""
        least, most = effects.stretch_bounds(self.effects, 0, 1)
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
                reports[played] = math.nan if loss is None else checks.real("loss", loss, low=least, high=most)
            except InvalidArgument as error:
                raise InvalidTotal(f"{error}, in the report of round {played}") from None
        if self.max_delay is not None:
            late = self._round - self.max_delay
            if late in self._outstanding and late not in reports:
                raise OutOfTurn(
                    f"arrivals must report each play within max_delay={self.max_delay} rounds (None: lost), "
                    f"but at the end of round {self._round} that of round {late} is missing"
                )
        return reports

    def _saved(self) -> dict[str, Any]:
        return super()._saved() | {"outstanding": [[played, arm] for played, arm in self._outstanding.items()]}

    def _resume(self, fields: Mapping[str, Any]) -> None:
        super()._resume(fields)
        try:
            self._outstanding = {int(played): int(arm) for played, arm in fields["outstanding"]}
        except (TypeError, ValueError):
            raise InvalidState(
                f"outstanding must be pairs of round and arm, but got {checks.shown(fields['outstanding'])}"
            ) from None


class BanditPlayer(AnonymousPlayer):
    """A player with any Bandit as its base. The player updates the bandit; do not use it elsewhere."""


    def __init__(self, bandit: Bandit, **common: Unpack[Common]) -> None:
        if isinstance(bandit, type):
            raise InvalidArgument(
                f"bandit must be an object, not a class (call it first), but got {checks.shown(bandit)}"
            )
        needed = () if isinstance(bandit, KernelBandit) else ("n_arms", "probabilities", "update")
        if missing := [name for name in needed if not hasattr(bandit, name)]:
            raise InvalidArgument(
                f"bandit must have the attributes {', '.join(needed)} (see aftereffect.Bandit), "
                f"but got {checks.shown(bandit)}, without {', '.join(missing)}"
            )
        if id(bandit) in OWNERS:
            raise InvalidArgument(
                f"bandit must be a new one for each player, which updates it, but {bandit!r} is that of another player"
            )
        self.inside = bandit
        self.bandit: Any = bandit
        # The number of rounds for which the bandit is tuned, if that is known.
        self.tuned_horizon: int | None = None
        self.n_arms = checks.integer("bandit.n_arms", bandit.n_arms, low=2)
        self.init_common(**common)
        # Seeded on first use: a restored player has another one.
        self._arm_stream: WordState | None = None

    def _arm_words(self) -> WordState:
        """Return a copy of the stream from which arms are drawn."""
        return random.stream(self.seed, 0, random.ARMS) if self._arm_stream is None else self._arm_stream.copy()

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """p_t: the distribution from which the current arm was drawn or, after an update, the next will be."""
        return np.array(self.bandit.probabilities, dtype=np.float64)

    def _begin_run(self, template: Self, seed: int, run: int) -> None:
        self._arm_stream = random.stream(seed, run, random.ARMS)

    def _saved(self) -> dict[str, Any]:
        return {"arm_stream": saved.words_to_hex(self._arm_words())}

    def _resume(self, fields: Mapping[str, Any]) -> None:
        self._arm_stream = saved.hex_to_words("arm_stream", fields["arm_stream"], 4)


def load(player: object, names: Iterable[str], fields: Mapping[str, Any]) -> None:
    """Set the private attributes `names` of a player from saved fields; each must keep its type."""
    for name in names:
        wanted = type(getattr(player, f"_{name}"))
        if type(fields[name]) is not wanted:
            raise InvalidState(f"{name} must be of type {wanted.__name__}, but got {checks.shown(fields[name])}")
        setattr(player, f"_{name}", fields[name])


# Base algorithms.


def tuned_base(base: str, n_arms: int, updates: int) -> TsallisFTRL | Exp3:
    """Return Algorithm 2 ("tsallis", Theorem 6) or Exp3 ("exp3") at its best rate for N = `updates`.

    The rates are √(N/2) and √(2 ln K/(KN)). For N = 0 the rate does not matter.
    """
    checks.choice("base", base, ("tsallis", "exp3"))
    n_arms = checks.integer("n_arms", n_arms, low=2)
    if base == "tsallis":
        return TsallisFTRL(n_arms, learning_rate=math.sqrt(updates / 2))
    return Exp3(n_arms, learning_rate=math.sqrt(2 * math.log(n_arms) / (n_arms * max(updates, 1))))


def draw_from(q: Any, n_arms: int, rng: WordState) -> int:
    """Draw an arm from a distribution with the next uniform number of a stream."""
    return random.scan(q, n_arms, random.uniform(rng))


def draw_arm(bandit: Bandit, rng: WordState) -> int:
    """Draw an arm from a base algorithm's distribution; an invalid distribution raises an error."""
    if isinstance(bandit, KernelBandit):
        return bandit.draw(rng)
    return int(kernel.compiled(draw_from)(checked_distribution(bandit), bandit.n_arms, rng))


def feed(bandit: Any, arms: list[int], losses: Sequence[float | None]) -> None:
    """Feed a base algorithm the losses in [0, 1] of one or several units that drew arms from the same distribution."""
    checked = not isinstance(bandit, KernelBandit)
    if len(arms) == 1:
        (bandit.update if checked else bandit.learn)(arms[0], losses[0])
    else:
        (bandit.update_many if checked else bandit.learn_many)(arms, losses)
