"""Algorithm 1 (Section 3) when nobody knows d: guess, watch for contradictions, double the guess and restart.

    block of arm i      1 … g  g+1 … 2g+1  …  L−g … L        g: the guess; L ≥ 2g+1: the update round
    totals              mixed  ├ early ┤      ├ late ┤       both windows are clean if d ≤ g

The late window is the one Algorithm 1 feeds to its base. The early one is for the test: it is the first that
would be clean, so the first to show what earlier arms have left over, and every block has one. The length of
a block depends on coins alone; it is drawn when the block begins, so that sums do for the windows and no
totals are kept.

Theorem 4 needs d. We know of no algorithm with its √T that does not, and this is not one: it is the wrapper for a
guess, with two tests of the guess around it. `UnknownDelayWrapper` says what is proved and what is not.
"""

import math
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from aftereffect import theory
from aftereffect.bandits import tsallis
from aftereffect.bandits.tsallis import TsallisParams
from aftereffect.core import checks, effects, kernel, random
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState, helper
from aftereffect.players.base import REFUSED, Common, KernelPlayer, Limits, begin_tell
from aftereffect.players.wrapper.certificate import printed_bound


class UnknownDelayParams(NamedTuple):
    """guess: the first g. false_alarm: δ, 0 for no statistical test."""

    guess: int
    horizon: int
    false_alarm: float
    limits: Limits


# How many blocks the statistical test looks back.
LAGS = 8

# state, after what every player has: round, g, restarts, place in the block, L, whether to draw next, the
# sums of the early and late windows, η, how far a stretch of totals exceeds and undercuts what its own rounds
# can do; the arms of this block and of the LAGS blocks before it (−1: none). Then four tables of LAGS × K × 2
# cells (lag, arm, whether the block so far back had the same arm): visits, sum, the ends of the interval
# for the mean. Then the base's state.
ROUND, GUESS, RESTARTS, PLACE, LENGTH, DRAW = OWN, OWN + 1, OWN + 2, OWN + 3, OWN + 4, OWN + 5
EARLY, LATE, RATE, ABOVE, BELOW, ARM = (OWN + 6 + k for k in range(6))
CELLS = ARM + 1 + LAGS


@helper
def base_at(n_arms: int) -> int:
    """Return where the base's state begins."""
    return CELLS + 4 * 2 * LAGS * n_arms


def size(params: UnknownDelayParams, n_arms: int) -> int:
    """Scalars, the arms of the latest blocks, four tables of cells, the base's state."""
    return base_at(n_arms) + tsallis.size(n_arms)


@helper
def restart(params: UnknownDelayParams, n_arms: int, state: FloatState) -> None:
    """Forget what was learned under another guess, and tune the base to the rounds that are left."""
    cells = 2 * LAGS * n_arms
    for k in range(cells):
        state[CELLS + k] = state[CELLS + cells + k] = state[CELLS + 2 * cells + k] = 0.0
        state[CELLS + 3 * cells + k] = 1.0
    updates = (params.horizon - int(state[ROUND])) // (2 * int(state[GUESS]) + 1)
    # No update before the horizon, or a play that goes on after it: any positive rate will do.
    state[RATE] = math.sqrt(max(updates, 1) / 2)
    state[DRAW] = 1.0
    kernel.bandit_start(TsallisParams(state[RATE]), n_arms, state[base_at(n_arms) :])


def begin(params: UnknownDelayParams, n_arms: int, state: FloatState) -> None:
    """Stand before round 1."""
    for k in range(CELLS):
        state[k] = 0.0
    state[GUESS] = params.guess
    for k in range(ARM, CELLS):
        state[k] = -1.0
    restart(params, n_arms, state)


@helper
def block_length(guess: int, rng: WordState) -> int:
    """Toss Bernoulli(1/(2g+1)) coins until a one that is 2g+1 or more after the one before (Definition 1)."""
    bias = 1.0 / (2 * guess + 1)
    length = 0
    gap = 0
    while True:
        length += 1
        gap += 1
        if random.uniform(rng) < bias:
            if gap > 2 * guess:
                return length
            gap = 0


