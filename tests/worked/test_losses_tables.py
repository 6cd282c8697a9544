"""Tables: each function against numbers by hand or its distribution; the input that they refuse."""

import numpy as np
import pytest
from tests.refusals import refuses

from aftereffect.core.errors import InvalidLosses
from aftereffect.losses.tables import Table, as_table, constrained, drifting, iid, seasonal, switching

# |Z| > 5 has probability 6e-7; fewer than 50 comparisons: a false alarm rate below 3e-5.
Z = 5.0
MAKERS = {
    "iid": lambda seed, law: iid(50, means=[0.25, 0.5, 0.75], seed=seed, law=law),
    "switching": lambda seed, law: switching(50, n_arms=3, seed=seed, law=law),
    "constrained": lambda seed, law: constrained(50, n_arms=3, seed=seed, law=law),
    "drifting": lambda seed, law: drifting(50, n_arms=3, seed=seed, law=law),
    "seasonal": lambda seed, law: seasonal(50, n_arms=3, seed=seed, law=law),
}
makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


@makers
def test_bernoulli_tables_are_drawn_by_their_seed(make):
    table = make(3, "bernoulli")
    assert table.values.shape == (50, 3)
    assert set(np.unique(table.values)) == {0.0, 1.0}
    assert not table.values.flags.writeable
    np.testing.assert_array_equal(make(3, "bernoulli").values, table.values)
    assert not np.array_equal(make(4, "bernoulli").values, table.values)
    np.testing.assert_array_equal(table.redraw(4).values, make(4, "bernoulli").values)
    np.testing.assert_array_equal(table.redraw(4).redraw(3).values, table.values)


@makers
def test_bernoulli_tables_have_the_means_that_constant_tables_show(make):
    if make is MAKERS["drifting"]:
        means = np.array([make(seed, "constant").values for seed in range(400)])
        draws = np.array([make(seed, "bernoulli").values for seed in range(400)])
    else:
        means = np.broadcast_to(make(0, "constant").values, (400, 50, 3))
        draws = np.array([make(seed, "bernoulli").values for seed in range(400)])
    error = (draws - means).sum()
    assert abs(error) <= Z * np.sqrt((means * (1.0 - means)).sum())


@pytest.mark.parametrize("name", ["iid", "switching", "constrained", "seasonal"])
def test_constant_tables_cannot_be_redrawn(name):
    with pytest.raises(InvalidLosses, match="must have a stochastic recipe to be redrawn"):
        MAKERS[name](0, "constant").redraw(1)


def test_iid_laws_have_their_moments():
    mu, n = np.array([0.1, 0.5, 0.8]), 40_000
    for law, variance in (("bernoulli", mu * (1 - mu)), ("beta", mu * (1 - mu) / 5.0)):
        table = iid(n, means=mu, seed=7, law=law, concentration=4.0)
        np.testing.assert_array_equal(table.means, mu)
        assert (np.abs(table.values.mean(axis=0) - mu) <= Z * np.sqrt(variance / n)).all()
        # The variance of (X - mu)² is at most 1/4: X - mu lies in [-1, 1].
        spread = ((table.values - mu) ** 2).mean(axis=0)
        assert (np.abs(spread - variance) <= Z * np.sqrt(0.25 / n)).all()


def test_switching_by_hand():
    table = switching(5, n_arms=3, seed=0, period=2, gap=0.5, law="constant")
    good, bad = 0.25, 0.75
    wanted = [[good, bad, bad], [good, bad, bad], [bad, good, bad], [bad, good, bad], [bad, bad, good]]
    assert table.values.tolist() == wanted
    table = switching(5, n_arms=2, seed=0, rounds=[1, 4], gap=0.5, law="constant")
    assert table.values[:, 0].tolist() == [good, bad, bad, bad, good]
    assert switching(8, n_arms=2, seed=0, gap=1.0, law="constant").values[:, 0].tolist() == [0, 0, 1, 1] * 2


def test_constrained_by_hand():
    table = constrained(20, n_arms=3, seed=0, gap=0.25, best_arm=1, law="constant")
    # Phases last ⌊1.6^n⌋ = 1, 1, 2, 4, 6, 10 rounds; the first is low.
    high = [False] + [True] + [False] * 2 + [True] * 4 + [False] * 6 + [True] * 6
    assert table.values[:, 1].tolist() == [0.75 if up else 0.0 for up in high]
    for other in (0, 2):
        assert table.values[:, other].tolist() == [1.0 if up else 0.25 for up in high]
    for growth, wanted in ((1.0, [0.0, 0.875, 0.0, 0.875]), (1e300, [0.0, 0.875, 0.875, 0.875])):
        assert constrained(4, n_arms=2, seed=0, growth=growth, law="constant").values[:, 0].tolist() == wanted


