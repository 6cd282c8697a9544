"""The interface that `Client` (a server) and `Local` (a database without a server) share.

The methods are defined once, here; `Client` and `Local` differ only in how they carry out an operation. The command
line uses this interface, so its commands behave the same with both.
"""

import ipaddress
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http.client import responses
from types import EllipsisType
from typing import Any, Self

from aftereffect.core.checks import integer
from aftereffect.core.errors import AftereffectError
from aftereffect.service import messages
from aftereffect.service.errors import CODES, Refused
from aftereffect.service.messages import MOST_ITEMS, Overview, Page, Report, Row, Summary, Turn, Verdict

Unit = str | int | None


class ProblemError(Refused):
    """A server refused a request or could not be reached: `.status`, `.code`, `.detail`, `.problem()`."""

    def __init__(self, status: int, code: str, detail: str, **extra: Any) -> None:
        # A newer server may use codes that are not in the table.
        AftereffectError.__init__(self, detail)
        self.code, self.status, self.detail, self.extra = code, status, detail, extra
        self.title = CODES[code][1] if code in CODES else responses.get(status, f"Status {status}")

    @classmethod
    def of(cls, status: int, body: Any) -> Self:
        """Return the error that a problem document describes; `status` is used if the document has none."""
        found = dict(body) if isinstance(body, Mapping) else {}
        title, code, detail, told, _ = (found.pop(k, None) for k in ("title", "code", "detail", "status", "type"))
        words = detail or title or f"the server answered with status {status}"
        return cls(told if isinstance(told, int) else status, str(code or f"status_{status}"), str(words), **found)


