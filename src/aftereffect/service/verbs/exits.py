"""How a verb of the command line ends: the exit status, and one line (or a problem document) on standard error.

Status 0: done. 1: unexpected. 2: bad usage, an invalid value, or not allowed. 3: not found. 4: conflict (another value
for a reported round, a closed block, the wrong state). 5: unavailable (no server, store busy or full, too many
requests). 6: corrupt (`verify` found a difference). They do not change.
"""

import errno
import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

import typer

from aftereffect.core.errors import AftereffectError
from aftereffect.service.errors import Refused

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
