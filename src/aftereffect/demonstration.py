"""Every player on every kind of losses, at a small setting: what `aftereffect demo` runs, prints and writes.

It is the quick setting of the study `rivals`, so that everything shown here can be looked up in its report, run again
at full size, or changed.
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING

from aftereffect.studies import Study

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console
    from rich.table import Table

NAME = "rivals"
KINDS = {
    "one good arm": ("split", "delays", "fixed", "geometric", "immediate", "anonymous"),
    "late bills": ("late_bills",),
    "moving arms": ("switching", "drifting", "seasonal"),
    "adversary": ("constrained", "hard", "stacked"),
}
"""The columns of the table, and the study's instances in each."""
OURS, NAIVE = "default player", "naive Exp3"


def demonstrate(console: "Console", folder: Path, study: Study | None = None) -> Path:
    """Run the study in a folder, unless it is finished there, print table and verdict, and return the report's path.

    study: another one with some of its instances and players, for who has less time still.
    """
    study = Study.load(NAME, quick=True) if study is None else study
    sizes = sorted({(cell["n_arms"], cell["max_delay"], cell["horizon"]) for cell in study.cells()})
    players = len({str(cell["player"]) for cell in study.cells()})
    console.print(
        f"{players} players, {len(study.cells()):,} cells of {study.runs} runs, K = {sizes[0][0]}, "
        f"d = {' and '.join(str(d) for _, d, _ in sizes)}, T = {sizes[0][2]:,}. The first time it compiles them all.",
        highlight=False,
    )
    results = study.run(folder)
    from aftereffect.studies.report import write_report

    console.print(table(results.rows))
    console.print(verdict(results.rows), highlight=False)
    for cell, failure in results.failures.items():
        console.print(f"cell {cell} failed: {failure.get('message')}", highlight=False)
    return write_report(study, results, folder)


def table(rows: "pl.DataFrame") -> "Table":
    """Return regret per 1,000 rounds by player and kind of losses, the best on the first kind at the top."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from aftereffect.studies import views
    from aftereffect.studies.sections import number

    shown = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    shown.add_column("regret per 1,000 rounds", no_wrap=True)
    for kind in KINDS:
        shown.add_column(kind, justify="right")
    shown.add_column("needs", no_wrap=True)
    means = by_kind(rows)
    for who in sorted(means, key=lambda who: (who in views.labelled(), means[who][0])):
        needs = "labels" if who in views.labelled() else "one law" if who in views.needing("stochastic losses") else ""
        shown.add_row(who, *(number(mean) for mean in means[who]), needs)
    return shown


def by_kind(rows: "pl.DataFrame") -> dict[str, list[float]]:
    """Return each player's mean regret per 1,000 rounds on each kind; NaN where it has no room on all of its cells.

    Who has no room on all cells of any kind is left out.
    """
    import polars as pl

    from aftereffect.studies import views

    finals = views.finals(views.readable(rows))
    found: dict[str, list[float]] = {}
    for who in views.names(finals, "who"):
        found[who] = []
        for instances in KINDS.values():
            here = finals.filter(pl.col("instance").is_in(instances))
            mine = here.filter(pl.col("who") == who)
            whole = mine.height == here.select("instance", *views.SIZES).n_unique()
            each = (1000.0 * mine["regret"] / mine["horizon"]).to_numpy()
            found[who].append(float(each.mean()) if whole and mine.height else math.nan)
    return {who: row for who, row in found.items() if not all(math.isnan(mean) for mean in row)}


def verdict(rows: "pl.DataFrame") -> str:
    """Say in one sentence what the table shows."""
    means = by_kind(rows)
    ours, naive, control = (means[who][:2] for who in (OURS, NAIVE, "uniform play"))
    return (
        f"The {OURS} has {ours[0] / control[0]:.0%} of the regret of choosing blindly where one arm is good, and "
        f"{ours[1] / control[1]:.0%} where bad arms bill late; {NAIVE}, which blames each total on the arm just "
        f"played, has {naive[0] / control[0]:.0%} and {naive[1] / control[1]:.0%}."
    )
