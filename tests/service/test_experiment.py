"""Ask, tell, amend, command by command: what is answered, stored and refused; worked out by hand."""


import pytest
from tests.service.playing import ARMS, AT, made, play, refused, repeated

from aftereffect.service.experiment.commands import Amend, Ask, Tell
from aftereffect.service.experiment.round import ROW

pytestmark = pytest.mark.usefixtures("unadvised")


def test_ask_is_the_same_until_told_and_a_row_has_every_field() -> None:
    experiment = made()
    done = experiment.do(Ask(), AT)
    assert repeated(experiment, Ask()) == done.answer
    assert repeated(experiment, Ask("1")) == done.answer
    (row,) = done.rows
    assert tuple(row) == ROW
    shown = ("round", "unit", "status", "total", "draw", "block", "block_start", "washin", "measured", "date")
    assert [row[name] for name in shown] == [1, "1", "open", None, True, 1, 1, True, False, "2026-03-01"]
    assert row["probability"] == pytest.approx(1 / 3)
    assert (row["reason"], row["drawn"], row["withheld"]) == ("learner", row["arm"], False)
    shown = done.answer["why"]
    assert shown == f"{row['arm']} was drawn with probability 0.333 for block 1 and stays for at least 2 rounds."
    assert done.event == {
        "kind": "ask",
        "round": 1,
        "unit": None,
        "body": {
            "arms": [ARMS.index(row["arm"])],
            "block": 1,
            "probabilities": list(experiment.view().probabilities.values()),
        },
        "at": AT,
    }


def test_tell_again_is_accepted_and_another_total_is_a_conflict() -> None:
    experiment = made()
    experiment.do(Ask(), AT)
    told = experiment.do(Tell(1, 0.25), AT)
    assert told.answer["repeated"] is False
    assert told.event["body"] == {"total": 0.25, "status": "reported", "closed": True, "update": False}
    again = repeated(experiment, Tell(1, 0.25))
    assert {**again, "repeated": False} == told.answer
    repeated(experiment, Tell(1, 0.25, "1"))
    error = refused(experiment, Tell(1, 0.5), "conflict", "round 1 was reported as 0.25 and now as 0.5: use amend")
    assert (error.extra["reported"], error.extra["amendable"]) == (0.25, True)
    refused(experiment, Tell(1, None), "conflict", "and now as missing")


def test_an_amendment_may_say_which_total_it_corrects() -> None:
    experiment = made()
    play(experiment, 0.25)
    error = refused(experiment, Amend(1, 0.75, None, 0.5), "conflict", "got 0.5, and round 1 was reported as 0.25")
    assert (error.extra["reported"], error.extra["round"]) == (0.25, 1)
    refused(experiment, Amend(1, 0.75, None, None), "conflict", "got None, and round 1 was reported as 0.25")
    done = experiment.do(Amend(1, 0.75, None, 0.25), AT)
    assert done.event["body"] == {"total": 0.75, "was": 0.25, "was_status": "reported", "status": "reported"}
    # Sent again, it holds already; once another total came between, it does not undo that.
    repeated(experiment, Amend(1, 0.75, None, 0.25))
    experiment.do(Amend(1, None, None, 0.75), AT)
    refused(experiment, Amend(1, 0.75, None, 0.25), "conflict", "got 0.25, and round 1 was closed as missing")
    assert experiment.do(Amend(1, 0.5, None, None), AT).answer["total"] == 0.5


def test_units_share_rounds_and_blocks_and_each_has_its_arm() -> None:
    experiment = made(units=["north", "south"])
    done = experiment.do(Ask("south"), AT)
    assert [row["unit"] for row in done.rows] == ["north", "south"]
    assert done.answer == {**done.rows[1], "why": done.answer["why"], "warmup": False, "state": "running"}
    arms = {row["unit"]: row["arm"] for row in done.rows}
    assert repeated(experiment, Ask())["arms"] == arms
    assert repeated(experiment, Ask())["unit"] == "north"
    refused(experiment, Tell(1, 0.5), "invalid", "unit must be given, one of ['north', 'south']")
    refused(experiment, Tell(1, 0.5, "east"), "invalid", "unit must be one of ['north', 'south'], but got 'east'")
    half = experiment.do(Tell(1, 0.5, "north"), AT)
    assert half.event["body"] == {"total": 0.5, "status": "reported", "closed": False}
    assert half.answer["open_round"] == 1
    assert repeated(experiment, Ask())["unit"] == "south"
    experiment.do(Amend(1, 0.25, "north"), AT)
    refused(experiment, Amend(1, 0.25, "south"), "conflict", "has none: use tell")
    whole = experiment.do(Tell(1, None, "south"), AT)
    assert whole.answer["open_round"] is None
    assert experiment.do(Ask("north"), AT).answer["round"] == 2

