"""Views of experiments as they are committed, without asking the writer.

A replica follows the log: each time it is looked at, it takes the events that were committed since. So a view never
shows what may yet be thrown away, and the same holds when another process writes.
"""

import threading
from collections import OrderedDict
from typing import Any

from sqlalchemy import Connection, Engine, Row

from aftereffect.service.errors import Corrupt
from aftereffect.service.store.loading import Held, advance, find, load

MOST = 256
"""How many experiments are followed."""


class _Replica:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.held: Held | None = None
        self.view: dict[str, Any] = {}


class Replicas:
    """Committed views, by id; safe to use from many threads."""

    def __init__(self, engine: Engine) -> None:
        """Follow nothing yet."""
        self._engine = engine
        self._known: OrderedDict[str, _Replica] = OrderedDict()
        self._lock = threading.Lock()

    def view(self, identity: str) -> dict[str, Any]:
        """Return the view of an experiment after its last commit."""
        replica = self._replica(identity)
        with replica.lock, self._engine.connect() as connection:
            # Read only now: whoever had the lock before cannot have seen more.
            row = find(connection, identity)
            held, replica.held = replica.held, None
            if held is None or (held.seq, held.head) != (row.seq, row.head):
                held = _followed(connection, held, row)
                replica.view = held.view()
            # A replica that failed to follow is gone.
            replica.held = held
            return dict(replica.view)

    def _replica(self, identity: str) -> _Replica:
        with self._lock:
            known = self._known.get(identity)
            if known is not None:
                self._known.move_to_end(identity)
                return known
        # What is not there pushes out nobody.
        with self._engine.connect() as connection:
            find(connection, identity)
        with self._lock:
            replica = self._known.setdefault(identity, _Replica())
            while len(self._known) > MOST:
                self._known.popitem(last=False)
            return replica


def _followed(connection: Connection, held: Held | None, row: Row[Any]) -> Held:
    """Take up what was committed since; where that does not follow, another history has been put in its place."""
    if held is not None and held.seq < row.seq:
        try:
            advance(connection, held, row)
            return held
        except Corrupt:
            pass
    return load(connection, row.id)
