"""Steps towards the advice of anyone, within a budget that keeps the guarantee of ½-Tsallis FTRL.

Between two updates of the learner in adaptive_tsallis.py its estimated losses L̂ + A may be replaced by L̂ + A′, at an
unchanged rate. With the potential Φ(L) = min over q of ⟨L, q⟩ − 2η Σ√q, which is exact where a gradient is not, keep

    Z = Σ (Φ(L̂ + A′) − Φ(L̂ + A)),    Π = max A′ − Z,    S = the probability mass that the steps move.

In every run the regret in the learner's estimates is at most hη₁ + Σ(cost + penalty) + Π. For target probabilities p
the proposal is A′ = η/√p − L̂, which makes q = p; of the way from A to A′ a part is gone with

    Π + drift · S ≤ b = first + share · (hη₁ + Σ(cost + penalty)),

the largest that bisection finds. Nothing else is asked of the advice; docs/theory/advice.md has the proof.
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
    insert_step,
    parts,
    solved,
)
from aftereffect.core.kernel import FloatState, helper

# The least target probability; with less, η/√p would drown L̂ in rounding errors.
LEAST_TARGET = 1e-12
BISECTIONS = 20

# memory: A in [0, K), A′ in [K, 2K), L̂ in [2K, 3K), the target in [3K, 4K), then these numbers: Z, S, the budget b;
# which part of the latest step was taken; how often advice was followed wholly or in part, cut short by the budget,
# not given, and not usable.
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
    """Four numbers per arm, and the scalars."""
    return 4 * n_arms + NUMBERS


@helper
def follow(params: AdaptiveParams, n_arms: int, state: FloatState, memory: FloatState, budget: Budget) -> None:
    """Step towards the target probabilities in the memory as far as the budget allows."""
    A, proposal, own, target = memory, memory[n_arms:], memory[2 * n_arms :], memory[3 * n_arms :]
    mine, numbers = memory[4 * n_arms :], state[4 * n_arms :]
    whole = sum_of_target(n_arms, target)
    if not whole > 0.0:
        mine[FAILED] += 1.0
        return
    for i in range(n_arms):
        own[i] = state[n_arms + i] - A[i]
    aim(n_arms, state, memory, whole, budget.floor)
    before, _ = potential(n_arms, state, memory, 1.0, 0.0)
    first = 2.0 * (math.sqrt(n_arms) - 1.0) * params.first_rate
    mine[BUDGET] = budget.first + budget.share * (first + numbers[COST] + numbers[PENALTY])
    room = mine[BUDGET] + mine[SHIFT] - before - budget.drift * mine[MOVED]
    low, high, part = 0.0, 1.0, 1.0
    after, moved = potential(n_arms, state, memory, 0.0, 1.0)
    if largest(n_arms, memory, 1.0) - after + budget.drift * moved > room:
        for _ in range(BISECTIONS):
            part = 0.5 * (low + high)
            after, moved = potential(n_arms, state, memory, 1.0 - part, part)
            if largest(n_arms, memory, part) - after + budget.drift * moved > room:
                high = part
            else:
                low = part
        part = low
        after, moved = potential(n_arms, state, memory, 1.0 - part, part)
        mine[CUT] += 1.0
    # The learner's L as it was, then the step, which also brings all else in its state up to date.
    potential(n_arms, state, memory, 1.0, 0.0)
    for i in range(n_arms):
        proposal[i] = part * (proposal[i] - A[i])
    insert_step(params, n_arms, state, proposal)
    least = MOST
    for i in range(n_arms):
        A[i] += proposal[i]
        least = min(least, A[i])
    for i in range(n_arms):
        A[i] -= least
    mine[SHIFT] += after - before - least
    mine[MOVED] += moved
    mine[TAKEN] = part
    mine[FOLLOWED] += 1.0


@helper
def sum_of_target(n_arms: int, target: FloatState) -> float:
    """Return the sum of the target; 0, and the target as zeros, if it is not a distribution up to a factor."""
    whole = 0.0
    usable = True
    for i in range(n_arms):
        # NaN compares false.
        usable = usable and 0.0 <= target[i] <= MOST
        whole += target[i]
    if usable and 0.0 < whole <= MOST:
        return whole
    for i in range(n_arms):
        target[i] = 0.0
    return 0.0


@helper
def aim(n_arms: int, state: FloatState, memory: FloatState, whole: float, floor: float) -> None:
    """Raise the target to its floor, make it sum to 1, and write the proposal A′, for which q is the target."""
    proposal, own, target = memory[n_arms:], memory[2 * n_arms :], memory[3 * n_arms :]
    rate = state[4 * n_arms + RATE]
    roots = state[3 * n_arms :]
    # What the learner would play without advice.
    potential(n_arms, state, memory, 0.0, 0.0)
    raised = 0.0
    for i in range(n_arms):
        target[i] = max(target[i] / whole, min(floor, roots[i] * roots[i]), LEAST_TARGET)
        raised += target[i]
    for i in range(n_arms):
        target[i] /= raised
        proposal[i] = rate / math.sqrt(target[i]) - own[i]


@helper
def potential(n_arms: int, state: FloatState, memory: FloatState, old: float, new: float) -> tuple[float, float]:
    """Write L̂ + old·A + new·A′ as the learner's L, relative to its minimum, and √q in the memory of the baselines.

    Return Φ and the mass by which q differs from the learner's. The rest of the learner's state does not fit L then.
    """
    behind, _, z, numbers = parts(n_arms, state)
    rate = numbers[RATE]
    least = MOST
    for i in range(n_arms):
        behind[i] = memory[2 * n_arms + i] + old * memory[i] + new * memory[n_arms + i]
        least = min(least, behind[i])
    for i in range(n_arms):
        behind[i] -= least
    u, v, whole, _, _ = solved(n_arms, state, numbers[LEVEL] * rate, rate)
    moved = 0.0
    for i in range(n_arms):
        a = v * z[i]
        z[i] -= z[i] * a * (1.0 - a + a * a)
        moved += max(z[i] * z[i] - state[i], 0.0)
    # Φ = λ − η Σ√q, where λ = −η(u + v).
    return least - rate * (u + v + whole), moved


@helper
def largest(n_arms: int, memory: FloatState, part: float) -> float:
    """Return max A + part·(A′ − A)."""
    most = -MOST
    for i in range(n_arms):
        most = max(most, (1.0 - part) * memory[i] + part * memory[n_arms + i])
    return most


@helper
def price(n_arms: int, memory: FloatState) -> float:
    """Return Π = max A − Z."""
    most = 0.0
    for i in range(n_arms):
        most = max(most, memory[i])
    return most - float(memory[4 * n_arms + SHIFT])


def withdrawn(params: AdaptiveParams, n_arms: int, state: FloatState, memory: FloatState) -> float:
    """Return Φ(L̂ + A) − Φ(L̂) − Z, at most Π: the price if the advice were withdrawn now. Spoils the state."""
    for i in range(n_arms):
        memory[2 * n_arms + i] = state[n_arms + i] - memory[i]
    with_advice, _ = potential(n_arms, state, memory, 1.0, 0.0)
    without, _ = potential(n_arms, state, memory, 0.0, 0.0)
    return with_advice - without - float(memory[4 * n_arms + SHIFT])
