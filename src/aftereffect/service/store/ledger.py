"""Experiments in memory, and how a batch of commands is carried out and kept: all in one transaction, or not at all.

If the transaction fails nobody hears "done": the experiments it touched are thrown away, in memory, and the next
command takes them up from the store. On PostgreSQL the transaction starts by locking the rows of its experiments, in
one order for all processes; those that another process has moved meanwhile are taken up anew.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from aftereffect.service.errors import Refused
from aftereffect.service.experiment.experiment import Experiment
from aftereffect.service.store import chain
from aftereffect.service.store.batch import Batch
from aftereffect.service.store.dictation import Script
from aftereffect.service.store.jobs import Answer, Creation, Form, Item, Outcome, Work
from aftereffect.service.store.loading import Held, is_identity, load
from aftereffect.service.store.lookup import Source, Unsure
from aftereffect.service.store.pages import Fault, Page
from aftereffect.service.store.places import Place
from aftereffect.service.store.reader import Reader
from aftereffect.service.store.sweeping import Sweeper
from aftereffect.service.store.troubles import refusal, worth_another_try

MOST_HELD = 16_384
"""How many experiments stay in memory."""
SET_DOWN_AFTER = 256
"""After so many commands of a long list what they did is set down, before it falls out of the processor's cache."""

_LOCK = "SELECT id, seq, head FROM experiments WHERE id = ANY(%s) ORDER BY id FOR UPDATE"
_NEXT = "SELECT nextval(pg_get_serial_sequence('experiments', 'number'))"
_LAST = (
    "SELECT coalesce(max(number), 0) FROM ("
    "SELECT max(number) AS number FROM experiments UNION ALL SELECT max(experiment) FROM events) AS known"
)
# Everything else is for an experiment that is there.
_FURTHER = (Creation, Work)
_log = logging.getLogger(__name__)


