"""Health check of the store by a test write.

A store on a full or read-only disk can still be read, so a read does not show that it works. The health check writes a
row with its current value, through the writer and synced to disk like any other write. It runs on request, at most once
every few seconds, and not if another write has just succeeded.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from sqlalchemy import Connection

from aftereffect.service.errors import Refused

EVERY_S = 3.0
"""A result is reused for this many seconds."""
PATIENCE_S = 60.0
"""A test write that takes longer than this has failed."""
WAIT_S = 1.0
"""The caller that starts a test write waits this long; after that, and for other callers, the last result counts."""


def trial(connection: Connection) -> dict[str, Any]:
    """Overwrite a row with its current value."""
    connection.exec_driver_sql("UPDATE alembic_version SET version_num = version_num")
    return {}


class Health:
    """Runs test writes and remembers the last result. Thread-safe.

    submit: starts a test write and returns a future with its one answer. kept_at: returns the time of the last commit.
    """

    def __init__(self, submit: Callable[[], Future[list[Any]]], kept_at: Callable[[], float]) -> None:
        self._submit, self._kept_at = submit, kept_at
        self._lock = threading.Lock()
        self._trial: Future[list[Any]] | None = None
        self._began = -EVERY_S
        self._failure: Refused | None = None

    def check(self) -> None:
        """Raise Refused if the last test write failed; start a new one if the result is too old."""
        with self._lock:
            now = time.monotonic()
            if self._kept_at() > max(self._began, now - EVERY_S):
                return
            wait = 0.0
            if self._trial is None and now - self._began >= EVERY_S:
                self._trial, self._began, wait = self._submit(), now, WAIT_S
            trial, began = self._trial, self._began
        if trial is not None:
            try:
                (answer,) = trial.result(wait)
                self._failure, self._trial = answer if isinstance(answer, Refused) else None, None
            except TimeoutError:
                if now - began > PATIENCE_S:
                    raise Refused("busy", f"the store has not finished a write for {now - began:.0f} s") from None
        if self._failure is not None:
            # A new exception each time: raising the same one again would extend its traceback.
            raise Refused(self._failure.code, self._failure.detail)
