"""Joulani, György and Szepesvári 2013, "Online learning under delayed feedback": BOLD, QPM-D and Delayed-UCB1.

BOLD has one copy of the base algorithm for each play that may be outstanding, so that each copy observes its losses
without delay; at most d plays are outstanding when a round begins, so d+1 copies suffice. QPM-D has a single base and
queues losses by arm. Delayed-UCB1 (Section 4.1) computes confidence bounds from the losses reported so far.
"""

import math
from typing import Any, NamedTuple, Unpack

from numpy.typing import ArrayLike

from aftereffect.bandits.kernel_bandit import KernelBandit, kernel_base
from aftereffect.core import checks, effects, kernel, random
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState, helper
from aftereffect.players.base import LabelledKernelPlayer
from aftereffect.players.kernels import COUNTS, begin_ask, count_one, zero_begin
from aftereffect.players.limits import Range


class BoldParams(NamedTuple):
    """base: a base algorithm's parameters. base_size: the length of its state. span: the range of a loss."""

    base: Any
    base_size: int
    max_delay: int
    span: effects.Effects


# state, after what every player has: the round, the number of free copies; the stack of free copies; which copy
# played in each of the d+1 latest rounds; the states of the d+1 copies.
BOLD_ROUND, BOLD_FREE, BOLD_STACK = OWN, OWN + 1, OWN + 2


def bold_size(params: BoldParams, n_arms: int) -> int:
    """Two scalars; for each copy a place on the stack, a play and the state of a base."""
    return BOLD_STACK + (params.max_delay + 1) * (2 + params.base_size)


def bold_begin(params: BoldParams, n_arms: int, state: FloatState) -> None:
    """Start all copies; the first is on top of the stack."""
    copies = params.max_delay + 1
    state[BOLD_FREE] = copies
    for k in range(copies):
        state[BOLD_STACK + k] = copies - 1 - k
        kernel.bandit_start(params.base, n_arms, state[BOLD_STACK + 2 * copies + k * params.base_size :])


