"""The study `adaptive`: its cells, the accounts its certificates are made of, and the ratios on its page."""

import itertools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from paper_tuning import compared, nominal_gap
from pieces import piecewise

import aftereffect as ae
from aftereffect.core.errors import InvalidArgument
from aftereffect.losses import spreads, tables
from aftereffect.studies import InvalidStudy
from aftereffect.studies.cells import build_losses
from aftereffect.studies.report.sections import write_report
from aftereffect.studies.study import Study
from aftereffect.theory.adaptive import open_stretch

FILE = Path(__file__).parents[2] / "docs" / "studies" / "adaptive.toml"
OURS: dict[str, Any] = {"name": "default_player"}
PAPER: dict[str, Any] = {"name": "CompositeLossWrapper", "base": "tsallis"}
UNIFORM: dict[str, Any] = {"name": "CompositeLossWrapper", "base": "uniform"}


def small(**given: Any) -> Study:
    """Return a study of one instance and three players at one size, but for what is given."""
    grid = {"n_arms": [2], "max_delay": [2], "horizon": [3000]}
    instances = [{"name": "fixed", "gap": 0.4}]
    players = [OURS, PAPER, {"name": "BlockUCB", "width": 0.3, "runs": 2}]
    report = {"figures": ["paper_tuning:adaptive"]}
    settings: dict[str, Any] = {"grid": grid, "instance": instances, "player": players, "report": report, "runs": 6}
    return Study("small", **(settings | given))


def test_a_players_own_runs_and_sizes() -> None:
    players = [UNIFORM | {"runs": 2}, PAPER | {"grid": {"n_arms": [3]}}]
    grid = {"n_arms": [2, 3], "max_delay": [1], "horizon": [100]}
    cells = small(player=players, grid=grid).cells()
    found = [(cell["player"]["base"], cell["n_arms"], cell["runs"]) for cell in cells]
    assert found == [("uniform", 2, 2), ("uniform", 3, 2), ("tsallis", 3, 6)]
    # At most so many: a quick study has fewer runs than that.
    assert {cell["runs"] for cell in small(player=[UNIFORM | {"runs": 40}]).cells()} == {6}
    with pytest.raises(InvalidStudy, match=r"player.runs must be a multiple of instances, 2, but got 3"):
        small(player=[UNIFORM | {"runs": 3}], instances=2)


@pytest.mark.parametrize(("d", "T", "beta"), [(0, 4, 0.5), (1, 6, 0.5), (2, 9, 0.3), (3, 3, 0.25), (3, 4, 0.25)])
def test_open_stretch_over_all_coins(d: int, T: int, beta: float) -> None:
    mean = 0.0
    for coins in itertools.product((0, 1), repeat=T):
        latest = max((t for t in range(1, T + 1) if coins[t - 1]), default=0)
        chance = beta ** sum(coins) * (1.0 - beta) ** (T - sum(coins))
        mean += chance * (T - latest) * (T - latest > d)
    assert open_stretch(d, T, beta) == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize(("K", "d", "T", "high"), [(2, 0, 200, 1.0), (3, 2, 300, 1.0), (4, 3, 40, 2.0)])
def test_certificates_are_those_the_players_give(K: int, d: int, T: int, high: float) -> None:
    table = tables.iid(T, means=np.linspace(0.2, 0.8, K), seed=1).values * high
    losses = spreads.randomly_delayed(tables.Table(table, low=0.0, high=high), max_delay=d, seed=2)
    player = ae.default_player(K, max_delay=d, seed=0, high=high)
    runs, beta = 5, 1.0 / (d + 1.0)
    # Every round is a checkpoint: those in which a block ends are among them.
    sim = ae.simulate(player, losses, runs=runs, seed=9, checkpoints=T, progress=False)
    found: Any = sim.certificates
    assert (sim.engine, found.shape) == ("blocks", (runs, T))
    for run in range(runs):
        twin, stream = player.fresh(9, run), losses.stream()
        for t in range(1, T + 1):
            twin.tell(stream.play(twin.ask()))
            one = twin.certificate()
            waiting = high * open_stretch(d, t, beta) / (1.0 - beta) ** d
            assert found[run, t - 1] == pytest.approx(one.value - one.terms["open stretch"] + waiting, rel=1e-12)
    assert sim.mean_certificate == pytest.approx(found[:, -1].mean(), rel=1e-15)
    assert sim.to_polars()["certificate"].to_list() == found.ravel().tolist()


def test_a_prior_is_part_of_the_certificates_of_runs() -> None:
    losses = spreads.at_once(tables.iid(60, means=[0.2, 0.8], seed=1), max_delay=1)
    player = ae.default_player(2, max_delay=1, prior=ae.Prior([0.7, 0.1], updates=5))
    found: Any = ae.simulate(player, losses, runs=1, seed=9).certificates
    twin, stream = player.fresh(9, 0), losses.stream()
    for _ in range(60):
        twin.tell(stream.play(twin.ask()))
    one = twin.certificate()
    assert one.terms["prior"] > 0.0
    waiting = open_stretch(1, 60, 0.5) / 0.5
    assert found[0, -1] == pytest.approx(one.value - one.terms["open stretch"] + waiting, rel=1e-12)


def test_other_players_have_no_certificates() -> None:
    losses = spreads.at_once(tables.iid(60, means=[0.2, 0.8], seed=1))
    sim = ae.simulate(ae.CompositeLossWrapper.tuned(2, max_delay=0, horizon=60), losses, runs=2)
    assert sim.certificates is None
    with pytest.raises(InvalidArgument, match="in engine 'blocks' or 'cuda' for certificates"):
        _ = sim.mean_certificate


