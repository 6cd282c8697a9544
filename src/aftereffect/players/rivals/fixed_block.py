"""Fixed blocks: Algorithm 1 (Section 3) without its coins, every block exactly 2d+1 rounds long.

    round        D S S S S│D S S S S│        d = 2: a block is 2d+1 = 5 rounds of one arm
    total seen   x x ├───┤ x x ├───┤         the last d+1 totals hold effects of this block's arm alone

It updates about e times as often as the wrapper. But the first rounds of its blocks are known in advance: losses that
arrive in the first d rounds of a block are never used, and an oblivious adversary can put all differences between the
arms there.
"""

from typing import Any, NamedTuple, Self, Unpack

from aftereffect import theory
from aftereffect.bandits.kernel_bandit import KernelBandit, kernel_base
from aftereffect.core import checks, effects, kernel
from aftereffect.core.kernel import FloatState, WordState
from aftereffect.players import base as shared
from aftereffect.players.base import BLOCK, REFUSED, Common, KernelPlayer, Limits, tuned_base


class FixedBlockParams(NamedTuple):
    """base: the parameters of the base algorithm; base_at: where its state begins."""

    base: Any
    base_at: int
    max_delay: int
    limits: Limits


def tell(params: FixedBlockParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Sum the last d+1 totals of the block; at the end of the block feed the sum."""
    d = params.max_delay
    total = shared.begin_tell(params.limits, 1.0, state, total)
    if total == REFUSED:
        return -1
    window = shared.block_sum(state[BLOCK:], d, 2 * d + 1, total)
    if window != window:
        return 0
    return shared.block_update(params, n_arms, state, arm, effects.fed_loss(params.limits.span, d, window))


kernel.register(FixedBlockParams, kernel.PlayerKernel(shared.block_size, shared.block_begin, shared.block_ask, tell))


class FixedBlock(KernelPlayer):
    """Plays `bandit` in blocks of exactly 2d+1 rounds and feeds it the sum of the last d+1 totals divided by 2d+1.

    As in the wrapper, the fed totals contain effects of one arm only, and Lemma 2 bounds their sum. But Theorem 4 does
    not apply: it needs every round to be equally likely to end a block, so that the fed losses represent all rounds
    equally. Here the totals of rounds 1..d of every block are ignored. This is harmless if the losses do not depend on
    the position in the block; against losses constructed for these blocks the regret grows linearly.

    bandit: the base algorithm, in kernel form.
    max_delay: d ≥ 0, how many rounds after its own an action's effect can still arrive.
    direction, low, high, out_of_range, seed: as for the wrapper. A missing total in the window voids the block:
        the base is not updated and the arm is kept for another block.

    >>> from aftereffect import Exp3
    >>> player = FixedBlock(Exp3(n_arms=2, learning_rate=0.1), max_delay=1, seed=7)
    >>> for total in (0.5, 0.5, 0.25):
    ...     arm = player.ask()
    ...     played = player.tell(total)
    >>> played.update, played.fed_loss           # (0.5 + 0.25)/3: the last d+1 totals, divided by 2d+1
    (True, 0.25)

    References: Section 3 of the paper for the windows; Arora, Dekel and Tewari (2012) for fixed blocks, see
    `MiniBatch`.
    """

    def __init__(self, bandit: KernelBandit, *, max_delay: int, **common: Unpack[Common]) -> None:
        inside = kernel_base(bandit)
        self.max_delay = checks.integer("max_delay", max_delay, low=0)
        limits = self.limits(self.max_delay + 1, **common)
        super().__init__(
            inside, FixedBlockParams(inside.params, BLOCK + 2, self.max_delay, limits), max_delay=self.max_delay
        )

    @classmethod
    def tuned(
        cls, n_arms: int, *, max_delay: int, horizon: int, base: str = "tsallis", **common: Unpack[Common]
    ) -> Self:
        """Return the player whose base is tuned to its ⌊T/(2d+1)⌋ updates."""
        bandit = tuned_base(base, n_arms, theory.most_updates(max_delay, horizon))
        return cls(bandit, max_delay=max_delay, **common)
