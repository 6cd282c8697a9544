"""Backups: a consistent copy of a whole store in one SQLite file, made while the store is in use.

The file is itself a store: it can be opened, verified and copied. On PostgreSQL the tables are copied from one
snapshot. A backup can be restored to either database, so it also serves to move a store from one to the other.
"""

import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Connection, Table, func, insert, select
from sqlalchemy.exc import SQLAlchemyError

from aftereffect.service.errors import Corrupt, Refused
from aftereffect.service.store import schema
from aftereffect.service.store.database import Database, refusal

_PORTION = 2000
_NUMBERING = (
    "SELECT setval(pg_get_serial_sequence('experiments', 'number'), coalesce(max(number), 0) + 1, false) "
    "FROM experiments"
)


def backup(database: Database, path: str | Path) -> None:
    """Write a store to a new file. The file appears under its name only when it is complete and synced to disk."""
    target = Path(path).absolute()
    if target.exists():
        raise Refused("conflict", f"path must not exist yet, but {str(target)!r} does")
    if not target.parent.is_dir():
        raise Refused("not_found", f"path must be in an existing folder, but got {str(target)!r}")
    file = database.file
    if file is not None:
        schema.check_file(file.path)
    with _temporary(target, f"the backup could not be written to {str(target)!r}") as beside:
        if file is not None:
            _copy_file(file.read_only_uri(), beside)
        else:
            with database.reading.connect() as connection, closing(Database(str(beside))) as copy:
                _copy_tables(connection, copy)
        _sync(beside)
        # Not a rename, which would replace a file created in the meantime.
        os.link(beside, target)
        _sync(target.parent)


def restore_backup(source: str | Path, target: str, *, wait: float = 10.0, tokens: bool = True) -> None:
    """Restore a backup file into an empty store, a path or URL; refuse a store that has experiments.

    tokens: restore tokens too. A token that was revoked after the backup is then valid again.
    """
    origin = Path(source).absolute()
    if not origin.is_file():
        raise Refused("not_found", f"source must be a backup file, but there is no {str(origin)!r}")
    _check_backup(origin)
    with closing(Database(target)) as database:
        if database.file is not None:
            if database.file.path == origin.resolve():
                raise Refused("invalid", "target must be another file than source, but it is the same")
            schema.check_file(database.file.path)
            database.file.lock(wait)
        # The backup file is not modified: a copy of it is upgraded and read.
        beside = origin if database.file is None else database.file.path
        with _temporary(beside, "the backup could not be restored") as temporary:
            _copy_file(_uri(origin), temporary)
            with closing(Database(str(temporary))) as copy:
                schema.upgrade(copy.writing)
                with copy.reading.connect() as connection:
                    _copy_tables(connection, database, schema.TABLES if tokens else schema.TABLES[:-1])


@contextmanager
def _temporary(beside: Path, failure: str) -> Iterator[Path]:
    """Create an empty file with a random name beside another, and remove it afterwards."""
    path = beside.with_name(f".{beside.name}.{secrets.token_hex(8)}.tmp")
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        yield path
    except SQLAlchemyError as error:
        raise refusal(error) from None
    except (OSError, sqlite3.Error) as error:
        raise Refused("full", f"{failure}: {error}") from None
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)


def _check_backup(file: Path) -> None:
    try:
        with closing(sqlite3.connect(_uri(file), uri=True)) as connection:
            whole = connection.execute("PRAGMA integrity_check(1)").fetchone()
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error as error:
        raise Corrupt(f"source must be a backup file, but {str(file)!r} cannot be read: {error}") from None
    if whole != ("ok",) or not {table.name for table in schema.TABLES} <= tables:
        raise Corrupt(f"source must be an intact backup file, but {str(file)!r} is not")


def _uri(file: Path) -> str:
    return f"{file.as_uri()}?mode=ro"


def _copy_file(source: str, target: Path) -> None:
    """Copy a consistent snapshot of the SQLite database at a URI; in WAL mode this does not block writers."""
    with closing(sqlite3.connect(source, uri=True)) as origin, closing(sqlite3.connect(target)) as copy:
        origin.backup(copy)
        # A single file, without a write-ahead log beside it.
        copy.execute("PRAGMA journal_mode=DELETE")


def _copy_tables(origin: Connection, target: Database, tables: Sequence[Table] = schema.TABLES) -> None:
    """Copy all rows from a connection's snapshot into an empty store."""
    schema.upgrade(target.writing)
    with target.writing.begin() as connection:
        if target.file is not None:
            # All in one transaction may be more than the memory holds.
            connection.exec_driver_sql("PRAGMA cache_spill=ON")
        if connection.execute(select(func.count()).select_from(schema.experiments)).scalar():
            raise Refused("conflict", "target must be an empty store, but it has experiments")
        for table in tables:
            with origin.execution_options(yield_per=_PORTION).execute(select(table)) as found:
                for portion in found.mappings().partitions():
                    connection.execute(insert(table), [dict(row) for row in portion])
        if target.file is None:
            connection.exec_driver_sql(_NUMBERING)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
