"""The losses of the lower bound: stacked by hand, the reduction of Lemma 8, means, noise and gaps."""

import math

import numpy as np
import pytest
from tests.refusals import refuses

from aftereffect.losses.hard import Stacked, hard, published_gap
from aftereffect.losses.protocol import Losses

# |Z| > 5 has probability 6e-7; fewer than 40 comparisons: a false alarm rate below 3e-5.
Z = 5.0


def test_stacking_by_hand():
    a, b = [0.25, 0.5], [1.0, 0.125]
    components = Losses(Stacked(np.array([a, b]), 2), horizon=6, max_delay=2, n_arms=2).components()
    wanted = np.zeros((6, 3, 2))
    # The losses of rounds 1, 2, 3 arrive in round 3, with delays 2, 1, 0; those of rounds 4, 5, 6 in round 6.
    wanted[0, 2] = wanted[1, 1] = wanted[2, 0] = a
    wanted[3, 2] = wanted[4, 1] = wanted[5, 0] = b
    np.testing.assert_array_equal(components, wanted)


@pytest.mark.parametrize(("max_delay", "horizon"), [(0, 12), (1, 12), (3, 12), (4, 12), (11, 12), (20, 12)])
def test_components_follow_the_congruence_of_lemma_8(max_delay, horizon):
    losses = hard(3, max_delay=max_delay, horizon=horizon, seed=1)
    components = losses.components()
    for t in range(1, horizon + 1):
        for s in range(max_delay + 1):
            due = (t + s) % (max_delay + 1) == 0
            linear = losses.linear[math.ceil(t / (max_delay + 1)) - 1]
            np.testing.assert_array_equal(components[t - 1, s], linear if due else 0.0)


def test_totals_are_d_plus_1_times_the_linear_loss_of_the_fractions():
    d, groups, n_arms = 4, 30, 3
    losses = hard(n_arms, max_delay=d, horizon=groups * (d + 1), seed=2)
    arms = np.random.default_rng(0).integers(n_arms, size=losses.horizon)
    totals = losses.totals(arms).reshape(groups, d + 1)
    fractions = np.array([(arms.reshape(groups, d + 1) == i).mean(axis=1) for i in range(n_arms)]).T
    np.testing.assert_array_equal(totals[:, :d], 0.0)
    np.testing.assert_allclose(totals[:, d], (d + 1) * (losses.linear * fractions).sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(losses.arm_sums(), (d + 1) * losses.linear.sum(axis=0), rtol=1e-12)


def test_a_short_last_group_costs_nothing():
    losses = hard(2, max_delay=2, horizon=8, seed=0)
    assert losses.linear.shape == (3, 2)
    assert losses.totals([0] * 8)[6:].tolist() == [0.0, 0.0]
    assert losses.regret([0] * 6 + [1] * 2) == losses.regret([0] * 8)


def test_published_gap_by_hand():
    assert published_gap(4, rounds=100) == 0.05
    assert published_gap(16, rounds=4) == 0.5
    assert published_gap(100, rounds=3) == 0.5
    losses = hard(4, max_delay=3, horizon=40_000, seed=0)
    assert losses.gap == 0.25 * math.sqrt(4 / 10_000)
    assert losses.scale == pytest.approx(1.0 / math.sqrt(8.0 * math.log(80_000.0)), rel=1e-15)


@pytest.mark.parametrize("noise", ["independent", "shared"])
@pytest.mark.parametrize("gap", [None, 0.0, 2.0])
def test_losses_have_their_means_and_lie_in_the_range(noise, gap):
    n, n_arms = 20_000, 3
    losses = hard(n_arms, max_delay=1, horizon=2 * n, seed=5, gap=gap, noise=noise, best_arm=1)
    mu = 0.25 * math.sqrt(n_arms / n) if gap is None else gap
    means = np.full(n_arms, 0.5)
    means[1] -= losses.scale * mu
    np.testing.assert_allclose(losses.means, means, rtol=1e-15)
    assert losses.best == 1
    assert losses.linear.min() >= 0.0
    assert losses.linear.max() <= 1.0
    sd = losses.scale / 2.0
    assert (np.abs(losses.linear.mean(axis=0) - means) <= Z * sd / math.sqrt(n)).all()
    variance = losses.linear.var(axis=0)
    # The variance of a normal sample's variance is 2σ⁴/n.
    assert (np.abs(variance - sd**2) <= Z * sd**2 * math.sqrt(2.0 / n) + 1e-5 * sd**2).all()


def test_shared_noise_moves_all_arms_alike():
    shared = hard(4, max_delay=2, horizon=3000, seed=3, gap=1.0, noise="shared", best_arm=0)
    np.testing.assert_allclose(shared.linear[:, 1:] - shared.linear[:, :1], shared.scale, rtol=1e-12)
    apart = hard(4, max_delay=2, horizon=3000, seed=3, gap=1.0, best_arm=0)
    correlation = np.corrcoef(apart.linear[:, 1], apart.linear[:, 2])[0, 1]
    assert abs(correlation) <= Z / math.sqrt(1000)


def test_the_planted_arm_is_uniform_unless_named():
    n_arms, draws = 4, 2000
    planted = np.bincount(
        [hard(n_arms, max_delay=0, horizon=1, seed=seed).best for seed in range(draws)], minlength=n_arms
    )
    assert (np.abs(planted - draws / n_arms) <= Z * math.sqrt(draws * 0.25 * 0.75)).all()
    named = hard(n_arms, max_delay=0, horizon=10, seed=0, best_arm=3)
    assert {named.redraw(seed).best for seed in range(20)} == {3}
    free = hard(n_arms, max_delay=0, horizon=10, seed=0)
    assert {free.redraw(seed).best for seed in range(40)} == {0, 1, 2, 3}


@pytest.mark.parametrize(("n_arms", "max_delay", "horizon"), [(2, 0, 1), (50, 0, 1), (5, 30, 3), (4, 2, 3)])
@pytest.mark.filterwarnings("ignore::aftereffect.AftereffectWarning")
@pytest.mark.parametrize("noise", ["independent", "shared"])
def test_the_default_gap_always_fits(n_arms, max_delay, horizon, noise):
    for seed in range(50):
        losses = hard(n_arms, max_delay=max_delay, horizon=horizon, seed=seed, noise=noise)
        assert losses.linear.min() >= 0.0
        assert losses.linear.max() <= 1.0
        assert losses.means.min() >= 0.25


test_refusals = refuses([
    (lambda: hard(2, max_delay=-1, horizon=10, seed=0), "max_delay must be at least 0, but got -1"),
    (lambda: hard(2, max_delay=2, horizon=10, seed=0, gap=-0.5), r"gap must be at least 0, but got -0\.5"),
    (
        lambda: hard(2, max_delay=2, horizon=10, seed=0, gap=9.0),
        r"gap must be at most 1\.1.* in \[0, 1\], but got 9\.0",
    ),
    (lambda: hard(2, max_delay=2, horizon=10, seed=0, noise="none"), "one of 'independent', 'shared', but got 'none'"),
    (lambda: hard(2, max_delay=2, horizon=10, seed=0, best_arm=2), "best_arm must be at most 1, but got 2"),
    (lambda: published_gap(2, rounds=0), "rounds must be at least 1, but got 0"),
])
