"""Exp3 against numbers computed by hand and its closed form in 60 digits; accuracy after ten million rounds."""

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

import aftereffect as ae
from aftereffect.core import kernel, random
from aftereffect.core.jit import compiled


def closed_form(L: list[Decimal], rate: float) -> list[Decimal]:
    """Return q(i) ∝ exp(−ηL(i)) in the precision of the context."""
    least = min(L)
    weights = [(-Decimal(rate) * (x - least)).exp() for x in L]
    whole = sum(weights)
    return [w / whole for w in weights]


@pytest.mark.parametrize("n_arms", [2, 5, 60])
@pytest.mark.parametrize("rate", [1e-12, 1e-3, 0.1, 2.0])
def test_against_the_closed_form(n_arms: int, rate: float) -> None:
    rng = np.random.default_rng(n_arms)
    bandit = ae.Exp3(n_arms, learning_rate=rate)
    with localcontext() as context:
        context.prec = 60
        L = [Decimal(0)] * n_arms
        for n in range(1, 1501):
            q = bandit.probabilities
            arm = int(rng.choice(n_arms, p=q / q.sum()))
            loss = float(rng.random())
            # The estimates divide by the bandit's own distribution, so that errors do not accumulate.
            L[arm] += Decimal(loss) / Decimal(float(q[arm]))
            bandit.update(arm, loss)
            if n % 300 == 0:
                expected = [float(x) for x in closed_form(L, rate)]
                # The error of the logarithms is at most 1500 roundings; it is the relative error of the weights.
                size = rate * float(max(L))
                tolerance = 1e-13 + 1500 * 2.3e-16 * size
                np.testing.assert_allclose(bandit.probabilities, expected, rtol=tolerance, atol=1e-300)
                assert abs(math.fsum(bandit.probabilities) - 1.0) <= 1e-12


def test_an_arm_that_underflows_comes_back() -> None:
    # η = 1000: ηL = (2000, 0), and e^−2000 is 0 in doubles. Two losses on arm 1, now of probability 1, undo it.
    bandit = ae.Exp3(n_arms=2, learning_rate=1000.0)
    bandit.update(0, 1.0)
    assert bandit.probabilities.tolist() == [0.0, 1.0]
    bandit.update(1, 1.0)
    assert bandit.probabilities.tolist() == [0.0, 1.0]
    bandit.update(1, 1.0)
    assert bandit.probabilities.tolist() == [0.5, 0.5]
    bandit.update(1, 0.0005)  # ηL = (2000, 2001)
    np.testing.assert_allclose(bandit.probabilities, [math.e / (1 + math.e), 1 / (1 + math.e)], rtol=1e-12)


@pytest.mark.parametrize("rate", [5e-324, 1e-300, 1e-100])
def test_tiny_rates_stay_uniform(rate: float) -> None:
    bandit = ae.Exp3(n_arms=3, learning_rate=rate)
    for n in range(300):
        bandit.update(n % 3, 1.0)
    np.testing.assert_allclose(bandit.probabilities, [1 / 3] * 3, rtol=1e-15)


@pytest.mark.parametrize("rate", [1e4, 1e100, 1e300, 1.7e308])
def test_huge_rates_follow_the_leader(rate: float) -> None:
    bandit = ae.Exp3(n_arms=3, learning_rate=rate)
    bandit.update(0, 1.0)
    assert bandit.probabilities.tolist() == [0.0, 0.5, 0.5]
    bandit.update(2, 1.0)
    assert bandit.probabilities.tolist() == [0.0, 1.0, 0.0]
    for _ in range(50):
        bandit.update(int(bandit.probabilities.argmax()), 1.0)
        q = bandit.probabilities
        assert np.isfinite(q).all()
        assert abs(math.fsum(q) - 1.0) <= 1e-12


@pytest.mark.parametrize("loss", [0.0, 1e-300, 1.0])
def test_a_loss_of_an_arm_that_is_all_but_impossible(loss: float) -> None:
    # ηL(0) = 744.4, so that q(0) is the least double above 0 and 1/q(0) overflows.
    bandit = ae.Exp3(n_arms=2, learning_rate=372.2)
    bandit.update(0, 1.0)
    assert bandit.probabilities[0] == 5e-324
    bandit.update(0, loss)
    assert bandit.probabilities[1] == 1.0
    assert bandit.probabilities[0] <= 5e-324


def drive(params: Any, rng: Any, state: Any, q: Any, rounds: int, kept: Any) -> None:
    """Play Exp3 on losses of 1 and 0.9, and keep L̂(i) = Σ ℓ/q(i) in sum and carry (Kahan), from the q played."""
    for _ in range(rounds):
        kernel.bandit_probabilities(params, 2, state, q)
        arm = kernel.bandit_draw(params, 2, state, random.uniform(rng))
        loss = 1.0 - 0.1 * arm
        kernel.bandit_update(params, 2, state, arm, loss)
        term = loss / q[arm] - kept[1, arm]
        moved = kept[0, arm] + term
        kept[1, arm] = (moved - kept[0, arm]) - term
        kept[0, arm] = moved


def test_ten_million_updates_against_the_closed_form() -> None:
    bandit = ae.Exp3(n_arms=2, learning_rate=0.02)
    state, kept, q = np.zeros(6), np.zeros((2, 2)), np.empty(2)
    kernel.bandit_start(bandit.params, 2, state)
    arms = random.stream(1, 0, random.ARMS)
    compiled(drive, bandit.params)(bandit.params, arms, state, q, 10_000_000, kept)
    with localcontext() as context:
        context.prec = 60
        L = [Decimal(float(kept[0, i])) - Decimal(float(kept[1, i])) for i in range(2)]
        expected = [float(x) for x in closed_form(L, 0.02)]
    assert min(L) > 8_000_000, "both arms have lost all the time: their weights alone are below e^−160000"
    kernel.bandit_probabilities(bandit.params, 2, state, q)
    # 1e7 additions to logarithms of 2e5, each off by at most 1.5e-11, at random: 1e-7 is 2 standard errors.
    np.testing.assert_allclose(q, expected, rtol=1e-6, atol=1e-300)


def test_what_theorem_4_needs_to_know() -> None:
    bandit = ae.Exp3(n_arms=3, learning_rate=0.04)
    assert bandit.stability() == 0.04
    assert bandit.regret_bound(500) == pytest.approx(25 * math.log(3) + 30, rel=1e-15)
