"""A new experiment that begins with what another has measured, and one that goes on with other arms."""

import json
from typing import Any

import pytest
from tests.refusals import refuses
from tests.service.calling import Api, problem
from tests.service.playing import play_in
from tests.service.server import command

import aftereffect as ae
from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Ask
from aftereffect.service.local import Local
from aftereffect.service.settings import WARM_UPDATES, checked_settings
from aftereffect.service.store.store import Store

pytestmark = pytest.mark.usefixtures("unadvised")

SETTINGS = {"name": "Ads", "arms": ["a", "b", "c"], "high": 10.0, "max_delay": 0, "seed": 5}
TOTALS = {"a": 2.0, "b": 5.0, "c": 8.0, "d": 6.0}


def worth(number: int, arm: str) -> float:
    return TOTALS[arm]


@pytest.fixture
def store(sqlite_url: str):
    with Store.open(sqlite_url) as opened:
        yield opened


def test_a_prior_of_the_settings_is_that_of_the_player(store: Store) -> None:
    prior = {"means": {"c": 8.0, "a": 2.0, "b": 5.0}, "updates": 4}
    view = store.create({**SETTINGS, "prior": prior})
    twin = ae.MatchedTsallis(3, prior=[4 * 0.6, 4 * 0.3, 0.0])
    assert list(view.probabilities.values()) == pytest.approx(twin.probabilities.tolist())
    assert view.prior.means == {"c": 8.0, "a": 2.0, "b": 5.0}
    plain = store.create({**SETTINGS, "horizon": 5000})
    warm = store.create({**SETTINGS, "horizon": 5000, "prior": prior})
    price = warm.guarantee.value - plain.guarantee.value
    assert price == pytest.approx(10.0 * twin.prior_price)
    assert "It begins with what was known, worth 4 updates." in warm.guarantee.sentence
    assert f"at most {price:.1f}" in warm.guarantee.words
    play_in(store, warm.id, 3, worth)
    view = store.experiment(warm.id)
    assert view.guarantee.certificate.terms["prior"] == pytest.approx(price)
    assert not view.guarantee.void
    assert all(each.ok for each in store.verify())


test_what_is_no_beginning_is_refused = refuses([
    ({"prior": {"means": {"a": 1, "b": 2}, "updates": 1}}, "prior must have a mean for each of"),
    ({"prior": {"means": {"a": 1, "b": 2, "c": 11}, "updates": 1}}, "prior must be at most 10"),
    ({"prior": {"means": {"a": 1, "b": 2, "c": 3}, "updates": -1}}, "prior.updates must be at least 0"),
    ({"prior": {"means": {"a": 1, "b": 2, "c": 3}}}, "prior.updates must be given"),
    (
        {"prior": {"means": {"a": 1, "b": 2, "c": 3}, "updates": 1, "experiment": "\x1b[31m"}},
        "prior.experiment must not be blank or contain control characters",
    ),
    (
        {"prior": {"means": {"a": 1, "b": 2, "c": 3}, "updates": 1}, "player": "paper", "horizon": 100},
        "prior must be omitted with player 'paper'",
    ),
    ({"warm_start": {"experiment": "x"}, "player": "paper", "horizon": 100}, "warm_start must be omitted with"),
    ({"warm_start": {"experiment": 7}}, "warm_start.experiment must be"),
], lambda changes: checked_settings({**SETTINGS, **changes}), error=Refused)


def test_another_experiment_s_measurements_are_the_beginning(store: Store) -> None:
    old = store.create(SETTINGS).id
    with pytest.raises(Refused, match="warm_start must be an experiment that has played one of the arms"):
        store.create({**SETTINGS, "warm_start": {"experiment": old}})
    play_in(store, old, 40, worth)
    known = {each.arm: each.effect[0] for each in store.learned(old).arms}
    made = store.create({**SETTINGS, "arms": ["c", "a", "d"], "warm_start": {"experiment": old}})
    # Matched by name; an arm that nobody has played gets the best mean, so that it is tried.
    means = {"c": 5.0 + known["c"], "a": 5.0 + known["a"], "d": 5.0 + known["c"]}
    assert made.prior.means == pytest.approx(means, rel=1e-9)
    assert (made.prior.updates, made.prior.experiment) == (WARM_UPDATES, old)
    assert made.probabilities["d"] == made.probabilities["c"] > 2 * made.probabilities["a"]
    assert f"what experiment {old} had shown, worth 10 updates" in made.guarantee.sentence
    assert store.experiment(old).state == "running"
    asked = {**SETTINGS, "warm_start": {"experiment": old, "updates": 3}}
    assert store.create(asked).prior.updates == 3.0
    # Means outside the new range are at its end; a setting that was resolved is stored, not looked up again.
    narrow = store.create({**SETTINGS, "high": 6.0, "warm_start": {"experiment": old}})
    assert narrow.prior.means == pytest.approx({arm: min(max(3.0 + known[arm], 0.0), 6.0) for arm in "abc"}, rel=1e-9)
    with pytest.raises(Refused, match="there is no experiment 'nobody'"):
        store.create({**SETTINGS, "warm_start": {"experiment": "nobody"}})
    play_in(store, made.id, 10, worth)
    assert all(each.ok for each in store.verify())


