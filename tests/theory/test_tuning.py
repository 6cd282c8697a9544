"""Tuning: Corollary 7 on a large grid, Exp3's rate and the tuned bound against numeric minimisation."""

import math

import numpy as np
import pytest
from scipy import optimize
from tests.refusals import refuses

from aftereffect import theory

GRID = [
    (K, d, T)
    for K in (2, 3, 4, 10, 100, 10_000)
    for d in (0, 1, 2, 3, 10, 100, 10_000, 100_000)
    for T in {
        *(max(1, (2 * d + 1) * m + e) for m in (1, 2, 3, 10, 100, 10_000) for e in (-1, 0, 1, d)),
        *(10**k for k in range(9)),
    }
]


def by_the_book(K: int, d: int, T: int, beta: float, eta: float) -> float:
    """Theorem 4 with Theorem 5 and the regret of any rate plugged in, written out once more."""
    p = beta * (1 - beta) ** (2 * d)
    regret = 2 * eta * math.sqrt(K) + (T // (2 * d + 1)) * math.sqrt(K) / eta
    drift = 2 * d * p * (2 * (1 + math.log(K)) / eta) * T
    return 2 * d + (2 * d + 1) / (d + 1) * (3 * d + drift + regret / p)


def plugged(K: int, d: int, T: int) -> float:
    """Corollary 7's own choice of β and η put into the theorems it cites."""
    eta = theory.corollary_learning_rate(d, T)
    regret = theory.tsallis_regret_bound(K, T // (2 * d + 1))
    return theory.wrapper_regret_bound(d, T, 1 / (2 * d + 1), theory.tsallis_stability(K, eta), regret)


def test_corollary_7_holds_with_the_trivial_bound() -> None:
    for K, d, T in GRID:
        bound = min(plugged(K, d, T), T) if theory.most_updates(d, T) > 0 else T
        assert bound <= theory.corollary_bound(K, d, T) * (1 + 1e-12), (K, d, T)


def test_corollary_7_fails_without_the_trivial_bound() -> None:
    d = 100_000
    K, T = 2, 2 * d + 1
    constant = plugged(K, d, T) / math.sqrt((d + 1) * K * T)
    assert 29.2 < constant < 29.3
    assert plugged(K, d, T) > theory.corollary_bound(K, d, T)


def test_corollary_values_by_hand() -> None:
    # 28·√(2·2·9) = 168; 2√2·√(8·9) = 24; ⌊50/5⌋/2 = 5; ⌊50/1⌋/2 = 25.
    assert theory.corollary_bound(2, 1, 9) == 168.0
    assert math.isclose(theory.corollary_bound(8, 0, 9), 24.0, rel_tol=1e-15)
    assert theory.corollary_learning_rate(2, 54) == math.sqrt(5)
    assert theory.corollary_learning_rate(0, 50) == 5.0
    assert theory.corollary_learning_rate(3, 6) == 0.0


@pytest.mark.parametrize(("K", "d", "T"), [(2, 0, 50), (4, 3, 7 * 1000), (10, 1, 3), (3, 25, 51 * 40)])
def test_exp3_rate_minimises_theorem_4(K: int, d: int, T: int) -> None:
    """T is a multiple of 2d+1 here, so that leaving out the floor changes nothing."""

    def bound(log_eta: float) -> float:
        eta = math.exp(log_eta)
        regret = theory.exp3_regret_bound(K, T // (2 * d + 1), eta)
        return theory.wrapper_regret_bound(d, T, 1 / (2 * d + 1), theory.exp3_stability(eta), regret)

    found = optimize.minimize_scalar(bound, bounds=(-15.0, 3.0), method="bounded", options={"xatol": 1e-10})
    rate = theory.exp3_learning_rate(K, d, T)
    assert math.isclose(math.exp(found.x), rate, rel_tol=1e-5)
    assert bound(math.log(rate)) <= found.fun * (1 + 1e-14)


def test_exp3_rates_by_hand() -> None:
    # d = 1, p = 4/27, K = 2, T = 27: (ln 2 · 27/4)/(2·4/27·27 + 2·27·27/(2·3·4)) = (27/4)ln 2/(8 + 60.75).
    rate = math.sqrt(6.75 * math.log(2) / 68.75)
    assert math.isclose(theory.exp3_learning_rate(2, 1, 27), rate, rel_tol=1e-14)
    assert math.isclose(theory.exp3_learning_rate(5, 0, 10), math.sqrt(math.log(5) / 25), rel_tol=1e-14)
    assert math.isclose(theory.exp3_learning_rate_printed(4, 8, 4), math.sqrt(math.log(2)), rel_tol=1e-15)
    assert theory.exp3_learning_rate_printed(4, 0, 4) == 0.0


@pytest.mark.parametrize(("K", "d", "T"), [(2, 0, 500), (2, 1, 10**5), (4, 3, 10**6), (50, 10, 10**7), (3, 2, 10**9)])
def test_tuned_bound_is_the_minimum_over_a_grid(K: int, d: int, T: int) -> None:
    beta, eta, bound = theory.tuning(K, d, T)
    assert bound < T
    assert math.isclose(by_the_book(K, d, T, beta, eta), bound, rel_tol=1e-13)
    brute = min(
        by_the_book(K, d, T, float(b), float(e))
        for b in np.linspace(0.0, 1.0, 202)[1 : None if d == 0 else -1]
        for e in eta * np.geomspace(0.2, 5.0, 121)
    )
    assert bound <= brute * (1 + 1e-13)
    near = min(by_the_book(K, d, T, beta, float(e)) for e in eta * np.geomspace(0.9, 1.1, 401))
    assert math.isclose(near, bound, rel_tol=1e-6)


def test_tuned_bound_is_never_above_its_rivals() -> None:
    for K, d, T in GRID:
        bound = theory.tuned_bound(K, d, T)
        assert 0.0 < bound <= T
        if theory.most_updates(d, T) == 0:
            assert theory.tuning(K, d, T) == (1 / (2 * d + 1), 0.0, T)
        else:
            assert bound <= min(T, plugged(K, d, T)) * (1 + 1e-12)


def test_without_delay_the_tuning_is_theorem_6() -> None:
    tuned = theory.tuning(3, 0, 5000)
    assert tuned.update_probability == 1.0
    assert math.isclose(tuned.learning_rate, 50.0, rel_tol=1e-15)
    assert math.isclose(tuned.bound, 2 * math.sqrt(2 * 3 * 5000), rel_tol=1e-14)


test_bad_input = refuses([
    (lambda: theory.tuned_bound(2, 1, 10, form="blunt"), r"^form must be one of 'printed', 'sharp', but got 'blunt'$"),
    (lambda: theory.tuning(1, 1, 10), r"^n_arms must be at least 2, but got 1$"),
    (lambda: theory.corollary_bound(2, -1, 10), r"^max_delay must be at least 0, but got -1$"),
    (lambda: theory.exp3_learning_rate(2, 1, 10.0), r"^horizon must be an int, but got 10.0$"),
    (lambda: theory.exp3_learning_rate_printed(2, 1, 0), r"^horizon must be at least 1, but got 0$"),
    (lambda: theory.corollary_learning_rate(2, -4), r"^horizon must be at least 1, but got -4$"),
])
