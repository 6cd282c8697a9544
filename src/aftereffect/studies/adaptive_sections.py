"""The section that holds the default player against the paper's tuning, its rivals, and what is proved of it."""

import json
import math

import numpy as np
import polars as pl

from aftereffect import theory
from aftereffect.losses.hard import noise_scale, published_gap
from aftereffect.studies import views
from aftereffect.studies.builders import gap_of
from aftereffect.studies.figures import Drawing, looks, panels, styled
from aftereffect.studies.page import Entry, Page
from aftereffect.studies.sections import Keep, number, plus_minus, shade

FLOOR = 0.01
"""Regrets count as at least this share of uniform play's."""
FAR = 3.0
KEYS = ("instance", "instance_params", *views.SIZES, "seed")
CLEAR_GAP, MANY = 0.1, 100.0


def adaptive(page: Page, rows: pl.DataFrame, keep: Keep) -> list[str]:
    """Compare cell by cell, and sum up in geometric means."""
    cells = compared(views.finals(views.readable(rows.filter(pl.col("measure") == "regret"))))
    page.section("Against the paper's tuning")
    page.figure(
        keep(drawn(cells)),
        "The default player's mean regret over that of Algorithm 1 with the printed tuning, cell by cell, both taken "
        "as at least 1% of uniform play's. Ratios beyond the axis are drawn at its ends.",
    )
    kinds = [("instance", "where"), ("K", "n_arms"), ("d", "max_delay"), ("T", "horizon")]
    for word, column in kinds:
        part = cells if column == "where" else cells.sort(column)
        table = [_summed(str(value), part.filter(pl.col(column) == value)) for value in _values(part, column)]
        headings = [word, "cells", "of the paper's", "worst cell", "clear cells", "of the paper's"]
        headings += ["of the best rival's", "certificate / Corollary 7", "of the worst case"]
        caption = f"Geometric means of ratios by {word}. Clear cells have a gap of at least {CLEAR_GAP:g} and {MANY:g} "
        page.table(headings, table, caption=caption + "updates an arm. The last column is the greatest share.")
    return [*_against_paper(page, cells), *_against_rivals(page, cells), *_promises(cells), *_all(page, cells)]


