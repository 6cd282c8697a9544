"""Reminders as stored: one per experiment, with the webhook to call, and what became of the latest call.

Reminders are no part of the log, because nothing that is decided or recorded depends on them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from aftereffect.service.store import schema
from aftereffect.service.store.event_log import find
from aftereffect.service.store.reads import NUMBER

_reminders = schema.reminders.c
_all = select(schema.experiments.c.id, schema.reminders).join_from(schema.experiments, schema.reminders)


def listed(connection: Connection, identity: str | None = None) -> Sequence[Row[Any]]:
    """Return the reminders of all experiments, or of one: the id, and the columns of `schema.reminders`."""
    query = _all.order_by(_reminders.experiment)
    if identity is not None:
        query = query.where(_reminders.experiment == find(connection, identity, NUMBER).number)
    return connection.execute(query).all()


def change(connection: Connection, identity: str, webhook: str | None, after: float) -> dict[str, bool]:
    """Store the reminder of an experiment; without a webhook there is none."""
    number = find(connection, identity, NUMBER).number
    connection.execute(delete(schema.reminders).where(_reminders.experiment == number))
    if webhook is not None:
        fields = {"experiment": number, "webhook": webhook, "after": after, "round": 0, "attempts": 0}
        connection.execute(insert(schema.reminders).values(**fields))
    return {}


def attempt(connection: Connection, known: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, bool]:
    """Change a reminder unless another process has changed it since it was read; return whether it was "claimed"."""
    same = [_reminders[name] == known[name] for name in ("experiment", "webhook", "after", "round", "attempts")]
    return {"claimed": connection.execute(update(schema.reminders).where(*same).values(**values)).rowcount == 1}
