"""Algorithm 1 by exhaustion: every coin sequence and every arm, each with its probability. Slow, and exact.

It shares no code with the players: updates are read off Definition 1, Tsallis FTRL solves by bisection, and the terms
of the proof (docs/theory/sharper.md) are computed from their definitions, play by play. Rounds count from 1.
"""

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from aftereffect import theory

Weights = tuple[float, ...]


class Base(Protocol):
    """A base algorithm as a function of its estimated losses."""

    def q(self, weights: Weights) -> Any:
        """What it plays."""

    def learn(self, weights: Weights, arm: int, loss: float) -> Weights:
        """Its estimated losses after an update."""

    def price(self, weights: Weights, arm: int, loss: float) -> float:
        """What the update costs beyond the regulariser's penalty."""


@functools.cache
def tsallis_q(weights: Weights, eta: float) -> Any:
    return theory.tsallis_distribution(weights, eta)


class Tsallis(NamedTuple):
    eta: float

    def q(self, weights: Weights) -> Any:
        return tsallis_q(weights, self.eta)

    def learn(self, weights: Weights, arm: int, loss: float) -> Weights:
        return tuple(w + (loss / self.q(weights)[arm] if i == arm else 0.0) for i, w in enumerate(weights))

    def price(self, weights: Weights, arm: int, loss: float) -> float:
        """⟨ẑ, q − q′⟩ − D(q′, q): what follows from q′ being the maximiser."""
        q, after = self.q(weights), self.q(self.learn(weights, arm, loss))
        divergence = self.eta * float(((np.sqrt(after) - np.sqrt(q)) ** 2 / np.sqrt(q)).sum())
        return float(loss / q[arm] * (q[arm] - after[arm])) - divergence


class Exp3(NamedTuple):
    eta: float

    def q(self, weights: Weights) -> Any:
        heights = np.exp(-self.eta * (np.array(weights) - min(weights)))
        return heights / heights.sum()

    def learn(self, weights: Weights, arm: int, loss: float) -> Weights:
        return tuple(w + (loss / self.q(weights)[arm] if i == arm else 0.0) for i, w in enumerate(weights))

    def price(self, weights: Weights, arm: int, loss: float) -> float:
        q = self.q(weights)
        return math.log1p(q[arm] * math.expm1(-self.eta * loss / q[arm])) / self.eta + loss


class Switch(NamedTuple):
    """Plays arm 0, and arm 1 from its first update on: it moves all there is, and nobody draws anything."""

    eta: float = 1.0

    def q(self, weights: Weights) -> Any:
        return np.eye(len(weights))[int(sum(weights) > 0.0)]

    def learn(self, weights: Weights, arm: int, loss: float) -> Weights:
        return (1.0, *weights[1:])

    def price(self, weights: Weights, arm: int, loss: float) -> float:
        return 0.0


def update_sets(d: int, T: int, beta: float) -> dict[tuple[int, ...], float]:
    """The probability of every set of update rounds, summed over all 2^T coin sequences."""
    chances: dict[tuple[int, ...], float] = {}
    for coins in itertools.product((0, 1), repeat=T):
        updates = tuple(t for t in range(2 * d + 1, T + 1) if coins[t - 1] and not any(coins[t - 1 - 2 * d : t - 1]))
        chance = math.prod(beta if coin else 1.0 - beta for coin in coins)
        chances[updates] = chances.get(updates, 0.0) + chance
    return {updates: chance for updates, chance in chances.items() if chance > 0.0}


