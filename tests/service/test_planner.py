"""The planner: carry-over in words, block lengths against an enumeration, and from when on the guarantee speaks."""

import itertools
import math

import pytest
from tests.refusals import refuses

import aftereffect as ae
from aftereffect import MatchedTsallis
from aftereffect.carryover.delay import choose_delay
from aftereffect.service.errors import Refused, checked
from aftereffect.service.experiment.plan import forecast, plan, planned
from aftereffect.service.messages import Plan
from aftereffect.service.settings import PlanQuestion, checked_settings, days, duration


def settled(n_arms: int, d: int, **changes: object) -> Plan:
    arms = [str(i) for i in range(n_arms)]
    return plan(checked_settings({"name": "x", "arms": arms, "high": 1.0, "max_delay": d, **changes}))


@pytest.mark.parametrize(("words", "length"), [
    *(("7 days", 7.0), ("1 week", 7.0), ("12 hours", 0.5), ("90 minutes", 0.0625)),
    *(("day", 1.0), ("An hour", 1 / 24), (3, 3.0), ("1.5 days", 1.5)),
])
def test_lengths_of_time(words: object, length: float) -> None:
    assert days(words) == pytest.approx(length, rel=1e-15)


@pytest.mark.parametrize(
    "words", ["", "7", "7 moons", "-1 day", "days 7", True, 0, -1, math.nan, 1e9, "999999999 years", None]
)
def test_what_is_no_length_of_time(words: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        days(words)


def test_lengths_are_said_in_words_that_read_back() -> None:
    for length in (1.0, 7.0, 14.0, 2.0, 0.5, 1 / 1440):
        assert days(duration(length)) == pytest.approx(length, rel=1e-12)


@pytest.mark.parametrize(("window", "round_length", "rounds"), [
    ("7 days", None, 7),
    ("7 days", 7, 1),
    ("8 days", 7, 2),
    ("9 weeks", "1 week", 9),
    ("1 day", "1 hour", 24),
    (0.3, 0.1, 3),
])
def test_rounds_of_a_carry_over(window: str | float, round_length: str | float | None, rounds: int) -> None:
    question = {"arms": 2, "carry_over": {"window": window}, "round_length": round_length}
    assert planned(question).max_delay == rounds


@pytest.mark.parametrize("question", [
    {"carry_over": {"half_life": 2}},
    {"carry_over": {"half_life": "2 weeks"}, "round_length": "1 week"},
    {"carry_over": {"half_life": 2}, "direction": "minimize", "horizon": 1_000_000, "low": 2.0, "high": 9.0},
    {"carry_over": {"half_life": 2}, "low": -5.0, "high": 20.0, "arms": 4},
])
def test_a_half_life_has_the_rounds_of_the_best_guarantee(question: dict) -> None:
    given = {"arms": 3, "direction": "maximize", **question}
    problem = {key: given[key] for key in ("direction", "low", "high", "horizon") if key in given}
    chosen = choose_delay(n_arms=given["arms"], half_life=2, **problem)
    plan = planned(given)
    assert plan.max_delay == chosen.max_delay
    late = 1.0 - chosen.inside[chosen.place]
    assert any(sentence.startswith(f"{late:.1%} of an effect arrives later") for sentence in plan.sentences)
    # The guarantee has the late part: it is informative later than with a window of the same length.
    window = {**given, "carry_over": None, "max_delay": chosen.max_delay}
    assert plan.informative_from > planned(window).informative_from


@pytest.mark.parametrize("d", [0, 1, 2])
@pytest.mark.parametrize(("changes", "quiet", "bias"), [
    # Losses that are never negative: β = 1/(d+1), and d zeros before an update. Gains: 0.4/(d+1), 1 without delay.
    ({"direction": "minimize"}, 1, lambda d: 1 / (d + 1)),
    ({"direction": "maximize"}, 1, lambda d: 0.4 / (d + 1) if d else 1.0),
    ({"direction": "minimize", "low": -1}, 1, lambda d: 0.4 / (d + 1) if d else 1.0),
    ({"player": "paper", "horizon": 100}, 2, lambda d: 1 / (2 * d + 1)),
])
@pytest.mark.usefixtures("unadvised")
def test_the_mean_block_is_that_of_the_coins(d: int, changes: dict, quiet: int, bias: object) -> None:
    """Expected number of updates in n rounds, from all 2^n coin sequences, against (n − zeros)/mean_block."""
    n, beta, zeros = 12, bias(d), quiet * d
    expected = 0.0
    for coins in itertools.product((0, 1), repeat=n):
        weight = math.prod(beta if coin else 1 - beta for coin in coins)
        ends = [t for t in range(zeros, n) if coins[t] and not any(coins[t - zeros : t])]
        expected += weight * len(ends)
    found = settled(2, d, **changes)
    assert found.mean_block == pytest.approx((n - zeros) / expected, rel=1e-12)
    assert found.shortest_block == zeros + 1


@pytest.mark.parametrize(("n_arms", "d"), [(2, 0), (2, 1), (3, 2), (5, 1)])
@pytest.mark.usefixtures("unadvised")
def test_from_that_round_on_the_worst_case_stays_informative(n_arms: int, d: int) -> None:
    since = settled(n_arms, d, direction="minimize").informative_from
    beta, h = 1 / (d + 1), 2 * (math.sqrt(n_arms) - 1)
    rate = MatchedTsallis(n_arms).first_rate

    def bound(T: int) -> float:
        """Written out once more from the docstrings of theory.adaptive."""
        clean, C = (1 - beta) ** d, math.sqrt((2 - beta) / beta**2 + 2 * d / beta + d * d)
        V = clean * (1 + beta * (T - d - 1))
        N, slow = V - clean, 0.5 * math.log(1 + 4 * n_arms * V / (h * rate) ** 2)
        raised = math.log(1 + 4100 * V / rate**2)
        moved = min(N, math.sqrt(h * N * slow / math.log(2)) + slow / math.log(2) + raised)
        return d * (1 + moved) + C / clean * (h * rate + 4 * math.sqrt(n_arms * V))

    last = max(T for T in range(d + 1, 3 * since) if bound(T) >= T)
    assert since == last + 1


@pytest.mark.usefixtures("unadvised")
def test_weekly_rounds_with_nine_weeks_make_few_decisions_a_year_and_the_plan_says_so() -> None:
    found = settled(3, 9, round_length=7)
    # β = 0.04: 1/(0.04·0.96⁹) rounds of a week.
    assert found.mean_block == pytest.approx(25 / 0.96**9, rel=1e-12)
    assert 4 * found.decisions_per_quarter == pytest.approx(365.25 / 7 / found.mean_block, rel=1e-12)
    assert 1.4 < 4 * found.decisions_per_quarter < 1.5
    text = " ".join(found.sentences)
    assert "attribution window" in text
    assert "slow" in text
    assert "More units" in text
    assert "at least 10 rounds (10 weeks), 36.1 on average (252.7 days)" in text
    assert "The first totals of a block still hold effects of the previous arm" in text
    paper = settled(3, 9, round_length=7, player="paper", horizon=100)
    # 19·(19/18)^18 rounds of a week: one decision a year.
    assert paper.mean_block == pytest.approx(19 * (19 / 18) ** 18, rel=1e-12)


@pytest.mark.usefixtures("unadvised")
def test_a_delay_of_one_round_is_said_in_the_singular() -> None:
    text = " ".join(settled(2, 1).sentences)
    assert "up to 1 round (1 day) after the action" in text


def test_many_units_or_no_delay_are_not_called_slow() -> None:
    assert "slow" not in " ".join(settled(3, 9, round_length=7, units=20).sentences)
    assert "slow" not in " ".join(settled(3, 0).sentences)


def test_nothing_is_said_of_blocks_if_the_opening_lasts_up_to_the_horizon() -> None:
    opening = ae.default_player(4, max_delay=4, direction="maximize", adviser="lags").opening
    text = " ".join(settled(4, 4, horizon=opening, units=60).sentences)
    assert "Up to the horizon a model of all totals chooses the arms itself" in text
    assert "block" not in text
    assert "decisions per quarter" not in text
    assert settled(4, 4, horizon=opening).mean_block is None
    longer = settled(4, 4, horizon=opening + 1)
    assert longer.mean_block > longer.shortest_block == 5
    assert f"In the first {opening} rounds" in " ".join(longer.sentences)


def test_a_horizon_too_short_is_said() -> None:
    short = settled(21, 7, horizon=20)
    assert "shorter than one mean block" in " ".join(short.sentences)
    assert "says nothing over 365 rounds: it takes" in " ".join(settled(2, 7, horizon=365).sentences)
    since = settled(2, 7).informative_from
    assert "it takes" not in " ".join(settled(2, 7, horizon=since).sentences)


def test_the_papers_player_promises_nothing_where_effects_can_be_negative() -> None:
    found = settled(2, 1, player="paper", horizon=10**6, low=-1)
    assert found.informative_from is None
    assert "No guarantee is known for this player" in " ".join(found.sentences)


def test_effects_that_outlast_the_horizon_are_not_simulated() -> None:
    assert planned({"arms": 2, "max_delay": 40, "horizon": 40}).forecast is None
    assert planned({"arms": 2, "max_delay": 10_000}).forecast is None


def test_a_question_is_answered_by_number_or_by_name() -> None:
    by_name = planned({"arms": ["a", "b"], "max_delay": 2})
    assert by_name == planned({"arms": 2, "max_delay": 2})
    assert by_name.shortest_block == 3
    assert planned({"arms": 2, "max_delay": 2, "player": "paper", "horizon": 9}).shortest_block == 5


HALF_LIFE = {"max_delay": None, "carry_over": {"half_life": 2}}

test_bad_questions_are_refused = refuses([
    ({"arms": 1}, "arms must be at least 2, but got 1"),
    ({"arms": None}, "arms must be given, but it is missing"),
    ({"arms": 1001}, "arms must be at most 1000, but got 1001"),
    ({"noise": -1}, "noise must be at least 0"),
    ({**HALF_LIFE, "horizon": 0}, "horizon must be at least 1"),
    ({**HALF_LIFE, "low": 3.0, "high": 1.0}, "low must be less than high"),
    ({"max_delay": None, "carry_over": {}}, "carry_over must have exactly one of window and half_life"),
    ({"max_delay": None, "carry_over": {"window": 36_500}}, "max_delay must be at most 10000, but got 36500"),
    ({**HALF_LIFE, "carry_over": {"half_life": "100 years"}, "round_length": "1 minute"}, "max_delay must be at most"),
    ({"name": "x"}, "a plan must have no other keys than .*, but got 'name'"),
], lambda bad: planned({"arms": 2, "max_delay": 1} | bad), error=Refused)


def test_a_plan_begins_with_a_forecast_in_the_units_of_the_totals() -> None:
    found = planned({"arms": 2, "max_delay": 1, "high": 500.0, "horizon": 60, "noise": 20.0}).forecast
    # The guess of the gap is a tenth of the range: over 60 days the best of two arms brings half of that a day more.
    assert (found.gap, found.noise, found.rounds) == (50.0, 20.0, 60)
    assert found.most == pytest.approx(60 * 25.0)
    same = ae.plan(n_arms=2, rounds=60, max_delay=1, gap=50.0, noise=20.0, player="advised")
    assert (found.player, found.test, found.model) == (same.player.gain, same.test.gain, same.model.gain)
    assert found.test_winner == same.test.winner
    assert found.sentences == same.sentences("day")


def test_without_a_horizon_the_forecast_is_that_of_a_year_and_speaks_of_weeks() -> None:
    found = planned({"arms": 2, "carry_over": {"half_life": "1 week"}, "round_length": 7}).forecast
    assert found.rounds == 52
    assert "Over 52 weeks" in found.sentences[-3]
    assert "half of an effect has arrived after 1 week." in found.sentences[-2]


def test_settings_too_large_to_simulate_have_no_forecast() -> None:
    for large in ({"arms": 51}, {"horizon": 10_001}, {"units": 1_000, "horizon": 61}, {"horizon": 3}):
        design = checked(PlanQuestion, {"arms": 2, "max_delay": 1, **large}, "a plan")
        assert forecast(design) is None


def test_how_long_the_guarantee_says_nothing_comes_after_what_to_expect() -> None:
    words = settled(2, 7).sentences
    (place,) = [i for i, sentence in enumerate(words) if sentence.startswith("The guarantee, which")]
    assert place > 1
    assert "says nothing before round" in words[place]
