"""Views of experiments as they are committed, without asking the writer.

A replica follows the log: each time it is looked at, it takes the events that were committed since. So a view never
shows what may yet be thrown away, and the same holds when another process writes.
"""

import threading
from collections import OrderedDict
from typing import Any

from sqlalchemy import Engine

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
        with self._engine.connect() as connection:
            row = find(connection, identity)
            with self._lock:
                replica = self._known.setdefault(identity, _Replica())
                self._known.move_to_end(identity)
                while len(self._known) > MOST:
                    self._known.popitem(last=False)
            with replica.lock:
                held, replica.held = replica.held, None
                if held is None:
                    held = load(connection, identity)
                    replica.view = held.view()
                elif held.seq < row.seq:
                    advance(connection, held, row)
                    replica.view = held.view()
                # A replica that failed to follow is gone; one that is further than this thread looked is right, too.
                replica.held = held
                return dict(replica.view)