def compared(finals: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each cell of the default player, with the paper's regret, the best rival's, and ratios.

    who_best, best: the rival of the least mean regret, of those who need no labels; null where none plays.
    ratio, rival_ratio: to the paper's and the best rival's. gap: of instances that have one, in units of range.
    """
    rivals = finals.filter(pl.col("player") != "default_player", ~pl.col("who").is_in(list(views.labelled())))
    paper = rivals.filter(pl.col("player") == "wrapper", pl.col("player_params") == '{"base":"tsallis"}')
    paper = paper.select(*KEYS, paper="regret", paper_error="standard_error")
    least = rivals.sort("regret", "who").unique(KEYS, keep="first", maintain_order=True)
    many = rivals.group_by(KEYS).len()
    least = least.join(many, on=KEYS).filter(pl.col("len") > 1).select(*KEYS, best="regret", who_best="who")
    own = finals.filter(pl.col("player") == "default_player").join(paper, on=KEYS, maintain_order="left")
    own = own.join(least, on=KEYS, how="left", maintain_order="left")
    floor = FLOOR * pl.col("uniform_regret")
    gaps = [nominal_gap(row) for row in own.iter_rows(named=True)]
    return own.with_columns(
        gap=pl.Series(gaps, dtype=pl.Float64),
        ratio=pl.max_horizontal("regret", floor) / pl.max_horizontal("paper", floor),
        rival_ratio=pl.max_horizontal("regret", floor) / pl.max_horizontal("best", floor),
        excess=pl.col("regret") - 1.05 * pl.max_horizontal("paper", floor),
        excess_error=(pl.col("standard_error") ** 2 + (1.05 * pl.col("paper_error")) ** 2).sqrt(),
        most=pl.Series([_most(row) for row in own.iter_rows(named=True)], dtype=pl.Float64),
    ).with_columns(
        rival_ratio=pl.when(pl.col("best").is_null()).then(None).otherwise(pl.col("rival_ratio")),
        clear=(pl.col("gap") >= CLEAR_GAP) & (pl.col("updates") >= MANY * pl.col("n_arms")),
        above=pl.col("excess") > FAR * pl.col("excess_error"),
    )


def nominal_gap(row: dict[str, object]) -> float | None:
    """Return by how much one arm is better than all others throughout; None for instances without such an arm.

    >>> nominal_gap({"instance": "constrained", "instance_params": '{"gap":0.25}'})
    0.25
    >>> nominal_gap({"instance": "drifting", "instance_params": "{}"}) is None
    True
    """
    name, given = str(row["instance"]), json.loads(str(row["instance_params"]))
    if name in ("split", "delays", "fixed", "geometric", "immediate", "anonymous"):
        return gap_of({"instance": given} | {size: row[size] for size in views.SIZES})
    if name == "hard":
        K, d, T = (int(str(row[size])) for size in views.SIZES)
        n = max(1, T // (d + 1))
        scale = noise_scale(K, n, given.get("noise", "independent"))
        return float(given.get("gap_factor", 1.0)) * published_gap(K, rounds=n) * scale
    known = {"stacked": given.get("gap", 0.1), "constrained": given.get("gap", 0.125), "late_bills": 0.2}
    return float(known[name]) if name in known else None


def geometric_mean(values: pl.Series) -> float:
    """Return the geometric mean of positive numbers; NaN for none.

    >>> geometric_mean(pl.Series([1.0, 4.0]))
    2.0
    """
    return float(np.exp(np.log(values.drop_nulls().to_numpy()).mean())) if values.drop_nulls().len() else math.nan


def _most(row: dict[str, object]) -> float:
    """Return T times the range of an action's effect, as the bounds in the row have it."""
    K, d, T = (int(str(row[size])) for size in views.SIZES)
    return T * float(str(row["corollary_bound"])) / theory.corollary_bound(K, d, T)


def _values(cells: pl.DataFrame, column: str) -> list[object]:
    return cells[column].unique(maintain_order=True).to_list()


def _summed(name: str, part: pl.DataFrame) -> list[Entry]:
    clear = part.filter(pl.col("clear"))
    worst = float(part["ratio"].to_numpy().max())
    return [
        name,
        f"{part.height:,}",
        shade(geometric_mean(part["ratio"]), parity=True),
        shade(worst, parity=True),
        f"{clear.height:,}",
        shade(geometric_mean(clear["ratio"]), parity=True),
        number(geometric_mean(part["rival_ratio"]), 2),
        number(geometric_mean(part["value"] / part["corollary_bound"]), 3),
        f"{float((part['regret'] / part['bound']).to_numpy().max()):.0%}",
    ]


def _against_paper(page: Page, cells: pl.DataFrame) -> list[str]:
    clear, above = cells.filter(pl.col("clear")), cells.filter(pl.col("above"))
    if above.height:
        table = [
            [
                row["where"],
                views.size_words(row),
                plus_minus(row["regret"], row["standard_error"]),
                plus_minus(row["paper"], row["paper_error"]),
                f"{row['excess'] / row['excess_error']:.1f}",
            ]
            for row in above.sort(pl.col("excess") / pl.col("excess_error"), descending=True).iter_rows(named=True)
        ]
        headings = ["instance", "sizes", "default player", "the paper's tuning", "standard errors above"]
        page.table(headings, table, words=(1,), caption="Cells where it is worse than 1.05 times the paper's tuning.")
    return [
        f"Against the paper's tuning: {geometric_mean(clear['ratio']):.3f} times its regret in the {clear.height:,} "
        f"cells with a gap of at least {CLEAR_GAP:g} and {MANY:g} updates an arm, "
        f"{geometric_mean(cells['ratio']):.3f} times in all {cells.height:,} (geometric means).",
        f"In {above.height or 'no'} cell{'s' * (above.height > 1)} it is above 1.05 times the paper's regret by more "
        f"than {FAR:g} standard errors.",
    ]


def _against_rivals(page: Page, cells: pl.DataFrame) -> list[str]:
    met = cells.drop_nulls("rival_ratio")
    if met.is_empty():
        return []
    page.section("Against the best rival of each cell")
    counts = met.group_by("who_best").agg(pl.len(), pl.col("rival_ratio")).sort("len", descending=True)
    table = [
        [row["who_best"], f"{row['len']:,}", number(geometric_mean(pl.Series(row["rival_ratio"])), 2)]
        for row in counts.iter_rows(named=True)
    ]
    caption = "Who had the least mean regret of all who need no labels, in how many cells, and the default player's "
    page.table(["rival", "cells", "ratio"], table, caption=caption + "regret over theirs there (geometric mean).")
    clear = met.filter(pl.col("clear"))
    return [
        f"Against the best of the rivals in each of {met.height:,} cells, chosen in hindsight: "
        f"{geometric_mean(met['rival_ratio']):.2f} times its regret (geometric mean), "
        f"{geometric_mean(clear['rival_ratio']):.2f} in the {clear.height:,} clear ones."
    ]


def _promises(cells: pl.DataFrame) -> list[str]:
    """Hold regret against the worst case and the mean certificate, and these against Corollary 7 and T."""
    sure = pl.col("regret") - FAR * pl.col("standard_error").fill_null(0.0)
    broken = cells.filter(sure > pl.col("bound")).height
    exceeded = cells.filter(sure > pl.col("value")).height
    long = cells.filter(pl.col("horizon") >= 50_000)
    below = long.filter(pl.col("value") < pl.col("most")).height
    shares = (cells["regret"] / cells["bound"]).to_numpy()
    notes = [
        f"The stated worst case is {'never exceeded' if not broken else f'exceeded in {broken} cells'}: mean regret is "
        f"at most {shares.max():.0%} of it (or of T, if that is less).",
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


def _all(page: Page, cells: pl.DataFrame) -> list[str]:
    headings = ["instance", "K", "d", "T", "default player", "the paper's", "uniform", "best rival", "its regret"]
    headings += ["certificate", "worst case", "Corollary 7", "updates"]
    table = [
        [
            row["where"],
            *(f"{row[size]:,}" for size in views.SIZES),
            plus_minus(row["regret"], row["standard_error"]),
            plus_minus(row["paper"], row["paper_error"]),
            number(row["uniform_regret"]),
            row["who_best"] or "–",
            number(row["best"]),
            *(number(row[name]) for name in ("value", "bound", "corollary_bound", "updates")),
        ]
        for row in cells.iter_rows(named=True)
    ]
    page.table(headings, table, words=(7,), folded=f"All {cells.height:,} cells")
    return []


def drawn(cells: pl.DataFrame) -> Drawing:
    """Draw the ratio of every cell, by instance, coloured by d."""
    places = views.names(cells, "where")
    delays = sorted(set(cells["max_delay"].to_list()))
    look = looks([f"d = {d}" for d in delays])
    with styled():
        figure, (ax,) = panels(1, columns=1, height=0.9 + 0.21 * len(places))
        for k, d in enumerate(delays):
            here = cells.filter(pl.col("max_delay") == d)
            shift = 0.6 * ((k + 0.5) / len(delays) - 0.5)
            y = [places.index(where) + shift for where in here["where"]]
            style = look[f"d = {d}"]
            x = np.clip(here["ratio"].to_numpy(), 0.01, 3.0)
            ax.plot(x, y, ls="none", marker=style.mark, ms=3.0, alpha=0.75, color=style.colour, label=f"d = {d}")
        ax.axvline(1.0, color="#6b737c", lw=1.0)
        ax.set_xscale("log")
        ax.set_xlim(0.009, 3.3)
        ax.set_ylim(len(places) - 0.5, -0.5)
        ax.set_yticks(range(len(places)), labels=places)
        ax.tick_params(axis="y", labelsize=7.5)
        ax.set_xlabel("regret over that of the paper's tuning")
        ax.legend(ncols=len(delays), loc="lower left", bbox_to_anchor=(0.0, 1.0))
    return Drawing("adaptive", figure, f"Ratios of regret in {cells.height} cells of {len(places)} instances.")
