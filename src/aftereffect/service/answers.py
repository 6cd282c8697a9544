"""What a command gives back, and the small checks that every command shares."""

import hashlib
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from aftereffect.core import checks
from aftereffect.core.errors import AftereffectError
from aftereffect.service.errors import Refused
from aftereffect.service.progress import Progress
from aftereffect.service.rounds import Row
from aftereffect.service.settings import LARGEST, number

FEW = 16
"""Up to so many probabilities stand in an event as they are, more as their SHA-256."""


class Done(NamedTuple):
    """What a command did. event: what to store, None if nothing is new. rows: the round rows that changed."""

    answer: dict[str, Any]
    event: dict[str, Any] | None
    rows: list[Row]


def event(
    kind: str, at: str, body: dict[str, Any], round: int | None = None, unit: str | None = None
) -> dict[str, Any]:
    """Return an event as it is stored."""
    return {"kind": kind, "round": round, "unit": unit, "body": body, "at": at}


def fingerprint(probabilities: Sequence[float]) -> list[float] | str:
    """Return probabilities so that two of them are equal if and only if every bit is."""
    if len(probabilities) <= FEW:
        return list(probabilities)
    return hashlib.sha256(struct.pack(f"<{len(probabilities)}d", *probabilities)).hexdigest()


def checked_total(total: Any) -> float | None:
    """Return a total from outside as a finite float, or None for a missing one."""
    if total is None:
        return None
    try:
        return number("total", total)
    except AftereffectError as error:
        raise Refused("invalid", str(error)) from None


def checked_round(progress: Progress, value: Any) -> int:
    """Return the number of a round that has been opened."""
    if type(value) is int and 0 < value <= progress.last:
        return value
    try:
        found = checks.integer("round", value, low=1, high=LARGEST)
    except AftereffectError as error:
        raise Refused("invalid", str(error)) from None
    if found > progress.last:
        latest = f"the latest is {progress.last}" if progress.last else "none is"
        raise Refused("not_open", f"round must be open to be reported, but got {found} and {latest}", round=found)
    return found


def checked_unit(progress: Progress, unit: Any) -> int:
    """Return the index of a unit; it may be left out where there is only one."""
    if unit is None:
        if progress.n_units > 1:
            units = checks.shown(list(progress.settings.units))
            raise Refused("invalid", f"unit must be given, one of {units}, but it is missing")
        return 0
    if isinstance(unit, int) and not isinstance(unit, bool):
        unit = str(unit)
    found = progress.unit_index.get(unit) if isinstance(unit, str) else None
    if found is None:
        units = checks.shown(list(progress.settings.units))
        raise Refused("invalid", f"unit must be one of {units}, but got {checks.shown(unit)}")
    return found
