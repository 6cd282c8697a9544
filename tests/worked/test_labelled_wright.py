"""The Wright omega function against its definition, known values and SciPy."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import wrightomega

from aftereffect.core.jit import compiled
from aftereffect.core.kernel import helper
from aftereffect.players.labelled.zimmert_seldin import HUGE, TINY, wright_omega

FAR = [np.linspace(-60.0, 60.0, 4001), np.geomspace(1.0, 1e300, 600), -np.geomspace(1.0, 700.0, 600)]
NEAR = [np.linspace(y - 0.01, y + 0.01, 101) for y in (TINY, -2.0, 1.0)]
SEAM = HUGE * np.linspace(0.999, 1.001, 101)


@helper
def omega_of(y: float) -> float:
    return wright_omega(y)


def test_equals_scipy() -> None:
    y = np.concatenate([*FAR, *NEAR, SEAM])
    found = np.array([wright_omega(float(number)) for number in y])
    np.testing.assert_allclose(found, wrightomega(y), rtol=1e-14, atol=0.0)


def test_the_compiled_one_is_the_same_function() -> None:
    fast = compiled(omega_of)
    for y in (-30.0, -2.5, -1.0, 0.0, 3.0, 1e5, 1e12):
        assert fast(y) == pytest.approx(wright_omega(y), rel=1e-15)


@pytest.mark.parametrize(
    ("y", "omega"),
    [
        (0.0, 0.5671432904097838),  # the omega constant, Ω e^Ω = 1
        (1.0, 1.0),
        (1.0 + math.e, math.e),
        (0.5 - math.log(2.0), 0.5),
        (100.0 + math.log(100.0), 100.0),
        (1e-3 + math.log(1e-3), 1e-3),
        (-1000.0, 0.0),
    ],
)
def test_known_values(y: float, omega: float) -> None:
    assert wright_omega(y) == pytest.approx(omega, rel=1e-14, abs=0.0)


def test_against_45_digits() -> None:
    with localcontext(prec=45):
        for y in (*np.linspace(-45.0, 60.0, 400).tolist(), *np.geomspace(60.0, 1e13, 60).tolist()):
            found = wright_omega(y)
            exact = Decimal(found)
            for _ in range(4):
                exact -= (exact + exact.ln() - Decimal(y)) * exact / (1 + exact)
            assert abs(Decimal(found) - exact) < exact * Decimal("4e-16")


def test_small_values_in_exact_arithmetic() -> None:
    # ω = E e^{−ω} with E = e^y: the series Σ (−n)^{n−1} Eⁿ/n! of Lambert's W, in fractions.
    for y in (-3.0, -5.0, -20.0):
        power = Fraction(math.exp(y))
        series = sum(Fraction((-n) ** (n - 1), math.factorial(n)) * power**n for n in range(1, 40))
        assert wright_omega(y) == pytest.approx(float(series), rel=4e-16)


def test_it_rises() -> None:
    y = np.linspace(-45.0, 10.0, 2000)
    assert (np.diff([wright_omega(float(number)) for number in y]) > 0.0).all()
