"""A SQLite file: the lock that gives it one owner, checks that it is still the same file, WAL checkpoints.

Lock. One process writes a file: the one that holds `flock` on the database file itself. The lock belongs to the inode,
so a hard link is the same store, and it ends with its holder, however that ends. Closing any descriptor of a file drops
the POSIX locks that the process has on it, SQLite's too. So a process has one descriptor per inode: opened before
SQLite opens the file, and closed after SQLite has closed it. A small file beside the database says who holds the lock,
with the address if it is a server. It is believed only while the lock is held and only if its owner can be trusted.

Identity. A file that is removed or replaced while it is open goes on taking writes that nobody finds again, and one
that is overwritten in place no longer fits its log. So names, size, time and header are compared around every commit.
Only a checkpoint by this process changes the database file; everything else goes into the log. Once a file was found to
be changed, nothing is acknowledged until the store is opened anew.

Read-only files. SQLite wants to create files beside a database even to read it. Where it cannot, it is told that the
file does not change (`immutable`), which is true while no log lies beside it and this process shares the lock.
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
"""After so long, whoever waits for a lock is told who holds it."""
HEADER = 100
"""How many bytes the header of a SQLite file has."""
LOG_ROWS, LOG_ROWS_IDLE = 65_536, 4_096
"""After how many rows the log is moved into the file; sooner when nobody waits."""

Identity = tuple[int, int]

_log = logging.getLogger(__name__)
_EFFECTIVE = os.access in os.supports_effective_ids
# The inodes that this process has locked.
_locked: set[Identity] = set()
_guard = threading.Lock()


class Unwritable(SQLAlchemyError):
    """The store cannot be written to, for a reason that the database itself does not know."""


class SqliteFile:
    """One database file. `path` must have no symbolic links: a link may come to point elsewhere.

    read_only: the file is there, but cannot be written to, or nothing can be created beside it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read_only = path.exists() and not all(
            os.access(each, os.W_OK, effective_ids=_EFFECTIVE) for each in (path, path.parent)
        )
        self._names = [str(path), f"{path}-wal", f"{path}-shm"]
        self._descriptor: int | None = None
        self._inode: Identity | None = None
        self._seen: list[Identity | None] = []
        self._connected = False
        self._lost: str | None = None
        self._stamp: Identity | None = None
        self._header = b""
        self._rows = 0
        self._announced = False

    # -- the lock ---------------------------------------------------------------------------------------------------

    def lock(self, wait: float) -> None:
        """Take the lock within `wait` seconds, creating the file if there is none, or say who has it."""
        began, noticed = time.monotonic(), False
        while not self._try_lock():
            waited = time.monotonic() - began
            # At least two tries: whoever only asks for the holder has the lock for an instant.
            if waited >= max(wait, 2 * PAUSE):
                found = _told(self.path)
                by = _words(found) + (": talk to it instead" if found["address"] else "")
                raise Refused("busy", f"store is in use by {by} (waited {wait:g} s)", **found)
            if waited >= NOTICE_S and not noticed:
                noticed = True
                _log.warning("store is in use by %s; waiting up to %g s", _words(_told(self.path)), wait)
            time.sleep(PAUSE)

    def _try_lock(self) -> bool:
        with _guard:
            if _identity(self.path) in _locked:
                return False
            try:
                # Readable by its owner alone, as SQLite then makes the files beside it.
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except OSError as error:
                rule = "store must be in a folder that can be written to"
                raise Refused("busy", f"{rule}, but {self.path}: {error.strerror}") from None
            descriptor = _beyond_standard(descriptor)
            found = os.fstat(descriptor)
            inode = found.st_dev, found.st_ino
            # The file may have been replaced since it was opened.
            if not _flock(descriptor, fcntl.LOCK_EX) or _identity(self.path) != inode:
                os.close(descriptor)
                return False
            self._descriptor, self._inode = descriptor, inode
            _locked.add(inode)
            return True

    def announce(self, address: str | None) -> None:
        """Say beside the file who holds the lock; address: of the server, if it is one."""
        text = json.dumps({"pid": os.getpid(), "address": address}).encode()
        # The lock is one without this, too: a full disk must not keep anybody from reading.
        with contextlib.suppress(OSError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = _beyond_standard(os.open(holder_path(self.path), flags, 0o600))
            try:
                if _trusted(descriptor, self.path):
                    os.fchmod(descriptor, 0o600)
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, text, 0)
                    self._announced = True
            finally:
                os.close(descriptor)

    def release(self) -> None:
        """Let go of the lock, after all connections to the file have been closed."""
        with _guard:
            if self._inode is not None:
                _locked.discard(self._inode)
                if self._announced:
                    holder_path(self.path).unlink(missing_ok=True)
            if self._descriptor is not None:
                os.close(self._descriptor)
            self._descriptor = self._inode = None
            self._announced = False

    def read_only_uri(self) -> str:
        """Return how SQLite opens a file that cannot be written to; from here on no writer gets the lock."""
        log, index = (Path(name) for name in self._names[1:])
        alone = self._share() and (not log.exists() or (not log.stat().st_size and not index.exists()))
        return f"{self.path.as_uri()}?mode=ro" + ("&immutable=1" if alone else "")

    def _share(self) -> bool:
        """Share the lock with others who read; return whether nobody writes."""
        with _guard:
            if self._descriptor is None and _identity(self.path) not in _locked:
                with contextlib.suppress(OSError):
                    descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                    if _flock(descriptor, fcntl.LOCK_SH):
                        self._descriptor = descriptor
                    else:
                        os.close(descriptor)
            return self._descriptor is not None

    # -- identity ---------------------------------------------------------------------------------------------------

    def check_names(self, outcome: str = "nothing was kept") -> None:
        """Raise Unwritable if the names are those of other files than the ones that are open; for any thread."""
        seen = self._seen if self._connected else self._seen[:1]
        for name, identity in zip(self._names, seen, strict=False):
            if self._lost is None and _identity(name) != identity:
                self._lost = f"{name!r} was removed or replaced"
        self._raise_if_lost(outcome)

    def connected(self) -> None:
        """Note the files: the connection that writes has been made."""
        self._seen, self._connected = [_identity(name) for name in self._names], True
        self._note()

    def closed(self) -> None:
        """Note that the connection that writes is closed: the last one to close removes log and index."""
        self._connected = False

    def check(self, outcome: str) -> None:
        """Raise Unwritable if this is no longer the file that is open; outcome: what became of the transaction then.

        Called by the one thread that writes.
        """
        self.check_names(outcome)
        if self._connected and self._overwritten():
            self._lost = f"{self._names[0]!r} was written over, or its log was moved by another program,"
            self._raise_if_lost(outcome)

    def _raise_if_lost(self, outcome: str) -> None:
        if self._lost is not None:
            raise Unwritable(
                f"the store's file {self._lost} while it was open: {outcome}; "
                "stop what has it open, put the store in order (verify it), and start again"
            )

    def _overwritten(self) -> bool:
        stamp, before = _stamp(self._names[0]), self._stamp
        if before is None or stamp is None or stamp == before:
            return False
        # Somebody may have touched the file without changing it.
        if stamp[0] >= before[0] and self._first_bytes() == self._header:
            self._stamp = stamp
            return False
        return True

    def _note(self) -> None:
        self._stamp, self._header = _stamp(self._names[0]), self._first_bytes()

    def _first_bytes(self) -> bytes:
        try:
            return b"" if self._descriptor is None else os.pread(self._descriptor, HEADER, 0)
        except OSError:
            return b""

    # -- the write-ahead log ----------------------------------------------------------------------------------------

    def count(self, rows: int) -> None:
        """Note rows that were committed, to the log."""
        self._rows += rows

    @property
    def log_bytes(self) -> int:
        """The size of the log."""
        found = _stamp(self._names[1])
        return 0 if found is None else found[0]

    def checkpoint_due(self, *, idle: bool, quiet: bool = False) -> bool:
        """Whether the log should be moved into the file; idle: nobody waits; quiet: nobody has come for a while."""
        return self._rows >= (1 if quiet else LOG_ROWS_IDLE if idle else LOG_ROWS)

    def checkpoint(self, writing: Engine) -> None:
        """Move the log into the file, as far as readers allow. Called between two transactions by the one who writes.

        The log begins again at its start only when all of it has been moved and nothing came meanwhile.
        """
        self._rows = 0
        try:
            self.check("its log was not moved into it")
            connection = writing.raw_connection()
            try:
                connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                self._note()
                connection.close()
        except (SQLAlchemyError, sqlite3.Error) as error:
            # A full disk, say, only puts it off.
            _log.warning("the log could not be moved into the file yet: %s", error)


