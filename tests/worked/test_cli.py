"""The command line: the output of each command, and exit statuses of errors."""

import re
import tomllib
from pathlib import Path

import pytest
from tests.worked.test_figure1 import DRAWN

import aftereffect as ae
from aftereffect.cli import main
from aftereffect.core import VERSION
from aftereffect.players import registry
from aftereffect.studies import player_tables


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return end.value.code


def test_blocks_shows_figure_1_unless_told_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("blocks") == 0
    assert capsys.readouterr().out == f"{DRAWN}\n"


def test_blocks_of_another_sequence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("blocks", "--max-delay", "1", "--coins", "0010") == 0
    expected = ["coins   0  0  1 |0", "rounds  D  S  SU|D", "needed  0  0  1 |", "summed     +  + |"]
    assert capsys.readouterr().out.splitlines() == expected


def test_bad_input_is_one_line_and_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("blocks", "--coins", "1021") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "aftereffect: coins must be one or more of the digits 0 and 1, but got '1021'\n"


def test_a_file_that_cannot_be_read_is_one_line_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("backtest", str(tmp_path / "missing" / "history.csv")) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "No such file or directory" in error


def test_version_is_the_projects(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"{ae.__version__}\n"
    # The version of the installed package is taken from the same line.
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "aftereffect.core.VERSION"}
    assert ae.__version__ == VERSION


def test_the_help_groups_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    text = capsys.readouterr().out
    headings = ["First steps", "Studies and histories", "Experiments", "Records", "Server"]
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places)
    assert places[0] < text.index(" demo ") < places[1] < text.index(" backtest ") < places[2] < text.index(" ask ")


def test_an_unknown_verb_is_status_2() -> None:
    assert run("conquer") == 2


def test_compare_prints_every_player_with_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--arms", "2", "--max-delay", "1", "--horizon", "400", "--runs", "4", "--instances", "2"]
    with pytest.raises(SystemExit) as done:
        main(["compare", *sizes, "--spread", "fading"])
    assert done.value.code in (0, None)
    lines = capsys.readouterr().out.splitlines()
    # A row has a name, then regret, error and time, then what the player needs.
    found = (re.fullmatch(r" (.{24}).*\d\.\d\d s(.*)", line) for line in lines)
    rows = {row[1].strip(): row[2].strip() for row in found if row}
    wanted = {
        "wrapper, Tsallis FTRL": "d, T",
        "wrapper, Tsallis-INF": "d",
        "blinded bandit": "d, T, d ≤ 1",
        "linear composite": "T, coefficients",
        "uniform play": "",
        "delayed Exp3": "d, T, labels",
        "QPM-D, UCB1": "iid, labels",
    }
    assert {name: rows.get(name) for name in wanted} == wanted
    assert len(rows) == len(registry.COMPARED)
    assert all(len(line) <= 80 for line in lines)


def test_compare_says_who_cannot_play() -> None:
    _, everyone = player_tables.one_good_arm(2, 1, 10, 0.2, "fading", 0)
    _, fewer = player_tables.one_good_arm(2, 3, 10, 0.2, "delays", 0)
    assert player_tables.left_out(everyone) == ""
    assert player_tables.left_out(fewer) == (
        "Left out: blinded bandit (for delays of at most 1), "
        "linear composite (for known coefficients: --spread fading)."
    )
    # The sentence and the table must not contradict each other.
    listed = [player_tables.contenders(problem) for problem in (everyone, fewer)]
    names = [{entry.label(settings) for entry, settings in entries} for entries in listed]
    assert names[0] - names[1] == {"blinded bandit", "linear composite"}


def test_compare_refuses_a_spread_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["compare", "--spread", "sideways"])
    assert done.value.code == 2
    assert capsys.readouterr().err == (
        "aftereffect: spread must be one of 'delays', 'split', 'fading', but got 'sideways'\n"
    )
