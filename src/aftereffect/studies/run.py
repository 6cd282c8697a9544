"""Running cells: group by group, in this process or by an executor's workers, each finished cell on disk at once.

    cells ── finished? ──> groups ──> here, or an executor's workers ──> rows ──> folder

Neither order nor number of workers changes a row. This process alone writes. In this process one thread makes and
writes rows while the next cell is simulated, one cell behind: a run that is killed loses the cell being simulated and
at most the one being written. Run again, it goes on with the cells that are not on disk.
"""

import itertools
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from aftereffect.core import VERSION, checks
from aftereffect.studies.cells import Cell, cell_id, groups
from aftereffect.studies.executors import capacity, submitted, units
from aftereffect.studies.instances import Draws
from aftereffect.studies.measure import Measured, measure, rows
from aftereffect.studies.results import Finished, Folder, Results

FRAMES = 5
"""How many of an error's last calls are kept."""


def run_cells(
    cells: Sequence[Cell],
    folder: str | Path,
    executor: Executor | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
    *,
    threads: int | None = None,
    workers: int | None = None,
) -> Results:
    """Simulate the cells that the folder does not hold yet, and return the results of all.

    executor: any concurrent.futures Executor; None runs in this process. threads: of the engine, by default the cores
    of this machine shared out over the workers. workers: how many cells the executor takes at once, by default its
    number of workers.
    progress: True shows a bar, False none, None one at a terminal; or a function of (cells finished, cells in all).

    Stop it anywhere and run it again: nothing is lost or done twice. A cell that fails is recorded, the others go
    on, and the next run tries it again.
    """
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor must be a concurrent.futures.Executor, but got {checks.shown(executor)}")
    many = 1 if executor is None else capacity(executor, workers)
    threads = checks.integer("threads", max(1, cores() // many) if threads is None else threads, low=1)
    home = Folder(folder)
    with home.locked():
        done = home.finished()
        left = [cell for cell in cells if cell_id(cell) not in done]
        with advancing(cells, left, progress) as advance:
            if executor is None:
                _run_here(home, left, threads, advance)
            else:
                work = units(groups(left), many)
                for batch in submitted(executor, work, simulate_all, _failed, threads):
                    for finished in batch:
                        advance(home.put(finished))
        return home.results(cells)


def _run_here(home: Folder, left: Sequence[Cell], threads: int, advance: Callable[[str], None]) -> None:
    """Simulate cells while another thread makes and writes the rows of the one before."""
    written: Future[str] | None = None
    with ThreadPoolExecutor(1, "study-writer") as writer:
        for finish in (finish for group in groups(left) for finish in simulate_cells(group, threads)):
            if written is not None:
                advance(written.result())
            written = writer.submit(lambda finish: home.put(finish()), finish)
        if written is not None:
            advance(written.result())


def simulate_cells(cells: Sequence[Cell], threads: int) -> Iterator[Callable[[], Finished]]:
    """Simulate cells of one group, which share their losses; yield functions that make the rows of each."""
    draws = Draws(cells[0])
    for cell in cells:
        taken = {"cell": cell_id(cell), "started": datetime.now(UTC).isoformat(timespec="seconds")} | versions()
        begun = time.perf_counter()
        found: Measured | Exception
        try:
            found = measure(cell, draws, threads)
        except Exception as error:
            found = error
        yield partial(_finished, cell, found, taken | {"seconds": time.perf_counter() - begun})


def _finished(cell: Cell, found: Measured | Exception, taken: dict[str, Any]) -> Finished:
    """Make the rows of a cell that was simulated; an error ends this cell only."""
    if isinstance(found, Measured):
        try:
            return Finished(cell_id(cell), rows(cell, found), taken, None)
        except Exception as error:
            found = error
    return Finished(cell_id(cell), None, taken, described(found))


def simulate_all(cells: Sequence[Cell], threads: int) -> list[Finished]:
    """Simulate cells of one group: the task of an executor's worker, which writes nothing."""
    return [finish() for finish in simulate_cells(cells, threads)]


def _failed(cells: Sequence[Cell], error: Exception) -> list[Finished]:
    return [Finished(cell_id(cell), None, {}, described(error)) for cell in cells]


def described(error: BaseException) -> dict[str, Any]:
    """Return an error as plain text: type, message, and the last calls, without the machine's folders."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    calls = [f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in frames]
    return {"error": type(error).__name__, "message": str(error), "traceback": calls}


@cache
def versions() -> dict[str, str]:
    """Return the versions that results may depend on."""
    packages = {"aftereffect": VERSION, "numpy": np.__version__, "numba": version("numba")}
    return packages | {"python": platform.python_version()}


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def advancing(
    cells: Sequence[Cell], left: Sequence[Cell], progress: bool | Callable[[int, int], None] | None
) -> Iterator[Callable[[str], None]]:
    """Yield a function that is called with the id of each cell that was tried, and shows how far the study is.

    The bar moves by simulated rounds, as cells are of very different sizes; cells that were finished before do not
    count into the time left.
    """
    finished = itertools.count(len(cells) - len(left) + 1)
    if callable(progress):
        call = progress
        yield lambda cell: call(next(finished), len(cells))
        return
    if progress is False or (progress is None and not sys.stderr.isatty()) or not left:
        yield lambda cell: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    # Whoever asks for a bar gets one, also where standard error is no terminal.
    console = Console(stderr=True, force_terminal=True if progress else None)
    weights = {cell_id(cell): cell["runs"] * cell["horizon"] for cell in left}
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(f"{len(cells) - len(left)}/{len(cells)} cells", total=sum(weights.values()))
        yield lambda cell: bar.update(
            task, advance=weights[cell], description=f"{next(finished)}/{len(cells)} cells"
        )
