"""What a command prints, and the status it ends with.

An answer is a few lines a person can act on, or the JSON that the server would send. A refusal is one line (or a
problem document) on standard error, and one of these exit statuses, which do not change:

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
from enum import StrEnum
from typing import Any

import typer

from aftereffect.core.errors import AftereffectError
from aftereffect.service.errors import Refused
from aftereffect.service.messages import KnownToken, Overview, Report, Summary, Turn, Verdict

DONE, UNEXPECTED, INVALID, NOT_FOUND, CONFLICT, UNAVAILABLE, CORRUPT = range(7)
BY_CODE = {"corrupt": CORRUPT, "full": UNAVAILABLE}
BY_STATUS = {404: NOT_FOUND, 409: CONFLICT, 429: UNAVAILABLE, 502: UNAVAILABLE, 503: UNAVAILABLE, 504: UNAVAILABLE}
# What the system says of a path that cannot be used; anything else (no space, a failing disk) is not the path's fault.
PATHS = {errno.ENOENT: "not_found"} | dict.fromkeys(
    (errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.EROFS, errno.ENAMETOOLONG), "invalid"
)
WRITER = "aftereffect.service.store.writer"


class Format(StrEnum):
    """How a command answers."""

    TABLE = "table"
    JSON = "json"


def exit_status(error: AftereffectError) -> int:
    """Return the exit status of an error.

    >>> exit_status(Refused("conflict", "round 3 was reported with another total"))
    4
    """
    if not isinstance(error, Refused):
        return INVALID
    default = INVALID if error.status < 500 else UNEXPECTED
    return BY_CODE.get(error.code, BY_STATUS.get(error.status, default))


def refusal(error: OSError) -> Refused:
    """Return what to say of a file, or an output, that cannot be written or read.

    >>> refusal(OSError(errno.ENOSPC, "No space left on device", "all.csv")).detail
    "'all.csv' could not be written or read: No space left on device"
    """
    what = "the output" if error.filename is None else repr(str(error.filename))
    words = f"{what} could not be written or read: {error.strerror or error}"
    return Refused(PATHS.get(error.errno or 0, "full"), words)


@contextmanager
def exit_on_error(form: Format = Format.TABLE) -> Iterator[None]:
    """Turn what is refused inside into a message on standard error and an exit status."""
    # A refusal is printed once, here; a program that reads JSON gets nothing else to read.
    logger = logging.getLogger("aftereffect" if form is Format.JSON else WRITER)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    try:
        yield
    except AftereffectError as error:
        raise _exit(error, form) from None
    except OSError as error:
        # A reader that has gone away wants no message.
        if error.errno == errno.EPIPE:
            raise
        _discard_output()
        raise _exit(refusal(error), form) from None
    except ModuleNotFoundError as error:
        # Only packages of the extra may be absent; anything else is a fault of ours and stays visible.
        if error.name is None or error.name.split(".")[0] == "aftereffect":
            raise
        extra = "install the extra: pip install 'aftereffect[service]'"
        typer.echo(f"aftereffect: the decision service needs {error.name}; {extra}", err=True)
        raise typer.Exit(INVALID) from None


def _exit(error: AftereffectError, form: Format) -> typer.Exit:
    """Print what was refused; return the end of the command."""
    problem = error if isinstance(error, Refused) else Refused("invalid", str(error))
    if form is Format.JSON:
        typer.echo(json.dumps(problem.problem(), ensure_ascii=False), err=True)
    else:
        typer.echo(f"aftereffect: {problem.detail}", err=True)
    return typer.Exit(exit_status(error))


def _discard_output() -> None:
    """Discard what could not be printed: the interpreter would try once more, and fail with a status of its own."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def show(form: Format, data: Any, lines: Iterable[str]) -> None:
    """Print an answer as JSON or as lines."""
    if form is Format.JSON:
        typer.echo(json.dumps(data, indent=2, ensure_ascii=False))
        return
    for line in lines:
        typer.echo(line)


