"""BOLD: a base algorithm for each play that may be outstanding, so that each sees its losses without delay.

Joulani, György and Szepesvári 2013, "Online learning under delayed feedback". At most d plays are outstanding
when a round begins, so d+1 copies of the base suffice.
"""

from typing import Any, NamedTuple, Unpack

from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.bandits.protocol import Bandit
from aftereffect.core import checks, effects, kernel, random
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState
from aftereffect.players.base import LabelledKernelPlayer, Range, kernel_base


class BoldParams(NamedTuple):
    """base: a base algorithm's parameters. base_size: the length of its state. span: the range of a loss."""

    base: Any
    base_size: int
    max_delay: int
    span: effects.Effects


# state, after what every player has: the round, how many copies are free; the stack of the free ones; which
# copy played, for the d+1 latest rounds; the states of the d+1 copies.
ROUND, FREE, STACK = OWN, OWN + 1, OWN + 2


def size(params: BoldParams, n_arms: int) -> int:
    """Two scalars, then for each copy a place on the stack, a play and a base's state."""
    return STACK + (params.max_delay + 1) * (2 + params.base_size)


def begin(params: BoldParams, n_arms: int, state: FloatState) -> None:
    """Start all copies; the first is on top of the stack."""
    copies = params.max_delay + 1
    state[DREW], state[FED], state[ROUND], state[FREE] = 0.0, 0.0, 0.0, copies
    for k in range(copies):
        state[STACK + k] = copies - 1 - k
        state[STACK + copies + k] = 0.0
        kernel.bandit_start(params.base, n_arms, state[STACK + 2 * copies + k * params.base_size :])


def ask(params: BoldParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Let the copy that came free last draw the arm."""
    copies = params.max_delay + 1
    state[DREW] = 1.0
    state[FED] = float("nan")
    state[ROUND] += 1.0
    state[FREE] -= 1.0
    k = int(state[STACK + int(state[FREE])])
    state[STACK + copies + int(state[ROUND]) % copies] = k
    base = state[STACK + 2 * copies + k * params.base_size :]
    return kernel.bandit_draw(params.base, n_arms, base, random.uniform(rng[random.ARMS]))


def tell_one(
    params: BoldParams, n_arms: int, state: FloatState, rng: WordState, played: int, arm: int, loss: float
) -> int:
    """Feed the copy that played, and put it on the stack of free ones; a lost loss only frees it."""
    copies = params.max_delay + 1
    k = int(state[STACK + copies + played % copies])
    state[STACK + int(state[FREE])] = k
    state[FREE] += 1.0
    if loss != loss:
        return 0
    state[FED] = effects.fed_loss(params.span, 0, loss)
    base = state[STACK + 2 * copies + k * params.base_size :]
    kernel.bandit_update(params.base, n_arms, base, arm, state[FED])
    return 1


kernel.register(BoldParams, kernel.LabelledKernel(size, begin, ask, tell_one))


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
