"""The folder of a study: every finished cell is safe on disk before the next thing happens.

    cells/<id>.parquet     a finished cell until it is compacted: its rows, and in one more column, `time`, when it ran,
                           for how long, with which versions
    failures/<id>.json     the error of a cell that failed; it is tried again by the next run
    rows.parquet           what `compact` merged: rows only, so that they compare exactly
    times.parquet          and apart from them the times
    lock                   held by the one run that may write

A file appears under its name only when all of it is on the disk: it is written beside, synced, renamed, and the
folder is synced. So a run may be killed anywhere: what a torn write leaves behind has another name.
"""

import fcntl
import io
import json
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import polars as pl

from aftereffect.studies.errors import FolderUnusable
from aftereffect.studies.measure import SCHEMA, Columns

KINDS: dict[str, Any] = {"str": pl.String, "i64": pl.Int64, "f64": pl.Float64}
ROWS = pl.Schema({name: KINDS[kind] for name, kind in SCHEMA.items()})
VERSIONS = ("aftereffect", "numpy", "numba", "python")
TIMES = pl.Schema(
    {"cell": pl.String, "seconds": pl.Float64, "started": pl.String, **dict.fromkeys(VERSIONS, pl.String)}
)
LOOSE = pl.Schema([*ROWS.items(), ("time", pl.String)])
_NAME = re.compile(r"[0-9a-f]{16}")

# A lock of a process does not keep out the process itself: folders that a run of this process holds.
_held: set[Path] = set()
_guard = threading.Lock()


class Store:
    """The folder of a study; it is made when something is first written."""

    def __init__(self, folder: str | Path) -> None:
        """Look at a folder, which need not exist."""
        self.folder = Path(folder).resolve()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only run that writes here, or say that there is another; remove what torn writes left behind."""
        with _complaining(self.folder):
            for name in ("cells", "failures"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            file = (self.folder / "lock").open("a")
        with file:
            self._take(file)
            try:
                for torn in self.folder.rglob(".*.tmp"):
                    torn.unlink()
                yield
            finally:
                with _guard:
                    _held.discard(self.folder)

    def _take(self, file: IO[str]) -> None:
        # A record lock, as it is not passed on to forked workers, who may outlive a killed run.
        with _guard:
            try:
                if self.folder in _held:
                    raise BlockingIOError
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                raise FolderUnusable(
                    f"folder must not be in use by another run, but {str(self.folder)!r} is: wait for it or stop it"
                ) from None
            _held.add(self.folder)

    def finished(self) -> set[str]:
        """Return the ids of the cells whose rows are here."""
        return self._ids("cells", "parquet") | set(self._merged("rows", ROWS)["cell"].unique())

    def put(self, cell: str, rows: Columns, time: dict[str, Any]) -> None:
        """Store a finished cell: one file, so that its rows and its time are there together or not at all."""
        frame = pl.DataFrame(rows, schema=ROWS).with_columns(pl.lit(json.dumps(time)).alias("time"))
        # It lives until it is compacted, and few rows compress to little: time is worth more than space.
        loose = _parquet(frame, compression="uncompressed", statistics=False)
        self._write(self.folder / "cells" / f"{cell}.parquet", loose)
        (self.folder / "failures" / f"{cell}.json").unlink(missing_ok=True)

    def put_failure(self, cell: str, error: dict[str, Any]) -> None:
        """Store the error of a cell that failed."""
        self._write(self.folder / "failures" / f"{cell}.json", json.dumps(error).encode())

    def failures(self) -> dict[str, dict[str, Any]]:
        """Return the errors of cells that failed when last tried, by id."""
        found = {}
        for name in sorted(self._ids("failures", "json")):
            found[name] = json.loads((self.folder / "failures" / f"{name}.json").read_text(encoding="utf-8"))
        return found

    def read(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return rows and times, of merged and of loose cells; one that is both, after a kill, counts as merged."""
        # Listed first, as a run that is compacting meanwhile takes loose files away.
        names = self._ids("cells", "parquet")
        rows, times = self._merged("rows", ROWS), self._merged("times", TIMES)
        merged = set(rows["cell"].unique())
        loose = self._loose(names - merged)
        told = [json.loads(text) for text in loose["time"].unique(maintain_order=True)]
        times = pl.concat([times.filter(pl.col("cell").is_in(list(merged))), pl.DataFrame(told, schema=TIMES)])
        return pl.concat([rows, loose.drop("time")]).sort("cell", "round"), times.sort("cell")

    def rows(self) -> pl.DataFrame:
        """Return all rows, sorted by cell and round."""
        return self.read()[0]

    def times(self) -> pl.DataFrame:
        """Return when cells ran and for how long, sorted by cell."""
        return self.read()[1]

    def compact(self) -> None:
        """Merge finished cells into two files; small files go only once the merged ones are safe."""
        loose = self._ids("cells", "parquet")
        if not loose:
            return
        rows, times = self.read()
        self._write(self.folder / "times.parquet", _parquet(times))
        self._write(self.folder / "rows.parquet", _parquet(rows))
        for name in loose:
            (self.folder / "cells" / f"{name}.parquet").unlink()

    def _ids(self, folder: str, suffix: str) -> set[str]:
        found = (self.folder / folder).glob(f"*.{suffix}")
        return {path.stem for path in found if _NAME.fullmatch(path.stem)}

    def _merged(self, name: str, schema: pl.Schema) -> pl.DataFrame:
        path = self.folder / f"{name}.parquet"
        return self._read(path, schema) if path.exists() else pl.DataFrame(schema=schema)

    def _loose(self, names: set[str]) -> pl.DataFrame:
        """Return cells that are not merged: read all at once, or one by one to find the file at fault."""
        paths = [self.folder / "cells" / f"{name}.parquet" for name in sorted(names)]
        if not paths:
            return pl.DataFrame(schema=LOOSE)
        try:
            frame = pl.read_parquet(paths, glob=False)
        except (OSError, pl.exceptions.PolarsError):
            frame = pl.DataFrame()
        return frame if frame.schema == LOOSE else pl.concat([self._read(path, LOOSE) for path in paths])

    def _read(self, path: Path, schema: pl.Schema) -> pl.DataFrame:
        try:
            frame = pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise FolderUnusable(
                f"{path} must be a readable Parquet file (remove it and run again), but {error}"
            ) from None
        if frame.schema != schema:
            raise FolderUnusable(
                f"{path} must have the columns of this version (use another folder), but it has {frame.columns}"
            )
        return frame

    def _write(self, path: Path, data: bytes) -> None:
        with _complaining(path):
            write_durably(path, data)


def write_durably(path: Path, data: bytes) -> None:
    """Put a whole file in place, on the disk, or leave what was there."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
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


def _parquet(frame: pl.DataFrame, **options: Any) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, **options)
    return buffer.getvalue()


@contextmanager
def _complaining(path: Path) -> Iterator[None]:
    """Turn what the operating system says into an error that names the folder's rule."""
    try:
        yield
    except OSError as error:
        raise FolderUnusable(
            f"folder must be one that can be written to, but writing {str(path)!r} failed: {error.strerror}"
        ) from error
