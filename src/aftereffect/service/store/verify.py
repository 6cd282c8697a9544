"""Verification: replay the log of an experiment and compare the result with the stored data, bit for bit.

    settings and events   the hash chain has no gaps and ends at the event named in the experiment's row
    decisions             the replay gives the arms and probabilities of every event
    checkpoint            equals the replayed state at its place in the log
    rounds                numbered 1, 2, 3, ... in every unit; the rows equal the replayed ones, with none extra
"""

import json
import time
from typing import Any

from sqlalchemy import Connection, Engine, Row, func, select

from aftereffect.service.errors import Corrupt
from aftereffect.service.experiment.experiment import Experiment
from aftereffect.service.messages import MOST_ITEMS
from aftereffect.service.store import event_log, schema
from aftereffect.service.store.database import UNREADABLE, refusal
from aftereffect.service.store.event_log import Loaded, find
from aftereffect.service.store.reads import NUMBER, whole

_FLUSH = 5000
PAGE_S = 5.0
"""A page of verdicts ends after this many seconds."""
Verdict = dict[str, Any]
_rounds, _events = schema.rounds.c, schema.events.c
_FIELDS = _rounds.keys()[3:]
_all = select(schema.experiments.c.id).order_by(schema.experiments.c.number)
_log = select(schema.events).order_by(_events.seq)


def verify(engine: Engine, identity: str | None) -> list[Verdict]:
    """Return a verdict for one experiment, or for all: experiment, ok, rounds, finding, and the end of its log."""
    with engine.connect() as connection:
        ids = connection.execute(_all).scalars().all() if identity is None else [find(connection, identity, NUMBER).id]
    return [_verdict(engine, each) for each in ids] + (_orphans(engine) if identity is None else [])


def verify_page(engine: Engine, after: str | None, limit: int) -> dict[str, Any]:
    """Return a page of verdicts, in order of creation; the last page includes logs without an experiment.

    A page ends after `limit` experiments or PAGE_S seconds, so that a client sees progress and does not time out.
    """
    query, ends = _all.limit(whole("limit", limit, 1, MOST_ITEMS) + 1), time.monotonic() + PAGE_S
    with engine.connect() as connection:
        if after is not None:
            query = query.where(schema.experiments.c.number > find(connection, after, NUMBER).number)
        wanted = connection.execute(query).scalars().all()
    items: list[Verdict] = []
    for identity in wanted[:limit]:
        items.append(_verdict(engine, identity))
        if time.monotonic() >= ends:
            break
    if len(items) < len(wanted):
        return {"items": items, "next": items[-1]["experiment"]}
    return {"items": items + _orphans(engine), "next": None}


def _orphans(engine: Engine) -> list[Verdict]:
    """Return a verdict for each log whose experiment no longer exists."""
    known = select(schema.experiments.c.number)
    lost = select(_events.experiment, func.count()).where(_events.experiment.not_in(known)).group_by(_events.experiment)
    with engine.connect() as connection:
        found = connection.execute(lost).all()
    words = "the log has {} events of an experiment that no longer exists"
    return [_words(f"number {number}", count, None, finding=words.format(count)) for number, count in found]


def _words(experiment: str, events: int, head: str | None, rounds: int = 0, finding: str | None = None) -> Verdict:
    ok = finding is None
    return {"experiment": experiment, "ok": ok, "rounds": rounds, "finding": finding, "events": events, "head": head}


def _verdict(engine: Engine, identity: str) -> Verdict:
    seq, head = 0, ""
    with engine.connect() as connection:
        try:
            row = find(connection, identity)
            seq, head = int(row.seq), str(row.head)
            return _words(identity, seq, head, rounds=_Check(connection, row).run())
        except UNREADABLE as error:
            return _words(identity, seq, head, finding=refusal(error).detail)


