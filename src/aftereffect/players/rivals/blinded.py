"""The blinded bandit (Dekel, Hazan and Koren 2014), the predecessor of Algorithm 1 (Section 3).

    coin b_t     1 0 0 1 1 0 1 1             fair coins
    round        D S S U D S U D             an update needs a one after one zero

In that setting the feedback of a round is lost if the arm differs from that of the previous round. An update only after
the coins 0, 1 ensures that it does not differ, and the update rounds do not depend on the arms played. Definition 1 of
the paper requires 2d zeros instead of one, and uses the last d+1 totals instead of one.
"""

from typing import Any, NamedTuple, Self, Unpack

from aftereffect.bandits.kernel_bandit import KernelBandit, kernel_base
from aftereffect.core import checks, effects, kernel, random
from aftereffect.core.kernel import FloatState, WordState
from aftereffect.players import base as shared
from aftereffect.players.base import BLOCK, REFUSED, Common, KernelPlayer, Limits, tuned_base


class BlindedParams(NamedTuple):
    """base: the parameters of the base algorithm; base_at: where its state begins. max_delay: 0 or 1."""

    base: Any
    base_at: int
    max_delay: int
    limits: Limits


# state, after what every player in blocks has: whether the previous coin was 0. Before round 1 it counts as 1, so that
# round 1 never updates.
ZERO = BLOCK


def tell(params: BlindedParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Toss the round's coin; feed the round's total if the coin is 1 and the previous one was 0."""
    total = shared.begin_tell(params.limits, 1.0, state, total)
    if total == REFUSED:
        return -1
    before = state[ZERO]
    state[ZERO] = 0.0 if random.uniform(rng[random.COINS]) < 0.5 else 1.0
    if before == 0.0 or state[ZERO] == 1.0 or total != total:
        return 0
    return shared.block_update(
        params, n_arms, state, arm, effects.average_loss(params.limits.span, params.max_delay + 1, total)
    )


kernel.register(BlindedParams, kernel.PlayerKernel(shared.block_size, shared.block_begin, shared.block_ask, tell))


class Blinded(KernelPlayer):
    """Plays `bandit`; tosses a fair coin b_t each round, updates and redraws when (b_{t−1}, b_t) = (0, 1).

    After b_{t−1} = 0 the arm of round t is that of round t−1, so with a delay of at most 1 the total of an update
    round contains effects of one arm only: two parts, whose sum is divided by 2 and scaled to [0, 1]. On average every
    fourth round is an update round, independently of the arms played. With longer delays the totals that are fed are
    mixed; the paper's wrapper corrects this.

    bandit: the base algorithm, in kernel form.
    max_delay: d, 0 or 1. The fed loss is (total/(d+1) − lo)/(hi − lo), or 1 minus that for rewards.
    direction, low, high, out_of_range, seed: as for the wrapper. If the total of an update round is missing, the base
        is not updated and the arm is kept.

    >>> from aftereffect import Exp3
    >>> player = Blinded(Exp3(n_arms=2, learning_rate=0.1), seed=7)
    >>> rounds = [(player.ask(), player.tell(0.5))[1] for _ in range(100)]
    >>> {played.fed_loss for played in rounds if played.update}      # half the total
    {0.25}
    >>> any(a.update and b.update for a, b in zip(rounds, rounds[1:]))
    False

    Reference: Dekel, Hazan and Koren, "The blinded bandit: learning with adaptive feedback" (NIPS 2014):
    fair coins, an update after (0, 1), regret of order √(KT ln K) with Exp3 as base. The scaling and the first round
    are this library's choices, since losses in that paper are immediate.
    """

    def __init__(self, bandit: KernelBandit, *, max_delay: int = 1, **common: Unpack[Common]) -> None:
        inside = kernel_base(bandit)
        self.max_delay = checks.integer("max_delay", max_delay, low=0, high=1)
        limits = self.limits(self.max_delay + 1, **common)
        params = BlindedParams(inside.params, BLOCK + 1, self.max_delay, limits)
        super().__init__(inside, params, max_delay=self.max_delay)

    @classmethod
    def tuned(
        cls, n_arms: int, *, horizon: int, max_delay: int = 1, base: str = "exp3", **common: Unpack[Common]
    ) -> Self:
        """Return the player whose base is tuned to T/4 updates, the expected number."""
        bandit = tuned_base(base, n_arms, checks.integer("horizon", horizon, low=1) // 4)
        return cls(bandit, max_delay=max_delay, **common)
