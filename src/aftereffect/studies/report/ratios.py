"""The regret of every player on every instance, and the best player of each group with the same needs."""

import math
import statistics
from collections import Counter
from collections.abc import Collection

import polars as pl

from aftereffect.studies.report import frames
from aftereffect.studies.report.page import Entry, Page, Shaded, contrast, number, plus_minus, ratio

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
    table: list[list[Entry]] = []
    for who in sorted(medians, key=lambda who: medians[who]):
        line: list[Entry] = [who + "*" * (who in labelled), ratio(medians[who])]
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
    table: list[list[Entry]] = []
    for where, here in found.items():
        line: list[Entry] = [where]
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
