"""Verification: replay the log of an experiment and compare the result with the stored data, bit for bit.

    settings and events   the hash chain has no gaps and ends at the event named in the experiment's row
    decisions             the replay gives the arms and probabilities of every event
    checkpoint            equals the replayed state at its place in the log
    rounds                numbered 1, 2, 3, ... in every unit; the rows equal the replayed ones, with none extra
"""

import hashlib
import json
import time
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Row, func, select

from aftereffect.service.errors import Corrupt
from aftereffect.service.experiment.experiment import Experiment
from aftereffect.service.messages import Page, Verdict
from aftereffect.service.store import event_log, schema
from aftereffect.service.store.database import UNREADABLE, refusal
from aftereffect.service.store.event_log import Loaded, find
from aftereffect.service.store.reads import NUMBER

PAGE_S = 5.0
"""A page of verdicts ends after this many seconds."""
_rounds, _events = schema.rounds.c, schema.events.c
_FIELDS = _rounds.keys()[3:]
_all = select(schema.experiments.c.id).order_by(schema.experiments.c.number)
_log = select(schema.events).order_by(_events.seq)


def verify(connection: Connection, identity: str | None = None) -> list[Verdict]:
    """Return a verdict for one experiment, or for all: experiment, ok, rounds, finding, and the end of its log."""
    if identity is not None:
        return [_verdict(connection, find(connection, identity, NUMBER).id)]
    return [_verdict(connection, each) for each in connection.scalars(_all).all()] + _orphans(connection)


def verify_page(connection: Connection, after: str | None = None, limit: int = 100) -> Page[Verdict]:
    """Return a page of verdicts, in order of creation; the last page includes logs without an experiment.

    A page ends after `limit` experiments or PAGE_S seconds, so that a client sees progress and does not time out.
    after: the id of the last experiment seen.
    """
    query, ends = _all.limit(limit + 1), time.monotonic() + PAGE_S
    if after is not None:
        query = query.where(schema.experiments.c.number > find(connection, after, NUMBER).number)
    wanted = connection.scalars(query).all()
    items: list[Verdict] = []
    for identity in wanted[:limit]:
        items.append(_verdict(connection, identity))
        if time.monotonic() >= ends:
            break
    if len(items) < len(wanted):
        return Page[Verdict](items=items, next=items[-1].experiment)
    return Page[Verdict](items=items + _orphans(connection), next=None)


def _orphans(connection: Connection) -> list[Verdict]:
    """Return a verdict for each log whose experiment no longer exists."""
    known = select(schema.experiments.c.number)
    lost = select(_events.experiment, func.count()).where(_events.experiment.not_in(known)).group_by(_events.experiment)
    found = []
    for number, events in connection.execute(lost):
        name, finding = f"number {number}", f"the log has {events} events of an experiment that no longer exists"
        found.append(Verdict(experiment=name, ok=False, rounds=0, finding=finding, events=events, head=None))
    return found


def _verdict(connection: Connection, identity: str) -> Verdict:
    seq, head = 0, ""
    # Each on a snapshot of its own: an old one would keep SQLite's log from being moved into the file.
    connection.rollback()
    try:
        row = find(connection, identity)
        seq, head = int(row.seq), str(row.head)
        rounds, finding = _check(connection, row), None
    except UNREADABLE as error:
        rounds, finding = 0, refusal(error).detail
    connection.rollback()
    return Verdict(experiment=identity, ok=not finding, rounds=rounds, finding=finding, events=seq, head=head)


def _check(connection: Connection, row: Row[Any]) -> int:
    """Return the number of rounds of an experiment, or raise Corrupt with the first difference."""
    # Of each row only a digest of its last version: all rows may be more than the memory holds.
    wanted: dict[tuple[int, int], bytes] = {}
    for values in _replayed(connection, row):
        _, round_, unit, *_ = values
        if round_ > 1 and (round_ - 1, unit) not in wanted:
            raise Corrupt(f"rounds must be numbered without gaps, but in the log there is none before round {round_}")
        wanted[round_, unit] = _digest(values)
    stored = select(schema.rounds).where(_rounds.experiment == row.number)
    with connection.execute(stored.execution_options(yield_per=1000)) as found:
        same = {tuple(each)[1:3] for each in found if wanted.get(tuple(each)[1:3]) == _digest(tuple(each))}
    if wanted.keys() != same:
        last = {values[1:3]: values for values in _replayed(connection, row) if values[1:3] not in same}
        for (round_, unit), values in sorted(last.items()):
            here = stored.where(_rounds.round == round_, _rounds.unit_index == unit)
            _compare_row(connection.execute(here).one_or_none(), values)
    number = select(func.count()).select_from(schema.rounds).where(_rounds.experiment == row.number)
    _compare("number of round rows", len(wanted), connection.execute(number).scalar())
    return max((round_ for round_, _ in wanted), default=0)


def _replayed(connection: Connection, row: Row[Any]) -> Iterator[tuple[Any, ...]]:
    """Replay the log of an experiment and yield the rows that each event changes; check where the log ends."""
    loaded = event_log.initial(row)
    _compare("name", loaded.experiment.settings.name, row.name)
    query = select(schema.checkpoints).where(schema.checkpoints.c.experiment == row.number)
    saved = connection.execute(query).one_or_none()
    with connection.execute(_log.where(_events.experiment == row.number).execution_options(yield_per=1000)) as found:
        for event in found:
            for changed in loaded.replay(event):
                place = loaded.number, changed["round"], loaded.experiment.unit_index[changed["unit"]]
                yield (*place, *(changed[name] for name in _FIELDS))
            if saved is not None and saved.seq == loaded.seq and not _is_checkpoint(saved, loaded):
                raise Corrupt(f"the checkpoint at event {saved.seq} is not the replayed state")
    loaded.check_end(row)
    if saved is not None and saved.seq not in range(1, loaded.seq + 1):
        raise Corrupt(f"the checkpoint must belong to an event in the log, but belongs to {saved.seq}")
    _compare("status", loaded.experiment.phase, row.status)


def _digest(values: tuple[Any, ...]) -> bytes:
    return hashlib.blake2b(repr(values).encode(), digest_size=16).digest()


def _compare_row(stored: Row[Any] | None, values: tuple[Any, ...]) -> None:
    wanted = dict(zip(_rounds.keys(), values, strict=True))
    where = f"the row of round {wanted['round']} in unit {wanted['unit']!r}"
    if stored is None:
        raise Corrupt(f"{where} is missing")
    for name, value in wanted.items():
        if stored._mapping[name] != value:
            rule = f"{where} must have {name} {value!r}, according to the log"
            raise Corrupt(f"{rule}, but has {stored._mapping[name]!r}")


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
