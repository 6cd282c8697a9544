"""Running a study: what is not finished yet, group by group, each finished cell stored at once.

    study.cells() ── finished? ──> groups ──> here, or an executor's workers ──> rows ──> the store

Neither order nor number of workers changes a row. This process alone writes.
"""

import os
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING

from aftereffect.core import checks
from aftereffect.studies.cells import Cell, cell_id, groups
from aftereffect.studies.executors import capacity, carried, units
from aftereffect.studies.results import Results, read_results
from aftereffect.studies.watching import watching
from aftereffect.studies.work import Done, perform

if TYPE_CHECKING:
    from aftereffect.studies.spec import Study
    from aftereffect.studies.store import Store


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
        with watching(cells, left, progress) as advanced:
            if executor is None:
                _run_here(left, threads, store, advanced)
            else:
                for batch in carried(executor, units(groups(left), many), threads):
                    for done in batch:
                        _keep(store, done)
                        advanced(done.cell)
        store.compact()
        return read_results(study, folder)


def _run_here(cells: list[Cell], threads: int, store: "Store", advanced: Callable[[str], None]) -> None:
    for group in groups(cells):
        for done in perform(group, threads):
            _keep(store, done)
            advanced(done.cell)


def _keep(store: "Store", done: Done) -> None:
    if done.rows is None:
        store.put_failure(done.cell, done.error or {})
    else:
        store.put(done.cell, done.rows, done.time)
