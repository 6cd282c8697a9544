"""A pilot: rounds with random arms before the learner begins, and the max_delay that is accepted after it."""

import json
import re
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from tests.service.calling import api, problem
from tests.service.pages import get
from tests.service.playing import AT, learner, play, refused, repeated
from tests.service.server import command

import aftereffect as ae
from aftereffect.carryover import Pilot
from aftereffect.service import lag_estimates
from aftereffect.service.errors import Refused
from aftereffect.service.experiment import state
from aftereffect.service.experiment.commands import Accept, Amend, Ask, Away, Finish, Note, Pause, Resume, Start, Tell
from aftereffect.service.experiment.experiment import Experiment
from aftereffect.service.settings import ExperimentSettings, PriorMeans, checked_settings, corrected, warmed
from aftereffect.service.store.store import Store

ARMS = ["red", "green", "blue"]
GIVEN: dict[str, Any] = {"name": "x", "arms": ARMS, "high": 2.0, "seed": 7, "pilot": {"rounds": 40, "max_lag": 2}}
# What arrives 0, 1 and 2 rounds after an action: red and green at once, blue late, and most.
EFFECTS = np.array([[0.5, 0.0, 0.0], [0.3, 0.0, 0.0], [0.0, 0.0, 1.5]])
PRIOR = {"means": [0.5, 0.25, 1.5], "updates": 3.0}


def made(**changes: Any) -> Experiment:
    return Experiment(checked_settings({**GIVEN, **changes}))


def piloted(**changes: Any) -> Experiment:
    experiment = made(**changes)
    while experiment.phase == "pilot":
        play(experiment)
    return experiment


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"max_delay": 2}, "max_delay and carry_over must be omitted if pilot is given, but got 2"),
        ({"carry_over": {"window": 2}}, "max_delay and carry_over must be omitted if pilot is given"),
        ({"pilot": None}, "max_delay or carry_over or pilot must be given, but all are missing"),
        ({"pilot": {}}, "pilot.max_lag must be given, but it is missing"),
        ({"pilot": {"max_lag": 0}}, "pilot.max_lag must be 1 to 400 rounds or words like '2 weeks', but got 0"),
        ({"pilot": {"max_lag": 2.0}}, "pilot.max_lag must be 1 to 400 rounds or words like '2 weeks', but got 2.0"),
        ({"pilot": {"max_lag": "long"}}, "pilot.max_lag must be a number of days or words like '7 days'"),
        ({"pilot": {"max_lag": 2, "rounds": 33}}, "pilot must have at least 34 rounds to tell 3 arms at 3 lags apart"),
        ({"pilot": {"max_lag": 200}}, "pilot must have (arms - 1) * (max_lag + 1) of at most 400, but got 2 * 201"),
        ({"pilot": {"max_lag": 2, "rounds": 99_999}, "units": 9}, "pilot must have at most 10416 rounds with these"),
        ({"pilot": {"max_lag": 2, "rounds": 40.0}}, "pilot.rounds must be an int, but got 40.0"),
        ({"horizon": 40}, "horizon must be more than the 40 rounds of the pilot, but got 40"),
        ({"player": "paper", "horizon": 999}, "player must be 'matched' after a pilot, but got 'paper'"),
    ],
)
def test_a_pilot_that_breaks_a_rule_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused) as caught:
        made(**changes)
    assert words in caught.value.detail


def test_a_pilot_in_words_is_stored_in_rounds() -> None:
    settings = checked_settings({**GIVEN, "pilot": {"max_lag": "2 weeks"}, "round_length": "1 week"})
    assert (settings.max_delay, settings.pilot and settings.pilot.given()) == (2, {"rounds": 110, "max_lag": 2})
    assert ExperimentSettings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


