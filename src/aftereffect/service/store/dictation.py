"""Handing transactions to the process that writes (`scribe.py`), started when the first one comes.

It works on a SQLite file beside this process's own connection, never at the same time: a transaction is handed over and
waited for. It holds the file's lock too, as long as it lives: after a kill nobody else begins while it is still at its
last transaction.
"""

import contextlib
import logging
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from aftereffect.service.store import scribe
from aftereffect.service.store.presence import Unwritable

PROGRAM = Path(scribe.__file__)
_GONE = (
    "the process that writes the store is gone, and it is not known whether this was kept; ask and tell again: to "
    "repeat them is safe"
)
_log = logging.getLogger(__name__)


class Script:
    """What is to be written in one transaction, as JSON: made at once, while the values are still in the cache."""

    def __init__(self) -> None:
        """Have nothing yet."""
        self._parts: list[bytes] = []

    def note(self, form: int, rows: scribe.Rows) -> None:
        """Add rows for a form of statement, by its number."""
        self._parts.append(orjson.dumps((form, rows)))

    def text(self) -> bytes:
        """Return all of it as a frame's JSON."""
        return b"[" + b",".join(self._parts) + b"]"

    def __iter__(self) -> Iterator[tuple[int, scribe.Rows]]:
        """Read it back: forms and rows, in the order they came."""
        for part in self._parts:
            yield orjson.loads(part)


class Dictation:
    """The process that writes one SQLite file, and what is said to it. Used by one thread at a time.

    file, pragmas, ready: what to open, how, and how many statements to keep ready. lock: the open lock file.
    """

    def __init__(self, file: Path, pragmas: Sequence[str], ready: int, forms: Sequence[scribe.Form], lock: int) -> None:
        """Start nothing yet."""
        parts = [form.parts for form in forms]
        self._greeting = orjson.dumps({"file": str(file), "pragmas": pragmas, "ready": ready, "forms": parts})
        self._lock = lock
        self._process: subprocess.Popen[bytes] | None = None
        # Whether such a process can be had at all, as far as is known.
        self._able = PROGRAM.is_file() and bool(sys.executable)

    def start(self) -> bool:
        """Have a process that is ready; return False if none can be had."""
        if self._process is None and self._able:
            try:
                self._process = self._started()
                self._say(self._greeting)
            except (OSError, Unwritable, sqlite3.Error) as error:
                _log.warning("long lists are written without a process of their own: %s", error)
                self.end()
                self._able = False
        return self._process is not None

    def _started(self) -> subprocess.Popen[bytes]:
        # In a session of its own: what is typed at a terminal is not for it.
        return subprocess.Popen(
            [sys.executable, "-P", str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(self._lock,),
            start_new_session=True,
        )

    def keep(self, script: Script) -> None:
        """Have a script written in one transaction; return when it is on the disk, or raise what went wrong."""
        self._say(script.text())

    def _say(self, text: bytes) -> None:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise RuntimeError("start must come before keep")
        try:
            scribe.write(process.stdin, text)
            problem = scribe.read(process.stdout)
        except (OSError, EOFError):
            self.end()
            raise Unwritable(_GONE) from None
        if problem is not None:
            self.end()
            raise _error(problem)

    def end(self) -> None:
        """End the process, which finishes what it is at; the next transaction starts another."""
        process, self._process = self._process, None
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    if pipe is not None:
                        pipe.close()
            process.wait()


def _error(problem: dict[str, Any]) -> sqlite3.Error:
    """Return the error that was raised in the other process."""
    error: sqlite3.Error = getattr(sqlite3, problem["kind"])(problem["said"])
    error.sqlite_errorcode, error.sqlite_errorname = problem["code"], problem["name"]
    return error
