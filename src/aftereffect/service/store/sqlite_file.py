"""A SQLite file: its lock, checks that it is still the same file, WAL checkpoints.

Lock. Only the process that holds `flock` on the database file writes to it. The lock belongs to the inode, so a hard
link is the same store, and it is released when the process ends, even if it is killed. Closing any descriptor of a file
drops all POSIX locks that the process has on it, including SQLite's. So a process has one descriptor per inode: opened
before SQLite opens the file, and closed after SQLite has closed it. A small file beside the database has the process id
of the lock's holder, and its address if it is a server. It is used only while the lock is held, and only if the file's
owner is trusted.

Identity. A file that is removed or replaced while it is open goes on taking writes that nobody finds again, and a
database that is overwritten in place no longer fits its log, nor an overwritten log its database. So names, sizes and
modification times of both are compared around every commit: only this process writes to them, commits to the log and
checkpoints to the database. Once a file was found to be changed, nothing is acknowledged until the store is opened
again, and the log of an overwritten store is left as it is. A log that another program has SQLite move into the file
(`PRAGMA wal_checkpoint`) counts as a change too, although nothing is lost by it.

Read-only files. SQLite creates files beside a database even to read it. If it cannot, the file is opened as
`immutable`, which is correct while there is no log beside it and this process has a shared lock.
"""

import contextlib
import fcntl
import json
import logging
import os
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from aftereffect.service.errors import Refused

PAUSE = 0.05
NOTICE_S = 2.0
"""After waiting this many seconds for a lock, a warning names its holder."""
LOG_LIMIT = 2**26
"""A longer log is truncated to this many bytes when it is overwritten from its start."""

_log = logging.getLogger(__name__)
_EFFECTIVE = os.access in os.supports_effective_ids
# The (device, inode) pairs that this process has locked.
_locked: set[tuple[int, int]] = set()
_guard = threading.Lock()


class Unwritable(SQLAlchemyError):
    """The store cannot be written to, for a reason that the database itself does not report."""


