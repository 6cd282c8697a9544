"""The page `advice`: its figures are those of its rows."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

HOME = Path(__file__).parents[2] / "docs" / "studies"
PAGE = (HOME / "advice.md").read_text(encoding="utf-8")
ROWS = json.loads((HOME / "advice" / "rows.json").read_text(encoding="utf-8"))


def cells() -> dict[str, dict[str, Any]]:
    """Return the rows of the 60 cells by cell and adviser."""
    found: dict[str, dict[str, Any]] = {}
    for row in (row for row in ROWS if "told" not in row):
        place = str([row[key] for key in ("instance", "settings", "n_arms", "max_delay", "horizon")])
        found.setdefault(place, {})[row["adviser"]] = row
    return found


def geometric_mean(values: list[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


@pytest.mark.parametrize("adviser", ["lag model", "useless", "malicious"])
def test_ratios_are_those_of_the_rows(adviser: str) -> None:
    ratios, held, sure = [], 0, []
    for by in cells().values():
        own, alone = by[adviser], by["no adviser"]
        a, b = (max(row["regret"], row["least"]) for row in (own, alone))
        ratios.append(a / b)
        held += max(own["regret"], alone["regret"]) <= own["least"]
        if a - b > 2.0 * math.hypot(own["standard_error"], alone["standard_error"]):
            sure.append(a / b)
    free = math.exp(math.fsum(map(math.log, ratios)) / (60 - held))
    (line,) = re.findall(rf"^\| {adviser} \|.*\|$", PAGE, re.MULTILINE)
    entries = [entry.strip(" *") for entry in line.split("|")[2:-1]]
    assert entries[:3] == [f"{geometric_mean(ratios):.2f}", str(held), f"{free:.2f}"]
    none = f"in none (largest ratio {max(ratios):.2f})"
    assert entries[3] == (f"in {len(sure)}, at most {max(sure):.1f}" if sure else none)


def test_sixty_cells_of_forty_runs_and_the_least_ratio() -> None:
    found = cells()
    assert len(found) == 60
    assert {row["runs"] for by in found.values() for row in by.values()} == {40}
    least = [by["useless"]["least"] / max(by["no adviser"]["regret"], by["useless"]["least"]) for by in found.values()]
    assert f"cannot be below {geometric_mean(least):.2f}" in PAGE


def test_the_table_by_d_is_that_of_the_rows() -> None:
    rows = [row for row in ROWS if "told" in row]
    lines = PAGE.split("## All cells")[0].splitlines()
    for one in (row for row in rows if row["adviser"] == "lag model"):
        same = [row for row in rows if row["settings"] == one["settings"] and row["told"] == one["told"]]
        (alone,) = (row for row in same if row["adviser"] == "no adviser")
        entry = f"{alone['regret']:,.0f} → {one['regret']:,.0f} ± {one['standard_error']:,.0f}"
        assert sum(entry in line for line in lines) == 1
