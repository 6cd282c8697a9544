"""From a study's rows to one page: what was asked, what was found, figures, tables, and how it was made.

Which sections there are is for the study's [report] table to say:

    figures = ["curves", "scaling", "bounds", "stability", "ratios", "price", "told", "adaptive"]    any, in this order
    against = ["gap_factor", "max_delay", "player.max_delay"]       and final regret against these settings
    reading = "..."                                                 what one should know to read it

Every sentence about results is computed from the rows; `reading` explains them and states no numbers of theirs.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument
from aftereffect.studies import adaptive_sections, comparing, figures, growth, guarantees, sections, views
from aftereffect.studies.cells import cell_id
from aftereffect.studies.page import Page
from aftereffect.studies.pricing import price
from aftereffect.studies.sections import Keep
from aftereffect.studies.told import told

if TYPE_CHECKING:
    from aftereffect.studies.results import Results
    from aftereffect.studies.spec import Study

Section = Callable[[Page, pl.DataFrame, Keep], list[str]]

SECTIONS: Mapping[str, Section] = {
    "curves": sections.curves,
    "scaling": growth.scaling,
    "bounds": guarantees.bounds,
    "stability": guarantees.stability,
    "ratios": comparing.ratios,
    "price": price,
    "told": told,
    "adaptive": adaptive_sections.adaptive,
}
DEFAULT = {"regret": ("curves", "ratios"), "stability": ("stability",)}


def write_report(study: "Study", results: "Results", folder: str | Path) -> Path:
    """Write report.html, one self-contained page, and its figures as SVG, PDF and PNG; return the page's path."""
    plan = planned(study)
    rows = in_order(study, results.rows)
    if rows.is_empty():
        raise InvalidArgument(f"results must hold rows of a finished cell to report on, but {study!r} has none yet")
    home = Path(folder)
    body = Page(study.title)

    def keep(drawing: figures.Drawing) -> figures.Drawing:
        figures.save(drawing, home / "figures")
        return drawing

    notes = [note for section in plan for note in section(body, rows, keep)]
    page = Page(
        study.title,
        kind=f"study {study.name}" + (", quick setting" if study.quick else ""),
        lead=study.about,
        footer="Made by aftereffect: nonstochastic bandits with composite anonymous feedback.",
    )
    page.section("What was found")
    page.points([*completeness(study, results), *notes])
    if "reading" in study.report:
        page.section("How to read it")
        page.text(study.report["reading"])
    page.extend(body)
    _times(page, rows, results.times)
    _making(page, study, rows, results.times)
    return page.write(home / "report.html")


