"""`DelayedExp3`: equal to Exp3 without delays, to a slow implementation with delays, and to numbers by hand."""

import math

import numpy as np
import pytest

from aftereffect.bandits.exp3 import Exp3
from aftereffect.core import random
from aftereffect.core.jit import compiled
from aftereffect.core.random import uniform
from aftereffect.players.labelled.delayed_exp3 import DelayedExp3

ETA = 0.3


def test_without_delay_it_is_exp3_bit_for_bit() -> None:
    # Some losses are 0, from which Exp3 learns nothing.
    table = np.maximum(np.random.default_rng(1).random((500, 3)) - 0.2, 0.0)
    player = DelayedExp3(3, learning_rate=ETA, max_delay=0, seed=4)
    bandit, stream = Exp3(3, learning_rate=ETA), random.stream(4, 0, random.ARMS)
    for t in range(500):
        arm = bandit.draw(stream)
        assert player.ask() == arm
        bandit.update(arm, table[t, arm])
        player.tell([(t + 1, table[t, arm])])
        np.testing.assert_array_equal(player.probabilities, bandit.probabilities)


def test_against_a_slow_one() -> None:
    # A small rate, because with a large one 1/q amplifies rounding errors.
    horizon, n_arms, d, eta = 300, 4, 6, 0.03
    rng = np.random.default_rng(2)
    table, delays = rng.integers(0, 3, (horizon, n_arms)) / 2.0, rng.integers(0, d + 1, horizon)
    player = DelayedExp3(n_arms, learning_rate=eta, max_delay=d, seed=5)
    stream, next_uniform = random.stream(5, 0, random.ARMS), compiled(uniform)
    sums = np.zeros(n_arms)
    plays: list[tuple[int, float]] = []
    for t in range(horizon):
        weights = np.exp(-eta * (sums - sums.min()))
        q = weights / weights.sum()
        np.testing.assert_allclose(player.probabilities, q, rtol=1e-10)
        arm = int(np.searchsorted(q.cumsum(), next_uniform(stream)))
        assert player.ask() == arm
        plays.append((arm, q[arm]))
        landed = [s for s in range(t + 1) if s + delays[s] == t]
        player.tell([(s + 1, table[s, plays[s][0]]) for s in landed])
        for s in landed:
            sums[plays[s][0]] += table[s, plays[s][0]] / plays[s][1]


def test_a_loss_of_an_arm_whose_weight_has_died_meanwhile() -> None:
    # Of four plays with q = 1/2, two of one arm are reported, with losses 1 and 1/2: L̂ = 2, then 3. With
    # η = 600 the first puts its weight at e⁻¹²⁰⁰, which is 0 as a double, before the second is learned from.
    player = DelayedExp3(2, learning_rate=600.0, max_delay=3, seed=3)
    arms = []
    for _ in range(3):
        arms.append(player.ask())
        player.tell([])
    player.ask()
    arm = 0 if arms.count(0) >= 2 else 1
    i, j = [t for t in (1, 2, 3) if arms[t - 1] == arm][:2]
    reports: dict[int, float | None] = {1: None, 2: None, 3: None, 4: None}
    player.tell((reports | {i: 1.0, j: 0.5}).items())
    assert player.probabilities[arm] == 0.0
    # Three full losses of the other arm, each with q = 1, bring it to L̂ = 3 too.
    for t in (5, 6, 7):
        assert player.ask() == 1 - arm
        player.tell([(t, 1.0)])
    np.testing.assert_allclose(player.probabilities, [0.5, 0.5], rtol=1e-9)


def test_tuning_by_hand() -> None:
    # K = 2, T = 1000, d = 5: √(ln 2/(1000e + 5000)) = 0.009476..., far below 1/(10e) = 0.0367...
    player = DelayedExp3.tuned(2, max_delay=5, horizon=1000)
    assert player.learning_rate == pytest.approx(math.sqrt(0.6931471805599453 / 7718.281828459045), rel=1e-14)
    # At the best rate both terms of the bound are equal: 2√(ln 2 · 7718.28...).
    bound = 2 * math.sqrt(0.6931471805599453 * 7718.281828459045)
    assert player.regret_bound(1000) == pytest.approx(bound, rel=1e-14)
    # A short horizon and a long delay: the rate is its cap 1/(2ed), where the bound still holds.
    capped = DelayedExp3.tuned(2, max_delay=100, horizon=10)
    assert capped.learning_rate == pytest.approx(1 / (200 * math.e), rel=1e-14)
    bound = 200 * math.e * math.log(2) + 0.05
    assert capped.regret_bound(10, total_delay=0.0) == pytest.approx(bound, rel=1e-12)
    prompt = DelayedExp3.tuned(2, max_delay=0, horizon=1000)
    assert prompt.learning_rate == pytest.approx(math.sqrt(math.log(2) / (1000 * math.e)))


def test_known_total_delay() -> None:
    player = DelayedExp3.tuned(
        2, max_delay=50, horizon=1000, total_delay=2000.0, direction="maximize", high=2.0, seed=1
    )
    assert player.learning_rate == pytest.approx(0.5 / (math.e * 50))
    assert player.settings["direction"] == "maximize"
    player.ask()
    # A reward of 1.5 out of [0, 2] is a loss of 1 − 0.75.
    assert player.tell([(1, 1.5)]).fed_loss == 0.25
