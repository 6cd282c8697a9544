"""The commands for those who design or analyse: a pilot with random arms, and how long effects last in a file."""

import io
import math
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aftereffect.core import checks, frames
from aftereffect.core.errors import AftereffectWarning, InvalidArgument
from aftereffect.core.text import amount, counted, printed_table
from aftereffect.service import totals
from aftereffect.service.cli import arguments as args
from aftereffect.service.cli.output import Answer, Lines
from aftereffect.service.errors import checked
from aftereffect.service.messages import finite
from aftereffect.service.settings import MOST_DELAY, PlanQuestion, days, duration

if TYPE_CHECKING:
    from rich.table import Table

    from aftereffect.carryover import Bands, Curves
    from aftereffect.carryover.delay import DelayChoice

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

    design = checked(PlanQuestion, {"arms": arms, "units": units, "max_delay": 0, **settings}, "a pilot")
    length, noise, D = design.round_length, design.noise, _in_rounds(max_lag, design.round_length)
    enough = max(D + 2 * (arms - 1) * (D + 1) + 20, D + math.ceil(12 * arms * (D + 1) / units))
    n = enough if rounds is None else rounds
    planned = Pilot(n_arms=arms, rounds=n, max_lag=D, units=units, seed=seed)
    width = None if noise is None else planned.expected_width(noise=noise)
    lines = [
        f"A pilot of {n:,} rounds ({duration(n * length)}) measures the effects of {arms} arms up to lag {D}.",
        "On average its outcome is that of an equal split between the arms.",
    ]
    if noise is None or width is None:
        lines.append("Give a guess of the noise with --noise to see how wide the bands will be.")
    else:
        known = f"to ±{width.effect:.3g}, the whole effect of an arm to ±{width.whole:.3g} (95% bands)."
        lines.append(f"With noise of {amount(noise)}, the effect at a lag will be known {known}")
    if out is not None:
        rows = [f"{t + 1},{u + 1},{arm + 1}" for t, row in enumerate(planned.arms) for u, arm in enumerate(row)]
        out.write_text("\n".join(["round,unit,arm", *rows, ""]), encoding="utf-8")
        lines.append(f"The schedule is in {out}.")
    data = {"rounds": n, "max_lag": D, "effect": width and width.effect, "whole": width and width.whole}
    return Answer(data, lines)


def _in_rounds(max_lag: str, length: float) -> int:
    """Return a longest lag in rounds; it is given as their number, or as a time."""
    try:
        lag = int(max_lag) if totals.WHOLE.fullmatch(max_lag.strip()) else math.ceil(days(max_lag) / length - 1e-9)
    except ValueError as error:
        raise InvalidArgument(f"max_lag {error}") from None
    return checks.integer("max_lag", lag, low=0, high=MOST_DELAY)


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
    table = _history(args.text_of(str(file)), columns)
    with warnings.catch_warnings(record=True, action="always", category=AftereffectWarning) as caught:
        found = frames.round_table(table, **{f"{name}_column": column for name, column in columns.items()})
        names = found.arms
        if (len(names) - 1) * (max_lag + 1) > MOST_COEFFICIENTS:
            rule = f"(arms - 1) * (max_lag + 1) must be at most {MOST_COEFFICIENTS}"
            raise InvalidArgument(f"{rule}, but got {len(names) - 1} * {max_lag + 1}")
        exposure = "randomised" if randomised else "recorded"
        options: dict[str, Any] = {"n_arms": len(names), "season": season, "exposure": exposure}
        curves = estimate(found.played, found.totals, max_lag=max_lag, **options)
        given = {"n_arms": len(names), "direction": "maximize", **settings}
        choice = choose_delay(curves=curves, **given) if "high" in settings else None
    if plot is not None:
        curves.plot(names=names)
        checks.optional("matplotlib.pyplot", "--plot", "plots").savefig(plot)
    data: dict[str, Any] = {"max_lag": max_lag, "totals": curves.rounds, "noise": curves.noise, "ends": curves.ends()}
    data |= {"arrived": _by_arm(curves.arrived, names), "max_delay": None if choice is None else choice.max_delay}
    return Answer(data, [*(f"Attention: {each.message}" for each in caught), *_shown(curves, names, choice)])


def _shown(curves: "Curves", names: Sequence[str], choice: "DelayChoice | None") -> Lines:
    """Return the lines of `carryover`: what has arrived by each lag, with its band, and the max_delay chosen."""
    bands, lags = curves.arrived, range(curves.max_lag + 1)

    def cell(arm: int, lag: int) -> str:
        value, low, high = (float(table[arm, lag]) for table in (bands.values, bands.lower, bands.upper))
        return f"{value:+.3g} ({low:+.3g} to {high:+.3g})" if math.isfinite(value) else "not measured"

    rows = [[str(lag), *(cell(arm, lag) for arm in range(len(names)))] for lag in lags]
    apart = curves.alike.verdict == "apart"
    alike = "The arms fade differently" if apart else "That all arms fade alike is not refuted"
    lines: list[str | Table] = [
        f"Effect arrived by each lag, relative to the mean of the arms, from {curves.rounds:,} totals (95% bands):",
        printed_table(["lag", *names], rows),
        f"No arm's effect after lag {curves.ends()} differs significantly from 0.",
        f"{alike}. The noise of a total has a standard deviation of {amount(curves.noise, digits=3)}.",
    ]
    if choice is None:
        return [*lines, "To choose a carry-over, the range of one action's effect is needed: give --low and --high."]
    return [*lines, f"Chosen: a carry-over (max_delay) of {counted(choice.max_delay, 'round')}.", str(choice)]


def _by_arm(bands: "Bands", names: Sequence[str]) -> dict[str, dict[str, list[float | None]]]:
    """Return estimates and their bands by the names of the arms; None where there is no number."""
    tables = {"values": bands.values, "lower": bands.lower, "upper": bands.upper}
    return {arm: {key: [*map(finite, table[i])] for key, table in tables.items()} for i, arm in enumerate(names)}


def _history(text: str, columns: dict[str, str | None]) -> Any:
    """Return the table of a file, sorted by rounds; without rounds, each line is the next one of its unit."""
    import polars as pl

    mark = next((mark for mark in ";\t" if mark in text.partition("\n")[0]), ",")
    commas = mark != "," and re.search(r"\d,\d", text) is not None
    options: dict[str, Any] = {"separator": mark, "decimal_comma": commas, "infer_schema_length": None}
    try:
        table = pl.read_csv(io.StringIO(text), null_values=["", totals.MISSING], **options)
    except pl.exceptions.PolarsError as error:
        raise InvalidArgument(f"FILE must be CSV, but {error}") from None
    found, _ = frames.columns_of(table.columns, columns, optional=("round", "unit"))
    if "round" in found:
        return table.sort(found["round"], maintain_order=True)
    next_one = pl.int_range(pl.len())
    return table.with_columns(round=next_one.over(found["unit"]) if "unit" in found else next_one)
