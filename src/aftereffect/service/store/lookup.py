"""Rounds an experiment no longer has in memory, found in the store: a report repeated after a long time, say."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import select

from aftereffect.service.store import schema
from aftereffect.service.store.batch import Batch
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


class Lookup:
    """Answers (round, unit) with the row of one experiment, None if there is none.

    It knows the experiment by its id and number only: an object that it belongs to and that belongs to it would be left
    to the garbage collector.
    """

    __slots__ = ("_id", "_number", "_source", "_units")

    def __init__(self, source: Source, identity: str, number: int, units: Mapping[str, int]) -> None:
        """Look wherever the source says."""
        self._source, self._id, self._number, self._units = source, identity, number, units

    def __call__(self, round_: int, unit: str) -> dict[str, Any] | None:
        """Return the row of a round in a unit."""
        number, index = self._number, self._units[unit]
        for batch in self._source.batches:
            waiting = batch.row(number, round_, index)
            if waiting is not None:
                return waiting
        if any(self._id in ids for ids in self._source.on_their_way):
            raise Unsure
        if self._source.reader is None:
            return None
        where = schema.rounds.c
        wanted = (where.experiment == number, where.round == round_, where.unit_index == index)
        found = self._source.reader.connection.execute(_row.where(*wanted)).one_or_none()
        return None if found is None else dict(found._mapping)
