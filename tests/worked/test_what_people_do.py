"""What people would do instead: the A/B test, ε-greedy and Thompson sampling, by hand and by second formulas."""

import json
import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from tests.refusals import refuses
from tests.rounds import tell_all

import aftereffect as ae


def arms_played(player: Any, totals: list[float | None]) -> list[int]:
    return [played.arm for played in tell_all(player, totals)]


def test_an_equal_split_takes_turns_then_plays_the_arm_of_least_mean_for_good():
    # Means by hand: arm 0 has (0.5 + 0.75)/2, arm 1 (0.25 + 0.5)/2, arm 2 1/2: its second total is missing.
    totals = [0.5, 0.25, 0.5, 0.75, 0.5, None, 1.0, 1.0, 1.0]
    assert arms_played(ae.rivals.ABTest(3, test_rounds=6), totals) == [0, 1, 2, 0, 1, 2, 1, 1, 1]
    rewards = ae.rivals.ABTest(3, test_rounds=6, direction="maximize")
    assert arms_played(rewards, totals) == [0, 1, 2, 0, 1, 2, 0, 0, 0]


def test_holds_keep_an_arm_and_a_hold_may_end_with_the_test():
    player = ae.rivals.ABTest(2, test_rounds=7, hold=3)
    assert arms_played(player, [0.5] * 3 + [0.25] * 3 + [0.5] * 3) == [0, 0, 0, 1, 1, 1, 0, 1, 1]


def test_random_holds_are_even_and_differ_by_seed():
    player = ae.rivals.ABTest(3, test_rounds=3000, hold=2, order="random", seed=5)
    arms = np.array(arms_played(player, [0.0] * 3000)).reshape(-1, 2)
    assert (arms[:, 0] == arms[:, 1]).all()
    # Chi-square with 2 degrees of freedom; 27.6 has probability 1e-6.
    counts = np.bincount(arms[:, 0], minlength=3)
    assert ((counts - 500.0) ** 2 / 500.0).sum() < 27.6


def test_an_arm_that_was_never_seen_does_not_win():
    assert arms_played(ae.rivals.ABTest(3, test_rounds=2), [0.5, 0.25, 0.0]) == [0, 1, 1]
    assert arms_played(ae.rivals.ABTest(3, test_rounds=2), [None, None, 0.0]) == [0, 1, 0]


def test_units_take_turns_apart_and_share_the_winner():
    panel = ae.Panel(ae.rivals.ABTest(3, test_rounds=2), n_units=4)
    assert panel.ask() == [0, 1, 2, 0]
    panel.tell([0.5, 0.25, 0.0, 0.5])
    assert panel.ask() == [1, 2, 0, 1]
    before = panel.state()
    with pytest.raises(ae.InvalidTotal, match=r"totals\[2\]: total must be a finite number"):
        panel.tell([0.25, 0.0, math.inf, 0.25])
    assert panel.state() == before
    played = panel.tell([0.25, 0.0, 0.5, None])
    assert played == ae.PanelRound(2, [1, 2, 0, 1], True, True, [0.25, 0.0, 0.5, None], 1)
    twin = ae.restore(panel.state())
    # Sums of arms 0, 1, 2 by hand: 1.5 of 3, 0.5 of 2, 0 of 2.
    for each in (panel, twin):
        assert each.ask() == [2, 2, 2, 2]
    assert twin.state() == panel.state()


def test_a_panel_of_one_unit_is_the_test_alone():
    panel = ae.Panel(ae.rivals.ABTest(3, test_rounds=5, order="random", seed=3), n_units=1)
    alone = ae.rivals.ABTest(3, test_rounds=5, order="random", seed=3)
    for t in range(9):
        assert panel.ask() == [alone.ask()]
        panel.tell([t / 9])
        alone.tell(t / 9)


def delayed_rewards(seed: int, n_units: int) -> list[list[float | None]]:
    """Run a test of three arms on rewards of which most arrives two rounds late; return arms and totals by round."""
    draws = np.random.default_rng(seed)
    player = ae.rivals.ABTest(3, test_rounds=40, hold=2, order="random", winner="lags", direction="maximize", seed=seed)
    panel = ae.Panel(player, n_units=n_units)
    model = ae.LagModel(3, n_units=n_units, direction="maximize")
    late = [[0.0] * n_units for _ in range(44)]
    for t in range(40):
        arms = panel.ask()
        for unit, arm in enumerate(arms):
            late[t + 2][unit] += 0.3 * arm
        told = [None if draws.random() < 0.1 else late[t][u] + 0.1 * draws.random() for u in range(n_units)]
        panel.tell(told)
        model.tell(arms, told)
    return [panel.ask(), [int(np.argmax(model.effects().mean))] * n_units]


@pytest.mark.parametrize("n_units", [1, 3])
def test_the_winner_by_lags_is_the_best_arm_of_the_lag_model(n_units: int):
    found = [delayed_rewards(seed, n_units) for seed in range(6)]
    assert all(played == expected for played, expected in found)
    assert sum(played[0] == 2 for played, _ in found) >= 5


def test_a_test_by_lags_is_restored_in_the_middle_and_never_names_an_arm_unseen():
    player = ae.rivals.ABTest(3, test_rounds=9, hold=3, order="random", winner="lags", max_lag=4, seed=1)
    arms_played(player, [0.5, 0.25, None, 0.5, 0.75])
    twin = ae.restore(json.loads(json.dumps(player.state())))
    rest = [0.25, 0.5, 0.25, 0.5, 0.0, 0.0]
    assert arms_played(player, rest) == arms_played(twin, rest)
    one = ae.rivals.ABTest(3, test_rounds=1, winner="lags", direction="maximize", low=-1.0)
    assert arms_played(one, [-0.9, 0.0]) == [0, 0]
    huge = ae.rivals.ABTest(2, test_rounds=4, winner="lags", low=-1e300, high=1e300)
    assert arms_played(huge, [1e300, -1e300, 1e300, 0.0, 0.0])[4] in (0, 1)


