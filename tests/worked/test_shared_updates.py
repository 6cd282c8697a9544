"""Averaged updates of a base (`update_many`): by hand, against the formulas, and the bounds for them."""

import copy
import itertools
import math
from typing import Any

import numpy as np
import pytest
from tests.contracts.kits import refused, taught
from tests.contracts.test_bandits import BANDITS
from tests.worked.test_panel import SHARED

import aftereffect as ae
from aftereffect import theory


def formula(bandit: Any, estimated: Any) -> Any:
    """Return q for these estimated losses, computed independently: the root of Lemma 12 by bisection, or a softmax."""
    if isinstance(bandit, ae.TsallisFTRL):
        return theory.tsallis_distribution(estimated, bandit.learning_rate)
    weights = np.exp(-bandit.learning_rate * (estimated - estimated.min()))
    return weights / weights.sum()


@pytest.mark.parametrize("units", [2, 3, 17, 400])
@pytest.mark.parametrize("make", [
    *(
        lambda: ae.TsallisFTRL(4, learning_rate=3.0),
        lambda: ae.TsallisFTRL(2, learning_rate=0.01),
        lambda: ae.TsallisFTRL(3, learning_rate=1e6),
    ),
    *(
        lambda: ae.TsallisFTRL(300, learning_rate=10.0),
        lambda: ae.Exp3(4, learning_rate=0.1),
        lambda: ae.Exp3(2, learning_rate=3.0),
    ),
    lambda: ae.Exp3(80, learning_rate=1.0),
])
def test_the_distribution_is_that_of_the_average_estimates(make: Any, units: int) -> None:
    bandit, rng = make(), np.random.default_rng(units)
    K = bandit.n_arms
    estimated = np.zeros(K)
    for n in range(60):
        q = bandit.probabilities
        arms = rng.choice(K, size=units, p=q / q.sum())
        losses = rng.random(units) * (n % 3 > 0)
        for arm, loss in zip(arms, losses, strict=True):
            estimated[arm] += loss / (units * q[arm])
        bandit.update_many(arms.tolist(), losses.tolist())
        # For a bad arm of Exp3, with L of 1e4 or more, a rounding error of L changes the 12th digit of its probability.
        assert np.abs(bandit.probabilities - formula(bandit, estimated)).max() <= 1e-11
        assert abs(math.fsum(bandit.probabilities) - 1.0) <= 1e-12


@pytest.mark.parametrize("name", SHARED)
def test_a_lone_unit_is_an_update_and_like_units_are_nearly_one(name: str) -> None:
    one, many, alike = (BANDITS[name].make() for _ in range(3))
    rng = np.random.default_rng(1)
    for _ in range(80):
        q = one.probabilities
        arm, loss = int(rng.choice(one.n_arms, p=q / q.sum())), float(rng.random())
        one.update(arm, loss)
        many.update_many([arm], [loss])
        assert many.state() == one.state()
        arm = int(alike.probabilities.argmax())
        plain = copy.deepcopy(alike)
        plain.update(arm, loss)
        alike.update_many([arm] * 3, [loss] * 3)
        # Adaptive bandits compute the cost of several equal units at another shift; only the estimates are the same.
        adaptive = isinstance(alike, ae.AdaptiveTsallis)
        same = alike.estimated_losses - plain.estimated_losses if adaptive else 0.0
        assert np.abs(same).max() <= 1e-9
        assert adaptive or np.abs(alike.probabilities - plain.probabilities).max() <= 1e-12


@pytest.mark.parametrize("name", SHARED)
def test_losses_of_zero_teach_nothing(name: str) -> None:
    bandit = taught(BANDITS[name].make(), 10)
    arm, before = int(bandit.probabilities.argmax()), bandit.state()
    bandit.update_many([arm, arm], [0.0, 0.0])
    assert (bandit.state() != before) is BANDITS[name].fading


def outcomes(bandit: Any, losses: Any) -> Any:
    """Yield (probability, the bandit afterwards) over all draws of all units."""
    q = bandit.probabilities
    for arms in itertools.product(range(bandit.n_arms), repeat=len(losses)):
        twin = copy.deepcopy(bandit)
        twin.update_many(arms, [losses[unit][arm] for unit, arm in enumerate(arms)])
        yield math.prod(q[arm] for arm in arms), twin


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("units", [2, 3, 4])
def test_estimates_are_unbiased_and_as_quiet_as_the_bound_says(K: int, units: int) -> None:
    # Exact over all K^M draws, in states along a run. Price: Σ c² q^{3/2} on average at most √K/M + 1 − 1/M; mass
    # moved at most 2/η on average (Tsallis), at most η always (Exp3).
    rng, slack = np.random.default_rng(units), 1.0 + 1e-9
    tsallis, exp3 = ae.TsallisFTRL(K, learning_rate=1.5), ae.Exp3(K, learning_rate=0.4)
    for n in range(12):
        losses = np.ones((units, K)) if n % 2 else rng.random((units, K))
        q, mean, price, moved = tsallis.probabilities, np.zeros(K), 0.0, 0.0
        for weight, after in outcomes(tsallis, losses):
            grown = after.estimated_losses - tsallis.estimated_losses
            mean += weight * grown
            price += weight * float((grown**2 * q**1.5).sum())
            moved += weight * float(np.maximum(after.probabilities - q, 0.0).sum())
        assert mean == pytest.approx(losses.mean(axis=0), rel=1e-9)
        assert price <= (math.sqrt(K) / units + 1.0 - 1.0 / units) * slack
        assert moved <= 2.0 / 1.5 * slack
        assert moved <= tsallis.stability() * slack
        for _, after in outcomes(exp3, losses):
            assert np.maximum(after.probabilities - exp3.probabilities, 0.0).sum() <= exp3.stability() * slack
        for bandit in (tsallis, exp3):
            arms = rng.choice(K, size=units, p=bandit.probabilities / bandit.probabilities.sum())
            bandit.update_many(arms.tolist(), [float(losses[unit, arm]) for unit, arm in enumerate(arms)])


