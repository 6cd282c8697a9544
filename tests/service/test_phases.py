"""Draft, running, paused, finished; warm-up, arms that are away, alarms: worked out by hand."""


import pytest
from tests.service.playing import AT, learner, made, play, refused, repeated, to_open_block

from aftereffect.service.experiment.commands import Amend, Ask, Away, Back, Finish, Pause, Resume, Start, Tell

pytestmark = pytest.mark.usefixtures("unadvised")


def test_out_of_range_is_void_counted_and_alarmed_above_one_percent() -> None:
    experiment = made(high=2.0)
    for _ in range(100):
        play(experiment, 3.0)
    assert experiment.view().alarms == []
    told = play(experiment, 4.1)
    assert (told["status"], told["total"], told["fed"]) == ("void", 4.1, None)
    assert experiment.view().alarms == []
    play(experiment, -0.1)
    view = experiment.view()
    assert (view.counts["void"], view.counts["out_of_range"]) == (2, 2)
    assert "2 of 102 totals (2.0%) are outside [0, 4], the range" in view.alarms[0]


def test_many_missing_reports_and_a_block_without_end_are_alarming() -> None:
    experiment = made()
    for t in range(1, 10):
        play(experiment, None if t == 5 else 0.5)
    assert experiment.view().alarms == []
    play(experiment, None)
    assert experiment.view().alarms == ["2 of 10 reports (20.0%) are missing, so learning is slow."]
    # A mean block is 1/(0.2·0.8) = 6.25 rounds; after 12 of them chance is no excuse.
    start = to_open_block(experiment, 1)
    while experiment.view().round < start + 73:
        play(experiment, None)
    assert not any("This block" in words for words in experiment.view().alarms)
    play(experiment, None)
    play(experiment, None)
    assert any("This block has lasted 76 rounds (mean 6): " in words for words in experiment.view().alarms)


def test_what_a_state_forbids_is_said_with_the_state() -> None:
    """Who may do what in which state is what the model of `test_stateful_domain.py` says."""
    experiment = made(draft=True)
    refused(experiment, Ask(), "wrong_state", "it is a draft: start it first")
    refused(experiment, Pause(), "wrong_state", "must be running to pause it, but it is draft")
    experiment.do(Start(), AT)
    refused(experiment, Tell(1, 0.5), "not_open", "got 1 and none is")
    assert experiment.do(Pause(), AT).answer == {"state": "paused", "repeated": False}
    refused(experiment, Ask(), "wrong_state", "it is paused: resume it first")
    refused(experiment, Start(), "wrong_state", "must be draft to start it, but it is paused")
    experiment.do(Finish(), AT)
    assert experiment.view().finished_at == AT
    refused(experiment, Ask(), "wrong_state", "it is finished: no more rounds can be opened")



def test_warm_up_after_a_pause_is_recorded_but_not_learned_from() -> None:
    experiment = made(max_delay=2)
    to_open_block(experiment, 3)
    last = experiment.view().round
    experiment.do(Pause(), AT)
    experiment.do(Resume(), AT)
    assert experiment.view().warm_until == last + 2
    assert "Warm-up after a pause: 2 more rounds" in experiment.view().alarms[0]
    for _ in range(2):
        asked = experiment.do(Ask(), AT).answer
        assert asked["warmup"] is True
        assert "warm-up after a pause, so this total is not learned from" in asked["why"]
        told = experiment.do(Tell(asked["round"], 0.5), AT).answer
        assert (told["status"], told["update"]) == ("reported", False)
        # Nor is a correction of it: that would fill a gap in the window with a total that is not clean.
        experiment.do(Amend(asked["round"], 0.75), AT)
    assert learner(experiment).counts.missing == 2
    assert learner(experiment).counts.amended == 0
    assert experiment.do(Ask(), AT).answer["warmup"] is False


def test_a_pause_moves_the_dates_of_later_rounds() -> None:
    experiment = made(start_date="2026-02-27", round_length=2)
    dates = []
    for pause in (False, False, True):
        if pause:
            experiment.do(Pause(), "2026-03-03T12:00:00Z")
            experiment.do(Resume(), "2026-03-08T11:00:00Z")
        dates.append(experiment.do(Ask(), AT).answer["date"])
        experiment.do(Tell(len(dates), 0.5), AT)
    # Four whole days later than the third of March.
    assert dates == ["2026-02-27", "2026-03-01", "2026-03-07"]


def test_an_arm_that_is_away_is_replaced_and_totals_of_both_are_not_learned_from() -> None:
    experiment = made(max_delay=2, arms=["red", "green"])
    to_open_block(experiment, 3)
    arm = experiment.do(Ask(), AT).answer["arm"]
    experiment.do(Tell(experiment.view().round, 0.5), AT)
    gone = experiment.do(Away(arm), AT)
    assert (experiment.view().away, gone.event and gone.event["body"]) == ([arm], {"arm": arm})
    repeated(experiment, Away(arm))
    missing = learner(experiment).counts.missing
    for learned in (False, False, True):
        asked = experiment.do(Ask(), AT).answer
        if asked["draw"]:
            pytest.fail("the seed was chosen so that the block goes on")
        assert asked["arm"] != arm
        assert asked["substituted"] is True
        assert asked["why"].startswith(f"{arm} is away, so {asked['arm']} is played in its place; ")
        assert ("not learned from" in asked["why"]) is not learned
        assert (f"{arm} is credited with what {asked['arm']} brings" in asked["why"]) is learned
        experiment.do(Tell(asked["round"], 0.5), AT)
    # Of the rounds after the change the first d hold effects of both arms.
    assert learner(experiment).counts.missing == missing + 2
    view = experiment.view()
    assert view.guarantee.void is True
    assert view.guarantee.sentence == "There is no guarantee, because an arm has been away."
    assert view.alarms == [f"Away: {arm}. Other arms are played instead, and the guarantee is void."]
    assert view.counts["substituted"] == 3
    experiment.do(Back(arm), AT)
    repeated(experiment, Back(arm))
    for learned in (False, False, True):
        after = play(experiment)
        assert (after["arm"], after["substituted"]) == (arm, False)
        assert ("effects of a substitute still arrive" in after["why"]) is not learned
    assert learner(experiment).counts.missing == missing + 4
    assert experiment.view().guarantee.void is True
