"""The price of not having labels, by hand."""

import math

import polars as pl
import pytest

from aftereffect.studies import views
from aftereffect.studies.page import Page
from aftereffect.studies.pricing import compared, price


def worst() -> pl.DataFrame:
    """Two with labels, of whom one assumes a law, and two without, of whom one does."""
    regrets = {"delayed_exp3": 10.0, "delayed_ucb1": 2.0, "clw_2018": 40.0, "ars_ucb": 20.0}
    sizes = {"n_arms": 4, "max_delay": 5, "horizon": 9, "round": 9}
    rest = {"cell": "c", "player_params": "{}", "instance": "split", "instance_params": "{}", "measure": "regret"}
    rest |= {"uniform_regret": 60.0, "standard_error": 1.0, "seed": 0}
    return pl.DataFrame([{"player": name, "regret": regret} | sizes | rest for name, regret in regrets.items()])


def test_the_price_is_against_the_best_labelled_player_that_assumes_no_law() -> None:
    found = compared(views.readable(worst()))
    assert found["who"].to_list() == ["ARS-UCB", "CLW 2018"]
    assert found["price"].to_list() == [2.0, 4.0]
    assert set(found["teller"]) == {"delayed Exp3"}
    # (5+1)·4/(5+4) under the root.
    assert found["expected"].to_list() == pytest.approx([math.sqrt(24 / 9)] * 2)


def test_the_sentence_is_about_players_that_assume_no_law() -> None:
    page = Page("t")
    (note,) = price(page, worst(), lambda drawing: drawing)
    assert note.startswith("The price of not having labels, at K = 4, d = 5, T = 9 and at worst over the instances:")
    assert note.endswith("CLW 2018 has 4.0 times the regret of delayed Exp3; the rates say 1.6.")
    assert "theory, √((d+1)K/(d+K))" in page.render()
