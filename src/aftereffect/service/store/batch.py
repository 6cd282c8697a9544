"""What one transaction will write: new events with their hashes, changed rows, moved heads, due checkpoints."""

from sqlite3 import Cursor
from typing import Any

from sqlalchemy import Connection

from aftereffect.service.rounds import Row
from aftereffect.service.store import chain, statements
from aftereffect.service.store.loading import Held

Values = tuple[Any, ...]


class Batch:
    """Collects what commands did; sealed, it is plain values that any thread may write.

    touched: the experiments that are further in memory than in the store, until the batch is kept.
    """

    def __init__(self) -> None:
        """Collect nothing yet."""
        self.touched: dict[str, Held] = {}
        self._created: list[Values] = []
        self._events: list[Values] = []
        # A row that changes twice is written once, as it was last.
        self._rows: dict[tuple[int, int, int], Values] = {}
        # Where experiments are now, by their number, and those among them whose state is to be saved.
        self._heads: dict[int, Values] = {}
        self._due: dict[int, Held] = {}
        self._checkpoints: list[Values] = []

    def create(self, held: Held, name: str, settings: str) -> None:
        """Add a new experiment; what it does next moves its head."""
        status = held.experiment.progress.phase
        self._created.append((held.number, held.id, name, status, held.seq, held.head, held.created_at, settings))
        self.touched[held.id] = held

    def add(self, held: Held, event: dict[str, Any], rows: list[Row]) -> None:
        """Add what a command did to an experiment."""
        number, seq = held.number, held.seq + 1
        kind, round_, unit, at = event["kind"], event["round"], event["unit"], event["at"]
        body = chain.written(event["body"])
        head = chain.link(held.head, seq, kind, round_, unit, body, at)
        self._events.append((number, seq, kind, round_, unit, body, at, head))
        for row in rows:
            values = held.round_values(row)
            self._rows[values[:3]] = values
        held.seq, held.head = seq, head
        self._heads[number] = (held.experiment.progress.phase, seq, head, number)
        self.touched[held.id] = held
        if seq >= held.due_from:
            self._due[number] = held

    def row(self, number: int, round_: int, unit_index: int) -> Values | None:
        """Return a row that is yet to be written."""
        return self._rows.get((number, round_, unit_index))

    def seal(self) -> None:
        """Take down the states that are due, before anything else happens to the experiments."""
        for held in self._due.values():
            state = chain.written(held.experiment.state())
            self._checkpoints.append((held.number, held.seq, held.head, state))
            held.saved()

    def write(self, connection: Connection | Cursor) -> int:
        """Write everything inside a transaction; return how many rows went in."""
        statements.create.run(connection, self._created)
        statements.append.run(connection, self._events)
        statements.put_rounds.run(connection, list(self._rows.values()))
        statements.move_heads.run(connection, list(self._heads.values()))
        statements.put_checkpoints.run(connection, self._checkpoints)
        return len(self._created) + len(self._events) + len(self._rows) + len(self._heads)
