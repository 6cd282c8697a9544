"""Who won and how sure; substitutes; dates: worked by hand, and against Python's own statistics."""

import math
import random
import statistics

import pytest
from tests.service.playing import AT, made

from aftereffect.service.experiment.commands import Ask, Tell
from aftereffect.service.experiment.outcome import Tally, blocks_to_know, gain, table, winner
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
    found = table(["a", "b"], [tally(), tally(2.0)])
    assert {arm: seen.model_dump() for arm, seen in found.items()} == {
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
    assert (found.arm, found.runner_up, found.favourite, found.sure) == ("a", "b", "b", sure)
    assert words in found.words
    assert "probability 0.60 on b" in found.words
    assert "not the result of a randomised trial" in found.words


def test_less_is_better_when_minimizing_and_the_unmeasured_are_named() -> None:
    found = winner(["a", "b", "c"], [tally(3.0, 3.1), tally(1.0, 1.1), tally()], [0.2, 0.5, 0.3], "minimize")
    assert (found.arm, found.sure, found.never_measured) == ("b", "clear", ["c"])
    assert "Never measured: c." in found.words


@pytest.mark.parametrize("windows", [(3.0,), (3.0, 4.0, 5.0)])
def test_a_single_measured_arm_is_no_winner(windows: tuple[float, ...]) -> None:
    found = winner(["a", "b"], [tally(*windows), tally()], [0.1, 0.9], "maximize")
    assert (found.arm, found.runner_up, found.sure) == (None, None, "unknown")
    assert found.words.startswith("No arm can be called best: only a was measured")


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
    assert words in found.words
    assert found.favourite == ("c" if "0.60" in words else None)


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
    assert (found.arm, found.runner_up, found.sure, found.difference) == (None, None, "open", 0.0)
    assert found.words.startswith(f"No difference yet: {words}")
    assert found.favourite == "a"


def test_a_tie_behind_the_winner_is_no_tie() -> None:
    found = winner(["a", "b", "c"], [tally(3.0), tally(1.0), tally(1.0)], [0.5, 0.25, 0.25], "maximize")
    assert (found.arm, found.runner_up, found.difference) == ("a", "b", 2.0)


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


def test_the_gain_over_an_equal_split_by_hand() -> None:
    measured = ["a", "b"], [tally(4.0, 6.0), tally(0.0, 2.0)]
    # Means 5 and 1, standard errors 1 and 1: the split is 3 with a standard error of √2/2.
    found = gain(*measured, 40.0, 10, "maximize")
    margin = 1.96 * math.sqrt(2.0) / 2.0
    assert found.per_report == pytest.approx([1.0, 1.0 - margin, 1.0 + margin])
    assert found.in_total == pytest.approx([10.0, 10.0 * (1.0 - margin), 10.0 * (1.0 + margin)])
    assert found.percent == pytest.approx([100 / 3, 100 / 3 * (1.0 - margin), 100 / 3 * (1.0 + margin)])
    assert found.words.startswith("So far 10 (33.3%) better than an equal split over the arms, which is within")
    less = gain(*measured, 10.0, 10, "minimize")
    assert less.per_report[0] == pytest.approx(2.0)
    assert "20 (66.7%) better than an equal split over the arms: between" in less.words
    assert "better" not in gain(*measured, 10.0, 10, "maximize").words
    assert gain(["a", "b"], [tally(1.0, 1.0), tally(-1.0, -1.0)], 5.0, 5, "maximize").percent is None
    few = gain(["a", "b"], [tally(4.0, 6.0), tally(0.0)], 40.0, 10, "maximize")
    assert (few.in_total, few.words) == (
        None,
        "An equal split cannot be estimated yet: b has fewer than two measured windows.",
    )
    assert gain(*measured, 0.0, 0, "maximize").words == "There is no usable report yet."


def test_the_time_to_know_is_that_of_a_plain_simulation() -> None:
    """Draws every window one by one, and takes the median; both medians are those of some hundred runs."""
    rng = random.Random(5)
    first, second = [10.0, 11.0, 12.5, 9.0], [9.0, 9.5, 11.0, 8.5]
    squares = sum((x - statistics.fmean(arm)) ** 2 for arm in (first, second) for x in arm)
    needed = []
    for _ in range(400):
        spread = math.sqrt(squares / sum(rng.gauss(0, 1) ** 2 for _ in range(6)))
        true = [rng.gauss(statistics.fmean(arm), spread / 2.0) for arm in (first, second)]
        seen, blocks = [list(first), list(second)], 0
        while blocks < 2000:
            blocks += 1
            arm = int(rng.random() < 0.5)
            seen[arm].append(rng.gauss(true[arm], spread))
            gap = abs(statistics.fmean(seen[0]) - statistics.fmean(seen[1]))
            if gap >= 2.0 * spread * math.sqrt(1 / len(seen[0]) + 1 / len(seen[1])):
                break
        needed.append(blocks)
    found = blocks_to_know([tally(*first), tally(*second)], [0.5, 0.5], 1, 3)
    assert found is not None
    assert statistics.quantiles(needed, n=20)[7] <= found <= statistics.quantiles(needed, n=20)[13]
    more = blocks_to_know([tally(*first), tally(*second)], [0.5, 0.5], 8, 3)
    assert more is not None
    assert more < found
    assert blocks_to_know([tally(*first), tally(*second)], [0.5, 0.5], 1, 3, found // 2) is None


def test_nothing_is_foretold_before_every_arm_was_measured_twice() -> None:
    assert blocks_to_know([tally(1.0, 2.0), tally(1.0)], [0.5, 0.5], 1, 3) is None


@pytest.mark.parametrize("max_delay", [0, 1, 3])
def test_the_next_decision_falls_where_it_was_expected_on_average(max_delay: int) -> None:
    """From every round of 120 blocks, within a round; 4.5 standard errors, with blocks as the independent draws."""
    experiment, errors, begun = made(max_delay=max_delay, start_date="2026-01-01"), [], []
    rounds = draws = 0
    while draws < 120:
        asked = experiment.do(Ask(), AT).answer
        if asked["draw"]:
            errors += [sum(asked["round"] - expected for expected in begun)] if begun else []
            rounds, draws, begun = rounds + len(begun), draws + 1, []
        experiment.do(Tell(asked["round"], 0.5), AT)
        ahead = experiment.view().standing.next_decision
        assert ahead.earliest_round > asked["round"]
        assert ahead.date == date_of(experiment.settings, ahead.round, "", 0)
        if not experiment.state()["block_closed"]:
            begun.append(ahead.round)
    if max_delay:
        error = statistics.stdev(errors) * math.sqrt(len(errors)) / rounds
        assert abs(sum(errors) / rounds) < 4.5 * error + 1.0
    else:
        assert not errors


def test_dates_ahead_follow_the_latest_round_without_a_start_date() -> None:
    experiment = made(max_delay=1, round_length=7)
    assert experiment.view().standing.next_decision.date is None
    experiment.do(Ask(), AT)
    assert experiment.view().standing.next_decision.earliest_date == "2026-03-15"
