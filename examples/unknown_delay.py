"""Algorithm 1 (Section 3) for an unknown d: play with a guess of d; after a contradiction double it and restart.

    block of arm i      1 … g  g+1 … 2g+1  …  L−g … L        g: the guess; L ≥ 2g+1: the update round
    totals              mixed  ├ early ┤      ├ late ┤       both windows are clean if d ≤ g

The late window is the window that Algorithm 1 feeds to its base. The early window is used to test the guess: it is the
first window that is clean if d ≤ g, so it is the first to contain late effects of earlier arms if d > g; and every
block has one. The length of a block depends only on the coins. It is drawn when the block begins, so that the windows
are summed as the totals arrive and no totals are stored.

Theorem 4 requires d. We know of no algorithm with its √T rate that does not require d. This is none either: it is the
wrapper for a guess, with two tests of the guess. `UnknownDelayWrapper` states what is proved and what is not.
"""

import math
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from aftereffect import theory
from aftereffect.bandits import tsallis
from aftereffect.bandits.tsallis import TsallisParams
from aftereffect.core import checks, effects, kernel, random
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState, helper
from aftereffect.players.base import KernelPlayer, number
from aftereffect.players.limits import Common, Limits
from aftereffect.players.wrapper.wrapper import CompositeLossWrapper


class UnknownDelayParams(NamedTuple):
    """guess: the initial g. false_alarm: δ, 0 for no statistical test."""

    guess: int
    horizon: int
    false_alarm: float
    limits: Limits


# The number of earlier blocks that the statistical test considers.
LAGS = 8

# state, after what every player has: the round, g, the number of restarts, the position in the block, L, whether to
# draw next, the sums of the early and late windows, η, the largest sum of total − hi and the smallest sum of total − lo
# over all stretches that end in this round (see `impossible`); the arms of this block and of the LAGS blocks before it
# (−1: none). Then four tables of LAGS × K × 2 cells (lag, arm, whether the block at this lag had the same arm): the
# number of visits, the sum, the lower and the upper end of the confidence interval for the mean. Then the base's state.
ROUND, GUESS, RESTARTS, PLACE, LENGTH, DRAW = OWN, OWN + 1, OWN + 2, OWN + 3, OWN + 4, OWN + 5
EARLY, LATE, RATE, ABOVE, BELOW, ARM = (OWN + 6 + k for k in range(6))
CELLS = ARM + 1 + LAGS


@helper
def base_at(n_arms: int) -> int:
    """Return where the base's state begins."""
    return CELLS + 4 * 2 * LAGS * n_arms


def size(params: UnknownDelayParams, n_arms: int) -> int:
    """The scalars, the arms of the latest blocks, four tables of cells, the base's state."""
    return base_at(n_arms) + tsallis.size(n_arms)


@helper
def restart(params: UnknownDelayParams, n_arms: int, state: FloatState) -> None:
    """Reset the cells and the base, and tune the base to the current guess and the remaining rounds."""
    cells = 2 * LAGS * n_arms
    for k in range(cells):
        state[CELLS + k] = state[CELLS + cells + k] = state[CELLS + 2 * cells + k] = 0.0
        state[CELLS + 3 * cells + k] = 1.0
    updates = (params.horizon - int(state[ROUND])) // (2 * int(state[GUESS]) + 1)
    # At least 1, so that the rate is positive: no update may be possible before the horizon, and play may continue
    # after it.
    state[RATE] = math.sqrt(max(updates, 1) / 2)
    state[DRAW] = 1.0
    kernel.bandit_start(TsallisParams(state[RATE]), n_arms, state[base_at(n_arms) :])


def begin(params: UnknownDelayParams, n_arms: int, state: FloatState) -> None:
    """Write the state before round 1."""
    state[GUESS] = params.guess
    for k in range(ARM, CELLS):
        state[k] = -1.0
    restart(params, n_arms, state)


