"""A player that learns from every total by the lag model (`lags/kernels.py`), and plans what to try.

    round        1 2 3 4 5 6 7 8 9 ...
    plays        2 0 0 1 1 1 0 0 0           whenever a hold ends, it plans again
    learns       ^ ^ ^ ^ ^ ^ ^ ^ ^           from every total

With one unit it compares plans by simulation in its own model: random sequences of holds, short and long, of 6, 16, 40
or 90 rounds, with arms that may be best. A plan is worth what better knowledge brings in the remaining rounds, less
what it costs to play other arms than the best. The player takes the first hold of the best plan, or the best arm if no
plan is worth its cost. With several units each draws arms by the probability that they are best, with a variance
reduced to a seventh: units try different arms anyway.

It assumes that effects add up and follow the same curve each time. Three guards watch that: rounds count less as they
get older; predictions that fail make the model forget; and if effects seem to wear off while an arm is held, holds end
after six rounds, and, if that is clear, all arms take turns.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Never

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import checks, kernel
from aftereffect.core.errors import InvalidArgument, InvalidState, InvalidTotal, OutOfTurn
from aftereffect.core.kernel import DREW, OWN, FloatState, WordState, helper, routine
from aftereffect.core.random import ARMS, uniform
from aftereffect.core.text import counted
from aftereffect.lags import kernels as lags
from aftereffect.lags.kernels import JUMP, JUMP_VARIANCE, KEEP, NOISES, LagParams
from aftereffect.lags.model import LARGEST, LagModel, checked_arms, checked_params, checked_total
from aftereffect.players.base import KernelPlayer
from aftereffect.players.limits import REFUSED, Limits, usable_total
from aftereffect.players.protocol import PanelRound, Round

LENGTHS = (6, 16, 40, 90)
"""The lengths of plans, in rounds."""
MEAN_HOLDS = (1.5, 4.0, 10.0)
"""The mean holds of plans."""
PLANS = 6
"""The number of plans of each length."""
LONGEST, LONGEST_PLANNED = 8, 24
"""The longest hold played, and in a plan, in rounds."""
LEAST_LEFT = 180.0
"""If no horizon is known, the remaining rounds are as many as those played, and at least this many."""
TEMPER, FLOOR = 0.35, 0.001
"""Plans draw arms in proportion to (the probability of being best + FLOOR)^TEMPER."""
SHRINK, MEAN_HOLD = 0.15, 2.0
"""With several units: the factor of the variance, and the mean hold."""
SUSPECT, BREAK = -1.0, 6.0
"""The test of age from which on holds are short, in standard deviations, and the longest hold then."""

# state, after what every player has: how often it was asked and told, whether arms take turns, the test of age, the
# expected loss of settling; then hold and arm of each unit, what `lags.judge` writes, the model, and scratch.
ASKED, TOLD, TURNS, AGE_TEST, LOSS, UNITS = OWN, OWN + 1, OWN + 2, OWN + 3, OWN + 4, OWN + 5


class LagPlayerParams(NamedTuple):
    """horizon: the number of rounds to be played, 0 if unknown."""

    model: LagParams
    horizon: int
    limits: Limits
    n_units: int


@helper
def judgement_at(params: LagPlayerParams) -> int:
    """Return where the judgement begins."""
    return UNITS + 2 * params.n_units


@helper
def model_at(params: LagPlayerParams, n_arms: int) -> int:
    """Return where the state of the model begins."""
    return int(judgement_at(params) + lags.judgement_size(n_arms))


def size(params: LagPlayerParams, n_arms: int) -> int:
    """Return the length of the state; the scratch holds a filter, the latest arms, a covariance, weights and a plan."""
    model = params.model
    n = lags.width(model, n_arms)
    scratch = lags.filter_size(n) + model.max_lag + 2 + n_arms * n_arms + 2 * n_arms + LENGTHS[-1]
    return int(model_at(params, n_arms) + lags.size(model, n_arms) + scratch)


def begin(params: LagPlayerParams, n_arms: int, state: FloatState) -> None:
    """Write the state before round 1."""
    lags.begin(params.model, n_arms, state[model_at(params, n_arms) :])


def ask(params: LagPlayerParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Return the arm of the next unit; judge what is known if a hold has ended."""
    unit = int(state[ASKED]) % params.n_units
    state[ASKED] += 1.0
    state[DREW] = 0.0
    holds = state[UNITS:]
    if unit == 0:
        due = False
        for u in range(params.n_units):
            due = due or holds[2 * u] <= 0.0
        if due:
            judge(params, n_arms, state)
    if holds[2 * unit] <= 0.0:
        state[DREW] = 1.0
        choose(params, n_arms, state, rng, unit)
    holds[2 * unit] -= 1.0
    return int(holds[2 * unit + 1])


