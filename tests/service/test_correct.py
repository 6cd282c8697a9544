"""Settings corrected into a new experiment that inherits the rounds; totals out of range that are void or clipped."""

import json

import pytest
from tests.service.calling import problem
from tests.service.pages import Page, get, identity, post
from tests.service.playing import AT, made, play
from tests.service.server import command

from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Amend, Ask, Inherit, Pause, Resume, Tell, inherit
from aftereffect.service.experiment.experiment import Experiment
from aftereffect.service.settings import checked_settings

pytestmark = pytest.mark.usefixtures("unadvised")

WRONG = {"name": "Mail", "arms": ["letter", "email"], "high": 1.0, "max_delay": 1, "seed": 7}
WRONG["start_date"] = "2026-03-02"


def played(store, rounds, total=lambda number, arm: 100.0 + number, **changes):
    """Play an experiment whose range is too small, and leave a round open."""
    one = store.create({**WRONG, **changes}).id
    units = store.experiment(one).units
    for number in range(1, rounds + 1):
        arms = [row["arm"] for row in (store.perform(one, Ask(unit)) for unit in units)]
        for unit, arm in zip(units, arms, strict=True):
            store.perform(one, Tell(number, total(number, arm), unit))
    store.perform(one, Ask())
    return one


def test_the_new_experiment_has_the_rounds_and_learns_from_them(store):
    old = played(store, 30)
    before = store.experiment(old)
    assert (before.counts["void"], before.updates) == (30, 0)
    new = store.correct(old, {"high": 500})
    assert (new.name, new.round, new.open_round, new.high) == ("Mail (corrected)", 31, 31, 500.0)
    assert new.inherited == {"experiment": old, "rounds": 31}
    assert (new.counts["void"], new.counts["reports"], new.sum_of_totals) == (0, 30, sum(range(101, 131)))
    assert new.updates > 0
    kept, had = (store.rounds(id, limit=1000)["items"] for id in (new.id, old))
    for name in ("round", "unit", "arm", "total", "date", "asked_at", "told_at", "probability"):
        same = [(mine[name], theirs[name]) for mine, theirs in zip(kept[:30], had[:30], strict=True)]
        assert all(mine == theirs for mine, theirs in same), name
    assert (kept[30]["arm"], kept[30]["status"], had[30]["status"]) == (had[30]["arm"], "open", "missing")
    assert store.experiment(old).state == "finished"
    # It goes on from there, and its record is that of its log.
    assert store.perform(new.id, Tell(31, 131.0))["status"] == "reported"
    asked = store.perform(new.id, Ask())
    assert (asked["round"], asked["date"]) == (32, "2026-04-02")
    assert [verdict.ok for verdict in store.verify()] == [True, True]
    assert "because rounds were inherited" in store.experiment(new.id).guarantee.sentence


def test_the_same_settings_learn_the_same_from_inherited_rounds() -> None:
    """With nothing changed the learner would have played just as it did, so it hears all and ends in the same state."""
    one, rows = made(max_delay=1, units=2), {}
    for number in range(1, 60):
        for step in (Ask(), Tell(number, number % 3 / 2, "1"), Tell(number, None if number % 11 == 0 else 0.5, "2")):
            rows |= {(row["round"], row["unit"]): row for row in one.do(step, AT).rows}
    two = made(max_delay=1, units=2)
    done = two.do(inherit("one", one.settings, [rows[key] for key in sorted(rows)], [], []), AT)
    assert one.state()["panel"] == two.state()["panel"]
    assert {(row["round"], row["unit"]): row["measured"] for row in done.rows} == {
        key: row["measured"] for key, row in rows.items()
    }
    again = made(max_delay=1, units=2)
    assert again.replay(json.loads(json.dumps(done.event))) == done.rows
    assert again.state() == two.state()
    assert Experiment.from_state(json.loads(json.dumps(two.state()))).state() == two.state()


