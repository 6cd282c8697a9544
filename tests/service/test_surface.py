"""What is the same for every route: unknown paths, security headers, faults, and the service's words about itself."""

import asyncio
import json
import logging
import re

import pytest
from tests.service.calling import Api, problem

from aftereffect.service.errors import Corrupt, Refused

UNKNOWN = "/v1/experiments/abcdefghijklmnop"


def test_unknown_paths_and_methods(call: Api):
    for path in ("/v1", "/v1/experiments/", "/v2/experiments", "/v1/experiments/a/b/c", "/docs/", "/redoc"):
        problem(call("GET", path), 404, "not_found")
    for method in ("PATCH", "DELETE", "OPTIONS", "PUT", "QUERY"):
        answer = call(method, "/v1/experiments")
        problem(answer, 405, "not_allowed")
        assert answer.headers["allow"] == "GET, HEAD, POST"
        assert "access-control-allow-origin" not in answer.headers


def test_the_service_itself(call: Api):
    assert call("GET", "/healthz").json()["status"] == "ok"
    head = call("HEAD", "/healthz")
    assert head.status_code == 200
    call("GET", "/nowhere/at-all")
    metrics = call("GET", "/metrics").text
    assert 'aftereffect_requests_total{method="GET",route="/healthz",status="200"} 1.0' in metrics
    assert 'route="unmatched",status="404"' in metrics
    assert "at-all" not in metrics
    assert "aftereffect_jobs_waiting 0.0" in metrics
    assert "aftereffect_damaged_experiments 0.0" in metrics
    assert float(re.search(r"^aftereffect_commit_seconds (\S+)$", metrics, re.MULTILINE)[1]) > 0.0
    page = call("GET", "/docs").text
    assert "<script" not in page
    assert "http://" not in page
    assert "https://" not in page


def test_every_answer_has_the_security_headers(call: Api):
    path = call.create()
    answers = [call("GET", path), call("GET", "/nowhere"), call("GET", "/docs"), call("POST", f"{path}/ask", json=[]),
               call("GET", "/metrics", headers={"host": "evil.example"}), call("GET", "/metrics"),
               call("GET", "/healthz")]
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"


def test_a_fault_is_a_problem_that_tells_nothing(call: Api, monkeypatch, caplog):
    def broken(*_, **__):
        raise RuntimeError("the secret is 7261")

    monkeypatch.setattr(call.store, "experiment", broken)
    answer = call("GET", UNKNOWN)
    problem(answer, 500, "internal")
    assert "7261" not in answer.text
    assert "RuntimeError" not in answer.text
    assert any(record.message == "fault" for record in caplog.records)


def test_answers_are_json_of_utf_8(call: Api):
    path = call.create(name="Ünïcode 🦊", arms=["ä", "🦊"])
    answer = call("GET", path)
    assert json.loads(answer.content.decode("utf-8"))["name"] == "Ünïcode 🦊"


@pytest.mark.parametrize(("refusal", "status"), [
    (Refused("busy", "the store is busy"), 503), (Refused("full", "the disk is full"), 507),
    (Corrupt("event 3 must follow event 2, but its hash differs"), 500),
], ids=lambda value: getattr(value, "code", value))
def test_a_store_in_trouble_says_so_and_is_logged(call: Api, monkeypatch, caplog, refusal, status):
    path = call.create()

    async def troubled(*_):
        raise refusal

    monkeypatch.setattr(call.store, "aperform", troubled)
    with caplog.at_level(logging.ERROR):
        answer = call("POST", f"{path}/ask")
    assert problem(answer, status, refusal.code) == refusal.detail
    assert ("retry-after" in answer.headers) == (status == 503)
    assert [record.facts["detail"] for record in caplog.records if record.message == "refused"] == [refusal.detail]


def test_where_the_store_is_stays_in_the_log(call: Api, monkeypatch, caplog):
    path = call.create()
    words = "the store's file '{}' was removed or replaced: nothing was kept; connection to \"{}\" failed; "
    words += "connection to server at {} failed: refused; failed to resolve host {}: not known"
    places = "/srv/data/shop.db", "/run/postgresql/.s.PGSQL.5432", '"10.0.0.3", port 5432', "'db.internal'"

    async def troubled(*_):
        raise Refused("busy", words.format(*places))

    monkeypatch.setattr(call.store, "aperform", troubled)
    assert problem(call("POST", f"{path}/ask"), 503, "busy") == words.format(*"…" * 4)
    [record] = [record for record in caplog.records if record.message == "refused"]
    assert record.facts["detail"] == words.format(*places)


def test_no_websocket_is_opened(call: Api):
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "websocket.connect"}

    asyncio.run(call.app({"type": "websocket", "path": "/", "headers": []}, receive, send))
    assert [message["type"] for message in sent] == ["websocket.close"]