@helper
def judge(params: LagPlayerParams, n_arms: int, state: FloatState) -> None:
    """Judge the arms, and whether effects wear off while an arm is held."""
    model = state[model_at(params, n_arms) :]
    work = state[judgement_at(params) :]
    state[LOSS] = lags.judge(params.model, n_arms, model, work)
    state[AGE_TEST] = work[lags.judgement_size(n_arms) - 1]
    state[TURNS] = lags.still_tiring(state[AGE_TEST], state[TURNS])


@routine
def choose(params: LagPlayerParams, n_arms: int, state: FloatState, rng: WordState, unit: int) -> None:
    """Choose arm and hold of a unit."""
    mine = state[UNITS + 2 * unit :]
    work = state[judgement_at(params) :]
    t = int(state[ASKED] - 1.0) // params.n_units
    past = state[model_at(params, n_arms) + lags.history_at(params.model, n_arms, unit) :]
    held = past[params.model.max_lag + 1] + 1.0
    if state[TURNS] == 1.0:
        mine[0], mine[1] = 1.0, (t + unit) % n_arms
    elif params.n_units > 1:
        sample(params, n_arms, work, rng, mine)
    else:
        plan(params, n_arms, state, rng, t, mine)
    if t > 0 and state[AGE_TEST] < SUSPECT and state[TURNS] == 0.0 and held >= BREAK and mine[1] == past[0]:
        mine[0] = 1.0
        mine[1] = other(n_arms, work[2 * KEEP :], rng, int(past[0]))


@helper
def other(n_arms: int, p: FloatState, rng: WordState, arm: int) -> int:
    """Draw another arm than this one, as plans do."""
    whole = 0.0
    for i in range(n_arms):
        if i != arm:
            whole += lags.power(p[i] + FLOOR, TEMPER)
    threshold, found = whole * uniform(rng[ARMS]), -1
    for i in range(n_arms):
        if i != arm and (found < 0 or threshold > 0.0):
            found = i
            threshold -= lags.power(p[i] + FLOOR, TEMPER)
    return found


@helper
def drawn_hold(rng: WordState, mean: float, longest: int) -> int:
    """Draw a hold from a geometric distribution."""
    hold = 1
    while hold < longest and uniform(rng[ARMS]) > 1.0 / mean:
        hold += 1
    return hold


@routine
def sample(params: LagPlayerParams, n_arms: int, work: FloatState, rng: WordState, mine: FloatState) -> None:
    """Draw whole effects from their distribution, with a reduced variance, and take the arm of the largest."""
    means = work[2 * KEEP + n_arms :]
    root = means[n_arms + n_arms * n_arms :]
    scale, best, largest = math.sqrt(SHRINK), 0, -math.inf
    draw = int(uniform(rng[ARMS]) * (2 * lags.DRAWS))
    if draw >= lags.DRAWS:
        scale = -scale
    row = params.model.normals[draw % lags.DRAWS * n_arms :]
    for i in range(n_arms):
        value = means[i]
        for k in range(i + 1):
            value += scale * root[i * n_arms + k] * row[k]
        if value > largest:
            best, largest = i, value
    mine[0], mine[1] = drawn_hold(rng, MEAN_HOLD, LONGEST), best


