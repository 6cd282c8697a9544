"""Algorithm 2 against numbers by hand, and against the bisection of Lemma 12 on random and extreme input."""

import math

import numpy as np
import pytest

import aftereffect as ae
from aftereffect import theory


def agree(bandit: ae.TsallisFTRL, rate: float, rtol: float = 1e-11) -> None:
    """Check the distribution against the slow solver; tiny probabilities up to an absolute error."""
    q = bandit.probabilities
    assert np.isfinite(q).all()
    assert abs(math.fsum(q) - 1.0) <= 1e-12
    np.testing.assert_allclose(q, theory.tsallis_distribution(bandit.estimated_losses, rate), rtol, 1e-300)


# 1/√q(0) − 1/√q(1) = (L(0) − L(1))/η. Pythagorean triples make both roots rational: with a² + b² = c²,
# q = (a²/c², b²/c²) belongs to the difference c/a − c/b. The first update sets L(0) = 2·loss.
@pytest.mark.parametrize(("a", "b", "c"), [(3, 4, 5), (5, 12, 13), (20, 21, 29), (119, 120, 169)])
@pytest.mark.parametrize("rate", [0.5, 0.25, 0.015625])
def test_two_arms_by_hand(a: int, b: int, c: int, rate: float) -> None:
    bandit = ae.TsallisFTRL(n_arms=2, learning_rate=rate)
    bandit.update(0, rate * (c / a - c / b) / 2)
    np.testing.assert_allclose(bandit.probabilities, [a * a / c**2, b * b / c**2], rtol=1e-13)
    # A loss that increases L(1) to L(0) makes the distribution uniform again.
    bandit.update(1, rate * (c / a - c / b) * bandit.probabilities[1])
    np.testing.assert_allclose(bandit.probabilities, [0.5, 0.5], rtol=1e-13)


def test_four_arms_by_hand() -> None:
    # u = 5/3 on three arms gives 3·(3/5)² > 1, so the leaders have 1/√q = u with 3/u² + 1/(u + Δ)² = 1:
    # u = 2 and 1/(2 + Δ)² = 1/4 is even play; u = √3.75 gives q = (0.2, 4/15, 4/15, 4/15), Δ = √5 − √3.75.
    bandit = ae.TsallisFTRL(n_arms=4, learning_rate=8.0)
    bandit.update(0, 8.0 * (math.sqrt(5.0) - math.sqrt(3.75)) / 4)
    np.testing.assert_allclose(bandit.probabilities, [0.2, *[4 / 15] * 3], rtol=1e-13)


def test_estimated_losses_are_importance_weighted() -> None:
    bandit = ae.TsallisFTRL(n_arms=4, learning_rate=1.0)
    bandit.update(2, 0.25)
    assert bandit.estimated_losses.tolist() == [0.0, 0.0, 1.0, 0.0]
    q = bandit.probabilities
    bandit.update(3, 0.5)
    assert bandit.estimated_losses.tolist() == [0.0, 0.0, 1.0, 0.5 / q[3]]
    bandit.estimated_losses[:] = 9.0
    assert bandit.estimated_losses[0] == 0.0


RATES = [1e-250, 1e-100, 1e-12, 1e-6, 1e-3, 1.0, 40.0, 1e4, 1e8, 1e200]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("n_arms", [2, 3, 17])
@pytest.mark.parametrize("how", ["drawn", "any", "leader", "last"])
def test_random_play_solves_lemma_12(rate: float, n_arms: int, how: str) -> None:
    rng = np.random.default_rng([n_arms, len(how)])
    bandit = ae.TsallisFTRL(n_arms, learning_rate=rate)
    for n in range(40):
        q = bandit.probabilities
        possible = np.flatnonzero(q > 0.0)
        arm = {
            "drawn": int(rng.choice(n_arms, p=q / q.sum())),
            "any": int(rng.choice(possible)),
            "leader": int(q.argmax()),
            "last": int(possible[q[possible].argmin()]),
        }[how]
        # Losses of every size, among them those that move L by about η.
        bandit.update(arm, float(rng.choice([1.0, rng.random(), min(1.0, rate * 10.0 ** rng.uniform(-3, 3))])))
        if n % 4 == 3:
            agree(bandit, rate)


@pytest.mark.parametrize("rate", [1e-300, 1e-299, 1e-280, 1e-250, 1e-200])
def test_the_leader_falls_far_behind_at_tiny_rates(rate: float) -> None:
    # The best arm, slightly ahead, loses 1, which is 1/η in units of the rate: Newton's method must not overflow.
    rng = np.random.default_rng(1)
    for _ in range(300):
        bandit = ae.TsallisFTRL(n_arms=2, learning_rate=rate)
        bandit.update(0, float(rng.random()))
        bandit.update(1, min(1.0, rate * 10.0 ** rng.uniform(0.0, 12.0)))
        leader = int(bandit.probabilities.argmax())
        bandit.update(leader, 1.0)
        q = bandit.probabilities
        assert np.isfinite(q).all()
        assert abs(math.fsum(q) - 1.0) <= 1e-12
        assert q.argmax() == bandit.estimated_losses.argmin()


