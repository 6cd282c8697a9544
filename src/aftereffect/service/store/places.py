"""From the address of a store to connections to it: one engine that writes, one that reads.

SQLite: write-ahead log with `synchronous=FULL`, so that a commit is on the disk when it returns; writes begin with
BEGIN IMMEDIATE; readers see the last commit and hold up nobody. Only the writing connection checkpoints the log.
PostgreSQL: commits wait for the disk whatever the server's default; a lock is waited for, but not for ever.
"""

import functools
import math
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import StaticPool

from aftereffect.service.errors import Refused
from aftereffect.service.store import statements
from aftereffect.service.store.dictation import Dictation, Script
from aftereffect.service.store.presence import Presence, Unwritable
from aftereffect.service.store.visiting import Visit, only_readable

PATIENCE_S = 10
"""How long PostgreSQL waits for a row that another process has locked."""
CACHE_KIB = 65_536
STATEMENTS = 256
"""How many statements a SQLite connection keeps ready; the writer has one for each number of rows up to 40."""
PRAGMAS = "journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=0"
"""How a connection to SQLite is set up."""
WRITING_PRAGMAS = ("page_size=8192", *PRAGMAS, "foreign_keys=ON", f"cache_size=-{CACHE_KIB}")
"""How one that writes is. A file keeps the size of page it was made with; with large ones a long list is less work."""
POOL = 16
_BEGIN = "BEGIN IMMEDIATE"
_DRIVER: dict[str, Any] = {"check_same_thread": False, "timeout": PATIENCE_S, "cached_statements": STATEMENTS}
_MANY: dict[str, Any] = {"pool_size": POOL, "max_overflow": POOL}
_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")
_OPTIONS = (
    f"-c synchronous_commit=on -c lock_timeout={PATIENCE_S}s -c idle_in_transaction_session_timeout={3 * PATIENCE_S}s"
)


def checked_url(address: str) -> URL:
    """Return the URL of a store; text without a scheme is the path of a SQLite file.

    >>> checked_url("shop.db").render_as_string()
    'sqlite:///shop.db'
    >>> checked_url("postgresql://db/shop").drivername
    'postgresql+psycopg'
    """
    try:
        url = make_url(address) if "://" in address else URL.create("sqlite", database=address)
    except (ArgumentError, ValueError):
        raise Refused("invalid", "store must be a path or the URL of a database, but got something else") from None
    if url.drivername in _POSTGRES:
        return url.set(drivername="postgresql+psycopg")
    if url.drivername != "sqlite":
        raise Refused("invalid", f"store must be sqlite:///PATH or postgresql://..., but got {url.drivername}://...")
    if not url.database or url.database == ":memory:" or url.query:
        raise Refused("invalid", f"store must be a plain file when it is SQLite, but got {url}")
    return url


def make_file(path: Path) -> None:
    """Make an empty file that its owner alone can read: a store holds what was earned, and tokens' hashes."""
    # O_EXCL follows no link. SQLite takes an empty file for a new database, and gives its companions the same mode.
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


