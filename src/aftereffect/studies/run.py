"""Run cells group by group, in this process, in others, or on a Dask cluster; each finished cell is stored immediately.

    cells ── finished? ──> groups ──> here, or an executor's workers ──> rows ──> folder

A unit of an executor's work is a group of cells, which share their losses; if there are too few groups to keep all
workers busy, groups are split, and each part builds the losses again.

Rows depend neither on the order of the cells nor on the number of workers. Only this process writes. A run that is
killed loses the cells that are being simulated; the next run continues with the cells that are not on disk.
On a GPU several groups run at a time, each in a thread: some prepare their losses while the GPU plays others.
"""

import math
import platform
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numba
import numpy as np

from aftereffect.core import VERSION, checks
from aftereffect.core.errors import AftereffectWarning, ExecutorBroken, InvalidArgument
from aftereffect.core.text import counted
from aftereffect.engines.workload import cores, progress_bar
from aftereffect.studies.cells import Cell, Draws, cell_id, groups
from aftereffect.studies.measure import Measured, measure, rows
from aftereffect.studies.results import Finished, Folder, Results

GROUPS = 24
"""How many groups of cells run at a time on a GPU, at most; three to two workers, since they often wait for the GPU."""
FRAMES = 5
"""How many of the last frames of a traceback are stored."""
PAUSE = 30.0
"""Seconds between two lines of progress where there is no terminal for a bar."""
UNITS = 4
"""The number of units per worker, so that all workers finish at about the same time."""
CONNECT_SECONDS = 20
"""How long to wait for a Dask scheduler."""


