"""Hostile values: each is refused with 4xx and a problem, never 5xx, and leaves everything as it was."""

import gzip
import json

import pytest
from tests.service.calling import SETTINGS, Api, api

from aftereffect.service.api.body import MAX_DEPTH, parse
from aftereffect.service.errors import Refused

# What stands for a number in a body, as raw JSON (or what claims to be), 30 and 5,000 digits long among them.
NUMBERS = [b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400", b"true", b"false", b'"0.5"', b"1234567890" * 3]
NUMBERS += [b"9" * 5000, b"[1]", b"{}", b"0x10", b"01", b"+1", b"1_000"]
# What stands for a text: surrogates alone and in the wrong order, NUL and line ends, raw and escaped, no UTF-8.
TEXTS = [b'"\\ud800"', b'"\\udc00\\ud800"', b'"a\\u0000b"', b'"a\x00b"', b'"a\nb"', b'"a\\nb"', b'"\xff\xfe"']
TEXTS += [b'"\xed\xa0\x80"', b'"\xc0\x80"', b'""', b"true", b'["a"]', b'{"a": 1}', b'"' + b"x" * 100_000 + b'"', b"1.5"]
BODIES = [b"", b"null", b"[]", b'"text"', b"3", b"true", b'{"a": 1', b"{} {}", b'{"a": 1,}', b"{'a': 1}", b"{} // done"]
BODIES += [b"\xef\xbb\xbf{}", '{"total": 1}'.encode("utf-16"), b"total=1", b'{"\\ud800": 1}']
# Nested too deep, a key that comes twice, an unknown key, 20 MB.
BODIES += [b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 50_000 + b"1" + b"}" * 50_000]
BODIES += [b'{"total": ' + b"[" * 40 + b"]" * 40 + b"}", b'{"total": 1, "total": 2}', b'{"total": 1, "tot\\u0061l": 2}']
BODIES += [b'{"total": 1, "name": "x", "arms": ["a", "b"], "max_delay": 1, "items": [], "typo": 1}']
BODIES += [b'{"name": "' + b"x" * 20_000_000 + b'"}']


def beginning(value: bytes) -> str:
    return repr(value[:40])


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    with api(tmp_path_factory.mktemp("values")) as client:
        yield client


@pytest.fixture(scope="module")
def path(call: Api) -> str:
    found = call.create(units=["north", "south"])
    call("POST", f"{found}/ask")
    return found


def refused(call: Api, method: str, where: str, content: bytes) -> None:
    before = call.snapshot()
    answer = call(method, where, content=content, headers={"content-type": "application/json"})
    assert 400 <= answer.status_code < 500, (where, content[:80], answer.text[:300])
    assert answer.headers["content-type"] == "application/problem+json"
    assert json.loads(answer.text)["status"] == answer.status_code
    assert len(answer.content) < 2000
    assert call.snapshot() == before


@pytest.mark.parametrize("value", NUMBERS, ids=beginning)
def test_numbers(call: Api, path: str, value):
    refused(call, "PUT", f"{path}/rounds/1", b'{"unit": "north", "total": ' + value + b"}")
    refused(call, "POST", f"{path}/rounds/1/amend", b'{"unit": "north", "total": ' + value + b"}")
    for key in SETTINGS.keys() & {"low", "high", "max_delay", "seed"}:
        rest = {other: given for other, given in SETTINGS.items() if other != key}
        given = json.dumps(rest).encode()[:-1] + b', "%s": %s}' % (key.encode(), value)
        refused(call, "POST", "/v1/experiments", given)
    for key in (b"horizon", b"round_length"):
        given = json.dumps(SETTINGS).encode()[:-1] + b', "%s": %s}' % (key, value)
        # A Boolean is no number, and a text is a length of time only in words.
        refused(call, "POST", "/v1/experiments", given)
    refused(call, "POST", "/v1/plan", b'{"arms": 3, "max_delay": ' + value + b"}")


@pytest.mark.parametrize("value", TEXTS, ids=beginning)
def test_texts(call: Api, path: str, value):
    refused(call, "POST", f"{path}/ask", b'{"unit": ' + value + b"}")
    refused(call, "PUT", f"{path}/rounds/1", b'{"total": 1, "unit": ' + value + b"}")
    refused(call, "POST", "/v1/experiments", b'{"arms": ["a", "b"], "max_delay": 1, "name": ' + value + b"}")
    refused(call, "POST", "/v1/experiments", b'{"name": "x", "max_delay": 1, "arms": ["a", ' + value + b"]}")
    refused(call, "POST", "/v1/experiments",
            b'{"name": "x", "max_delay": 1, "arms": ["a", "b"], "units": ["u", ' + value + b"]}")
    refused(call, "POST", "/v1/tokens", b'{"scopes": ["read"], "name": ' + value + b"}")
    refused(call, "POST", "/v1/tokens", b'{"name": "x", "scopes": ["read", ' + value + b"]}")


@pytest.mark.parametrize("body", BODIES, ids=beginning)
def test_bodies(call: Api, path: str, body):
    refused(call, "PUT", f"{path}/rounds/1", body)
    for where in ("experiments", "plan", "bulk/ask", "bulk/tell", "tokens"):
        refused(call, "POST", f"/v1/{where}", body)
    refused(call, "POST", f"{path}/rounds/1/amend", body)
    if body:
        for verb in ("ask", "start", "pause", "resume", "finish", "arms/email/away", "arms/email/back"):
            refused(call, "POST", f"{path}/{verb}", body)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
                                  "application/xml", "application/jsonp", "nonsense", "image/png"])
