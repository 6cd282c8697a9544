"""Rounds an experiment no longer has in memory, found in the store: a report repeated after a long time, say."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import select

from aftereffect.service.store import schema
from aftereffect.service.store.batch import Batch
from aftereffect.service.store.loading import Held
from aftereffect.service.store.reader import Reader

_FIELDS = ("round", *schema.ROW_FIELDS)
_row = select(*(schema.rounds.c[name] for name in _FIELDS))


class Unsure(Exception):
    """The row is on its way to the store: it cannot be read before it is there."""


class Source:
    """Where rows are found at the moment: in batches that are yet to be kept, the latest first, then in the store.

    on_their_way: the ids of experiments of which something is on its way to the store.
    """

    def __init__(self) -> None:
        """Find nothing yet."""
        self.reader: Reader | None = None
        self.batches: Sequence[Batch] = ()
        self.on_their_way: Sequence[Collection[str]] = ()

    def row(self, held: Held, round_: int, unit: str) -> dict[str, Any] | None:
        """Return the row of a round in a unit, None if there is none."""
        number, index = held.number, held.units[unit]
        for batch in self.batches:
            waiting = batch.row(number, round_, index)
            if waiting is not None:
                return waiting
        if any(held.id in ids for ids in self.on_their_way):
            raise Unsure
        if self.reader is None:
            return None
        where = schema.rounds.c
        wanted = (where.experiment == number, where.round == round_, where.unit_index == index)
        found = self.reader.connection.execute(_row.where(*wanted)).one_or_none()
        return None if found is None else dict(found._mapping)
