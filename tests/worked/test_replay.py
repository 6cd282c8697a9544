"""Losses from recorded plays: replayed, resampled by arm, spread by a kernel; the input that is refused."""

import pickle

import numpy as np
import pytest
from tests.refusals import refuses

from aftereffect import CompositeLossWrapper, simulate
from aftereffect.core.errors import InvalidLosses
from aftereffect.losses.replay import History, replay_series, widened

# |Z| > 5 has probability 6e-7; fewer than 40 comparisons: a false alarm rate below 3e-5.
Z = 5.0

ROUNDS = [7, 5, 5, 7, 6, 6]
ARMS = [0, 1, 0, 1, 0, 1]
EFFECTS = [[4.0, 1.0, 0.0], [0.0, 0.0, 9.0], [2.0, 2.0, 1.0], [0.0, 1.0, 8.0], [3.0, 0.0, 0.5], [1.0, 0.0, 7.0]]

# A log: arm 0 played in rounds 1, 2, 4 and arm 1 in rounds 3 and 5.
LOG = ([1, 2, 3, 4, 5], [0, 0, 1, 0, 1], [[1.0, 0.0], [2.0, 2.0], [0.0, 5.0], [3.0, 1.0], [1.0, 7.0]])


def test_a_panel_is_replayed_in_the_order_of_its_rounds():
    history = History(ROUNDS, ARMS, EFFECTS)
    assert (history.complete, history.horizon, history.n_arms, history.max_delay) == (True, 3, 2, 2)
    losses = history.replay()
    # components[t, s, i], for rounds 5, 6, 7.
    wanted = [[[2, 0], [2, 0], [1, 9]], [[3, 1], [0, 0], [0.5, 7]], [[4, 0], [1, 1], [0, 8]]]
    np.testing.assert_array_equal(losses.components(), wanted)
    # Arm 1, then 0, 0: 0; 0 + 3; 9 + 0 + 4.
    np.testing.assert_array_equal(losses.totals([1, 0, 0]), [0.0, 3.0, 13.0])
    assert (losses.direction, losses.low, losses.stochastic) == ("maximize", 0.0, False)
    # The largest effect is 9 and none is negative: the range is [0, 9 + 0.9].
    assert losses.high == pytest.approx(9.9)


def test_ranges_may_be_given_and_losses_minimized():
    losses = History(ROUNDS, ARMS, EFFECTS).replay(direction="minimize", low=-1.0, high=20.0)
    assert losses.effects == (-1.0, 20.0, False)
    # The sum of arm 0 is 2 + (2+3) + (1+0+4) = 12, that of arm 1 is 0 + (0+1) + (9+0+0) = 10.
    np.testing.assert_array_equal(losses.arm_sums(), [12.0, 10.0])
    assert losses.best_arm() == 1


def test_signed_effects_widen_both_ends():
    # The least contiguous part is -3 - 1 = -4, the largest 6.
    history = History([1, 1], [0, 1], [[-3.0, -1.0], [6.0, -2.0]])
    assert history.extremes() == (-4.0, 6.0)
    assert history.span() == (-5.0, 7.0)
    assert history.span(0.0) == (-4.0, 6.0)
    assert widened(-8.0, 0.0, 0.25) == (-10.0, 0.0)


def test_a_log_cannot_be_replayed_and_says_why():
    history = History(*LOG)
    assert not history.complete
    with pytest.raises(InvalidLosses, match=r"\(else use resample\), but round 1 has no play of arm 1"):
        history.replay()


def test_resampled_plays_are_recorded_ones_of_their_arm_equally_often():
    n = 60_000
    losses = History(*LOG).resample(n, seed=3)
    assert (losses.horizon, losses.n_arms, losses.max_delay, losses.stochastic) == (n, 2, 1, True)
    np.testing.assert_allclose(losses.means, [9.0 / 3.0, 13.0 / 2.0], rtol=1e-15)
    components = losses.components()
    for arm, plays in ((0, [[1, 0], [2, 2], [3, 1]]), (1, [[0, 5], [1, 7]])):
        hits = [(components[:, :, arm] == play).all(axis=1) for play in plays]
        assert sum(int(hit.sum()) for hit in hits) == n
        p = 1.0 / len(plays)
        for hit in hits:
            assert abs(hit.mean() - p) <= Z * np.sqrt(p * (1.0 - p) / n)
            # Neighbouring rounds are independent: pairs have the product of the frequencies.
            pairs = (hit[1:] & hit[:-1]).mean()
            assert abs(pairs - p * p) <= 2.0 * Z * np.sqrt(p * p / n)


def test_averages_of_a_batch_have_the_mean_and_less_spread():
    n, batch = 20_000, 9
    losses = History(*LOG).resample(n, seed=4, batch=batch)
    whole = losses.components().sum(axis=1)
    # Wholes of arm 0: 1, 4, 4 (mean 3, variance 2); of arm 1: 5, 8 (mean 6.5, variance 2.25).
    for arm, mean, variance in ((0, 3.0, 2.0), (1, 6.5, 2.25)):
        sd = np.sqrt(variance / batch)
        assert abs(whole[:, arm].mean() - mean) <= Z * sd / np.sqrt(n)
        # The variance of a sample variance is below 3 σ⁴/n for averages this close to normal.
        assert abs(whole[:, arm].var() - sd**2) <= Z * np.sqrt(3.0 / n) * sd**2
    # Sums of 9 whole numbers over 9.
    np.testing.assert_allclose(losses.components() * batch, np.rint(losses.components() * batch), atol=1e-12)


