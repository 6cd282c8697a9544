"""Strict JSON: what a client sends is read once, by one rule, before anything else sees it.

Python's reader takes more than JSON has, and a web framework's more still: NaN and Infinity, 1e400 (read as infinity),
the same key twice (the last wins), integers of any length, a lone surrogate (which no database stores), NUL (which
PostgreSQL does not store), and nesting until the stack ends. Here each is an error that names the rule. A Boolean is
not a number, and a text is not one either.
"""

import json
import math
import re
from collections.abc import Collection
from typing import Any, NoReturn

from aftereffect.core.checks import shown
from aftereffect.service.errors import Refused

MAX_DEPTH = 16
TOO_DEEP = f"the body must be nested at most {MAX_DEPTH} deep, but is deeper"
MAX_INTEGER = 2**63
UNIT_LENGTH = 200
ROUND = re.compile(r"[0-9]{1,19}", re.ASCII)


def refuse(detail: str) -> NoReturn:
    """Refuse what a client sent, with the rule it breaks."""
    raise Refused("invalid", detail)


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        refuse(f"a number in the body must be finite, but got {shown(text)}")
    return number


def _integer(text: str) -> int:
    # The length first: turning a long text into an int takes quadratic time.
    if len(text) > 20 or not -MAX_INTEGER <= (number := int(text)) < 2 * MAX_INTEGER:
        refuse(f"an integer in the body must lie within 64 bits, but got {shown(text)}")
    return number


def _constant(text: str) -> NoReturn:
    refuse(f"a number in the body must be finite, but got {text}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                refuse(f"an object in the body must have each key once, but has {shown(key)} more than once")
            seen.add(key)
    return read


DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_float, parse_int=_integer, parse_constant=_constant
)


def _check_text(text: str) -> None:
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        refuse(f"a text in the body must be free of NUL and of lone surrogates, but got {shown(text)}")


def _check_tree(value: Any) -> None:
    level, depth = [value], 1
    while level:
        below: list[Any] = []
        for part in level:
            if isinstance(part, str):
                _check_text(part)
            elif isinstance(part, dict | list):
                if depth > MAX_DEPTH:
                    refuse(TOO_DEEP)
                below.extend(part)
                if isinstance(part, dict):
                    below.extend(part.values())
        level, depth = below, depth + 1


def parse(body: bytes, flat: bool = False) -> Any:
    """Return the value of a strict JSON text. flat: whoever reads it refuses nested values, so depth is not checked.

    >>> parse(b'{"total": 0.5}')
    {'total': 0.5}
    >>> parse(b'{"total": 1e400}')
    Traceback (most recent call last):
        ...
    aftereffect.service.errors.Refused: a number in the body must be finite, but got '1e400'
    """
    try:
        value = DECODER.decode(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        refuse(f"the body must be UTF-8, but byte {error.start} is not")
    except json.JSONDecodeError as error:
        refuse(f"the body must be JSON, but is not at character {error.pos}: {error.msg}")
    except RecursionError:
        refuse(TOO_DEEP)
    # NUL and lone surrogates can only come as escapes: raw ones are not JSON, or not UTF-8.
    if b"\\u" in body or (not flat and body.count(b"{") + body.count(b"[") > MAX_DEPTH):
        _check_tree(value)
    return value


def object_of(value: Any, what: str, allowed: Collection[str], required: Collection[str] = ()) -> dict[str, Any]:
    """Return `value` if it is an object with all the required keys and none but the allowed ones."""
    if not isinstance(value, dict):
        refuse(f"{what} must be a JSON object, but got {shown(value)}")
    for key in value:
        if key not in allowed:
            known = ", ".join(repr(name) for name in allowed) or "none"
            refuse(f"{what} must have no other keys than {known}, but got {shown(key)}")
    for key in required:
        if key not in value:
            refuse(f"{what} must have the key {key!r}, but got only {shown(sorted(value))}")
    return value


def unit_of(value: Any) -> str | None:
    """Return a unit's name; it may be sent as text or as an integer.

    >>> unit_of(3), unit_of("north"), unit_of(None)
    ('3', 'north', None)
    """
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and 1 <= len(value) <= UNIT_LENGTH:
        return value
    refuse(f"unit must be a text of 1 to {UNIT_LENGTH} characters or an integer, but got {shown(value)}")


def total_of(value: Any) -> float | None:
    """Return a total as a float; None says that the round's report is missing."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse(f"total must be a finite number, or null for a missing report, but got {shown(value)}")
    return float(value)


def round_of(value: Any) -> int:
    """Return the number of a round, from a path (text) or from a body (an integer)."""
    number = int(value) if isinstance(value, str) and ROUND.fullmatch(value) else value
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number < MAX_INTEGER:
        refuse(f"round must be an integer from 1 to 2^63 - 1, but got {shown(value)}")
    return number
