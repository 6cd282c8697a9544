"""The routes: what they answer, by what names, and that a repeated request changes nothing."""

import asyncio

import pytest
from tests.service.calling import SETTINGS, Api, api, path_of, problem

from aftereffect.service.operations import OPERATIONS


@pytest.fixture
def call(tmp_path):
    with api(tmp_path, webhooks="sales=https://chat.example/x", webhook_secret="0123456789abcdef") as client:
        yield client


def test_an_experiment_is_made_running_and_found_again(call: Api):
    made = call("POST", "/v1/experiments", json=SETTINGS)
    assert made.status_code == 201
    view = made.json()
    assert made.headers["location"] == f"/v1/experiments/{view['id']}"
    assert view["state"] == "running"
    assert view["arms"] == SETTINGS["arms"]
    assert view["units"] == ["1"]
    assert call("GET", made.headers["location"]).json()["id"] == view["id"]
    listed = call("GET", "/v1/experiments").json()
    assert [one["id"] for one in listed["items"]] == [view["id"]]
    assert listed["next"] is None


def test_a_draft_waits_for_its_start(call: Api):
    path = call.create(draft=True)
    assert call("GET", path).json()["state"] == "draft"
    problem(call("POST", f"{path}/ask"), 409, "wrong_state")
    assert call("POST", f"{path}/start").json()["state"] == "running"
    assert call("POST", f"{path}/ask").status_code == 200


def test_ask_is_the_same_until_told_and_then_the_next(call: Api):
    path = call.create()
    first = call("POST", f"{path}/ask").json()
    assert first["round"] == 1
    assert first["arm"] in SETTINGS["arms"]
    assert first["unit"] == "1"
    assert first["experiment"] == path.rpartition("/")[2]
    assert {"draw", "block", "probability", "washin", "measured", "why", "date"} <= set(first)
    for options in ({}, {"json": {}}, {"json": {"unit": None}}, {"json": {"unit": "1"}}, {"json": {"unit": 1}},
                    {"content": b"", "headers": {"content-type": "application/json"}}, {"content": b" \n"}):
        again = call("POST", f"{path}/ask", **options)
        assert again.status_code == 200, again.text
        assert again.json() == first
    assert call("PUT", f"{path}/rounds/1", json={"total": 31.5}).status_code == 200
    assert call("POST", f"{path}/ask").json()["round"] == 2


def test_tell_is_accepted_again_refused_otherwise_and_amended(call: Api):
    path = call.create()
    call("POST", f"{path}/ask")
    told = call("PUT", f"{path}/rounds/1", json={"total": 31.5}).json()
    assert (told["round"], told["total"], told["status"]) == (1, 31.5, "reported")
    assert told["arm"] in SETTINGS["arms"]
    assert call("PUT", f"{path}/rounds/1", json={"total": 31.5}).status_code == 200
    assert "amend" in problem(call("PUT", f"{path}/rounds/1", json={"total": 30}), 409, "conflict").lower()
    problem(call("PUT", f"{path}/rounds/1", json={"total": None}), 409, "conflict")
    assert call("POST", f"{path}/rounds/1/amend", json={"total": 30}).json()["total"] == 30.0
    assert call("PUT", f"{path}/rounds/1", json={"total": 30}).status_code == 200
    [row] = call("GET", f"{path}/rounds").json()["items"]
    assert (row["round"], row["unit"], row["total"], row["status"]) == (1, "1", 30.0, "reported")


def test_an_amendment_may_say_which_total_it_corrects(call: Api):
    path = call.create()
    call("POST", f"{path}/ask")
    call("PUT", f"{path}/rounds/1", json={"total": 31.5})
    where = f"{path}/rounds/1/amend"
    assert call("POST", where, json={"total": 30, "was": 31.5}).json()["total"] == 30.0
    # Sent again it holds already; one that builds on what is no longer there is refused.
    assert call("POST", where, json={"total": 30, "was": 31.5}).status_code == 200
    problem(call("POST", where, json={"total": 29, "was": 31.5}), 409, "conflict")
    problem(call("POST", where, json={"total": 29, "was": None}), 409, "conflict")
    assert call("POST", where, json={"total": 29, "was": 30}).json()["total"] == 29.0


def test_rounds_that_are_not_open_are_not_told(call: Api):
    path = call.create()
    problem(call("PUT", f"{path}/rounds/1", json={"total": 1}), 409, "not_open")
    call("POST", f"{path}/ask")
    problem(call("PUT", f"{path}/rounds/2", json={"total": 1}), 409, "not_open")
    for number in ("0", "-1", "1.0", "one", "9223372036854775808", "99999999999999999999999", "%D9%A1", "1e0"):
        assert "round must be" in problem(call("PUT", f"{path}/rounds/{number}", json={"total": 1}), 422, "invalid")


