"""From a study's rows to one page: question, findings, figures, tables, and origin; and the sections of any report.

The study's [report] table selects the sections:

    figures = ["curves", "ratios", "module:function"]               in this order
    against = ["gap_factor", "max_delay", "player.max_delay"]       final regret against these settings
    reading = "..."                                                 an introduction for the reader

All sentences about results are computed from the rows; `reading` explains the page and contains no results.
"""

import json
import math
import shlex
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from aftereffect import theory
from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument
from aftereffect.engines.simulation import Z95
from aftereffect.studies.cells import own
from aftereffect.studies.report import frames
from aftereffect.studies.report.charts import GREY, Look, band, wide_axis
from aftereffect.studies.report.page import Page, Shaded, TableEntry, contrast, large, number, plus_minus, ratio, share
from aftereffect.studies.results import ORIGIN, Results
from aftereffect.studies.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Section = Callable[[Page, pl.DataFrame], list[str]]
FEW = 4
"""Up to this many instances are described one by one."""
GROUPS = {
    "any losses": ("best, any losses", "for any losses"),
    "stochastic losses": ("best, stochastic losses", "for stochastic losses"),
    "labels": ("best with labels", "with labels"),
    "own": ("best of your own", "of your own"),
}
"""What players need, from least to most: the table heading for the best of them, and the words after "the players".
What those of the user's own need is not known."""
_UNLABELLED = pl.when("stochastic").then(pl.lit("stochastic losses")).otherwise(pl.lit("any losses"))
_LIBRARY = pl.when("labelled").then(pl.lit("labels")).otherwise(_UNLABELLED)
KIND = pl.when(pl.col("player").str.contains(":")).then(pl.lit("own")).otherwise(_LIBRARY).alias("group")
"""The group of a row's player."""
NEAR = 0.1
"""Differences are judged against at least this share of the largest regret on the instance."""

Best = dict[str, dict[str, tuple[str, float]]]
"""By instance and group, the player with the least regret, and this regret."""


def write_report(study: Study, results: Results, folder: str | Path) -> Path:
    """Write report.html, one self-contained page, and its figures as SVG, PDF and PNG; return the page's path."""
    sections = planned(study)
    if results.rows.is_empty():
        raise InvalidArgument(f"results must hold rows of a finished cell to report on, but {study!r} has none yet")
    rows = results.rows
    home = Path(folder)
    kind = f"study {study.name}" + ", quick setting" * study.quick
    footer = "Made by aftereffect: nonstochastic bandits with composite anonymous feedback."
    page = Page(study.title, kind=kind, lead=study.about, footer=footer, figures=home / "figures")
    if "reading" in study.report:
        page.section("How to read it")
        page.text(study.report["reading"])
    finals = frames.finals(rows)
    rounds = large(float((finals["runs"] * finals["horizon"]).sum()))
    page.findings = [f"{finals.height:,} of {len(study.cells()):,} cells are finished: {rounds} simulated rounds."]
    if results.failures:
        page.findings.append(f"{len(results.failures):,} cells failed and are missing here.")
    for name, section in sections:
        try:
            page.findings += section(page, rows)
        except frames.Missing as reason:
            page.findings.append(f"The section {name} is left out: {reason}.")
    _origin(page, study, rows, results.times)
    return page.write(home / "report.html")


def planned(study: Study) -> list[tuple[str, Section]]:
    """Return the sections of a study's report with their names; raise an error if one does not exist."""
    figures = list(SECTIONS) if study.measure == "regret" else []
    given = {"figures": figures, "against": [], "reading": ""} | study.report
    if unknown := [key for key in given if key not in ("figures", "against", "reading")]:
        raise InvalidArgument(f"report.{unknown[0]} must be figures, against or reading, but it is none of these")
    if not isinstance(given["reading"], str):
        raise InvalidArgument(f"report.reading must be text, but got {checks.shown(given['reading'])}")
    for name in ("figures", "against"):
        if not isinstance(given[name], list) or not all(isinstance(item, str) for item in given[name]):
            raise InvalidArgument(f"report.{name} must be a list of names, but got {checks.shown(given[name])}")
    for item in given["against"]:
        kind, _, key = item.rpartition(".")
        tables = [cell[kind or "instance"] if kind in ("", "player") else {} for cell in study.cells()]
        if item not in frames.SIZES and item != "player.max_delay" and not any(key in table for table in tables):
            raise InvalidArgument(f"report.against must hold sizes and settings of the study, but got {item!r}")
    found: list[tuple[str, Section]] = []
    for item in given["figures"]:
        # The user's own sections have import paths.
        known = None if ":" in item else SECTIONS[checks.choice("report.figures", item, tuple(SECTIONS))]
        found.append((item, known or own("report.figures", item)[0]))
    return [*found, *((f"against {name}", partial(against, name=name)) for name in given["against"])]


