"""Algorithm 1 fed stretches, or windows, by exhaustion: every coin sequence and every arm, around FTRL whose rate
follows its costs. It shares no code with the players. docs/theory/adaptive.md has the symbols; rounds count from 1."""

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from tests.theory.adaptive_reference import State, distribution, step

# An update: its round, and the coin-clean rounds (of a window: its d+1 rounds) that it is fed.
Fed = tuple[int, tuple[int, ...]]


class Block(NamedTuple):
    """arm: I of its rounds. state: the base's when it was drawn."""

    arm: int
    state: State


class Mean(NamedTuple):
    """Means over coins and arms; arrays have an entry per arm to compare with. chance: 1.

    regret: R_T. early: its part up to round n₀ + d, n₀ the length of the opening. drift: Σ ℓ°_t − ρ_t(I_{t−d}); stale:
    Σ ρ_t(I_{t−d}) − ρ_t(u), both over rounds t > n₀ + d. fresh: the base's regret over what it was fed, with the
    stretch open at T. void: the same over stretches that a missing round voids. moved: S. base: what is certified, with
    v for an open stretch; virtual: with an update at T for it. plug_in: Σ⟨ẑ, q⟩ − min L̂, with v for an open stretch.
    updates: their number before T. squares: Σ v².
    """

    chance: Any
    regret: Any
    early: Any
    drift: Any
    stale: Any
    fresh: Any
    void: Any
    moved: Any
    base: Any
    virtual: Any
    plug_in: Any
    updates: Any
    squares: Any


def arms_played(ends: list[int], blocks: tuple[Block, ...]) -> list[int]:
    """The arm of each round up to the last end of a block."""
    return [blocks[sum(end < t for end in ends)].arm for t in range(1, max(ends, default=0) + 1)]


