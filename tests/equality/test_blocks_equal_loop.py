"""The block engine against the obvious loop: the same blocks, arms and fed losses to the last bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import aftereffect as ae

DELAYS = (0, 1, 2, 7, 50)
Maker = Callable[[int, int, int], Any]


def wrapped(bandit: Any, max_delay: int, coins: Any = None, **options: Any) -> ae.CompositeLossWrapper:
    bias = ae.theory.best_update_probability(max_delay) if coins is None else coins
    return ae.CompositeLossWrapper(bandit, max_delay=max_delay, coins=bias, seed=0, **options)


def windows(max_delay: int, coins: Any = None, **options: Any) -> ae.CompositeLossWrapper:
    return wrapped(ae.TsallisFTRL(3, learning_rate=2.0), max_delay, coins, **options)


def stretches(max_delay: int, coins: Any = None, **options: Any) -> ae.CoinCleanWrapper:
    return ae.CoinCleanWrapper(ae.AdaptiveTsallis(3), max_delay=max_delay, coins=coins, seed=0, **options)


either = pytest.mark.parametrize("player", [windows, stretches])


def both(player: Any, losses: ae.Losses, **options: Any) -> tuple[ae.Simulation, ae.Simulation]:
    settings = {"runs": 2, "seed": 9, "trace": True, **options}
    exact = ae.simulate(player, losses, engine="loop", **settings)
    return exact, ae.simulate(player, losses, engine="blocks", **settings)


@pytest.mark.parametrize("max_delay", DELAYS)
def test_every_base_and_spread(base: Maker, spread: Maker, max_delay: int, blocks_agree: Any) -> None:
    horizon = 400 + 60 * max_delay
    losses = spread(3, max_delay, horizon)
    exact, quick = both(wrapped(base(3, max_delay, horizon), max_delay), losses)
    assert exact.updates.min() > 0
    blocks_agree(exact, quick)


@pytest.mark.parametrize(("name", "max_delay"), [("tsallis tuned", 2), ("tsallis tuned", 0), ("exp3", 7)])
def test_long_runs_do_not_drift(make: Any, name: str, max_delay: int, blocks_agree: Any) -> None:
    # Tsallis FTRL is chaotic: a fed loss off by a bit shows as other arms some ten thousand updates on.
    horizon = 200_000
    player = wrapped(make(name, 4, max_delay, horizon), max_delay)
    exact, quick = both(player, make("split", 4, max_delay, horizon), runs=1)
    assert exact.updates[0] > 4_000
    blocks_agree(exact, quick)


@pytest.mark.parametrize("horizon", [2048, 2049, 4096, 6143])
def test_horizons_around_the_chunks_of_preparation(horizon: int, make: Any, blocks_agree: Any) -> None:
    blocks_agree(*both(wrapped(ae.TsallisFTRL(3, learning_rate=5.0), 7), make("split", 3, 7, horizon)))


def test_delays_longer_than_a_chunk(make: Any, blocks_agree: Any) -> None:
    d, horizon = 2_500, 60_000
    exact, quick = both(wrapped(ae.TsallisFTRL(2, learning_rate=1.0), d), make("geometric", 2, d, horizon))
    assert exact.updates.min() > 0
    blocks_agree(exact, quick)


@pytest.mark.parametrize("claimed", [3, 7, 20])
def test_effects_shorter_than_the_player_thinks(claimed: int, spread: Maker, blocks_agree: Any) -> None:
    exact, quick = both(wrapped(ae.TsallisFTRL(3, learning_rate=2.0), claimed), spread(3, 2, 2_000), checkpoints=500)
    assert exact.updates.min() > 0
    blocks_agree(exact, quick)


@pytest.mark.parametrize("horizon", [1, 2, 5, 14])
def test_horizons_too_short_for_an_update(horizon: int, make: Any, blocks_agree: Any) -> None:
    player = ae.CompositeLossWrapper.tuned(n_arms=3, max_delay=7, horizon=horizon)
    exact, quick = both(player, make("split", 3, 7, horizon), runs=5)
    assert exact.updates.sum() == 0
    blocks_agree(exact, quick)


def test_a_horizon_of_just_one_block(make: Any, blocks_agree: Any) -> None:
    # T = 2d+1 with the one coin at its end: the one update is in the last round and no block follows.
    exact, quick = both(wrapped(ae.Exp3(3, learning_rate=0.5), 2, [0, 0, 0, 0, 1]), make("split", 3, 2, 5))
    assert exact.updates.tolist() == [1, 1]
    assert [blocks.starts.tolist() for blocks in quick.traces] == [[1], [1]]
    blocks_agree(exact, quick)


@either
@pytest.mark.parametrize("max_delay", [0, 1, 2, 7])
def test_checkpoints_in_every_round(
    player: Any, max_delay: int, spread: Maker, blocks_agree: Any, played_arms: Any
) -> None:
    # Among them the first d rounds of each block, where the arm before still owes.
    horizon = 300
    losses = spread(3, max_delay, horizon)
    every = np.arange(1, horizon + 1)
    exact, quick = both(player(max_delay, 0.3 / (max_delay + 1)), losses, checkpoints=every)
    np.testing.assert_array_equal(quick.rounds, every)
    blocks_agree(exact, quick)
    best = losses.arm_totals().cumsum(axis=0).min(axis=1)
    for blocks, regrets in zip(quick.traces, quick.regrets, strict=True):
        arms = played_arms(blocks, horizon)
        np.testing.assert_allclose(regrets, losses.totals(arms).cumsum() - best, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("bias", [1.0, 0.5, 0.01])
def test_without_delay_blocks_are_geometric(bias: float, make: Any, blocks_agree: Any) -> None:
    exact, quick = both(
        wrapped(ae.TsallisFTRL(3, learning_rate=4.0), 0, bias), make("components", 3, 0, 3_000), checkpoints=1_000
    )
    assert (exact.updates.min() == 3_000) == (bias == 1.0)
    blocks_agree(exact, quick)


@either
def test_coins_that_always_fall_heads_never_update(player: Any, make: Any, blocks_agree: Any) -> None:
    exact, quick = both(player(1, 1.0), make("split", 3, 1, 500))
    assert quick.updates.tolist() == [0, 0]
    blocks_agree(exact, quick)


@either
@pytest.mark.parametrize("length", [1_500, 2_000])
def test_given_coins(player: Any, length: int, make: Any, blocks_agree: Any) -> None:
    coins = (np.random.default_rng(4).random(length) < 0.2).tolist()
    exact, quick = both(player(2, coins), make("split", 3, 2, 1_500))
    assert exact.updates.min() > 50
    blocks_agree(exact, quick)


@pytest.mark.parametrize("engine", ["loop", "rounds", "blocks"])
def test_given_coins_that_end_too_soon(engine: str, make: Any) -> None:
    player = wrapped(ae.TsallisFTRL(3, learning_rate=2.0), 2, [0, 0, 0, 0, 1] * 10)
    with pytest.raises(ae.CoinsExhausted, match="coins must have a value for every round, but ended before round 51"):
        ae.simulate(player, make("split", 3, 2, 60), runs=2, engine=engine)


@either
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 1.0), (-3.0, -0.5), (0.25, 40.0)])
def test_directions_and_ranges(player: Any, direction: str, low: float, high: float, blocks_agree: Any) -> None:
    d, horizon = 2, 3_000
    table = np.random.default_rng(8).uniform(low, high, (horizon, 3))
    losses = ae.spreads.random_split(table, max_delay=d, seed=2, direction=direction, low=low, high=high)
    span = {"direction": direction, "low": low, "high": high}
    exact, quick = both(player(d, **span), losses, checkpoints=777)
    fed = np.concatenate([blocks.fed_losses for blocks in exact.traces])
    assert np.nanmin(fed) < np.nanmax(fed)
    blocks_agree(exact, quick)


def test_components_of_both_signs(blocks_agree: Any) -> None:
    # Neighbouring parts of ±1/3 can add up to ±1 at most. The player's range is wider than need be.
    components = np.random.default_rng(6).uniform(-1 / 3, 1 / 3, (2_000, 3, 3))
    losses = ae.CompositeLosses(components, low=-1.0, high=1.0)
    exact, quick = both(wrapped(ae.Exp3(3, learning_rate=0.3), 4, low=-2.0, high=1.5), losses, checkpoints=2_000)
    assert exact.updates.min() > 0
    blocks_agree(exact, quick)


@pytest.mark.parametrize("n_arms", [2, 200])
@pytest.mark.parametrize("name", ["tsallis tuned", "exp3", "uniform"])
def test_few_and_many_arms(n_arms: int, name: str, make: Any, blocks_agree: Any) -> None:
    horizon = 2_000
    losses = make("geometric", n_arms, 2, horizon)
    blocks_agree(*both(wrapped(make(name, n_arms, 2, horizon), 2), losses, runs=9))
