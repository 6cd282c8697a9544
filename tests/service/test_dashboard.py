"""The dashboard's pages without a browser: what they hold, what they show, and that all of it is text."""

import gzip
import importlib.util
import itertools
import re
from pathlib import Path

import pytest
from tests.service.calling import Api
from tests.service.pages import FORM, Page, get, identity, made, played, post

from aftereffect.service import words as spoken
from aftereffect.service.dashboard import views
from aftereffect.service.dashboard.views import rounded
from aftereffect.service.errors import Corrupt
from aftereffect.service.experiment.commands import Ask, Pause, Tell
from aftereffect.service.messages import ArmEffect, Learned


def every_page(call: Api) -> list[str]:
    """An address of each kind of page: all states, one unit and several, with and without rounds."""
    several = played(call, 12, units=["north", "south"])
    call.store.perform(identity(several), Ask())
    finished = played(call, 9, horizon=9)
    paused = played(call, 3)
    call.store.perform(identity(paused), Pause())
    one = played(call, 40, start_date="2026-01-01")
    return ["/", "/experiments/new", several, finished, paused, made(call, draft=True), made(call, max_delay=0), one]


def test_every_page_has_nothing_inline_and_nothing_from_elsewhere(call):
    for path in every_page(call):
        found = call("GET", path)
        policy = found.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["cache-control"] == "no-store"
        page = Page(found.text)
        assert not page.all("style")
        for tag, attributes in page.tags:
            assert not [name for name in attributes if name == "style" or name.startswith("on")], (path, tag)
            for name in ("href", "src", "action", "formaction"):
                assert re.match(r"[/#](?!/)", attributes.get(name, "/")), (path, tag, attributes)
        assert all(script["src"].startswith("/static/") for script in page.all("script"))


def test_every_page_is_sane_for_keyboard_and_screen_reader(call):
    for path in every_page(call):
        page = get(call, path)
        html = page.all("html")[0]
        assert html["lang"] == "en"
        assert len(page.all("main")) == len(page.all("h1")) == 1
        levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), path
        ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
        assert len(ids) == len(set(ids)), path
        labelled = {label["for"] for label in page.all("label")}
        for tag in ("input", "select", "textarea"):
            for field in page.all(tag):
                named = field.get("type") == "hidden" or field.get("id") in labelled or field.get("aria-label")
                assert named, (path, field)
        referred = [a[name] for _, a in page.tags for name in ("aria-labelledby", "aria-describedby") if name in a]
        assert {name for names in referred for name in names.split()} <= set(ids)
        assert {label["for"] for label in page.all("label")} <= set(ids)
        assert all("scope" in cell for cell in page.all("th"))


def test_the_first_page_without_experiments_leads_to_the_form(call):
    page = get(call, "/")
    assert "No experiments yet" in page.words
    assert {"/experiments/new"} <= {link["href"] for link in page.all("a")}


def test_the_list_shows_state_round_and_what_is_waited_for(call):
    path = played(call, 2, name="Letters <i>or</i> mail")
    call.store.perform(identity(path), Ask())
    made(call, name="Later", draft=True)
    words = get(call, "/").words
    for expected in ("Letters <i>or</i> mail", "the total of round 3", "Later", "its start", "running", "draft"):
        assert expected in words
    assert "Later" not in get(call, "/?state=running").words
    assert "No experiment is paused" in get(call, "/?state=paused").words
    assert "Later" in get(call, "/?state=nonsense").words


def test_the_list_shows_the_others_beside_an_experiment_that_cannot_be_read(call, monkeypatch):
    lost, _ = identity(made(call, name="Lost")), made(call, name="Sound")
    read = call.store.experiment

    def experiment(id):
        if id == lost:
            raise Corrupt("the log must be gapless")
        return read(id)

    monkeypatch.setattr(call.store, "experiment", experiment)
    words = get(call, "/").words
    for expected in ("Lost", "damaged", "aftereffect verify", "Sound", "round 1 to be opened"):
        assert expected in words


def test_the_list_has_pages(call):
    for number in range(102):
        made(call, name=f"Number {number:03}", draft=True)
    first = get(call, "/")
    (following,) = [link["href"] for link in first.all("a") if link["href"].startswith("/?after=")]
    assert "Number 099" in first.words
    assert "Number 100" not in first.words
    assert "Number 100" in get(call, following).words


def test_the_list_begins_with_what_needs_a_person_and_says_what_is_overdue(call):
    call.store.now = lambda: "2026-03-10T09:00:00.000Z"
    made(call, name="Finished later", draft=True)
    for name, first, rounds in (("On time", "2026-03-08", 2), ("Behind", "2026-03-01", 3), ("One", "2026-03-08", 1)):
        path = played(call, rounds, name=name, start_date=first, max_delay=0)
        call.store.perform(identity(path), Ask())
    page = get(call, "/")
    places = [page.words.index(name) for name in ("Behind", "One", "On time", "Finished later")]
    assert places == sorted(places)
    # Round 4 of an experiment that began on 1 March ended with 4 March; those of 4 to 9 March have no report.
    assert "the total of round 4, due since 5 March (6 rounds behind)" in page.words
    assert "the total of round 2, due since 10 March" in page.words
    assert "the total of round 3, due on 10 March" in page.words
    behind = next(link["href"] for link in page.all("a") if link.get("class") == "name")
    assert "due since 5 March: 6 rounds have no report" in get(call, behind).words


