"""Regret over rounds, and final regret against one setting of a study."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from aftereffect import theory
from aftereffect.engines.simulation import Z95
from aftereffect.studies.report import frames
from aftereffect.studies.report.charts import GREY, Look, band, wide_axis
from aftereffect.studies.report.page import Page, share

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 4
"""Up to this many instances are described one by one."""


def curves(page: Page, rows: pl.DataFrame) -> list[str]:
    """Show regret over rounds."""
    page.section("Regret over rounds")
    caption = "Mean regret against the best arm of the rounds so far, with 95% bands for the mean, at the longest "
    caption += "horizon; of many sizes, those in the middle. The lower bound's rate (Theorem 10) has no constant. "
    caption += "A player's bound is drawn where it is not trivial and fits the axes."
    rows = frames.readable(rows.filter(measure="regret"))
    rows = rows.filter(pl.col("regret").is_not_null(), horizon=rows["horizon"].max())
    if rows["corollary_bound"].null_count():
        caption += " Bounds are known for effects of at least 0 only, so panels of other losses have none."
    keys, words = ["where", "n_arms", "max_delay"], f"Mean regret over rounds of {rows['who'].n_unique()} players"
    line, labels = partial(band, x="round", y="regret"), ("round", "regret")
    page.figure(frames.by_panel("curves", rows, keys, "round", line, _references, labels=labels, words=words), caption)
    return []


def _references(ax: "Axes", here: pl.DataFrame) -> None:
    """Add the reference lines, and choose the scales."""
    rounds = here["round"].unique().sort().to_numpy()
    one = here.filter(cell=here["cell"][0])
    K, d, T = one.select(frames.SIZES).row(0)
    ax.plot(one["round"], one["uniform_regret"], color=GREY, ls="--", lw=1.1, label="uniform play, exactly")
    # The largest effect of an action, from a bound that scales with it; there is none for effects below 0.
    high = (one["corollary_bound"][0] or 0.0) / theory.corollary_bound(K, d, T)
    if high:
        rate = [high * theory.lower_bound_rate(K, d, int(t)) for t in rounds]
        ax.plot(rounds, rate, color=GREY, ls=":", lw=1.3, label="rate of the lower bound")
    regrets = here.select("regret", "uniform_regret").to_numpy()
    low, top = float(np.nanmin(regrets)), float(np.nanmax(regrets))
    who = frames.reference(here)
    bound = here.filter(who=who)["bound"][0]
    # A regret below 0 has no logarithm.
    long = rounds[0] * 50 <= rounds[-1] and low > -0.02 * top
    if bound is not None and bound < (high * T if long else 1.1 * top):
        named = "bound of Theorem 4" if who.startswith("wrapper") else f"bound of {who}"
        ax.axhline(bound, color="#1c1e21", lw=0.9, ls="-.", label=named)
    if long:
        ax.set(xscale="log", yscale="log")
        ax.set_xlim(left=max(rounds[0], rounds[-1] * 1e-4))
        ax.set_ylim(bottom=max(0.5 * (high or 1.0), top * 1e-3))
    else:
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.yaxis.set_major_formatter("{x:,.0f}")
        ax.locator_params(axis="x", nbins=5)
        ax.set_ylim(1.05 * min(low, 0.0) - 0.05 * top, 1.1 * top - 0.05 * min(low, 0.0))


def against(page: Page, rows: pl.DataFrame, name: str) -> list[str]:
    """Show final regret against one setting, and as a share of the regret of uniform play, by instance."""
    regrets = frames.some(frames.finals(rows.filter(measure="regret")), 'cells of the measure "regret"')
    given = frames.setting(regrets, name)
    shown = frames.readable(given, apart=(name,))
    word = frames.setting_name(name)
    page.section(f"Regret against {word}")
    keys = [key for key in ("where", *frames.SIZES) if key != name]
    file = "against-" + name.replace(".", "-").replace("_", "-")
    words = f"Final regret of {shown['who'].n_unique()} players against {name}"
    drawing = frames.by_panel(file, shown, keys, "x", _intervals, _scales, labels=(word, "regret at T"), words=words)
    page.figure(drawing, f"Mean regret at the horizon against {word}, with 95% intervals.")
    several = shown["where"].n_unique() > 1
    index = {"who": "player", "where": "instance"} if several else {"who": "player"}
    notes: list[str] = []
    parts = []
    for (where,), here in shown.group_by("where", maintain_order=True):
        parts.append(shares(here, [*index, "x"]))
        if shown["where"].n_unique() <= FEW:
            notes += [*trends(here, name, str(where)), *worse_than_uniform(here, name, str(where))]
    if len(parts) > FEW:
        notes += [*trends(shown, name, "All instances together"), *worse_than_uniform(shown, name, "On some instances")]
    lines = pl.concat(parts)
    caption = f"Regret as a share of uniform play's, other sizes taken together, by {word}."
    folded = f"Shares of uniform play's regret: {lines.select(*index).n_unique()} lines"
    frames.pivot(page, lines, index, "x", lambda row: share(row["share"]), caption, folded=folded)
    return notes


def _intervals(ax: "Axes", line: pl.DataFrame, who: str, look: Look) -> None:
    half = np.nan_to_num(line["standard_error"].cast(pl.Float64).to_numpy() * Z95)
    label, width, front = (who, 1.4, 3) if look.front else ("others", 0.8, 2)
    style: dict[str, Any] = {"color": look.colour, "marker": look.mark, "lw": width, "elinewidth": 1.0, "zorder": front}
    ax.errorbar(line["x"], line["regret"], yerr=half, label=label, **style)


def _scales(ax: "Axes", here: pl.DataFrame) -> None:
    """Add uniform play and the lower bound, and choose the scales."""
    one = here.unique("x", keep="first").sort("x")
    ax.plot(one["x"], one["uniform_regret"], color=GREY, ls="--", lw=1.1, label="uniform play, exactly")
    if one["lower_bound"].null_count() == 0 and here["instance"][0] == "hard":
        ax.plot(one["x"], one["lower_bound"], color=GREY, ls=":", lw=1.3, label="lower bound")
    wide_axis(ax, one["x"].to_list())
    if float(np.nanmin(here["regret"].to_numpy())) > 0.0:
        ax.set_yscale("log")


def shares(here: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return regret as a share of the regret of uniform play, by these columns; each instance in its own unit."""
    scaled = [(pl.col(name) / pl.col("unit")).sum() for name in ("regret", "uniform_regret")]
    sums = here.group_by(keys, maintain_order=True).agg(scaled)
    return sums.with_columns(share=pl.col("regret") / pl.col("uniform_regret")).filter(pl.col("uniform_regret") > 0.0)


