"""The statements of the hot path, written for the driver.

On SQLite many rows go in with one statement: the driver lets go of the interpreter's lock once a statement, and
every time it may have to wait to get it back. On PostgreSQL the driver sends many executions down one pipeline.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from sqlalchemy import Connection, Table

from aftereffect.service.store import schema

_MOST_VALUES = 32_766  # SQLite's limit on the values of one statement
# As many rows as clients that wait at one time are written by one statement, whatever their number.
_SIZES = (2048, 1024, 256, 64, *range(40, 0, -1))

Values = tuple[Any, ...]


class Statement:
    """One statement with its values in rows; `before` and `after` stand around SQLite's list of rows."""

    def __init__(self, width: int, before: str, after: str, postgres: str) -> None:
        """Keep the parts; the text for a number of rows is written when it is first needed."""
        self._row = f"({','.join('?' * width)})"
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


def _insert(table: Table, columns: Sequence[str], key: Sequence[str] = ()) -> Statement:
    """Insert rows; where `key` is given, a row with that key is replaced."""
    quoted = [f'"{name}"' for name in columns]
    head = f'INSERT INTO "{table.name}" ({",".join(quoted)}) VALUES '
    tail = ""
    if key:
        changed = ",".join(f'"{name}"=excluded."{name}"' for name in columns if name not in key)
        tail = f" ON CONFLICT ({','.join(key)}) DO UPDATE SET {changed}"
    return Statement(len(columns), head, tail, f"{head}({','.join(['%s'] * len(columns))}){tail}")


create = _insert(schema.experiments, ("number", "id", "name", "status", "seq", "head", "created_at", "settings"))
append = _insert(schema.events, schema.EVENT_COLUMNS)
put_rounds = _insert(schema.rounds, schema.ROUND_COLUMNS, ("experiment", "round", "unit_index"))
put_checkpoints = _insert(schema.checkpoints, ("experiment", "seq", "head", "state"), ("experiment",))
move_heads = Statement(
    4,
    "UPDATE experiments SET status=v.column1, seq=v.column2, head=v.column3 FROM (VALUES ",
    ") AS v WHERE number=v.column4",
    "UPDATE experiments SET status=%s, seq=%s, head=%s WHERE number=%s",
)
