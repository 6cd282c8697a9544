"""Joulani, György and Szepesvári 2013, "Online learning under delayed feedback": BOLD, QPM-D and Delayed-UCB1.

BOLD has a base algorithm for each play that may be outstanding, so that each sees its losses without delay; at most d
plays are outstanding when a round begins, so d+1 copies of the base suffice. QPM-D queues losses by arm for a single
base. Delayed-UCB1 (Section 4.1) takes upper confidence bounds from the losses that have been reported.
"""

import math
from typing import Any, NamedTuple, Unpack

from numpy.typing import ArrayLike

from aftereffect.bandits.kernel_bandit import KernelBandit, kernel_base
from aftereffect.bandits.protocol import Bandit
from aftereffect.core import checks, effects, kernel, random
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState, helper
from aftereffect.players.base import LabelledKernelPlayer, Range, zero_begin


class BoldParams(NamedTuple):
    """base: a base algorithm's parameters. base_size: the length of its state. span: the range of a loss."""

    base: Any
    base_size: int
    max_delay: int
    span: effects.Effects


# state, after what every player has: the round, how many copies are free; the stack of the free ones; which
# copy played, for the d+1 latest rounds; the states of the d+1 copies.
BOLD_ROUND, BOLD_FREE, BOLD_STACK = OWN, OWN + 1, OWN + 2


def bold_size(params: BoldParams, n_arms: int) -> int:
    """Two scalars, then for each copy a place on the stack, a play and a base's state."""
    return BOLD_STACK + (params.max_delay + 1) * (2 + params.base_size)


def bold_begin(params: BoldParams, n_arms: int, state: FloatState) -> None:
    """Start all copies; the first is on top of the stack."""
    copies = params.max_delay + 1
    state[DREW], state[FED], state[BOLD_ROUND], state[BOLD_FREE] = 0.0, 0.0, 0.0, copies
    for k in range(copies):
        state[BOLD_STACK + k] = copies - 1 - k
        state[BOLD_STACK + copies + k] = 0.0
        kernel.bandit_start(params.base, n_arms, state[BOLD_STACK + 2 * copies + k * params.base_size :])


