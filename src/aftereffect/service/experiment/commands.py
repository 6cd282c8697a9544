"""What can be done to an experiment, as plain values.

Their fields are checked where they come in (`errors.checked` with a request of `messages.py`); an experiment checks
only what depends on its state.
"""

from collections.abc import Mapping
from types import EllipsisType
from typing import Any, NamedTuple

from aftereffect.service.errors import Corrupt


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
    """Correct a report, or bring a late one, while its block is open. was: the total to be corrected, ... for any."""

    round: int
    total: float | None
    unit: str | None = None
    was: float | EllipsisType | None = ...


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

KINDS: dict[str, Any] = {
    kind.__name__.lower(): kind for kind in (Start, Ask, Tell, Amend, Pause, Resume, Away, Back, Finish)
}


def from_event(event: Mapping[str, Any]) -> Command:
    """Return the command that a stored event came from.

    >>> from_event({"kind": "tell", "round": 3, "unit": "1", "body": {"total": 0.5, "status": "reported"}})
    Tell(round=3, total=0.5, unit='1')
    """
    kind = KINDS.get(event["kind"])
    if kind is None:
        raise Corrupt(f"kind must be one of {', '.join(KINDS)}, but got {event['kind']!r}")
    names = [name for name in kind._fields if name != "was"]
    command: Command = kind(*(event[name] if name in ("round", "unit") else event["body"][name] for name in names))
    return command
