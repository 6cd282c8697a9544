"""The hash chain: each event carries the SHA-256 of the hash before it and of its own canonical JSON text.

An experiment's first link is the hash of its id, its settings and the moment it was made. An event that is
altered, removed, added or moved breaks every link after it, so whoever knows the last hash knows the whole log.
"""

import hashlib
import json
from functools import lru_cache
from typing import Any

import orjson

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False, check_circular=False).encode
_sha256 = hashlib.sha256
# Kinds, units and moments come again and again.
_quoted = lru_cache(4096)(_encode)


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: keys sorted, no spaces, ASCII, no NaN.

    >>> canonical({"total": 0.1, "arm": "a"})
    '{"arm":"a","total":0.1}'
    """
    return _encode(value)


def written(value: dict[str, Any]) -> str:
    """Return an event's body or a state as it is stored: canonical, but for how the exponent of a float is written.

    Every ask and tell comes by here, so it is the fast writer's text where that is ASCII, as it nearly always is.

    >>> written({"total": 0.1, "status": "reported"})
    '{"status":"reported","total":0.1}'
    """
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return text.decode() if text.isascii() else _encode(value)


def genesis(identity: str, settings: str, created_at: str) -> str:
    """Return the hash that stands before an experiment's first event; `settings` is canonical text."""
    head = canonical({"created_at": created_at, "id": identity})
    return _sha256(f"{head}{settings}".encode()).hexdigest()


def link(
    previous: str, seq: int, kind: str, round_: int | None, unit: str | None, body: str, at: str
) -> str:
    """Return the hash of an event whose body is given as canonical text.

    The text hashed is canonical({"at", "body", "kind", "round", "seq", "unit"}), put together from its parts
    because the body has been written once already.

    >>> text = canonical({"at": "now", "body": {"x": 1}, "kind": "ask", "round": 3, "seq": 1, "unit": None})
    >>> link("00", 1, "ask", 3, None, '{"x":1}', "now") == hashlib.sha256(("00" + text).encode()).hexdigest()
    True
    """
    number = "null" if round_ is None else round_
    name = "null" if unit is None else _quoted(unit)
    # A kind is a plain word.
    text = (
        f'{previous}{{"at":{_quoted(at)},"body":{body},"kind":"{kind}","round":{number},"seq":{seq},"unit":{name}}}'
    )
    return _sha256(text.encode()).hexdigest()
