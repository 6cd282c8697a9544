"""Exponents and rates: recovered from laws that are known, and as another library computes them."""

import math

import numpy as np
import pytest
from scipy import stats

from aftereffect.core.errors import InvalidArgument
from aftereffect.studies.fits import Agreement, Exponent, PowerLaw, agreements, power_law, section_one, sentence


def grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    K, d, T = np.meshgrid([2, 4, 8], [0, 3, 15], [1000, 10_000, 100_000])
    return K.ravel(), d.ravel(), T.ravel()


def test_exact_law_is_recovered() -> None:
    K, d, T = grid()
    y = 3.0 * (d + 1.0) ** 0.5 * K**0.25 * T ** (2 / 3)
    fit = power_law({"d+1": d + 1, "K": K, "T": T}, y)
    assert fit.constant == pytest.approx(3.0, rel=1e-9)
    assert [power.value for power in fit.exponents.values()] == pytest.approx([0.5, 0.25, 2 / 3], rel=1e-9)
    assert all(power.standard_error < 1e-9 for power in fit.exponents.values())
    assert fit.points == 27


def test_one_variable_agrees_with_scipy() -> None:
    random = np.random.default_rng(5)
    x = np.array([1.0, 2.0, 5.0, 9.0, 40.0, 41.0])
    y = 2.0 * x**0.7 * np.exp(random.normal(0.0, 0.1, 6))
    fit = power_law({"x": x}, y)
    other = stats.linregress(np.log(x), np.log(y))
    assert fit.exponents["x"].value == pytest.approx(other.slope, rel=1e-10)
    assert fit.exponents["x"].standard_error == pytest.approx(other.stderr, rel=1e-10)
    assert math.log(fit.constant) == pytest.approx(other.intercept, rel=1e-9)


def test_noisy_law_lies_within_its_standard_errors() -> None:
    # Three t values with 23 degrees of freedom beyond 6: a false alarm in about 1 of 80,000 seeds.
    K, d, T = grid()
    noise = np.random.default_rng(7).normal(0.0, 0.2, len(K))
    fit = power_law({"d+1": d + 1, "K": K, "T": T}, np.sqrt((d + 1.0) * K * T) * np.exp(noise))
    for power in fit.exponents.values():
        assert abs(power.value - 0.5) < 6.0 * power.standard_error
    # In a product grid the standard error is scatter / √Σ(ln x − mean)², by hand for T: 27 points, ln 10 apart.
    spread = math.sqrt(18.0) * math.log(10.0)
    assert fit.exponents["T"].standard_error == pytest.approx(fit.scatter / spread, rel=1e-9)


def test_constant_variables_are_left_out() -> None:
    fit = power_law({"K": [3, 3, 3], "T": [1, 10, 100]}, [1, 10, 100])
    assert list(fit.exponents) == ["T"]


def test_no_point_left_over_means_no_standard_error() -> None:
    fit = power_law({"T": [1, 10]}, [2, 20])
    assert fit.exponents["T"].value == pytest.approx(1.0)
    assert math.isnan(fit.exponents["T"].standard_error)


@pytest.mark.parametrize(
    ("variables", "y", "message"),
    [
        ({"T": [1, 2, 3]}, [1, 0, 2], "y must be above 0 to have logarithms, but got 0.0"),
        ({"T": [1, -2, 3]}, [1, 1, 2], "T must be above 0 to have logarithms, but got -2.0"),
        ({"T": [1, 2]}, [1, 1, 2], r"T must have shape \(3,\), but got shape \(2,\)"),
        ({"T": [1, 2, 4], "K": [2, 4, 8]}, [1, 1, 2], "variables must vary apart from each other"),
        ({"T": []}, [], r"len\(y\) must be at least 1, but got 0"),
    ],
)
def test_bad_input(variables: dict[str, list[float]], y: list[float], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        power_law(variables, y)


def test_the_true_rate_agrees_best() -> None:
    K, d, T = grid()
    rates = section_one(K, d, T)
    for name, rate in rates.items():
        best = agreements(rates, 1.7 * rate)
        assert best[0].rate == name
        assert best[0].constant == pytest.approx(1.7)
        assert best[0].percent == pytest.approx(0.0, abs=1e-6)
        assert not best[1].ties(best[0])


def test_scatter_by_hand() -> None:
    # ln ratios are 0 and ln 4: mean ln 2, standard deviation √2 ln 2.
    [found] = agreements({"r": [1.0, 1.0]}, [1.0, 4.0])
    assert found.constant == pytest.approx(2.0)
    assert found.scatter == pytest.approx(math.sqrt(2.0) * math.log(2.0))
    with pytest.raises(InvalidArgument, match=r"len\(y\) must be at least 2, but got 1"):
        agreements({"r": [1.0]}, [1.0])


def test_rates_that_are_the_same_tie() -> None:
    rates = section_one([2, 4, 8], [0, 0, 0], [100, 100, 100])
    best = agreements(rates, [3.0, 4.0, 7.0])
    assert all(agreement.ties(best[0]) for agreement in best)
    text = sentence("a", PowerLaw(1.0, {"K": Exponent(0.6, 0.1)}, 0.1, 3), best)
    assert "against" not in text
    assert sentence("a", PowerLaw(1.0, {"K": Exponent(0.6, 0.1)}, 0.1, 3), []) == "a: regret grows as K^0.60±0.10."
    assert "for the next, b" in sentence(
        "a", PowerLaw(1.0, {}, 0.1, 3), [Agreement("a", 1.0, 0.1), Agreement("b", 1.0, 0.2)]
    )