class _Check:
    """The replay of one experiment. Rows are compared in batches; the last version of a row in the log counts."""

    def __init__(self, connection: Connection, row: Row[Any]) -> None:
        self.connection, self.row, self.loaded = connection, row, event_log.initial(row)
        self.pending: dict[tuple[int, int], tuple[Any, ...]] = {}
        self.differing: dict[tuple[int, int], tuple[Any, ...]] = {}
        self.latest: dict[int, int] = {}

    def run(self) -> int:
        """Return the number of rounds, or raise Corrupt with the first difference."""
        row, loaded, experiment = self.row, self.loaded, self.loaded.experiment
        _compare("name", experiment.settings.name, row.name)
        query = select(schema.checkpoints).where(schema.checkpoints.c.experiment == row.number)
        saved = self.connection.execute(query).one_or_none()
        events = _log.where(_events.experiment == row.number).execution_options(yield_per=1000)
        with self.connection.execute(events) as found:
            for event in found:
                for changed in loaded.replay(event):
                    self._note(changed)
                if saved is not None and saved.seq == loaded.seq and not _is_checkpoint(saved, loaded):
                    raise Corrupt(f"the checkpoint at event {saved.seq} is not the replayed state")
                if len(self.pending) >= _FLUSH:
                    self._flush()
        loaded.check_end(row)
        if saved is not None and saved.seq not in range(1, loaded.seq + 1):
            raise Corrupt(f"the checkpoint must belong to an event in the log, but belongs to {saved.seq}")
        _compare("status", experiment.phase, row.status)
        self._flush()
        for key, values in sorted(self.differing.items()):
            self._report(*key, values)
        query = select(func.count()).select_from(schema.rounds).where(_rounds.experiment == row.number)
        _compare("number of round rows", sum(self.latest.values()), self.connection.execute(query).scalar())
        return experiment.last

    def _note(self, changed: dict[str, Any]) -> None:
        round_, unit = changed["round"], self.loaded.unit_index[changed["unit"]]
        before = self.latest.get(unit, 0)
        if round_ > before:
            if round_ != before + 1:
                raise Corrupt(f"rounds must be numbered without gaps, but in the log round {round_} follows {before}")
            self.latest[unit] = round_
        self.pending[round_, unit] = (self.loaded.number, round_, unit, *(changed[name] for name in _FIELDS))
        self.differing.pop((round_, unit), None)

    def _flush(self) -> None:
        """Compare the rows replayed so far; rows that differ are compared again at the end, after later events."""
        if self.pending:
            between = _rounds.round.between(min(self.pending)[0], max(self.pending)[0])
            query = select(schema.rounds).where(_rounds.experiment == self.loaded.number, between)
            stored = {(row.round, row.unit_index): tuple(row) for row in self.connection.execute(query)}
            self.differing |= {key: values for key, values in self.pending.items() if stored.get(key) != values}
            self.pending.clear()

    def _report(self, round_: int, unit: int, values: tuple[Any, ...]) -> None:
        here = (_rounds.experiment == self.loaded.number, _rounds.round == round_, _rounds.unit_index == unit)
        row = self.connection.execute(select(schema.rounds).where(*here)).one_or_none()
        where = f"the row of round {round_} in unit {self.loaded.experiment.settings.units[unit]!r}"
        if row is None:
            raise Corrupt(f"{where} is missing")
        for name, stored, wanted in zip(_rounds.keys(), row, values, strict=True):
            if stored != wanted:
                raise Corrupt(f"{where} must have {name} {wanted!r}, according to the log, but has {stored!r}")


def _is_checkpoint(saved: Row[Any], loaded: Loaded) -> bool:
    """Return whether a checkpoint restores what the replay gives; its text may be that of an earlier version."""
    try:
        restored = Experiment.from_state(json.loads(saved.state))
    except (Corrupt, ValueError):
        return False
    return bool(saved.head == loaded.head and restored.state() == loaded.experiment.state())


def _compare(what: str, wanted: object, stored: object) -> None:
    if stored != wanted:
        raise Corrupt(f"the {what} must be {wanted!r}, according to settings and log, but is {stored!r}")
