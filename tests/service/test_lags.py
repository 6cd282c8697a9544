"""`aftereffect carryover FILE`: its columns, a season, and the same figures as in Python."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.server import command

import aftereffect as ae
from aftereffect.carryover import Pilot

ARMS = ["red", "green", "blue"]
# What arrives 0, 1 and 2 rounds after an action: red and green at once, blue late, and most.
EFFECTS = np.array([[0.5, 0.0, 0.0], [0.3, 0.0, 0.0], [0.0, 0.0, 1.5]])


def total(arms: list[str], noise: float = 0.0) -> float:
    played = [ARMS.index(arm) for arm in arms[-3:]][::-1]
    return float(1.0 + sum(EFFECTS[i, s] for s, i in enumerate(played)) + noise)


def told(*words: str) -> Any:
    done = command(*words, "--format", "json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def history(tmp_path, header: str, mark: str = ",") -> str:
    """A file of two stores, whose lines have a further column; in decimal commas if semicolons separate cells."""
    rng, lines = np.random.default_rng(5), [header]
    schedule = Pilot(n_arms=3, rounds=60, max_lag=2, units=2, seed=1).arms
    for t in range(60):
        for unit in range(2):
            played = [ARMS[i] for i in schedule[: t + 1, unit]]
            value = f"{total(played, 0.05 * rng.normal() + 3.0 * (t % 7 == 0)):.4f}"
            value = value.replace(".", ",") if mark == ";" else value
            cells = [str(t + 1), f"shop {unit}", "rainy", played[-1], value]
            lines.append(mark.join(cells))
    file = tmp_path / "history.csv"
    file.write_text("\n".join(lines))
    return str(file)


def test_columns_of_a_history_are_found_by_usual_names_or_named(tmp_path) -> None:
    plain = told("carryover", history(tmp_path, "round,unit,note,arm,total"), "--max-lag", "2")
    done = command("carryover", history(tmp_path, "week,store,weather,Campaign,sales"), "--max-lag", "2")
    assert done.out.startswith(
        "Attention: columns were guessed by their names: round_column='week', arm_column='Campaign', "
        "total_column='sales', unit_column='store'\n"
    )
    assert told("carryover", history(tmp_path, "week,store,weather,Campaign,sales"), "--max-lag", "2") == plain
    columns = ["--arm-column", "a", "--total-column", "t", "--round-column", "r", "--unit-column", "u"]
    assert told("carryover", history(tmp_path, "r;u;x;a;t", ";"), "--max-lag", "2", *columns) == plain
    done = command("carryover", history(tmp_path, "r,u,x,a,t"), "--max-lag", "2", *columns[:2])
    words = "total_column must be given if no column has a usual name for it"
    assert (done.code, words in done.err) == (2, True)
    done = command("carryover", history(tmp_path, "r,u,x,a,t"), "--max-lag", "2", *columns[:2], "--total-column", "T")
    assert "total_column must be a column of the table, but got 'T', and the columns are ['r', 'u'," in done.err


def test_a_season_takes_what_returns_out_of_the_noise(tmp_path) -> None:
    file = history(tmp_path, "round,unit,note,arm,total")
    without, within = (told("carryover", file, "--max-lag", "2", *more) for more in ([], ["--season", "7"]))
    # Every seventh day brings 3 more, with a standard deviation of about 1.05; the rest is noise of 0.05.
    assert within["noise"] < 0.2 * without["noise"]


def test_the_table_of_the_command_line_is_that_of_choose_delay(tmp_path) -> None:
    file = history(tmp_path, "round,unit,note,arm,total")
    names = sorted(ARMS)
    schedule = Pilot(n_arms=3, rounds=60, max_lag=2, units=2, seed=1).arms
    played = np.array([[names.index(ARMS[i]) for i in row] for row in schedule])
    totals = np.array([float(line.split(",")[4]) for line in Path(file).read_text().splitlines()[1:]]).reshape(60, 2)
    curves = ae.carryover.estimate(played, totals, max_lag=2)
    choice = ae.choose_delay(curves=curves, n_arms=3, horizon=400, direction="maximize", high=9.0)
    done = command("carryover", file, "--max-lag", "2", "--randomised", "--high", "9", "--horizon", "400")
    assert str(choice) in done.out
    # No more can be lost than the whole range in every round.
    assert max(choice.bounds) == 400 * 9.0


@pytest.mark.parametrize(("words", "rule"), [
    (["--max-lag", "3", "--units", "0"], "units must be at least 1, but got 0"),
    (["--max-lag", "3", "--arms", "1"], "arms must be at least 2, but got 1"),
    (["--max-lag", "3", "--rounds", "0"], "rounds must be at least 5, but got 0"),
    (["--max-lag", "3", "--round-length", "1e9"], "round_length must be a number of days or words like '7 days'"),
    (["--max-lag", "3 moons"], "max_lag must be a number of days or words like '7 days'"),
    (["--max-lag", "²"], "max_lag must be a number of days or words like '7 days'"),
    (["--max-lag", "10001"], "max_lag must be at most 10000, but got 10001"),
])
def test_a_pilot_that_breaks_a_rule_is_refused(words: list[str], rule: str) -> None:
    done = command("pilot", *words)
    assert (done.code, rule in done.err) == (2, True), done.err


def test_a_pilot_measures_to_a_lag_in_rounds_or_in_words() -> None:
    assert told("pilot", "--max-lag", "2 weeks", "--round-length", "a week") == told("pilot", "--max-lag", "2")
