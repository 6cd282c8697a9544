"""The player that feeds coin-clean rounds: loop, rounds and blocks agree to the last bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import aftereffect as ae

# Some players assume a shorter delay than that of the losses.
pytestmark = pytest.mark.filterwarnings("ignore::aftereffect.AftereffectWarning")

Maker = Callable[[int, int, int], Any]


def player(K: int, d: int, coins: Any = None, first_rate: float = 1.0, **options: Any) -> ae.CoinCleanWrapper:
    return ae.CoinCleanWrapper(
        ae.AdaptiveTsallis(K, first_rate=first_rate), max_delay=d, coins=coins, seed=0, **options
    )


def three(template: Any, losses: ae.Losses, agree: Any, **options: Any) -> ae.Simulation:
    """Run all engines, demand that they agree, and return the loop's answer."""
    settings = {"runs": 3, "seed": 9, "trace": True, "checkpoints": 97, **options}
    loop, rounds, blocks = (
        ae.simulate(template, losses, engine=engine, **settings) for engine in ("loop", "rounds", "blocks")
    )
    np.testing.assert_array_equal(rounds.regrets, loop.regrets)
    agree(loop, rounds, fed=False)
    agree(loop, blocks)
    return loop


@pytest.mark.parametrize("max_delay", [0, 1, 2, 7, 50])
def test_every_spread(spread: Maker, max_delay: int, blocks_agree: Any) -> None:
    T = 400 + 30 * max_delay
    assert three(player(3, max_delay), spread(3, max_delay, T), blocks_agree).updates.min() > 0


@pytest.mark.parametrize("prior", [None, ae.Prior([0.7, 0.1, 0.4], updates=5)])
def test_the_default_player(prior: Any, make: Any, blocks_agree: Any) -> None:
    three(ae.default_player(3, max_delay=2, prior=prior, seed=1), make("hard", 3, 2, 600), blocks_agree)


@pytest.mark.parametrize("share", [0.05, 0.55, 1.8])
@pytest.mark.parametrize("max_delay", [0, 1, 5])
@pytest.mark.parametrize("n_arms", [2, 5, 60])
def test_arms_delays_and_biases(n_arms: int, max_delay: int, share: float, make: Any, blocks_agree: Any) -> None:
    beta = min(share / (max_delay + 1), 1.0)
    losses = make("split", n_arms, max_delay, 900)
    for first_rate in (1e-3, 1.0):
        assert three(player(n_arms, max_delay, beta, first_rate), losses, blocks_agree).updates.min() > 0


@pytest.mark.parametrize("max_delay", [0, 3])
def test_long_runs_do_not_drift(max_delay: int, make: Any, blocks_agree: Any) -> None:
    T = 60_000
    loop = three(player(4, max_delay), make("split", 4, max_delay, T), blocks_agree, runs=1)
    assert loop.updates[0] > 4_000


@pytest.mark.parametrize("horizon", [1, 2, 7, 8, 9, 511, 512, 513])
def test_short_horizons_and_tiles(horizon: int, make: Any, blocks_agree: Any) -> None:
    # With d = 7 the first coin-clean round is 8, so that T = 7 has no update; T = 8 has one in 5% of 200 runs.
    loop = three(player(3, 7), make("split", 3, 7, horizon), blocks_agree, runs=200, checkpoints=1)
    assert bool(loop.updates.sum() > 0) is (horizon >= 8)
    assert loop.updates.max() <= horizon // 8
