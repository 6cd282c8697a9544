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


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 1.0), (-3.0, -0.5), (0.25, 40.0)])
def test_directions_and_ranges(direction: str, low: float, high: float, blocks_agree: Any) -> None:
    table = np.random.default_rng(8).uniform(low, high, (1_000, 3))
    losses = ae.spreads.random_split(table, max_delay=2, seed=2, direction=direction, low=low, high=high)
    loop = three(player(3, 2, direction=direction, low=low, high=high), losses, blocks_agree)
    assert loop.traces is not None
    fed = np.concatenate([blocks.fed_losses for blocks in loop.traces])
    assert np.nanmin(fed) < np.nanmax(fed)


@pytest.mark.parametrize("max_delay", [0, 2])
@pytest.mark.parametrize("length", [700, 1_000])
def test_given_coins(length: int, max_delay: int, make: Any, blocks_agree: Any) -> None:
    coins = (np.random.default_rng(4).random(length) < 0.3).tolist()
    assert three(player(3, max_delay, coins), make("split", 3, max_delay, 700), blocks_agree).updates.min() > 50


@pytest.mark.parametrize("horizon", [1, 2, 7, 8, 9, 511, 512, 513])
def test_short_horizons_and_tiles(horizon: int, make: Any, blocks_agree: Any) -> None:
    # With d = 7 the first coin-clean round is 8, so that T = 7 has no update; T = 8 has one in 5% of 200 runs.
    loop = three(player(3, 7), make("split", 3, 7, horizon), blocks_agree, runs=200, checkpoints=1)
    assert bool(loop.updates.sum() > 0) is (horizon >= 8)
    assert loop.updates.max() <= horizon // 8


@pytest.mark.parametrize("max_delay", [1, 4])
def test_always_heads_with_a_delay_never_updates(max_delay: int, make: Any, blocks_agree: Any) -> None:
    loop = three(player(3, max_delay, 1.0), make("split", 3, max_delay, 300), blocks_agree)
    assert loop.updates.tolist() == [0, 0, 0]


def test_checkpoints_in_every_round(blocks_agree: Any, make: Any, played_arms: Any) -> None:
    T, losses = 300, make("split", 3, 3, 300)
    loop = three(player(3, 3), losses, blocks_agree, checkpoints=np.arange(1, T + 1))
    best = losses.arm_totals().cumsum(axis=0).min(axis=1)
    assert loop.traces is not None
    for blocks, regrets in zip(loop.traces, loop.regrets, strict=True):
        suffered = losses.totals(played_arms(blocks, T)).cumsum()
        np.testing.assert_allclose(regrets, suffered - best, rtol=1e-9, atol=1e-10)


def test_without_delay_and_always_heads_it_is_the_wrapper(make: Any, blocks_agree: Any) -> None:
    losses = make("components", 3, 0, 2_000)
    plain = ae.CompositeLossWrapper(ae.AdaptiveTsallis(3, first_rate=1.0), max_delay=0, coins=1.0, seed=0)
    for engine in ("loop", "rounds", "blocks"):
        one, other = (
            ae.simulate(p, losses, runs=2, seed=4, engine=engine, trace=True) for p in (plain, player(3, 0, 1.0))
        )
        blocks_agree(one, other, fed=engine != "rounds")
        np.testing.assert_array_equal(one.regrets, other.regrets)


def piled_up(horizon: int, max_delay: int) -> ae.Losses:
    """Plays of a group of d+1 rounds all fall due in its last: totals of 0 and of d+1 or half that."""
    table = np.tile([1.0, 0.5, 0.5], (horizon, 1))
    return ae.spreads.delayed(table, delays=max_delay - np.arange(horizon) % (max_delay + 1), max_delay=max_delay)


@pytest.mark.parametrize("out_of_range", ["void", "clip"])
@pytest.mark.parametrize("claimed", [0, 1, 2])
def test_effects_longer_than_the_player_thinks(out_of_range: str, claimed: int, blocks_agree: Any) -> None:
    # Impossible totals and impossible sums: void ones keep a block open, in the kernel as in the object.
    template = player(3, claimed, 0.3, out_of_range=out_of_range)
    loop, rounds = (
        ae.simulate(template, piled_up(800, 5), runs=3, seed=2, engine=engine, trace=True)
        for engine in ("loop", "rounds")
    )
    blocks_agree(loop, rounds, fed=False)
    np.testing.assert_array_equal(rounds.regrets, loop.regrets)
    assert loop.updates.min() > 0


def test_impossible_totals_are_refused_in_every_engine() -> None:
    for engine in ("loop", "rounds"):
        with pytest.raises(ae.InvalidTotal):
            ae.simulate(player(3, 1, 0.3), piled_up(400, 5), runs=2, seed=2, engine=engine)
