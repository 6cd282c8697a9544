"""Where a study runs: in this process, in processes of this machine, or on a Dask cluster.

An executor sends units of work to workers and returns their results. A unit is a group of cells, which share their
losses; if there are too few groups to keep all workers busy, groups are split, and each part builds the losses again.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from concurrent.futures.process import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, TypeVar

from aftereffect.core import checks
from aftereffect.core.errors import ExecutorBroken, InvalidArgument
from aftereffect.studies.cells import Cell

T = TypeVar("T")

EXECUTORS = ("local", "processes", "dask")
UNITS = 4
"""The number of units per worker, so that all workers finish at about the same time."""
CONNECT_SECONDS = 20
"""How long to wait for a Dask scheduler."""


def capacity(executor: Executor, workers: int | None) -> int:
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
    executor: Executor,
    work: Sequence[Sequence[Cell]],
    task: Callable[[Sequence[Cell], int], T],
    failed: Callable[[Sequence[Cell], Exception], T],
    threads: int,
) -> Iterator[T]:
    """Submit task(unit, threads) for each unit to an executor and yield results as they arrive.

    A unit whose task raises an error yields failed(unit, error). If the executor itself breaks, ExecutorBroken is
    raised after the results that are available.
    """
    futures: dict[Future[T], Sequence[Cell]] = {}
    broken: BaseException | None = None
    try:
        for unit in work:
            futures[executor.submit(task, unit, threads)] = unit
        left = set(futures)
        while left:
            # Wait with a timeout: Ctrl-C does not end a wait without one where a library (polars) handles the signal.
            done, left = wait(left, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in done:
                try:
                    yield future.result()
                except (BrokenExecutor, CancelledError) as error:
                    # Other units may have finished before the executor broke: yield their results first.
                    broken = error
                except Exception as error:
                    yield failed(futures[future], error)
    except BrokenExecutor as error:
        broken = error
    finally:
        for future in futures:
            future.cancel()
    if broken is not None:
        raise ExecutorBroken(
            f"executor must work until the study is finished, but it broke ({type(broken).__name__}: {broken}); "
            "finished cells are stored: run again to simulate the others"
        ) from broken


@contextmanager
def opened(name: str, workers: int, scheduler: str | None = None) -> Iterator[Executor | None]:
    """Open the executor of this name. workers: their number. scheduler: the address of a running Dask cluster."""
    checks.choice("executor", name, EXECUTORS)
    workers = checks.integer("workers", workers, low=1)
    if scheduler is not None and name != "dask":
        raise InvalidArgument(f"scheduler must be left out unless executor is 'dask', but got {scheduler!r}")
    if name == "local":
        yield None
    elif name == "processes":
        # Spawned processes: a fork of a process with threads and compiled code may hang.
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            yield pool
    else:
        with _dask_client(workers, scheduler) as client:
            yield client.get_executor(pure=False)


@contextmanager
def _dask_client(workers: int, scheduler: str | None) -> Iterator[Any]:
    """Connect to a scheduler, or start one with this many workers (extra `cluster`).

    If a worker dies, Dask gives its unit to another worker; a unit fails after the deaths of four workers.
    """
    distributed = checks.optional("distributed", "executor 'dask'", "cluster")
    if scheduler is None:
        # One task per worker, as the engine has its own threads. No dashboard, so that no port is opened.
        options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        client = distributed.Client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"scheduler must be a Dask scheduler's address, but got {scheduler!r}: {error}") from None
    with client:
        yield client
