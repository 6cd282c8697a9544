"""Naive play: attributes each round's total to the arm of that round, as if there were no delays.

This is the usual way to run a bandit on daily totals. Under composite feedback the total also contains effects of
earlier arms, so the attribution is wrong whenever the arm changes, and an arm whose effect is delayed seems to cost
nothing.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.bandits.protocol import Bandit
from aftereffect.core import checks, effects, kernel
from aftereffect.core.errors import InvalidTotal
from aftereffect.core.kernel import FloatState, WordState
from aftereffect.players.base import OWNERS, BanditPlayer, draw_arm, feed
from aftereffect.players.kernels import BLOCK, DRAW, block_ask, block_begin, block_size, block_update
from aftereffect.players.limits import REFUSED, Common, Limits, limits_of, total_rule, usable_total


class NaiveParams(NamedTuple):
    """base: the parameters of the base algorithm; base_at: where its state begins. totals: the range of totals."""

    base: Any
    base_at: int
    totals: effects.Effects
    limits: Limits


def tell(params: NaiveParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Feed the total as the loss of this arm."""
    # Blocks are single rounds.
    state[DRAW] = 1.0
    if total != total:
        return 0
    return block_update(params, n_arms, state, arm, effects.fed_loss(params.totals, 0, total))


kernel.register(NaiveParams, kernel.PlayerKernel(block_size, block_begin, block_ask, tell))


class Naive(BanditPlayer):
    """Plays `bandit` every round and feeds it each round's total as the loss of that round's arm.

    bandit: the base algorithm, any object with the Bandit attributes.
    max_delay: d. Totals, to which d+1 actions contribute, are scaled from (d+1)·[lo, hi] to [0, 1]. None, the default,
        means that d is not known: totals are scaled from [lo, hi], as if there were no delays, and clipped to [0, 1].
    direction, low, high, out_of_range, seed: as for the wrapper. After a missing total the base is not updated.

    >>> from aftereffect import Exp3, Naive
    >>> player = Naive(Exp3(n_arms=2, learning_rate=0.1), max_delay=3, seed=7)
    >>> arm = player.ask()
    >>> player.tell(1.0).fed_loss
    0.25
    """

    OWN_SAVED = ("arm_stream",)
    _drawn = True

    def __init__(self, bandit: Bandit, *, max_delay: int | None = None, **common: Unpack[Common]) -> None:
        super().__init__(bandit, **common)
        self.max_delay = None if max_delay is None else checks.integer("max_delay", max_delay, low=0)
        self._parts = None if self.max_delay is None else self.max_delay + 1
        parts, span = self._parts or 1, self.effects
        self._totals = effects.Effects(parts * span.lo, parts * span.hi, span.maximize)
        self._limits = limits_of(span, self._parts, self.out_of_range)
        OWNERS[id(bandit)] = self

    def ask(self) -> int:
        """Return the arm to play in this round; the same until `tell`."""
        if not self._open:
            ahead = self._arm_words()
            self._arms, self._arm_stream = [draw_arm(self.bandit, ahead)], ahead
            self._round += 1
            self._open = True
        return self._arms[0]

    def _tell_all(self, totals: Sequence[float | None], fed: list[float | None]) -> int:
        (total,) = totals
        given = math.nan if total is None else checks.total(total)
        value = usable_total(self._limits, self._round, given)
        if value == REFUSED:
            raise InvalidTotal(f"{total_rule(self.effects, self._parts, self._round)}, but got {given!r}")
        heard = value == value
        fed.append(effects.fed_loss(self._totals, 0, value) if heard else None)
        if heard:
            feed(self.bandit, self._arms, fed)
        self._open = False
        return int(heard)

    def kernel(self) -> NaiveParams | None:
        """Return the player in kernel form, or None if its base has no kernel form."""
        if not isinstance(self.bandit, KernelBandit):
            return None
        return NaiveParams(self.bandit.params, BLOCK, self._totals, self._limits)
