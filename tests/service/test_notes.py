"""Notes on rounds, the search for experiments, their comparison, and the reference of the REST API."""

import csv
import io
import json

import pytest
from tests.service.browser import window
from tests.service.calling import problem
from tests.service.pages import Page, get, identity, played, post
from tests.service.playing import AT, made, play
from tests.service.server import command, server

from aftereffect.service.client import Client
from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Ask, Finish, Note, Tell
from aftereffect.service.experiment.experiment import Experiment
from aftereffect.service.local import Local


def test_a_note_is_kept_with_its_round_and_in_the_log(store):
    one = store.create({"name": "x", "arms": ["a", "b"], "high": 1, "max_delay": 0, "units": ["n", "s"]}).id
    for number in range(1, 31):
        store.perform_many([(one, Ask()), (one, Tell(number, 0.5, "n")), (one, Tell(number, 0.5, "s"))])
    before = store.experiment(one)
    # Round 2 is no longer in memory, round 30 is.
    for number in (2, 30):
        told = store.perform(one, Note(number, "holiday", "s"))
        assert (told["note"], told["repeated"], told["total"]) == ("holiday", False, 0.5)
        assert store.perform(one, Note(number, "holiday", "s"))["repeated"]
    rows = {(row["round"], row["unit"]): row["note"] for row in store.rounds(one, limit=1000)["items"]}
    assert {key for key, note in rows.items() if note} == {(2, "s"), (30, "s")}
    after = store.experiment(one)
    assert before == after
    kinds = [event["kind"] for event in store.events(one, after=90)["items"]]
    assert kinds == ["note", "note"]
    store.perform(one, Finish())
    assert store.perform(one, Note(2, None, "s"))["note"] is None
    assert store.verify(one)[0].ok
    new = store.correct(one, {"high": 2}).id
    assert [row["note"] for row in store.rounds(new, limit=1000)["items"] if row["note"]] == ["holiday"]
    found = list(csv.DictReader(io.StringIO(b"".join(store.export(one, "csv")).decode())))
    assert [row["note"] for row in found if row["note"]] == ["holiday"]


def test_a_state_keeps_notes_and_one_without_them_is_read() -> None:
    experiment = made()
    play(experiment)
    old = json.loads(json.dumps(experiment.state()["rounds"]))
    assert all(each[-1] == [] for each in old)
    experiment.do(Note(1, "strike"), AT)
    again = Experiment.from_state(json.loads(json.dumps(experiment.state())))
    assert again.state() == experiment.state()
    assert again.do(Note(1, "strike"), AT).event is None


def test_a_formula_in_a_note_is_text_in_a_spreadsheet(call):
    path = call.create()
    call.play(path, 1)
    for note in ("=1+1", "\uff1d1+1"):
        call("PUT", f"{path}/rounds/1/note", json={"note": note})
        assert f'"\'{note}"' in call("GET", f"{path}/export").text


def test_notes_by_rest_page_command_client_and_local(call, tmp_path):
    path = call.create(units=["north", "south"])
    call("POST", f"{path}/ask")
    assert call("PUT", f"{path}/rounds/1/note", json={"note": "rain", "unit": "north"}).json()["note"] == "rain"
    assert "unit must be given" in problem(call("PUT", f"{path}/rounds/1/note", json={"note": "x"}), 422, "invalid")
    assert problem(call("PUT", f"{path}/rounds/9/note", json={"note": "x", "unit": "north"}), 409, "not_open")
    assert problem(call("PUT", f"{path}/rounds/1/note", json={"note": "a\x07b", "unit": "north"}), 422, "invalid")
    page = path.removeprefix("/v1")
    assert "rain" in get(call, page).words
    sent = post(call, f"{page}/note", {"round": "1", "note": "<b>fair</b>", "unit": ""})
    assert "The note is saved." in get(call, sent.headers["location"]).words
    assert get(call, page).words.count("<b>fair</b>") == 2
    assert post(call, f"{page}/note", {"round": "1", "note": "x" * 201}).status_code == 422
    call.store.backup(tmp_path / "copy.db")
    done = command("note", "1", "closed", "--store", str(tmp_path / "copy.db"))
    assert done.out == "Round 1: closed\n"
    with Local.open(str(tmp_path / "copy.db")) as local:
        one = local.experiments().items[0].id
        assert {row.note for row in local.rounds(one).items} == {"closed"}
        assert local.note(one, 1, None, "north").note is None
    with server(f"sqlite:///{tmp_path / 'copy.db'}") as address, Client(address) as client:
        assert client.note(one, 1, "open again", "south").note == "open again"


