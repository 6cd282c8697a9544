"""The Store: everything that can be done with a store of experiments, from threads and from event loops.

Writes are durable when they return, and one writer thread carries them out in groups (`store/writer.py`). Reads show
what is committed, and hold up no write. Any number of threads may use one store. On one SQLite file there is one store
at a time; on one PostgreSQL database there may be many, in many processes.
"""

import asyncio
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, cast

from sqlalchemy import text

from aftereffect.service.errors import Refused, checked
from aftereffect.service.experiment.commands import Command
from aftereffect.service.messages import NewToken
from aftereffect.service.settings import ExperimentSettings, checked_settings
from aftereffect.service.store import backup, export, migrating, reading, tokens, verifying
from aftereffect.service.store.backup import restore_backup
from aftereffect.service.store.jobs import Answer, Creation, Form, Item, Job, Outcome, Work
from aftereffect.service.store.ledger import Ledger
from aftereffect.service.store.locking import FileLock
from aftereffect.service.store.places import Place, checked_url
from aftereffect.service.store.pulse import Pulse, trial
from aftereffect.service.store.replicas import Replicas
from aftereffect.service.store.troubles import guarded
from aftereffect.service.store.writer import Writer

__all__ = ["Store", "restore_backup"]

# Nothing to misread: no l, o, 0, 1. Twenty of these 32 characters are 100 random bits.
_CHARACTERS = "abcdefghijkmnpqrstuvwxyz23456789"


