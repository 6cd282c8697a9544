"""FTRL whose rate follows its costs, one update at a time, in plain Python and by bisection: nothing to do with the
kernel. docs/theory/adaptive.md has the symbols."""

import functools
import math
from typing import NamedTuple

Vector = tuple[float, ...]

GROWTH, MATCHING = 2.5, 0.5
"""ϱ of AdaptiveTsallis and κ of MatchedTsallis."""


class State(NamedTuple):
    """L̂, η, and the running mean of what was fed."""

    losses: Vector
    rate: float
    mean: float = 0.0
    seen: int = 0


@functools.lru_cache(maxsize=200_000)
def distribution(losses: Vector, rate: float) -> Vector:
    """argmin ⟨L, q⟩ − 2ηΣ√q: q(i) = ((L(i) − min L)/η + u)⁻², u in [1, √K] such that they sum to 1."""
    lowest = min(losses)
    y = [(x - lowest) / rate for x in losses]
    left, right = 1.0, math.sqrt(len(y))
    for _ in range(60):
        u = 0.5 * (left + right)
        if math.fsum((x + u) ** -2.0 for x in y) > 1.0:
            left = u
        else:
            right = u
    return tuple((x + 0.5 * (left + right)) ** -2.0 for x in y)


def cap(top: float, rate: float, q: float) -> float:
    """v/(1 + g), g = v/(η√q)."""
    return top / (1.0 + top / (rate * math.sqrt(q)))


def widest_cap(top: float, rate: float, q: float) -> float:
    """The largest baseline with (C1) and (C2)."""
    g = top / (rate * math.sqrt(q))
    return top * 2.0 / (g + math.sqrt(g * g + 4.0 * max(1.0, g)))


def baselines(q: Vector, rate: float, expected: float, top: float, widest: bool = False) -> Vector:
    return tuple(min(max(expected, 0.0), (widest_cap if widest else cap)(top, rate, x)) for x in q)


def estimates(q: Vector, b: Vector, arm: int, loss: float) -> Vector:
    return tuple(b[i] + (loss - b[i]) / q[i] * (i == arm) for i in range(len(q)))


def charge(q: Vector, rate: float, z: Vector, shift: float) -> float:
    """Σ η√q s²/(1+s), s = (z − c)√q/η; infinite where some s ≤ −1."""
    whole = 0.0
    for x, y in zip(q, z, strict=True):
        s = (y - shift) * math.sqrt(x) / rate
        if s <= -1.0:
            return math.inf
        whole += rate * math.sqrt(x) * s * s / (1.0 + s)
    return whole


def stability(losses: Vector, rate: float, z: Vector) -> float:
    """D(q, q̃), q̃ the distribution after z at the old rate."""
    after = distribution(tuple(x + y for x, y in zip(losses, z, strict=True)), rate)
    return divergence(distribution(losses, rate), after, rate)


def divergence(q: Vector, after: Vector, rate: float) -> float:
    return math.fsum(rate * (math.sqrt(x) - math.sqrt(y)) ** 2 / math.sqrt(y) for x, y in zip(q, after, strict=True))


def mass(q: Vector, after: Vector) -> float:
    return math.fsum(max(y - x, 0.0) for x, y in zip(q, after, strict=True))


class Step(NamedTuple):
    after: State
    estimates: Vector
    cost: float
    penalty: float
    moved: float


def step(
    state: State,
    arm: int,
    loss: float,
    weight: float = 1.0,
    offset: float = 0.0,
    top: float = 1.0,
    exact: bool = False,
    growth: float | None = None,
) -> Step:
    """One update with a loss in [0, top]; exact: charge the exact stability, the least that may be charged.

    growth: ϱ; None for a matched rate.
    """
    q, eta = distribution(state.losses, state.rate), state.rate
    b = baselines(q, eta, offset + state.mean * weight, top)
    z = estimates(q, b, arm, loss)
    cost = stability(state.losses, eta, z) if exact else min(charge(q, eta, z, b[arm]), charge(q, eta, z, min(b)))
    losses = tuple(x + y for x, y in zip(state.losses, z, strict=True))
    if growth is None:
        rate = matched(losses, eta, q, arm, cost, top)
    else:
        rate = eta + growth * cost / (2.0 * (math.sqrt(len(q)) - 1.0))
    seen = state.seen + 1
    mean = state.mean + ((loss - offset) / weight - state.mean) / seen
    after = State(losses, rate, mean, seen)
    played = distribution(losses, rate)
    penalty = 2.0 * (rate - eta) * (math.fsum(math.sqrt(x) for x in played) - 1.0)
    return Step(after, z, cost, penalty, mass(q, played))


def roots(losses: Vector, rate: float) -> float:
    """Σ√q − 1."""
    return math.fsum(math.sqrt(x) for x in distribution(losses, rate)) - 1.0


def matched(losses: Vector, eta: float, q: Vector, arm: int, cost: float, top: float) -> float:
    """The next rate: by a guess of Σ√q afterwards, and once more by what was found if the penalty exceeds the cost."""
    most = MATCHING * (math.sqrt(len(q)) - 1.0)
    rise = math.sqrt(distribution(losses, eta)[arm]) - math.sqrt(q[arm])
    guess = math.fsum(math.sqrt(x) for x in q) - 1.0 + max(rise, 0.0)
    for _ in range(2):
        growth = min(0.5 * MATCHING * cost / min(guess, most), max(eta, 2.0 * top))
        guess = roots(losses, eta + growth)
        if 2.0 * growth * guess <= cost:
            break
    return eta + growth
