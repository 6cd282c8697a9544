"""Reminders as stored: one per experiment, with the webhook to call, and what became of the latest call.

Reminders are no part of the log, because nothing that is decided or recorded depends on them.
"""

from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, literal, select, update

from aftereffect.service.store import schema
from aftereffect.service.store.event_log import find
from aftereffect.service.store.reads import NUMBER

_reminders = schema.reminders.c
_fields = [column for column in schema.reminders.columns if column.name != "experiment"]
_all = select(schema.experiments.c.id.label("experiment"), *_fields).join_from(schema.experiments, schema.reminders)


class StoredReminder(NamedTuple):
    """The reminder of an experiment, with the fields of `schema.reminders`."""

    experiment: str
    webhook: str
    after: float
    round: int
    attempts: int
    next_at: str | None
    outcome: str | None
    outcome_at: str | None


def listed(connection: Connection, identity: str | None = None) -> list[StoredReminder]:
    """Return the reminders of all experiments, or of one."""
    query = _all.order_by(_reminders.experiment)
    if identity is not None:
        query = query.where(_reminders.experiment == find(connection, identity, NUMBER).number)
    return [StoredReminder(*row) for row in connection.execute(query)]


def change(connection: Connection, identity: str, webhook: str | None, after: float) -> dict[str, bool]:
    """Store the reminder of an experiment; without a webhook there is none."""
    number = find(connection, identity, NUMBER).number
    connection.execute(delete(schema.reminders).where(_reminders.experiment == number))
    if webhook is not None:
        fields = {"experiment": number, "webhook": webhook, "after": after, "round": 0, "attempts": 0}
        connection.execute(insert(schema.reminders).values(**fields))
    return {}


def inherit(connection: Connection, source: int, number: int) -> None:
    """Give an experiment the reminder of another one, by their numbers, if that has one."""
    query = select(literal(number), _reminders.webhook, _reminders.after, literal(0), literal(0))
    names = ("experiment", "webhook", "after", "round", "attempts")
    connection.execute(insert(schema.reminders).from_select(names, query.where(_reminders.experiment == source)))


def attempt(connection: Connection, known: StoredReminder, now: StoredReminder) -> dict[str, bool]:
    """Change a reminder unless another process has changed it since it was read; return whether it was "claimed"."""
    number = find(connection, known.experiment, NUMBER).number
    same = [_reminders[name] == getattr(known, name) for name in ("webhook", "after", "round", "attempts")]
    query = update(schema.reminders).where(_reminders.experiment == number, *same)
    changed = {name: value for name, value in now._asdict().items() if name != "experiment"}
    return {"claimed": connection.execute(query.values(**changed)).rowcount == 1}