class Ledger:
    """Carries out batches, always from the same thread; only `keep` may run in another."""

    def __init__(self, place: Place, now: Callable[[], str]) -> None:
        """Hold no experiment yet."""
        self._place, self._now = place, now
        self.shared = not place.is_sqlite
        self.most_held = MOST_HELD
        self._held: dict[str, Held] = {}
        # Counts batches, to know who has been idle longest.
        self._clock = 0
        self._source = Source()
        self.sweeper = Sweeper(place)
        self._last_number: int | None = None

    def run(self, items: Sequence[Item], form: Form | None = None) -> list[Outcome]:
        """Carry out the items in order and return their answers once all of it is on the disk."""
        if self.shared or any(isinstance(command, Work) for _, command in items):
            return self._run_inside(items, form)
        with Reader(self._place.reading) as reader:
            page = self._carry_out(reader, items, form)
        try:
            problem = self.keep(page)
        except BaseException:
            self.forget(page)
            raise
        if problem is not None:
            self.forget(page)
            return self.failed(page, problem)
        return page.answers

    def _run_inside(self, items: Sequence[Item], form: Form | None) -> list[Outcome]:
        """Carry out the items inside the transaction that keeps them: other processes wait for it."""
        page, again = Page(items, form), True
        committing = False
        while True:
            try:
                with self._place.writing.connect() as connection:
                    if self.shared:
                        self._lock(connection, {identity for identity, _ in items})
                    page = self._carry_out(Reader(connection), items, form)
                    if page.writes:
                        rows = page.batch.write(connection)
                        committing = True
                        connection.commit()
                        self.sweeper.count(rows or 1)
            except SQLAlchemyError as error:
                self.forget(page)
                self._place.writing.dispose()
                if again and not committing and worth_another_try(error):
                    again = False
                    continue
                return self.failed(page, refusal(error, committing=committing))
            except BaseException:
                self.forget(page)
                raise
            return page.answers

    def prepare(self, items: Sequence[Item], form: Form | None, before: Page | None) -> Page:
        """Carry out items in memory only, after those of a page that is being kept at this moment.

        Only where this process alone writes. What is not in memory is read by another connection: it shows what is
        committed, and what `before` touched is in memory. Whatever fails is for the caller, who must let `before` land
        first: what has been thrown away can be taken up from the store only then.
        """
        page = Page(items, form, Script())
        with Reader(self._place.reading) as reader:
            self._try(reader, page, {}, before)
        return page

    def keep(self, page: Page) -> Refused | None:
        """Write a page that was carried out in memory; return what is wrong, None when it is on the disk."""
        if not page.writes:
            return None
        try:
            if page.script is not None and self._place.dictates():
                self._place.dictate(page.script)
            else:
                self._write(page)
        except SQLAlchemyError as error:
            return refusal(error)
        self.sweeper.count(page.rows)
        return None

    def _write(self, page: Page) -> None:
        try:
            with self._place.transaction() as connection:
                page.write(connection)
        except SQLAlchemyError:
            self._place.writing.dispose()
            raise

    def _lock(self, connection: Connection, identities: Iterable[str]) -> None:
        """Lock the experiments of a batch, and forget those that another process has moved.

        The hash tells histories apart: a backup that was restored, or a standby that took over, may be just as long.
        """
        wanted = [identity for identity in identities if is_identity(identity)]
        heads = {found.id: (found.seq, found.head) for found in connection.exec_driver_sql(_LOCK, (wanted,))}
        for identity in wanted:
            held = self._held.get(identity)
            if held is not None and (held.seq, held.head) != heads.get(identity):
                del self._held[identity]

    def _carry_out(self, reader: Reader, items: Sequence[Item], form: Form | None) -> Page:
        """Run the items; one that makes the code fail is left out, and the others are run once more."""
        faults: dict[int, Refused] = {}
        while True:
            page = Page(items, form)
            try:
                self._try(reader, page, faults, None)
                return page
            except Fault as fault:
                _log.exception("item %d of %d failed", fault.index, len(items))
                faults[fault.index] = Refused("corrupt", f"the command failed: {type(fault.__cause__).__name__}")

    def _try(self, reader: Reader, page: Page, faults: dict[int, Refused], before: Page | None) -> None:
        source, at, n = self._source, self._now(), len(page.items)
        source.reader = reader
        source.on_their_way = (page.on_their_way,) if before is None else (page.on_their_way, before.on_their_way)
        self._clock += 1
        some = n if page.script is None else SET_DOWN_AFTER
        try:
            for start in range(0, n, some):
                source.batches = (page.batch,)
                self._each(reader, page, start, page.items[start : start + some], at, faults)
                page.seal()
        except BaseException:
            self.forget(page)
            raise
        finally:
            source.reader, source.batches, source.on_their_way = None, (), ()

    def _each(
        self, reader: Reader, page: Page, start: int, items: Sequence[Item], at: str, faults: dict[int, Refused]
    ) -> None:
        held_now, batch, answers, form, clock = self._held, page.batch, page.answers, page.form, self._clock
        for index, (identity, command) in enumerate(items, start):
            if faults and index in faults:
                answers.append(faults[index])
                continue
            try:
                if isinstance(command, _FURTHER):
                    answers.append(self._further(reader.connection, batch, identity, command, at))
                    continue
                held = held_now.get(identity)
                if held is None:
                    held = self._hold(load(reader.connection, identity))
                held.used = clock
                wanted = held.experiment.forgotten(command)
                recalled = None if wanted is None else self._source.row(held, *wanted)
                done = held.experiment.do(command, at, recalled)
                if done.event is not None:
                    batch.add(held, done.event, done.rows)
                answers.append(done.answer if form is None else form(identity, done.answer))
            except Refused as refused:
                answers.append(refused)
            except (SQLAlchemyError, Unsure):
                raise
            except Exception as error:
                self._held.pop(identity, None)
                raise Fault(index) from error

    def _further(
        self, connection: Connection, batch: Batch, identity: str, command: Creation | Work, at: str
    ) -> Answer:
        if isinstance(command, Work):
            return command.act(connection)
        settings = chain.canonical(command.settings.to_json())
        head, experiment = chain.genesis(identity, settings, at), Experiment(command.settings)
        held = Held(self._number(connection), identity, at, experiment, 0, head)
        held.used = self._clock
        batch.create(self._hold(held), command.settings.name, settings)
        return held.view()

    def _hold(self, held: Held) -> Held:
        self._held[held.id] = held
        return held

    def _number(self, connection: Connection) -> int:
        """Return the next experiment's number; one that is not kept in the end is left out."""
        if self.shared:
            return int(connection.exec_driver_sql(_NEXT).scalar_one())
        if self._last_number is None:
            self._last_number = int(connection.exec_driver_sql(_LAST).scalar_one())
        self._last_number += 1
        return self._last_number

    def failed(self, page: Page, problem: Refused) -> list[Outcome]:
        """Answer a page that was not kept; on SQLite, answers that came from what is committed stand."""
        _log.warning("a batch of %d commands was not acknowledged: %s", len(page.items), problem.detail)
        stands, touched = not self.shared and len(page.answers) == len(page.items), page.touched
        return [
            page.answers[i] if stands and identity and identity not in touched else problem
            for i, (identity, _) in enumerate(page.items)
        ]

    def forget(self, page: Page) -> None:
        """Throw away the experiments that a page touched."""
        for identity in page.touched:
            self._held.pop(identity, None)

    def forget_all(self) -> None:
        """Throw away every experiment in memory; each is taken up from the store when it is next asked for."""
        self._held.clear()

    def shrink(self, page: Page | None = None) -> None:
        """Forget who was idle longest; page: what it touched is not on the disk yet, and stays."""
        if len(self._held) <= self.most_held:
            return
        stays: Collection[str] = () if page is None else page.touched
        idle = sorted((held.used, identity) for identity, held in self._held.items() if identity not in stays)
        # Some more than must go, so that this is not done all the time.
        for _, identity in idle[: len(self._held) - self.most_held + self.most_held // 8]:
            del self._held[identity]
