"""The section on what labels are worth: the worst regret of who has none over that of who has them."""

import polars as pl

from aftereffect.studies import charts, views
from aftereffect.studies.page import Entry, Page
from aftereffect.studies.sections import Keep, number

THEORY = "theory, √((d+1)K/(d+K))"


def price(page: Page, rows: pl.DataFrame, keep: Keep) -> list[str]:
    """Show the worst regret without labels over the best worst regret with them, and what theory says of it."""
    priced = compared(views.worst(views.readable(rows.filter(pl.col("measure") == "regret"))))
    page.section("The price")
    page.text(
        "For every player and size the worst mean regret over this study's instances is taken. The price is that of a "
        "player without labels over the least of those with labels and a guarantee for any losses. Theory's price is "
        "√((d+1)K/(d+K))."
    )
    page.figure(keep(charts.price(priced)), "The price of not having labels, and what the rates say it is (dotted).")
    delays = sorted(set(priced["max_delay"].to_list()))
    table: list[list[Entry]] = []
    notes: list[str] = []
    for K, T in priced.select("n_arms", "horizon").unique(maintain_order=True).iter_rows():
        here = priced.filter(pl.col("n_arms") == K, pl.col("horizon") == T)
        own = here.select("who", "max_delay", "price")
        lines = {who: own.filter(pl.col("who") == who).drop("who") for who in views.names(here, "who")}
        lines[THEORY] = here.select("max_delay", "expected").unique()
        for who, line in lines.items():
            found = dict(line.iter_rows())
            table.append([who, f"{K:,}", f"{T:,}", *(number(found.get(d), 1) for d in delays)])
        notes += sentences(here)
    page.table(["player", "K", "T", *(f"d = {d:,}" for d in delays)], table, caption="The price by the longest delay.")
    return notes


def compared(worst: pl.DataFrame) -> pl.DataFrame:
    """Return the worst regrets of players without labels, with the price and theory's.

    best, teller: the least worst regret at that size of those with labels who assume no law of losses, and whose it is.
    """
    told = pl.col("who").is_in(list(views.labelled()))
    lawful = pl.col("who").is_in(list(views.needing("stochastic losses")))
    sizes = list(views.SIZES)
    best = worst.filter(told, ~lawful).sort("regret", "who").unique(sizes, keep="first", maintain_order=True)
    best = best.select(*sizes, best="regret", teller="who")
    K, d = pl.col("n_arms"), pl.col("max_delay")
    without = worst.filter(~told).join(best, on=sizes, maintain_order="left")
    return without.with_columns(
        price=pl.col("regret") / pl.col("best"), expected=((d + 1) * K / (d + K)).sqrt()
    ).sort("who", *sizes)


def sentences(here: pl.DataFrame) -> list[str]:
    """Say what the price is at the longest delay, for the best player without labels that assumes no law of losses."""
    lawful = pl.col("who").is_in(list(views.needing("stochastic losses")))
    far = here.filter(pl.col("max_delay") == here["max_delay"].max(), ~lawful).sort("price", "who")
    return [
        f"The price of not having labels, at {views.size_words(row)} and at worst over the instances: {row['who']} has "
        f"{row['price']:.1f} times the regret of {row['teller']}; the rates say {row['expected']:.1f}."
        for row in far.head(1).iter_rows(named=True)
    ]
