"""The event log: its hash chain, loading experiments from it, and appending events to it.

Each event has the SHA-256 hash of its fields and of the previous event's hash; the chain starts with a hash of the
experiment's id, settings and date. An event that is altered, removed, added or moved invalidates the hashes after it,
so the last hash authenticates the whole log.

An experiment is loaded from its latest checkpoint and the events since then, which are checked and replayed.
"""

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

import orjson
from sqlalchemy import Connection, Dialect, Insert, Row, Table, bindparam, case, func, insert, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

from aftereffect.core.errors import AftereffectError
from aftereffect.service.errors import Corrupt, Refused
from aftereffect.service.experiment.commands import Remember
from aftereffect.service.experiment.experiment import Done, Experiment
from aftereffect.service.experiment.learned import Record, record
from aftereffect.service.experiment.round import with_block
from aftereffect.service.messages import Overview, is_id
from aftereffect.service.settings import ExperimentSettings
from aftereffect.service.store import schema

CHECKPOINT_EVERY = 6
"""A checkpoint is at most this many events old; with many units, whose state is large, a quarter of their number."""

_experiments, _events, _rounds, _checkpoints = (
    table.c for table in (schema.experiments, schema.events, schema.rounds, schema.checkpoints)
)
last_round = (
    select(func.max(_rounds.round)).where(_rounds.experiment == _experiments.number).scalar_subquery().label("last")
)
_this = _experiments.id == bindparam("id")
_find = select(schema.experiments).where(_this)
_since = (_events.experiment == _experiments.number) & (_events.seq > func.coalesce(_checkpoints.seq, 0))
_others = schema.events.alias().c
_later = (_others.experiment == _checkpoints.experiment) & (_others.seq > _checkpoints.seq)
_first = select(func.min(_others.seq)).where(_later)
_state = case((_events.seq > _first.scalar_subquery(), None), else_=_checkpoints.state).label("state")
# The experiment, once for each event since its checkpoint, whose fields come last; or once without an event. Only the
# first row has the state of the checkpoint, which can be large.
_load = (
    select(schema.experiments, _checkpoints.seq.label("saved_seq"), _checkpoints.head.label("saved_head"), _state)
    .add_columns(last_round, *schema.events.c)
    .join_from(schema.experiments, schema.checkpoints, isouter=True)
    .outerjoin(schema.events, _since)
    .where(_this)
    .order_by(_events.seq)
)


def as_text(value: Mapping[str, Any]) -> str:
    """Return the stored text of settings, an event's body or a state: JSON with sorted keys, without spaces.

    >>> as_text({"total": 0.1, "status": "reported"})
    '{"status":"reported","total":0.1}'
    """
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def first_hash(identity: str, settings: str, created_at: str) -> str:
    """Return the hash at the start of an experiment's chain. settings: the stored text."""
    return hashlib.sha256(orjson.dumps([identity, settings, created_at])).hexdigest()


def next_hash(previous: str, seq: int, kind: str, round_: int | None, unit: str | None, body: str, at: str) -> str:
    """Return the hash of an event. body: the stored text."""
    return hashlib.sha256(orjson.dumps([previous, seq, kind, round_, unit, body, at])).hexdigest()


