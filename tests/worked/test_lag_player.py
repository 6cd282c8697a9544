"""The player on the lag model: what it plays, hears, saves and refuses."""

import json

import numpy as np
import pytest
from tests.refusals import refuses
from tests.rounds import arms_on

import aftereffect as ae
from aftereffect.core import kernel
from aftereffect.lags import kernels
from aftereffect.players import lag_player

REWARDS = {"direction": "maximize"}


def world(seed=3, **settings):
    return ae.year(**{"horizon": 120, "n_arms": 3, "seed": seed, **settings})


def test_it_beats_an_equal_split_and_the_default_player_in_a_year():
    losses = ae.year(horizon=365, n_arms=4, seed=2)
    # The loop, which is quick enough for eight years and compiles no engine for these losses; the kit of players holds
    # that engines play alike.
    options = {"runs": 8, "instances": 8, "engine": "loop"}
    lags = ae.simulate(ae.LagPlayer(4, **REWARDS), losses, **options)
    uniform = float(lags.uniform_regrets[:, -1].mean())
    told = ae.default_player(4, max_delay=14, direction="maximize", low=losses.low, high=losses.high)
    assert lags.mean_regret < 0.4 * uniform
    assert lags.mean_regret < 0.5 * ae.simulate(told, losses, **options).mean_regret


def test_its_model_is_that_of_its_record():
    losses = world()
    player = ae.LagPlayer(3, season=7, **REWARDS)
    arms = arms_on(player, losses, 60)
    totals = losses.totals(np.array([*arms, *[0] * 60]))[:60]
    model = ae.LagModel(3, season=7, **REWARDS)
    for arm, total in zip(arms, totals.tolist(), strict=True):
        model.tell(arm, total)
    own = player._numbers[lag_player.model_at(player._params, 3) :]
    saved = kernels.scratch_at(model._params, 3)
    assert (own[:saved] == model._numbers[:saved]).all()
    assert (player.model.best == model.best).all()


