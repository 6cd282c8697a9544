"""Ask, tell, amend, command by command: what is answered, stored and refused; worked out by hand."""

from typing import Any

import pytest
from tests.service.playing import ARMS, AT, learner, made, play, refused, repeated

import aftereffect as ae
from aftereffect.service.experiment.commands import Amend, Ask, Tell
from aftereffect.service.experiment.round import ROW

pytestmark = pytest.mark.usefixtures("unadvised")


@pytest.mark.parametrize(
    ("kind", "make"), [("advised", ae.default_player), ("paper", ae.CompositeLossWrapper.tuned)]
)
def test_one_unit_plays_as_the_plain_player(kind: str, make: Any) -> None:
    experiment = made(horizon=400, player=kind)
    rates = {"horizon": 400} if kind == "paper" else {}
    player = make(n_arms=3, max_delay=1, seed=7, direction="maximize", out_of_range="void", **rates)
    for t in range(1, 401):
        total = (t * 37 % 100) / 100
        asked = experiment.do(Ask(), AT).answer
        arm = player.ask()
        assert (asked["round"], asked["arm"]) == (t, ARMS[arm])
        assert asked["probability"] == player.probabilities[arm]
        told, own = experiment.do(Tell(t, total), AT).answer, player.tell(total)
        assert (told["draw"], told["update"], told["fed"]) == (own.draw, own.update, own.fed_loss)
    assert experiment.view().state == "finished"
    assert list(experiment.view().probabilities.values()) == player.probabilities.tolist()


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
    assert told.event is not None
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
    assert done.event is not None
    assert done.event["body"] == {"total": 0.75, "was": 0.25, "was_status": "reported", "status": "reported"}
    # Sent again, it holds already; once another total came between, it does not undo that.
    repeated(experiment, Amend(1, 0.75, None, 0.25))
    experiment.do(Amend(1, None, None, 0.75), AT)
    refused(experiment, Amend(1, 0.75, None, 0.25), "conflict", "got 0.25, and round 1 was closed as missing")
    assert experiment.do(Amend(1, 0.5, None, None), AT).answer["total"] == 0.5


def test_an_amendment_is_learned_from_while_its_block_is_open_and_refused_by_the_paper_s_player_afterwards() -> None:
    experiment, twin = made(player="paper", horizon=400), made(player="paper", horizon=400)
    last = {}
    for t in range(1, 200):
        mine, other = play(experiment, 0.5), play(twin, 0.75)
        if mine["update"]:
            refused(experiment, Amend(t, 0.75), "closed", f"the block of round {t} is closed")
            break
        assert other["arm"] == mine["arm"]
        experiment.do(Amend(t, 0.75), AT)
        last = mine
    assert last
    # All but the last total were amended to what the twin was told: (0.75 + 0.5)/3 and (0.75 + 0.75)/3, as rewards.
    assert mine["fed"] == pytest.approx(1 - 1.25 / 3)
    assert other["fed"] == pytest.approx(1 - 1.5 / 3)
    refused(experiment, Tell(t, 0.75), "conflict", "its block is closed, so it cannot be changed")


def test_the_papers_measured_rounds_are_the_last_of_a_block_and_are_known_when_it_ends() -> None:
    experiment = made(max_delay=2, player="paper", horizon=1000)
    table: dict[int, dict[str, Any]] = {}
    for _ in range(400):
        for row in experiment.do(Ask(), AT).rows:
            table[row["round"]] = row
        for row in experiment.do(Tell(len(table), 0.5), AT).rows:
            table[row["round"]] = row
    ends = [t for t, row in table.items() if row["update"]]
    assert len(ends) > 10
    last = ends[-1]
    measured = {t for end in ends for t in range(end - 2, end + 1)}
    assert all(table[t]["measured"] is (t in measured) for t in range(1, last + 1))
    starts = [1, *(end + 1 for end in ends)]
    washin = {t for start in starts for t in (start, start + 1)}
    assert all(table[t]["washin"] is (t in washin) for t in table)
    assert [row["block"] for row in table.values()] == [sum(end < t for end in ends) + 1 for t in table]


def test_the_default_players_measured_rounds_have_no_coin_in_the_d_rounds_before_them() -> None:
    """A block is d rounds of wash-in and more: it ends at a coin, and its last rounds since d after the coin before."""
    experiment, table, measured = made(max_delay=2), {}, []
    for t in range(1, 401):
        table |= {row["round"]: row for row in experiment.do(Ask(), AT).rows}
        done = experiment.do(Tell(t, 0.5), AT)
        table |= {row["round"]: row for row in done.rows}
        start = table[t]["block_start"]
        if not done.answer["update"]:
            for s in range(start, t + 1):
                assert table[s]["measured"] is (False if s < start + 2 else None)
            continue
        learned = [table[s]["measured"] for s in range(start, t + 1)]
        first = learned.index(True)
        assert first >= 2
        assert learned == [False] * first + [True] * (len(learned) - first)
        measured.append(len(learned) - first)
        # One action may bring 1 and a round 3; rewards of 0.5 a round over m rounds, m + 2 actions have a part in it.
        m, scale = measured[-1], learner(experiment).player.scale
        assert done.answer["fed"] * scale == pytest.approx((m + 2) - 0.5 * m)
    assert len(measured) > 20
    # A stretch is geometric of mean 1/β = 7.5; its standard deviation is √(1 − β)/β < 7; 4 standard errors.
    assert abs(sum(measured) / len(measured) - 7.5) < 4 * 7 / len(measured) ** 0.5
    assert min(measured) < 4 < max(measured)


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
    assert half.event is not None
    assert half.event["body"] == {"total": 0.5, "status": "reported", "closed": False}
    assert half.answer["open_round"] == 1
    assert repeated(experiment, Ask())["unit"] == "south"
    experiment.do(Amend(1, 0.25, "north"), AT)
    refused(experiment, Amend(1, 0.25, "south"), "conflict", "has none: use tell")
    whole = experiment.do(Tell(1, None, "south"), AT)
    assert whole.answer["open_round"] is None
    assert experiment.do(Ask("north"), AT).answer["round"] == 2

