"""Who won and how sure; substitutes; dates: worked by hand, and against Python's own statistics."""

import math
import random
import statistics

import pytest
from tests.service.playing import made

from aftereffect.service.experiment.outcome import Tally, table, winner
from aftereffect.service.experiment.round import date_of, days_between
from aftereffect.service.experiment.state import substitute


def tally(*values: float) -> Tally:
    found = Tally()
    for value in values:
        found.add(value)
    return found


def test_a_tally_is_mean_and_standard_error() -> None:
    rng = random.Random(3)
    values = [rng.gauss(5.0, 2.0) for _ in range(50)]
    found = tally(*values)
    assert found.mean == pytest.approx(statistics.fmean(values), rel=1e-12)
    assert found.standard_error == pytest.approx(statistics.stdev(values) / math.sqrt(50), rel=1e-12)


def test_few_windows_have_no_standard_error() -> None:
    assert table(["a", "b"], [tally(), tally(2.0)]) == {
        "a": {"windows": 0, "mean": None, "standard_error": None},
        "b": {"windows": 1, "mean": 2.0, "standard_error": None},
    }


@pytest.mark.parametrize(
    ("first", "second", "sure", "words"),
    [
        # Standard errors: 1/√3·... (0, 2) and (4, 6) have s = √2, s/√2 = 1 each, so √2 for the difference of 4.
        ((4.0, 6.0), (0.0, 2.0), "likely", "probably ahead of b (1 over 2): by 4, with a standard error of 1.4"),
        ((5.5, 7.5), (0.0, 2.0), "clear", "clearly ahead of b (1 over 2): by 5.5, with a standard error of 1.4"),
        ((2.0, 4.0), (0.0, 2.0), "open", "not clearly ahead of b (1 over 2): by 2, with a standard error of 1.4"),
        ((3.0, 3.0), (1.0, 1.0), "clear", "clearly ahead of b (1 over 2): by 2; all windows of an arm are equal"),
        ((340e3, 360e3), (0.0, 2.0), "clear", "a had the best measured windows (350,000 per round over 2)"),
        ((9.0,), (0.0, 2.0), "unknown", "the error is unknown"),
    ],
)
def test_how_sure(first: tuple[float, ...], second: tuple[float, ...], sure: str, words: str) -> None:
    found = winner(["a", "b"], [tally(*first), tally(*second)], [0.4, 0.6], "maximize")
    assert (found["arm"], found["runner_up"], found["favourite"], found["sure"]) == ("a", "b", "b", sure)
    assert words in found["words"]
    assert "probability 0.60 on b" in found["words"]
    assert "not the result of a randomised trial" in found["words"]


def test_less_is_better_when_minimizing_and_the_unmeasured_are_named() -> None:
    found = winner(["a", "b", "c"], [tally(3.0, 3.1), tally(1.0, 1.1), tally()], [0.2, 0.5, 0.3], "minimize")
    assert (found["arm"], found["sure"], found["never_measured"]) == ("b", "clear", ["c"])
    assert "Never measured: c." in found["words"]


@pytest.mark.parametrize("windows", [(3.0,), (3.0, 4.0, 5.0)])
def test_a_single_measured_arm_is_no_winner(windows: tuple[float, ...]) -> None:
    found = winner(["a", "b"], [tally(*windows), tally()], [0.1, 0.9], "maximize")
    assert (found["arm"], found["runner_up"], found["sure"]) == (None, None, "unknown")
    assert found["words"].startswith("No arm can be called best: only a was measured")


@pytest.mark.parametrize(
    ("probabilities", "words"),
    [
        ([1 / 3, 1 / 3, 1 / 3], "The learner ended with equal probabilities: 0.33 on each arm."),
        ([0.4, 0.2, 0.4], "The learner ended with probability 0.40 on each of a, c."),
        ([0.2, 0.2, 0.6], "The learner ended with probability 0.60 on c."),
    ],
)
def test_a_tie_names_no_leader(probabilities: list[float], words: str) -> None:
    found = winner(["a", "b", "c"], [tally(), tally(), tally()], probabilities, "maximize")
    assert words in found["words"]
    assert found["favourite"] == ("c" if "0.60" in words else None)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize(
    ("windows", "words"),
    [
        ([(1.0, 1.0), (1.0, 1.0), ()], "a and b had equally good measured windows (1 per round over 2 and 2)."),
        ([(0.0, 2.0), (1.0,), ()], "a and b had equally good measured windows (1 per round over 2 and 1)."),
        (
            [(1.0,), (0.5, 1.5), (0.0, 2.0)],
            "a, b and c had equally good measured windows (1 per round over 1, 2 and 2).",
        ),
    ],
)
def test_equal_means_name_no_winner(windows: list[tuple[float, ...]], words: str, direction: str) -> None:
    found = winner(["a", "b", "c"], [tally(*each) for each in windows], [0.5, 0.25, 0.25], direction)
    assert (found["arm"], found["runner_up"], found["sure"], found["difference"]) == (None, None, "open", 0.0)
    assert found["words"].startswith(f"No difference yet: {words}")
    assert found["favourite"] == "a"


def test_a_tie_behind_the_winner_is_no_tie() -> None:
    found = winner(["a", "b", "c"], [tally(3.0), tally(1.0), tally(1.0)], [0.5, 0.25, 0.25], "maximize")
    assert (found["arm"], found["runner_up"], found["difference"]) == ("a", "b", 2.0)


def test_substitutes_follow_the_probabilities_of_those_who_are_there() -> None:
    """Shares 0.1/0.4 and 0.3/0.4 with arm 1 away, over 4,000 blocks; 4.5 standard errors: one false alarm in 1e5."""
    n, probabilities = 4000, [0.1, 0.6, 0.3]
    drawn = [substitute(7, block, 0, probabilities, {1}) for block in range(n)]
    assert {arm for arm, _ in drawn} == {0, 2}
    share = sum(arm == 0 for arm, _ in drawn) / n
    assert abs(share - 0.25) < 4.5 * math.sqrt(0.25 * 0.75 / n)
    assert all(odds == pytest.approx(0.25 if arm == 0 else 0.75) for arm, odds in drawn)
    assert drawn == [substitute(7, block, 0, probabilities, {1}) for block in range(n)]
    assert drawn != [substitute(8, block, 0, probabilities, {1}) for block in range(n)]
    assert drawn != [substitute(7, block, 1, probabilities, {1}) for block in range(n)]


def test_substitutes_for_a_learner_that_has_given_up_on_the_rest() -> None:
    found = {substitute(7, block, 0, [0.0, 1.0, 0.0], {1}) for block in range(50)}
    assert found == {(0, 0.5), (2, 0.5)}


def test_dates_count_rounds_from_the_start() -> None:
    settings = made(start_date="2028-02-27", round_length=1.5).settings
    dates = [date_of(settings, t, "", 0) for t in (1, 2, 3, 4)]
    assert dates == ["2028-02-27", "2028-02-28", "2028-03-01", "2028-03-02"]
    assert date_of(settings, 10**7, "", 0) is None


def test_without_a_start_a_round_has_the_day_it_is_asked_for() -> None:
    settings = made().settings
    assert date_of(settings, 5, "2026-01-31T23:59:59+00:00", 0) == "2026-01-31"


def test_a_pause_counts_in_whole_days() -> None:
    assert days_between("2026-01-01T00:00:00Z", "2026-01-09T23:59:59.999Z") == 8
    assert days_between("2026-01-09T00:00:00Z", "2026-01-08T00:00:00Z") == 0
