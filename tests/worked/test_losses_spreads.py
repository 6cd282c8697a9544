"""Spreads: dense components against independent constructions, memory, the input that they refuse."""

import math
import tracemalloc

import numpy as np
import pytest
from tests.refusals import refuses

from aftereffect.losses import spreads
from aftereffect.losses.tables import Table, iid

T, K = 23, 3
VALUES = np.random.default_rng(0).random((T, K))
# |Z| > 5 has probability 6e-7; fewer than 60 comparisons: a false alarm rate below 4e-5.
Z = 5.0


def one_hot(delays: np.ndarray, max_delay: int) -> np.ndarray:
    """Put VALUES[t, i] at delay delays[t, i]."""
    dense = np.zeros((T, max_delay + 1, K))
    for t in range(T):
        for i in range(K):
            dense[t, delays[t, i], i] = VALUES[t, i]
    return dense


def test_at_once_puts_everything_at_delay_0():
    for max_delay in (0, 4):
        losses = spreads.at_once(VALUES, max_delay=max_delay)
        np.testing.assert_array_equal(losses.components(), one_hot(np.zeros((T, K), int), max_delay))


def test_delayed_takes_one_delay_one_a_round_or_one_a_play():
    by_round, by_play = np.arange(T) % 4, np.arange(T * K).reshape(T, K) % 6
    for delays in (2, by_round, by_play):
        full = np.broadcast_to(delays[:, None] if np.ndim(delays) == 1 else delays, (T, K))
        for max_delay in (None, 7):
            losses = spreads.delayed(VALUES, delays=delays, max_delay=max_delay)
            assert losses.max_delay == (int(full.max()) if max_delay is None else 7)
            np.testing.assert_array_equal(losses.components(), one_hot(full, losses.max_delay))


@pytest.mark.parametrize("per_arm", [False, True])
def test_random_delays_move_whole_effects(per_arm):
    losses = spreads.randomly_delayed(VALUES, max_delay=5, seed=3, per_arm=per_arm)
    components = losses.components()
    np.testing.assert_array_equal(components.sum(axis=1), VALUES)
    delays = components.argmax(axis=1)
    np.testing.assert_array_equal(components, one_hot(delays, 5))
    assert (delays == delays[:, :1]).all() != per_arm


def test_geometric_weights_halve_by_half_life():
    losses = spreads.geometric(VALUES, half_life=3.0, max_delay=9)
    weights = np.array([0.5 ** (s / 3.0) for s in range(10)])
    dense = VALUES[:, np.newaxis, :] * (weights / weights.sum())[np.newaxis, :, np.newaxis]
    np.testing.assert_allclose(losses.components(), dense, rtol=1e-14)
    np.testing.assert_allclose(losses.components()[:, 3], losses.components()[:, 0] / 2.0, rtol=1e-14)


def test_geometric_default_cut_leaves_less_than_a_hundredth():
    # 2^-7 = 0.0078 < 0.01 <= 2^-6;  2^(-20/3) = 0.0098 < 0.01 <= 2^(-19/3) = 0.012
    assert spreads.geometric(VALUES, half_life=1.0).max_delay == 6
    assert spreads.geometric(VALUES, half_life=3.0).max_delay == 19
    assert spreads.geometric(VALUES, half_life=0.1).max_delay == 0


def test_kernels_and_linear_composites_multiply():
    weights = np.random.default_rng(1).dirichlet(np.ones(4), size=K)
    dense = np.einsum("ti,is->tsi", VALUES, weights)
    np.testing.assert_array_equal(spreads.kernels(VALUES, weights=weights).components(), dense)
    same = np.einsum("ti,s->tsi", VALUES, weights[0])
    np.testing.assert_array_equal(spreads.linear_composite(VALUES, coefficients=weights[0]).components(), same)


def test_linear_composite_is_the_formula_of_dekel_et_al():
    a, arms = [0.5, 0.25, 0.125], np.arange(T) % K
    played = VALUES[np.arange(T), arms]
    wanted = [sum(a[s] * played[t - s] for s in range(3) if t >= s) for t in range(T)]
    np.testing.assert_allclose(spreads.linear_composite(VALUES, coefficients=a).totals(arms), wanted, rtol=1e-14)


def test_means_are_those_of_the_whole_effect():
    table = iid(50, means=[0.25, 0.5], seed=0)
    for losses in (
        spreads.at_once(table),
        spreads.delayed(table, delays=3),
        spreads.random_split(table, max_delay=3, seed=0),
        spreads.geometric(table, half_life=2.0),
    ):
        np.testing.assert_allclose(losses.means, [0.25, 0.5], rtol=1e-14)
    np.testing.assert_array_equal(spreads.kernels(table, weights=[[0.5, 0.25], [0.5, 0.5]]).means, [0.1875, 0.5])
    assert spreads.at_once(VALUES).means is None


