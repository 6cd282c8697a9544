"""The Store: everything that can be done with the experiments of one database, from threads and from event loops.

Writes are durable when they return; one writer thread carries them out in groups (`writer.py`). Reads show what is
committed, and hold up no write. Any number of threads may use one store. On one SQLite file there is one store at a
time; on one PostgreSQL database there may be many, in many processes.
"""

import asyncio
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from aftereffect.service.errors import Refused, checked
from aftereffect.service.experiment.commands import Command
from aftereffect.service.messages import NewToken
from aftereffect.service.settings import ExperimentSettings, checked_settings
from aftereffect.service.store import backup, export, reads, schema, tokens, verify
from aftereffect.service.store.backup import restore_backup
from aftereffect.service.store.database import Database, refusing
from aftereffect.service.store.health import Health, trial
from aftereffect.service.store.writer import Action, Answer, Creation, Item, Job, Work, Writer

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

    def __init__(self, database: Database) -> None:
        """Take over a database that is locked and up to date."""
        self.now: Callable[[], str] = utc_now
        self._database = database
        self._writer = Writer(database, lambda: self.now())
        self._token_cache = tokens.TokenCache(database.internal)
        self._health = Health(lambda: self._writer.submit(Job([("", Work(trial))])), lambda: database.kept_at)

    @classmethod
    def open(cls, url: str = "sqlite:///aftereffect.db", *, wait: float = 10.0, address: str | None = None) -> Self:
        """Open a store, created if there is none, and bring its tables up to date.

        url: sqlite:///PATH or postgresql://...; wait: how many seconds to wait for whoever has a SQLite file;
        address: where a server can be reached while this store is open, for others to read beside the file. A SQLite
        file that can only be read is opened for that; every write is refused. A server does not start on one.
        """
        database = Database(url)
        file = database.file
        try:
            with refusing():
                if file is not None:
                    schema.check_file(file.path)
                read_only = file is not None and file.read_only and address is None
                if file is not None and not read_only:
                    file.lock(wait, address)
                schema.upgrade(database.reading if read_only else database.writing, read_only=read_only)
            return cls(database)
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """Finish what has been handed over, then let go of connections and lock."""
        self._writer.close()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Create an experiment, running unless its settings say draft; return its view with its id."""
        return self.perform(*_creation(settings))

    def perform(self, id: str, command: Action) -> dict[str, Any]:
        """Carry out one command and return its answer, or raise Refused."""
        answer: Answer = self._writer.submit(Job([(id, command)])).result()[0]
        if isinstance(answer, Refused):
            raise answer
        return answer

    def perform_many(self, items: Iterable[tuple[str, Command]]) -> list[Answer]:
        """Carry out commands in order, each on its own; what is refused stands as a Refused in the list."""
        answers: list[Answer] = self._writer.submit(Job(list(items))).result()
        return answers

    async def acreate(self, settings: Mapping[str, Any] | ExperimentSettings) -> dict[str, Any]:
        """Do as `create` does, for an event loop."""
        return await self.aperform(*_creation(settings))

    async def aperform(self, id: str, command: Action) -> dict[str, Any]:
        """Do as `perform` does, for an event loop."""
        future = asyncio.get_running_loop().create_future()
        answer: Answer = (await self._writer.submit(Job([(id, command)], future)))[0]
        if isinstance(answer, Refused):
            raise answer
        return answer

    async def aperform_many(self, items: Iterable[tuple[str, Command]]) -> list[Answer]:
        """Do as `perform_many` does, for an event loop."""
        future = asyncio.get_running_loop().create_future()
        answers: list[Answer] = await self._writer.submit(Job(list(items), future))
        return answers

    def experiment(self, id: str) -> dict[str, Any]:
        """Return the view of an experiment as it is committed, with id and created_at."""
        with refusing():
            return reads.experiment(self._database.reading, id)

    def experiments(self, after: str | None = None, limit: int = 100, state: str | None = None) -> dict[str, Any]:
        """Return a page of experiments in the order they were made; after: the id of the last one seen."""
        with refusing():
            return reads.experiments(self._database.reading, after, limit, state)

    def rounds(self, id: str, after: str | int | None = None, limit: int = 100) -> dict[str, Any]:
        """Return a page of round rows; after: "ROUND", or "ROUND.UNITINDEX" between the units of a round."""
        with refusing():
            return reads.rounds(self._database.reading, id, after, limit)

    def events(self, id: str, after: int = 0, limit: int = 100) -> dict[str, Any]:
        """Return a page of the log; after: the seq of the last event seen."""
        with refusing():
            return reads.events(self._database.reading, id, after, limit)

    def series(self, id: str, last: int = 2000) -> dict[str, Any]:
        """Return the columns behind the charts, over the latest `last` rows."""
        with refusing():
            return reads.series(self._database.reading, id, last)

    def export(self, id: str, form: str) -> Iterator[bytes]:
        """Return all rounds as the pieces of a "csv" or "parquet" file, which is complete when this returns."""
        with refusing():
            return export.pieces(export.export(self._database.reading, id, form))

    def verify(self, id: str | None = None) -> list[dict[str, Any]]:
        """Replay the log of one experiment, or of all, and compare with everything that is stored."""
        with refusing():
            return verify.verify(self._database.reading, id)

    def verify_page(self, after: str | None = None, limit: int = 100) -> dict[str, Any]:
        """Do as `verify` does for all, a page at a time; after: the last experiment seen."""
        with refusing():
            return verify.verify_page(self._database.reading, after, limit)

    def backup(self, path: str | Path) -> None:
        """Write the whole store, as it is at this moment, to a new SQLite file."""
        backup.backup(self._database, path)

    def create_token(self, name: str, scopes: Iterable[str]) -> str:
        """Make a token for these scopes and return it; it is never shown again."""
        new = checked(NewToken, {"name": name, "scopes": scopes}, "a token")
        token, act = tokens.creation(new.name, list(new.scopes), self.now())
        self.perform("", Work(act))
        return token

    def tokens(self) -> list[dict[str, Any]]:
        """Return all tokens: id, name, scopes, created_at, revoked_at."""
        with refusing():
            return tokens.listed(self._database.internal)

    def revoke_token(self, id: str) -> None:
        """Make a token worthless: here at once, in other processes within a second."""
        self.perform("", Work(tokens.revocation(id, self.now())))
        self._token_cache.forget()

    def scopes_of(self, token: str) -> frozenset[str] | None:
        """Return what a token allows, None if it is unknown or revoked."""
        with refusing():
            return self._token_cache.scopes_of(token)

    def check_health(self) -> None:
        """See that the database keeps what is written, or raise Refused; one damaged experiment is no failure here."""
        with refusing():
            self._database.check()
        self._health.check()

    def status(self) -> dict[str, Any]:
        """Return waiting jobs, seconds of the last commit, bytes of SQLite's log, ids of damaged experiments."""
        file = self._database.file
        return {
            "waiting": self._writer.waiting,
            "commit_seconds": self._database.commit_s,
            "log_bytes": 0 if file is None else file.log_bytes,
            "damaged": sorted(self._writer.damaged),
        }


def _creation(settings: Mapping[str, Any] | ExperimentSettings) -> Item:
    seeded = checked_settings(settings).seeded(secrets.randbits(53))
    return "".join(secrets.choice(_CHARACTERS) for _ in range(20)), Creation(seeded)
