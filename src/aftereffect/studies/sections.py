"""The sections of a report: each takes the rows, draws, tabulates, and says in sentences what came out."""

import math
import statistics
from collections.abc import Callable

import numpy as np
import polars as pl

from aftereffect.studies import charts, views
from aftereffect.studies.figures import Drawing
from aftereffect.studies.fits import Agreement, PowerLaw, agreements, power_law, section_one, sentence
from aftereffect.studies.page import Entry, Page, Shaded

Keep = Callable[[Drawing], Drawing]
"""Saves a drawing next to the page and returns it."""


def number(value: float | None, digits: int = 0) -> str:
    """Return a number as tables show it; a dash for none.

    >>> number(12345.6), number(None), number(0.1234, 2)
    ('12,346', '–', '0.12')
    """
    # Adding 0.0 turns a rounded -0.0 into 0.0.
    return "–" if value is None or not math.isfinite(value) else f"{round(value, digits) + 0.0:,.{digits}f}"


def plus_minus(value: float | None, error: float | None) -> str:
    """Return a mean with its standard error."""
    return number(value) if error is None else f"{number(value)} ± {number(error, 0 if error >= 9.5 else 1)}"


def curves(page: Page, rows: pl.DataFrame, keep: Keep) -> list[str]:
    """Show regret over rounds."""
    shown = views.readable(rows.filter(pl.col("measure") == "regret"))
    page.section("Regret over rounds")
    caption = "Mean regret against the best arm of the rounds so far, with 95% bands for the mean, at the longest "
    caption += "horizon. The rate of the lower bound (Theorem 10) has no constant: only its slope counts."
    page.figure(keep(charts.curves(shown)), caption)
    return []


def scaling(page: Page, rows: pl.DataFrame, keep: Keep) -> list[str]:
    """Show with which powers of d+1, K and T the worst regret grows, and which rate of Section 1 describes it."""
    shown = views.readable(rows.filter(pl.col("measure") == "regret"))
    worst = views.worst(shown)
    page.section("How regret grows")
    found = fitted(worst)
    several = shown["where"].n_unique() > 1
    what = "greatest mean regret over the instances of this study" if several else "mean regret"
    page.text(
        f"For every player and size the {what} is taken, and a power law fitted to it by least squares in logarithms. "
        "Exponents come with their standard errors. Each rate of the table in Section 1 of the paper then gets one "
        "constant of its own; the typical deviation of the measured regrets from it says how well it describes them."
    )
    parts = {who: part for who, (part, _, _) in found.items()}
    page.figure(
        keep(charts.scaling(parts, {who: fit for who, (_, fit, _) in found.items()})),
        "Worst regret, brought by the fit to the same sizes but for the one on the axis; lines and numbers are the "
        "fitted exponents.",
    )
    names = [name for name in ("d+1", "K", "T") if any(name in fit.exponents for _, fit, _ in found.values())]
    rates = list(section_one([1], [0], [1]))
    table = []
    for who, (_, fit, best) in found.items():
        powers = [fit.exponents.get(name) for name in names]
        by_rate = {agreement.rate: agreement for agreement in best}
        deviations: list[Entry] = []
        for rate in rates:
            text = f"{by_rate[rate].percent:.0f}%"
            deviations.append(Shaded(text, "#cfe8dc") if by_rate[rate].ties(best[0]) else text)
        shown_powers = ["–" if power is None else f"{power.value:.2f} ± {power.standard_error:.2f}" for power in powers]
        table.append([who, *shown_powers, f"{best[0].constant:.2f}", *deviations])
    headings = ["player", *names, "constant", *rates]
    caption = "Fitted exponents; then the constant of the best rate, and typical deviations from each, the best shaded."
    page.table(headings, table, caption=caption)
    unlearned = worst.filter(pl.col("regret") > 0.8 * pl.col("uniform_regret")).height
    notes = [sentence(who, fit, best) for who, (_, fit, best) in found.items()]
    if unlearned:
        notes.append(
            f"In {unlearned} of {worst.height} sizes the worst regret is above 80% of uniform play's: there, a larger "
            "gap or a longer horizon would have been needed to see the whole of it."
        )
    return notes


