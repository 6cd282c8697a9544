"""A base algorithm of one's own in kernel form: FTRL with the log barrier, a rate for each arm, and a prediction of
the next loss; it needs no horizon or tuning.

With rates η(i) and predictions m(i) for the next loss, both known before the draw,

    q = argmin ⟨L̂ + m, q⟩ + Σ η(i) ln(1/q(i)),   that is   q(i) = η(i)/(L̂(i) + m(i) − λ).

The estimate ẑ(i) = m(i) + 1{J=i}(ℓ − m(i))/q(i) differs from the prediction only at the arm played, and with the
barrier this difference costs

    cost = η(J) (s − ln(1 + s)),   s = (ℓ − m(J))/η(J) > −1,

for every q(J). Predictions are capped so that 1/m(i) ≥ 1 + 1/η(i); then no error costs more than a loss of 1 that was
predicted as 0. Update n adds cost/ln(Kn) to the rate of its arm: the regret after N updates is on average at most
1 + Kη₁ ln(KN) + O(√(KN ln(KN))), for every N. The proof is in docs/theory/log_barrier.md.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aftereffect.bandits.kernel_bandit import stored_draw, stored_probabilities
from aftereffect.bandits.tsallis import FTRLBandit, number
from aftereffect.core import checks, kernel
from aftereffect.core.kernel import FloatState, IntState, helper

FIRST_RATE = 0.1
MEMORY = 20.0


class LogBarrierParams(NamedTuple):
    """first_rate: η₁. memory: the number of updates over which the prediction averages."""

    first_rate: float
    memory: float


# state: q in [0, K), the estimated losses L, relative to the least of them, in [K, 2K), the rates in [2K, 3K), the
# losses of an update minus their predictions in [3K, 4K), and from 4K on the numbers below;
# q(i) = η(i)/(L(i) + m(i) + LEVEL).
LEVEL, MEAN, SEEN, COST, NUMBERS = 0, 1, 2, 3, 4


def size(n_arms: int) -> int:
    """Four numbers per arm, and four scalars."""
    return 4 * n_arms + NUMBERS


def start(params: LogBarrierParams, n_arms: int, state: FloatState) -> None:
    """No losses yet: q uniform, all rates η₁, predictions 0."""
    for i in range(4 * n_arms + NUMBERS):
        state[i] = 0.0
    for i in range(n_arms):
        state[i] = 1.0 / n_arms
        state[2 * n_arms + i] = params.first_rate
    state[4 * n_arms + LEVEL] = params.first_rate * n_arms


@helper
def predicted(mean: float, rate: float) -> float:
    """Return m(i): the mean loss, capped so that a loss of 0 still has s > −1."""
    return min(mean, rate / (1.0 + rate))


def update(params: LogBarrierParams, n_arms: int, state: FloatState, arm: int, loss: float) -> None:
    """Learn from a loss in [0, 1]."""
    for i in range(n_arms):
        state[3 * n_arms + i] = 0.0
    own = 4 * n_arms
    state[3 * n_arms + arm] = loss - predicted(state[own + MEAN], state[2 * n_arms + arm])
    learn(params, n_arms, state, loss)


def update_many(params: LogBarrierParams, n_arms: int, state: FloatState, arms: IntState, losses: FloatState) -> None:
    """Learn from the average of the units' estimates, each of a loss in [0, 1]."""
    units = arms.shape[0]
    for i in range(n_arms):
        state[3 * n_arms + i] = 0.0
    usual = state[4 * n_arms + MEAN]
    mean = 0.0
    for m in range(units):
        arm = arms[m]
        mean += losses[m] / units
        state[3 * n_arms + arm] += (losses[m] - predicted(usual, state[2 * n_arms + arm])) / units
    learn(params, n_arms, state, mean)


@helper
def learn(params: LogBarrierParams, n_arms: int, state: FloatState, loss: float) -> None:
    """Add the estimates to L, increase the rates by their costs, update the mean loss, and solve for q."""
    rates, beyond, own = 2 * n_arms, 3 * n_arms, 4 * n_arms
    state[own + SEEN] += 1.0
    inverse = 1.0 / math.log(n_arms * state[own + SEEN])
    usual = state[own + MEAN]
    state[own + MEAN] += (loss - usual) / min(state[own + SEEN], params.memory)
    for i in range(n_arms):
        eta = state[rates + i]
        estimate = predicted(usual, eta)
        x = state[beyond + i]
        if x != 0.0:
            estimate += x / state[i]
            s = x / eta
            # For a tiny s, rounding may give a negative number.
            cost = max(eta * (s - math.log1p(s)), 0.0)
            state[own + COST] += cost
            state[rates + i] = eta + cost * inverse
        state[n_arms + i] = min(state[n_arms + i] + estimate, 1e300)
    solve(n_arms, state)


