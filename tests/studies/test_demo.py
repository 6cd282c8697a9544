"""The demonstration: a table, a verdict that follows from it, and a report that is where it says."""

import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from aftereffect.cli import app
from aftereffect.studies import Study, player_tables

PLAYERS: tuple[dict[str, Any], ...] = (
    {"name": "default_player"},
    {"name": "CompositeLossWrapper"},
    {"name": "Naive"},
    {"name": "CompositeLossWrapper", "base": "uniform"},
    {"name": "DelayedExp3"},
    {"name": "LinearComposite", "on": ["immediate"]},
    {"name": "BlockUCB"},
    {"name": "ODAAF", "on": ["split"]},
)


@pytest.fixture(scope="module")
def little() -> Study:
    """Return a study with one instance of each kind, at one size."""
    names = [{"name": "split"}, {"name": "late_bills"}, {"name": "switching", "gap": 0.3}, {"name": "constrained"}]
    sizes = {"n_arms": 4, "max_delay": 4, "horizon": 20_000}
    return Study("little", grid=sizes, instance=[*names, {"name": "immediate"}], player=PLAYERS, runs=4, seed=1)


@pytest.fixture(scope="module")
def told(little: Study, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    folder = tmp_path_factory.mktemp("demo")
    console = Console(width=80, record=True)
    path = player_tables.demonstrate(console, folder, little)
    return console.export_text(), path, folder


def test_the_table_and_the_verdict(told: tuple[str, Path, Path]) -> None:
    text = told[0]
    assert all(len(line) <= 80 for line in text.splitlines()[:-1])
    lines = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    found = {line[0]: line[1:] for line in lines if len(line) >= 5 and re.fullmatch(r"-?[\d,]+|–", line[2])}
    # Means 0.3, 0.5, 0.6, 0.7: blind play pays 225 more per 1,000 rounds than the best arm, within 3%.
    assert float(found["uniform play"][1]) == pytest.approx(225.0, abs=7.0)
    assert float(found["default player"][1]) < 40.0
    assert float(found["naive Exp3"][1]) > 250.0
    assert found["delayed Exp3"][-1] == "labels"
    assert found["UCB on clean windows"][-1] == "iid"
    # It has room on part of a kind only, and another plays nowhere on all of it.
    assert "linear composite" not in text
    assert "ODAAF" not in found
    shares = re.findall(r"(\d+)%", text.replace("\n", " "))
    assert len(shares) == 4
    assert int(shares[1]) < 20
    assert int(shares[3]) > 110


def test_the_report_is_where_it_says_and_nothing_runs_twice(told: tuple[str, Path, Path], little: Study) -> None:
    _, path, folder = told
    assert path == folder / "report.html"
    assert "Who does best where" in path.read_text(encoding="utf-8")
    before = little.results(folder).times
    again = Console(width=80, record=True)
    player_tables.demonstrate(again, folder, little)
    assert little.results(folder).times.equals(before)
    assert again.export_text() == told[0]


def test_the_command_says_where_the_report_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def quickly(console: Any, folder: Path, study: Study) -> Path:
        asked.append((str(folder), len(study.cells())))
        return folder / "report.html"

    monkeypatch.setattr(player_tables, "demonstrate", quickly)
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "there")])
    assert done.exit_code == 0
    assert done.output == f"Report, with figures and every number: {tmp_path}/there/report.html\n"
    assert CliRunner().invoke(app, ["demo", "--full"]).exit_code == 0
    assert asked == [(str(tmp_path / "there"), 40), ("out/studies/rivals", 793)]


def test_the_kinds_are_the_instances_of_the_study() -> None:
    cells = Study.load("rivals").cells()
    listed = [name for names in player_tables.KINDS.values() for name in names]
    assert sorted(listed) == sorted({cell["instance"]["name"] for cell in cells})
