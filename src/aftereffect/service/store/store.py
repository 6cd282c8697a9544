"""The Store: all operations on the experiments of one database, for threads and for event loops.

A write is durable when it returns; one writer thread carries out writes in groups (`writer.py`). Reads see committed
data and do not delay writes. A store is thread-safe. A SQLite file can be open in one store at a time, a PostgreSQL
database in any number of stores and processes.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial, wraps
from pathlib import Path
from types import MappingProxyType
from typing import Any, Concatenate, NamedTuple, ParamSpec, Self, TypeVar

from sqlalchemy import Connection

from aftereffect.core.text import utc_text
from aftereffect.service.errors import Refused, checked
from aftereffect.service.experiment.commands import Command, Reports
from aftereffect.service.experiment.view import comparison
from aftereffect.service.messages import MOST_COMPARED, Comparison, Fields, Learned, NewToken, Overview
from aftereffect.service.settings import ExperimentSettings, checked_settings, continued, corrected
from aftereffect.service.store import backup, keys, reads, schema, tokens, verify, webhooks
from aftereffect.service.store.database import Database, refusing
from aftereffect.service.store.writer import Action, Answer, Creation, Item, Job, Once, Writer, trial

MOST_READ = 1_024
"""How many views, and how many models, are kept until their experiments change."""
REMEMBERED_S = 1.0
"""Seconds for which scopes are cached, and so the maximum delay of a revocation by another process."""
HEALTH_S, TRIAL_S = 3.0, 20.0
"""How long a write counts as a check of health, and how long a test write may take."""
# Without l, o, 0 and 1, which are easily misread. Twenty of these 32 characters are 100 random bits.
_CHARACTERS = "abcdefghijkmnpqrstuvwxyz23456789"


class Status(NamedTuple):
    """Waiting jobs, seconds of the last commit, bytes of SQLite's log, ids of damaged experiments."""

    waiting: int
    commit_seconds: float
    log_bytes: int
    damaged: list[str]


P = ParamSpec("P")
T = TypeVar("T")


def _reading(
    act: Callable[Concatenate[Connection, P], T], *, internal: bool = False
) -> Callable[Concatenate["Store", P], T]:
    """Return the method that reads with a function: on a connection of its own, which sees the last commit.

    internal: one that need not wait for other reads.
    """

    @wraps(act)
    def method(store: "Store", /, *args: P.args, **kwargs: P.kwargs) -> T:
        database = store._database
        with refusing(), (database.internal if internal else database.reading).connect() as connection:
            return act(connection, *args, **kwargs)

    return method


def utc_now() -> str:
    """Return the current time."""
    return utc_text(datetime.now(UTC))