@routine
def plan(params: LagPlayerParams, n_arms: int, state: FloatState, rng: WordState, t: int, mine: FloatState) -> None:
    """Take the first hold of the plan that is worth most; the best arm, if none is worth its cost."""
    work = state[judgement_at(params) :]
    p, means = work[2 * KEEP :], work[2 * KEEP + n_arms :]
    best = lags.largest(n_arms, means)
    left = params.horizon - t if params.horizon > 0 else max(float(t), LEAST_LEFT)
    most = 0.0
    mine[0], mine[1] = LONGEST, best
    n = lags.width(params.model, n_arms)
    copied = state[model_at(params, n_arms) + lags.size(params.model, n_arms) :]
    weights = copied[lags.filter_size(n) + params.model.max_lag + 2 + n_arms * n_arms :]
    arms = weights[2 * n_arms :]
    whole = 0.0
    for i in range(n_arms):
        weights[i] = lags.power(p[i] + FLOOR, TEMPER)
        whole += weights[i]
    for length in LENGTHS:
        if length < left:
            for k in range(PLANS):
                hold = MEAN_HOLDS[k % len(MEAN_HOLDS)]
                cost = draw_plan(n_arms, length, hold, weights, whole, means, best, rng, arms)
                gain = (left - length) * plan_gain(params, n_arms, state, length, copied, arms) - cost
                if gain > most:
                    most = gain
                    mine[0], mine[1] = first_hold(length, arms), arms[0]


@helper
def first_hold(length: int, arms: FloatState) -> int:
    """Return for how many rounds a plan keeps its first arm, at most the longest hold."""
    hold = 1
    while hold < length and hold < LONGEST and arms[hold] == arms[0]:
        hold += 1
    return hold


@routine
def draw_plan(
    n_arms: int,
    length: int,
    mean: float,
    weights: FloatState,
    whole: float,
    means: FloatState,
    best: int,
    rng: WordState,
    arms: FloatState,
) -> float:
    """Write the arms of a random plan, and return its cost against playing the best arm."""
    place, cost = 0, 0.0
    while place < length:
        threshold, arm = whole * uniform(rng[ARMS]), 0
        while arm < n_arms - 1 and threshold > weights[arm]:
            threshold -= weights[arm]
            arm += 1
        for _ in range(min(drawn_hold(rng, mean, LONGEST_PLANNED), length - place)):
            arms[place] = arm
            cost += means[best] - means[arm]
            place += 1
    return cost


@routine
def plan_gain(
    params: LagPlayerParams, n_arms: int, state: FloatState, length: int, copied: FloatState, arms: FloatState
) -> float:
    """Return by how much the effect of the best arm is expected to grow, per round, with what a plan would show.

    copied: the scratch, which begins with a copy of the filter and of the latest arms.
    """
    model = params.model
    numbers = state[model_at(params, n_arms) :]
    work = state[judgement_at(params) :]
    n, member = lags.width(model, n_arms), int(work[0])
    k = member // (len(model.logs) * len(model.scales))
    rho, jumps = NOISES[k]
    # Not the rounds asked for: others may have been learned, such as pauses, and a season goes on in them.
    t = int(numbers[lags.ROUNDS])
    kalman, past = copied, copied[lags.filter_size(n) :]
    now, before = numbers[lags.filter_at(model, n_arms, k, 0) :], numbers[lags.history_at(model, n_arms, 0) :]
    for i in range(lags.filter_size(n)):
        kalman[i] = now[i]
    for i in range(model.max_lag + 2):
        past[i] = before[i]
    row = numbers[lags.scratch_at(model, n_arms) :]
    white = row[n + 1 :]
    factor = white[n + 1 :]
    later = factor[n * n :]
    rows = later[n * n + n + n_arms * n :]
    lags.precision(model, n_arms, numbers, member, later)
    for place in range(length):
        lags.push(model, past, int(arms[place]))
        lags.regressors(model, n_arms, t + place, past, numbers[lags.columns_at(model, n_arms) :], row)
        row[n] = 0.0
        if lags.filtered(kalman, n, rho, row, white) > 0.0:
            for j in range(n - 1):
                if white[j] != 0.0:
                    for i in range(j, n - 1):
                        later[j * n + i] += white[j] * white[i]
        if jumps > 0.0:
            kalman[0] += JUMP * JUMP_VARIANCE
    lags.cholesky(later, n)
    means = work[2 * KEEP + n_arms :]
    covariance = means[n_arms:]
    root = covariance[n_arms * n_arms :]
    learned = copied[lags.filter_size(n) + model.max_lag + 2 :]
    lags.effect_covariance(model, n_arms, later, rows, learned)
    for i in range(n_arms * n_arms):
        learned[i] = covariance[i] - learned[i]
    lags.square_root(n_arms, learned, root)
    unused = copied[lags.filter_size(n) + model.max_lag + 2 + n_arms * n_arms + n_arms :]
    expected = lags.best_arms(model, n_arms, lags.PLAN_DRAWS, means, root, 1.0, unused, 0.0)
    return float(expected - means[lags.largest(n_arms, means)])