@helper
def solve(n_arms: int, state: FloatState) -> None:
    """Make L relative to the least of them, find u with Σ η/(L + m + u) = 1, and write q."""
    rates, own = 2 * n_arms, 4 * n_arms
    usual = state[own + MEAN]
    least = math.inf
    for i in range(n_arms):
        least = min(least, state[n_arms + i])
    for i in range(n_arms):
        state[n_arms + i] -= least
    # No q is above 1, so u is at least η(i) − L(i) − m(i) for each arm: start from the greatest of these. Σ decreases
    # in u and its inverse is concave, a harmonic mean of linear functions, so Newton's method for the inverse never
    # overshoots the root.
    u = -math.inf
    for i in range(n_arms):
        eta = state[rates + i]
        u = max(u, eta - state[n_arms + i] - predicted(usual, eta))
    whole = 1.0
    for _ in range(100):
        whole = 0.0
        slope = 0.0
        for i in range(n_arms):
            eta = state[rates + i]
            q = eta / (state[n_arms + i] + predicted(usual, eta) + u)
            state[i] = q
            whole += q
            slope += q * (q / eta)
        step = whole * (whole - 1.0) / slope
        u += step
        if whole - 1.0 <= 1e-14:
            break
    for i in range(n_arms):
        state[i] /= whole
    state[own + LEVEL] = u


kernel.register(
    LogBarrierParams, kernel.BanditKernel(size, start, stored_draw, update, stored_probabilities, update_many)
)


class LogBarrier(FTRLBandit):
    """Optimistic FTRL with the log barrier and, for each arm, a rate that grows with its costs.

    first_rate: η₁ > 0, the initial rate of every arm.
    memory: the number of updates over which the prediction averages, at least 1.

    >>> bandit = LogBarrier(n_arms=2, first_rate=1.0)
    >>> bandit.update(0, 1.0)                    # the cost is 1 − ln 2; cost/ln 2 is added to the rate of arm 0
    >>> bandit.learning_rates.round(6)
    array([1.442695, 1.      ])

    Reference: docs/theory/log_barrier.md.
    """

    def __init__(self, n_arms: int, *, first_rate: float = FIRST_RATE, memory: float = MEMORY) -> None:
        self.first_rate = checks.real("first_rate", first_rate, low=1e-6, high=1e6)
        self.memory = checks.real("memory", memory, low=1.0)
        super().__init__(n_arms, LogBarrierParams(self.first_rate, self.memory))

    @property
    def learning_rates(self) -> NDArray[np.float64]:
        """The current η of every arm."""
        return self._state[2 * self.n_arms : 3 * self.n_arms].copy()

    @property
    def predictions(self) -> NDArray[np.float64]:
        """m of every arm: the predicted next loss, capped."""
        rates = self.learning_rates
        return np.minimum(float(self._state[4 * self.n_arms + MEAN]), rates / (1.0 + rates))

    cost: float = number(COST, "Σ cost: the sum of the costs of all updates so far.")
    updates: int = number(SEEN, "The number of updates so far.", int)

    def realised_bound(self) -> float:
        """Return 1 + ln(KN) Σ η(i) − Kη₁ ln K + Σ cost; its mean bounds the mean regret so far."""
        span, first = math.log(self.n_arms * max(self.updates, 1)), self.first_rate * self.n_arms
        return 1.0 + span * math.fsum(self.learning_rates) - first * math.log(self.n_arms) + self.cost

    def stability(self) -> float:
        """Return 1, which holds for every algorithm; no smaller bound has been derived."""
        return 1.0

    def regret_bound(self, n: int) -> float:
        """Return 1 + Kη₁ ln(Kn) + 2 ln(Kn) √(K Σ_{k ≤ n} (1/ln(Kk) + 1/ln²(Kk))), or n if that is less.

        The sum is computed in groups: every term of a group is replaced by the first, which is the largest.
        """
        n, K = checks.integer("n", n, low=0), self.n_arms
        if n == 0:
            return 0.0
        whole, first = 0.0, 1
        while first <= n:
            length = math.log(K * first)
            count = min(max(first // 16, 1), n - first + 1)
            whole += count * (1.0 / length + 1.0 / length**2)
            first += count
        span = math.log(K * n)
        return min(float(n), 1.0 + K * self.first_rate * span + 2.0 * span * math.sqrt(K * whole))