def fitted(worst: pl.DataFrame) -> dict[str, tuple[pl.DataFrame, PowerLaw, list[Agreement]]]:
    """Return the rows of each player, their fit, and how the rates of Section 1 describe them, the best first.

    A wrapper at d = 0 waits for nothing and is its base algorithm: it is fitted by itself. Who cannot be fitted is
    left out.
    """
    parts: dict[str, pl.DataFrame] = {}
    positive = worst.filter(pl.col("regret") > 0.0)
    for who in sorted(views.names(positive, "who"), key=lambda who: (not who.startswith("wrapper"), who)):
        part = positive.filter(pl.col("who") == who)
        at_once = part.filter(pl.col("max_delay") == 0)
        if who.startswith("wrapper") and 0 < at_once.height < part.height:
            parts |= {f"{who}, d = 0": at_once, f"{who}, d > 0": part.filter(pl.col("max_delay") > 0)}
        else:
            parts[who] = part
    found = {}
    for who, part in parts.items():
        sizes = {name: part[name].to_numpy() for name in views.SIZES}
        variables = {"d+1": sizes["max_delay"] + 1, "K": sizes["n_arms"], "T": sizes["horizon"]}
        moving = sum(np.ptp(values) > 0 for values in variables.values())
        if moving > 0 and part.height >= moving + 2:
            regret = part["regret"].to_numpy()
            found[who] = (part, power_law(variables, regret), agreements(section_one(**sizes), regret))
    return found


def against(page: Page, rows: pl.DataFrame, name: str, keep: Keep) -> list[str]:
    """Show final regret against one setting."""
    given = views.setting(views.finals(rows.filter(pl.col("measure") == "regret")), name)
    shown = views.readable(given, apart=(name,))
    word = views.setting_words(name)
    page.section(f"Regret against {word}")
    page.figure(keep(charts.against(shown, name)), f"Mean regret at the horizon against {word}, with 95% intervals.")
    xs = sorted(set(shown["x"].to_list()))
    shares = {}
    for who in views.names(shown, "who"):
        part = shown.filter(pl.col("who") == who)
        sums = {x: part.filter(pl.col("x") == x).select("regret", "uniform_regret").sum().row(0) for x in xs}
        shares[who] = [regret / uniform if uniform > 0.0 else math.nan for regret, uniform in sums.values()]
    table = [[who, *(shade(share) for share in row)] for who, row in shares.items()]
    caption = f"Regret as a share of uniform play's, all cells with the same value together, by {word}."
    page.table(["player", *(f"{x:,g}" for x in xs)], table, caption=caption)
    return trends(shares, xs, word, views.reference(shown))


def trends(shares: dict[str, list[float]], xs: list[float], word: str, first: str) -> list[str]:
    """Say how the reference fares from one end of a setting to the other, and who does best at the far end.

    >>> trends({"a": [0.9, 0.5], "b": [1.0, 0.25]}, [1.0, 4.0], "gap", "a")[1]
    'At gap 4, b has the least regret, 25% of uniform play.'
    """
    own = np.array(shares[first])
    peak = f"its worst share is {np.nanmax(own):.0%}, at {xs[int(np.nanargmax(own))]:,g}"
    notes = [
        f"{first}: as {word} goes from {xs[0]:,g} to {xs[-1]:,g}, regret goes from {own[0]:.0%} to {own[-1]:.0%} of "
        f"that of uniform play; {peak}."
    ]
    there = {who: row[-1] for who, row in shares.items() if math.isfinite(row[-1])}
    if len(there) > 1:
        best = min(there, key=lambda who: there[who])
        notes.append(f"At {word} {xs[-1]:,g}, {best} has the least regret, {there[best]:.0%} of uniform play.")
    return notes


