"""The learner of an experiment: a panel of units around one player, built from the settings, and its block lengths.

    advised   `default_player`: MatchedTsallis, fed all coin-clean rounds of its blocks, advised by the lag model of all
              totals, which also chooses the arms of the first rounds. Nothing to tune, no horizon.
    model     `LagPlayer`: learns from every total; needs to know neither how long effects last nor their range.
    paper     `CompositeLossWrapper.tuned`: Algorithm 1 with the rates of Corollary 7 for the horizon (required).

A stored log is replayed with the learner built from its settings, and must give the same arms and numbers bit for bit.
So the player behind a name must never change: a better player gets a new name.
"""

from array import array
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from aftereffect import theory
from aftereffect.bandits.adaptive_tsallis import MatchedTsallis
from aftereffect.core import kernel, saved
from aftereffect.core.errors import AftereffectError, InvalidArgument
from aftereffect.core.kernel import WordState
from aftereffect.lags.kernels import KEEP
from aftereffect.players import lag_player
from aftereffect.players.advisers import ADVICE, AGAIN, FIRST, Lags, Setting, lags_learn
from aftereffect.players.default import Prior, default_player
from aftereffect.players.lag_player import LagPlayer
from aftereffect.players.registry import restore
from aftereffect.players.wrapper import certificate
from aftereffect.players.wrapper.advised import AdvisedWrapper
from aftereffect.players.wrapper.coin_clean import CoinCleanWrapper
from aftereffect.players.wrapper.panel import Panel
from aftereffect.players.wrapper.wrapper import BlockWrapper, CompositeLossWrapper
from aftereffect.service.settings import Design

FAR = 2**44
"""In rounds, more than any experiment has: a bound that is not informative by then is reported as never informative."""


