"""Form fields: reads the body of a form strictly, and makes settings of the form for a new experiment.

The text of a setting is read in `fields.py`; the rules for experiments are in `settings.py`.
"""

import urllib.parse
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Request

from aftereffect.core.checks import shown
from aftereffect.service import fields
from aftereffect.service.api.body import read_body
from aftereffect.service.api.limits import SignIns
from aftereffect.service.errors import Refused
from aftereffect.service.fields import READ
from aftereffect.service.messages import Overview

MOST_BYTES = 1 << 20
MOST_FIELDS = 2_048


async def form_fields(request: Request) -> dict[str, str]:
    """Return the fields of a form; refuse a body that is not UTF-8 or has a field twice."""
    return await _read(request, MOST_BYTES, request.app.state.config.body_seconds)


async def sign_in_fields(request: Request) -> dict[str, str]:
    """Return the fields of a form of somebody who has not signed in: few such forms are read at a time."""
    sign_ins: SignIns = request.app.state.sign_ins
    seconds = min(sign_ins.SECONDS, request.app.state.config.body_seconds)
    sign_ins.check(address(request))
    async with sign_ins.places:
        return await _read(request, sign_ins.BYTES, seconds)


def address(request: Request) -> str:
    """Return the address of a client."""
    return "" if request.client is None else request.client.host


async def _read(request: Request, limit: int, seconds: float) -> dict[str, str]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused("invalid", f"Content-Type must be that of a form, but got {shown(kind)}")
    body = await read_body(request, limit, seconds)
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


FormFields = Annotated[dict[str, str], Depends(form_fields)]
SignInFields = Annotated[dict[str, str], Depends(sign_in_fields)]


LENGTHS = ("window", "half_life", "max_delay")
"""The ways to say how long effects last: a choice beside "unknown", and one field for its value."""
BLANK = dict.fromkeys((*(name for name in READ if name not in LENGTHS), "length", "source"), "") | {
    **{"direction": "maximize", "low": "0", "carry": "window", "round_length": "1"},
    **{"player": "advised", "out_of_range": "void"},
}
"""The initial values of the form for a new experiment."""
REQUIRED = {
    **{"name": "Name", "arms": "Arms", "length": "Length"},
    "round_length": "One round lasts",
    **{"low": "Smallest effect of one action", "high": "Largest effect of one action"},
}
"""The fields that must not be empty, with their labels on the page."""
WITHOUT_GUARANTEE, WITH_GUARANTEE = ("length", "low", "high", "player"), ("max_lag",)
"""The fields that are not read if nobody knows how long effects last, and those that are not read if somebody does."""


def require(given: Mapping[str, str], labels: Mapping[str, str]) -> None:
    """Refuse a form with empty fields; name all of them by their labels."""
    empty = [name for name in labels if not given.get(name, "").strip()]
    if empty:
        words = " and ".join([", ".join(labels[name] for name in empty[:-1]), labels[empty[-1]]]).removeprefix(" and ")
        raise Refused("invalid", f"Please fill in {words}", field=empty[0], fields=empty)


def settings(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings and guesses in the form for a new experiment, not validated yet."""
    given = {name: text.strip() for name, text in {**BLANK, **form}.items()}
    carry = given.pop("carry")
    if carry not in (*LENGTHS, "unknown"):
        detail = f"carry must be {', '.join(LENGTHS)} or unknown, but got {shown(carry)}"
        raise Refused("invalid", detail, field="carry")
    unread, more = (WITHOUT_GUARANTEE, {"player": "model"}) if carry == "unknown" else (WITH_GUARANTEE, {})
    given = {name: text for name, text in given.items() if name not in unread} | more
    require(given, {name: label for name, label in REQUIRED.items() if name in given})
    given[carry] = given.pop("length", "")
    return fields.settings({name: text for name, text in given.items() if text})


def filled(view: Overview) -> dict[str, str]:
    """Return the form for a new experiment filled with the settings of another, whose rounds it is to inherit."""
    known = view.model_dump(include={*READ})
    found = {name: "" if value is None else str(value) for name, value in known.items() if name not in LENGTHS}
    for name in ("low", "high", "round_length"):
        found[name] = found[name].removesuffix(".0")
    carry, length = ("unknown", "") if view.max_delay is None else ("max_delay", str(view.max_delay))
    carry, length = next(((name, str(each)) for name, each in (view.carry_over or {}).items()), (carry, length))
    return {
        **found,
        **{"name": f"{view.name.removesuffix(' (corrected)')} (corrected)", "arms": "\n".join(view.arms)},
        **{"carry": carry, "length": length, "source": view.id},
        "player": "advised" if view.player == "model" else view.player,
        "units": "" if view.units == ["1"] else "\n".join(view.units),
    }


def field_of(refusal: Refused) -> str:
    """Return the field of the form for a new experiment that a refusal is about, or "".

    >>> field_of(Refused("invalid", "must be longer", field="carry_over.window"))
    'length'
    """
    known = {name: name for name in BLANK} | dict.fromkeys((*LENGTHS, "carry_over"), "length")
    return next((known[part] for part in reversed(refusal.field.split(".")) if part in known), "")
