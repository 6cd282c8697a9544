"""The section that compares players: everyone on every instance, and who is best of those that need the same."""

import math
import statistics
from collections.abc import Sequence

import polars as pl

from aftereffect.studies import views
from aftereffect.studies.page import Entry, Page, Shaded
from aftereffect.studies.sections import Keep, number, plus_minus, shade, tone

GROUPS = ("any losses", "stochastic losses", "labels")
"""What players need, from the least: nothing but d and T, losses drawn from one law, each loss with its round."""

Winners = dict[str, dict[str, tuple[str, float]]]
"""By instance and group, who has the least regret, and how much."""


def ratios(page: Page, rows: pl.DataFrame, keep: Keep) -> list[str]:
    """Show every player's regret on every instance, coloured by how it compares with the reference's."""
    shown = views.finals(views.readable(rows.filter(pl.col("measure") == "regret")))
    first = views.reference(shown)
    # With a single instance, its sizes take the place of instances.
    if shown["where"].n_unique() == 1:
        words = [views.size_words(row) for row in shown.iter_rows(named=True)]
        shown = shown.with_columns(where=pl.Series(words, dtype=pl.String))
    page.section("Who does best where")
    _overview(page, shown, first)
    tables = winners(shown)
    _winners_table(page, shown, tables, first)
    _all(page, shown)
    return [*tally(tables), *negative(shown)]


def _overview(page: Page, shown: pl.DataFrame, first: str) -> None:
    places, players = views.names(shown, "where"), views.names(shown, "who")
    found = relative(shown, first)
    middles = {who: statistics.median(values) for who in players if (values := _of(found, who))}
    players.sort(key=lambda who: middles.get(who, math.inf))
    per_round = (1000.0 * pl.col("regret") / pl.col("horizon")).mean().alias("mean")
    means = {(who, where): (mean, count) for who, where, mean, count in _grouped(shown, per_round)}
    most = {where: max(count for (_, place), (_, count) in means.items() if place == where) for where in places}
    table: list[list[Entry]] = []
    for who in players:
        entries: list[Entry] = []
        for where in places:
            if (who, where) not in means:
                entries.append("–")
                continue
            mean, count = means[who, where]
            base = means.get((first, where), (math.nan, 0))[0]
            text = number(mean, 1 if abs(mean) < 9.95 else 0) + "†" * (count < most[where])
            # On some sizes only, it is compared with the reference at the same sizes.
            ratio = found.get((who, where), math.nan)
            compared = (ratio, 1.0) if count < most[where] and math.isfinite(ratio) else (mean, base)
            entries.append(Shaded(text, tone(*compared)))
        middle = shade(middles.get(who, math.nan), parity=True)
        table.append([who + "*" * (who in views.labelled()), middle, *entries])
    partial = " A dagger: it has room at some of the sizes only." if any(
        count < most[where] for (_, where), (_, count) in means.items()
    ) else ""
    page.table(
        ["player", "median ratio", *places],
        table,
        caption=f"Regret per 1,000 rounds, the mean over all sizes. Blue: less than that of {first}, orange: more. "
        f"Below 0: better than the best fixed arm. A star: the player needs labels.{partial} The median, over all "
        f"instances, is that of the ratio to the regret of {first}.",
    )


def _grouped(shown: pl.DataFrame, value: pl.Expr) -> list[tuple[str, str, float, int]]:
    grouped = shown.group_by("who", "where").agg(value, pl.len())
    return [(who, where, mean, count) for who, where, mean, count in grouped.iter_rows()]


def relative(shown: pl.DataFrame, first: str) -> dict[tuple[str, str], float]:
    """Return, by player and instance, mean regret over that of `first`, where that is above 0 on the same sizes."""
    keys = ["where", *views.SIZES, "seed"]
    base = shown.filter(pl.col("who") == first).select(*keys, pl.col("regret").alias("base"))
    both = shown.join(base, on=keys, maintain_order="left")
    sums = both.group_by("who", "where").agg(pl.col("regret").sum(), pl.col("base").sum())
    return {(who, where): regret / base for who, where, regret, base in sums.iter_rows() if base > 0.0}


def _of(found: dict[tuple[str, str], float], who: str) -> list[float]:
    return [value for (player, _), value in found.items() if player == who]


