"""Advisers: they hear every round, and say which arms they would play.

The default player follows an adviser within a budget, and keeps its guarantee whatever the adviser does
(`players/wrapper/advised.py`). An adviser may use everything that has been heard, and anything known from elsewhere.
It must not know the player's future randomness: its coins, the length of the open block, its stream of arms.
"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.bandits.protocol import Bandit
from aftereffect.core import checks, effects, kernel, random, saved
from aftereffect.core.errors import InvalidArgument, InvalidState
from aftereffect.core.kernel import FloatState, IntState, WordState, helper
from aftereffect.lags import kernels as lags
from aftereffect.lags.model import LARGEST, checked_params
from aftereffect.players import lag_player
from aftereffect.players.lag_player import LagPlayerParams
from aftereffect.players.limits import limits_of

__all__ = ["Adviser", "KernelAdviser", "Lags", "Learner", "Opinion", "Setting"]


class Setting(NamedTuple):
    """What an adviser is told before round 1: the player's arguments of these names, and its number of units.

    >>> Setting(n_arms=3, n_units=1, max_delay=2, direction="maximize", low=0.0, high=5.0).effects
    Effects(lo=0.0, hi=5.0, maximize=True)
    """

    n_arms: int
    n_units: int
    max_delay: int
    direction: str
    low: float
    high: float

    @property
    def effects(self) -> effects.Effects:
        """The range of one action's effect."""
        return effects.effects(self.direction, self.low, self.high)


@runtime_checkable
class Adviser(Protocol):
    """Anything that proposes probabilities of the arms. A subclass needs `advise`, and `hear` unless it is deaf.

    If a method raises an error once the player plays, or what it returns is no distribution, arm or plain JSON value,
    the player goes on without it, and counts it. Errors of `begin` and `resume` refuse the player or the saved state.

    plays_opening: whether it chooses the arms of the rounds before the first block itself, by `play`.

    >>> class Person(Adviser):
    ...     def advise(self):
    ...         return [0.7, 0.2, 0.1]
    >>> from aftereffect import default_player
    >>> player = default_player(n_arms=3, max_delay=2, adviser=Person(), seed=7)
    >>> player.ask() in (0, 1, 2)
    True
    """

    plays_opening: bool = False

    def play(self, stream: WordState) -> Sequence[int] | None:
        """Return the arm of each unit in a round of the opening, before the first block; None: equally likely ones.

        stream: the player's stream of arms (`core/random.py`). It may draw from it here, but must not keep a copy.
        """
        return None

    def begin(self, setting: Setting) -> None:
        """Begin before round 1. Called once for every player or, if units share it, once more with their number."""
        return None

    def hear(self, arms: Sequence[int], totals: Sequence[float | None]) -> None:
        """Hear the arm and the total of each unit in a round; None: missing, or out of range and void."""
        return None

    def correct(self, round: int, total: float | None, unit: int = 0) -> None:
        """Hear that the total of an earlier round is another one, or known only now."""
        return None

    def advise(self) -> ArrayLike | None:
        """Return how probable it is that each arm is the best, up to a factor; None: no advice.

        The player multiplies that by what it would play without advice, so equal numbers change nothing.
        """
        return None

    def state(self) -> Any:
        """Return what has been learned, as plain JSON values; an adviser with nothing to save need not define it."""
        return None

    def resume(self, state: Any) -> None:
        """Continue from what `state` returned, unless that was None or failed; called after `begin`."""
        return None

    def kernel(self) -> Any:
        """Return the parameters of its kernel (`core.kernel.AdviserKernel`); None: it plays in the engine `loop`."""
        return None


