"""The A/B test: try all arms for a fixed number of rounds, then play the winner for good. What most people would do.

    round        1 2 3 4 5 6 ... n │ n+1 ...
    plays        0 1 2 0 1 2 ...   │ winner, for ever

By default the arm of a round is credited with the total of that round, which also holds effects of earlier arms: they
mislead the test unless an arm is held for longer than effects last. With `winner="lags"` the lag model
(`lags/kernels.py`) hears the test, and names the winner.
"""

import math
from typing import Any, NamedTuple, Self, Unpack

from aftereffect.core import checks, effects, kernel
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState, helper
from aftereffect.core.random import ARMS, uniform
from aftereffect.lags import kernels as lags
from aftereffect.lags.model import LARGEST, checked_params
from aftereffect.players.base import KernelPlayer
from aftereffect.players.kernels import zero_begin
from aftereffect.players.limits import Common, Limits

ORDERS = ("turns", "random")
WINNERS = ("means", "lags")


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


@helper
def size(params: Any, n_arms: int) -> int:
    """Three scalars, two numbers per arm, one per unit."""
    return int(SUMS + 2 * n_arms + params.n_units)


def ask(params: ABTestParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Return the arm of the next unit; at the end of the test name the winner."""
    if ended(params, state):
        means = state[SUMS:]
        sign = 1.0 if params.limits.span.maximize else -1.0
        best, most = 0, -math.inf
        for i in range(n_arms):
            count = means[n_arms + i]
            if count > 0.0 and sign * means[i] / count > most:
                best, most = i, sign * means[i] / count
        state[WINNER] = best
    return play(params, n_arms, state, rng)


@helper
def ended(params: Any, state: FloatState) -> bool:
    """Whether the first unit is asked for the first time after the test."""
    return bool(state[ASKED] == float(params.test_rounds) * params.n_units)


@helper
def play(params: Any, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Take a turn or draw an arm where a hold begins; after the test play the winner."""
    t, unit = int(state[ASKED]) // params.n_units, int(state[ASKED]) % params.n_units
    arms = state[SUMS + 2 * n_arms :]
    state[ASKED] += 1.0
    state[DREW] = 1.0 if t <= params.test_rounds else 0.0
    if t >= params.test_rounds:
        arms[unit] = state[WINNER]
    elif t % params.hold == 0:
        arms[unit] = (t // params.hold + unit) % n_arms
        if params.at_random:
            arms[unit] = min(int(uniform(rng[ARMS]) * n_arms), n_arms - 1)
    return int(arms[unit])


@helper
def tell(params: Any, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Credit the total to the arm of this round, as long as the test lasts."""
    t = int(state[TOLD]) // params.n_units
    state[TOLD] += 1.0
    if total != total or t >= params.test_rounds:
        return 0
    state[FED] = effects.average_loss(params.limits.span, 1, total)
    state[SUMS + arm] += total
    state[SUMS + n_arms + arm] += 1.0
    return 1


kernel.register(ABTestParams, kernel.PlayerKernel(size, zero_begin, ask, tell))


class LagTestParams(NamedTuple):
    """The fields of `ABTestParams`, and the parameters of the lag model, whose state and judgement follow at the end.

    A type of its own, so that a test by means need not compile the model.
    """

    test_rounds: int
    hold: int
    at_random: bool
    limits: Limits
    n_units: int
    model: lags.LagParams


def lag_size(params: LagTestParams, n_arms: int) -> int:
    """Return the length of the state."""
    return int(size(params, n_arms) + lags.size(params.model, n_arms) + lags.judgement_size(n_arms))


def lag_begin(params: LagTestParams, n_arms: int, state: FloatState) -> None:
    """Write the state before round 1."""
    lags.begin(params.model, n_arms, state[size(params, n_arms) :])


def lag_ask(params: LagTestParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Return the arm of the next unit; at the end of the test let the model name the winner, never an arm unseen."""
    if ended(params, state):
        model = state[size(params, n_arms) :]
        work = model[lags.size(params.model, n_arms) :]
        lags.judge(params.model, n_arms, model, work)
        # The mean effects of arms are in front of the test of age.
        found = work[lags.judgement_size(n_arms) - 1 - n_arms :]
        best, most = 0, -math.inf
        for i in range(n_arms):
            if state[SUMS + n_arms + i] > 0.0 and found[i] > most:
                best, most = i, found[i]
        state[WINNER] = best
    return play(params, n_arms, state, rng)


def lag_tell(params: LagTestParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Let the model hear the total too, as long as the test lasts."""
    t, unit = int(state[TOLD]) // params.n_units, int(state[TOLD]) % params.n_units
    told = tell(params, n_arms, state, rng, arm, total)
    if told >= 0 and t < params.test_rounds:
        heard = total if abs(total) <= LARGEST else math.nan
        lags.hear(params.model, n_arms, state[size(params, n_arms) :], unit, arm, heard)
    return told


kernel.register(LagTestParams, kernel.PlayerKernel(lag_size, lag_begin, lag_ask, lag_tell))


class ABTest(KernelPlayer):
    """Tries all arms for `test_rounds` rounds, then plays the winner for good.

    test_rounds: n ≥ 1, how long the test lasts.
    hold: for how many rounds an arm is kept in the test. Totals of a long hold are mostly those of its arm.
    order: "turns", arm after arm, an equal split; or "random", each hold has an arm drawn at random. In a panel
        (`ae.Panel`) unit u begins with arm u mod K, and all units have the same winner, by the totals of all of them.
    winner: "means", the arm of the best mean total; or "lags", the arm of the best whole effect by the lag model
        (`ae.LagModel`), best with short holds in random order. max_lag: the longest lag of the model.
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
        self,
        n_arms: int,
        *,
        test_rounds: int,
        hold: int = 1,
        order: str = "turns",
        winner: str = "means",
        max_lag: int = 14,
        **common: Unpack[Common],
    ) -> None:
        self.test_rounds = checks.integer("test_rounds", test_rounds, low=1, high=2**53)
        self.hold = checks.integer("hold", hold, low=1, high=2**53)
        self.order = checks.choice("order", order, ORDERS)
        self.winner = checks.choice("winner", winner, WINNERS)
        self.max_lag = checks.integer("max_lag", max_lag, low=0)
        params = ABTestParams(self.test_rounds, self.hold, order == "random", self.limits(None, **common), 1)
        if winner == "means":
            super().__init__(n_arms, params)
        else:
            model = checked_params(n_arms, self.max_lag, None, 0, self.direction, 1)
            super().__init__(n_arms, LagTestParams(*params, model))

    @classmethod
    def tuned(cls, n_arms: int, *, horizon: int, share: float = 0.25, **others: Any) -> Self:
        """Return a test that lasts for a share of the horizon, and for at least as many rounds as there are arms."""
        horizon = checks.integer("horizon", horizon, low=1)
        share = checks.real("share", share, above=0.0, high=1.0)
        rounds = max(round(share * horizon), checks.integer("n_arms", n_arms, low=2))
        return cls(n_arms, test_rounds=rounds, **others)