def test_missing_and_out_of_range_totals(call: Api):
    path = call.create()
    call("POST", f"{path}/ask")
    assert call("PUT", f"{path}/rounds/1", json={"total": None}).json()["status"] == "missing"
    call("POST", f"{path}/ask")
    assert call("PUT", f"{path}/rounds/2", json={"total": 1e90}).json()["status"] == "void"
    view = call("GET", path).json()
    assert view["counts"]["missing"] == 1
    assert view["counts"]["out_of_range"] == 1


@pytest.mark.parametrize(("units", "names"), [
    (3, ["1", "2", "3"]), (["north", "7"], ["north", "7"]), ([4, "south"], ["4", "south"]), (1, ["1"]),
])
def test_units_as_text_and_as_integers(call: Api, units, names):
    path = call.create(units=units)
    asked = call("POST", f"{path}/ask").json()
    assert asked["unit"] == names[0]
    assert set(asked.get("arms", names)) == set(names)
    for name in names:
        sent = int(name) if name.isdigit() else name
        one = call("POST", f"{path}/ask", json={"unit": sent}).json()
        assert (one["unit"], one["arm"], one["round"]) == (name, asked.get("arms", {"1": asked["arm"]})[name], 1)
        assert call("PUT", f"{path}/rounds/1", json={"total": 2, "unit": sent}).status_code == 200
    assert call("POST", f"{path}/ask").json()["round"] == 2
    assert 400 <= call("POST", f"{path}/ask", json={"unit": "elsewhere"}).status_code < 500
    assert 400 <= call("PUT", f"{path}/rounds/2", json={"total": 2, "unit": 99}).status_code < 500


def test_pause_resume_finish_and_arms_away(call: Api):
    path = call.create(arms=["a/b", "c d", "é"])
    call.play(path, 1)
    assert call("POST", f"{path}/pause").json()["state"] == "paused"
    problem(call("POST", f"{path}/ask"), 409, "wrong_state")
    assert call("POST", f"{path}/resume", json={}).json()["state"] == "running"
    assert call("POST", f"{path}/arms/a%2Fb/away").json()["away"] == ["a/b"]
    assert call("POST", f"{path}/arms/%C3%A9/away").json()["away"] == ["a/b", "é"]
    assert call("POST", f"{path}/ask").json()["arm"] == "c d"
    assert call("POST", f"{path}/arms/a%2Fb/back").json()["away"] == ["é"]
    assert 400 <= call("POST", f"{path}/arms/nobody/away").status_code < 500
    assert call("POST", f"{path}/finish").json()["state"] == "finished"
    problem(call("POST", f"{path}/ask"), 409, "wrong_state")
    assert problem(call("POST", f"{path}/pause", json={"now": True}), 422, "invalid")


def test_pages_of_rounds_join_to_the_whole(call: Api):
    path = call.create(units=3)
    for number in range(1, 5):
        call("POST", f"{path}/ask")
        for unit in (1, 2, 3):
            call("PUT", f"{path}/rounds/{number}", json={"total": unit, "unit": unit})
    whole = call("GET", f"{path}/rounds?after=0&limit=1000").json()
    assert [(row["round"], row["unit"]) for row in whole["items"]] == [(r, u) for r in range(1, 5) for u in "123"]
    assert whole["next"] is None
    assert call("GET", f"{path}/rounds?after=&limit=").json() == whole
    seen, after = [], None
    while True:
        query = {"limit": 5} | ({} if after is None else {"after": after})
        page = call("GET", f"{path}/rounds", params=query).json()
        assert len(page["items"]) <= 5
        seen += page["items"]
        after = page["next"]
        if after is None:
            break
    assert seen == whole["items"]
    assert call("GET", f"{path}/rounds?after=2").json()["items"][0]["round"] == 3


def test_pages_of_experiments_and_of_events(call: Api):
    paths = [call.create(name=f"number {i}", draft=i == 0) for i in range(5)]
    seen, after = [], None
    while True:
        page = call("GET", "/v1/experiments", params={"limit": 2} | ({} if after is None else {"after": after})).json()
        seen += [one["id"] for one in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert sorted(seen) == sorted(path.rpartition("/")[2] for path in paths)
    assert [one["name"] for one in call("GET", "/v1/experiments?state=draft").json()["items"]] == ["number 0"]
    call.play(paths[1], 2)
    events = call("GET", f"{paths[1]}/events?limit=1000").json()
    assert [event["kind"] for event in events["items"]][-4:] == ["ask", "tell", "ask", "tell"]


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "limit=&limit=", "limit=1&limit=2", "other=1",
                                   "after=%00", "after=a%20b", "after=%ff", "state=asleep", "limit=-1", "limit=1.0"])
def test_bad_queries_are_refused(call: Api, query):
    problem(call("GET", f"/v1/experiments?{query}"), 422, "invalid")


def test_a_query_where_there_is_none_is_refused(call: Api):
    path = call.create()
    assert "no parameters" in problem(call("POST", f"{path}/ask?unit=1"), 422, "invalid")
    assert call("GET", f"{path}/rounds").json()["items"] == []
    assert call("GET", "/metrics?name[]=x").status_code == 200


