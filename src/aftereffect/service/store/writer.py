"""The one thread that writes: group commit.

It takes all commands that are waiting, runs them in memory, writes what they did in one transaction, and answers
only when the database says that the transaction is on the disk. Thirty-two clients so share one sync.

Long lists, on SQLite, are cut into portions: while one is being written, by a process of its own (`dictation.py`), the
next is run. If the first cannot be kept, the next, which built on it, is thrown away with it and run again.
"""

import logging
import queue
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from aftereffect.service.errors import Refused
from aftereffect.service.store.haste import in_a_hurry
from aftereffect.service.store.jobs import Form, Item, Job, Outcome, Work, deliver
from aftereffect.service.store.ledger import Ledger
from aftereffect.service.store.lookup import Unsure
from aftereffect.service.store.pages import Page

MOST_COMMANDS = 4096
"""How many commands share a transaction; longer lists take several."""
PORTION = 2048
"""How many commands of a long list share one."""
QUIET_S = 1.0
"""After so long without a command the log is moved into the file."""
MANY = 1024
"""From how many waiting commands on they count as a long list."""

# What comes through the queue beside jobs: nothing more will, or a portion has been kept or not.
_END, _LANDED = "end", "landed"
_log = logging.getLogger(__name__)

Pieces = list[tuple[Job, int, int]]


class _Flight(NamedTuple):
    """A portion on its way to the disk."""

    pieces: Pieces
    page: Page
    kept: Future[Refused | None]


