"""How regret grows: leading terms by hand, exponents from one size to the next, and what the page says of them."""

import math

import numpy as np
import polars as pl
import pytest

from aftereffect.studies import growth
from aftereffect.studies.fits import local_exponents
from aftereffect.studies.leading import leading_term, of_rows
from aftereffect.studies.page import Page

SIZES = [(K, d, T) for K in (4, 8, 16) for d in (4, 8, 16) for T in (10_000, 40_000)]


def worst(regret: "np.ndarray", player: str = "wrapper", settings: str = '{"base":"exp3"}') -> pl.DataFrame:
    """Return rows of one player's worst regrets at all sizes."""
    K, d, T = zip(*SIZES, strict=True)
    sizes = {"n_arms": K, "max_delay": d, "horizon": T, "round": T, "regret": regret.tolist()}
    words = {"player": player, "player_params": settings, "who": "wrapper, Exp3", "where": "x", "cell": "c"}
    rest = {"standard_error": 0.0, "uniform_regret": 1e12, "measure": "regret"}
    rest |= {"instance": "fixed", "instance_params": "{}"}
    return pl.DataFrame(sizes).with_columns(**{name: pl.lit(value) for name, value in (words | rest).items()})


def test_leading_terms_by_hand() -> None:
    # d = 1: β = 1/3, p = 4/27; windows hold 2 of 3 parts. η = √(⌊27/3⌋/2) = 3/√2; penalty 2η(2 − 1) = 6/√2.
    expected = 1.5 / (4 / 27) * 6 / math.sqrt(2.0)
    assert leading_term("tsallis", 4, 1, 27) == pytest.approx(expected, rel=1e-12)
    # Exp3 at d = 0: η = √(2 ln K/(KT)), so ln K/η = √(KT ln K/2).
    assert leading_term("exp3", 4, 0, 50) == pytest.approx(math.sqrt(100 * math.log(4)), rel=1e-12)
    # 2·√100·(3 − 1) + √(2·2·100·ln 9).
    assert leading_term("labelled", 9, 2, 100) == pytest.approx(40 + math.sqrt(400 * math.log(9)), rel=1e-12)


def test_leading_terms_have_the_orders_of_section_one_at_large_sizes() -> None:
    for whose, factor in (("tsallis", 1.0), ("exp3", math.log(4e6) / math.log(1e6))):
        many = [leading_term(whose, K, 1000, 10**9) for K in (10**6, 4 * 10**6)]
        assert many[1] / many[0] == pytest.approx(2.0 * math.sqrt(factor), rel=2e-3)
        late = [leading_term(whose, 1000, d, 10**9) for d in (10**4, 4 * 10**4)]
        assert late[1] / late[0] == pytest.approx(2.0, rel=1e-3)


def test_rows_of_players_without_a_known_term_have_none() -> None:
    assert of_rows(worst(np.ones(len(SIZES)), "ars_ucb", "{}")) is None
    both = pl.concat([worst(np.ones(len(SIZES))), worst(np.ones(len(SIZES)), settings="{}")])
    assert of_rows(both) is None


def test_local_exponents_carry_their_errors() -> None:
    # Slopes between K = 2 and 8 at two places: ln 4/ln 4 and ln 2/ln 4, mean 3/4; relative errors of 0.1 at one point.
    found = local_exponents({"K": [2, 8, 2, 8], "T": [1, 1, 9, 9]}, "K", [1.0, 4.0, 3.0, 6.0], [0.1, 0.0, 0.0, 0.0])
    assert len(found) == 1
    assert found[0].exponent.value == pytest.approx(0.75, rel=1e-12)
    assert found[0].exponent.standard_error == pytest.approx(0.1 / (2 * math.log(4)), rel=1e-12)


def test_regret_that_is_a_multiple_of_its_term_is_found_to_be() -> None:
    values = np.array([leading_term("exp3", *size) for size in SIZES])
    one = growth.growth(worst(0.7 * values))
    assert one is not None
    assert one.term is not None
    assert one.term.ratio == pytest.approx(0.7, rel=1e-9)
    assert one.term.scatter == pytest.approx(0.0, abs=1e-9)
    for name, power in one.fit.exponents.items():
        assert power.value == pytest.approx(one.term.fit.exponents[name].value, rel=1e-9)
    # ln K and blocks that lengthen: more than the square root at these sizes.
    assert one.fit.exponents["K"].value > 0.6
    assert one.fit.exponents["d+1"].value > 0.55
    assert one.fit.exponents["T"].value == pytest.approx(0.5, abs=1e-3)


def test_the_section_says_so() -> None:
    values = np.array([leading_term("exp3", *size) for size in SIZES])
    page = Page("t")
    notes = growth.scaling(page, worst(0.7 * values), lambda drawing: drawing)
    assert len(notes) == 1
    assert "regret is 0.70 times this term, with a typical deviation of 0.0%" in notes[0]
    assert "Why exponents are not 1/2" in page.render()


def test_no_delay_is_fitted_by_itself() -> None:
    rows = worst(np.arange(1.0, len(SIZES) + 1.0))
    at_once = rows.with_columns(max_delay=pl.lit(0, dtype=pl.Int64)).unique(["n_arms", "horizon"])
    assert list(growth.fitted(pl.concat([rows, at_once]))) == ["wrapper, Exp3, d > 0", "wrapper, Exp3, d = 0"]