class Play:
    """components[t−1, s, i]; lo, hi, sign: the range, and −1 for rewards; missing: rounds without a report.

    opening: the arms of the rounds before the first block.
    """

    def __init__(
        self,
        components: Any,
        beta: float,
        first_rate: float,
        *,
        lo: float = 0.0,
        hi: float = 1.0,
        sign: float = 1.0,
        missing: tuple[int, ...] = (),
        windows: bool = False,
        exact: bool = True,
        opening: tuple[int, ...] = (),
    ) -> None:
        self.parts = np.asarray(components, dtype=float)
        self.T, self.d, self.K = self.parts.shape[0], self.parts.shape[1] - 1, self.parts.shape[2]
        self.beta, self.first_rate, self.lo, self.hi, self.sign = beta, first_rate, lo, hi, sign
        self.missing, self.windows, self.exact, self.opening = missing, windows, exact, opening
        self.C = math.sqrt((2.0 - beta) / beta**2 + 2.0 * self.d / beta + self.d**2)
        self.h = 2.0 * (math.sqrt(self.K) - 1.0)
        # rho[t−1, i]: the total of round t when arm i is played throughout.
        self.rho = np.array([self.totals([i] * self.T) for i in range(self.K)]).T

    def totals(self, arms: Any) -> Any:
        seen = np.zeros(self.T)
        for r, s in itertools.product(range(self.T), range(self.d + 1)):
            if r + s < self.T:
                seen[r + s] += self.parts[r, s, arms[r]]
        return seen

    def schedules(self) -> dict[tuple[Fed, ...], float]:
        """Every list of stretches and its probability. The last is open at T where its round is T+1."""
        found: dict[tuple[Fed, ...], float] = {}
        for coins in itertools.product((0, 1), repeat=self.T):
            chance = math.prod(self.beta if coin else 1.0 - self.beta for coin in coins)
            if chance > 0.0:
                key = tuple(self.read((0, *coins)))
                found[key] = found.get(key, 0.0) + chance
        return found

    def read(self, coins: tuple[int, ...]) -> Iterator[Fed]:
        """coins[t] is B_t. By the definitions, round by round."""
        d, held = self.d, []
        for t in range(1, self.T + 1):
            if self.windows:
                if t >= 2 * d + 1 and coins[t] == 1 and not any(coins[t - 2 * d : t]):
                    yield t, tuple(range(t - d, t + 1))
                continue
            if t > len(self.opening) + d and not any(coins[t - d : t]):
                held.append(t)
            if held and coins[t] == 1:
                yield t, tuple(held)
                held = []
        if held:
            yield self.T + 1, tuple(held)

    def heard(self, rounds: tuple[int, ...]) -> bool:
        return not any(t in self.missing for t in rounds)

    def feed(self, rounds: tuple[int, ...], before: list[int]) -> tuple[Any, float, float, float]:
        """The losses of all arms, weight, offset and top of an update. before: the arms up to its block."""
        d, span, m = self.d, self.hi - self.lo, len(rounds)
        scale = 2 * d + 1 if self.windows else self.C
        best = self.lo if self.sign > 0.0 else self.hi
        whole = self.rho[np.array(rounds) - 1].sum(axis=0)
        losses = self.sign * (whole - (m + d) * best) / (span * scale)
        return losses, m / scale, -self.sign * d * best / (span * scale), (m + d) / scale

    def means(self) -> Mean:
        return Mean(*self.averages())

    def averages(self) -> list[Any]:
        """The mean of each number that `show` returns."""
        found: list[Any] = []
        for stretches, chance in self.schedules().items():
            for part, values in self.histories(stretches):
                found = found or [np.zeros(self.K) for _ in values]
                for total, value in zip(found, values, strict=True):
                    total += chance * part * np.asarray(value)
        return found

    def histories(self, stretches: tuple[Fed, ...]) -> Iterator[tuple[float, Any]]:
        """Every sequence of arms of one schedule, with its probability and what it shows."""
        updates = [(t, rounds) for t, rounds in stretches if t <= self.T and self.heard(rounds)]
        ends = [t for t, _ in updates]

        def play(n: int, chance: float, blocks: tuple[Block, ...], state: State, seen: Any) -> Any:
            q = distribution(state.losses, state.rate)
            for arm in range(self.K):
                now = (*blocks, Block(arm, state))
                if n == len(updates):
                    yield chance * q[arm], self.show(stretches, ends, now, seen)
                    continue
                losses, weight, offset, top = self.feed(updates[n][1], arms_played(ends[:n], blocks))
                done = step(state, arm, float(losses[arm]), weight, offset, top, self.exact)
                paid = math.fsum(x * y for x, y in zip(q, done.estimates, strict=True))
                added = (done.cost + done.penalty, done.moved * (updates[n][0] < self.T), paid, top * top)
                yield from play(n + 1, chance * q[arm], now, done.after, seen + np.array(added))

        yield from play(0, 1.0, (), State((0.0,) * self.K, self.first_rate), np.zeros(4))

    def show(self, stretches: tuple[Fed, ...], ends: list[int], blocks: tuple[Block, ...], seen: Any) -> Any:
        d, T, clean = self.d, self.T, self.d + len(self.opening)
        arms = arms_played([*ends, T], blocks)
        gained = self.sign * (self.totals(arms)[:, None] - self.rho)
        old = np.array([self.rho[t - 1, arms[t - d - 1]] for t in range(clean + 1, T + 1)])
        fresh, void = np.zeros(self.K), np.zeros(self.K)
        for _, rounds in stretches:
            losses = self.feed(rounds, arms[: max((end for end in ends if end < rounds[0]), default=0)])[0]
            into = fresh if self.heard(rounds) else void
            into += losses[arms[rounds[-1] - 1]] - losses
        base, moved, paid, squares = seen
        base += self.h * self.first_rate
        state, virtual, extra = blocks[-1].state, base, 0.0
        if stretches and stretches[-1][0] > T and self.heard(stretches[-1][1]):
            losses, weight, offset, extra = self.feed(stretches[-1][1], arms[: max(ends, default=0)])
            done = step(state, arms[-1], float(losses[arms[-1]]), weight, offset, extra, self.exact)
            virtual += done.cost + done.penalty
        return Mean(
            chance=1.0,
            regret=gained.sum(axis=0),
            early=gained[:clean].sum(axis=0),
            drift=self.sign * (self.totals(arms)[clean:] - old).sum(),
            stale=self.sign * (old[:, None] - self.rho[clean:]).sum(axis=0),
            fresh=fresh,
            void=void,
            moved=moved,
            base=base + extra,
            virtual=virtual,
            plug_in=paid - min(state.losses) + extra,
            updates=sum(end < T for end in ends),
            squares=squares + extra * extra,
        )
