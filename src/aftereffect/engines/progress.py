"""A progress bar for long simulations: only at a terminal, and only once a second has passed."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 1.0


@contextmanager
def watching(total: int, progress: bool | None) -> Iterator[Callable[[int], None]]:
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
