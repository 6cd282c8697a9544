"""Backups: one SQLite file that holds a whole store as it was at one moment, taken while the store is in use.

The file is a store itself: it can be opened, verified, copied. From PostgreSQL it is filled table by table inside one
snapshot, and it can be restored to either database, so a backup is also the way from one to the other.
"""

import os
import secrets
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection, Table, func, insert, select
from sqlalchemy.exc import SQLAlchemyError

from aftereffect.service.errors import Corrupt, Refused
from aftereffect.service.store import migrating, schema
from aftereffect.service.store.locking import FileLock
from aftereffect.service.store.places import Place, checked_url, make_file
from aftereffect.service.store.troubles import refusal

_PORTION = 2000
_NUMBERING = (
    "SELECT setval(pg_get_serial_sequence('experiments', 'number'), coalesce(max(number), 0) + 1, false) "
    "FROM experiments"
)


def backup(place: Place, path: str | Path) -> None:
    """Write a store to a new file; it appears under its name only when all of it is on the disk."""
    target = Path(path).absolute()
    if target.exists():
        raise Refused("conflict", f"path must not exist yet, but {str(target)!r} does")
    if not target.parent.is_dir():
        raise Refused("not_found", f"path must be in a folder that is there, but got {str(target)!r}")
    if place.file is not None:
        migrating.look(place.file)
    beside = _beside(target)
    try:
        make_file(beside)
        if place.file is not None:
            _copy_file(_uri(place.file) if place.visit is None else place.visit.uri(), beside)
        else:
            with place.reading.connect() as connection:
                _copy_tables(connection, Place(checked_url(f"sqlite:///{beside}")))
        _sync(beside)
        # Not a rename, which would replace a file that has appeared meanwhile.
        os.link(beside, target)
        _sync(target.parent)
    except SQLAlchemyError as error:
        raise refusal(error) from None
    except (OSError, sqlite3.Error) as error:
        raise Refused("full", f"the backup could not be written to {str(target)!r}: {error}") from None
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            beside.with_name(beside.name + suffix).unlink(missing_ok=True)


def restore_backup(source: str | Path, target: str, *, wait: float = 10.0, tokens: bool = True) -> None:
    """Fill an empty store at the address `target` with a backup file; a store that holds experiments is left alone.

    tokens: whether they come back too, as they were: one that was revoked after the backup is valid again.
    """
    file = Path(source).absolute()
    if not file.is_file():
        raise Refused("not_found", f"source must be a backup file, but there is no {str(file)!r}")
    _check_backup(file)
    place = Place(checked_url(target))
    lock = None if place.file is None else FileLock(place.file)
    if place.file is not None and place.file == file.resolve():
        raise Refused("invalid", "target must be another file than source, but it is the same")
    if place.file is not None:
        migrating.look(place.file)
    # A backup is not touched: what is read, and brought up to date, is a copy.
    copy = _beside(place.file or file)
    try:
        if lock is not None:
            lock.take(wait)
        place.make()
        make_file(copy)
        _copy_file(_uri(file), copy)
        origin = Place(checked_url(f"sqlite:///{copy}"))
        try:
            migrating.upgrade(origin.writing)
            with origin.reading.connect() as connection:
                _copy_tables(connection, place, schema.TABLES if tokens else schema.TABLES[:-1])
        finally:
            origin.close()
    except SQLAlchemyError as error:
        raise refusal(error) from None
    except (OSError, sqlite3.Error) as error:
        raise Refused("full", f"the backup could not be restored: {error}") from None
    finally:
        place.close()
        if lock is not None:
            lock.release()
        for suffix in ("", "-wal", "-shm", "-journal"):
            copy.with_name(copy.name + suffix).unlink(missing_ok=True)


def _beside(target: Path) -> Path:
    """Return a name for a file on its way that nobody can have taken on purpose."""
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")


def _check_backup(file: Path) -> None:
    try:
        connection = sqlite3.connect(_uri(file), uri=True)
        try:
            whole = connection.execute("PRAGMA integrity_check(1)").fetchone()
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise Corrupt(f"source must be a backup file, but {str(file)!r} cannot be read: {error}") from None
    if whole != ("ok",) or not {table.name for table in schema.TABLES} <= tables:
        raise Corrupt(f"source must be a whole backup file, but {str(file)!r} is not")


def _uri(file: Path) -> str:
    return f"{file.as_uri()}?mode=ro"


def _copy_file(source: str, target: Path) -> None:
    """Copy the SQLite database at a URI at one moment; in its write-ahead log mode this holds up no writer."""
    origin = sqlite3.connect(source, uri=True)
    try:
        copy = sqlite3.connect(target)
        try:
            origin.backup(copy)
            # One plain file, whole without its companions.
            copy.execute("PRAGMA journal_mode=DELETE")
        finally:
            copy.close()
    finally:
        origin.close()


def _copy_tables(origin: Connection, place: Place, tables: Sequence[Table] = schema.TABLES) -> None:
    """Fill an empty store from a connection's snapshot."""
    migrating.upgrade(place.writing)
    with place.writing.begin() as connection:
        if connection.execute(select(func.count()).select_from(schema.experiments)).scalar():
            raise Refused("conflict", "target must be an empty store, but it holds experiments")
        for table in tables:
            with origin.execution_options(yield_per=_PORTION).execute(select(table)) as found:
                for portion in found.mappings().partitions():
                    connection.execute(insert(table), [dict(row) for row in portion])
        if not place.is_sqlite:
            connection.exec_driver_sql(_NUMBERING)
    place.close()


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
