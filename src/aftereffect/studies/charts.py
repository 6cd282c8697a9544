"""The drawings of a study: curves, regret against a setting, bounds, stability."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from aftereffect import theory
from aftereffect.engines.simulation import Z95
from aftereffect.studies import views
from aftereffect.studies.figures import Drawing, Look, band, legend_above, looks, panels, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PANELS = 6
GREY = "#6b737c"


def thousands(axis: Any) -> None:
    """Write the numbers of a linear axis with commas."""
    axis.set_major_formatter("{x:,.0f}")


def chosen(rows: pl.DataFrame, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Return at most six combinations of `keys` for panels: all if there are few, else about the middle of the grid."""
    for size in ("n_arms", "max_delay"):
        if rows.select(keys).n_unique() > MOST_PANELS and size in keys and rows[size].n_unique() > 1:
            rows = rows.filter(pl.col(size) == views.middle(rows[size]))
    found = rows.select(keys).unique(maintain_order=True).to_dicts()
    if len(found) <= MOST_PANELS:
        return found
    return [found[k] for k in np.linspace(0, len(found) - 1, MOST_PANELS).round().astype(int)]


def matching(rows: pl.DataFrame, wanted: dict[str, Any]) -> pl.DataFrame:
    """Return the rows with these values."""
    return rows.filter(*(pl.col(name) == value for name, value in wanted.items()))


def curves(rows: pl.DataFrame) -> Drawing:
    """Draw mean regret over rounds with 95% bands, with uniform play, Theorem 4's bound and the lower bound's rate."""
    rows = rows.filter(pl.col("regret").is_not_null())
    rows = rows.filter(pl.col("horizon") == rows["horizon"].max())
    wanted = chosen(rows, ["where", "n_arms", "max_delay"])
    look = looks(views.ranked(rows), views.reference(rows))
    with styled():
        figure, axes = panels(len(wanted))
        for ax, place in zip(axes, wanted, strict=True):
            here = matching(rows, place).sort("round")
            for who in views.names(here, "who"):
                line = here.filter(pl.col("who") == who)
                half = line["standard_error"].cast(pl.Float64).to_numpy() * Z95
                band(ax, line["round"].to_numpy(), line["regret"].to_numpy(), half, look[who], who)
            _context(ax, here, place)
            ax.set_title(f"{place['where']}\n{views.size_words(place, ('n_arms', 'max_delay'))}", fontsize=9)
            ax.set_xlabel("round")
            ax.set_ylabel("regret")
        legend_above(figure, axes)
    return Drawing("curves", figure, f"Mean regret over rounds of {len(look)} players, in {len(wanted)} panels.")


def _context(ax: "Axes", here: pl.DataFrame, place: dict[str, Any]) -> None:
    """Add what curves are held against, and choose the scales."""
    rounds = here["round"].unique().sort().to_numpy()
    one = here.filter(pl.col("cell") == here["cell"][0])
    ax.plot(one["round"], one["uniform_regret"], color=GREY, ls="--", lw=1.1, label="uniform play, exactly")
    rate = [theory.lower_bound_rate(place["n_arms"], place["max_delay"], int(t)) for t in rounds]
    ax.plot(rounds, rate, color=GREY, ls=":", lw=1.3, label="rate of the lower bound")
    top = float(np.nanmax(here["regret"].to_numpy()))
    bound = here.filter(pl.col("who") == views.reference(here))["bound"][0]
    finals = views.finals(here)["regret"].to_numpy()
    # Who does better than the best arm has no logarithm.
    long = rounds[0] * 50 <= rounds[-1] and float(np.nanmin(finals)) > -0.02 * float(np.nanmax(np.abs(finals)))
    if bound is not None and bound < (one["horizon"][0] if long else 1.1 * top):
        ax.axhline(bound, color="#1c1e21", lw=0.9, ls="-.", label="bound of Theorem 4")
    if long:
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlim(left=rounds[-1] * 1e-4)
        ax.set_ylim(bottom=max(0.5, top * 1e-3))
    else:
        thousands(ax.xaxis)
        thousands(ax.yaxis)
        ax.locator_params(axis="x", nbins=5)
        ax.set_ylim(min(float(np.nanmin(finals)), 0.0) - 0.05 * top, 1.1 * top)


