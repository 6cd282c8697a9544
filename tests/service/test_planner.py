"""The planner: carry-over in words, block lengths against an enumeration, and from when on the guarantee speaks."""

import itertools
import math

import pytest

from aftereffect import theory
from aftereffect.core.errors import InvalidArgument
from aftereffect.service.durations import days, said
from aftereffect.service.planner import informative_from, plan, rounds_of_carry_over


@pytest.mark.parametrize(
    ("words", "length"),
    [
        *(("7 days", 7.0), ("1 week", 7.0), ("12 hours", 0.5), ("90 minutes", 0.0625)),
        *(("day", 1.0), ("An hour", 1 / 24), (3, 3.0), ("1.5 days", 1.5)),
    ],
)
def test_lengths_of_time(words: object, length: float) -> None:
    assert days("window", words) == pytest.approx(length, rel=1e-15)


@pytest.mark.parametrize(
    "words", ["", "7", "7 moons", "-1 day", "days 7", True, 0, -1, math.nan, 1e9, "999999999 years", None]
)
def test_what_is_no_length_of_time(words: object) -> None:
    with pytest.raises(InvalidArgument, match="window must"):
        days("window", words)


def test_lengths_are_said_in_words_that_read_back() -> None:
    for length in (1.0, 7.0, 14.0, 2.0, 0.5, 1 / 1440):
        assert days("x", said(length)) == pytest.approx(length, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "rounds"),
    [
        ({"window": "7 days"}, 7),
        ({"window": "7 days", "round_days": 7}, 1),
        ({"window": "8 days", "round_days": 7}, 2),
        ({"window": "9 weeks", "round_days": "1 week"}, 9),
        ({"window": "1 day", "round_days": "1 hour"}, 24),
        ({"window": 0.3, "round_days": 0.1}, 3),
        # 2^(−8/2) = 6.25% is still to come after 8 days of a half-life of 2, 2^(−9/2) = 4.4% after 9.
        ({"half_life": 2}, 9),
        ({"half_life": "1 week", "round_days": "1 week"}, 5),
    ],
)
def test_rounds_of_a_carry_over(arguments: dict, rounds: int) -> None:
    assert rounds_of_carry_over(**arguments) == rounds


def test_a_carry_over_needs_exactly_one_way_and_an_end() -> None:
    with pytest.raises(InvalidArgument, match="exactly one of window and half_life"):
        rounds_of_carry_over()
    with pytest.raises(InvalidArgument, match="at most 10000 rounds, but got 36500"):
        rounds_of_carry_over(window=36_500)


@pytest.mark.parametrize("d", [0, 1, 2])
def test_the_mean_block_is_that_of_the_coins(d: int) -> None:
    """Expected number of updates in n rounds, from all 2^n coin sequences, against (n − 2d)/mean_block."""
    n, beta = 12, 1 / (2 * d + 1)
    expected = 0.0
    for coins in itertools.product((0, 1), repeat=n):
        weight = math.prod(beta if coin else 1 - beta for coin in coins)
        ends = [t for t in range(2 * d, n) if coins[t] and not any(coins[t - 2 * d : t])]
        expected += weight * len(ends)
    assert plan(2, d).mean_block == pytest.approx((n - 2 * d) / expected, rel=1e-12)
    assert plan(2, d).shortest_block == 2 * d + 1


@pytest.mark.parametrize(("n_arms", "d"), [(2, 0), (2, 1), (3, 2), (5, 1)])
def test_from_that_round_on_every_horizon_has_an_informative_bound(n_arms: int, d: int) -> None:
    since = informative_from(n_arms, d)
    last = max(T for T in range(1, 3 * since) if theory.tuned_bound(n_arms, d, T) >= T)
    assert since == last + 1
    # The printed constant, 28√((d+1)KT), is below T from 784(d+1)K rounds on (8K without delay): later than this.
    assert since <= (784 if d else 8) * (d + 1) * n_arms + 1


def test_weekly_rounds_with_nine_weeks_make_one_decision_a_year_and_the_plan_says_so() -> None:
    found = plan(3, 9, round_days=7)
    # 19·(19/18)^18 rounds of a week.
    assert found.mean_block == pytest.approx(19 * (19 / 18) ** 18, rel=1e-12)
    assert 4 * found.decisions_per_quarter == pytest.approx(365.25 / 7 / found.mean_block, rel=1e-12)
    assert 0.9 < 4 * found.decisions_per_quarter < 1.1
    text = " ".join(found.sentences)
    assert "attribution window" in text
    assert "slow" in text
    assert "More units" in text


def test_many_units_or_no_delay_are_not_called_slow() -> None:
    assert "slow" not in " ".join(plan(3, 9, round_days=7, units=20).sentences)
    assert "slow" not in " ".join(plan(3, 0).sentences)


def test_a_horizon_too_short_is_said() -> None:
    assert "shorter than one mean block" in " ".join(plan(2, 7, horizon=20).sentences)
    assert "ends before the guarantee" in " ".join(plan(2, 7, horizon=365).sentences)
    assert "ends before" not in " ".join(plan(2, 7, horizon=informative_from(2, 7)).sentences)


@pytest.mark.parametrize("bad", [{"n_arms": 1}, {"max_delay": -1}, {"horizon": 0}, {"units": 0}, {"round_days": 0}])
def test_bad_sizes_are_refused(bad: dict) -> None:
    sizes = {"n_arms": 2, "max_delay": 1} | bad
    with pytest.raises(InvalidArgument, match="must be"):
        plan(sizes.pop("n_arms"), sizes.pop("max_delay"), **sizes)
