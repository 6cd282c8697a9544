"""The one thread that writes: it carries out commands in memory and commits them in groups.

A transaction takes everything that waits: it runs the commands, writes what they did and answers when the database says
that the commit is on the disk. For example, 32 clients that wait share one sync. Single commands come first; of long
lists each transaction takes one slice, so that a single command waits for a slice at most.

    open the transaction     PostgreSQL: lock the experiments, forget those that another process has moved
    run the commands         experiments that are not in memory are loaded on a reading connection
    write, commit, answer    if that fails nobody hears "done", and the experiments are loaded again when next needed

A fault in one experiment is answered to that experiment's commands alone. If loading it fails, nothing has happened to
the others. If writing fails because of what one experiment writes, the commands are run again one by one, each in a
transaction of its own. An experiment that failed so stays apart from the others until it succeeds (`damaged`).
"""

import asyncio
import contextlib
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection, select
from sqlalchemy.exc import SQLAlchemyError

from aftereffect.service.errors import Corrupt, Refused
from aftereffect.service.experiment.commands import Command
from aftereffect.service.messages import is_id
from aftereffect.service.settings import ExperimentSettings
from aftereffect.service.store import event_log, schema
from aftereffect.service.store.database import Database, of_one_experiment, refusal, worth_another_try
from aftereffect.service.store.event_log import Changes, Loaded

SHORT = 64
"""Up to so many commands are not a long list."""
SLICE, SLICE_LOADS = 512, 64
"""How many commands of a long list share a transaction, and how many experiments it loads at most."""
MOST_LOADED = 16_384
"""How many experiments stay in memory."""
QUIET_S = 1.0
"""After so long without a command the log of a SQLite file is moved into it."""
LOG_ROWS, LOG_ROWS_IDLE = 65_536, 4_096
"""After how many rows the log of a SQLite file is moved into it; sooner when nobody waits."""
RETRY_S = 1.0
"""A damaged experiment is tried again after this time."""

Answer = dict[str, Any] | Refused
_log = logging.getLogger(__name__)


class Creation(NamedTuple):
    """Create an experiment with these settings."""

    settings: ExperimentSettings


class Work(NamedTuple):
    """Do something else in a transaction of its own: `act` gets the connection and returns the answer."""

    act: Callable[[Connection], dict[str, Any]]


Action = Command | Creation | Work
Item = tuple[str, Action]


@dataclass(eq=False)
class Job:
    """Items to carry out in order, and a future for their answers: of a thread, or of an event loop.

    started: how many of the items have been taken up.
    """

    items: Sequence[Item]
    future: Any = field(default_factory=Future)
    started: int = 0
    answers: list[Answer] = field(default_factory=list)


class _Batch(NamedTuple):
    """What the items of one transaction are carried out with: two connections, what it changes, the moment.

    failed: why experiments could not be loaded; they are looked up once.
    """

    writing: Connection
    reading: Connection
    changes: Changes
    at: str
    failed: dict[str, Refused]


class _Apart(Exception):
    """A transaction failed because of one of its experiments: each command must be carried out on its own."""


class _Fault(Exception):
    """A command made the domain fail in a way it does not know; its experiment may be half changed."""


