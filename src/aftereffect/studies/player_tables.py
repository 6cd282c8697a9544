"""Tables of all players, on one problem (`aftereffect compare`) and on every kind of losses (`aftereffect demo`).

The demo runs the study `rivals`, in its quick setting by default. To compare two simulations of your own, see
`aftereffect.compare`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aftereffect.core import checks
from aftereffect.core.text import printed_table
from aftereffect.engines.simulation import Simulation
from aftereffect.engines.workload import cores
from aftereffect.losses import tables
from aftereffect.losses.protocol import Losses
from aftereffect.players import registry
from aftereffect.players.registry import Entry, Problem
from aftereffect.studies.cells import known, spread_out
from aftereffect.studies.study import Study

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console
    from rich.table import Table

SPREADS = ("delays", "split", "fading")
NEEDS = {
    "max_delay": "d", "horizon": "T", "mean delay": "mean", "delay variance": "variance",
    "coefficients": "coefficients", "stochastic losses": "iid", "short delay": "d ≤ 1",
}  # fmt: skip
"""What players need, in few words."""
REASONS = {"short delay": "for delays of at most 1", "coefficients": "for known coefficients: --spread fading"}
KINDS = {
    "one good arm": ("split", "delays", "fixed", "geometric", "immediate", "anonymous"),
    "late bills": ("late_bills",),
    "moving arms": ("switching", "drifting", "seasonal"),
    "adversary": ("constrained", "hard", "stacked"),
}
"""The columns of the table, and the study's instances in each."""
OURS, NAIVE = "default player", "naive Exp3"


Contender = tuple[Entry, dict[str, Any]]
"""A player's registry entry and its settings."""
COMPARED: list[Contender] = [(registry.find(name), settings) for name, settings in registry.COMPARED]
MOST_RUNS = {"LagPlayer": 4}
"""How many runs players have at most in the comparison that take a thousand times as long for a round as others."""


def contenders(problem: Problem) -> list[Contender]:
    """Return the players of the comparison that can play this problem."""
    return [(entry, settings) for entry, settings in COMPARED if not entry.lacks(problem, settings)]


def one_good_arm(arms: int, max_delay: int, horizon: int, gap: float, spread: str, seed: int) -> tuple[Losses, Problem]:
    """Return losses in which one arm is best and all others are equal, and the problem as players may know it."""
    gap = checks.real("gap", gap, low=0.0, high=0.5)
    checks.choice("spread", spread, SPREADS)
    # The best arm is in the middle, so that a player gains nothing by trying arms in order or starting with the first.
    means = [0.5] * arms
    means[arms // 2] -= gap
    table = tables.iid(horizon, means=means, seed=seed)
    cell = {"instance": {"name": "geometric" if spread == "fading" else spread}, "max_delay": max_delay}
    return spread_out(table, cell, seed), Problem(arms, max_delay, horizon, *known(cell))


def print_comparison(console: "Console", rows: Sequence[tuple[Contender, Simulation, float]]) -> None:
    """Print each player's regret, time and needs within 80 columns."""
    lines = []
    for (entry, settings), simulation, seconds in rows:
        needs = [NEEDS[need] for need in entry.needs(settings)] + ["labels"] * entry.labelled
        numbers = (f"{simulation.mean_regret:,.0f}", f"{simulation.standard_error:,.0f}", f"{seconds:.2f} s")
        lines.append([entry.label(settings), *numbers, ", ".join(needs)])
    console.print(printed_table(["player", "regret", "±", "time", "needs"], lines, ["needs"]))
    console.print(
        "What each player must know or assume: d, the longest delay; T, the horizon; mean, variance or coefficients of "
        "the law of delays; iid losses; labels that say which round a loss comes from (not available under anonymous "
        "feedback)."
    )


def left_out(problem: Problem) -> str:
    """Return a sentence naming the players that cannot play this problem, and why; empty if all of them can."""
    lacking = [(entry.label(settings), entry.lacks(problem, settings)) for entry, settings in COMPARED]
    reasons = ", ".join(f"{label} ({REASONS[needs[0]]})" for label, needs in lacking if needs)
    return f"Left out: {reasons}." if reasons else ""


def demonstrate(console: "Console", folder: Path, study: Study) -> Path:
    """Run the study on all cores, keeping finished cells; print what was found and return the report's path.

    Each cell is a unit of work of its own, so that players are compiled on all cores.
    """
    from aftereffect.studies.report.sections import write_report
    from aftereffect.studies.run import opened

    with opened("processes", cores()) as pool:
        results = study.run(folder, pool, workers=len(study.cells()), threads=1)
    path = write_report(study, results, folder)
    console.print(verdict(results.rows), highlight=False)
    console.print(table(results.rows))
    return path


def table(rows: "pl.DataFrame") -> "Table":
    """Return the regret per 1,000 rounds by player and kind of losses, sorted by the first kind."""
    from aftereffect.studies.report.page import number

    lines = [[who, *map(number, means), needs] for who, needs, *means in by_kind(rows).iter_rows()]
    return printed_table(["regret per 1,000 rounds", *KINDS, "needs"], lines, ["needs"])


def by_kind(rows: "pl.DataFrame") -> "pl.DataFrame":
    """Return each player, its needs, and its mean regret per 1,000 rounds on each kind, players without labels first.

    A mean is null where the player cannot play every cell of the kind; a player that always has null is left out.
    """
    import polars as pl

    from aftereffect.studies.report import frames

    kinds = {instance: kind for kind, instances in KINDS.items() for instance in instances}
    needs = pl.when("labelled").then(pl.lit("labels")).when("stochastic").then(pl.lit("iid")).otherwise(pl.lit(""))
    finals = frames.finals(frames.readable(rows)).with_columns(
        kind=pl.col("instance").replace_strict(kinds), needs=needs, mean=1000.0 * pl.col("regret") / pl.col("horizon")
    )
    means = finals.group_by("who", "needs", "kind").agg(pl.col("mean").mean(), pl.len())
    whole = means.filter(pl.col("len") == pl.col("len").max().over("kind"))
    found = whole.pivot("kind", index=["who", "needs"], values="mean").select("who", "needs", *KINDS)
    return found.sort(pl.col("needs") == "labels", next(iter(KINDS)), "who", nulls_last=True)


def verdict(rows: "pl.DataFrame") -> str:
    """Return one sentence that sums up the table."""
    means = {who: kinds for who, _, *kinds in by_kind(rows).iter_rows()}
    ours, naive, control = (means[who][:2] for who in (OURS, NAIVE, "uniform play"))
    return (
        f"The {OURS} has {ours[0] / control[0]:.0%} of the regret of uniform play where one arm is good, and "
        f"{ours[1] / control[1]:.0%} where bad arms charge late; {NAIVE}, which attributes each total to the arm just "
        f"played, has {naive[0] / control[0]:.0%} and {naive[1] / control[1]:.0%}."
    )
