"""Reads: always the last commit, from connections of their own; the writer waits for none of them."""

import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Engine, func, select, tuple_

from aftereffect.service.errors import Refused
from aftereffect.service.store import schema
from aftereffect.service.store.loading import find
from aftereffect.service.store.paging import limited, read_cursor, whole, write_cursor

STATES = ("draft", "running", "paused", "finished")
ITEM_FIELDS = ("round", *schema.ROW_FIELDS)
MOST_SERIES = 20_000
# What the charts need of a row.
SERIES_FIELDS = (
    *("round", "unit", "arm", "total", "status", "draw", "block", "block_start", "probability", "washin"),
    *("measured", "update", "fed", "date", "substituted"),
)
_SHOWN = (
    *("arms", "units", "direction", "low", "high", "max_delay", "carry_over", "horizon", "player", "seed"),
    *("start_date", "round_length"),
)
_experiments, _rounds, _events = schema.experiments.c, schema.rounds.c, schema.events.c
_items = select(_rounds.unit_index, *(_rounds[name] for name in ITEM_FIELDS))
_place = tuple_(_rounds.round, _rounds.unit_index)
_last_round = select(func.max(_rounds.round)).where(_rounds.experiment == _experiments.number).scalar_subquery()


def experiments(engine: Engine, after: str | None, limit: int, state: str | None) -> dict[str, Any]:
    """Return a page of experiments, in the order they were made."""
    limit = limited(limit)
    if state is not None and state not in STATES:
        raise Refused("invalid", f"state must be one of {', '.join(STATES)}, but got {state!r}")
    query = select(schema.experiments, _last_round.label("round")).order_by(_experiments.number).limit(limit + 1)
    if state is not None:
        query = query.where(_experiments.status == state)
    with engine.connect() as connection:
        if after is not None:
            query = query.where(_experiments.number > find(connection, after).number)
        found = connection.execute(query).all()
    items = []
    for row in found[:limit]:
        settings = json.loads(row.settings)
        shown = {name: settings.get(name) for name in _SHOWN}
        state_ = {"state": row.status, "round": row.round or 0, "events": row.seq, "created_at": row.created_at}
        items.append({"id": row.id, "name": row.name, **state_, **shown})
    return {"items": items, "next": items[-1]["id"] if len(found) > limit else None}


def rounds(engine: Engine, identity: str, after: str | int | None, limit: int) -> dict[str, Any]:
    """Return a page of round rows, in order of rounds and units."""
    limit, start = limited(limit), read_cursor(after)
    with engine.connect() as connection:
        row = find(connection, identity)
        n_units = len(json.loads(row.settings)["units"])
        query = _items.where(_rounds.experiment == row.number, _place > start)
        query = query.order_by(_rounds.round, _rounds.unit_index).limit(limit + 1)
        found = connection.execute(query).all()
    items = [dict(zip(ITEM_FIELDS, row[1:], strict=True)) for row in found[:limit]]
    more = len(found) > limit
    return {"items": items, "next": write_cursor(items[-1]["round"], found[limit - 1][0], n_units) if more else None}


def every_round(connection: Connection, number: int) -> Iterator[tuple[Any, ...]]:
    """Yield all round rows as tuples (ITEM_FIELDS), in order, without holding them all in memory."""
    query = _items.where(_rounds.experiment == number).order_by(_rounds.round, _rounds.unit_index)
    with connection.execution_options(yield_per=1000).execute(query) as found:
        for row in found:
            yield tuple(row[1:])


def events(engine: Engine, identity: str, after: int, limit: int) -> dict[str, Any]:
    """Return a page of the log."""
    limit, after = limited(limit), whole("after", after, 0)
    with engine.connect() as connection:
        number = find(connection, identity).number
        query = select(*schema.events.c[1:]).where(_events.experiment == number, _events.seq > after)
        found = connection.execute(query.order_by(_events.seq).limit(limit + 1)).all()
    items = [{**row._mapping, "body": json.loads(row.body)} for row in found[:limit]]
    return {"items": items, "next": items[-1]["seq"] if len(found) > limit else None}


def series(engine: Engine, identity: str, last: int) -> dict[str, Any]:
    """Return the columns behind the charts, over the latest `last` rows; odds: the probabilities when arms were drawn.

    The log holds the probabilities of up to 16 arms; with more, `odds` is empty.
    """
    last = whole("last", last, 1, MOST_SERIES)
    with engine.connect() as connection:
        row = find(connection, identity)
        arms = json.loads(row.settings)["arms"]
        query = _items.where(_rounds.experiment == row.number)
        found = connection.execute(query.order_by(_rounds.round.desc(), _rounds.unit_index.desc()).limit(last)).all()
        # A row is asked for once and told once; amendments and the like are few.
        asks = select(_events.kind, _events.round, _events.body).where(_events.experiment == row.number)
        recent = connection.execute(asks.order_by(_events.seq.desc()).limit(2 * last + 64)).all()
    found = found[::-1]
    columns: dict[str, Any] = {name: [getattr(row, name) for row in found] for name in SERIES_FIELDS}
    first = found[0].round if found else 0
    drawn = [(row.round, json.loads(row.body)) for row in recent if row.kind == "ask" and row.round >= first]
    drawn = [(round_, body) for round_, body in reversed(drawn) if isinstance(body.get("probabilities"), list)]
    odds: dict[str, Any] = {"round": [round_ for round_, _ in drawn]}
    odds["probabilities"] = {arm: [body["probabilities"][i] for _, body in drawn] for i, arm in enumerate(arms)}
    return {"experiment": identity, "arms": arms, **columns, "odds": odds}