def columns(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with aligned columns; numbers to the right.

    >>> columns(["arm", "plays"], [["letter", "12"], ["email", "3"]])
    ['arm     plays', 'letter     12', 'email       3']
    """
    lines = [""] * (len(rows) + 1)
    for cells in zip(heading, *rows, strict=True):
        width = max(len(cell) for cell in cells)
        right = len(cells) > 1 and all(cell and not cell.strip("0123456789.,%+-") for cell in cells[1:])
        lines = [f"{line}  {cell:{'>' if right else '<'}{width}}" for line, cell in zip(lines, cells, strict=True)]
    return [line[2:].rstrip() for line in lines]


def number(value: float) -> str:
    """Return a total as people write it.

    >>> number(8421.0), number(0.25)
    ('8421', '0.25')
    """
    return repr(float(value)).removesuffix(".0")


def command(*parts: str | None) -> str:
    """Return a command to type, with the words that need it quoted.

    >>> command("tell", "my shop", "3", "TOTAL")
    "aftereffect tell 'my shop' 3 TOTAL"
    """
    return shlex.join(["aftereffect", *(part for part in parts if part is not None)])


def created(view: Overview) -> list[str]:
    """Say what was created, what it implies, and what to do next."""
    draft = view.state == "draft"
    return [
        f"Experiment {view.name!r} is {'a draft' if draft else view.state}. Its id: {view.id}",
        *(f"  {sentence}" for sentence in view.plan.sentences),
        f"Next: {command('start' if draft else 'ask', view.name)}",
    ]


def turn(found: Turn, experiment: str | None = None, unit: str | None = None) -> list[str]:
    """Say what to play, why, and how to report it; `experiment` and `unit` as they were asked for."""
    several = unit is not None or (found.arms is not None and len(found.arms) > 1)
    who = f" in {found.unit}" if several else ""
    when = f" ({found.date})" if found.date else ""
    lines = [f"Round {found.round}{when}: play {found.arm}{who}.", f"  {found.why}"]
    if found.arms is not None:
        lines += [f"  {line}" for line in columns(["unit", "arm"], list(found.arms.items()))]
    whose = ("--unit", found.unit) if several else ()
    return [*lines, f"Report it with: {command('tell', experiment, str(found.round), 'TOTAL', *whose)}"]


def report(found: Report, experiment: str | None = None, unit: str | None = None) -> list[str]:
    """Say what became of a report, and what is next."""
    if found.total is None:
        taken = "closed as missing; windows that hold it are void, the arm stays."
    elif found.status == "void":
        taken = f"{number(found.total)} is outside of what the range allows; kept, but not learned from."
    else:
        taken = f"{number(found.total)} is recorded for {found.arm}."
    who = f" ({unit})" if unit is not None else ""
    lines = [f"Round {found.round}{who}: {taken}{' It was known already.' if found.repeated else ''}"]
    if found.update:
        lines.append("  The block has ended and was learned from; the next ask draws an arm.")
    if found.state == "finished":
        return [*lines, f"The experiment is finished. Next: {command('status', experiment)}"]
    waiting = f"Round {found.open_round} waits for a report. " if found.open_round is not None else ""
    return [*lines, f"{waiting}Next: {command('ask', experiment)}"]


def changed(view: Overview) -> list[str]:
    """Say in which state an experiment is now."""
    return [f"Experiment {view.name!r} is {view.state}.", *_winner(view)]


def _winner(view: Overview) -> list[str]:
    return [str(view.winner["words"])] if view.winner and view.winner.get("words") else []


def status(view: Overview) -> list[str]:
    """Show an experiment: where it is, what it has learned, what is guaranteed, what needs attention."""
    where = f"round {view.round}" + (", open: report it" if view.open_round is not None else "")
    rows = [[arm, f"{100 * view.probabilities[arm]:.1f}%", str(view.plays[arm])] for arm in view.arms]
    others = [f"{n} {word.replace('_', ' ')}" for word, n in view.counts.items() if n and word != "reports"]
    return [
        f"{view.name} ({view.id}): {view.state}, {where}, {view.updates} updates",
        *columns(["arm", "probability", "plays"], rows),
        f"Reports: {', '.join([str(view.counts['reports']), *others])}",
        *([f"Away: {', '.join(view.away)}"] if view.away else []),
        *(f"Attention: {alarm}" for alarm in view.alarms),
        f"Guarantee: {view.guarantee['words']}",
        *_winner(view),
    ]


def experiments(found: Sequence[Summary]) -> list[str]:
    """List experiments, one a line."""
    if not found:
        return ["No experiment yet; `aftereffect init` makes one."]
    return columns(["id", "name", "state", "round"], [[one.id, one.name, one.state, str(one.round)] for one in found])


def verdicts(found: Sequence[Verdict]) -> list[str]:
    """Say for each experiment whether its log replays to what is stored."""
    if not found:
        return ["No experiment to verify."]
    return [
        f"{one.experiment}: " + (f"ok, rounds: {one.rounds}" if one.ok else f"CORRUPT: {one.finding}") for one in found
    ]


def restored_tokens(valid: int) -> list[str]:
    """Say that the tokens of a restored store are valid as they were when it was backed up."""
    if not valid:
        return []
    who = "1 token is" if valid == 1 else f"{valid} tokens are"
    return [
        f"{who} valid as when the backup was made, also where revoked since: see `aftereffect token list`; "
        "--without-tokens leaves them out."
    ]


def tokens(found: Sequence[KnownToken]) -> list[str]:
    """List tokens: their names and scopes, never the tokens themselves."""
    if not found:
        return ["No token yet; `aftereffect token create NAME --scope play` makes one."]
    rows = [[one.id, one.name, " ".join(one.scopes), "revoked" if one.revoked_at else "valid"] for one in found]
    return columns(["id", "name", "scopes", "state"], rows)
