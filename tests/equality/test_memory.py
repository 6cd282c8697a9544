"""Memory: beside the losses and what is prepared from them, a simulation grows with runs, not with rounds."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

import aftereffect as ae


def losses(horizon: int) -> ae.Losses:
    return ae.spreads.geometric(ae.tables.iid(horizon, means=[0.2, 0.8], seed=1), half_life=1.0, max_delay=2)


def player() -> ae.CompositeLossWrapper:
    return ae.CompositeLossWrapper(ae.Exp3(2, learning_rate=0.1), max_delay=2, coins=0.2)


def peak(world: ae.Losses, **options: Any) -> int:
    """Return the most bytes that a simulation held at once, beyond what was held before it."""
    tracemalloc.start()
    try:
        ae.simulate(player(), world, threads=1, checkpoints=4, **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_blocks_need_no_more_for_longer_horizons() -> None:
    used = []
    for horizon in (100_000, 1_000_000):
        world = losses(horizon)
        # Prepares what is looked up, and compiles.
        ae.simulate(player(), world, runs=10, checkpoints=4)
        used.append(peak(world, runs=10))
    assert abs(used[1] - used[0]) < 50_000


def test_blocks_grow_with_runs_by_a_few_numbers_each() -> None:
    world = losses(10_000)
    ae.simulate(player(), world, runs=10, checkpoints=4)
    few, many = peak(world, runs=100), peak(world, runs=1_000)
    # Streams 64 bytes, Exp3's state 48, a lane 80, 4 checkpoints twice 64, updates, copies: far below 4 kB.
    assert (many - few) / 900 < 4_000


def test_instances_are_not_held_all_at_once() -> None:
    horizon = 100_000
    world = losses(horizon)
    ae.simulate(player(), world, runs=2, instances=2)
    few, many = (peak(world, runs=n, instances=n) for n in (2, 10))
    # A table of this size and its rows take 2 + 4 numbers a round.
    one = 6 * 8 * horizon
    assert many - few < one


def test_what_was_prepared_goes_with_the_losses() -> None:
    worlds = [losses(200_000)]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        ae.simulate(player(), worlds[0], runs=2)
        assert tracemalloc.get_traced_memory()[0] - before > 4 * 8 * 200_000
        worlds.clear()
        assert tracemalloc.get_traced_memory()[0] - before < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("engine", ["blocks", "rounds", "loop"])
def test_nothing_is_kept_that_was_not_asked_for(engine: str) -> None:
    sim = ae.simulate(player(), losses(500), runs=2, engine=engine)
    assert sim.traces is None
    sizes = [value.nbytes for value in vars(sim).values() if isinstance(value, np.ndarray)]
    # 64 rounds, 2 × 2 × 64 regrets and pseudo-regrets, 64 of uniform play, 2 updates, the sums of the arms.
    assert sum(sizes) == 8 * (64 + 2 * 2 * 64 + 64 + 2 + sim.n_arms)
