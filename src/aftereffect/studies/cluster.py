"""Dask: a cluster of this machine, or one that is there already (extra `cluster`)."""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from aftereffect.core.errors import InvalidArgument

PATIENCE = 20


def _distributed() -> Any:
    try:
        return import_module("distributed")
    except ImportError:
        raise InvalidArgument(
            "executor 'dask' needs the package distributed: pip install 'aftereffect[cluster]'"
        ) from None


@contextmanager
def dask_executor(workers: int, scheduler: str | None) -> Iterator[Executor]:
    """Connect to a scheduler, or start one with so many workers, and yield an executor on it.

    A worker that dies is replaced or left out, and its unit given to another; one that four workers died of fails.
    """
    distributed = _distributed()
    if scheduler is None:
        # One task a worker: the engine has threads of its own. No dashboard: nobody asked for an open port.
        options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            yield client.get_executor(pure=False)
        return
    try:
        client = distributed.Client(scheduler, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise InvalidArgument(
            f"scheduler must be the address of a Dask scheduler, but got {scheduler!r}: {error}"
        ) from None
    with client:
        yield client.get_executor(pure=False)


def cluster_threads(executor: Executor) -> int:
    """Return how many units the cluster behind a Dask executor takes at once: the sum of its workers' threads."""
    client: Any = getattr(executor, "_client", None)
    return max(1, sum(client.nthreads().values())) if client is not None else 1