class Writer:
    """Carries out jobs in a thread of its own. damaged: ids of experiments that cannot be loaded or written now."""

    def __init__(self, database: Database, now: Callable[[], str]) -> None:
        self._database, self._now = database, now
        self.most_loaded = MOST_LOADED
        # The least recently used first.
        self._loaded: dict[str, Loaded] = {}
        self.damaged: dict[str, tuple[Refused, float]] = {}
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._singles: deque[Job] = deque()
        self._lists: deque[Job] = deque()
        self._going = True
        self._gate = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="aftereffect-writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> Any:
        """Hand over a job; return the future of its answers."""
        with self._gate:
            if self._closed:
                raise Refused("busy", "the store is closed")
            self._queue.put(job)
        return job.future

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return self._queue.qsize() + len(self._singles) + len(self._lists)

    def close(self) -> None:
        """Finish what has been handed over, then end."""
        with self._gate:
            if not self._closed:
                self._queue.put(None)
            self._closed = True
        self._thread.join()

    # -- the queue --------------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        while self._going or self._singles or self._lists:
            self._collect()
            pieces = self._take()
            if pieces:
                items = [item for job, start, stop in pieces for item in job.items[start:stop]]
                _deliver(pieces, self._carry_out(items))
            while len(self._loaded) > self.most_loaded:
                del self._loaded[next(iter(self._loaded))]
            idle = not (self._singles or self._lists) and self._queue.empty()
            self._checkpoint(LOG_ROWS_IDLE if idle else LOG_ROWS)

    def _collect(self) -> None:
        """Move what is in the queue to what waits; wait for the first job if there is nothing else to do."""
        wait = not (self._singles or self._lists)
        while self._going and (wait or not self._queue.empty()):
            try:
                job = self._queue.get(timeout=QUIET_S)
            except queue.Empty:
                # Nobody comes: what was kept goes into the file itself, where a copy of it has it too.
                self._checkpoint(1)
                continue
            wait = False
            if job is None:
                self._going = False
            else:
                (self._singles if len(job.items) <= SHORT else self._lists).append(job)

    def _take(self) -> list[tuple[Job, int, int]]:
        """Take all short jobs and one slice of the oldest long list."""
        pieces = [(job, 0, len(job.items)) for job in self._singles]
        self._singles.clear()
        if self._lists:
            job = self._lists[0]
            start = stop = job.started
            loads: set[str] = set()
            while stop < min(len(job.items), start + SLICE) and len(loads) < SLICE_LOADS:
                identity = job.items[stop][0]
                if identity not in self._loaded:
                    loads.add(identity)
                stop += 1
            job.started = stop
            if stop == len(job.items):
                self._lists.popleft()
            pieces.append((job, start, stop))
        return pieces

    def _checkpoint(self, rows: int) -> None:
        """Move the log of a SQLite file into it, if it has so many rows or more."""
        file = self._database.file
        if file is not None and file.rows >= rows:
            file.checkpoint(self._database.writing)

    # -- transactions -----------------------------------------------------------------------------------------------

    def _carry_out(self, items: Sequence[Item]) -> list[Answer]:
        """Carry out items in order, and return their answers once all of it is on the disk."""
        together = [index for index, (identity, _) in enumerate(items) if identity not in self.damaged]
        answers: dict[int, Answer] = {}
        try:
            with contextlib.suppress(_Apart):
                answers.update(zip(together, self._commit([items[index] for index in together]), strict=True))
            for index, item in enumerate(items):
                if index not in answers:
                    answers[index] = self._commit_apart(item)
        except Exception as error:
            # A fault of this code: the thread that everybody waits for goes on.
            _log.exception("a batch of %d commands failed", len(items))
            self._loaded.clear()
            failure = Refused("busy", f"the service failed: {type(error).__name__}")
            return [answers.get(index, failure) for index in range(len(items))]
        return [answers[index] for index in range(len(items))]

    def _commit_apart(self, item: Item) -> Answer:
        before, now = self.damaged.get(item[0]), time.monotonic()
        (answer,) = self._commit([item])
        if before is not None and before[1] <= now and self.damaged[item[0]] is before:
            del self.damaged[item[0]]
        return answer

    def _commit(self, items: Sequence[Item], again: bool = True) -> list[Answer]:
        """Carry out items in one transaction; raise _Apart if that fails because of one of several."""
        changes, answers, committing = Changes(), list[Answer](), False
        if not items:
            return answers
        try:
            with self._database.transaction() as transaction, self._database.internal.connect() as reading:
                if self._database.file is None:
                    self._lock(transaction.connection, {identity for identity, _ in items})
                batch = _Batch(transaction.connection, reading, changes, self._now(), {})
                answers.extend(self._do(batch, identity, command) for identity, command in items)
                transaction.rows = max(changes.write(transaction.connection), len(changes.touched))
                # What fails from here on is the commit, if there is one.
                committing = transaction.rows > 0
            return answers
        except (SQLAlchemyError, _Fault) as error:
            for identity in changes.touched:
                self._loaded.pop(identity, None)
            fault = error.__cause__ if isinstance(error, _Fault) else None
            if isinstance(error, SQLAlchemyError):
                if again and not committing and worth_another_try(error):
                    return self._commit(items, again=False)
                problem, alone = refusal(error, committing=committing), not committing and of_one_experiment(error)
            else:
                problem, alone = Corrupt(f"the command failed: {type(fault).__name__}"), True
            if alone and len(items) > 1:
                raise _Apart from None
            if fault is not None:
                _log.error("a command of experiment %s failed", items[0][0], exc_info=fault)
            elif alone:
                self._mark(items[0][0], problem)
            return self._not_kept(items, answers, changes, problem)

    def _not_kept(
        self, items: Sequence[Item], answers: list[Answer], changes: Changes, problem: Refused
    ) -> list[Answer]:
        """Answer a transaction that failed; answers that came from what is committed stand."""
        _log.warning("a batch of %d commands was not acknowledged: %s", len(items), problem.detail)
        if problem.code == "full" and self._database.file is not None:
            # What is in the log already may go into the file, and leave room in the log.
            self._database.file.checkpoint(self._database.writing)
        stand = len(answers) == len(items)
        return [
            answers[index] if stand and identity not in changes.touched else problem
            for index, (identity, _) in enumerate(items)
        ]

    def _lock(self, connection: Connection, identities: Iterable[str]) -> None:
        """Lock the experiments of a batch, in one order for all processes, and forget those that another has moved.

        The hash tells histories apart: a backup that was restored, or a standby that took over, may be just as long.
        """
        wanted = [identity for identity in identities if is_id(identity)]
        columns = schema.experiments.c
        query = select(columns.id, columns.seq, columns.head).where(columns.id.in_(wanted)).order_by(columns.id)
        heads = {found.id: (found.seq, found.head) for found in connection.execute(query.with_for_update())}
        for identity in wanted:
            loaded = self._loaded.get(identity)
            if loaded is not None and (loaded.seq, loaded.head) != heads.get(identity):
                del self._loaded[identity]

    def _do(self, batch: _Batch, identity: str, command: Action) -> Answer:
        """Carry out one item in memory."""
        changes = batch.changes
        try:
            if isinstance(command, Work):
                answer = command.act(batch.writing)
                changes.touched.add(identity)
                return answer
            if isinstance(command, Creation):
                loaded = self._loaded[identity] = changes.create(batch.writing, identity, command.settings, batch.at)
                return loaded.view()
            loaded = self._get(batch, identity)
            forgotten = loaded.experiment.forgotten(command)
            recalled = None if forgotten is None else changes.row(batch.reading, loaded, *forgotten)
            done = loaded.experiment.do(command, batch.at, recalled)
            changes.add(loaded, done)
            return done.answer
        except Refused as refused:
            return refused
        except SQLAlchemyError:
            raise
        except Exception as error:
            self._loaded.pop(identity, None)
            raise _Fault from error

    def _get(self, batch: _Batch, identity: str) -> Loaded:
        """Return an experiment from memory, or load it; whatever is wrong with it is its own affair."""
        problem, until = self.damaged.get(identity, (None, 0.0))
        if time.monotonic() >= until:
            problem = batch.failed.get(identity)
        if problem is not None:
            raise Refused(problem.code, problem.detail, **problem.extra)
        loaded = self._loaded.pop(identity, None)
        if loaded is None:
            try:
                loaded = event_log.load(batch.reading, identity)
            except (Refused, SQLAlchemyError) as error:
                if isinstance(error, SQLAlchemyError) and not of_one_experiment(error):
                    raise
                problem = batch.failed[identity] = refusal(error) if isinstance(error, SQLAlchemyError) else error
                if problem.code != "not_found":
                    batch.reading.rollback()
                    self._mark(identity, problem)
                raise problem from None
        self._loaded[identity] = loaded
        return loaded

    def _mark(self, identity: str, problem: Refused) -> None:
        """Keep an experiment apart from the others, and say so once."""
        if identity not in self.damaged:
            _log.error("experiment %s is damaged: %s", identity, problem.detail)
        self.damaged[identity] = problem, time.monotonic() + RETRY_S


def _deliver(pieces: Sequence[tuple[Job, int, int]], answers: list[Answer]) -> None:
    """Give every job its answers; an event loop is woken once for all of its jobs."""
    loops: dict[asyncio.AbstractEventLoop | None, list[Job]] = {}
    at = 0
    for job, start, stop in pieces:
        job.answers.extend(answers[at : at + stop - start])
        at += stop - start
        if stop == len(job.items):
            loop = job.future.get_loop() if isinstance(job.future, asyncio.Future) else None
            loops.setdefault(loop, []).append(job)
    for loop, jobs in loops.items():
        if loop is None:
            _settle(jobs)
        else:
            # If the loop is closed nobody waits any more, and what was done stays done.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, jobs)


def _settle(jobs: list[Job]) -> None:
    for job in jobs:
        # A request that was given up has a cancelled future.
        if not job.future.done():
            job.future.set_result(job.answers)
