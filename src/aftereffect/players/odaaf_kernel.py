"""ODAAF in kernel form: phased elimination on totals that nobody labels, for any table of phase lengths.

    phase m       ├─ arm a ─┼─ arm b ─┼─ arm c ─┤├─ bridge ─┤      each stretch n_m − n_{m−1} rounds
    totals         of a      of b      of c       discarded

By the end of a phase every arm still in play has n_m rounds of its own, over all phases. Their mean total is
off only by what other arms' late effects brought in and its own late effects took out, and n_m is long enough
for that to be small beside D_m = 2⁻ᵐ. So arms that look worse than the best one by more than D_m go out.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import effects, kernel
from aftereffect.core.kernel import DREW, FED, OWN, helper

MEASURING, BRIDGING, SETTLED = 0, 1, 2


class OdaafParams(NamedTuple):
    """lengths: n_1 < n_2 < ... best_first: the order of arms from the second phase on, else by index."""

    span: effects.Effects
    lengths: NDArray[np.int64]
    best_first: bool
    bridge: bool


# state, after what every player has: phase m, what is being done, how many arms this phase has finished,
# rounds left in the stretch, its arm, whether it is about to begin, how many arms are in play; then those
# arms in the order in which they are played; then for each arm its sum of totals and its mean loss.
PHASE, MODE, PLACE, LEFT, ARM, BEGINS, ACTIVE, ORDER = (OWN + k for k in range(8))


def size(params: OdaafParams, n_arms: int) -> int:
    """A few scalars, and three numbers an arm."""
    return ORDER + 3 * n_arms


def begin(params: OdaafParams, n_arms: int, state: kernel.FloatState) -> None:
    """Stand before round 1, with all arms in play."""
    for i in range(ORDER + 3 * n_arms):
        state[i] = 0.0
    state[ACTIVE] = n_arms
    for i in range(n_arms):
        state[ORDER + i] = i
    next_phase(params, state)


def ask(params: OdaafParams, n_arms: int, state: kernel.FloatState, rng: kernel.WordState) -> int:
    """Return the arm of the stretch; nothing here is random."""
    state[DREW] = state[BEGINS]
    state[BEGINS] = 0.0
    return int(state[ARM])


def tell(
    params: OdaafParams, n_arms: int, state: kernel.FloatState, rng: kernel.WordState, arm: int, total: float
) -> int:
    """Add the total to its arm's sum; at the end of a stretch move on. A missing one prolongs the stretch."""
    state[FED] = np.nan
    if state[MODE] == SETTLED:
        return 0
    if state[MODE] == MEASURING:
        if total != total:
            return 0
        # Means are clipped to the range; the sums behind them only have to stay finite.
        state[ORDER + n_arms + arm] = min(max(state[ORDER + n_arms + arm] + total, -1e300), 1e300)
    state[LEFT] -= 1.0
    if state[LEFT] > 0.0:
        return 0
    if state[MODE] == BRIDGING:
        next_phase(params, state)
        return 0
    n = params.lengths[int(state[PHASE]) - 1]
    state[FED] = effects.fed_loss(params.span, 0, state[ORDER + n_arms + arm] / n)
    state[ORDER + 2 * n_arms + arm] = state[FED]
    state[PLACE] += 1.0
    if state[PLACE] < state[ACTIVE]:
        stretch(params, state, int(state[ORDER + int(state[PLACE])]))
    else:
        close_phase(params, state, state[ORDER + 2 * n_arms :])
    return 1


@helper
def stretch(params: OdaafParams, state: kernel.FloatState, arm: int) -> None:
    """Begin a stretch of n_m − n_{m−1} rounds."""
    phase = int(state[PHASE])
    before = params.lengths[phase - 2] if phase > 1 else 0
    state[LEFT] = params.lengths[phase - 1] - before
    state[ARM] = arm
    state[BEGINS] = 1.0


@helper
def next_phase(params: OdaafParams, state: kernel.FloatState) -> None:
    """Begin a phase with the first arm in the order."""
    state[PHASE] += 1.0
    state[MODE] = MEASURING
    state[PLACE] = 0.0
    stretch(params, state, int(state[ORDER]))


@helper
def close_phase(params: OdaafParams, state: kernel.FloatState, losses: kernel.FloatState) -> None:
    """Drop the arms whose mean loss exceeds the least by more than D_m, and say what comes next."""
    best = int(state[ORDER])
    for k in range(1, int(state[ACTIVE])):
        arm = int(state[ORDER + k])
        if losses[arm] < losses[best]:
            best = arm
    gap = 0.5 ** int(state[PHASE])
    kept = 0
    for k in range(int(state[ACTIVE])):
        arm = int(state[ORDER + k])
        if losses[arm] - gap <= losses[best]:
            # Arms that stay keep their order, or each is moved up to its place among those already kept.
            place = kept
            while params.best_first and place > 0 and losses[arm] < losses[int(state[ORDER + place - 1])]:
                state[ORDER + place] = state[ORDER + place - 1]
                place -= 1
            state[ORDER + place] = arm
            kept += 1
    state[ACTIVE] = kept
    if kept == 1 or int(state[PHASE]) == params.lengths.shape[0]:
        state[MODE] = SETTLED
        state[ARM] = best
        state[BEGINS] = 1.0
    elif params.bridge:
        state[MODE] = BRIDGING
        stretch(params, state, best)
    else:
        next_phase(params, state)


kernel.register(OdaafParams, kernel.PlayerKernel(size, begin, ask, tell))
