"""½-Tsallis FTRL that sets its own rate, with a baseline that leaves only the noise to importance weighting.

Algorithm 2 (Section 4) multiplies the whole loss by 1/q(J). Here a prediction b(i), fixed before the draw, is
subtracted first and given to every arm: ẑ(i) = b(i) + 1{J=i}(ℓ − b(i))/q(i) has the same mean and far less spread.
A loss below its baseline makes ẑ(J) negative, which the regulariser can bear down to −η/√q(J) only. So for losses in
[0, v] the baseline is capped, at a harmonic sum that makes the worst surprise no dearer than a loss of full size:

    1/cap(i) = 1/v + 1/(η√q(i)),      b(i) = min(prediction, cap(i)).

The rate grows by what each update costs: with z = ẑ − c for a shift c (FTRL does not see shifts),

    cost = Σ z(i)² q(i)^{3/2} / (η (1 + s(i))),  s(i) = z(i)√q(i)/η > −1,      η += cost/h,  h = 2(√K − 1).

Nothing is tuned to a horizon, and E[regret] ≤ hη₁ + 4√(K Σv²), which is hη₁ + 4√(KN) for losses in [0, 1]; the sum of
costs bounds the regret of the run at hand on average. docs/theory/adaptive.md has the proofs.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aftereffect import theory
from aftereffect.bandits.kernelform import KernelBandit
from aftereffect.bandits.tsallis import LAST_SHIFT
from aftereffect.core import checks, kernel
from aftereffect.core.kernel import helper
from aftereffect.core.random import scan

FIRST_RATE = 1.5
MEMORY = 20.0


class AdaptiveParams(NamedTuple):
    """first_rate: η₁. memory: over how many updates the prediction averages."""

    first_rate: float
    memory: float


# state: q in [0, K), the estimated losses L, from the leader's on, in [K, 2K), √q in [2K, 3K), the estimates ẑ of the
# latest update in [3K, 4K), and from 4K on these numbers; q(i)^(−1/2) = L(i)/η + u, as in tsallis.py.
RATE, LEVEL, CUBES, MEAN, SEEN, COST, PENALTY, MOVED, SQUARES, NUMBERS = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9


def size(n_arms: int) -> int:
    """Four numbers an arm, and some more."""
    return 4 * n_arms + NUMBERS


def start(params: AdaptiveParams, n_arms: int, state: kernel.FloatState) -> None:
    """No losses yet: q uniform, u = √K, η = η₁."""
    for i in range(4 * n_arms + NUMBERS):
        state[i] = 0.0
    root = math.sqrt(1.0 / n_arms)
    for i in range(n_arms):
        state[i] = 1.0 / n_arms
        state[2 * n_arms + i] = root
    state[4 * n_arms + RATE] = params.first_rate
    state[4 * n_arms + LEVEL] = math.sqrt(n_arms)
    state[4 * n_arms + CUBES] = root


def draw(params: AdaptiveParams, n_arms: int, state: kernel.FloatState, u: float) -> int:
    """Return the arm whose stretch of the running sum of q holds u."""
    return scan(state, n_arms, u)


def update(params: AdaptiveParams, n_arms: int, state: kernel.FloatState, arm: int, loss: float) -> None:
    """Learn from a loss in [0, 1]."""
    update_sum(params, n_arms, state, arm, loss, 1.0, 0.0, 1.0)


@helper
def update_sum(
    params: AdaptiveParams,
    n_arms: int,
    state: kernel.FloatState,
    arm: int,
    loss: float,
    weight: float,
    offset: float,
    top: float,
) -> None:
    """Learn from a loss in [0, top] that is expected to be `offset` plus `weight` times what is usual."""
    roots, z, own = 2 * n_arms, 3 * n_arms, 4 * n_arms
    predict(n_arms, state, weight, offset, top)
    eta = state[own + RATE]
    b = state[z + arm]
    x = loss - b
    r = state[roots + arm]
    # With shift b(J) every s(i) ≥ −1/2, i ≠ J, so that leaving 1/(1 + s) at 2 is an upper bound; in passing, the mean
    # of the estimates by weights q^{3/2}/(1 + s), with J's s only: nearly the best shift.
    others = 0.0
    pull = 0.0
    for i in range(n_arms):
        w = state[i] * state[roots + i]
        y = state[z + i] - b
        others += w * y * y
        pull += w * y
    tilted = eta * r + x
    jump = x / state[arm]
    w = state[arm] * r
    light = w * eta * r / tilted
    centre = b + (pull + light * jump) / (state[own + CUBES] - w + light)
    state[z + arm] = b + jump
    cost = charged(n_arms, state, centre, x * x / tilted + 2.0 * others / eta)
    learn(n_arms, state, centre, cost, top)
    follow(params, state[own:], (loss - offset) / weight)


def update_many(
    params: AdaptiveParams, n_arms: int, state: kernel.FloatState, arms: kernel.IntState, losses: kernel.FloatState
) -> None:
    """Learn from the losses of several units, each in [0, 1]."""
    update_many_sums(params, n_arms, state, arms, losses, 1.0, 0.0, 1.0)


@helper
def update_many_sums(
    params: AdaptiveParams,
    n_arms: int,
    state: kernel.FloatState,
    arms: kernel.IntState,
    losses: kernel.FloatState,
    weight: float,
    offset: float,
    top: float,
) -> None:
    """Learn from the average of the units' estimates; see `update_sum`."""
    roots, z, own, units = 2 * n_arms, 3 * n_arms, 4 * n_arms, arms.shape[0]
    predict(n_arms, state, weight, offset, top)
    lowest = state[z]
    for i in range(1, n_arms):
        lowest = min(lowest, state[z + i])
    mean = 0.0
    for m in range(units):
        mean += losses[m] / units
    pull = 0.0
    whole = 0.0
    for i in range(n_arms):
        # What the units that played arm i lost beyond its baseline.
        beyond = 0.0
        for m in range(units):
            if arms[m] == i:
                beyond += losses[m] - state[z + i]
        if beyond != 0.0:
            state[z + i] += beyond / (units * state[i])
        # For an average the lowest baseline is a shift with every s(i) > −1.
        w = state[i] * state[roots + i] / (state[own + RATE] + (state[z + i] - lowest) * state[roots + i])
        pull += w * state[z + i]
        whole += w
    centre = pull / whole
    cost = charged(n_arms, state, centre, charged(n_arms, state, lowest, math.inf))
    learn(n_arms, state, centre, cost, top)
    follow(params, state[own:], (mean - offset) / weight)


