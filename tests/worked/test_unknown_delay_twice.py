"""`UnknownDelayWrapper` against a slow second implementation: both must play alike, including restarts."""

import math
from typing import Any

import numpy as np
import pytest
from unknown_delay import UnknownDelayWrapper

import aftereffect as ae
from aftereffect.core import random
from aftereffect.core.jit import compiled
from aftereffect.players.wrapper.coins import update_rounds


def next_uniform(rng: Any) -> float:
    return random.uniform(rng)


class Slow:
    """The same player, which stores the whole history and computes everything from it."""

    def __init__(self, n_arms: int, horizon: int, guess: int, false_alarm: float, seed: int) -> None:
        self.K, self.T, self.guess, self.delta = n_arms, horizon, guess, false_alarm
        self.coins, self.arms = random.stream(seed, 0, random.COINS), random.stream(seed, 0, random.ARMS)
        self.uniform = compiled(next_uniform)
        self.played: list[int] = []
        self.history: list[int] = []
        self.totals: list[float] = []
        self.restarts = 0
        self.start()

    def start(self) -> None:
        left = (self.T - len(self.played)) // (2 * self.guess + 1)
        self.base = ae.TsallisFTRL(self.K, learning_rate=math.sqrt(max(left, 1) / 2))
        self.early: list[tuple[list[int], float]] = []
        self.block: list[float] | None = None

    def ask(self) -> int:
        if self.block is None:
            self.arm = self.base.draw(self.arms)
            self.history.append(self.arm)
            self.block, self.tossed, self.void = [], [], 0
            self.toss()
        self.played.append(self.arm)
        return self.arm

    def toss(self) -> None:
        """Toss coins until there is one more update round than windows that were void."""
        while len(update_rounds(self.tossed, self.guess)) <= self.void:
            self.tossed.append(self.uniform(self.coins) < 1 / (2 * self.guess + 1))

    def tell(self, total: float | None) -> float | None:
        g = self.guess
        value = math.nan if total is None else total
        self.totals.append(value)
        self.block.append(value)
        sums = np.cumsum(self.totals[::-1])
        m = np.arange(1, len(sums) + 1)
        while np.any(sums > (m + self.guess) * (1 + 1e-8)):
            self.guess = max(1, 2 * self.guess)
        if self.guess == g and len(self.block) == 2 * g + 1:
            early = sum(self.block[g:]) / (2 * g + 1)
            if not math.isnan(early):
                self.early.append((self.history[::-1], early))
                if any(self.intervals_part(lag) for lag in range(1, 9)):
                    self.guess = max(1, 2 * g)
        if self.guess > g:
            self.restarts += 1
            self.start()
            return None
        if len(self.block) != len(self.tossed):
            return None
        window = sum(self.block[-g - 1 :])
        if math.isnan(window):
            self.void += 1
            self.toss()
            return None
        self.block = None
        self.base.update(self.arm, window / (2 * g + 1))
        return window / (2 * g + 1)

    def intervals_part(self, lag: int) -> bool:
        """Whether this arm's two confidence intervals, for the same or another arm `lag` blocks ago, are disjoint."""
        ends = []
        for same in (False, True):
            seen = [
                loss
                for arms, loss in self.early
                if len(arms) > lag and arms[0] == self.arm and (arms[lag] == self.arm) == same
            ]
            if seen:
                n, m = len(seen), self.restarts
                chance = self.delta / (16 * self.K) / ((m + 1) * (m + 2)) / (n * (n + 1))
                radius = math.sqrt(math.log(2 / chance) / 2 / n)
                ends.append((sum(seen) / n - radius, sum(seen) / n + radius))
        return bool(ends) and max(low for low, _ in ends) > min(high for _, high in ends)


def late_and_early(T: int) -> ae.CompositeLosses:
    """Arm 0 loses 0.8 two rounds late, arm 1 loses 0.2 at once: no stretch of totals is impossible for d = 0."""
    components = np.zeros((T, 3, 2))
    components[:, 2, 0], components[:, 0, 1] = 0.8, 0.2
    return ae.CompositeLosses(components)


@pytest.mark.parametrize(("losses", "K", "guess", "restarts"), [
    (late_and_early(1_500), 2, 0, 1),
    (late_and_early(1_500), 2, 1, 0),
    (ae.spreads.random_split(ae.tables.iid(700, means=[0.5, 0.7, 0.8], seed=1), max_delay=6, seed=2), 3, 0, 2),
])
def test_a_slow_second_version_plays_alike(losses: ae.Losses, K: int, guess: int, restarts: int) -> None:
    T = losses.horizon
    player = UnknownDelayWrapper(K, horizon=T, guess=guess, false_alarm=0.5, seed=21)
    slow = Slow(K, T, guess, 0.5, 21)
    stream = losses.stream()
    updates = 0
    for t in range(1, T + 1):
        arm = player.ask()
        assert arm == slow.ask()
        total = stream.play(arm)
        report = None if t % 41 == 0 else total
        played = player.tell(report)
        fed = slow.tell(report)
        assert (played.fed_loss is None) == (fed is None)
        assert fed is None or played.fed_loss == pytest.approx(fed, abs=1e-12)
        assert (player.guess, player.restarts) == (slow.guess, slow.restarts)
        updates += played.update
    assert player.restarts >= restarts
    assert updates > 10
