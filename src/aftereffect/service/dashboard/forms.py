"""Form fields: reads the body of a form strictly, and converts its strings to numbers and settings.

Only the format of whole numbers and durations is checked here; the rules for experiments are in `settings.py`.
"""

import re
import urllib.parse
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Request

from aftereffect.core.checks import shown
from aftereffect.service.api.body import read_body
from aftereffect.service.api.limits import SignIns
from aftereffect.service.errors import Refused
from aftereffect.service.messages import Overview
from aftereffect.service.totals import number

MOST_BYTES = 1 << 20
MOST_FIELDS = 2_048
_BOUNDARY = re.compile(r'boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))', re.IGNORECASE)
_NAME = re.compile(rb'^content-disposition:[ \t]*form-data[ \t]*;[ \t]*name="([^"\r\n]*)"', re.I | re.M)
_WHOLE = re.compile(r"[+-]?\d{1,30}", re.ASCII)

BLANK = {
    **{"name": "", "arms": "", "direction": "maximize", "low": "0", "high": ""},
    **{"carry": "window", "length": "", "round_length": "1", "noise": "", "gap": ""},
    **{"units": "", "horizon": "", "start_date": "", "player": "advised", "seed": ""},
    **{"out_of_range": "void", "source": "", "measure": ""},
}
"""The initial values of the form for a new experiment."""

REQUIRED = {
    **{"name": "Name", "arms": "Arms", "length": "Length"},
    "round_length": "One round lasts",
    **{"low": "Smallest effect of one action", "high": "Largest effect of one action"},
}
"""The fields that must not be empty, with their labels on the page."""

_LENGTHS = ("max_delay", "window", "half_life", "carry_over")
_FIELDS = {name: name for name in BLANK} | dict.fromkeys(_LENGTHS, "length")


async def fields(request: Request) -> dict[str, str]:
    """Return the fields of a form; refuse a body that is not UTF-8 or has a field twice."""
    return await _read(request, MOST_BYTES, request.app.state.config.body_seconds)


async def sign_in_fields(request: Request) -> dict[str, str]:
    """Return the fields of a form of somebody who has not signed in: few such forms are read at a time."""
    sign_ins: SignIns = request.app.state.sign_ins
    seconds = min(sign_ins.SECONDS, request.app.state.config.body_seconds)
    with sign_ins.place(address(request)):
        return await _read(request, sign_ins.BYTES, seconds)


def address(request: Request) -> str:
    """Return the address of a client."""
    return "" if request.client is None else request.client.host


async def _read(request: Request, limit: int, seconds: float) -> dict[str, str]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/x-www-form-urlencoded", "multipart/form-data"):
        raise Refused("invalid", f"Content-Type must be that of a form, but got {shown(kind)}")
    body = await read_body(request, limit, seconds)
    if kind == "multipart/form-data":
        return _parts(request.headers["content-type"], body)
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


