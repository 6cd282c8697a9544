"""Verify: replay the whole log of an experiment and compare with everything that is stored, bit by bit.

    settings and events   the hash chain, from the settings on, gapless, ending where the experiment's row says
    decisions             replay compares arms and probabilities of every event
    checkpoint            equals the state that the log leads to at that place
    rounds                numbered 1, 2, 3, ... in every unit, each row equal to what the log leads to, none besides
"""

import json
import time
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Engine, Row, func, select
from sqlalchemy.exc import SQLAlchemyError

from aftereffect.service.errors import Corrupt
from aftereffect.service.messages import MOST_ITEMS
from aftereffect.service.store import event_log, schema
from aftereffect.service.store.event_log import Loaded, find
from aftereffect.service.store.reads import whole

_FLUSH = 5000
PAGE_S = 5.0
"""After how many seconds a page of verdicts ends."""
_rounds, _events = schema.rounds.c, schema.events.c
_FIELDS = _rounds.keys()[3:]
_all = select(schema.experiments.c.id).order_by(schema.experiments.c.number)
_log = select(schema.events).order_by(_events.seq)


def verify(engine: Engine, identity: str | None) -> list[dict[str, Any]]:
    """Return a verdict for one experiment, or for each: experiment, ok, rounds, finding, and where its log ends."""
    with engine.connect() as connection:
        wanted = connection.execute(_all).scalars().all() if identity is None else [find(connection, identity).id]
    return [_verdict(engine, each) for each in wanted] + (_orphans(engine) if identity is None else [])


def verify_page(engine: Engine, after: str | None, limit: int) -> dict[str, Any]:
    """Return verdicts for experiments in the order they were made, and on the last page for logs without one.

    A page ends after `limit` experiments, or after some seconds: whoever waits for it must see that work goes on.
    """
    query, ends = _all.limit(whole("limit", limit, 1, MOST_ITEMS) + 1), time.monotonic() + PAGE_S
    with engine.connect() as connection:
        if after is not None:
            query = query.where(schema.experiments.c.number > find(connection, after).number)
        wanted = connection.execute(query).scalars().all()
    items: list[dict[str, Any]] = []
    for identity in wanted[:limit]:
        items.append(_verdict(engine, identity))
        if time.monotonic() >= ends:
            break
    if len(items) < len(wanted):
        return {"items": items, "next": items[-1]["experiment"]}
    return {"items": items + _orphans(engine), "next": None}


def _orphans(engine: Engine) -> list[dict[str, Any]]:
    """Return a verdict for each log whose experiment is gone."""
    events = schema.events.c
    known = select(schema.experiments.c.number)
    lost = select(events.experiment, func.count()).where(events.experiment.not_in(known)).group_by(events.experiment)
    with engine.connect() as connection:
        return [
            {
                "experiment": f"number {number}",
                "ok": False,
                "rounds": 0,
                "finding": f"the log holds {count} events of an experiment that is gone",
                "events": count,
                "head": None,
            }
            for number, count in connection.execute(lost)
        ]


def _verdict(engine: Engine, identity: str) -> dict[str, Any]:
    with engine.connect() as connection:
        row = find(connection, identity)
        found: dict[str, Any] = {"experiment": identity, "ok": True, "rounds": 0, "finding": None}
        found |= {"events": row.seq, "head": row.head}
        try:
            found["rounds"] = _Check(connection, row).run()
        except Corrupt as error:
            found |= {"ok": False, "finding": error.detail}
        except (SQLAlchemyError, ValueError, LookupError, TypeError) as error:
            # A damaged file gives values of any kind, or none.
            found |= {"ok": False, "finding": f"what is stored cannot be read: {str(error)[:200]}"}
        return found


