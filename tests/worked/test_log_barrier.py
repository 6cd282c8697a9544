"""`LogBarrier`: numbers computed by hand, updates against the formulas, the steps of docs/theory/log_barrier.md."""

import math
from typing import Any

import log_barrier as kernel_functions
import numpy as np
import pytest
from log_barrier import LogBarrier
from numpy.typing import NDArray
from tests.contracts.kits import many_updates

from aftereffect.core.jit import compiled

Floats = NDArray[np.float64]


def solved(losses: Floats, rates: Floats) -> Floats:
    """argmin ⟨L, q⟩ + Σ η ln(1/q) over the simplex, by bisection for u: q = η/(L − min L + u)."""
    y = losses - losses.min()
    left, right = 0.0, float(rates.sum())
    for _ in range(200):
        u = 0.5 * (left + right)
        left, right = (u, right) if math.fsum(rates / (y + u)) > 1.0 else (left, u)
    return np.asarray(rates / (y + right))


def price(s: Any) -> Any:
    """s − ln(1 + s)."""
    return s - np.log1p(s)


def test_two_updates_by_hand() -> None:
    # K = 2, η₁ = 1. Arm 0 loses 1 that was predicted to be 0: s = 1, the cost is 1 − ln 2, over ln(2·1) it is added
    # to the rate: η(0) = 1/ln 2. L̂ = (2, 0). The mean is 1 now, so the predictions are at their caps 1/(1 + 1/η).
    bandit = LogBarrier(2, first_rate=1.0)
    bandit.update(0, 1.0)
    first = 1.0 / math.log(2.0)
    assert bandit.learning_rates == pytest.approx([first, 1.0], rel=1e-15)
    assert bandit.cost == pytest.approx(1.0 - math.log(2.0), rel=1e-15)
    m = [1.0 / (1.0 + math.log(2.0)), 0.5]
    assert bandit.predictions == pytest.approx(m, rel=1e-15)
    assert bandit.estimated_losses.tolist() == [2.0, 0.0]
    # η(0)/(a + u) + 1/u = 1 with a = 2 + m(0) − m(1): u² + (a − η(0) − 1)u − a = 0.
    a = 2.0 + m[0] - m[1]
    half = 0.5 * (a - first - 1.0)
    u = -half + math.sqrt(half * half + a)
    assert bandit.probabilities == pytest.approx([first / (a + u), 1.0 / u], rel=1e-13)
    # Arm 1 loses 0 in place of ½: s = −½ at rate 1, the cost is ln 2 − ½, and n = 2 divides it by ln 4.
    bandit.update(1, 0.0)
    assert bandit.cost == pytest.approx(0.5, rel=1e-14)
    assert bandit.learning_rates[1] == pytest.approx(1.0 + (math.log(2.0) - 0.5) / math.log(4.0), rel=1e-14)
    assert bandit.estimated_losses == pytest.approx([2.0 + m[0] - 0.5 + 0.5 * u, 0.0], rel=1e-13)
    bound = 1.0 + math.log(4.0) * float(bandit.learning_rates.sum()) - 2.0 * math.log(2.0) + 0.5
    assert bandit.realised_bound() == pytest.approx(bound, rel=1e-14)


@pytest.mark.parametrize("units", [1, 2, 5])
@pytest.mark.parametrize(("K", "first_rate"), [(2, 1.0), (2, 1e-6), (3, 0.05), (10, 0.1), (10, 1e4), (200, 0.3)])
def test_every_update_is_what_the_formulas_say(K: int, first_rate: float, units: int) -> None:
    bandit, rng = LogBarrier(K, first_rate=first_rate, memory=7.0), np.random.default_rng(K)
    mean, paid, squares = 0.0, np.zeros(K), K * first_rate**2
    for n in range(1, 81):
        q, rates, before, cost = bandit.probabilities, bandit.learning_rates, bandit.estimated_losses, bandit.cost
        m = np.minimum(mean, 1.0 / (1.0 + 1.0 / rates))
        assert bandit.predictions == pytest.approx(m, rel=1e-12, abs=1e-15)
        arms = rng.choice(K, size=units, p=q / q.sum()).tolist()
        losses = np.where(rng.random(units) < 0.5, rng.integers(0, 2, units), rng.random(units)).tolist()
        surprise = np.zeros(K)
        for arm, loss in zip(arms, losses, strict=True):
            surprise[arm] += (loss - m[arm]) / units
        bandit.update_many(arms, losses)
        mean += (float(np.mean(losses)) - mean) / min(n, 7)
        z = m + surprise / q
        ahead = before + z
        tolerance = 1e-9 * max(1.0, float(np.abs(ahead).max()))
        assert bandit.estimated_losses == pytest.approx(ahead - ahead.min(), rel=1e-9, abs=tolerance)
        costs = rates * price(surprise / rates)
        assert bandit.cost - cost == pytest.approx(float(costs.sum()), rel=1e-7, abs=1e-9 * max(1.0, cost))
        assert bandit.learning_rates == pytest.approx(rates + costs / math.log(K * n), rel=1e-9)
        q_next = solved(bandit.estimated_losses + bandit.predictions, bandit.learning_rates)
        assert np.abs(bandit.probabilities - q_next).max() <= 1e-11
        assert abs(math.fsum(bandit.probabilities) - 1.0) <= 1e-12
        # The pathwise inequality, at every corner moved by 1/n towards the middle.
        paid += float(z @ q) - z
        corners = (1.0 - 1.0 / n) * paid + paid.mean() / n
        slack = 1e-8 * max(1.0, float(np.abs(paid).max()))
        assert corners.max() <= bandit.realised_bound() - 1.0 + slack
        # What the worst case rests on: Σ η² never grows by more than 1/ln(Kn) + 1/ln²(Kn).
        squares += 1.0 / math.log(K * n) + 1.0 / math.log(K * n) ** 2
        assert float((bandit.learning_rates**2).sum()) <= squares * (1.0 + 1e-12)