def test_an_experiment_behind_schedule_names_the_round_of_the_next_decision_and_no_past_date(call):
    call.store.now = lambda: "2026-06-10T09:00:00.000Z"
    path = played(call, 70, start_date="2026-01-01")
    next = call.store.experiment(identity(path)).next_decision
    words = " ".join(get(call, path).words.split())
    first = words[: words.index("Arms played")]
    assert "Round 71 · due since 13 March: 90 rounds have no report" in first
    assert f"Next decision round {next.round}" in first
    assert next.date not in first


def test_with_many_units_the_leader_stands_above_their_totals(call):
    path = played(call, 40, units=12, measure="EUR")
    call.store.perform(identity(path), Ask())
    known = call.store.learned(identity(path))
    first = spoken.known(known, "maximize", 1, "EUR")[0]
    words = " ".join(get(call, path).words.split())
    assert words.index(first) < words.index("The total of each unit, in EUR:") < words.index("Report these totals")


def test_in_the_opening_the_page_does_not_say_that_a_guarantee_holds_the_model_back(call):
    path = made(call, arms=["a", "b", "c"], max_delay=2, high=40, player="advised")
    for number in range(1, 30):
        arm = call.store.perform(identity(path), Ask())["arm"]
        call.store.perform(identity(path), Tell(number, 10.0 + "abc".index(arm), "1"))
    assert call.store.experiment(identity(path)).block == 0
    assert call.store.learned(identity(path)).leader
    assert "as far as its guarantee allows" not in get(call, path).words[: get(call, path).words.index("Arms played")]


def test_an_unknown_address_is_a_page_for_people_and_a_problem_for_programs(call):
    found = call("GET", "/nosuchpage", headers={"Accept": "text/html,application/xhtml+xml"})
    assert (found.status_code, "text/html" in found.headers["content-type"]) == (404, True)
    assert "Not found" in Page(found.text).words
    for path, accept in (("/nosuchpage", "*/*"), ("/v1/nosuchthing", "text/html")):
        found = call("GET", path, headers={"Accept": accept})
        assert (found.status_code, found.json()["code"]) == (404, "not_found")


def test_what_is_not_there_is_a_page_in_words(call):
    found = call("GET", "/experiments/nosuchexperiment")
    assert found.status_code == 404
    assert "text/html" in found.headers["content-type"]
    assert post(call, "/experiments/nosuchexperiment/ask").status_code == 404
    path = made(call)
    for query in ("before=x", "before=0", "correct=-1", "unit=" + "u" * 300):
        assert call("GET", f"{path}?{query}").status_code == 422
    assert call("GET", "/?after=nosuchexperiment").status_code == 404


def test_markup_in_any_name_stays_text(call):
    evil = "<script>alert(1)</script>"
    path = played(call, 30, name=evil, arms=[evil, "<img src=x onerror=alert(2)>"], units=[evil + "u", "'\"&"])
    for place in ("/", path, f"{path}?unit=%3Cscript%3E&done=%3Cscript%3E"):
        found = call("GET", place)
        assert "<script>alert" not in found.text
        assert "<img" not in found.text
    kept = post(call, "/experiments/new", {**FORM, "name": evil, "arms": evil})
    assert kept.status_code == 422
    assert "<script>alert" not in kept.text


