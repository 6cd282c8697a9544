"""The dashboard's forms without a browser: what each does, what it refuses, and that a refusal changes nothing."""

import re

import pytest
from tests.service.pages import FORM, OWN, Page, get, identity, made, played, post

from aftereffect.service.dashboard import forms
from aftereffect.service.errors import Refused


def test_a_round_is_opened_reported_and_shown_without_a_script(call):
    path = made(call)
    opened = post(call, f"{path}/ask")
    assert (opened.status_code, opened.headers["location"]) == (303, path)
    page = get(call, path)
    arm = call.store.rounds(identity(path))["items"][0]["arm"]
    assert re.search(rf"Play\s+{arm}", page.words)
    assert f"{arm} is played: the model tries the arms that may be the best" in page.words
    told = post(call, f"{path}/tell", {"round": "1", "total": " 12.5 "})
    assert (told.status_code, told.headers["location"]) == (303, f"{path}?told=1")
    page = get(call, told.headers["location"])
    assert f"Round 1: 12.5 is recorded for {arm}." in page.words
    assert f"Round 2 ({call.store.now()[:10]}): play {arm}." in page.words
    assert call.store.experiment(identity(path)).open_round == 2
    row = call.store.rounds(identity(path))["items"][0]
    assert (row["total"], row["status"]) == (12.5, "reported")


def test_a_report_sent_twice_counts_once_and_another_value_is_a_conflict(call):
    path = made(call)
    post(call, f"{path}/ask")
    for _ in range(2):
        assert post(call, f"{path}/tell", {"round": "1", "total": "3"}).status_code == 303
    refused = post(call, f"{path}/tell", {"round": "1", "total": "4"})
    assert refused.status_code == 409
    assert "round 1 was reported as 3.0 and now as 4.0" in Page(refused.text).words
    assert call.store.experiment(identity(path)).sum_of_totals == 3.0


@pytest.mark.parametrize("text", ["8,421", "1_000", "nan", "inf", "1e400", "0x10", "١٢", "12 34", "--1", "true"])
def test_a_total_that_is_no_plain_number_is_refused_and_kept_in_the_form(call, text):
    path = made(call)
    post(call, f"{path}/ask")
    refused = post(call, f"{path}/tell", {"round": "1", "total": text})
    page = Page(refused.text)
    assert refused.status_code == 422
    assert "must be a number like 8421 or 0.5" in page.words
    (field,) = [field for field in page.all("input") if field.get("id") == "field-total"]
    assert (field["value"], field["aria-invalid"]) == (text, "true")
    assert call.store.experiment(identity(path)).open_round == 1


def test_units_report_one_by_one_and_the_rest_is_missing(call):
    path = made(call, units=["north", "<south>", "west"])
    post(call, f"{path}/ask")
    assert "3 of 3 units not reported yet" in get(call, path).words
    assert (
        post(call, f"{path}/tell", {"round": "1", "total-1": "2.5", "total-0": "", "total-2": " "}).status_code == 303
    )
    page = get(call, path)
    assert "2 of 3 units not reported yet" in page.words
    assert {f["name"] for f in page.all("input") if f.get("name", "").startswith("total")} == {"total-0", "total-2"}
    wrong = post(call, f"{path}/tell", {"round": "1", "total-0": "7", "total-2": "x"})
    assert wrong.status_code == 422
    fields = {field.get("name"): field.get("value") for field in Page(wrong.text).all("input")}
    assert (fields["total-0"], fields["total-2"]) == ("7", "x")
    assert post(call, f"{path}/tell", {"round": "1"}).status_code == 422
    assert post(call, f"{path}/missing", {"round": "1"}).status_code == 303
    rows = call.store.rounds(identity(path))["items"][:3]
    assert [(row["unit"], row["total"], row["status"]) for row in rows] == [
        ("north", None, "missing"),
        ("<south>", 2.5, "reported"),
        ("west", None, "missing"),
    ]


@pytest.mark.usefixtures("unadvised")
def test_a_round_is_corrected_also_after_its_block_has_ended(call):
    path = made(call, max_delay=5)
    for number in (1, 2):
        post(call, f"{path}/ask")
        post(call, f"{path}/tell", {"round": str(number), "total": "1"})
    links = [link["href"] for link in get(call, path).all("a") if "correct=" in link["href"]]
    assert links == [f"{path}?correct=2#correct", f"{path}?correct=1#correct"]
    assert (post(call, f"{path}/amend", {"round": "1", "corrected": "4"}).headers["location"] == f"{path}?told=1")
    assert call.store.experiment(identity(path)).sum_of_totals == 5.0
    old = played(call, 60)
    late = post(call, f"{old}/amend", {"round": "1", "corrected": "9"})
    done = late.headers["location"].removeprefix(f"{old}?done=")
    assert done in ("corrected_late", "corrected_record")
    assert "The total is corrected" in get(call, f"{old}?done={done}").words
    assert f"{old}?correct=1#correct" in [link["href"] for link in get(call, f"{old}?before=20").all("a")]