class Place:
    """One store: its URL, the file it is in (SQLite only), an engine that reads and one that writes.

    visit: how a SQLite file is read that can only be read; None for all others, which can be written to.
    kept_at: when something was last kept, by the clock `time.monotonic`. dictation: the process that writes long lists
    to SQLite, if there is to be one.
    """

    def __init__(self, url: URL) -> None:
        """Connect to nothing yet."""
        self.url = url
        self.kept_at = -math.inf
        self.dictation: Dictation | None = None
        self.is_sqlite = url.drivername == "sqlite"
        self.file = Path(url.database or "").resolve() if self.is_sqlite else None
        self._presence = None if self.file is None else Presence(self.file)
        self.visit = None if self.file is None or not only_readable(self.file) else Visit(self.file)
        if self.file is not None:
            # By the path that the lock is at: a link may come to point elsewhere.
            url = url.set(database=str(self.file))
        if self._presence is None:
            self.reading = _postgres(url, isolation_level="REPEATABLE READ")
            self.writing = _postgres(url, pool_size=2)
        elif self.visit is None:
            self.reading = _sqlite(url, self._presence, reads=True)
            self.writing = _sqlite(url, self._presence, reads=False)
        else:
            self.reading, self.writing = _visited(url, self.visit), _unwritable(url)

    def make(self) -> None:
        """Make the file, if the store is one and it is not there; the caller holds its lock."""
        if self.file is not None and not self.file.exists():
            try:
                make_file(self.file)
            except OSError as error:
                raise Unwritable(f"the store's file cannot be made: {error}") from None

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Cursor]:
        """Write to SQLite past the toolkit, which takes longer than the database; the errors are the toolkit's.

        The transaction is on the disk when the block has ended, or not there at all.
        """
        connection = self.writing.raw_connection()
        try:
            cursor: Any = connection.cursor()
            cursor.execute(_BEGIN)
            yield cursor
            self._commit(connection.commit)
        except sqlite3.Error as error:
            raise self._translated(error) from error
        finally:
            # What was not committed is rolled back.
            connection.close()

    def have_dictation(self, lock: int) -> None:
        """Let long lists be written by a process of its own; lock: the open lock file, which it is to hold too."""
        if self.file is not None:
            templates = [statement.template for statement in statements.ALL]
            settings = {"pragmas": WRITING_PRAGMAS, "patience": PATIENCE_S, "ready": STATEMENTS}
            self.dictation = Dictation(self.file, lock, templates, **settings)

    def dictates(self) -> bool:
        """Whether there is a process that writes what it is told; one is started where there can be.

        This process's own connection is there beside it: what it has open is what is looked at around a commit.
        """
        if self.dictation is None:
            return False
        self.writing.raw_connection().close()
        self.check("nothing was kept")
        return self.dictation.start()

    def dictate(self, script: Script) -> None:
        """Do as `transaction` does, in a process of its own."""
        if self.dictation is None:
            raise RuntimeError("dictates must be true first")
        try:
            self._commit(functools.partial(self.dictation.keep, script))
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def _commit(self, commit: Callable[[], None]) -> None:
        self.check("nothing was kept")
        commit()
        self.check("it is not known whether this was kept")
        self.kept_at = time.monotonic()

    def _translated(self, error: sqlite3.Error) -> BaseException:
        return DBAPIError.instance(None, None, error, sqlite3.Error, dialect=self.writing.dialect)

    def changing(self) -> AbstractContextManager[None]:
        """Change the SQLite file itself inside, not its log."""
        return nullcontext() if self._presence is None else self._presence.changing()

    def check(self, outcome: str = "nothing is kept any more") -> None:
        """Raise Unwritable if what is open is no longer what is there; outcome: what that means for the caller."""
        if self._presence is not None:
            self._presence.check(outcome)

    def close(self) -> None:
        """Close all connections, the writing one last: whoever closes last moves the log into the file."""
        if self.dictation is not None:
            self.dictation.end()
        self.reading.dispose()
        self.writing.dispose()
        if self._presence is not None:
            self._presence.close()
        if self.visit is not None:
            self.visit.close()


def _sqlite(url: URL, presence: Presence, *, reads: bool) -> Engine:
    pool: dict[str, Any] = _MANY if reads else {"poolclass": StaticPool}
    engine = create_engine(url, connect_args=_DRIVER, **pool)
    begin = "BEGIN" if reads else _BEGIN

    @event.listens_for(engine, "do_connect")
    def _connecting(*_: object) -> None:
        presence.connecting()

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: object) -> None:
        # The driver's own idea of when a transaction begins would leave out reads and changes of tables.
        connection.isolation_level = None
        for pragma in (*PRAGMAS, "query_only=ON") if reads else WRITING_PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        if not reads:
            # To read anything opens the log too.
            connection.execute("SELECT 1 FROM sqlite_master").fetchall()
            presence.connected()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    if not reads:

        @event.listens_for(engine, "commit")
        def _commit(_: Connection) -> None:
            presence.check("nothing was kept")

        @event.listens_for(engine, "close")
        def _closed(*_: object) -> None:
            presence.closed()

    return engine


def _visited(url: URL, visit: Visit) -> Engine:
    """Return an engine that reads a file which cannot be written to."""
    engine = create_engine(url, **_MANY)

    @event.listens_for(engine, "do_connect")
    def _connect(*_: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = sqlite3.connect(visit.uri(), uri=True, isolation_level=None, **_DRIVER)
        return connection

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine


def _unwritable(url: URL) -> Engine:
    """Return an engine that refuses, in place of one that writes."""
    engine = create_engine(url)

    @event.listens_for(engine, "do_connect")
    def _refuse(*_: object) -> None:
        where = f"the store {url.database!r}"
        raise Unwritable(f"{where} can only be read, nothing was kept: it, or its folder, is read-only")

    return engine


def _postgres(url: URL, *, pool_size: int = POOL, **more: Any) -> Engine:
    options = {"options": _OPTIONS, "connect_timeout": PATIENCE_S, "application_name": "aftereffect"}
    pool: dict[str, Any] = {"pool_size": pool_size, "max_overflow": pool_size, "pool_timeout": PATIENCE_S}
    return create_engine(url, connect_args=options, pool_pre_ping=True, **pool, **more)