test_bad_settings_are_refused = refuses([
    ({"test_rounds": 0}, "test_rounds must be at least 1, but got 0"),
    ({"test_rounds": 10**30}, "test_rounds must be at most 9007199254740992, but got 1000"),
    ({"test_rounds": 9, "hold": 10**30}, "hold must be at most 9007199254740992, but got 1000"),
    ({"test_rounds": 9, "order": "odd"}, "order must be one of 'turns', 'random', but got 'odd'"),
    ({"test_rounds": 9, "winner": "odd"}, "winner must be one of 'means', 'lags', but got 'odd'"),
    ({"test_rounds": 9, "max_lag": -1}, "max_lag must be at least 0, but got -1"),
], lambda settings: ae.rivals.ABTest(2, **settings))


def test_a_tuned_test_lasts_for_its_share_of_the_horizon():
    assert ae.rivals.ABTest.tuned(4, horizon=365, share=0.125).test_rounds == 46
    assert ae.rivals.ABTest.tuned(4, horizon=6, share=0.125).test_rounds == 4
    with pytest.raises(ae.InvalidArgument, match="share must be greater than 0, but got 0"):
        ae.rivals.ABTest.tuned(4, horizon=365, share=0)


def test_epsilon_greedy_shares_the_rest_among_the_leaders():
    bandit = ae.EpsilonGreedy(3, epsilon=0.3)
    assert bandit.probabilities == pytest.approx([1 / 3] * 3)
    bandit.update(0, 0.5)
    assert bandit.probabilities == pytest.approx([0.1, 0.45, 0.45])
    bandit.update(1, 0.75)
    bandit.update(2, 1.0)
    assert bandit.probabilities == pytest.approx([0.8, 0.1, 0.1])
    bandit.update(0, 1.0)  # both have mean 3/4 now
    assert bandit.probabilities == pytest.approx([0.45, 0.45, 0.1])
    with pytest.raises(ae.InvalidArgument, match="epsilon must be at most 1, but got"):
        ae.EpsilonGreedy(2, epsilon=1.5)


def fed(bandit: ae.GaussianThompson, losses: dict[int, list[float]]) -> np.ndarray:
    for arm, values in losses.items():
        for value in values:
            bandit.learn(arm, value)
    return bandit.probabilities


def test_two_arms_have_the_probabilities_of_a_difference_of_normals():
    losses = {0: [0.2, 0.4, 0.35], 1: [0.5, 0.3, 0.45, 0.6, 0.4]}
    means = [np.mean(values) for values in losses.values()]
    variance = sum(((np.array(v) - np.mean(v)) ** 2).sum() for v in losses.values()) / (8 - 2)
    z = (means[1] - means[0]) / math.sqrt(variance / 3 + variance / 5)
    assert fed(ae.GaussianThompson(2), losses)[0] == pytest.approx(NormalDist().cdf(z), abs=1e-9)


def test_four_arms_have_the_frequencies_of_sampled_means():
    random = np.random.default_rng(3)
    losses = {arm: list(random.uniform(0.1 * arm, 0.1 * arm + 0.6, size=4 * arm + 3)) for arm in range(4)}
    found = fed(ae.GaussianThompson(4), losses)
    n = sum(map(len, losses.values()))
    variance = sum(((np.array(v) - np.mean(v)) ** 2).sum() for v in losses.values()) / (n - 4)
    means = np.array([np.mean(v) for v in losses.values()])
    spread = np.sqrt(variance / np.array([len(v) for v in losses.values()]))
    drawn = (means + spread * random.standard_normal((200_000, 4))).argmin(axis=1)
    # Five standard errors of a frequency: at most 5·√(1/4/200,000) = 0.0056.
    assert found == pytest.approx(np.bincount(drawn, minlength=4) / len(drawn), abs=0.0056)


def test_thompson_tries_every_arm_twice_and_constant_losses_are_no_error():
    bandit = ae.GaussianThompson(2)
    bandit.update(0, 0.5)
    assert bandit.probabilities.tolist() == [0.0, 1.0]
    bandit.update(1, 0.5)
    assert bandit.probabilities.tolist() == [0.5, 0.5]
    bandit.update(1, 0.5)
    bandit.update(0, 0.5)
    assert bandit.probabilities.tolist() == [0.5, 0.5]
    bandit.update(0, 0.75)
    # Means 7/12 and 1/2, v = (1/24)/3: Φ((1/12)/√(v/3 + v/2)) = Φ(√0.6).
    assert bandit.probabilities[1] == pytest.approx(NormalDist().cdf(math.sqrt(0.6)), abs=1e-9)


def test_one_arm_tried_a_thousand_times_as_often_is_within_three_percent():
    counts, means = (3000, 3), (0.5, 0.52)
    bandit = ae.GaussianThompson(2)
    for arm, count in enumerate(counts):
        for k in range(count):
            bandit.learn(arm, means[arm] + 0.1 * (k % 3 - 1))
    n = sum(counts)
    variance = 0.02 / 3 * n / (n - 2)
    z = (means[1] - means[0]) / math.sqrt(variance / counts[0] + variance / counts[1])
    assert bandit.probabilities[0] == pytest.approx(NormalDist().cdf(z), abs=0.03)