def in_order(study: "Study", rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows in the order in which the study's file has them."""
    place = {cell_id(cell): k for k, cell in enumerate(study.cells())}
    order = pl.Series("order", [place.get(cell, len(place)) for cell in rows["cell"]], dtype=pl.Int64)
    return rows.with_columns(order).sort("order", "round").drop("order")


def planned(study: "Study") -> list[Section]:
    """Return the sections a study asks for; an error if it asks for what there is not."""
    given = dict(study.report)
    wanted = given.pop("figures", list(DEFAULT[study.measure]))
    settings = given.pop("against", [])
    reading = given.pop("reading", "")
    if given:
        rule = "must be figures, against or reading, but it is none of these"
        raise InvalidArgument(f"report.{next(iter(given))} {rule}")
    if not isinstance(reading, str):
        raise InvalidArgument(f"report.reading must be text, but got {checks.shown(reading)}")
    for name, value in (("figures", wanted), ("against", settings)):
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise InvalidArgument(f"report.{name} must be a list of names, but got {checks.shown(value)}")
    for item in wanted:
        checks.choice("report.figures", item, tuple(SECTIONS))
    return [SECTIONS[item] for item in wanted] + [partial(_against, name) for name in settings]


def _against(name: str, page: Page, rows: pl.DataFrame, keep: Keep) -> list[str]:
    return sections.against(page, rows, name, keep)


def completeness(study: "Study", results: "Results") -> list[str]:
    """Say how much of the study is there."""
    cells = len(study.cells())
    finals = views.finals(results.rows)
    done = finals["cell"].n_unique()
    rounds = sum(runs * horizon for runs, horizon in finals.select("runs", "horizon").iter_rows())
    notes = [f"{done:,} of {cells:,} cells are finished: {big(rounds)} simulated rounds."]
    if len(results.failures):
        notes.append(f"{len(results.failures):,} cells failed and are missing here.")
    return notes


def big(count: float) -> str:
    """Return a large count in words.

    >>> big(1_250_000_000), big(40_000), big(3e12)
    ('1.25 billion', '40,000', '3 trillion')
    """
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if count >= size:
            return f"{count / size:.3g} {word}"
    return f"{count:,.0f}"


def _times(page: Page, rows: pl.DataFrame, times: pl.DataFrame) -> None:
    if times.is_empty():
        return
    page.section("Time")
    finals = views.finals(views.readable(rows))
    joined = finals.join(times.select("cell", "seconds"), on="cell", maintain_order="left").with_columns(
        (pl.col("runs") * pl.col("horizon")).alias("rounds")
    )
    total = float(joined["seconds"].to_numpy().sum())
    pace = float(joined["rounds"].to_numpy().sum()) / max(total, 1e-9)
    page.text(
        f"All cells took {total:,.1f} seconds, one after another, compiling included where it was needed: {big(pace)} "
        "rounds a second. Times are no part of the rows, which are the same on every machine."
    )
    by_player = joined.group_by("who", "engine", maintain_order=True).agg(
        pl.len().alias("cells"),
        pl.col("seconds").sum(),
        pl.col("seconds").max().alias("longest"),
        pl.col("rounds").sum(),
    )
    table = [
        [
            row["who"],
            row["engine"],
            f"{row['cells']:,}",
            f"{row['seconds']:,.2f}",
            f"{row['longest']:,.2f}",
            big(row["rounds"] / max(row["seconds"], 1e-9)),
        ]
        for row in by_player.sort("seconds", descending=True).iter_rows(named=True)
    ]
    headings = ["player", "engine", "cells", "seconds", "longest cell", "rounds a second"]
    folded = "Time by player" if len(table) > 12 else ""
    page.table(headings, table, words=(1,), caption="" if folded else "Time by player.", folded=folded)


def _making(page: Page, study: "Study", rows: pl.DataFrame, times: pl.DataFrame) -> None:
    page.section("How it was made")
    facts = [("study", study.name), ("measure", study.measure), ("seed", str(study.seed))]
    runs = ", ".join(f"{value:,}" for value in rows["runs"].unique().sort().to_list())
    facts.append(("runs a cell", f"{runs}, over {study.draws:,} draw{'s' * (study.draws > 1)} of the losses"))
    for name, words in (("n_arms", "arms, K"), ("max_delay", "longest delay, d"), ("horizon", "rounds, T")):
        facts.append((words, ", ".join(f"{value:,}" for value in rows[name].unique().sort().to_list())))
    for kind, words in (("instance", "instances"), ("player", "players")):
        pairs = rows.select(kind, f"{kind}_params").unique(maintain_order=True).iter_rows()
        facts.append((words, "; ".join(described(name, json.loads(text)) for name, text in pairs)))
    for name in ("aftereffect", "numpy", "numba", "python"):
        if name in times.columns:
            facts.append((name, ", ".join(sorted({str(value) for value in times[name]}))))
    facts.append(("made again by", f"aftereffect study run {study.name}{' --quick' if study.quick else ''}"))
    page.facts(facts)
    page.text(
        "Runs differ in the player's randomness; losses are drawn before play begins, and all players of a size meet "
        "the same ones. The same study gives the same rows on any machine and any number of workers."
    )


def described(name: str, settings: Mapping[str, Any]) -> str:
    """Return a name and its settings as a study file has them.

    >>> described("split", {"gap": 0.2})
    'split (gap 0.2)'
    """
    inner = ", ".join(f"{key} {value}" for key, value in settings.items())
    return re.sub(r" \(\)$", "", f"{name} ({inner})")
