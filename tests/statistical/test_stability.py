"""Definition 3 measured: how far one update moves Algorithm 2 (Theorem 5) and Exp3 (Lemma 14)."""

import copy
import math
from typing import Any

import numpy as np
import pytest

import aftereffect as ae


def moved(before: Any, after: Any) -> float:
    """Return Σ_i (q_{n+1}(i) − q_n(i))⁺."""
    return math.fsum(np.maximum(after - before, 0.0))


def expected_move(bandit: Any, losses: Any) -> float:
    """Return E Σ (q_{n+1} − q_n)⁺ over the arm alone, exactly: every arm is tried on a copy of the bandit."""
    q = bandit.probabilities
    parts = []
    for arm in np.flatnonzero(q > 0.0).tolist():
        twin = copy.deepcopy(bandit)
        twin.update(arm, float(losses[arm]))
        parts.append(float(q[arm]) * moved(q, twin.probabilities))
    return math.fsum(parts)


def table(name: str, rounds: int, K: int) -> Any:
    """Return losses that try to move the distribution: all 1; one good arm; random; the good arm changes."""
    values = np.ones((rounds, K))
    if name == "one good arm":
        values[:, 0] = 0.0
    if name == "random":
        values = np.random.default_rng(K).random((rounds, K))
    if name == "turning":
        for n in range(rounds):
            values[n, (n // 25) % K] = 0.0
    return values


TABLES = ["all lose", "one good arm", "random", "turning"]


@pytest.mark.parametrize("losses", TABLES)
@pytest.mark.parametrize(("K", "rate"), [(2, 0.7), (2, 10.0), (5, 3.0), (5, 40.0), (20, 12.0)])
def test_tsallis_in_every_state_of_a_run(K: int, rate: float, losses: str) -> None:
    # Theorem 5 bounds the mean over the arm, given the past, in every round: no sampling, no tolerance.
    rounds = 150
    values, rng = table(losses, rounds, K), np.random.default_rng(K)
    bandit = ae.TsallisFTRL(K, learning_rate=rate)
    bound = 2 * (1 + math.log(K)) / rate
    assert bandit.stability() == pytest.approx(bound, rel=1e-15)
    for n in range(rounds):
        q = bandit.probabilities
        assert expected_move(bandit, values[n]) <= bound
        # Whatever the losses: those that put everything on one arm are in [0, 1] too.
        worst = np.zeros(K)
        worst[int(q.argmax())] = 1.0
        assert expected_move(bandit, worst) <= bound
        arm = int(rng.choice(K, p=q / q.sum()))
        bandit.update(arm, float(values[n, arm]))


@pytest.mark.parametrize("losses", TABLES)
@pytest.mark.parametrize(("K", "rate"), [(2, 0.02), (2, 0.9), (5, 0.1), (20, 0.3)])
def test_exp3_in_every_step_of_a_run(K: int, rate: float, losses: str) -> None:
    # Lemma 14 holds for every arm, not only on average.
    rounds = 150
    values, rng = table(losses, rounds, K), np.random.default_rng(K)
    bandit = ae.Exp3(K, learning_rate=rate)
    assert bandit.stability() == rate
    for n in range(rounds):
        q = bandit.probabilities
        assert expected_move(bandit, values[n]) <= rate
        arm = int(rng.choice(K, p=q / q.sum()))
        bandit.update(arm, float(values[n, arm]))
        assert moved(q, bandit.probabilities) <= rate


@pytest.mark.parametrize("losses", TABLES)
@pytest.mark.parametrize(
    "make",
    [lambda: ae.TsallisFTRL(4, learning_rate=6.0), lambda: ae.Exp3(4, learning_rate=0.1)],
    ids=["tsallis", "exp3"],
)
def test_along_runs(make: Any, losses: str) -> None:
    # Mean over 200 rounds of 40 runs, 3 standard errors (over runs) on top: false-alarm rate 0.13% where the bound
    # is attained; it is not.
    rounds, runs = 200, 40
    values, rng = table(losses, rounds, 4), np.random.default_rng(0)
    means = []
    for _ in range(runs):
        bandit = make()
        moves = []
        for n in range(rounds):
            q = bandit.probabilities
            arm = int(rng.choice(4, p=q / q.sum()))
            bandit.update(arm, float(values[n, arm]))
            moves.append(moved(q, bandit.probabilities))
        means.append(math.fsum(moves) / rounds)
    error = float(np.std(means, ddof=1)) / math.sqrt(runs)
    assert float(np.mean(means)) + 3.0 * error <= make().stability()
    assert float(np.mean(means)) > 0.0


def test_the_first_step_by_hand() -> None:
    # Exp3, K = 2, η = ln 3, loss 1/2: q goes from (1/2, 1/2) to (1/4, 3/4), so that 1/4 moves.
    bandit = ae.Exp3(2, learning_rate=math.log(3.0))
    assert expected_move(bandit, [0.5, 0.5]) == pytest.approx(0.25, rel=1e-14)
    # Algorithm 2, K = 2, η = 1, loss 5/24: q goes from (1/2, 1/2) to (9/25, 16/25), so that 7/50 moves.
    assert expected_move(ae.TsallisFTRL(2, learning_rate=1.0), [5 / 24, 5 / 24]) == pytest.approx(0.14, rel=1e-13)
    # A loss on one arm alone: half of that.
    assert expected_move(ae.TsallisFTRL(2, learning_rate=1.0), [5 / 24, 0.0]) == pytest.approx(0.07, rel=1e-13)


def test_uniform_never_moves() -> None:
    assert expected_move(ae.Uniform(3), [1.0, 0.5, 0.0]) == 0.0
    assert ae.Uniform(3).stability() == 0.0