class Store:
    """An open store. Get one from `Store.open`, and close it, or use it in a `with` statement.

    now: the clock, a callable that returns the time in UTC as ISO 8601; may be replaced.

    >>> import tempfile
    >>> from aftereffect.service.experiment.commands import Ask, Tell
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(f"sqlite:///{folder}/shop.db") as store:
    ...     mail = store.create({"name": "Mail", "arms": ["short", "long"], "high": 1, "max_delay": 1}).id
    ...     asked = store.perform(mail, Ask())
    ...     told = store.perform(mail, Tell(asked["round"], 0.5))
    ...     store.rounds(mail)["items"][0]["total"], store.verify(mail)[0].ok
    (0.5, True)
    """

    experiments = _reading(reads.experiments)
    rounds = _reading(reads.rounds)
    events = _reading(reads.events)
    series = _reading(reads.series)
    reminders = _reading(webhooks.listed, internal=True)
    _scopes = _reading(tokens.scopes_of, internal=True)
    tokens = _reading(tokens.listed, internal=True)
    export = _reading(reads.export)
    verify_page = _reading(verify.verify_page)
    verify = _reading(verify.verify)
    _head = _reading(reads.head)
    _view = _reading(reads.experiment)
    _model = _reading(reads.learned)

    def __init__(self, database: Database) -> None:
        """Wrap a database that is locked and whose tables are up to date."""
        self.now: Callable[[], str] = utc_now
        self._database = database
        self._writer = Writer(database, lambda: self.now())
        # The scopes of valid tokens, by their hashes, and when they were looked up.
        self._recent: dict[str, tuple[frozenset[str], float]] = {}
        self._view_at = lru_cache(MOST_READ)(lambda id, _head: self._view(id))
        self._model_at = lru_cache(MOST_READ)(lambda id, _head: self._model(id))

    @cached_property
    def webhooks(self) -> tuple[str, ...]:
        """The names of the webhooks that the operator allows for reminders, from the configuration."""
        # Imported here because it is rarely needed.
        from aftereffect.service.config import Config

        return tuple(checked(Config, {}, "the configuration").webhooks)

    @classmethod
    def open(cls, url: str = "sqlite:///aftereffect.db", *, wait: float = 10.0, address: str | None = None) -> Self:
        """Open a store; create it if it does not exist, and upgrade its tables.

        url: sqlite:///PATH or postgresql://... wait: seconds to wait if another process has locked the SQLite file.
        address: the URL of the server that opens the store, published beside the file for other processes. A read-only
        SQLite file is opened for reading, and every write is refused; with an address it is not opened.
        """
        database = Database(url)
        file = database.file
        read_only = file is not None and file.read_only and address is None
        try:
            with refusing():
                if file is not None:
                    schema.check_file(file.path)
                    if not read_only:
                        file.lock(wait, address)
                schema.upgrade(database.reading if read_only else database.writing, read_only=read_only)
                # This leaves a reader open, which the close of an overwritten file needs.
                database.check()
                if file is not None and not read_only:
                    file.connected()
            return cls(database)
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """Complete all submitted work, then close connections and release the lock."""
        self._writer.close()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create(self, settings: Mapping[str, Any] | ExperimentSettings, *, key: str | None = None) -> Overview:
        """Create an experiment, running unless `draft` is set; return its view with its id.

        key: an idempotency key (`keys.py`), here and in other methods.
        """
        new = checked_settings(settings)
        return self._made(key, new, None, "create", new.to_json())

    def perform(self, id: str, command: Action | Once) -> Fields:
        """Carry out one command and return its answer, or raise Refused."""
        return _only(self.perform_many([(id, command)]))

    def perform_many(self, items: Iterable[Item]) -> list[Answer]:
        """Carry out commands in order; the answer to a command that is refused is a Refused."""
        answers: list[Answer] = self._writer.submit(Job(list(items))).result()
        return answers

    def change(self, id: str, command: Command) -> Overview:
        """Carry out a command on the whole experiment and return its view."""
        self.perform(id, command)
        return self.experiment(id)

    def report(self, id: str, reports: Reports, *, key: str | None = None) -> Fields:
        """Report several rounds, all or none."""
        return self._once(key, id, reports, "report", id, reports)

    def correct(self, id: str, changes: Mapping[str, Any] | ExperimentSettings, *, key: str | None = None) -> Overview:
        """Create an experiment that inherits the rounds and the reminder of another, and finish the other one.

        changes: the settings that differ from those of the other, or all settings.
        """
        if isinstance(changes, ExperimentSettings):
            return self._made(key, changes, id, "correct", id, changes.to_json())
        return self._made(key, corrected(self.experiment(id), changes), id, "correct", id, dict(changes))

    def continue_with(
        self,
        id: str,
        add: Sequence[str] = (),
        retire: Sequence[str] = (),
        changes: Mapping[str, Any] = MappingProxyType({}),
        *,
        key: str | None = None,
    ) -> Overview:
        """Create an experiment with other arms that begins with what this one has measured, and finish this one."""
        request = "continue", id, list(add), list(retire), dict(changes)
        return self._made(key, continued(self.experiment(id), add, retire, changes), id, *request)

    def _made(self, key: str | None, settings: ExperimentSettings, source: str | None, *request: Any) -> Overview:
        """Create an experiment, once with a key. source: the experiment that it takes the place of."""
        seeded, finish = settings.seeded(secrets.randbits(53)), source is not None
        if source is None and seeded.warm_start is not None:
            source = seeded.warm_start.experiment
        id = "".join(secrets.choice(_CHARACTERS) for _ in range(20))
        return Overview.read(self._once(key, id, Creation(seeded, source, finish), *request))

    def _once(self, key: str | None, id: str, action: Action, *request: Any) -> Fields:
        """Carry out an action unless a request with this key has been; then answer as it was answered."""
        return self.perform(id, action if key is None else Once(*keys.hashed(key, *request), action))

    async def aperform(self, id: str, command: Action) -> Fields:
        """As `perform`, for an event loop."""
        return _only(await self.aperform_many([(id, command)]))

    async def aperform_many(self, items: Iterable[Item]) -> list[Answer]:
        """As `perform_many`, for an event loop."""
        future = asyncio.get_running_loop().create_future()
        answers: list[Answer] = await self._writer.submit(Job(list(items), future))
        return answers

    def compare(self, ids: Sequence[str]) -> list[Comparison]:
        """Return the most important figures of some experiments, in order."""
        if not 1 <= len(ids) <= MOST_COMPARED:
            raise Refused("invalid", f"ids must be 1 to {MOST_COMPARED} experiments, but got {len(ids)}")
        return [comparison(self.experiment(id), self.learned(id)) for id in ids]

    def experiment(self, id: str) -> Overview:
        """Return the view of an experiment after its last commit; made again only if the experiment has changed."""
        return self._view_at(id, self._head(id))

    def learned(self, id: str) -> Learned:
        """Return what the rounds so far say about the arms; made again only if the experiment has changed."""
        return self._model_at(id, self._head(id))

    def backup(self, path: str | Path) -> None:
        """Write the current contents of the store to a new SQLite file."""
        backup.backup(self._database, path)

    def create_token(self, name: str, scopes: Iterable[str], *, key: str | None = None) -> str:
        """Create a token with these scopes and return it; it cannot be read again."""
        new = checked(NewToken, {"name": name, "scopes": scopes}, "a token")
        secret = key or secrets.token_urlsafe(32)
        act = partial(tokens.create, name=new.name, scopes=[*new.scopes], key=secret, now=self.now())
        made = self._once(key, "", act, "create_token", new.name, new.scopes)
        self._recent.clear()
        return tokens.derived(secret, made["salt"])

    def revoke_token(self, id: str) -> None:
        """Revoke a token; takes effect at once here, within a second in other processes."""
        self.perform("", partial(tokens.revoke, identity=id, now=self.now()))
        self._recent.clear()

    def remind(self, id: str, webhook: str | None, after: float = 0.0) -> None:
        """Set the reminder of an experiment: which webhook to call so many days after a round; None for none."""
        self.perform("", partial(webhooks.change, identity=id, webhook=webhook, after=after))

    def change_reminder(self, known: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
        """Change a reminder, unless it is no longer as known; return whether it was changed."""
        return bool(self.perform("", partial(webhooks.attempt, known=known, values=values))["claimed"])

    def scopes_of(self, token: str) -> frozenset[str] | None:
        """Return the scopes of a token, None if it is unknown or revoked."""
        began, found = time.monotonic(), self.recent_scopes_of(token)
        if found is None:
            found = self._scopes(token)
            if found is not None:
                self._recent[tokens.hashed(token)] = found, began
        return found

    def recent_scopes_of(self, token: str) -> frozenset[str] | None:
        """Return the scopes of a token if they were looked up in the last second, without waiting for the database."""
        scopes, at = self._recent.get(tokens.hashed(token), (None, 0.0))
        return scopes if time.monotonic() - at < REMEMBERED_S else None

    def check_health(self) -> None:
        """Raise Refused unless the database can be read and written; damaged experiments are not reported here.

        A test write goes through the writer and is synced to disk like any other, unless another one was just now.
        """
        with refusing():
            self._database.check()
        if time.monotonic() - self._database.kept_at < HEALTH_S:
            return
        try:
            _only(self._writer.submit(Job([("", trial)])).result(TRIAL_S))
        except TimeoutError:
            raise Refused("busy", f"the store has not finished a write for {TRIAL_S:g} s") from None

    def status(self) -> Status:
        """Return how the writer is doing."""
        file, damaged = self._database.file, sorted(self._writer.damaged)
        return Status(self._writer.waiting, self._database.commit_s, 0 if file is None else file.log_bytes, damaged)


def _only(answers: list[Answer]) -> Fields:
    (answer,) = answers
    if isinstance(answer, Refused):
        raise answer
    return answer
