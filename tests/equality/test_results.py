"""What a simulation gives back, against plain NumPy on its traces and regrets."""

import dataclasses
import math
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import aftereffect as ae
from aftereffect.core.text import amount
from aftereffect.engines import workload
from aftereffect.engines.workload import progress_bar

MEANS = np.array([0.3, 0.45, 0.9])
HORIZON = 900


def losses(direction: str = "minimize") -> ae.Losses:
    return ae.spreads.random_split(
        ae.tables.iid(HORIZON, means=MEANS, seed=1), max_delay=2, seed=2, direction=direction
    )


def player(direction: str = "minimize", rate: float = 2.0) -> ae.CompositeLossWrapper:
    return ae.CompositeLossWrapper(ae.TsallisFTRL(3, learning_rate=rate), max_delay=2, coins=0.2, direction=direction)


@pytest.fixture(scope="module")
def sim() -> ae.Simulation:
    return ae.simulate(player(), losses(), runs=40, seed=3, checkpoints=9)


def recorded(drawn: list[ae.Losses]) -> ae.Losses:
    """Losses that note each redraw."""

    def recipe(seed: int) -> ae.Losses:
        drawn.append(losses().redraw(seed))
        return drawn[-1]

    fixed = losses()
    return ae.Losses(fixed.params, horizon=HORIZON, max_delay=2, n_arms=3, means=fixed.means, recipe=recipe)


@pytest.mark.parametrize("engine", ["blocks", "rounds", "loop"])
def test_instances_are_redrawn(engine: str) -> None:
    drawn: list[ae.Losses] = []
    sim = ae.simulate(player(), recorded(drawn), runs=6, seed=3, instances=3, engine=engine)
    assert len(drawn) == 3
    assert len({world.arm_sums().tobytes() for world in drawn}) == 3
    for k, world in enumerate(drawn):
        alone = ae.simulate(player(), world, runs=6, seed=3, engine=engine)
        share = slice(2 * k, 2 * k + 2)
        np.testing.assert_array_equal(sim.regrets[share], alone.regrets[share])
        np.testing.assert_array_equal(sim.pseudo_regret[share], alone.pseudo_regret[share])
        np.testing.assert_array_equal(sim.updates[share], alone.updates[share])


def test_instances_depend_on_the_seed_alone() -> None:
    sums = []
    for seed in (3, 3, 4):
        drawn: list[ae.Losses] = []
        ae.simulate(player(), recorded(drawn), runs=2, seed=seed, instances=2)
        sums.append([world.arm_sums().tolist() for world in drawn])
    assert sums[0] == sums[1]
    assert sums[0] != sums[2]


@pytest.mark.parametrize("engine", ["blocks", "rounds", "loop"])
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_pseudo_regret_counts_plays(engine: str, direction: str, played_arms: Callable[..., Any]) -> None:
    sim = ae.simulate(player(direction), losses(direction), runs=3, engine=engine, trace=True, checkpoints=30)
    gaps = [0.0, 0.15, 0.6] if direction == "minimize" else [0.6, 0.45, 0.0]
    for blocks, found in zip(sim.traces, sim.pseudo_regrets, strict=True):
        arms = played_arms(blocks, HORIZON)
        by_hand = [math.fsum(gaps[arm] for arm in arms[:t]) for t in sim.rounds]
        np.testing.assert_allclose(found, by_hand, rtol=1e-10)
    np.testing.assert_array_equal(sim.pseudo_regret, sim.pseudo_regrets[:, -1])


@pytest.mark.parametrize("engine", ["blocks", "rounds", "loop"])
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_regret_from_the_arms_played(engine: str, direction: str, played_arms: Callable[..., Any]) -> None:
    world = losses(direction)
    sim = ae.simulate(player(direction), world, runs=3, engine=engine, trace=True)
    for blocks, found in zip(sim.traces, sim.regret, strict=True):
        assert found == pytest.approx(world.regret(played_arms(blocks, HORIZON)), rel=1e-8)


def test_losses_that_do_not_know_their_means() -> None:
    sim = ae.simulate(player(), ae.CompositeLosses(np.full((50, 1, 3), 0.5)), runs=2)
    assert sim.pseudo_regrets is None
    frame: Any = sim.to_frame()
    assert "pseudo_regret" not in frame
    with pytest.raises(ae.InvalidArgument, match="losses must have known means"):
        _ = sim.pseudo_regret


