"""The planner's verdict: its A/B test is the one that `simulate` plays, and what it recommends is what brings more."""

import math

import numpy as np
import pytest
from tests.refusals import refuses

import aftereffect as ae
from aftereffect.engines import planner
from aftereffect.engines.planner import Forecast, Option, Setting

SETTING = Setting(n_arms=3, rounds=40, n_units=1, max_delay=4, half_life=1.5, gap=10.0, noise=5.0)


@pytest.mark.parametrize(
    ("n_units", "hold", "how"),
    [(1, 1, {}), (1, 4, {}), (5, 3, {}), (1, 3, {"order": "random", "winner": "lags"})],
)
def test_the_ab_test_is_the_one_that_simulate_plays(n_units: int, hold: int, how: dict) -> None:
    """The pseudo-regret of a whole run, by the engine, against the test alone, by the planner."""
    setting = SETTING._replace(n_units=n_units)
    (units,) = setting.worlds(1)
    gained = planner._test_gain(setting, units, 0, 12, hold, how.get("winner", "means"))
    player: object = ae.rivals.ABTest(3, test_rounds=12, hold=hold, seed=0, **how, **planner._told(units[0]))
    if n_units > 1:
        player = ae.Panel(player, n_units=n_units)
    found = ae.simulate(player, units[0], runs=1, seed=0, progress=False)
    means = units[0].means
    # Effects in the units of the guesses: the gap of the world is 0.2, that of the setting 10.
    most = 40 * n_units * (means.max() - means.mean()) * 10.0 / 0.2
    assert gained == pytest.approx(most - found.pseudo_regret[0] * n_units * 10.0 / 0.2, rel=1e-9)


def test_the_most_there_is_to_gain_is_that_of_the_best_arm() -> None:
    # Two arms apart by the gap: an equal split loses half of it in each round.
    found = ae.plan(n_arms=2, rounds=50, n_units=3, max_delay=2, gap=4.0, noise=0.0)
    assert found.most == pytest.approx(50 * 3 * 2.0)
    assert found.test.share == pytest.approx(found.test.gain / found.most)


def test_figures_are_in_the_units_of_the_guesses() -> None:
    one, other = (ae.plan(n_arms=3, rounds=60, max_delay=2, gap=s, noise=2 * s) for s in (0.5, 500.0))
    assert other.most == pytest.approx(1000 * one.most)
    assert other.test.gain == pytest.approx(1000 * one.test.gain)
    assert other.player.gain == pytest.approx(1000 * one.player.gain)
    assert other.test.test_rounds == one.test.test_rounds


def test_noise_makes_an_ab_test_worse() -> None:
    quiet, loud = (ae.plan(n_arms=2, rounds=60, max_delay=1, noise=s).test.share for s in (0.01, 3.0))
    assert loud < 0.6 < quiet < 1.0


def test_an_ab_test_is_recommended_where_it_is_better() -> None:
    found = ae.plan(n_arms=2, rounds=60, max_delay=0, noise=0.01)
    assert found.recommended is found.test
    assert not found.worthwhile
    first = found.sentences("day")[0]
    assert first.startswith(f"Run an A/B test of {found.test.test_rounds} days instead: ")
    assert str(found).startswith(f"Run an A/B test of {found.test.test_rounds} rounds instead: ")


def test_with_many_units_a_test_judged_by_lags_is_the_better_one_and_the_words_say_how_it_is_run() -> None:
    found = ae.plan(n_arms=2, rounds=40, n_units=20, max_delay=9)
    assert found.test.winner == "lags"
    assert found.sentences("day")[-1].startswith("The A/B test draws an arm for every 3 days, and the lag model names")
    short = ae.plan(n_arms=2, rounds=60, max_delay=0, noise=0.01)
    assert short.test.winner == "means"
    assert short.sentences()[-1] == "The A/B test gives arms equal turns, and compares mean totals."


def test_without_carry_over_many_rounds_make_the_default_player_worth_while() -> None:
    long = ae.plan(n_arms=2, rounds=2_000, max_delay=0, player="advised")
    assert long.worthwhile
    assert (long.enough_rounds, long.tried) == (None, None)
    assert long.player.share > 0.9


def test_the_lag_model_is_recommended_where_the_guarantee_takes_too_long() -> None:
    found = ae.plan(n_arms=2, rounds=500, max_delay=3, noise=0.4, player="advised")
    assert found.recommended is found.model
    first = 'Choose the lag model instead (player "model"), which has no guarantee: it is expected to bring'
    assert found.sentences("day")[0].startswith(first)
    alone = ae.plan(n_arms=2, rounds=500, max_delay=3, noise=0.4)
    assert alone.model is None
    assert alone.player.gains.tolist() == found.model.gains.tolist()
    assert alone.sentences()[0].startswith("The lag model is worth while: it is expected to bring")


