"""Corrections after a block has ended: what is learned, recorded, refused, answered, replayed; restatements."""

import json
from typing import Any

import numpy as np
import pytest
from tests.service.calling import Api, problem
from tests.service.pages import get, post
from tests.service.server import command

import aftereffect as ae
from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Amend, Ask, Away, Reports, Tell
from aftereffect.service.local import Local
from aftereffect.service.messages import ReportItem
from aftereffect.service.store.store import Store

pytestmark = pytest.mark.usefixtures("unadvised")

SETTINGS = {"name": "Ads", "arms": ["a", "b", "c"], "high": 10.0, "max_delay": 1, "seed": 5}
LEARNED, AT_ONCE = "what was learned is corrected when the open block ends", "what was learned is corrected at once"


@pytest.fixture
def store(sqlite_url: str):
    with Store.open(sqlite_url) as opened:
        yield opened


def played(store: Store, identity: str, rounds: int, units: list[str], totals: Any = None) -> None:
    rng = np.random.default_rng(3)
    for _ in range(rounds):
        number = store.perform(identity, Ask())["round"]
        for unit in units:
            total = round(float(rng.uniform(2.0, 8.0)), 3) if totals is None else totals[number - 1]
            store.perform(identity, Tell(number, total, unit))


def rows_of(store: Store, identity: str) -> list[dict[str, Any]]:
    return store.rounds(identity, limit=1000)["items"]


def closed(rows: list[dict[str, Any]], measured: bool = True) -> list[dict[str, Any]]:
    ended = {row["block"] for row in rows if row["update"]}
    return [row for row in rows if row["block"] in ended and row["measured"] is measured]


def test_corrections_survive_and_replay(sqlite_url: str) -> None:
    with Store.open(sqlite_url) as store:
        identity = store.create(SETTINGS).id
        played(store, identity, 30, ["1"])
        row = closed(rows_of(store, identity))[0]
        first = store.perform(identity, Amend(row["round"], 3.25))
        again = store.perform(identity, Amend(row["round"], 3.25))
        assert (first["repeated"], again["repeated"], again["total"]) == (False, True, 3.25)
        view = store.experiment(identity)
    with Store.open(sqlite_url) as store:
        assert store.experiment(identity) == view
        assert store.verify(identity)[0].ok
        event = store.events(identity, after=60)["items"][0]
        body = event["body"]
        assert (event["kind"], body["learned"], body["was"], body["total"]) == ("amend", True, row["total"], 3.25)
        assert body["recalled"]["totals"][0] == row["total"]
        assert body["recalled"]["units"] == 1
        with pytest.raises(Refused, match="was must be the total to be corrected"):
            store.perform(identity, Amend(row["round"], 4.0, None, row["total"]))
        played(store, identity, 12, ["1"])
        assert store.verify(identity)[0].ok


def test_what_was_not_learned_from_is_recorded_only(store: Store) -> None:
    identity = store.create({**SETTINGS, "max_delay": 2}).id
    totals = [5.0] * 60
    totals[14] = None
    played(store, identity, 60, ["1"], totals)
    rows = rows_of(store, identity)
    before = store.experiment(identity)
    for row in closed(rows, measured=False)[:3]:
        answer = store.perform(identity, Amend(row["round"], 6.0))
        assert answer["learned"] is False
        assert answer["correction"].endswith("in the record only, because it had not been learned from.")
    after = store.experiment(identity)
    assert after.probabilities == before.probabilities
    assert "corrections" not in after.guarantee.certificate.terms
    # A report that comes after its block has ended does not undo that the block was not learned from.
    assert rows[14]["measured"] is not True
    store.perform(identity, Amend(15, 6.0))
    view = store.experiment(identity)
    assert view.counts["missing"] == 0
    terms = [each.guarantee.certificate.terms for each in (before, view)]
    assert terms[0]["missing"] == terms[1]["missing"]
    assert store.verify(identity)[0].ok


