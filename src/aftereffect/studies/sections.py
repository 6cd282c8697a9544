"""The sections of a report: each takes the rows, draws, tabulates, and says in sentences what came out."""

import math
from collections.abc import Callable

import numpy as np
import polars as pl

from aftereffect.studies import charts, views
from aftereffect.studies.figures import Drawing
from aftereffect.studies.page import Entry, Page, Shaded

Keep = Callable[[Drawing], Drawing]
"""Saves a drawing next to the page and returns it."""

LONG = 30
"""Tables with more lines are folded."""
FEW = 4
"""So many instances are spoken of one by one."""


def number(value: float | None, digits: int = 0) -> str:
    """Return a number as tables show it; a dash for none.

    >>> number(12345.6), number(None), number(0.1234, 2)
    ('12,346', '–', '0.12')
    """
    # Adding 0.0 turns a rounded -0.0 into 0.0.
    return "–" if value is None or not math.isfinite(value) else f"{round(value, digits) + 0.0:,.{digits}f}"


def plus_minus(value: float | None, error: float | None) -> str:
    """Return a mean with its standard error."""
    return number(value) if error is None else f"{number(value)} ± {number(error, 0 if error >= 9.5 else 1)}"


def curves(page: Page, rows: pl.DataFrame, keep: Keep) -> list[str]:
    """Show regret over rounds."""
    shown = views.readable(rows.filter(pl.col("measure") == "regret"))
    page.section("Regret over rounds")
    caption = "Mean regret against the best arm of the rounds so far, with 95% bands for the mean, at the longest "
    caption += "horizon. The rate of the lower bound (Theorem 10) has no constant: only its slope counts."
    page.figure(keep(charts.curves(shown)), caption)
    return []


def against(page: Page, rows: pl.DataFrame, name: str, keep: Keep) -> list[str]:
    """Show final regret against one setting, and as a share of uniform play's, instance by instance."""
    given = views.setting(views.finals(rows.filter(pl.col("measure") == "regret")), name)
    shown = views.readable(given, apart=(name,))
    word = views.setting_words(name)
    page.section(f"Regret against {word}")
    page.figure(keep(charts.against(shown, name)), f"Mean regret at the horizon against {word}, with 95% intervals.")
    xs = sorted(set(shown["x"].to_list()))
    places = views.names(shown, "where")
    table: list[list[Entry]] = []
    notes: list[str] = []
    for where in places:
        here = shown.filter(pl.col("where") == where)
        found = shares(here, xs)
        aside = [where] if len(places) > 1 else []
        table += [[who, *aside, *(shade(share) for share in row)] for who, row in found.items()]
        if len(places) <= FEW:
            notes += trends(found, xs, name, views.reference(here), where if aside else "")
            notes += worse_than_uniform(here, name, where if aside else "")
    if len(places) > FEW:
        notes += trends(shares(shown, xs), xs, name, views.reference(shown), "All instances together")
        notes += worse_than_uniform(shown, name, "On some instance")
    headings = ["player", *(["instance"] if len(places) > 1 else []), *(f"{x:,g}" for x in xs)]
    caption = f"Regret as a share of uniform play's, other sizes taken together, by {word}."
    folded = f"Shares of uniform play's regret: {len(table)} lines" if len(table) > LONG else ""
    page.table(headings, table, caption=caption, words=(1,) if len(places) > 1 else (), folded=folded)
    return notes


def shares(here: pl.DataFrame, xs: list[float]) -> dict[str, list[float]]:
    """Return regret as a share of uniform play's at each value of a setting, by player; NaN where there is none."""
    found = {}
    for who in views.names(here, "who"):
        part = here.filter(pl.col("who") == who)
        sums = {x: part.filter(pl.col("x") == x).select("regret", "uniform_regret").sum().row(0) for x in xs}
        found[who] = [regret / uniform if uniform > 0.0 else math.nan for regret, uniform in sums.values()]
    return found


def trends(found: dict[str, list[float]], xs: list[float], name: str, first: str, where: str) -> list[str]:
    """Say how the reference fares from one end of a setting to the other, and who does best at the far end.

    >>> trends({"a": [0.9, 0.5], "b": [1.0, 0.25]}, [1.0, 4.0], "gap", "a", "")
    ["From gap 1 to gap 4, the regret of a goes from 90% to 50% of uniform play's; at gap 4, b has the least, 25%."]
    """
    own = np.array(found[first])
    there = [k for k in range(len(xs)) if math.isfinite(own[k])]
    if len(there) < 2:
        return []
    low, high = there[0], there[-1]
    ends = [views.setting_at(name, xs[k]) for k in (low, high)]
    text = f"{where}: from" if where else "From"
    text += f" {ends[0]} to {ends[1]}, the regret of {first} goes from {own[low]:.0%} to {own[high]:.0%} of "
    text += "uniform play's"
    others = {who: row[high] for who, row in found.items() if math.isfinite(row[high])}
    best = min(others, key=lambda who: others[who])
    if best != first:
        text += f"; at {ends[1]}, {best} has the least, {others[best]:.0%}"
    return [text + "."]


def worse_than_uniform(here: pl.DataFrame, name: str, where: str) -> list[str]:
    """Name who does worse than uniform play by more than three standard errors, and where it is worst.

    A player without randomness has no standard error on a single draw of the losses, and nothing is sure of it there.
    """
    error = pl.col("standard_error")
    excess = here.filter(
        pl.col("player") != "uniform", error > 0.0, pl.col("regret") - 3.0 * error > 1.02 * pl.col("uniform_regret")
    ).with_columns((pl.col("regret") / pl.col("uniform_regret")).alias("share"))
    worst = excess.sort("share", descending=True).unique("who", keep="first", maintain_order=True)
    told = [
        f"{row['who']} (up to {row['share']:.0%}, at {views.setting_at(name, row['x'])})"
        for row in worst.iter_rows(named=True)
    ]
    return [f"{f'{where}: worse' if where else 'Worse'} than choosing blindly: {', '.join(told)}."] if told else []


def shade(value: float, *, parity: bool = False) -> Entry:
    """Return a share (of uniform play) or, with parity, a ratio (to 1) on a ground of blue for good, orange for bad.

    >>> shade(1.0, parity=True)
    Shaded(text='1.00', ground='rgb(255,255,255)', ink='#1c1e21')
    >>> shade(0.0).text
    '0%'
    """
    if not math.isfinite(value):
        return "–"
    if parity:
        return Shaded(f"{value:.2f}", tone(value, 1.0))
    return Shaded(f"{value:.0%}", _ground(2.0 * value - 1.0))


def tone(regret: float, base: float) -> str:
    """Return the ground of a regret held against another: white where they are equal, fully blue below 0.

    >>> tone(2.0, 2.0), tone(-1.0, 2.0), tone(3.0, -1.0)
    ('rgb(255,255,255)', 'rgb(146,197,222)', 'rgb(253,174,97)')
    """
    if regret == base or not math.isfinite(base):
        return _ground(0.0)
    if regret > 0.0 and base > 0.0:
        return _ground(math.log2(max(regret / base, 0.05)) / 2.5)
    return _ground(-1.0 if regret < base else 1.0)


def _ground(amount: float) -> str:
    """Return a colour between blue, −1, over white, 0, to orange, 1."""
    amount = min(max(amount, -1.0), 1.0)
    end: tuple[int, ...] = (253, 174, 97) if amount > 0.0 else (146, 197, 222)
    return f"rgb({','.join(str(round(255 + abs(amount) * (part - 255))) for part in end)})"