def trends(here: pl.DataFrame, name: str, where: str) -> list[str]:
    """Describe the reference player's share at both ends of a setting, and the best player at the upper end."""
    found = shares(here, ["who", "x"]).sort("x", maintain_order=True)
    first = frames.reference(here)
    own = found.filter(who=first)
    if own.height < 2:
        return []
    (low, start), (high, end) = own.select("x", "share").row(0), own.select("x", "share").row(-1)
    text = f"{where}: from {frames.setting_at(name, low)} to {frames.setting_at(name, high)}, the regret of {first} "
    text += f"goes from {start:.0%} to {end:.0%} of uniform play's"
    best, least = found.filter(x=high).sort("share", maintain_order=True).select("who", "share").row(0)
    size = f"{least:.0%}" if least >= 0.0 else "below 0, better than the best fixed arm"
    other = f"; at {frames.setting_at(name, high)}, {best} has the least, {size}" if best != first else ""
    return [f"{text}{other}."]


def worse_than_uniform(here: pl.DataFrame, name: str, where: str) -> list[str]:
    """List the players worse than uniform play by more than three standard errors, each with its worst cell.

    A player without randomness has no standard error on a single draw of the losses; it is left out there.
    """
    error = pl.col("standard_error")
    excess = here.filter(
        ~pl.col("who").str.starts_with("uniform play"),
        error > 0.0,
        pl.col("regret") - 3.0 * error > 1.02 * pl.col("uniform_regret"),
    ).with_columns((pl.col("regret") / pl.col("uniform_regret")).alias("share"))
    worst = excess.sort("share", descending=True).unique("who", keep="first", maintain_order=True)
    named = []
    for row in worst.iter_rows(named=True):
        at = [row["where"]] * (row["where"] != where) + [frames.setting_at(name, row["x"])] * (name not in frames.SIZES)
        named.append(f"{row['who']} (up to {row['share']:.0%} in one cell: {', '.join([*at, frames.size_label(row)])})")
    return [f"{where}: worse than uniform play: {'; '.join(named)}."] if named else []
