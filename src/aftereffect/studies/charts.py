"""The drawings of a study: curves, scaling, regret against a setting, bounds, stability."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from aftereffect import theory
from aftereffect.core.checks import FloatArray
from aftereffect.engines.results import Z95
from aftereffect.studies import views
from aftereffect.studies.figures import Drawing, Look, band, legend_above, looks, panels, styled
from aftereffect.studies.fits import PowerLaw

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
    bound = one["bound"][0]
    long = rounds[0] * 50 <= rounds[-1]
    if bound is not None and bound < (one["horizon"][0] if long else 2.0 * top):
        ax.axhline(bound, color="#1c1e21", lw=0.9, ls="-.", label="bound of Theorem 4")
    if long:
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlim(left=rounds[-1] * 1e-4)
        ax.set_ylim(bottom=max(0.5, top * 1e-3))
    else:
        thousands(ax.xaxis)
        thousands(ax.yaxis)


def scaling(parts: Mapping[str, pl.DataFrame], fits: Mapping[str, PowerLaw]) -> Drawing:
    """Draw regret against d+1, K and T, and the fitted power laws.

    Each measured regret is brought by its fit to the geometric means of the other two sizes; dots are the geometric
    means of these, so that the line through them has the fitted exponent.
    """
    names = [name for name in ("d+1", "K", "T") if any(name in fit.exponents for fit in fits.values())]
    look = looks(fits)
    with styled():
        figure, axes = panels(len(names), columns=3, height=3.1)
        for ax, name in zip(axes, names, strict=True):
            ticks: set[float] = set()
            for who, fit in fits.items():
                if name not in fit.exponents:
                    continue
                x, y = _partial(parts[who], fit, name)
                power, (colour, mark, _) = fit.exponents[name].value, look[who]
                line = np.exp(np.log(y).mean()) * (x / np.exp(np.log(x).mean())) ** power
                ax.plot(x, y, ls="none", marker=mark, color=colour, label=who)
                ax.plot(x, line, color=colour, lw=1.2)
                ax.annotate(
                    f"{power:.2f}", (x[-1], line[-1]), (5, -3), textcoords="offset points", color=colour, fontsize=8.5
                )
                ticks |= set(x.tolist())
            _log_axes(ax, sorted(ticks))
            ax.margins(x=0.16)
            ax.set_xlabel(name)
        axes[0].set_ylabel("worst regret")
        legend_above(figure, axes, 3)
    return Drawing("scaling", figure, "Worst regret against " + ", ".join(names) + " in log-log, with fitted lines.")


def _partial(part: pl.DataFrame, fit: PowerLaw, name: str) -> tuple[FloatArray, FloatArray]:
    """Return the values of one variable, and the mean regret at each with the other variables' part taken out."""
    sizes = {"d+1": part["max_delay"].to_numpy() + 1.0, "K": part["n_arms"].to_numpy(), "T": part["horizon"].to_numpy()}
    logs = np.log(part["regret"].to_numpy())
    for other, power in fit.exponents.items():
        if other != name:
            logs = logs - power.value * (np.log(sizes[other]) - np.log(sizes[other]).mean())
    x = np.unique(sizes[name]).astype(np.float64)
    return x, np.array([math.exp(logs[sizes[name] == value].mean()) for value in x])


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
            ticks = sorted(set(one["x"].to_list()))
            if ticks[0] > 0.0 and ticks[0] * 8 <= ticks[-1]:
                ax.set_xscale("log")
                _ticks(ax, ticks)
            if float(np.nanmin(here["regret"].to_numpy())) > 0.0:
                ax.set_yscale("log")
            words = views.size_words(place, [key for key in keys if key in views.SIZES])
            ax.set_title(f"{place['where']}\n{words}", fontsize=9)
            ax.set_xlabel(views.setting_words(name))
            ax.set_ylabel("regret at T")
        legend_above(figure, axes)
    file = "against-" + name.replace(".", "-").replace("_", "-")
    return Drawing(file, figure, f"Final regret of {len(look)} players against {name}, in {len(wanted)} panels.")


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
            _log_axes(ax, sizes["horizon"].to_list())
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


def _log_axes(ax: "Axes", ticks: Sequence[float]) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    _ticks(ax, ticks)


def _ticks(ax: "Axes", ticks: Sequence[float]) -> None:
    """Mark the values that were measured, but for those too close to the one before, and nothing between them."""
    apart = math.log(ticks[-1] / ticks[0]) / 9.0
    kept = [ticks[0]]
    for tick in ticks[1:]:
        if math.log(tick / kept[-1]) >= apart:
            kept.append(tick)
    words = [f"{tick / 1e6:g}M" if tick >= 1e6 else f"{tick / 1e3:g}k" if tick >= 1e4 else f"{tick:g}" for tick in kept]
    ax.set_xticks(kept, labels=words)
    ax.set_xticks([], minor=True)
