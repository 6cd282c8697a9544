"""`ZimmertSeldin2020` against the definitions: the optimality conditions of x_t, and the rates from all delays."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

from aftereffect.bandits.tsallis import TsallisFTRL
from aftereffect.core.jit import compiled
from aftereffect.players.labelled.zimmert_seldin import ZimmertSeldin2020, solve


def inverse_rates(delays: Any, n_arms: int, tuning: str) -> list[float]:
    """Return 1/η_t of all rounds, directly from the definitions."""
    horizon = len(delays)
    d = {s: int(delays[s - 1]) for s in range(1, horizon + 1)}
    counts = dict.fromkeys(d, True)
    whole, rates = 0, []
    for t in range(1, horizon + 1):
        whole += sum(counts[s] for s in range(1, t) if s + d[s] >= t)
        rates.append(math.sqrt((2.0 if tuning == "simple" else 1.0) * whole / math.log(n_arms)))
        if tuning == "advanced":
            for s in range(1, t):
                if min(d[s], t - s) > rates[-1]:
                    counts[s] = False
    return rates


@pytest.mark.parametrize("tuning", ["simple", "advanced"])
def test_every_distribution_is_the_minimiser(tuning: str) -> None:
    horizon, n_arms, d = 250, 3, 25
    rng = np.random.default_rng(1)
    table = rng.random((horizon, n_arms)) * [1.0, 0.7, 0.9]
    # Mostly short delays, some very long.
    delays = np.where(rng.random(horizon) < 0.2, d, rng.integers(0, 4, horizon))
    rates = inverse_rates(delays, n_arms, tuning)
    if tuning == "advanced":
        # If no play were skipped, it would be the simple rate divided by √2.
        assert rates[-1] < 0.9 * inverse_rates(delays, n_arms, "simple")[-1] / math.sqrt(2.0)
    player = ZimmertSeldin2020(n_arms, max_delay=d, tuning=tuning, seed=2)
    sums = np.zeros(n_arms)
    plays: list[tuple[int, float]] = []
    for t in range(1, horizon + 1):
        arm = player.ask()
        x = player.probabilities
        assert math.fsum(x) == pytest.approx(1.0, abs=1e-13)
        # At an inner minimum on the simplex the entries of the gradient are equal.
        gradient = sums - math.sqrt(t) / np.sqrt(x) + rates[t - 1] * np.log(x)
        np.testing.assert_allclose(gradient, gradient[0], rtol=0.0, atol=1e-9 * (1.0 + sums.max()))
        plays.append((arm, x[arm]))
        landed = [s for s in range(1, t + 1) if s + delays[s - 1] == t]
        player.tell([(s, table[s - 1, plays[s - 1][0]]) for s in landed])
        for s in landed:
            sums[plays[s - 1][0]] += table[s - 1, plays[s - 1][0]] / plays[s - 1][1]


def test_two_arms_against_a_search() -> None:
    # With two arms the minimiser is one number.
    fast = compiled(solve)
    for a, b, gap in ((1.0, 0.0, 2.0), (3.0, 5.0, 4.0), (20.0, 300.0, 700.0), (2.0, 1.0, 1e4)):
        arms = np.array([0.0, 0.0, 5.0, 5.0 + gap])
        fast(2, a, b, arms)

        def value(x: float, a: float = a, b: float = b, gap: float = gap) -> float:
            entropy = x * math.log(x) + (1 - x) * math.log1p(-x)
            return x * gap - 2 * a * (math.sqrt(x) + math.sqrt(1 - x)) + b / 2 * entropy

        def slope(x: float, a: float = a, b: float = b, gap: float = gap) -> float:
            return gap - a * (x**-0.5 - (1 - x) ** -0.5) + b / 2 * (math.log(x) - math.log1p(-x))

        found = brentq(slope, 1e-18, 0.5, xtol=1e-300, rtol=1e-14)
        assert arms[1] == pytest.approx(found, rel=1e-10)
        best = minimize_scalar(value, bounds=(1e-12, 1 - 1e-12), method="bounded").fun
        assert value(arms[1]) <= best + 1e-9 * abs(best)


@pytest.mark.parametrize("n_arms", [2, 10, 1000])
def test_the_solve_is_safe_far_out(n_arms: int) -> None:
    rng = np.random.default_rng(n_arms)
    fast = compiled(solve)
    for _ in range(60):
        a, b = 10.0 ** rng.uniform(0, 4), 10.0 ** rng.uniform(-1, 5)
        losses = rng.random(n_arms) * 10.0 ** rng.uniform(-3, 8)
        arms = np.concatenate([np.zeros(n_arms), losses])
        fast(n_arms, a, b, arms)
        x = arms[:n_arms]
        assert x.min() > 0.0
        assert math.fsum(x) == pytest.approx(1.0, abs=1e-12)
        gradient = losses - a / np.sqrt(x) + b / 2 * np.log(x)
        close = 1e-9 * (losses.max() + a + b)
        np.testing.assert_allclose(gradient, gradient[0], rtol=0.0, atol=close)


def test_without_delay_it_is_tsallis_at_the_rate_of_the_round() -> None:
    # F_t = −2√t Σ√x is Algorithm 2's with η = √t. In round 2 it has seen one loss drawn at x = 1/2.
    player = ZimmertSeldin2020(2, max_delay=0, seed=1)
    arm = player.ask()
    np.testing.assert_allclose(player.probabilities, [0.5, 0.5], rtol=1e-15)
    player.tell([(1, 0.75)])
    player.ask()
    bandit = TsallisFTRL(2, learning_rate=math.sqrt(2.0))
    bandit.update(arm, 0.75)
    np.testing.assert_allclose(player.probabilities, bandit.probabilities, rtol=1e-12)


def test_the_bound_by_hand() -> None:
    # K = 4, n = 100: 4·20; D = 200: √(1600 ln 4).
    player = ZimmertSeldin2020(4, max_delay=2)
    assert player.regret_bound(100) == pytest.approx(80 + 40 * math.sqrt(1.3862943611198906))
    assert player.regret_bound(100, total_delay=0.0) == pytest.approx(80.0)
