"""How regret grows: exponents recovered from laws that are known, leading terms by hand, and what the page says."""

import math

import numpy as np
import polars as pl
import pytest
import scaling as growth
from scaling import agreements, leading_term, local_slopes, section_one
from scipy import stats

import aftereffect as ae
from aftereffect import theory
from aftereffect.core.errors import InvalidArgument
from aftereffect.studies.measure import ROWS
from aftereffect.studies.report.page import Page
from aftereffect.studies.report.power_laws import power_law

SIZES = [(K, d, T) for K in (4, 8, 16) for d in (4, 8, 16) for T in (10_000, 40_000)]


def grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    K, d, T = np.meshgrid([2.0, 4.0, 8.0], [0.0, 3.0, 15.0], [1e3, 1e4, 1e5])
    return K.ravel(), d.ravel(), T.ravel()


def test_exact_law_is_recovered() -> None:
    K, d, T = grid()
    found = power_law({"d+1": d + 1, "K": K, "T": T}, 3.0 * (d + 1.0) ** 0.5 * K**0.25 * T ** (2 / 3))
    assert [power.value for power in found.values()] == pytest.approx([0.5, 0.25, 2 / 3], rel=1e-9)
    assert all(power.standard_error < 1e-9 for power in found.values())


def test_one_variable_agrees_with_scipy() -> None:
    random = np.random.default_rng(5)
    x = np.array([1.0, 2.0, 5.0, 9.0, 40.0, 41.0])
    y = 2.0 * x**0.7 * np.exp(random.normal(0.0, 0.1, 6))
    found = power_law({"x": x}, y)
    other = stats.linregress(np.log(x), np.log(y))
    assert found["x"].value == pytest.approx(other.slope, rel=1e-10)
    assert found["x"].standard_error == pytest.approx(other.stderr, rel=1e-10)


def test_noisy_law_lies_within_its_standard_errors() -> None:
    # Three t values with 23 degrees of freedom beyond 6: a false alarm in about 1 of 80,000 seeds.
    K, d, T = grid()
    noise = np.random.default_rng(7).normal(0.0, 0.2, len(K))
    found = power_law({"d+1": d + 1, "K": K, "T": T}, np.sqrt((d + 1.0) * K * T) * np.exp(noise))
    for power in found.values():
        assert abs(power.value - 0.5) < 6.0 * power.standard_error
    # In a product grid the standard error is the residuals' deviation over √Σ(ln x − mean)²: T is ln 10 apart, K ln 2.
    wider = math.log(10.0) / math.log(2.0)
    assert found["K"].standard_error == pytest.approx(found["T"].standard_error * wider, rel=1e-9)


def test_constant_variables_are_left_out() -> None:
    found = power_law({"K": np.full(3, 3.0), "T": np.array([1.0, 10.0, 100.0])}, np.array([1.0, 10.0, 100.0]))
    assert list(found) == ["T"]


def test_no_point_left_over_means_no_standard_error() -> None:
    found = power_law({"T": np.array([1.0, 10.0])}, np.array([2.0, 20.0]))
    assert found["T"].value == pytest.approx(1.0)
    assert math.isnan(found["T"].standard_error)


def test_points_that_do_not_determine_exponents_are_not_fitted() -> None:
    doubled = np.array([1.0, 2.0, 4.0])
    assert power_law({"T": doubled, "K": 2.0 * doubled}, doubled) is None
    assert power_law({"T": np.ones(3)}, doubled) is None


def test_the_true_rate_agrees_best() -> None:
    rates = section_one(*grid())
    for name, rate in rates.items():
        best = agreements(rates, 1.7 * rate)
        assert best[0].rate == name
        assert best[0].constant == pytest.approx(1.7)
        assert best[0].percent == pytest.approx(0.0, abs=1e-6)
        assert not best[1].ties(best[0])


def test_scatter_by_hand() -> None:
    # ln ratios are 0 and ln 4: mean ln 2, standard deviation √2 ln 2.
    [found] = agreements({"r": np.ones(2)}, np.array([1.0, 4.0]))
    assert found.constant == pytest.approx(2.0)
    assert found.scatter == pytest.approx(math.sqrt(2.0) * math.log(2.0))


