"""Who sees which page and may send which form: tokens in a cookie, and forms of other sites."""

import asyncio

import pytest
from fastapi.routing import APIRoute
from tests.service.calling import BASE, api
from tests.service.pages import FORM, get, identity, made, post

from aftereffect.service.api.limits import SignIns
from aftereffect.service.dashboard.routes import router
from aftereffect.service.experiment.commands import Ask, Pause, Tell

OF_ONE = "/experiments/{experiment_id}/"
ROUTES = [route for route in router.routes if isinstance(route, APIRoute) and "POST" in route.methods]
FORMS = {route.name for route in ROUTES if route.path.startswith(OF_ONE)}
"""All forms of an experiment's page."""


@pytest.fixture
def guarded(tmp_path):
    webhooks = {"webhooks": "sales=https://chat.example/x", "webhook_secret": "0123456789abcdef"}
    with api(tmp_path, access="required", **webhooks) as client:
        yield client


@pytest.mark.parametrize(("headers", "status"), [
    ({"Sec-Fetch-Site": "same-origin"}, 303),
    ({"Origin": BASE}, 303),
    ({}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": "http://elsewhere.example"}, 403),
    ({"Origin": "http://127.0.0.1:8001"}, 403),
    ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Sec-Fetch-Site": "same-site", "Origin": BASE}, 403),
])
def test_only_own_pages_send_forms(call, headers, status):
    path = made(call)
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert call("POST", f"{path}/ask", content="", headers={**kind, **headers}).status_code == status
    assert call.store.experiment(identity(path)).round == (1 if status == 303 else 0)


def test_without_a_token_there_is_only_the_login(guarded):
    path = made(guarded)
    for place in ("/", path, "/experiments/new"):
        found = guarded("GET", place)
        assert (found.status_code, found.headers["location"].partition("?")[0]) == (303, "/login")
    for word in FORMS:
        assert post(guarded, f"{path}/{word}", {"round": "1"}).headers["location"].startswith("/login")
    for place in ("/experiments/new", "/experiments/plan"):
        assert post(guarded, place, FORM).headers["location"].startswith("/login")
    assert guarded.store.experiment(identity(path)).round == 0
    assert len(guarded.store.experiments()["items"]) == 1


def test_a_login_sets_a_cookie_that_scripts_and_other_sites_cannot_use(guarded):
    token = guarded.store.create_token("reader", ["read"])
    wrong = post(guarded, "/login", {"token": "x" + token, "next": "/"})
    assert wrong.status_code == 401
    assert "set-cookie" not in wrong.headers
    assert token not in wrong.text
    done = post(guarded, "/login", {"token": token, "next": "//elsewhere.example/"})
    assert (done.status_code, done.headers["location"]) == (303, "/")
    cookie = done.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert (
        post(guarded, "/login", {"token": token}, headers={"Origin": "http://elsewhere.example"}).status_code == 403
    )
    left = post(guarded, "/logout", headers={"Cookie": f"aftereffect_token={token}"})
    assert 'aftereffect_token=""' in left.headers["set-cookie"]


@pytest.mark.parametrize(("scope", "level"), [("read", 0), ("play", 1), ("admin", 2)])
def test_a_page_offers_and_takes_what_the_token_allows(guarded, scope, level):
    needed = {
        "ask": 1,
        "tell": 1,
        "missing": 1,
        "reports": 1,
        "amend": 1,
        "note": 1,
        "pause": 2,
        "resume": 2,
        "arms": 2,
        "reminder": 2,
        "start": 2,
        "finish": 2,
    }
    headers = {"Cookie": f"aftereffect_token={guarded.store.create_token(scope, [scope])}"}
    assert needed.keys() == FORMS
    fields = {"round": "1", "total": "1", "corrected": "1", "arm": "email", "move": "away", "lines": "1", "first": "1"}
    for word, least in needed.items():
        path = made(guarded, draft=word == "start")
        if word in ("tell", "missing", "reports", "amend", "note"):
            guarded.store.perform(identity(path), Ask())
        if word == "amend":
            guarded.store.perform(identity(path), Tell(1, 2.0))
        if word == "resume":
            guarded.store.perform(identity(path), Pause())
        page = get(guarded, path, headers=headers)
        assert (f"{path}/{word}" in {form.get("action") for form in page.all("form")}) == (level >= least), word
        assert post(guarded, f"{path}/{word}", fields, headers=headers).status_code == (
            303 if level >= least else 403
        ), word
    assert guarded("GET", "/experiments/new", headers=headers).status_code == (200 if level == 2 else 403)
    assert post(guarded, "/experiments/new", FORM, headers=headers).status_code == (303 if level == 2 else 403)


def test_refused_sign_ins_are_logged_with_the_address_but_not_without_end(guarded, caplog):
    for i in range(30):
        assert post(guarded, "/login", {"token": f"guess-{i}", "next": "/"}).status_code == 401
    lines = [record.facts for record in caplog.records if record.message == "unauthorized"]
    # Ten lines at once, then one a second.
    assert 10 <= len(lines) <= 13
    assert {(line["route"], line["client"]) for line in lines} == {("/login", "127.0.0.1")}
    assert not any("guess" in str(line) for line in lines)


def test_slow_sign_ins_leave_room_for_everybody_else(guarded, caplog, monkeypatch):
    monkeypatch.setattr(SignIns, "SECONDS", 1.0)
    token = guarded.store.create_token("reader", ["read"])
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": BASE}

    async def attack():
        async def slow():
            yield b"token="
            await asyncio.sleep(60.0)

        many = [asyncio.create_task(guarded.sent("POST", "/login", content=slow(), headers=form)) for _ in range(40)]
        while sum(each.done() for each in many) < 24:
            await asyncio.sleep(0.01)
        found = await guarded.sent("GET", "/v1/experiments", headers={"Authorization": f"Bearer {token}"})
        return found.status_code, sorted(each.status_code for each in await asyncio.gather(*many))

    assert guarded.runner.run(attack()) == (200, [408] * 16 + [429] * 24)
    assert "at most 16 can sign in at a time" in caplog.records[0].facts["detail"]
    assert post(guarded, "/login", {"token": token, "next": "/"}).status_code == 303
