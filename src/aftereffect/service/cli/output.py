"""The output of commands and their exit statuses.

An answer is printed as a few lines of text, or as the JSON that the server would send. An error is printed as one line
(or as a problem document) on standard error. The exit statuses are stable:

    0 done        1 unexpected      2 bad usage, an invalid value, or not allowed      3 not found
    4 conflict (another total for a reported round, a closed block, the wrong state)
    5 unavailable (no server, store busy or full, too many requests)                   6 corrupt (found by `verify`)
"""

import errno
import json
import logging
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from aftereffect.core.errors import AftereffectError
from aftereffect.core.text import counted, printed_table
from aftereffect.service import messages, words
from aftereffect.service.errors import Refused
from aftereffect.service.settings import duration

if TYPE_CHECKING:
    from rich.table import Table


DONE, UNEXPECTED, INVALID, NOT_FOUND, CONFLICT, UNAVAILABLE, CORRUPT = range(7)
BY_CODE = {"corrupt": CORRUPT, "full": UNAVAILABLE}
BY_STATUS = {404: NOT_FOUND, 409: CONFLICT, 429: UNAVAILABLE, 502: UNAVAILABLE, 503: UNAVAILABLE, 504: UNAVAILABLE}
# Codes for system errors caused by the path; other errors (no space, a failing disk) have the code "full".
PATHS = {errno.ENOENT: "not_found"} | dict.fromkeys(
    (errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.EROFS, errno.ENAMETOOLONG), "invalid"
)
WRITER = "aftereffect.service.store.writer"


WIDEST = 10_000
"""The maximum width of a table."""
Lines = Iterable["str | Table"]
"""Lines of text, and tables."""


class Format(StrEnum):
    """The output format of a command."""

    TABLE = "table"
    JSON = "json"


class Answer(NamedTuple):
    """What a command prints: data as JSON, or text. status: its exit status."""

    data: Any
    lines: Lines
    status: int = DONE


def exit_status(error: Refused) -> int:
    """Return the exit status of an error.

    >>> exit_status(Refused("conflict", "round 3 was reported with another total"))
    4
    """
    default = INVALID if error.status < 500 else UNEXPECTED
    return BY_CODE.get(error.code, BY_STATUS.get(error.status, default))


def refusal(error: OSError) -> Refused:
    """Return the error for a file, or standard output, that cannot be written or read.

    >>> refusal(OSError(errno.ENOSPC, "No space left on device", "all.csv")).detail
    "'all.csv' could not be written or read: No space left on device"
    """
    what = "the output" if error.filename is None else repr(str(error.filename))
    words = f"{what} could not be written or read: {error.strerror or error}"
    return Refused(PATHS.get(error.errno or 0, "full"), words)


@contextmanager
def exit_on_error(form: Format = Format.TABLE) -> Iterator[None]:
    """Turn errors raised inside into a message on standard error and an exit status."""
    # The error is printed here, so the writer's log of it is suppressed; with JSON output, all logs are.
    logger = logging.getLogger("aftereffect" if form is Format.JSON else WRITER)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    try:
        yield
    except AftereffectError as error:
        raise _exit(error, form) from None
    except OSError as error:
        # The reader of a pipe has closed it: no message.
        if error.errno == errno.EPIPE:
            raise
        _discard_output()
        raise _exit(refusal(error), form) from None
    except ModuleNotFoundError as error:
        # Only packages of the extra may be missing; a missing module of our own is a bug.
        if error.name is None or error.name.split(".")[0] == "aftereffect":
            raise
        extra = "install the extra: pip install 'aftereffect[service]'"
        typer.echo(f"aftereffect: the decision service needs {error.name}; {extra}", err=True)
        raise typer.Exit(INVALID) from None


def _exit(error: AftereffectError, form: Format) -> typer.Exit:
    """Print an error, and return the exception that ends the command with its exit status."""
    problem = error if isinstance(error, Refused) else Refused("invalid", str(error))
    if form is Format.JSON:
        typer.echo(json.dumps(problem.problem(), ensure_ascii=False), err=True)
    else:
        typer.echo(f"aftereffect: {problem.detail}", err=True)
    return typer.Exit(exit_status(problem))