def test_exports_series_and_verify(call: Api):
    path = call.create()
    call.play(path, 3)
    table = call("GET", f"{path}/export")
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    assert "attachment" in table.headers["content-disposition"]
    assert len(table.text.strip().splitlines()) == 4
    assert call("GET", f"{path}/export?format=parquet").content[:4] == b"PAR1"
    problem(call("GET", f"{path}/export?format=xls"), 422, "invalid")
    assert call("GET", f"{path}/series?last=2").json()["round"] == [2, 3]
    assert call("GET", f"{path}/series?last=20000").status_code == 200
    problem(call("GET", f"{path}/series?last=20001"), 422, "invalid")
    verdict = call("GET", f"{path}/verify").json()
    assert (verdict["ok"], verdict["rounds"], verdict["finding"]) == (True, 3, None)


def test_plan_in_words_and_in_rounds(call: Api):
    by_words = call("POST", "/v1/plan", json={"arms": ["a", "b", "c"], "carry_over": {"window": "7 days"}}).json()
    by_rounds = call("POST", "/v1/plan", json={"n_arms": 3, "max_delay": 7}).json()
    assert by_words == by_rounds
    assert by_rounds["shortest_block"] == 8
    paper = {"n_arms": 3, "max_delay": 7, "player": "paper", "horizon": 100}
    assert call("POST", "/v1/plan", json=paper).json()["shortest_block"] == 15
    assert call("POST", "/v1/plan", json={"arms": 3}).json()["sentences"][0].startswith("Every total counts.")
    for body in ({}, {"arms": 1, "max_delay": 0}, {"arms": 3, "n_arms": 3, "max_delay": 1}, {"arms": True},
                 {"arms": 3, "max_delay": 1, "carry_over": {"window": 1}}, {"arms": 3, "carry_over": 7},
                 {"arms": 10**9, "max_delay": 1}, {"arms": 3, "max_delay": 1, "name": "x"}):
        problem(call("POST", "/v1/plan", json=body), 422, "invalid")


def test_bulk_items_are_answered_one_by_one(call: Api):
    first, second = (call.create(name=name).rpartition("/")[2] for name in ("one", "two"))
    body = {"items": [{"experiment": first}, {"experiment": second, "unit": 1}, {"experiment": "nobody-knows-it"}, 5,
                      {"experiment": first, "unit": True}, {}, {"id": second}]}
    answers = call("POST", "/v1/bulk/ask", json=body).json()["items"]
    assert [answer.get("round") for answer in answers] == [1, 1, None, None, None, None, None]
    assert [answer["experiment"] for answer in answers[:3]] == [first, second, "nobody-knows-it"]
    codes = [answer["error"]["code"] for answer in answers[2:]]
    assert codes == ["not_found", "invalid", "invalid", "invalid", "invalid"]
    told = {"experiment": first, "round": 1, "total": 2.5}
    body = {"items": [told, {"experiment": second, "round": 1, "total": None}, told, {**told, "total": 9},
                      {"experiment": first, "round": 7, "total": 1}, {"experiment": first, "round": 1},
                      {"experiment": first, "round": "1", "total": 1}, {"experiment": first, "round": 1, "total": "1"}]}
    answers = call("POST", "/v1/bulk/tell", json=body).json()["items"]
    assert [answer.get("status") for answer in answers[:3]] == ["reported", "missing", "reported"]
    assert [answer["error"]["status"] for answer in answers[3:]] == [409, 409, 422, 422, 422]
    assert call("POST", "/v1/bulk/ask", json={"items": []}).json() == {"items": []}


OF_ONE = [name for name, each in OPERATIONS.items() if "id" in each.names]


@pytest.mark.parametrize("operation", [OPERATIONS[name] for name in OF_ONE], ids=OF_ONE)
def test_unknown_experiments_are_not_found(call: Api, operation):
    body = {"json": {"total": 1.0}} if operation.name in ("tell", "amend", "correct", "continue_with") else {}
    others = {"reports": {"csv": "1", "first": 1}, "note": {"note": None}, "remind": {"webhook": "sales"}}
    body |= {"json": others[operation.name]} if operation.name in others else {}
    for name in ("abcdefghijklmnop", "..%2f..%2fetc", "%00", "x" * 300, "%F0%9F%A6%8A"):
        path = path_of(operation, id=name)
        answer = call(operation.method, path, **body)
        assert answer.status_code == 404, (path, answer.text)
        problem(answer, 404, "not_found")


def test_many_at_once_see_one_round(call: Api):
    path = call.create()

    async def crowd(method: str, where: str, **options):
        return await asyncio.gather(*(call.sent(method, where, **options) for _ in range(64)))

    asked = call.runner.run(crowd("POST", f"{path}/ask"))
    assert len({answer.text for answer in asked}) == 1
    told = call.runner.run(crowd("PUT", f"{path}/rounds/1", json={"total": 3}))
    assert {answer.status_code for answer in told} == {200}
    assert [row["total"] for row in call("GET", f"{path}/rounds").json()["items"]] == [3.0]