def run_cells(
    cells: Sequence[Cell],
    folder: str | Path,
    executor: futures.Executor | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
    *,
    threads: int | None = None,
    workers: int | None = None,
    engine: str = "auto",
) -> Results:
    """Simulate the cells that are not in the folder yet, and return the results of all cells.

    executor: any concurrent.futures Executor; None runs in this process. threads: of the engine, by default the number
    of cores of this machine divided by the number of workers. workers: how many units of work the executor runs at
    once, by default its number of workers.
    engine: "auto", or "cuda": on an NVIDIA GPU, for players that the block engine can play.
    progress: True shows a bar, False none, None shows one at a terminal after a second, and elsewhere a line of text
    every half a minute; or a function that is called with the number of finished cells and the number of all cells.

    A run can be stopped at any time; run it again to continue. If a cell fails, the error is stored, the other cells
    continue, and the next run tries it again.
    """
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor must be a concurrent.futures.Executor, but got {checks.shown(executor)}")
    if checks.choice("engine", engine, ("auto", "cuda")) == "cuda":
        from aftereffect.engines.cuda import check_available

        check_available()
        if executor is None:
            with futures.ThreadPoolExecutor(min(GROUPS, 3 * (workers or cores()) // 2), "study-group") as pool:
                return run_cells(cells, folder, pool, progress, threads=threads, engine=engine)
    many = 1 if executor is None else capacity(executor, workers)
    if threads is not None:
        threads = checks.integer("threads", threads, low=1)
    home = Folder(folder)
    # A study may let players assume a delay other than that of the losses.
    with home.locked(), warnings.catch_warnings(action="ignore", category=AftereffectWarning):
        done = home.finished()
        left = [cell for cell in cells if cell_id(cell) not in done]
        # Cells differ widely in size, so the bar counts simulated rounds.
        rounds = {cell_id(cell): cell["runs"] * cell["horizon"] for cell in left}
        with progress_bar(sum(rounds.values()), progress if isinstance(progress, bool) else None) as bar:
            if executor is not None:
                task = partial(simulate_all, threads=threads or max(1, cores() // many), engine=engine)
                outcomes = submitted(executor, units(groups(left), many), task)
            else:
                outcomes = (one for group in groups(left) for one in simulate_cells(group, threads, engine))
            told = time.monotonic()
            for cell in map(home.put, outcomes):
                bar(rounds.pop(cell))
                if callable(progress):
                    progress(len(cells) - len(rounds), len(cells))
                elif progress is None and rounds and not sys.stderr.isatty() and time.monotonic() - told > PAUSE:
                    told, text = time.monotonic(), home.results(cells).time_left(cells, many)
                    print(f"{len(cells) - len(rounds)} of {len(cells)} cells, {text} left", file=sys.stderr, flush=True)
        return home.results(cells)


def simulate_cells(cells: Sequence[Cell], threads: int | None, engine: str = "auto") -> Iterator[Finished]:
    """Simulate cells of one group, which share their losses; yield the outcome of each as soon as it is known.

    An error affects its cell only.
    """
    draws, left = Draws(*cells), list(cells)
    so_far: dict[str, tuple[Measured | None, dict[str, Any]]] = {}
    for wave in draws.waves():
        for cell in left.copy():
            name, begun, finished = cell_id(cell), time.perf_counter(), None
            started = datetime.now(UTC).isoformat(timespec="seconds")
            before, taken = so_far.get(name, (None, {"cell": name, "started": started, **origin(), "seconds": 0.0}))
            try:
                # Again for the workers of an executor.
                with warnings.catch_warnings(action="ignore", category=AftereffectWarning):
                    some = range(wave.start, min(wave.stop, cell["instances"]))
                    found = measure(cell, draws, threads, engine, some, before)
                so_far[name] = found, taken
                if wave.stop >= cell["instances"]:
                    finished = Finished(name, rows(cell, found), taken, None)
            except Exception as error:
                finished = failed(cell, error)
            taken["seconds"] += time.perf_counter() - begun
            if finished is not None:
                left.remove(cell)
                yield finished


def simulate_all(cells: Sequence[Cell], threads: int, engine: str = "auto") -> list[Finished]:
    """Simulate cells of one group: the task of an executor's worker, which writes nothing."""
    return list(simulate_cells(cells, threads, engine))


@cache
def origin() -> dict[str, str | None]:
    """Return what results are made with (`results.ORIGIN`)."""
    home = Path(__file__).parents[1]
    commit = None
    with suppress(OSError, subprocess.SubprocessError):
        # An error unless this file belongs to a repository, and not only its folder.
        git = partial(subprocess.run, cwd=home, check=True, capture_output=True, text=True, timeout=10)
        git(["git", "ls-files", "--error-unmatch", "__init__.py"])
        commit = git(["git", "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]).stdout.strip()
    model = platform.processor() or platform.machine()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    versions = {"numpy": np.__version__, "numba": numba.__version__, "python": platform.python_version()}
    return {"aftereffect": VERSION, "commit": commit, **versions, "machine": f"{model}, {counted(cores(), 'core')}"}


def failed(cell: Cell, error: Exception) -> Finished:
    """Return the outcome of a cell with an error: type, message, and the last frames, with the names of their files."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    calls = [f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in frames]
    return Finished(cell_id(cell), None, {}, {"error": type(error).__name__, "message": str(error), "traceback": calls})


def capacity(executor: futures.Executor, workers: int | None) -> int:
    """Return how many units an executor runs at once; 1 if unknown."""
    if workers is not None:
        return checks.integer("workers", workers, low=1)
    # Neither kind of executor has a public attribute for this.
    client: Any = getattr(executor, "_client", None)
    known = getattr(executor, "_max_workers", 1) if client is None else sum(client.nthreads().values())
    return known if isinstance(known, int) and known >= 1 else 1


def units(groups: Sequence[Sequence[Cell]], workers: int) -> list[Sequence[Cell]]:
    """Return the groups, with large groups split so that each worker gets several units.

    >>> [len(unit) for unit in units([[{}] * 8, [{}]], workers=1)]
    [3, 3, 2, 1]
    """
    most = max(1, math.ceil(sum(map(len, groups)) / (UNITS * workers)))
    return [group[k : k + most] for group in groups for k in range(0, len(group), most)]


def submitted(
    executor: futures.Executor, work: Sequence[Sequence[Cell]], task: Callable[[Sequence[Cell]], list[Finished]]
) -> Iterator[Finished]:
    """Submit task(unit) for each unit to an executor and yield the outcomes of its cells as they arrive.

    If a task raises an error, all cells of its unit have failed. If the executor itself breaks, ExecutorBroken is
    raised after the results that are available.
    """
    unit_of: dict[futures.Future[list[Finished]], Sequence[Cell]] = {}
    broken: BaseException | None = None
    try:
        for unit in work:
            unit_of[executor.submit(task, unit)] = unit
        left = set(unit_of)
        while left:
            # Wait with a timeout: Ctrl-C does not end a wait without one where a library (polars) handles the signal.
            done, left = futures.wait(left, timeout=0.2, return_when=futures.FIRST_COMPLETED)
            for future in done:
                try:
                    yield from future.result()
                except (futures.BrokenExecutor, futures.CancelledError) as error:
                    # Other units may have finished before the executor broke: yield their results first.
                    broken = error
                except Exception as error:
                    yield from (failed(cell, error) for cell in unit_of[future])
    except futures.BrokenExecutor as error:
        broken = error
    finally:
        for future in unit_of:
            future.cancel()
    if broken is not None:
        raise ExecutorBroken(
            f"executor must work until the study is finished, but it broke ({type(broken).__name__}: {broken}); "
            "finished cells are stored: run again to simulate the others"
        ) from broken


@contextmanager
def opened(name: str, workers: int, scheduler: str | None = None) -> Iterator[futures.Executor | None]:
    """Open the executor of this name. workers: their number. scheduler: the address of a running Dask cluster.

    If a worker of Dask dies, another one is given its unit; a unit fails after the deaths of four workers.
    """
    checks.choice("executor", name, ("local", "processes", "dask"))
    workers = checks.integer("workers", workers, low=1)
    if scheduler is not None and name != "dask":
        raise InvalidArgument(f"scheduler must be left out unless executor is 'dask', but got {scheduler!r}")
    if name == "local":
        yield None
    elif name == "processes":
        # Spawned processes: a fork of a process with threads and compiled code may hang.
        with futures.ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            yield pool
    else:
        distributed = checks.optional("distributed", "executor 'dask'", "cluster")
        # One task per worker, as the engine has its own threads. No dashboard, so that no port is opened.
        options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
        with ExitStack() as stack:
            address = scheduler or stack.enter_context(distributed.LocalCluster(**options))
            try:
                client = stack.enter_context(distributed.Client(address, timeout=CONNECT_SECONDS))
            except (OSError, ValueError) as error:
                rule = "scheduler must be a Dask scheduler's address"
                raise InvalidArgument(f"{rule}, but got {scheduler!r}: {error}") from None
            yield client.get_executor(pure=False)
