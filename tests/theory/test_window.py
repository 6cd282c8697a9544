"""Windows of d+1 rounds: Lemma 2 on random components, Lemma 11 on random numbers."""

import math

import numpy as np
import pytest
from tests.refusals import refuses

from aftereffect import theory


def constant_totals(components: np.ndarray) -> np.ndarray:
    """Return ℓ°_t(i, ..., i) for one arm from its components [t, s], by walking through every component."""
    rounds, width = components.shape
    totals = np.zeros(rounds)
    for t in range(rounds):
        for s in range(width):
            if t + s < rounds:
                totals[t + s] += components[t, s]
    return totals


@pytest.mark.parametrize("d", [0, 1, 2, 5])
def test_random_windows_stay_below_the_bound(d: int) -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        components = rng.dirichlet(np.full(d + 1, 0.3), size=8 * d + 10)
        totals = constant_totals(components)
        windows = [totals[t - d : t + 1].sum() for t in range(2 * d, len(totals))]
        assert max(windows) <= theory.window_bound(d) + 1e-12


@pytest.mark.parametrize("d", [0, 1, 2, 5])
def test_the_bound_is_attained(d: int) -> None:
    """Each of the 2d+1 plays puts all its loss into the window: early plays late, late plays at once."""
    components = np.zeros((2 * d + 1, d + 1))
    for t in range(2 * d + 1):
        components[t, max(d - t, 0)] = 1.0
    assert constant_totals(components)[d:].sum() == theory.window_bound(d)


def test_both_sides_of_the_accountants_identity() -> None:
    rng = np.random.default_rng(11)
    for _ in range(200):
        d, a, extra = int(rng.integers(0, 7)), int(rng.integers(-9, 10)), int(rng.integers(0, 12))
        c = rng.normal(size=extra + 1 + 2 * d) * 10.0 ** rng.integers(-3, 4)
        left, right = theory.accountants_sums(c, a, a + extra, d)
        assert math.isclose(left, right, rel_tol=1e-12, abs_tol=1e-9)
        counts = sum(np.convolve(c, np.ones(d + 1), mode="valid"))
        assert math.isclose(right, counts, rel_tol=1e-9, abs_tol=1e-8)


def test_accountants_by_hand() -> None:
    # d = 2, a = b = 3, c_1, ..., c_5: windows {1,2,3}, {2,3,4}, {3,4,5}; c_3 counts three times.
    assert theory.accountants_sums([1, 10, 100, 1000, 10000], 3, 3, 2) == (12321.0, 12321.0)
    assert theory.accountants_sums([4.0, 5.0], -1, 0, 0) == (9.0, 9.0)


test_bad_input = refuses([
    (lambda: theory.window_bound(-3), r"^max_delay must be at least 0, but got -3$"),
    (lambda: theory.accountants_sums([1.0], 3, 2, 0), r"^a must be at most b, but got a=3 and b=2$"),
    (lambda: theory.accountants_sums([1.0, 2.0, 3.0], 1, 2, 1), r"^c must have shape \(4,\), but got shape \(3,\)$"),
    (lambda: theory.accountants_sums([1.0, math.nan], 1, 2, 0), r"^c must be finite, but c\[1\] is nan$"),
    (lambda: theory.accountants_sums([1.0], 1, 2.5, 0), r"^b must be an int, but got 2.5$"),
])
