"""The event log: its hash chain, loading experiments from it, and appending events to it.

Each event has the SHA-256 hash of its fields and of the previous event's hash; the chain starts with a hash of the
experiment's id, settings and date. An event that is altered, removed, added or moved invalidates the hashes after it,
so the last hash authenticates the whole log.

An experiment is loaded from its latest checkpoint and the events since then, which are checked and replayed.
"""

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy import Connection, Dialect, Insert, Table, bindparam, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from aftereffect.core.errors import AftereffectError
from aftereffect.service.errors import Corrupt, Refused
from aftereffect.service.experiment.commands import Amend, Command, Event, Remember
from aftereffect.service.experiment.experiment import Done, Experiment
from aftereffect.service.experiment.learned import Record, record
from aftereffect.service.experiment.round import Row, with_block
from aftereffect.service.messages import Overview, is_id
from aftereffect.service.settings import ExperimentSettings
from aftereffect.service.store import schema

CHECKPOINT_EVERY = 12
"""A checkpoint is at most this many events old; with many units, whose state is large, a quarter of their number."""

_experiments, _events, _rounds, _checkpoints = (
    table.c for table in (schema.experiments, schema.events, schema.rounds, schema.checkpoints)
)
last_round = (
    select(func.max(_rounds.round)).where(_rounds.experiment == _experiments.number).scalar_subquery().label("last")
)
_find = select(schema.experiments, last_round).where(_experiments.id == bindparam("id"))
_saved = select(schema.checkpoints).where(_checkpoints.experiment == bindparam("number"))
_since = select(schema.events).where(_events.experiment == bindparam("number"), _events.seq > bindparam("seq"))


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


