"""The arguments and options that several verbs of the command line share."""

from typing import Annotated

import typer

from aftereffect.service.verbs.exits import Format

Store = Annotated[
    str,
    typer.Option("--store", envvar="AFTEREFFECT_STORE", help="A file, a database URL, or a server's address."),
]
Form = Annotated[Format, typer.Option("--format", "-f", help="Answer as text or as JSON.")]
Experiment = Annotated[
    str | None, typer.Argument(metavar="[EXPERIMENT]", help="Its id or name; not needed where there is only one.")
]
Unit = Annotated[str | None, typer.Option("--unit", help="Which unit, where there are several.")]
Reported = Annotated[
    list[str],
    typer.Argument(metavar="[EXPERIMENT] ROUND TOTAL", help="Which round, and its total; or the word missing."),
]
Away = Annotated[list[str], typer.Argument(metavar="[EXPERIMENT] ARM", help="Which arm.")]
Window = Annotated[str | None, typer.Option(help='Effects are over after this long: "7 days", "2 weeks".')]
HalfLife = Annotated[
    str | None,
    typer.Option(
        help='Half of an effect is over after this long: "3 days". Counted until 5% of it is left; what comes later '
        "breaks the guarantee's assumption by that much."
    ),
]
MaxDelay = Annotated[int | None, typer.Option(help="d: how many rounds after its own an effect can still arrive.")]
RoundLength = Annotated[str | None, typer.Option(help='How long a round is: "1 day", "1 week"; by default a day.')]
Direction = Annotated[str, typer.Option(help="maximize or minimize.")]
Player = Annotated[str, typer.Option(help="default, or paper (needs a horizon).")]
Horizon = Annotated[int | None, typer.Option(help="How many rounds in all; open-ended by default.")]