def bold_ask(params: BoldParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Draw the arm from the copy that became free last."""
    copies = params.max_delay + 1
    begin_ask(state)
    state[BOLD_FREE] -= 1.0
    k = int(state[BOLD_STACK + int(state[BOLD_FREE])])
    state[BOLD_STACK + copies + int(state[BOLD_ROUND]) % copies] = k
    base = state[BOLD_STACK + 2 * copies + k * params.base_size :]
    return kernel.bandit_draw(params.base, n_arms, base, random.uniform(rng[random.ARMS]))


def bold_tell_one(
    params: BoldParams, n_arms: int, state: FloatState, rng: WordState, played: int, arm: int, loss: float
) -> int:
    """Feed the copy that played, and push it on the stack of free copies; a lost loss is not fed."""
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


kernel.register(BoldParams, kernel.PlayerKernel(bold_size, bold_begin, bold_ask, bold_tell_one, labelled=True))


class BOLD(LabelledKernelPlayer):
    """Black-box online learning under delays: copies of `bandit`, each busy from its draw until its loss
    arrives.

    The free copy that became free last draws the arm of a round (the paper leaves this choice open), and the loss goes
    to the copy that drew. With a fixed delay d the d+1 copies take turns, each playing every (d+1)-th round. The base
    algorithm's guarantee carries over if delays do not depend on the arm.

    bandit: an unplayed base algorithm in kernel form, tuned for ⌈T/(d+1)⌉ rounds; it is copied. max_delay: d.
    direction, low, high, seed: as for every player; the range is that of the whole effect of one play.

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
        self.max_delay = d = checks.integer("max_delay", max_delay, low=0)
        length = kernel.BANDITS[type(inside.params)].size(inside.n_arms)
        super().__init__(inside, BoldParams(inside.params, length, d, self.init_common(**common)))

    def regret_bound(self, n: int) -> float:
        """Return (d+1)·𝓡(⌈n/(d+1)⌉) times the range, a bound on the regret in whole losses.

        For the regret in composite losses, which are cut off at the horizon, add d.
        """
        n = checks.integer("n", n, low=0)
        copies = self._params.max_delay + 1
        bound: float = copies * self.inside.regret_bound(-(-n // copies))
        return bound * (self.effects.hi - self.effects.lo)


class QpmdParams(NamedTuple):
    """base: the parameters of the base algorithm. max_delay: d. span: the range of a loss."""

    base: Any
    max_delay: int
    span: effects.Effects


# state, after what every player has: the arm whose loss the base needs next (−1: not drawn yet), whether that arm was
# newly drawn; for each arm the length of its queue, the position of the first entry, and a ring buffer of d+1 entries;
# then the base's state.
#
# d+1 entries are enough: an arm is played only while its queue is empty, so its queued and outstanding losses are never
# more than d+1 together.
CHOICE, NEW, QUEUES = OWN, OWN + 1, OWN + 2


@helper
def queue_at(params: QpmdParams, arm: int) -> int:
    """Return where the queue of an arm begins: its length, the position of its first entry, then d+1 entries."""
    return QUEUES + arm * (params.max_delay + 3)


def qpmd_size(params: QpmdParams, n_arms: int) -> int:
    """Two scalars, K queues, the base's state."""
    return QUEUES + n_arms * (params.max_delay + 3) + kernel.BANDITS[type(params.base)].size(n_arms)


def qpmd_begin(params: QpmdParams, n_arms: int, state: FloatState) -> None:
    """Start the base, with empty queues."""
    state[CHOICE] = -1.0
    kernel.bandit_start(params.base, n_arms, state[queue_at(params, n_arms) :])


def qpmd_ask(params: QpmdParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Play the arm whose loss the base needs next."""
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
    """Put a loss in its arm's queue; feed the base while the queue of the arm it needs is not empty."""
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


kernel.register(QpmdParams, kernel.PlayerKernel(qpmd_size, qpmd_begin, qpmd_ask, qpmd_tell_one, labelled=True))


class QPMD(LabelledKernelPlayer):
    """Queued partial monitoring with delays: plays the arm that `bandit` drew until a loss of that arm arrives.

    Losses that arrive are queued by arm, first in first out. While the queue of the arm that the base drew is not
    empty, its first loss is fed and the base draws again, without a play. Queues are examined after every loss instead
    of once per round; the base is fed the same losses in the same order.

    bandit: an unplayed base algorithm in kernel form, UCB1 in the published baseline; it is copied.
    max_delay: d; a play is reported at most d rounds after its own round. It determines only the size of the queues.
    direction, low, high, seed: as for every player; the range is that of the whole effect of one play.

    >>> from aftereffect import Exp3
    >>> player = QPMD(Exp3(n_arms=2, learning_rate=0.1), max_delay=2, seed=7)
    >>> first = player.ask()
    >>> player.tell([]).updates
    0
    >>> player.ask() == first                       # no loss of this arm has arrived
    True

    Reference: Joulani et al. (2013), Algorithm QPM-D; E R ≤ E R_base + Σ_i Δ_i E G*_i with G*_i the maximal number of
    plays of arm i outstanding at the same time.
    """

    def __init__(self, bandit: KernelBandit, *, max_delay: int, **common: Unpack[Range]) -> None:
        inside = kernel_base(bandit)
        self.max_delay = d = checks.integer("max_delay", max_delay, low=0)
        super().__init__(inside, QpmdParams(inside.params, d, self.init_common(**common)))


class DelayedUCB1Params(NamedTuple):
    """span: the range of a loss."""

    span: effects.Effects


# state, after what every player that counts has: the number of plays of each arm.


def ucb1_size(params: DelayedUCB1Params, n_arms: int) -> int:
    """A scalar and three numbers per arm."""
    return COUNTS + 3 * n_arms


def ucb1_ask(params: DelayedUCB1Params, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Play the arm of least index or, if some arms have no reported loss, the one of them played least often."""
    begin_ask(state)
    sums, plays = COUNTS + n_arms, COUNTS + 2 * n_arms
    unknown = -1
    for i in range(n_arms):
        if state[COUNTS + i] == 0.0 and (unknown < 0 or state[plays + i] < state[plays + unknown]):
            unknown = i
    arm = unknown
    if unknown < 0:
        width = 2.0 * math.log(state[OWN])
        arm = 0
        least = state[sums] / state[COUNTS] - math.sqrt(width / state[COUNTS])
        for i in range(1, n_arms):
            index = state[sums + i] / state[COUNTS + i] - math.sqrt(width / state[COUNTS + i])
            if index < least:
                arm = i
                least = index
    state[plays + arm] += 1.0
    return arm


kernel.register(DelayedUCB1Params, kernel.PlayerKernel(ucb1_size, zero_begin, ucb1_ask, count_one, labelled=True))


class DelayedUCB1(LabelledKernelPlayer):
    """UCB1 on the reported losses: plays argmin_i mean(i) − √(2 ln t / S(i)).

    S(i) is the number of losses of arm i reported before round t, and mean(i) their mean. No bound on the delay is
    needed. While some arms have no reported loss, it plays the one of them played least often, the first if tied; this
    order is this library's choice. The algorithm is deterministic.

    direction, low, high, seed: as for every player; the range is that of the whole effect of one play.

    >>> player = DelayedUCB1(2)
    >>> for loss in (0.9, 0.1):
    ...     arm = player.ask()
    ...     told = player.tell([(arm + 1, loss)])
    >>> player.ask()                                # 0.1 − √(2 ln 3) against 0.9 − √(2 ln 3)
    1

    Reference: Joulani et al. (2013), Delayed-UCB1.
    """

    def __init__(self, n_arms: int, **common: Unpack[Range]) -> None:
        super().__init__(n_arms, DelayedUCB1Params(self.init_common(**common)))

    def regret_bound(self, n: int, gaps: ArrayLike, outstanding: float) -> float:
        """Return Σ_{Δ_i > 0} (8 ln n/Δ_i + 3.5Δ_i + Δ_i G), for the pseudo-regret under stochastic losses.

        gaps: Δ_i, one per arm. outstanding: G, the maximal number of plays of an arm outstanding at the same time; at
            most d+1.
        """
        n = checks.integer("n", n, low=1)
        waiting = checks.real("outstanding", outstanding, low=0.0)
        numbers = checks.array("gaps", gaps, shape=(self.n_arms,))
        if numbers.min() < 0.0:
            raise InvalidArgument(f"gaps must be at least 0, but the least is {float(numbers.min())!r}")
        positive = [gap for gap in numbers.tolist() if gap > 0.0]
        return math.fsum(8.0 * math.log(n) / gap + (3.5 + waiting) * gap for gap in positive)
