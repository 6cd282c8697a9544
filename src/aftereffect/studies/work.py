"""The work itself: cells of one group, one after another, on losses that are built once.

What a worker does, wherever it is; it writes nothing, and what it returns is plain enough to travel.
"""

import platform
import time
import traceback
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aftereffect.core import VERSION
from aftereffect.studies.builders import Draws
from aftereffect.studies.cells import Cell, cell_id
from aftereffect.studies.measure import Columns, Played, measure, summary

FRAMES = 5


class Done(NamedTuple):
    """A cell that was tried: its rows and time, or its error."""

    cell: str
    rows: Columns | None
    time: dict[str, Any]
    error: dict[str, Any] | None


class Tried(NamedTuple):
    """A cell that was simulated, or failed to be; its rows are still to be made."""

    cell: Cell
    played: Played | None
    time: dict[str, Any]
    error: dict[str, Any] | None

    def done(self) -> Done:
        """Make the rows; an error counts as the cell's."""
        rows, error = None, self.error
        if self.played is not None:
            try:
                rows = summary(self.cell, self.played)
            except Exception as reason:
                error = describe(reason)
        return Done(cell_id(self.cell), rows, self.time, error)


def perform(cells: Sequence[Cell], threads: int) -> Iterator[Tried]:
    """Simulate cells of one group, each when it is asked for; an error ends its own cell only."""
    draws = Draws(cells[0])
    for cell in cells:
        started = datetime.now(UTC).isoformat(timespec="seconds")
        begun = time.perf_counter()
        played, error = None, None
        try:
            played = measure(cell, draws, threads)
        except Exception as reason:
            error = describe(reason)
        taken = {"cell": cell_id(cell), "seconds": time.perf_counter() - begun, "started": started}
        yield Tried(cell, played, taken | versions(), error)


def perform_all(cells: Sequence[Cell], threads: int) -> list[Done]:
    """Simulate cells of one group: the task that executors carry to their workers."""
    return [tried.done() for tried in perform(cells, threads)]


def describe(error: BaseException) -> dict[str, Any]:
    """Return an error as plain text: type, message, and the last calls, without the machine's folders."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    calls = [f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in frames]
    return {"error": type(error).__name__, "message": str(error), "traceback": calls}


@cache
def versions() -> dict[str, str]:
    """Return the versions that results may depend on."""
    return {
        "aftereffect": VERSION,
        "numpy": np.__version__,
        "numba": version("numba"),
        "python": platform.python_version(),
    }
