"""The cost of a wrong delay: players given a wrong d, compared with the same player given the d of the losses."""

import json

import polars as pl

from aftereffect.studies.report import frames
from aftereffect.studies.report.page import Page, ratio


def wrong_delay(page: Page, rows: pl.DataFrame) -> list[str]:
    """Tabulate, by the d that a player is told, its regret over that of the same player with the right d."""
    finals = frames.finals(frames.readable(rows.filter(measure="regret"), apart=("player.max_delay",)))
    found = frames.some(compared(finals), "players told a wrong delay and the right one")
    page.section("What a wrong delay costs")
    index = {"who": "player", "where": "instance", "max_delay": "longest delay"}
    caption = "Regret over that of the same player told the longest delay, by the d that it is told. Blue: less regret."
    mean = found.group_by(*index, "told", maintain_order=True).agg(pl.col("ratio").mean())
    frames.pivot(page, mean, index, "told", lambda row: ratio(row["ratio"]), caption)
    return [note for who in frames.names(found, "who") for note in notes(found.filter(who=who), who)]


def compared(finals: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of players with a wrong d, compared with the same player with the right d, if that has regret.

    told: the wrong d. ratio: of the two regrets. sure: their difference in standard errors.
    """
    settings = [json.loads(text) for text in finals["player_params"]]
    told = pl.Series("told", [given.pop("max_delay", None) for given in settings], dtype=pl.Int64)
    same = pl.Series("same", [json.dumps(given, sort_keys=True) for given in settings], dtype=pl.String)
    marked = finals.with_columns(told, same)
    keys = ["player", "same", "where", *frames.SIZES, "seed"]
    right = marked.filter(pl.col("told").is_null()).select(*keys, known="regret", known_error="standard_error")
    both = marked.drop_nulls("told").join(right, on=keys, maintain_order="left").filter(pl.col("known") > 0.0)
    error = (pl.col("standard_error").fill_null(0.0) ** 2 + pl.col("known_error").fill_null(0.0) ** 2).sqrt()
    return both.with_columns(
        ratio=pl.col("regret") / pl.col("known"), sure=(pl.col("regret") - pl.col("known")) / error
    )


def notes(part: pl.DataFrame, who: str) -> list[str]:
    """Return sentences on how often a wrong delay does better or worse than the right one, and how much worse."""
    short = part.filter(pl.col("told") < pl.col("max_delay"))
    long = part.filter(pl.col("told") > pl.col("max_delay"))
    found = []
    if short.height:
        lower, higher = (short["sure"] < -frames.FAR).sum(), (short["sure"] > frames.FAR).sum()
        worst = short.sort("ratio", descending=True).row(0, named=True)
        found.append(
            f"{who}, where effects last longer: in {short.height} cells, its regret is significantly lower than with "
            f"the true delay in {lower} and significantly higher in {higher}; at worst it is {worst['ratio']:.1f} "
            f"times as high, on {worst['where']} with d = {worst['max_delay']:,} and told {worst['told']:,}, which is "
            f"{worst['regret'] / worst['uniform_regret']:.0%} of uniform play's."
        )
    if long.height:
        ratios = long["ratio"].to_numpy()
        found.append(
            f"{who}, where effects end sooner: its regret is {ratios.min():.1f} to {ratios.max():.1f} times that with "
            "the true delay."
        )
    return found
