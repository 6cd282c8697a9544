"""The writer thread: carries out commands in memory and commits them in groups.

Each transaction takes all waiting commands: it carries them out, writes their changes, and answers after the database
has synced the commit to disk. So 32 waiting clients, for example, share one sync. Short jobs are always included; of
long lists each transaction takes one slice, so that a short job waits for at most one slice.

    open the transaction     on PostgreSQL: lock the experiments; drop from memory those changed by another process
    carry out the commands   load experiments that are not in memory, on a reading connection
    write, commit, answer    on failure: answer with an error, and drop the changed experiments from memory

An error in one experiment affects only that experiment's commands. If it cannot be loaded, its commands are refused. If
a transaction fails because of one experiment's data, the commands are repeated one by one, each in its own transaction.
Commands of such an experiment get separate transactions until one succeeds (`damaged`).
"""

import asyncio
import contextlib
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import SQLAlchemyError

from aftereffect.service.errors import Corrupt, Refused
from aftereffect.service.experiment.commands import Amend, Ask, Command, Finish, Reports, Tell, inherit
from aftereffect.service.experiment.learned import Record, played_effects, remembered
from aftereffect.service.experiment.round import Row
from aftereffect.service.messages import Fields, is_id
from aftereffect.service.settings import ExperimentSettings, warmed
from aftereffect.service.store import event_log, keys, schema, webhooks
from aftereffect.service.store.database import UNREADABLE, Database, of_one_experiment, refusal, worth_another_try
from aftereffect.service.store.event_log import Changes, Loaded
from aftereffect.service.store.keys import Key
from aftereffect.service.store.sqlite_file import Unwritable

SHORT = 64
"""Jobs with more commands than this are long lists."""
SLICE, SLICE_LOADS = 512, 8
"""How many commands of a long list share a transaction, and how many experiments it loads at most."""
MOST_LOADED = 16_384
"""How many experiments stay in memory."""
QUIET_S = 1.0
"""After so long without a command the log of a SQLite file is moved into it."""
LOG_ROWS = 16_384
"""After how many rows the log of a SQLite file is moved into it."""
MOST_MODELS = 1_024
"""How many of them keep what their advisers have learned; learning again takes milliseconds."""
RETRY_S = 1.0
"""A damaged experiment is tried again after this time."""
HEALTH_S, TRIAL_S, PATIENCE_S = 3.0, 1.0, 60.0
"""How long the result of a test write counts, how long its callers wait for it, and after how long it has failed."""

Answer = Fields | Refused
_log = logging.getLogger(__name__)


class Creation(NamedTuple):
    """Create an experiment with these settings.

    source: an experiment whose rounds it inherits, or, if the settings have a warm start, whose measurements it begins
    with. finish: end that experiment.
    """

    settings: ExperimentSettings
    source: str | None = None
    finish: bool = True


class Work(NamedTuple):
    """Write something else, such as a token: `act` gets the connection and returns the answer."""

    act: Callable[[Connection], Fields]


Action = Command | Reports | Creation | Work


class Once(NamedTuple):
    """An action that has a key: if it was carried out before, it is answered as it was then."""

    key: Key
    action: Action


Item = tuple[str, Action | Once]


@dataclass(eq=False)
class Job:
    """Items to carry out in order, and a future for their answers, of `concurrent.futures` or of `asyncio`.

    started: the number of items already taken into a transaction.
    """

    items: Sequence[Item]
    future: Any = field(default_factory=Future)
    started: int = 0
    answers: list[Answer] = field(default_factory=list)


@dataclass
class _Batch:
    """The context of one transaction: its connection, its changes and its time.

    reading: a second connection from `readers`, opened for the first load and closed with `stack`. failed: why
    experiments could not be loaded; they are looked up once.
    """

    writing: Connection
    readers: Engine
    stack: contextlib.ExitStack
    changes: Changes
    at: str
    failed: dict[str, Refused] = field(default_factory=dict)

    @cached_property
    def reading(self) -> Connection:
        return self.stack.enter_context(self.readers.connect())

    def recalled(self, changes: Changes, loaded: Loaded, command: Command) -> Row | None:
        """Return the row that a command needs and its experiment no longer has in memory; recall its record too."""
        if loaded.experiment.lacks_record(command):
            changes.recall(self.writing, loaded)
        forgotten = loaded.experiment.forgotten(command)
        if forgotten is None:
            return None
        return changes.row(self.writing, loaded, *forgotten, isinstance(command, Amend))


