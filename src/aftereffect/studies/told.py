"""The section on players who reckon with another d than the truth: their regret over that of who knows."""

import json

import polars as pl

from aftereffect.studies import views
from aftereffect.studies.page import Entry, Page
from aftereffect.studies.sections import Keep, shade

FAR = 3.0
"""How many standard errors apart two regrets are surely different."""


def told(page: Page, rows: pl.DataFrame, keep: Keep) -> list[str]:
    """Tabulate, by instance and true delay, regret with a wrong d over that of the same player with the right one."""
    found = compared(views.finals(views.readable(rows.filter(pl.col("measure") == "regret"))))
    page.section("What a wrong delay costs")
    delays = sorted(set(found["max_delay"].to_list()))
    table: list[list[Entry]] = []
    for who, where in found.select("who", "where").unique(maintain_order=True).iter_rows():
        part = found.filter(pl.col("who") == who, pl.col("where") == where)
        ratios = dict(part.group_by("max_delay").agg(pl.col("ratio").mean()).iter_rows())
        table.append([who, where, *(shade(ratios[d], parity=True) if d in ratios else "–" for d in delays)])
    page.table(
        ["player", "instance", *(f"d = {d:,}" for d in delays)],
        table,
        words=(1,),
        caption="Regret over that of the same player who knows the delay, by the true delay. Blue: the wrong d does "
        "better.",
    )
    return [note for who in views.names(found, "who") for note in notes(found.filter(pl.col("who") == who), who)]


def compared(finals: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of players with a d of their own: it, the regret of who knows, their ratio, how sure that is."""
    settings = [json.loads(text) for text in finals["player_params"]]
    reckoned = pl.Series("told", [given.pop("max_delay", None) for given in settings], dtype=pl.Int64)
    same = pl.Series("same", [json.dumps(given, sort_keys=True) for given in settings], dtype=pl.String)
    marked = finals.with_columns(reckoned, same)
    keys = ["player", "same", "where", *views.SIZES, "seed"]
    right = marked.filter(pl.col("told").is_null()).select(*keys, known="regret", known_error="standard_error")
    both = marked.drop_nulls("told").join(right, on=keys, maintain_order="left")
    error = (pl.col("standard_error").fill_null(0.0) ** 2 + pl.col("known_error").fill_null(0.0) ** 2).sqrt()
    return both.with_columns(
        ratio=pl.col("regret") / pl.col("known"), sure=(pl.col("regret") - pl.col("known")) / error
    )


def notes(part: pl.DataFrame, who: str) -> list[str]:
    """Say how often too short a delay does better and worse than the truth, and where it is worst."""
    short = part.filter(pl.col("told") < pl.col("max_delay"))
    long = part.filter(pl.col("told") > pl.col("max_delay"))
    found = []
    if short.height:
        better, worse = short.filter(pl.col("sure") < -FAR).height, short.filter(pl.col("sure") > FAR).height
        worst = short.sort("ratio", descending=True).row(0, named=True)
        found.append(
            f"{who}, where effects last longer: of {short.height} cells, it does surely better than who knows in "
            f"{better} and surely worse in {worse}; at worst its regret is {worst['ratio']:.1f} times as high, on "
            f"{worst['where']} with d = {worst['max_delay']:,}, which is "
            f"{worst['regret'] / worst['uniform_regret']:.0%} of uniform play's."
        )
    if long.height:
        ratios = long["ratio"].to_numpy()
        found.append(
            f"{who}, where effects are gone sooner: its regret is {ratios.min():.1f} to {ratios.max():.1f} times that "
            "of who knows."
        )
    return found
