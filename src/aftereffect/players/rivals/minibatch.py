"""Mini-batches (Arora, Dekel and Tewari 2012): blocks of fixed length; the base is fed the average total of a block.

This was the first algorithm against an adversary with memory (Section 1 of the paper compares rates with it). No round
of a block is left out, so the first d totals are mixed with effects of the previous arm. Instead the block length grows
with the horizon, which makes that error small: regret of order T^{2/3}, for constant d.
"""

import math
from typing import Any, NamedTuple, Self, Unpack

from aftereffect.bandits.kernel_bandit import KernelBandit, kernel_base
from aftereffect.core import checks, effects, kernel
from aftereffect.core.kernel import FloatState, WordState
from aftereffect.players import base as shared
from aftereffect.players.base import BLOCK, REFUSED, Common, KernelPlayer, Limits, tuned_base


class MiniBatchParams(NamedTuple):
    """base: the parameters of the base algorithm; base_at: where its state begins. parts: τ + d."""

    base: Any
    base_at: int
    block_length: int
    parts: int
    limits: Limits


# state, after what every player in blocks has: the number of rounds told, the number of finished rounds of the block,
# the sum of their totals.
ROUND, SUM, BASE = BLOCK, BLOCK + 1, BLOCK + 3


def tell(params: MiniBatchParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Sum the totals of the block; at the end of the block feed their average."""
    total = shared.begin_tell(params.limits, state[ROUND] + 1.0, state, total)
    if total == REFUSED:
        return -1
    state[ROUND] += 1.0
    whole = shared.block_sum(state[SUM:], 0, params.block_length, total)
    if whole != whole:
        return 0
    loss = effects.average_loss(params.limits.span, params.parts, whole)
    return shared.block_update(params, n_arms, state, arm, loss)


kernel.register(MiniBatchParams, kernel.PlayerKernel(shared.block_size, shared.block_begin, shared.block_ask, tell))


def block_length(constant: float, power: float, horizon: int) -> int:
    """Return τ = C^{−1/(2−q)} T^{(1−q)/(2−q)}, rounded, in 1..T, for a base whose regret is at most C·N^q.

    C = `constant`, q = `power`, T = `horizon`. With a memory of m the policy regret is at most
    τ·C·(T/τ)^q + Tm/τ + τ; this τ makes the first two terms equal at m = 1, and both of order T^{1/(2−q)}.

    >>> block_length(constant=4.0, power=0.5, horizon=128)      # (128/16)^{1/3}
    2
    """
    C = checks.real("constant", constant, above=0.0)
    q = checks.real("power", power, low=0.0, high=1.0)
    T = checks.integer("horizon", horizon, low=1)
    length = math.pow(math.pow(T, 1.0 - q) / C, 1.0 / (2.0 - q))
    return min(max(round(length), 1), T)


class MiniBatch(KernelPlayer):
    """Plays `bandit` in blocks of τ = `block_length` rounds and feeds it the average total of each block.

    The τ totals of a block contain one contiguous part of each of τ + d actions, so their sum lies in (τ+d)·[lo, hi].
    The fed loss is (sum/(τ+d) − lo)/(hi − lo), or 1 minus that for rewards. The original requires losses in [0, 1] in
    each round and divides by τ. Dividing by τ + d, by the argument of Lemma 2, is this library's choice; scaling each
    total by its own range would divide by τ(d+1). If d is not known, the plain average is fed, clipped to the range.

    bandit: the base algorithm, in kernel form.
    block_length: τ ≥ 1; `tuned` chooses it. max_delay: d, used for the scaling and the range of totals; None, the
        default, if not known.
    direction, low, high, out_of_range, seed: as for the wrapper. A missing total voids its block: the base is not
        updated and the arm is kept.

    >>> from aftereffect import Exp3
    >>> player = MiniBatch(Exp3(n_arms=2, learning_rate=0.1), block_length=3, max_delay=1, seed=7)
    >>> for total in (0.25, 0.5, 0.25):
    ...     arm = player.ask()
    ...     played = player.tell(total)
    >>> played.update, played.fed_loss           # 1/(3 + 1)
    (True, 0.25)

    Reference: Arora, Dekel and Tewari, "Online bandit learning against an adaptive adversary: from regret to
    policy regret" (ICML 2012), for the blocks and the rate T^{1/(2−q)}; the constants of the block length and the
    scaling are this library's, from balancing the two terms of the bound under `block_length`.
    """

    def __init__(
        self, bandit: KernelBandit, *, block_length: int, max_delay: int | None = None, **common: Unpack[Common]
    ) -> None:
        inside = kernel_base(bandit)
        self.block_length = checks.integer("block_length", block_length, low=1)
        self.max_delay = None if max_delay is None else checks.integer("max_delay", max_delay, low=0)
        limits = self.limits(None if self.max_delay is None else self.max_delay + 1, **common)
        parts = self.block_length + (self.max_delay or 0)
        params = MiniBatchParams(inside.params, BASE, self.block_length, parts, limits)
        super().__init__(inside, params, block_length=self.block_length, max_delay=self.max_delay)

    @classmethod
    def tuned(
        cls, n_arms: int, *, horizon: int, max_delay: int | None = None, base: str = "tsallis", **common: Unpack[Common]
    ) -> Self:
        """Return the player with the τ for the base's regret bound C√N, and the base tuned to ⌊T/τ⌋ updates.

        C is 2√(2K) for base="tsallis" (Theorem 6) and √(2K ln K) for base="exp3".
        """
        length = block_length(tuned_base(base, n_arms, 1).regret_bound(1), 0.5, horizon)
        bandit = tuned_base(base, n_arms, horizon // length)
        return cls(bandit, block_length=length, max_delay=max_delay, **common)