def test_arms_come_from_the_random_schedule_and_the_learner_hears_nothing() -> None:
    experiment = made(units=["north", "south"], draft=True)
    assert experiment.do(Start(), AT).answer["state"] == "pilot"
    repeated(experiment, Start())
    before = experiment.state()["panel"]
    schedule = Pilot(n_arms=3, rounds=40, max_lag=2, units=2, seed=7).arms
    for t in range(40):
        done = experiment.do(Ask(), AT)
        assert [ARMS.index(row["arm"]) for row in done.rows] == schedule[t].tolist()
        for row in done.rows:
            assert (row["probability"], row["block"], row["measured"], row["fed"]) == (1 / 3, 0, False, None)
            assert row["washin"] is (t < 2)
        if t in (0, 2):
            still = "; effects of earlier actions still arrive, so this total is not used" if t == 0 else ""
            assert done.answer["why"] == (
                f"Pilot round {t + 1} of 40: the random schedule plays {done.answer['arm']}{still}."
            )
        for unit in ("north", "south"):
            state = experiment.do(Tell(t + 1, 0.5, unit), AT).answer["state"]
    assert (state, experiment.phase) == ("piloted", "piloted")
    assert experiment.state()["panel"] == before
    refused(experiment, Ask(), "wrong_state", "its pilot is over: accept a carry-over (max_delay) first")
    refused(experiment, Pause(), "wrong_state", "must be pilot or running to pause it, but it is piloted")
    view = experiment.view()
    assert view.guarantee.pilot.most == 40 * 2 * 2.0
    assert "at most 106.7 on average over its random schedule" in view.guarantee.sentence
    (sentence,) = view.standing.sentences
    assert sentence == "40 of the 40 rounds of the pilot are over. Accept a carry-over (max_delay) to go on."


def test_a_pause_of_a_pilot_withholds_as_many_rounds_as_the_longest_lag() -> None:
    experiment = made()
    for _ in range(5):
        play(experiment)
    experiment.do(Pause(), AT)
    refused(experiment, Ask(), "wrong_state", "it is paused")
    refused(experiment, Accept(1), "wrong_state", "must be pilot or piloted to accept a carry-over")
    assert experiment.do(Resume(), AT).answer["state"] == "pilot"
    assert [play(experiment)["washin"] for _ in range(4)] == [True, True, False, False]


def test_every_round_of_a_pilot_can_be_corrected_and_after_it_in_the_record_only() -> None:
    experiment = made()
    first = play(experiment)
    for _ in range(20):
        play(experiment, None)
    assert experiment.forgotten(Amend(1, 1.0)) == (1, "1")
    recalled = {name: first[name] for name in first if name not in ("repeated", "state", "open_round")}
    assert experiment.do(Amend(1, 1.0, was=0.5), AT, recalled).answer["total"] == 1.0
    assert experiment.do(Amend(21, 0.75), AT).answer["status"] == "reported"
    experiment.do(Note(21, "holiday"), AT)
    refused(experiment, Away("red"), "wrong_state", "every arm must be available in a pilot, but 'red' is to be away")
    refused(experiment, Accept(1, last=20), "conflict", "must include the latest round, 21, but it ends with round 20")
    experiment.do(Accept(0, PRIOR, last=21), AT)
    refused(experiment, Tell(21, 0.5), "conflict", "now as 0.5: use amend to correct it")
    before = experiment.view()
    assert before.standing.leader.words == (
        "No window was measured: the probabilities of the arms come from the pilot alone."
    )
    twin = Experiment.from_state(experiment.state())
    # A total of the pilot may be as large as its longest lag allows, and its gaps are not those of the learner.
    told = [experiment.do(Amend(21, 5.0), AT), experiment.do(Amend(20, 4.0), AT), experiment.do(Amend(21, None), AT)]
    assert [done.answer["learned"] for done in told] == [False] * 3
    why = "the pilot is over, and what was accepted from it stays"
    assert told[0].answer["correction"] == f"The total is corrected in the record only, because {why}."
    assert [done.answer["status"] for done in told] == ["reported", "reported", "missing"]
    void = experiment.do(Amend(19, 7.0), AT)
    assert "7 is outside [0, 6], the range of a total" in void.answer["warning"]
    after = experiment.view()
    assert (after.counts["missing"], after.counts["void"], after.sum_of_totals) == (18, 1, 5.0)
    assert (before.counts["missing"], before.sum_of_totals) == (19, 1.75)
    assert (after.probabilities, after.guarantee) == (before.probabilities, before.guarantee)
    for done in [*told, void]:
        twin.replay(json.loads(json.dumps(done.event)))
    assert twin.state() == experiment.state()


