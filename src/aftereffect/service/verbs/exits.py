"""How a verb of the command line ends: the exit status, and one line (or a problem document) on standard error.

Status 0: done. 1: unexpected. 2: bad usage, an invalid value, or not allowed. 3: not found. 4: conflict (another value
for a reported round, a closed block, the wrong state). 5: unavailable (no server, store busy or full, too many
requests). 6: corrupt (`verify` found a difference). They do not change.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

import typer

from aftereffect.core.errors import AftereffectError
from aftereffect.service.errors import Refused

DONE, UNEXPECTED, INVALID, NOT_FOUND, CONFLICT, UNAVAILABLE, CORRUPT = range(7)
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


@contextmanager
def speaking(form: Format = Format.TABLE) -> Iterator[None]:
    """Turn what is refused inside into a message on standard error and its exit status."""
    try:
        yield
    except AftereffectError as error:
        if form is Format.JSON:
            problem = error if isinstance(error, Refused) else Refused("invalid", str(error))
            typer.echo(json.dumps(problem.problem(), ensure_ascii=False), err=True)
        else:
            words = error.detail if isinstance(error, Refused) else str(error)
            typer.echo(f"aftereffect: {words}", err=True)
        raise typer.Exit(exit_status(error)) from None
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
