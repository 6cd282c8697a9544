"""The multiplier: Lemma 12 against a general optimiser, Lemma 13 on random weights."""

import math
from decimal import Decimal, localcontext

import numpy as np
from scipy import optimize
from tests.refusals import refuses

from aftereffect import theory


def objective(q: np.ndarray, w: np.ndarray, eta: float) -> float:
    return float(w @ q - 2.0 * eta * np.sqrt(q).sum())


def cases(count: int, seed: int) -> list[tuple[np.ndarray, float]]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        w = rng.exponential(size=int(rng.integers(2, 9))) * 10.0 ** rng.uniform(-2, 3)
        if rng.random() < 0.3:
            w = np.round(w)
        found.append((w + rng.normal(), 10.0 ** rng.uniform(-1, 2)))
    return found


def test_the_distribution_sums_to_one_and_the_root_lies_below_the_weights() -> None:
    for w, eta in cases(200, seed=1):
        q = theory.tsallis_distribution(w, eta)
        lam = theory.multiplier(w, eta)
        assert abs(math.fsum(q) - 1.0) < 1e-14
        assert lam < w.min()
        np.testing.assert_allclose(q, eta**2 / (w - lam) ** 2, rtol=1e-9)


def test_no_random_point_of_the_simplex_is_better() -> None:
    rng = np.random.default_rng(2)
    for w, eta in cases(60, seed=3):
        q = theory.tsallis_distribution(w, eta)
        best = objective(q, w, eta)
        slack = 1e-12 * (abs(best) + np.abs(w).max())
        for _ in range(20):
            other = rng.dirichlet(np.ones(len(w)))
            for share in (1.0, 0.1, 1e-3):
                assert best <= objective(q + share * (other - q), w, eta) + slack


def test_a_general_optimiser_finds_the_same_minimiser() -> None:
    """scipy minimises over free y with q = softmax(y), so that nothing of Lemma 12 is used."""
    rng = np.random.default_rng(4)
    for _ in range(15):
        w, eta = rng.uniform(0.0, 5.0, size=4), float(rng.uniform(0.5, 4.0))

        def loss(y: np.ndarray, w: np.ndarray = w, eta: float = eta) -> float:
            e = np.exp(y - y.max())
            return objective(e / e.sum(), w, eta)

        result = optimize.minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-7})
        e = np.exp(result.x - result.x.max())
        np.testing.assert_allclose(theory.tsallis_distribution(w, eta), e / e.sum(), atol=1e-5)


def test_hand_worked_roots() -> None:
    # Equal weights: λ = w − η√K. Weights 0 and 1 with λ = −1: 1/1 + 1/4 = 5/4 = 1/η², so η = 2/√5.
    assert math.isclose(theory.multiplier([2.0] * 9, 0.5), 0.5, rel_tol=1e-15)
    assert math.isclose(theory.multiplier([0.0, 1.0], 2 / math.sqrt(5)), -1.0, rel_tol=1e-15)
    q = theory.tsallis_distribution([0.0, 1.0], 2 / math.sqrt(5))
    np.testing.assert_allclose(q, [0.8, 0.2], rtol=1e-14)


def test_the_root_is_right_to_the_last_digits() -> None:
    """In 50-digit arithmetic, four units in the last place either side of λ enclose the root."""
    for w, eta in cases(40, seed=5):
        w = w - w.min()
        lam = theory.multiplier(w, eta)
        step = 4 * math.ulp(lam)
        with localcontext() as context:
            context.prec = 50
            sums = [
                sum((Decimal(eta) / (Decimal(float(x)) - Decimal(end))) ** 2 for x in w)
                for end in (lam - step, lam + step)
            ]
            assert sums[0] < 1 < sums[1]


def test_large_weights_and_wide_spreads() -> None:
    shifted = theory.tsallis_distribution(np.array([0.0, 1.0, 3.0]) + 2.0**40, 1.5)
    np.testing.assert_array_equal(shifted, theory.tsallis_distribution([0.0, 1.0, 3.0], 1.5))
    assert theory.tsallis_distribution([0.0, 1e308], 1e-300).tolist() == [1.0, 0.0]


def test_growing_one_weight_moves_the_multiplier_by_at_most_delta_over_rank() -> None:
    rng = np.random.default_rng(6)
    tied = 0
    for w, eta in cases(150, seed=7):
        w = np.sort(w - w.min())
        delta = float(10.0 ** rng.uniform(-2, 2))
        before = theory.multiplier(w, eta)
        for j in range(len(w)):
            moved = theory.multiplier(w + delta * (np.arange(len(w)) == j), eta) - before
            rank = int((w <= w[j]).sum())
            tied += rank > j + 1
            rounding = 1e-12 * (abs(before) + delta)
            assert -rounding <= moved <= theory.multiplier_variation_bound(rank, delta) + rounding
    assert tied > 20


def test_the_bound_is_attained_in_the_limit_of_equal_weights() -> None:
    moved = theory.multiplier([1e-4, 0.0, 0.0, 0.0], 1.0) - theory.multiplier([0.0] * 4, 1.0)
    assert math.isclose(moved, theory.multiplier_variation_bound(4, 1e-4), rel_tol=1e-3)


test_bad_input = refuses([
    (lambda: theory.multiplier([1.0], 1.0), r"^weights must hold at least 2 numbers, .* but got 1$"),
    (lambda: theory.multiplier([1.0, math.inf], 1.0), r"^weights must be finite, but weights\[1\] is inf$"),
    (lambda: theory.tsallis_distribution([1.0, 2.0], 0.0), r"^learning_rate must be greater than 0, but got 0.0$"),
    (lambda: theory.multiplier([-1e308, 1e308], 1.0), r"^max\(weights\) - min\(weights\) must be .* but got inf$"),
    (lambda: theory.multiplier_variation_bound(0, 1.0), r"^rank must be at least 1, but got 0$"),
    (lambda: theory.multiplier_variation_bound(1, -1.0), r"^delta must be at least 0, but got -1.0$"),
])
