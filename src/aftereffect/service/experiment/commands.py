"""The commands of an experiment, as plain values.

Field values are validated when a request is read (`errors.checked` with a model of `messages.py`); an experiment checks
only the rules that depend on its state.
"""

from collections.abc import Mapping
from types import EllipsisType
from typing import Any, NamedTuple

from aftereffect.service.errors import Corrupt


class Start(NamedTuple):
    """Start a draft."""


class Ask(NamedTuple):
    """Open the next round, or return the open one. unit: whose arm to return, by default the first without a report."""

    unit: str | None = None


class Tell(NamedTuple):
    """Report the total of a round; None closes it as missing."""

    round: int
    total: float | None
    unit: str | None = None


class Amend(NamedTuple):
    """Correct a report, or add a late one, while its block is open. was: the total to be corrected, ... for any."""

    round: int
    total: float | None
    unit: str | None = None
    was: float | EllipsisType | None = ...


class Pause(NamedTuple):
    """Pause: no round opens until Resume."""


class Resume(NamedTuple):
    """Resume after a pause, with max_delay warm-up rounds."""


class Away(NamedTuple):
    """Mark an arm as unavailable."""

    arm: str


class Back(NamedTuple):
    """Mark an arm as available again."""

    arm: str


class Finish(NamedTuple):
    """End the experiment."""


Command = Start | Ask | Tell | Amend | Pause | Resume | Away | Back | Finish

KINDS: dict[str, Any] = {
    kind.__name__.lower(): kind for kind in (Start, Ask, Tell, Amend, Pause, Resume, Away, Back, Finish)
}


def from_event(event: Mapping[str, Any]) -> Command:
    """Return the command that produced a stored event.

    >>> from_event({"kind": "tell", "round": 3, "unit": "1", "body": {"total": 0.5, "status": "reported"}})
    Tell(round=3, total=0.5, unit='1')
    """
    kind = KINDS.get(event["kind"])
    if kind is None:
        raise Corrupt(f"kind must be one of {', '.join(KINDS)}, but got {event['kind']!r}")
    names = [name for name in kind._fields if name != "was"]
    command: Command = kind(*(event[name] if name in ("round", "unit") else event["body"][name] for name in names))
    return command