def ratios(page: Page, rows: pl.DataFrame, keep: Keep) -> list[str]:
    """Show every player's regret on every instance relative to the reference's."""
    shown = views.finals(views.readable(rows.filter(pl.col("measure") == "regret")))
    first = views.reference(shown)
    places, players = views.names(shown, "where"), views.names(shown, "who")
    found = relative(shown, first)
    middles = {who: statistics.median(values) for who in players if (values := _of(found, who))}
    players.sort(key=lambda who: middles.get(who, math.inf))
    page.section("Who does best where")
    table: list[list[Entry]] = []
    for who in players:
        entries = [shade(found.get((who, where), math.nan), parity=True) for where in places]
        table.append([who + "*" * (who in views.labelled()), *entries, shade(middles.get(who, math.nan), parity=True)])
    page.table(
        ["player", *places, "median"],
        table,
        caption=f"Mean regret divided by that of {first} on the same losses, sizes taken together. Blue: less than 1; "
        "below 0: better than the best fixed arm. A star: the player needs labels. A dash: it has no room there, or "
        f"{first} has no regret to compare with.",
    )
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
    return [winners(shown.filter(pl.col("where") == where), where, first) for where in places]


def relative(shown: pl.DataFrame, first: str) -> dict[tuple[str, str], float]:
    """Return, by player and instance, mean regret over that of `first`, where that is above 0 on the same sizes."""
    keys = ["where", *views.SIZES, "seed"]
    base = shown.filter(pl.col("who") == first).select(*keys, pl.col("regret").alias("base"))
    sums = shown.join(base, on=keys).group_by("who", "where").agg(pl.col("regret").sum(), pl.col("base").sum())
    return {(who, where): regret / base for who, where, regret, base in sums.iter_rows() if base > 0.0}


def _of(found: dict[tuple[str, str], float], who: str) -> list[float]:
    return [value for (player, _), value in found.items() if player == who]


def winners(here: pl.DataFrame, where: str, first: str) -> str:
    """Say who has the least mean regret on an instance, of those who play all its sizes: without labels, and with."""
    means = here.group_by("who").agg(pl.col("regret").mean(), pl.len()).sort("regret", "who")
    most = means["len"].to_numpy().max()
    ranked = [(who, regret) for who, regret, count in means.iter_rows() if count == most]
    without = [pair for pair in ranked if pair[0] not in views.labelled()]
    told = [pair for pair in ranked if pair[0] in views.labelled()]
    parts = []
    if without:
        who, regret = without[0]
        own = dict(ranked).get(first)
        aside = f" ({first}: {number(own)})" if own is not None and who != first else ""
        parts.append(f"without labels, {who} has the least regret, {number(regret)}{aside}")
    if told:
        parts.append(f"with labels, {told[0][0]}, {number(told[0][1])}")
    return f"{where}: {'; '.join(parts)}."


def shade(value: float, *, parity: bool = False) -> Entry:
    """Return a share (of uniform play) or, with parity, a ratio (to 1) on a ground of blue for good, orange for bad.

    >>> shade(1.0, parity=True)
    Shaded(text='1.00', ground='rgb(255,255,255)', ink='#1c1e21')
    >>> shade(0.0).text
    '0%'
    """
    if not math.isfinite(value):
        return "–"
    amount = math.log2(max(value, 0.05)) / 2.5 if parity else 2.0 * value - 1.0
    amount = min(max(amount, -1.0), 1.0)
    end: tuple[int, ...] = (253, 174, 97) if amount > 0.0 else (146, 197, 222)
    mixed = ",".join(str(round(255 + abs(amount) * (part - 255))) for part in end)
    return Shaded(f"{value:.2f}" if parity else f"{value:.0%}", f"rgb({mixed})")
