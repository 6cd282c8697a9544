"""The Wright omega function against its definition, known values and SciPy."""

from decimal import Decimal, localcontext

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


def test_against_45_digits() -> None:
    with localcontext(prec=45):
        for y in (*np.linspace(-45.0, 60.0, 400).tolist(), *np.geomspace(60.0, 1e13, 60).tolist()):
            found = wright_omega(y)
            exact = Decimal(found)
            for _ in range(4):
                exact -= (exact + exact.ln() - Decimal(y)) * exact / (1 + exact)
            assert abs(Decimal(found) - exact) < exact * Decimal("4e-16")
