"""The routes: what they answer, by what names, and that a repeated request changes nothing."""


import pytest
from tests.service.calling import SETTINGS, Api, api, example_of, path_of, problem

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


def test_rounds_that_are_not_open_are_not_told(call: Api):
    path = call.create()
    problem(call("PUT", f"{path}/rounds/1", json={"total": 1}), 409, "not_open")
    call("POST", f"{path}/ask")
    problem(call("PUT", f"{path}/rounds/2", json={"total": 1}), 409, "not_open")
    for number in ("0", "-1", "1.0", "one", "9223372036854775808", "99999999999999999999999", "%D9%A1", "1e0"):
        assert "round must be" in problem(call("PUT", f"{path}/rounds/{number}", json={"total": 1}), 422, "invalid")


def test_names_of_arms_are_parts_of_paths(call: Api):
    path = call.create(arms=["a/b", "c d", "é"])
    assert call("POST", f"{path}/arms/a%2Fb/away").json()["away"] == ["a/b"]
    assert call("POST", f"{path}/arms/%C3%A9/away").json()["away"] == ["a/b", "é"]
    assert call("POST", f"{path}/ask").json()["arm"] == "c d"
    assert call("POST", f"{path}/arms/a%2Fb/back").json()["away"] == ["é"]
    assert problem(call("POST", f"{path}/pause", json={"now": True}), 422, "invalid")


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "limit=&limit=", "limit=1&limit=2", "other=1",
                                   "after=%00", "after=a%20b", "after=%ff", "state=asleep", "limit=-1", "limit=1.0"])
def test_bad_queries_are_refused(call: Api, query):
    problem(call("GET", f"/v1/experiments?{query}"), 422, "invalid")


def test_a_query_where_there_is_none_is_refused(call: Api):
    path = call.create()
    assert "no parameters" in problem(call("POST", f"{path}/ask?unit=1"), 422, "invalid")
    assert call("GET", f"{path}/rounds?after=&limit=").json()["items"] == []
    assert call("GET", "/metrics?name[]=x").status_code == 200


def test_exports_and_series(call: Api):
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
    body = {} if operation.body is None else {"json": example_of(operation)}
    for name in ("abcdefghijklmnop", "..%2f..%2fetc", "%00", "x" * 300, "%F0%9F%A6%8A"):
        path = path_of(operation, id=name)
        answer = call(operation.method, path, **body)
        assert answer.status_code == 404, (path, answer.text)
        problem(answer, 404, "not_found")