def _parts(kind: str, body: bytes) -> dict[str, str]:
    """Return the fields of a form with a file; the file is read as text.

    The `email` package is not used: it needs many seconds for a short body with many parts, or with nested ones.
    """
    mark = _BOUNDARY.search(kind)
    if mark is None:
        raise Refused("invalid", "Content-Type must name the boundary of the form's parts, but does not")
    _, *parts = (b"\r\n" + body).split(b"\r\n--" + (mark[1] or mark[2]).encode("latin-1"), MOST_FIELDS + 1)
    if not parts or not parts[-1].startswith(b"--"):
        raise Refused("invalid", f"a form must be complete and have at most {MOST_FIELDS} fields, but is not")
    found: dict[str, str] = {}
    for part in parts[:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        named = _NAME.search(head)
        try:
            name, text = "" if named is None else named[1].decode(), content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Refused("invalid", "a file must be UTF-8 text, but is not: save it as CSV UTF-8") from None
        if not name or name in found:
            raise Refused("invalid", "a form must have each field once, by name, but one was sent twice or has none")
        found[name] = text
    return found


Fields = Annotated[dict[str, str], Depends(fields)]
SignInFields = Annotated[dict[str, str], Depends(sign_in_fields)]


def whole(name: str, text: str) -> int:
    """Return a whole number.

    >>> whole("round", "17")
    17
    """
    if not _WHOLE.fullmatch(text.strip()):
        raise Refused("invalid", f"{name} must be a whole number, but got {shown(text)}", field=name)
    return int(text)


def lines(text: str) -> list[str]:
    """Return the non-empty lines of a text area, stripped.

    >>> lines(" A \\r\\n\\r\\nB")
    ['A', 'B']
    """
    return [line.strip() for line in text.split("\n") if line.strip()]


def require(given: Mapping[str, str], labels: Mapping[str, str]) -> None:
    """Refuse a form with empty fields; name all of them by their labels."""
    empty = [name for name in labels if not given.get(name, "").strip()]
    if empty:
        words = " and ".join([", ".join(labels[name] for name in empty[:-1]), labels[empty[-1]]]).removeprefix(" and ")
        raise Refused("invalid", f"Please fill in {words}", field=empty[0], fields=empty)


def guess(name: str, text: str) -> float | None:
    """Return a guess for the plan; None if it is empty.

    >>> guess("gap", "0.5"), guess("gap", "")
    (0.5, None)
    """
    if not text.strip():
        return None
    value = number(name, text)
    if value < 0.0 or (name == "gap" and value == 0.0):
        rule = "greater than 0" if name == "gap" else "at least 0"
        raise Refused("invalid", f"{name} must be {rule}, but got {shown(text)}", field=name)
    return value


def settings(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings in the form for a new experiment, not validated yet."""
    given = {name: text.strip() for name, text in {**BLANK, **form}.items()}
    carry = given["carry"]
    unknown = carry == "unknown"
    require(given, {name: REQUIRED[name] for name in REQUIRED if not unknown or name not in ("length", "low", "high")})
    found: dict[str, Any] = {
        **{key: given[key] for key in ("name", "direction", "out_of_range")},
        "arms": lines(given["arms"]),
        "round_length": duration("round_length", given["round_length"]),
        "draft": bool(given.get("draft")),
    }
    if not unknown:
        limits = {name: number(name, given[name]) for name in ("low", "high")}
        found |= {**limits, "player": given["player"]}
    if unknown:
        found["player"] = "model"
    elif carry == "rounds":
        found["max_delay"] = whole("max_delay", given["length"])
    elif carry in ("window", "half_life"):
        found["carry_over"] = {carry: duration(carry, given["length"])}
    else:
        detail = f"carry must be window, half_life, rounds or unknown, but got {shown(carry)}"
        raise Refused("invalid", detail, field="carry")
    for name in ("horizon", "seed"):
        if given[name]:
            found[name] = whole(name, given[name])
    found |= {name: given[name] for name in ("start_date", "measure") if given[name]}
    units = lines(given["units"])
    if units:
        one_number = len(units) == 1 and units[0].isascii() and units[0].isdigit()
        found["units"] = whole("units", units[0]) if one_number else units
    return found


def filled(view: Overview) -> dict[str, str]:
    """Return the form for a new experiment filled with the settings of another, whose rounds it is to inherit."""
    words = view.carry_over or {}
    carry = next((key for key in ("window", "half_life") if key in words), "rounds")
    carry = "unknown" if view.player == "model" else carry
    known = dict(view)
    numbers = {name: repr(known[name]).removesuffix(".0") for name in ("low", "round_length")}
    numbers["high"] = "" if view.high is None else repr(view.high).removesuffix(".0")
    names = ("horizon", "start_date", "seed", "measure")
    optional = {name: "" if known[name] is None else str(known[name]) for name in names}
    return {
        **{key: known[key] for key in ("direction", "out_of_range")} | numbers | optional,
        **{"name": f"{view.name.removesuffix(' (corrected)')} (corrected)", "arms": "\n".join(view.arms)},
        **{"carry": carry, "length": str(words.get(carry, view.max_delay or 0))},
        "player": "advised" if view.player == "model" else view.player,
        "source": view.id,
        "units": "" if view.units == ["1"] else "\n".join(view.units),
    }


def duration(name: str, text: str) -> float | str:
    """Return a duration: a number of days, or the text unchanged (such as "2 weeks")."""
    return number(name, text) if text[:1].isdigit() and not re.search("[a-z]", text, re.IGNORECASE) else text


def field_of(refusal: Refused) -> str:
    """Return the field of the form for a new experiment that a refusal is about, or "".

    >>> field_of(Refused("invalid", "must be longer", field="carry_over.window"))
    'length'
    """
    return next((_FIELDS[part] for part in reversed(refusal.field.split(".")) if part in _FIELDS), "")
