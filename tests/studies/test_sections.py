"""The sections on a wrong delay and on the price of anonymity: ratios and sentences by hand."""

import math
import re

import polars as pl
import price_of_anonymity as price
import pytest
import wrong_delay

from aftereffect.studies.report import frames
from aftereffect.studies.report.page import Page


def told() -> pl.DataFrame:
    """A wrapper that is told 8 beside one that is told the truth, at d = 4, 16 and 64, and uniform play."""
    regrets = {(4, 8): 30.0, (4, None): 10.0, (16, 8): 15.0, (16, None): 20.0, (64, 8): 90.0, (64, None): 45.0}
    found = [
        {
            "player": "CompositeLossWrapper",
            "player_params": '{"base":"exp3"}' if d_told is None else '{"base":"exp3","max_delay":8}',
            "max_delay": d,
            "regret": regret,
        }
        for (d, d_told), regret in regrets.items()
    ]
    uniform = {"player": "CompositeLossWrapper", "player_params": '{"base":"uniform"}', "max_delay": 4, "regret": 60.0}
    rest = {"cell": "c", "instance": "split", "instance_params": "{}", "n_arms": 2, "horizon": 9, "round": 9, "seed": 0}
    rest |= {"standard_error": 1.0, "uniform_regret": 60.0, "measure": "regret", "corollary_bound": None}
    return pl.DataFrame([row | rest for row in (*found, uniform)])


def test_ratios_to_the_player_told_the_truth() -> None:
    found = wrong_delay.compared(frames.readable(told()))
    assert found["max_delay"].to_list() == [4, 16, 64]
    assert found["ratio"].to_list() == pytest.approx([3.0, 0.75, 2.0])
    # Both standard errors are 1: a difference of -5 is 5/√2 of them.
    assert found["sure"].to_list() == pytest.approx([20 / 2**0.5, -5 / 2**0.5, 45 / 2**0.5])


def test_the_notes_say_what_a_wrong_delay_costs() -> None:
    page = Page("t")
    short, long = wrong_delay.wrong_delay(page, told())
    better = "its regret is significantly lower than with the true delay in 1 and significantly higher in 1"
    assert f"in 2 cells, {better}" in short
    assert "2.0 times as high, on random splits with d = 64 and told 8, which is 150% of uniform play's" in short
    assert "its regret is 3.0 to 3.0 times that with the true delay" in long
    # A line for each longest delay, a column for the d that was told.
    lines = re.findall(r"<tr>(.*?)</tr>", page.render(), re.DOTALL)
    cells = [re.findall(r">([^<>\s][^<>]*)<", line) for line in lines]
    assert [line[-2:] for line in cells] == [["longest delay", "8"], ["4", "3.00"], ["16", "0.75"], ["64", "2.00"]]


def priced() -> pl.DataFrame:
    """Two with labels, of whom one assumes a law, and two without, of whom one does."""
    regrets = {"DelayedExp3": 10.0, "DelayedUCB1": 2.0, "CLW2018": 40.0, "ARSUCB": 20.0}
    sizes = {"n_arms": 4, "max_delay": 5, "horizon": 9, "round": 9}
    rest = {"cell": "c", "player_params": "{}", "instance": "split", "instance_params": "{}", "measure": "regret"}
    rest |= {"uniform_regret": 60.0, "standard_error": 1.0, "seed": 0, "corollary_bound": None}
    return pl.DataFrame([{"player": name, "regret": regret} | sizes | rest for name, regret in regrets.items()])


def test_the_price_is_against_the_best_labelled_player_that_assumes_no_law() -> None:
    found = price.compared(frames.readable(priced()))
    assert found["who"].to_list() == ["ARS-UCB", "CLW 2018"]
    assert found["price"].to_list() == [2.0, 4.0]
    assert set(found["best_who"]) == {"delayed Exp3"}
    # (5+1)·4/(5+4) under the root.
    assert found["expected"].to_list() == pytest.approx([math.sqrt(24 / 9)] * 2)


def test_the_sentence_is_about_players_that_assume_no_law() -> None:
    page = Page("t")
    (note,) = price.price(page, priced())
    assert note.startswith("The price of not having labels, at K = 4, d = 5, T = 9 and at worst over the instances:")
    assert note.endswith("CLW 2018 has 4.0 times the regret of delayed Exp3; the rates predict 1.6.")
    assert "theory, √((d+1)K/(d+K))" in page.render()