class _Apart(Exception):
    """A transaction failed because of one of its experiments: repeat each command in its own transaction."""


class _Fault(Corrupt):
    """A command made the domain fail in a way it does not know; its experiment may be half changed."""


class Writer:
    """Carries out jobs in its own thread. damaged: experiments that could not be loaded or written, by id."""

    def __init__(self, database: Database, now: Callable[[], str]) -> None:
        self._database, self._now = database, now
        self.most_loaded = MOST_LOADED
        # In order of use, the least recently used first.
        self._loaded: dict[str, Loaded] = {}
        self._models: dict[str, Loaded] = {}
        self.damaged: dict[str, tuple[Refused, float]] = {}
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lists: deque[Job] = deque()
        self._gate = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="aftereffect-writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> Any:
        """Submit a job; return the future of its answers."""
        with self._gate:
            if self._closed:
                raise Refused("busy", "the store is closed")
            self._queue.put(job)
        return job.future

    @property
    def waiting(self) -> int:
        """The number of waiting jobs."""
        return self._queue.qsize() + len(self._lists)

    def close(self) -> None:
        """Complete all submitted jobs, then end the thread."""
        with self._gate:
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    # -- the queue --------------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        while not self._closed or self.waiting:
            pieces = self._take()
            if pieces:
                items = [item for job, start, stop in pieces for item in job.items[start:stop]]
                _deliver(pieces, self._carry_out(items))
            while len(self._loaded) > self.most_loaded:
                del self._loaded[next(iter(self._loaded))]
            # If idle: a plain copy of the file is then complete.
            self._checkpoint(LOG_ROWS if pieces else 1)
        self._checkpoint(0)

    def _take(self) -> list[tuple[Job, int, int]]:
        """Take all short jobs and one slice of the oldest long list; if there is none, wait for a job."""
        jobs: list[Job | None] = []
        with contextlib.suppress(queue.Empty):
            jobs.append(self._queue.get(timeout=0.0 if self._lists else QUIET_S))
            while True:
                jobs.append(self._queue.get_nowait())
        pieces = [(job, 0, len(job.items)) for job in jobs if job is not None and len(job.items) <= SHORT]
        self._lists.extend(job for job in jobs if job is not None and len(job.items) > SHORT)
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
        if file is not None and not file.read_only and file.rows >= rows:
            file.checkpoint(self._database.writing)

    # -- transactions -----------------------------------------------------------------------------------------------

    def _carry_out(self, items: Sequence[Item]) -> list[Answer]:
        """Carry out items in order, and return their answers once all changes are synced to disk."""
        together = [index for index, (identity, _) in enumerate(items) if identity not in self.damaged]
        answers: dict[int, Answer] = {}
        try:
            with contextlib.suppress(_Apart):
                answers.update(zip(together, self._commit([items[index] for index in together]), strict=True))
            for index, item in enumerate(items):
                if index not in answers:
                    answers[index] = self._commit_apart(item)
        except Exception as error:
            # A bug in this code must not end the thread.
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
            with self._database.transaction() as transaction, contextlib.ExitStack() as stack:
                if self._database.file is None:
                    self._lock(transaction.connection, items)
                batch = _Batch(transaction.connection, self._database.internal, stack, changes, self._now())
                answers.extend(self._do(batch, identity, command) for identity, command in items)
                changes.write(transaction.connection)
                transaction.rows = max(changes.written, len(changes.touched))
                # An error after this point comes from the commit.
                committing = transaction.rows > 0
            return answers
        except (SQLAlchemyError, _Fault) as error:
            for identity in changes.touched:
                self._loaded.pop(identity, None)
            fault = error.__cause__ if isinstance(error, _Fault) else None
            if again and not committing and worth_another_try(error):
                return self._commit(items, again=False)
            problem, alone = refusal(error, committing=committing), not committing and of_one_experiment(error)
            if alone and len(items) > 1:
                raise _Apart from None
            if fault is not None:
                _log.error("a command of experiment %s failed", items[0][0], exc_info=fault)
            elif alone:
                self._mark(items[0][0], problem)
            _log.warning("a batch of %d commands was not acknowledged: %s", len(items), problem.detail)
            if problem.code == "full":
                # Moving the log into the database file may free space.
                self._checkpoint(0)
            if isinstance(error, Unwritable) or len(answers) < len(items):
                return [problem] * len(items)
            # Answers that needed no change are still valid.
            return [
                problem if identity in changes.touched else answer
                for (identity, _), answer in zip(items, answers, strict=True)
            ]

    def _lock(self, connection: Connection, items: Sequence[Item]) -> None:
        """Lock the experiments and then the keys of a batch, in the same order in all processes.

        Experiments changed by another process are dropped. The hash is compared too: after a restored backup or a
        failover, a different log may have the same length.
        """
        actions = [command.action if isinstance(command, Once) else command for _, command in items]
        sources = {action.source for action in actions if isinstance(action, Creation)}
        wanted = [each for each in {identity for identity, _ in items} | sources if each is not None and is_id(each)]
        columns = schema.experiments.c
        query = select(columns.id, columns.seq, columns.head).where(columns.id.in_(wanted)).order_by(columns.id)
        heads = {found.id: (found.seq, found.head) for found in connection.execute(query.with_for_update())}
        for identity in wanted:
            loaded = self._loaded.get(identity)
            if loaded is not None and (loaded.seq, loaded.head) != heads.get(identity):
                del self._loaded[identity]
        for number in sorted({command.key.number for _, command in items if isinstance(command, Once)}):
            connection.execute(select(func.pg_advisory_xact_lock(number)))

    def _do(self, batch: _Batch, identity: str, command: Action | Once) -> Answer:
        """Carry out one item in memory."""
        changes = batch.changes
        try:
            if isinstance(command, Once):
                return self._do_once(batch, identity, command)
            if isinstance(command, Work):
                answer = command.act(batch.writing)
                changes.touched.add(identity)
                return answer
            if isinstance(command, Creation):
                return self._create(batch, identity, command)
            loaded = self._get(batch, identity)
            if isinstance(command, Reports):
                return self._report(batch, loaded, command)
            done = loaded.experiment.do(command, batch.at, batch.recalled(changes, loaded, command))
            if changes.add(loaded, done):
                self._keep_model(loaded)
            answer = {"experiment": identity, **done.answer}
            wanted = isinstance(command, Tell) and command.next and answer["open_round"] != command.round
            if wanted and answer["state"] == "running":
                answer["next"] = self._do(batch, identity, Ask())
            return answer
        except Refused as refused:
            return refused
        except SQLAlchemyError:
            raise
        except Exception as error:
            self._loaded.pop(identity, None)
            raise _Fault(f"the command failed: {type(error).__name__}") from error

    def _do_once(self, batch: _Batch, identity: str, command: Once) -> Answer:
        """Carry out an action unless its key is known, and store the answer."""
        answer: Answer | None = keys.known(batch.writing, command.key)
        if answer is None:
            answer = self._do(batch, identity, command.action)
            if not isinstance(answer, Refused):
                keys.keep(batch.writing, command.key, answer, batch.at)
        # Also a known answer may be of this transaction, and must not be given if that fails.
        batch.changes.touched.add(identity)
        return answer

    def _create(self, batch: _Batch, identity: str, command: Creation) -> Answer:
        """Create an experiment; one that takes the place of another takes over its reminder."""
        changes, settings = batch.changes, command.settings
        source = None if command.source is None else self._get(batch, command.source)
        before: list[Command | None] = []
        # Refused, if at all, before anything changes.
        if source is not None:
            known = source.experiment.settings
            changes.write(batch.writing)
            if settings.warm_start is not None:
                seen = event_log.seen(batch.writing, source)
                before = [remembered(source.id, known, settings, seen)]
                effects, rounds = played_effects(known, seen), len(seen.arms)
                settings = warmed(settings, source.id, effects, rounds, required=not command.finish)
            else:
                older = event_log.remembered(batch.writing, source)
                if older is not None:
                    before = [remembered(source.id, known, settings, Record(older.arms, older.totals))]
                rows, pauses = event_log.rows(batch.writing, source), event_log.pauses(batch.writing, source)
                before.append(inherit(source.id, settings, rows, pauses, source.experiment.skipped))
        loaded = self._loaded[identity] = changes.create(batch.writing, identity, settings, batch.at)
        for past in before:
            if past is None:
                continue
            changes.add(loaded, loaded.experiment.do(past, batch.at))
            # To play the inherited rounds again at every load would be slow.
            loaded.checkpoint_at = loaded.seq
        if source is not None and command.finish:
            batch.recalled(changes, source, Finish())
            changes.add(source, source.experiment.do(Finish(), batch.at))
            webhooks.inherit(batch.writing, source.number, loaded.number)
        return loaded.view().data

    def _report(self, batch: _Batch, loaded: Loaded, command: Reports) -> Answer:
        """Carry out several reports, all or none: after a refusal the experiment is loaded as it was before."""
        own, answers = Changes(), []
        batch.changes.write(batch.writing)
        # Not in memory until all are accepted.
        del self._loaded[loaded.id]
        try:
            with batch.writing.begin_nested():
                for done in loaded.experiment.report(command, batch.at, lambda step: batch.recalled(own, loaded, step)):
                    answers.append({"experiment": loaded.id, **done.answer})
                    if own.add(loaded, done):
                        self._keep_model(loaded)
                own.write(batch.writing)
        except Refused:
            # On the connection that sees what this transaction has written before.
            self._loaded[loaded.id] = event_log.load(batch.writing, loaded.id)
            raise
        self._loaded[loaded.id] = loaded
        batch.changes.touched |= own.touched
        batch.changes.written += own.written
        told = [answer for answer in answers if "repeated" in answer]
        return {"experiment": loaded.id, "items": told, "next": answers[-1] if answers[-1] is not told[-1] else None}

    def _get(self, batch: _Batch, identity: str) -> Loaded:
        """Return an experiment from memory, or load it; raise Refused if it cannot be loaded."""
        problem, until = self.damaged.get(identity, (None, 0.0))
        if time.monotonic() >= until:
            problem = batch.failed.get(identity)
        if problem is not None:
            raise Refused(problem.code, problem.detail, **problem.extra)
        loaded = self._loaded.pop(identity, None)
        if loaded is None:
            try:
                loaded = event_log.load(batch.reading, identity)
            except UNREADABLE as error:
                if not of_one_experiment(error):
                    raise
                problem = batch.failed[identity] = refusal(error)
                if problem.code != "not_found":
                    batch.reading.rollback()
                    self._mark(identity, problem)
                raise problem from None
        self._loaded[identity] = loaded
        return loaded

    def _keep_model(self, loaded: Loaded) -> None:
        """Keep what an adviser has just learned, and drop that of the one which has not learned for longest."""
        self._models.pop(loaded.id, None)
        self._models[loaded.id] = loaded
        if len(self._models) > MOST_MODELS:
            self._models.pop(next(iter(self._models))).experiment.forget()

    def _mark(self, identity: str, problem: Refused) -> None:
        """Mark an experiment as damaged, and log it the first time."""
        if identity not in self.damaged:
            _log.error("experiment %s is damaged: %s", identity, problem.detail)
        self.damaged[identity] = problem, time.monotonic() + RETRY_S


