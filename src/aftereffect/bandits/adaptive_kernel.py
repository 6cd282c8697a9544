"""`AdaptiveTsallis` (adaptive_tsallis.py) in kernel form; adaptive_passes.py goes over the arms for it.

All that concerns the arm played J is a few numbers: with y = q(J)^(−1/2) at hand, and x its loss beyond its baseline,
ẑ(J) − b(J) = x·y², and s(J) = x·y/η at shift b(J). Of the other arms two moments of their baselines are enough, for the
cost as for a good guess at the next multiplier: so an update needs few divisions besides two an arm, and those stand in
loops of their own.
"""

import math
from typing import NamedTuple

from aftereffect.bandits.adaptive_passes import (
    CUBES,
    FOURTHS,
    INVERSE,
    LEVEL,
    MEAN,
    MOST,
    NUMBERS,
    RATE,
    SEEN,
    baseline,
    charged,
    gathered,
    learn,
    parts,
    predict,
)
from aftereffect.core import kernel
from aftereffect.core.kernel import helper
from aftereffect.core.random import scan
from aftereffect.theory.adaptive import ADAPTIVE_GROWTH


class AdaptiveParams(NamedTuple):
    """first_rate: η₁. memory: over how many updates the prediction averages."""

    first_rate: float
    memory: float


def size(n_arms: int) -> int:
    """Four numbers an arm, and some more."""
    return 4 * n_arms + NUMBERS


def start(params: AdaptiveParams, n_arms: int, state: kernel.FloatState) -> None:
    """No losses yet: q uniform, u = √K, η = η₁."""
    own = 4 * n_arms
    for i in range(own + NUMBERS):
        state[i] = 0.0
    root = math.sqrt(1.0 / n_arms)
    for i in range(n_arms):
        state[i] = 1.0 / n_arms
        state[2 * n_arms + i] = root
    state[own + RATE] = params.first_rate
    state[own + INVERSE] = 1.0 / params.first_rate
    state[own + LEVEL] = math.sqrt(n_arms)
    state[own + CUBES] = root
    state[own + FOURTHS] = 1.0 / n_arms


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
    behind, roots, z, numbers = parts(n_arms, state)
    eta, inverse, u = numbers[RATE], numbers[INVERSE], numbers[LEVEL]
    expected = max(offset + numbers[MEAN] * weight, 0.0)
    q, r = state[arm], roots[arm]
    y = behind[arm] * inverse + u
    b = baseline(y, expected, inverse, top)
    predict(n_arms, state, expected, top)
    x = loss - b
    behind[arm] = min(behind[arm] + x * y * y, MOST)
    pull, others, least = gathered(n_arms, state, b)
    # Shifts are counted from b(J). At that one 1/(1 + s(i)) ≤ 2 for every arm but J.
    steep = y * inverse
    wide = 1.0 + x * steep
    otherwise = x * (x * steep / wide) + 2.0 * others * inverse
    # Nearly the best shift is the mean of the estimates by weights w = q^{3/2}/(1 + s), with J's s only.
    played = q * r
    rest = max(numbers[CUBES] - played, 0.0)
    gap = x * rest - q * pull
    below = rest * wide + played
    each = 1.0 / below
    shift = (pull * wide + r * x) * each
    # What is left of x there, x − shift·q(J); s(J), and 1/(1 + s(J)) by a division that need not wait for the first.
    left = gap * wide * each
    s = gap * wide * steep * each
    light = below / (below + gap * wide * steep)
    # For the other arms: Σ w(shift − b(i) + b(J)), and Σ w(b(i) − b(J) − shift)².
    lag = gap * r * each
    spread = max(others + shift * (lag - pull), 0.0)
    # Their s ≥ −(b(J) + shift)·max √q/η, and max √q = 1/u: so much is 1/(1 + s) at most.
    heavy = u / (u - max(b + shift, 0.0) * inverse)
    if light > 0.0 and 0.0 < heavy <= 2.0:
        cost = min(left * s * light + heavy * (spread * inverse), otherwise)
    else:
        z[arm] = b + x * y * y
        cost = charged(n_arms, state, b + shift, otherwise)
    rate = eta + cost * (0.5 * ADAPTIVE_GROWTH / (math.sqrt(n_arms) - 1.0))
    # The next multiplier: one step from there towards Σ q/(1 + s)² = 1, the others' part to second order; and it
    # follows the rate, by 1/Σ w(1 + s)⁻³.
    slope = 3.0 * (numbers[FOURTHS] - q * q) / rest
    excess = 2.0 * lag * inverse + slope * spread * inverse * inverse - q * (1.0 - light * light)
    near = 1.0 / (rest + slope * lag * inverse + played * light * light * light)
    level = u * eta - b - shift + eta * excess * (0.5 + 0.375 * excess) * near
    learn(n_arms, state, least, least + level + (rate - eta) * near, rate, cost, top)
    follow(params, numbers, (loss - offset) / weight)


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
    behind, roots, z, numbers = parts(n_arms, state)
    units = arms.shape[0]
    eta = numbers[RATE]
    predict(n_arms, state, max(offset + numbers[MEAN] * weight, 0.0), top)
    lowest = z[0]
    for i in range(1, n_arms):
        lowest = min(lowest, z[i])
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
                beyond += losses[m] - z[i]
        if beyond != 0.0:
            z[i] = min(z[i] + beyond / (units * state[i]), MOST)
        # For an average the lowest baseline is a shift with every s(i) > −1.
        w = state[i] * roots[i] / (eta + (z[i] - lowest) * roots[i])
        pull += w * z[i]
        whole += w
    shift = pull / whole
    cost = charged(n_arms, state, shift, charged(n_arms, state, lowest, math.inf))
    rate = eta + cost * (0.5 * ADAPTIVE_GROWTH / (math.sqrt(n_arms) - 1.0))
    least = math.inf
    for i in range(n_arms):
        behind[i] = min(behind[i] + z[i], MOST)
        least = min(least, behind[i])
    # Where the multiplier would be to first order: it follows the estimates' mean, and the rate.
    level = least + numbers[LEVEL] * eta - shift + (rate - eta) / numbers[CUBES]
    learn(n_arms, state, least, level, rate, cost, top)
    follow(params, numbers, (mean - offset) / weight)


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
