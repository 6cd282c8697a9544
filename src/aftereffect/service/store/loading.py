"""An experiment taken up from the store: its latest checkpoint, then the events since, each checked and replayed."""

import json
import zlib
from typing import Any

from sqlalchemy import Connection, Row, func, select

from aftereffect.core.errors import AftereffectError
from aftereffect.service.errors import Corrupt, Refused
from aftereffect.service.experiment.experiment import Experiment
from aftereffect.service.settings import ExperimentSettings
from aftereffect.service.store import chain, schema

EVERY = 512
"""A checkpoint is at most this many events old: replaying them takes some milliseconds."""

_head = select(schema.experiments)
_checkpoint = select(schema.checkpoints)
_events = select(schema.events).order_by(schema.events.c.seq)
_last_round = select(func.max(schema.rounds.c.round))


class Held:
    """An experiment in memory, with its place in the log.

    seq, head: how many events it has taken, and the hash of the last. due_from: the seq from which on a
    checkpoint is due. used: when it was last used, by a count of whoever holds it.
    """

    __slots__ = ("created_at", "due_from", "experiment", "head", "id", "number", "seq", "units", "used")

    def __init__(
        self, number: int, identity: str, created_at: str, experiment: Experiment, seq: int, head: str
    ) -> None:
        """Begin at a known place in the log."""
        self.number, self.id, self.created_at, self.experiment = number, identity, created_at, experiment
        self.seq, self.head = seq, head
        self.units = {name: index for index, name in enumerate(experiment.settings.units)}
        self.due_from = self.used = 0
        self.saved()

    def saved(self) -> None:
        """Note that there is a checkpoint of this place in the log."""
        # Experiments that move in step must not all be due for the next one in the same transaction.
        self.due_from = self.seq + EVERY - (self.seq + zlib.crc32(self.id.encode())) % EVERY

    def view(self) -> dict[str, Any]:
        """Return what people see, with id and date."""
        return {"id": self.id, **self.experiment.view(), "created_at": self.created_at}


def is_identity(text: object) -> bool:
    """Say whether this can be an experiment's id; PostgreSQL cannot even be asked for text with NUL or surrogates."""
    return isinstance(text, str) and 0 < len(text) <= 32 and text.isascii() and text.isprintable()


def find(connection: Connection, identity: str) -> Row[Any]:
    """Return the row of an experiment, or refuse."""
    if is_identity(identity):
        row = connection.execute(_head.where(schema.experiments.c.id == identity)).one_or_none()
        if row is not None:
            return row
    raise Refused("not_found", f"there is no experiment {str(identity)[:40]!r}")


def first(row: Row[Any]) -> Held:
    """Return an experiment before its first event."""
    try:
        settings = ExperimentSettings.from_json(json.loads(row.settings))
        experiment = Experiment(settings)
    except (AftereffectError, ValueError) as error:
        raise Corrupt(f"the settings of experiment {row.id} cannot be read: {error}", experiment=row.id) from None
    return Held(row.number, row.id, row.created_at, experiment, 0, chain.genesis(row.id, row.settings, row.created_at))


def load(connection: Connection, identity: str) -> Held:
    """Return an experiment as the store has it, or say that what is stored cannot be right."""
    row = find(connection, identity)
    saved = connection.execute(_checkpoint.where(schema.checkpoints.c.experiment == row.number)).one_or_none()
    held = first(row) if saved is None else _resumed(row, saved)
    advance(connection, held, row)
    return held


def _resumed(row: Row[Any], saved: Row[Any]) -> Held:
    try:
        experiment = Experiment.from_state(json.loads(saved.state))
    except (AftereffectError, ValueError, LookupError, TypeError) as error:
        raise Corrupt(f"the checkpoint of experiment {row.id} cannot be read: {error}", experiment=row.id) from None
    return Held(row.number, row.id, row.created_at, experiment, saved.seq, saved.head)


def advance(connection: Connection, held: Held, row: Row[Any]) -> None:
    """Replay what the log has beyond `held`, up to the experiment's row, and see that all of it is there."""
    if held.seq != row.seq:
        wanted = (schema.events.c.experiment == held.number, schema.events.c.seq > held.seq)
        for found in connection.execute(_events.where(*wanted)):
            take(held, found)
    if (held.seq, held.head) != (row.seq, row.head):
        raise Corrupt(
            f"the log of experiment {held.id} must end at event {row.seq} with hash {row.head[:12]}..., but it ends at "
            f"{held.seq} with {held.head[:12]}...",
            experiment=held.id,
        )
    last = connection.execute(_last_round.where(schema.rounds.c.experiment == held.number)).scalar() or 0
    opened = held.experiment.last
    if last != opened:
        raise Corrupt(
            f"the rounds of experiment {held.id} must go to {opened}, as its log does, but go to {last}",
            experiment=held.id,
        )


def take(held: Held, found: Row[Any]) -> list[dict[str, Any]]:
    """Check one stored event against the chain, replay it, and return the rows it changes."""
    where = f"event {found.seq} of experiment {held.id}"
    if found.seq != held.seq + 1:
        raise Corrupt(f"the log must be gapless, but after {held.seq} comes {where}", experiment=held.id)
    linked = chain.link(held.head, found.seq, found.kind, found.round, found.unit, found.body, found.at)
    if linked != found.hash:
        raise Corrupt(f"the hash of {where} does not follow from what is stored", experiment=held.id)
    event = {name: getattr(found, name) for name in ("kind", "round", "unit", "at")} | {"body": json.loads(found.body)}
    try:
        rows = held.experiment.replay(event)
    except (AftereffectError, LookupError, TypeError) as error:
        raise Corrupt(f"{where} cannot be replayed: {error}", experiment=held.id) from None
    held.seq, held.head = found.seq, found.hash
    return rows
