"""Tables of pandas, polars and Arrow: the same arrays and results from each, and what is refused."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.refusals import refuses

import aftereffect as ae
from aftereffect.core.errors import AftereffectWarning, InvalidArgument
from aftereffect.core.frames import round_table
from aftereffect.studies import backtest

LIBRARIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "pandas with Arrow types": lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "Arrow": pa.table,
}
DAY = date(2024, 2, 27)
COLUMNS = {
    "round": [DAY + timedelta(days=n) for n in (0, 0, 1, 1, 3, 3)],
    "unit": ["south", "north"] * 3,
    "arm": ["b", "a", None, "a", "c", "b"],
    "total": [1.0, 2.0, 3.0, None, 5.0, 6.5],
}


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Callable[[dict[str, Any]], Any]:
    return LIBRARIES[request.param]


def test_arrays_are_those_of_the_rows(library: Callable[[dict[str, Any]], Any]) -> None:
    found = round_table(library(COLUMNS))
    assert found.rounds == (date(2024, 2, 27), date(2024, 2, 28), None, date(2024, 3, 1))
    assert (found.units, found.arms, found.guessed) == (("north", "south"), ("a", "b", "c"), ())
    assert found.played.tolist() == [[0, 1], [0, -1], [-1, -1], [1, 2]]
    expected = [[2.0, 1.0], [np.nan, 3.0], [np.nan, np.nan], [6.5, 5.0]]
    np.testing.assert_array_equal(found.totals, expected)
    assert repr(found).startswith("RoundTable(4 rounds from 2024-02-27 to 2024-03-01, 2 units, arms=('a', 'b', 'c')")


@pytest.mark.parametrize(("labels", "expected"), [
    ([3, 4, 6], (3, 4, None, 6)),
    ([0, 7, 21], (0, 7, None, 21)),
    (["2024-01-31", "2024-02-01", "2024-02-03"], (date(2024, 1, 31), date(2024, 2, 1), None, date(2024, 2, 3))),
    ([date(2024, 1, 1), date(2024, 2, 1), date(2024, 4, 1)],
     (date(2024, 1, 1), date(2024, 2, 1), None, date(2024, 4, 1))),
    ([date(2024, 1, 31), date(2024, 2, 29), date(2024, 4, 30)],
     (date(2024, 1, 31), date(2024, 2, 29), None, date(2024, 4, 30))),
    (["2024-01", "2024-02", "2024-04"], (date(2024, 1, 1), date(2024, 2, 1), None, date(2024, 4, 1))),
    ([datetime(2024, 1, 1, 0), datetime(2024, 1, 8), datetime(2024, 1, 22)],
     (date(2024, 1, 1), date(2024, 1, 8), None, date(2024, 1, 22))),
    ([datetime(2024, 1, 1, 6), datetime(2024, 1, 1, 12), datetime(2024, 1, 2, 0, 0, 1)], "evenly spaced"),
])
def test_rounds_are_evenly_spaced_and_gaps_stay(
    library: Callable[[dict[str, Any]], Any], labels: list[Any], expected: Any
) -> None:
    columns = {"round": labels, "arm": ["a", "b", "a"], "total": [1.0, 2.0, 3.0]}
    if isinstance(expected, str):
        with pytest.raises(InvalidArgument, match=expected):
            round_table(library(columns))
        return
    found = round_table(library(columns))
    assert found.rounds == expected
    assert found.played[:, 0].tolist() == [0, 1, -1, 0]


def test_hours_are_rounds_too(library: Callable[[dict[str, Any]], Any]) -> None:
    hours = [datetime(2024, 1, 1, 22), datetime(2024, 1, 1, 23), datetime(2024, 1, 2, 0), datetime(2024, 1, 2, 2)]
    for labels in (hours, [hour.isoformat() for hour in hours]):
        found = round_table(library({"round": labels, "arm": [2, 10, 2, 2], "total": [1, 2, 3, 4]}))
        assert found.rounds == (*hours[:3], None, hours[3])
        assert (found.arms, found.played[:, 0].tolist()) == (("2", "10"), [0, 1, 0, -1, 0])


def test_hours_are_evenly_spaced_where_clocks_change() -> None:
    hours = pd.date_range("2024-03-30 20:00", periods=9, freq="h", tz="Europe/Berlin")
    columns = {"round": hours, "arm": list("ababababa"), "total": range(9)}
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        assert round_table(frame).played[:, 0].tolist() == [0, 1, 0, 1, 0, 1, 0, 1, 0]


def test_tables_as_people_have_them_in_pandas() -> None:
    """A named index, months as periods, and numbers among objects, as a database gives them."""
    months = pd.period_range("2024-01", periods=3, freq="M")
    table = pd.DataFrame({"arm": list("aba"), "total": pd.Series([Decimal("1.5"), None, 2], dtype=object)})
    found = round_table(table.set_index(months.rename("month")), round_column="month")
    assert found.rounds == (date(2024, 1, 1), date(2024, 2, 1), date(2024, 3, 1))
    np.testing.assert_array_equal(found.totals[:, 0], [1.5, np.nan, 2.0])
    unnamed = table.assign(round=[1, 2, 3]).rename(columns={"round": 0, "arm": 1, "total": 2})
    assert round_table(unnamed, round_column=0, arm_column=1, total_column=2).rounds == (1, 2, 3)
    with pytest.raises(InvalidArgument, match="frame must not have two columns of one name, but has 'total' 2 times"):
        round_table(pd.concat([table, table[["total"]]], axis=1))


def test_columns_are_named_or_guessed_and_guesses_are_said(library: Callable[[dict[str, Any]], Any]) -> None:
    renamed = dict(zip(("Date", "store", "campaign", "sales"), COLUMNS.values(), strict=True))
    with pytest.warns(AftereffectWarning, match="guessed by their names: round_column='Date', arm_column='campaign'"):
        guessed = round_table(library(renamed))
    named = round_table(
        library(renamed), round_column="Date", arm_column="campaign", total_column="sales", unit_column="store"
    )
    np.testing.assert_array_equal(guessed.played, named.played)
    assert guessed.guessed == ("round", "arm", "total", "unit")
    assert named.guessed == ()
    ordered = round_table(library(COLUMNS), arms=["c", "b", "a", "d"])
    assert ordered.played.tolist() == [[2, 1], [2, -1], [-1, -1], [1, 0]]


@pytest.mark.parametrize(("change", "more", "message"), [
    ({}, {"arm_column": "kind"}, "arm_column must be a column of the table, but got 'kind', and the columns are"),
    ({"arm": None, "campaign": "arm", "group": "arm"}, {},
     "arm_column must be given if several columns may be meant, but got 'campaign' and 'group'"),
    ({"total": None}, {}, "total_column must be given if no column has a usual name for it, but got columns"),
    ({}, {"arm_column": "unit", "unit_column": "unit"}, "arm_column and unit_column must be different columns"),
    ({}, {"arms": ["a", "b"]}, "arms must have every name in column 'arm', but 'c' is missing"),
    ({"unit": None}, {}, r"column 'round' must not repeat a round, but row 1 is 2024-02-27 again; .* their column"),
    ({"round": [DAY, DAY, DAY + timedelta(days=2), DAY, DAY + timedelta(days=1), DAY]}, {},
     "column 'round' must not repeat a round, but row 3 of unit 'north' is 2024-02-27 again"),
    ({"round": [5, 1, 4, 2, 6, 3]}, {}, "'round' must not go backwards, but row 2 of unit 'south' is 4, after 5"),
    ({"round": [1, 1, 2, 2, 3, None]}, {}, "column 'round' must be known in every row, but row 5 is missing"),
    ({}, {"arms": ["a", "b", "c", "a"]}, "arms must differ from each other, but got"),
    ({"round": ["1", "one", "2", "2", "3", "3"]}, {}, "must hold whole numbers, dates such as 2024-01-31 or"),
    ({"total": ["1"] * 6}, {}, "column 'total' must hold numbers, but is of type String"),
    ({"total": [1.0, 2.0, float("inf"), 1.0, 2.0, 3.0]}, {}, "'total' must hold finite numbers, but row 2 is inf"),
])
def test_bad_tables_are_refused(
    library: Callable[[dict[str, Any]], Any], change: dict[str, Any], more: dict[str, Any], message: str
) -> None:
    columns: dict[str, Any] = dict(COLUMNS)
    for name, values in change.items():
        if values is None:
            columns.pop(name)
        else:
            columns[name] = COLUMNS[values] if isinstance(values, str) else values
    with pytest.raises(InvalidArgument, match=message):
        round_table(library(columns), **more)


test_what_is_no_table_is_refused = refuses([
    (lambda: ae.read_history(None), "path must be that of a file, or a table, but got None"),
    (lambda: round_table({"round": [1]}), "must be a table of pandas, polars or Arrow, but got <class 'dict'>"),
    (lambda: ae.carryover.estimate(np.zeros(9), max_lag=1), "frame must be a table"),
])


def pilot_table() -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Return arms and totals of 2 units, and the same as columns."""
    rng = np.random.default_rng(1)
    arms = rng.integers(0, 3, size=(150, 2))
    totals = rng.normal(size=(150, 2)) + np.array([0.0, 1.0, 4.0])[arms]
    totals[7, 0] = np.nan
    names = np.array(["email", "letter", "visit"])
    rows = [(DAY + timedelta(days=t), f"shop {u}", names[arms[t, u]], totals[t, u]) for t in range(150) for u in (0, 1)]
    day, shop, campaign, sales = (list(column) for column in zip(*rows, strict=True))
    told = [None if np.isnan(value) else float(value) for value in sales]
    return arms, totals, {"day": day, "shop": shop, "campaign": list(map(str, campaign)), "sales": told}


