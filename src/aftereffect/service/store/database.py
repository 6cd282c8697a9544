"""Connections to the database of a store, its transactions, and the translation of database errors.

There is one engine for writes, one for the reads of requests, and a small one for reads that must not wait for those:
the writer's own, and tokens.

SQLite uses a write-ahead log with `synchronous=FULL`, so that a commit is synced to disk when it returns. Writes begin
with BEGIN IMMEDIATE; readers see the last commit and do not block writes. Only the writing connection moves the log
into the file. On PostgreSQL commits are synchronous, whatever the server's default, and waits for locks have a timeout.
"""

import math
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, select
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, SQLAlchemyError

from aftereffect.core.errors import AftereffectError
from aftereffect.service.errors import Corrupt, Refused
from aftereffect.service.store import schema
from aftereffect.service.store.sqlite_file import LOG_LIMIT, SqliteFile, Unwritable

PATIENCE_S = 10
"""Seconds to wait for a connection from the pool, or for a row that another process has locked."""
READERS, INTERNAL_READERS = 20, 8
"""How many connections read at a time: for requests; for the writer and for tokens."""
PRAGMAS = (
    *("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=0", "foreign_keys=ON"),
    *("cache_size=-65536", "cache_spill=OFF", f"journal_size_limit={LOG_LIMIT}"),
)
"""How the connection that writes to SQLite is set up: nothing goes into the log before the commit."""
POSTGRES_OPTIONS = (
    f"-c synchronous_commit=on -c lock_timeout={PATIENCE_S}s -c idle_in_transaction_session_timeout={3 * PATIENCE_S}s"
)
_UNKNOWN = "it is not known whether this was kept; ask and tell again: to repeat them is safe"
# Prefixes of SQLite's error names and PostgreSQL's error codes, with their meaning; the first match counts. After a
# failed sync it is unknown whether the data was stored; after the other errors it was not.
_MEANINGS = (
    (("SQLITE_CORRUPT", "SQLITE_NOTADB", "XX", "Could not decode"), "corrupt", "the store's file is damaged"),
    (("SQLITE_ERROR",), "corrupt", "the store's tables are not what they should be"),
    (("SQLITE_CANTOPEN", "SQLITE_READONLY"), "busy", "the store's file cannot be opened or written to"),
    (("SQLITE_IOERR_FSYNC", "SQLITE_IOERR_DIR_FSYNC"), "full", f"the store could not write, {_UNKNOWN}"),
    # A quota or a limit is the same to a user as a full disk. PostgreSQL: disk full, out of memory, limit exceeded.
    (("SQLITE_FULL", "SQLITE_IOERR", "53100", "53200", "53400"), "full", "the store could not write, nothing was kept"),
)
# Deadlock, serialization failure: nothing was stored, and a retry may succeed.
_PG_AGAIN = ("40P01", "40001")
UNREADABLE = (SQLAlchemyError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What reading damaged data raises: its values can be of any type."""
# Errors of some rows, not of the database as a whole.
_OF_ROWS = ("SQLITE_CORRUPT", "SQLITE_IOERR_READ", "SQLITE_IOERR_SHORT_READ", "XX")


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
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername != "sqlite":
        raise Refused("invalid", f"store must be sqlite:///PATH or postgresql://..., but got {url.drivername}://...")
    if not url.database or url.database == ":memory:" or url.query:
        raise Refused("invalid", f"store must be a plain file when it is SQLite, but got {url}")
    return url


class Database:
    """The database of a store. file: its SQLite file, None on PostgreSQL.

    kept_at, commit_s: the time of the last commit (`time.monotonic`) and its duration in seconds.
    """

    def __init__(self, address: str) -> None:
        url = checked_url(address)
        self.file = SqliteFile(Path(url.database or "").resolve()) if url.drivername == "sqlite" else None
        self.kept_at, self.commit_s = -math.inf, 0.0
        self.writing, self.reading, self.internal = (
            _postgres(url, readers) if self.file is None else _sqlite(self.file, readers)
            for readers in (0, READERS, INTERNAL_READERS)
        )

    @contextmanager
    def transaction(self) -> Iterator["Transaction"]:
        """Run a block as a transaction: when it ends without an error, its changes have been synced to disk.

        After an error in the commit, either all changes are stored or none. If `rows` is still 0 at the end, nothing is
        committed, which saves a sync.
        """
        with self.writing.connect() as connection:
            transaction, committing = Transaction(connection), False
            try:
                yield transaction
                began = time.monotonic()
                if self.file is not None:
                    self.file.check()
                if transaction.rows:
                    committing = True
                    connection.commit()
                    if self.file is not None:
                        self.file.check(log_written=True)
                        self.file.rows += transaction.rows
                    self.kept_at = time.monotonic()
                    self.commit_s = self.kept_at - began
            except SQLAlchemyError:
                if self.file is not None:
                    # If the file is lost, say so, and keep the connection: it has the log open.
                    self.file.check(log_written=committing)
                # The next transaction gets a new connection.
                connection.invalidate()
                raise

    def check(self) -> None:
        """Raise an error unless the database can be read; uses connections that requests cannot exhaust."""
        if self.file is not None:
            self.file.check(names_only=True)
        with self.internal.connect() as connection:
            connection.execute(select(schema.versions))

    def close(self) -> None:
        """Close all connections, the writing one last: the last one to close moves the log into the file, if it may."""
        engines = (self.internal, self.reading, self.writing)
        for engine in reversed(engines) if self.file is not None and self.file.overwritten else engines:
            engine.dispose()
        if self.file is not None:
            self.file.release()


@dataclass
class Transaction:
    """A transaction on the writing connection. rows: the number of rows it changes."""

    connection: Connection
    rows: int = 0


def _sqlite(file: SqliteFile, readers: int) -> Engine:
    """Return an engine for a SQLite file. readers: the number of reading connections; 0 for the writing engine."""
    arguments: Any = {"check_same_thread": False, "timeout": PATIENCE_S, "isolation_level": None}
    engine = create_engine(URL.create("sqlite", database=str(file.path)), paramstyle="named", **_pool(readers))

    @event.listens_for(engine, "do_connect")
    def _connect(*_: object) -> sqlite3.Connection:
        if file.read_only and not readers:
            where = f"the store {str(file.path)!r}"
            raise Unwritable(f"{where} can only be read, nothing was kept: it, or its folder, is read-only")
        # A new connection must open the same file as the first one.
        file.check(names_only=True)
        where = file.read_only_uri() if readers else file.path.as_uri()
        connection: sqlite3.Connection = sqlite3.connect(where, uri=True, **arguments)
        if not readers:
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
        # SQLite's own changes ASCII letters only.
        connection.create_function("lower", 1, lambda text: text.lower() if isinstance(text, str) else text)
        # To read anything opens the log too.
        connection.execute("SELECT 1 FROM sqlite_master").fetchall()
        if not readers:
            file.connected()
        return connection

    # Begin explicitly: the driver would not begin a transaction for reads and changes of tables.
    begin = "BEGIN" if readers else "BEGIN IMMEDIATE"
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    if not readers:
        event.listen(engine, "close", lambda *_: file.closed())
    return engine


def _postgres(url: URL, readers: int) -> Engine:
    options = {"options": POSTGRES_OPTIONS, "connect_timeout": PATIENCE_S, "application_name": "aftereffect"}
    level: Any = {"isolation_level": "REPEATABLE READ"} if readers else {}
    return create_engine(url, connect_args=options, pool_pre_ping=True, **_pool(readers), **level)


def _pool(readers: int) -> dict[str, Any]:
    return {"pool_size": readers or 1, "max_overflow": 0, "pool_timeout": PATIENCE_S}


def refusal(error: Exception, *, committing: bool = False) -> Refused:
    """Return what to answer when the database failed, or the stored data cannot be read; nothing was acknowledged.

    committing: the commit was sent, so a database that is gone may have kept what it did not answer for.
    """
    if isinstance(error, Refused):
        return error
    if isinstance(error, Unwritable):
        return Refused("busy", str(error))
    if not isinstance(error, SQLAlchemyError):
        return Corrupt(f"the stored data cannot be read: {str(error)[:200]}")
    said = " ".join(str(getattr(error, "orig", None) or error).split())[:200]
    if isinstance(error, IntegrityError):
        return Corrupt(f"the store already holds another event or row at this place (run verify): {said}")
    name = _name_of(error) or said
    for names, code, words in _MEANINGS:
        if name.startswith(names):
            return Refused(code, f"{words}: {said}") if code != "corrupt" else Corrupt(f"{words}: {said}")
    if committing:
        return Refused("busy", f"the store did not answer the commit, {_UNKNOWN}: {said}")
    return Refused("busy", f"the store did not answer, try again: {said}")


def of_one_experiment(error: Exception) -> bool:
    """Say whether an error comes from the rows that were read or written, not from the database as a whole."""
    if isinstance(error, IntegrityError | DataError) or not isinstance(error, SQLAlchemyError):
        return True
    # An error of SQLite's driver itself, about a value that it cannot read, has no name.
    name = _name_of(error)
    return name.startswith(_OF_ROWS) if name else isinstance(getattr(error, "orig", None), sqlite3.Error)


def worth_another_try(error: Exception) -> bool:
    """Say whether a transaction that has not reached its commit may simply be run again on a new connection."""
    return (isinstance(error, DBAPIError) and error.connection_invalidated) or _name_of(error) in _PG_AGAIN


def _name_of(error: Exception) -> str:
    """Return SQLite's name or PostgreSQL's code of an error, "" if it has none."""
    cause = getattr(error, "orig", None)
    return getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or ""


@contextmanager
def refusing() -> Iterator[None]:
    """Turn errors of the database, and of reading damaged data, into refusals."""
    try:
        yield
    except AftereffectError:
        raise
    except UNREADABLE as error:
        raise refusal(error) from error
