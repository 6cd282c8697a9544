"""Rewards of a linear system against its recursion, and DynLin-UCB against a slow implementation with matrices."""

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest
from tests.refusals import refuses
from tests.rounds import arms_on

import aftereffect as ae
from aftereffect.losses.linear_system import ADVERTISING, WIDEST, system_rewards
from aftereffect.players.registry import Problem, find
from aftereffect.players.rivals.linear_ucb import DynLinUCB

A, B, C, D = ADVERTISING.A, ADVERTISING.B, ADVERTISING.C, ADVERTISING.D


def test_totals_are_those_of_the_recursion() -> None:
    losses = system_rewards(ADVERTISING, max_delay=60, horizon=300, seed=3)
    arms = np.random.default_rng(1).integers(0, 6, size=300)
    state, expected = np.zeros(3), []
    for t, arm in enumerate(arms):
        u = ADVERTISING.arms[arm]
        expected.append((C @ state + D @ u).sum() + losses.params.noise[t])
        state = A @ state + B @ u
    np.testing.assert_allclose(losses.totals(arms), expected, atol=1e-9)


def test_noise_has_the_moments_of_the_system() -> None:
    """Standard errors, as for independent pairs at the effective number of rounds, are below 1.5% of the variance."""
    losses = system_rewards(ADVERTISING, max_delay=5, horizon=100_000, seed=2)
    noise = losses.params.noise
    # The stationary covariance of the state S = A S Aᵀ + σ²I, as a linear equation.
    flat = np.linalg.solve(np.eye(9) - np.kron(A, A), 1e-4 * np.eye(3).ravel())
    S, one = flat.reshape(3, 3), np.ones(3)
    variance = one @ C @ S @ C.T @ one + 3e-4
    lagged = one @ C @ A @ S @ C.T @ one
    assert noise.var() == pytest.approx(variance, rel=0.02)
    assert (noise[1:] * noise[:-1]).mean() == pytest.approx(lagged, abs=0.02 * variance)
    assert np.abs(noise).max() <= WIDEST * math.sqrt(variance) * (1 + 1e-9)


def test_redrawn_rewards_differ_in_noise_only() -> None:
    losses = system_rewards(ADVERTISING, max_delay=5, horizon=50, seed=2)
    again, other = losses.redraw(2), losses.redraw(3)
    assert again.params.noise.tolist() == losses.params.noise.tolist() != other.params.noise.tolist()
    assert np.abs(losses.components() - other.components())[:, 1:].max() == 0.0
    assert (losses.means == other.means).all()
    least, most = (np.cumsum(losses.components(), axis=1)[:, k] for k in (0, -1))
    assert losses.low <= min(least.min(), most.min()) < max(least.max(), most.max()) <= losses.high


def test_the_channel_of_largest_immediate_effect_has_a_negative_total() -> None:
    assert D.sum(axis=0).round(2).tolist() == [0.13, 0.41, 0.02]
    totals = np.ones(3) @ (D + C @ np.linalg.inv(np.eye(3) - A) @ B)
    assert totals.round(3).tolist() == [0.252, -0.036, 0.106]
    np.testing.assert_allclose(ADVERTISING.responses(60).sum(axis=0), ADVERTISING.arms @ totals, atol=1e-9)
    budgets = sorted(set(itertools.permutations((1.0, 0.5, 0.0))))
    assert ADVERTISING.arms.tolist() == [list(each) for each in budgets]


test_a_system_that_is_none_is_refused = refuses([
    ({"noise": -1.0}, "noise must be at least 0, but got -1.0"),
    ({"A": np.diag([0.5, -1.0, 0.0])}, "A must have a spectral radius below 1, but got 1"),
    ({"A": A[:2]}, r"A must have shape \(2, 2\), but got shape \(2, 3\)"),
    ({"B": B[:, :2]}, r"B must have shape \(3, 3\), but got shape \(3, 2\)"),
    ({"arms": np.zeros(6)}, r"arms must have shape \(K, p\)"),
    ({"B": B * np.nan}, "B must be finite"),
], lambda change: dataclasses.replace(ADVERTISING, **change))


def slow_dyn_lin_ucb(
    losses: Any, vectors: Any, radius: float, horizon: int, constants: tuple[float, ...], sign: float
) -> list[int]:
    """Play by the published rule, with an inverse of V for every epoch; constants: λ, c₁, c₂, σ̄²."""
    lam, c1, c2, variance = constants
    p, largest = vectors.shape[1], max(u @ u for u in vectors)
    V, sums, arms, stream, epoch = lam * np.eye(p), np.zeros(p), [], losses.stream(), 0
    while len(arms) < losses.horizon:
        epoch, t = epoch + 1, len(arms)
        inside = math.log(horizon) + p / 2 * math.log(1 + t * largest / (p * lam))
        beta = c1 * lam**0.5 + c2 / lam**0.5 * math.log(math.e * (t + 1)) + math.sqrt(2 * variance * inside)
        inverse = np.linalg.inv(V)
        indices = [(inverse @ sums) @ u + beta * math.sqrt(u @ inverse @ u) for u in vectors]
        # Ties go to the first arm; rounding must not decide them.
        arm = int(np.flatnonzero(np.array(indices) > max(indices) - 1e-9 * abs(max(indices)))[0])
        held = min(1 + math.floor(math.log(epoch) / math.log(1 / radius)), losses.horizon - t)
        for _ in range(held):
            total = stream.play(arm)
        arms += [arm] * held
        V, sums = V + np.outer(vectors[arm], vectors[arm]), sums + sign * total * vectors[arm]
    return arms