def test_the_learner_begins_after_the_pilot_with_what_was_accepted() -> None:
    experiment = piloted(horizon=200)
    settings = experiment.settings
    refused(experiment, Accept(3), "invalid", "max_delay must be 0 to 2, the longest lag of the pilot, but got 3")
    done = experiment.do(Accept(1, PRIOR, [10.0, 5.0, 20.0]), AT)
    assert (done.answer["state"], done.event and done.event["body"]["last"]) == ("running", 40)
    repeated(experiment, Accept(1))
    refused(experiment, Accept(2), "conflict", "max_delay must be 1, which was accepted before, but got 2")
    begun = ae.Prior(**PRIOR)
    player = ae.default_player(3, max_delay=1, prior=begun, direction="maximize", high=2.0, seed=7, out_of_range="void")
    own = ae.Panel(player, n_units=1)
    for t in range(41, 101):
        asked = experiment.do(Ask(), AT).answer
        assert [ARMS.index(asked["arm"])] == own.ask()
        assert (asked["round"], asked["block_start"]) == (t, own.block_start + 40)
        told = experiment.do(Tell(t, 1.0 + t / 100), AT).answer
        assert told["update"] == own.tell([1.0 + t / 100]).update
        if not told["update"]:
            experiment.do(Amend(t, 0.5), AT)
            own.amend(0, t - 40, 0.5)
    assert learner(experiment).state() == own.state()
    assert (experiment.view().max_delay, experiment.state()["settings"]["max_delay"]) == (1, 2)
    guarantee = experiment.view().guarantee
    assert (guarantee.horizon, guarantee.certificate.rounds) == (160, 60)
    assert guarantee.informative_from == own.certificate().worst_case_from + 40
    assert guarantee.pilot.cost == [10.0, 5.0, 20.0]
    assert guarantee.pilot.prior == pytest.approx(own.certificate().terms["prior"])
    assert "has cost about 10 compared with the best arm (95% band: 5 to 20)" in guarantee.sentence
    assert settings.pilot == experiment.settings.pilot
    assert not any("pilot" in sentence for sentence in experiment.view().plan.sentences)


def test_a_pilot_may_end_early_and_its_log_replays_to_the_same_state() -> None:
    experiment, log = made(), []

    def do(command: Any) -> dict[str, Any]:
        done = experiment.do(command, AT)
        log.append(done.event)
        return done.answer

    for _ in range(6):
        do(Tell(do(Ask())["round"], 0.5))
    do(Ask())
    rule = "no round must be open to accept a carry-over (max_delay), but round 7 is: report it"
    refused(experiment, Accept(0), "conflict", rule)
    do(Tell(7, None))
    do(Accept(0, PRIOR))
    do(Tell(do(Ask())["round"], 0.5))
    do(Finish())
    twin = made()
    for event in json.loads(json.dumps(log)):
        twin.replay(event)
    assert twin.state() == experiment.state()
    assert Experiment.from_state(json.loads(json.dumps(experiment.state()))).state() == experiment.state()
    refused(made(pilot=None, max_delay=1), Accept(1), "wrong_state", "must have a pilot to accept a carry-over")


def test_a_pilot_is_finished_with_its_open_round() -> None:
    experiment = made()
    experiment.do(Ask(), AT)
    assert [row["status"] for row in experiment.do(Finish(), AT).rows] == ["missing"]
    refused(experiment, Accept(1), "wrong_state", "but it is finished")


def total(arms: list[str], noise: float = 0.0) -> float:
    played = [ARMS.index(arm) for arm in arms[-3:]][::-1]
    return float(1.0 + sum(EFFECTS[i, s] for s, i in enumerate(played)) + noise)


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'shop.db'}") as found:
        yield found