def test_a_test_that_was_lucky_in_the_worlds_in_which_it_was_chosen_promises_nothing(monkeypatch) -> None:
    monkeypatch.setattr(planner, "_test_gain", lambda setting, units, seed, *how: float(seed < planner.MOST_WORLDS))
    assert planner._compared(SETTING, SETTING.worlds(2), "model").test.gains.tolist() == [0.0] * 8


SIGNS = np.array([[1.0, -1.0, 1.0, -1.0], [1.0, 1.0, -1.0, -1.0]])


def made(player: float, test: float, spread: float = 0.0, most: float = 100.0, **more: object) -> Forecast:
    """Gains in four worlds, with spreads of their own."""
    own, other = player + spread * SIGNS[0], test + spread * SIGNS[1]
    tested = Option("an A/B test", other, most, 12, "means")
    return Forecast(SETTING, most, Option("the player", own, most), tested, 4, **more)


def test_the_test_must_be_better_by_more_than_chance() -> None:
    # Both have the same standard error, of which this is √2 times.
    margin = math.sqrt(8.0 / 3.0) / 2.0
    assert made(60.0, 59.99 + margin, spread=1.0).worthwhile
    assert made(60.0, 60.01 + margin, spread=1.0).recommended.name == "an A/B test"
    model = Option("the lag model", 62.0 + SIGNS[0], 100.0)
    assert made(60.0, 62.1, spread=1.0, model=model).recommended is model
    assert made(61.99, 62.0, spread=20.0, model=model).recommended.name == "the player"
    assert made(10.0, 66.0, spread=1.0, model=model).recommended.name == "an A/B test"
    close = "The A/B test is ahead by no more than a standard error, which may be chance."
    assert made(60.0, 60.5, spread=1.0).sentences()[1] == close
    assert close not in made(60.0, 59.9, spread=1.0).sentences() + made(60.0, 70.0).sentences()
    assert close not in made(40.0, 40.5, spread=1.0).sentences()
    assert not made(40.0, 30.0).worthwhile
    assert made(40.0, 30.0).sentences()[0].startswith("This is too short to learn much: the player is expected")
    assert made(60.0, 61.0, spread=3.0).player.error == pytest.approx(3.0 * math.sqrt(4.0 / 3.0) / 2.0)


def test_what_would_be_enough_is_said_or_how_far_was_looked() -> None:
    enough = made(0.0, 50.0, enough_rounds=80, enough_units=2)
    assert enough.sentences("week")[1] == "With about 80 weeks or 2 units, the player would be worth while."
    none = made(0.0, 50.0, tried=SETTING._replace(rounds=320, n_units=8))
    assert none.sentences()[1] == "Even over 320 rounds or with 8 units, the player would not be worth while."


def test_units_are_in_the_sum_and_in_the_words() -> None:
    found = ae.plan(n_arms=2, rounds=20, n_units=4, max_delay=1)
    assert any("Over 20 rounds in 4 units" in words for words in found.sentences())


test_bad_settings_are_refused = refuses([
    ({"n_arms": 1}, "n_arms must be at least 2, but got 1"),
    ({"gap": 1e300}, r"gap must be at most 1e\+100, but got 1e\+300"),
    ({"noise": 1e105}, r"noise must be at most 2e\+89, but got 1e\+105"),
    ({"gap": 1e-300, "noise": 1.0}, "noise must be at most 1e-210, but got 1"),
    ({"rounds": 5}, "rounds must be at least 6, but got 5"),
    ({"rounds": 9_000, "n_units": 7}, r"rounds \* n_units must be at most 60000, but got 9000 \* 7"),
    ({"gap": 0.0}, "gap must be greater than 0"),
    ({"noise": -1.0}, "noise must be at least 0"),
    ({"half_life": 0.0}, "half_life must be greater than 0"),
    ({"player": "best"}, "player must be one of"),
], lambda bad: ae.plan(**{"n_arms": 3, "rounds": 100, "max_delay": 2, **bad}))


def test_the_published_player_can_be_planned_with() -> None:
    found = ae.plan(n_arms=2, rounds=40, max_delay=1, player="paper")
    assert found.player.name == "the player of the paper"
    assert np.isfinite(found.player.gain)
