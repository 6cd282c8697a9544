"""Where a study runs: in this process, in processes of this machine, or on a Dask cluster.

An executor carries units of work to workers and rows back. A unit is a group of cells, which share their losses; where
there are fewer groups than would keep the workers busy, groups are cut, and the parts build the losses once each.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context

from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument
from aftereffect.studies.cells import Cell, cell_id
from aftereffect.studies.errors import ExecutorBroken
from aftereffect.studies.work import Done, describe, perform_all

EXECUTORS = ("local", "processes", "dask")
# So many units a worker let the last ones end at about the same time.
UNITS = 4


def capacity(executor: Executor, workers: int | None) -> int:
    """Return how many units an executor works on at once; 1 if nobody says."""
    if workers is not None:
        return checks.integer("workers", workers, low=1)
    # Where the executors of concurrent.futures keep it; the interface itself has no word for it.
    told = getattr(executor, "_max_workers", None)
    return told if isinstance(told, int) and told >= 1 else 1


def units(groups: Sequence[Sequence[Cell]], workers: int) -> list[list[Cell]]:
    """Return the groups, cut in halves, the longest first, until there are enough for the workers.

    >>> [len(unit) for unit in units([[{}] * 8, [{}]], workers=1)]
    [2, 2, 4, 1]
    """
    found = [list(group) for group in groups]
    while 0 < len(found) < UNITS * workers:
        k = max(range(len(found)), key=lambda n: len(found[n]))
        half = len(found[k]) // 2
        if half == 0:
            break
        found[k : k + 1] = [found[k][:half], found[k][half:]]
    return found


def carried(executor: Executor, work: Sequence[Sequence[Cell]], threads: int) -> Iterator[list[Done]]:
    """Hand units to an executor and yield what comes back, as it comes.

    A unit whose workers die again and again counts as failed. If the executor itself is gone, so is this run.
    """
    futures: dict[Future[list[Done]], Sequence[Cell]] = {}
    try:
        for unit in work:
            futures[executor.submit(perform_all, unit, threads)] = unit
        broken: BaseException | None = None
        for future in as_completed(futures):
            try:
                yield future.result()
            except (BrokenExecutor, CancelledError) as error:
                # Others may have finished before it broke: take those first.
                broken = error
            except Exception as error:
                yield [Done(cell_id(cell), None, {}, describe(error)) for cell in futures[future]]
    except BrokenExecutor as error:
        broken = error
    finally:
        for future in futures:
            future.cancel()
    if broken is not None:
        raise ExecutorBroken(
            f"executor must outlive the study, but it broke ({type(broken).__name__}: {broken}); "
            "finished cells are stored: run again for the rest"
        ) from broken


@contextmanager
def opened(name: str, workers: int, scheduler: str | None = None) -> Iterator[Executor | None]:
    """Open the executor of that name with so many workers; scheduler: the address of a Dask cluster that is there."""
    checks.choice("executor", name, EXECUTORS)
    workers = checks.integer("workers", workers, low=1)
    if scheduler is not None and name != "dask":
        raise InvalidArgument(f"scheduler must be left out unless executor is 'dask', but got {scheduler!r}")
    if name == "local":
        yield None
    elif name == "processes":
        # Fresh processes: a fork of one with threads and compiled code may hang.
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            yield pool
    else:
        from aftereffect.studies.cluster import dask_executor

        with dask_executor(workers, scheduler) as executor:
            yield executor