@pytest.mark.parametrize("rate", [1e-6, 1.0, 1e3, 1e8])
def test_one_arm_fed_again_and_again(rate: float) -> None:
    # Once q is small, each update about squares the estimate: it exceeds 1e100 after a few updates.
    bandit = ae.TsallisFTRL(n_arms=3, learning_rate=rate)
    largest = []
    for _ in range(4000):
        if bandit.probabilities[1] == 0.0:
            break
        bandit.update(1, 1.0)
        largest.append(bandit.estimated_losses[1])
        if len(largest) % 500 == 0 or largest[-1] > 1e8:
            agree(bandit, rate)
    assert largest[-1] > (1e100 if rate < 1e8 else 1e3)
    assert largest == sorted(largest)


@pytest.mark.parametrize("rate", [0.5, 70.0])
def test_ten_thousand_arms(rate: float) -> None:
    rng = np.random.default_rng(3)
    bandit = ae.TsallisFTRL(n_arms=10_000, learning_rate=rate)
    for n in range(1, 3001):
        q = bandit.probabilities
        assert abs(math.fsum(q) - 1.0) <= 1e-12
        bandit.update(int(rng.choice(10_000, p=q / q.sum())), float(rng.random()))
        if n % 1000 == 0:
            agree(bandit, rate)


@pytest.mark.parametrize(("n_arms", "rate"), [(2, 200.0), (10, 220.0), (10, 3.0)])
def test_nothing_drifts_in_a_long_run(n_arms: int, rate: float) -> None:
    rng = np.random.default_rng(4)
    bandit = ae.TsallisFTRL(n_arms, learning_rate=rate)
    uniform, losses = rng.random(100_000), rng.random((100_000, n_arms)) * np.linspace(0.8, 1.0, n_arms)
    for n in range(100_000):
        arm = min(int(np.searchsorted(np.cumsum(bandit.probabilities), uniform[n])), n_arms - 1)
        bandit.update(arm, float(losses[n, arm]))
        if n % 10_000 == 9_999:
            agree(bandit, rate)
    assert bandit.estimated_losses.min() > 3e4


def test_rate_zero_follows_the_leader_and_shares_ties() -> None:
    for rate in (0.0, 5e-324, 1e-301):
        bandit = ae.TsallisFTRL(n_arms=4, learning_rate=rate)
        bandit.update(0, 0.5)  # L = (2, 0, 0, 0)
        assert bandit.probabilities.tolist() == [0.0, 1 / 3, 1 / 3, 1 / 3]
        bandit.update(2, 0.5)  # L = (2, 0, 1.5, 0)
        assert bandit.probabilities.tolist() == [0.0, 0.5, 0.0, 0.5]
        bandit.update(1, 1.0)  # L = (2, 2, 1.5, 0)
        assert bandit.probabilities.tolist() == [0.0, 0.0, 0.0, 1.0]
        bandit.update(3, 1.0)  # L = (2, 2, 1.5, 1)
        bandit.update(3, 0.5)  # L = (2, 2, 1.5, 1.5)
        assert bandit.probabilities.tolist() == [0.0, 0.0, 0.5, 0.5]
        bandit.update(2, 0.25)  # L = (2, 2, 2, 1.5)
        bandit.update(3, 0.5)  # all 2
        assert bandit.probabilities.tolist() == [0.25] * 4
        assert bandit.estimated_losses.tolist() == [2.0] * 4


def test_small_rates_tend_to_the_leader() -> None:
    bandit = ae.TsallisFTRL(n_arms=3, learning_rate=1e-9)
    bandit.update(0, 1.0)  # L = (3, 0, 0): 1/√q(0) = 3e9 + √2
    np.testing.assert_allclose(bandit.probabilities, [1 / 9e18, 0.5, 0.5], rtol=1e-8)


def test_what_theorem_4_needs_to_know() -> None:
    bandit = ae.TsallisFTRL(n_arms=7, learning_rate=3.0)
    assert bandit.stability() == pytest.approx(2 * (1 + math.log(7)) / 3, rel=1e-15)
    assert bandit.regret_bound(90) == pytest.approx(math.sqrt(7) * (6 + 30), rel=1e-15)
    leader = ae.TsallisFTRL(n_arms=7, learning_rate=0.0)
    assert (leader.stability(), leader.regret_bound(90)) == (math.inf, 90.0)