def ask(params: UnknownDelayParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Begin a round: draw if a block begins, else stay."""
    state[DREW] = state[DRAW]
    if state[DRAW] == 1.0:
        for k in range(ARM + LAGS, ARM, -1):
            state[k] = state[k - 1]
        base, u = state[base_at(n_arms) :], random.uniform(rng[random.ARMS])
        state[ARM] = kernel.bandit_draw(TsallisParams(state[RATE]), n_arms, base, u)
        state[LENGTH] = block_length(int(state[GUESS]), rng[random.COINS])
        state[PLACE] = state[EARLY] = state[LATE] = state[DRAW] = 0.0
    state[ROUND] += 1.0
    state[PLACE] += 1.0
    return int(state[ARM])


@helper
def impossible(params: UnknownDelayParams, state: FloatState, total: float) -> bool:
    """Take in a total; tell whether no losses of a delay of at most g can have made the totals so far.

    m totals in a row hold one part each of m + g plays. So the sum of (total − hi) over any stretch of rounds
    is at most g·hi; the greatest such sum that ends in this round follows from the one before (Kadane's
    rule).
    """
    # The range of one action, with a margin for rounding.
    top, bottom = params.limits.most, params.limits.least
    if total != total:
        # A stretch with a hole proves nothing.
        state[ABOVE] = state[BELOW] = 0.0
        return False
    state[ABOVE] = max(state[ABOVE], 0.0) + total - top
    state[BELOW] = min(state[BELOW], 0.0) + total - bottom
    before = state[GUESS]
    while state[ABOVE] > state[GUESS] * top or state[BELOW] < state[GUESS] * bottom:
        state[GUESS] = max(2.0 * state[GUESS], 1.0)
    return bool(state[GUESS] > before)


@helper
def improbable(params: UnknownDelayParams, n_arms: int, state: FloatState, loss: float) -> bool:
    """Take in the loss of an early window; tell whether the arm of an earlier block explains it.

    Each cell has an interval for the mean of its arm: mean ± √(ln(2C(m+1)(m+2)n(n+1)/δ)/(2n)) after n visits
    and m restarts, C the number of cells. Two intervals of one arm and lag that do not meet speak against the
    guess.
    """
    if params.false_alarm == 0.0:
        return False
    cells, m, found = 2 * LAGS * n_arms, state[RESTARTS], False
    for lag in range(LAGS):
        earlier = state[ARM + 1 + lag]
        if earlier >= 0.0:
            pair = CELLS + 2 * (lag * n_arms + int(state[ARM]))
            cell = pair + 1 if earlier == state[ARM] else pair
            state[cell] += 1.0
            state[cell + cells] += loss
            n = state[cell]
            share = params.false_alarm / (cells * (m + 1.0) * (m + 2.0) * n * (n + 1.0))
            radius = math.sqrt(math.log(2.0 / share) / (2.0 * n))
            state[cell + 2 * cells] = state[cell + cells] / n - radius
            state[cell + 3 * cells] = state[cell + cells] / n + radius
            lower, upper = pair + 2 * cells, pair + 3 * cells
            found = found or state[lower] > state[upper + 1] or state[lower + 1] > state[upper]
    return found


def tell(params: UnknownDelayParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Test the guess; feed the base if the block ends with a whole window."""
    total = begin_tell(params.limits, state[ROUND], state, total)
    if total == REFUSED:
        return -1
    g, place = int(state[GUESS]), int(state[PLACE])
    refuted = impossible(params, state, total)
    if g < place <= 2 * g + 1:
        state[EARLY] += total
    if place > state[LENGTH] - g - 1:
        state[LATE] += total
    if not refuted and place == 2 * g + 1:
        early = state[EARLY]
        if early == early and improbable(params, n_arms, state, effects.fed_loss(params.limits.span, g, early)):
            state[GUESS] = max(2.0 * g, 1.0)
            refuted = True
    if refuted:
        state[RESTARTS] += 1.0
        restart(params, n_arms, state)
        return 0
    if place != state[LENGTH]:
        return 0
    if state[LATE] != state[LATE]:
        # A window with a hole feeds nothing, and the block goes on to the next update round.
        state[LENGTH] += block_length(g, rng[random.COINS])
        state[LATE] = 0.0
        return 0
    state[FED] = effects.fed_loss(params.limits.span, g, state[LATE])
    kernel.bandit_update(TsallisParams(state[RATE]), n_arms, state[base_at(n_arms) :], arm, state[FED])
    state[DRAW] = 1.0
    return 1


kernel.register(UnknownDelayParams, kernel.PlayerKernel(size, begin, ask, tell))


class UnknownDelayWrapper(KernelPlayer):
    """Algorithm 1 around Algorithm 2 with a guess g of d; contradictions double g (0 becomes 1) and restart.

    n_arms: K. horizon: T; each start tunes β and η as Corollary 7 does, for g and the rounds that are left.
    guess: the first g ≥ 0.
    false_alarm: δ in [0, 1), the chance of a needless restart that the statistical test may take; 0 switches
        that test off.
    direction, low, high, out_of_range, seed: as for `CompositeLossWrapper`.

    *The certain test.* If d ≤ g, then m totals in a row hold one part each of at most m + g plays, so they
    sum to at most (m+g)·hi, whatever the losses and the play. m = 1 is the range of a total, m = g+1 is Lemma
    2. All m are watched at once, and g doubles until all hold: so a certain contradiction never takes g
    beyond 2d. For losses (lo = 0) this says all that can be said for certain: if all stretches pass, then
    serving each total from the oldest play that has something left tells a story of delay ≤ g with these very
    totals.

    *The statistical test.* In rounds g+1, …, 2g+1 of a block the totals hold effects of its arm i only, if
    d ≤ g. Their sum, scaled to [0, 1], is averaged over the blocks of arm i in two cells: by whether the
    block before had the same arm or another, and so for each of the eight blocks before (a number chosen
    here). Confidence intervals of two such cells that do not meet are a contradiction. If the losses are
    independent over rounds, with one law for all, and d ≤ g, then both means are one (Azuma and Hoeffding in
    each cell; a sum over cells, visits and restarts): a false alarm has probability at most δ over the whole
    run. If d > g, and what arrives late differs among the arms, then for the arm with most of it the means
    differ, as long as the lag is within eight blocks: eight rounds at g = 0, some 8e(2g+1) else. A shift Δ is
    found when both cells have about 2 ln(32Kn²/δ)/Δ² visits n.

    *Guaranteed* (effects in [0, 1]): R_T ≤ T, always. If d ≤ guess and δ = 0, there is never a contradiction,
    and Theorem 4 holds for d = guess. If d ≤ guess, δ > 0 and the losses are independent with one law, the
    same plus δT. The guess stays at or below max(guess, 2d): for certain if δ = 0, else on such losses with
    probability at least 1 − δ.
    *Not guaranteed*: anything better than T when d > guess. Under a guess too small the base is fed other
    arms' effects until a contradiction shows. Losses of one law can hide tails below the Δ above, or beyond
    eight blocks. Losses that change over time can hide a delay that costs a linear regret. At guess 0: make
    arm 1 lose 1 against ½ for arm 0, both at once, until arm 1 is hardly played, then let arm 0 cost its ½ a
    round late, and arm 1 nothing. Arm 1, nearly always played after arm 0, seems to cost ½ as well, and is
    too rare for the test. Losses that change over time can also raise false alarms, which cost a restart and
    a guess larger than need be.

    >>> player = UnknownDelayWrapper(n_arms=2, horizon=1000, guess=0, seed=7)
    >>> for total in (0.5, 1.5):                 # one play does 1 at most: the second total holds two plays
    ...     arm = player.ask()
    ...     played = player.tell(total)
    >>> player.guess, player.restarts
    (1, 1)

    Reference: derived here from Lemma 2 and Theorem 4 of the paper; test, tuning and defaults are chosen
    here. For unknown d with proofs, at the rate T^(2/3), see Wang, Wang and Huang (2021).
    """

    def __init__(
        self, n_arms: int, *, horizon: int, guess: int = 1, false_alarm: float = 0.05, **common: Unpack[Common]
    ) -> None:
        horizon = checks.integer("horizon", horizon, low=1, high=1 << 53)
        guess = checks.integer("guess", guess, low=0, high=horizon)
        alarm = checks.real("false_alarm", false_alarm, low=0.0, below=1.0)
        params = UnknownDelayParams(guess, horizon, alarm, self.limits(None, **common))
        super().__init__(n_arms, params, horizon=horizon, guess=guess, false_alarm=alarm)

    @property
    def guess(self) -> int:
        """The guess of d in force now."""
        return int(self._numbers[GUESS])

    @property
    def restarts(self) -> int:
        """How often the guess was contradicted."""
        return int(self._numbers[RESTARTS])

    @property
    def learning_rate(self) -> float:
        """η since the latest start."""
        return float(self._numbers[RATE])

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The distribution the current block's arm was drawn from, or the next will be."""
        q = np.empty(self.n_arms)
        base = self._numbers[base_at(self.n_arms) :]
        kernel.bandit_probabilities(TsallisParams(self.learning_rate), self.n_arms, base, q)
        return q

    def regret_bound(self, max_delay: int, *, stochastic: bool = False) -> float:
        """Return what is guaranteed for R_T at the horizon if d ≤ `max_delay`, times the range.

        stochastic: whether the losses are independent over rounds with one law. For effects that are never
        negative.
        """
        d = checks.integer("max_delay", max_delay, low=0)
        if self.effects.lo < 0.0:
            raise InvalidArgument(f"low must be at least 0 for Theorem 4 to hold, but got {self.low!r}")
        K, T, g, alarm = self.n_arms, self._params.horizon, self._params.guess, self._params.false_alarm
        if d > g or theory.most_updates(g, T) == 0 or (alarm > 0.0 and not stochastic):
            return float(T * self.effects.hi)
        bound = printed_bound("tsallis", K, g, T, theory.corollary_learning_rate(g, T))
        return float(min(bound + alarm * T, T) * self.effects.hi)