def test_the_learner_hears_only_totals_of_the_arm_it_would_have_played() -> None:
    settings = made(max_delay=0).settings
    arm = made(max_delay=0).do(Ask(), AT).answer["arm"]
    row = {"unit": "1", "arm": arm, "total": 0.5, "date": None, "asked_at": AT, "told_at": AT, "probability": 1.0}
    row["note"] = None
    rows = [{**row, "round": t} for t in range(1, 40)]
    experiment = made(max_delay=0)
    found = experiment.do(inherit("x", settings, rows, [], []), AT).rows
    heard = [row for row in found if row["measured"]]
    assert 0 < len(heard) < len(found)
    # Once another arm is drawn, nothing is heard until that one is played, which it never is.
    assert [row["round"] for row in heard] == list(range(1, len(heard) + 1))
    assert {row["block"] for row in found[len(heard) :]} == {len(heard) + 1}


def test_rounds_after_a_pause_are_not_learned_from(store):
    old = store.create({**WRONG, "high": 50, "max_delay": 2}).id
    for number in range(1, 4):
        store.perform_many([(old, Ask()), (old, Tell(number, 1.0))])
    store.perform_many([(old, Pause()), (old, Resume())])
    for number in range(4, 8):
        store.perform_many([(old, Ask()), (old, Tell(number, 1.0))])
    new = store.correct(old, {"max_delay": 3})
    why = [row["why"] for row in store.rounds(new.id)["items"]]
    assert all("this total is not learned from" in words for words in why[3:6])
    assert "learned from like any other" in why[0]
    assert store.verify(new.id)[0].ok


@pytest.mark.parametrize(("changes", "words"), [
    ({"arms": ["letter", "call"]}, "arms must include all that were played, but 'email' is missing"),
    ({"units": 2}, "units must be those of the rounds inherited, but '2' is not in both"),
    ({"horizon": 31}, "horizon must be more than the 31 rounds inherited, but got 31"),
    ({"high": -5}, "low must be less than high"),
    ({"hihg": 5}, "must have no other keys than"),
])
def test_a_correction_that_cannot_be_leaves_everything_as_it_was(call, changes, words):
    old = played(call.store, 30, lambda number, arm: 0.5)
    before = call.snapshot()
    assert words in problem(call("POST", f"/v1/experiments/{old}/correct", json=changes), 422, "invalid")
    assert call.snapshot() == before


def test_inherited_rounds_are_not_played_again_at_every_load(call, monkeypatch):
    new = call.store.correct(played(call.store, 3), {"high": 500})
    monkeypatch.setattr(Experiment, "replay", None)
    assert call.store.experiment(new.id) == new


def test_an_arm_may_be_added(call):
    old = played(call.store, 10)
    made = call("POST", f"/v1/experiments/{old}/correct", json={"high": 200, "arms": ["letter", "email", "call"]})
    assert made.status_code == 201
    assert made.headers["location"] == f"/v1/experiments/{made.json()['id']}"
    assert (made.json()["arms"], made.json()["plays"]["call"]) == (["letter", "email", "call"], 0)


def test_rounds_are_inherited_before_the_first_round_only() -> None:
    experiment = made()
    play(experiment)
    with pytest.raises(Refused, match="only be inherited before round 1"):
        experiment.do(Inherit("x", [], [], []), AT)


def test_a_report_out_of_range_says_so_at_once(call):
    path = call.create(high=50)
    call("POST", f"{path}/ask")
    told = call("PUT", f"{path}/rounds/1", json={"total": 400}).json()
    assert told["status"] == "void"
    assert told["warning"].startswith("400 is outside [0, 100], the range of a total with these settings: it is rec")
    right = call("POST", f"{path}/rounds/1/amend", json={"total": 40}).json()
    assert (right["status"], "warning" in right) == ("reported", False)


def test_a_clipped_total_counts_and_is_learned_from_as_the_nearest_possible() -> None:
    def learned(out_of_range, total):
        one = made(max_delay=0, arms=["a", "b"], out_of_range=out_of_range)
        told = play(one, total)
        return one.view(), told

    view, told = learned("clip", 7.0)
    assert (told["status"], told["measured"], view.sum_of_totals) == ("clipped", True, pytest.approx(1.0))
    assert "learned from as 1" in told["warning"]
    assert (view.counts["void"], view.counts["out_of_range"]) == (0, 1)
    assert "count as the nearest possible one" in view.alarms[0]
    assert view.probabilities == learned("clip", 1.0)[0].probabilities != {"a": 0.5, "b": 0.5}
    view, told = learned("void", 7.0)
    assert (told["status"], view.sum_of_totals, view.counts["void"]) == ("void", 0.0, 1)