def test_rates_that_are_the_same_tie() -> None:
    best = agreements(section_one(np.array([2.0, 4.0, 8.0]), 0.0, 100.0), np.array([3.0, 4.0, 7.0]))
    assert all(agreement.ties(best[0]) for agreement in best)


def worst(
    regret: "np.ndarray", player: str = "CompositeLossWrapper", settings: str = '{"base":"exp3"}'
) -> pl.DataFrame:
    """Return rows of one player's worst regrets at all sizes."""
    K, d, T = zip(*SIZES, strict=True)
    sizes = {"n_arms": K, "max_delay": d, "horizon": T, "round": T, "regret": regret.tolist()}
    words = {"player": player, "player_params": settings, "cell": "c"}
    rest = {"standard_error": 0.0, "uniform_regret": 1e12, "measure": "regret"}
    rest |= {"instance": "fixed", "instance_params": "{}"}
    sizes["corollary_bound"] = [theory.corollary_bound(*size) for size in SIZES]
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
    for name, factor in (("tsallis", 1.0), ("exp3", math.log(4e6) / math.log(1e6))):
        many = [leading_term(name, K, 1000, 10**9) for K in (10**6, 4 * 10**6)]
        assert many[1] / many[0] == pytest.approx(2.0 * math.sqrt(factor), rel=2e-3)
        late = [leading_term(name, 1000, d, 10**9) for d in (10**4, 4 * 10**4)]
        assert late[1] / late[0] == pytest.approx(2.0, rel=1e-3)


def test_players_without_a_known_term_have_none() -> None:
    regret = np.linspace(1.0, 2.0, len(SIZES))
    one, other = (worst(regret, settings=settings) for settings in ('{"base":"exp3"}', "{}"))
    for rows in (worst(regret, "ARSUCB", "{}"), pl.concat([one, other])):
        (found,) = growth.growths(rows.with_columns(who=pl.lit("one"))).values()
        assert found.term is None


def test_slopes_carry_their_errors() -> None:
    # Slopes between K = 2 and 8 at two places: ln 4/ln 4 and ln 2/ln 4, mean 3/4; relative errors of 0.1 at one point.
    rows = pl.DataFrame({
        "K": [2.0, 8.0, 2.0, 8.0],
        "T": [1.0, 1.0, 9.0, 9.0],
        "d+1": [1.0] * 4,
        "regret": [1.0, 4.0, 3.0, 6.0],
        "term": [1.0, 4.0, 1.0, 4.0],
        "standard_error": [0.1, 0.0, None, 0.0],
    })
    (found,) = local_slopes(rows, "K")
    assert (found.low, found.high) == (2.0, 8.0)
    assert found.measured.value == pytest.approx(0.75, rel=1e-12)
    assert found.measured.standard_error == pytest.approx(0.1 / (2 * math.log(4)), rel=1e-12)
    assert found.expected == pytest.approx(1.0, rel=1e-12)


def test_regret_that_is_a_multiple_of_its_term_is_found_to_be() -> None:
    values = np.array([leading_term("exp3", *size) for size in SIZES])
    (one,) = growth.growths(worst(0.7 * values).with_columns(who=pl.lit("one"))).values()
    assert one.term.agreement.constant == pytest.approx(0.7, rel=1e-9)
    assert one.term.agreement.scatter == pytest.approx(0.0, abs=1e-9)
    for name, power in one.fit.items():
        assert power.value == pytest.approx(one.term.fit[name].value, rel=1e-9)
    # ln K and blocks that lengthen: more than the square root at these sizes.
    assert one.fit["K"].value > 0.6
    assert one.fit["d+1"].value > 0.55
    assert one.fit["T"].value == pytest.approx(0.5, abs=1e-3)


def test_the_section_says_so() -> None:
    values = np.array([leading_term("exp3", *size) for size in SIZES])
    page = Page("t")
    (note,) = growth.scaling(page, worst(0.7 * values))
    assert note.startswith("wrapper, Exp3: regret grows as (d+1)^0.")
    assert "·√((d+1)KT) describes it best, with a typical deviation of" in note
    assert "for the next, √(" in note
    assert "regret is 0.70 times this term, with a typical deviation of 0.0%" in note
    assert "Why exponents are not 1/2" in page.render()