def test_a_correction_leaves_what_the_right_total_would_have_left():
    wrong, right = (ae.LagPlayer(2, max_lag=3, seed=1) for _ in range(2))
    for t in range(40):
        for player in (wrong, right):
            arm = player.ask()
            other = 1 - arm if t == 5 else arm
            player.tell(50.0 if t == 20 and player is wrong else 0.1 * ((7 * t) % 5), arm=(t // 3) % 2 if t else other)
    wrong.correct(21, 0.1 * (140 % 5))
    own = lag_player.model_at(right._params, 2)
    saved = own + kernels.scratch_at(right._params.model, 2)
    assert (wrong._numbers[own:saved] == right._numbers[own:saved]).all()


@pytest.mark.parametrize(("policy", "heard"), [("void", None), ("clip", 10.0)])
def test_totals_out_of_range_are_recorded_as_they_are_heard(policy, heard):
    settings = {"max_lag": 3, "low": 0.0, "high": 10.0, "seed": 1}
    odd, plain = ae.LagPlayer(3, out_of_range=policy, **settings), ae.LagPlayer(3, **settings)
    random = np.random.default_rng(0)
    for t in range(60):
        total = None if t == 30 else random.uniform(0.0, 10.0)
        for player in (odd, plain):
            player.ask()
            player.tell(total if t % 7 else 1e200 if player is odd else heard, arm=t // 2 % 3)
    for player, total in ((odd, 500.0), (plain, heard)):
        player.learn([[0], [1]], [[total], [2.0]])
        player.correct(4, total)
    assert odd.state()["record"] == plain.state()["record"]
    assert odd.model.effects().mean.tolist() == plain.model.effects().mean.tolist()
    twin = ae.restore(json.loads(json.dumps(odd.state())))
    for _ in range(20):
        assert twin.ask() == odd.ask()
        twin.tell(5.0)
        odd.tell(5.0)


def test_corrections_and_rounds_learned_out_of_range_are_refused():
    player = ae.LagPlayer(2, low=0.0, high=10.0, seed=1)
    player.ask()
    player.tell(3.0)
    with pytest.raises(ae.InvalidTotal, match=r"total must lie in \[0, 10\], but got 11"):
        player.correct(1, 11.0)
    with pytest.raises(ae.InvalidTotal, match=r"total must lie in \[0, 10\], but got -1"):
        player.learn([[0]], [[-1.0]])
    for arms, totals in (([0], [1.0]), (None, None), ([[0]], [[1.0, 2.0]])):
        with pytest.raises(ae.InvalidArgument, match="arms and totals must be rows of 1, one per unit, for the same"):
            player.learn(arms, totals)
    assert [totals for _, totals in player.state()["record"]] == [[3.0]]


def test_an_arm_that_was_really_played_is_the_one_learned_from():
    player = ae.LagPlayer(3, max_lag=1, seed=4)
    player.ask()
    assert player.tell(0.5, arm=2).arm == 2
    player.ask()
    with pytest.raises(ae.InvalidArgument, match="arm must be at most 2, but got 3"):
        player.tell(0.5, arm=3)
    assert player.state()["record"] == [[[2], [0.5]]]


@pytest.mark.parametrize("arms", [[0, 1], [0, 1, 2, 0], 1])
def test_arms_really_played_must_be_those_of_all_units(arms):
    panel = ae.Panel(ae.LagPlayer(3, max_lag=1, seed=4), n_units=3)
    panel.ask()
    before = panel.state()
    with pytest.raises(ae.InvalidArgument, match="arms must be 3, one per unit, but got"):
        panel.tell([1.0, 2.0, 3.0], arms=arms)
    assert panel.state() == before
    assert panel.tell([1.0, 2.0, 3.0], arms=[2, 1, 0]).arms == [2, 1, 0]


def test_what_was_learned_alone_is_not_shared_or_copied():
    player = ae.LagPlayer(2, max_lag=1, seed=4)
    player.learn([[0], [1]], [[1.0], [2.0]])
    with pytest.raises(ae.InvalidArgument, match="player must have learned nothing to be shared by units, but it has"):
        ae.Panel(player, n_units=3)
    with pytest.raises(ae.InvalidArgument, match="player must have learned nothing to be copied, but it has"):
        player.fresh(seed=1)


def test_a_panel_shares_one_model_and_continues_after_a_restore():
    panel = ae.Panel(ae.LagPlayer(3, max_lag=2, seed=5, **REWARDS), n_units=4)
    random = np.random.default_rng(1)
    twin = None
    for t in range(40):
        if t == 20:
            twin = ae.restore(json.loads(json.dumps(panel.state())))
        arms = panel.ask()
        totals = [10.0 * u + arm + 0.2 * random.standard_normal() for u, arm in enumerate(arms)]
        totals[1] = None if t % 7 == 0 else totals[1]
        if twin is not None:
            assert twin.ask() == arms
            twin.tell(totals)
        panel.tell(totals)
    assert panel.player.model.best.argmax() == 2
    assert panel.ask().count(2) >= 3


def test_a_table_with_missing_totals_is_learned_and_saved():
    columns = {"round_column": "date", "arm_column": "campaign", "total_column": "sales", "unit_column": "store"}
    table = ae.round_table(ae.load_example("stores"), **columns)
    shops = ae.Panel(ae.LagPlayer(4, max_lag=10, direction="maximize", seed=1), n_units=12)
    shops.player.learn(table.played, table.totals)
    model = ae.LagModel(4, max_lag=10, direction="maximize", n_units=12)
    model.learn(table.played, table.totals)
    np.testing.assert_array_equal(shops.player.model.best, model.best)
    twin = ae.restore(json.loads(json.dumps(shops.state())))
    assert twin.ask() == shops.ask()


def test_effects_that_wear_off_are_noticed_and_arms_take_turns():
    losses = ae.year(horizon=365, n_arms=4, seed=8, change="fatigue", noise=0.1)
    player = ae.LagPlayer(4, seed=1, **REWARDS)
    arms = arms_on(player, losses, 365)
    assert next(each for each in player.model.checks() if each.name == "held").found
    assert [arm % 4 for arm in np.diff(arms[-40:])] == [1] * 39


def test_plans_know_what_day_it_is_after_rounds_that_were_learned(monkeypatch):
    monkeypatch.setattr(kernel, "entry", lambda function, *at: function)
    days, regressors = [], kernels.regressors
    monkeypatch.setattr(kernels, "regressors", lambda *at: days.append(at[2]) or regressors(*at))
    player = ae.LagPlayer(2, max_lag=1, season=7, seed=3)
    player.learn([[0], [1], [-1], [1], [0]], [[1.0], [2.0], [0.5], [2.0], [1.0]])
    days.clear()
    with np.errstate(over="ignore"):
        player.ask()
    assert min(days) == 5


@pytest.mark.parametrize("totals", [[0.0] * 40, [1e100] * 40, [1e100, -1e100] * 20])
def test_constant_and_huge_totals_are_played(totals):
    player = ae.LagPlayer(3, seed=2)
    for total in totals:
        assert player.ask() in (0, 1, 2)
        player.tell(total)
    assert np.isfinite(player.model.best).all()


test_settings_are_refused_by_name = refuses([
    ({"max_lag": -1}, "max_lag must be at least 0, but got -1"),
    ({"season": 1}, "season must be at least 2, but got 1"),
    ({"horizon": 0}, "horizon must be at least 1, but got 0"),
    ({"horizon": 10**30}, "horizon must be at most 9007199254740992, but got 1000"),
    ({"low": 2.0, "high": 1.0}, "high must be greater than 2"),
], lambda settings: ae.LagPlayer(2, **settings))


def test_totals_outside_low_and_high_are_refused():
    player = ae.LagPlayer(2, low=0.0, high=10.0)
    player.ask()
    with pytest.raises(ae.InvalidTotal, match=r"total must lie in \[0, 10\], but got 11.0"):
        player.tell(11.0)
    assert player.rounds_played == 0