def test_dyn_lin_ucb_with_the_constants_of_a_known_system() -> None:
    losses = system_rewards(ADVERTISING, max_delay=14, horizon=1200, seed=5)
    problem = Problem(6, 14, 1200, direction="maximize", low=losses.low, high=losses.high)
    player = find("DynLinUCB").build(problem, system="advertising", ridge=2.0)
    rho, one = max(abs(root) for root in np.roots(np.poly(A))), np.ones(3)
    omega, theta, b = np.linalg.norm(one @ C), np.linalg.norm(one @ D), math.sqrt(np.linalg.eigvalsh(B.T @ B).max())
    powers = [np.linalg.svd(np.linalg.matrix_power(A, s), compute_uv=False)[0] / rho**s for s in range(1, 1000)]
    phi, u = max(powers), math.sqrt(1.25)
    c1, c2 = theta + omega * b * phi / (1 - rho), u * omega * phi * (u * b / (1 - rho) + u / (1 - rho))
    assert (player.c1, player.c2) == pytest.approx((c1, c2), rel=1e-9)
    variance = 1e-4 * (1 + omega**2 * phi**2 / (1 - rho**2))
    expected = slow_dyn_lin_ucb(losses, ADVERTISING.arms, rho, 1200, (2.0, c1, c2, variance), 1.0)
    assert arms_on(player, losses) == expected
    assert set(expected) == set(range(6))


def test_dyn_lin_ucb_with_its_defaults() -> None:
    """K = p = 2, ρ̄ = 1/2, H = 1: c₁ = √2, c₂ = √2, σ̄² = (1 + 1/(8·3/4))/4 = 7/24; losses, not rewards."""
    losses = ae.spreads.delayed(ae.tables.iid(2000, means=[0.1, 0.9], seed=4), delays=1)
    player = DynLinUCB(2, horizon=2000, spectral_radius=0.5)
    root = math.sqrt(2.0)
    expected = slow_dyn_lin_ucb(losses, np.eye(2), 0.5, 2000, (1.0, root, root, 7 / 24), -1.0)
    assert arms_on(player, losses) == expected
    assert expected.count(0) > expected.count(1) > 0


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20])
def test_dyn_lin_ucb_with_its_defaults_does_not_depend_on_the_unit(unit: float) -> None:
    losses = ae.spreads.delayed(ae.tables.iid(500, means=[0.3, 0.6], seed=4), delays=1)
    arms = []
    for scale in (1.0, unit):
        stream, player = losses.stream(), DynLinUCB(2, horizon=500, spectral_radius=0.5, high=scale)
        arms.append([])
        for t in range(500):
            if t == 250:
                player = ae.restore(player.state())
            arms[-1].append(player.ask())
            player.tell(scale * stream.play(arms[-1][-1]))
    assert arms[0] == arms[1]
    assert 0 < arms[0].count(1) < 250


def test_dyn_lin_ucb_of_a_system_without_memory() -> None:
    still = dataclasses.replace(ADVERTISING, A=np.zeros((3, 3)))
    player = DynLinUCB.for_system(still, horizon=9, direction="maximize")
    assert (player.spectral_radius, player.c1) == (0.0, pytest.approx(np.linalg.norm(D.sum(axis=0))))
    with pytest.raises(ae.InvalidArgument, match="A must be 0 if its spectral radius is"):
        DynLinUCB.for_system(dataclasses.replace(ADVERTISING, A=np.eye(3, k=1)), horizon=9)
    with pytest.raises(ae.InvalidArgument, match=r"features must have at least one column, but got shape \(3, 0\)"):
        DynLinUCB(3, horizon=9, spectral_radius=0.5, features=np.zeros((3, 0)))


def test_dyn_lin_ucb_from_a_delay() -> None:
    assert DynLinUCB.tuned(2, max_delay=4, horizon=9).spectral_radius == pytest.approx(0.1**0.5)
    assert DynLinUCB.tuned(2, max_delay=0, horizon=9).spectral_radius == 0.0
    assert [DynLinUCB.tuned(2, max_delay=0, horizon=9).ask() for _ in range(2)] == [0, 0]


def test_a_missing_last_total_makes_an_epoch_longer() -> None:
    player = DynLinUCB(2, horizon=9, spectral_radius=0.5)
    given = [None, 0.5, 0.5, None, 0.5]
    rounds = [(player.ask(), player.tell(total))[1] for total in given]
    assert [each.update for each in rounds] == [False, True, False, False, True]
    assert [each.arm for each in rounds] == [0, 0, 1, 1, 1]