def test_figures(sim: ae.Simulation) -> None:
    regrets = sim.regrets
    assert (sim.runs, sim.horizon, sim.n_arms, sim.max_delay, sim.seed) == (40, HORIZON, 3, 2, 3)
    np.testing.assert_array_equal(sim.regret, regrets[:, -1])
    assert sim.mean_regret == pytest.approx(math.fsum(sim.regret) / 40)
    deviation = math.sqrt(math.fsum((sim.regret - sim.regret.mean()) ** 2) / 39)
    assert sim.standard_error == pytest.approx(deviation / math.sqrt(40))
    np.testing.assert_array_equal(sim.quantiles([0.0, 0.5, 1.0])[0], regrets.min(axis=0))
    np.testing.assert_allclose(sim.quantiles([0.0, 0.5, 1.0])[1], np.median(regrets, axis=0))
    np.testing.assert_array_equal(sim.quantiles([0.0, 0.5, 1.0])[2], regrets.max(axis=0))
    with pytest.raises(ae.InvalidArgument, match=r"levels must lie in \[0, 1\], but got 1\.5"):
        sim.quantiles([1.5])


def test_the_curve(sim: ae.Simulation) -> None:
    rounds, mean, low, high = sim.curve
    np.testing.assert_array_equal(rounds, range(100, 901, 100))
    np.testing.assert_allclose(mean, sim.regrets.mean(axis=0))
    # 0.975 of a standard normal variable lies below 1.959964.
    half = 1.959964 * sim.regrets.std(axis=0, ddof=1) / np.sqrt(40)
    np.testing.assert_allclose((high - low) / 2, half, rtol=1e-6)
    np.testing.assert_allclose((high + low) / 2, mean)


def test_one_run_has_no_standard_error() -> None:
    sim = ae.simulate(player(), losses(), runs=1)
    assert math.isnan(sim.standard_error)
    assert np.isnan(sim.curve.low).all()
    assert "±" not in repr(sim)
    assert isinstance(sim.plot(), Axes)


def test_runs_on_the_same_draw_of_the_losses_are_not_independent() -> None:
    """With several draws, errors are those of the draws' means; with as many draws as runs, those of the runs."""
    for instances in (3, 12):
        first, second = (
            ae.simulate(built, losses(), runs=12, seed=1, instances=instances)
            for built in (player(), ae.rivals.BlockUCB(3, max_delay=2))
        )
        means = first.regrets.reshape(instances, -1, len(first.rounds)).mean(axis=1)
        errors = means.std(axis=0, ddof=1) / math.sqrt(instances)
        assert first.standard_error == pytest.approx(errors[-1], rel=1e-12)
        np.testing.assert_allclose(first.curve.high - first.curve.mean, 1.959964 * errors, rtol=1e-6)
        apart = (first.regret - second.regret).reshape(instances, -1).mean(axis=1)
        assert ae.compare(first, second).standard_error == pytest.approx(apart.std(ddof=1) / math.sqrt(instances))


def test_comparing_on_common_random_numbers(sim: ae.Simulation) -> None:
    other = ae.simulate(player(rate=0.5), losses(), runs=40, seed=3)
    found = ae.compare(sim, other)
    differences = sim.regret - other.regret
    error = differences.std(ddof=1) / math.sqrt(40)
    assert found.mean == pytest.approx(differences.mean())
    assert found.standard_error == pytest.approx(error)
    assert found.low == pytest.approx(found.mean - 1.959964 * error, rel=1e-5)
    assert found.high == pytest.approx(found.mean + 1.959964 * error, rel=1e-5)
    same = ae.compare(sim, sim)
    assert same == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(("name", "options"), [("seed", {"seed": 4}), ("runs", {"runs": 39})])
def test_what_cannot_be_compared(sim: ae.Simulation, name: str, options: dict[str, Any]) -> None:
    other = ae.simulate(player(), losses(), **{"runs": 40, "seed": 3, **options})
    with pytest.raises(ae.InvalidArgument, match=f"second must have the {name} of first"):
        ae.compare(sim, other)


def test_the_frame(sim: ae.Simulation) -> None:
    frame: Any = sim.to_frame()
    assert list(frame.columns) == ["run", "round", "regret", "pseudo_regret"]
    wide = frame.pivot_table(index="run", columns="round", values="regret")
    np.testing.assert_array_equal(wide.index, range(40))
    np.testing.assert_array_equal(wide.columns, sim.rounds)
    np.testing.assert_array_equal(wide.to_numpy(), sim.regrets)
    last = frame[frame["round"] == HORIZON]
    np.testing.assert_array_equal(last["pseudo_regret"], sim.pseudo_regret)
    polars = sim.to_polars()
    assert polars.columns == list(frame.columns)
    np.testing.assert_array_equal(polars["regret"].to_numpy(), frame["regret"])


