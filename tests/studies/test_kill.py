"""kill -9 and Ctrl-C at any moment, and the command line: run again, and everything is there once."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import aftereffect
from aftereffect.studies import Study, builtin_names
from aftereffect.studies.cli import study as command
from aftereffect.studies.results import Folder

PATIENCE = 300
PACKAGE = str(Path(aftereffect.__file__).resolve().parent.parent)
# 24 cells, in 8 groups; a process takes 0.1 s for each at least, however quick the machine is, so that it is stopped
# long before the last.
SPEC = """
name = "mine"
runs = 20
checkpoints = 4
grid = { n_arms = [2, 3], max_delay = [1, 2], horizon = 20_000 }
[[instance]]
name = "split"
[[instance]]
name = "fixed"
[[player]]
name = "CompositeLossWrapper"
[[player]]
name = "CompositeLossWrapper"
base = "exp3"
[[player]]
name = "CompositeLossWrapper"
base = "uniform"
"""
CODE = """
import sys, time
from aftereffect.studies import run
from aftereffect.studies.cli import study

measure = run.measure

def slow(*given):
    time.sleep(0.1)
    return measure(*given)

run.measure = slow
study(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("spec") / "mine.toml"
    path.write_text(SPEC)
    return path


@pytest.fixture(scope="module")
def whole(spec: Path, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """The rows of a run that nobody interrupts; it also compiles what the others load."""
    return Study.load(spec).run(tmp_path_factory.mktemp("whole")).rows


def start(spec: Path, out: Path) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", CODE, "run", str(spec), "--out", str(out)]
    env = os.environ | {"PYTHONPATH": PACKAGE}
    return subprocess.Popen(arguments, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_cells(out: Path, count: int, process: subprocess.Popen[str]) -> None:
    """Wait until so many cells are finished; the process has to live that long."""
    while len(Folder(out).finished()) < count:
        assert process.poll() is None
        time.sleep(0.005)


def stopped(spec: Path, out: Path, count: int, pause: float, how: signal.Signals) -> tuple[int, str]:
    """Start a run, stop it some time after `count` cells are finished, return its status and what it complained of."""
    with start(spec, out) as process:
        wait_for_cells(out, count, process)
        time.sleep(pause)
        process.send_signal(how)
        _, complaint = process.communicate(timeout=PATIENCE)
    return process.returncode, complaint


def test_kill_at_random_moments(spec: Path, whole: pl.DataFrame, tmp_path: Path) -> None:
    rng = random.Random(5)
    known: dict[str, Any] = {}
    for _ in range(4):
        # Two cells each time and a part of one more: by the last kill most of the 24 are still to do.
        assert stopped(spec, tmp_path, len(known) + 2, rng.uniform(0.0, 0.2), signal.SIGKILL)[0] == -signal.SIGKILL
        # What was finished before is still there, and has not been done again: its time is the old one.
        times = {row["cell"]: row for row in Study.load(spec).results(tmp_path).times.to_dicts()}
        assert known.items() <= times.items()
        known = times
    assert 8 <= len(known) < 24
    results = Study.load(spec).run(tmp_path)
    assert results.rows.equals(whole, null_equal=True)
    assert known.items() <= {row["cell"]: row for row in results.times.to_dicts()}.items()
    assert not list(tmp_path.rglob("*.tmp"))


def test_ctrl_c(spec: Path, whole: pl.DataFrame, tmp_path: Path) -> None:
    status, complaint = stopped(spec, tmp_path, 2, 0.02, signal.SIGINT)
    finished = Folder(tmp_path).finished()
    last = f"Stopped: {len(finished)} of 24 cells stored; run the same command again to continue."
    assert (status, complaint.splitlines()[-1]) == (130, last)
    assert 2 <= len(finished) < 24
    assert Study.load(spec).run(tmp_path).rows.equals(whole, null_equal=True)


def test_two_runs_at_once(spec: Path, whole: pl.DataFrame, tmp_path: Path) -> None:
    with start(spec, tmp_path) as first:
        wait_for_cells(tmp_path, 1, first)
        # Stopped: it still has the folder when the second one looks, however long that takes to start.
        first.send_signal(signal.SIGSTOP)
        with start(spec, tmp_path) as second:
            _, complaint = second.communicate(timeout=PATIENCE)
        first.send_signal(signal.SIGCONT)
        out, _ = first.communicate(timeout=PATIENCE)
    assert second.returncode != 0
    assert "folder must not be in use by another run" in complaint
    assert first.returncode == 0
    assert "24 finished, 0 failed, 0 to do of 24 cells" in out
    assert Study.load(spec).results(tmp_path).rows.equals(whole, null_equal=True)


SMALL = """
name = "small"
runs = 2
grid = { n_arms = 2, max_delay = 1, horizon = 50 }
[[instance]]
name = "split"
[[instance]]
name = "hard"
gap_factor = GAP
[[player]]
name = "CompositeLossWrapper"
"""


def invoke(*arguments: object) -> Any:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_exit_codes(tmp_path: Path) -> None:
    spec, out = tmp_path / "small.toml", tmp_path / "out"
    spec.write_text(SMALL.replace("GAP", "1"))
    before = invoke("status", spec, "--out", out)
    time = "under 2 seconds and compiling (a guess until cells are finished)"
    assert (before.exit_code, before.output) == (1, f"{out}: 0 finished, 0 failed, 2 to do of 2 cells, {time}\n")
    done = invoke("run", spec, "--out", out)
    first = f"2 cells to simulate, {time} in one process"
    assert (done.exit_code, done.output) == (0, f"{first}\n{out}: 2 finished, 0 failed, 0 to do of 2 cells\n")
    assert invoke("status", spec, "--out", out).exit_code == 0
    # A gap that no losses in [0, 1] have room for: that cell fails, the other does not.
    spec.write_text(SMALL.replace("GAP", "1000"))
    failed = invoke("run", spec, "--out", tmp_path / "failed")
    assert failed.exit_code == 1
    assert "1 finished, 1 failed, 0 to do of 2 cells" in failed.output
    assert "InvalidArgument: gap must be at most" in failed.output


def test_bad_input_reaches_the_command_line(tmp_path: Path) -> None:
    failed = invoke("run", tmp_path / "nonesuch.toml")
    assert "study must be a file or one of" in str(failed.exception)
    spec = tmp_path / "small.toml"
    spec.write_text(SMALL.replace("GAP", "1"))
    assert "executor must be one of 'local'" in str(invoke("run", spec, "--executor", "cloud").exception)


def test_the_list_names_every_built_in_study() -> None:
    listed = invoke("list")
    assert listed.exit_code == 0
    names = [line.split()[0] for line in listed.output.splitlines()]
    assert names == builtin_names()
    assert {"hard", "rivals"} <= set(names)