@dataclass(slots=True)
class Loaded:
    """An experiment in memory, with its place in the log.

    seq, head: the number of events applied, and the hash of the last. checkpoint_at: the seq at which the next
    checkpoint is due.
    """

    number: int
    id: str
    created_at: str
    experiment: Experiment
    seq: int
    head: str
    checkpoint_at: int = 0

    def __post_init__(self) -> None:
        self.saved()

    def saved(self) -> None:
        """Schedule the next checkpoint after one at this place in the log."""
        # Spread by id, so that experiments played in step do not all have a checkpoint in the same transaction.
        every = max(CHECKPOINT_EVERY, self.experiment.n_units // 4)
        self.checkpoint_at = self.seq + every - (self.seq + zlib.crc32(self.id.encode())) % every

    def view(self) -> Overview:
        """Return the view of the experiment, with id and creation date."""
        return self.experiment.view(self.id, self.created_at)

    def replay(self, found: Sequence[Any]) -> list[Row]:
        """Check one stored event, a row of its table, against the chain, replay it, and return the rows it changes."""
        _, seq, kind, round_, unit, body, at, head = found
        if seq != self.seq + 1:
            detail = f"the log must be gapless, but after {self.seq} comes event {seq} of experiment {self.id}"
            raise Corrupt(detail, experiment=self.id)
        if head != next_hash(self.head, seq, kind, round_, unit, body, at):
            detail = f"the hash of event {seq} of experiment {self.id} does not follow from what is stored"
            raise Corrupt(detail, experiment=self.id)
        try:
            rows = self.experiment.replay(Event(kind=kind, round=round_, unit=unit, body=orjson.loads(body), at=at))
        except (AftereffectError, LookupError, TypeError, ValueError) as error:
            detail = f"event {seq} of experiment {self.id} cannot be replayed: {error}"
            raise Corrupt(detail, experiment=self.id) from None
        self.seq, self.head = seq, head
        return rows

    def check_end(self, row: sa.Row[Any]) -> None:
        """Raise Corrupt unless the log ends at the event named in the experiment's row."""
        if (self.seq, self.head) != (row.seq, row.head):
            raise Corrupt(
                f"the log of experiment {self.id} must end at event {row.seq} with hash {row.head[:12]}..., but it "
                f"ends at {self.seq} with {self.head[:12]}...: events are missing at its end, or the row was altered",
                experiment=self.id,
            )


def find(connection: Connection, identity: str, query: Any = _find) -> sa.Row[Any]:
    """Return the row of an experiment and its `last` round, or raise Refused if there is none."""
    if is_id(identity):
        row: sa.Row[Any] | None = connection.execute(query, {"id": identity}).one_or_none()
        if row is not None:
            return row
    raise Refused("not_found", f"there is no experiment {str(identity)[:40]!r}")


def initial(row: sa.Row[Any]) -> Loaded:
    """Return an experiment before its first event."""
    try:
        experiment = Experiment(ExperimentSettings.from_json(json.loads(row.settings)))
    except (AftereffectError, ValueError, RecursionError) as error:
        raise Corrupt(f"the settings of experiment {row.id} cannot be read: {error}", experiment=row.id) from None
    head = first_hash(row.id, row.settings, row.created_at)
    return Loaded(row.number, row.id, row.created_at, experiment, 0, head)


def load(connection: Connection, identity: str) -> Loaded:
    """Load an experiment; raise Corrupt if the stored data is inconsistent."""
    row = find(connection, identity)
    saved = connection.execute(_saved, {"number": row.number}).one_or_none()
    loaded = initial(row) if saved is None else _resumed(row, saved)
    for event in connection.execute(_since.order_by(_events.seq), {"number": row.number, "seq": loaded.seq}):
        loaded.replay(event)
    loaded.check_end(row)
    last, stored = loaded.experiment.last, row.last or 0
    if stored != last:
        rule = f"the rounds of experiment {row.id} must go to {last}, as its log does"
        raise Corrupt(f"{rule}, but go to {stored}", experiment=row.id)
    return loaded


def _resumed(row: sa.Row[Any], saved: sa.Row[Any]) -> Loaded:
    try:
        state = orjson.loads(saved.state)
        experiment = Experiment.from_state(state)
    except (AftereffectError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise Corrupt(f"the checkpoint of experiment {row.id} cannot be read: {error}", experiment=row.id) from None
    given = as_text(state["settings"])
    if given != row.settings and initial(row).experiment.settings != ExperimentSettings.from_json(state["settings"]):
        raise Corrupt(f"the settings of experiment {row.id} are not those of its checkpoint", experiment=row.id)
    return Loaded(row.number, row.id, row.created_at, experiment, saved.seq, saved.head)


def remembered(connection: Connection, loaded: Loaded) -> Remember | None:
    """Return what an experiment remembers of another one; None if nothing."""
    query = select(_events.body).where(_events.experiment == loaded.number, _events.kind == "remember")
    # It comes before all rounds.
    body = connection.execute(query.where(_events.seq <= 2)).scalar_one_or_none()
    return None if body is None else Remember(**orjson.loads(body))


def rows(connection: Connection, loaded: Loaded, *columns: sa.Column[Any]) -> Iterator[Row]:
    """Return all rows of an experiment, by round and unit; columns: the ones needed, by default all."""
    query = select(*(columns or schema.rounds.c)).where(_rounds.experiment == loaded.number)
    return map(dict, connection.execute(query.order_by(_rounds.round, _rounds.unit_index)).mappings())


def seen(connection: Connection, loaded: Loaded) -> Record:
    """Return the record of an experiment for a model, with what it remembers of another one."""
    experiment, before = loaded.experiment, remembered(connection, loaded)
    stored = rows(connection, loaded, _rounds.round, _rounds.unit, _rounds.arm, _rounds.total, _rounds.status)
    return record(experiment.settings, stored, experiment.skipped, before)


def pauses(connection: Connection, loaded: Loaded) -> list[tuple[int, str]]:
    """Return the latest round before each pause of an experiment, and the time of the pause."""
    query = select(_events.body, _events.at).where(_events.experiment == loaded.number, _events.kind == "pause")
    return [(orjson.loads(body)["last"], at) for body, at in connection.execute(query.order_by(_events.seq))]


@dataclass
class Changes:
    """The changes of one transaction: events with their hashes, changed rows, new heads, due checkpoints.

    at: the time of the transaction. touched: the ids of experiments changed in memory but not yet committed. written:
    the number of rows.
    """

    connection: Connection
    at: str = ""
    touched: set[str] = field(default_factory=set)
    written: int = 0
    _events: list[dict[str, Any]] = field(default_factory=list)
    # A row that changes twice is written once, in its last version.
    _rounds: dict[tuple[int, int, int], dict[str, Any]] = field(default_factory=dict)
    # Changed experiments, with their states.
    _moved: dict[str, tuple[Loaded, str]] = field(default_factory=dict)

    def create(self, identity: str, settings: ExperimentSettings) -> Loaded:
        """Insert a new experiment immediately, because the other rows need its number."""
        text, experiment = as_text(settings.to_json()), Experiment(settings)
        head = first_hash(identity, text, self.at)
        values = {"id": identity, "name": settings.name, "status": experiment.phase, "seq": 0, "head": head}
        statement = insert(schema.experiments).values(**values, created_at=self.at, settings=text)
        key: Any = self.connection.execute(statement).inserted_primary_key
        self.touched.add(identity)
        return Loaded(key.number, identity, self.at, experiment, 0, head)

    def add(self, loaded: Loaded, done: Done) -> bool:
        """Add the event and the rows of a command; return whether its adviser may have learned."""
        event, number, seq = done.event, loaded.number, loaded.seq + 1
        if event is None:
            return False
        body = as_text(event["body"])
        head = next_hash(loaded.head, seq, event["kind"], event["round"], event["unit"], body, event["at"])
        self._events.append({**event, "experiment": number, "seq": seq, "body": body, "hash": head})
        for row in done.rows:
            index = loaded.experiment.unit_index[row["unit"]]
            self._rounds[number, row["round"], index] = {**row, "experiment": number, "unit_index": index}
        loaded.seq, loaded.head = seq, head
        self._moved[loaded.id] = loaded, done.answer["state"]
        self.touched.add(loaded.id)
        if not loaded.experiment.may_have_decided:
            return False
        # So a load never replays a command for which the model might have to learn again.
        loaded.checkpoint_at = seq
        return True

    def recalled(self, loaded: Loaded, command: Command) -> Row | None:
        """Return the row that a command needs and its experiment no longer has in memory; recall its record too."""
        if loaded.experiment.lacks_record(command):
            self.recall(loaded)
        forgotten = loaded.experiment.forgotten(command)
        return None if forgotten is None else self._row(loaded, *forgotten, isinstance(command, Amend))

    def _row(self, loaded: Loaded, round_: int, unit: str, block: bool) -> Row | None:
        """Return a stored row, after writing all changes.

        block: with what a correction needs (`with_block`), if the block of the round has ended and was measured.
        """
        self.write()
        here, own = _rounds.experiment == loaded.number, _rounds.unit_index == loaded.experiment.unit_index[unit]
        stored = self.connection.execute(select(schema.rounds).where(here, own, _rounds.round == round_)).mappings()
        found = next(map(dict, stored), None)
        if found is None or not block or not found["measured"]:
            return found
        end = select(func.min(_rounds.round)).where(here, _rounds["update"], _rounds.round >= round_).scalar_subquery()
        query = select(schema.rounds).where(here, _rounds.round.between(found["block_start"], end))
        query = query.where(own | (_rounds.round == end)).order_by(_rounds.round, _rounds.unit_index)
        return with_block(found, map(dict, self.connection.execute(query).mappings()))

    def recall(self, loaded: Loaded) -> None:
        """Give an experiment the record of its closed rounds, after writing all changes."""
        self.write()
        found, closed = seen(self.connection, loaded), None if loaded.experiment.open is None else -1
        loaded.experiment.recall(found.arms[:closed], found.totals[:closed])

    def write(self) -> None:
        """Write the changes inside the transaction."""
        heads: list[dict[str, Any]] = []
        checkpoints: list[dict[str, Any]] = []
        for loaded, status in self._moved.values():
            place = {"experiment": loaded.number, "seq": loaded.seq, "head": loaded.head}
            heads.append({**place, "status": status})
            if loaded.seq >= loaded.checkpoint_at:
                checkpoints.append({**place, "state": as_text(loaded.experiment.state())})
                loaded.saved()
        tables = self._events, list(self._rounds.values()), heads, checkpoints
        for statement, rows in zip(_statements(self.connection.dialect), tables, strict=True):
            if rows:
                # The rows go to the driver as they are: SQLAlchemy would make each of them anew.
                self.connection.exec_driver_sql(statement, rows)
        self.written += sum(map(len, tables))
        self.drop()

    def drop(self) -> None:
        """Forget the changes that have not been written since the last time."""
        for pending in (self._events, self._rounds, self._moved):
            pending.clear()


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
