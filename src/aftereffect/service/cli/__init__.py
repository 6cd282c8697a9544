"""The verbs of the decision service at the command line.

Each is a thin function: it opens the service of `--store` (a file, a database, a server), does one thing, and prints
it as text or JSON. Exit statuses are those of `exits.py`.
"""

from collections.abc import Callable

import typer

from aftereffect.service.cli.experiments import (
    amend,
    ask,
    away,
    back,
    finish,
    init,
    pause,
    plan,
    resume,
    start,
    status,
    tell,
)
from aftereffect.service.cli.records import backup, export, restore_backup, verify
from aftereffect.service.cli.server import serve, token

__all__ = ["mount"]

VERBS: tuple[Callable[..., None], ...] = (
    *(plan, init, ask, tell, amend, status, start, pause, resume, finish, away, back),
    *(export, verify, backup, restore_backup, serve),
)
# A negative total is a number, not an option.
REPORTING = (tell, amend)


def mount(app: typer.Typer) -> None:
    """Add every verb of the service to a command line."""
    for verb in VERBS:
        settings = {"ignore_unknown_options": verb in REPORTING}
        app.command(verb.__name__.replace("_", "-"), context_settings=settings)(verb)
    app.add_typer(token)
