"""Bodies of the usual form, read fast: one object of a few numbers and texts, or ten thousand of them in a list.

The fast reader is as strict as `body.py` but for two things: of a key that comes twice it takes the last, and an
integer beyond 64 bits it takes for a float. So the quotation marks are counted, and large totals are not taken here.
Whatever is not of the usual form, all of it or one item, is left to the reader that can say what is wrong with it.
"""

from collections.abc import Callable
from typing import Any

import orjson

from aftereffect.service.api.body import MAX_INTEGER, UNIT_LENGTH
from aftereffect.service.experiment.commands import Ask, Command, Tell

Order = tuple[str, Command]
Found = tuple[list[Order], int] | None
"""Commands, and how many texts their items hold, keys included."""

ID_LENGTH = 100
SHORT = 256
_ANY = Ask()
_LARGE = float(MAX_INTEGER)


def fields(raw: bytes) -> dict[str, Any] | None:
    """Return a short body's object, None unless it holds nothing but texts without escapes, nulls and small numbers.

    >>> fields(b'{"total": 0.5}'), fields(b'{"total": 0.5, "total": 1}'), fields(b'{"total": 1e400}')
    ({'total': 0.5}, None, None)
    """
    if len(raw) > SHORT or b"\\" in raw:
        return None
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if type(body) is not dict:
        return None
    texts = len(body)
    for value in body.values():
        kind = type(value)
        if kind is str:
            texts += 1
        elif value is not None and (kind not in (int, float) or not -_LARGE < value < _LARGE):
            return None
    return body if raw.count(b'"') == 2 * texts else None


def orders(raw: bytes, reading: Callable[[list[Any]], Found], most: int) -> list[Order] | None:
    """Return the commands of a body, None unless all of it is of the usual form.

    >>> orders(b'{"items": [{"experiment": "x", "round": 1, "total": 0.5}]}', tells, 10)
    [('x', Tell(round=1, total=0.5, unit=None))]
    >>> orders(b'{"items": [{"experiment": "x", "experiment": "y"}]}', asks, 10) is None
    True
    """
    if b"\\" in raw:
        return None
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    items = body.get("items") if type(body) is dict and len(body) == 1 else None
    if type(items) is not list or len(items) > most:
        return None
    found = reading(items)
    if found is None or raw.count(b'"') != 2 * (found[1] + 1):
        return None
    return found[0]


def asks(items: list[Any]) -> Found:
    """Return the asks that items mean, None unless every item is of the usual form."""
    read: list[Order] = []
    texts = 0
    try:
        for item in items:
            where = item["experiment"]
            if type(where) is not str or not (where.isalnum() and where.isascii() and len(where) <= ID_LENGTH):
                return None
            if len(item) == 1:
                read.append((where, _ANY))
                texts += 2
            elif len(item) == 2 and _is_unit(unit := item["unit"]):
                read.append((where, Ask(unit)))
                texts += 4
            else:
                return None
    except (LookupError, TypeError):
        return None
    return read, texts


def tells(items: list[Any]) -> Found:
    """Return the tells that items mean, None unless every item is of the usual form."""
    read: list[Order] = []
    texts = 0
    try:
        for item in items:
            where, number, total = item["experiment"], item["round"], item["total"]
            if type(where) is not str or not (where.isalnum() and where.isascii() and len(where) <= ID_LENGTH):
                return None
            if type(number) is not int or not 1 <= number < MAX_INTEGER:
                return None
            if type(total) is int:
                total = float(total)
            if total is not None and (type(total) is not float or not -_LARGE < total < _LARGE):
                return None
            if len(item) == 3:
                read.append((where, Tell(number, total)))
                texts += 4
            elif len(item) == 4 and _is_unit(unit := item["unit"]):
                read.append((where, Tell(number, total, unit)))
                texts += 6
            else:
                return None
    except (LookupError, TypeError):
        return None
    return read, texts


def _is_unit(unit: Any) -> bool:
    return type(unit) is str and 1 <= len(unit) <= UNIT_LENGTH
