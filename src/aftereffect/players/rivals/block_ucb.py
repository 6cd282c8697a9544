"""UCB on clean windows: a simple baseline for a known delay.

Blocks have exactly 2d+1 rounds, as those of `FixedBlock`. Each gives one clean window (Lemma 2), and the arm of the
next block is the one with the smallest lower confidence bound on its mean loss. It learns fast on stochastic losses and
has no guarantee on others. It is not an algorithm of the paper; it is a baseline for stochastic data.
"""

import math
from typing import NamedTuple, Unpack

from aftereffect.core import checks, effects, kernel
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState, helper
from aftereffect.players.base import KernelPlayer
from aftereffect.players.kernels import block_sum, zero_begin
from aftereffect.players.limits import Common, Limits


class BlockUCBParams(NamedTuple):
    """width: α."""

    max_delay: int
    width: float
    limits: Limits


# state, after what every player has: the number of rounds told; the block's arm, the number of its finished rounds, the
# sum of its clean totals; then the sum of fed losses of each arm and the number of windows of each arm.
ROUND, ARM, PLACE, SUMS = OWN, OWN + 1, OWN + 2, OWN + 4


def size(params: BlockUCBParams, n_arms: int) -> int:
    """Four scalars, two numbers per arm."""
    return SUMS + 2 * n_arms


@helper
def least_index(scale: float, width: float, rounds: float, n_arms: int, sums: FloatState, counts: FloatState) -> int:
    """Return the first arm without a count, else the first with the least scale·mean − width·√(ln t/n)."""
    log = math.log(max(rounds, 1.0))
    best, least = 0, 0.0
    for i in range(n_arms):
        if counts[i] == 0.0:
            return i
        index = scale * sums[i] / counts[i] - width * math.sqrt(log / counts[i])
        if i == 0 or index < least:
            best, least = i, index
    return best


def ask(params: BlockUCBParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Choose an arm when a block begins, else keep the arm."""
    state[DREW] = 0.0
    if state[PLACE] == 0.0:
        d = params.max_delay
        scale = (2 * d + 1) / (d + 1)
        counts = state[SUMS + n_arms :]
        state[ARM] = least_index(scale, params.width, state[ROUND], n_arms, state[SUMS:], counts)
        state[DREW] = 1.0
    return int(state[ARM])


def tell(params: BlockUCBParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Sum the last d+1 totals of the block; at the end of the block credit the sum to its arm."""
    d = params.max_delay
    state[ROUND] += 1.0
    window = block_sum(state[PLACE:], d, 2 * d + 1, total)
    if window != window:
        return 0
    state[FED] = effects.fed_loss(params.limits.span, d, window)
    state[SUMS + arm] += state[FED]
    state[SUMS + n_arms + arm] += 1.0
    return 1


kernel.register(BlockUCBParams, kernel.PlayerKernel(size, zero_begin, ask, tell))


class BlockUCB(KernelPlayer):
    """Plays blocks of 2d+1 rounds: first each arm once, then the arm of least index m(i) − α√(ln t/n(i)).

    n(i) is the number of clean windows of arm i, t the number of rounds so far, and m(i) the mean of its
    fed losses times (2d+1)/(d+1), which is the average total of a clean round in units of hi − lo (up to a
    constant common to all arms). Ties go to the arm of the lowest number. The algorithm is deterministic.

    max_delay: d ≥ 0, how many rounds after its own an action's effect can still arrive.
    width: α ≥ 0. UCB1 has √2 at d = 0. A window averages d+1 rounds, so a smaller value suffices: the default, 0.7,
        was the best overall of several values tried on various losses; no bound is proved for it.
    direction, low, high, out_of_range: as for the wrapper. A missing total in the window voids the block.
    seed: not used.

    >>> player = BlockUCB(n_arms=2, max_delay=1, seed=7)
    >>> for total in (0.0, 0.25, 0.5, 0.5, 0.0, 0.0):      # estimates per round: 3/8 for arm 0, 0 for arm 1
    ...     arm = player.ask()
    ...     played = player.tell(total)
    >>> arm, player.ask()
    (1, 1)

    References: Auer, Cesa-Bianchi and Fischer (2002) for the index; Lemma 2 of the paper for the window.
    """

    def __init__(self, n_arms: int, *, max_delay: int, width: float = 0.7, **common: Unpack[Common]) -> None:
        self.max_delay = checks.integer("max_delay", max_delay, low=0)
        self.width = checks.real("width", width, low=0.0)
        limits = self.limits(self.max_delay + 1, **common)
        super().__init__(n_arms, BlockUCBParams(self.max_delay, self.width, limits))