def test_an_experiment_goes_on_with_other_arms_in_one_write(store: Store) -> None:
    old = store.create({**SETTINGS, "horizon": 100, "start_date": "2026-01-01"}).id
    play_in(store, old, 40, worth)
    store.remind(old, "sales", 0.5)
    store.perform(old, Ask())
    known = {each.arm: 5.0 + each.effect[0] for each in store.learned(old).arms}
    made = store.continue_with(old, add=["d"], retire=["a"])
    ended = store.experiment(old)
    assert (ended.state, ended.round, ended.open_round) == ("finished", 41, None)
    assert (made.arms, made.horizon, made.start_date) == (["b", "c", "d"], 59, "2026-02-10")
    assert (made.name, made.round, made.state) == ("Ads (continued)", 0, "running")
    assert made.prior.means == pytest.approx({"b": known["b"], "c": known["c"], "d": known["c"]}, rel=1e-9)
    assert made.seed != ended.seed
    assert not made.guarantee.void
    assert [each.webhook for each in store.reminders(made.id)] == ["sales"]
    play_in(store, made.id, 40, worth)
    again = store.continue_with(made.id, retire=["d"], changes={"name": "Last", "high": 20})
    assert (again.name, again.arms, again.high) == ("Last", ["b", "c"], 20.0)
    assert all(each.ok for each in store.verify())


@pytest.mark.parametrize(("given", "rule"), [
    ({"retire": ["z"]}, "retire must be arms of the experiment, but got 'z'"),
    ({"add": ["a"]}, "add must be new arms, but got 'a'"),
    ({"retire": ["a", "b"]}, "arms must"),
    ({"add": ["d"], "changes": {"player": "paper"}}, "horizon must be given"),
    ({"changes": {"high": 20}}, "add or retire must name an arm, or max_delay, carry_over or player be given, but"),
    ({"add": ["d"], "changes": {"warm_start": None}}, "warm_start must be omitted, because it is this experiment"),
])
def test_a_continuation_that_cannot_be_is_refused_whole(store: Store, given: dict[str, Any], rule: str) -> None:
    old = store.create(SETTINGS).id
    play_in(store, old, 12, worth)
    with pytest.raises(Refused, match=rule):
        store.continue_with(old, **given)
    with pytest.raises(Refused, match="warm_start must be omitted, because the rounds are inherited"):
        store.correct(old, {"high": 20, "warm_start": {"experiment": old}})
    assert store.experiment(old).state == "running"
    assert len(store.experiments()["items"]) == 1
    # With nothing measured, there is nothing to begin with.
    new = store.create(SETTINGS).id
    assert store.continue_with(new, add=["d"]).prior is None
    draft = store.create({**SETTINGS, "draft": True}).id
    with pytest.raises(Refused, match="must have begun to be continued, but it is a draft"):
        store.continue_with(draft, add=["d"])


def test_rest(call: Api) -> None:
    old = call("POST", "/v1/experiments", json=SETTINGS).json()["id"]
    play_in(call.store, old, 40, worth)
    warm = call("POST", "/v1/experiments", json={**SETTINGS, "warm_start": {"experiment": old}}).json()
    assert warm["prior"]["experiment"] == old
    answer = call("POST", f"/v1/experiments/{old}/continue", json={"add": ["d"], "retire": ["a"], "name": "On"})
    assert (answer.status_code, answer.json()["arms"], answer.json()["name"]) == (201, ["b", "c", "d"], "On")
    assert answer.headers["location"] == f"/v1/experiments/{answer.json()['id']}"
    problem(call("POST", f"/v1/experiments/{old}/continue", json={"retire": ["z"]}), 422, "invalid")
    problem(call("POST", f"/v1/experiments/{old}/continue", json={"colour": "red"}), 422, "invalid")
    for key in ("id", "self", "known", "function"):
        problem(call("POST", f"/v1/experiments/{old}/continue", json={"add": ["e"], key: 1}), 422, "invalid")


def test_command_line_and_local(tmp_path: Any) -> None:
    file = str(tmp_path / "ads.db")
    with Local.open(f"sqlite:///{file}") as local:
        old = local.create(**SETTINGS).id
        play_in(local.store, old, 40, worth)
        assert local.create(**{**SETTINGS, "name": "Warm"}, warm_start={"experiment": old}).prior.experiment == old
    words = ["init", "New", "--arm", "c", "--arm", "d", "--high", "10", "--max-delay", "0", "--store", file]
    done = command(*words, "--warm-start", "Ads", "--format", "json")
    means = json.loads(done.out)["prior"]["means"]
    assert means["c"] == means["d"] > 7.0
    done = command("continue", "Ads", "--add", "d", "--retire", "a", "--store", file)
    assert "Experiment 'Ads (continued)' is running." in done.out
    assert command("continue", "Ads", "--retire", "z", "--store", file).code != 0
