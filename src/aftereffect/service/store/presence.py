"""Whether the SQLite database that is open is still the file under its name.

A file that is removed or replaced while it is open goes on taking writes, without a name, and is gone with the
process: what was written there is on the disk, but nobody finds it again. So the names are looked at around every
commit, before anybody hears "done". What was once found missing stays so until the store is opened anew: the
connections, and the experiments in memory, are those of the old file.
"""

import os
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

COMPANIONS = ("-wal", "-shm")
"""The endings of the files that SQLite keeps beside a database while it is open."""

Identity = tuple[int, int] | None


class Unwritable(SQLAlchemyError):
    """The store cannot be written to, for a reason that the database itself does not know."""


class Presence:
    """The files of one open database as they were when the connection that writes was made."""

    def __init__(self, file: Path) -> None:
        """Know nothing yet."""
        self._names = [str(file), *(f"{file}{ending}" for ending in COMPANIONS)]
        self._seen: list[Identity] | None = None
        self._connected = False
        self._lost: str | None = None

    def connecting(self) -> None:
        """Before a connection is made: refuse where it would be to another file than the first was."""
        if self._seen is not None:
            self.check("nothing was kept")

    def connected(self) -> None:
        """Take note of the files: the connection that writes has been made, and has them open."""
        self._seen, self._connected = [_identity(name) for name in self._names], True

    def closed(self) -> None:
        """Take note that it is closed: whoever closes last removes the companions."""
        self._connected = False

    def check(self, outcome: str) -> None:
        """Raise Unwritable if a file is not the one that is open; outcome: what became of the transaction then."""
        if self._lost is None and self._seen is not None:
            open_ = self._seen if self._connected else self._seen[:1]
            for name, identity in zip(self._names, open_, strict=False):
                if _identity(name) != identity:
                    self._lost = name
                    break
        if self._lost is not None:
            raise Unwritable(
                f"the store's file {self._lost!r} was removed or replaced while it was open: {outcome}; "
                "stop what has it open, put the store in order (verify it), and start again"
            )


def _identity(name: str) -> Identity:
    try:
        found = os.stat(name)
    except OSError:
        return None
    return found.st_dev, found.st_ino