class Service(ABC):
    """Operations on experiments, by id. A refused operation raises `Refused`; a change is durable once it is answered.

    Close the service, or use it in a `with` statement.
    """

    @abstractmethod
    def close(self) -> None:
        """Close connections and release locks."""

    @abstractmethod
    def _call(self, operation: str, *path: Any, body: Any = None, again: bool = True, **query: Any) -> Any:
        """Carry out an operation and return its answer as JSON. again: the operation may be retried."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create(self, **settings: Any) -> Overview:
        """Create an experiment: name, arms, high, max_delay or carry_over or pilot, ...; see docs/guides/service.md."""
        return Overview.read(self._call("create", body=settings, again=False))

    def correct(self, experiment: str, **changes: Any) -> Overview:
        """Return a new experiment with some settings of this one changed, and with its rounds; this one is finished.

        The learner hears the inherited totals where it would have played the same arm. The guarantee is void.
        """
        return Overview.read(self._call("correct", experiment, body=changes, again=False))

    def continue_with(
        self, experiment: str, add: Sequence[str] = (), retire: Sequence[str] = (), **changes: Any
    ) -> Overview:
        """Return a new experiment with arms added or retired, which begins with what this one has measured.

        This one is finished. The guarantee of the new one includes what its beginning costs if it is wrong.
        """
        body = {"add": list(add), "retire": list(retire), **changes}
        return Overview.read(self._call("continue_with", experiment, body=body, again=False))

    def experiment(self, experiment: str) -> Overview:
        """Return one experiment."""
        return Overview.read(self._call("experiment", experiment))

    def experiments(
        self, after: str | None = None, limit: int = 100, state: str | None = None, search: str | None = None
    ) -> Page[Summary]:
        """Return a page of experiments. search: only those whose names contain this text."""
        return Page[Summary].read(self._call("experiments", after=after, limit=limit, state=state, search=search))

    def all_experiments(self, search: str | None = None) -> Iterator[Summary]:
        """Yield all experiments, page by page."""
        return _items(lambda after: self.experiments(after, limit=MOST_ITEMS, search=search))

    def compare(self, experiments: Iterable[str]) -> list[messages.Comparison]:
        """Return the most important figures of some experiments, by their ids, in order."""
        return messages.Comparisons.read(self._call("compare", ids=",".join(experiments))).items

    def note(self, experiment: str, round: int, note: str | None, unit: Unit = None) -> Report:
        """Write a note on a round, such as "holiday"; None removes it."""
        return Report.read(self._call("note", experiment, integer("round", round), body=_body(unit, note=note)))

    def reminder(self, experiment: str) -> messages.Reminder:
        """Return the reminder of an experiment, and how its latest call went."""
        return messages.Reminder.read(self._call("reminder", experiment))

    def remind(self, experiment: str, webhook: str | None, after: str | float = "12 hours") -> messages.Reminder:
        """Have a webhook of the operator's list called so long after a round ended without a report; None for none."""
        if webhook is None:
            self._call("forget_reminder", experiment)
        else:
            self._call("remind", experiment, body={"webhook": webhook, "after": after})
        return self.reminder(experiment)

    def ask(self, experiment: str, unit: Unit = None) -> Turn:
        """Return the arm to play in the open round, and why; open the next round if none is open."""
        return Turn.read(self._call("ask", experiment, body=_body(unit)))

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
        body = _body(unit, total=total) | ({} if ahead else {"ahead": False}) | ({"next": True} if next else {})
        return Report.read(self._call("tell", experiment, integer("round", round), body=body))

    def tell_many(
        self,
        experiment: str,
        items: Iterable[Mapping[str, Any]] | None = None,
        *,
        csv: str | None = None,
        ahead: bool = True,
        next: bool = False,
        restate: bool = False,
    ) -> messages.ManyReports:
        """Report several rounds, all or none: {"total", "round"?, "date"?, "unit"?, "arm"?}, or the text of a CSV file.

        A round that is not open yet is opened first; its arm must be given unless it plays that of the latest round.
        restate: another total for a round that has one is a correction (see `amend`), not a conflict.
        """
        told = None if items is None else [dict(item) for item in items]
        body = {**({"csv": csv} if told is None else {"items": told}), "ahead": ahead, "next": next}
        body |= {"restate": True} if restate else {}
        # Repeated without their rounds, they would be reports of further rounds.
        named = told is not None and all(item.get("round") or item.get("date") for item in told)
        return messages.ManyReports.read(self._call("reports", experiment, body=body, again=named))

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
        if was is ... and integer("round", round) > 0:
            rows = self.rounds(experiment, after=round - 1, limit=MOST_ITEMS).items
            was = next((row.total for row in rows if row.round == round and row.unit == str(unit or row.unit)), ...)
        body = _body(unit, total=total) if was is ... else _body(unit, total=total, was=was)
        return Report.read(self._call("amend", experiment, round, body=body, again=was is not ...))

    def start(self, experiment: str) -> Overview:
        """Start a draft."""
        return self.change(experiment, "start")

    def accept(self, experiment: str, max_delay: int | None = None) -> Overview:
        """End the pilot and play on with this max_delay, or with the one that `carryover` proposes."""
        return Overview.read(self._call("accept", experiment, body={"max_delay": max_delay}))

    def carryover(self, experiment: str) -> messages.EffectsByLag:
        """Return how long effects last, estimated from the rounds of the pilot or else from the latest rounds."""
        return messages.EffectsByLag.read(self._call("carryover", experiment))

    def pause(self, experiment: str) -> Overview:
        """Pause: no round opens until `resume`."""
        return self.change(experiment, "pause")

    def resume(self, experiment: str) -> Overview:
        """Resume after a pause, with max_delay rounds of warm-up."""
        return self.change(experiment, "resume")

    def finish(self, experiment: str) -> Overview:
        """End the experiment permanently; `winner` of the result says which arm won."""
        return self.change(experiment, "finish")

    def away(self, experiment: str, arm: str) -> Overview:
        """Mark an arm as unavailable; the guarantee is void from then on."""
        return self.change(experiment, "away", arm)

    def back(self, experiment: str, arm: str) -> Overview:
        """Mark an arm as available again."""
        return self.change(experiment, "back", arm)

    def change(self, experiment: str, verb: str, *arm: str) -> Overview:
        """Start, pause, resume or finish an experiment, or mark an arm as away or back."""
        return Overview.read(self._call(verb, experiment, *arm))

    def rounds(self, experiment: str, after: str | int | None = None, limit: int = 100) -> Page[Row]:
        """Return a page of the record, one row per round and unit."""
        return Page[Row].read(self._call("rounds", experiment, after=after, limit=limit))

    def events(self, experiment: str, after: int = 0, limit: int = 100) -> Page[messages.Event]:
        """Return a page of the stored event log."""
        return Page[messages.Event].read(self._call("events", experiment, after=after, limit=limit))

    def series(self, experiment: str, last: int = 2000) -> messages.Series:
        """Return the data of the charts, column by column, for the latest `last` rows."""
        return messages.Series.read(self._call("series", experiment, last=last))

    def export(self, experiment: str, form: str = "csv") -> bytes:
        """Return the record as a CSV or Parquet file."""
        return bytes(self._call("export", experiment, format=form))

    def verify(self, experiment: str | None = None) -> list[Verdict]:
        """Replay the log of one experiment, or of all, and compare the result bit for bit with the stored data."""
        if experiment is not None:
            return [Verdict.read(self._call("verify", experiment))]
        return list(_items(lambda after: Page[Verdict].read(self._call("verify_all", after=after))))

    def bulk_ask(self, items: Iterable[Mapping[str, Any] | str]) -> list[Turn | ProblemError]:
        """Ask for many experiments at once: ids, or {"experiment", "unit"}; each item has its own answer or error."""
        asked = [{"experiment": item} if isinstance(item, str) else dict(item) for item in items]
        return _answers(messages.BulkReply[Turn].read(self._call("bulk_ask", body={"items": asked})))

    def bulk_tell(self, items: Iterable[Mapping[str, Any]]) -> list[Report | ProblemError]:
        """Report many totals: {"experiment", "round", "total", "unit"?}; each item has its own answer or error."""
        told = [dict(item) for item in items]
        return _answers(messages.BulkReply[Report].read(self._call("bulk_tell", body={"items": told})))

    def plan(self, n_arms: int, **question: Any) -> messages.Plan:
        """Return what a choice of carry-over implies; nothing is stored."""
        return messages.Plan.read(self._call("plan", body={**question, "n_arms": n_arms}))

    def create_token(self, name: str, scopes: Sequence[str]) -> messages.Token:
        """Create a token; only this answer contains it."""
        return messages.Token.read(self._call("create_token", body={"name": name, "scopes": list(scopes)}, again=False))

    def tokens(self) -> list[messages.KnownToken]:
        """List the tokens: names, scopes, dates, never the tokens themselves."""
        return messages.Tokens.read(self._call("tokens")).items

    def revoke_token(self, token_id: str) -> None:
        """Revoke a token."""
        self._call("revoke_token", token_id, again=False)


def _items(page_after: Callable[[Any], Page[messages.Item]]) -> Iterator[messages.Item]:
    """Yield the items of all pages."""
    page = page_after(None)
    yield from page.items
    while page.next is not None:
        page = page_after(page.next)
        yield from page.items


def _body(unit: Unit, **fields: Any) -> dict[str, Any]:
    return fields if unit is None else {**fields, "unit": str(unit)}


def _answers(found: messages.BulkReply[messages.Item]) -> list[messages.Item | ProblemError]:
    return [ProblemError.of(500, x.error.data) if isinstance(x, messages.Unanswered) else x for x in found.items]


def is_loopback(host: str) -> bool:
    """Return whether a server bound to `host` can be reached from its own machine only.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
