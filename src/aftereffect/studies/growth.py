"""The section on how regret grows: fitted exponents, the rates of Section 1, and the terms of the proofs behind."""

import math
from typing import NamedTuple

import numpy as np
import polars as pl

from aftereffect.core.checks import FloatArray
from aftereffect.studies import growth_charts, views
from aftereffect.studies.fits import (
    Agreement,
    Local,
    PowerLaw,
    agreements,
    local_exponents,
    power_law,
    powers,
    section_one,
    sentence,
)
from aftereffect.studies.leading import of_rows
from aftereffect.studies.page import Entry, Page, Shaded
from aftereffect.studies.sections import Keep


class Term(NamedTuple):
    """A player's leading term (`leading.py`): how it is written, its order, values and own fit, and regret over it."""

    words: str
    order: str
    values: FloatArray
    fit: PowerLaw
    ratio: float
    scatter: float

    def sentence(self) -> str:
        """Say what theory expects at these sizes, and how near regret is."""
        return (
            f"Theory's leading term, of order {self.order}, grows as {powers(self.fit, errors=False)} at these sizes; "
            f"regret is {self.ratio:.2f} times this term, with a typical deviation of "
            f"{100 * math.expm1(self.scatter):.1f}%."
        )


class Growth(NamedTuple):
    """One player's worst regrets, their fit, how the rates of Section 1 describe them, the best first, and its term."""

    rows: pl.DataFrame
    fit: PowerLaw
    rates: list[Agreement]
    term: Term | None


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
    page.figure(
        keep(growth_charts.scaling({who: (one.rows, one.fit) for who, one in found.items()})),
        "Worst regret, brought by the fit to the same sizes but for the one on the axis; lines and numbers are the "
        "fitted exponents.",
    )
    headings = ["player", *_names(found), "constant", *section_one([1], [0], [1])]
    caption = "Fitted exponents; then the constant of the best rate, and typical deviations from each, the best shaded."
    page.table(headings, [_line(who, one, _names(found)) for who, one in found.items()], caption=caption)
    _terms(page, found, keep)
    notes = []
    for who, one in found.items():
        theory = f" {one.term.sentence()}" if one.term is not None else ""
        notes.append(sentence(who, one.fit, one.rates) + theory)
    unlearned = worst.filter(pl.col("regret") > 0.8 * pl.col("uniform_regret")).height
    if unlearned:
        notes.append(
            f"In {unlearned} of {worst.height} sizes the worst regret is above 80% of uniform play's: there, a larger "
            "gap or a longer horizon would have been needed to see the whole of it."
        )
    return notes


def _terms(page: Page, found: dict[str, Growth], keep: Keep) -> None:
    """Hold the exponents against those of the proofs' leading terms, over all sizes and from one to the next."""
    known = {who: one for who, one in found.items() if one.term is not None}
    if not known:
        return
    page.section("Why exponents are not 1/2")
    page.text(
        "A rate is what is left at large sizes. At the sizes that were played, theory itself has other exponents: a "
        "base pays for telling K arms apart with its penalty, 2η(√K − 1) or ln K/η, and a wrapper carries this to "
        "rounds through blocks of 1/p rounds whose windows hold d+1 of 2d+1 parts. No constant is fitted here: the "
        "terms are those of the proofs, with the learning rates that were played. The labelled player has two "
        "regularisers and two penalties, 2√T(√K − 1) and √(2dT ln K)."
    )
    names = _names(known)
    table: list[list[Entry]] = []
    for who, one in known.items():
        if one.term is not None:
            pairs = [(one.fit.exponents.get(name), one.term.fit.exponents.get(name)) for name in names]
            shown = ["–" if a is None or b is None else f"{a.value:.2f} / {b.value:.2f}" for a, b in pairs]
            deviation = f"{100 * math.expm1(one.term.scatter):.1f}%"
            table.append([who, one.term.words, *shown, f"{one.term.ratio:.2f}", deviation])
    caption = "Exponents of measured regret / of the leading term, fitted alike at the same sizes; regret over it."
    page.table(["player", "leading term", *names, "regret / term", "deviation"], table, words=(1,), caption=caption)
    slopes = {who: _slopes(one, names) for who, one in known.items()}
    moving = [name for name in ("d+1", "K") if any(len(each[name]) > 1 for each in slopes.values() if name in each)]
    if moving:
        page.figure(
            keep(growth_charts.slopes(slopes, moving)),
            "Exponents from one size to the next, all else equal: measured (dots, with 95% intervals) and of the "
            "leading term (lines). Where a line runs into 1/2, so does the rate.",
        )


