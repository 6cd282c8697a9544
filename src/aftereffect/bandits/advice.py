"""Steps towards the advice of anyone, within a budget that keeps the guarantee of ½-Tsallis FTRL.

Between two updates of the learner in adaptive_tsallis.py its estimated losses L̂ + A may be replaced by L̂ + A′, at an
unchanged rate. With the potential Φ(L) = min over q of ⟨L, q⟩ − 2η Σ√q, keep

    Z = Σ (Φ(L̂ + A′) − Φ(L̂ + A)),    Π = max A′ − Z,    S = the probability mass that the steps move.

In every run the regret in the learner's estimates is at most hη₁ + Σ(cost + penalty) + Π. For any probabilities p the
advice A′ = η/√p − L̂ makes q = p, and Φ(L̂ + A′) = −η Σ√p. So from q the learner goes to the mixture (1 − t)q + tp with

    Π + drift · S ≤ b = first + share · (hη₁ + Σ(cost + penalty)),

where t is the largest that bisection finds. Nothing else is asked of p; docs/theory/advice.md has the proof.

p is proportional to the probabilities advised times q°, what the learner would play without advice, but for a floor. So
advice that knows nothing changes nothing, and costs nothing.
"""

import math
from typing import NamedTuple

from aftereffect.bandits.adaptive_tsallis import (
    COST,
    LEVEL,
    MOST,
    PENALTY,
    RATE,
    AdaptiveParams,
    added,
    insert_step,
    parts,
    solved,
)
from aftereffect.core.kernel import FloatState, helper

# The least target probability; with less, η/√p would drown L̂ in rounding errors.
LEAST_TARGET = 1e-12
BISECTIONS = 20

# memory: A in [0, K), the mixture in [K, 2K), L̂ in [2K, 3K), what is advised in [3K, 4K), the target in
# [4K, 5K). Then these numbers: Z, S, b and t of the latest step; how often advice was followed, cut
# short, not given, and not usable.
SHIFT, MOVED, BUDGET, TAKEN, FOLLOWED, CUT, SILENT, FAILED, NUMBERS = range(9)


class Budget(NamedTuple):
    """first, share: B₀ and c of b = B₀ + c·(hη₁ + Σ(cost + penalty)). drift: what a unit of mass moved is charged.

    floor: a lower bound of the target probabilities, unless the learner alone would play an arm less.
    """

    first: float
    share: float
    drift: float
    floor: float


def memory_size(n_arms: int) -> int:
    """Five numbers per arm, and the scalars."""
    return 5 * n_arms + NUMBERS


@helper
def follow(params: AdaptiveParams, n_arms: int, state: FloatState, memory: FloatState, budget: Budget) -> None:
    """Step towards what is advised as far as the budget allows."""
    A, step, own = memory, memory[n_arms:], memory[2 * n_arms :]
    mine, numbers = memory[5 * n_arms :], state[4 * n_arms :]
    if not usable(n_arms, memory[3 * n_arms :]):
        mine[FAILED] += 1.0
        return
    rate = numbers[RATE]
    before = -rate * (numbers[LEVEL] + added(n_arms, state[2 * n_arms :]))
    first = 2.0 * (math.sqrt(n_arms) - 1.0) * params.first_rate
    mine[BUDGET] = budget.first + budget.share * (first + numbers[COST] + numbers[PENALTY])
    room = mine[BUDGET] + mine[SHIFT] - before - budget.drift * mine[MOVED]
    without_advice(n_arms, state, memory)
    aim(n_arms, state, memory, budget)
    low, high, part = 0.0, 1.0, 1.0
    for _ in range(BISECTIONS):
        most, roots, moved = mixture(n_arms, state, memory, part)
        if most + rate * roots + budget.drift * moved <= room:
            low = part
            if part == 1.0:
                break
        else:
            high = part
        part = 0.5 * (low + high)
    _, roots, moved = mixture(n_arms, state, memory, low)
    for i in range(n_arms):
        state[n_arms + i] = own[i] + A[i]
        step[i] = rate / math.sqrt(step[i]) - state[n_arms + i] if low > 0.0 else 0.0
    # It also brings the rest of the learner's state up to date.
    insert_step(params, n_arms, state, step)
    least = MOST
    for i in range(n_arms):
        A[i] += step[i]
        least = min(least, A[i])
    for i in range(n_arms):
        A[i] -= least
    if low > 0.0:
        mine[SHIFT] += -rate * roots - before - least
        mine[MOVED] += moved
    mine[TAKEN] = low
    mine[FOLLOWED] += 1.0
    if low < 1.0:
        mine[CUT] += 1.0