def played(store: Store, **changes: Any) -> str:
    """Return an experiment whose pilot is over."""
    id = store.create({**GIVEN, "pilot": {"rounds": 60, "max_lag": 3}, **changes}).id
    rng, arms = np.random.default_rng(3), []
    while store.experiment(id).state == "pilot":
        asked = store.perform(id, Ask())
        arms.append(asked["arm"])
        store.perform(id, Tell(asked["round"], total(arms, 0.05 * rng.standard_normal())))
    return id


def test_from_a_pilot_to_a_running_experiment(store: Store) -> None:
    id = store.create({**GIVEN, "pilot": {"max_lag": 3}}).id
    assert "Nothing can be estimated yet" in store.carryover(id)["reason"]
    with pytest.raises(Refused, match="max_delay must be given, because none can be proposed: Nothing can be"):
        store.accept(id)
    id = played(store)
    found = store.carryover(id)
    assert (found["reason"], found["source"], found["max_lag"], found["totals"]) == (None, "pilot", 3, 57)
    relative = EFFECTS - EFFECTS.mean(axis=0)
    for i, arm in enumerate(ARMS):
        bands = found["effects"][arm]
        for s in range(3):
            assert bands["lower"][s] < relative[i, s] < bands["upper"][s]
    assert found["alike"]["verdict"] == "apart"
    assert found["proposed"]["max_delay"] == 2
    assert not any("outside" in sentence for sentence in found["sentences"])
    narrow = " ".join(store.carryover(played(store, high=0.9))["sentences"])
    assert re.search(r"Attention: \d+ totals of the pilot would be outside \[0, 2\.7\], the range of a total", narrow)
    assert "Attention: high - low must be at least 1." in narrow
    # What each arm lacks of the best one's 1.5, for every time it was played.
    plays = store.experiment(id).plays
    lost = 1.0 * plays["red"] + 1.2 * plays["green"]
    assert found["cost"][1] < lost < found["cost"][2]
    view = store.accept(id)
    known = view.accepted.prior
    assert known.means[2] - known.means[0] == pytest.approx(1.0, abs=0.1)
    beta = ae.default_player(3, max_delay=2, direction="maximize").update_probability
    assert known.updates == pytest.approx(60 * beta * (1 - beta) ** 2)
    assert (view.state, view.max_delay, view.accepted.cost) == ("running", 2, found["cost"])
    assert max(view.probabilities, key=lambda arm: view.probabilities[arm]) == "blue"
    assert [item["max_delay"] for item in store.experiments()["items"]] == [3, 2, 3]
    assert store.accept(id) == store.accept(id, 2) == view
    asked = store.perform(id, Ask())
    store.perform(id, Tell(asked["round"], 1.0))
    assert store.verify(id)[0]["ok"]
    assert store.carryover(id)["effects"] == found["effects"]
    # The range is another one, so the means are, but not their differences.
    means = store.correct(id, {"high": 4}).prior.means
    assert [means[arm] - means["red"] for arm in ARMS] == pytest.approx([m - known.means[0] for m in known.means])
    assert store.correct(id, {"max_delay": 1}).prior is None
    # Few windows were measured, so the successor begins with what the pilot has shown.
    prior = store.continue_with(id, add=["pink"]).prior
    assert prior.means == {**dict(zip(ARMS, known.means, strict=True)), "pink": known.means[2]}
    assert prior.updates == min(known.updates, 10.0)


def test_a_successor_keeps_the_differences_of_a_pilot_for_arms_that_were_not_measured() -> None:
    old = {"id": "x", "arms": ARMS, "updates": 3, "accepted": {"prior": {"means": [0.5, 0.75, 1.5], "updates": 4.0}}}
    seen = {"red": (2, 0.25), "green": (1, 1.75), "blue": (0, None)}
    old["measured"] = {arm: {"windows": n, "mean": mean} for arm, (n, mean) in seen.items()}
    settings = checked_settings({**GIVEN, "pilot": None, "max_delay": 1})
    prior = warmed(settings, old, required=True).prior
    assert prior == PriorMeans(means={"red": 0.25, "green": 0.5, "blue": 1.25}, updates=7.0, experiment="x")