def test_bounds_by_hand() -> None:
    # K = 4, η = 10, n = 100: 2·10·2 + 100·2/10 = 60; with M = 4 the second part is 100·(2/4 + 3/4)/10.
    tsallis = ae.TsallisFTRL(4, learning_rate=10.0)
    assert [tsallis.shared_regret_bound(100, units) for units in (1, 4)] == pytest.approx([60.0, 52.5], rel=1e-15)
    # K = 5, η = 1/10, n = 100: 10 ln 5 + 25; with M = 4 the second part is 5·(5/4 + 3/4).
    exp3 = ae.Exp3(5, learning_rate=0.1)
    expected = [10 * math.log(5) + 25.0, 10 * math.log(5) + 10.0]
    assert [exp3.shared_regret_bound(100, units) for units in (1, 4)] == pytest.approx(expected, rel=1e-15)
    assert ae.TsallisFTRL(4, learning_rate=0.0).shared_regret_bound(100, 4) == 100.0
    for bandit in (tsallis, exp3):
        assert bandit.shared_regret_bound(7, 1) == bandit.regret_bound(7)
        message = refused(lambda bandit=bandit: bandit.shared_regret_bound(7, 0), ae.InvalidArgument)
        assert message == "n_units must be at least 1, but got 0"


def test_the_panels_bound_by_hand() -> None:
    # d = 0, β = 1: Theorem 4 is 𝓡 alone, at N = T = 5000: 2·50·2 + 5000·(2/4 + 3/4)/50 = 325 a unit, times 4 units
    # and a range of 3.
    bandit = ae.TsallisFTRL(4, learning_rate=50.0)
    player = ae.CompositeLossWrapper(bandit, max_delay=0, coins=1.0, seed=0, high=3.0)
    assert player.regret_bound(5000) == pytest.approx(3 * 400.0, rel=1e-15)
    assert ae.Panel(player, n_units=4).regret_bound(5000) == pytest.approx(4 * 3 * 325.0, rel=1e-15)
    assert ae.Panel(player, n_units=1).regret_bound(5000) == player.regret_bound(5000)
    # d = 1, β = 1/2, p = 1/8, T = 2: no update is possible yet, so the bound is T per unit.
    short = ae.CompositeLossWrapper(ae.Exp3(3, learning_rate=0.1), max_delay=1, coins=0.5, seed=0)
    assert ae.Panel(short, n_units=5).regret_bound(2) == 10.0
    given = ae.CompositeLossWrapper(ae.Exp3(3, learning_rate=0.1), max_delay=1, coins=[0, 1], seed=0)
    with pytest.raises(ae.InvalidArgument, match=r"^coins must be a bias for Theorem 4 to hold"):
        ae.Panel(given, n_units=5).regret_bound(2)


def test_bad_input_changes_nothing() -> None:
    bandit = taught(ae.Exp3(3, learning_rate=0.1), 5)
    before = bandit.state()
    cases: list[tuple[Any, Any, str]] = [
        ([], [], "losses must have the length of arms, at least 1, but got 0 for 0 arms"),
        ([0, 1], [0.5], "losses must have the length of arms, at least 1, but got 1 for 2 arms"),
        ([0, 3], [0.5, 0.5], "arms must be at most 2, but got 3"),
        ([0, 0.5], [0.5, 0.5], "arms must be an int, but got 0.5"),
        ([0, 1], [0.5, 1.5], "losses must be at most 1, but got 1.5"),
        ([0, 1], [math.nan, 0.5], "losses must be a finite number, but got nan"),
    ]
    for arms, losses, message in cases:
        assert refused(lambda arms=arms, losses=losses: bandit.update_many(arms, losses)) == message
        assert bandit.state() == before
    leader = ae.TsallisFTRL(2, learning_rate=0.0)
    leader.update_many([0, 0], [1.0, 1.0])
    message = "arms must have positive probability, but arm 0 has probability 0"
    assert refused(lambda: leader.update_many([1, 0], [0.5, 0.5])) == message
    message = refused(lambda: ae.UCB1(2).update_many([0], [0.5]), ae.InvalidArgument)
    assert message.startswith("bandit must have averaged updates, an update_many in its kernel, to be shared by units")