def test_anonymous_iid_shows_its_means_and_delays():
    n = 50_000
    losses = spreads.anonymous_iid(n, means=[0.5, 0.6], delay_law=("uniform", 0, 50), seed=4)
    assert (losses.max_delay, losses.direction) == (50, "maximize")
    mu = np.array([0.5, 0.6])
    np.testing.assert_array_equal(losses.means, mu)
    assert (np.abs(losses.params.values.mean(axis=0) - mu) <= Z * np.sqrt(mu * (1 - mu) / n)).all()
    assert abs(losses.params.delays.mean() - 25.0) <= Z * math.sqrt((51**2 - 1) / 12 / n)
    assert losses.redraw(1).redraw(2).max_delay == 50


def test_ranges_of_tables_are_kept_and_may_be_widened():
    table = Table(VALUES - 0.5, low=-0.5, high=0.5)
    assert spreads.geometric(table, half_life=1.0).effects == (-0.5, 0.5, False)
    wide = spreads.random_split(table, max_delay=2, seed=0, direction="maximize", low=-2.0, high=3.0)
    assert wide.effects == (-2.0, 3.0, True)
    assert wide.redraw(1).effects == (-2.0, 3.0, True)
    # With coefficients that sum to 3, values must be at most 1/3, or the range must be wider.
    assert spreads.linear_composite(VALUES, coefficients=[1.0, 1.0, 1.0], high=3.0).effects.hi == 3.0
    assert spreads.linear_composite(VALUES / 3.0, coefficients=[1.0, 1.0, 1.0]).effects.hi == 1.0


def test_a_long_spread_never_stores_every_component():
    horizon, max_delay, n_arms = 200_000, 200, 5
    arms = np.random.default_rng(0).integers(n_arms, size=horizon)
    weights = np.full((n_arms, max_delay + 1), 1.0 / (max_delay + 1))

    def builders(values):
        yield spreads.random_split(values, max_delay=max_delay, seed=1)
        yield spreads.kernels(values, weights=weights)
        yield spreads.randomly_delayed(values, max_delay=max_delay, seed=1)

    for small in builders(np.ones((3, n_arms))):
        small.totals([0, 1, 2])
    tracemalloc.start()
    try:
        for losses in builders(np.ones((horizon, n_arms))):
            # By the end all effects, of 1 each, have arrived in full, except those of the last d rounds.
            assert losses.totals(arms).sum() == pytest.approx(horizon - max_delay / 2, abs=max_delay / 2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    dense = horizon * (max_delay + 1) * n_arms * 8
    assert peak < dense / 30


def late(law, max_delay=5):
    return spreads.randomly_delayed(VALUES, max_delay=max_delay, seed=0, law=law)


test_refusals = refuses([
    (lambda: spreads.at_once(VALUES * 3.0), r"table must lie in \[0, 1\], but table\["),
    (lambda: spreads.delayed(VALUES, delays=5, max_delay=4), "must be at most max_delay=4, but the longest is 5"),
    (lambda: spreads.delayed(VALUES, delays=1.5), r"whole numbers of shape \(\), \(23,\) or \(23, 3\), but got"),
    (lambda: spreads.delayed(VALUES, delays=[1, 2]), r"but got int64 of shape \(2,\)"),
    (lambda: spreads.kernels(VALUES, weights=[[1.0], [1.0]]), r"weights must have shape \(3, d\+1\), but got"),
    (lambda: spreads.kernels(np.ones((2, 2)), weights=[[1.0], [-0.5]]), r"weights must keep .*, .* arm 1 is -0\.5"),
    (lambda: spreads.kernels(np.ones((2, 2)), weights=[[0.5, 0.75], [0, 0]]), r"in \[0, 1\], .* arm 0 is 1\.25"),
    (lambda: spreads.kernels(VALUES, weights=np.zeros((K, 0))), "weights must have at least one number, for delay 0"),
    (lambda: spreads.linear_composite(VALUES, coefficients=[]), "coefficients must have at least one number"),
    (
        lambda: spreads.linear_composite(np.ones((2, 2)), coefficients=[0.75, 0.75]),
        r"coefficients must keep every contiguous part of an effect in \[0, 1\], .* arm 0 is 1\.5",
    ),
    (lambda: spreads.linear_composite(np.ones((2, 2)), coefficients=[0.75, -0.5]), r"in \[0, 1\], .* arm 0 is -0\.5"),
    (lambda: late("cauchy"), "one of 'fixed', 'uniform', .* 'cauchy'"),
    (lambda: late(("poisson",)), r"the form \('poisson', mean\), but got"),
    (lambda: late(("uniform", 4, 2)), "must be at most its greatest"),
    (lambda: late(("uniform", 0.5, 2)), "least must be an int"),
    (lambda: late(("exponential", -1)), "mean must be at least 0, but got"),
    (lambda: late(("half_normal", 1, 25)), "law's mean must be at least √"),
    (lambda: late("uniform", max_delay=None), "max_delay must be given for the law 'uniform' without parameters"),
    (lambda: late(("poisson", 5), max_delay=None), "must be given for the unbounded law"),
])