@helper
def predict(n_arms: int, state: kernel.FloatState, weight: float, offset: float, top: float) -> None:
    """Write every arm's baseline: what is expected, as far as the rate can bear a loss of 0 instead."""
    z, own = 3 * n_arms, 4 * n_arms
    expected = max(offset + state[own + MEAN] * weight, 0.0)
    inverse = 1.0 / state[own + RATE]
    for i in range(n_arms):
        # top/(η√q). The cap is taken a hair lower: rounding must not bring 1 + s to 0.
        g = top * inverse * (state[n_arms + i] * inverse + state[own + LEVEL])
        state[z + i] = min(expected, (1.0 - 1e-9) * top / (1.0 + g))


@helper
def charged(n_arms: int, state: kernel.FloatState, shift: float, otherwise: float) -> float:
    """Return the cost at a shift, Σ z²q^{3/2}/(η(1 + s)), if that is allowed and less than another shift's."""
    roots, z = 2 * n_arms, 3 * n_arms
    eta = state[4 * n_arms + RATE]
    cost = 0.0
    room = eta
    for i in range(n_arms):
        # In an order that cannot overflow.
        x = state[z + i] - shift
        reach = x * state[roots + i]
        room = min(room, eta + reach)
        cost += x * state[i] * (reach / (eta + reach))
    # NaN compares false.
    return cost if room > 0.0 and cost < otherwise else otherwise


@helper
def learn(n_arms: int, state: kernel.FloatState, shift: float, cost: float, top: float) -> None:
    """Let the rate grow by the cost, add the estimates to L, and solve Σ (L/η + u)⁻² = 1 for u as in tsallis.py."""
    roots, z, own = 2 * n_arms, 3 * n_arms, 4 * n_arms
    eta = state[own + RATE]
    rate = eta + cost / (2.0 * (math.sqrt(n_arms) - 1.0))
    inverse = 1.0 / rate
    least = math.inf
    for i in range(n_arms):
        loss = min(state[n_arms + i] + state[z + i], 1e300)
        state[n_arms + i] = loss
        least = min(least, loss)
    # Where the multiplier would be to first order: it follows the estimates' mean, and the rate.
    u = (least + state[own + LEVEL] * eta - shift + (rate - eta) / state[own + CUBES]) * inverse
    for i in range(n_arms):
        state[n_arms + i] -= least
    # q's place holds 1/y on the way.
    for _ in range(100):
        if not u >= 1.0:
            u = 1.0
        for i in range(n_arms):
            state[i] = 1.0 / (state[n_arms + i] * inverse + u)
        mass = 0.0
        cubes = 0.0
        fourths = 0.0
        for i in range(n_arms):
            r = state[i]
            square = r * r
            mass += square
            cubes += square * r
            fourths += square * square
        half = 0.5 / cubes
        v = (mass - 1.0) * half
        v += 3.0 * fourths * half * v * v
        if abs(v) <= LAST_SHIFT:
            break
        u += mass * (math.sqrt(mass) - 1.0) / cubes
    moved = 0.0
    whole = 0.0
    for i in range(n_arms):
        before = state[roots + i]
        r = state[i]
        a = v * r
        r -= r * a * (1.0 - a)
        square = r * r
        moved += max(square - before * before, 0.0)
        whole += r
        state[i] = square
        state[roots + i] = r
    state[own + RATE] = rate
    state[own + LEVEL] = u + v
    state[own + CUBES] = cubes - 3.0 * fourths * v
    state[own + COST] += cost
    state[own + PENALTY] += 2.0 * (rate - eta) * max(whole - 1.0, 0.0)
    state[own + MOVED] += moved
    state[own + SQUARES] += top * top


