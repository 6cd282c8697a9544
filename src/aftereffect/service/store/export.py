"""Export of an experiment's rounds as CSV (for spreadsheets) or Parquet: one row per round and unit, in order.

The file is first written to disk from one snapshot of the database, and then returned in chunks. So a large export
needs little memory, and a slow client does not hold a database connection.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection

from aftereffect.service import words
from aftereffect.service.store import reads, schema
from aftereffect.service.store.event_log import find

CHUNK = 2**18
# A spreadsheet reads a cell that begins with one of these as a formula (the last four are full-width characters, as of
# Japanese keyboards); a leading apostrophe makes it text.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
COLUMNS = (*reads.ITEM_FIELDS, "why")
_NAMES = tuple(COLUMNS.index(name) for name in ("unit", "arm", "drawn", "why", "note"))
_rounds = schema.rounds.c


def export(connection: Connection, identity: str, form: str) -> Iterator[bytes]:
    """Return all rounds of an experiment as chunks of a "csv" or "parquet" file; they are read before this returns."""
    with tempfile.TemporaryDirectory(prefix="aftereffect-export-") as folder:
        file = Path(folder) / "rounds.csv"
        _write_csv(connection, identity, file, for_people=form == "csv")
        # An open file can be read also when it is deleted from its folder.
        return _pieces((_as_parquet(file) if form == "parquet" else file).open("rb"))


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(CHUNK):
            yield chunk


def _write_csv(connection: Connection, identity: str, file: Path, *, for_people: bool) -> None:
    row = find(connection, identity)
    settings = reads.settings_of(row)
    query = reads.items.where(_rounds.experiment == row.number)
    query = query.order_by(_rounds.round, _rounds.unit_index).execution_options(yield_per=1000)
    with file.open("w", encoding="utf-8", newline="") as out, connection.execute(query) as found:
        out.write(",".join(COLUMNS) + "\r\n")
        for _, *cells in reads.sound_rows(found):
            cells.append(words.why(dict(zip(reads.ITEM_FIELDS, cells, strict=True)), settings))
            for i in _NAMES:
                if for_people and (cells[i] or "").startswith(_FORMULA):
                    cells[i] = "'" + cells[i]
            out.write(",".join(map(_cell, cells)) + "\r\n")


def _cell(value: Any) -> str:
    """Return a CSV cell: strings quoted, numbers unquoted, None empty (a quoted empty cell would be a string)."""
    if value is None:
        return ""
    return '"' + value.replace('"', '""') + '"' if isinstance(value, str) else str(value)


def _as_parquet(file: Path) -> Path:
    # Imported here because it is slow.
    import polars as pl

    kinds: dict[str, Any] = dict.fromkeys(COLUMNS, pl.String)
    kinds |= dict.fromkeys(("round", "block", "block_start"), pl.Int64)
    kinds |= dict.fromkeys(("total", "probability", "fed"), pl.Float64)
    kinds |= dict.fromkeys(("draw", "washin", "measured", "update", "substituted", "withheld"), pl.Boolean)
    made = file.with_suffix(".parquet")
    pl.scan_csv(file, schema=kinds).sink_parquet(made)
    return made