def _origin(page: Page, study: Study, rows: pl.DataFrame, times: pl.DataFrame) -> None:
    """Add the times, where they are known, and how the study was made."""
    if not times.is_empty():
        page.section("Time")
        finals = frames.finals(frames.readable(rows)).join(times[["cell", "seconds"]], on="cell", maintain_order="left")
        finals = finals.with_columns(rounds=pl.col("runs") * pl.col("horizon"))
        total = float(finals["seconds"].sum())
        pace = large(float(finals["rounds"].sum()) / max(total, 1e-9))
        page.text(
            f"All cells took {total:,.1f} seconds, one after another, compiling included where it was needed: "
            f"{pace} rounds a second. Times are no part of the rows, which are the same on every machine."
        )
        by_player = finals.group_by("who", "engine", maintain_order=True).agg(
            pl.len(), pl.col("seconds").sum(), pl.col("seconds").max().alias("longest"), pl.col("rounds").sum()
        )
        table = [
            [who, engine, f"{cells:,}", f"{seconds:,.2f}", f"{longest:,.2f}", large(rounds / max(seconds, 1e-9))]
            for who, engine, cells, seconds, longest, rounds in by_player.sort("seconds", descending=True).iter_rows()
        ]
        headings = ["player", "engine", "cells", "seconds", "longest cell", "rounds a second"]
        page.table(headings, table, words=(1,), folded="Time by player")
    page.section("How it was made")
    facts = [("study", study.name), ("measure", study.measure), ("seed", str(study.seed))]
    columns = {"runs": "runs a cell", "instances": "draws of the losses", "n_arms": "arms, K"}
    columns |= {"max_delay": "longest delay, d", "horizon": "rounds, T"}
    facts += [(words, ", ".join(map("{:,}".format, rows[name].unique().sort()))) for name, words in columns.items()]
    for kind in ("instance", "player"):
        pairs = rows.select(kind, f"{kind}_params").unique(maintain_order=True).iter_rows()
        shown = [(name, ", ".join(f"{k} {v}" for k, v in json.loads(text).items())) for name, text in pairs]
        facts.append((f"{kind}s", "; ".join(f"{name} ({settings})" if settings else name for name, settings in shown)))
    facts += [(name, ", ".join(times[name].drop_nulls().unique().sort()) or "not recorded") for name in ORIGIN]
    recorded = set(rows["cell"]) <= set(times["cell"])
    facts.append(("run time", f"{times['seconds'].sum():,.0f} seconds, cells added up" if recorded else "not recorded"))
    command = f"aftereffect study run {shlex.quote(study.source or '')}{' --quick' * study.quick}"
    facts.append(("made again by", command if study.source else "the program that defines the study"))
    page.facts(facts)
    page.text(
        "Runs differ in the player's randomness and, if there are several, in the draw of the losses; standard errors "
        "take them as independent. All players of a size play the same losses. The rows are the same on any machine."
    )


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
    shown = frames.readable(frames.setting(regrets, name), apart=(name,))
    word = frames.setting_name(name)
    page.section(f"Regret against {word}")
    keys = [key for key in ("where", *frames.SIZES) if key != name]
    file = "against-" + name.replace(".", "-").replace("_", "-")
    words = f"Final regret of {shown['who'].n_unique()} players against {name}"
    drawing = frames.by_panel(file, shown, keys, "x", _intervals, _scales, labels=(word, "regret at T"), words=words)
    page.figure(drawing, f"Mean regret at the horizon against {word}, with 95% intervals.")
    index = {"who": "player"} | ({"where": "instance"} if shown["where"].n_unique() > 1 else {})
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


