"""The default player compared with the paper's tuning, its rivals and its proved bounds."""

import json
import math
import textwrap
from typing import Any

import numpy as np
import polars as pl

from aftereffect.losses.hard import noise_scale, published_gap
from aftereffect.studies.cells import SPREADS, gap_of
from aftereffect.studies.report import frames
from aftereffect.studies.report.charts import GREY, Drawing, drawn, looks
from aftereffect.studies.report.page import Page, TableEntry, number, plus_minus, ratio

FLOOR = 0.01
"""Regrets below this share of the regret of uniform play are raised to it."""
LEAST = 0.25
"""A cell counts as worse than the paper's tuning only by regrets above this share of √((d+1)KT)."""
CLEAR_GAP, MANY = 0.1, 100.0
"""Clear cells have at least this gap and this many updates per arm."""
LINE = 36
"""The longest line of a row's name in the figure, in characters."""
KEYS = ("instance", "instance_params", *frames.SIZES, "seed")


def adaptive(page: Page, rows: pl.DataFrame) -> list[str]:
    """Compare the players cell by cell, and summarise by geometric means."""
    cells = compared(frames.finals(frames.readable(rows.filter(measure="regret"))))
    cells = frames.some(cells.drop_nulls("ratio"), "cells of the default player and of the paper's tuning")
    page.section("Against the paper's tuning")
    caption = "The default player's mean regret over that of Algorithm 1 with the printed tuning, cell by cell, both "
    caption += "taken as at least 1% of uniform play's. Ratios beyond the axis are drawn at its ends."
    page.figure(ratios_chart(cells), caption)
    headings = ["cells", "of the paper's", "worst cell", "clear cells", "of the paper's", "of the best rival's"]
    headings += ["certificate / Corollary 7", "of the worst case"]
    for word, column in (("instance", "where"), ("K", "n_arms"), ("d", "max_delay"), ("T", "horizon")):
        ordered = cells if column == "where" else cells.sort(column)
        table = [_summary(str(value), part) for (value,), part in ordered.group_by(column, maintain_order=True)]
        caption = f"Geometric means of ratios by {word}. Clear cells have a gap of at least {CLEAR_GAP:g} of the range "
        caption += f"and {MANY:g} updates an arm. The last column is the greatest share."
        page.table([word, *headings], table, caption=caption)
    notes = [*_against_paper(page, cells), *_against_rivals(page, cells), *_against_theory(cells)]
    _all_cells(page, cells)
    return notes