class ToldLags(Lags):
    """The lag model as an adviser that an experiment tells what happened.

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
        self.decided = False

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
    def _size(self) -> int:
        return kernel.ADVISERS[type(self._params)].size(self._params, self._n_arms)

    @property
    def _own(self) -> int:
        """Where what is saved ends: after the probabilities, with which the judgement begins."""
        return ADVICE + self._n_arms + lag_player.judgement_at(self._params.player) + 2 * KEEP + self._n_arms

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
            self._numbers = np.concatenate([self._numbers, np.zeros(self._size - self._own)])
        first = self._learned * self._n_units
        self._run(lags_learn, np.array(self._arms[first:]), np.array(self._totals[first:]), self._learned == 0)
        self._learned, self.decided = self.rounds, True
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


def adviser(design: Design) -> ToldLags | None:
    """Return the adviser of an experiment; None if it has none."""
    if not design.advised:
        return None
    return ToldLags(design.season, design.model_rounds)


def build(design: Design, seed: int) -> Panel:
    """Return a new learner for an experiment; the same design and seed give the same learner."""
    if design.player == "model":
        looks: dict[str, Any] = {"max_lag": design.longest_lag, "season": design.season, "horizon": design.horizon}
        model = LagPlayer(len(design.arms), **looks, direction=design.direction, seed=seed)
        return Panel(model, n_units=len(design.units))
    known = None
    if design.prior is not None:
        known = Prior([design.prior.means[arm] for arm in design.arms], design.prior.updates)
    given: dict[str, Any] = {"n_arms": len(design.arms), "max_delay": design.max_delay, "seed": seed}
    given |= {"direction": design.direction, "low": design.low, "high": design.high}
    given["out_of_range"] = design.out_of_range
    player: BlockWrapper
    if design.player == "advised":
        player = default_player(**given, prior=known, adviser=adviser(design))
        most = design.model_rounds // 2
        if isinstance(player, AdvisedWrapper) and player.opening > most:
            base = MatchedTsallis(given.pop("n_arms"))
            player = AdvisedWrapper(base, adviser=adviser(design), opening=most, **given)
    else:
        player = CompositeLossWrapper.tuned(**given | {"horizon": design.horizon})
        # An experiment states its guarantee in every round: no warning after its horizon.
        player.tuned_horizon = None
    return Panel(player, n_units=len(design.units))


def restored(design: Design, state: Any) -> Panel:
    """Return the learner of an experiment, made by `build`, from its saved state."""
    found: Panel = restore(state, sealed=False, adviser=adviser(design))
    return found


def adviser_of(panel: Panel) -> ToldLags | None:
    """Return the adviser of a learner; None if it has none."""
    found = panel.player.adviser if isinstance(panel.player, AdvisedWrapper) else None
    return found if isinstance(found, ToldLags) else None


def opening_of(panel: Panel) -> int:
    """Return the number of rounds whose arms the adviser chooses itself."""
    return panel.player.opening if isinstance(panel.player, AdvisedWrapper) else 0


def player_of(panel: Panel) -> LagPlayer:
    """Return the player of a learner for the player "model"."""
    player: Any = panel.player
    if not isinstance(player, LagPlayer):
        raise TypeError(f"player must be a LagPlayer, but got {player!r}")
    return player


def probabilities(panel: Panel) -> list[float]:
    """Return the probability of each arm: to be drawn, or, where a model chooses, to be the best."""
    model = adviser_of(panel)
    if model is not None and panel.rounds_played < opening_of(panel):
        return model.probabilities
    found: list[float] = panel.player.probabilities.tolist()
    return found


class Rhythm(NamedTuple):
    """Block lengths of a learner, in rounds.

    informative_from: the round from which the worst case stays below the largest possible regret; None if never.
    opening: the rounds before the first block, whose arms the model chooses.
    """

    shortest_block: int
    mean_block: float
    informative_from: int | None
    opening: int = 0


def late_price(design: Design) -> float:
    """Return what effects that arrive after max_delay add to the guarantee in each round, in units of the range."""
    price = theory.tail_price(design.direction, *design.span)
    # Windows pay twice in either direction (docs/theory/soft_windows.md).
    price = max(price, 2.0) if design.player == "paper" else price
    return price * design.late_share


def rhythm(panel: Panel, design: Design) -> Rhythm:
    """Return the block lengths of a learner made by `build`; they do not depend on the rounds played."""
    late = late_price(design)
    player, d = panel.player, panel.max_delay
    beta = player.update_probability
    if beta is None:
        raise InvalidArgument("coins must be a probability to compute block lengths, but got a sequence")
    if isinstance(player, CoinCleanWrapper):
        mean = 1.0 / (beta * (1.0 - beta) ** d)
        since = None if late >= 1.0 else certificate.informative_from(lambda T: player.worst_case(T) + late * T)
        return Rhythm(d + 1, mean, since, opening_of(panel))
    mean = theory.mean_block_length(d, beta)
    try:
        since = lasting_from(lambda T: panel.regret_bound(T) < (1.0 - late) * trivial(panel, T), 2 * d + 1)
    except AftereffectError:
        # Theorem 4 requires effects that are never negative.
        since = FAR
    return Rhythm(2 * d + 1, mean, since if since < FAR else None)


def trivial(panel: Panel, rounds: int) -> float:
    """Return the largest possible regret over these rounds, summed over the units."""
    span = panel.player.effects
    # Multiplied in the same order as in the bound, so that a bound capped at this value equals it exactly.
    return panel.n_units * (rounds * (span.hi - span.lo))


def prior_price(panel: Panel) -> float:
    """Return what the prior of a learner adds to its guarantee."""
    player = panel.player
    if not isinstance(player, CoinCleanWrapper):
        return 0.0
    span, bandit = player.effects, player.certified_base()[0]
    return panel.n_units * (span.hi - span.lo) * player.factor * bandit.prior_price


def lasting_from(below: Callable[[int], bool], period: int) -> int:
    """Return the round from which a bound stays below the trivial one; FAR if there is none.

    The ratio of the bound to T decreases in T, except for a step up at each multiple of `period`, caused by a floor. So
    search the multiples by doubling and bisection, then bisect the rounds before the first multiple that is below.
    """
    least, most = 0, 1
    while not below(most * period):
        least, most = most, 2 * most
        if most * period > FAR:
            return FAR
    most = certificate.first_true(lambda k: below(k * period), least, most)
    return certificate.first_true(below, (most - 1) * period, most * period)