def holder_path(database: Path) -> Path:
    """Return the file that says who holds the lock of a database file."""
    return database.with_name(database.name + ".holder")


def holder(database: Path) -> dict[str, Any] | None:
    """Return {"pid", "address"} of who holds the lock of a SQLite file, None if nobody does.

    Both are None where that is not known, or said by a file that another user put there: whoever follows an address
    sends a token there.
    """
    with _guard:
        if _identity(database) not in _locked:
            try:
                descriptor = os.open(database, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            except OSError:
                return None
            try:
                if _flock(descriptor, fcntl.LOCK_SH):
                    return None
            finally:
                os.close(descriptor)
    return _told(database)


def _told(database: Path) -> dict[str, Any]:
    found: dict[str, Any] = {"pid": None, "address": None}
    with contextlib.suppress(OSError, ValueError):
        descriptor = os.open(holder_path(database), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            read = json.loads(os.pread(descriptor, 65_536, 0).decode("utf-8"))
            if isinstance(read, dict) and _trusted(descriptor, database):
                found |= {name: read.get(name) for name in found}
        finally:
            os.close(descriptor)
    return found


def _words(found: dict[str, Any]) -> str:
    if found["address"]:
        return f"the server at {found['address']} (process {found['pid']})"
    return f"process {found['pid']}" if found["pid"] else "another process"


def owner(descriptor: int) -> int:
    """Return the user id of an open file's owner."""
    return os.fstat(descriptor).st_uid


def _trusted(descriptor: int, database: Path) -> bool:
    """Say whether a file was made by this user, by root, or by whoever owns the database."""
    known = {os.geteuid(), 0}
    with contextlib.suppress(OSError):
        known.add(database.stat().st_uid)
    return owner(descriptor) in known


def _flock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _beyond_standard(descriptor: int) -> int:
    """Return a descriptor of the same file that is none of the standard streams, should one of them be closed."""
    if descriptor > 2:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(descriptor)


def _identity(name: str | Path) -> Identity | None:
    try:
        found = os.stat(name)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _stamp(name: str) -> tuple[int, int] | None:
    """Return size and time of a file; None where there is none."""
    try:
        found = os.stat(name)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