class Loaded:
    """An experiment in memory, with its place in the log.

    seq, head: the number of events applied, and the hash of the last. checkpoint_at: the seq at which the next
    checkpoint is due.
    """

    __slots__ = ("checkpoint_at", "created_at", "experiment", "head", "id", "number", "seq", "unit_index")

    def __init__(
        self, number: int, identity: str, created_at: str, experiment: Experiment, seq: int, head: str
    ) -> None:
        self.number, self.id, self.created_at, self.experiment = number, identity, created_at, experiment
        self.seq, self.head = seq, head
        self.unit_index = {name: index for index, name in enumerate(experiment.settings.units)}
        self.checkpoint_at = 0
        self.saved()

    def saved(self) -> None:
        """Schedule the next checkpoint after one at this place in the log."""
        # Spread by id, so that experiments played in step do not all have a checkpoint in the same transaction.
        every = max(CHECKPOINT_EVERY, len(self.unit_index) // 4)
        self.checkpoint_at = self.seq + every - (self.seq + zlib.crc32(self.id.encode())) % every

    def view(self) -> Overview:
        """Return the view of the experiment, with id and creation date."""
        return self.experiment.view(self.id, self.created_at)

    def replay(self, found: Sequence[Any]) -> list[dict[str, Any]]:
        """Check one stored event, a row of its table, against the chain, replay it, and return the rows it changes."""
        _, seq, kind, round_, unit, body, at, head = found
        if seq != self.seq + 1:
            detail = f"the log must be gapless, but after {self.seq} comes event {seq} of experiment {self.id}"
            raise Corrupt(detail, experiment=self.id)
        if head != next_hash(self.head, seq, kind, round_, unit, body, at):
            detail = f"the hash of event {seq} of experiment {self.id} does not follow from what is stored"
            raise Corrupt(detail, experiment=self.id)
        try:
            event = {"kind": kind, "round": round_, "unit": unit, "body": orjson.loads(body), "at": at}
            rows = self.experiment.replay(event)
        except (AftereffectError, LookupError, TypeError, ValueError) as error:
            detail = f"event {seq} of experiment {self.id} cannot be replayed: {error}"
            raise Corrupt(detail, experiment=self.id) from None
        self.seq, self.head = seq, head
        return rows

    def check_end(self, row: Row[Any]) -> None:
        """Raise Corrupt unless the log ends at the event named in the experiment's row."""
        if (self.seq, self.head) != (row.seq, row.head):
            raise Corrupt(
                f"the log of experiment {self.id} must end at event {row.seq} with hash {row.head[:12]}..., but it "
                f"ends at {self.seq} with {self.head[:12]}...: events are missing at its end, or the row was altered",
                experiment=self.id,
            )


def find(connection: Connection, identity: str, query: Any = _find) -> Row[Any]:
    """Return the row of an experiment, or raise Refused if there is none."""
    if is_id(identity):
        row: Row[Any] | None = connection.execute(query, {"id": identity}).one_or_none()
        if row is not None:
            return row
    raise _missing(identity)


def _missing(identity: str) -> Refused:
    return Refused("not_found", f"there is no experiment {str(identity)[:40]!r}")


def initial(row: Row[Any]) -> Loaded:
    """Return an experiment before its first event."""
    try:
        experiment = Experiment(ExperimentSettings.from_json(json.loads(row.settings)))
    except (AftereffectError, ValueError, RecursionError) as error:
        raise Corrupt(f"the settings of experiment {row.id} cannot be read: {error}", experiment=row.id) from None
    head = first_hash(row.id, row.settings, row.created_at)
    return Loaded(row.number, row.id, row.created_at, experiment, 0, head)


def load(connection: Connection, identity: str) -> Loaded:
    """Load an experiment; raise Corrupt if the stored data is inconsistent."""
    loaded = None
    for row in connection.execute(_load, {"id": identity}) if is_id(identity) else ():
        if loaded is None:
            loaded = initial(row) if row.state is None else _resumed(row)
        event = row[-len(_events) :]
        if event[0] is not None:
            loaded.replay(event)
    if loaded is None:
        raise _missing(identity)
    loaded.check_end(row)
    last, stored = loaded.experiment.last, row.last or 0
    if stored != last:
        rule = f"the rounds of experiment {row.id} must go to {last}, as its log does"
        raise Corrupt(f"{rule}, but go to {stored}", experiment=row.id)
    return loaded


def _resumed(row: Row[Any]) -> Loaded:
    try:
        state = orjson.loads(row.state)
        experiment = Experiment.from_state(state)
    except (AftereffectError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise Corrupt(f"the checkpoint of experiment {row.id} cannot be read: {error}", experiment=row.id) from None
    given = as_text(state["settings"])
    if given != row.settings and initial(row).experiment.settings != ExperimentSettings.from_json(state["settings"]):
        raise Corrupt(f"the settings of experiment {row.id} are not those of its checkpoint", experiment=row.id)
    return Loaded(row.number, row.id, row.created_at, experiment, row.saved_seq, row.saved_head)


def remembered(connection: Connection, loaded: Loaded) -> Remember | None:
    """Return what an experiment remembers of another one; None if nothing."""
    query = select(_events.body).where(_events.experiment == loaded.number, _events.kind == "remember")
    # It comes before all rounds.
    body = connection.execute(query.where(_events.seq <= 2)).scalar_one_or_none()
    return None if body is None else Remember(**orjson.loads(body))


@dataclass
class Changes:
    """The changes of one transaction: events with their hashes, changed rows, new heads, due checkpoints.

    touched: the ids of experiments changed in memory but not yet committed.
    """

    touched: set[str] = field(default_factory=set)
    _events: list[dict[str, Any]] = field(default_factory=list)
    # A row that changes twice is written once, in its last version.
    _rounds: dict[tuple[int, int, int], dict[str, Any]] = field(default_factory=dict)
    # Changed experiments, with their states.
    _moved: dict[str, tuple[Loaded, str]] = field(default_factory=dict)

    def create(self, connection: Connection, identity: str, settings: ExperimentSettings, at: str) -> Loaded:
        """Insert a new experiment immediately, because the other rows need its number."""
        text, experiment = as_text(settings.to_json()), Experiment(settings)
        head = first_hash(identity, text, at)
        values = {"id": identity, "name": settings.name, "status": experiment.phase, "seq": 0, "head": head}
        made = connection.execute(insert(schema.experiments).values(**values, created_at=at, settings=text))
        self.touched.add(identity)
        key: Any = made.inserted_primary_key
        return Loaded(key.number, identity, at, experiment, 0, head)

    def add(self, loaded: Loaded, done: Done) -> None:
        """Add the event and the rows of a command."""
        event, number, seq = done.event, loaded.number, loaded.seq + 1
        if event is None:
            return
        body = as_text(event["body"])
        head = next_hash(loaded.head, seq, event["kind"], event["round"], event["unit"], body, event["at"])
        self._events.append({**event, "experiment": number, "seq": seq, "body": body, "hash": head})
        for row in done.rows:
            index = loaded.unit_index[row["unit"]]
            self._rounds[number, row["round"], index] = {**row, "experiment": number, "unit_index": index}
        loaded.seq, loaded.head = seq, head
        self._moved[loaded.id] = loaded, done.answer["state"]
        self.touched.add(loaded.id)

    def row(
        self,
        connection: Connection,
        loaded: Loaded,
        round_: int,
        unit: str,
        block: bool = False,
        newer: Mapping[tuple[int, int, int], dict[str, Any]] = MappingProxyType({}),
    ) -> dict[str, Any] | None:
        """Return the row of a round that the experiment no longer has in memory, from these changes or the database.

        block: with what a correction needs (`with_block`), if the block of the round has ended and was measured. newer:
        rows, by experiment, round and unit, that take the place of these changes.
        """
        key = loaded.number, round_, loaded.unit_index[unit]
        known = {**self._rounds, **newer} if newer else self._rounds
        found = known.get(key)
        if found is None:
            query = select(schema.rounds).where(tuple_(_rounds.experiment, _rounds.round, _rounds.unit_index) == key)
            stored = connection.execute(query).mappings().one_or_none()
            found = None if stored is None else dict(stored)
        if found is None or not block or not found["measured"]:
            return found
        here, ended = _rounds.experiment == loaded.number, _rounds["update"] & (_rounds.round >= round_)
        own = [(each, row) for (number, each, _), row in known.items() if number == loaded.number]
        ends = [each for each, row in own if each >= round_ and row["update"]]
        ends += connection.execute(select(_rounds.round).where(here, ended).order_by(_rounds.round).limit(1)).scalars()
        first, last = found["block_start"], min(ends)
        query = select(schema.rounds).where(here, _rounds.round.between(first, last))
        query = query.where((_rounds.unit_index == key[2]) | (_rounds.round == last))
        rows = {(row.round, row.unit_index): dict(row._mapping) for row in connection.execute(query)}
        rows |= {each[1:]: row for each, row in known.items() if each[0] == loaded.number and first <= each[1] <= last}
        return with_block(found, [rows[each] for each in sorted(rows)])

    def seen(self, connection: Connection, loaded: Loaded) -> Record:
        """Return the record of an experiment for a model, with what it remembers of another one."""
        rows, _ = self.record(connection, loaded)
        return record(loaded.experiment.settings, rows, loaded.experiment.skipped, remembered(connection, loaded))

    def record(self, connection: Connection, loaded: Loaded) -> tuple[list[dict[str, Any]], list[tuple[int, str]]]:
        """Return all rows of an experiment, by round and unit; and for each pause the latest round, and its time."""
        query = select(schema.rounds).where(_rounds.experiment == loaded.number)
        rows = {(row.round, row.unit_index): dict(row._mapping) for row in connection.execute(query)}
        rows |= {key[1:]: row for key, row in self._rounds.items() if key[0] == loaded.number}
        paused = select(_events.body, _events.at).where(_events.experiment == loaded.number, _events.kind == "pause")
        pauses = [tuple(row) for row in connection.execute(paused.order_by(_events.seq))]
        new = [each for each in self._events if (each["experiment"], each["kind"]) == (loaded.number, "pause")]
        pauses += [(each["body"], each["at"]) for each in new]
        return [rows[key] for key in sorted(rows)], [(orjson.loads(body)["last"], at) for body, at in pauses]

    def write(self, connection: Connection) -> int:
        """Write all changes inside a transaction; return the number of rows."""
        heads: list[dict[str, Any]] = []
        checkpoints: list[dict[str, Any]] = []
        for loaded, status in self._moved.values():
            place = {"experiment": loaded.number, "seq": loaded.seq, "head": loaded.head}
            heads.append({**place, "status": status})
            if loaded.seq >= loaded.checkpoint_at:
                checkpoints.append({**place, "state": as_text(loaded.experiment.state())})
                loaded.saved()
        tables = self._events, list(self._rounds.values()), heads, checkpoints
        for statement, rows in zip(_statements(connection.dialect), tables, strict=True):
            if rows:
                # The rows go to the driver as they are: SQLAlchemy would make each of them anew.
                connection.exec_driver_sql(statement, rows)
        return sum(map(len, tables))


@cache
def _statements(dialect: Dialect) -> tuple[str, ...]:
    """Return the SQL that writes events, rounds, heads and checkpoints, with named parameters."""
    insert_for = (sqlite if dialect.name == "sqlite" else postgresql).insert

    def upsert(table: Table, *key: str) -> Insert:
        statement = insert_for(table)
        changed = {column.name: statement.excluded[column.name] for column in table.columns if column.name not in key}
        made: Insert = statement.on_conflict_do_update(index_elements=key, set_=changed)
        return made

    statements = (
        insert(schema.events),
        upsert(schema.rounds, "experiment", "round", "unit_index"),
        update(schema.experiments)
        .where(_experiments.number == bindparam("experiment"))
        .values(status=bindparam("status"), seq=bindparam("seq"), head=bindparam("head")),
        upsert(schema.checkpoints, "experiment"),
    )
    return tuple(str(statement.compile(dialect=dialect)) for statement in statements)
