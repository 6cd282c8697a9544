"""Whether the SQLite database that is open is still the file under its name.

A file that is removed or replaced while it is open goes on taking writes, without a name, and is gone with the
process: what was written there is on the disk, but nobody finds it again. One that is written over in its place, by
`cp` say, does not fit its log any more. So the files are looked at around every commit, before anybody hears "done".
What was once found amiss stays so until the store is opened anew: the connections, and the experiments in memory, are
those of the old file.

Only `Sweeper` changes the database file itself, everything else goes into its log. So its size and time are those after
the last sweep. Where they are not, its first bytes decide: somebody may have touched it and changed nothing.

These are read through one descriptor, opened before SQLite opens the file and closed after it has closed it. To close
any descriptor of a file drops all locks that the process has on it (POSIX), SQLite's too; and without them the next
one who only looks into the file would take himself for the last, and remove the log under the server.
"""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

COMPANIONS = ("-wal", "-shm")
"""The endings of the files that SQLite keeps beside a database while it is open."""

HEAD = 100
"""How many bytes the head of a SQLite file has."""

Identity = tuple[int, int] | None


class Unwritable(SQLAlchemyError):
    """The store cannot be written to, for a reason that the database itself does not know."""


class Presence:
    """The files of one open database as they were when the connection that writes was made."""

    def __init__(self, file: Path) -> None:
        """Know nothing yet."""
        self._names = [str(file), *(f"{file}{ending}" for ending in COMPANIONS)]
        self._file: int | None = None
        self._seen: list[Identity] | None = None
        self._connected = False
        self._lost: str | None = None
        self._stamp: tuple[int, int] | None = None
        self._head = b""
        # Odd while the file is being changed by its owner.
        self._turn = 0

    def connecting(self) -> None:
        """Before a connection is made: refuse where it would be to another file than the first was."""
        if self._seen is not None:
            self.check("nothing was kept")
        if self._file is None:
            with contextlib.suppress(OSError):
                self._file = os.open(self._names[0], os.O_RDONLY | os.O_CLOEXEC)

    def connected(self) -> None:
        """Take note of the files: the connection that writes has been made, and has them open."""
        self._seen, self._connected = [_identity(name) for name in self._names], True
        self._note()

    def closed(self) -> None:
        """Take note that it is closed: whoever closes last removes the companions."""
        self._connected = False

    def close(self) -> None:
        """Let go of the file, after all connections to it have been closed."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Move the log into the file inside."""
        self._turn += 1
        try:
            yield
        finally:
            self._note()
            self._turn += 1

    def check(self, outcome: str) -> None:
        """Raise Unwritable if a file is not the one that is open; outcome: what became of the transaction then."""
        if self._lost is None and self._seen is not None:
            open_ = self._seen if self._connected else self._seen[:1]
            for name, identity in zip(self._names, open_, strict=False):
                if _identity(name) != identity:
                    self._lost = f"{name!r} was removed or replaced"
                    break
            else:
                if self._connected and self._written_over():
                    self._lost = f"{self._names[0]!r} was written over"
        if self._lost is not None:
            raise Unwritable(
                f"the store's file {self._lost} while it was open: {outcome}; "
                "stop what has it open, put the store in order (verify it), and start again"
            )

    def _written_over(self) -> bool:
        turn, before = self._turn, self._stamp
        stamp = _stamp(self._names[0])
        if turn % 2 == 1 or before is None or stamp in (before, None):
            return False
        head = self._first_bytes()
        if turn != self._turn:
            return False
        if stamp is not None and stamp[0] >= before[0] and head == self._head:
            self._stamp = stamp
            return False
        return True

    def _note(self) -> None:
        self._stamp, self._head = _stamp(self._names[0]), self._first_bytes()

    def _first_bytes(self) -> bytes:
        try:
            return b"" if self._file is None else os.pread(self._file, HEAD, 0)
        except OSError:
            return b""


def _identity(name: str) -> Identity:
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
