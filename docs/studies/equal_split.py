"""A year of days: regret as a share of what an equal split of all rounds loses, by player and world."""

import json
from statistics import median
from typing import Any

import polars as pl

from aftereffect.losses.year import MIDDLE, TIRED
from aftereffect.studies.cells import GAP
from aftereffect.studies.report import frames
from aftereffect.studies.report.charts import GREY, Drawing, drawn, looks
from aftereffect.studies.report.page import Page, TableEntry, share

CENTRE: dict[str, Any] = {
    "horizon": 365, "n_arms": 4, "n_units": 1, "half_life": 3.0, "curves": "apart", "noise": 0.2, "path": "white",
    "change": "none",
}  # fmt: skip
"""The settings at the centre."""
WORDS = {
    "horizon": "{} days", "n_arms": "{} arms", "n_units": "{} units", "half_life": "half-life {:g}", "curves": "{}",
    "noise": "noise {:g}", "path": "{}", "change": "{}",
}  # fmt: skip
"""A setting in the name of a world."""
VALUES = {
    "alike": "all arms alike", "last": "best arm last", "negative": "sales brought forward",
    "ar": "autocorrelated noise", "season": "weekly season", "jumps": "level jumps", "trend": "trend",
    "drift": "effects drift", "swap": "best and worst swap", "hidden": "best looks worst at first",
    "fatigue": "fatigue",
}  # fmt: skip
KINDS = {
    "horizon": "60 to 730 days", "n_arms": "2 to 6 arms", "half_life": "half-lives of 1 and 7 days",
    "curves": "other curves", "noise": "noise 0.05 to 1", "path": "noise or level of other kinds",
}  # fmt: skip
"""The kinds of worlds in which one setting differs from the centre."""
CORNERS, UNITS, WRONG, ADVERTISING = "corners", "90 days, 1 to 60 units", "effects change", "advertising system"
ORDER = ("centre", *KINDS.values(), CORNERS, UNITS, ADVERTISING, WRONG)
LENGTHS = {0.125: "1/8", 0.25: "1/4"}
LAG, BEST_TEST, DEFAULT = "LagPlayer", "A/B test, 1/4, lags", "default player"
ADVISED = f"{DEFAULT}, advised"
SHOWN = (LAG, ADVISED, BEST_TEST, "A/B test, 1/4, means", "naive Thompson", DEFAULT)
"""The players in the figure."""


def player_name(name: str, given: dict[str, Any]) -> str:
    """Return the name of a player with the settings that tell it apart.

    >>> player_name("ABTest", {"share": 0.25, "winner": "lags"})
    'A/B test, 1/4, lags'
    >>> player_name("default_player", {"adviser": "lags", "max_delay": 7})
    'default player, advised, told 7'
    """
    if name == "ABTest" and given["share"] == 1.0:
        return "equal split"
    if name == "ABTest":
        return f"A/B test, {LENGTHS[given['share']]}, {given.get('winner', 'means')}"
    if name == "LagPlayer":
        return LAG + "".join(f", told the {each}" for each in ("season", "horizon") if each in given)
    if name == "default_player":
        told = f", told {given['max_delay']}" if "max_delay" in given else ""
        return (ADVISED if "adviser" in given else DEFAULT) + told
    bases = {"epsilon_greedy": "naive ε-greedy", "thompson": "naive Thompson"}
    return bases.get(given.get("base", ""), "UCB on clean windows")


def world(row: dict[str, Any]) -> tuple[str, str]:
    """Return the name of a world, by what differs from the centre, and its kind."""
    if row["instance"] == "advertising":
        return ADVERTISING, ADVERTISING
    given = {"n_units": 1} | CENTRE | {name: row[name] for name in ("horizon", "n_arms")}
    given |= json.loads(row["instance_params"])
    other = [name for name, usual in CENTRE.items() if given[name] != usual]
    words = [WORDS[name].format(VALUES.get(given[name], given[name])) for name in other]
    if given["change"] != "none":
        kind = WRONG
    elif given["horizon"] == 90:
        kind = UNITS
    elif len(other) > 1:
        kind = CORNERS
    else:
        kind = KINDS[other[0]] if other else "centre"
    return ", ".join(words) or "centre", kind


