"""Delayed-UCB1: upper confidence bounds from the losses that have been reported.

Joulani, György and Szepesvári 2013, "Online learning under delayed feedback", Section 4.1.
"""

import math
from typing import NamedTuple, Unpack

from numpy.typing import ArrayLike

from aftereffect.core import checks, effects, kernel
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState
from aftereffect.players.base import LabelledKernelPlayer, Range


class DelayedUCB1Params(NamedTuple):
    """span: the range of a loss."""

    span: effects.Effects


# state, after what every player has: the round; for each arm how often it was reported, the sum of its
# losses, how often it was played.
ROUND, COUNTS = OWN, OWN + 1


def size(params: DelayedUCB1Params, n_arms: int) -> int:
    """A scalar and three numbers an arm."""
    return COUNTS + 3 * n_arms


def begin(params: DelayedUCB1Params, n_arms: int, state: FloatState) -> None:
    """Know nothing."""
    for i in range(COUNTS + 3 * n_arms):
        state[i] = 0.0


def ask(params: DelayedUCB1Params, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Play the arm of least index; as long as some were never reported, the least played of those."""
    state[DREW] = 1.0
    state[FED] = float("nan")
    state[ROUND] += 1.0
    sums, plays = COUNTS + n_arms, COUNTS + 2 * n_arms
    unknown = -1
    for i in range(n_arms):
        if state[COUNTS + i] == 0.0 and (unknown < 0 or state[plays + i] < state[plays + unknown]):
            unknown = i
    arm = unknown
    if unknown < 0:
        width = 2.0 * math.log(state[ROUND])
        arm = 0
        least = state[sums] / state[COUNTS] - math.sqrt(width / state[COUNTS])
        for i in range(1, n_arms):
            index = state[sums + i] / state[COUNTS + i] - math.sqrt(width / state[COUNTS + i])
            if index < least:
                arm = i
                least = index
    state[plays + arm] += 1.0
    return arm


def tell_one(
    params: DelayedUCB1Params, n_arms: int, state: FloatState, rng: WordState, played: int, arm: int, loss: float
) -> int:
    """Count a loss for its arm."""
    if loss != loss:
        return 0
    state[FED] = effects.fed_loss(params.span, 0, loss)
    state[COUNTS + arm] += 1.0
    state[COUNTS + n_arms + arm] += state[FED]
    return 1


kernel.register(DelayedUCB1Params, kernel.LabelledKernel(size, begin, ask, tell_one))


class DelayedUCB1(LabelledKernelPlayer):
    """UCB1 on what is known: plays argmin_i mean(i) − √(2 ln t / S(i)).

    S(i) counts the losses of arm i reported before round t, and mean(i) is their mean. It needs no bound on
    the delay. Among arms that were never reported it plays the one played least often, the first if tied;
    this order is chosen here. It draws nothing at random.

    direction, low, high, seed: as for every player; the range is that of what one play does in all.

    >>> player = DelayedUCB1(2)
    >>> for loss in (0.9, 0.1):
    ...     arm = player.ask()
    ...     told = player.tell([(arm + 1, loss)])
    >>> player.ask()                                # 0.1 − √(2 ln 3) against 0.9 − √(2 ln 3)
    1

    Reference: Joulani et al. (2013), Delayed-UCB1.
    """

    def __init__(self, n_arms: int, **common: Unpack[Range]) -> None:
        super().__init__(n_arms, DelayedUCB1Params(self.span(**common)))

    def regret_bound(self, n: int, gaps: ArrayLike, outstanding: float) -> float:
        """Return Σ_{Δ_i > 0} (8 ln n/Δ_i + 3.5Δ_i + Δ_i G), for the pseudo-regret under stochastic losses.

        gaps: Δ_i, one an arm. outstanding: G, the most plays of an arm that are ever outstanding; at most
            d+1.
        """
        n = checks.integer("n", n, low=1)
        waiting = checks.real("outstanding", outstanding, low=0.0)
        numbers = checks.array("gaps", gaps, shape=(self.n_arms,))
        if numbers.min() < 0.0:
            raise InvalidArgument(f"gaps must be at least 0, but the least is {float(numbers.min())!r}")
        positive = [gap for gap in numbers.tolist() if gap > 0.0]
        return math.fsum(8.0 * math.log(n) / gap + (3.5 + waiting) * gap for gap in positive)
