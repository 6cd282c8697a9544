"""What one transaction will write: new events with their hashes, changed rows, moved heads, due checkpoints."""

import math
from collections.abc import Collection
from operator import itemgetter
from sqlite3 import Cursor
from typing import Any

from sqlalchemy import Connection

from aftereffect.service.experiment.rounds import Row
from aftereffect.service.store import chain, schema, statements
from aftereffect.service.store.dictation import Script
from aftereffect.service.store.loading import Held

Values = tuple[Any, ...]
Key = tuple[int, int, int]
"""Of a round's row: the experiment's number, the round, the unit's index."""

_FLAGS: dict[bool | None, int] = {False: 0, True: 1, None: statements.UNKNOWN}
_as_asked = itemgetter("unit", "arm", "block", "block_start", "probability", "date", "why", "asked_at")
_flags = itemgetter("draw", "washin", "substituted", "measured")
_all = itemgetter(*schema.ROW_FIELDS)


class Batch:
    """Collects what commands did; sealed, it is plain values that any thread may write."""

    def __init__(self) -> None:
        """Collect nothing yet."""
        self._created: list[Values] = []
        self._events: list[Values] = []
        # Rounds that were opened; then those of which something was told; then those of which anything else changed. A
        # row that changes twice in one of these ways is written once, as it was last.
        self._opened: dict[Key, Row] = {}
        self._reported: dict[Key, Row] = {}
        self._changed: dict[Key, Row] = {}
        # Where experiments are now, by their ids, and those among them whose state is to be saved.
        self._heads: dict[str, Values] = {}
        self._due: dict[str, Held] = {}
        self._checkpoints: list[Values] = []

    @property
    def touched(self) -> Collection[str]:
        """The ids of the experiments that are further in memory than in the store, until the batch is kept."""
        return self._heads.keys()

    def create(self, held: Held, name: str, settings: str) -> None:
        """Add a new experiment; what it does next moves its head."""
        status = held.experiment.phase
        self._created.append((held.number, held.id, name, status, held.seq, held.head, held.created_at, settings))
        self._heads[held.id] = (status, held.seq, held.head, held.number)

    def add(self, held: Held, event: dict[str, Any], rows: list[Row]) -> None:
        """Add what a command did to an experiment."""
        number, seq = held.number, held.seq + 1
        kind, round_, unit, at = event["kind"], event["round"], event["unit"], event["at"]
        body = chain.written(event["body"])
        head = chain.link(held.head, seq, kind, round_, unit, body, at)
        self._events.append((number, seq, kind, round_, unit or "", body, at, head))
        for row in rows:
            key = number, row["round"], held.units[row["unit"]]
            if kind == "ask":
                self._opened[key] = row
            elif kind == "tell" and key not in self._changed:
                self._reported[key] = row
            else:
                self._changed[key] = row
        held.seq, held.head = seq, head
        self._heads[held.id] = (held.experiment.phase, seq, head, number)
        if seq >= held.due_from:
            self._due[held.id] = held

    def row(self, number: int, round_: int, unit_index: int) -> Row | None:
        """Return a row that is yet to be written."""
        key = number, round_, unit_index
        return self._changed.get(key) or self._reported.get(key) or self._opened.get(key)

    def seal(self) -> None:
        """Take down the states that are due, before anything else happens to the experiments."""
        for held in self._due.values():
            state = chain.written(held.experiment.state())
            self._checkpoints.append((held.number, held.seq, held.head, state))
            held.saved()

    def write(self, connection: Connection | Cursor | Script) -> int:
        """Write everything inside a transaction; return how many rows went in."""
        statements.create.run(connection, self._created)
        statements.append.run(connection, self._events)
        statements.open_rounds.run(connection, [_opened(key, row) for key, row in self._opened.items()])
        statements.report_rounds.run(connection, [_reported(key, row) for key, row in self._reported.items()])
        statements.put_rounds.run(connection, [round_values(key, row) for key, row in self._changed.items()])
        # A new experiment's is where it was put.
        statements.move_heads.run(connection, [head for head in self._heads.values() if head[1] > 0])
        statements.put_checkpoints.run(connection, self._checkpoints)
        of_rounds = len(self._opened) + len(self._reported) + len(self._changed)
        return len(self._created) + len(self._events) + len(self._heads) + of_rounds


def _opened(key: Key, row: Row) -> Values:
    draw, washin, substituted, measured = _flags(row)
    return (*key, *_as_asked(row), +draw, +washin, +substituted, _FLAGS[measured])


def _reported(key: Key, row: Row) -> Values:
    fed = row["fed"]
    learned = +row["update"], _FLAGS[row["measured"]], math.nan if fed is None else fed
    return (row["total"], row["status"], row["told_at"], *learned, *key)


def round_values(key: Key, row: Row) -> Values:
    """Return a row of the domain as values of the table."""
    return (*key, *_all(row))
