"""The A/B test: try all arms for a fixed number of rounds, then play the winner for good. What most people would do.

    round        1 2 3 4 5 6 ... n │ n+1 ...
    plays        0 1 2 0 1 2 ...   │ winner, for ever

The arm of a round is credited with the total of that round, which also holds effects of earlier arms. The test takes no
account of them, unless an arm is held for longer than effects last.
"""

import math
from typing import Any, NamedTuple, Self, Unpack

from aftereffect.core import checks, effects, kernel
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState, helper
from aftereffect.core.random import ARMS, uniform
from aftereffect.players import base as shared
from aftereffect.players.base import REFUSED, Common, KernelPlayer, Limits

ORDERS = ("turns", "random")


class ABTestParams(NamedTuple):
    """test_rounds: n. at_random: whether arms are drawn, not taken in turns. n_units: M, see `players/base.py`."""

    test_rounds: int
    hold: int
    at_random: bool
    limits: Limits
    n_units: int


# state, after what every player has: how often it was asked and told, M times a round; the winner; then the sums and
# the numbers of the totals of each arm, and the arm of each unit.
ASKED, TOLD, WINNER, SUMS = OWN, OWN + 1, OWN + 2, OWN + 3


def size(params: ABTestParams, n_arms: int) -> int:
    """Three scalars, two numbers per arm, one per unit."""
    return SUMS + 2 * n_arms + params.n_units


def ask(params: ABTestParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Take a turn or draw an arm where a hold begins; after the test play the winner."""
    t, unit = int(state[ASKED]) // params.n_units, int(state[ASKED]) % params.n_units
    arms = state[SUMS + 2 * n_arms :]
    state[ASKED] += 1.0
    state[DREW] = 1.0 if t <= params.test_rounds else 0.0
    if t == params.test_rounds and unit == 0:
        state[WINNER] = best_mean(params, n_arms, state)
    if t >= params.test_rounds:
        arms[unit] = state[WINNER]
    elif t % params.hold == 0:
        arms[unit] = (t // params.hold + unit) % n_arms
        if params.at_random:
            arms[unit] = min(int(uniform(rng[ARMS]) * n_arms), n_arms - 1)
    return int(arms[unit])


@helper
def best_mean(params: ABTestParams, n_arms: int, state: FloatState) -> int:
    """Return the arm of least mean total, the greatest for rewards; the first in case of ties, never one unseen."""
    best, least = 0, math.inf
    sign = -1.0 if params.limits.span.maximize else 1.0
    for i in range(n_arms):
        count = state[SUMS + n_arms + i]
        if count > 0.0 and sign * state[SUMS + i] / count < least:
            best, least = i, sign * state[SUMS + i] / count
    return best


def tell(params: ABTestParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Credit the total to the arm of this round, as long as the test lasts."""
    t = int(state[TOLD]) // params.n_units
    total = shared.begin_tell(params.limits, t + 1.0, state, total)
    if total == REFUSED:
        return -1
    state[TOLD] += 1.0
    if total != total or t >= params.test_rounds:
        return 0
    state[FED] = effects.average_loss(params.limits.span, 1, total)
    state[SUMS + arm] += total
    state[SUMS + n_arms + arm] += 1.0
    return 1


kernel.register(ABTestParams, kernel.PlayerKernel(size, shared.zero_begin, ask, tell))


class ABTest(KernelPlayer):
    """Tries every arm for `test_rounds` rounds, then plays the arm of the best mean total for good.

    test_rounds: n ≥ 1, how long the test lasts.
    hold: for how many rounds an arm is kept in the test. Totals of a long hold are mostly those of its arm.
    order: "turns", arm after arm, an equal split; or "random", each hold has an arm drawn at random. In a panel
        (`ae.Panel`) unit u begins with arm u mod K, and all units have the same winner, by the totals of all of them.
    direction, low, high, out_of_range, seed: as for the wrapper. A missing total is left out of the means.

    It has no guarantee: the winner may be wrong, and is never doubted again.

    >>> player = ABTest(n_arms=2, test_rounds=4, seed=7)
    >>> for total in (0.5, 0.25, 0.75, 0.0, 0.5):
    ...     arm = player.ask()
    ...     played = player.tell(total)
    >>> arm                                      # the mean total was 0.625 with arm 0, 0.125 with arm 1
    1
    """

    def __init__(
        self, n_arms: int, *, test_rounds: int, hold: int = 1, order: str = "turns", **common: Unpack[Common]
    ) -> None:
        self.test_rounds = checks.integer("test_rounds", test_rounds, low=1)
        self.hold = checks.integer("hold", hold, low=1)
        self.order = checks.choice("order", order, ORDERS)
        limits = self.limits(None, **common)
        params = ABTestParams(self.test_rounds, self.hold, order == "random", limits, 1)
        super().__init__(n_arms, params, test_rounds=self.test_rounds, hold=self.hold, order=self.order)

    @classmethod
    def tuned(cls, n_arms: int, *, horizon: int, share: float = 0.25, **others: Any) -> Self:
        """Return a test that lasts for a share of the horizon, and for at least as many rounds as there are arms."""
        horizon = checks.integer("horizon", horizon, low=1)
        share = checks.real("share", share, above=0.0, high=1.0)
        rounds = max(round(share * horizon), checks.integer("n_arms", n_arms, low=2))
        return cls(n_arms, test_rounds=rounds, **others)