def group_of(who: str) -> str:
    """Return what a player needs.

    >>> group_of("wrapper, Exp3"), group_of("delayed UCB1")
    ('any losses', 'labels')
    """
    if who in views.labelled():
        return "labels"
    return "stochastic losses" if who in views.needing("stochastic losses") else "any losses"


def winners(shown: pl.DataFrame) -> Winners:
    """Return, by instance and by what players need, who has the least mean regret of those who play all its sizes."""
    found: Winners = {}
    for where in views.names(shown, "where"):
        here = shown.filter(pl.col("where") == where)
        means = here.group_by("who").agg(pl.col("regret").mean(), pl.len()).sort("regret", "who")
        most = means["len"].to_numpy().max()
        best = found.setdefault(where, {})
        for who, regret, count in means.iter_rows():
            if count == most:
                best.setdefault(group_of(who), (who, regret))
    return found


def _winners_table(page: Page, shown: pl.DataFrame, tables: Winners, first: str) -> None:
    groups = [group for group in GROUPS if any(group in best for best in tables.values())]
    means = {(who, where): regret for who, where, regret, _ in _grouped(shown, pl.col("regret").mean())}
    each = shown.unique(["where", *views.SIZES], keep="first", maintain_order=True)
    uniform = dict(each.group_by("where").agg(pl.col("uniform_regret").mean()).iter_rows())
    table: list[list[Entry]] = []
    for where, best in tables.items():
        line: list[Entry] = [where]
        for group in groups:
            line += [best[group][0], number(best[group][1])] if group in best else ["–", "–"]
        table.append([*line, number(means.get((first, where))), number(uniform[where])])
    heads = {"any losses": "best on any losses", "stochastic losses": "best on one law", "labels": "best with labels"}
    headings = ["instance", *(word for group in groups for word in (heads[group], "regret")), first, "uniform"]
    caption = "Who has the least regret, of the players with guarantees for any losses, of those for losses drawn from "
    caption += "one law, and of those who see labels; sizes taken together, players who sit some out left out."
    page.table(headings, table, words=range(1, 2 * len(groups), 2), caption=caption)


def tally(tables: Winners) -> list[str]:
    """Say on how many instances each is the best of its kind, and which kind wins.

    >>> tally({"x": {"any losses": ("a", 3.0), "labels": ("b", 1.0)}, "y": {"any losses": ("a", 2.0)}})
    ['Of the players for any losses, the least regret is that of a on all 2.', \
'Of the players with labels, the least regret is that of b on all 1.']
    """
    words = {"any losses": "for any losses", "stochastic losses": "for losses of one law", "labels": "with labels"}
    notes = []
    for group in GROUPS:
        wins: dict[str, list[str]] = {}
        for where, best in tables.items():
            if group in best:
                wins.setdefault(best[group][0], []).append(where)
        ordered = sorted(wins.items(), key=lambda pair: -len(pair[1]))
        total = sum(len(places) for places in wins.values())
        if len(ordered) == 1:
            told = f"{ordered[0][0]} on all {total}"
        else:
            told = "; ".join(f"{who} on {_listed(places, total)}" for who, places in ordered)
        if ordered:
            notes.append(f"Of the players {words[group]}, the least regret is that of {told}.")
    return notes


def _listed(places: Sequence[str], total: int) -> str:
    return f"{len(places)} of {total}" if len(places) > 3 else ", ".join(places)


def negative(shown: pl.DataFrame) -> list[str]:
    """Name the instances on which someone is surely better than the best fixed arm."""
    sure = shown.filter(pl.col("regret") + 3.0 * pl.col("standard_error").fill_null(0.0) < 0.0)
    counts = {where: sure.filter(pl.col("where") == where)["who"].n_unique() for where in views.names(sure, "where")}
    places = [f"{where} ({count} player{'s' * (count > 1)})" for where, count in counts.items()]
    return [f"Regret is below 0, better than the best fixed arm, on {', '.join(places)}."] if places else []


def _all(page: Page, shown: pl.DataFrame) -> None:
    regrets = [
        [
            row["who"],
            row["where"],
            *(f"{row[size]:,}" for size in views.SIZES),
            plus_minus(row["regret"], row["standard_error"]),
            number(row["uniform_regret"]),
            number(row["updates"]),
        ]
        for row in shown.sort("where", *views.SIZES, "regret").iter_rows(named=True)
    ]
    headings = ["player", "instance", "K", "d", "T", "regret", "uniform play", "updates"]
    page.table(headings, regrets, words=(1,), folded=f"All {len(regrets)} final regrets")
