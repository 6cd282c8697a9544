"""The example tables: the same from each library, and made as their page says."""

from datetime import date

import numpy as np
import polars as pl
import pytest
from tests.refusals import refuses

import aftereffect as ae
from aftereffect.core.examples import EXAMPLES

# The effect of a play in the table `stores`, by lag in days.
SHAPES = {
    "none": [0.0] * 8,
    "email": [15.0, 7.5, 3.75, 1.875, 0.9375, 0.46875, 0.234375, 0.234375],
    "letter": [2.0, 6.0, 12.0, 16.0, 12.0, 6.0, 4.0, 2.0],
    "visit": [9.0, 9.0, 9.0, 6.0, 6.0, 3.0, 2.0, 1.0],
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_library_has_the_same_rows(name: str) -> None:
    tables = [ae.load_example(name, library) for library in ("pandas", "polars", "pyarrow")]
    rows = pl.DataFrame(tables[1]).rows()
    assert pl.from_arrow(tables[2]).rows() == rows
    assert list(tables[0].columns) == tables[1].columns
    assert len(tables[0]) == len(rows)


def test_the_estimate_on_the_stores_covers_what_they_were_made_of() -> None:
    named = {"round_column": "date", "arm_column": "campaign", "total_column": "sales", "unit_column": "store"}
    found = ae.carryover.estimate(ae.load_example("stores"), max_lag=10, control="none", season=7, **named)
    for i, name in enumerate(found.names):
        truth = np.append(np.cumsum(SHAPES[name]), [sum(SHAPES[name])] * 3)
        assert (found.arrived.lower[i] - 1e-9 <= truth).all()
        assert (truth <= found.arrived.upper[i] + 1e-9).all()
    table = ae.load_example("stores", "polars")
    assert (table["date"][0], table["sales"].null_count(), table["store"].n_unique()) == (date(2025, 3, 3), 16, 12)
    assert {name: sum(shape) for name, shape in SHAPES.items()} == {"none": 0, "email": 30, "letter": 60, "visit": 45}


test_other_names_are_refused = refuses([
    (lambda: ae.load_example("shops"), r"name must be one of 'stores', 'mailings', .* but got 'shops'"),
    (lambda: ae.load_example("stores", "R"), "library must be one of 'pandas', 'polars', 'pyarrow', but got 'R'"),
])
