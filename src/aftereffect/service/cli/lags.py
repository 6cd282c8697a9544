"""The commands for those who design or analyse: a pilot with random arms, and how long effects last in a file."""

import csv
import math
import re
import warnings
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aftereffect.core import checks, frames
from aftereffect.core.errors import AftereffectWarning, InvalidArgument
from aftereffect.core.text import amount
from aftereffect.service import totals
from aftereffect.service.cli import arguments as args
from aftereffect.service.cli import output
from aftereffect.service.cli.arguments import Form
from aftereffect.service.cli.output import Format, exit_on_error, show
from aftereffect.service.messages import finite

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from aftereffect.carryover import Bands

MOST_TOTALS = 100_000
MOST_COEFFICIENTS = 400
"""Maximum of (arms - 1) * (max_lag + 1) in an estimate, for the memory it takes."""


def pilot(
    max_lag: Annotated[str, typer.Option(help='The longest lag to measure: a number of rounds, or "2 weeks".')],
    arms: Annotated[int, typer.Option(help="The number of arms.")] = 2,
    rounds: Annotated[int | None, typer.Option(help="By default twelve totals for each arm and lag.")] = None,
    units: Annotated[int, typer.Option(help="The number of units that play in parallel.")] = 1,
    round_length: args.RoundLength = None,
    noise: args.Noise = None,
    seed: Annotated[int, typer.Option(help="The random seed of the schedule.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Write the schedule to this CSV file.")] = None,
    form: Form = Format.TABLE,
) -> None:
    """Plan a pilot: how long it takes, how wide its bands will be, and its random schedule. Nothing is stored.

    Play it yourself, and estimate from its totals with `aftereffect carryover FILE --randomised`.
    """
    with exit_on_error(form):
        from aftereffect.carryover import Pilot
        from aftereffect.service.settings import days
        from aftereffect.service.settings import duration as in_words

        length = days(args.duration(round_length or "1 day"))
        D = int(max_lag) if max_lag.isdigit() else math.ceil(days(max_lag) / length - 1e-9)
        n = rounds or max(D + 2 * (arms - 1) * (D + 1) + 20, D + math.ceil(12 * arms * (D + 1) / units))
        planned = Pilot(n_arms=arms, rounds=n, max_lag=D, units=units, seed=seed)
        found: dict[str, Any] = {"rounds": n, "max_lag": D, "effect": None, "whole": None}
        lines = [
            f"A pilot of {n:,} rounds ({in_words(n * length)}) measures the effects of {arms} arms up to "
            f"lag {D}.",
            "On average its outcome is that of an equal split between the arms.",
        ]
        if noise is None:
            lines.append("Give a guess of the noise with --noise to see how wide the bands will be.")
        else:
            width = planned.expected_width(noise=noise)
            found |= {"effect": width.effect, "whole": width.whole}
            lines.append(
                f"With noise of {amount(noise)}, the effect at a lag will be known to ±{width.effect:.3g}, the whole "
                f"effect of an arm to ±{width.whole:.3g} (95% bands)."
            )
        if out is not None:
            rows = [f"{t + 1},{u + 1},{arm + 1}" for t, row in enumerate(planned.arms) for u, arm in enumerate(row)]
            out.write_text("\n".join(["round,unit,arm", *rows, ""]), encoding="utf-8")
            lines.append(f"The schedule is in {out}.")
        show(form, found, lines)


def carryover(
    file: Annotated[Path, typer.Argument(metavar="HISTORY.csv", help="With the columns arm and total; - is stdin.")],
    max_lag: Annotated[int, typer.Option(help="The longest lag, in rounds.")],
    randomised: Annotated[bool, typer.Option("--randomised", help="Arms were chosen at random.")] = False,
    direction: Annotated[str, typer.Option(help="maximize or minimize.")] = "maximize",
    low: Annotated[float, typer.Option(help="The smallest effect of one action.")] = 0.0,
    high: Annotated[float | None, typer.Option(help="The largest effect of one action.")] = None,
    horizon: args.Horizon = None,
    season: Annotated[float | None, typer.Option(help="A period of the totals in rounds, such as 7.")] = None,
    arm_column: args.Column = None,
    total_column: args.Column = None,
    round_column: args.Column = None,
    unit_column: args.Column = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the curves into this picture.")] = None,
    form: Form = Format.TABLE,
) -> None:
    """Estimate how long effects last from a file of past rounds, and propose a max_delay if --high is given.

    The first line names the columns: arm and total, and perhaps unit, and round or date; without these two, each line
    is the next round of its unit. They are found by usual names, such as campaign, sales, store and day.
    """
    with exit_on_error(form):
        from aftereffect.carryover import estimate
        from aftereffect.carryover.delay import choose_delay

        columns = {"arm": arm_column, "total": total_column, "round": round_column, "unit": unit_column}
        text, guessed = _named(args.text_of(str(file)), columns)
        names, played, told = _history(text)
        if (len(names) - 1) * (max_lag + 1) > MOST_COEFFICIENTS:
            rule = f"(arms - 1) * (max_lag + 1) must be at most {MOST_COEFFICIENTS}"
            raise InvalidArgument(f"{rule}, but got {len(names) - 1} * {max_lag + 1}")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", AftereffectWarning)
            exposure = "randomised" if randomised else "recorded"
            curves = estimate(played, told, max_lag=max_lag, n_arms=len(names), season=season, exposure=exposure)
            given: dict[str, Any] = {"n_arms": len(names), "direction": direction, "low": low, "horizon": horizon}
            choice = None if high is None else choose_delay(curves=curves, high=high, **given)
        if plot is not None:
            figure, axes = checks.optional("matplotlib.pyplot", "--plot", "plots").subplots(layout="constrained")
            curves.plot(axes, names)
            figure.savefig(plot)
        found: dict[str, Any] = {"max_lag": max_lag, "totals": curves.rounds, "noise": curves.noise}
        found |= {"ends": curves.ends(), "arrived": _by_arm(curves.arrived, names)}
        found["max_delay"] = None if choice is None else choice.max_delay
        lines = [*guessed, *(f"Attention: {each.message}" for each in caught)]
        show(form, found, [*lines, *output.carryover(curves, names, choice)])