def utc_now() -> str:
    """Return the moment in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Store:
    """An open store. Get one from `Store.open`, and close it, or use it in a `with` statement.

    now: the clock, a callable that returns ISO text in UTC; may be replaced.

    >>> import tempfile
    >>> from aftereffect.service.experiment.commands import Ask, Tell
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(f"sqlite:///{folder}/shop.db") as store:
    ...     mail = store.create({"name": "Mail", "arms": ["short", "long"], "max_delay": 1, "seed": 7})["id"]
    ...     asked = store.perform(mail, Ask())
    ...     told = store.perform(mail, Tell(asked["round"], 0.5))
    ...     store.rounds(mail)["items"][0]["total"], store.verify(mail)[0]["ok"]
    (0.5, True)
    """

    def __init__(self, place: Place, lock: FileLock | None) -> None:
        """Take over a store that is locked and up to date."""
        self.now: Callable[[], str] = utc_now
        self._place, self._lock = place, lock
        if lock is not None:
            place.have_dictation(lock.file)
        self._writer = Writer(Ledger(place, lambda: self.now()))
        self._replicas = Replicas(place.reading)
        self._doorkeeper = tokens.Doorkeeper(place.reading)
        self._pulse = Pulse(lambda: _one(self._wait([("", Work(trial))])), lambda: place.kept_at)

    @classmethod
    def open(cls, url: str = "sqlite:///aftereffect.db", *, wait: float = 10.0, address: str | None = None) -> Self:
        """Open a store, made if there is none, and bring its tables up to date.

        url: sqlite:///PATH or postgresql://...; wait: how many seconds to wait for whoever has a SQLite file;
        address: where a server can be reached while this store is open, for others to read in the lock file. A SQLite
        file that can only be read is opened for that; every write is refused. A server does not start on one.
        """
        place = Place(checked_url(url))
        if place.file is not None:
            migrating.look(place.file)
        visits = place.visit is not None and address is None
        lock = None if place.file is None or visits else FileLock(place.file)
        if lock is not None:
            lock.take(wait, address)
        try:
            with guarded():
                if visits:
                    migrating.check(place.reading)
                else:
                    place.make()
                    migrating.upgrade(place.writing)
            return cls(place, lock)
        except BaseException:
            place.close()
            if lock is not None:
                lock.release()
            raise

    def close(self) -> None:
        """Finish what has been handed over, then let go of connections and lock."""
        self._writer.close()
        self._place.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        """Return the store itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def create(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Make an experiment, running unless its settings say draft; return its view with its id."""
        return _one(self._wait([_creation(settings)]))

    def perform(self, id: str, command: Command) -> dict[str, Any]:
        """Carry out one command and return its answer, or raise Refused."""
        return _one(self._wait([(id, command)]))

    def perform_many(self, items: Iterable[tuple[str, Command]]) -> list[Answer]:
        """Carry out commands in order, each on its own; what is refused stands as a Refused in the list."""
        return self._wait(list(items))

    async def acreate(self, settings: Mapping[str, Any] | ExperimentSettings) -> dict[str, Any]:
        """Do as `create` does, for an event loop."""
        return _one(await self._answers([_creation(settings)]))

    async def aperform(self, id: str, command: Command) -> dict[str, Any]:
        """Do as `perform` does, for an event loop."""
        return _one(await self._answers([(id, command)]))

    async def aperform_many(self, items: Iterable[tuple[str, Command]]) -> list[Answer]:
        """Do as `perform_many` does, for an event loop."""
        return cast(list[Answer], await self._answers(list(items)))

    def experiment(self, id: str) -> dict[str, Any]:
        """Return the view of an experiment as it is committed, with id and created_at."""
        with guarded():
            return self._replicas.view(id)

    def experiments(self, after: str | None = None, limit: int = 100, state: str | None = None) -> dict[str, Any]:
        """Return a page of experiments in the order they were made; after: the id of the last one seen."""
        with guarded():
            return reading.experiments(self._place.reading, after, limit, state)

    def rounds(self, id: str, after: str | int | None = None, limit: int = 100) -> dict[str, Any]:
        """Return a page of round rows; after: "ROUND", or "ROUND.UNITINDEX" between the units of a round."""
        with guarded():
            return reading.rounds(self._place.reading, id, after, limit)

    def events(self, id: str, after: int = 0, limit: int = 100) -> dict[str, Any]:
        """Return a page of the log; after: the seq of the last event seen."""
        with guarded():
            return reading.events(self._place.reading, id, after, limit)

    def series(self, id: str, last: int = 2000) -> dict[str, Any]:
        """Return the columns behind the charts, over the latest `last` rows."""
        with guarded():
            return reading.series(self._place.reading, id, last)

    def export(self, id: str, form: str) -> bytes:
        """Return all rounds as the bytes of a "csv" or "parquet" file."""
        with guarded():
            return export.export(self._place.reading, id, form)

    def verify(self, id: str | None = None) -> list[dict[str, Any]]:
        """Replay the log of one experiment, or of all, and compare with all that is stored."""
        with guarded():
            return verifying.verify(self._place.reading, id)

    def verify_page(self, after: str | None = None, limit: int = 100) -> dict[str, Any]:
        """Do as `verify` does for all, a page at a time; after: the last experiment seen."""
        with guarded():
            return verifying.verify_page(self._place.reading, after, limit)

    def backup(self, path: str | Path) -> None:
        """Write the whole store, as it is at this moment, to a new SQLite file."""
        backup.backup(self._place, path)

    def create_token(self, name: str, scopes: Iterable[str]) -> str:
        """Make a token for these scopes and return it; it is never shown again."""
        new = checked(NewToken, {"name": name, "scopes": scopes}, "a token")
        token, act = tokens.creation(new.name, list(new.scopes), self.now())
        _one(self._wait([("", Work(act))]))
        return token

    def tokens(self) -> list[dict[str, Any]]:
        """Return all tokens: id, name, scopes, created_at, revoked_at."""
        with guarded():
            return tokens.listed(self._place.reading)

    def revoke_token(self, id: str) -> None:
        """Make a token worthless: here at once, in other processes within a second."""
        _one(self._wait([("", Work(tokens.revocation(id, self.now())))]))
        self._doorkeeper.forget()

    def scopes_of(self, token: str) -> frozenset[str] | None:
        """Return what a token allows, None if it is unknown or revoked."""
        with guarded():
            return self._doorkeeper.scopes_of(token)

    def check_health(self) -> None:
        """See that the database answers and keeps what is written, or raise Refused."""
        with guarded():
            self._place.check()
            with self._place.reading.connect() as connection:
                connection.execute(text("SELECT 1 FROM experiments WHERE number = 0"))
        self._pulse.check()

    def _wait(self, items: list[Item]) -> list[Answer]:
        if not items:
            return []
        job = Job(items)
        self._writer.put(job)
        return cast(list[Answer], job.result())

    async def _answers(self, items: list[Item], form: Form | None = None) -> list[Outcome]:
        if not items:
            return []
        job = Job(items, asyncio.get_running_loop(), form)
        self._writer.put(job)
        return await job.promise()


def _creation(settings: Mapping[str, Any] | ExperimentSettings) -> Item:
    seeded = checked_settings(settings).seeded(secrets.randbits(53))
    return "".join(secrets.choice(_CHARACTERS) for _ in range(20)), Creation(seeded)


def _one(answers: Sequence[Outcome]) -> dict[str, Any]:
    (answer,) = answers
    if isinstance(answer, Refused):
        raise answer
    return cast(dict[str, Any], answer)
