"""The regret bound of `DoublingWrapper`, by hand, in closed form and against simulated regret."""

import math

import numpy as np
import pytest
from doubling import DoublingWrapper

import aftereffect as ae


def test_the_bound_without_delay_by_hand() -> None:
    player = DoublingWrapper(2, max_delay=0, first_horizon=50)
    # One epoch: 2√(2KN) = 2√200. A second: 2√400. Half of it, at its rate √50: 2√50·√2 + 50·√2/√50 = 30.
    assert player.regret_bound(50) == pytest.approx(2 * math.sqrt(200))
    assert player.regret_bound(150) == pytest.approx(2 * math.sqrt(200) + 40.0)
    assert player.regret_bound(100) == pytest.approx(2 * math.sqrt(200) + 30.0)
    # For ten rounds the trivial bound, 10, is smaller.
    assert player.regret_bound(10) == 10.0
    doubled = DoublingWrapper(2, max_delay=0, first_horizon=50, high=2.0)
    assert doubled.regret_bound(150) == pytest.approx(2 * (2 * math.sqrt(200) + 40.0))


def test_the_bound_with_delay_by_hand() -> None:
    # d = 1, K = 4, T₀ = 30,000: p = 4/27, N = 10,000 and 20,000, η = √(N/2), ξ = 2(1 + ln 4)/η, 𝓡 = 2√(8N).
    player = DoublingWrapper(4, max_delay=1, first_horizon=30_000)
    p, logs = 4 / 27, 2 * (1 + math.log(4))
    first = 2 + 1.5 * (3 + 2 * p * logs / math.sqrt(5_000) * 30_000 + 2 * math.sqrt(80_000) / p)
    second = 2 + 1.5 * (3 + 2 * p * logs / 100.0 * 60_000 + 2 * math.sqrt(160_000) / p)
    assert player.regret_bound(90_000) == pytest.approx(first + second + 1, rel=1e-12)
    # Two more rounds are fewer than 2d+1: they add at most 2, and one more restart adds d = 1.
    assert player.regret_bound(90_002) == pytest.approx(first + second + 1 + 2 + 1, rel=1e-12)


@pytest.mark.parametrize("d", [0, 1, 4, 30])
@pytest.mark.parametrize("first", [1, 37, 5_000])
def test_the_closed_form_holds(d: int, first: int) -> None:
    player = DoublingWrapper(3, max_delay=d, first_horizon=first)
    c = 28.0 if d else 2.0 * math.sqrt(2.0)
    for T in (1, 10, 36, 38, 700, 5_000, 5_001, 15_001, 10**6, 10**8):
        closed = math.sqrt(2) / (math.sqrt(2) - 1) * c * math.sqrt((d + 1) * 3 * T)
        if first <= 8 * T:
            assert player.regret_bound(T) <= closed + d * math.floor(math.log2(T / first + 1)) + 1e-9
        assert player.regret_bound(T) <= T


def test_the_bound_refuses_what_it_does_not_cover() -> None:
    player = DoublingWrapper(2, max_delay=1, low=-1.0)
    message = r"low must be at least 0 for Theorem 4 to hold, but got -1\.0"
    with pytest.raises(ae.InvalidArgument, match=message):
        player.regret_bound(100)
    with pytest.raises(ae.InvalidArgument, match="horizon must be at least 1, but got 0"):
        player.regret_bound(0)


def test_regret_stays_under_the_bound() -> None:
    # 5 standard errors: one false alarm in 3.5 million seeds if the mean were at the bound.
    player = DoublingWrapper(2, max_delay=1, first_horizon=500)
    losses = ae.spreads.random_split(ae.tables.iid(40_000, means=np.linspace(0.2, 0.7, 2), seed=5), max_delay=1, seed=6)
    sim = ae.simulate(player, losses, runs=30, seed=8)
    assert sim.mean_regret + 5 * sim.standard_error < player.regret_bound(40_000) < 40_000