def _deliver(pieces: Sequence[tuple[Job, int, int]], answers: list[Answer]) -> None:
    """Add the answers to their jobs, and resolve complete jobs; each event loop is called once for all its jobs."""
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
            # A closed loop has no waiting callers; the commands have been carried out.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, jobs)


def _settle(jobs: list[Job]) -> None:
    for job in jobs:
        # The future of an aborted request is cancelled.
        if not job.future.done():
            job.future.set_result(job.answers)


def trial(connection: Connection) -> Fields:
    """Overwrite a row with its current value.

    A store on a full or read-only disk can still be read, so only a write shows that it works.
    """
    connection.exec_driver_sql("UPDATE alembic_version SET version_num = version_num")
    return {}


class Health:
    """Runs test writes and remembers the last one. Thread-safe.

    A test write goes through the writer and is synced to disk like any other. It runs on request, at most once every
    few seconds, and not if another write has just succeeded.

    submit: starts a test write and returns a future with its one answer. kept_at: returns the time of the last commit.
    """

    def __init__(self, submit: Callable[[], Future[list[Any]]], kept_at: Callable[[], float]) -> None:
        self._submit, self._kept_at = submit, kept_at
        self._lock = threading.Lock()
        self._trial = Future[list[Any]]()
        self._trial.set_result([{}])
        self._began = -HEALTH_S

    def check(self) -> None:
        """Raise Refused if the last test write failed or hangs; start a new one if the result is too old."""
        with self._lock:
            now = time.monotonic()
            if self._kept_at() > max(self._began, now - HEALTH_S):
                return
            if self._trial.done() and now - self._began >= HEALTH_S:
                self._trial, self._began = self._submit(), now
            trial, began = self._trial, self._began
        try:
            (answer,) = trial.result(TRIAL_S)
        except TimeoutError:
            if now - began <= PATIENCE_S:
                return
            raise Refused("busy", f"the store has not finished a write for {now - began:.0f} s") from None
        if isinstance(answer, Refused):
            # A new exception each time: raising the same one again would extend its traceback.
            raise Refused(answer.code, answer.detail)
