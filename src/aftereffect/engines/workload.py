"""What an engine is asked to do (`Plan`), what it gives back (`Outcome`), and how the work is shared out.

Runs are shared out over threads in chunks, rounds over time in tiles. Compiled code runs without the GIL, so threads
are enough. Between tiles a chunk reports its progress and checks whether to stop, so that Ctrl-C takes effect within
one tile.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aftereffect.core.checks import FloatArray
from aftereffect.losses.protocol import Losses

# More runs in a chunk share more of each tile; their states must still fit the second-level cache.
MOST_RUNS = 1024

Advanced = Callable[[int], None]
# A progress bar appears only after so many seconds, unless it was asked for.
PATIENCE = 1.0


class Stopped(Exception):
    """The simulation was asked to stop."""


@dataclass(frozen=True)
class Plan:
    """Simulate `runs` runs of one player on one loss sequence.

    player: an unplayed template with `fresh(seed, run)`; runs are numbered from `first_run`.
    checkpoints: the rounds, ascending, after which cumulative losses are recorded; the last is the horizon.
    gaps: how much worse than the best arm's each arm's mean is, zeros if means are not known.
    advanced: called with the number of simulated rounds since the last call; raises `Stopped` to stop.
    states: keep the last state of every run's base; the block engine alone does.
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
    states: bool = False


class Blocks(NamedTuple):
    """The blocks of one run: first round of each (from 1), its arm, and the loss fed at its end (NaN: none)."""

    starts: NDArray[np.int64]
    arms: NDArray[np.int64]
    fed_losses: FloatArray


class Outcome(NamedTuple):
    """What an engine found, at the checkpoints.

    losses, pseudo: cumulative composite losses and pseudo-regret, (runs, checkpoints). updates: (runs,).
    arm_sums: what always playing each arm adds up to, (checkpoints, K).
    states: the bases' states after the last round, in kernel form, (runs, size), if asked for.
    """

    losses: FloatArray
    pseudo: FloatArray
    updates: NDArray[np.int64]
    arm_sums: FloatArray
    traces: list[Blocks] | None
    states: FloatArray | None = None


def spread_over(
    threads: int, work: Callable[..., None], parts: Iterable[tuple[int, ...]], simulated: Advanced | None = None
) -> None:
    """Call work(*part, advanced) for every part, on so many threads.

    `work` calls advanced(rounds) regularly, which raises `Stopped` once another call has failed or the main thread was
    interrupted, and passes the number of rounds on to `simulated`.
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
            # Wake up regularly: an endless wait would not see Ctrl-C.
            while wait(futures, timeout=0.1, return_when=FIRST_EXCEPTION).not_done:
                if any(future.done() and future.exception() for future in futures):
                    break
        finally:
            # After an error or Ctrl-C nothing new starts, and what runs ends at its next check.
            stop.set()
            for future in futures:
                future.cancel()
    errors = [future.exception() for future in futures if not future.cancelled()]
    # A call that was told to stop is not the cause.
    for error in sorted((e for e in errors if e is not None), key=lambda e: isinstance(e, Stopped)):
        raise error


def share_out(plan: Plan, work: Callable[[int, int, Advanced], None]) -> None:
    """Call work(first run, number of runs, advanced) for chunks of runs, on `plan.threads` threads."""
    waves = -(-plan.runs // (plan.threads * MOST_RUNS))
    size = -(-plan.runs // (plan.threads * waves))
    chunks = [(first, min(size, plan.runs - first)) for first in range(0, plan.runs, size)]
    spread_over(plan.threads, work, chunks, plan.advanced)


@contextmanager
def progress_bar(total: int, progress: bool | None) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes the number of rounds just simulated; threads may call it.

    progress: True shows a bar at once, False never, None where standard error is a terminal and the work
    takes longer than a second.
    """
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield lambda rounds: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("simulating"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("", total=total)
    lock = threading.Lock()
    begun = time.monotonic()
    shown = False

    def advanced(rounds: int) -> None:
        nonlocal shown
        with lock:
            if not shown and (progress or time.monotonic() - begun > PATIENCE):
                bar.start()
                shown = True
            bar.advance(task, rounds)

    try:
        yield advanced
    finally:
        bar.stop()