class Game:
    """Components ℓ_t^(s)(i) at [t−1, s, i], what they add up to in rounds and windows, and one wrapper on them.

    rewards: more is better, and what is fed is 1 less the window's share.
    """

    def __init__(self, components: Any, base: Base, beta: float, rewards: bool = False) -> None:
        self.parts = np.asarray(components, dtype=float)
        self.base, self.beta, self.sign = base, beta, -1.0 if rewards else 1.0
        self.T, self.d, self.K = self.parts.shape[0], self.parts.shape[1] - 1, self.parts.shape[2]
        self.p = beta * (1.0 - beta) ** (2 * self.d)
        T, d = self.T, self.d
        self.windows = range(2 * d + 1, T + 1)
        # mass[τ][ρ, i]: what a play of arm i in round ρ+1 puts into the rounds τ−d, ..., τ.
        self.mass = {tau: np.zeros((T, self.K)) for tau in self.windows}
        for tau, rho, s in itertools.product(self.windows, range(1, T + 1), range(d + 1)):
            if tau - d <= rho + s <= tau:
                self.mass[tau][rho - 1] += self.parts[rho - 1, s]
        shares = {tau: self.mass[tau].sum(axis=0) / (2 * d + 1) for tau in self.windows}
        self.fed = {tau: 1.0 - share if rewards else share for tau, share in shares.items()}

    def totals(self, arms: Any) -> Any:
        """ℓ°_1, ..., ℓ°_T for the arms of all rounds."""
        seen = np.zeros(self.T)
        for rho, s in itertools.product(range(self.T), range(self.d + 1)):
            if rho + s < self.T:
                seen[rho + s] += self.parts[rho, s, arms[rho]]
        return seen

    def histories(self, updates: tuple[int, ...]) -> Iterator[tuple[float, list[int], list[Weights]]]:
        """Every sequence of arms, a round each, with its probability and the base's weights in each round."""
        ends = [*updates, self.T] if self.T not in updates else [*updates]

        def play(n: int, chance: float, arms: list[int], past: list[Weights], weights: Weights) -> Any:
            if n == len(ends):
                yield chance, arms, past
                return
            rounds = ends[n] - len(arms)
            for arm, q in enumerate(self.base.q(weights).tolist()):
                if q > 0.0:
                    last = n + 1 == len(ends)
                    after = weights if last else self.base.learn(weights, arm, float(self.fed[ends[n]][arm]))
                    yield from play(n + 1, chance * q, arms + [arm] * rounds, past + [weights] * rounds, after)

        yield from play(0, 1.0, [], [], (0.0,) * self.K)

    def terms(self) -> "Terms":
        """All that the proof names, averaged over coins and arms; per arm where it compares with one."""
        d, T, every = self.d, self.T, range(self.K)
        chances = update_sets(d, T, self.beta)
        fixed = np.array([self.totals([i] * T) for i in every])
        share = [sum(tau not in self.windows for tau in range(t, t + d + 1)) / (d + 1) for t in range(1, T + 1)]
        found = Terms(0.0, np.zeros(self.K), np.zeros(self.K), 0.0, np.zeros(self.K), np.zeros(self.K), 0.0, 0.0, 0.0)
        for updates, whole in chances.items():
            for part, arms, past in self.histories(updates):
                chance = whole * part
                gained = self.sign * (self.totals(arms) - fixed)
                drift, stale = 0.0, np.zeros(self.K)
                for tau in self.windows:
                    old = arms[tau - 2 * d - 1]
                    drift += sum(self.mass[tau][r, arms[r]] - self.mass[tau][r, old] for r in range(T)) / (d + 1)
                    stale += self.fed[tau][old] - self.fed[tau]
                fresh, moved, price = np.zeros(self.K), 0.0, 0.0
                for tau in updates:
                    arm, weights = arms[tau - 1], past[tau - 1]
                    loss = float(self.fed[tau][arm])
                    fresh += loss - self.fed[tau]
                    price += self.base.price(weights, arm, loss)
                    if tau < T:
                        after = self.base.q(self.base.learn(weights, arm, loss))
                        moved += float(np.maximum(after - self.base.q(weights), 0.0).sum())
                found = Terms(
                    found.chance + chance,
                    found.regret + chance * gained.sum(axis=1),
                    found.boundary + chance * (gained * share).sum(axis=1),
                    found.drift + chance * self.sign * drift,
                    found.stale + chance * stale,
                    found.fresh + chance * fresh,
                    found.moved + chance * moved,
                    found.price + chance * price,
                    found.updates + chance * len(updates),
                )
        return found


class Terms(NamedTuple):
    """chance: 1. regret: R_T against each arm. boundary, drift (I), stale (II), as in the proof. fresh: the base's
    own regret. moved: S. price: the sum of prices. updates: their number."""

    chance: float
    regret: Any
    boundary: Any
    drift: float
    stale: Any
    fresh: Any
    moved: float
    price: float
    updates: float


def random_components(rng: np.random.Generator, T: int, d: int, K: int) -> Any:
    """Uneven parts, each play's sum at most 1."""
    parts = rng.random((T, d + 1, K)) ** 3
    return parts / np.maximum(parts.sum(axis=1, keepdims=True), 1e-9) * rng.random((T, 1, K)) ** 0.3


def corner(rng: np.random.Generator, parts: Any) -> Any:
    """Change one play of one arm (or of all arms, or all plays of an arm): nothing, or all of it in one round."""
    T, length, K = parts.shape
    new = parts.copy()
    t, i, s = rng.integers(T), rng.integers(K), rng.integers(length + 1)
    where = [(t, i), (t, slice(None)), (slice(None), i)][rng.integers(3)]
    new[where[0], :, where[1]] = 0.0
    if s < length:
        new[where[0], s, where[1]] = 1.0
    return new