def _by_arm(bands: "Bands", names: Sequence[str]) -> dict[str, dict[str, list[float | None]]]:
    """Return estimates and their bands by the names of the arms; None where there is no number."""
    tables = {"values": bands.values, "lower": bands.lower, "upper": bands.upper}
    return {arm: {key: [*map(finite, table[i])] for key, table in tables.items()} for i, arm in enumerate(names)}


def _named(text: str, given: dict[str, str | None]) -> tuple[str, list[str]]:
    """Return a file with the columns that are read under the names of an export, and which of them were guessed."""
    head, _, rest = text.lstrip("\ufeff").partition("\n")
    mark = next((mark for mark in ";\t," if mark in head), ",")
    header = [cell.strip() for cell in next(csv.reader([head.strip()], delimiter=mark), [])]
    try:
        found, guessed = frames.columns_of(header, given, optional=("round", "unit"))
    except InvalidArgument as error:
        words = re.sub(r"(\w+)_column", r"--\1-column", str(error))
        raise InvalidArgument(f"the first line must name the columns: {words}") from None
    meaning = {column: name for name, column in found.items()}
    if (column := found.get("round")) is not None:
        first = next(csv.reader([rest.strip().partition("\n")[0]], delimiter=mark), [])
        at = header.index(column)
        meaning[column] = "round" if len(first) > at and first[at].strip().isdigit() else "date"
    named = mark.join(meaning.get(cell, totals.UNREAD) for cell in header)
    said = ", ".join(f"{name} is {found[name]!r}" for name in guessed)
    return f"{named}\n{rest}", [f"Columns by their names: {said}."] if said else []


def _history(text: str) -> tuple[list[str], "NDArray[np.int64]", "NDArray[np.float64]"]:
    """Return the names of the arms, and arms and totals of shape (rounds, units); -1 and NaN where there is no line."""
    import numpy as np

    items = list(totals.items(text, MOST_TOTALS))
    if any(item.arm is None for item in items):
        raise InvalidArgument("the file must have the name of an arm in every line, but has not")
    names = sorted({str(item.arm) for item in items})
    units = list(dict.fromkeys(item.unit for item in items))
    if all(item.round is not None for item in items):
        rounds = [item.round or 0 for item in items]
    elif all(item.date is not None for item in items):
        days = np.array([date.fromisoformat(item.date or "").toordinal() for item in items])
        # Days without a line, in which nothing is known, make no difference to the greatest common divisor.
        rounds = ((days - days.min()) // max(int(np.gcd.reduce(days - days.min())), 1)).tolist()
    else:
        seen = dict.fromkeys(units, 0)
        rounds = []
        for item in items:
            seen[item.unit] += 1
            rounds.append(seen[item.unit])
    first, places = min(rounds), {name: i for i, name in enumerate(names)}
    length = max(rounds) - first + 1
    if length > MOST_TOTALS:
        raise InvalidArgument(f"the rounds of the file must be within {MOST_TOTALS:,}, but they are {length:,} apart")
    arms, told = np.full((length, len(units)), -1), np.full((length, len(units)), np.nan)
    for t, item in zip(rounds, items, strict=True):
        place = t - first, units.index(item.unit)
        if arms[place] >= 0:
            raise InvalidArgument(f"the file must have each round of a unit once, but has round {t} twice")
        arms[place], told[place] = places[str(item.arm)], np.nan if item.total is None else item.total
    return names, arms, told
