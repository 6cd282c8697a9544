"""What the service answers, as frozen dataclasses: the same whether a server or the local file spoke.

Each carries the fields a program needs, typed, and the whole answer as it came in `.data`, so that a newer server's
additional fields are not lost.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar

from aftereffect.core.checks import shown
from aftereffect.core.errors import AftereffectError

Json = Mapping[str, Any]


class UnreadableAnswer(AftereffectError):
    """An answer lacks a field that it must have: the other side is not this service, or far older."""


@dataclass(frozen=True)
class Turn:
    """What to play now: the arm of one unit in the open round, and why.

    `draw` says that the arm was drawn anew in this round, `washin` that effects of the arm before may still arrive,
    `measured` whether the round's total counts (None: known once the block has ended). With several units and none
    named, `arms` holds the arm of each.
    """

    round: int
    arm: str
    unit: str | None = None
    draw: bool | None = None
    block: int | None = None
    probability: float | None = None
    washin: bool | None = None
    measured: bool | None = None
    why: str = ""
    date: str | None = None
    arms: Mapping[str, str] | None = None
    experiment: str | None = None
    data: Json = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Report:
    """What became of a total: `status` is "reported", "missing" or "void" (outside the range).

    `update` says that the block ended with this report and was learned from, `repeated` that it was known already.
    """

    round: int
    total: float | None = None
    unit: str | None = None
    arm: str | None = None
    status: str | None = None
    update: bool | None = None
    repeated: bool | None = None
    state: str | None = None
    open_round: int | None = None
    experiment: str | None = None
    data: Json = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Overview:
    """An experiment as a person sees it: settings, state, what has been learned, what is guaranteed."""

    id: str
    name: str
    state: str
    arms: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    direction: str = "maximize"
    low: float | None = None
    high: float | None = None
    max_delay: int | None = None
    horizon: int | None = None
    player: str | None = None
    seed: int | None = None
    round: int = 0
    open_round: int | None = None
    updates: int | None = None
    block: int | None = None
    away: tuple[str, ...] = ()
    probabilities: Mapping[str, float] = field(default_factory=dict)
    plays: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    alarms: tuple[str, ...] = ()
    plan: Json = field(default_factory=dict)
    guarantee: Json = field(default_factory=dict)
    winner: Json | None = None
    data: Json = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Row:
    """One unit's round in the record."""

    round: int
    arm: str
    unit: str | None = None
    total: float | None = None
    status: str | None = None
    draw: bool | None = None
    block: int | None = None
    probability: float | None = None
    washin: bool | None = None
    measured: bool | None = None
    update: bool | None = None
    date: str | None = None
    data: Json = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Verdict:
    """What replaying one experiment's log found: `ok`, or the first thing that differs in `finding`."""

    experiment: str
    ok: bool
    rounds: int | None = None
    finding: str | None = None
    data: Json = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Page:
    """A part of a list; `next` is where the following page starts, None at the end."""

    items: tuple[Any, ...]
    next: str | None = None


Answer = TypeVar("Answer", Turn, Report, Overview, Row, Verdict)


def read(kind: type[Answer], data: Any) -> Answer:
    """Return an answer as a dataclass.

    >>> read(Turn, {"round": 3, "arm": "letter", "why": "drawn anew"}).arm
    'letter'
    """
    if not isinstance(data, Mapping):
        raise UnreadableAnswer(f"an answer must be a JSON object, but got {shown(data)}")
    given: dict[str, Any] = {"data": data}
    for part in fields(kind):
        if part.name == "data":
            continue
        if part.name in data:
            value = data[part.name]
            given[part.name] = tuple(value) if isinstance(value, list) else value
        elif part.default is MISSING and part.default_factory is MISSING:
            raise UnreadableAnswer(f"an answer must have the field {part.name!r}, but got {shown(dict(data))}")
    return kind(**given)


def read_page(kind: type[Answer], data: Any) -> Page:
    """Return one page of a list, its items as dataclasses."""
    if not isinstance(data, Mapping) or not isinstance(data.get("items"), list):
        raise UnreadableAnswer(f"a page must have a list of items, but got {shown(data)}")
    following = data.get("next")
    return Page(tuple(read(kind, item) for item in data["items"]), None if following is None else str(following))