def test_files_are_packed_kept_and_the_wheels_own(call):
    found = importlib.util.find_spec("plotly")
    wheel = Path(found.origin).parent / "package_data" / "plotly.min.js"
    script = call("GET", "/static/plotly.min.js?x", headers={"Accept-Encoding": "identity"})
    assert script.content == wheel.read_bytes()
    assert "immutable" in script.headers["cache-control"]
    packed = call("GET", "/static/dashboard.css", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["cache-control"] == "no-cache"
    assert packed.headers["content-type"].startswith("text/css")
    assert call("GET", "/static/..%2froutes.py").status_code == 404
    assert call("GET", "/static/routes.py").status_code == 404
    assert len(gzip.compress(script.content)) < 2_000_000


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_first_screen_says_leader_gain_and_next_decision(call, direction):
    # The 71st day.
    call.store.now = lambda: "2026-03-12T09:00:00.000Z"
    path = played(call, 70, direction=direction, start_date="2026-01-01")
    view, shown, known = call.store.experiment(identity(path)), get(call, path), call.store.learned(identity(path))
    words = " ".join(shown.words.split())
    first = words[: words.index("Arms played")]
    low, high = (views.signed(known.gain[i]) for i in (1, 2))
    assert f"between {low} and {high}; plus is better" in first
    assert ("Saved so far, against an equal split" in first) == (direction == "minimize")
    assert f"Expected loss if {known.leader} is played from now on" in first
    assert view.next_decision.date in first
    said = spoken.known(known, direction, view.max_delay)
    assert all(sentence in first for sentence in said)
    assert said[0].startswith(f"{known.leader} ") or said[0].startswith("It is open which arm ")
    for each in known.arms:
        value, least, most = map(views.signed, each.effect)
        assert f"{value} ({least} to {most})" in first
        assert f"best with probability {spoken.probability(each.best)}" in first
    # What was learned stands before the charts, and the guarantee, which says nothing yet, after them.
    assert "lose at most" not in words
    assert words.index("Arms played") < words.index(view.guarantee.sentence)
    assert words.count(view.guarantee.sentence) == 1


def test_the_learner_and_the_leader_agree_or_the_page_says_why():
    arms = [ArmEffect(arm=arm, plays=1, effect=[0, 0, 0], best=0.5, by_lag=[], away=False) for arm in "AB"]
    known = Learned(experiment="x", arms=arms, leader="A")
    assert spoken.agreement(known, {"A": 0.7, "B": 0.3}, "advised") is None
    assert spoken.agreement(known, {"A": 0.1, "B": 0.9}, "model") is None
    assert spoken.agreement(known, {"A": 0.1, "B": 0.9}, "advised").startswith("B is drawn most often at present (90%)")
    even = spoken.agreement(known.model_copy(update={"leader": "A"}), {"A": 0.4, "B": 0.2, "C": 0.4}, "advised")
    assert even.startswith("All arms are still tried, because the learner goes only as far as its guarantee allows")
    assert spoken.agreement(Learned(experiment="x"), {"A": 0.1, "B": 0.9}, "advised") is None


def test_what_was_learned_is_said_in_words():
    arms = [
        ArmEffect(arm="Letter", plays=9, effect=[25, 10, 40], best=0.97, by_lag=[[1, -1, 3], [20, 15, 25]], away=False),
        ArmEffect(arm="Email", plays=9, effect=[-25, -40, -10], best=0.03, by_lag=[[0, -1, 1], [0, -1, 1]], away=False),
    ]
    known = Learned(experiment="x", arms=arms, leader="Letter", sure="certain", lasts=1, max_lag=1, loss_per_day=0.5)
    said = spoken.known(known, "maximize", 1, "EUR")
    assert said == [
        "Letter brings most (probability 97%): 25 ± 15 EUR more than the mean of the arms.",
        "The difference comes mostly 1 round after the action.",
        "Effects certainly last until 1 round after the action; the longest lag looked at is 1 round.",
    ]
    assert spoken.known(known, "maximize", 0)[3] == (
        "That is longer than the carry-over of 0 rounds: correct the settings."
    )
    likely = known.model_copy(update={"sure": "likely", "lasts": None})
    assert spoken.known(likely, "maximize", None)[:2] == [
        "Letter probably brings most (probability 97%): 25 ± 15 more than the mean of the arms.",
        "These totals do not show when effects come.",
    ]
    assert not spoken.negligible(known)
    assert spoken.negligible(known.model_copy(update={"loss_per_day": 1e-12}))


LABELS = {
    "ends": "First and last rounds",
    "drift": "Probabilities that changed while effects were pending",
    "first rate": "Initial learning rate",
    "penalty": "Growth of the learning rate",
    "cost": "Variance of the estimates",
    "open stretch": "Observed, not yet learned from",
    "opening": "Rounds whose arms the model chooses itself",
    "advice": "Advice of the model",
}


def test_the_page_shows_the_certificate_term_by_term(call):
    path = played(call, 50)
    words = Page(call("GET", path).text).words
    view = call.store.experiment(identity(path))
    assert "Certificate so far" in words
    for sentence in (*view.guarantee.paragraphs, *view.plan.sentences):
        assert sentence in words
    terms = {name: term for name, term in view.guarantee.certificate.terms.items() if term != 0.0}
    assert terms.keys() <= LABELS.keys()
    for name, label in LABELS.items():
        assert (label in words) == (name in terms), name
        assert name not in terms or f"{label}{rounded(terms[name])}" in words


def test_the_table_of_rounds_has_pages_that_meet(call):
    path = played(call, 70)
    seen = []
    places = [path]
    for place in places:
        found = call("GET", place).text
        table = found[found.index('<table class="rounds">') :]
        seen += [int(number) for number in re.findall(r'<th scope="row">(\d+)</th>', table)]
        places += re.findall(r'href="(\S+\?before=\d+)#rounds">Older', found)
    assert seen == list(range(70, 0, -1))
    blocks = [one["block"] for one in call.store.rounds(identity(path), limit=1000)["items"]]
    shown = "".join(call("GET", place).text for place in places)
    assert (shown.count("<td>chosen by the model</td>"), shown.count("<td>update</td>")) == (blocks.count(0), 0)
    newer = re.findall(r'href="(\S+\?before=\d+)#rounds">Newer', call("GET", places[-1]).text)
    assert call("GET", newer[0]).text == call("GET", places[-2]).text
