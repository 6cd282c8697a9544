"""The results of a study, and the folder in which they are stored.

    cells/<id>.parquet     a finished cell: its rows and, in the column `time`, start, duration and origin
    failures/<id>.json     the error of a failed cell; the next run tries it again
    lock                   held by the one run that may write

A file is written under a temporary name, synced and renamed, and the folder is synced. So a run can be killed at any
time: a file under its final name is complete.
"""

import fcntl
import io
import json
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from aftereffect.core.errors import AftereffectError
from aftereffect.core.saved import canonical
from aftereffect.core.text import duration, to_pandas
from aftereffect.studies.cells import Cell, cell_id
from aftereffect.studies.measure import ROWS

if TYPE_CHECKING:
    import pandas as pd

ORIGIN = ("aftereffect", "commit", "numpy", "numba", "python", "machine")
"""What the rows of a cell were made with: versions, the commit of the package if it is run from a repository."""
TIMES = pl.Schema({"cell": pl.String(), "seconds": pl.Float64(), **dict.fromkeys(("started", *ORIGIN), pl.String())})
GUESS = 5e-8
"""Seconds per simulated round as long as no cell is finished: right up to a factor of ten or so."""
CELL = pl.Schema([*ROWS.items(), ("time", pl.String())])

# A record lock does not exclude its own process, so the folders in use by this process are listed here.
_held: set[Path] = set()
_guard = threading.Lock()


class FolderUnusable(AftereffectError):
    """A study's folder is not writable, is in use by another run, or contains an unreadable file."""


class Finished(NamedTuple):
    """The outcome of a cell: its id, and its rows and time, or its error."""

    cell: str
    rows: pl.DataFrame | None
    time: dict[str, Any]
    error: dict[str, Any] | None


@dataclass(frozen=True, eq=False)
class Results:
    """The results of a study's cells; other cells in its folder are ignored.

    rows: one per cell and checkpoint, in the order of the study (players, instances, sizes), then by round; see
    `measure.py` for the columns. times: one row per cell, in the same order. failures: errors by cell id: "error",
    "message", "traceback". missing: ids of cells not run yet.
    """

    rows: pl.DataFrame
    times: pl.DataFrame
    failures: dict[str, dict[str, Any]]
    missing: list[str]

    @property
    def finished(self) -> int:
        """The number of finished cells."""
        return int(self.rows["cell"].n_unique())

    def seconds_left(self, cells: Sequence[Cell]) -> tuple[float, bool]:
        """Estimate how long the unfinished ones of these cells take, one after another; and whether it is at most that.

        A round takes as long as in the fastest finished cell of the same player, as the first one may include
        compiling: with less than two it may be less. Without one it takes the median of the players' times.
        """
        taken = dict(self.times.select("cell", "seconds").iter_rows())
        paces: dict[str, list[float]] = {}
        left: list[tuple[str, int]] = []
        for cell in cells:
            name, rounds, seconds = canonical(cell["player"]), cell["runs"] * cell["horizon"], taken.get(cell_id(cell))
            if seconds is None:
                left.append((name, rounds))
            else:
                paces.setdefault(name, []).append(seconds / rounds)
        other = median(map(min, paces.values())) if paces else GUESS
        few = bool(paces) and any(len(paces.get(name, [])) < 2 for name, _ in left)
        return sum(min(paces.get(name, [other])) * rounds for name, rounds in left), few

    def time_left(self, cells: Sequence[Cell], at_once: int = 1) -> str:
        """Return the estimate in words, for so many cells at once."""
        seconds, few = self.seconds_left(cells)
        guess = "" if self.finished else " and compiling (a guess until cells are finished)"
        return f"{'at most ' * few}{duration(seconds / at_once)}{guess}"

    def to_pandas(self) -> "pd.DataFrame":
        """Return the rows as a pandas frame (extra `frames`)."""
        return to_pandas(self.rows.to_dict(as_series=False))

    def __repr__(self) -> str:
        left = f"{len(self.failures)} failed, {len(self.missing)} to do"
        return f"Results({self.finished} cells finished, {left}; {len(self.rows)} rows)"


class Folder:
    """The folder of a study; it is created by the first run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).resolve()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for this run and remove unfinished files; raise an error if another run holds the lock."""
        with _writable(self.path):
            for name in ("cells", "failures"):
                (self.path / name).mkdir(parents=True, exist_ok=True)
            file = (self.path / "lock").open("a")
        with file:
            # A record lock, since forked workers, which may outlive a killed run, do not inherit it.
            with _guard:
                try:
                    if self.path in _held:
                        raise BlockingIOError
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except (BlockingIOError, PermissionError):
                    rule = "folder must not be in use by another run"
                    raise FolderUnusable(f"{rule}, but {str(self.path)!r} is: wait for it or stop it") from None
                _held.add(self.path)
            try:
                for unfinished in self.path.rglob(".*.tmp"):
                    unfinished.unlink()
                yield
            finally:
                with _guard:
                    _held.discard(self.path)

    def finished(self) -> set[str]:
        """Return the ids of the cells whose rows are stored."""
        return {path.stem for path in self.path.glob("cells/[!.]*.parquet")}

    def put(self, finished: Finished) -> str:
        """Store the outcome of a cell, rows and time in one file or else its error, and return its id."""
        failure = self.path / "failures" / f"{finished.cell}.json"
        if finished.rows is None:
            write_durably(failure, json.dumps(finished.error).encode())
            return finished.cell
        buffer = io.BytesIO()
        # Compression saves little on so few rows.
        frame = finished.rows.with_columns(time=pl.lit(json.dumps(finished.time)))
        frame.write_parquet(buffer, compression="uncompressed", statistics=False)
        write_durably(self.path / "cells" / f"{finished.cell}.parquet", buffer.getvalue())
        failure.unlink(missing_ok=True)
        return finished.cell

    def results(self, cells: Iterable[Cell]) -> Results:
        """Return the stored results of these cells."""
        ids = list(dict.fromkeys(cell_id(cell) for cell in cells))
        done = self.finished()
        paths = [self.path / "cells" / f"{cell}.parquet" for cell in ids if cell in done]
        frame = pl.concat([pl.DataFrame(schema=CELL), *map(_read, paths)])
        rows = frame.drop("time").sort(pl.col("cell").replace_strict(ids, range(len(ids))), "round")
        times = [json.loads(text) for text in frame["time"].unique(maintain_order=True)]
        failures = {
            cell: json.loads(path.read_text(encoding="utf-8"))
            for cell in ids
            if cell not in done and (path := self.path / "failures" / f"{cell}.json").exists()
        }
        missing = [cell for cell in ids if cell not in done and cell not in failures]
        return Results(rows, pl.DataFrame(times, schema=TIMES), failures, missing)


def _read(path: Path) -> pl.DataFrame:
    """Return the rows of one cell; raise an error that names its file if it cannot be read or has other columns."""
    try:
        frame = pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise FolderUnusable(f"{path} must be a readable Parquet file (remove it and run again), but {error}") from None
    if frame.schema != CELL:
        rule = "must hold cells with the columns of this version (use another folder)"
        raise FolderUnusable(f"{path.parent} {rule}, but {path.name} has {frame.columns}")
    return frame


def write_durably(path: Path, data: bytes) -> None:
    """Write a file atomically and durably: after an error the previous file is unchanged."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with _writable(path):
        try:
            with beside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def _writable(path: Path) -> Iterator[None]:
    """Turn an OSError into FolderUnusable."""
    try:
        yield
    except OSError as error:
        raise FolderUnusable(f"folder must be writable, but writing {str(path)!r} failed: {error.strerror}") from error