def test_what_cannot_be_learned_is_refused(store: Store) -> None:
    identity = store.create(SETTINGS).id
    played(store, identity, 30, ["1"])
    rows = rows_of(store, identity)
    number = closed(rows)[0]["round"]
    events = store.experiment(identity)
    for total, code, words in (
        (None, "closed", "what was learned can be corrected, but not withdrawn"),
        (21.0, "invalid", rf"total must lie in \[0, 20\], .* to correct round {number}, which was learned from"),
    ):
        with pytest.raises(Refused, match=words) as caught:
            store.perform(identity, Amend(number, total))
        assert caught.value.code == code
    # The sum of a stretch has a range of its own.
    block = max({row["block"] for row in closed(rows)}, key=lambda b: sum(row["block"] == b for row in closed(rows)))
    several = [row["round"] for row in closed(rows) if row["block"] == block]
    assert len(several) > 2
    answers = store.perform_many([(identity, Amend(each, 20.0)) for each in several])
    refusals = [answer for answer in answers if isinstance(answer, Refused)]
    assert all("the range of a sum of" in refusal.detail for refusal in refusals)
    assert 0 < len(refusals) < len(several)
    assert store.experiment(identity).counts["out_of_range"] == events.counts["out_of_range"] == 0
    paper = store.create({**SETTINGS, "player": "paper", "horizon": 300}).id
    played(store, paper, 60, ["1"])
    with pytest.raises(Refused, match="which this player cannot correct"):
        store.perform(paper, Amend(closed(rows_of(store, paper))[0]["round"], 1.0))


def test_clipped_totals_are_corrected_as_the_learner_heard_them(store: Store) -> None:
    identity = store.create({**SETTINGS, "max_delay": 0, "out_of_range": "clip"}).id
    played(store, identity, 1, ["1"], [25.0])
    twin = ae.default_player(3, max_delay=0, direction="maximize", high=10.0, out_of_range="clip", seed=5)
    q = float(twin.probabilities[twin.ask()])
    twin.tell(25.0)
    row = rows_of(store, identity)[0]
    assert store.perform(identity, Amend(1, 12.0))["status"] == "clipped"
    assert list(store.experiment(identity).probabilities.values()) == twin.probabilities.tolist()
    store.perform(identity, Amend(1, 4.0))
    twin.correct(arm=SETTINGS["arms"].index(row["arm"]), probability=q, measured=1, was=10.0, now=4.0)
    assert list(store.experiment(identity).probabilities.values()) == pytest.approx(twin.probabilities.tolist())


def test_an_enormous_total_put_right_again_leaves_the_means_as_they_were(store: Store) -> None:
    """Clipped, or impossible in a round of the experiment before: sums must neither overflow nor lose digits."""
    clips = store.create({**SETTINGS, "max_delay": 0, "out_of_range": "clip"}).id
    played(store, clips, 20, ["1"])
    source = store.create(SETTINGS).id
    played(store, source, 40, ["1"])
    inherits = store.correct(source, {"high": 12.0}).id
    for identity in (clips, inherits):
        row, before = closed(rows_of(store, identity))[0], store.experiment(identity)
        store.perform(identity, Amend(row["round"], 1.7e308))
        assert store.experiment(identity).sum_of_totals != before.sum_of_totals
        store.perform(identity, Amend(row["round"], row["total"]))
        after = store.experiment(identity)
        assert after.sum_of_totals == pytest.approx(before.sum_of_totals, rel=1e-12)
        played(store, identity, 8, ["1"])
        assert store.verify(identity)[0].ok
    played(store, clips, 1, ["1"], {20 + 8: 1.7e308})
    assert store.experiment(clips).sum_of_totals < 300.0
    with pytest.raises(Refused, match=r"total must be at most 1e\+100, but got 1e\+160"):
        Local(store).tell(clips, 30, 1e160)


def test_a_total_learned_from_cannot_be_withdrawn_in_an_inherited_or_substituted_round(store: Store) -> None:
    source = store.create(SETTINGS).id
    played(store, source, 40, ["1"])
    inherits = store.correct(source, {"high": 12.0}).id
    away = store.create({**SETTINGS, "max_delay": 0}).id
    for arm in ("a", "b"):
        store.perform(away, Away(arm))
    played(store, away, 12, ["1"])
    for identity in (inherits, away):
        row = next(row for row in closed(rows_of(store, identity)) if identity == inherits or row["substituted"])
        with pytest.raises(Refused, match="what was learned can be corrected, but not withdrawn"):
            store.perform(identity, Amend(row["round"], None))
        assert store.perform(identity, Amend(row["round"], 5.0))["learned"] is False


def restated(rows: list[dict[str, Any]], change: float, **more: Any) -> Reports:
    items = [ReportItem(total=round(row["total"] + change, 3), round=row["round"], unit=row["unit"]) for row in rows]
    return Reports(items, restate=True, **more)


