"""What a command prints, and the status it ends with."""

import errno
import json
import logging
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

import typer

from aftereffect.core.errors import AftereffectError
from aftereffect.service.errors import Refused
from aftereffect.service.replies import Json, Overview, Report, Turn, Verdict

# What the system says of a path that cannot be used; anything else (no space, a dying disk) is not the path's fault.
PATHS = {errno.ENOENT: "not_found"} | dict.fromkeys(
    (errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.EROFS, errno.ENAMETOOLONG), "invalid"
)
DONE, UNEXPECTED, INVALID, NOT_FOUND, CONFLICT, UNAVAILABLE, CORRUPT = range(7)
LEDGER = "aftereffect.service.store.ledger"
BY_STATUS = {404: NOT_FOUND, 409: CONFLICT, 429: UNAVAILABLE, 502: UNAVAILABLE, 503: UNAVAILABLE, 504: UNAVAILABLE}


class Format(StrEnum):
    """How a verb answers."""

    TABLE = "table"
    JSON = "json"


def show(form: Format, data: Json | Sequence[Json], lines: Iterable[str]) -> None:
    """Print an answer as JSON or as lines."""
    if form is Format.JSON:
        typer.echo(json.dumps(data, indent=2, ensure_ascii=False, default=dict))
        return
    for line in lines:
        typer.echo(line)


