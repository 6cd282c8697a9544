"""One process writes a SQLite file: whoever holds the lock on the file beside it.

The lock is the operating system's (flock), so it goes when its holder dies, however it dies. The file's text
says who holds it, with the address of the server when a server does, so that others can talk to it instead.
The text means nothing while nobody holds the lock, nor in a file that another user has put there.
"""

import contextlib
import fcntl
import json
import logging
import os
import time
from pathlib import Path
from typing import Any

from aftereffect.service.errors import Refused

PAUSE = 0.05
NOTICE_S = 2.0
"""After so long somebody who waits is told what for."""

_log = logging.getLogger(__name__)


def lock_path(database: Path) -> Path:
    """Return the lock file of a database file."""
    return database.with_name(database.name + ".lock")


class FileLock:
    """The lock on one SQLite file, held from `take` to `release`."""

    def __init__(self, database: Path) -> None:
        """Prepare to lock the file beside `database`."""
        self.path, self._database = lock_path(database), database
        self._file: int | None = None

    def take(self, wait: float, address: str | None = None) -> None:
        """Take the lock within `wait` seconds, or say who has it."""
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise Refused(
                "busy", f"store must be in a folder that can be written to, but {self.path}: {error.strerror}"
            ) from None
        file = beyond_standard(file)
        if not _trusted(file, self._database):
            os.close(file)
            raise Refused(
                "busy", f"the lock file {str(self.path)!r} must belong to you or to the database's owner, but does not"
            )
        with contextlib.suppress(OSError):
            os.fchmod(file, 0o600)
        # At least two tries: somebody who only looks holds the lock for an instant.
        began, noticed = time.monotonic(), False
        while not _try(file, fcntl.LOCK_EX):
            waited = time.monotonic() - began
            if waited >= max(wait, 2 * PAUSE):
                refusal = _busy(_text(file), wait)
                os.close(file)
                raise refusal
            if waited >= NOTICE_S and not noticed:
                noticed = True
                _log.warning("store is in use by %s; waiting up to %g s", _who(_text(file)), wait)
            time.sleep(PAUSE)
        text = json.dumps({"pid": os.getpid(), "address": address}).encode()
        # A full disk must not keep anybody from reading: without its text the lock is still a lock.
        with contextlib.suppress(OSError):
            os.ftruncate(file, 0)
            os.pwrite(file, text, 0)
        self._file = file

    @property
    def file(self) -> int:
        """The open lock file; whoever has it open too holds the lock too."""
        if self._file is None:
            raise RuntimeError("the lock is not held")
        return self._file

    def release(self) -> None:
        """Let the next one in; the file stays, since removing it would let two in at once."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None


def beyond_standard(file: int) -> int:
    """Return a descriptor of the same file that is none of the standard streams, which another process has its own of.

    It would be one of them if the stream is closed: the system gives the lowest number that is free.
    """
    if file > 2:
        return file
    try:
        return fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(file)


def holder(database: Path) -> dict[str, Any] | None:
    """Return {"pid", "address"} of who holds the lock of a SQLite file, or None when nobody does.

    Both are None where the lock file is somebody else's: whoever follows an address sends a token there.
    """
    try:
        file = os.open(lock_path(database), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if _try(file, fcntl.LOCK_SH):
            return None
        return _text(file) if _trusted(file, database) else {"pid": None, "address": None}
    finally:
        os.close(file)


def _try(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def owner(file: int) -> int:
    """Return the user id of an open file's owner."""
    return os.fstat(file).st_uid


def _trusted(file: int, database: Path) -> bool:
    """Say whether a lock file was made by this user, by root, or by whoever owns the database."""
    known = {os.geteuid(), 0}
    with contextlib.suppress(OSError):
        known.add(database.stat().st_uid)
    return owner(file) in known


def _text(file: int) -> dict[str, Any]:
    found: dict[str, Any] = {"pid": None, "address": None}
    with contextlib.suppress(OSError, ValueError):
        read = json.loads(os.pread(file, 65_536, 0).decode("utf-8"))
        if isinstance(read, dict):
            found |= {name: read.get(name) for name in found}
    return found


def _who(found: dict[str, Any]) -> str:
    if found["address"]:
        return f"the server at {found['address']} (process {found['pid']})"
    return f"process {found['pid']}" if found["pid"] else "another process"


def _busy(who: dict[str, Any], wait: float) -> Refused:
    by = _who(who) + (": talk to it instead" if who["address"] else "")
    return Refused("busy", f"store is in use by {by} (waited {wait:g} s)", address=who["address"], pid=who["pid"])