def test_a_restatement_of_many_days_is_one_write(store_url: str) -> None:
    with Store.open(store_url) as store:
        identity = store.create({**SETTINGS, "units": ["n", "s"]}).id
        played(store, identity, 22, ["n", "s"])
        rows = rows_of(store, identity)[10:]
        with pytest.raises(Refused, match=r"report 1: total must equal the earlier report, .* use amend to correct it"):
            store.perform(identity, restated(rows, 0.25)._replace(restate=False))
        events = store.experiment(identity).counts["amended"]
        bad = restated(rows, 0.25)
        wrong = ReportItem(total=-90.0, round=closed(rows)[0]["round"], unit=closed(rows)[0]["unit"])
        with pytest.raises(Refused, match=f"report {len(rows) + 1}: total must lie in"):
            store.perform(identity, bad._replace(items=[*bad.items, wrong]))
        assert store.experiment(identity).counts["amended"] == events == 0
        answer = store.perform(identity, restated(rows, 0.25))
        assert [item["total"] for item in answer["items"]] == [round(row["total"] + 0.25, 3) for row in rows]
        assert {item.get("learned") for item in answer["items"]} >= {True, False}
        again = store.perform(identity, restated(rows, 0.25))
        assert all(item["repeated"] for item in again["items"])
        # One by one, in the same order, gives the same.
        twin = store.create({**SETTINGS, "units": ["n", "s"]}).id
        played(store, twin, 22, ["n", "s"])
        for row in rows:
            store.perform(twin, Amend(row["round"], round(row["total"] + 0.25, 3), row["unit"]))
        assert store.experiment(twin).probabilities == store.experiment(identity).probabilities
        # With the days that are new, as a platform sends them.
        new = Reports([*restated(rows, 0.5).items, ReportItem(total=5.0, round=23, unit="n")], restate=True)
        store.perform(identity, Ask())
        assert store.perform(identity, new)["items"][-1]["round"] == 23
        assert all(each.ok for each in store.verify())


def test_rest_and_pages(call: Api) -> None:
    made = call("POST", "/v1/experiments", json={**SETTINGS, "max_delay": 0}).json()
    path, page = f"/v1/experiments/{made['id']}", f"/experiments/{made['id']}"
    for t in (1, 2, 3):
        call("POST", f"{path}/ask")
        call("PUT", f"{path}/rounds/{t}", json={"total": 5})
    told = call("POST", f"{path}/rounds/1/amend", json={"total": 4, "was": 5}).json()
    assert (told["total"], told["learned"], told["correction"]) == (4.0, True, told["correction"])
    assert "certificate" in told["correction"]
    items = {"items": [{"round": 1, "total": 3}, {"round": 2, "total": 3}, {"round": 3, "total": 5}]}
    problem(call("POST", f"{path}/reports", json=items), 409, "conflict")
    many = call("POST", f"{path}/reports", json={**items, "restate": True}).json()
    assert [(item["total"], item["repeated"]) for item in many["items"]] == [(3.0, False), (3.0, False), (5.0, True)]
    done = post(call, f"{page}/amend", {"round": "2", "corrected": "6"})
    assert done.headers["location"] == f"{page}?done=corrected_late"
    assert "what was learned is corrected too" in get(call, f"{page}?done=corrected_late").words
    call("POST", f"{path}/ask")
    sent = {"lines": "round;total\n1;2\n4;7", "restate": "yes"}
    assert post(call, f"{page}/reports", sent).status_code == 303
    shown = get(call, page)
    assert "Totals corrected after they were learned from" in shown.words
    assert any(link.get("href", "").startswith(f"{page}?correct=1#") for link in shown.all("a"))


def test_command_line_and_local(tmp_path: Any) -> None:
    file = str(tmp_path / "ads.db")
    with Local.open(f"sqlite:///{file}") as local:
        one = local.create(**{**SETTINGS, "max_delay": 0}).id
        for t in (1, 2):
            local.ask(one)
            local.tell(one, t, 5.0)
        assert local.amend(one, 1, 4.0).learned is True
        many = local.tell_many(one, [{"round": 1, "total": 4.5}, {"round": 2, "total": 5.5}], restate=True)
        assert [item.learned for item in many.items] == [True, True]
    done = command("amend", "2", "6", "--store", file)
    assert AT_ONCE in done.out
    (tmp_path / "days.csv").write_text("round,total\n1,7\n2,7\n")
    refused = command("upload", str(tmp_path / "days.csv"), "--store", file)
    assert refused.code == 4
    done = command("upload", str(tmp_path / "days.csv"), "--restate", "--store", file, "--format", "json")
    assert [item["total"] for item in json.loads(done.out)["items"]] == [7.0, 7.0]