@helper
def block_length(guess: int, rng: WordState) -> int:
    """Toss Bernoulli(1/(2g+1)) coins until a 1 follows at least 2g zeros (Definition 1); return the number of coins."""
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
    """Begin a round: draw an arm and a length if a block begins, else keep the arm."""
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
    """Process a total; return whether the totals so far are impossible for losses with delays of at most g.

    If they are, the guess is doubled until they are possible. m consecutive totals contain one part each of m + g
    plays, so the sum of (total − hi) over any stretch of rounds is at most g·hi. The largest such sum that ends in this
    round is computed from that of the previous round (Kadane's algorithm).
    """
    # The range of one action's effect, with a margin for rounding.
    top, bottom = params.limits.most, params.limits.least
    if total != total:
        # A missing total: stretches that contain this round cannot be tested.
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
    """Process the loss of an early window; return whether the losses depend on the arm of an earlier block.

    Each cell has a confidence interval for its mean, mean ± √(ln(2C(m+1)(m+2)n(n+1)/δ)/(2n)) after n visits and m
    restarts, with C the number of cells. Disjoint intervals of the two cells of one arm and lag contradict the guess.
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
    """Test the guess; feed the base if the block ends and no total of its late window is missing."""
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
        # A total of the window is missing: the base is not updated, and the block continues to the next update round.
        state[LENGTH] += block_length(g, rng[random.COINS])
        state[LATE] = 0.0
        return 0
    state[FED] = effects.fed_loss(params.limits.span, g, state[LATE])
    kernel.bandit_update(TsallisParams(state[RATE]), n_arms, state[base_at(n_arms) :], arm, state[FED])
    state[DRAW] = 1.0
    return 1


kernel.register(UnknownDelayParams, kernel.PlayerKernel(size, begin, ask, tell))


class UnknownDelayWrapper(KernelPlayer):
    """Algorithm 1 with Algorithm 2 as base and a guess g of d; contradictions double g (0 becomes 1) and restart.

    n_arms: K. horizon: T; each restart tunes β and η as in Corollary 7, for g and the remaining rounds.
    guess: the initial g ≥ 0.
    false_alarm: δ in [0, 1), the allowed probability that the statistical test causes an unnecessary restart; 0
        switches the test off.
    direction, low, high, out_of_range, seed: as for `CompositeLossWrapper`.

    *The deterministic test.* If d ≤ g, then m consecutive totals contain one part each of at most m + g plays, so their
    sum is at most (m+g)·hi, for all losses and all plays. m = 1 is the range of a total, m = g+1 is Lemma 2. All m are
    tested in every round, and g doubles until all conditions hold, so this test never increases g beyond 2d. For losses
    with lo = 0 no deterministic test can detect more: if all conditions hold, then attributing each total to the oldest
    plays whose effect is not used up gives losses with delays of at most g and exactly these totals.

    *The statistical test.* If d ≤ g, then the totals of rounds g+1, …, 2g+1 of a block contain effects of its arm i
    only. Their sum, scaled to [0, 1], is averaged over the blocks of arm i in two cells, according to whether the
    previous block had the same arm or another; likewise for each of the eight previous blocks (eight is this library's
    choice). Disjoint confidence intervals of two such cells are a contradiction. If d ≤ g and the losses are i.i.d.
    over rounds, both cells have the same mean, and the probability of a false alarm in the whole run is at most δ (by
    Azuma and Hoeffding in each cell and a union bound over cells, visits and restarts). If d > g and the late effects
    differ among the arms, then for the arm with the largest late effect the means differ, provided that the lag is
    within eight blocks: eight rounds at g = 0, else about 8e(2g+1). A difference Δ is detected when both cells have
    about n = 2 ln(32Kn²/δ)/Δ² visits.

    *Guaranteed* (effects in [0, 1]): R_T ≤ T, always. If d ≤ guess and δ = 0, there is never a contradiction, and
    Theorem 4 holds for d = guess. If d ≤ guess, δ > 0 and the losses are i.i.d., the same bound plus δT holds. The
    guess never exceeds max(guess, 2d) if δ = 0; if δ > 0 and the losses are i.i.d., this holds with probability at
    least 1 − δ.
    *Not guaranteed*: anything better than T if d > guess. While the guess is too small, the base is fed effects of
    other arms until a contradiction is found. With i.i.d. losses, late effects smaller than the Δ above or beyond eight
    blocks are not detected. With losses that change over time, an undetected delay can cause linear regret. An example
    with guess 0: without delays, let arm 1 lose 1 and arm 0 lose ½ until arm 1 is rarely played; then let the ½ of arm
    0 arrive one round late, and let arm 1 lose nothing. Arm 1, which nearly always follows arm 0, also appears to lose
    ½, and is played too rarely for the test. Losses that change over time can also cause false alarms, and with them
    restarts and an unnecessarily large guess.

    >>> player = UnknownDelayWrapper(n_arms=2, horizon=1000, guess=0, seed=7)
    >>> for total in (0.5, 1.5):                 # one play adds at most 1, so the second total contains two plays
    ...     arm = player.ask()
    ...     played = player.tell(total)
    >>> player.guess, player.restarts
    (1, 1)

    Reference: derived from Lemma 2 and Theorem 4 of the paper; the tests, the tuning and the defaults are this
    library's. For an unknown d with proofs, at the rate T^(2/3), see Wang, Wang and Huang (2021).
    """

    def __init__(
        self, n_arms: int, *, horizon: int, guess: int = 1, false_alarm: float = 0.05, **common: Unpack[Common]
    ) -> None:
        self.horizon = checks.integer("horizon", horizon, low=1, high=1 << 53)
        guess = checks.integer("guess", guess, low=0, high=self.horizon)
        self.false_alarm = checks.real("false_alarm", false_alarm, low=0.0, below=1.0)
        super().__init__(n_arms, UnknownDelayParams(guess, self.horizon, self.false_alarm, self.limits(None, **common)))

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments except the first and the seed, as plain JSON values; `guess` is the initial g."""
        return super().settings | {"guess": self._params.guess}

    guess: int = number(GUESS, "The current guess of d.", int)
    restarts: int = number(RESTARTS, "How often the guess was contradicted.", int)
    learning_rate: float = number(RATE, "η since the latest restart.")

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The distribution from which the current arm was drawn or, after an update, the next will be."""
        q = np.empty(self.n_arms)
        base = self._numbers[base_at(self.n_arms) :]
        kernel.bandit_probabilities(TsallisParams(self.learning_rate), self.n_arms, base, q)
        return q

    def regret_bound(self, max_delay: int, *, stochastic: bool = False) -> float:
        """Return the guaranteed bound on R_T at the horizon if d ≤ `max_delay`, times hi; for nonnegative effects.

        stochastic: whether the losses are i.i.d. over rounds.
        """
        d = checks.integer("max_delay", max_delay, low=0)
        if self.effects.lo < 0.0:
            raise InvalidArgument(f"low must be at least 0 for Theorem 4 to hold, but got {self.low!r}")
        K, T, g, alarm = self.n_arms, self.horizon, self._params.guess, self.false_alarm
        if d > g or theory.most_updates(g, T) == 0 or (alarm > 0.0 and not stochastic):
            return float(T * self.effects.hi)
        bound = CompositeLossWrapper.tuned(K, max_delay=g, horizon=T, seed=0).regret_bound(T)
        return float(min(bound + alarm * T, T) * self.effects.hi)