def test_a_total_out_of_range_is_asked_about_before_it_is_stored(call):
    path = made(call, measure="orders")
    post(call, f"{path}/ask")
    # Two effects of 0 to 50 each may arrive in a round.
    asked = post(call, f"{path}/tell", {"round": "1", "total": "1000"})
    page = Page(asked.text)
    assert (asked.status_code, call.store.experiment(identity(path)).counts["reports"]) == (422, 0)
    words = "must be in [0, 100], the range of a total with these settings, but got 1,000. Is it a typing error?"
    assert words in page.words
    assert "Total of round 1, in orders" in page.words
    assert {"name": "anyway", "value": "yes", "class": "quiet"} in page.all("button")
    assert post(call, f"{path}/tell", {"round": "1", "total": "1000", "anyway": "yes"}).status_code == 303
    assert call.store.experiment(identity(path)).counts["void"] == 1
    assert "is now 1,000 (void: out of range)." in " ".join(get(call, f"{path}?correct=1").words.split())
    assert post(call, f"{path}/amend", {"round": "1", "corrected": "-1"}).status_code == 422
    assert post(call, f"{path}/reports", {"lines": "7\n2000", "first": "2"}).status_code == 422
    assert call.store.experiment(identity(path)).round == 2
    assert post(call, f"{path}/amend", {"round": "1", "corrected": "9"}).status_code == 303
    assert call.store.experiment(identity(path)).sum_of_totals == 9.0


def test_an_experiment_is_started_paused_resumed_and_finished(call):
    path = made(call, draft=True)
    for word, done, state in (
        ("start", "is running.", "running"),
        ("pause", "is paused.", "paused"),
        ("resume", "is running again.", "running"),
        ("finish", "is finished.", "finished"),
    ):
        location = post(call, f"{path}/{word}").headers["location"]
        assert location.startswith(path)
        assert f"The experiment {done}" in get(call, location).words
        assert call.store.experiment(identity(path)).state == state
    refused = post(call, f"{path}/ask")
    assert refused.status_code == 409
    assert "it is finished" in Page(refused.text).words


def test_an_arm_goes_away_and_comes_back(call):
    path = made(call)
    assert post(call, f"{path}/arms", {"arm": "email", "move": "away"}).status_code == 303
    assert call.store.experiment(identity(path)).away == ["email"]
    assert "(away)" in get(call, path).words
    assert post(call, f"{path}/arms", {"arm": "email", "move": "back"}).status_code == 303
    assert call.store.experiment(identity(path)).away == []


def test_the_plan_is_shown_before_anything_starts(call):
    shown = post(call, "/experiments/plan", FORM)
    words = Page(shown.text).words
    assert shown.status_code == 200
    # A window of 7 days in rounds of a day: d = 7, blocks of at least 8 rounds, β = 0.7/8: 1/(β(1 − β)^7) = 21.7 on
    # average, and 365.25 / 4 / 21.7 = 4.21 decisions in a quarter.
    for expected in ("7 rounds", "8 rounds", "21.7 rounds", "4.21", "attribution window", "In the first 326 rounds"):
        assert expected in words
    assert call.store.experiments()["items"] == []
    fields = {field["name"]: field["value"] for field in Page(shown.text).all("input") if field.get("type") == "text"}
    assert (fields["name"], fields["length"], fields["high"]) == ("Prices", "7 days", "20")


def test_a_form_makes_the_experiment_it_says(call):
    more = {"units": "north\nsouth", "horizon": "500", "start_date": "2026-03-01", "seed": "5", "direction": "minimize"}
    created = post(call, "/experiments/new", {**FORM, **more})
    assert created.status_code == 303
    view = call.store.experiment(identity(created.headers["location"].partition("?")[0]))
    expected = {"arms": ["9.90", "10.90"], "units": ["north", "south"], "max_delay": 7, "high": 20.0, "low": 0.0}
    expected |= {"horizon": 500, "start_date": "2026-03-01", "seed": 5, "direction": "minimize", "state": "running"}
    assert {name: view.data[name] for name in expected} == expected
    draft = post(call, "/experiments/new", {**FORM, "carry": "half_life", "length": "2", "draft": "yes", "units": "3"})
    view = call.store.experiment(identity(draft.headers["location"].partition("?")[0]))
    assert (view.state, view.max_delay, view.units) == ("draft", 6, ["1", "2", "3"])


