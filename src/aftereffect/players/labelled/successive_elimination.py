"""Successive elimination under delays of any law (Lancewicki, Segal, Koren and Mansour 2021).

The active arms are played in turn. After each turn an arm is dropped if its mean, over the losses reported so far, is
too large to be the least: with n(i) reported losses of arm i and the radius r(i) = √(2 ln T / max(n(i), 1)),

    arm i is dropped if mean(i) − r(i) > mean(j) + r(j) for an active arm j

Arms are compared only by what has been reported and are played alike until one is dropped, so that a delay costs what
the plays of its length cost, once, and of losses that are never reported only the share matters: if the share q of the
losses is reported within d(q) rounds, the regret is of the order of Σ ln T/(qΔ_i) plus d(q). Delays must not depend on
the losses.

The rate is that of the published table. Of the paper's text only the opening was at hand; radius and order of the steps
are those of the usual algorithm, of which a public program for this paper has the same.
"""

import math
from typing import NamedTuple, Unpack

from aftereffect.core import checks, effects, kernel
from aftereffect.core.kernel import FloatState, WordState, helper
from aftereffect.players.base import LabelledKernelPlayer
from aftereffect.players.kernels import COUNTS, begin_ask, count_one, zero_begin
from aftereffect.players.limits import Range


class EliminationParams(NamedTuple):
    """width: 2 ln T. span: the range of a loss."""

    width: float
    span: effects.Effects


# state, after what every player that counts has: for each arm 1 if it was dropped; the arm played last plus 1.


def size(params: EliminationParams, n_arms: int) -> int:
    """Two scalars and three numbers per arm."""
    return COUNTS + 3 * n_arms + 1


def ask(params: EliminationParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Play the next active arm; when all had their turn, drop arms first."""
    begin_ask(state)
    dropped = state[COUNTS + 2 * n_arms :]
    arm = int(dropped[n_arms])
    while arm < n_arms and dropped[arm] == 1.0:
        arm += 1
    if arm == n_arms:
        drop(params, n_arms, state)
        arm = 0
        while dropped[arm] == 1.0:
            arm += 1
    dropped[n_arms] = arm + 1
    return arm


@helper
def drop(params: EliminationParams, n_arms: int, state: FloatState) -> None:
    """Drop the arms whose lower bound is above the least upper bound; an arm that has this bound stays."""
    least = math.inf
    for i in range(n_arms):
        n = max(state[COUNTS + i], 1.0)
        if state[COUNTS + 2 * n_arms + i] == 0.0:
            least = min(least, state[COUNTS + n_arms + i] / n + math.sqrt(params.width / n))
    for i in range(n_arms):
        n = max(state[COUNTS + i], 1.0)
        if state[COUNTS + n_arms + i] / n - math.sqrt(params.width / n) > least:
            state[COUNTS + 2 * n_arms + i] = 1.0


kernel.register(EliminationParams, kernel.PlayerKernel(size, zero_begin, ask, count_one, labelled=True))


class SuccessiveElimination(LabelledKernelPlayer):
    """Plays the active arms in turn, and drops those that cannot be best by the losses reported so far.

    n_arms: K. horizon: T, in the radius √(2 ln T / n). No bound on the delay is needed, and losses may be lost.
    direction, low, high, seed: as for every player; the range is that of the whole effect of one play. The algorithm
    is deterministic.

    >>> player = SuccessiveElimination(2, horizon=10)
    >>> arms = []
    >>> for t in range(1, 60):                      # arm 0 loses nothing, arm 1 loses 1 in every play
    ...     arms.append(player.ask())
    ...     told = player.tell([(t, float(arms[-1]))])
    >>> arms.count(1)                               # the least n with 2 √(2 ln 10 / n) < 1
    19

    Reference: Lancewicki, Segal, Koren and Mansour, "Stochastic multi-armed bandits with unrestricted delay
    distributions", ICML 2021.
    """

    def __init__(self, n_arms: int, *, horizon: int, **common: Unpack[Range]) -> None:
        self.horizon = checks.integer("horizon", horizon, low=1)
        super().__init__(n_arms, EliminationParams(2.0 * math.log(self.horizon), self.init_common(**common)))
