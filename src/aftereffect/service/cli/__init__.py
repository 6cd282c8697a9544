"""The commands of the decision service: `aftereffect init`, `ask`, `tell`, `serve` and the others.

experiments   plan, init, ask, tell, upload, amend, note, status, remind, start, pause, resume, finish, away, back,
              correct, continue
records       export, verify, backup, restore-backup       server   serve, token create | list | revoke
arguments     the arguments and options they share         output   printed answers, and exit statuses
"""

from collections.abc import Callable

import typer

from aftereffect.service.cli import experiments, records, server
from aftereffect.service.cli.arguments import command
from aftereffect.service.cli.output import Answer

__all__ = ["mount"]

# By heading of the help.
VERBS: dict[str, tuple[Callable[..., Answer | None], ...]] = {
    "Experiments": (
        *(experiments.plan, experiments.init, experiments.ask, experiments.tell, experiments.upload),
        *(experiments.amend, experiments.note, experiments.status, experiments.remind),
        *(experiments.start, experiments.pause, experiments.resume, experiments.finish),
        *(experiments.away, experiments.back, experiments.correct, experiments.continue_),
    ),
    "Records": (records.export, records.verify, records.backup, records.restore_backup),
    "Server": (server.serve,),
}
# Unknown options are passed on as arguments, because a negative total starts with a hyphen.
REPORTING = (experiments.tell, experiments.amend)


def mount(app: typer.Typer) -> None:
    """Add the commands of the service to a Typer app."""
    for heading, verbs in VERBS.items():
        for verb in verbs:
            settings = {"ignore_unknown_options": verb in REPORTING}
            name = verb.__name__.rstrip("_").replace("_", "-")
            app.command(name, context_settings=settings, rich_help_panel=heading)(command(verb))
    app.add_typer(server.token, rich_help_panel="Server")