def against(rows: pl.DataFrame, name: str) -> Drawing:
    """Draw final regret against one setting (`views.setting`), with 95% intervals, in panels by what is left."""
    keys = [key for key in ("where", *views.SIZES) if key != name]
    wanted = chosen(rows, keys)
    look = looks(views.ranked(rows), views.reference(rows))
    with styled():
        figure, axes = panels(len(wanted))
        for ax, place in zip(axes, wanted, strict=True):
            here = matching(rows, place).sort("x")
            for who in views.names(here, "who"):
                _dots(ax, here.filter(pl.col("who") == who), look[who], who)
            one = here.unique("x", keep="first").sort("x")
            ax.plot(one["x"], one["uniform_regret"], color=GREY, ls="--", lw=1.1, label="uniform play, exactly")
            if one["lower_bound"].null_count() == 0 and here["instance"][0] == "hard":
                ax.plot(one["x"], one["lower_bound"], color=GREY, ls=":", lw=1.3, label="lower bound")
            _spread_out(ax, sorted(set(one["x"].to_list())))
            if float(np.nanmin(here["regret"].to_numpy())) > 0.0:
                ax.set_yscale("log")
            words = views.size_words(place, [key for key in keys if key in views.SIZES])
            ax.set_title(f"{place['where']}\n{words}", fontsize=9)
            ax.set_xlabel(views.setting_words(name))
            ax.set_ylabel("regret at T")
        legend_above(figure, axes)
    file = "against-" + name.replace(".", "-").replace("_", "-")
    return Drawing(file, figure, f"Final regret of {len(look)} players against {name}, in {len(wanted)} panels.")


def price(priced: pl.DataFrame) -> Drawing:
    """Draw regret without labels over regret with them against d, and theory's price."""
    wanted = chosen(priced, ["n_arms", "horizon"])
    look = looks(views.ranked(priced), views.reference(priced))
    with styled():
        figure, axes = panels(len(wanted), height=3.4)
        for ax, place in zip(axes, wanted, strict=True):
            here = matching(priced, place).sort("max_delay")
            for who in views.names(here, "who"):
                line = here.filter(pl.col("who") == who)
                colour, mark, _ = look[who]
                ax.plot(line["max_delay"], line["price"], color=colour, marker=mark, label=who)
            sizes = here.unique("max_delay").sort("max_delay")
            ax.plot(sizes["max_delay"], sizes["expected"], color=GREY, ls=":", lw=1.5, label="√((d+1)K/(d+K))")
            ax.set_yscale("log")
            ax.set_yticks([1, 2, 5, 10, 20], labels=["1", "2", "5", "10", "20"])
            ax.set_yticks([], minor=True)
            _spread_out(ax, sizes["max_delay"].cast(pl.Float64).to_list())
            ax.set_title(views.size_words(place, ("n_arms", "horizon")))
            ax.set_xlabel("d")
            ax.set_ylabel("regret without labels / with")
        legend_above(figure, axes, 3)
    return Drawing("price", figure, f"The price of not having labels against d, in {len(wanted)} panels.")


def _spread_out(ax: "Axes", ticks: Sequence[float]) -> None:
    """Make the first axis logarithmic where its values are far apart; a 0 among them has a place of its own."""
    positive = [tick for tick in ticks if tick > 0.0]
    if ticks[0] < 0.0 or not positive or positive[0] * 8 > positive[-1]:
        return
    if ticks[0] == 0.0:
        ax.set_xscale("symlog", linthresh=positive[0], linscale=0.4)
    else:
        ax.set_xscale("log")
    ticked(ax, ticks)


def _dots(ax: "Axes", line: pl.DataFrame, style: Look, who: str) -> None:
    half = np.nan_to_num(line["standard_error"].cast(pl.Float64).to_numpy() * Z95)
    ax.errorbar(
        line["x"],
        line["regret"],
        yerr=half,
        color=style.colour,
        marker=style.mark,
        lw=1.4 if style.front else 0.8,
        capsize=0,
        elinewidth=1.0,
        label=who if style.front else "others",
        zorder=3 if style.front else 2,
    )


