"""What can be done to an experiment, as plain values that can be written to a log and read back."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from aftereffect.service.errors import Refused


class Start(NamedTuple):
    """Let a draft run."""


class Ask(NamedTuple):
    """Open the next round, or return the open one. unit: whose arm is wanted; None takes the first one not yet told."""

    unit: str | None = None


class Tell(NamedTuple):
    """Report the total of a round; None closes it as missing."""

    round: int
    total: float | None
    unit: str | None = None


class Amend(NamedTuple):
    """Correct a report, or bring a late one, while its block is open."""

    round: int
    total: float | None
    unit: str | None = None


class Pause(NamedTuple):
    """Open no more rounds until resumed."""


class Resume(NamedTuple):
    """Go on after a pause, with max_delay warm-up rounds."""


class Away(NamedTuple):
    """An arm cannot be played for now."""

    arm: str


class Back(NamedTuple):
    """An arm that was away can be played again."""

    arm: str


class Finish(NamedTuple):
    """End the experiment."""


Command = Start | Ask | Tell | Amend | Pause | Resume | Away | Back | Finish

KINDS: dict[str, type[Any]] = {
    "start": Start,
    "ask": Ask,
    "tell": Tell,
    "amend": Amend,
    "pause": Pause,
    "resume": Resume,
    "away": Away,
    "back": Back,
    "finish": Finish,
}
NAMES = {cls: kind for kind, cls in KINDS.items()}


def to_json(command: Command) -> dict[str, Any]:
    """Return a command as plain JSON.

    >>> to_json(Tell(3, 0.5))
    {'kind': 'tell', 'round': 3, 'total': 0.5, 'unit': None}
    """
    return {"kind": NAMES[type(command)], **command._asdict()}


def from_json(fields: Mapping[str, Any]) -> Command:
    """Read back what `to_json` wrote; what the values may be is checked when the command is carried out."""
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise Refused("invalid", f"kind must be one of {', '.join(KINDS)}, but got {kind!r}")
    cls = KINDS[kind]
    given = {name: value for name, value in fields.items() if name != "kind"}
    unknown = sorted(set(given) - set(cls._fields))
    if unknown:
        raise Refused("invalid", f"a command of kind {kind!r} has no field {unknown[0]!r}, but it is there")
    missing = [name for name in cls._fields if name not in given and name not in cls._field_defaults]
    if missing:
        raise Refused("invalid", f"a command of kind {kind!r} must have the field {missing[0]!r}, but it is missing")
    command: Command = cls(**given)
    return command
