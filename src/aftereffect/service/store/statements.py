"""The statements of the hot path, written for the driver.

On SQLite many rows go in with one statement: the driver lets go of the interpreter's lock once a statement, and
every time it may have to wait to get it back. On PostgreSQL the driver sends many executions down one pipeline.

SQLite's driver takes five times as long for None and for a bool as for other values, because it looks for somebody who
converts them. So where they are the rule they come as something else, and the database makes them what they are.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table

from aftereffect.service.store import schema

_MOST_VALUES = 32_766  # SQLite's limit on the values of one statement
# As many rows as clients that wait at one time are written by one statement, whatever their number.
_SIZES = (2048, 1024, 256, 64, *range(40, 0, -1))
UNKNOWN = 2
"""Stands for a truth value that is not known yet."""

Values = tuple[Any, ...]


class Column(NamedTuple):
    """A column that gets a value, and what each database does with the value."""

    name: str
    sqlite: str = "?"
    postgres: str = "%s"


def flag(name: str) -> Column:
    """Return a column of truth values that come as 0 and 1."""
    return Column(name, postgres="CAST(CAST(%s AS integer) AS boolean)")


def maybe_flag(name: str) -> Column:
    """Return a column of truth values that come as 0, 1, and as UNKNOWN for none."""
    return Column(name, f"NULLIF(?,{UNKNOWN})", f"CAST(NULLIF(CAST(%s AS integer),{UNKNOWN}) AS boolean)")


def maybe_text(name: str) -> Column:
    """Return a column of texts that are never empty; the empty one stands for none."""
    return Column(name, "NULLIF(?,'')", "NULLIF(%s,'')")


def maybe_real(name: str) -> Column:
    """Return a column of finite numbers; NaN stands for none, and SQLite takes it so by itself."""
    return Column(name, postgres="NULLIF(CAST(%s AS double precision),'NaN')")


def columns_of(names: Iterable[str]) -> list[Column]:
    """Return columns that get values as they are."""
    return [Column(name) for name in names]


class Statement:
    """One statement with its values in rows; `before` and `after` stand around SQLite's list of rows."""

    def __init__(self, columns: Sequence[Column], before: str, after: str, postgres: str) -> None:
        """Keep the parts; the text for a number of rows is written when it is first needed."""
        self._row = f"({','.join(column.sqlite for column in columns)})"
        width = self._row.count("?")
        self._sizes = [size for size in _SIZES if size * width <= _MOST_VALUES]
        self._before, self._after, self._postgres = before, after, postgres
        self._texts: dict[int, str] = {}

    def run(self, connection: Connection | sqlite3.Cursor, rows: Sequence[Values]) -> None:
        """Run the statement for all rows, in the transaction that the connection, or SQLite's own cursor, is in."""
        if not rows:
            return
        if isinstance(connection, Connection) and connection.dialect.name == "postgresql":
            connection.exec_driver_sql(self._postgres, list(rows))
            return
        execute = connection.exec_driver_sql if isinstance(connection, Connection) else connection.execute
        for portion in self._portions(rows):
            execute(self._text(len(portion)), tuple(chain.from_iterable(portion)))

    def _portions(self, rows: Sequence[Values]) -> Iterator[Sequence[Values]]:
        done, n = 0, len(rows)
        for size in self._sizes:
            while n - done >= size:
                yield rows[done : done + size]
                done += size

    def _text(self, size: int) -> str:
        text = self._texts.get(size)
        if text is None:
            text = self._texts[size] = f"{self._before}{','.join([self._row] * size)}{self._after}"
        return text


def _insert(table: Table, columns: Sequence[Column], key: Sequence[str] = ()) -> Statement:
    """Insert rows; where `key` is given, a row with that key is replaced."""
    quoted = [f'"{column.name}"' for column in columns]
    head = f'INSERT INTO "{table.name}" ({",".join(quoted)}) VALUES '
    tail = ""
    if key:
        changed = ",".join(f'"{column.name}"=excluded."{column.name}"' for column in columns if column.name not in key)
        tail = f" ON CONFLICT ({','.join(key)}) DO UPDATE SET {changed}"
    return Statement(columns, head, tail, f"{head}({','.join(column.postgres for column in columns)}){tail}")


def _update(table: Table, columns: Sequence[Column], key: Sequence[str]) -> Statement:
    """Change rows that are there; values come in the order of the columns, those of the key last."""
    wanted = columns_of(key)
    places = {column.name: f"v.column{place}" for place, column in enumerate([*columns, *wanted], 1)}
    head = f'UPDATE "{table.name}" SET '
    tail = ",".join(f'"{column.name}"={places[column.name]}' for column in columns)
    where = " AND ".join(f'"{table.name}"."{name}"={places[name]}' for name in key)
    postgres = ",".join(f'"{column.name}"={column.postgres}' for column in columns)
    found = " AND ".join(f'"{name}"=%s' for name in key)
    return Statement(
        [*columns, *wanted], f"{head}{tail} FROM (VALUES ", f") AS v WHERE {where}", f"{head}{postgres} WHERE {found}"
    )


ROUND = ("experiment", "round", "unit_index")

create = _insert(
    schema.experiments, columns_of(("number", "id", "name", "status", "seq", "head", "created_at", "settings"))
)
append = _insert(
    schema.events,
    [
        *columns_of(("experiment", "seq", "kind", "round")),
        maybe_text("unit"),
        *columns_of(("body", "at", "hash")),
    ],
)
open_rounds = _insert(
    schema.rounds,
    [
        *columns_of((*ROUND, "unit", "arm", "block", "block_start", "probability", "date", "why", "asked_at")),
        *(flag(name) for name in ("draw", "washin", "substituted")),
        maybe_flag("measured"),
        Column("status", "'open'", "'open'"),
        Column("update", "FALSE", "FALSE"),
    ],
)
report_rounds = _update(
    schema.rounds,
    [
        *columns_of(("total", "status", "told_at")),
        flag("update"),
        maybe_flag("measured"),
        maybe_real("fed"),
    ],
    ROUND,
)
put_rounds = _insert(schema.rounds, columns_of(schema.ROUND_COLUMNS), ROUND)
put_checkpoints = _insert(schema.checkpoints, columns_of(("experiment", "seq", "head", "state")), ("experiment",))
move_heads = _update(schema.experiments, columns_of(("status", "seq", "head")), ("number",))
