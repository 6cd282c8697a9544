"""Settings as people write them: each is read in the same way from an option of the command line and a field of a form.

Only the format of numbers, durations and lists is checked here; the rules of settings are in `settings.py`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from aftereffect.service.totals import WHOLE, number, whole


def lines(name: str, text: str) -> list[str]:
    """Return the non-empty lines of a text, stripped.

    >>> lines("arms", " A \\r\\n\\r\\nB")
    ['A', 'B']
    """
    return [line.strip() for line in text.split("\n") if line.strip()]


def units(name: str, text: str) -> int | list[str]:
    """Return the number of units, or their names: in lines or, in one line, separated by commas.

    >>> units("units", "3"), units("units", "north, south"), units("units", "north\\nsouth")
    (3, ['north', 'south'], ['north', 'south'])
    """
    if WHOLE.fullmatch(text.strip()):
        return whole(name, text)
    return lines(name, text if "\n" in text.strip() else text.replace(",", "\n"))


def duration(name: str, text: str) -> float | str:
    """Return a duration: a number of days, or the text unchanged.

    >>> duration("window", "1,5"), duration("window", "2 weeks")
    (1.5, '2 weeks')
    """
    return text if re.search("[a-z]", text, re.IGNORECASE) else number(name, text)


READ: dict[str, Callable[[str, str], Any]] = {
    **dict.fromkeys(("name", "direction", "out_of_range", "player", "start_date", "measure"), lambda _, text: text),
    **dict.fromkeys(("low", "high", "gap", "noise"), number),
    **dict.fromkeys(("max_delay", "max_lag", "horizon", "seed"), whole),
    **dict.fromkeys(("window", "half_life", "round_length"), duration),
    **{"arms": lines, "units": units},
}
"""How the text of each setting, and of each guess for a plan, is read."""


def settings(given: Mapping[str, str]) -> dict[str, Any]:
    """Return settings as in a request, not validated yet; a name that is none of a setting is left out.

    >>> settings({"window": "7 days", "units": "north,south", "high": "8 421,5", "color": "red"})
    {'units': ['north', 'south'], 'high': 8421.5, 'carry_over': {'window': '7 days'}}
    """
    found = {name: READ[name](name, given[name]) for name in given if name in READ}
    if fades := {name: found.pop(name) for name in ("window", "half_life") if name in found}:
        found["carry_over"] = fades
    return found