def compared(finals: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each cell of the default player, with the regrets of the paper's tuning and of the best rival.

    best_who, best: the rival without labels that has the least mean regret, and this regret; null if there is none.
    ratio, rival_ratio: the default player's regret over that of the paper's tuning and of the best rival. gap: in units
    of the range, for instances that have one. trivial: T times the largest effect of an action.
    """
    # Without players that were given another d than that of the losses, and losses to which the bounds do not apply.
    finals = finals.filter(~pl.col("player_params").str.contains('"max_delay"')).drop_nulls("corollary_bound")
    rivals = finals.filter(pl.col("player") != "default_player", ~pl.col("labelled"))
    paper = rivals.filter(pl.col("player_params").is_in(["{}", '{"base":"tsallis"}']), player="CompositeLossWrapper")
    paper = paper.select(*KEYS, paper="regret", paper_error="standard_error")
    least = rivals.sort("regret", "who").group_by(KEYS, maintain_order=True).agg(
        pl.col("regret").first().alias("best"), pl.col("who").first().alias("best_who"), pl.len()
    )
    own = finals.filter(player="default_player").join(paper, on=KEYS, maintain_order="left")
    own = own.join(least.filter(pl.col("len") > 1), on=KEYS, how="left", maintain_order="left")
    own_regret, floor = pl.max_horizontal("regret", FLOOR * pl.col("uniform_regret")), FLOOR * pl.col("uniform_regret")
    span = pl.col("trivial") / pl.col("horizon")
    enough = LEAST * span * ((pl.col("max_delay") + 1) * pl.col("n_arms") * pl.col("horizon")).sqrt()
    return own.with_columns(
        gap=pl.Series([nominal_gap(row) for row in own.iter_rows(named=True)], dtype=pl.Float64),
        trivial=pl.col("horizon") * pl.col("unit"),
        ratio=own_regret / pl.max_horizontal("paper", floor),
        rival_ratio=pl.when(pl.col("best").is_not_null()).then(own_regret / pl.max_horizontal("best", floor)),
        excess_error=(pl.col("standard_error") ** 2 + (1.05 * pl.col("paper_error")) ** 2).sqrt(),
    ).with_columns(
        excess=pl.max_horizontal("regret", enough) - 1.05 * pl.max_horizontal("paper", enough),
    ).with_columns(
        clear=(pl.col("gap") >= CLEAR_GAP) & (pl.col("updates") >= MANY * pl.col("n_arms")),
        above=pl.col("excess") > frames.FAR * pl.col("excess_error"),
    )


def nominal_gap(row: dict[str, Any]) -> float | None:
    """Return the gap of the arm that is best throughout; None for instances without such an arm.

    >>> nominal_gap({"instance": "constrained", "instance_params": '{"gap":0.25}'})
    0.25
    >>> nominal_gap({"instance": "drifting", "instance_params": "{}"}) is None
    True
    """
    name, given = row["instance"], json.loads(row["instance_params"])
    if name in (*SPREADS, "anonymous"):
        return gap_of({"instance": given} | {size: row[size] for size in frames.SIZES})
    if name == "hard":
        n = max(1, row["horizon"] // (row["max_delay"] + 1))
        scale = noise_scale(row["n_arms"], n, given.get("noise", "independent"))
        return float(given.get("gap_factor", 1.0)) * published_gap(row["n_arms"], rounds=n) * scale
    known = {"stacked": given.get("gap", 0.1), "constrained": given.get("gap", 0.125), "late_bills": 0.2}
    return float(known[name]) if name in known else None


def geometric_mean(values: pl.Series) -> float:
    """Return the geometric mean of positive numbers; NaN if there are none.

    >>> geometric_mean(pl.Series([1.0, 4.0]))
    2.0
    """
    known = values.drop_nulls().to_numpy()
    return float(np.exp(np.log(known).mean())) if len(known) else math.nan


def _regrets(row: dict[str, Any]) -> list[str]:
    return [plus_minus(row["regret"], row["standard_error"]), plus_minus(row["paper"], row["paper_error"])]


def _summary(name: str, part: pl.DataFrame) -> list[TableEntry]:
    clear = part.filter("clear")
    paper = [ratio(geometric_mean(part["ratio"])), ratio(float(part["ratio"].to_numpy().max()))]
    rival = number(geometric_mean(part["rival_ratio"]), 2)
    certificate = number(geometric_mean(part["value"] / part["corollary_bound"]), 3)
    share = f"{float((part['regret'] / part['bound']).to_numpy().max()):.0%}"
    clear_ratio = ratio(geometric_mean(clear["ratio"]))
    return [name, f"{part.height:,}", *paper, f"{clear.height:,}", clear_ratio, rival, certificate, share]


def _against_paper(page: Page, cells: pl.DataFrame) -> list[str]:
    clear = cells.filter("clear")
    above = cells.filter("above").with_columns(sure=pl.col("excess") / pl.col("excess_error"))
    if above.height:
        table = [
            [row["where"], frames.size_label(row), *_regrets(row), f"{row['sure']:.1f}"]
            for row in above.sort("sure", descending=True).iter_rows(named=True)
        ]
        headings = ["instance", "sizes", "default player", "the paper's tuning", "standard errors above"]
        caption = f"Regret above 1.05 times that of the paper's tuning, both at least {LEAST:g}√((d+1)KT)."
        page.table(headings, table, words=(1,), caption=caption)
    return [
        f"Against the paper's tuning the default player has {number(geometric_mean(clear['ratio']), 3)} times its "
        f"regret in the {clear.height:,} cells with a gap of at least {CLEAR_GAP:g} of the range and {MANY:g} updates "
        f"an arm, {geometric_mean(cells['ratio']):.3f} times in all {cells.height:,} (geometric means).",
        f"Taken as at least {LEAST:g}√((d+1)KT), its regret is more than {frames.FAR:g} standard errors above 1.05 "
        f"times that of the paper's tuning in {above.height or 'no'} cell{'s' * (above.height > 1)}.",
    ]


def _against_rivals(page: Page, cells: pl.DataFrame) -> list[str]:
    met = cells.drop_nulls("rival_ratio")
    if met.is_empty():
        return []
    page.section("Against the best rival of each cell")
    by_rival = sorted(met.group_by("best_who", maintain_order=True), key=lambda pair: -pair[1].height)
    table = [
        [str(who), f"{part.height:,}", number(geometric_mean(part["rival_ratio"]), 2)] for (who,), part in by_rival
    ]
    caption = "The player without labels that has the least mean regret, in how many cells, and the default player's "
    page.table(["rival", "cells", "ratio"], table, caption=caption + "regret over its regret there (geometric mean).")
    clear = met.filter("clear")
    return [
        f"Against the best of the rivals in each of {met.height:,} cells, chosen in hindsight, the default player has "
        f"{geometric_mean(met['rival_ratio']):.2f} times its regret (geometric mean), "
        f"{number(geometric_mean(clear['rival_ratio']), 2)} in the {clear.height:,} clear ones."
    ]


def _against_theory(cells: pl.DataFrame) -> list[str]:
    """Compare regret with the worst case and the mean certificate, and the certificate with Corollary 7 and T."""
    sure = pl.col("regret") - frames.FAR * pl.col("standard_error").fill_null(0.0)
    broken = cells.filter(sure > pl.col("bound")).height
    exceeded = cells.filter(sure > pl.col("value")).height
    long = cells.filter(pl.col("horizon") >= 50_000)
    below = long.filter(pl.col("value") < pl.col("trivial")).height
    shares = (cells["regret"] / cells["bound"]).to_numpy()
    notes = [
        f"The stated worst case is {'never exceeded' if not broken else f'exceeded in {broken} cells'}: mean regret is "
        f"at most {shares.max():.0%} of it (or of T times the range, if that is less).",
        f"The certificate's mean is {geometric_mean(cells['value'] / cells['corollary_bound']):.3f} times Corollary "
        "7's bound (geometric mean) and "
        f"{'never' if not exceeded else f'in {exceeded} cells'} exceeded by the mean regret.",
    ]
    if long.height:
        notes.append(
            f"It is below the trivial T in {below:,} of {long.height:,} cells of 50,000 rounds or more, "
            f"{below / long.height:.1%}."
        )
    return notes


def _all_cells(page: Page, cells: pl.DataFrame) -> None:
    headings = ["instance", "K", "d", "T", "default player", "the paper's", "uniform", "best rival", "its regret"]
    headings += ["certificate", "worst case", "Corollary 7", "updates"]
    table = []
    for row in cells.iter_rows(named=True):
        rest = [number(row[name]) for name in ("best", "value", "bound", "corollary_bound", "updates")]
        rival = [number(row["uniform_regret"]), row["best_who"] or "–"]
        table.append([row["where"], *(number(row[name]) for name in frames.SIZES), *_regrets(row), *rival, *rest])
    page.table(headings, table, words=(7,), folded=f"All {cells.height:,} cells")


def ratios_chart(cells: pl.DataFrame) -> Drawing:
    """Draw the ratio of every cell, by instance, coloured by d."""
    places = frames.names(cells, "where")
    delays = sorted(set(cells["max_delay"].to_list()))
    look = looks([f"d = {d}" for d in delays])
    words = f"Ratios of regret in {cells.height} cells of {len(places)} instances."
    with drawn("adaptive", words, 1, height=0.9 + 0.21 * len(places), legend=len(delays)) as (drawing, (ax,)):
        for k, (d, style) in enumerate(zip(delays, look.values(), strict=True)):
            here = cells.filter(max_delay=d)
            shift = 0.6 * ((k + 0.5) / len(delays) - 0.5)
            y = [places.index(where) + shift for where in here["where"]]
            x = np.clip(here["ratio"].to_numpy(), 0.01, 3.0)
            ax.plot(x, y, ls="none", marker=style.mark, ms=3.0, alpha=0.75, color=style.colour, label=f"d = {d}")
        ax.axvline(1.0, color=GREY, lw=1.0)
        ax.set(xscale="log", xlim=(0.009, 3.3), ylim=(len(places) - 0.5, -0.5))
        ax.set_xlabel("regret over that of the paper's tuning")
        ax.set_yticks(range(len(places)), labels=["\n".join(textwrap.wrap(place, LINE)) for place in places])
        ax.tick_params(axis="y", labelsize=7.5)
    return drawing
