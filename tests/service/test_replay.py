"""What is kept of an experiment: its log, its state, rounds beyond memory; and what is found to be altered."""

import json
from typing import Any

import pytest
from tests.service.playing import AT, made, play, refused, repeated

from aftereffect.service.errors import Corrupt, Refused
from aftereffect.service.experiment.commands import Amend, Ask, Tell
from aftereffect.service.experiment.experiment import Experiment
from aftereffect.service.experiment.round import RecentRounds
from aftereffect.service.experiment.state import PLAIN

pytestmark = pytest.mark.usefixtures("unadvised")


# What follows from the settings, from the learner or from the rounds, or lasts for one command only.
DERIVED = {"settings", "seed", "n_units", "unit_index", "models", "least", "most", "last_round", "adviser", "opening"}
DERIVED |= {"panel", "probabilities", "recent", "open", "may_have_decided"}


@pytest.mark.parametrize("changes", [{}, {"player": "model", "high": None, "max_delay": None}], ids=len)
def test_a_state_has_every_attribute_that_nothing_else_implies(changes: dict[str, Any]) -> None:
    attributes = {name for name in vars(made(**changes)) if not name.startswith("_")}
    assert attributes - DERIVED == {*PLAIN}


def test_rounds_beyond_memory_are_recalled_or_refused() -> None:
    experiment = made(max_delay=0)
    table = {}
    for t in range(1, 41):
        experiment.do(Ask(), AT)
        table[t] = experiment.do(Tell(t, 0.5), AT).rows[0]
    assert [t for t in table if experiment.forgotten(Tell(t, 0.5)) is None] == [37, 38, 39, 40]
    assert experiment.forgotten(Tell(1, 0.5)) == (1, "1")
    assert experiment.forgotten(Amend(1, 0.5)) == (1, "1")
    assert experiment.forgotten(Tell(41, 0.5)) is None
    refused(experiment, Tell(1, 0.5), "closed", "round 1 is no longer in memory")
    repeated(experiment, Tell(1, 0.5), table[1])
    refused(experiment, Tell(1, 0.6), "conflict", "round 1 was reported as 0.5", table[1])


def test_a_round_of_a_very_long_block_is_amended_from_its_row_and_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecentRounds, "CELLS", 32)
    monkeypatch.setattr(RecentRounds, "LONG", 1)
    experiment, events, table = made(max_delay=20), [], {}
    for t in range(1, 40):
        for command in (Ask(), Tell(t, 0.5)):
            done = experiment.do(command, AT)
            events.append(done.event)
            table |= {row["round"]: row for row in done.rows}
    assert experiment.forgotten(Amend(2, 0.75)) == (2, "1")
    refused(experiment, Amend(2, 0.75), "closed", "no longer in memory")
    done = experiment.do(Amend(2, 0.75), AT, {**table[2], "another": 1})
    events.append(done.event)
    assert done.rows == [{**table[2], "total": 0.75}]
    assert experiment.view().sum_of_totals == 39 * 0.5 + 0.25
    twin = made(max_delay=20)
    for event in json.loads(json.dumps(events)):
        rows = twin.replay(event)
    assert rows == done.rows
    assert twin.state() == experiment.state()


def played_log() -> list[dict[str, Any]]:
    experiment, events = made(units=2), []
    for t in range(1, 30):
        for command in (Ask(), Tell(t, t % 3 / 2, "1"), Tell(t, 0.5, "2")):
            events.append(experiment.do(command, AT).event)
    return json.loads(json.dumps(events))


@pytest.mark.parametrize(("change", "words"), [
    (lambda e: e["body"].update(arms=[0, 0] if e["body"]["arms"] != [0, 0] else [1, 1]), "arms is"),
    (lambda e: e["body"].update(block=9), "block is 9 where it should be"),
    (lambda e: e.update(round=99), "round is 99 where it should be"),
    (lambda e: e.update(kind="away"), "KeyError('arm')"),
    (lambda e: e.update(kind="dance"), "kind must be one of"),
    (lambda e: e["body"].update(more=1), "more is 1 where it should be None"),
    (lambda e: e.pop("body"), "KeyError('body')"),
    (lambda e: e.update(unit="9"), "unit must be one of"),
])
def test_an_altered_log_is_corrupt(change: Any, words: str) -> None:
    events = played_log()
    change(events[30])
    twin = made(units=2)
    for event in events[:30]:
        twin.replay(event)
    with pytest.raises(Corrupt) as caught:
        twin.replay(events[30])
    assert words in caught.value.detail


def test_a_probability_off_by_one_bit_is_corrupt() -> None:
    events = played_log()
    index = next(i for i, event in enumerate(events) if event["body"].get("update"))
    events[index]["body"]["probabilities"][0] += 2**-54
    twin = made(units=2)
    for event in events[:index]:
        twin.replay(event)
    with pytest.raises(Corrupt, match="probabilities is"):
        twin.replay(events[index])


def test_a_repetition_in_the_log_is_corrupt() -> None:
    events = played_log()
    twin = made(units=2)
    twin.replay(events[0])
    with pytest.raises(Corrupt, match="the command had no effect"):
        twin.replay(events[0])


@pytest.mark.parametrize("change", [{"last": 3}, {"kind": "Other"}, {"away": {}}, {"version": 0}])
def test_an_altered_state_is_corrupt(change: dict[str, Any]) -> None:
    experiment = made()
    play(experiment)
    with pytest.raises(Corrupt, match="a state must hold what state"):
        Experiment.from_state({**experiment.state(), **change})


def test_a_state_without_its_digest_is_corrupt() -> None:
    state = made().state()
    del state["digest"]
    with pytest.raises(Corrupt, match="a state must hold what state"):
        Experiment.from_state(state)


@pytest.mark.parametrize("changes", [{}, {"player": "paper", "horizon": 10**6}])
def test_a_state_of_the_widest_range_survives_its_json(changes: dict[str, Any]) -> None:
    experiment = made(high=1e100, max_delay=0, **changes)
    for t in range(30):
        play(experiment, t % 2 * 1e100)
    text = json.dumps(experiment.state(), allow_nan=False)
    assert Experiment.from_state(json.loads(text)).view() == experiment.view()


def test_many_arms_have_their_probabilities_in_the_log_as_a_hash() -> None:
    event = made(arms=[str(i) for i in range(17)]).do(Ask(), AT).event
    assert len(event["body"]["probabilities"]) == 64


def test_what_is_no_command_is_refused() -> None:
    with pytest.raises(Refused, match="command must be one of start, ask"):
        made().do("ask", AT)
