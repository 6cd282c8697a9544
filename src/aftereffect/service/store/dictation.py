"""Handing transactions to the process that writes (`scribe.py`), started when the first one comes.

It works on a SQLite file beside this process's own connection, never at the same time: a transaction is handed over and
waited for. It holds the file's lock too, as long as it lives: after a kill nobody else begins while it is still at its
last transaction.
"""

import contextlib
import logging
import math
import os
import select
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import orjson

from aftereffect.service.store import scribe
from aftereffect.service.store.locking import beyond_standard
from aftereffect.service.store.presence import Unwritable

PROGRAM = Path(scribe.__file__)
GREETING_S, ENDING_S, AGAIN_S = 10.0, 10.0, 60.0
"""How long to wait for the first answer, and for the end; and after which time to try again where none could be had."""
LOOK_MS = 500.0
_GONE = (
    "the process that writes the store is gone, and it is not known whether this was kept (ask and tell again: to "
    "repeat them is safe)"
)
_log = logging.getLogger(__name__)


class Script:
    """What is to be written in one transaction, as JSON: made at once, while the values are still in the cache."""

    def __init__(self) -> None:
        """Have nothing yet."""
        self._parts: list[bytes] = []

    def note(self, template: int, rows: scribe.Rows) -> None:
        """Add rows for a statement's template, by its number."""
        self._parts.append(orjson.dumps((template, rows)))

    def text(self) -> bytes:
        """Return all of it as a frame's JSON."""
        return b"[" + b",".join(self._parts) + b"]"

    def __iter__(self) -> Iterator[tuple[int, scribe.Rows]]:
        """Read it back: templates and rows, in the order they came."""
        for part in self._parts:
            yield orjson.loads(part)


class Dictation:
    """The process that writes one SQLite file, and what is said to it. Used by one thread at a time.

    lock: the open lock file. settings: how to open the database (`scribe.Book`).
    """

    def __init__(self, file: Path, lock: int, templates: Sequence[scribe.Template], **settings: Any) -> None:
        """Start nothing yet."""
        self._file, self._lock = file, lock
        self._greeting = orjson.dumps({**settings, "templates": [template.parts for template in templates]})
        self._process: subprocess.Popen[bytes] | None = None
        self._replies: IO[bytes] | None = None
        # No process could be had the last time: it is tried again after that moment.
        self._not_before = -math.inf

    def start(self) -> bool:
        """Have a process that is ready; return False if none can be had."""
        if self._process is not None and self._process.poll() is not None:
            self.end()
        if self._process is None and time.monotonic() >= self._not_before:
            try:
                self._start()
                self._say(self._greeting, GREETING_S)
            except Exception as error:
                _log.warning("long lists are written without a process of their own: %s", error)
                self.end()
                self._not_before = time.monotonic() + AGAIN_S
        return self._process is not None

    def _start(self) -> None:
        if not (sys.executable and PROGRAM.is_file()):
            raise OSError("there is no Python to run it with")
        # What other code prints when a Python starts goes to standard output, so answers come by a way of their own.
        ours, theirs = map(beyond_standard, os.pipe())
        self._replies = os.fdopen(ours, "rb")
        try:
            # In a session of its own: what is typed at a terminal is not for it.
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(PROGRAM), str(self._file), str(theirs)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=(self._lock, theirs),
                start_new_session=True,
            )
        finally:
            os.close(theirs)

    def keep(self, script: Script) -> None:
        """Have a script written in one transaction; return when it is on the disk, or raise what went wrong."""
        self._say(script.text())

    def _say(self, text: bytes, patience: float = math.inf) -> None:
        """Send a frame and take the answer; whatever goes wrong ends the process, since it may be out of step."""
        process, replies = self._process, self._replies
        if process is None or process.stdin is None or replies is None:
            raise RuntimeError("start must come before keep")
        try:
            scribe.write(process.stdin, text)
            if not _answers(process, replies, patience):
                raise EOFError("it says nothing")
            problem = scribe.read(replies)
        except (OSError, EOFError, ValueError) as error:
            self.end()
            raise Unwritable(f"{_GONE}: {error}") from None
        except BaseException:
            self.end()
            raise
        if problem is not None:
            self.end()
            raise _error(problem)

    def end(self) -> None:
        """End the process; the next transaction starts another."""
        process, replies, self._process, self._replies = self._process, self._replies, None, None
        if process is not None and process.stdin is not None:
            # Told as well, because a process that this one has forked may hold the pipe open, too.
            with contextlib.suppress(OSError, ValueError):
                scribe.write(process.stdin, b"null")
            with contextlib.suppress(OSError):
                process.stdin.close()
            try:
                process.wait(ENDING_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if replies is not None:
            replies.close()


def _answers(process: subprocess.Popen[bytes], replies: IO[bytes], patience: float) -> bool:
    """Wait until there is something to read, or its end, for so many seconds at most, and while the process lives."""
    ends = time.monotonic() + patience
    # Not `select`, which cannot look at descriptors beyond 1,023.
    watch = select.poll()
    watch.register(replies, select.POLLIN)
    while not watch.poll(LOOK_MS):
        # A process that was forked at the wrong moment may hold the pipe open, and its end never comes.
        if process.poll() is not None or time.monotonic() >= ends:
            return bool(watch.poll(0))
    return True


def _error(problem: dict[str, Any]) -> sqlite3.Error:
    """Return the error that was raised in the other process."""
    error: sqlite3.Error = getattr(sqlite3, problem["kind"])(problem["said"])
    error.sqlite_errorcode, error.sqlite_errorname = problem["code"], problem["name"]
    return error