def _names(found: dict[str, Growth]) -> list[str]:
    return [name for name in ("d+1", "K", "T") if any(name in one.fit.exponents for one in found.values())]


def _line(who: str, one: Growth, names: list[str]) -> list[Entry]:
    exponents = [one.fit.exponents.get(name) for name in names]
    shown = ["–" if power is None else f"{power.value:.2f} ± {power.standard_error:.2f}" for power in exponents]
    by_rate = {agreement.rate: agreement for agreement in one.rates}
    deviations: list[Entry] = []
    for rate in section_one([1], [0], [1]):
        text = f"{by_rate[rate].percent:.0f}%"
        deviations.append(Shaded(text, "#cfe8dc") if by_rate[rate].ties(one.rates[0]) else text)
    return [who, *shown, f"{one.rates[0].constant:.2f}", *deviations]


def fitted(worst: pl.DataFrame) -> dict[str, Growth]:
    """Return what there is to say about each player's growth; who cannot be fitted is left out.

    At d = 0 nobody waits for anything, and the wrapper is its base algorithm: that is fitted by itself.
    """
    parts: dict[str, pl.DataFrame] = {}
    positive = worst.filter(pl.col("regret") > 0.0)
    for who in sorted(views.names(positive, "who"), key=lambda who: (not who.startswith("wrapper"), who)):
        part = positive.filter(pl.col("who") == who)
        at_once = part.filter(pl.col("max_delay") == 0)
        if 0 < at_once.height < part.height:
            parts |= {f"{who}, d > 0": part.filter(pl.col("max_delay") > 0), f"{who}, d = 0": at_once}
        else:
            parts[who] = part
    ordered = sorted(parts, key=lambda who: who.endswith("d = 0"))
    return {who: one for who in ordered if (one := growth(parts[who])) is not None}


def growth(part: pl.DataFrame) -> Growth | None:
    """Fit one player's worst regrets; None where too few sizes differ."""
    sizes = variables(part)
    moving = sum(np.ptp(values) > 0 for values in sizes.values())
    if moving == 0 or part.height < moving + 2:
        return None
    regret = part["regret"].to_numpy()
    rates = section_one(*(part[name].to_numpy() for name in views.SIZES))
    leading = of_rows(part)
    term = None
    if leading is not None:
        words, order, values = leading[0], leading[1], np.array(leading[2])
        logs = np.log(regret / values)
        term = Term(words, order, values, power_law(sizes, values), math.exp(logs.mean()), float(logs.std(ddof=1)))
    return Growth(part, power_law(sizes, regret), agreements(rates, regret), term)


def variables(part: pl.DataFrame) -> dict[str, FloatArray]:
    """Return d+1, K and T of the rows."""
    K, d, T = (part[name].cast(pl.Float64).to_numpy() for name in views.SIZES)
    return {"d+1": d + 1.0, "K": K, "T": T}


def _slopes(one: Growth, names: list[str]) -> dict[str, list[tuple[Local, float]]]:
    """Return the measured exponents from one size to the next, each with the leading term's."""
    sizes, regret = variables(one.rows), one.rows["regret"].to_numpy()
    errors = one.rows["standard_error"].fill_null(0.0).to_numpy()
    found = {}
    for name in names:
        measured = local_exponents(sizes, name, regret, errors)
        values = regret if one.term is None else one.term.values
        expected = local_exponents(sizes, name, values, np.zeros(len(values)))
        found[name] = [(mine, own.exponent.value) for mine, own in zip(measured, expected, strict=True)]
    return found
