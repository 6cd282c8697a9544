"""Reading the parts of a study: grids, checkpoints, and the tables of instances and players."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from aftereffect.core import checks
from aftereffect.studies.errors import InvalidStudy
from aftereffect.studies.settings import checked

LEAST = {"n_arms": 2, "max_delay": 0, "horizon": 1}
"""The lists of a grid, and the least number each may hold."""

EXTRA = {"instance": ("label", "grid"), "player": ("label", "on", "grid", "runs", "max_delay", "max_delay_factor")}
"""Keys of an instance's or a player's table that are not settings."""


class Entry(NamedTuple):
    """An instance or player of a study: settings with its name, and what is no part of a cell.

    grid: an instance's own lists, or the only sizes at which a player plays.
    on: the names or labels of the instances a player plays, None for all. runs: a player's, at most so many.
    max_delay, factor: the d a player reckons with, or its ratio to the losses' d; None for theirs.
    """

    settings: dict[str, Any]
    label: str
    grid: dict[str, list[int]]
    on: tuple[str, ...] | None
    max_delay: int | None
    factor: float | None
    runs: int | None = None

    def plays(self, instance: "Entry") -> bool:
        """Say whether this player plays that instance."""
        return self.on is None or instance.label in self.on or instance.settings["name"] in self.on

    def has(self, **sizes: int) -> bool:
        """Say whether this player plays at these sizes."""
        return all(sizes[name] in listed for name, listed in self.grid.items())

    def reckons(self, max_delay: int) -> int:
        """Return the d this player reckons with where the losses have `max_delay`."""
        if self.factor is not None:
            return math.floor(self.factor * max_delay)
        return max_delay if self.max_delay is None else self.max_delay


def text(name: str, value: Any) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise InvalidStudy(f"{name} must be text, but got {checks.shown(value)}")
    return value


def table(name: str, value: Any) -> Mapping[str, Any]:
    """Return a table."""
    if not isinstance(value, Mapping):
        raise InvalidStudy(f"{name} must be a table, but got {checks.shown(value)}")
    return value


def numbers(name: str, value: Any, low: int) -> list[int]:
    """Return one whole number or a list of them as a list, at least one, all different.

    >>> numbers("grid.n_arms", [2, 4], 2), numbers("grid.n_arms", 3, 2)
    ([2, 4], [3])
    """
    listed = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    found = [checks.integer(name, number, low=low) for number in listed]
    if not found or len(set(found)) < len(found):
        raise InvalidStudy(f"{name} must hold at least one number, none twice, but got {checks.shown(value)}")
    return found


def lists(name: str, value: Any) -> dict[str, list[int]]:
    """Return the lists of a grid by name, those that are given."""
    given = table(name, value)
    for key in given:
        if key not in LEAST:
            raise InvalidStudy(f"{name}.{key} must be one of {', '.join(LEAST)}, but it is not")
    return {key: numbers(f"{name}.{key}", given[key], low) for key, low in LEAST.items() if key in given}


def grids(name: str, value: Any) -> list[dict[str, list[int]]]:
    """Return one grid or several, each with all its lists."""
    several = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    found = [lists(name, one) for one in several]
    for one in found:
        for key in LEAST:
            if key not in one:
                raise InvalidStudy(f"{name}.{key} must be given, but it is missing")
    if not found:
        raise InvalidStudy(f"{name} must hold at least one grid, but got {checks.shown(value)}")
    return found


def points(value: Any) -> str | int | list[int]:
    """Return checkpoints: "log", "linear", how many, or the rounds themselves."""
    if isinstance(value, str):
        return checks.choice("checkpoints", value, ("log", "linear"))
    if isinstance(value, Sequence):
        return numbers("checkpoints", value, 1)
    return checks.integer("checkpoints", value, low=1)


def entry(kind: str, given: Any) -> Entry:
    """Return an instance or player after checking its table."""
    rest = dict(table(kind, given))
    extra = {key: rest.pop(key) for key in EXTRA[kind] if key in rest}
    settings = checked(kind, rest)
    label = text(f"{kind}.label", extra.get("label", _described(settings)))
    on = None
    if "on" in extra:
        listed = [extra["on"]] if isinstance(extra["on"], str) else extra["on"]
        on = tuple(text(f"{kind}.on", name) for name in listed)
    delay, factor = extra.get("max_delay"), extra.get("max_delay_factor")
    if delay is not None and factor is not None:
        raise InvalidStudy(f"{kind}.max_delay must be left out where max_delay_factor is given, but got {delay!r}")
    return Entry(
        settings,
        label,
        lists(f"{kind}.grid", extra.get("grid", {})),
        on,
        None if delay is None else checks.integer(f"{kind}.max_delay", delay, low=0),
        None if factor is None else checks.real(f"{kind}.max_delay_factor", factor, low=0.0),
        checks.integer(f"{kind}.runs", extra["runs"], low=1) if "runs" in extra else None,
    )


def _described(settings: Mapping[str, Any]) -> str:
    """Return a label for an entry that has none.

    >>> _described({"name": "wrapper", "base": "exp3"})
    'wrapper (base exp3)'
    """
    rest = ", ".join(f"{key} {value}" for key, value in settings.items() if key != "name")
    return f"{settings['name']} ({rest})" if rest else str(settings["name"])