@helper
def follow(params: AdaptiveParams, numbers: kernel.FloatState, value: float) -> None:
    """Move the mean towards what was seen: an average at first, later over the last `memory` updates or so."""
    numbers[SEEN] += 1.0
    numbers[MEAN] += (value - numbers[MEAN]) / min(numbers[SEEN], params.memory)


def probabilities(params: AdaptiveParams, n_arms: int, state: kernel.FloatState, q: kernel.FloatState) -> None:
    """Copy q."""
    for i in range(n_arms):
        q[i] = state[i]


kernel.register(
    AdaptiveParams,
    kernel.BanditKernel(size, start, draw, update, probabilities, update_many, update_sum, update_many_sums),
)


class AdaptiveTsallis(KernelBandit):
    """½-Tsallis FTRL with a capped baseline and a rate that follows its costs; no horizon, nothing to tune.

    first_rate: η₁ > 0, the rate before anything is known; it is added to the bound once, times 2(√K − 1).
    memory: over how many updates the prediction averages, at least 1.

    >>> bandit = AdaptiveTsallis(n_arms=2)
    >>> bandit.update(0, 1.0)
    >>> bandit.learning_rate > 1.5               # it cost something
    True
    >>> bandit.regret_bound(10_000) < 570.0      # at most hη₁ + 4√(KN), whatever the losses
    True

    Reference: docs/theory/adaptive.md; Algorithm 2 of the paper is the same with b = 0 and η fixed.
    """

    def __init__(self, n_arms: int, first_rate: float = FIRST_RATE, memory: float = MEMORY) -> None:
        """Take K = `n_arms` and η₁ = `first_rate`."""
        self.first_rate = checks.real("first_rate", first_rate, low=1e-100, high=1e100)
        self.memory = checks.real("memory", memory, low=1.0)
        super().__init__(n_arms, AdaptiveParams(self.first_rate, self.memory))

    @property
    def learning_rate(self) -> float:
        """η, as it is now."""
        return self._number(RATE)

    @property
    def estimated_losses(self) -> NDArray[np.float64]:
        """L̂ of every arm, less that of the leader."""
        return self._state[self.n_arms : 2 * self.n_arms].copy()

    @property
    def updates(self) -> int:
        """How many updates there have been."""
        return int(self._number(SEEN))

    @property
    def cost(self) -> float:
        """Σ cost: what instability has been charged so far."""
        return self._number(COST)

    @property
    def penalty(self) -> float:
        """Σ 2(η_{n+1} − η_n)(Σ√q_{n+1} − 1): what the growth of the rate has been charged so far."""
        return self._number(PENALTY)

    @property
    def moved(self) -> float:
        """S: the probability that has changed hands so far."""
        return self._number(MOVED)

    @property
    def squares(self) -> float:
        """Σ v², v the most that the loss of an update could be."""
        return self._number(SQUARES)

    def realised_bound(self) -> float:
        """Return hη₁ + Σ penalty + Σ cost: on average, at least the regret so far."""
        return 2.0 * (math.sqrt(self.n_arms) - 1.0) * self.first_rate + self.penalty + self.cost

    def stability(self) -> float:
        """Return 1: one update may move everything, though all of them together move little (`mass_moved`)."""
        return 1.0

    def mass_moved(self, n: int, squares: float | None = None) -> float:
        """Return a bound on E[S] over n updates, whose v² add up to `squares` on average (n unless given)."""
        n = checks.integer("n", n, low=0)
        return theory.adaptive_mass_moved(self.n_arms, n, float(n) if squares is None else squares, self.first_rate)

    def regret_bound(self, n: int) -> float:
        """Return hη₁ + 4√(Kn)."""
        n = checks.integer("n", n, low=0)
        return theory.adaptive_regret_bound(self.n_arms, float(n), self.first_rate)

    def _number(self, which: int) -> float:
        return float(self._state[4 * self.n_arms + which])