def test_a_corrected_pilot_has_no_guarantee_and_says_only_that(store: Store) -> None:
    view = store.correct(played(store), {"high": 2.5})
    none = "There is no guarantee, because rounds were inherited from another experiment."
    assert view.guarantee.sentence == none
    view = store.accept(view.id)
    assert view.guarantee.sentence == none
    assert "guarantee" not in view.guarantee.pilot.words


def test_a_pilot_that_shows_nothing_comes_to_an_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Totals that are all 0; then an estimate that fails in whatever way, whose failure is cached too."""
    def broken(*_: Any, **__: Any) -> None:
        tried.append(1)
        raise np.linalg.LinAlgError("SVD did not converge")

    tried: list[int] = []
    for reason in ("totals must vary by more than what arms", "failed with these totals (SVD did not converge)"):
        id = store.create({**GIVEN, "name": reason}).id
        rounds = range(1, 41)
        store.perform_many([each for t in rounds for each in ((id, Ask()), (id, Tell(t, 0.01 * len(tried))))])
        found = store.carryover(id)
        assert (reason in found["reason"], found["proposed"]) == (True, None)
        with pytest.raises(Refused, match="max_delay must be given, because none can be proposed"):
            store.accept(id)
        with pytest.raises(Refused, match="max_delay must be 0 to 2"):
            store.accept(id, -1)
        nothing = {"prior": None, "cost": None, "gaps": 0, "attention": []}
        assert store.accept(id, 1).accepted.data == {"max_delay": 1, **nothing}
        monkeypatch.setattr(lag_estimates, "estimate", broken)
        tried.append(0)
    assert tried == [0, 1, 0]


def test_an_estimate_is_made_again_if_rounds_were_played_since(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    id, rng = store.create({**GIVEN, "pilot": {"rounds": 60, "max_lag": 2}}).id, np.random.default_rng(3)
    noise = rng.random(50)
    store.perform_many([each for t in range(1, 51) for each in ((id, Ask()), (id, Tell(t, float(noise[t - 1]))))])
    rounds: list[int] = []

    def late(*curves: Any, **given: Any) -> ae.Prior:
        rounds.append(given["rounds"])
        if len(rounds) == 1:
            store.perform(id, Tell(store.perform(id, Ask())["round"], 1.0))
        return ae.carryover.prior(*curves, **given)

    monkeypatch.setattr("aftereffect.service.store.store.prior", late)
    store.accept(id, 1)
    assert rounds == [50, 51]
    assert store.verify(id)[0]["ok"]


def test_estimates_are_refused_while_too_many_wait(tmp_path) -> None:
    with api(tmp_path) as call, ExitStack() as others:
        id = call.store.create(GIVEN).id
        call.store.perform_many([each for t in range(1, 41) for each in ((id, Ask()), (id, Tell(t, 0.0)))])
        for _ in range(lag_estimates.MOST_AT_ONCE):
            others.enter_context(lag_estimates.admitted())
        problem(call("GET", f"/v1/experiments/{id}/carryover"), 429, "too_many")
        assert call("GET", f"/experiments/{id}?curves=yes").status_code == 429
        assert "Estimate it from the rounds so far" in get(call, f"/experiments/{id}").words
        others.close()
        assert "totals must vary by more" in get(call, f"/experiments/{id}").words


def test_a_pilot_must_be_accepted_to_be_continued(store: Store) -> None:
    for end in (Pause(), Finish()):
        id = store.create(GIVEN).id
        store.perform(id, end)
        with pytest.raises(Refused, match=r"begun to learn to be continued, but it is .*, and no max_delay was"):
            store.continue_with(id, add=["grey"])


def test_copies_of_an_experiment_share_the_schedule() -> None:
    experiment = made(seed=11)
    play(experiment)
    before = state.schedule.cache_info().misses
    play(Experiment.from_state(experiment.state()))
    assert state.schedule.cache_info().misses == before


def test_what_speaks_against_the_accepted_settings_is_an_alarm(store: Store) -> None:
    id = played(store, low=-0.5, high=1.0)
    told = store.carryover(id)["sentences"]
    level = next(line for line in told if "The mean total is 1.7" in line)
    assert "one action's effect is said to lie between -0.5 and 1" in level
    assert level.endswith("correct low and high before you accept.")
    tested = next(line for line in told if line.startswith("In the pilot: no sign of effects later than 2 rounds"))
    view = store.accept(id, 1)
    assert ["mean total" in alarm for alarm in view.alarms] == [True, False]
    assert view.alarms[1].startswith("In the pilot: effects last longer than 1 round (p = ")
    after = store.carryover(id)["sentences"]
    assert view.alarms[1] in after
    assert tested not in after
    assert not any(line.startswith("Proposed") for line in after)
    assert any(line.startswith("In force: a carry-over (max_delay) of 1 round.") for line in after)
    assert store.verify(id)[0]["ok"]
    # Means far outside the range are no prior.
    assert view.accepted.prior is None
    id = played(store)
    assert store.accept(id).alarms == []
    assert next(e for e in store.events(id, 100)["items"] if e["kind"] == "accept")["body"]["attention"] == []


def test_settings_of_a_pilot_are_corrected_in_one_that_inherits_its_rounds(store: Store) -> None:
    id = store.create(GIVEN).id
    for _ in range(6):
        store.perform(id, Tell(store.perform(id, Ask())["round"], 0.5))
    view = store.correct(id, {"high": 5})
    assert (view.state, view.round, view.max_delay) == ("pilot", 6, 2)
    assert [row["arm"] for row in store.rounds(view.id)["items"]] == [r["arm"] for r in store.rounds(id)["items"]]
    with pytest.raises(Refused, match="pilot must have at least"):
        store.correct(view.id, {"pilot": {"max_lag": 2, "rounds": 20}})
    running = store.accept(view.id, 1)
    assert corrected(running.data, {"high": 6}).pilot is None
    assert corrected(running.data, {"high": 6}).max_delay == 1
    store.perform(view.id, Tell(store.perform(view.id, Ask())["round"], 0.5))
    with pytest.raises(Refused, match="pilot must be omitted if rounds are inherited that were not a pilot"):
        store.correct(view.id, {"pilot": {"max_lag": 2}})
    assert store.correct(view.id, {"high": 6}).state == "running"


def test_a_running_experiment_is_estimated_from_its_own_rounds(store: Store) -> None:
    id = store.create({**GIVEN, "pilot": None, "max_delay": 0, "arms": ARMS[:2]}).id
    found = store.carryover(id)
    assert (found["source"], found["max_lag"], found["reason"] is None) == ("rounds", 1, False)
    rng = np.random.default_rng(3)
    for t in range(1, 61):
        store.perform(id, Ask())
        store.perform(id, Tell(t, float(rng.uniform(0.9, 1.1))))
        if t == 5:
            words = "two arms must have been drawn 10 times, but no arm was"
            assert words in store.carryover(id)["reason"]
        if t == 30:
            store.perform(id, Pause())
            store.perform(id, Resume())
    found = store.carryover(id)
    # Of 60 totals the first is a lag only.
    assert (found["reason"], found["cost"], found["totals"]) == (None, None, 59)
    assert found["effects"]["red"]["lower"][0] < 0.0 < found["effects"]["red"]["upper"][0]


def told(*words: str) -> dict[str, Any]:
    done = command(*words, "--format", "json")
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_a_pilot_is_planned_on_the_command_line(tmp_path) -> None:
    file = tmp_path / "schedule.csv"
    done = command("pilot", "--arms", "3", "--max-lag", "2 days", "--noise", "0.5", "--out", str(file), "--seed", "7")
    assert (done.code, "(110 days) measures the effects of 3 arms up to lag 2." in done.out) == (0, True)
    width = Pilot(n_arms=3, rounds=110, max_lag=2, seed=7).expected_width(noise=0.5)
    assert f"will be known to ±{width.effect:.3g}, the whole effect of an arm to ±{width.whole:.3g}" in done.out
    lines = file.read_text().splitlines()
    arms = Pilot(n_arms=3, rounds=110, max_lag=2, seed=7).arms
    assert lines == ["round,unit,arm", *(f"{t},1,{arm + 1}" for t, arm in enumerate(arms, 1))]
    refusal = command("pilot", "--arms", "3", "--max-lag", "2", "--noise", "1e160")
    assert (refusal.code, "noise must be at most 1e+70, but got 1e+160" in refusal.err) == (2, True)
    refusal = command("pilot", "--arms", "3", "--max-lag", "2", "--rounds", "10")
    assert (refusal.code, "pilot must have at least 34 rounds" in refusal.err) == (2, True)


def test_a_recorded_history_is_estimated_on_the_command_line(tmp_path) -> None:
    rng, arms, lines = np.random.default_rng(1), [], ["date,arm,total"]
    for t, i in enumerate(Pilot(n_arms=3, rounds=60, max_lag=2, seed=1).arms):
        arms.append(ARMS[i])
        if t != 30:
            lines.append(f"2026-{t // 28 + 1:02d}-{t % 28 + 1:02d},{ARMS[i]},{total(arms, 0.05 * rng.normal()):.4f}")
    file = tmp_path / "history.csv"
    file.write_text("\n".join(lines))
    done = command("carryover", str(file), "--max-lag", "2", "--plot", str(tmp_path / "curves.png"))
    assert done.code == 0, done.err
    assert "Attention: the arms were not chosen at random" in done.out
    assert (tmp_path / "curves.png").stat().st_size > 5000
    assert "Proposed" not in done.out
    assert "the range of one action's effect is needed: give --low and --high" in done.out
    narrow = command("carryover", str(file), "--max-lag", "2", "--high", "0.5").out
    assert "but one action's effect is said to lie between 0 and 0.5" in narrow
    refusal = command("carryover", str(file), "--max-lag", "10 days")
    words = "--max-lag must be a whole number of rounds, such as 10, for a file, but got '10 days'"
    assert (refusal.code, words in refusal.err) == (2, True)
    refusal = command("carryover", "--store", str(tmp_path / "shop.db"), "--plot", "a.png")
    assert (refusal.code, "--plot must be omitted unless a file is given" in refusal.err) == (2, True)
    found = told("carryover", str(file), "--max-lag", "2", "--randomised", "--high", "2", "--horizon", "5000")
    assert "Attention" not in " ".join(found["sentences"])
    prices = found["proposed"]["prices"]
    assert [price["max_delay"] for price in prices] == [0, 1, 2]
    assert all(price["bound"] <= price["worst"] for price in prices)
    # With no lag left, both are the guarantee of a player with this max_delay.
    bound = ae.default_player(3, max_delay=2, direction="maximize", high=2.0).regret_bound(5000)
    assert prices[-1]["bound"] == prices[-1]["worst"] == pytest.approx(bound)
    assert found["arrived"]["blue"]["lower"][2] < 1.5 - (0.5 + 0.3 + 1.5) / 3 < found["arrived"]["blue"]["upper"][2]
    assert command("carryover", str(file)).code == 2
    file.write_text("total\n1\n2\n")
    refusal = command("carryover", str(file), "--max-lag", "2")
    assert "the file must have a column arm" in refusal.err


def test_a_pilot_on_the_command_line_from_init_to_accept(tmp_path) -> None:
    place = ["--store", str(tmp_path / "shop.db")]
    pilot = ["--pilot", "2", "--pilot-rounds", "40"]
    made_ = told("init", "x", *(word for arm in ARMS for word in ("--arm", arm)), "--high", "2", *pilot, *place)
    assert (made_["state"], made_["pilot"]) == ("pilot", {"rounds": 40, "max_lag": 2})
    assert "Nothing can be estimated yet" in command("carryover", *place).out
    refusal = command("accept", *place)
    assert (refusal.code, "none can be proposed" in refusal.err) == (4, True)
    done = command("accept", "--max-delay", "1", *place)
    assert (done.code, "'x' plays on with max_delay 1" in done.out) == (0, True)
    assert command("init", "y", "--pilot-rounds", "40", "--arm", "a", "--arm", "b", "--high", "2", *place).code == 2