def ratios(page: Page, rows: pl.DataFrame) -> list[str]:
    """Show every player's regret on every instance, coloured by its difference from the reference player's."""
    shown = frames.finals(frames.readable(rows.filter(measure="regret")))
    first = frames.reference(shown)
    # With a single instance, its sizes take the place of instances.
    noun = "sizes" if shown["where"].n_unique() == 1 else "instances"
    if noun == "sizes":
        sizes = [frames.size_label(row) for row in shown.iter_rows(named=True)]
        shown = shown.with_columns(where=pl.Series(sizes, dtype=pl.String))
    page.section("Who does best where")
    # Rows in which a player is better than the best fixed arm by more than three standard errors.
    sure = shown.filter(pl.col("regret") + frames.FAR * pl.col("standard_error").fill_null(0.0) < 0.0)
    counts = {where: sure.filter(where=where)["who"].n_unique() for where in frames.names(sure, "where")}
    negative = []
    for where, count in counts.items():
        some, every = (each.filter(where=where).select(frames.SIZES).n_unique() for each in (sure, shown))
        at = f" at {some} of {every} sizes" * (some < every)
        negative.append(f"{where} ({count} player{'s' * (count > 1)}{at})")
    notes = [f"Regret is below 0, better than the best fixed arm, on {', '.join(negative)}."] if negative else []
    if shown["who"].n_unique() > 1:
        _overview(page, shown, first)
        found = best(shown)
        _best_table(page, shown, found, first)
        kinds = shown.group_by(KIND).agg(pl.col("who").n_unique())
        notes = [*tally(found, kinds.filter(pl.col("who") > 1)["group"].to_list(), noun), *near_ties(shown), *notes]
    table = []
    for row in shown.sort("where", *frames.SIZES, "regret").iter_rows(named=True):
        regret = plus_minus(row["regret"], row["standard_error"])
        rest = [number(row["uniform_regret"]), number(row["updates"])]
        table.append([row["who"], row["where"], *(number(row[name]) for name in frames.SIZES), regret, *rest])
    headings = ["player", "instance", "K", "d", "T", "regret ± standard error", "uniform play", "updates"]
    page.table(headings, table, words=(1,), folded=f"All {len(table)} final regrets")
    return notes


def _overview(page: Page, shown: pl.DataFrame, first: str) -> None:
    places = frames.names(shown, "where")
    found = relative(shown, first)
    sums = {where: [abs(own) for (_, place), (own, _) in found.items() if place == where] for where in places}
    medians = {}
    for who in frames.names(shown, "who"):
        values = [own / base for (of, _), (own, base) in found.items() if of == who and base > 0.0]
        medians[who] = statistics.median(values or [math.inf])
    grouped = shown.group_by("who", "where").agg(1000.0 * pl.col("regret").sum() / pl.col("horizon").sum(), pl.len())
    means = {(who, where): (mean, count) for who, where, mean, count in grouped.iter_rows()}
    most = {where: max(count for (_, place), (_, count) in means.items() if place == where) for where in places}
    labelled = set(frames.names(shown.filter("labelled"), "who"))
    table: list[list[TableEntry]] = []
    for who in sorted(medians, key=lambda who: medians[who]):
        line: list[TableEntry] = [who + "*" * (who in labelled), ratio(medians[who])]
        for where in places:
            mean, count = means.get((who, where), (math.nan, most[where]))
            text = number(mean, 1 if abs(mean) < 9.95 else 0) + "†" * (count < most[where])
            own, base = found.get((who, where), (math.nan, math.nan))
            line.append(Shaded(text, contrast(own, base, NEAR * max(sums[where], default=1.0))))
        table.append(line)
    partial = any(count < most[where] for (_, where), (_, count) in means.items())
    caption = f"Regret per 1,000 rounds, all sizes taken together. Blue: less than {first}, orange: more, pale if the "
    caption += "difference is small. Below 0: better than the best fixed arm. A star: the player needs labels. "
    caption += "A dagger: the player can play at some of the sizes only. " * partial
    caption += f"Median ratio: of the regret to that of {first}, over the instances where the latter is above 0."
    page.table(["player", "median ratio", *places], table, caption=caption)