def test_experiments_are_found_by_a_part_of_their_names(call, tmp_path):
    for name in ("Autumn mailings", "Spring MAILINGS", "100% off", "1000 off"):
        call.create(name=name)

    def names(**query):
        return [one["name"] for one in call("GET", "/v1/experiments", params=query).json()["items"]]

    assert names(search="mailing") == ["Autumn mailings", "Spring MAILINGS"]
    assert names(search="0% o") == ["100% off"]
    assert names(search="nothing") == []
    call.create(name="Österreich")
    assert names(search="ÖSTER") == names(search="österreich") == ["Österreich"]
    assert names(search="off", state="finished") == []
    assert "1000 off" not in get(call, "/?search=MAIL").words
    assert "No experiment has “nothing” in its name" in get(call, "/?search=nothing").words
    call.store.backup(tmp_path / "copy.db")
    found = command("status", "--search", "off", "--store", str(tmp_path / "copy.db")).out
    assert ("100% off" in found, "Autumn" in found) == (True, False)


def test_a_search_with_nul_is_refused_by_each_database(store):
    with pytest.raises(Refused, match="search must not contain NUL"):
        store.experiments(search="a\0")


def test_experiments_are_compared_side_by_side(call, tmp_path):
    paths = [played(call, rounds, name=f"Shop {rounds}") for rounds in (60, 5)]
    ids = [identity(path) for path in paths]
    found = call("GET", "/v1/compare", params={"ids": ",".join(ids)}).json()["items"]
    assert [one["name"] for one in found] == ["Shop 60", "Shop 5"]
    for one in found:
        view = call.store.experiment(one["id"])
        known = call.store.learned(one["id"])
        assert (one["leader"], one["gain"], one["best"]) == (known.leader, known.gain, known.arms[0].best)
        assert one["mean"] == pytest.approx(view.sum_of_totals / view.counts["reports"])
    words = get(call, f"/compare?id={ids[0]}&id={ids[1]}").words
    assert words.index("Shop 60") < words.index("Shop 5")
    assert problem(call("GET", "/v1/compare", params={"ids": "nobody"}), 404, "not_found")
    assert problem(call("GET", "/v1/compare", params={"ids": ",".join(ids * 11)}), 422, "invalid")
    assert "must be chosen in the list" in Page(call("GET", "/compare").text).words
    boxes = [tag["value"] for tag in get(call, "/").all("input") if tag.get("type") == "checkbox"]
    assert boxes == ids
    call.store.backup(tmp_path / "copy.db")
    told = command("status", "Shop 60", "Shop 5", "--store", str(tmp_path / "copy.db")).out
    head, _, *rows = told.strip().splitlines()
    assert head.split()[:3] == ["name", "state", "round"]
    assert [row.split()[:2] for row in rows] == [["Shop", "60"], ["Shop", "5"]]


def test_the_reference_is_linked_and_can_be_read_on_a_phone_and_in_the_dark(browser, tmp_path):
    from tests.service.test_browser_layout import faint

    with server(f"sqlite:///{tmp_path / 'a.db'}") as address:
        for scheme, width in (("dark", 390), ("light", 1280)):
            with window(browser, address, width, color_scheme=scheme) as seen:
                page = seen.go("/")
                page.get_by_role("link", name="API").click()
                page.get_by_role("heading", name="REST API").wait_for()
                assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
                assert faint(page) == []
                page.get_by_role("link", name="POST /v1/experiments/{id}/ask").click()
                assert seen.faults() == []
