"""From a study's rows to one page: question, findings, figures, tables, and origin.

The study's [report] table selects the sections:

    figures = ["curves", "ratios", "module:function"]               in this order
    against = ["gap_factor", "max_delay", "player.max_delay"]       final regret against these settings
    reading = "..."                                                 an introduction for the reader

All sentences about results are computed from the rows; `reading` explains the page and contains no results.
"""

import json
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import polars as pl

from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument
from aftereffect.studies.instances import own
from aftereffect.studies.report import curves, frames, ratios
from aftereffect.studies.report.page import Page, large
from aftereffect.studies.results import ORIGIN, Results
from aftereffect.studies.study import Study

Section = Callable[[Page, pl.DataFrame], list[str]]

SECTIONS: Mapping[str, Section] = {"curves": curves.curves, "ratios": ratios.ratios}


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
    cells = f"{finals.height:,} of {len(study.cells()):,} cells"
    page.findings = [f"{cells} are finished: {rounds} simulated rounds."]
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
    against = [(f"against {name}", partial(curves.against, name=name)) for name in given["against"]]
    return [*((item, _section(item)) for item in given["figures"]), *against]


def _section(name: str) -> Section:
    """Return a section: one of the library's, or the user's own at an import path, module:function."""
    if ":" in name:
        found: Section = own("report.figures", name)[0]
        return found
    return SECTIONS[checks.choice("report.figures", name, tuple(SECTIONS))]


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
    for name, words in (columns | {"max_delay": "longest delay, d", "horizon": "rounds, T"}).items():
        facts.append((words, ", ".join(f"{value:,}" for value in sorted(set(rows[name].to_list())))))
    for kind in ("instance", "player"):
        pairs = rows.select(kind, f"{kind}_params").unique(maintain_order=True).iter_rows()
        shown = [(name, ", ".join(f"{k} {v}" for k, v in json.loads(text).items())) for name, text in pairs]
        facts.append((f"{kind}s", "; ".join(f"{name} ({settings})" if settings else name for name, settings in shown)))
    for name in ORIGIN:
        facts.append((name, ", ".join(sorted(set(times[name].drop_nulls()))) or "not recorded"))
    recorded = set(rows["cell"]) <= set(times["cell"])
    facts.append(("run time", f"{times['seconds'].sum():,.0f} seconds, cells added up" if recorded else "not recorded"))
    command = f"aftereffect study run {shlex.quote(study.source or '')}{' --quick' * study.quick}"
    facts.append(("made again by", command if study.source else "the program that defines the study"))
    page.facts(facts)
    page.text(
        "Runs differ in the player's randomness and, if there are several, in the draw of the losses; standard errors "
        "take them as independent. All players of a size play the same losses. The rows are the same on any machine."
    )
