"""A SQLite file that can only be read: on a read-only medium, or somebody else's.

SQLite wants to make files beside a database even to read it. Where it may not, there is one other way: to tell it that
nobody changes the file (`immutable`). That is true only while nobody can: no log lies beside the file, and
whoever wants to write waits for the lock, of which a visitor takes a share. A writer that is there already is
read beside as ever, through the files it has made.
"""

import fcntl
import os
from pathlib import Path

from aftereffect.service.store.locking import lock_path

_EFFECTIVE = os.access in os.supports_effective_ids


def only_readable(file: Path) -> bool:
    """Say whether a file is there, but nothing can be written to it or beside it."""
    return file.exists() and not all(os.access(path, os.W_OK, effective_ids=_EFFECTIVE) for path in (file, file.parent))


class Visit:
    """What it takes to read such a file; `close` gives it back."""

    def __init__(self, file: Path) -> None:
        """Take nothing yet."""
        self._file = file
        self._share: int | None = None

    def uri(self) -> str:
        """Return how SQLite is to open the file."""
        return f"{self._file.as_uri()}?mode=ro" + ("&immutable=1" if self._alone() else "")

    def close(self) -> None:
        """Let writers in."""
        if self._share is not None:
            os.close(self._share)
            self._share = None

    def _alone(self) -> bool:
        log, index = (Path(f"{self._file}{ending}") for ending in ("-wal", "-shm"))
        return self._shared() and (not log.exists() or (not log.stat().st_size and not index.exists()))

    def _shared(self) -> bool:
        """Take a share of the lock, and say whether nobody has all of it; without a lock file nobody can."""
        if self._share is not None:
            return True
        try:
            share = os.open(lock_path(self._file), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        try:
            fcntl.flock(share, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            os.close(share)
            return False
        self._share = share
        return True
