"""The arguments and options that commands share, and their conversion to settings, rounds and totals.

Settings are validated in `settings.py`, as for requests and forms. This module handles only what is specific to the
command line: numbers as text, an optional EXPERIMENT, comma-separated lists.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aftereffect.core.checks import shown
from aftereffect.core.errors import InvalidArgument
from aftereffect.service import totals
from aftereffect.service.cli.output import Format, exit_on_error
from aftereffect.service.errors import Refused
from aftereffect.service.messages import Summary, is_id
from aftereffect.service.totals import MISSING

if TYPE_CHECKING:
    from aftereffect.service.protocol import Service

DEFAULT_STORE = "aftereffect.db"
MOST_LISTED = 20

Store = Annotated[
    str,
    typer.Option("--store", envvar="AFTEREFFECT_STORE", help="A file, a database URL, or a server's address."),
]
Form = Annotated[Format, typer.Option("--format", "-f", help="Print text or JSON.")]
Experiment = Annotated[
    str | None, typer.Argument(metavar="[EXPERIMENT]", help="Its id or name; not needed if there is only one.")
]
Unit = Annotated[str | None, typer.Option("--unit", help="Which unit, if there are several.")]
Reported = Annotated[
    list[str],
    typer.Argument(metavar="[EXPERIMENT] ROUND TOTAL", help="The round, and its total or the word missing."),
]
Ahead = Annotated[bool, typer.Option("--ahead", help="Report it even if the date of the round is still to come.")]
Next = Annotated[bool, typer.Option("--next", help="Also open the next round, and show its arm.")]
Restate = Annotated[bool, typer.Option("--restate", help="Another total of a reported round is a correction.")]
Arm = Annotated[list[str], typer.Argument(metavar="[EXPERIMENT] ARM", help="The name of the arm.")]
Window = Annotated[str | None, typer.Option(help='No effect lasts longer than this: "7 days", "2 weeks".')]
HalfLife = Annotated[
    str | None,
    typer.Option(
        help='Half of an effect has arrived after this long, half of the rest after the same time again: "3 days". '
        "The carry-over is the one with the best guarantee; effects that arrive later are part of the guarantee."
    ),
]
MaxDelay = Annotated[int | None, typer.Option(help="d: how many rounds after its own an effect can still arrive.")]
RoundLength = Annotated[str | None, typer.Option(help='How long a round is: "1 day", "1 week"; by default a day.')]
Direction = Annotated[str, typer.Option(help="maximize or minimize.")]
OutOfRange = Annotated[
    str,
    typer.Option(
        help="A total that the range makes impossible: void drops it, because it may be a typing error; clip learns "
        "from the nearest possible one, which avoids the bias of dropping it. Both are recorded and counted."
    ),
]
_PLAYERS = (
    "advised: with a guarantee; model: needs to know neither how long effects last nor their range, and is used if "
    "that is not given; paper: as published, needs a horizon."
)
Player = Annotated[str | None, typer.Option(help=_PLAYERS)]
Column = Annotated[str | None, typer.Option(help="For a file: the name of this column.")]
Gap = Annotated[
    float | None, typer.Option(help="A guess: how much more an action of the best arm brings than one of the next.")
]
Noise = Annotated[
    float | None, typer.Option(help="A guess of the standard deviation of a total if the arm never changes.")
]
Horizon = Annotated[int | None, typer.Option(help="The number of rounds; open-ended by default.")]


@contextmanager
def opened(store: str, form: Format = Format.TABLE, **options: Any) -> Iterator["Service"]:
    """Open the service of a store; an error ends the command. options: those of `local.open_service`."""
    with exit_on_error(form):
        # Imported here because it is slow and needs the extra.
        from aftereffect.service.local import open_service

        with open_service(store, **options) as service:
            yield service


def chosen(service: "Service", reference: str | None) -> str:
    """Return the id of the experiment with this id or name; without a reference, of the only one in the store.

    An id takes precedence over a name. An ambiguous name, or no reference if there are several experiments, is refused
    with a list of their ids.
    """
    if reference is not None and is_id(reference):
        try:
            return service.experiment(reference).id
        except Refused as refusal:
            if refusal.status != 404:
                raise
    found = [one for one in service.all_experiments() if reference in (None, one.name)]
    if len(found) > 1:
        raise Refused("invalid", f"EXPERIMENT must be the id of one of {len(found)} experiments: {_listed(found)}")
    if not found and reference is None:
        raise Refused("not_found", "the store has no experiment yet; `aftereffect init` creates one")
    if not found:
        raise Refused("not_found", f"EXPERIMENT must be the id or name of an experiment, but got {shown(reference)}")
    return found[0].id


def _listed(found: Sequence[Summary]) -> str:
    listed = ", ".join(f"{one.id} ({one.name}, {one.state})" for one in found[:MOST_LISTED])
    return listed if len(found) <= MOST_LISTED else f"{listed} and {len(found) - MOST_LISTED} more"


def split(words: Sequence[str], rest: str) -> tuple[str | None, list[str]]:
    """Return the EXPERIMENT (None if omitted) and the words after it. rest: their names, such as "ROUND TOTAL".

    >>> split(["mailings", "3", "0.5"], "ROUND TOTAL")
    ('mailings', ['3', '0.5'])
    """
    wanted = len(rest.split())
    for word in words:
        if word.startswith("--"):
            raise InvalidArgument(f"options must be those of the command, but got {word!r}")
    if len(words) not in (wanted, wanted + 1):
        raise InvalidArgument(f"the arguments must be [EXPERIMENT] {rest}, but got {shown(' '.join(words))}")
    return words[0] if len(words) > wanted else None, list(words[-wanted:])


def report(words: Sequence[str]) -> tuple[str | None, int, float | None]:
    """Return experiment, round and total of a report; the total `missing` is None.

    >>> report(["17", "8421"]), report(["mailings", "17", "missing"])
    ((None, 17, 8421.0), ('mailings', 17, None))
    """
    experiment, (number, total) = split(words, "ROUND TOTAL")
    round_, name = round_number(number), f"TOTAL (or the word {MISSING})"
    return experiment, round_, None if total.lower() == MISSING else totals.number(name, total)


def round_number(text: str) -> int:
    """Return the number of a round."""
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or int(text) < 1:
        raise InvalidArgument(f"ROUND must be a whole number, at least 1, but got {shown(text)}")
    return int(text)


def text_of(name: str) -> str:
    """Return the text of a file of totals; "-" is standard input."""
    if name == "-":
        raw = sys.stdin.buffer.read(totals.MOST_TEXT + 1)
    else:
        with Path(name).open("rb") as file:
            raw = file.read(totals.MOST_TEXT + 1)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"FILE must be UTF-8 text, but byte {error.start} is not") from None


def duration(text: str) -> str | float:
    """Return a duration as in the settings: a number of days, or text such as "2 weeks"."""
    try:
        return float(text)
    except ValueError:
        return text


def unit_list(text: str) -> int | list[str]:
    """Return the number of units, or their names.

    >>> unit_list("3"), unit_list("north,south")
    (3, ['north', 'south'])
    """
    bare = text.strip()
    return int(bare) if bare.lstrip("+-").isdigit() else [name.strip() for name in text.split(",")]


def carry_over(
    window: str | None = None,
    half_life: str | None = None,
    max_delay: int | None = None,
    round_length: str | None = None,
) -> dict[str, Any]:
    """Return the carry-over part of the settings; at most one of window, half_life, max_delay may be given."""
    given = {"--window": window, "--half-life": half_life, "--max-delay": max_delay}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise InvalidArgument(f"carry-over must be given by one of {', '.join(given)}, but got {' and '.join(named)}")
    length = {} if round_length is None else {"round_length": duration(round_length)}
    if max_delay is not None:
        return {"max_delay": max_delay, **length}
    if not named:
        return length
    key, text = ("window", window) if window is not None else ("half_life", half_life)
    return {"carry_over": {key: duration(str(text)), **length}}
