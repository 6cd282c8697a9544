"""QPM-D: losses wait in a queue for each arm until the base algorithm wants that arm.

Joulani, György and Szepesvári 2013, "Online learning under delayed feedback", Section 4: for stochastic
losses, where it does not matter which of an arm's losses the base is given. The base then sees no delay at
all; what is paid for is only the plays made while it waits, an additive price.
"""

from typing import Any, NamedTuple, Unpack

from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.core import checks, effects, kernel, random
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState, helper
from aftereffect.players.base import LabelledKernelPlayer, Range, kernel_base


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


def size(params: QpmdParams, n_arms: int) -> int:
    """Two scalars, K queues, the base's state."""
    return QUEUES + n_arms * (params.max_delay + 3) + kernel.BANDITS[type(params.base)].size(n_arms)


def begin(params: QpmdParams, n_arms: int, state: FloatState) -> None:
    """Start the base, with empty queues."""
    for i in range(queue_at(params, n_arms)):
        state[i] = 0.0
    state[CHOICE] = -1.0
    kernel.bandit_start(params.base, n_arms, state[queue_at(params, n_arms) :])


def ask(params: QpmdParams, n_arms: int, state: FloatState, rng: WordState) -> int:
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


def tell_one(
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


kernel.register(QpmdParams, kernel.LabelledKernel(size, begin, ask, tell_one))


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
