"""Whether the store keeps what is written: shown by a write of no consequence, for whoever asks for its health.

A full disk, or one that has become read-only, still answers every question. So health is a trial: a row is written over
with what it holds, by the writer and through the disk like everything else. It is made when somebody asks, at
most every few seconds, and not at all where a real write has just succeeded.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection

from aftereffect.service.errors import Refused

EVERY_S = 3.0
"""How far behind the answer may be."""
PATIENCE_S = 60.0
"""After so long without an end, a trial counts as failed: a long list may take a while before it."""
WAIT_S = 1.0
"""Who asks for a trial waits so long for its end, and then hears how the last one ended."""

_OVER_ITSELF = "UPDATE alembic_version SET version_num = version_num"


def trial(connection: Connection) -> dict[str, Any]:
    """Write a row over with what it holds."""
    connection.exec_driver_sql(_OVER_ITSELF)
    return {}


class Pulse:
    """Remembers how the last trial ended; for many threads, one of which at a time makes a trial."""

    def __init__(self, write: Callable[[], object], kept_at: Callable[[], float]) -> None:
        """write: makes a trial, or raises Refused; kept_at: when a real write last succeeded (`time.monotonic`)."""
        self._write, self._kept_at = write, kept_at
        self._trying = threading.Lock()
        self._began = self._ended = -EVERY_S
        self._failure: Refused | None = None

    def check(self) -> None:
        """Raise Refused if the store does not keep what is written."""
        now = time.monotonic()
        if self._kept_at() > max(self._ended, now - EVERY_S):
            return
        if self._trying.acquire(blocking=False):
            if now - self._ended >= EVERY_S:
                self._began = now
                trying = threading.Thread(target=self._try, name="aftereffect-pulse", daemon=True)
                trying.start()
                trying.join(WAIT_S)
            else:
                self._trying.release()
        elif now - self._began > PATIENCE_S:
            raise Refused("busy", f"the store has not finished a write for {now - self._began:.0f} s")
        if self._failure is not None:
            # A new one each time: an exception that is raised again grows by where it was.
            raise Refused(self._failure.code, self._failure.detail)

    def _try(self) -> None:
        try:
            self._write()
            self._failure = None
        except Refused as refused:
            self._failure = refused
        finally:
            self._ended = time.monotonic()
            self._trying.release()
