"""Algorithm 1 (Section 3) with a guess instead of d, in kernel form: two tests of the guess, and restarts.

    block of arm i      1 … g  g+1 … 2g+1  …  L−g … L        g: the guess; L ≥ 2g+1: the update round
    totals              mixed  ├ early ┤      ├ late ┤       both windows are clean if d ≤ g

The late window is the one Algorithm 1 feeds to its base. The early one is for the test: it is the first that
would be clean, so the first to show what earlier arms have left over, and every block has one. The length of
a block depends on coins alone; it is drawn when the block begins, so that sums do for the windows and no
totals are kept.
"""

import math
from typing import NamedTuple

from aftereffect.bandits import tsallis
from aftereffect.bandits.tsallis import TsallisParams
from aftereffect.core import effects, kernel, random
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState, helper


class UnknownDelayParams(NamedTuple):
    """guess: the first g. false_alarm: δ, 0 for no statistical test."""

    guess: int
    horizon: int
    false_alarm: float
    span: effects.Effects


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
def possible(span: effects.Effects, t: int, total: float) -> bool:
    """Tell whether t plays can make this total at all, whatever the delay; a missing one (NaN) can be."""
    margin = effects.ROUNDING * t * (span.hi - span.lo)
    return not (total < t * span.lo - margin or total > t * span.hi + margin)


@helper
def impossible(params: UnknownDelayParams, state: FloatState, total: float) -> bool:
    """Take in a total; tell whether no losses of a delay of at most g can have made the totals so far.

    m totals in a row hold one part each of m + g plays. So the sum of (total − hi) over any stretch of rounds
    is at most g·hi; the greatest such sum that ends in this round follows from the one before (Kadane's
    rule).
    """
    margin = effects.ROUNDING * (params.span.hi - params.span.lo)
    top, bottom = params.span.hi + margin, params.span.lo - margin
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


def tell(
    params: UnknownDelayParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float
) -> int:
    """Test the guess; feed the base if the block ends with a whole window."""
    state[FED] = float("nan")
    if not possible(params.span, int(state[ROUND]), total):
        return -1
    g, place = int(state[GUESS]), int(state[PLACE])
    refuted = impossible(params, state, total)
    if g < place <= 2 * g + 1:
        state[EARLY] += total
    if place > state[LENGTH] - g - 1:
        state[LATE] += total
    if not refuted and place == 2 * g + 1:
        early = state[EARLY]
        if early == early and improbable(params, n_arms, state, effects.fed_loss(params.span, g, early)):
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
    state[FED] = effects.fed_loss(params.span, g, state[LATE])
    kernel.bandit_update(TsallisParams(state[RATE]), n_arms, state[base_at(n_arms) :], arm, state[FED])
    state[DRAW] = 1.0
    return 1


kernel.register(UnknownDelayParams, kernel.PlayerKernel(size, begin, ask, tell))