def frame(**columns: list[Any]) -> pl.DataFrame:
    """Return final rows of one cell, a player each."""
    count = len(columns["player"])
    same = {"instance": "fixed", "instance_params": '{"gap":0.2}', "n_arms": 2, "max_delay": 0, "horizon": 1000}
    same |= {"seed": 0, "where": "here", "uniform_regret": 100.0, "updates": 1000.0, "bound": 500.0, "value": 90.0}
    same |= {"labelled": False, "unit": 1.0, "corollary_bound": 2.0 * math.sqrt(2.0) * math.sqrt(2000.0)}
    return pl.DataFrame({name: [value] * count for name, value in same.items()} | columns)


def test_players_given_a_wrong_delay_are_not_compared(tmp_path: Path) -> None:
    players = [OURS, OURS | {"max_delay": 0}, PAPER, PAPER | {"max_delay": 0}]
    study = small(player=players)
    page = write_report(study, study.run(tmp_path, progress=False), tmp_path).read_text(encoding="utf-8")
    assert " times in all 1 (geometric means)" in page
    assert "nan" not in re.sub(r"<[^>]+>|data:[^\"]+", "", page)


def test_ratios_by_hand() -> None:
    rows = frame(
        player=["default_player", "CompositeLossWrapper", "BlockUCB", "DelayedUCB1"],
        labelled=[False, False, False, True],
        player_params=["{}", '{"base":"tsallis"}', '{"width":0.3}', "{}"],
        who=["default player", "wrapper, Tsallis FTRL", "UCB on clean windows", "delayed UCB1"],
        regret=[20.0, 80.0, 0.25, -5.0],
        standard_error=[1.0, 2.0, 1.0, 1.0],
    )
    (row,) = compared(rows).to_dicts()
    assert row["ratio"] == 0.25
    # 0.25 is below a hundredth of uniform play's 100; the labelled player is no rival.
    assert (row["best_who"], row["rival_ratio"]) == ("UCB on clean windows", 20.0)
    assert row["clear"]
    assert not row["above"]
    assert row["trivial"] == pytest.approx(1000.0)


@pytest.mark.parametrize(("regret", "above"), [(111.0, False), (112.0, True)])
def test_a_cell_is_above_beyond_three_standard_errors(regret: float, above: bool) -> None:
    rows = frame(
        player=["default_player", "CompositeLossWrapper"],
        player_params=["{}", '{"base":"tsallis"}'],
        who=["default player", "wrapper, Tsallis FTRL"],
        regret=[regret, 100.0],
        # 3·√(1.6² + 1.05²·1.2²) = 6.115, and 105 + 6.115 = 111.115.
        standard_error=[1.6, 1.2],
    )
    (row,) = compared(rows).to_dicts()
    assert row["above"] is above
    # The paper's tuning alone is no field of rivals to choose from.
    assert row["rival_ratio"] is None


@pytest.mark.parametrize(
    "instance", [{"name": "stacked", "gap": 0.2}, {"name": "hard", "gap_factor": 8.0}, {"name": "fixed", "gap": 0.05}]
)
def test_gaps_are_those_of_the_losses(instance: dict[str, Any]) -> None:
    sizes = {"n_arms": 3, "max_delay": 2, "horizon": 2000}
    losses = build_losses({"instance": instance, "seed": 0} | sizes)
    low, second = np.sort(losses.means)[:2]
    settings = {key: value for key, value in instance.items() if key != "name"}
    text = str(settings).replace("'", '"')
    found = nominal_gap({"instance": instance["name"], "instance_params": text} | sizes)
    assert found == pytest.approx(second - low, rel=1e-9)


def test_pieces_by_hand() -> None:
    table = piecewise(8, 3, 0, shares=[1.0, 1.0], levels=[[0.5, 1.0], [0.0, 0.25]], noise=0.0, swing=0.5, period=2)
    # (1 − swing)μ, and half a unit more in every other pair of rounds.
    first, second = [0.25, 0.5, 0.5], [0.0, 0.125, 0.125]
    raised = [[level + 0.5 for level in levels] for levels in (first, second)]
    assert table.values.tolist() == [first, first, raised[0], raised[0], second, second, raised[1], raised[1]]
    assert table.recipe is None
    # More levels than arms: the first ones count.
    assert piecewise(1, 2, 0, shares=[1.0], levels=[[0.5, 0.25, 1.0]], noise=0.0).values.tolist() == [[0.5, 0.25]]


def test_noise_keeps_the_mean() -> None:
    values = piecewise(40_000, 2, 3, shares=[1.0], levels=[[0.3, 0.6]], noise=0.25).values
    assert set(np.unique(values).tolist()) == {0.0, 0.3, 0.6, 1.0}
    # Variances 0.25·μ(1 − μ) at most 0.06: 5 standard errors of a mean of 40,000, false alarms below 2e-6.
    np.testing.assert_allclose(values.mean(axis=0), [0.3, 0.6], atol=5.0 * math.sqrt(0.06 / 40_000))


def test_runs_to_a_report(tmp_path: Path) -> None:
    study = small()
    results = study.run(tmp_path, progress=False)
    assert not results.failures
    finals = results.rows.filter(pl.col("round") == pl.col("horizon"))
    own = finals.filter(pl.col("player") == "default_player").to_dicts()[0]
    assert 0.0 < own["value"] < own["bound"]
    assert finals.filter(pl.col("player") != "default_player")["value"].null_count() == 2
    page = write_report(study, results, tmp_path).read_text(encoding="utf-8")
    cells = compared(finals.with_columns(who="player", where="instance", labelled=False, unit=1.0))
    assert f"{cells['ratio'][0]:.3f} times in all 1 (geometric means)" in page
    assert "Against the best of the rivals in each of 1 cells" in page
    assert page.count("<img ") == 1