def test_a_correction_keeps_the_counts_of_a_clipped_total_right() -> None:
    one = made(max_delay=3, out_of_range="clip")
    play(one, 9.0)
    told = one.do(Amend(1, 0.5), AT).answer
    assert (told["status"], one.view().sum_of_totals, one.view().counts["out_of_range"]) == ("reported", 0.5, 1)


def test_the_command_line_corrects_settings(tmp_path):
    store = ("--store", str(tmp_path / "a.db"))
    assert command("init", "mail", "--arm", "a", "--arm", "b", "--max-delay", "1", *store).code == 2
    command("init", "mail", "--arm", "a", "--arm", "b", "--high", "1", "--max-delay", "1", "--seed", "7", *store)
    for number in range(1, 4):
        command("ask", *store)
        told = command("tell", str(number), "70", *store)
    assert "70 is outside [0, 2], the range of a total with these settings" in told.out
    assert "a setting to correct must be given" in command("correct", *store).err
    done = command("correct", "mail", "--high", "90", "--out-of-range", "clip", *store)
    assert done.out.startswith("Experiment 'mail (corrected)' is running.")
    found = json.loads(command("status", "mail (corrected)", "-f", "json", *store).out)
    assert (found["high"], found["out_of_range"], found["round"], found["counts"]["void"]) == (90.0, "clip", 3, 0)
    assert command("correct", "mail", "--window", "3 days", "--max-delay", "3", *store).code == 2


def test_the_page_says_that_a_total_is_void_and_offers_the_correction(call):
    old = call.store.create({**WRONG, "name": "Mail"}).id
    path = f"/experiments/{old}"
    call.store.perform(old, Ask())
    sent = post(call, f"{path}/tell", {"round": "1", "total": "70", "anyway": "yes"})
    assert sent.status_code == 303
    words = get(call, sent.headers["location"]).words
    assert "Round 1: 70 is outside [0, 2]" in words
    assert "saved" not in words
    assert "No total is within the possible range." in words
    links = [link["href"] for link in get(call, sent.headers["location"]).all("a")]
    assert links.count(f"{path}/correct") == get(call, path).words.count("Correct the settings") + 1
    form = get(call, f"{path}/correct")
    fields = {tag["name"]: tag.get("value", "") for tag in form.all("input") if tag.get("type") != "radio"}
    assert (fields["high"], fields["length"], fields["source"], fields["name"]) == ("1", "1", old, "Mail (corrected)")
    given = {**fields, "arms": "letter\r\nemail", "units": "", "carry": "max_delay", "high": "100", "draft": ""}
    sent = post(call, "/experiments/new", given)
    new = call.store.experiment(identity(sent.headers["location"].partition("?")[0]))
    assert (new.high, new.round, new.counts["void"], new.seed) == (100.0, 2, 0, 7)
    assert "It has the rounds of the old one" in get(call, sent.headers["location"]).words
    refused = post(call, "/experiments/new", {**given, "once": "x", "arms": "a\r\nb"})
    assert "Arms must include all that were played" in Page(refused.text).words


@pytest.mark.parametrize("finished", ["api", "page", "cli"])
def test_no_leader_is_named_if_only_one_arm_was_measured(call, tmp_path, finished):
    # In the first rounds of a block.
    path = call.create(max_delay=2, player="paper", horizon=500)
    call.play(path, 2, 9.0)
    call("POST", f"{path}/finish")
    only = "Nothing can be compared yet: only one arm has been reported."
    if finished == "api":
        found = call("GET", f"{path}/learned").json()
        assert (found["leader"], found["sentences"]) == (None, [only])
    elif finished == "page":
        words = get(call, path.removeprefix("/v1")).words
        assert only in words
        assert "Recommended" not in words
    else:
        call.store.backup(tmp_path / "copy.db")
        assert only in command("status", "--store", str(tmp_path / "copy.db")).out


def test_settings_of_earlier_versions_are_void() -> None:
    stored = checked_settings({**WRONG}).to_json()
    del stored["out_of_range"]
    assert type(checked_settings(WRONG)).from_json(stored).out_of_range == "void"