def test_how_results_are_shown(sim: ae.Simulation) -> None:
    assert repr(sim).startswith("Simulation(player: wrapper, Tsallis FTRL, regret: ")
    assert repr(sim).endswith(", runs: 40 runs of 900 rounds, seed 3, engine: blocks)")
    assert not sim.deterministic
    large = dataclasses.replace(sim, regrets=sim.regrets * 1000.0)
    # No exponents: both numbers are written alike.
    assert re.search(r"regret: [\d,.]+ ± [\d,.]+, no better than uniform play \([\d.]+\), runs: 40 runs", repr(large))
    assert "uniform" not in repr(sim)
    assert f" ± {amount(sim.standard_error)}, " in repr(sim)
    assert "40 runs of 900 rounds" in sim._repr_html_()
    table = ae.tables.iid(HORIZON, means=MEANS, seed=1)
    assert repr(table) == "Table(rounds: 900, arms: 3, range: [0, 1], means: 0.3, 0.45, 0.9)"
    assert "<td>0.3, 0.45, 0.9</td>" in table._repr_html_()
    certificate = ae.default_player(3, max_delay=2).certificate()
    assert "Expected regret" in vars(type(certificate))["_repr_html_"](certificate)


def test_a_player_without_randomness_is_called_deterministic() -> None:
    fixed = ae.simulate(ae.rivals.BlockUCB(3, max_delay=2), losses(), runs=5)
    assert fixed.deterministic
    assert f"regret: {fixed.mean_regret:.6g} (deterministic), runs: 5 runs" in repr(fixed)
    redrawn = ae.simulate(ae.rivals.BlockUCB(3, max_delay=2), losses(), runs=4, instances=4)
    assert not redrawn.deterministic


def test_progress_in_files_and_notebooks(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"simulating: {share}%" for share in range(10, 101, 10)]
    with progress_bar(100, True) as advanced:
        for _ in range(100):
            advanced(1)
    assert capsys.readouterr().err == "\n".join(lines) + "\n"
    monkeypatch.setitem(sys.modules, "ipykernel", None)
    monkeypatch.setattr(workload, "PATIENCE", -1.0)
    with progress_bar(100, None) as advanced:
        for _ in range(10):
            advanced(10)
    assert capsys.readouterr().err == "\r".join(lines) + "\n"


def test_the_plot(sim: ae.Simulation) -> None:
    axes = sim.plot(label="mine", color="#112233")
    (line,) = axes.get_lines()
    np.testing.assert_array_equal(np.asarray(line.get_xdata()), sim.rounds)
    np.testing.assert_array_equal(np.asarray(line.get_ydata()), sim.curve.mean)
    (band,) = axes.collections
    corners = np.asarray(band.get_paths()[0].vertices)
    assert corners[:, 1].min() == pytest.approx(sim.curve.low.min())
    assert corners[:, 1].max() == pytest.approx(sim.curve.high.max())
    legend = axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["mine"]
    own = Figure().subplots()
    assert sim.plot(own) is own
    assert len(sim.plot(own).get_lines()) == 2


def test_compare_wants_the_same_losses() -> None:
    player = ae.CompositeLossWrapper.tuned(n_arms=2, max_delay=1, horizon=200)
    sims = [
        ae.simulate(player, ae.spreads.delayed(ae.tables.iid(200, means=means, seed=1), delays=1), runs=3, seed=0)
        for means in ([0.5, 0.2], [0.9, 0.1])
    ]
    assert ae.compare(sims[0], sims[0]).mean == 0.0
    with pytest.raises(ae.InvalidArgument, match="second must have been run on the losses of first"):
        ae.compare(*sims)
    with pytest.raises(ae.InvalidArgument, match="first must be a Simulation, but got 1"):
        ae.compare(1, sims[0])


def test_one_call_plots_several_simulations(sim: ae.Simulation) -> None:
    other = ae.simulate(ae.Naive(ae.Exp3(3, learning_rate=0.1)), losses(), runs=2)
    assert len(ae.plot(sim).get_lines()) == 1
    axes = ae.plot([sim, other])
    assert axes.get_legend_handles_labels()[1] == ["wrapper, Tsallis FTRL", "naive Exp3"]
    assert len({line.get_color() for line in axes.get_lines()}) == 2
    own = Figure().subplots()
    assert ae.plot({"first": sim, "second": sim}, own) is own
    assert own.get_legend_handles_labels()[1] == ["first", "second"]
    with pytest.raises(ae.InvalidArgument, match="simulations must hold at least one simulation"):
        ae.plot([])
