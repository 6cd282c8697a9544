"""Regret bounds: values by hand, and the exact expected regret of small games played out over all paths."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from tests.refusals import refuses

from aftereffect import theory

Rule = Callable[[np.ndarray], np.ndarray]


def expected_loss(rule: Rule, table: np.ndarray, n: int, estimates: np.ndarray) -> float:
    """Return what a rule, fed importance-weighted losses, loses on average from round n of a table on."""
    if n == len(table):
        return 0.0
    q = rule(estimates)
    total = 0.0
    for j in range(len(q)):
        later = estimates.copy()
        later[j] += table[n, j] / q[j]
        total += q[j] * (table[n, j] + expected_loss(rule, table, n + 1, later))
    return total


def worst_regret(rule: Rule, n_arms: int, rounds: int) -> float:
    """Return the largest expected regret over all tables of zeros and ones."""
    worst = -math.inf
    for entries in itertools.product((0.0, 1.0), repeat=n_arms * rounds):
        table = np.array(entries).reshape(rounds, n_arms)
        regret = expected_loss(rule, table, 0, np.zeros(n_arms)) - table.sum(axis=0).min()
        worst = max(worst, regret)
    return worst


@pytest.mark.parametrize("eta", [0.3, 1.0, math.sqrt(1.5), 4.0])
def test_tsallis_bound_holds_for_any_rate_in_every_small_game(eta: float) -> None:
    worst = worst_regret(lambda w: theory.tsallis_distribution(w, eta), 2, 3)
    bound = theory.tsallis_regret_bound(2, 3, eta)
    # The docstring's derivation gives the bound less 2η; that holds as well.
    assert 0.0 < worst <= bound - 2 * eta


@pytest.mark.parametrize("eta", [0.1, 0.5, 2.0])
def test_exp3_bound_holds_in_every_small_game(eta: float) -> None:
    def rule(w: np.ndarray) -> np.ndarray:
        e = np.exp(-eta * (w - w.min()))
        return np.asarray(np.maximum(e / e.sum(), 1e-300))

    assert 0.0 < worst_regret(rule, 2, 3) <= theory.exp3_regret_bound(2, 3, eta)


def test_tsallis_by_hand() -> None:
    # K = 9, N = 50: 2√900 = 60 at η = 5; at η = 10 it is 2·10·3 + 50·3/10 = 75.
    assert theory.tsallis_regret_bound(9, 50) == 60.0
    assert math.isclose(theory.tsallis_regret_bound(9, 50, 5.0), 60.0, rel_tol=1e-15)
    assert theory.tsallis_regret_bound(9, 50, 10.0) == 75.0
    assert theory.tsallis_regret_bound(9, 50, 0.0) == 50.0
    assert theory.tsallis_regret_bound(9, 0) == 0.0
    assert theory.tsallis_regret_bound(9, 0, 0.0) == 0.0


@pytest.mark.parametrize(("K", "N"), [(2, 1), (3, 17), (10, 10_000)])
def test_the_tuned_rate_is_theorem_6_and_the_best(K: int, N: int) -> None:
    tuned = theory.tsallis_regret_bound(K, N)
    assert math.isclose(tuned, 2 * math.sqrt(2 * K * N), rel_tol=1e-14)
    assert math.isclose(theory.tsallis_regret_bound(K, N, math.sqrt(N / 2)), tuned, rel_tol=1e-14)
    for factor in np.geomspace(0.1, 10.0, 41):
        assert theory.tsallis_regret_bound(K, N, factor * math.sqrt(N / 2)) >= tuned * (1 - 1e-14)


def test_exp3_by_hand() -> None:
    # K = 4, N = 10, η = 1/2: 2 ln 4 + 10.
    assert math.isclose(theory.exp3_regret_bound(4, 10, 0.5), 4 * math.log(2) + 10, rel_tol=1e-15)
    assert theory.exp3_regret_bound(4, 10, 0.0) == 10.0


def test_wrapper_by_hand() -> None:
    # d = 1, β = 1/2, p = 1/8, T = 100, ξ = 4/100, 𝓡 = 8: 2 + (3/2)(3 + 2·100·(4/100)/8 + 64) = 2 + 1.5·68.
    assert math.isclose(theory.wrapper_regret_bound(1, 100, 0.5, 0.04, 8.0), 104.0, rel_tol=1e-15)
    # d = 2, β = 1/5, p = 256/3125, T = 3125, ξ = 1/64, 𝓡 = 1: 4 + (5/3)(6 + 4·256/64 + 3125/256).
    expected = 4 + 5 / 3 * (6 + 16 + 3125 / 256)
    assert math.isclose(theory.wrapper_regret_bound(2, 3125, 0.2, 1 / 64, 1.0), expected, rel_tol=1e-14)


def test_wrapper_without_delay_is_the_base_algorithm() -> None:
    assert theory.wrapper_regret_bound(0, 10, 1.0, 0.5, 7.0) == 7.0
    assert theory.wrapper_regret_bound(0, 10, 0.25, math.inf, 7.0) == 28.0


def test_wrapper_is_not_clipped_and_knows_infinity() -> None:
    assert theory.wrapper_regret_bound(1, 3, 1 / 3, 1.0, 3.0) > 3.0
    assert theory.wrapper_regret_bound(1, 3, 1.0, 0.1, 0.0) == math.inf
    assert theory.wrapper_regret_bound(1, 3, 0.5, math.inf, 1.0) == math.inf
    assert theory.wrapper_regret_bound(1, 3, 0.5, 0.1, math.inf) == math.inf


def test_the_regret_with_whole_losses_exceeds_the_regret_by_at_most_d() -> None:
    rng = np.random.default_rng(2)
    for d, T in ((0, 4), (2, 7), (3, 2)):
        largest = 0.0
        for _ in range(200):
            arms = rng.integers(0, 2, T)
            # Each play's whole loss arrives after one random delay; that of arm 0 is 1, that of arm 1 is 0 or 1.
            parts = np.zeros((T, d + 1, 2))
            parts[np.arange(T), rng.integers(0, d + 1, T), 0] = 1.0
            parts[np.arange(T), rng.integers(0, d + 1, T), 1] = rng.integers(0, 2, T)
            arrives = np.arange(T)[:, None] + np.arange(d + 1) < T
            paid = (parts * arrives[:, :, None]).sum(axis=1)
            whole = parts.sum(axis=1)
            played = np.arange(T), arms
            regret = paid[played].sum() - paid.sum(axis=0).min()
            standard = whole[played].sum() - whole.sum(axis=0).min()
            assert standard <= theory.standard_regret_bound(d, regret)
            largest = max(largest, standard - regret)
        assert largest == min(d, T)


test_bad_input = refuses([
    (lambda: theory.wrapper_regret_bound(3, 6, 0.1, 0.1, 1.0), "at least 2*max_delay + 1 = 7, but got 6"),
    (lambda: theory.wrapper_regret_bound(1, 6, 0.1, -0.1, 1.0), "stability must be at least 0, but got -0.1"),
    (lambda: theory.wrapper_regret_bound(1, 6, 0.1, 0.1, math.nan), "base_regret must be a finite number, but got nan"),
    (lambda: theory.wrapper_regret_bound(1, 6, 0.0, 0.1, 1.0), "update_probability must be greater than 0"),
    (lambda: theory.tsallis_regret_bound(2, -1), "rounds must be at least 0, but got -1"),
    (lambda: theory.exp3_regret_bound(1, 5, 0.1), "n_arms must be at least 2, but got 1"),
    (lambda: theory.tsallis_regret_bound(2, 5, -1.0), "learning_rate must be at least 0, but got -1.0"),
], plain=True)
