"""The commands for those who design or analyse: a pilot with random arms, and how long effects last in a file."""

import math
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aftereffect.core import checks, frames
from aftereffect.core.errors import AftereffectWarning, InvalidArgument
from aftereffect.core.text import amount
from aftereffect.service import totals
from aftereffect.service.cli import arguments as args
from aftereffect.service.cli import output
from aftereffect.service.cli.output import Answer
from aftereffect.service.messages import finite
from aftereffect.service.settings import days, duration

if TYPE_CHECKING:
    from aftereffect.carryover import Bands

MOST_TOTALS = 100_000
MOST_COEFFICIENTS = 400
"""Maximum of (arms - 1) * (max_lag + 1) in an estimate, for the memory it takes."""


def pilot(
    max_lag: Annotated[str, typer.Option(help='The longest lag to measure: a number of rounds, or "2 weeks".')],
    settings: Annotated[args.Settings, ("round_length", "noise")],
    arms: Annotated[int, typer.Option(help="The number of arms.")] = 2,
    rounds: Annotated[int | None, typer.Option(help="By default twelve totals for each arm and lag.")] = None,
    units: Annotated[int, typer.Option(help="The number of units that play in parallel.")] = 1,
    seed: Annotated[int, typer.Option(help="The random seed of the schedule.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Write the schedule to this CSV file.")] = None,
) -> Answer:
    """Plan a pilot: how long it takes, how wide its bands will be, and its random schedule. Nothing is stored.

    Play it yourself, and estimate from its totals with `aftereffect carryover FILE --randomised`.
    """
    from aftereffect.carryover import Pilot

    length, noise = days(settings.get("round_length", 1.0)), settings.get("noise")
    D = int(max_lag) if max_lag.isdigit() else math.ceil(days(max_lag) / length - 1e-9)
    n = rounds or max(D + 2 * (arms - 1) * (D + 1) + 20, D + math.ceil(12 * arms * (D + 1) / units))
    planned = Pilot(n_arms=arms, rounds=n, max_lag=D, units=units, seed=seed)
    found: dict[str, Any] = {"rounds": n, "max_lag": D, "effect": None, "whole": None}
    lines = [
        f"A pilot of {n:,} rounds ({duration(n * length)}) measures the effects of {arms} arms up to lag {D}.",
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
    return Answer(found, lines)


def carryover(
    file: Annotated[Path, typer.Argument(metavar="HISTORY.csv", help="With the columns arm and total; - is stdin.")],
    max_lag: Annotated[int, typer.Option(help="The longest lag, in rounds.")],
    settings: Annotated[args.Settings, ("direction", "low", "high", "horizon")],
    randomised: Annotated[bool, typer.Option("--randomised", help="Arms were chosen at random.")] = False,
    season: Annotated[float | None, typer.Option(help="A period of the totals in rounds, such as 7.")] = None,
    arm_column: args.Column = None,
    total_column: args.Column = None,
    round_column: args.Column = None,
    unit_column: args.Column = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the curves into this picture.")] = None,
) -> Answer:
    """Estimate how long effects last from a file of past rounds, and propose a max_delay if --high is given.

    The first line names the columns: arm and total, and perhaps unit, and round or date; without these two, each line
    is the next round of its unit. They are found by usual names, such as campaign, sales, store and day.
    """
    from aftereffect.carryover import estimate
    from aftereffect.carryover.delay import choose_delay

    columns = {"arm": arm_column, "total": total_column, "round": round_column, "unit": unit_column}
    table, guessed = _history(args.text_of(str(file)), columns)
    names = table.arms
    if (len(names) - 1) * (max_lag + 1) > MOST_COEFFICIENTS:
        rule = f"(arms - 1) * (max_lag + 1) must be at most {MOST_COEFFICIENTS}"
        raise InvalidArgument(f"{rule}, but got {len(names) - 1} * {max_lag + 1}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AftereffectWarning)
        exposure = "randomised" if randomised else "recorded"
        options: dict[str, Any] = {"n_arms": len(names), "season": season, "exposure": exposure}
        curves = estimate(table.played, table.totals, max_lag=max_lag, **options)
        given = {"n_arms": len(names), "direction": "maximize", **settings}
        choice = choose_delay(curves=curves, **given) if "high" in settings else None
    if plot is not None:
        figure, axes = checks.optional("matplotlib.pyplot", "--plot", "plots").subplots(layout="constrained")
        curves.plot(axes, names)
        figure.savefig(plot)
    found: dict[str, Any] = {"max_lag": max_lag, "totals": curves.rounds, "noise": curves.noise}
    found |= {"ends": curves.ends(), "arrived": _by_arm(curves.arrived, names)}
    found["max_delay"] = None if choice is None else choice.max_delay
    lines = [*guessed, *(f"Attention: {each.message}" for each in caught)]
    return Answer(found, [*lines, *output.carryover(curves, names, choice)])


def _by_arm(bands: "Bands", names: Sequence[str]) -> dict[str, dict[str, list[float | None]]]:
    """Return estimates and their bands by the names of the arms; None where there is no number."""
    tables = {"values": bands.values, "lower": bands.lower, "upper": bands.upper}
    return {arm: {key: [*map(finite, table[i])] for key, table in tables.items()} for i, arm in enumerate(names)}


def _history(text: str, given: dict[str, str | None]) -> tuple[frames.RoundTable, list[str]]:
    """Return the rounds of a file, and a sentence on the columns that were found by their names."""
    import polars

    said: list[str] = []

    def columns(header: Sequence[str], *lines: Sequence[str]) -> list[str]:
        names = [cell.strip() for cell in header]
        try:
            found, guessed = frames.columns_of(names, given, optional=("round", "unit"))
        except InvalidArgument as error:
            words = re.sub(r"(\w+)_column", r"--\1-column", str(error))
            raise InvalidArgument(f"the first line must name the columns: {words}") from None
        said.extend(f"{name} is {found[name]!r}" for name in guessed)
        meaning = {column: name for name, column in found.items()}
        if "round" in found and lines and not lines[0][names.index(found["round"])].strip().isdigit():
            meaning[found["round"]] = "date"
        return [meaning.get(name, "") for name in names]

    items = list(totals.items(text, MOST_TOTALS, columns))
    places, rows = Counter[str | None](), []
    for item in items:
        places[item.unit] += 1
        rows.append((item.round or item.date or places[item.unit], item.unit or "", item.arm, item.total))
    rows.sort(key=lambda row: row[0])
    kinds: dict[str, Any] = {"round": None, "unit": polars.String, "arm": polars.String, "total": polars.Float64}
    found = frames.round_table(polars.DataFrame(rows, schema=kinds, orient="row"))
    return found, [f"Columns by their names: {', '.join(said)}."] if said else []
