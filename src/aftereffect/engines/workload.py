"""The input of an engine (`Workload`), its output (`Outcome`), and the distribution of the work over threads.

Runs are distributed over threads in chunks; each chunk advances in tiles of rounds. Compiled code runs without the GIL,
so threads run in parallel. Between tiles a chunk reports its progress and checks whether to stop, so that Ctrl-C takes
effect within one tile.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aftereffect.core.checks import FloatArray
from aftereffect.losses.protocol import Losses

# The runs of a chunk share each tile, so larger chunks are faster, but their states must fit the second-level cache.
MOST_RUNS = 1024

Advanced = Callable[[int], None]
# A progress bar appears after this many seconds, or at once if requested.
PATIENCE = 1.0


class Stopped(Exception):
    """The simulation was asked to stop."""


@dataclass(frozen=True)
class Workload:
    """Simulate `runs` runs of one player on one loss sequence.

    player: an unplayed template with `fresh(seed, run)`; runs are numbered from `first_run`.
    checkpoints: the rounds, ascending, after which cumulative losses are recorded; the last is the horizon.
    gaps: the difference between each arm's mean and the best arm's; zeros if the means are not known.
    advanced: called with the number of simulated rounds since the last call; raises `Stopped` to stop.
    watch: the places of the state of every run's base that are kept at the checkpoints, by engines of blocks.
    """

    player: Any
    losses: Losses
    seed: int
    first_run: int
    runs: int
    checkpoints: NDArray[np.int64]
    gaps: FloatArray
    trace: bool
    threads: int
    advanced: Callable[[int], None]
    watch: Sequence[int] = ()


class Blocks(NamedTuple):
    """The blocks of one run: first round of each (from 1), its arm, and the loss fed at its end (NaN: none)."""

    starts: NDArray[np.int64]
    arms: NDArray[np.int64]
    fed_losses: FloatArray


class Outcome(NamedTuple):
    """The results of an engine, at the checkpoints.

    losses, pseudo: cumulative composite losses and pseudo-regret, (runs, checkpoints). updates: (runs,).
    arm_sums: the sums of totals of always playing each arm, (checkpoints, K).
    watched: the watched places of the bases' states, (runs, checkpoints, places); on a GPU at the last checkpoint only.
    """

    losses: FloatArray
    pseudo: FloatArray
    updates: NDArray[np.int64]
    arm_sums: FloatArray
    traces: list[Blocks] | None
    watched: FloatArray | None = None


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread_over(
    threads: int, work: Callable[..., None], parts: Iterable[tuple[int, ...]], simulated: Advanced | None = None
) -> None:
    """Call work(*part, advanced) for every part, on this many threads.

    `work` must call advanced(rounds) regularly, which passes the number of rounds on to `simulated`, and raises
    `Stopped` if another call has failed or the main thread was interrupted.
    """
    stop = threading.Event()

    def advanced(rounds: int) -> None:
        if stop.is_set():
            raise Stopped
        if simulated is not None:
            simulated(rounds)

    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(work, *part, advanced) for part in parts]
        try:
            # Wait with a timeout: a wait without one would not react to Ctrl-C.
            while wait(futures, timeout=0.1, return_when=FIRST_EXCEPTION).not_done:
                if any(future.done() and future.exception() for future in futures):
                    break
        finally:
            # After an error or Ctrl-C no new part starts, and running parts end at their next check.
            stop.set()
            for future in futures:
                future.cancel()
    errors = [future.exception() for future in futures if not future.cancelled()]
    # Raise the cause rather than a `Stopped` that it led to.
    for error in sorted((e for e in errors if e is not None), key=lambda e: isinstance(e, Stopped)):
        raise error


def share_out(load: Workload, work: Callable[[int, int, Advanced], None]) -> None:
    """Call work(first run, number of runs, advanced) for chunks of runs, on `load.threads` threads."""
    waves = -(-load.runs // (load.threads * MOST_RUNS))
    size = -(-load.runs // (load.threads * waves))
    chunks = [(first, min(size, load.runs - first)) for first in range(0, load.runs, size)]
    spread_over(load.threads, work, chunks, load.advanced)


@contextmanager
def progress_bar(total: int, progress: bool | None) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes the number of rounds just simulated; it is safe to call from threads.

    progress: True shows progress at once, False never, None only at a terminal or in a notebook, if the work takes
    longer than a second. It is a bar at a terminal, else lines of text: "simulating: 10%".
    """
    notebook, terminal = "ipykernel" in sys.modules, sys.stderr.isatty()
    if progress is False or (progress is None and not (notebook or terminal)):
        yield lambda rounds: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("simulating"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("", total=total)
    lock, begun, done, tenths = threading.Lock(), time.monotonic(), 0, 0

    def advanced(rounds: int) -> None:
        nonlocal done, tenths
        with lock:
            done += rounds
            if not progress and time.monotonic() - begun <= PATIENCE:
                return
            if terminal:
                bar.start()
                bar.update(task, completed=done)
            elif 10 * done // total > tenths:
                tenths = 10 * done // total
                end = "\r" if notebook and tenths < 10 else "\n"
                print(f"simulating: {10 * tenths}%", end=end, file=sys.stderr, flush=True)

    try:
        yield advanced
    finally:
        if terminal:
            bar.stop()