def test_a_form_sent_twice_makes_one_experiment(call):
    places = {post(call, "/experiments/new", {**FORM, "once": "key"}).headers["location"] for _ in range(2)}
    assert len(places) == 1
    assert len(call.store.experiments()["items"]) == 1
    post(call, "/experiments/new", {**FORM, "once": "another"})
    assert len(call.store.experiments()["items"]) == 2


@pytest.mark.parametrize(("changes", "field", "words"), [
    ({"name": ""}, "name", "Please fill in Name."),
    ({"arms": "one"}, "arms", "2 or more items"),
    ({"length": ""}, "length", "Please fill in Length."),
    ({"length": "7 moons"}, "length", "words like"),
    ({"carry": "max_delay", "length": "1.5"}, "length", "whole number"),
    ({"round_length": "0"}, "round_length", "at least 1e-09"),
    ({"low": "a"}, "low", "number like"),
    ({"start_date": "yesterday"}, "start_date", "a date like"),
    ({"player": "paper"}, "horizon", "must be given for player"),
])
def test_a_wrong_field_is_named_beside_it(call, changes, field, words):
    refused = post(call, "/experiments/new", {**FORM, **changes})
    page = Page(refused.text)
    assert refused.status_code == 422
    assert words in page.words
    (marked,) = [a for tag in ("input", "textarea") for a in page.all(tag) if a.get("aria-invalid")]
    assert (marked["id"], marked["aria-describedby"].split()[-1]) == (f"field-{field}", f"wrong-{field}")
    assert f"#field-{field}" in {link["href"] for link in page.all("a")}
    assert call.store.experiments()["items"] == []


@pytest.mark.parametrize(("kind", "body", "status"), [
    ("text/plain", b"round=1&total=1", 422),
    ("application/x-www-form-urlencoded", b"round=1&total=%FF", 422),
    ("application/x-www-form-urlencoded", b"round=1&total=1&total=2", 422),
    ("application/x-www-form-urlencoded", b"&".join(b"a%d=1" % i for i in range(3000)), 422),
    ("application/x-www-form-urlencoded", b"round=" + b"9" * 40 + b"&total=1", 422),
    ("application/x-www-form-urlencoded", b"total=" + b"1" * (1 << 21), 413),
])
def test_a_body_that_is_no_sane_form_changes_nothing(call, kind, body, status):
    path = made(call)
    post(call, f"{path}/ask")
    found = call("POST", f"{path}/tell", content=body, headers={"Content-Type": kind, **OWN})
    assert found.status_code == status
    assert call.store.experiment(identity(path)).counts["reports"] == 0


def test_a_form_means_what_it_says_and_nothing_is_guessed():
    assert forms.settings({**FORM, "carry": "max_delay", "length": "3"})["max_delay"] == 3
    assert forms.settings({**FORM, "length": "1.5"})["carry_over"] == {"window": 1.5}
    with pytest.raises(Refused, match="carry must be window, half_life, max_delay or unknown, but got 'x'"):
        forms.settings({**FORM, "carry": "x"})
    assert forms.settings({**FORM, "low": "-1,5", "high": "8 421,5"})["high"] == 8421.5
    with pytest.raises(Refused, match=r"low must be a number like 8421 or 0\.5, but '1,500' can mean 1500 or 1\.500"):
        forms.settings({**FORM, "low": "1,500"})


def test_a_total_that_no_range_refuses_is_refused_at_its_field(call):
    path = made(call, max_delay=None, low=None, high=None)
    post(call, f"{path}/ask")
    refused = post(call, f"{path}/tell", {"round": "1", "total": "1e200"})
    page = Page(refused.text)
    assert (refused.status_code, "Total must be at most 1e+100, but got 1e+200." in page.words) == (422, True)
    assert "#field-total" in {link["href"] for link in page.all("a")}


def test_a_model_whose_settings_are_corrected_keeps_its_longest_lag(call):
    page = get(call, made(call, max_delay=None, low=None, high=None, max_lag=30) + "/correct")
    fields = [field for field in page.all("input") if field["type"] != "radio" or "checked" in field]
    form = {field["name"]: field["value"] for field in fields} | {"arms": "letter\r\nemail"}
    done = post(call, "/experiments/new", form | {"measure": "EUR"}).headers["location"]
    view = call.store.experiment(identity(done).partition("?")[0])
    assert (view.player, view.max_lag, view.measure) == ("model", 30, "EUR")
    # Somebody who says how long effects last needs no longest lag.
    assert "max_lag" not in forms.settings(form | {"carry": "window", "length": "2 days", "high": "9"})
