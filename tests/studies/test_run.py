"""Running studies here: rows are what `simulate` says, failures stop nobody, nothing is done twice."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import aftereffect as ae
from aftereffect.studies import FolderUnusable, Study, cells, measure
from aftereffect.studies import run as run_module
from aftereffect.studies.cells import Cell, build_losses, build_player, cell_id, cell_seed
from aftereffect.studies.results import Folder

UNIFORM = [{"name": "CompositeLossWrapper", "base": "uniform"}]
GRID = {"n_arms": [2], "max_delay": [2], "horizon": [600]}


def study(**changes: Any) -> Study:
    settings: dict[str, Any] = {
        "grid": GRID,
        "instance": [{"name": "split"}, {"name": "delays"}],
        "player": [{"name": "CompositeLossWrapper"}, {"name": "CompositeLossWrapper", "base": "uniform"}],
        "runs": 20,
        "checkpoints": [100, 600],
    }
    return Study("mine", **(settings | changes))


def rows_of(cell: Cell, rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("cell") == cell_id(cell))


def test_rows_are_what_simulate_says(tmp_path: Path) -> None:
    mine = study()
    results = mine.run(tmp_path)
    assert (results.finished, results.failures, results.missing) == (4, {}, [])
    assert results.rows.columns == list(measure.ROWS)
    for cell in mine.cells():
        losses = build_losses(cell)
        player = build_player(cell, losses)
        sim = ae.simulate(player, losses, runs=20, seed=cell_seed(cell, "runs"), checkpoints=[100, 600])
        found = rows_of(cell, results.rows)
        assert found["round"].to_list() == [100, 600]
        assert found["regret"].to_list() == sim.regrets.mean(axis=0).tolist()
        # Added up over another axis: the last bit may differ.
        assert found["standard_error"][1] == pytest.approx(sim.standard_error, rel=1e-12)
        assert found["q25"].to_list() == sim.quantiles([0.25])[0].tolist()
        assert found["pseudo_regret"][1] == pytest.approx(sim.pseudo_regret.mean(), rel=1e-12)
        assert found["updates"][0] == sim.updates.mean()
        assert found["engine"][0] == sim.engine
        # Uniform play, from the totals of the arms: the mean of their sums against the least.
        sums = losses.arm_totals()[:100].sum(axis=0)
        assert found["uniform_regret"][0] == pytest.approx(float(sums.mean() - sums.min()), rel=1e-9, abs=1e-9)
        assert found["bound"][0] == player.regret_bound(600)
        assert found["corollary_bound"][0] == pytest.approx(28 * math.sqrt(3 * 2 * 600), rel=1e-14)
        assert found["value"].null_count() == 2


def test_several_draws_are_averaged(tmp_path: Path) -> None:
    mine = study(instances=4, player=[{"name": "CompositeLossWrapper"}], instance=[{"name": "split"}])
    (cell,) = mine.cells()
    found = mine.run(tmp_path).rows
    sums = [build_losses(cell, draw).arm_sums() for draw in range(4)]
    expected = np.mean([s.mean() - s.min() for s in sums])
    assert found["uniform_regret"][1] == pytest.approx(expected, rel=1e-9)
    assert len({tuple(s) for s in sums}) == 4


def test_rewards_count_the_other_way(tmp_path: Path) -> None:
    mine = study(instance=[{"name": "anonymous", "gap": 0.5}], player=UNIFORM, runs=200)
    found = mine.run(tmp_path).rows
    # Arm 0 always pays 1, arm 1 half the time, so uniform play misses 600/4 = 150 or so. Delays of up to 2 rounds
    # move the end by 2; a table's sum has standard deviation sqrt(600)/4 = 6.1: 5 of them, false alarms 6e-7.
    assert found["uniform_regret"][1] == pytest.approx(150.0, abs=32.0)
    # Blocks of uniform arms against its own expectation: 4 standard errors, false alarms 6e-5.
    assert found["regret"][1] == pytest.approx(found["uniform_regret"][1], abs=4.0 * found["standard_error"][1])


def test_stability(tmp_path: Path) -> None:
    exp3 = {"name": "CompositeLossWrapper", "base": "exp3"}
    mine = study(measure="stability", player=[exp3], instance=[{"name": "split"}])
    (cell,) = mine.cells()
    found = mine.run(tmp_path).rows
    losses = build_losses(cell)
    player = build_player(cell, losses)
    assert found["theory"].to_list() == [player.bandit.learning_rate] * 2
    assert found["regret"].null_count() == 2
    # The same by hand: walk the base through every run's blocks with its public methods.
    sim = ae.simulate(player, losses, runs=20, seed=cell_seed(cell, "runs"), trace=True)
    moves: dict[bool, list[float]] = {False: [], True: []}
    for blocks in sim.traces:
        bandit = player.bandit.fresh()
        ends = [*(blocks.starts[1:] - 1), 600]
        for arm, fed, end in zip(blocks.arms, blocks.fed_losses, ends, strict=True):
            if not math.isnan(fed):
                before = bandit.probabilities
                bandit.update(int(arm), float(fed))
                moves[bool(end > 100)].append(math.fsum(np.maximum(bandit.probabilities - before, 0.0)))
    expected = [math.fsum(moves[late]) / len(moves[late]) for late in (False, True)]
    assert found["value"].to_list() == pytest.approx(expected, rel=1e-12)
    assert max(expected) <= player.bandit.learning_rate


def test_one_run_has_no_standard_error(tmp_path: Path) -> None:
    found = study(runs=1).run(tmp_path).rows
    assert found["standard_error"].null_count() == len(found)


def test_a_player_that_is_told_too_short_a_delay(tmp_path: Path) -> None:
    mine = study(player=[{"name": "CompositeLossWrapper", "max_delay": 1}])
    found = mine.run(tmp_path).rows
    assert found["player_params"].unique().to_list() == ['{"max_delay":1}']
    assert found["bound"].null_count() == len(found)
    assert found["corollary_bound"].null_count() == 0


def test_rows_do_not_depend_on_order_company_or_threads(tmp_path: Path) -> None:
    mine = study()
    whole = mine.run(tmp_path / "whole", threads=2).rows
    players, instances = [*UNIFORM, {"name": "CompositeLossWrapper"}], [{"name": "delays"}, {"name": "split"}]
    turned = study(player=players, instance=instances)
    found = turned.run(tmp_path / "turned", threads=1).rows
    # Rows come in the order of their own study.
    assert found["player_params"].unique(maintain_order=True).to_list() == ['{"base":"uniform"}', "{}"]
    assert found["instance"].unique(maintain_order=True).to_list() == ["delays", "split"]
    assert found.sort("cell", "round").equals(whole.sort("cell", "round"), null_equal=True)
    alone = study(player=[{"name": "CompositeLossWrapper"}], instance=[{"name": "delays"}])
    part = alone.run(tmp_path / "alone").rows
    assert part.equals(whole.filter(pl.col("cell") == part["cell"][0]), null_equal=True)


def test_a_folder_may_hold_other_studies(tmp_path: Path) -> None:
    study().run(tmp_path)
    other = study(seed=1)
    assert len(other.results(tmp_path).missing) == 4
    other.run(tmp_path)
    assert study().results(tmp_path).finished == 4
    assert len(Folder(tmp_path).finished()) == 8


def test_nothing_is_done_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = study(player=[{"name": "CompositeLossWrapper"}]).run(tmp_path)
    done: list[str] = []
    real = measure.measure

    def counted(cell: Cell, *rest: Any) -> Any:
        done.append(cell["player"].get("base", "tsallis"))
        return real(cell, *rest)

    monkeypatch.setattr(run_module, "measure", counted)
    second = study().run(tmp_path)
    assert done == ["uniform", "uniform"]
    assert second.finished == 4
    kept = second.times.filter(pl.col("cell").is_in(first.times["cell"].to_list()))
    assert kept.equals(first.times)


def test_a_failure_is_recorded_stops_nobody_and_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = measure.measure

    def failing(cell: Cell, *rest: Any) -> Any:
        if "base" not in cell["player"]:
            raise RuntimeError("out of luck")
        return real(cell, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "measure", failing)
        results = study().run(tmp_path)
    assert (results.finished, len(results.failures), results.missing) == (2, 2, [])
    failure = next(iter(results.failures.values()))
    assert (failure["error"], failure["message"]) == ("RuntimeError", "out of luck")
    assert "test_run.py" in failure["traceback"][-1]
    assert not any("/" in call for call in failure["traceback"])
    again = study().run(tmp_path)
    assert (again.finished, again.failures) == (4, {})
    assert not list((tmp_path / "failures").iterdir())


def test_draws_that_do_not_fit_together_give_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"runs": 6, "instances": 3, "instance": [{"name": "split"}]}
    whole = study(**given).run(tmp_path / "whole").rows
    built: list[tuple[int, int]] = []
    real = cells.build_losses

    def counted(cell: Cell, draw: int) -> Any:
        built.append((cell["max_delay"], draw))
        return real(cell, draw)

    monkeypatch.setattr(cells, "build_losses", counted)
    # Room for one draw: three waves, each built once for both players.
    monkeypatch.setattr(cells.Draws, "ROOM", 1)
    assert study(**given).run(tmp_path / "waves").rows.equals(whole, null_equal=True)
    assert len(built) == len(set(built)) == 3 * whole["max_delay"].n_unique() * whole["n_arms"].n_unique()


def test_a_cell_that_fails_on_its_second_draw_stays_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = cells.build_losses

    def failing(cell: Cell, draw: int) -> Any:
        if draw == 1:
            raise RuntimeError("no second draw")
        return real(cell, draw)

    monkeypatch.setattr(cells, "build_losses", failing)
    monkeypatch.setattr(cells.Draws, "ROOM", 1)
    results = study(runs=6, instances=3, instance=[{"name": "split"}]).run(tmp_path)
    assert results.finished == 0
    assert {failure["message"] for failure in results.failures.values()} == {"no second draw"}


def test_losses_that_cannot_be_built_are_a_failure(tmp_path: Path) -> None:
    results = study(instance=[{"name": "hard", "gap_factor": 1000}, {"name": "split"}]).run(tmp_path)
    assert (results.finished, len(results.failures)) == (2, 2)
    assert {failure["error"] for failure in results.failures.values()} == {"InvalidArgument"}


WRONG = """
import numpy as np
import aftereffect as ae
from aftereffect.core import checks