def test_effects_are_those_of_the_arrays_with_names(library: Callable[[dict[str, Any]], Any]) -> None:
    arms, totals, columns = pilot_table()
    plain = ae.carryover.estimate(arms, totals, max_lag=2, control=1)
    named = {"round_column": "day", "arm_column": "campaign", "total_column": "sales", "unit_column": "shop"}
    found = ae.carryover.estimate(library(columns), max_lag=2, control="letter", **named)
    np.testing.assert_array_equal(found.effects.lower, plain.effects.lower)
    assert (plain.relative_to, found.relative_to) == ("arm 1", "arm letter")
    assert found.to_frame()["arm"].unique().tolist() == ["email", "letter", "visit"]
    with pytest.raises(InvalidArgument, match="control must be one of 'email', 'letter', 'visit', but got 'none'"):
        ae.carryover.estimate(library(columns), max_lag=2, control="none", **named)


def test_a_history_is_that_of_the_file(library: Callable[[dict[str, Any]], Any], tmp_path: Any) -> None:
    columns = {
        "round": [DAY, DAY, DAY + timedelta(days=1), DAY + timedelta(days=1)],
        "arm": ["letter", "email"] * 2,
        "lag0": [120.5, 310.0, 100.0, 0.0],
        "lag1": [340.0, 40.0, 300.0, 20.25],
    }
    path = tmp_path / "plays.csv"
    pl.DataFrame(columns).write_csv(path)
    from_file, from_table = ae.read_history(path), ae.read_history(library(columns))
    assert from_table.arms == from_file.arms
    for part in ("rounds", "played", "effects"):
        np.testing.assert_array_equal(getattr(from_table, part), getattr(from_file, part))
    scores = [backtest.play(given, runs=2).scores() for given in (from_file, library(columns))]
    assert scores[0] == scores[1]
    with pytest.raises(InvalidArgument, match="the table, line 3, column 'lag0': must be a finite number, but got ''"):
        ae.read_history(library(columns | {"lag0": [1.0, None, 2.0, 3.0]}))
