"""Who may do what: every route with every scope, names and origins, and tokens that are never seen again."""

import logging

import pytest
from tests.service.calling import SETTINGS, Api, api, path_of, problem

from aftereffect.service.api.auth import SCOPES
from aftereffect.service.api.telemetry import JsonLines
from aftereffect.service.config import Config
from aftereffect.service.operations import OPERATIONS, Operation


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    with api(tmp_path_factory.mktemp("access"), host="0.0.0.0") as client:
        yield client


@pytest.fixture(scope="module")
def tokens(call: Api):
    return {scope: call.store.create_token(scope, [scope]) for scope in SCOPES}


@pytest.fixture(scope="module")
def experiment(call: Api):
    return call.store.create(SETTINGS).id


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def sent(call: Api, operation: Operation, experiment: str, headers: dict[str, str]):
    body = {} if operation.method == "GET" else {"json": {}}
    path = path_of(operation, id=experiment) + ("?ids=nobody" if operation.name == "compare" else "")
    return call(operation.method, path, headers=headers, **body)


def cookie(token: str) -> dict[str, str]:
    return {"cookie": f"aftereffect_token={token}"}


@pytest.mark.parametrize("form", [bearer, cookie])
def test_every_operation_needs_its_scope(call: Api, tokens, experiment, form):
    for operation in OPERATIONS.values():
        for scope, token in tokens.items():
            answer = sent(call, operation, experiment, form(token))
            if SCOPES.index(scope) < SCOPES.index(operation.scope):
                assert operation.scope in problem(answer, 403, "forbidden"), operation.name
            else:
                assert answer.status_code not in (401, 403), operation.name


def test_no_operation_is_for_those_without_a_valid_token(call: Api, experiment):
    for operation in OPERATIONS.values():
        for headers in ({}, bearer("ae_" + "x" * 43)):
            answer = sent(call, operation, experiment, headers)
            problem(answer, 401, "unauthorized")
            assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_token_is_looked_up_again_only_after_a_while(call: Api, tokens, experiment, monkeypatch):
    asked = []

    def look_up(token: str) -> frozenset[str] | None:
        asked.append(token)
        return known(token)

    known = call.store.scopes_of
    monkeypatch.setattr(call.store, "scopes_of", look_up)
    for remembered, looked_up in ((1e9, 0), (0.0, 2)):
        monkeypatch.setattr("aftereffect.service.store.store.REMEMBERED_S", remembered)
        assert known(tokens["read"]) == {"read"}
        asked.clear()
        for _ in range(2):
            assert call("GET", f"/v1/experiments/{experiment}", headers=bearer(tokens["read"])).status_code == 200
        assert len(asked) == looked_up


def test_the_scopes_are_as_promised():
    """Written out by hand, as docs/guides/service.md promises them."""
    play = {"ask", "tell", "amend", "note", "reports", "bulk_ask", "bulk_tell"}
    read = {"experiments", "compare", "experiment", "learned", "rounds", "events", "series", "export", "reminder"}
    read |= {"plan"}
    assert {name for name, each in OPERATIONS.items() if each.scope == "play"} == play
    assert {name for name, each in OPERATIONS.items() if each.scope == "read"} == read
    assert {each.scope for name, each in OPERATIONS.items() if name not in play | read} == {"admin"}


def test_what_is_about_the_service_is_open_but_its_metrics(call: Api, tokens):
    for path in ("/healthz", "/docs", "/openapi.json"):
        assert call("GET", path).status_code == 200
    problem(call("GET", "/metrics"), 401, "unauthorized")
    assert call("GET", "/metrics", headers=bearer(tokens["read"])).status_code == 200


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic abc", "bearer x y", "Bearer \xe9", "Bearer x" * 99])
def test_bad_headers_are_refused(call: Api, experiment, header):
    answer = call("GET", f"/v1/experiments/{experiment}", headers={"authorization": header.encode("latin-1")})
    problem(answer, 401, "unauthorized")


def test_a_revoked_token_ends(call: Api, tokens, experiment):
    token = call.store.create_token("short-lived", ["admin"])
    listed = call("GET", "/v1/tokens", headers=bearer(token)).json()["items"]
    [identity] = [one["id"] for one in listed if one["name"] == "short-lived"]
    assert call("DELETE", f"/v1/tokens/{identity}", headers=bearer(token)).status_code == 204
    problem(call("GET", f"/v1/experiments/{experiment}", headers=bearer(token)), 401, "unauthorized")


def test_the_last_admin_token_stays(tmp_path):
    with api(tmp_path) as local:
        for name in ("first", "second"):
            local.store.create_token(name, ["admin"])
        local.store.create_token("reader", ["read"])
        first, second, reader = (token.id for token in local.store.tokens())
        for token in (second, reader):
            assert local("DELETE", f"/v1/tokens/{token}").status_code == 204
        assert "cannot be revoked" in problem(local("DELETE", f"/v1/tokens/{first}"), 403, "forbidden")