class KernelAdviser(Adviser):
    """An adviser in kernel form. A subclass defines `form`, which returns the parameters for a setting.

    >>> isinstance(Opinion([0.7, 0.3]), KernelAdviser)        # so the engine `rounds` can play a player that it advises
    True
    """

    # The attributes that are arguments of the constructor.
    SETTINGS: tuple[str, ...] = ()

    def form(self, setting: Setting) -> Any:
        """Return the parameters of the kernel."""
        raise NotImplementedError

    def begin(self, setting: Setting) -> None:
        """Begin before round 1."""
        self._n_arms, self._n_units, self._params = setting.n_arms, setting.n_units, self.form(setting)
        self._numbers = np.zeros(kernel.ADVISERS[type(self._params)].size(self._params, setting.n_arms))
        self._run(kernel.adviser_begin)

    def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return kernel.call(function, self._params, self._n_arms, self._numbers, *arguments)

    def hear(self, arms: Sequence[int], totals: Sequence[float | None]) -> None:
        """Hear the arm and the total of each unit in a round."""
        self._run(hear_units, np.array(arms, np.int64), np.array(totals, np.float64))

    def advise(self) -> ArrayLike | None:
        """Return the probabilities of the arms for the next block; None: no advice."""
        p = np.zeros(self._n_arms)
        return p if self._run(kernel.adviser_advise, p) else None

    def play(self, stream: WordState) -> Sequence[int] | None:
        """Return the arm of each unit in a round of the opening."""
        words = np.zeros((2, 4), np.uint64)
        words[random.ARMS] = stream
        arms = [int(self._run(kernel.adviser_play, words)) for _ in range(self._n_units)]
        stream[:] = words[random.ARMS]
        return arms

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments, as plain JSON values."""
        return {name: getattr(self, name) for name in self.SETTINGS}

    def state(self) -> Any:
        """Return the settings and the numbers of the kernel."""
        return {"settings": self.settings, "numbers": self._numbers.tolist()}

    def resume(self, state: Any) -> None:
        """Load the numbers of the kernel."""
        self._numbers[:] = saved.numbers("adviser.numbers", state["numbers"], len(self._numbers))

    def kernel(self) -> Any:
        """Return the parameters of the kernel."""
        return self._params


def hear_units(params: Any, n_arms: int, state: FloatState, arms: IntState, totals: FloatState) -> None:
    """Tell an adviser the arms and totals of all units in a round."""
    for unit in range(arms.shape[0]):
        kernel.adviser_hear(params, n_arms, state, unit, arms[unit], totals[unit])


class OpinionParams(NamedTuple):
    """weights: the probabilities of the arms."""

    weights: FloatState


def opinion_size(params: OpinionParams, n_arms: int) -> int:
    """Return the length of the state: there is none."""
    return 0


def opinion_begin(params: OpinionParams, n_arms: int, state: FloatState) -> None:
    """Begin: nothing to write."""


def opinion_hear(params: OpinionParams, n_arms: int, state: FloatState, unit: int, arm: int, total: float) -> None:
    """Hear nothing."""


def opinion_advise(params: OpinionParams, n_arms: int, state: FloatState, p: FloatState) -> int:
    """Propose the same probabilities always."""
    for i in range(n_arms):
        p[i] = params.weights[i]
    return 1


kernel.register(OpinionParams, kernel.AdviserKernel(opinion_size, opinion_begin, opinion_hear, opinion_advise))


class Opinion(KernelAdviser):
    """A fixed opinion: of a person, or the posterior of another tool.

    probabilities: how probable it is that each arm is the best one, up to a factor. For an opinion that changes, write
        a subclass of Adviser whose `advise` returns the present one.

    >>> from aftereffect import default_player
    >>> player = default_player(n_arms=2, max_delay=2, adviser=Opinion([3.0, 1.0]), seed=7)
    >>> player.adviser.advise().tolist()
    [3.0, 1.0]
    """

    SETTINGS = ("probabilities",)

    def __init__(self, probabilities: ArrayLike) -> None:
        found = checks.array("probabilities", probabilities, shape=("any",))
        if found.min(initial=0.0) < 0.0 or not 0.0 < found.max(initial=0.0) <= LARGEST:
            rule = f"probabilities must be nonnegative, not all 0, and at most {LARGEST:g}"
            raise InvalidArgument(f"{rule}, but got {checks.shown(found.tolist())}")
        self.probabilities = found.tolist()

    def form(self, setting: Setting) -> OpinionParams:
        """Return the parameters of the kernel."""
        return OpinionParams(np.array(checks.array("probabilities", self.probabilities, shape=(setting.n_arms,))))


class LearnerParams(NamedTuple):
    """base: the parameters of the bandit. span, max_delay: how totals become losses in [0, 1]."""

    base: Any
    span: effects.Effects
    max_delay: int


def learner_size(params: LearnerParams, n_arms: int) -> int:
    """Return the length of the bandit's state."""
    return kernel.BANDITS[type(params.base)].size(n_arms)


def learner_begin(params: LearnerParams, n_arms: int, state: FloatState) -> None:
    """Write the bandit's initial state."""
    kernel.bandit_start(params.base, n_arms, state)


