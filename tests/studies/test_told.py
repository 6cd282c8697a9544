"""Players told a wrong delay: ratios and notes by hand."""

import polars as pl
import pytest

from aftereffect.studies.page import Page
from aftereffect.studies.told import compared, told


def rows() -> pl.DataFrame:
    """A wrapper that reckons with 8 beside one that knows, at d = 4, 16 and 64, and somebody else."""
    regrets = {(4, 8): 30.0, (4, None): 10.0, (16, 8): 15.0, (16, None): 20.0, (64, 8): 90.0, (64, None): 45.0}
    found = [
        {
            "player": "wrapper",
            "player_params": '{"base":"exp3"}' if reckoned is None else '{"base":"exp3","max_delay":8}',
            "max_delay": d,
            "regret": regret,
        }
        for (d, reckoned), regret in regrets.items()
    ]
    found.append({"player": "uniform", "player_params": "{}", "max_delay": 4, "regret": 60.0})
    rest = {"cell": "c", "instance": "split", "instance_params": "{}", "n_arms": 2, "horizon": 9, "round": 9, "seed": 0}
    rest |= {"standard_error": 1.0, "uniform_regret": 60.0, "measure": "regret"}
    return pl.DataFrame([row | rest for row in found])


def test_ratios_by_hand() -> None:
    given = rows().with_columns(who=pl.col("player"), where=pl.col("instance"))
    found = compared(given)
    assert found["max_delay"].to_list() == [4, 16, 64]
    assert found["ratio"].to_list() == pytest.approx([3.0, 0.75, 2.0])
    # Both standard errors are 1: a difference of -5 is 5/√2 of them.
    assert found["sure"].to_list() == pytest.approx([20 / 2**0.5, -5 / 2**0.5, 45 / 2**0.5])


def test_the_notes_say_what_hurts() -> None:
    page = Page("t")
    short, long = told(page, rows(), lambda drawing: drawing)
    assert "of 2 cells, it does surely better than who knows in 1 and surely worse in 1" in short
    assert "2.0 times as high, on random splits with d = 64, which is 150% of uniform play's" in short
    assert "its regret is 3.0 to 3.0 times that of who knows" in long
    assert "d\u00a0=\u00a016" in page.render()