def bounds(worst: pl.DataFrame) -> Drawing:
    """Draw the worst regret of each wrapper against T, with the three bounds, the lower bound and the trivial T."""
    wanted = chosen(worst, ["n_arms", "max_delay"])
    look = looks(views.ranked(worst), views.reference(worst))
    lines = (
        ("corollary_bound", "Corollary 7", "-."),
        ("tuned_bound", "tuned bound", (0, (5, 1))),
        ("lower_bound", "lower bound", ":"),
    )
    with styled():
        figure, axes = panels(len(wanted))
        for ax, place in zip(axes, wanted, strict=True):
            here = matching(worst, place).sort("horizon")
            for who in views.names(here, "who"):
                one = here.filter(pl.col("who") == who)
                colour, mark, _ = look[who]
                ax.plot(one["horizon"], one["regret"], color=colour, marker=mark, label=who)
                ax.plot(one["horizon"], one["bound"], color=colour, ls="--", lw=1.2, label=f"Theorem 4: {who}")
            sizes = here.unique("horizon").sort("horizon")
            for column, name, dashes in lines:
                ax.plot(sizes["horizon"], sizes[column], color="#1c1e21", ls=dashes, lw=1.0, label=name)
            ax.plot(sizes["horizon"], sizes["horizon"], color="#B9BFC6", lw=2.5, zorder=1, label="T, the trivial bound")
            log_axes(ax, sizes["horizon"].to_list())
            ax.set_title(views.size_words(place, ("n_arms", "max_delay")))
            ax.set_xlabel("T")
            ax.set_ylabel("worst regret")
        legend_above(figure, axes, 3)
    return Drawing("bounds", figure, f"Worst regret and its bounds against T, in {len(wanted)} panels.")


def stability(rows: pl.DataFrame) -> Drawing:
    """Draw how far updates move each base over the rounds, and the ξ that bounds it."""
    rows = rows.filter(pl.col("value").is_not_null())
    rows = rows.filter(pl.col("horizon") == rows["horizon"].max())
    wanted = chosen(rows, ["where", "n_arms", "max_delay"])
    look = looks(views.ranked(rows), views.reference(rows))
    with styled():
        figure, axes = panels(len(wanted))
        for ax, place in zip(axes, wanted, strict=True):
            here = matching(rows, place).sort("round")
            for who in views.names(here, "who"):
                line = here.filter(pl.col("who") == who)
                half = line["standard_error"].cast(pl.Float64).to_numpy() * Z95
                band(ax, line["round"].to_numpy(), line["value"].to_numpy(), half, look[who], who)
                ax.axhline(line["theory"][0], color=look[who].colour, ls="--", lw=1.1, label=f"ξ: {who}")
            ax.set_xscale("log")
            ax.set_yscale("log")
            ax.set_title(f"{place['where']}\n{views.size_words(place, ('n_arms', 'max_delay'))}", fontsize=9)
            ax.set_xlabel("round")
            ax.set_ylabel("mean move of an update")
        legend_above(figure, axes, 3)
    return Drawing("stability", figure, f"Mean move of an update over rounds and its bound, in {len(wanted)} panels.")


def log_axes(ax: "Axes", ticks: Sequence[float], most: int = 9) -> None:
    """Make both axes logarithmic, with the values that were measured marked on the first."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    ticked(ax, ticks, most)


def ticked(ax: "Axes", ticks: Sequence[float], most: int = 9) -> None:
    """Mark the values that were measured, but for those too close to the one before, and nothing between them.

    most: so many at most, beside 0.
    """
    kept = [tick for tick in ticks if tick == 0.0]
    positive = [tick for tick in ticks if tick > 0.0]
    apart = math.log(positive[-1] / positive[0]) / most
    for tick in positive:
        if not kept or kept[-1] == 0.0 or math.log(tick / kept[-1]) >= apart:
            kept.append(tick)
    words = [f"{tick / 1e6:g}M" if tick >= 1e6 else f"{tick / 1e3:g}k" if tick >= 1e4 else f"{tick:g}" for tick in kept]
    ax.set_xticks(kept, labels=words)
    ax.set_xticks([], minor=True)
