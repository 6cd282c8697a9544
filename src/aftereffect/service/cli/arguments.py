"""Arguments and options of the commands, and how their texts become settings, rounds and totals."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from aftereffect.core.checks import shown
from aftereffect.core.errors import InvalidArgument
from aftereffect.service.cli.output import Format

MISSING = "missing"


def split_reference(words: Sequence[str], rest: str) -> tuple[str | None, list[str]]:
    """Return the EXPERIMENT, if it is there, and the words after it; `rest` names those ("ROUND TOTAL").

    >>> split_reference(["mailings", "3", "0.5"], "ROUND TOTAL")
    ('mailings', ['3', '0.5'])
    """
    wanted = len(rest.split())
    if any(word.startswith("--") for word in words):
        option = next(word for word in words if word.startswith("--"))
        raise InvalidArgument(f"there is no option {option!r} here")
    if len(words) == wanted:
        return None, list(words)
    if len(words) == wanted + 1:
        return words[0], list(words[1:])
    raise InvalidArgument(f"the arguments must be [EXPERIMENT] {rest}, but got {shown(' '.join(words))}")


def report(words: Sequence[str]) -> tuple[str | None, int, float | None]:
    """Return experiment, round and total of a report; the total `missing` is None.

    >>> report(["17", "8421"])
    (None, 17, 8421.0)
    >>> report(["mailings", "17", "missing"])
    ('mailings', 17, None)
    """
    experiment, (number, total) = split_reference(words, "ROUND TOTAL")
    return experiment, round_number(number), None if total.lower() == MISSING else finite("TOTAL", total)


def round_number(text: str) -> int:
    """Return the number of a round."""
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or int(text) < 1:
        raise InvalidArgument(f"ROUND must be a whole number from 1 on, but got {shown(text)}")
    return int(text)


def finite(name: str, text: str) -> float:
    """Return a finite number written as text; no underscores, no arguments."""
    try:
        number = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidArgument(f"{name} must be a finite number or the word {MISSING}, but got {shown(text)}")
    return number


def duration(text: str | None) -> str | float | None:
    """Return a length of time as the settings take it: a bare number is a number of days."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def unit_list(text: str | None) -> int | list[str] | None:
    """Return how many units, or their names.

    >>> unit_list("3"), unit_list("north,south"), unit_list(None)
    (3, ['north', 'south'], None)
    """
    if text is None:
        return None
    bare = text.strip()
    if bare.lstrip("+-").isdigit():
        return int(bare)
    return [name.strip() for name in text.split(",")]


def carry_over(
    window: str | None, half_life: str | None, max_delay: int | None, round_length: str | None
) -> dict[str, Any]:
    """Return the carry-over part of the settings; exactly one way of saying it must be chosen."""
    given = {"--window": window, "--half-life": half_life, "--max-delay": max_delay}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        how = "none" if not named else " and ".join(named)
        raise InvalidArgument(f"carry-over must be given by one of {', '.join(given)}, but got {how}")
    length = {} if round_length is None else {"round_length": duration(round_length)}
    if max_delay is not None:
        return {"max_delay": max_delay, **length}
    key, text = ("window", window) if window is not None else ("half_life", half_life)
    return {"carry_over": {key: duration(text), **length}}


def settings(carried: Mapping[str, Any], units: str | None, rest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an experiment, without what was left to its default."""
    optional = {key: value for key, value in {**rest, "units": unit_list(units)}.items() if value is not None}
    return {**carried, **optional}


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
