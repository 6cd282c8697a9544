"""Other places to run a study: threads, processes, a real Dask cluster; the same rows everywhere."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import aftereffect
from aftereffect.core.errors import InvalidArgument
from aftereffect.studies import ExecutorBroken, Study
from aftereffect.studies import run as run_module
from aftereffect.studies.run import capacity, opened, units

PACKAGE = str(Path(aftereffect.__file__).resolve().parent.parent)
ENV = os.environ | {"PYTHONPATH": PACKAGE}


def study(runs: int = 20, horizon: int = 2000) -> Study:
    return Study(
        "mine",
        grid={"n_arms": [2, 3], "max_delay": [1, 2], "horizon": [horizon]},
        instance=[{"name": "split"}, {"name": "fixed"}],
        player=[{"name": "CompositeLossWrapper", "base": base} for base in ("tsallis", "exp3", "uniform")],
        runs=runs,
        checkpoints=4,
    )


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """The rows of a run here, which also compiles what the workers will load."""
    return study().run(tmp_path_factory.mktemp("serial")).rows


def test_threads(serial: pl.DataFrame, tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        results = study().run(tmp_path, pool)
    assert results.failures == {}
    assert results.rows.equals(serial, null_equal=True)


def test_processes(serial: pl.DataFrame, tmp_path: Path) -> None:
    with opened("processes", 2) as pool:
        results = study().run(tmp_path, pool)
    assert results.failures == {}
    assert results.rows.equals(serial, null_equal=True)


class Failing(Executor):
    """Works on the first unit, and then fails in a given way."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.given = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.given += 1
        if self.given == 1:
            future.set_result(fn(*args, **kwargs))
        else:
            future.set_exception(self.error)
        return future