def bold_ask(params: BoldParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Let the copy that came free last draw the arm."""
    copies = params.max_delay + 1
    state[DREW] = 1.0
    state[FED] = float("nan")
    state[BOLD_ROUND] += 1.0
    state[BOLD_FREE] -= 1.0
    k = int(state[BOLD_STACK + int(state[BOLD_FREE])])
    state[BOLD_STACK + copies + int(state[BOLD_ROUND]) % copies] = k
    base = state[BOLD_STACK + 2 * copies + k * params.base_size :]
    return kernel.bandit_draw(params.base, n_arms, base, random.uniform(rng[random.ARMS]))


def bold_tell_one(
    params: BoldParams, n_arms: int, state: FloatState, rng: WordState, played: int, arm: int, loss: float
) -> int:
    """Feed the copy that played, and put it on the stack of free ones; a lost loss only frees it."""
    copies = params.max_delay + 1
    k = int(state[BOLD_STACK + copies + played % copies])
    state[BOLD_STACK + int(state[BOLD_FREE])] = k
    state[BOLD_FREE] += 1.0
    if loss != loss:
        return 0
    state[FED] = effects.fed_loss(params.span, 0, loss)
    base = state[BOLD_STACK + 2 * copies + k * params.base_size :]
    kernel.bandit_update(params.base, n_arms, base, arm, state[FED])
    return 1


kernel.register(BoldParams, kernel.LabelledKernel(bold_size, bold_begin, bold_ask, bold_tell_one))


class BOLD(LabelledKernelPlayer):
    """Black-box online learning under delays: copies of `bandit`, each busy from its draw until its loss
    arrives.

    A free copy draws the arm of a round (of several, the one that came free last: the paper leaves the choice
    open); the loss goes to the copy that played. With the fixed delay d the copies take turns, d+1 of them on
    every (d+1)-th round. The base algorithm's guarantee carries over where delays do not depend on the arm.

    bandit: an unplayed base algorithm in kernel form, tuned for ⌈T/(d+1)⌉ rounds; it is copied. max_delay: d.
    direction, low, high, seed: as for every player; the range is that of what one play does in all.

    >>> from aftereffect import Exp3
    >>> player = BOLD(Exp3(n_arms=3, learning_rate=0.1), max_delay=4, seed=7)
    >>> arm = player.ask()
    >>> player.tell([(1, 0.5)]).fed_loss
    0.5

    Reference: Joulani et al. (2013), BOLD and its regret (G*+1)·f(n/(G*+1)) for a base with regret f and G*
    outstanding plays.
    """

    def __init__(self, bandit: KernelBandit, *, max_delay: int, **common: Unpack[Range]) -> None:
        inside = kernel_base(bandit)
        max_delay = checks.integer("max_delay", max_delay, low=0)
        length = kernel.BANDITS[type(inside.params)].size(inside.n_arms)
        params = BoldParams(inside.params, length, max_delay, self.span(**common))
        super().__init__(inside, params, max_delay=max_delay)

    def regret_bound(self, n: int) -> float:
        """Return (d+1)·𝓡(⌈n/(d+1)⌉): the regret in whole losses of plays, times the range.

        In composite losses, which end with the horizon, add d.
        """
        n = checks.integer("n", n, low=0)
        copies = self._params.max_delay + 1
        bandit: Bandit = self.inside
        bound: float = copies * bandit.regret_bound(-(-n // copies))
        return bound * (self.effects.hi - self.effects.lo)


class QpmdParams(NamedTuple):
    """base: the parameters of the base algorithm. max_delay: d. span: the range of a loss."""

    base: Any
    max_delay: int
    span: effects.Effects


# state, after what every player has: the arm the base waits for (−1: not drawn yet), whether it is a new one;
# for each arm how many losses wait, where the first of them is, and d+1 places in a ring; then the base's
# state.
#
# d+1 places are enough: an arm is played only while its queue is empty, so what waits and what is outstanding
# of it are never more than d+1 together.
CHOICE, NEW, QUEUES = OWN, OWN + 1, OWN + 2


@helper
def queue_at(params: QpmdParams, arm: int) -> int:
    """Return where the queue of an arm begins: its length, its first place, then d+1 places."""
    return QUEUES + arm * (params.max_delay + 3)


def qpmd_size(params: QpmdParams, n_arms: int) -> int:
    """Two scalars, K queues, the base's state."""
    return QUEUES + n_arms * (params.max_delay + 3) + kernel.BANDITS[type(params.base)].size(n_arms)


def qpmd_begin(params: QpmdParams, n_arms: int, state: FloatState) -> None:
    """Start the base, with empty queues."""
    for i in range(queue_at(params, n_arms)):
        state[i] = 0.0
    state[CHOICE] = -1.0
    kernel.bandit_start(params.base, n_arms, state[queue_at(params, n_arms) :])


def qpmd_ask(params: QpmdParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Play the arm that the base waits for."""
    if state[CHOICE] < 0.0:
        choose(params, n_arms, state, rng)
    state[DREW] = state[NEW]
    state[NEW] = 0.0
    state[FED] = float("nan")
    return int(state[CHOICE])


@helper
def choose(params: QpmdParams, n_arms: int, state: FloatState, rng: WordState) -> None:
    """Draw the base's next arm."""
    base = state[queue_at(params, n_arms) :]
    state[CHOICE] = kernel.bandit_draw(params.base, n_arms, base, random.uniform(rng[random.ARMS]))
    state[NEW] = 1.0


def qpmd_tell_one(
    params: QpmdParams, n_arms: int, state: FloatState, rng: WordState, played: int, arm: int, loss: float
) -> int:
    """Let a loss wait in its arm's queue; feed the base as long as there is one of the arm it wants."""
    if loss != loss:
        return 0
    places = params.max_delay + 1
    queue = queue_at(params, arm)
    state[queue + 2 + int(state[queue + 1] + state[queue]) % places] = effects.fed_loss(params.span, 0, loss)
    state[queue] += 1.0
    updates = 0
    queue = queue_at(params, int(state[CHOICE]))
    while state[queue] > 0.0:
        place = int(state[queue + 1])
        state[FED] = state[queue + 2 + place]
        state[queue + 1] = (place + 1) % places
        state[queue] -= 1.0
        kernel.bandit_update(params.base, n_arms, state[queue_at(params, n_arms) :], int(state[CHOICE]), state[FED])
        updates += 1
        choose(params, n_arms, state, rng)
        queue = queue_at(params, int(state[CHOICE]))
    return updates


kernel.register(QpmdParams, kernel.LabelledKernel(qpmd_size, qpmd_begin, qpmd_ask, qpmd_tell_one))


class QPMD(LabelledKernelPlayer):
    """Queued partial monitoring with delays: plays the arm `bandit` wants until it can be fed.

    Losses that arrive are queued by arm, first in first out. While the queue of the arm that the base wants
    holds one, it is fed and the base wants its next arm, without a play. Queues are looked at after every
    loss instead of once a round: the base takes the same losses in the same order.

    bandit: an unplayed base algorithm in kernel form; the published baseline has UCB1. It is copied.
    max_delay: d, the most rounds after its own that a play is reported; the algorithm uses it only for the
        room it takes.
    direction, low, high, seed: as for every player; the range is that of what one play does in all.

    >>> from aftereffect import Exp3
    >>> player = QPMD(Exp3(n_arms=2, learning_rate=0.1), max_delay=2, seed=7)
    >>> first = player.ask()
    >>> player.tell([]).updates
    0
    >>> player.ask() == first                       # the base still waits
    True

    Reference: Joulani et al. (2013), Algorithm QPM-D; E R ≤ E R_base + Σ_i Δ_i E G*_i with G*_i the most
    plays of arm i that were ever outstanding.
    """

    def __init__(self, bandit: KernelBandit, *, max_delay: int, **common: Unpack[Range]) -> None:
        inside = kernel_base(bandit)
        max_delay = checks.integer("max_delay", max_delay, low=0)
        params = QpmdParams(inside.params, max_delay, self.span(**common))
        super().__init__(inside, params, max_delay=max_delay)


class DelayedUCB1Params(NamedTuple):
    """span: the range of a loss."""

    span: effects.Effects


# state, after what every player has: the round; for each arm how often it was reported, the sum of its
# losses, how often it was played.
UCB1_ROUND, UCB1_COUNTS = OWN, OWN + 1


def ucb1_size(params: DelayedUCB1Params, n_arms: int) -> int:
    """A scalar and three numbers an arm."""
    return UCB1_COUNTS + 3 * n_arms


def ucb1_ask(params: DelayedUCB1Params, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Play the arm of least index; as long as some were never reported, the least played of those."""
    state[DREW] = 1.0
    state[FED] = float("nan")
    state[UCB1_ROUND] += 1.0
    sums, plays = UCB1_COUNTS + n_arms, UCB1_COUNTS + 2 * n_arms
    unknown = -1
    for i in range(n_arms):
        if state[UCB1_COUNTS + i] == 0.0 and (unknown < 0 or state[plays + i] < state[plays + unknown]):
            unknown = i
    arm = unknown
    if unknown < 0:
        width = 2.0 * math.log(state[UCB1_ROUND])
        arm = 0
        least = state[sums] / state[UCB1_COUNTS] - math.sqrt(width / state[UCB1_COUNTS])
        for i in range(1, n_arms):
            index = state[sums + i] / state[UCB1_COUNTS + i] - math.sqrt(width / state[UCB1_COUNTS + i])
            if index < least:
                arm = i
                least = index
    state[plays + arm] += 1.0
    return arm


def ucb1_tell_one(
    params: DelayedUCB1Params, n_arms: int, state: FloatState, rng: WordState, played: int, arm: int, loss: float
) -> int:
    """Count a loss for its arm."""
    if loss != loss:
        return 0
    state[FED] = effects.fed_loss(params.span, 0, loss)
    state[UCB1_COUNTS + arm] += 1.0
    state[UCB1_COUNTS + n_arms + arm] += state[FED]
    return 1


kernel.register(DelayedUCB1Params, kernel.LabelledKernel(ucb1_size, zero_begin, ucb1_ask, ucb1_tell_one))


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
