"""The statements of the hot path, written for the driver.

On SQLite many rows go in with one statement: the driver lets go of the interpreter's lock once a statement, and
every time it may have to wait to get it back. On PostgreSQL the driver sends many executions down one pipeline.

SQLite's driver takes five times as long for None and for a bool as for other values, because it looks for somebody who
converts them. So where they are the rule they come as something else, and the database makes them what they are.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, Table

from aftereffect.service.store import schema
from aftereffect.service.store.dictation import Script
from aftereffect.service.store.scribe import Rows, Template

UNKNOWN = 2
"""Stands for a truth value that is not known yet."""


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
    """One statement with its values in rows; `before` and `after` stand around SQLite's list of rows.

    template: the statement on SQLite; number: its place in ALL, by which scripts name it.
    """

    def __init__(self, columns: Sequence[Column], before: str, after: str, postgres: str) -> None:
        """Keep it, and put it into ALL."""
        self.template = Template(before, f"({','.join(column.sqlite for column in columns)})", after)
        self._postgres = postgres
        self.number = len(ALL)
        ALL.append(self)

    def run(self, connection: Connection | sqlite3.Cursor | Script, rows: Rows) -> None:
        """Run the statement for all rows, in the transaction that the connection, or SQLite's own cursor, is in."""
        if not rows:
            return
        if isinstance(connection, Script):
            connection.note(self.number, rows)
        elif not isinstance(connection, Connection):
            self.template.run(connection.execute, rows)
        elif connection.dialect.name == "postgresql":
            connection.exec_driver_sql(self._postgres, [tuple(row) for row in rows])
        else:
            self.template.run(connection.exec_driver_sql, rows)


ALL: list[Statement] = []


def play(connection: sqlite3.Cursor, script: Script) -> None:
    """Run what a script says."""
    for number, rows in script:
        ALL[number].run(connection, rows)


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
# What was told, and learned, of rounds that have been opened; one that is missing is for `verify` to find.
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