class _Check:
    """One experiment's replay. Rows are compared in portions; the last thing the log says about a row counts."""

    def __init__(self, connection: Connection, row: Row[Any]) -> None:
        self.connection, self.row = connection, row
        self.pending: dict[tuple[int, int], tuple[Any, ...]] = {}
        self.differing: dict[tuple[int, int], tuple[Any, ...]] = {}
        self.latest: dict[int, int] = {}

    def run(self) -> int:
        """Return the number of rounds, or raise Corrupt with the first thing that differs."""
        loaded = event_log.initial(self.row)
        name = loaded.experiment.settings.name
        if name != self.row.name:
            raise Corrupt(f"the name must be {name!r}, as in the settings, but is {self.row.name!r}")
        saved = self._checkpoint()
        for event in self._events():
            for changed in loaded.replay(event):
                self._note(loaded, changed)
            if saved is not None and saved.seq == loaded.seq:
                self._compare_state(loaded, saved)
            if len(self.pending) >= _FLUSH:
                self._flush(loaded)
        self._compare_end(loaded, saved)
        self._flush(loaded, everything=True)
        self._count()
        return loaded.experiment.last

    def _checkpoint(self) -> Row[Any] | None:
        query = select(schema.checkpoints).where(schema.checkpoints.c.experiment == self.row.number)
        return self.connection.execute(query).one_or_none()

    def _events(self) -> Iterator[Row[Any]]:
        query = _log.where(_events.experiment == self.row.number)
        with self.connection.execution_options(yield_per=1000).execute(query) as found:
            yield from found

    def _note(self, loaded: Loaded, changed: dict[str, Any]) -> None:
        round_, unit = changed["round"], loaded.unit_index[changed["unit"]]
        before = self.latest.get(unit, 0)
        if round_ > before:
            if round_ != before + 1:
                raise Corrupt(f"rounds must be numbered without gaps, but in the log round {round_} follows {before}")
            self.latest[unit] = round_
        self.pending[round_, unit] = (loaded.number, round_, unit, *(changed[name] for name in _FIELDS))
        self.differing.pop((round_, unit), None)

    def _compare_state(self, loaded: Loaded, saved: Row[Any]) -> None:
        # Numbers can be written in more than one way, so what they mean is compared.
        state = event_log.as_text(loaded.experiment.state())
        if saved.head != loaded.head or json.loads(saved.state) != json.loads(state):
            raise Corrupt(f"the checkpoint at event {saved.seq} is not the state that the log leads to")

    def _compare_end(self, loaded: Loaded, saved: Row[Any] | None) -> None:
        row = self.row
        if (loaded.seq, loaded.head) != (row.seq, row.head):
            raise Corrupt(
                f"the log must end at event {row.seq} with hash {row.head[:12]}..., but it ends at {loaded.seq} with "
                f"{loaded.head[:12]}...: events are missing at its end, or the row was altered"
            )
        if saved is not None and not 0 < saved.seq <= loaded.seq:
            raise Corrupt(f"the checkpoint must be of an event in the log, but it is of {saved.seq}")
        status = loaded.experiment.phase
        if row.status != status:
            raise Corrupt(f"the status must be {status!r}, as in the log, but is {row.status!r}")

    def _flush(self, loaded: Loaded, *, everything: bool = False) -> None:
        """Compare what has been replayed; a row that differs gets its chance until the log has ended."""
        if not self.pending:
            return
        low, high = min(self.pending)[0], max(self.pending)[0]
        query = select(schema.rounds).where(_rounds.experiment == loaded.number, _rounds.round.between(low, high))
        stored = {(row.round, row.unit_index): tuple(row) for row in self.connection.execute(query)}
        for key, values in self.pending.items():
            if stored.get(key) != values:
                self.differing[key] = values
        self.pending.clear()
        if everything and self.differing:
            self._report(loaded)

    def _report(self, loaded: Loaded) -> None:
        for (round_, unit), values in sorted(self.differing.items()):
            here = (_rounds.experiment == loaded.number, _rounds.round == round_, _rounds.unit_index == unit)
            row = self.connection.execute(select(schema.rounds).where(*here)).one_or_none()
            where = f"the row of round {round_} in unit {loaded.experiment.settings.units[unit]!r}"
            if row is None:
                raise Corrupt(f"{where} is missing")
            for name, stored, wanted in zip(schema.rounds.columns.keys(), row, values, strict=True):
                if stored != wanted:
                    raise Corrupt(f"{where} must have {name} {wanted!r}, as the log leads to, but has {stored!r}")

    def _count(self) -> None:
        query = select(func.count()).select_from(schema.rounds).where(_rounds.experiment == self.row.number)
        stored, wanted = self.connection.execute(query).scalar() or 0, sum(self.latest.values())
        if stored != wanted:
            raise Corrupt(f"there must be {wanted} round rows, as the log leads to, but there are {stored}")
