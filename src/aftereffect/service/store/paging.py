"""Cursors: where a page of a list begins, as text that clients pass back unread."""

from typing import Any

from aftereffect.core import checks
from aftereffect.core.errors import AftereffectError
from aftereffect.service.errors import Refused

MOST = 1000
"""The longest page."""
BEYOND = 2**31 - 1
LARGEST = 2**63 - 1


def limited(limit: Any, most: int = MOST) -> int:
    """Return the length of a page, or refuse."""
    return whole("limit", limit, 1, most)


def whole(name: str, value: Any, low: int, high: int = LARGEST) -> int:
    """Return a whole number in a range, or refuse."""
    try:
        return checks.integer(name, value, low=low, high=high)
    except AftereffectError as error:
        raise Refused("invalid", str(error)) from None


def read_cursor(after: Any) -> tuple[int, int]:
    """Return (round, unit index) after which a page begins; "ROUND" stands for all units of that round.

    >>> read_cursor(None), read_cursor("7.1"), read_cursor(7) == (7, BEYOND)
    ((0, 2147483647), (7, 1), True)
    """
    if after is None:
        return 0, BEYOND
    try:
        if isinstance(after, bool):
            raise ValueError
        round_, _, unit = str(after).partition(".")
        parts = [int(part) for part in (round_, unit or str(BEYOND)) if part.isascii() and part.isdigit()]
        if len(parts) != 2 or max(parts[0] - LARGEST, parts[1] - BEYOND) > 0:
            raise ValueError
    except ValueError:
        raise Refused("invalid", f"after must be ROUND or ROUND.UNIT, but got {checks.shown(after)}") from None
    return parts[0], parts[1]


def write_cursor(round_: int, unit_index: int, n_units: int) -> str:
    """Return the cursor that stands after a row.

    >>> write_cursor(7, 1, 3), write_cursor(7, 2, 3)
    ('7.1', '7')
    """
    return str(round_) if unit_index == n_units - 1 else f"{round_}.{unit_index}"
