"""One process writes a SQLite file: whoever holds the lock on the file beside it.

The lock is the operating system's (flock), so it goes when its holder dies, however it dies. The file's text
says who holds it, with the address of the server when a server does, so that others can talk to it instead.
The text means nothing while nobody holds the lock.
"""

import contextlib
import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

from aftereffect.service.errors import Refused

PAUSE = 0.05


def lock_path(database: Path) -> Path:
    """Return the lock file of a database file."""
    return database.with_name(database.name + ".lock")


class FileLock:
    """The lock on one SQLite file, held from `take` to `release`."""

    def __init__(self, database: Path) -> None:
        """Prepare to lock the file beside `database`."""
        self.path = lock_path(database)
        self._file: int | None = None

    def take(self, wait: float, address: str | None = None) -> None:
        """Take the lock within `wait` seconds, or say who has it."""
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise Refused(
                "busy", f"store must be in a folder that can be written to, but {self.path}: {error.strerror}"
            ) from None
        # At least two tries: somebody who only looks holds the lock for an instant.
        patience = time.monotonic() + max(wait, 2 * PAUSE)
        while not _try(file, fcntl.LOCK_EX):
            if time.monotonic() >= patience:
                os.close(file)
                raise _busy(self.path, wait)
            time.sleep(PAUSE)
        text = json.dumps({"pid": os.getpid(), "address": address}).encode()
        # A full disk must not keep anybody from reading: without its text the lock is still a lock.
        with contextlib.suppress(OSError):
            os.ftruncate(file, 0)
            os.pwrite(file, text, 0)
        self._file = file

    def release(self) -> None:
        """Let the next one in; the file stays, since removing it would let two in at once."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None


def holder(database: Path) -> dict[str, Any] | None:
    """Return {"pid", "address"} of who holds the lock of a SQLite file, or None when nobody does."""
    path = lock_path(database)
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _try(file, fcntl.LOCK_SH) else _text(path)
    finally:
        os.close(file)


def _try(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _text(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {"pid": None, "address": None}
    with contextlib.suppress(OSError, ValueError):
        read = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(read, dict):
            found |= {name: read.get(name) for name in found}
    return found


def _busy(path: Path, wait: float) -> Refused:
    who = _text(path)
    if who["address"]:
        by = f"the server at {who['address']} (process {who['pid']}): talk to it instead"
    elif who["pid"]:
        by = f"process {who['pid']}"
    else:
        by = "another process"
    return Refused("busy", f"store is in use by {by} (waited {wait:g} s)", address=who["address"], pid=who["pid"])
