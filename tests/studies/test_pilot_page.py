"""The page of the study of pilots says what its rows say, and its rows are those of the cases as they are now."""

import importlib.util
import sys
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def study():
    """The benchmark as a module; it imports those beside it."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        spec = importlib.util.spec_from_file_location("pilot_study", ROOT / "benchmarks" / "pilot.py")
        found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
        yield found
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def test_the_page_is_made_from_the_rows_of_all_cases(study):
    rows = pl.read_csv(study.ROWS)
    assert study.page(rows) == (study.HOME / "pilot.md").read_text(encoding="utf-8")
    pilots = [name for name, case in study.carryover.CASES.items() if case.player is None]
    assert rows["case"].unique(maintain_order=True).to_list() == [*pilots, *study.watch.CASES]
    assert rows["runs"].n_unique() == 1


def test_a_row_is_what_a_repetition_gives(study, monkeypatch):
    monkeypatch.setattr(study.carryover, "CASES", {"2 arms": study.carryover.CASES["2 arms"]})
    monkeypatch.setattr(study.watch, "CASES", {"late": study.watch.Case(12, 3, 12)})
    rows = study.rows(1, map)
    means = dict(rows.select("quantity", "mean").iter_rows())
    assert set(means) == {*study.SHOWN, "alarm"}
    assert means["alarm"] == 1.0
    assert 0.1 < means["width"] < 0.2
