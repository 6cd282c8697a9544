"""Measurements compared with theorems: regret with its bounds, and the moves of a base with ξ."""

from typing import TYPE_CHECKING, Any

import polars as pl

from aftereffect.studies.report import frames
from aftereffect.studies.report.charts import FAINT, Look, band, ticked
from aftereffect.studies.report.page import Page, number, plus_minus

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UPPER = pl.col("standard_error").fill_null(0.0) * frames.FAR


def bounds(page: Page, rows: pl.DataFrame) -> list[str]:
    """Compare the worst measured regret with the player's bound, Corollary 7, the tuned bound and the lower bound."""
    worst = frames.worst(frames.readable(rows.filter(pl.col("bound").is_not_null(), measure="regret")))
    page.section("Regret against its bounds")
    caption = "The greatest mean regret over this study's instances, and its bounds, in units of the largest effect of "
    caption += "an action. "
    labels, words = ("T", "worst regret"), "Worst regret and its bounds against T"
    keys = ["n_arms", "max_delay"]
    drawing = frames.by_panel("bounds", worst, keys, "horizon", _worst, _bounds, labels=labels, words=words, legend=3)
    page.figure(drawing, caption + "Bounds above T are trivial.")
    worst = worst.with_columns(limit=pl.min_horizontal("bound", pl.col("horizon").cast(pl.Float64)))
    trivial = pl.when(pl.col("bound") < pl.col("horizon")).then(pl.lit("")).otherwise(pl.lit(" of T"))
    worst = worst.with_columns(share=pl.col("regret") / pl.col("limit"), of=trivial)
    index = {"who": "player", "n_arms": "K", "max_delay": "d"}
    caption = "The worst regret as a share of the player's bound (Theorem 4 for a wrapper), or of T where that is less."
    frames.pivot(page, worst, index, "horizon", lambda row: f"{row['share']:.0%}{row['of']}", caption)
    table = []
    for row in worst.sort("who", *frames.SIZES).iter_rows(named=True):
        promised = [number(row[name]) for name in ("bound", "corollary_bound", "tuned_bound", "lower_bound")]
        regret = plus_minus(row["regret"], row["standard_error"])
        sizes = [number(row[name]) for name in frames.SIZES]
        table.append([row["who"], *sizes, regret, *promised, f"{row['share']:.0%}"])
    headings = ["player", "K", "d", "T", "worst regret", "bound", "Corollary 7", "tuned", "lower", "share"]
    caption = "Regret and bounds, in the same units. The share is of the player's bound or T, whichever is less."
    page.table(headings, table, caption=caption, folded=f"All {len(table)} sizes: regret, and the bounds one by one")
    notes = []
    for who in frames.names(worst, "who"):
        part = worst.filter(who=who)
        shares = part["share"].to_numpy()
        broken = part.filter(pl.col("regret") - UPPER > pl.col("limit")).height
        verdict = "in every one" if not broken else f"in {part.height - broken}, and is broken in {broken}"
        informative = part.filter(pl.col("bound") < pl.col("horizon")).height
        notes.append(
            f"{who}: of {part.height} sizes, its bound (or T) holds {verdict}; the worst regret is "
            f"between {shares.min():.0%} and {shares.max():.0%} of it. In {informative} of them the bound is below "
            "the trivial T."
        )
    tighter = worst.filter(pl.col("tuned_bound") < pl.col("corollary_bound"))
    if tighter.height:
        by = (tighter["corollary_bound"] / tighter["tuned_bound"]).to_numpy()
        notes.append(f"The tuned bound is {by.min():.1f} to {by.max():.1f} times below Corollary 7's at these sizes.")
    return notes


def _worst(ax: "Axes", line: pl.DataFrame, who: str, look: Look) -> None:
    ax.plot(line["horizon"], line["regret"], color=look.colour, marker=look.mark, label=who)
    ax.plot(line["horizon"], line["bound"], color=look.colour, ls="--", lw=1.2, label=f"bound of {who}")


def _bounds(ax: "Axes", here: pl.DataFrame) -> None:
    sizes = here.unique("horizon").sort("horizon")
    lines = (("corollary_bound", "Corollary 7", "-."), ("tuned_bound", "tuned bound", (0, (5, 1))))
    for column, name, dashes in (*lines, ("lower_bound", "lower bound", ":")):
        ax.plot(sizes["horizon"], sizes[column], color="#1c1e21", ls=dashes, lw=1.0, label=name)
    ax.plot(sizes["horizon"], sizes["horizon"], color=FAINT, lw=2.5, zorder=1, label="T, the trivial bound")
    ax.set(xscale="log", yscale="log")
    ticked(ax, sizes["horizon"].to_list())


def stability(page: Page, rows: pl.DataFrame) -> list[str]:
    """Compare the mean move of the base in an update with ξ of Theorem 5 and Lemma 14."""
    shown = frames.readable(rows.filter(pl.col("value").is_not_null(), measure="stability"))
    shown = shown.with_columns(share=pl.col("value") / pl.col("theory"))
    page.section("Stability of the base")
    caption = "Mean of Σ(q_{n+1} − q_n)⁺ over the updates between two checkpoints, with 95% bands, and its bound ξ "
    keys, labels = ["where", "n_arms", "max_delay"], ("round", "mean move of an update")
    words = "Mean move of an update over rounds and its bound"
    options: dict[str, Any] = {"labels": labels, "words": words, "legend": 3}
    longest = shown.filter(horizon=shown["horizon"].max())
    page.figure(frames.by_panel("stability", longest, keys, "round", _moves, _logs, **options), caption + "(dashed).")
    keys = ["who", "where", *frames.SIZES]
    peaks = shown.sort("value", descending=True).unique(keys, keep="first", maintain_order=True).sort(keys)
    caption = "The greatest mean move as a share of ξ, at the delay and horizon where it is greatest."
    index = {"who": "player", "where": "instance"}
    greatest = peaks.sort("share", descending=True).unique([*index, "n_arms"], keep="first", maintain_order=True)
    frames.pivot(page, greatest.sort(*index), index, "n_arms", lambda row: f"{row['share']:.0%}", caption)
    table = []
    for row in peaks.iter_rows(named=True):
        moves = [f"{row['value']:.4f}", f"{row['theory']:.4f}", f"{row['share']:.0%}"]
        table.append([row["who"], row["where"], *(number(row[name]) for name in frames.SIZES), *moves])
    headings = ["player", "instance", "K", "d", "T", "greatest move", "ξ", "share"]
    caption = "The greatest mean move between two checkpoints, and ξ."
    page.table(headings, table, words=(1,), caption=caption, folded=f"All {len(table)} cells")
    notes = []
    for who in frames.names(peaks, "who"):
        shares = peaks.filter(who=who)["share"].to_numpy()
        broken = shown.filter(pl.col("value") - UPPER > pl.col("theory"), who=who).height
        verdict = "never exceeds" if not broken else f"exceeds, at {broken} checkpoints,"
        notes.append(
            f"{who}: the mean move of an update {verdict} ξ; at its greatest it is {shares.min():.0%} to "
            f"{shares.max():.0%} of it, over {len(shares)} cells."
        )
    return notes


def _moves(ax: "Axes", line: pl.DataFrame, who: str, look: Look) -> None:
    band(ax, line, who, look, x="round", y="value")
    ax.axhline(line["theory"][0], color=look.colour, ls="--", lw=1.1, label=f"ξ: {who}")


def _logs(ax: "Axes", here: pl.DataFrame) -> None:
    ax.set(xscale="log", yscale="log")
