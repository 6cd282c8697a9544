"""The interface that `Client` (a server) and `Local` (a database without a server) share.

The methods are defined once, here; `Client` and `Local` differ only in how they carry out an operation. The command
line uses this interface, so its commands behave the same with both.
"""

import ipaddress
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import EllipsisType
from typing import Any, Self

from aftereffect.core.checks import integer
from aftereffect.core.frames import is_frame
from aftereffect.service import messages, operations, totals
from aftereffect.service.errors import Refused
from aftereffect.service.messages import MOST_ITEMS, Overview, Page, Report, Row, Summary, Turn, Verdict
from aftereffect.service.operations import Operation, R

Unit = str | int | None


class Service(ABC):
    """Operations on experiments, by id. A refused operation raises `Refused`; a change is durable once it is answered.

    Close the service, or use it in a `with` statement.
    """

    @abstractmethod
    def close(self) -> None:
        """Close connections and release locks."""

    @abstractmethod
    def _answer(self, operation: Operation[Any], path: Mapping[str, Any], body: Any, query: Mapping[str, Any]) -> Any:
        """Carry out an operation and return its answer, as JSON or as bytes."""

    def _call(self, operation: Operation[R], /, *path: Any, **given: Any) -> R:
        """Carry out an operation and return its reply. given: the fields of its body if it has one, or its query."""
        query = {name: value for name, value in given.items() if value is not None and operation.body is None}
        body = given if operation.body is not None else None
        return operation.replied(self._answer(operation, dict(zip(operation.names, path, strict=True)), body, query))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create(self, **settings: Any) -> Overview:
        """Create an experiment. Needed are name and arms; for a guarantee also high, and max_delay or carry_over.

        The others are low, direction, units, round_length, start_date, measure, horizon, player, max_lag, out_of_range,
        seed, draft, prior and warm_start: those of `aftereffect init --help`, and of docs/guides/service.md.
        """
        return self._call(operations.create, **settings)

    def correct(self, experiment: str, **changes: Any) -> Overview:
        """Return a new experiment with some settings of this one changed, and with its rounds; this one is finished.

        The learner hears the inherited totals where it would have played the same arm. The guarantee is void.
        """
        return self._call(operations.correct, experiment, **changes)

    def continue_with(
        self, experiment: str, add: Sequence[str] = (), retire: Sequence[str] = (), **changes: Any
    ) -> Overview:
        """Return a new experiment with arms added or retired, which begins with what this one has measured.

        This one is finished. The guarantee of the new one includes what its beginning costs if it is wrong.
        """
        return self._call(operations.continue_with, experiment, add=list(add), retire=list(retire), **changes)

    def experiment(self, experiment: str) -> Overview:
        """Return one experiment."""
        return self._call(operations.experiment, experiment)

    def learned(self, experiment: str) -> messages.Learned:
        """Return what all totals so far say about the arms, whoever chose them."""
        return self._call(operations.learned, experiment)

    def experiments(
        self, after: str | None = None, limit: int = 100, state: str | None = None, search: str | None = None
    ) -> Page[Summary]:
        """Return a page of experiments. search: only those whose names contain this text."""
        return self._call(operations.experiments, after=after, limit=limit, state=state, search=search)

    def all_experiments(self, search: str | None = None) -> Iterator[Summary]:
        """Yield all experiments, page by page."""
        return _items(lambda after: self.experiments(after, limit=MOST_ITEMS, search=search))

    def compare(self, experiments: Iterable[str]) -> list[messages.Comparison]:
        """Return the most important figures of some experiments, by their ids, in order."""
        return self._call(operations.compare, ids=",".join(map(str, experiments))).items

    def note(self, experiment: str, round: int, note: str | None, unit: Unit = None) -> Report:
        """Write a note on a round, such as "holiday"; None removes it."""
        return self._call(operations.note, experiment, integer("round", round), note=note, unit=unit)

    def reminder(self, experiment: str) -> messages.Reminder:
        """Return the reminder of an experiment, and how its latest call went."""
        return self._call(operations.reminder, experiment)

    def remind(
        self,
        experiment: str,
        webhook: str | None,
        after: str | float = "12 hours",
        *,
        before: str | float | None = None,
    ) -> messages.Reminder:
        """Have a webhook of the operator's list called so long after a round ended without a report; None for none.

        before: instead, so long before the end of every round, with what to play, what is overdue, and alarms.
        """
        if webhook is None:
            self._call(operations.forget_reminder, experiment)
            return self.reminder(experiment)
        return self._call(operations.remind, experiment, webhook=webhook, after=after, before=before)

    def ask(self, experiment: str, unit: Unit = None) -> Turn:
        """Return the arm to play in the open round, and why; open the next round if none is open."""
        return self._call(operations.ask, experiment, unit=unit)

    def tell(
        self,
        experiment: str,
        round: int,
        total: float | None,
        unit: Unit = None,
        *,
        ahead: bool = True,
        next: bool = False,
    ) -> Report:
        """Report the total of a round; None closes it as missing. Repeating the same report has no effect.

        ahead: if False, a round is refused before its date. next: also open the next round, if this one is closed.
        """
        given = {"total": total, "unit": unit, "ahead": ahead, "next": next}
        return self._call(operations.tell, experiment, integer("round", round), **given)

    def tell_many(
        self,
        experiment: str,
        items: Any = None,
        *,
        csv: str | None = None,
        first: int | None = None,
        ahead: bool = True,
        next: bool = False,
        restate: bool = False,
    ) -> messages.ManyReports:
        """Report several rounds, all or none: {"total", "round"?, "date"?, "unit"?, "arm"?}, or the text of a CSV file.

        items: a list of such dicts, or a table of pandas, polars or Arrow with such columns; a null total is missing.
        A round that is not open yet is opened first; its arm must be given unless it plays that of the latest round.
        first: the round of the first report, if they name none; a file must name them, so that it can be sent twice.
        restate: another total for a round that has one is a correction (see `amend`), not a conflict.
        """
        if items is not None and is_frame(items):
            items, csv = None, totals.of_table(items)
        given = {"items": _listed(items), "csv": csv, "first": first, "ahead": ahead, "next": next, "restate": restate}
        return self._call(operations.reports, experiment, **given)

    def amend(
        self,
        experiment: str,
        round: int,
        total: float | None,
        unit: Unit = None,
        *,
        was: float | EllipsisType | None = ...,
    ) -> Report:
        """Correct a total, or report a late one.

        If the round's block has ended and the total was learned from, what was learned is corrected too (`correction`
        of the answer says so), and the certificate includes what the late correction cost.

        was: the total to be corrected, by default the current one. If the round has a different total when the request
        arrives, it is refused as a conflict, so a retried request never overwrites another client's correction.
        """
        number = integer("round", round)
        if was is ...:
            rows = self.rounds(experiment, after=max(number - 1, 0), limit=MOST_ITEMS).items
            wanted = rows[0].unit if unit is None and rows else str(unit)
            was = next((row.total for row in rows if row.round == number and row.unit == wanted), None)
        return self._call(operations.amend, experiment, number, total=total, unit=unit, was=was)

    def start(self, experiment: str) -> Overview:
        """Start a draft."""
        return self.change(experiment, "start")

    def pause(self, experiment: str) -> Overview:
        """Pause: no round opens until `resume`."""
        return self.change(experiment, "pause")

    def resume(self, experiment: str) -> Overview:
        """Resume after a pause, with max_delay rounds of warm-up."""
        return self.change(experiment, "resume")

    def finish(self, experiment: str) -> Overview:
        """End the experiment permanently; `learned` says which arm won, and how sure that is."""
        return self.change(experiment, "finish")

    def away(self, experiment: str, arm: str) -> Overview:
        """Mark an arm as unavailable; the guarantee is void from then on."""
        return self.change(experiment, "away", arm)

    def back(self, experiment: str, arm: str) -> Overview:
        """Mark an arm as available again."""
        return self.change(experiment, "back", arm)

    def change(self, experiment: str, verb: str, *arm: str) -> Overview:
        """Start, pause, resume or finish an experiment, or mark an arm as away or back."""
        operation: Operation[Overview] = operations.OPERATIONS[verb]
        return self._call(operation, experiment, *arm)

    def rounds(self, experiment: str, after: str | int | None = None, limit: int = 100) -> Page[Row]:
        """Return a page of the record, one row per round and unit."""
        return self._call(operations.rounds, experiment, after=after, limit=limit)

    def events(self, experiment: str, after: int = 0, limit: int = 100) -> Page[messages.Event]:
        """Return a page of the stored event log."""
        return self._call(operations.events, experiment, after=after, limit=limit)

    def series(self, experiment: str, last: int = 2000) -> messages.Series:
        """Return the data of the charts, column by column, for the latest `last` rows."""
        return self._call(operations.series, experiment, last=last)

    def export(self, experiment: str, form: str = "csv") -> bytes:
        """Return the record as a CSV or Parquet file."""
        return self._call(operations.export, experiment, format=form)

    def verify(self, experiment: str | None = None) -> list[Verdict]:
        """Replay the log of one experiment, or of all, and compare the result bit for bit with the stored data."""
        if experiment is not None:
            return [self._call(operations.verify, experiment)]
        return list(_items(lambda after: self._call(operations.verify_all, after=after)))

    def bulk_ask(self, items: Iterable[Mapping[str, Any] | str]) -> list[Turn | Refused]:
        """Ask for many experiments at once: ids, or {"experiment", "unit"}; each item has its own answer or error."""
        return _answers(self._call(operations.bulk_ask, items=_listed(items, "experiment")))

    def bulk_tell(self, items: Iterable[Mapping[str, Any]]) -> list[Report | Refused]:
        """Report many totals: {"experiment", "round", "total", "unit"?}; each item has its own answer or error."""
        return _answers(self._call(operations.bulk_tell, items=_listed(items)))

    def plan(self, n_arms: int, **question: Any) -> messages.Plan:
        """Return what to expect of settings; nothing is stored.

        question: settings of `create`, without a name; gap and noise, guesses as in `aftereffect.plan`.
        """
        return self._call(operations.plan, **question | {"arms": n_arms})

    def create_token(self, name: str, scopes: Sequence[str]) -> messages.Token:
        """Create a token; only this answer contains it."""
        return self._call(operations.create_token, name=name, scopes=list(scopes))

    def tokens(self) -> list[messages.KnownToken]:
        """List the tokens: names, scopes, dates, never the tokens themselves."""
        return self._call(operations.tokens).items

    def revoke_token(self, token_id: str) -> None:
        """Revoke a token."""
        self._call(operations.revoke_token, token_id)


def _items(page_after: Callable[[Any], Page[messages.Item]]) -> Iterator[messages.Item]:
    """Yield the items of all pages."""
    page = page_after(None)
    yield from page.items
    while page.next is not None:
        page = page_after(page.next)
        yield from page.items


def _listed(items: Any, key: str = "") -> Any:
    """Return items as a list of dicts; what is none is left to the rules of the operation.

    key: of an item that is text.
    """
    if not isinstance(items, Iterable):
        return items
    named = ({key: item} if key and isinstance(item, str) else item for item in items)
    return [dict(item) if isinstance(item, Mapping) else item for item in named]


def _answers(found: messages.BulkReply[messages.Item]) -> list[messages.Item | Refused]:
    return [Refused.from_problem(500, x.error.data) if isinstance(x, messages.Unanswered) else x for x in found.items]


def is_loopback(host: str) -> bool:
    """Return whether a server bound to `host` can be reached from its own machine only.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