class Writer:
    """Runs jobs in the order they come, in a thread of its own."""

    def __init__(self, ledger: Ledger) -> None:
        """Start the thread."""
        self.ledger = ledger
        self._queue: queue.SimpleQueue[Job | str] = queue.SimpleQueue()
        self._waiting: deque[Job] = deque()
        self._going = True
        self._gate = threading.Lock()
        self._closed = False
        self._keeper = ThreadPoolExecutor(1, "aftereffect-keeper")
        # Both threads now: one that cannot be had later would leave everybody waiting.
        self._keeper.submit(int).result()
        self._thread = threading.Thread(target=self._loop, name="aftereffect-writer", daemon=True)
        self._thread.start()

    def put(self, job: Job) -> None:
        """Hand over a job; its answers come through its future."""
        with self._gate:
            if self._closed:
                raise Refused("busy", "the store is closed")
            self._queue.put(job)

    def close(self) -> None:
        """Finish what has been handed over, then end."""
        with self._gate:
            if not self._closed:
                self._queue.put(_END)
            self._closed = True
        self._thread.join()
        self._keeper.shutdown()

    def _loop(self) -> None:
        while self._going or self._waiting:
            self._collect(wait=not self._waiting)
            if self._many and not self.ledger.shared:
                with in_a_hurry:
                    self._stream()
            elif self._waiting:
                self._serve(self._take(MOST_COMMANDS))
            self.ledger.shrink()
            if self.ledger.sweeper.due(idle=not self._waiting and self._queue.empty()):
                self.ledger.sweeper.sweep()

    @property
    def _many(self) -> bool:
        """Whether what waits counts as a long list, or is the rest of one."""
        waiting = self._waiting
        return bool(waiting) and (waiting[0].started > 0 or sum(len(job.items) for job in waiting) >= MANY)

    def _collect(self, *, wait: bool, flying: bool = False) -> None:
        """Move what is in the queue to what is waiting; wait for the first if there is nothing else to do.

        flying: the keeper is writing at this moment, so nobody else does.
        """
        while self._going and (wait or not self._queue.empty()):
            try:
                job = self._queue.get(timeout=QUIET_S if self.ledger.sweeper.any and not flying else None)
            except queue.Empty:
                # Nobody comes: what was kept goes into the file itself, where a copy of it has it too.
                self.ledger.sweeper.sweep()
                continue
            if isinstance(job, Job):
                self._waiting.append(job)
            elif job == _END:
                self._going = False
            wait = False

    def _take(self, room: int) -> Pieces:
        """Take up to `room` of the items that wait, all to be answered in the same form."""
        pieces: Pieces = []
        while self._waiting and room > 0:
            job = self._waiting[0]
            if pieces and job.form is not pieces[0][0].form:
                break
            start, stop = job.started, min(len(job.items), job.started + room)
            pieces.append((job, start, stop))
            job.started, room = stop, room - (stop - start)
            if stop == len(job.items):
                self._waiting.popleft()
        return pieces

    def _serve(self, pieces: Pieces) -> None:
        """Run one transaction's worth, and answer."""
        items = _items(pieces)
        try:
            answers = self.ledger.run(items, pieces[0][0].form)
        except Exception as error:
            answers = self._broken(len(items), error)
        _answer(pieces, answers)

    def _stream(self) -> None:
        """Run portion after portion while the one before is being kept."""
        flight: _Flight | None = None
        while self._many or flight is not None:
            if not self._many:
                flight = self._awaited(flight)
                continue
            pieces = self._take(PORTION)
            items = _items(pieces)
            # Work is always a job of its own.
            if any(isinstance(job.items[0][1], Work) for job, _, _ in pieces):
                self._land(flight)
                flight = None
                self._serve(pieces)
                continue
            form = pieces[0][0].form
            page = self._prepared(items, form, flight)
            landed = self._land(flight)
            if page is not None and not landed:
                self.ledger.forget(page)
                page = self._prepared(items, form, None)
            flight = None
            if page is None:
                self._serve(pieces)
            else:
                flight = self._take_off(pieces, page)
            self._collect(wait=False, flying=True)

    def _awaited(self, flight: _Flight | None) -> _Flight | None:
        """Wait until a portion has landed, or there is more to run meanwhile; return it if it is still on its way.

        A few commands are run the plain way, after it.
        """
        while flight is not None and self._going and not self._waiting and not flight.kept.done():
            self._collect(wait=True, flying=True)
        if flight is not None and self._many and not flight.kept.done():
            return flight
        self._land(flight)
        return None

    def _prepared(self, items: list[Item], form: Form | None, flight: _Flight | None) -> Page | None:
        """Run a portion in memory; None if that went wrong, and is to be tried, and answered, the plain way."""
        try:
            return self.ledger.prepare(items, form, None if flight is None else flight.page)
        except Unsure:
            return None
        except Exception:
            _log.exception("a portion of %d commands failed", len(items))
            return None

    def _take_off(self, pieces: Pieces, page: Page) -> _Flight:
        """Have a portion kept. Clients that never let up must not let memory and log grow, so both are seen to here."""
        self.ledger.shrink(page)
        if self.ledger.sweeper.due(idle=False):
            self._keeper.submit(self.ledger.sweeper.sweep)
        kept = self._keeper.submit(self._keep, pieces, page)
        # Only when it can be seen that it is done: the writer looks, and waits for this if it is not.
        kept.add_done_callback(lambda _: self._queue.put(_LANDED))
        return _Flight(pieces, page, kept)

    def _keep(self, pieces: Pieces, page: Page) -> Refused | None:
        """Write a portion and answer, in the keeper's thread: the writer may be busy with the next one."""
        problem = self.ledger.keep(page)
        if problem is None:
            _answer(pieces, page.answers)
        return problem

    def _land(self, flight: _Flight | None) -> bool:
        """Wait until a portion is kept, or answer that it is not; return whether what builds on it can stand."""
        if flight is None:
            return True
        try:
            problem = flight.kept.result()
        except Exception as error:
            _answer(flight.pieces, self._broken(len(flight.page.items), error))
            return False
        if problem is not None:
            self.ledger.forget(flight.page)
            _answer(flight.pieces, self.ledger.failed(flight.page, problem))
        return problem is None

    def _broken(self, count: int, error: Exception) -> list[Outcome]:
        """Answer after a fault of this code; the thread that everybody waits for goes on."""
        _log.error("a batch of %d commands failed", count, exc_info=error)
        self.ledger.forget_all()
        return [Refused("busy", f"the service failed: {type(error).__name__}") for _ in range(count)]


def _items(pieces: Pieces) -> list[Item]:
    return [item for job, start, stop in pieces for item in job.items[start:stop]]


def _answer(pieces: Pieces, answers: list[Outcome]) -> None:
    at = 0
    for job, start, stop in pieces:
        job.answers.extend(answers[at : at + stop - start])
        at += stop - start
    deliver(job for job, _, stop in pieces if stop == len(job.items))