def by_world(finals: pl.DataFrame) -> pl.DataFrame:
    """Return final rows with `who`, `world`, `kind`, and the `share` of an equal split's regret with its `error`."""
    rows = list(finals.iter_rows(named=True))
    named = finals.with_columns(
        who=pl.Series([player_name(row["player"], json.loads(row["player_params"])) for row in rows]),
        world=pl.Series([world(row)[0] for row in rows]),
        kind=pl.Series([world(row)[1] for row in rows], dtype=pl.Enum(ORDER)),
    )
    parts = {"share": pl.col("regret"), "error": pl.col("standard_error").fill_null(0.0)}
    return named.with_columns(**{name: part / pl.col("uniform_regret") for name, part in parts.items()})


def shares(page: Page, rows: pl.DataFrame) -> list[str]:
    """Show the shares by kind of world and by world, and what it costs where the lag model is wrong."""
    found = frames.some(by_world(frames.finals(rows.filter(measure="regret"))), "rows of a year")
    tiring = found.filter(world="fatigue")
    found = found.filter(pl.col("world") != "fatigue").sort("kind", maintain_order=True)
    page.section("Who loses least")
    page.figure(
        overview(found),
        "Regret as a share of an equal split's. Large marks: means over the worlds of a kind; small ones: the worlds. "
        "Shares below 0, better than every fixed arm, are drawn at 0.",
    )
    table(page, found)
    notes = [*summary(found), *rivals(found), *many(found), *changes(found)]
    return notes + fatigue(page, tiring)


def overview(found: pl.DataFrame) -> Drawing:
    """Draw the shares of some players, a line for each kind of world."""
    kinds = [kind for kind in ORDER if kind in set(found["kind"])]
    look = looks(SHOWN)
    words = f"Regret of {len(SHOWN)} players as a share of an equal split's, for {len(kinds)} kinds of worlds."
    with drawn("shares", words, 1, height=0.42 * len(kinds) + 1.0, legend=3) as (drawing, (ax,)):
        for who in SHOWN:
            mine = found.filter(who=who).with_columns(pl.col("share").clip(lower_bound=0.0))
            style: dict[str, Any] = {"color": look[who].colour, "marker": look[who].mark, "ls": ""}
            ax.plot(mine["share"], [kinds.index(kind) for kind in mine["kind"]], ms=3, alpha=0.35, **style)
            mean = mine.group_by("kind", maintain_order=True).agg(pl.col("share").mean())
            ax.plot(mean["share"], [kinds.index(kind) for kind in mean["kind"]], ms=8, label=who, **style)
        ax.axvline(1.0, color=GREY, ls="--", lw=1.1, label="equal split of all rounds, exactly")
        ax.set_yticks(range(len(kinds)), labels=kinds)
        ax.set(ylim=(len(kinds) - 0.5, -0.5), xlim=(-0.02, None))
        ax.set_xlabel("regret, share of an equal split's (left is better)")
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        ax.grid(axis="y", lw=0.4)
    return drawing


def means(found: pl.DataFrame) -> dict[str, float]:
    """Return the mean share of each player that plays most worlds with one unit where effects stay, the least first."""
    alone = found.filter((pl.col("kind") != WRONG) & (pl.col("kind") != UNITS))
    every = alone.group_by("who").agg(pl.len(), pl.col("share").mean()).sort("share", "who")
    return {who: value for who, count, value in every.iter_rows() if 2 * count > alone["world"].n_unique()}


def table(page: Page, found: pl.DataFrame) -> None:
    """Add the table of all worlds and players."""
    order = list(means(found))
    order += [who for who in frames.names(found, "who") if who not in order]
    lines: list[list[TableEntry]] = []
    for (place,), here in found.group_by("world", maintain_order=True):
        mine = dict(here.select("who", "share").iter_rows())
        lines.append([str(place), *(share(mine[who]) if who in mine else "–" for who in order)])
    widest = 100.0 * median(found.filter(who=LAG)["error"].to_list())
    page.table(
        ["world", *order],
        lines,
        caption="Regret as a share of an equal split's. Blue: less than half of it; orange: more. Standard errors of "
        f"LagPlayer's shares are {widest:.0f} percentage points at the median.",
    )


def summary(found: pl.DataFrame) -> list[str]:
    """Return the mean shares of all players where effects stay the same, with one unit."""
    alone = found.filter((pl.col("kind") != WRONG) & (pl.col("kind") != UNITS))
    parts = []
    for who, value in means(found).items():
        worst = alone.filter(who=who).sort("share", descending=True).row(0, named=True)
        parts.append(f"{who} {value:.0%} (at most {worst['share']:.0%}: {worst['world']})")
    count = alone["world"].n_unique()
    return [
        f"With one unit and effects that stay the same ({count} worlds), the mean regret as a share of an equal "
        f"split's is: {'; '.join(parts)}."
    ]