def losses(n_arms, max_delay, horizon, seed):
    params = ae.spreads.delayed(np.full((horizon, n_arms), 0.8), delays=max_delay).params
    double = params._replace(values=checks.owned(2.0 * params.values))
    return ae.Losses(double, horizon=horizon, max_delay=max_delay, n_arms=n_arms)
"""


def test_losses_of_ones_own_are_checked_for_every_player(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wrong_losses.py").write_text(WRONG)
    monkeypatch.syspath_prepend(tmp_path)
    players = [{"name": "default_player"}, {"name": "BlockUCB"}, {"name": "Naive", "base": "ucb1"}, {"name": "BOLD"}]
    results = study(instance=[{"name": "wrong_losses:losses"}], player=players).run(tmp_path / "out")
    assert (results.finished, len(results.failures)) == (0, 4)
    told = "a part of components[0, :, 0] sums to 1.6; low= and high= set the range"
    assert all(failure["message"].endswith(told) for failure in results.failures.values())
    assert {failure["error"] for failure in results.failures.values()} == {"InvalidLosses"}


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderUnusable, match="folder must be writable"):
        study().run(tmp_path / "file")


def test_progress_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[int, int]] = []
    study().run(tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    study(seed=3).run(tmp_path)
    assert capsys.readouterr() == ("", "")
    study(seed=4).run(tmp_path, progress=True)
    assert capsys.readouterr().out == ""


def test_the_frame_for_pandas(tmp_path: Path) -> None:
    results = study().run(tmp_path)
    frame: Any = results.to_pandas()
    assert list(frame.columns) == list(measure.ROWS)
    assert frame["round"].tolist() == results.rows["round"].to_list()
    assert repr(results) == "Results(4 cells finished, 0 failed, 0 to do; 8 rows)"


def test_what_is_not_an_executor(tmp_path: Path) -> None:
    wrong: Any = 3
    with pytest.raises(TypeError, match=r"executor must be a concurrent\.futures.Executor, but got 3"):
        study().run(tmp_path, wrong)


def test_an_error_of_the_disk_reaches_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated: list[int] = []
    real = measure.measure

    def counted(cell: Cell, *rest: Any) -> Any:
        simulated.append(cell["max_delay"])
        return real(cell, *rest)

    def full(self: Folder, finished: Any) -> str:
        raise FolderUnusable("folder must be writable")

    monkeypatch.setattr(run_module, "measure", counted)
    monkeypatch.setattr(Folder, "put", full)
    with pytest.raises(FolderUnusable, match="must be writable"):
        study(grid=GRID | {"max_delay": [0, 1, 2]}, instance=[{"name": "split"}], player=UNIFORM).run(tmp_path)
    # The first is refused: no other is begun.
    assert simulated == [0]


def test_rows_that_cannot_be_made_are_a_failure_of_their_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = measure.rows

    def failing(cell: Cell, measured: Any) -> Any:
        if cell["max_delay"] == 0:
            raise RuntimeError("no sum")
        return real(cell, measured)

    monkeypatch.setattr(run_module, "rows", failing)
    results = study(grid=GRID | {"max_delay": [0, 1]}, instance=[{"name": "split"}], player=UNIFORM).run(tmp_path)
    assert results.finished == 1
    assert [failure["message"] for failure in results.failures.values()] == ["no sum"]


def test_an_interrupt_keeps_the_cell_that_was_simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = measure.measure

    def interrupted(cell: Cell, *rest: Any) -> Any:
        if cell["max_delay"] == 1:
            raise KeyboardInterrupt
        return real(cell, *rest)

    mine = study(grid=GRID | {"max_delay": [0, 1]}, instance=[{"name": "split"}], player=UNIFORM)
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "measure", interrupted)
        with pytest.raises(KeyboardInterrupt):
            mine.run(tmp_path)
    assert mine.results(tmp_path).finished == 1
