"""Running a study: what is not finished yet, group by group, each finished cell stored at once.

    study.cells() ── finished? ──> groups ──> here, or an executor's workers ──> rows ──> writer ──> the store

Neither order nor number of workers changes a row. This process alone writes, and a cell counts when it is on disk.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING

from aftereffect.core import checks
from aftereffect.studies.cells import Cell, cell_id, groups
from aftereffect.studies.executors import capacity, carried, units
from aftereffect.studies.results import Results, read_results
from aftereffect.studies.watching import watching
from aftereffect.studies.work import Done, Tried, perform
from aftereffect.studies.writer import Writer

if TYPE_CHECKING:
    from aftereffect.studies.spec import Study


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_study(
    study: "Study",
    folder: str | Path,
    executor: Executor | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
    *,
    threads: int | None = None,
    workers: int | None = None,
) -> Results:
    """Simulate the cells of a study that the folder does not hold yet, and return the results of all.

    executor: anything with the interface of concurrent.futures.Executor; None runs here, on all cores. It is left
    open. workers: how many the executor has, for one that does not tell. threads: of each worker's engine, by
    default the cores shared out among the workers.
    progress: True shows a bar, False none, None one at a terminal; or a function of (cells finished, cells in all).

    Stop it anywhere and run it again: nothing is lost or done twice. A cell that fails is recorded, the others go
    on, and the next run tries it again. At the end finished cells are compacted into one file.
    """
    from aftereffect.studies.store import Store

    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor must be a concurrent.futures.Executor, but got {checks.shown(executor)}")
    many = 1 if executor is None else capacity(executor, workers)
    if threads is None:
        threads = max(1, cores() // many)
    threads = checks.integer("threads", threads, low=1)
    store = Store(folder)
    with store.locked():
        cells = study.cells()
        finished = store.finished()
        left = [cell for cell in cells if cell_id(cell) not in finished]
        with watching(cells, left, progress) as advanced, Writer(store, advanced) as writer:
            for found in _performed(left, executor, many, threads):
                writer.keep(found)
        store.compact()
        return read_results(study, folder)


def _performed(left: list[Cell], executor: Executor | None, many: int, threads: int) -> Iterator[Tried | Done]:
    if executor is None:
        for group in groups(left):
            yield from perform(group, threads)
    else:
        for batch in carried(executor, units(groups(left), many), threads):
            yield from batch
