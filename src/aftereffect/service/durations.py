"""Lengths of time in people's words: "7 days", "36 hours", or a number of days; and a carry-over in rounds."""

import math
import re
from typing import Any

from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument

DAYS = {
    "second": 1 / 86_400,
    "minute": 1 / 1_440,
    "hour": 1 / 24,
    "day": 1.0,
    "week": 7.0,
    "month": 365.25 / 12,
    "quarter": 365.25 / 4,
    "year": 365.25,
}
LONGEST = 36_525.0
"""A century, in days."""
LEFT_OVER = 0.05
"""The share of an effect with a half-life that may still come after max_delay rounds."""
MOST_ROUNDS = 10_000

LONGEST_WORDS = 100
_WORDS = re.compile(r"(?:(\d{1,9}(?:\.\d{1,9})?|an?)\s*)?([a-z]+?)s?", re.IGNORECASE | re.ASCII)


def days(name: str, value: Any) -> float:
    """Return a length of time in days, more than 0 and at most a century.

    >>> days("window", "2 weeks"), days("window", "36 hours"), days("window", 7), days("window", "a day")
    (14.0, 1.5, 7.0, 1.0)
    """
    if not isinstance(value, str):
        return checks.real(name, value, above=0.0, high=LONGEST)
    match = _WORDS.fullmatch(value.strip()) if len(value) <= LONGEST_WORDS else None
    unit = match.group(2).lower() if match else ""
    if match is None or unit not in DAYS:
        raise InvalidArgument(
            f"{name} must be a number of days or words like '7 days' ({', '.join(DAYS)}), but got {checks.shown(value)}"
        )
    number = match.group(1)
    count = 1.0 if number is None or number[0] in "aA" else float(number)
    return checks.real(name, count * DAYS[unit], above=0.0, high=LONGEST)


def said(length: float) -> str:
    """Return a number of days in words.

    >>> said(14.0), said(1.0), said(0.25), said(10.0)
    ('2 weeks', '1 day', '6 hours', '10 days')
    """
    for unit in ("week", "day", "hour", "minute"):
        count = length / DAYS[unit]
        if count >= 1.0 and math.isclose(count, round(count), rel_tol=1e-9):
            return f"{round(count)} {unit}" + ("" if round(count) == 1 else "s")
    return f"{length:.3g} days"


def rounds_of_carry_over(*, window: Any = None, half_life: Any = None, round_days: Any = 1.0) -> int:
    """Return d for a carry-over given as a window or as a half-life, in days or in words.

    A window of w days reaches ⌈w/r⌉ rounds of r days past its own, whenever in its round the action was. With a
    half-life h the share 2^(−dr/h) of an effect comes later than d rounds on; d is the least that leaves 5% or less.
    What comes later breaks the assumption of the guarantee by that much.

    >>> rounds_of_carry_over(window="7 days"), rounds_of_carry_over(window="9 weeks", round_days=7)
    (7, 9)
    >>> rounds_of_carry_over(half_life="2 days")
    9
    """
    if (window is None) == (half_life is None):
        raise InvalidArgument(
            f"carry_over must have exactly one of window and half_life, but got window={checks.shown(window)} and "
            f"half_life={checks.shown(half_life)}"
        )
    length = days("round_length", round_days)
    halvings = math.log2(1.0 / LEFT_OVER)
    reach = days("half_life", half_life) * halvings if window is None else days("window", window)
    # Seven days in rounds of a seventh of a week are 7 rounds, whatever the last bit says.
    rounds = math.ceil(reach / length - 1e-9)
    if rounds > MOST_ROUNDS:
        raise InvalidArgument(f"carry_over must reach at most {MOST_ROUNDS} rounds, but got {rounds}")
    return rounds