def columns(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with aligned columns; numbers to the right.

    >>> columns(["arm", "plays"], [["letter", "12"], ["email", "3"]])
    ['arm     plays', 'letter     12', 'email       3']
    """
    every = [heading, *rows]
    widths = [max(len(row[i]) for row in every) for i in range(len(heading))]
    right = [bool(rows) and all(_is_number(row[i]) for row in rows) for i in range(len(heading))]
    aligned = [
        [cell.rjust(width) if end else cell.ljust(width) for cell, width, end in zip(row, widths, right, strict=True)]
        for row in every
    ]
    return ["  ".join(row).rstrip() for row in aligned]


def _is_number(text: str) -> bool:
    return not text.strip("0123456789.,%+-") and text != ""


def plain(number: float | None) -> str:
    """Return a total as people write it.

    >>> plain(8421.0), plain(0.25), plain(None)
    ('8421', '0.25', 'missing')
    """
    if number is None:
        return "missing"
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(float(number))


def said(*parts: str | None) -> str:
    """Return a command to type, with the words that need it quoted.

    >>> said("tell", "my shop", "3", "TOTAL")
    "aftereffect tell 'my shop' 3 TOTAL"
    """
    return shlex.join(["aftereffect", *(part for part in parts if part is not None)])


def made(view: Overview) -> list[str]:
    """Say what was made, what it leads to, and what to do next."""
    draft = view.state == "draft"
    sentences = view.plan.get("sentences", [])
    return [
        f"Experiment {view.name!r} is {'a draft' if draft else view.state}. Its id: {view.id}",
        *(f"  {sentence}" for sentence in sentences),
        f"Next: {said('start' if draft else 'ask', view.name)}",
    ]


def turn(found: Turn, experiment: str | None = None, unit: str | None = None) -> list[str]:
    """Say what to play, why, and how to report it; `experiment` and `unit` as they were asked for."""
    several = unit is not None or (found.arms is not None and len(found.arms) > 1)
    who = f" in {found.unit}" if several else ""
    when = f" ({found.date})" if found.date else ""
    lines = [f"Round {found.round}{when}: play {found.arm}{who}.", *([f"  {found.why}"] if found.why else [])]
    if found.arms is not None:
        lines += [f"  {line}" for line in columns(["unit", "arm"], [[*pair] for pair in found.arms.items()])]
    whose = ("--unit", found.unit) if several else ()
    return [*lines, f"Report it with: {said('tell', experiment, str(found.round), 'TOTAL', *whose)}"]


def report(found: Report, experiment: str | None = None, unit: str | None = None) -> list[str]:
    """Say what became of a report, and what is next."""
    who = f" ({unit})" if unit is not None else ""
    lines = [f"Round {found.round}{who}: {_taken(found)}{' It was known already.' if found.repeated else ''}"]
    if found.update:
        lines.append("  The block has ended and was learned from; the next ask draws an arm.")
    if found.state == "finished":
        return [*lines, f"The experiment is finished. Next: {said('status', experiment)}"]
    waiting = f"Round {found.open_round} waits for a report. " if found.open_round is not None else ""
    return [*lines, f"{waiting}Next: {said('ask', experiment)}"]


def _taken(found: Report) -> str:
    if found.total is None:
        return "closed as missing; windows that hold it are void, the arm stays."
    if found.status == "void":
        return f"{plain(found.total)} is outside of what the range allows; kept, but not learned from."
    return f"{plain(found.total)} is recorded for {found.arm}."


def changed(view: Overview) -> list[str]:
    """Say in which state an experiment is now."""
    return [f"Experiment {view.name!r} is {view.state}.", *_winner(view)]


def _winner(view: Overview) -> list[str]:
    return [str(view.winner["words"])] if view.winner and view.winner.get("words") else []


def status(view: Overview) -> list[str]:
    """Show an experiment: where it is, what it has learned, what is guaranteed, what needs attention."""
    where = f"round {view.round}" + (", open: report it" if view.open_round is not None else "")
    updates = "" if view.updates is None else f", {view.updates} updates"
    rows = [[arm, f"{100 * view.probabilities.get(arm, 0.0):.1f}%", str(view.plays.get(arm, 0))] for arm in view.arms]
    others = {word: number for word, number in view.counts.items() if number and word != "reports"}
    counts = [f"{number} {word.replace('_', ' ')}" for word, number in others.items()]
    lines = [f"{view.name} ({view.id}): {view.state}, {where}{updates}"]
    lines += columns(["arm", "probability", "plays"], rows)
    lines.append(f"Reports: {', '.join([str(view.counts.get('reports', 0)), *counts])}")
    if view.away:
        lines.append(f"Away: {', '.join(view.away)}")
    lines += [f"Attention: {alarm}" for alarm in view.alarms]
    if view.guarantee and view.guarantee.get("words"):
        lines.append(f"Guarantee: {view.guarantee['words']}")
    return [*lines, *_winner(view)]


def listed(found: Sequence[Overview]) -> list[str]:
    """List experiments, one a line."""
    if not found:
        return ["No experiment yet; `aftereffect init` makes one."]
    rows = [[one.id, one.name, one.state, str(one.round)] for one in found]
    return columns(["id", "name", "state", "round"], rows)


def verdicts(found: Sequence[Verdict]) -> list[str]:
    """Say for each experiment whether its log replays to what is stored."""
    if not found:
        return ["No experiment to verify."]
    return [
        f"{one.experiment}: " + (f"ok, rounds: {one.rounds}" if one.ok else f"CORRUPT: {one.finding}") for one in found
    ]


def restored_tokens(valid: int) -> list[str]:
    """Say that a restored store lets in whom it let in when it was backed up."""
    if not valid:
        return []
    who = "1 token is" if valid == 1 else f"{valid} tokens are"
    return [
        f"{who} valid as when the backup was made, also where revoked since: see `aftereffect token list`; "
        "--without-tokens leaves them out."
    ]


def tokens(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """List tokens: what they are called and may do, never what they are."""
    if not found:
        return ["No token yet; `aftereffect token create NAME --scope play` makes one."]
    rows = [
        [str(one["id"]), str(one["name"]), " ".join(one["scopes"]), "revoked" if one.get("revoked_at") else "valid"]
        for one in found
    ]
    return columns(["id", "name", "scopes", "state"], rows)


def exit_status(error: AftereffectError) -> int:
    """Return the exit status an error ends in.

    >>> exit_status(Refused("conflict", "round 3 was reported with another total"))
    4
    """
    if not isinstance(error, Refused):
        return INVALID
    if error.code == "corrupt":
        return CORRUPT
    if error.code == "full":
        return UNAVAILABLE
    return BY_STATUS.get(error.status, INVALID if error.status < 500 else UNEXPECTED)


def refusal(error: OSError) -> Refused:
    """Return what to say of a file, or an output, that cannot be written or read.

    >>> refusal(OSError(errno.ENOSPC, "No space left on device", "all.csv")).detail
    "'all.csv' could not be written or read: No space left on device"
    """
    what = "the output" if error.filename is None else repr(str(error.filename))
    words = f"{what} could not be written or read: {error.strerror or error}"
    return Refused(PATHS.get(error.errno or 0, "full"), words)


def _give_up_output() -> None:
    """Throw away what could not be printed: the interpreter would try once more, and fail with a status of its own."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _ended(error: AftereffectError, form: Format) -> typer.Exit:
    """Say what was refused; return the end of the command."""
    if form is Format.JSON:
        problem = error if isinstance(error, Refused) else Refused("invalid", str(error))
        typer.echo(json.dumps(problem.problem(), ensure_ascii=False), err=True)
    else:
        words = error.detail if isinstance(error, Refused) else str(error)
        typer.echo(f"aftereffect: {words}", err=True)
    return typer.Exit(exit_status(error))


@contextmanager
def speaking(form: Format = Format.TABLE) -> Iterator[None]:
    """Turn what is refused inside into a message on standard error and its exit status."""
    # What is refused is said once, here, and a program that reads JSON gets nothing else to read.
    logger = logging.getLogger("aftereffect" if form is Format.JSON else LEDGER)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    try:
        yield
    except AftereffectError as error:
        raise _ended(error, form) from None
    except OSError as error:
        # A reader that has gone away wants no message.
        if error.errno == errno.EPIPE:
            raise
        _give_up_output()
        raise _ended(refusal(error), form) from None
    except ModuleNotFoundError as error:
        # Only packages of the extra may be absent; anything else is a fault of ours and stays visible.
        if error.name is None or error.name.split(".")[0] == "aftereffect":
            raise
        typer.echo(
            f"aftereffect: the decision service needs {error.name}; install the extra: "
            "pip install 'aftereffect[service]'",
            err=True,
        )
        raise typer.Exit(INVALID) from None