class SqliteFile:
    """One database file. `path` must have no symbolic links: a link may come to point elsewhere.

    read_only: the file is there, but cannot be written to, or nothing can be created beside it. rows: how many were
    committed to the log since it was last moved into the file. overwritten: by another program.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.rows, self.overwritten = path, 0, False
        self.read_only = path.exists() and not all(
            os.access(each, os.W_OK, effective_ids=_EFFECTIVE) for each in (path, path.parent)
        )
        self._names = [str(path), f"{path}-wal", f"{path}-shm"]
        self._descriptor: int | None = None
        self._inode: tuple[int, int] | None = None
        self._seen: list[tuple[int, int, int, int]] = []
        self._connected = False
        self._lost: str | None = None

    def lock(self, wait: float, address: str | None = None) -> None:
        """Take the lock within `wait` seconds, or raise Refused with its holder; create the file if it does not exist.

        address: the server's address, if a server takes the lock.
        """
        began, noticed = time.monotonic(), False
        while not self._try_lock():
            waited, found = time.monotonic() - began, _told(self.path)
            by = f"process {found['pid']}" if found["pid"] else "another process"
            if found["address"]:
                by = f"the server at {found['address']} ({by})"
            # At least two attempts, because `holder` in another process takes the lock for an instant.
            if waited >= max(wait, 2 * PAUSE):
                by += ": talk to it instead" if found["address"] else ""
                raise Refused("busy", f"store is in use by {by} (waited {wait:g} s)", **found)
            if waited >= NOTICE_S and not noticed:
                noticed = True
                _log.warning("store is in use by %s; waiting up to %g s", by, wait)
            time.sleep(PAUSE)
        # The lock holds without this file, so a failed write is ignored: a full disk must not prevent reading.
        with contextlib.suppress(OSError):
            holder_path(self.path).unlink(missing_ok=True)
            with open(holder_path(self.path), "x", encoding="utf-8", opener=_open) as file:
                json.dump({"pid": os.getpid(), "address": address}, file)

    def _try_lock(self) -> bool:
        with _guard:
            if _stat(self.path)[:2] in _locked:
                return False
            try:
                # Created with mode 0600; SQLite gives the files beside it the same mode.
                descriptor = _open(self.path, os.O_RDWR | os.O_CREAT)
            except OSError as error:
                rule = "store must be in a folder that can be written to"
                raise Refused("busy", f"{rule}, but {self.path}: {error.strerror}") from None
            inode = os.fstat(descriptor).st_dev, os.fstat(descriptor).st_ino
            # The file may have been replaced since it was opened.
            if not _flock(descriptor, fcntl.LOCK_EX) or _stat(self.path)[:2] != inode:
                os.close(descriptor)
                return False
            self._descriptor, self._inode = descriptor, inode
            _locked.add(inode)
            return True

    def release(self) -> None:
        """Release the lock, after all connections to the file have been closed."""
        with _guard:
            if self._inode is not None:
                _locked.discard(self._inode)
                with contextlib.suppress(OSError):
                    holder_path(self.path).unlink()
            if self._descriptor is not None:
                os.close(self._descriptor)
            self._descriptor = self._inode = None

    def read_only_uri(self) -> str:
        """Return the URI for reading the file; if it cannot be written to, also take a shared lock against writers."""
        with _guard, contextlib.suppress(OSError):
            if self.read_only and self._descriptor is None and _stat(self.path)[:2] not in _locked:
                descriptor = _open(self.path, os.O_RDONLY)
                if _flock(descriptor, fcntl.LOCK_SH):
                    self._descriptor = descriptor
                else:
                    os.close(descriptor)
        log, index = (Path(name) for name in self._names[1:])
        unchanging = self._descriptor is not None and not self.log_bytes and not (log.exists() and index.exists())
        return f"{self.path.as_uri()}?mode=ro" + ("&immutable=1" if self.read_only and unchanging else "")

    def connected(self) -> None:
        """Note the files: the writing connection has been opened, or has created or upgraded the tables."""
        self._seen, self._connected = [_stat(name) for name in self._names], True

    def closed(self) -> None:
        """Note that the connection that writes is closed: the last one to close removes log and index."""
        self._connected = False

    def check(self, *, names_only: bool = False, log_written: bool = False) -> None:
        """Raise Unwritable if the names are those of other files than the ones that are open, or one was overwritten.

        names_only: for other threads than the one that writes. log_written: this process may have written to the log
        since the last check.
        """
        for place, before in enumerate(self._seen if self._connected else self._seen[:1]):
            name, now = self._names[place], _stat(self._names[place])
            own = names_only or place == 2 or (log_written and place == 1 and now[2] >= min(before[2], LOG_LIMIT))
            if self._lost is None and now[:2] != before[:2]:
                self._lost = f"{name!r} was removed or replaced"
            elif self._lost is None and self._connected and not own and now != before:
                self._lost = f"{name!r} was written over or touched"
                self.overwritten = True
        if self._lost is not None:
            outcome = "it is not known whether this was kept" if log_written else "nothing was kept"
            raise Unwritable(
                f"the store's file {self._lost} while it was open: {outcome}; "
                "stop what has it open, put the store in order (verify it), and start again"
            )
        if log_written:
            self._note(1)

    def _note(self, place: int) -> None:
        """Note the size and time of a file that this process has written to."""
        # Set to the nanosecond: a file system's clock is coarser, and may give a foreign write the same time as ours.
        with contextlib.suppress(OSError):
            os.utime(self._names[place], ns=(time.time_ns(),) * 2)
        self._seen[place] = _stat(self._names[place])

    @property
    def log_bytes(self) -> int:
        """The size of the log."""
        return _stat(self._names[1])[2]

    def checkpoint(self, writing: Engine) -> None:
        """Move the log into the database file, as far as readers allow. Called by the writer between transactions.

        The log is overwritten from its start only after all of it has been moved, with no commit in between.
        """
        self.rows = 0
        try:
            self.check()
            connection = writing.raw_connection()
            try:
                connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                self._note(0)
                connection.close()
        except (SQLAlchemyError, sqlite3.Error) as error:
            # A failure (for example a full disk) only postpones this.
            _log.warning("the log could not be moved into the file yet: %s", error)


def holder_path(database: Path) -> Path:
    """Return the path of the file that names the holder of a database file's lock."""
    return database.with_name(database.name + ".holder")


def holder(database: Path) -> dict[str, Any] | None:
    """Return {"pid", "address"} of the process that holds the lock of a SQLite file, None if it is not locked.

    Both are None if they are unknown, or if the holder file belongs to another user: clients send a token to the
    address, so it must be trusted.
    """
    with _guard:
        if _stat(database)[:2] not in _locked:
            try:
                with open(database, "rb", opener=_open) as file:
                    if _flock(file.fileno(), fcntl.LOCK_SH):
                        return None
            except OSError:
                return None
    return _told(database)


def _told(database: Path) -> dict[str, Any]:
    found: dict[str, Any] = {"pid": None, "address": None}
    with contextlib.suppress(OSError, ValueError), open(holder_path(database), "rb", opener=_open) as file:
        read = json.loads(file.read(65_536))
        if isinstance(read, dict) and _trusted(file.fileno(), database):
            found |= {name: read.get(name) for name in found}
    return found


def owner(descriptor: int) -> int:
    """Return the user id of an open file's owner."""
    return os.fstat(descriptor).st_uid


def _trusted(descriptor: int, database: Path) -> bool:
    """Return whether a file belongs to this user, to root, or to the owner of the database."""
    return owner(descriptor) in {os.geteuid(), 0, database.stat().st_uid}


def _flock(descriptor: int, kind: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        return True
    return False


def _open(path: str | Path, flags: int) -> int:
    """Open a file without following a link; the descriptor is above 2, even if a standard stream is closed."""
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    if descriptor > 2:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(descriptor)


def _stat(name: str | Path) -> tuple[int, int, int, int]:
    """Return device, inode, size and modification time (ns) of a file; zeros if it does not exist."""
    with contextlib.suppress(OSError):
        found = os.stat(name)
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
    return 0, 0, 0, 0