def relative(shown: pl.DataFrame, first: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Return, by player and instance, the sums of its regrets and of those of `first` over the sizes that both play."""
    keys = ["where", *frames.SIZES, "seed"]
    base = shown.filter(who=first).select(*keys, pl.col("regret").alias("base"))
    sums = shown.join(base, on=keys).group_by("who", "where").agg(pl.col("regret").sum(), pl.col("base").sum())
    return {(who, where): (own, other) for who, where, own, other in sums.iter_rows()}


def best(shown: pl.DataFrame) -> Best:
    """Return, by instance and group, the player with the least mean regret among those that play all its sizes."""
    found: Best = {}
    for where in frames.names(shown, "where"):
        here = shown.filter(where=where).group_by("who", KIND).agg(pl.col("regret").mean(), pl.len())
        most = here["len"].max()
        for who, group, regret, _ in here.filter(len=most).sort("regret", "who").iter_rows():
            found.setdefault(where, {}).setdefault(group, (who, regret))
    return found


def near_ties(shown: pl.DataFrame) -> list[str]:
    """Return a sentence on instances where the two least mean regrets are less than two standard errors apart."""
    error = (pl.col("standard_error").fill_null(0.0) ** 2).sum().sqrt() / pl.len()
    found = []
    for (where,), here in shown.group_by("where", maintain_order=True):
        players = here.group_by("who").agg(pl.col("regret").mean(), error.alias("error"), pl.len())
        two = players.filter(pl.col("len") == pl.col("len").max()).sort("regret", "who").head(2)
        if two.height == 2 and two["regret"][1] - two["regret"][0] < 2.0 * math.hypot(*two["error"]):
            found.append(f"{where} ({two['who'][0]}, {two['who'][1]})")
    text = "The least regret cannot be distinguished from the next, less than two standard errors above it, on "
    return [f"{text}{'; '.join(found)}."] if found else []


def _best_table(page: Page, shown: pl.DataFrame, found: Best, first: str) -> None:
    groups = [group for group in GROUPS if any(group in here for here in found.values())]
    own = dict(shown.filter(who=first).group_by("where").agg(pl.col("regret").mean()).iter_rows())
    each = shown.unique(["where", *frames.SIZES], keep="first", maintain_order=True)
    uniform = dict(each.group_by("where").agg(pl.col("uniform_regret").mean()).iter_rows())
    table: list[list[TableEntry]] = []
    for where, here in found.items():
        line: list[TableEntry] = [where]
        for group in groups:
            who, regret = here.get(group, ("–", math.nan))
            line += [who, number(regret)]
        table.append([*line, number(own.get(where)), number(uniform[where])])
    headings = ["instance", *(word for group in groups for word in (GROUPS[group][0], "regret")), first, "uniform"]
    caption = "The least regret among the players of each kind, by what they assume or see; sizes taken together. "
    caption += "Players that cannot play every size are left out."
    page.table(headings, table, words=range(1, 2 * len(groups), 2), caption=caption)


def tally(found: Best, several: Collection[str], noun: str = "instances") -> list[str]:
    """Return sentences on how many instances, or sizes (`noun`), each player is best on, of all and of each group.

    >>> tally({"x": {"any losses": ("a", 3.0), "labels": ("b", 1.0)}, "y": {"any losses": ("a", 2.0)}}, ["any losses"])
    ['Least regret of all players, whatever they need: b on 1 of 2 instances (x); a on 1 of 2 instances (y).', \
'Least regret among the players for any losses: a on both instances.']
    """
    least = {where: min(here.values(), key=lambda pair: pair[1]) for where, here in found.items()}
    winners = {"of all players, whatever they need": {where: who for where, (who, _) in least.items()}}
    if len({group for here in found.values() for group in here}) > 1:
        for group in (group for group in GROUPS if group in several):
            best = {where: here[group][0] for where, here in found.items() if group in here}
            winners[f"among the players {GROUPS[group][1]}"] = best
    notes = []
    for words, best in winners.items():
        listed = []
        for who, count in Counter(best.values()).most_common():
            places = [where for where in best if best[where] == who]
            share = f"{count} of {len(found)} {noun}" + f" ({'; '.join(places)})" * (count <= 3)
            if count == len(found):
                share = {1: places[0], 2: f"both {noun}"}.get(count, f"all {count} {noun}")
            listed.append(f"{who} on {share}")
        notes.append(f"Least regret {words}: {'; '.join(listed)}.")
    return notes


SECTIONS: Mapping[str, Section] = {"curves": curves, "ratios": ratios}
"""The sections of any report; those of single studies are named by import paths."""
