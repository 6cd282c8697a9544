"""The commands of the decision service: `aftereffect init`, `ask`, `tell`, `serve` and the others.

experiments   plans, experiments and their rounds          server   the server and its tokens
records       export, verification, backup
arguments     the arguments and options they share         output   printed answers, and exit statuses
"""

from collections.abc import Callable

import typer

from aftereffect.service.cli import experiments, records, server
from aftereffect.service.cli.arguments import command
from aftereffect.service.cli.output import Answer

__all__ = ["mount"]

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
"""All commands but those of tokens, by heading of the help."""
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