def test_drifting_means_walk_within_bounds():
    walk = drifting(20_000, n_arms=4, seed=1, step=0.05, law="constant").values
    steps = np.abs(np.diff(walk, axis=0))
    assert walk.min() >= 0.0
    assert walk.max() <= 1.0
    assert steps.max() <= 0.05 + 1e-12
    assert steps.max() >= 0.049
    # In 20,000 steps of size 0.05 a walk crosses [0, 1] dozens of times.
    assert (walk.min(axis=0) < 0.05).all()
    assert (walk.max(axis=0) > 0.95).all()
    still = drifting(10, n_arms=2, seed=1, step=0.0, law="constant").values
    assert (still == still[0]).all()


def test_seasonal_by_hand():
    table = seasonal(
        horizon=4, n_arms=2, seed=0, period=4.0, level=[0.5, 0.25], amplitude=[0.25, 0.125], law="constant"
    )
    np.testing.assert_allclose(table.values[:, 0], [0.75, 0.5, 0.25, 0.5], atol=1e-15)
    np.testing.assert_allclose(table.values[:, 1], [0.125, 0.25, 0.375, 0.25], atol=1e-15)
    early = seasonal(4, n_arms=2, seed=0, period=4.0, phases=[0.25, 0.0], law="constant")
    np.testing.assert_allclose(early.values[:, 0], [0.5, 0.75, 0.5, 0.25], atol=1e-15)


def test_tables_keep_a_copy_and_their_own_range():
    values = np.array([[2.0, 3.0]])
    table = Table(values, low=1.0, high=4.0)
    values[:] = 0.0
    assert table.values.tolist() == [[2.0, 3.0]]
    assert as_table(table, None, None) is table
    wider = as_table(table, None, 8.0)
    assert (wider.low, wider.high) == (1.0, 8.0)
    with pytest.raises(InvalidLosses, match=r"table must lie in \[1, 2\], but table\[0, 1\] is 3\.0"):
        as_table(table, None, 2.0)


test_refusals = refuses([
    (lambda: Table([[0.5, 1.5]]), r"table must lie in \[0, 1\], but table\[0, 1\] is 1\.5"),
    (lambda: Table([[0.5, np.nan]]), r"table must be finite, but table\[0, 1\] is nan"),
    (lambda: Table([[0.5]]), r"table must have shape \(T >= 1, K >= 2\), but got shape \(1, 1\)"),
    (lambda: Table([0.5]), r"table must have shape \(T, K\), but got shape \(1,\)"),
    (lambda: Table([[0.5, 0.5]], means=[0.5]), r"means must have shape \(2,\), but got shape \(1,\)"),
    (lambda: iid(0, means=[0.5, 0.5], seed=0), "horizon must be at least 1, but got 0"),
    (lambda: iid(5, means=[0.5], seed=0), r"len\(means\) must be at least 2, but got 1"),
    (lambda: iid(5, means=[0.5, 1.5], seed=0), r"means must lie in \[0, 1\], but got 1\.5"),
    (lambda: iid(5, means=[0.5, 1.0], seed=0, law="beta"), r"in \(0, 1\) for law 'beta', but got \[0.5, 1"),
    (lambda: iid(5, means=[0.5, 0.5], seed=0, law="normal"), "one of 'bernoulli', 'constant', 'beta', but got"),
    (lambda: switching(5, n_arms=2, seed=0, period=2, rounds=[1]), "period must be omitted if rounds are given"),
    (lambda: switching(5, n_arms=2, seed=0, rounds=[3, 2]), r"rounds must increase, but got \[3, 2\]"),
    (lambda: switching(5, n_arms=2, seed=0, rounds=[5]), "rounds must be at most 4, but got 5"),
    (lambda: constrained(5, n_arms=2, seed=0, growth=0.5), r"growth must be at least 1, but got 0\.5"),
    (lambda: drifting(5, n_arms=2, seed=0, step=-0.1), r"step must be at least 0, but got -0\.1"),
    (lambda: drifting(5, n_arms=2, seed=0, law="beta"), "law must be one of 'bernoulli', 'constant', but got"),
    (lambda: seasonal(5, n_arms=2, seed=0, amplitude=0.75), r"amplitude must lie in \[0, 1\], but got -0\.25"),
    (lambda: seasonal(5, n_arms=2, seed=0, phases=[0.0]), r"phases must have shape \(2,\), but got shape \(1,\)"),
])
