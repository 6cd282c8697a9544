"""One thread that makes rows and writes them while the next cell is simulated: neither waits for the disk.

    simulate cell 1 │ simulate cell 2                  │ simulate cell 3
                    │ sum up, write, sync, rename 1    │ sum up, write, sync, rename 2

A cell is handed over when the one before is safe on disk, so that never more than one is between memory and disk.
Whoever kills a run loses the cell being simulated and at most the one being written.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING

from aftereffect.studies.work import Done, Tried

if TYPE_CHECKING:
    from aftereffect.studies.store import Store


class Writer:
    """Puts finished cells and failures into a store; `safe` is called with a cell's id once it is on disk.

    Use it in a `with` block: at the end, however it comes, it waits for what it has in hand. An error of the disk is
    raised by the next call, or there.
    """

    def __init__(self, store: "Store", safe: Callable[[str], None]) -> None:
        """Start with nothing in hand."""
        self._store = store
        self._safe = safe
        self._thread = ThreadPoolExecutor(1, "study-writer")
        self._in_hand: Future[str] | None = None

    def keep(self, found: Tried | Done) -> None:
        """Wait until the cell before is safe, then let this one be written."""
        self.settle()
        self._in_hand = self._thread.submit(write, self._store, found)

    def settle(self) -> None:
        """Wait until nothing is in hand."""
        if self._in_hand is not None:
            written, self._in_hand = self._in_hand.result(), None
            self._safe(written)

    def __enter__(self) -> "Writer":
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for what is in hand, and for the thread to end."""
        try:
            self.settle()
        finally:
            self._thread.shutdown()


def write(store: "Store", found: Tried | Done) -> str:
    """Put one cell that was tried into the store, and return its id."""
    done = found.done() if isinstance(found, Tried) else found
    if done.rows is None:
        store.put_failure(done.cell, done.error or {})
    else:
        store.put(done.cell, done.rows, done.time)
    return done.cell
