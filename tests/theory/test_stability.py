"""Stability: the stated values by hand, and that one exact update never moves more than they say."""

import math

import numpy as np
from tests.refusals import refuses

from aftereffect import theory


def gained(after: np.ndarray, before: np.ndarray) -> float:
    return float(np.maximum(after - before, 0.0).sum())


def test_tsallis_by_hand() -> None:
    assert math.isclose(theory.tsallis_stability(8, 4.0), (1.0 + 3.0 * math.log(2.0)) / 2.0, rel_tol=1e-15)
    # Beyond 1 the value is still the printed one.
    assert math.isclose(theory.tsallis_stability(2, 0.5), 4.0 + 4.0 * math.log(2.0), rel_tol=1e-15)
    assert theory.tsallis_stability(5, 0.0) == math.inf


def test_exp3_by_hand() -> None:
    assert theory.exp3_stability(0.25) == 0.25
    assert theory.exp3_stability(0) == 0.0


def test_one_update_of_tsallis_moves_less_on_average() -> None:
    """The expectation over the arm is exact, so there is nothing statistical about this."""
    rng = np.random.default_rng(8)
    largest = 0.0
    for _ in range(120):
        K, eta = int(rng.integers(2, 7)), float(10.0 ** rng.uniform(-0.5, 1.5))
        w = rng.exponential(size=K) * eta * 10.0 ** rng.uniform(-2, 1)
        losses = rng.integers(0, 2, size=K).astype(float)
        q = theory.tsallis_distribution(w, eta)
        moved = 0.0
        for j in range(K):
            after = theory.tsallis_distribution(w + (losses[j] / q[j]) * (np.arange(K) == j), eta)
            moved += q[j] * gained(after, q)
        share = moved / theory.tsallis_stability(K, eta)
        assert share <= 1.0
        largest = max(largest, share)
    assert largest > 0.1


def test_one_update_of_exp3_moves_less_whatever_the_arm() -> None:
    rng = np.random.default_rng(9)
    largest = 0.0
    for _ in range(500):
        K, eta = int(rng.integers(2, 7)), float(10.0 ** rng.uniform(-3, 0.5))
        q = rng.dirichlet(np.full(K, 0.5)) + 1e-12
        q /= q.sum()
        j, loss = int(rng.integers(K)), float(rng.random())
        after = q.copy()
        after[j] *= math.exp(-eta * loss / q[j])
        after /= after.sum()
        share = gained(after, q) / theory.exp3_stability(eta)
        assert share <= 1.0 + 1e-9
        largest = max(largest, share)
    assert largest > 0.5


test_bad_input = refuses([
    (lambda: theory.tsallis_stability(1, 1.0), r"^n_arms must be at least 2, but got 1$"),
    (lambda: theory.tsallis_stability(2, -0.5), r"^learning_rate must be at least 0, but got -0.5$"),
    (lambda: theory.exp3_stability(math.inf), r"^learning_rate must be a finite number, but got inf$"),
])
