"""The price of anonymity: the worst regret of players without labels over the least worst regret with labels."""

from typing import TYPE_CHECKING, Any

import polars as pl

from aftereffect.studies.report import frames
from aftereffect.studies.report.charts import GREY, Look, wide_axis
from aftereffect.studies.report.page import Page, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

THEORY = "theory, √((d+1)K/(d+K))"


def price(page: Page, rows: pl.DataFrame) -> list[str]:
    """Show the worst regret without labels over the least worst regret with labels, and the predicted price."""
    priced = compared(frames.worst(frames.readable(rows.filter(measure="regret")))).drop_nulls("price")
    frames.some(priced, "players with labels and without, at one size")
    page.section("The price")
    page.text(
        "For every player and size the worst mean regret over this study's instances is taken, in units of the largest "
        "effect of an action. The price is that of a player without labels over the least of those with labels and "
        "a guarantee for any losses. Theory predicts √((d+1)K/(d+K))."
    )
    labels, words = ("d", "regret without labels / with"), "The price of not having labels against d"
    options: dict[str, Any] = {"labels": labels, "words": words, "legend": 3}
    drawing = frames.by_panel("price", priced, ["n_arms", "horizon"], "max_delay", _prices, _expected, **options)
    page.figure(drawing, "The price of not having labels: measured, and predicted by the rates (dotted).")
    sizes = ["n_arms", "horizon"]
    theory = priced.unique([*sizes, "max_delay"], maintain_order=True)
    theory = theory.with_columns(who=pl.lit(THEORY), price="expected")
    lines = pl.concat([priced, theory]).sort(*sizes, maintain_order=True)
    index = {"who": "player", "n_arms": "K", "horizon": "T"}
    frames.pivot(page, lines, index, "max_delay", lambda row: number(row["price"], 1), "The price by longest delay.")
    notes = []
    for _, here in priced.group_by(*sizes, maintain_order=True):
        # The best player without labels or a law of losses, at the longest delay.
        far = here.filter(~pl.col("stochastic"), max_delay=here["max_delay"].max()).sort("price", "who").head(1)
        notes += [
            f"The price of not having labels, at {frames.size_label(row)} and at worst over the instances: "
            f"{row['who']} has {row['price']:.1f} times the regret of {row['best_who']}; "
            f"the rates predict {row['expected']:.1f}."
            for row in far.iter_rows(named=True)
        ]
    return notes


def compared(worst: pl.DataFrame) -> pl.DataFrame:
    """Return the worst regrets of players without labels, with the measured and the predicted price.

    best, best_who: the least worst regret at that size among players with labels that assume no law of losses, and the
    player that has it.
    """
    sizes = list(frames.SIZES)
    best = worst.filter("labelled", ~pl.col("stochastic")).sort("regret", "who")
    best = best.unique(sizes, keep="first", maintain_order=True).select(*sizes, best="regret", best_who="who")
    K, d = pl.col("n_arms"), pl.col("max_delay")
    without = worst.filter(~pl.col("labelled")).join(best, on=sizes, maintain_order="left")
    return without.with_columns(
        price=pl.col("regret") / pl.col("best"), expected=((d + 1) * K / (d + K)).sqrt()
    ).sort("who", *sizes)


def _prices(ax: "Axes", line: pl.DataFrame, who: str, look: Look) -> None:
    ax.plot(line["max_delay"], line["price"], color=look.colour, marker=look.mark, label=who)


def _expected(ax: "Axes", here: pl.DataFrame) -> None:
    sizes = here.unique("max_delay").sort("max_delay")
    ax.plot(sizes["max_delay"], sizes["expected"], color=GREY, ls=":", lw=1.5, label="√((d+1)K/(d+K))")
    ax.set_yscale("log")
    ax.set_yticks([1, 2, 5, 10, 20], labels=["1", "2", "5", "10", "20"])
    ax.set_yticks([], minor=True)
    wide_axis(ax, sizes["max_delay"].cast(pl.Float64).to_list())