def test_bodies_of_other_kinds(call: Api, path: str, kind):
    before = call.snapshot()
    answer = call("PUT", f"{path}/rounds/1", content=b'{"total": 1}', headers={"content-type": kind})
    assert answer.status_code == 415
    assert answer.json()["code"] == "unsupported"
    assert call.snapshot() == before


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate, gzip", "identity, gzip", "nonsense"])
def test_bodies_that_are_encoded(call: Api, path: str, coding):
    before = call.snapshot()
    for body in (b'{"total": 1}', gzip.compress(b'{"total": 1}')):
        answer = call("PUT", f"{path}/rounds/1", content=body, headers={"content-encoding": coding})
        assert answer.status_code == 415
        assert answer.json()["detail"] == f"Content-Encoding must be identity, but got {coding!r}"
    assert call.snapshot() == before
    plain = call("POST", f"{path}/ask", content=b"{}", headers={"content-encoding": "Identity"})
    assert plain.status_code == 200


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/a+json", ""])
def test_ways_to_say_json(tmp_path, kind):
    with api(tmp_path) as call:
        path = call.create()
        call("POST", f"{path}/ask")
        headers = {"content-type": kind} if kind else {}
        assert call("PUT", f"{path}/rounds/1", content=b'{"total": 1}', headers=headers).status_code == 200


def test_depth_is_counted_from_the_outside():
    deepest = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert parse(deepest) is not None
    with pytest.raises(Refused, match="nested at most 16 levels deep"):
        parse(b"[" + deepest + b"]")


def test_numbers_keep_their_value():
    assert parse(b'{"a": 9223372036854775807, "b": -9223372036854775808, "c": 18446744073709551615, "d": 5e-324}') == {
        "a": 2**63 - 1, "b": -(2**63), "c": 2**64 - 1, "d": 5e-324,
    }
    for text in (b"18446744073709551616", b"-9223372036854775809"):
        with pytest.raises(Refused, match="fit in 64 bits"):
            parse(text)


def test_texts_keep_their_value():
    assert parse('["🦊", "\\ud83e\\udd8a", "é"]'.encode()) == ["🦊", "🦊", "é"]