@helper
def usable(n_arms: int, advised: FloatState) -> bool:
    """Make what is advised sum to 1; if that is impossible, make it zeros and return False."""
    whole = 0.0
    fine = True
    for i in range(n_arms):
        # NaN compares false.
        fine = fine and 0.0 <= advised[i] <= MOST
        whole += advised[i]
    fine = fine and 0.0 < whole <= MOST
    for i in range(n_arms):
        advised[i] = advised[i] / whole if fine else 0.0
    return fine


@helper
def without_advice(n_arms: int, state: FloatState, memory: FloatState) -> float:
    """Write L̂ to the memory and √q° to that of the baselines; return Φ(L̂). The learner's L is L̂ then, without A."""
    behind, _, z, numbers = parts(n_arms, state)
    own, rate = memory[2 * n_arms :], numbers[RATE]
    least = MOST
    for i in range(n_arms):
        own[i] = behind[i] - memory[i]
        least = min(least, own[i])
    for i in range(n_arms):
        behind[i] = own[i] - least
    u, v, whole, _, _ = solved(n_arms, state, numbers[LEVEL] * rate, rate)
    for i in range(n_arms):
        a = v * z[i]
        z[i] -= z[i] * a * (1.0 - a + a * a)
    # Φ = λ − η Σ√q, where λ = −η(u + v).
    return float(least - rate * (u + v + whole))


@helper
def aim(n_arms: int, state: FloatState, memory: FloatState, budget: Budget) -> None:
    """Write the target: what is advised times q°, not below the floor, with the sum 1."""
    advised, target, lone = memory[3 * n_arms :], memory[4 * n_arms :], state[3 * n_arms :]
    whole = 0.0
    for i in range(n_arms):
        target[i] = advised[i] * (lone[i] * lone[i])
        whole += target[i]
    raised = 0.0
    for i in range(n_arms):
        least = max(min(budget.floor, lone[i] * lone[i]), LEAST_TARGET)
        target[i] = max(target[i] / max(whole, LEAST_TARGET), least)
        raised += target[i]
    for i in range(n_arms):
        target[i] /= raised


@helper
def mixture(n_arms: int, state: FloatState, memory: FloatState, part: float) -> tuple[float, float, float]:
    """Write the mixture of q and the target to the memory; return max A′, Σ√ and the mass moved."""
    own, target, rate = memory[2 * n_arms :], memory[4 * n_arms :], state[4 * n_arms + RATE]
    most = -MOST
    roots = moved = 0.0
    for i in range(n_arms):
        p = (1.0 - part) * state[i] + part * target[i]
        root = math.sqrt(p)
        memory[n_arms + i] = p
        most = max(most, rate / root - own[i])
        roots += root
        moved += max(p - state[i], 0.0)
    return most, roots, moved


@helper
def price(n_arms: int, memory: FloatState) -> float:
    """Return Π = max A − Z."""
    most = 0.0
    for i in range(n_arms):
        most = max(most, memory[i])
    return float(most - memory[5 * n_arms + SHIFT])


def withdrawn(params: AdaptiveParams, n_arms: int, state: FloatState, memory: FloatState) -> float:
    """Return Φ(L̂ + A) − Φ(L̂) − Z, at most Π: the price if the advice were withdrawn now. Spoils the state."""
    numbers = state[4 * n_arms :]
    with_advice = -numbers[RATE] * (numbers[LEVEL] + added(n_arms, state[2 * n_arms :]))
    return float(with_advice - without_advice(n_arms, state, memory) - memory[5 * n_arms + SHIFT])