def test_the_steps_of_the_proof() -> None:
    w = 10.0 ** np.linspace(-7, 7, 400)
    # A loss of 0 in place of the cap, at s = −w/(1 + w), costs no more than a loss of 1 in place of 0, at s = w =
    # 1/η; in between costs are less still, since s − ln(1 + s) is convex and least at 0.
    ends = price(w) + 1e-15
    assert (price(-w / (1.0 + w)) <= ends).all()
    assert (price(w) <= np.minimum(w * w / 2.0, w) + 1e-15).all()
    share = np.linspace(0.0, 1.0, 101)[:, None]
    assert (price(-w / (1.0 + w) * share) <= ends).all()
    # A coordinate's stability is η(s − ln(1 + s)): the largest of a(q − p) − η(ln(q/p) + p/q − 1) over p > 0, s =
    # aq/η.
    rng = np.random.default_rng(2)
    p = 10.0 ** np.linspace(-6, 6, 200_001)
    for _ in range(40):
        q, eta, s = float(rng.uniform(0.01, 1)), 10.0 ** float(rng.uniform(-2, 2)), float(rng.uniform(-0.9, 5.0))
        gain = s * eta / q * (q - p) - eta * (np.log(q / p) + p / q - 1.0)
        assert float(gain.max()) == pytest.approx(eta * float(price(s)), rel=1e-6, abs=1e-8 * eta)


@pytest.mark.parametrize("first_rate", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("K", [2, 10, 10_000])
def test_numbers_at_the_ends(K: int, first_rate: float) -> None:
    bandit, rng = LogBarrier(K, first_rate=first_rate), np.random.default_rng(5)
    for n in range(60):
        q = bandit.probabilities
        arm = (int(q.argmax()), int(q.argmin()), int(rng.choice(K, p=q / q.sum())))[n % 3]
        bandit.update(arm, float(n % 7 < 4))
        q = bandit.probabilities
        assert np.isfinite(bandit._state).all()
        assert q.min() > 0.0
        assert abs(math.fsum(q) - 1.0) <= 1e-12


def test_a_million_updates() -> None:
    K, params, rng = 3, LogBarrier(3).params, np.random.default_rng(1)
    state = np.zeros(kernel_functions.size(K))
    kernel_functions.start(params, K, state)
    losses = rng.integers(0, 2, (9973, K)).astype(float)
    compiled(many_updates, params)(params, K, state, losses, rng.random(99_991), 1_000_000)
    assert np.isfinite(state).all()
    assert abs(math.fsum(state[:K]) - 1.0) <= 1e-12


def test_the_bound() -> None:
    # K = 2, η₁ = 1/2, n = 2: Λ = ln 4, and the sum over k = 1, 2 of 1/ln 2k + 1/ln² 2k; it is cut at n.
    lengths = [math.log(2.0), math.log(4.0)]
    whole = sum(1.0 / x + 1.0 / x**2 for x in lengths)
    by_hand = 1.0 + math.log(4.0) + 2.0 * math.log(4.0) * math.sqrt(2.0 * whole)
    bandit = LogBarrier(2, first_rate=0.5)
    assert by_hand > 2.0
    assert [bandit.regret_bound(n) for n in (0, 1, 2)] == [0.0, 1.0, 2.0]
    # The sum in blocks is at least the sum term by term, and only slightly larger.
    n, K = 50_000, 5
    terms = np.log(K * np.arange(1.0, n + 1))
    exact = float((1.0 / terms + 1.0 / terms**2).sum())
    expected = 1.0 + K * 0.1 * terms[-1] + 2.0 * terms[-1] * math.sqrt(K * exact)
    assert expected <= LogBarrier(K).regret_bound(n) <= 1.01 * expected
    assert LogBarrier(K).regret_bound(10**18) < 1e12
    assert bandit.stability() == 1.0
