"""The regret of ODAAF and its variants over that of QPM-D, beside the ratios published by Pike-Burke et al. (2018)."""

import json
import math
from typing import Any

import polars as pl

from aftereffect.studies.report import frames
from aftereffect.studies.report.page import Page, number

PUBLISHED = {
    ("uniform", 0, 50, 50): ("Unif(0,50)", 16.6, 8.5),
    ("uniform", 0, 100, 100): ("Unif(0,100)", 24.6, 9.8),
    ("exponential", 50.0, 75): ("Exp(50), d=75", 25.0, 10.0),
    ("exponential", 50.0, 250): ("Exp(50), d=250", 25.2, 10.1),
    ("exponential", 50.0, 1000): ("Exp(50)", 25.0, 44.7),
    ("poisson", 50.0, 150): ("Pois(50)", 25.0, 15.0),
    ("half_normal", 50.0, 25.0, 150): ("N₊(50,25)", 24.6, 10.8),
    ("half_normal", 50.0, 250.0, 250): ("N₊(50,250)", 24.3, 18.2),
}
"""By law and greatest delay: its name, and the ratios of ODAAF and of its variant in Figure 3 of Pike-Burke et al."""
ROUNDS = 250_000
"""The horizon of the published ratios."""


def figure3(page: Page, rows: pl.DataFrame) -> list[str]:
    """Tabulate the regret of ODAAF and of its variants over that of QPM-D, beside the published ratios."""
    finals = frames.finals(frames.readable(rows.filter(measure="regret", instance="anonymous")))
    table, apart = [], []
    for (params, d), here in finals.group_by("instance_params", "max_delay", maintain_order=True):
        place = PUBLISHED.get((*json.loads(str(params)).get("delay_law", ()), d))
        base = here.filter(player="QPMD")
        if place is None or base.is_empty():
            continue
        name, *published = place
        line = [name, number(base["pseudo_regret"][0])]
        both = [here.filter(player="ODAAF"), here.filter(pl.col("player").is_in(["ODAAFB", "ODAAFV"]))]
        for one, known in zip(both, published, strict=True):
            found, error = _quotient(one.row(0, named=True), base.row(0, named=True))
            line += [one["who"][0], f"{found:.1f} ± {error:.1f}", f"{known:.1f}"]
            apart += [abs(found / known - 1.0)] * (one["horizon"][0] == ROUNDS)
        table.append(line)
    frames.some(table, "QPM-D, ODAAF and a variant with a published law of delays")
    page.section("Beside the published ratios")
    page.table(
        ["delays", "QPM-D's regret", *["player", "regret / QPM-D's", "published"] * 2],
        table,
        words=(2, 5),
        caption=f"Ratios of mean regrets, with the standard error of the ratio as if the two means were independent. "
        f"The published ones are at {ROUNDS:,} rounds.",
    )
    near, most = sum(each <= 0.05 for each in apart), max(apart, default=0.0)
    note = f"{near} of {len(apart)} ratios to QPM-D are within 5% of the published ones; the largest difference is "
    return [f"{note}{most:.0%}."] if apart else []


def _quotient(above: dict[str, Any], below: dict[str, Any]) -> tuple[float, float]:
    """Return the ratio of two mean regrets and its standard error, from the relative errors of both."""
    found = above["pseudo_regret"] / below["pseudo_regret"]
    errors = [(one["standard_error"] or 0.0) / one["pseudo_regret"] for one in (above, below)]
    return found, found * math.hypot(*errors)