def test_losses_in_a_unit_of_their_own_are_judged_in_units_of_their_range() -> None:
    values = np.array([leading_term("exp3", *size) for size in SIZES])
    rows = worst(0.7 * values)
    money = rows.with_columns(pl.col("regret", "standard_error", "uniform_regret", "corollary_bound") * 90.0)
    plain, scaled = Page("t"), Page("t")
    assert growth.scaling(scaled, money) == growth.scaling(plain, rows)
    # The worse instance is that with the greater share of its range, not the one with the greater numbers.
    easy = money.with_columns(pl.col("regret") / 7.0, instance=pl.lit("split"))
    both = growth.scaling(Page("t"), pl.concat([rows, easy]))
    assert both == growth.scaling(Page("t"), rows)
    # Effects below 0 have no bound, so their range is not known, and no term is theirs.
    unbounded = rows.with_columns(corollary_bound=pl.lit(None, dtype=pl.Float64))
    assert "times this term" not in "".join(growth.scaling(Page("t"), unbounded))


def test_no_delay_is_fitted_by_itself() -> None:
    rows = worst(np.arange(1.0, len(SIZES) + 1.0)).with_columns(who=pl.lit("wrapper, Exp3"))
    at_once = rows.with_columns(max_delay=pl.lit(0, dtype=pl.Int64)).unique(["n_arms", "horizon"])
    assert list(growth.fitted(pl.concat([rows, at_once]))) == ["wrapper, Exp3, d > 0", "wrapper, Exp3, d = 0"]


def final_rows(regret: dict[str, float]) -> pl.DataFrame:
    """Return rows at the horizon: K = 2, d = 1, five horizons; c·T^power with some noise, for each instance's power."""
    noise = [1.02, 0.97, 1.01, 1.03, 0.98]
    found = []
    for name, power in regret.items():
        for k, T in enumerate((1_000, 2_000, 4_000, 8_000, 16_000)):
            one: dict[str, object] = dict.fromkeys(ROWS)
            one |= {"cell": f"{name}{T}", "measure": "regret", "instance": name, "instance_params": "{}"}
            one |= {"player": "default_player", "player_params": "{}", "n_arms": 2, "max_delay": 1, "horizon": T}
            one |= {"round": T, "regret": 0.5 * T**power * noise[k], "standard_error": 1.0}
            one |= {"corollary_bound": theory.corollary_bound(2, 1, T), "uniform_regret": 0.1 * T}
            found.append(one)
    return pl.DataFrame(found, schema=ROWS, orient="row")


def test_the_fit_of_rows_is_that_of_scipy_with_its_interval() -> None:
    rows = final_rows({"split": 0.5, "fixed": 0.25})
    found = ae.studies.fit(rows, each=True)
    assert found.select("player", "instance", "variable", "sizes").rows() == [
        ("default player", "random splits", "T", 5), ("default player", "longest delays", "T", 5)
    ]
    for name, row in zip(("split", "fixed"), found.iter_rows(named=True), strict=True):
        part = rows.filter(instance=name)
        other = stats.linregress(np.log(part["horizon"].to_numpy()), np.log(part["regret"].to_numpy()))
        half = stats.t.ppf(0.975, 3) * other.stderr
        wanted = [other.slope, other.stderr, other.slope - half, other.slope + half]
        assert [row[key] for key in ("exponent", "standard_error", "low", "high")] == pytest.approx(wanted, rel=1e-9)
    # The worst regret is that of random splits at every size.
    (worst,) = ae.studies.fit(rows).iter_rows(named=True)
    assert (worst["instance"], worst["exponent"]) == ("worst", found["exponent"][0])


def test_rows_at_too_few_sizes_are_not_fitted() -> None:
    with pytest.raises(InvalidArgument, match=r"rows must hold a player at three sizes .* none in 2 rows"):
        ae.studies.fit(final_rows({"split": 0.5})[:2])
