"""The client's connection: problems become errors, and a request is repeated only where that changes nothing twice."""

import json
from collections.abc import Callable

import httpx
import pytest
from tests.service.playing import made

from aftereffect import InvalidArgument
from aftereffect.service.client import LONGEST_WAIT, Client
from aftereffect.service.errors import Refused
from aftereffect.service.messages import ROW

Handler = Callable[[httpx.Request], httpx.Response]


class Script:
    """A server that answers from a list, and remembers what it was asked."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[httpx.Request] = []
        self.waits: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(self, token: str | None = None, retries: int = 5) -> Client:
        transport = httpx.MockTransport(self)
        return Client("http://service", token, transport=transport, sleep=self.waits.append, retries=retries)


TURN = {**ROW, "experiment": "x", "arm": "A", "state": "running", "warmup": False}
REPORT = {**ROW, "experiment": "x", "state": "running", "repeated": False, "open_round": None}
VIEW = made(arms=["A", "B"], max_delay=1).view("x", "2026-01-01T00:00:00Z").data


def turn(round: int = 1) -> httpx.Response:
    return httpx.Response(200, json={**TURN, "round": round})


def refusal(status: int, code: str, detail: str = "no", **extra: object) -> httpx.Response:
    problem = {"type": f"urn:aftereffect:{code}", "title": "t", "status": status, "detail": detail, "code": code}
    return httpx.Response(status, json={**problem, **extra})


def test_a_problem_document_becomes_an_error_with_its_parts() -> None:
    script = Script(refusal(409, "conflict", "round 3 was reported with 4.0", round=3))
    with pytest.raises(Refused, match=r"round 3 was reported with 4\.0") as caught:
        script.client().tell("x", 3, 5.0)
    assert (caught.value.status, caught.value.code, caught.value.extra) == (409, "conflict", {"round": 3})
    assert caught.value.problem()["type"] == "urn:aftereffect:conflict"


@pytest.mark.parametrize(("answer", "code"), [
    (httpx.Response(418, text="I am a teapot"), "status_418"),
    (httpx.Response(599, text=""), "status_599"),
    (httpx.Response(500, json=["not", "a", "problem"]), "status_500"),
    (refusal(422, "a_code_of_the_future"), "a_code_of_the_future"),
])
def test_refusals_of_unknown_kinds_are_errors_too(answer: httpx.Response, code: str) -> None:
    with pytest.raises(Refused) as caught:
        Script(answer).client().experiment("x")
    assert (caught.value.code, caught.value.status) == (code, answer.status_code)
    assert caught.value.problem()["status"] == answer.status_code


def test_success_that_is_not_json_is_an_error() -> None:
    with pytest.raises(Refused, match="must answer in JSON, but answered 'hello'"):
        Script(httpx.Response(200, text="hello")).client().experiment("x")


def test_an_ask_whose_answer_was_lost_is_asked_again() -> None:
    script = Script(httpx.ReadError("lost"), httpx.RemoteProtocolError("gone"), turn(4))
    assert script.client().ask("x").round == 4
    assert len(script.asked) == 3
    assert script.waits == [0.1, 0.2]


def test_a_tell_is_repeated_with_the_same_bytes() -> None:
    script = Script(httpx.ReadTimeout("slow"), httpx.Response(200, json={**REPORT, "round": 4, "total": 0.5}))
    assert script.client().tell("x", 4, 0.5, unit=2).total == 0.5
    first, second = script.asked
    assert first.content == second.content == b'{"total":0.5,"unit":2,"ahead":true,"next":false}'


def test_an_amend_reads_what_it_corrects_and_is_then_repeated() -> None:
    rows = {"items": [{**ROW, "round": 4, "unit": "1", "total": 3.0}, {**ROW, "round": 4, "unit": "2", "total": 5.0}]}
    script = Script(httpx.Response(200, json=rows), httpx.ReadError("lost"), refusal(409, "conflict"))
    with pytest.raises(Refused) as caught:
        script.client().amend("x", 4, 6.0, unit=2)
    assert caught.value.code == "conflict"
    read, first, second = script.asked
    assert (read.method, read.url.params["after"]) == ("GET", "3")
    assert first.content == second.content == b'{"total":6.0,"unit":2,"was":5.0}'


def test_an_amend_of_a_round_that_is_not_there_corrects_no_other_total() -> None:
    script = Script(httpx.Response(200, json={"items": []}), httpx.ReadError("lost"), refusal(409, "conflict"))
    with pytest.raises(Refused) as caught:
        script.client().amend("x", 4, 6.0)
    assert caught.value.code == "conflict"
    assert [json.loads(sent.content) for sent in script.asked[1:]] == [{"total": 6.0, "unit": None, "was": None}] * 2


def test_an_amend_with_a_precondition_needs_no_reading() -> None:
    script = Script(httpx.Response(200, json={**REPORT, "round": 4, "total": 6.0}))
    assert script.client().amend("x", 4, 6.0, was=None).total == 6.0
    assert [json.loads(sent.content) for sent in script.asked] == [{"total": 6.0, "unit": None, "was": None}]


def test_what_creates_is_sent_with_a_key_that_its_repeats_have_and_others_do_not() -> None:
    lost = httpx.ReadError("lost")
    script = Script(lost, httpx.Response(201, json=VIEW), lost, lost, httpx.Response(201, json=VIEW), turn())
    client = script.client()
    for _ in range(2):
        assert client.create(name="a", arms=["A", "B"], max_delay=1).id == "x"
    client.ask("x")
    *keys, without = [sent.headers.get("Idempotency-Key") for sent in script.asked]
    assert without is None
    assert len({*keys[:2]}) == len({*keys[2:]}) == 1
    assert keys[0] != keys[2]
    # 43 letters of base 64 hold 256 bits.
    assert len(keys[0]) >= 43


@pytest.mark.parametrize(
    ("header", "wait"), [("2", 2.0), (None, 0.1), ("soon", 0.1), ("999999999", LONGEST_WAIT), ("nan", 0.1), ("-1", 0.1)]
)
def test_a_busy_server_is_given_the_time_it_asks_for(header: str | None, wait: float) -> None:
    busy = refusal(429, "too_many")
    if header is not None:
        busy.headers["Retry-After"] = header
    script = Script(busy, turn())
    assert script.client().ask("x").arm == "A"
    assert script.waits == [wait]


def test_patience_ends() -> None:
    script = Script(*[refusal(503, "busy", "the store is busy")] * 3)
    with pytest.raises(Refused, match="the store is busy"):
        script.client(retries=2).ask("x")
    assert len(script.asked) == 3


@pytest.mark.parametrize("total", [float("nan"), float("inf"), -float("inf")])
def test_what_json_cannot_say_is_not_sent(total: float) -> None:
    script = Script()
    with pytest.raises(Refused, match="total must be a finite number, but got") as caught:
        script.client().tell("x", 1, total)
    assert (caught.value.code, caught.value.field) == ("invalid", "total")
    with pytest.raises(Refused, match="must be JSON with finite numbers only"):
        script.client().bulk_tell([{"experiment": "x", "round": 1, "total": total}])
    assert script.asked == []


def test_ids_and_arms_are_quoted_in_paths() -> None:
    script = Script(httpx.Response(200, json=VIEW))
    script.client().away("x", "a/b?c#d é")
    assert script.asked[0].url.raw_path == b"/v1/experiments/x/arms/a%2Fb%3Fc%23d%20%C3%A9/away"


def test_an_arm_made_of_dots_does_not_leave_its_path() -> None:
    script = Script(httpx.Response(200, json=VIEW))
    script.client().away("x", "..")
    assert script.asked[0].url.raw_path == b"/v1/experiments/x/arms/%2E%2E/away"


def test_the_token_is_sent_and_never_shown() -> None:
    script = Script(turn(), refusal(403, "forbidden"))
    client = script.client("s3cret")
    client.ask("x")
    assert script.asked[0].headers["Authorization"] == "Bearer s3cret"
    with pytest.raises(Refused) as caught:
        client.ask("x")
    assert "s3cret" not in repr(client) + str(caught.value) + json.dumps(caught.value.problem())


@pytest.mark.parametrize("token", ["two words", "new\nline", "naïve", "\x00"])
def test_a_token_that_is_no_header_is_refused_without_being_shown(token: str) -> None:
    with pytest.raises(InvalidArgument, match="token must be one word") as caught:
        Client("http://service", token)
    assert token not in str(caught.value)


@pytest.mark.parametrize("url", ["service:8000", "ftp://service", "http://", "", "http://host:port", "/path", "http://me:secret@host"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgument, match="url"):
        Client(url)


def test_bulk_answers_come_one_by_one() -> None:
    problem = refusal(404, "not_found", "no such experiment").json()
    items = [TURN, {"experiment": "y", "error": problem}]
    script = Script(httpx.Response(200, json={"items": items}))
    first, second = script.client().bulk_ask(["x", {"experiment": "y", "unit": "2"}])
    assert not isinstance(first, Refused)
    assert first.arm == "A"
    assert isinstance(second, Refused)
    assert (second.status, second.code) == (404, "not_found")
    assert json.loads(script.asked[0].content) == {"items": [{"experiment": "x"}, {"experiment": "y", "unit": "2"}]}


@pytest.mark.parametrize(
    ("url", "proxied"), [("http://127.0.0.1:8000", False), ("http://localhost", False), ("http://shop.test", True)]
)
def test_a_proxy_is_for_the_world_outside_only(monkeypatch: pytest.MonkeyPatch, url: str, proxied: bool) -> None:
    asked: list[str] = []

    def pretend(self: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        asked.append(type(vars(self)["_pool"]).__name__)
        return turn()

    monkeypatch.setenv("HTTP_PROXY", "http://proxy.test:3128")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", pretend)
    with Client(url) as client:
        client.ask("x")
    assert asked == ["HTTPProxy" if proxied else "ConnectionPool"]