def test_an_executor_that_breaks_keeps_what_it_finished(serial: pl.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(ExecutorBroken, match="executor must work until the study is finished, but it broke"):
        study().run(tmp_path, Failing(BrokenExecutor("gone")))
    part = study().results(tmp_path)
    assert part.finished > 0
    assert part.missing
    assert part.failures == {}
    assert study().run(tmp_path).rows.equals(serial, null_equal=True)


def test_a_unit_that_kills_its_workers_is_a_failure(tmp_path: Path) -> None:
    results = study().run(tmp_path, Failing(RuntimeError("killed its workers")))
    assert results.finished > 0
    assert results.missing == []
    assert results.finished + len(results.failures) == len(study().cells())
    assert {failure["message"] for failure in results.failures.values()} == {"killed its workers"}


WAITS = """
import threading
from concurrent.futures import ThreadPoolExecutor
import polars
from aftereffect.studies.run import submitted

polars.LazyFrame({"a": [1]}).collect()
release = threading.Event()
with ThreadPoolExecutor(1) as pool:
    print("waiting", flush=True)
    try:
        list(submitted(pool, [[{}]], lambda unit: release.wait()))
    finally:
        release.set()
"""


def test_ctrl_c_while_units_run_elsewhere() -> None:
    """Polars handles SIGINT such that a wait without a timeout would continue."""
    with subprocess.Popen([sys.executable, "-c", WAITS], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as it:
        assert it.stdout.readline() == b"waiting\n"
        time.sleep(0.5)
        it.send_signal(signal.SIGINT)
        try:
            _, said = it.communicate(timeout=20)
        finally:
            it.kill()
    assert b"KeyboardInterrupt" in said


def test_units_keep_workers_busy_and_lose_no_cell() -> None:
    groups = [[{"n": k} for k in range(n)] for n in (5, 1, 9)]
    # 15 cells for 2 workers with 4 units each: at most 2 cells a unit.
    cut = units(groups, workers=2)
    assert [len(unit) for unit in cut] == [2, 2, 1, 1, 2, 2, 2, 2, 1]
    assert [c for unit in cut for c in unit] == [c for group in groups for c in group]
    assert units(groups, workers=100) == [[c] for group in groups for c in group]
    assert units([], workers=3) == []


def test_how_many_workers_there_are() -> None:
    with ThreadPoolExecutor(3) as pool:
        assert capacity(pool, None) == 3
        assert capacity(pool, 5) == 5
    assert capacity(Failing(RuntimeError()), None) == 1
    with pytest.raises(InvalidArgument, match="workers must be at least 1"):
        capacity(Failing(RuntimeError()), 0)


@pytest.mark.parametrize(("arguments", "says"), [
    (("cloud", 2), "executor must be one of 'local'"),
    (("local", 0), "workers must be at least 1"),
    (("local", 2, "tcp://127.0.0.1:1"), "scheduler must be left out unless executor is 'dask'"),
])
def test_bad_input(arguments: tuple[Any, ...], says: str) -> None:
    with pytest.raises(InvalidArgument, match=says), opened(*arguments):
        raise AssertionError("nothing must be opened")


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a Dask command as a process of its own, and end it."""
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments], env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for(what: Any, seconds: float = 120.0) -> Any:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = what()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def address(file: Path) -> str | None:
    """Return where a scheduler listens, once it has written that down."""
    try:
        return str(json.loads(file.read_text())["address"])
    except (OSError, ValueError, KeyError):
        return None


def test_a_dask_cluster_that_loses_a_worker(tmp_path: Path) -> None:
    # Cells of about a tenth of a second, so that the worker dies in the middle.
    mine = study(runs=400, horizon=40_000)
    expected = mine.run(tmp_path / "serial").rows
    file = tmp_path / "scheduler.json"
    with ExitStack() as stack:
        stack.enter_context(
            started(
                *("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"),
                *("--no-dashboard", "--scheduler-file", str(file)),
            )
        )
        where = wait_for(lambda: address(file))
        worker = ("distributed.cli.dask_worker", where, "--nthreads", "1", "--no-nanny", "--no-dashboard")
        workers = [stack.enter_context(started(*worker)) for _ in range(2)]
        with opened("dask", 2, where) as pool:
            client: Any = vars(pool)["_client"]
            wait_for(lambda: len(client.nthreads()) == 2)
            killed: list[int] = []

            def kill_once(done: int, total: int) -> None:
                if not killed:
                    assert done < total
                    os.kill(workers[0].pid, signal.SIGKILL)
                    killed.append(done)

            results = mine.run(tmp_path / "dask", pool, kill_once, threads=1, workers=2)
            assert workers[0].wait(timeout=60) == -signal.SIGKILL
            wait_for(lambda: len(client.nthreads()) == 1)
    assert killed
    assert results.failures == {}
    assert results.rows.equals(expected, null_equal=True)


def test_a_local_dask_cluster(serial: pl.DataFrame, tmp_path: Path) -> None:
    # In a process of its own: the cluster's threads and warnings stay out of this one.
    code = (
        "import sys\nfrom aftereffect.cli import app\nfrom aftereffect.studies.cli import study\n"
        "if __name__ == '__main__':\n    study(sys.argv[1:])\n"
    )
    script, spec, out = tmp_path / "run.py", tmp_path / "mine.toml", tmp_path / "out"
    script.write_text(code)
    spec.write_text(
        'name = "mine"\nruns = 20\ncheckpoints = 4\n'
        "grid = { n_arms = [2, 3], max_delay = [1, 2], horizon = 2000 }\n"
        '[[instance]]\nname = "split"\n[[instance]]\nname = "fixed"\n'
    )
    with spec.open("a") as file:
        for base in ("tsallis", "exp3", "uniform"):
            file.write(f'[[player]]\nname = "CompositeLossWrapper"\nbase = "{base}"\n')
    command = [sys.executable, str(script), "run", str(spec), "--out", str(out), "--executor", "dask"]
    done = subprocess.run([*command, "--workers", "2"], env=ENV, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "24 finished, 0 failed, 0 to do of 24 cells" in done.stdout
    assert study().results(out).rows.equals(serial, null_equal=True)


def test_no_scheduler_there() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "CONNECT_SECONDS", 1)
        with (
            pytest.raises(InvalidArgument, match="scheduler must be a Dask scheduler's address"),
            opened("dask", 1, "tcp://127.0.0.1:9"),
        ):
            raise AssertionError("nothing must be opened")
