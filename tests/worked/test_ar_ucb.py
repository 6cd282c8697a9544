"""AR-UCB: every round against the equations of its paper, solved anew, and a system whose rewards are published."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from tests.refusals import refuses
from tests.rounds import tell_all

import aftereffect as ae
from aftereffect.core.checks import FloatArray
from aftereffect.players.rivals import ARUCB

LARGE = {"direction": "maximize", "low": -100.0, "high": 100.0}
# Section 5.2 of the paper: rho = 0.5, epsilon = 0.02.
COEFFICIENTS = np.array([[1.0, 0.5, 0.0], [1.0, 0.0, 0.48]])


def largest_index(seen: list[tuple[int, FloatArray, float]], z: FloatArray, K: int, T: int) -> int:
    """Return the arm of Algorithm 1 after these (arm, z, reward); m = 2, sigma = 0.5, lambda = 3, delta = 1/(2T)."""
    p, lam, indices = len(z), 3.0, []
    for arm in range(K):
        rows = np.array([row for played, row, _ in seen if played == arm]).reshape(-1, p)
        rewards = np.array([reward for played, _, reward in seen if played == arm])
        V = lam * np.eye(p) + rows.T @ rows
        beta = math.sqrt(lam * (2.0**2 + 1.0))
        beta += 0.5 * math.sqrt(2.0 * math.log(K * 2 * T) + np.linalg.slogdet(V)[1] - p * math.log(lam))
        indices.append(np.linalg.solve(V, rows.T @ rewards) @ z + beta * math.sqrt(z @ np.linalg.solve(V, z)))
    return int(np.argmax(indices))


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_every_round_solves_the_regressions_anew(direction: str) -> None:
    rng, K, T = np.random.default_rng(5), 3, 200
    settings = LARGE | {"direction": direction}
    player = ARUCB(K, horizon=T, order=2, level=2.0, noise=0.5, ridge=3.0, **settings)
    sign = 1.0 if direction == "maximize" else -1.0
    z, seen = np.array([1.0, 0.0, 0.0]), []
    gamma = rng.uniform(0.0, 0.45, size=(K, 3))
    for _ in range(T):
        arm = player.ask()
        assert arm == largest_index(seen, z, K, T)
        reward = float(gamma[arm] @ z + rng.normal(0.0, 0.3))
        played = player.tell(sign * reward)
        assert played.update
        seen.append((arm, z, reward))
        z = np.array([1.0, reward, z[1]])
    assert {arm for arm, _, _ in seen} == {0, 1, 2}


def test_a_total_counts_if_it_and_the_totals_it_depends_on_are_known() -> None:
    player = ARUCB(2, horizon=9, order=2)
    learned = [played.update for played in tell_all(player, (0.5, None, 0.5, 0.5, 0.5, None, 0.5))]
    # z of a round has the totals of the two rounds before it.
    assert learned == [True, False, False, False, True, False, False]


def rewards_of(choose: Callable[[FloatArray], int], tell: Callable[[float], object], noise: FloatArray) -> float:
    z, whole = np.array([1.0, 0.0, 0.0]), 0.0
    for each in noise:
        reward = float(COEFFICIENTS[choose(z)] @ z + each)
        tell(reward)
        z, whole = np.array([1.0, reward, z[1]]), whole + reward
    return whole


def test_the_published_rewards_of_the_two_policies_are_reproduced() -> None:
    """Table 2: 10,000 rounds, 100 runs: 24504 and 20030 at sigma = 1, standard deviation of a mean 20.4."""
    runs, rng = 100, np.random.default_rng(1)
    for policy, published in (("stochastic", 24504.0), ("deterministic", 20030.0)):
        last, before, whole = np.zeros(runs), np.zeros(runs), np.zeros(runs)
        for _ in range(10_000):
            means = 1.0 + np.stack([0.5 * last, 0.48 * before])
            reward = (means.max(axis=0) if policy == "stochastic" else means[0]) + rng.normal(size=runs)
            last, before, whole = reward, last, whole + reward
        assert abs(whole.mean() - published) < 4.0 * math.hypot(whole.std() / math.sqrt(runs), 20.4)


def asked(player: ARUCB, z: FloatArray) -> int:
    return player.ask()


def test_the_player_learns_the_better_of_the_two_policies() -> None:
    for seed in range(3):
        noise = np.random.default_rng(seed).normal(size=10_000)
        player = ARUCB(2, horizon=10_000, order=2, level=1.0, noise=1.0, **LARGE)
        best = rewards_of(lambda z: int((COEFFICIENTS @ z).argmax()), lambda reward: None, noise)
        constant = rewards_of(lambda z: 0, lambda reward: None, noise)
        mine = rewards_of(partial(asked, player), player.tell, noise)
        assert best - mine < 0.1 * (best - constant)


test_bad_settings_are_refused = refuses([
    ({"order": -1}, "order must be at least 0, but got -1"),
    ({"order": 1, "ridge": 0.0}, "ridge must be greater than 0, but got 0.0"),
    ({"order": 1, "confidence": 1.0}, "confidence must be less than 1, but got 1.0"),
], lambda settings: ae.rivals.ARUCB(2, horizon=9, **settings))