def test_a_token_is_shown_once_and_works(call: Api, tokens):
    wanted = {"name": "till", "scopes": ["play", "read"]}
    made = call("POST", "/v1/tokens", json=wanted, headers=bearer(tokens["admin"]))
    assert made.status_code == 201
    token = made.json()["token"]
    # 43 letters of base 64 hold 256 bits.
    assert len(token) >= 43
    assert call("GET", "/v1/experiments", headers=bearer(token)).status_code == 200
    listed = call("GET", "/v1/tokens", headers=bearer(tokens["admin"])).text
    assert token not in listed
    assert "till" in listed


def test_a_token_is_never_in_a_log(call: Api, tmp_path, caplog, capfd, monkeypatch):
    with caplog.at_level(logging.DEBUG), api(tmp_path, host="0.0.0.0", log_requests=True) as other:
        canary = other.store.create_token("canary", ["admin"])
        headers = bearer(canary)
        other("POST", "/v1/experiments", json=SETTINGS, headers=headers)
        other("POST", "/v1/experiments", json={"name": canary}, headers=headers)
        other("GET", f"/v1/experiments?after={canary}", headers={"cookie": f"aftereffect_token={canary}"})
        other("GET", f"/v1/experiments/{canary}", headers=headers)
        other("GET", f"/{canary}", headers=headers)

        def broken(*_, **__):
            raise RuntimeError("a fault")

        monkeypatch.setattr(other.store, "experiment", broken)
        problem(other("GET", "/v1/experiments/abc", headers=headers), 500, "internal")
        metrics = other("GET", "/metrics", headers=headers).text
    # The client of this test logs what it sends; the service must not.
    ours = [record for record in caplog.records if not record.name.startswith("http")]
    lines = "\n".join(JsonLines().format(record) for record in ours)
    assert "a fault" in lines
    assert '"route": "/v1/experiments/{id}"' in lines
    assert canary not in lines
    assert canary not in metrics
    assert canary not in "".join(capfd.readouterr())


KNOWN = ("/openapi.json", "/v1/experiments", "/")


@pytest.mark.parametrize(("host", "status"), [
    ("127.0.0.1:8000", 200), ("localhost", 200), ("LOCALHOST:1", 200), ("[::1]:8000", 200), ("evil.example", 403),
    ("127.0.0.1.evil.example", 403), ("evil.example:8000", 403), ("", 403), ("localhost.evil.example:8000", 403),
    ("evil.example:127.0.0.1", 403), ("0.0.0.0:8000", 403),
])
def test_on_loopback_only_its_own_names_are_answered(tmp_path, host, status):
    with api(tmp_path) as local:
        for path in ("/openapi.json", "/v1/experiments", "/", "/nowhere", "/healthz/", "/healthz/x"):
            answer = local("GET", path, headers={"host": host})
            assert answer.status_code == (status if status == 403 or path in KNOWN else 404), (path, answer.text)


def test_a_second_host_is_refused(tmp_path):
    with api(tmp_path) as local:
        for path in ("/v1/experiments", "/healthz"):
            answer = local("GET", path, headers=[("host", "localhost"), ("host", "evil.example")])
            problem(answer, 400, "bad_request")


def test_requests_without_a_valid_token_are_logged(call: Api, caplog):
    with caplog.at_level(logging.WARNING):
        call("GET", "/v1/experiments", headers=bearer("ae_" + "x" * 43))
    [facts] = [record.facts for record in caplog.records if record.message == "unauthorized"]
    assert (facts["route"], facts["client"]) == ("/v1/experiments", "127.0.0.1")
    assert "xxx" not in str(facts)


@pytest.mark.parametrize(("headers", "status"), [
    ({}, 201),
    ({"origin": "http://127.0.0.1:8000"}, 201),
    ({"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"}, 201),
    ({"sec-fetch-site": "none"}, 201),
    ({"origin": "https://evil.example"}, 403),
    ({"origin": "http://127.0.0.1:9000"}, 403),
    ({"origin": "http://localhost:8000"}, 403),
    ({"origin": "null"}, 403),
    ({"origin": ""}, 403),
    ({"sec-fetch-site": "cross-site"}, 403),
    ({"sec-fetch-site": "same-site"}, 403),
    ({"origin": "http://127.0.0.1:8000", "sec-fetch-site": "cross-site"}, 403),
])
def test_writes_from_other_sites_are_refused(tmp_path, headers, status):
    with api(tmp_path) as local:
        answer = local("POST", "/v1/experiments", json=SETTINGS, headers=headers)
        assert answer.status_code == status
        assert len(local.store.experiments()["items"]) == (status == 201)
        assert local("GET", "/v1/experiments", headers=headers).status_code == 200
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_tokens_are_asked_for_beyond_loopback_and_where_wanted():
    assert not Config().access_required
    assert not Config(host="::1").access_required
    assert Config(access="required").access_required
    for host in ("0.0.0.0", "::", "192.168.0.7", "shop.example"):
        assert Config(host=host).access_required


def test_a_store_with_a_password_is_not_shown():
    assert "hunter2" not in repr(Config(store="postgresql://me:hunter2@db/shop"))