def rivals(found: pl.DataFrame) -> list[str]:
    """Return a sentence on where a player without its advice has less regret than LagPlayer, beyond chance."""
    mine = found.filter(who=LAG).select("world", own="share", own_error="error")
    others = found.filter(~pl.col("who").str.contains(f"^({LAG}|{ADVISED})"))
    others = others.join(mine, on="world", maintain_order="left")
    least = others.sort("share").unique("world", keep="first", maintain_order=True)
    lead = pl.col("own") - pl.col("share")
    noise = (pl.col("error") ** 2 + pl.col("own_error") ** 2).sqrt()
    ahead, behind = least.filter(lead > frames.FAR * noise), least.filter(lead < -frames.FAR * noise)
    columns = ahead.select("world", "who", "share", "own").iter_rows()
    words = [f"{place} ({who} {other:.0%}, LagPlayer {own:.0%})" for place, who, other, own in columns]
    where = f"in {len(words)}: {'; '.join(words)}" if words else "in none"
    return [
        f"LagPlayer has less regret than each player but the advised, by more than {frames.FAR:g} standard errors, in "
        f"{behind.height} of {least.height} worlds; some other player has less than LagPlayer {where}."
    ]


def many(found: pl.DataFrame) -> list[str]:
    """Return a sentence on panels."""
    parts = []
    for (place,), here in found.filter((pl.col("kind") == UNITS) & pl.col("world").str.contains("units")).group_by(
        "world", maintain_order=True
    ):
        mine = dict(here.select("who", "share").iter_rows())
        best = min((who for who in mine if who.startswith("A/B")), key=lambda who: mine[who])
        told = f"LagPlayer {mine[LAG]:.0%}, the best A/B test {mine[best]:.0%} ({best.removeprefix('A/B test, ')})"
        parts.append(f"{place}: {told}, the default player {mine[DEFAULT]:.0%}, advised {mine[ADVISED]:.0%}")
    return [f"Units that share a learner: {'; '.join(parts)}."] if parts else []


def changes(found: pl.DataFrame) -> list[str]:
    """Return a sentence on worlds whose effects change."""
    wrong = found.filter(kind=WRONG)
    parts = []
    for (place,), here in wrong.group_by("world", maintain_order=True):
        mine = dict(here.select("who", "share").iter_rows())
        best = min(mine, key=lambda who: mine[who])
        told = f"LagPlayer {mine[LAG]:.0%}, default player {mine[DEFAULT]:.0%}, advised {mine[ADVISED]:.0%}"
        parts.append(f"{place}: {told}, least {best}")
    return [f"Where effects change, and the lag model is wrong: {'; '.join(parts)}."] if parts else []


def earned(row: dict[str, Any]) -> float:
    """Return what a player has earned in a world of fatigue, noise aside.

    The best arm played throughout earns (MIDDLE + GAP)·Σ TIRED^n: regret is measured against that.
    """
    return float((MIDDLE + GAP) / (1.0 - TIRED) - row["regret"])


def fatigue(page: Page, tiring: pl.DataFrame) -> list[str]:
    """Add a table of what players earn if each consecutive play is weaker, against an equal split in random order."""
    if "equal split" not in set(tiring["who"]):
        return []
    page.section("If arms tire")
    page.text(
        "Each consecutive play of an arm is 7% weaker than the one before. Then no arm is worth playing throughout, "
        "and what counts is what is earned: here against an equal split in random order, which rarely tires an arm."
    )
    control = next(earned(row) for row in tiring.to_dicts() if row["who"] == "equal split")
    parts = {row["who"]: earned(row) / control for row in tiring.sort("regret").to_dicts()}
    page.table(["player", "earns, share of an equal split's"], [[who, f"{part:.0%}"] for who, part in parts.items()])
    tests = max(part for who, part in parts.items() if who.startswith("A/B"))
    return [
        f"If arms tire, LagPlayer earns {parts[LAG]:.0%} of what an equal split earns, the best A/B test {tests:.0%}, "
        f"the default player {parts[DEFAULT]:.0%}, advised {parts[ADVISED]:.0%}."
    ]
