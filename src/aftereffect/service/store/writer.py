"""The writer thread: carries out commands in memory and commits them in groups.

Each transaction takes all waiting commands: it carries them out, writes their changes, and answers after the database
has synced the commit to disk. So 32 waiting clients, for example, share one sync. Short jobs are always included; of
long lists each transaction takes one slice, so that a short job waits for at most one slice.

    open the transaction     on PostgreSQL: lock the experiments; drop from memory those changed by another process
    carry out the commands   load experiments that are not in memory, on a reading connection
    write, commit, answer    on failure: answer with an error, and drop the changed experiments from memory

An error in one experiment affects only that experiment's commands. If it cannot be loaded, its commands are refused. If
a transaction fails because of one experiment's data, the commands are repeated one by one, each in its own transaction.
Then that experiment is refused without a try for a second at a time (`damaged`).
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
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import SQLAlchemyError

from aftereffect.service.errors import Corrupt, Refused
from aftereffect.service.experiment.commands import Ask, Command, Finish, Reports, Tell, inherit
from aftereffect.service.experiment.learned import Record, played_effects, remembered
from aftereffect.service.messages import Fields, is_id
from aftereffect.service.settings import ExperimentSettings, warmed
from aftereffect.service.store import event_log, keys, schema, webhooks
from aftereffect.service.store.database import UNREADABLE, Database, of_one_experiment, refusal, worth_another_try
from aftereffect.service.store.event_log import Changes, Loaded
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


Work = Callable[[Connection], Fields]
"""Writes something else, such as a token, on the connection that it gets, and returns the answer."""
Action = Command | Reports | Creation | Work


class Once(NamedTuple):
    """An action that has a key: if it was carried out before, it is answered as it was then.

    key, request: the hashes of the key, and of the request that it came with.
    """

    key: str
    request: str
    action: Action


Item = tuple[str, Action | Once]


@dataclass(eq=False)
class Job:
    """Items to carry out in order, and a future for their answers, of `concurrent.futures` or of `asyncio`."""

    items: Sequence[Item]
    future: Any = field(default_factory=Future)
    answers: list[Answer] = field(default_factory=list)


class Writer:
    """Carries out jobs in its own thread. damaged: experiments that could not be loaded or written, by id."""

    def __init__(self, database: Database, now: Callable[[], str]) -> None:
        self._database, self._now = database, now
        self.most_loaded = MOST_LOADED
        # In order of use, the least recently used first.
        self._loaded: dict[str, Loaded] = {}
        self._models: dict[str, Loaded] = {}
        self.damaged: dict[str, tuple[Refused, float]] = {}
        self._queue: queue.SimpleQueue[Job] = queue.SimpleQueue()
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
            # Wakes the thread.
            self._queue.put(Job([]))
        self._thread.join()

    # -- the queue --------------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        while not self._closed or self.waiting:
            pieces = self._take()
            if pieces:
                _deliver(pieces, self._carry_out([item for _, items in pieces for item in items]))
            while len(self._loaded) > self.most_loaded:
                del self._loaded[next(iter(self._loaded))]
            # If idle: a plain copy of the file is then complete.
            self._checkpoint(LOG_ROWS if pieces else 1)
        self._checkpoint(0)

    def _take(self) -> list[tuple[Job, Sequence[Item]]]:
        """Take all short jobs and one slice of the oldest long list; if there is none, wait for a job."""
        jobs: list[Job] = []
        with contextlib.suppress(queue.Empty):
            jobs.append(self._queue.get(timeout=0.0 if self._lists else QUIET_S))
            while True:
                jobs.append(self._queue.get_nowait())
        pieces = [(job, job.items) for job in jobs if len(job.items) <= SHORT]
        self._lists.extend(job for job in jobs if len(job.items) > SHORT)
        if self._lists:
            job = self._lists[0]
            start = stop = len(job.answers)
            loads: set[str] = set()
            while stop < min(len(job.items), start + SLICE) and len(loads) < SLICE_LOADS:
                identity = job.items[stop][0]
                if identity not in self._loaded:
                    loads.add(identity)
                stop += 1
            if stop == len(job.items):
                self._lists.popleft()
            pieces.append((job, job.items[start:stop]))
        return pieces

    def _checkpoint(self, rows: int) -> None:
        """Move the log of a SQLite file into it, if it has so many rows or more."""
        file = self._database.file
        if file is not None and not file.read_only and file.rows >= rows:
            file.checkpoint(self._database.writing)

    # -- transactions -----------------------------------------------------------------------------------------------

    def _carry_out(self, items: Sequence[Item]) -> list[Answer]:
        """Carry out items in order, and return their answers once all changes are synced to disk."""
        try:
            answers = self._commit(items) if items else []
        except Exception as error:
            # A bug in this code must not end the thread.
            _log.exception("a batch of %d commands failed", len(items))
            self._loaded.clear()
            return [Refused("busy", f"the service failed: {type(error).__name__}")] * len(items)
        if self.damaged:
            for (identity, _), answer in zip(items, answers, strict=True):
                if not isinstance(answer, Refused) or answer.status < 500:
                    self.damaged.pop(identity, None)
        return answers

    def _commit(self, items: Sequence[Item], again: bool = True) -> list[Answer]:
        """Carry out items in one transaction; if that fails because of one of several, each in its own."""
        touched, answers, committing = set[str](), list[Answer](), False
        try:
            with self._database.transaction() as transaction:
                if self._database.file is None:
                    self._lock(transaction.connection, items)
                changes = Changes(transaction.connection, self._now(), touched)
                answers.extend(self._do(changes, identity, command) for identity, command in items)
                changes.write()
                transaction.rows = max(changes.written, len(touched))
                # An error after this point comes from the commit.
                committing = transaction.rows > 0
        except Exception as error:
            for identity in touched.union(identity for identity, _ in items):
                self._loaded.pop(identity, None)
            if again and not committing and worth_another_try(error):
                return self._commit(items, again=False)
            problem, alone = refusal(error, committing=committing), not committing and of_one_experiment(error)
            if alone and len(items) > 1:
                return [answer for item in items for answer in self._commit([item])]
            if not isinstance(error, SQLAlchemyError):
                _log.exception("a command of experiment %s failed", items[0][0])
                problem = Corrupt(f"the command failed: {type(error).__name__}")
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
                problem if identity in touched else answer
                for (identity, _), answer in zip(items, answers, strict=True)
            ]
        return answers

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
        for number in sorted({int(command.key[:15], 16) for _, command in items if isinstance(command, Once)}):
            connection.execute(select(func.pg_advisory_xact_lock(number)))

    def _do(self, changes: Changes, identity: str, command: Action | Once) -> Answer:
        """Carry out one item in memory."""
        try:
            if isinstance(command, Once):
                return self._do_once(changes, identity, command)
            if isinstance(command, Creation):
                return self._create(changes, identity, command)
            if callable(command):
                answer = command(changes.connection)
                changes.touched.add(identity)
                return answer
            loaded = self._get(identity)
            if isinstance(command, Reports):
                return self._report(changes, loaded, command)
            done = loaded.experiment.do(command, changes.at, changes.recalled(loaded, command))
            if changes.add(loaded, done):
                self._keep_model(loaded)
            answer = {"experiment": identity, **done.answer}
            wanted = isinstance(command, Tell) and command.next and answer["open_round"] != command.round
            if wanted and answer["state"] == "running":
                answer["next"] = self._do(changes, identity, Ask())
            return answer
        except Refused as refused:
            return refused

    def _do_once(self, changes: Changes, identity: str, command: Once) -> Answer:
        """Carry out an action unless its key is known, and store the answer."""
        answer: Answer | None = keys.known(changes.connection, command.key, command.request)
        if answer is None:
            answer = self._do(changes, identity, command.action)
            if not isinstance(answer, Refused):
                keys.keep(changes.connection, command.key, command.request, answer, changes.at)
        # Also a known answer may be of this transaction, and must not be given if that fails.
        changes.touched.add(identity)
        return answer

    def _create(self, changes: Changes, identity: str, command: Creation) -> Answer:
        """Create an experiment; one that takes the place of another takes over its reminder."""
        settings, writing = command.settings, changes.connection
        source = None if command.source is None else self._get(command.source)
        before: list[Command | None] = []
        # Refused, if at all, before anything changes.
        if source is not None:
            known = source.experiment.settings
            changes.write()
            if settings.warm_start is not None:
                seen = event_log.seen(writing, source)
                before = [remembered(source.id, known, settings, seen)]
                effects, rounds = played_effects(known, seen), len(seen.arms)
                settings = warmed(settings, source.id, effects, rounds, required=not command.finish)
            else:
                older = event_log.remembered(writing, source)
                if older is not None:
                    before = [remembered(source.id, known, settings, Record(older.arms, older.totals))]
                rows, pauses = list(event_log.rows(writing, source)), event_log.pauses(writing, source)
                before.append(inherit(source.id, settings, rows, pauses, source.experiment.skipped))
        loaded = self._loaded[identity] = changes.create(identity, settings)
        for past in (each for each in before if each is not None):
            changes.add(loaded, loaded.experiment.do(past, changes.at))
            # To play the inherited rounds again at every load would be slow.
            loaded.checkpoint_at = loaded.seq
        if source is not None and command.finish:
            changes.recalled(source, Finish())
            changes.add(source, source.experiment.do(Finish(), changes.at))
            for reminder in webhooks.listed(writing, source.id):
                webhooks.change(writing, identity, reminder.webhook, reminder.after)
        return loaded.view().data

    def _report(self, changes: Changes, loaded: Loaded, command: Reports) -> Answer:
        """Carry out several reports, all or none: after a refusal the experiment is loaded as it was before."""
        answers: list[Fields] = []
        # Everything before these reports, so that they can be taken back.
        changes.write()
        # Not in memory until all are accepted.
        del self._loaded[loaded.id]
        try:
            with changes.connection.begin_nested():
                for done in loaded.experiment.report(command, changes.at, lambda step: changes.recalled(loaded, step)):
                    answers.append({"experiment": loaded.id, **done.answer})
                    if changes.add(loaded, done):
                        self._keep_model(loaded)
                changes.write()
        except Refused:
            changes.drop()
            # On the connection that sees what this transaction has written before.
            self._loaded[loaded.id] = event_log.load(changes.connection, loaded.id)
            raise
        self._loaded[loaded.id] = loaded
        told = [answer for answer in answers if "repeated" in answer]
        return {"experiment": loaded.id, "items": told, "next": answers[-1] if answers[-1] is not told[-1] else None}

    def _get(self, identity: str) -> Loaded:
        """Return an experiment from memory, or load it; raise Refused if it cannot be loaded."""
        problem, until = self.damaged.get(identity, (None, 0.0))
        if problem is not None and time.monotonic() < until:
            raise Refused(problem.code, problem.detail, **problem.extra)
        loaded = self._loaded.pop(identity, None)
        if loaded is None:
            try:
                # Not on the connection that writes: damaged data may end its transaction.
                with self._database.internal.connect() as reading:
                    loaded = event_log.load(reading, identity)
            except UNREADABLE as error:
                if not of_one_experiment(error):
                    raise
                problem = refusal(error)
                if problem.code != "not_found":
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


def _deliver(pieces: Sequence[tuple[Job, Sequence[Item]]], answers: list[Answer]) -> None:
    """Add the answers to their jobs, and resolve complete jobs; each event loop is called once for all its jobs."""
    loops: dict[asyncio.AbstractEventLoop | None, list[Job]] = {}
    left = iter(answers)
    for job, items in pieces:
        job.answers.extend(islice(left, len(items)))
        if len(job.answers) == len(job.items):
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
