"""Backtests: reading a history, replaying it, what is printed and written, and how a bad file ends."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from aftereffect.core.errors import InvalidArgument
from aftereffect.players.registry import Problem
from aftereffect.studies.backtest import PLAYERS, chosen, play, write_page
from aftereffect.studies.cli import backtest
from aftereffect.studies.histories import InvalidHistory, read_history

EXAMPLE = Path(__file__).parents[2] / "examples" / "mailings.csv"
PANEL = "round,arm,lag0,lag1\n2,b,0,5\n1,a,3,1\n1,b,0,6\n2,a,2,1\n"
SERIES = "arm,note,round,effect\nx,first,2024-02-01,8\ny,,2024-02-01,4\ny,,2024-01-31,2\nx,,2024-01-31,6\n"
LOG = "round,arm,lag0\n1,a,1\n2,b,3\n3,a,2\n"

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def put(text: str) -> Path:
        path = tmp_path / "mine.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return put


def run(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(backtest)
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "100"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_effects_by_lag_are_replayed_in_order(write: Write):
    recording = read_history(write(PANEL))
    assert (recording.arms, recording.horizon, recording.max_delay) == (("b", "a"), 2, 1)
    losses = recording.losses()
    # components[t, s, i], arm b first: rounds 1 and 2.
    np.testing.assert_array_equal(losses.components(), [[[0, 3], [6, 1]], [[0, 2], [5, 1]]])
    np.testing.assert_array_equal(recording.mean_effects(), [[0, 5.5], [2.5, 1]])


def test_whole_effects_and_a_kernel_with_dates(write: Write):
    recording = read_history(write(SERIES), kernel=[0.5, 0.25, 0.25])
    assert (recording.arms, recording.max_delay) == (("x", "y"), 2)
    wanted = [[[3, 1], [1.5, 0.5], [1.5, 0.5]], [[4, 2], [2, 1], [2, 1]]]
    np.testing.assert_array_equal(recording.losses().components(), wanted)
    drawn = recording.losses(resample=50, seed=1).components()
    assert {tuple(play) for play in drawn[:, :, 0].tolist()} == {(3, 1.5, 1.5), (4, 2, 2)}


def test_columns_may_be_named_and_others_are_left_alone(write: Write):
    path = write("\ufeffweek,arm,later, round ,now\n9,a,1,1,2\n\n9,b,3,1,4\n")
    recording = read_history(path, effects=["now", "later"])
    np.testing.assert_array_equal(recording.losses().components(), [[[2, 4], [1, 3]]])


def test_a_log_is_drawn_from_or_refused(write: Write):
    recording = read_history(write(LOG))
    message = r"mine\.csv: every arm must have a row in every round .* round 1 has none for arm 'b'; with resample"
    with pytest.raises(InvalidHistory, match=message):
        recording.losses()
    losses = recording.losses(resample=40, seed=2)
    assert {*losses.components()[:, 0, 0].tolist()} == {1.0, 2.0}
    assert {*losses.components()[:, 0, 1].tolist()} == {3.0}


def test_a_kernel_of_more_than_the_whole_effect_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "series.csv"
    path.write_text("round,arm,effect\n1,a,2\n1,b,3\n", encoding="utf-8")
    assert read_history(path, kernel=[0.1, 0.2, 0.7]).max_delay == 2
    with pytest.raises(InvalidArgument, match="kernel must sum to at most 1, the whole effect, but it sums to 100"):
        read_history(path, kernel=[50, 30, 20])


@pytest.mark.parametrize(("text", "message"), [
    ("", "mine.csv, line 1: must name the columns, but the file is empty"),
    ("round,lag0\n1,2\n", r"line 1, column 'arm': must occur once, but occurs 0 times in \['round', 'lag0'\]"),
    ("round,arm,effect\n1,a,2\n", "column 'lag0': must occur once, but occurs 0 times"),
    ("round,arm,total\n1,a,2\n", "a file of arms and totals is for `aftereffect carryover`"),
    ("round,arm,lag0\n1,a,2\n1,b\n", "line 3: must have 3 columns, as line 1, but has 2"),
    ("round,arm,lag0\n1,a,2\n1,b,two\n", "line 3, column 'lag0': must be a finite number, but got 'two'"),
    ("round,arm,lag0\n1,a,\n", "must be a finite number, but got ''; if the number is not known, leave the row"),
    ("round,arm,lag0\n1.5,a,1\n", r"line 2, column 'round': must be a whole number or a date .* got '1\.5'"),
    ("round,arm,lag0\n1,a,1\n2024-01-01,b,1\n", "line 3, column 'round': must be a whole number like those above"),
    ("round,arm,lag0\n2024-01-01,a,1\n7,b,1\n", "column 'round': must be a date like those above, but got '7'"),
    ("round,arm,lag0\n1, ,1\n", "line 2, column 'arm': must be a name, but it is empty"),
    ("round,arm,lag0\n1,a,1\n\n1,a,2\n", "line 4: a round must have at most one row for each arm, but arm "),
    ("round,arm,lag0\n1,a,1\n2,a,2\n", "column 'arm': must name at least 2 arms, but has 1"),
    ('round,arm,lag0\n1,"a"b,1\n', "line 2: must be comma-separated values, but"),
])
def test_a_bad_file_is_named_with_line_column_and_reason(text: str, message: str, write: Write):
    with pytest.raises(InvalidHistory, match=message) as caught:
        read_history(write(text))
    assert str(caught.value).startswith("mine.csv, ")


def test_bytes_that_are_not_text(tmp_path: Path):
    path = tmp_path / "mine.csv"
    path.write_bytes(b"round,arm,lag0\n1,caf\xe9,2\n")
    with pytest.raises(InvalidHistory, match=r"mine\.csv, line 2: must be text in UTF-8, but it is not"):
        read_history(path)


def test_bad_arguments(write: Write):
    path = write(PANEL)
    with pytest.raises(InvalidArgument, match=r"must be one column if a kernel is given, but got \['lag0', 'lag1'\]"):
        read_history(path, effects=["lag0", "lag1"], kernel=[1.0])
    with pytest.raises(InvalidArgument, match=r"kernel must be finite, but kernel\[0\] is nan"):
        read_history(path, kernel=[float("nan")])
    with pytest.raises(InvalidHistory, match="column 'lag0': must occur once, but occurs 2 times"):
        read_history(path, effects=["lag0", "lag0"])
    recording = read_history(path)
    with pytest.raises(InvalidArgument, match=r"player.name must be one of Comp.* but got 'clairvoyant'"):
        play(recording, players=["clairvoyant"])
    with pytest.raises(InvalidArgument, match=r"player.base must be one of 'exp3'.* but got 'exp4'"):
        play(recording, players=["Naive:exp4"])
    with pytest.raises(InvalidArgument, match="players must be at least one, but got none"):
        play(recording, players=[])
    with pytest.raises(InvalidArgument, match="runs must be at least 2, but got 1"):
        play(recording, runs=1)


def example_sums() -> dict[str, float]:
    """Add up what always playing each arm of the example brings within its 40 rounds, from the file alone."""
    sums: dict[str, float] = {}
    with EXAMPLE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    weeks = sorted({row["round"] for row in rows})
    for row in rows:
        left = min(4, len(weeks) - weeks.index(row["round"]))
        sums[row["arm"]] = sums.get(row["arm"], 0.0) + sum(float(row[f"lag{s}"]) for s in range(left))
    return sums


def test_scores_of_the_example():
    found = play(read_history(EXAMPLE), runs=20)
    scores = {score.name: score for score in found.scores()}
    sums = example_sums()
    assert max(sums, key=sums.__getitem__) == "letter"
    assert scores["always letter (the best arm)"].outcome == pytest.approx(sums["letter"])
    for arm in ("leaflet", "email"):
        outcome, _, regret = scores[f"always {arm}"][1:]
        assert (outcome, regret) == (pytest.approx(sums[arm]), pytest.approx(sums["letter"] - sums[arm]))
    for name, simulation in found.simulations.items():
        assert scores[name].outcome == pytest.approx(sums["letter"] - simulation.mean_regret)
    assert {"default player", "wrapper, Tsallis FTRL", "naive Exp3", "uniform play"} == set(found.simulations)
    assert list(scores.values()) == sorted(scores.values(), key=lambda score: score.regret)
    assert "about 3 decisions. With fewer than 30 it learns almost nothing" in found.remarks()[-1]
    assert "cannot be distinguished from uniform play" in found.verdict()


def test_costs_are_minimized():
    found = play(read_history(EXAMPLE), direction="minimize", high=2000.0, runs=4, players=PLAYERS[-1:])
    sums = example_sums()
    first, *others = (score for score in found.scores() if score.name.startswith("always"))
    assert first.name == "always email (the best arm)"
    assert [score.regret for score in others] == pytest.approx([sums[a] - sums["email"] for a in ("leaflet", "letter")])
    assert "between 0 and 2,000 (low inferred: the recorded range, 10% wider" in found.remarks()[1]


def test_columns_of_other_names(write: Write, tmp_path: Path):
    path = write("date,channel,revenue\n" + "".join(f"2024-01-{t:02},{'ab'[t % 2]},{t}\n" for t in range(1, 9)))
    with pytest.raises(InvalidHistory, match=r"column 'round': must occur once.*; --round-column, --arm-column"):
        read_history(path)
    recording = read_history(path, round_column="date", arm_column="channel", effects=["revenue"])
    assert (recording.arms, recording.horizon, recording.max_delay) == (("b", "a"), 8, 0)
    named = ["--round-column", "date", "--arm-column", "channel", "--effects", "revenue", "--out", str(tmp_path / "o")]
    with pytest.raises(InvalidHistory, match="every arm must have a row in every round to be replayed"):
        run(str(path), *named)
    code, printed = run(str(path), *named, "--resample", "200", "--runs", "4", "--player", "BlockUCB")
    assert code == 0
    words = " ".join(printed.split())
    assert "a total does not say which play it came from" in words
    assert "No verdict, as the column may hold totals" in words
    # BlockUCB has no randomness, and neither has playing one arm throughout.
    assert words.count(" none ") == 3
    assert "always a (the highest mean in the column)" in words
    page = (tmp_path / "o" / "report.html").read_text(encoding="utf-8")
    assert "Regret is against the highest mean in the column." in page
    assert "the best arm)" not in page


def test_totals_alone_get_no_verdict_but_whole_effects_do(write: Write):
    for kernel, judged in ((None, False), ([1.0], True), ([0.5, 0.5], True)):
        found = play(read_history(write(LOG), kernel=kernel, effects=["lag0"]), resample=60, runs=2)
        assert found.verdict().startswith("No verdict") is not judged


def test_several_rows_of_an_arm_in_a_round_are_added_up_if_asked(write: Write, tmp_path: Path):
    path = write("round,arm,lag0\n1,a,1\n1,b,2\n1,a,3\n2,a,4\n2,b,5\n2,b,6\n1,a,7\n")
    with pytest.raises(InvalidHistory, match=r"line 4: a round must have at most one row .* in line 2 too; --sum-rows"):
        read_history(path)
    np.testing.assert_array_equal(read_history(path, sum_rows=True).losses().components(), [[[11, 2]], [[4, 11]]])
    code, printed = run(str(path), "--sum-rows", "--runs", "2", "--out", str(tmp_path / "o"))
    assert (code, "4 plays of 2 arms in 2 rounds" in " ".join(printed.split())) == (0, True)


def test_the_default_player_is_judged(write: Write):
    found = play(read_history(write(PANEL)), players=[*reversed(PLAYERS)], resample=60, runs=2)
    assert found.verdict().startswith(("'default player' has", "After 60 rounds, 'default player' cannot"))


def test_the_verdict_is_against_the_exact_regret_of_uniform_play(write: Write):
    recording = read_history(write(PANEL))
    found = play(recording, players=["BlockUCB"], resample=2000, runs=2)
    a, b = found.losses.arm_sums().tolist()
    share = found.simulations["UCB on clean windows"].mean_regret / (max(a, b) - (a + b) / 2)
    assert found.verdict() == f"'UCB on clean windows' has {share:.0%} of the regret of uniform play."
    short = play(recording, players=["BlockUCB"], resample=60, runs=2)
    assert short.verdict().endswith(" of the regret of uniform play. Only about 9 decisions: too few to learn from.")


@pytest.mark.parametrize(("labels", "gaps"), [
    (["1", "2", "3"], 0),
    (["1", "2", "5", "6", "8"], 3),
    (["2024-01-01", "2024-01-08", "2024-01-22"], 1),
    (["2024-01-01", "2024-02-01", "2024-03-01"], 0),
    (["7"], 0),
])
def test_missing_rounds_are_counted(labels: list[str], gaps: int, write: Write):
    rows = [f"{label},{arm},1\n" for label in reversed(labels) for arm in "ab"]
    recording = read_history(write("round,arm,lag0\n" + "".join(rows)))
    assert recording.gaps == gaps
    told = [remark for remark in play(recording, players=PLAYERS[-1:], runs=2).remarks() if "missing" in remark]
    assert told == [f"Rounds missing between the first and the last: {gaps}; the gaps are closed up."] * (gaps > 0)


def test_a_recording_is_shown_in_one_line(write: Write):
    shown = "Recording('mine.csv', 4 plays, horizon=2, max_delay=1, arms=('b', 'a'))"
    assert repr(read_history(write(PANEL))) == shown


def test_all_means_everyone_without_labels():
    # The kit of players plays them all.
    every = {entry.label(settings) for entry, settings in chosen(["all"], Problem(2, 1, 60, direction="maximize"))}
    assert {"wrapper, Exp3", "ARS-UCB", "naive UCB1", "uniform play", "default player"} <= every
    assert "delayed Exp3" not in every


def test_the_verb_prints_scores_and_writes_a_page(tmp_path: Path):
    out = tmp_path / "new"
    code, printed = run(str(EXAMPLE), "--resample", "12000", "--runs", "20", "--out", str(out))
    assert code == 0
    assert "mailings.csv: 120 plays of 3 arms in 40 rounds" in printed
    assert "drawn at random for each arm" in printed
    assert "of the regret of uniform play" in printed
    page = (out / "report.html").read_text(encoding="utf-8")
    for words in ("Backtest on mailings.csv", "always letter (the best arm)", "data:image/svg+xml"):
        assert words in page
    names = {path.name for path in (out / "figures").iterdir()}
    assert names == {f"{name}.{form}" for name in ("regret", "arrivals") for form in ("svg", "pdf", "png")}


def test_the_verb_takes_a_kernel_and_players(write: Write, tmp_path: Path):
    path = write(SERIES)
    arguments = ["--kernel", "0.5,0.3,0.2", "--player", "CompositeLossWrapper:exp3", "--out", str(tmp_path / "o")]
    code, printed = run(str(path), *arguments, "--runs", "2", "--resample", "30")
    assert code == 0
    assert "wrapper, Exp3" in printed
    assert not any(line.strip().startswith("uniform play") for line in printed.splitlines())
    with pytest.raises(InvalidArgument, match="kernel must be numbers separated by commas, but got 'half'"):
        run(str(path), "--kernel", "half")


def test_names_in_a_file_cannot_write_into_the_page(write: Write, tmp_path: Path):
    recording = read_history(write(PANEL.replace("a,", "<b>&,")))
    text = write_page(play(recording, players=PLAYERS[-1:], runs=2), tmp_path).read_text(encoding="utf-8")
    assert "always &lt;b&gt;&amp;" in text
    assert "<b>" not in text