@pytest.mark.parametrize("batch", [1, 5])
def test_seeds_redraws_and_pickles(batch):
    history = History(*LOG)
    one, same, other = (history.resample(50, seed=seed, batch=batch).components() for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    losses = history.resample(50, seed=0, batch=batch, direction="minimize", high=50.0)
    again = losses.redraw(1)
    np.testing.assert_array_equal(again.components(), one)
    assert (again.direction, again.high) == ("minimize", 50.0)
    copy = pickle.loads(pickle.dumps(losses))
    np.testing.assert_array_equal(copy.components(), losses.components())
    np.testing.assert_array_equal(copy.redraw(1).components(), one)


@pytest.mark.parametrize("batch", [1, 3])
def test_engines_agree_on_resampled_plays(batch):
    rng = np.random.default_rng(0)
    history = History(np.arange(30) // 3, np.arange(30) % 3, rng.random((30, 4)))
    losses = history.resample(3000, seed=5, batch=batch)
    sizes = {"n_arms": 3, "max_delay": 3, "horizon": 3000, "direction": "maximize", "high": losses.high}
    player = CompositeLossWrapper.tuned(**sizes, seed=0)
    loop, *others = (simulate(player, losses, runs=3, seed=2, engine=name) for name in ("loop", "rounds", "blocks"))
    for other in others:
        # The decisions are the same; only the sums over blocks are rounded differently.
        np.testing.assert_array_equal(other.updates, loop.updates)
        np.testing.assert_allclose(other.regrets, loop.regrets, rtol=1e-9, atol=1e-9)


def test_drawing_rounds_takes_no_memory_by_round():
    history = History(*LOG)
    params = history.resample(10**9, seed=0).params
    assert params.records.nbytes == 5 * 2 * 8
    assert params.starts.tolist() == [0, 3, 5]


def test_a_range_for_averages_is_held_against_what_was_drawn():
    history = History(*LOG)
    # An average of 400 effects of 5 or 8 is never close to 8, the largest recorded part.
    assert history.resample(500, seed=0, batch=400, low=0.0, high=7.5).high == 7.5
    with pytest.raises(InvalidLosses, match=r"in \[0, 6\.5\], but a part of components\[\d+, :, 1\] sums to"):
        history.resample(500, seed=0, batch=400, low=0.0, high=6.5)
    with pytest.raises(InvalidLosses, match=r"recorded play, but got \[0, 7\.5\] and a part that sums to 8\.0"):
        history.resample(500, seed=0, low=0.0, high=7.5)


def test_a_series_and_a_kernel():
    series = np.array([[8.0, 2.0], [0.0, 4.0], [2.0, 2.0]])
    shared = replay_series(series, weights=[0.5, 0.25, 0.25])
    np.testing.assert_array_equal(shared.components(), series[:, None, :] * np.array([0.5, 0.25, 0.25])[:, None])
    assert (shared.direction, shared.max_delay, shared.low) == ("maximize", 2, 0.0)
    assert shared.high == pytest.approx(8.8)
    by_arm = replay_series(series, weights=[[1.0, 0.0], [0.25, 0.75]], direction="minimize", high=10.0)
    np.testing.assert_array_equal(by_arm.components()[0], [[8.0, 0.5], [0.0, 1.5]])
    assert by_arm.effects == (0.0, 10.0, False)
    # With shares 1.5 and -0.5 the parts of an effect of 8 are 12 and -4: a range of 16, widened by 1.6.
    dip = replay_series(series, weights=[1.5, -0.5])
    assert (dip.low, dip.high) == (pytest.approx(-5.6), pytest.approx(13.6))


test_refusals = refuses([
    (lambda: History([1], [0, 1], EFFECTS[:2]), r"rounds must have 2 items, one per play, but got shape \(1,\)"),
    (lambda: History([1, 1], [0.0, 1.0], EFFECTS[:2]), r"arms must be whole numbers of at least 0, but got \[0\.0"),
    (lambda: History([1, 1], [0, -1], EFFECTS[:2]), r"whole numbers of at least 0, but got \[0, -1\]"),
    (lambda: History([1, 1], [0, 2], EFFECTS[:2]), r"the plays of arms 0, 1, \.\.\. are \[1, 0, 1\]"),
    (lambda: History([1, 2], [0, 0], EFFECTS[:2]), r"arms must be at least 2, .* are \[2\]"),
    (lambda: History([1, 1, 1], [0, 1, 0], EFFECTS[:3]), "recorded once, but round 1, arm 0 occurs twice"),
    (lambda: History([1, 1], [0, 1], [[1.0], [np.nan]]), r"effects must be finite, but effects\[1, 0\] is nan"),
    (lambda: History([], [], np.zeros((0, 2))), r"shape \(plays, d\+1\), both at least 1, but got \(0, 2\)"),
    (lambda: History([1, 1], [0, 1], [[0.0], [0.0]]).replay(), r"span a range .* but got \[0, 0\]"),
    (lambda: History(*LOG).resample(5, seed=0, batch=0), "batch must be at least 1, but got 0"),
    (lambda: History(ROUNDS, ARMS, EFFECTS).replay(high=5.0), r"every contiguous part .* in \[0, 5\]"),
    (lambda: replay_series([[1.0, 2.0]], weights=[[1.0], [0.5], [0.5]]), r"weights must have shape \(2, d\+1\)"),
    (lambda: replay_series([1.0, 2.0], weights=[1.0]), r"series must have shape \(T, K\), but got shape \(2,\)"),
    (lambda: replay_series([[1.0, 2.0]], weights=[1.0], high=1.5), r"table must lie in \[0, 1\.5\]"),
])