def learner_hear(params: LearnerParams, n_arms: int, state: FloatState, unit: int, arm: int, total: float) -> None:
    """Feed the bandit the total as a loss of the arm played in the same round."""
    if total == total:
        loss = effects.average_loss(params.span, params.max_delay + 1, total)
        kernel.bandit_update(params.base, n_arms, state, arm, loss)


def learner_advise(params: LearnerParams, n_arms: int, state: FloatState, p: FloatState) -> int:
    """Propose the bandit's own probabilities."""
    kernel.bandit_probabilities(params.base, n_arms, state, p)
    return 1


kernel.register(LearnerParams, kernel.AdviserKernel(learner_size, learner_begin, learner_hear, learner_advise))


class Learner(Adviser):
    """Any Bandit as an adviser: it is fed every total as a loss of that round's arm, and proposes what it would play.

    bandit: an unplayed bandit. It ignores that effects arrive late, which is right only for d = 0.

    >>> from aftereffect import UCB1, default_player
    >>> player = default_player(n_arms=2, max_delay=0, adviser=Learner(UCB1(2)), seed=7)
    >>> for _ in range(20):
    ...     played = player.tell(0.75 if player.ask() else 0.25)
    >>> player.adviser.advise().tolist()
    [1.0, 0.0]
    """

    def __init__(self, bandit: Bandit) -> None:
        if not isinstance(bandit, Bandit):
            raise InvalidArgument(f"bandit must be a Bandit, but got {checks.shown(bandit)}")
        self.bandit: Any = bandit

    def begin(self, setting: Setting) -> None:
        """Begin before round 1."""
        if self.bandit.n_arms != setting.n_arms:
            raise InvalidArgument(f"adviser must have n_arms = {setting.n_arms}, but got {self.bandit.n_arms}")
        if isinstance(self.bandit, KernelBandit):
            self.bandit.check_unplayed(" to advise from round 1 on")
        self._span, self._max_delay = setting.effects, setting.max_delay

    def hear(self, arms: Sequence[int], totals: Sequence[float | None]) -> None:
        """Feed the bandit the totals of a round."""
        for arm, total in zip(arms, totals, strict=True):
            if total is not None:
                loss = effects.average_loss(self._span, self._max_delay + 1, total)
                (self.bandit.learn if isinstance(self.bandit, KernelBandit) else self.bandit.update)(arm, loss)

    def advise(self) -> ArrayLike | None:
        """Return the bandit's probabilities."""
        return np.asarray(self.bandit.probabilities)

    def state(self) -> Any:
        """Return the bandit's state."""
        return self.bandit.state()

    def resume(self, state: Any) -> None:
        """Load the bandit's state."""
        self.bandit = self.bandit.from_state(state)

    def kernel(self) -> Any:
        """Return the parameters of the kernel; None if the bandit has none."""
        if not isinstance(self.bandit, KernelBandit):
            return None
        return LearnerParams(self.bandit.params, self._span, self._max_delay)


FIRST, SOME = 5.0, 1.02
"""The number of rounds before the first advice, and by which factor it must grow for the model to be asked again."""
WORN = -3.5
"""The test of age, in standard deviations, below which the model's assumption has failed: it advises nothing then."""
# The parameters of the lag adviser are those of the LagPlayer that chooses arms before the first block.
# state: the number of rounds at which to ask the model again, the latest advice, and the state of the LagPlayer, whose
# model hears every round.
AGAIN, ADVICE = 0, 1


@helper
def model_at(params: LagPlayerParams, n_arms: int) -> int:
    """Return where the state of the model begins."""
    return int(ADVICE + n_arms + lag_player.model_at(params, n_arms))


def lags_size(params: LagPlayerParams, n_arms: int) -> int:
    """Return the length of the state."""
    return ADVICE + n_arms + lag_player.size(params, n_arms)


def lags_begin(params: LagPlayerParams, n_arms: int, state: FloatState) -> None:
    """Write the state before round 1."""
    state[AGAIN] = FIRST
    kernel.player_begin(params, n_arms, state[ADVICE + n_arms :])


def lags_hear(params: LagPlayerParams, n_arms: int, state: FloatState, unit: int, arm: int, total: float) -> None:
    """Let the model hear."""
    lags.hear(params.model, n_arms, state[model_at(params, n_arms) :], unit, arm, total)


