"""Form fields: reads a urlencoded body strictly, and converts its strings to numbers and settings.

Only the format of numbers and durations is checked here; the rules for experiments are in `settings.py`.
"""

import re
import urllib.parse
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Request

from aftereffect.core.checks import shown
from aftereffect.service.api.body import read_body
from aftereffect.service.errors import Refused

MOST_BYTES = 1 << 20
MOST_FIELDS = 2_048
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,30}", re.ASCII)

BLANK = {
    **{"name": "", "arms": "", "direction": "maximize", "low": "0", "high": ""},
    **{"carry": "window", "length": "", "round_length": "1"},
    **{"units": "", "horizon": "", "start_date": "", "player": "matched", "seed": ""},
    **{"out_of_range": "void", "source": ""},
}
"""The initial values of the form for a new experiment."""

_LENGTHS = ("max_delay", "window", "half_life", "carry_over", "exactly")
_FIELDS = {name: name for name in BLANK} | dict.fromkeys(_LENGTHS, "length")


async def fields(request: Request) -> dict[str, str]:
    """Return the fields of a form; refuse a body that is not UTF-8 or has a field twice."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused("invalid", f"Content-Type must be application/x-www-form-urlencoded, but got {shown(kind)}")
    body = await read_body(request, MOST_BYTES, request.app.state.config.body_seconds)
    try:
        pairs = urllib.parse.parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS
        )
    except ValueError:
        raise Refused("invalid", f"a form must be urlencoded UTF-8 with at most {MOST_FIELDS} fields") from None
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Refused("invalid", "a form must have each field once, but one was sent twice")
    return found


Fields = Annotated[dict[str, str], Depends(fields)]


def number(name: str, text: str) -> float:
    """Return a number written with a decimal point; refuse commas, which are ambiguous.

    >>> number("total", " 8421.5 ")
    8421.5
    """
    stripped = text.strip()
    if not _NUMBER.fullmatch(stripped) or abs(found := float(stripped)) == float("inf"):
        raise Refused("invalid", f"{name} must be a number like 8421 or 0.5, without commas, but got {shown(text)}")
    return found


def whole(name: str, text: str) -> int:
    """Return a whole number.

    >>> whole("round", "17")
    17
    """
    if not _WHOLE.fullmatch(text.strip()):
        raise Refused("invalid", f"{name} must be a whole number, but got {shown(text)}")
    return int(text)


def lines(text: str) -> list[str]:
    """Return the non-empty lines of a text area, stripped.

    >>> lines(" A \\r\\n\\r\\nB")
    ['A', 'B']
    """
    return [line.strip() for line in text.split("\n") if line.strip()]


def settings(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings in the form for a new experiment, not validated yet."""
    given = {name: text.strip() for name, text in {**BLANK, **form}.items()}
    found: dict[str, Any] = {
        **{key: given[key] for key in ("name", "direction", "player", "out_of_range")},
        "arms": lines(given["arms"]),
        "low": number("low", given["low"]),
        "high": number("high", given["high"]),
        "round_length": _duration("round_length", given["round_length"]),
        "draft": bool(given.get("draft")),
    }
    carry = given["carry"]
    if carry == "rounds":
        found["max_delay"] = whole("max_delay", given["length"])
    elif carry in ("window", "half_life"):
        found["carry_over"] = {carry: _duration(carry, given["length"])}
    else:
        raise Refused("invalid", f"carry must be window, half_life or rounds, but got {shown(carry)}")
    for name in ("horizon", "seed"):
        if given[name]:
            found[name] = whole(name, given[name])
    if given["start_date"]:
        found["start_date"] = given["start_date"]
    units = lines(given["units"])
    if units:
        one_number = len(units) == 1 and units[0].isascii() and units[0].isdigit()
        found["units"] = whole("units", units[0]) if one_number else units
    return found


def filled(view: Mapping[str, Any]) -> dict[str, str]:
    """Return the form for a new experiment filled with the settings of another, whose rounds it is to inherit."""
    words = view["carry_over"] or {}
    carry = next((key for key in ("window", "half_life") if key in words), "rounds")
    numbers = {name: repr(view[name]).removesuffix(".0") for name in ("low", "high", "round_length")}
    optional = {name: "" if view[name] is None else str(view[name]) for name in ("horizon", "start_date", "seed")}
    return {
        **{key: view[key] for key in ("direction", "player", "out_of_range")} | numbers | optional,
        **{"name": f"{view['name'].removesuffix(' (corrected)')} (corrected)", "arms": "\n".join(view["arms"])},
        **{"carry": carry, "length": str(words.get(carry, view["max_delay"])), "source": view["id"]},
        "units": "" if view["units"] == ["1"] else "\n".join(view["units"]),
    }


def _duration(name: str, text: str) -> float | str:
    """Return a duration: a number of days, or the text unchanged (such as "2 weeks")."""
    if not text:
        raise Refused("invalid", f"{name} must be given, but it is empty")
    return float(text) if _NUMBER.fullmatch(text) else text


def field_of(refusal: Refused) -> str:
    """Return the form field that a refusal is about (the first word of its detail), or ""."""
    return _FIELDS.get(re.split(r"\W", refusal.detail, maxsplit=1)[0], "")
