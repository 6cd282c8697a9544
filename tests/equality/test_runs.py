"""Runs: each has its own streams, whatever the threads and the engine; run 0 is interactive play."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.rounds import arms_on

import aftereffect as ae

HORIZON = 600


def players() -> dict[str, Any]:
    return {
        "blocks": ae.CompositeLossWrapper(ae.TsallisFTRL(3, learning_rate=2.0), max_delay=2, coins=0.2, seed=77),
        "rounds": ae.Naive(ae.Exp3(3, learning_rate=0.1), seed=77),
    }


@pytest.fixture
def losses() -> ae.Losses:
    return ae.spreads.random_split(ae.tables.iid(HORIZON, means=[0.3, 0.5, 0.7], seed=1), max_delay=2, seed=2)


def same(a: ae.Simulation, b: ae.Simulation, runs: int) -> None:
    np.testing.assert_array_equal(a.regrets[:runs], b.regrets[:runs])
    np.testing.assert_array_equal(a.updates[:runs], b.updates[:runs])


@pytest.mark.parametrize("engine", ["blocks", "rounds"])
def test_threads_do_not_matter(engine: str, losses: ae.Losses) -> None:
    results = [ae.simulate(players()[engine], losses, runs=50, threads=n, engine=engine) for n in (1, 2, 3)]
    same(results[0], results[1], 50)
    same(results[0], results[2], 50)


@pytest.mark.parametrize("engine", ["blocks", "rounds", "loop"])
def test_more_threads_than_runs(engine: str, losses: ae.Losses) -> None:
    player = players()["blocks"]
    alone, crowded = (ae.simulate(player, losses, runs=2, threads=n, engine=engine) for n in (1, 5))
    same(alone, crowded, 2)


@pytest.mark.parametrize("engine", ["blocks", "rounds"])
def test_a_run_does_not_depend_on_how_many_there_are(engine: str, losses: ae.Losses) -> None:
    # 7 runs advance in one long tile, 300 in short ones.
    few = ae.simulate(players()[engine], losses, runs=7, engine=engine, threads=1)
    many = ae.simulate(players()[engine], losses, runs=300, engine=engine, threads=2)
    same(few, many, 7)
    assert len(np.unique(many.regrets, axis=0)) == 300


def test_more_runs_than_a_chunk_holds(losses: ae.Losses) -> None:
    player = players()["blocks"]
    many = ae.simulate(player, losses, runs=2_500, threads=1, checkpoints=1)
    other = ae.simulate(player, losses, runs=2_500, threads=3, checkpoints=1)
    same(many, other, 2_500)
    loop = ae.simulate(player, losses, runs=3, engine="loop", checkpoints=1)
    np.testing.assert_allclose(many.regret[:3], loop.regret, rtol=1e-8)


@pytest.mark.parametrize("engine", ["blocks", "rounds", "loop"])
def test_run_0_is_the_interactive_player(engine: str, losses: ae.Losses, played_arms: Callable[..., Any]) -> None:
    template = players()["blocks"]
    sim = ae.simulate(template, losses, runs=3, seed=123, engine=engine, trace=True)
    live = ae.CompositeLossWrapper(ae.TsallisFTRL(3, learning_rate=2.0), max_delay=2, coins=0.2, seed=123)
    arms = arms_on(live, losses)
    np.testing.assert_array_equal(played_arms(sim.traces[0], HORIZON), arms)
    assert sim.regret[0] == pytest.approx(losses.regret(arms), rel=1e-8)
    assert played_arms(sim.traces[1], HORIZON).tolist() != arms


@pytest.mark.parametrize("name", ["blocks", "rounds"])
def test_run_r_is_the_copy_with_its_streams(name: str, losses: ae.Losses) -> None:
    sim = ae.simulate(players()[name], losses, runs=5, seed=31)
    arms = arms_on(players()[name].fresh(31, 4), losses)
    assert sim.regret[4] == pytest.approx(losses.regret(arms), rel=1e-8)


@pytest.mark.parametrize("engine", ["auto", "blocks", "rounds", "loop"])
def test_a_played_template_is_refused(engine: str, losses: ae.Losses) -> None:
    player = players()["blocks"]
    player.ask()
    before = player.state()
    with pytest.raises(ae.InvalidArgument, match="player must be unplayed to be copied, but it is in round 1"):
        ae.simulate(player, losses, runs=3, engine=engine)
    assert player.state() == before


def test_seeds(losses: ae.Losses) -> None:
    player = players()["blocks"]
    one, again, other = (ae.simulate(player, losses, runs=20, seed=seed) for seed in (5, 5, 6))
    same(one, again, 20)
    assert not np.isin(other.regret, one.regret).all()


def test_calls_with_one_seed_share_out_the_runs_of_one_simulation() -> None:
    losses = ae.spreads.random_split(ae.tables.iid(400, means=[0.3, 0.6], seed=1), max_delay=2, seed=2)
    player = ae.default_player(2, max_delay=2, seed=0)
    whole = ae.simulate(player, losses, runs=5, seed=9, progress=False)
    first, rest = (
        ae.simulate(player, losses, runs=runs, first_run=start, seed=9, progress=False)
        for start, runs in ((0, 2), (2, 3))
    )
    np.testing.assert_array_equal(np.concatenate([first.regrets, rest.regrets]), whole.regrets)
    np.testing.assert_array_equal(np.concatenate([first.certificates, rest.certificates]), whole.certificates)


def test_uniform_play_has_the_mean_of_the_arms() -> None:
    losses = ae.spreads.random_split(ae.tables.iid(400, means=[0.3, 0.6, 0.5], seed=1), max_delay=2, seed=2)
    player = ae.CompositeLossWrapper.tuned(n_arms=3, max_delay=2, horizon=400)
    found = ae.simulate(player, losses, runs=2, seed=9, checkpoints=[100, 400], progress=False)
    sums = np.cumsum(losses.arm_totals(), axis=0)[[99, 399]]
    np.testing.assert_allclose(found.uniform_regrets, [sums.mean(axis=1) - sums.min(axis=1)], rtol=1e-9)