def lags_advise(params: LagPlayerParams, n_arms: int, state: FloatState, p: FloatState) -> int:
    """Propose the squared probability that each arm is best; the same for all if effects wear off while one is held."""
    model, work = state[model_at(params, n_arms) :], state[ADVICE + n_arms + lag_player.judgement_at(params) :]
    if model[lags.ROUNDS] < FIRST:
        return 0
    if model[lags.ROUNDS] >= state[AGAIN]:
        state[AGAIN] = SOME * model[lags.ROUNDS]
        lags.judge(params.model, n_arms, model, work)
        worn = work[lags.judgement_size(n_arms) - 1] < WORN
        for i in range(n_arms):
            best = work[2 * lags.KEEP + i]
            state[ADVICE + i] = 1.0 if worn else best * best
    for i in range(n_arms):
        p[i] = state[ADVICE + i]
    return 1


def lags_play(params: LagPlayerParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Choose the arm of the next unit as a LagPlayer does."""
    return kernel.player_ask(params, n_arms, state[ADVICE + n_arms :], rng)


kernel.register(LagPlayerParams, kernel.AdviserKernel(lags_size, lags_begin, lags_hear, lags_advise, lags_play))


class Lags(KernelAdviser):
    """The lag model (`aftereffect.LagModel`) as an adviser: it learns from every total.

    max_lag: the longest lag, by default max_delay and at least 14; 0 if max_delay is 0. season: a period of the totals,
        in rounds.

    It proposes the square of the probability that each arm is best, up to a factor: less doubt than it has, since the
    player adds exploration of its own (docs/theory/advice.md, section 9). In the opening it plans what to try, as a
    `LagPlayer` does. The older a round is, the less it counts, and where predictions fail the model forgets; if effects
    wear off while an arm is held, it advises nothing. What becomes known of a round after it has ended is not heard.

    >>> from aftereffect import default_player
    >>> player = default_player(n_arms=2, max_delay=7, adviser=Lags(season=7), low=0.0, high=50.0, seed=7)
    >>> player.opening                           # the rounds whose arms the model chooses
    342
    """

    plays_opening = True
    SETTINGS = ("max_lag", "season")

    def __init__(self, max_lag: int | None = None, season: int | None = None) -> None:
        self.max_lag = None if max_lag is None else checks.integer("max_lag", max_lag, low=0)
        self.season = None if season is None else checks.integer("season", season, low=2)

    def form(self, setting: Setting) -> LagPlayerParams:
        """Return the parameters of the kernel."""
        d = setting.max_delay
        longest = self.max_lag if self.max_lag is not None else max(d, 14) if d else 0
        sizes = setting.n_arms, longest, self.season, 0, setting.direction, setting.n_units
        limits = limits_of(setting.effects, setting.max_delay + 1, "void")
        return LagPlayerParams(checked_params(*sizes), 0, limits, setting.n_units)


class ToldLags(Lags):
    """The lag model as an adviser that is told what happened, by an experiment that knows more than the player.

    It does not hear what the player is told, which leaves out totals that may hold effects of something else, but the
    arms really played and all totals, pauses, corrections, and rounds of an earlier experiment. It learns when an arm
    is chosen, not before. Its state does not have the record, nor what was learned from it: after a restart the record
    is given once more (`recall`) when it is needed. Beyond `most` rounds it says nothing.
    """

    def __init__(self, season: int | None, most: int) -> None:
        super().__init__(season=season)
        self.most = most

    def begin(self, setting: Setting) -> None:
        """Begin before round 1."""
        super().begin(setting)
        self.rounds = self._learned = 0
        # The record, round by round and unit by unit; None if it is to be recalled.
        self._arms: array[float] | None = array("d")
        self._totals = array("d")

    @property
    def forgotten(self) -> bool:
        """Whether the record is to be recalled before arms are chosen."""
        return self._arms is None and self.rounds <= self.most

    @property
    def due(self) -> bool:
        """Whether a round of the opening needs the model: a hold has ended."""
        first = ADVICE + self._n_arms + lag_player.UNITS
        return bool((self._numbers[first : first + 2 * self._n_units : 2] <= 0.0).any())

    @property
    def probabilities(self) -> list[float]:
        """The probability that each arm is the best, as it was when an arm was last chosen; equal before that."""
        best = self._numbers[self._own - self._n_arms : self._own]
        return (best / best.sum() if best.sum() > 0.0 else np.full(self._n_arms, 1.0 / self._n_arms)).tolist()

    @property
    def _own(self) -> int:
        """Where what is saved ends: after the probabilities, with which the judgement begins."""
        return ADVICE + self._n_arms + lag_player.judgement_at(self._params) + 2 * lags.KEEP + self._n_arms

    def learn(self, arms: Sequence[Sequence[int]], totals: Sequence[Sequence[float | None]]) -> None:
        """Be told rounds: the arm (-1: none) and the total (None: missing) of every unit."""
        self.rounds += len(arms)
        if self.rounds > self.most:
            self.forget()
        elif self._arms is not None:
            self._arms.extend(arm for row in arms for arm in row)
            self._totals.extend(np.nan if total is None else total for row in totals for total in row)

    def relearn(self, round: int, total: float | None, unit: int) -> None:
        """Be told the correct total of a round, from 1, or that it is missing."""
        self._numbers[AGAIN] = FIRST
        self._learned = 0
        if self._arms is not None:
            self._totals[(round - 1) * self._n_units + unit] = np.nan if total is None else total

    def recall(self, arms: Sequence[Sequence[int]], totals: Sequence[Sequence[float | None]]) -> None:
        """Be told all rounds once more."""
        self.rounds, self._arms, self._totals = 0, array("d"), array("d")
        self.learn(arms, totals)

    def forget(self) -> None:
        """Drop the record, and what was learned from it, to save memory."""
        self._arms, self._totals, self._learned = None, array("d"), 0
        self._numbers = self._numbers[: self._own].copy()

    def _catch_up(self) -> bool:
        """Learn from the rounds told since the last time; return whether there is a model of so many."""
        if self.rounds > self.most:
            return False
        if self._arms is None:
            raise RuntimeError("the record must be recalled before arms are chosen")
        if len(self._numbers) == self._own:
            self._numbers = np.concatenate([self._numbers, np.zeros(lags_size(self._params, self._n_arms) - self._own)])
        first = self._learned * self._n_units
        arms, totals = np.array(self._arms[first:]), np.array(self._totals[first:])
        player = self._numbers[ADVICE + self._n_arms :]
        kernel.call(lag_player.learn, self._params, self._n_arms, player, arms, totals, self._learned == 0)
        self._learned = self.rounds
        return True

    def hear(self, arms: Sequence[int], totals: Sequence[float | None]) -> None:
        """Hear nothing: the experiment tells what happened."""

    def advise(self) -> Any:
        """Return the probabilities of the arms for the next block; None beyond the largest model."""
        return super().advise() if self._catch_up() else None

    def play(self, stream: WordState) -> Sequence[int] | None:
        """Return the arm of each unit in a round of the opening; None beyond the largest model."""
        return super().play(stream) if not self.due or self._catch_up() else None

    def state(self) -> Any:
        """Return what does not follow from the record."""
        return {"numbers": self._numbers[: self._own].tolist(), "rounds": self.rounds}

    def resume(self, state: Any) -> None:
        """Load what `state` returned; the record is to be recalled."""
        self._numbers = saved.numbers("adviser.numbers", state["numbers"], self._own)
        self.rounds = int(state["rounds"])
        self.forget()


NAMED: Mapping[str, Callable[[], Adviser]] = {"lags": Lags}
"""The advisers that have a name in `default_player` and in study files."""
SAVED: Mapping[str, Callable[..., Adviser]] = {kind.__name__: kind for kind in (Lags, Opinion)}
"""The advisers that can be restored from their settings."""


def make(adviser: Any) -> Adviser:
    """Return the adviser of this name, or the one that is given as an object."""
    if isinstance(adviser, str):
        return NAMED[checks.choice("adviser", adviser, NAMED)]()
    if isinstance(adviser, type):
        raise InvalidArgument(
            f"adviser must be an object, not a class (call it first), but got {checks.shown(adviser)}"
        )
    if not isinstance(adviser, Adviser):
        raise InvalidArgument(
            f"adviser must be None, one of {', '.join(NAMED)} or an object with the methods of "
            f"aftereffect.advisers.Adviser, but got {checks.shown(adviser)}"
        )
    return adviser


def restored(kind: str, state: Any) -> Adviser:
    """Return the unplayed adviser of a saved player."""
    if kind not in SAVED:
        raise InvalidState(f"adviser must be given for a player advised by a {kind}, but got None")
    return SAVED[kind](**state["settings"])