def tell(params: LagPlayerParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Let the model hear the total of the next unit; no base algorithm is fed."""
    unit = int(state[TOLD]) % params.n_units
    state[TOLD] += 1.0
    lags.hear(params.model, n_arms, state[model_at(params, n_arms) :], unit, arm, total)
    return 0


kernel.register(LagPlayerParams, kernel.PlayerKernel(size, begin, ask, tell))


@helper
def learn(
    params: LagPlayerParams, n_arms: int, state: FloatState, arms: FloatState, totals: FloatState, again: bool
) -> None:
    """Let the model hear rounds: the arm (−1: none) and the total (NaN: missing) of every unit, in order.

    again: from the beginning.
    """
    model = state[model_at(params, n_arms) :]
    if again:
        lags.begin(params.model, n_arms, model)
    for i in range(arms.shape[0]):
        lags.hear(params.model, n_arms, model, i % params.n_units, int(arms[i]), totals[i])


class LagPlayer(KernelPlayer):
    """Learns from every total by the lag model, and needs to know neither how long effects last nor their range.

    max_lag: the longest lag, in rounds; it may be generous. season: a period of the totals, in rounds (7 for days).
    horizon: the number of rounds to be played, if that is known: towards the end it tries less.
    low, high: bounds on a *total*; others are refused. By default totals are refused beyond ±1e100 only.
    direction, seed, out_of_range: as for the wrapper.

    It assumes that effects add up and follow the same curve each time, and has no guarantee if they do not;
    `default_player` has one. `model` is what it has learned, and says what speaks against its assumptions.
    `ae.Panel(LagPlayer(...), n_units=M)` lets M units learn together.

    >>> player = LagPlayer(n_arms=2, direction="maximize", seed=7)
    >>> for _ in range(60):
    ...     arm = player.ask()
    ...     played = player.tell(10.0 + arm)             # arm 1 brings 1 more, at once
    >>> arm, player.model.best.round(2).tolist()
    (1, [0.0, 1.0])

    Reference: docs/theory/lags.md.
    """

    OWN_SAVED = (*KernelPlayer.OWN_SAVED, "record")
    low: Any
    high: Any

    def __init__(
        self,
        n_arms: int,
        max_lag: int = 14,
        season: int | None = None,
        horizon: int | None = None,
        direction: str = "minimize",
        low: float | None = None,
        high: float | None = None,
        seed: int | None = None,
        *,
        out_of_range: str = "raise",
    ) -> None:
        least = -LARGEST if low is None else checks.real("low", low, low=-LARGEST, high=LARGEST)
        most = LARGEST if high is None else checks.real("high", high, above=least, high=LARGEST)
        rounds = 0 if horizon is None else checks.integer("horizon", horizon, low=1, high=2**53)
        model = checked_params(n_arms, max_lag, season, 0, direction, 1)
        limits = self.limits(1, direction=direction, low=least, high=most, seed=seed, out_of_range=out_of_range)
        self.low, self.high = low, high
        params = LagPlayerParams(model, rounds, limits._replace(least=least, most=most), 1)
        super().__init__(n_arms, params)
        self.max_lag, self.season, self.horizon = model.max_lag, season, horizon
        self._record: list[tuple[list[int], list[float]]] = []

    def tell(self, total: float | None, *extra: Never, arm: int | None = None) -> Round:
        """Report the total of the open round (None: missing), and the arm if another one was really played."""
        with self._really_played(None if arm is None else [arm]):
            return super().tell(total, *extra)

    def tell_units(self, totals: Sequence[float | None], arms: Sequence[int] | None = None) -> PanelRound:
        """Report the total of each unit (None: missing), and the arms if others were really played; end the round."""
        with self._really_played(arms):
            return super().tell_units(totals)

    @contextmanager
    def _really_played(self, arms: Sequence[int] | None) -> Iterator[None]:
        """Put these arms in the place of those asked for, unless the round is not ended."""
        asked = self._arms
        if arms is not None:
            self._arms = self._unit_arms(arms)
        try:
            yield
        except Exception:
            self._arms = asked
            raise

    def _tell_all(self, totals: Sequence[float | None], fed: list[float | None]) -> int:
        measured = super()._tell_all(totals, fed)
        self._record.append((self._arms.copy(), [self._heard(total) for total in totals]))
        return measured

    def _heard(self, total: float | None) -> float:
        """Return a total as the model hears it: NaN if it is missing or void; raise InvalidTotal if it is refused."""
        value = math.nan if total is None else checks.total(total)
        used = usable_total(self._params.limits, self._round, value)
        if used == REFUSED:
            raise InvalidTotal(f"{self.refusal()}, but got {value!r}")
        return float(used)

    def check_unplayed(self) -> None:
        """Raise an error if the player has been asked, or has learned rounds, which a copy would not know."""
        super().check_unplayed()
        self._check_nothing_learned("copied")

    def _set_units(self, n_units: int) -> None:
        self._check_nothing_learned("shared by units")
        super()._set_units(n_units)

    def _check_nothing_learned(self, aim: str) -> None:
        if self._record:
            got = f"it has learned {counted(len(self._record), 'round')}"
            raise InvalidArgument(f"player must have learned nothing to be {aim}, but {got}")

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The probability that each arm is the best, as it was when an arm was last chosen; equal before that."""
        place = judgement_at(self._params) + 2 * KEEP
        found = np.array(self._numbers[place : place + self.n_arms])
        return found / found.sum() if found.sum() > 0.0 else np.full(self.n_arms, 1.0 / self.n_arms)

    def learn(self, arms: Sequence[Sequence[int]], totals: Sequence[Sequence[float | None]]) -> None:
        """Learn from rounds that were not asked for: with another player, or without an arm (-1), as in a pause.

        A total that is None or NaN is missing. The rounds count among those that `correct` corrects. Not while a round
        is open.
        """
        if self._open:
            raise OutOfTurn("tell must come before learn, but a round is open")
        rule = f"arms and totals must be rows of {self.n_units}, one per unit, for the same rounds"
        try:
            shapes = [len(row) for row in arms], [len(row) for row in totals]
        except TypeError:
            raise InvalidArgument(f"{rule}, but got {checks.shown(arms)} and {checks.shown(totals)}") from None
        if shapes != ([self.n_units] * len(arms),) * 2:
            raise InvalidArgument(f"{rule}, but got {checks.shown(arms)} and {checks.shown(totals)}")
        played = [checked_arms(row, self.n_arms) for row in arms]
        found = [[math.nan if total != total else self._heard(total) for total in row] for row in totals]
        self._record += list(zip(played, found, strict=True))
        self._learn_again()

    def correct(self, round: int, total: float | None, unit: int = 0) -> None:
        """Correct the total of a round, from 1, or report it late: what follows is learned again."""
        round = checks.integer("round", round, low=1, high=len(self._record))
        unit = checks.integer("unit", unit, low=0, high=self.n_units - 1)
        self._record[round - 1][1][unit] = self._heard(total)
        self._learn_again()

    def _learn_again(self) -> None:
        arms = np.array([played for played, _ in self._record], dtype=np.float64).ravel()
        totals = np.array([found for _, found in self._record], dtype=np.float64).ravel()
        kernel.call(learn, self._params, self.n_arms, self._numbers, arms, totals, True)

    @property
    def model(self) -> LagModel:
        """What has been learned, as a model of its own."""
        model = LagModel(self.n_arms, self.max_lag, self.season, self.n_units, direction=self.direction)
        if self._record:
            model.learn([arms for arms, _ in self._record], [totals for _, totals in self._record])
        return model

    def refusal(self) -> str:
        """Return the rule for a total, for error messages."""
        return f"total must lie in [{self._params.limits.least:g}, {self._params.limits.most:g}]"

    @property
    def _kept(self) -> int:
        # What the model has learned follows from the record.
        return model_at(self._params, self.n_arms)

    def _saved(self) -> dict[str, Any]:
        record = [[arms, [None if total != total else total for total in totals]] for arms, totals in self._record]
        return super()._saved() | {"record": record}

    def _resume(self, fields: Mapping[str, Any]) -> None:
        super()._resume(fields)
        record = fields["record"]
        try:
            self._record = [
                (checked_arms(arms, self.n_arms), [checked_total(total) for total in totals]) for arms, totals in record
            ]
            if {tuple(len(part) for part in row) for row in self._record} - {(self.n_units, self.n_units)}:
                raise ValueError
        except (TypeError, ValueError):
            raise InvalidState(f"record must be rounds of arms and totals, but got {checks.shown(record)}") from None
        self._learn_again()