def _discard_output() -> None:
    """Discard output that could not be written; otherwise the interpreter retries at exit and changes the status."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def show(form: Format, data: Any, lines: Lines) -> None:
    """Print an answer as JSON or as text."""
    if form is Format.JSON:
        typer.echo(json.dumps(data, indent=2, ensure_ascii=False))
        return
    # Imported here because it is slow. A table is as wide as it needs to be, so that it can be read from a pipe.
    from rich.console import Console

    console = Console(width=WIDEST, markup=False, emoji=False, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(line)


def command(*parts: str | None) -> str:
    """Return a shell command, quoted where necessary.

    >>> command("tell", "my shop", "3", "TOTAL")
    "aftereffect tell 'my shop' 3 TOTAL"
    """
    return shlex.join(["aftereffect", *(part for part in parts if part is not None)])


def plan(found: messages.Plan) -> list[str]:
    """Return the lines of a plan: the verdict first, then how arms are played."""
    forecast = ["Settings of this size are not simulated, so there is no forecast."]
    if found.forecast is not None:
        forecast = found.forecast.sentences
    return [*forecast, "", *found.sentences]


def created(view: messages.Overview) -> list[str]:
    """Return the lines for a new experiment: id, plan and the next command."""
    draft = view.state == "draft"
    return [
        f"Experiment {view.name!r} is {'a draft' if draft else view.state}. Its id: {view.id}",
        *(f"  {sentence}" for sentence in view.plan.sentences),
        f"Next: {command('start' if draft else 'ask', view.name)}",
    ]


def turn(found: messages.Turn, experiment: str | None = None, unit: str | None = None) -> Lines:
    """Return the lines for an ask: the arm, the reason and the command for the report.

    experiment, unit: as given on the command line.
    """
    arms = found.arms or {}
    several = unit is not None or len(arms) > 1
    table = [printed_table(["unit", "arm"], arms.items(), ["arm"])] if arms else []
    tell = command("tell", experiment, str(found.round), "TOTAL", *(("--unit", found.unit) if several else ()))
    return [words.play(found.data, several), f"  {found.why}", *table, f"Report it with: {tell}"]


def report(found: messages.Report, experiment: str | None = None, unit: str | None = None) -> Lines:
    """Return the lines for a report: how it was recorded, and the next command."""
    lines = words.recorded([found.data], unit is not None)
    if found.update and found.correction is None:
        lines.append("  The block has ended and was learned from; the next ask draws a new arm.")
    if found.state == "finished":
        return [*lines, f"The experiment is finished. Next: {command('status', experiment)}"]
    waiting = f"Round {found.open_round} is still open. " if found.open_round is not None else ""
    return [*lines, *_after(found.next, experiment, waiting)]


def reports(found: messages.ManyReports, experiment: str | None = None) -> Lines:
    """Return the lines for several reports: what was recorded, what is out of range, and the next round or command."""
    several = len({one.unit for one in found.items}) > 1
    return [*words.recorded([one.data for one in found.items], several), *_after(found.next, experiment)]


def _after(opened: messages.Turn | None, experiment: str | None, waiting: str = "") -> Lines:
    """Return the lines on the round that a report has opened, or on how to open the next one."""
    return [f"{waiting}Next: {command('ask', experiment)}"] if opened is None else turn(opened, experiment)


def changed(view: messages.Overview, known: messages.Learned | None = None) -> list[str]:
    """Return the lines for a change of state. known: what a finished experiment has learned."""
    learned = [] if known is None else [words.recommendation(known), *known.sentences]
    return [f"Experiment {view.name!r} is {view.state}.", *learned]


def status(view: messages.Overview, learned: messages.Learned) -> Lines:
    """Return the lines of `status`: what it waits for, what is known of the arms, counts, alarms, guarantee."""
    waits = words.waiting(view, datetime.now(UTC).isoformat()).words
    promise = view.guarantee
    # What a model says of the best arm is said by all totals, not by those when an arm was last chosen.
    best = {each.arm: each.best for each in learned.arms} if view.player == "model" else {}
    shares = view.probabilities | best
    said = words.chance if best else words.probability
    rows = [[arm, said(shares[arm]), str(view.plays[arm])] for arm in view.arms]
    others = [f"{n} {word.replace('_', ' ')}" for word, n in view.counts.items() if n and word != "reports"]
    return [
        f"{view.name} ({view.id}): {view.state}, round {view.round}, {counted(view.updates, 'update')}",
        *([] if view.state == "finished" else [f"It waits for {waits}."]),
        printed_table(["arm", "best with probability" if best else "probability", "plays"], rows),
        f"Reports: {', '.join([str(view.counts['reports']), *others])}",
        *([f"Away: {', '.join(view.away)}"] if view.away else []),
        *(f"Attention: {alarm}" for alarm in view.alarms),
        *learned.sentences,
        *([] if view.next_decision is None else [view.next_decision.words]),
        *([f"Guarantee: {promise.sentence}"] if promise is not None and (promise.informative or promise.void) else []),
    ]


def comparison(found: Sequence[messages.Comparison]) -> Lines:
    """Return a table that compares experiments."""
    rows = []
    for one in found:
        gain = "" if one.percent is None else f"{one.percent[0]:+.1f}% ({one.percent[1]:+.1f} to {one.percent[2]:+.1f})"
        mean = "" if one.mean is None else f"{one.mean:,.4g}"
        leads = f"{one.leader or 'none'} ({one.sure})"
        rows.append([one.name, one.state, str(one.round), mean, gain, leads, one.next_decision or ""])
    headings = ["name", "state", "round", "mean", "against equal split", "leads", "next decision"]
    return [printed_table(headings, rows, ["state", "leads", "next decision"])]


def reminder(found: messages.Reminder) -> list[str]:
    """Return the lines on the reminder of an experiment."""
    if found.webhook is None:
        return ["There is no reminder."]
    days = found.after or 0.0
    when = "before the end of every round" if days < 0.0 else "after a round without a report"
    lines = [f"The webhook {found.webhook} is called {duration(abs(days))} {when}."]
    if found.outcome is not None:
        lines.append(f"Latest call: round {found.round}, {found.outcome}, {found.outcome_at}.")
    return lines


def experiments(found: Sequence[messages.Summary]) -> Lines:
    """Return the table of experiments."""
    if not found:
        return ["No experiment yet; `aftereffect init` creates one."]
    rows = [[one.id, one.name, one.state, str(one.round)] for one in found]
    return [printed_table(["id", "name", "state", "round"], rows, ["name", "state"])]


def verdicts(found: Sequence[messages.Verdict]) -> list[str]:
    """Return a line per experiment: whether replaying its log gives the stored data."""
    if not found:
        return ["No experiment to verify."]
    return [
        f"{one.experiment}: " + (f"ok, rounds: {one.rounds}" if one.ok else f"CORRUPT: {one.finding}") for one in found
    ]


def verified(found: Sequence[messages.Verdict]) -> int:
    """Return the exit status of a verification."""
    return DONE if all(one.ok for one in found) else CORRUPT


def restored_tokens(valid: int) -> list[str]:
    """Return a warning that restored tokens are valid again, even if they were revoked after the backup."""
    if not valid:
        return []
    who = f"{counted(valid, 'token')} {'is' if valid == 1 else 'are'} valid as at the time of the backup"
    return [f"{who}, even if revoked since: see `aftereffect token list`; --without-tokens leaves them out."]


def tokens(found: Sequence[messages.KnownToken]) -> Lines:
    """Return the table of tokens: names and scopes, never the tokens themselves."""
    if not found:
        return ["No token yet; `aftereffect token create NAME --scope play` creates one."]
    rows = [[one.id, one.name, " ".join(one.scopes), "revoked" if one.revoked_at else "valid"] for one in found]
    return [printed_table(["id", "name", "scopes", "state"], rows, ["name", "scopes", "state"])]
