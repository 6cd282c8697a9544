"""An index policy on clean windows: what a practitioner who knows the delay would write first.

Blocks of exactly 2d+1 rounds, as in `fixed_block.py`; each gives one clean window (Lemma 2), and the arm of
the next block is the one whose windows look cheapest after an allowance for doubt. It is fast where losses
are alike over time and has no guarantee where they are not: it is no algorithm of the paper, it is what the
paper's players are measured against on tame data.
"""

import math
from typing import NamedTuple, Unpack

from aftereffect.core import checks, effects, kernel
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState, helper
from aftereffect.players import base as shared
from aftereffect.players.base import REFUSED, Common, KernelPlayer, Limits


class BlockUCBParams(NamedTuple):
    """width: α."""

    max_delay: int
    width: float
    limits: Limits


# state, after what every player has: rounds told, the block's arm, its rounds that are over, the sum of its clean
# totals; then the sums of fed losses and the numbers of windows, by arm.
ROUND, ARM, PLACE, SUMS = OWN, OWN + 1, OWN + 2, OWN + 4


def size(params: BlockUCBParams, n_arms: int) -> int:
    """Four scalars, two numbers an arm."""
    return SUMS + 2 * n_arms


@helper
def least_index(scale: float, width: float, rounds: float, n_arms: int, sums: FloatState, counts: FloatState) -> int:
    """Return the first arm without a count, else the first with the least scale·mean − width·√(ln t/n)."""
    log = math.log(max(rounds, 1.0))
    best = 0
    least = 0.0
    for i in range(n_arms):
        if counts[i] == 0.0:
            return i
        index = scale * sums[i] / counts[i] - width * math.sqrt(log / counts[i])
        if i == 0 or index < least:
            best = i
            least = index
    return best


def ask(params: BlockUCBParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Choose an arm when a block begins, else stay."""
    state[DREW] = 0.0
    if state[PLACE] == 0.0:
        d = params.max_delay
        scale = (2 * d + 1) / (d + 1)
        counts = state[SUMS + n_arms :]
        state[ARM] = least_index(scale, params.width, state[ROUND], n_arms, state[SUMS:], counts)
        state[DREW] = 1.0
    return int(state[ARM])


def tell(params: BlockUCBParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Add up the last d+1 totals of the block, and note their sum when it ends."""
    d = params.max_delay
    total = shared.begin_tell(params.limits, 1.0, state, total)
    if total == REFUSED:
        return -1
    state[ROUND] += 1.0
    window = shared.block_sum(state[PLACE:], d, 2 * d + 1, total)
    if window != window:
        return 0
    state[FED] = effects.fed_loss(params.limits.span, d, window)
    state[SUMS + arm] += state[FED]
    state[SUMS + n_arms + arm] += 1.0
    return 1


kernel.register(BlockUCBParams, kernel.PlayerKernel(size, shared.zero_begin, ask, tell))


class BlockUCB(KernelPlayer):
    """Plays in blocks of 2d+1 rounds, each arm once, then the one of least index m(i) − α√(ln t/n(i)).

    n(i) is the number of clean windows of arm i, t the number of rounds so far, and m(i) the mean of its
    fed losses times (2d+1)/(d+1), which is the average total of a clean round in units of hi − lo (up to a
    constant that all arms share). Ties go to the arm of the lowest number; there is no randomness, so
    whoever knows the losses knows the play.

    max_delay: d ≥ 0, how many rounds after its own an action's effect can still arrive.
    width: α ≥ 0. √2 is UCB1's at d = 0. A window averages d+1 rounds, so that less will do: 0.7, the default,
        was the best all-rounder of a few tried on varied losses; nothing proves it.
    direction, low, high, out_of_range: as for the wrapper. A missing total in the window voids the block.
    seed: makes no difference.

    >>> player = BlockUCB(n_arms=2, max_delay=1, seed=7)
    >>> for total in (0.0, 0.25, 0.5, 0.5, 0.0, 0.0):      # arm 0 seems to cost 3/8 a round, arm 1 nothing
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
        params = BlockUCBParams(self.max_delay, self.width, limits)
        super().__init__(n_arms, params, max_delay=self.max_delay, width=self.width)
