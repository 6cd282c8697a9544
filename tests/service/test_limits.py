"""Limits: bodies, items, pages, requests a second and at once; each answer says what the limit is."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.requests import Request
from tests.service.calling import SETTINGS, api, problem

from aftereffect.service.api.body import read_body
from aftereffect.service.api.limits import RateLimit
from aftereffect.service.config import Config
from aftereffect.service.errors import Refused


def padded(size: int) -> bytes:
    body = json.dumps({**SETTINGS, "name": ""}).encode()
    return body.replace(b'"name": ""', b'"name": "' + b"x" * (size - len(body)) + b'"')


def test_a_body_of_a_mebibyte_is_read_and_one_more_byte_is_not(call):
    assert Config().body_limit == 1 << 20
    # The name is too long, which only a body that was read can tell.
    problem(call("POST", "/v1/experiments", content=padded(1 << 20)), 422, "invalid")
    answer = call("POST", "/v1/experiments", content=padded((1 << 20) + 1))
    assert "1048576" in problem(answer, 413, "too_large")


def test_a_body_in_pieces_is_counted_as_it_comes(call):
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1 << 16
            yield b" " * (1 << 16)

    problem(call("POST", "/v1/experiments", content=endless()), 413, "too_large")
    assert sent <= (1 << 20) + (1 << 17)


@pytest.mark.parametrize("length", ["abc", "-5", "1" * 50])
def test_lengths_that_lie_do_no_harm(call, length):
    answer = call("POST", "/v1/experiments", content=b"{}", headers={"content-length": length})
    assert 400 <= answer.status_code < 500


def test_bulk_bodies_and_items(call):
    path = call.create()
    item = {"experiment": path.rpartition("/")[2]}
    answers = call("POST", "/v1/bulk/ask", json={"items": [item] * 10_000}).json()["items"]
    assert len(answers) == 10_000
    assert {answer["round"] for answer in answers} == {1}
    detail = problem(call("POST", "/v1/bulk/ask", json={"items": [item] * 10_001}), 413, "too_large")
    assert "10000" in detail
    assert "10001" in detail
    problem(call("POST", "/v1/bulk/tell", content=b" " * ((8 << 20) + 1)), 413, "too_large")
    for items in (None, {}, "text", 5):
        problem(call("POST", "/v1/bulk/ask", json={"items": items}), 422, "invalid")


def test_too_many_requests_a_second(tmp_path):
    with api(tmp_path, rate_limit=0.01, rate_burst=300) as call:
        for _ in range(3):
            assert call("GET", "/v1/experiments").status_code == 200
        answer = call("GET", "/v1/experiments")
        problem(answer, 429, "too_many")
        assert 90 <= int(answer.headers["retry-after"]) <= 100
        # A watchdog is not a reason to restart the service.
        assert call("GET", "/healthz").status_code == 200


def test_the_rate_is_open_on_loopback_only():
    assert Config().requests_per_second == 0
    assert Config(host="0.0.0.0").requests_per_second == 1000
    assert Config(host="0.0.0.0", rate_limit=5).requests_per_second == 5


def test_each_client_has_its_own_bucket():
    moments = iter([0.0, 0.0, 0.0, 0.5, 1.0, 1.0])
    rate = RateLimit(2.0, 1.0, clock=lambda: next(moments), clients=2)
    assert [rate.wait("a"), rate.wait("a"), rate.wait("b")] == [0, 1, 0]
    # Half a second at two a second is one more; "c" pushes out "b", the one unused for the longest time.
    assert [rate.wait("a"), rate.wait("c"), rate.wait("b")] == [0, 0, 0]


def test_too_many_requests_at_once(tmp_path):
    with api(tmp_path, concurrency=3) as call:
        async def crowd() -> list[httpx.Response]:
            gate, begun = asyncio.Event(), asyncio.Semaphore(0)

            async def slow() -> AsyncIterator[bytes]:
                begun.release()
                await gate.wait()
                yield json.dumps(SETTINGS).encode()

            waiting = [asyncio.create_task(call.sent("POST", "/v1/experiments", content=slow())) for _ in range(3)]
            for _ in waiting:
                await begun.acquire()
            refused = await call.sent("GET", "/v1/experiments")
            healthy = await call.sent("GET", "/healthz")
            gate.set()
            return [refused, healthy, *await asyncio.gather(*waiting), await call.sent("GET", "/v1/experiments")]

        refused, healthy, *made, after = call.runner.run(crowd())
        problem(refused, 429, "too_many")
        assert refused.headers["retry-after"] == "1"
        assert healthy.status_code == 200
        assert [answer.status_code for answer in made] == [201, 201, 201]
        assert len(after.json()["items"]) == 3


def test_long_reads_hold_up_nothing_else(tmp_path, monkeypatch):
    with api(tmp_path) as call:
        path, going = call.create(), threading.Event()
        export = call.store.export

        def slow(*given):
            assert going.wait(60)
            return export(*given)

        monkeypatch.setattr(call.store, "export", slow)

        others = (("GET", "/healthz"), ("GET", path), ("POST", f"{path}/ask"))

        async def crowd() -> tuple[list[int], list[int]]:
            waiting = [asyncio.create_task(call.sent("GET", f"{path}/export")) for _ in range(45)]
            async with asyncio.timeout(60):
                while not any(task.done() for task in waiting):
                    await asyncio.sleep(0.01)
            meanwhile = [(await call.sent(*words)).status_code for words in others]
            going.set()
            return meanwhile, [(await task).status_code for task in waiting]

        meanwhile, exports = call.runner.run(crowd())
        assert meanwhile == [200, 200, 200]
        # Few are in work, some wait, and the others are told to come back.
        assert set(exports) == {200, 429}


def test_a_body_that_never_ends_is_given_up(tmp_path):
    with api(tmp_path, body_seconds=0.05) as call:
        async def stuck() -> AsyncIterator[bytes]:
            yield b"{"
            await asyncio.sleep(30)

        problem(call("POST", "/v1/experiments", content=stuck()), 408, "timeout")


def received(receive, headers: dict[bytes, bytes]) -> bytes:
    request = Request({"type": "http", "headers": list(headers.items())}, receive)
    return asyncio.run(read_body(request, 100, 1.0))


def test_a_client_that_leaves_is_let_go():
    async def gone() -> dict[str, str]:
        return {"type": "http.disconnect"}

    for headers in ({b"content-length": b"2"}, {b"transfer-encoding": b"chunked"}):
        with pytest.raises(Refused, match="must be complete"):
            received(gone, headers)


@pytest.mark.parametrize("headers", [{}, {b"content-length": b"0"}])
def test_a_request_without_a_body_is_not_waited_for(headers):
    async def never() -> dict[str, str]:
        raise AssertionError

    assert received(never, headers) == b""
