"""Whether the store keeps what is written: shown by a trial write for whoever asks for its health.

A full disk, or one that has become read-only, still answers every question. So health is a trial: a row is overwritten
with what it holds, by the writer and through to the disk like everything else. It is made when somebody asks, at most
every few seconds, and not at all where a real write has just succeeded.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from sqlalchemy import Connection

from aftereffect.service.errors import Refused

EVERY_S = 3.0
"""How old the answer may be."""
PATIENCE_S = 60.0
"""After so long without an end, a trial counts as failed."""
WAIT_S = 1.0
"""Who starts a trial waits so long for its end; then, and for everybody else, the last one counts."""


def trial(connection: Connection) -> dict[str, Any]:
    """Overwrite a row with what it holds."""
    connection.exec_driver_sql("UPDATE alembic_version SET version_num = version_num")
    return {}


class Health:
    """Remembers how the last trial ended; for many threads.

    submit: starts a trial write and returns a future of its one answer; kept_at: when something was last committed.
    """

    def __init__(self, submit: Callable[[], Future[list[Any]]], kept_at: Callable[[], float]) -> None:
        self._submit, self._kept_at = submit, kept_at
        self._lock = threading.Lock()
        self._trial: Future[list[Any]] | None = None
        self._began = -EVERY_S
        self._failure: Refused | None = None

    def check(self) -> None:
        """Raise Refused if the store does not keep what is written."""
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
            # A new one each time: an exception that is raised again grows by where it was.
            raise Refused(self._failure.code, self._failure.detail)
