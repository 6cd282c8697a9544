"""Bulk bodies: what the fast reader takes, the strict one takes, with the same meaning; the usual form is read fast."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftereffect.service.api import bulk, usual
from aftereffect.service.api.body import object_of, parse
from aftereffect.service.api.limits import items_of
from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Ask, Tell

KINDS = {"ask": bulk.ASK, "tell": bulk.TELL}

# Raw JSON, so that keys can come twice and numbers in every spelling.
KEYS = st.sampled_from(["experiment", "round", "total", "unit", "id", "items", "x", "exp\\u0065riment"])
VALUES = st.one_of(
    st.sampled_from(
        ["null", "true", "0", "1", "-0", "1.0", "0.5", "1e2", "1E400", "5e-324", "NaN", "01", "{}", "[1]", '""',
         "9223372036854775807", "9223372036854775808", "18446744073709551616", "-9223372036854775809", "1" + "0" * 400,
         '"' + "e" * 100 + '"', '"' + "e" * 101 + '"', '"' + "u" * 200 + '"', '"' + "u" * 201 + '"',
         '"a\\"b"', '"\\ud800"', '"\\u0000"', '"é"', '"a"', '"b c"']
    ),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers().map(str),
    st.text(max_size=5).map(json.dumps),
)
ITEMS = st.one_of(
    st.lists(st.tuples(KEYS, VALUES), max_size=5).map(
        lambda pairs: "{" + ",".join(f'"{key}": {value}' for key, value in pairs) + "}"
    ),
    st.tuples(st.sampled_from(["1", "3", "0", "1.0"]), VALUES).map(
        lambda pair: f'{{"experiment": "e", "round": {pair[0]}, "total": {pair[1]}}}'
    ),
    VALUES.map(lambda value: f'{{"experiment": "e", "unit": {value}}}'),
    VALUES.map(lambda value: f'{{"experiment": {value}}}'),
    VALUES,
)


def strictly(raw: bytes, kind: bulk.Kind) -> list[usual.Order]:
    """Read a body with the strict reader alone; every item must be readable."""
    items = items_of(object_of(parse(raw, flat=True), "the body", ("items",), ("items",)), 10)
    return [kind.item(item) for item in items]


@settings(max_examples=400)
@given(
    st.lists(ITEMS, max_size=3),
    st.sampled_from(sorted(KINDS)),
    st.sampled_from(['{"items": [%s]}', '{"items": [%s]}', '{"items": [%s], "items": []}', "[%s]"]),
)
def test_the_fast_reader_takes_nothing_that_the_strict_one_refuses(items, name, frame):
    raw = (frame % ",".join(items)).encode("utf-8", "surrogatepass")
    found = usual.orders(raw, KINDS[name].usual, 10)
    if found is not None:
        wanted = strictly(raw, KINDS[name])
        assert found == wanted
        assert [list(map(type, command)) for _, command in found] == [list(map(type, command)) for _, command in wanted]


@pytest.mark.parametrize(
    ("item", "name", "command"),
    [
        ({"experiment": "e"}, "ask", Ask()),
        ({"experiment": "e", "unit": "north"}, "ask", Ask("north")),
        ({"experiment": "e", "round": 3, "total": 0.5}, "tell", Tell(3, 0.5)),
        ({"total": 1, "round": 3, "experiment": "e"}, "tell", Tell(3, 1.0)),
        ({"experiment": "e", "round": 3, "total": None}, "tell", Tell(3, None)),
        ({"experiment": "e", "round": 3, "total": 0.5, "unit": "Zürich"}, "tell", Tell(3, 0.5, "Zürich")),
    ],
)
def test_the_usual_forms_are_read_fast(item, name, command):
    raw = json.dumps({"items": [item, item]}, ensure_ascii=False).encode()
    assert usual.orders(raw, KINDS[name].usual, 2) == [("e", command)] * 2
    assert usual.orders(raw, KINDS[name].usual, 1) is None


def test_items_that_mean_nothing_are_answered_at_their_place():
    raw = b'{"items": [{"round": 1}, {"experiment": "a"}, 7, {"id": "b", "unit": 2}]}'
    read = bulk.reading(raw, bulk.ASK, 10)
    assert read.orders == [("a", Ask()), ("b", Ask("2"))]
    text, refused = bulk.answering(read, [bulk.answered("a", {"round": 1}), Refused("not_found", "no b")])
    assert refused == 3
    found = [item.get("error", {}).get("code", item.get("round")) for item in json.loads(text)["items"]]
    assert found == ["invalid", 1, "invalid", "not_found"]


@settings(max_examples=400)
@given(ITEMS)
def test_the_fast_reader_of_one_object_takes_nothing_that_the_strict_one_refuses(item):
    raw = item.encode("utf-8", "surrogatepass")
    found = usual.fields(raw)
    if found is not None:
        wanted = parse(raw)
        assert found == wanted
        assert {key: type(value) for key, value in found.items()} == {key: type(value) for key, value in wanted.items()}


@pytest.mark.parametrize("body", [{}, {"total": 0.5}, {"total": None, "unit": "north"}, {"unit": "Zürich", "total": 3}])
def test_the_usual_object_is_read_fast(body):
    assert usual.fields(json.dumps(body, ensure_ascii=False).encode()) == body
