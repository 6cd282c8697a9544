"""The commands of an experiment, as plain values.

Field values are validated when a request is read (`errors.checked` with a model of `messages.py`); an experiment checks
only the rules that depend on its state.
"""

from collections.abc import Sequence
from itertools import groupby
from types import EllipsisType
from typing import Any, NamedTuple, TypedDict, get_args

from aftereffect.core.checks import shown
from aftereffect.service.errors import Corrupt, Refused
from aftereffect.service.experiment.round import Row
from aftereffect.service.messages import MOST_BULK, ReportItem
from aftereffect.service.settings import ExperimentSettings


class Start(NamedTuple):
    """Start a draft."""


class Ask(NamedTuple):
    """Open the next round, or return the open one. unit: whose arm to return, by default the first without a report."""

    unit: str | None = None


class Tell(NamedTuple):
    """Report the total of a round; None closes it as missing. ahead: even before the date of the round.

    next: then open the next round, if this report closes the round. The writer makes that an Ask of its own.
    """

    round: int
    total: float | None
    unit: str | None = None
    ahead: bool = True
    next: bool = False


class Reports(NamedTuple):
    """Report several rounds in order, all or none; `Experiment.report` makes it asks and tells, which are logged.

    restate: another total for a round that has one is a correction, not a conflict.
    """

    items: Sequence[ReportItem]
    ahead: bool = True
    next: bool = False
    restate: bool = False


class Amend(NamedTuple):
    """Correct a report, or add a late one. was: the total to be corrected, ... for any."""

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


class Note(NamedTuple):
    """Write a note on a round, in place of an earlier one; None removes it."""

    round: int
    note: str | None
    unit: str | None = None


class Inherit(NamedTuple):
    """Begin with the rounds of another experiment, `source`, whose settings were wrong.

    rounds: for each, its date, when it was asked for, and for each unit [arm, probability, total, told_at, note], where
    the arm is an index and told_at is None without a report. pauses: [first, last] for each pause, where `last` is the
    latest round opened before it, and `first` the earliest that was not reported before it. skipped: as in `State`.
    """

    source: str
    rounds: list[list[Any]]
    pauses: list[list[int]]
    skipped: list[list[int]]


class Remember(NamedTuple):
    """Begin with what another experiment, `source`, has seen, so that a model learns from it too.

    arms, totals: of each of its rounds and units; an arm is an index, or -1 if no arm of this experiment was played.
    A total is None if it is missing, or holds effects of an arm that this experiment does not have.
    """

    source: str
    arms: list[list[int]]
    totals: list[list[float | None]]


Command = Start | Ask | Tell | Amend | Pause | Resume | Away | Back | Finish | Note | Inherit | Remember

OfRound = Tell | Amend | Note
KINDS: dict[str, Any] = {kind.__name__.lower(): kind for kind in get_args(Command)}


class Event(TypedDict):
    """What a command has changed, as it is stored. body: what the command asked for and what followed, as JSON."""

    kind: str
    round: int | None
    unit: str | None
    body: dict[str, Any]
    at: str


def from_event(event: Event) -> Command:
    """Return the command that produced a stored event.

    >>> told = {"total": 0.5, "status": "reported"}
    >>> from_event({"kind": "tell", "round": 3, "unit": "1", "body": told, "at": "2026-01-01T20:00:00Z"})
    Tell(round=3, total=0.5, unit='1', ahead=True, next=False)
    """
    kind = KINDS.get(event["kind"])
    if kind is None:
        raise Corrupt(f"kind must be one of {', '.join(KINDS)}, but got {event['kind']!r}")
    given = {**event["body"], "round": event["round"], "unit": event["unit"]}
    command: Command = kind(*(given[name] for name in kind._fields if name not in ("was", "ahead", "next")))
    return command


def inherit(
    source: str,
    settings: ExperimentSettings,
    rows: Sequence[Row],
    pauses: Sequence[tuple[int, str]],
    skipped: list[list[int]],
) -> Inherit:
    """Return the command by which an experiment with these settings takes over the rounds of another.

    rows: those of the other experiment, by round and unit. pauses: the latest round before each, and its time. skipped:
    as in `State`.
    """
    arms = {name: i for i, name in enumerate(settings.arms)}
    if len(rows) > MOST_BULK:
        raise Refused("invalid", f"at most {MOST_BULK:,} reports can be inherited, but there are {len(rows):,}")
    if unknown := {row["arm"] for row in rows} - {*arms}:
        detail = f"arms must include all that were played, but {shown(min(unknown))} is missing"
        raise Refused("invalid", detail, field="arms")
    if units := {row["unit"] for row in rows} ^ {*settings.units} if rows else set():
        detail = f"units must be those of the rounds inherited, but {shown(min(units))} is not in both"
        raise Refused("invalid", detail, field="units")
    rounds: list[list[Any]] = []
    for _, units_of in groupby(rows, key=lambda row: row["round"]):
        told = list(units_of)
        fields = ("probability", "total", "told_at", "note")
        reports = [[arms[row["arm"]], *(row[name] for name in fields)] for row in told]
        rounds.append([told[0]["date"], told[0]["asked_at"], reports])
    if settings.horizon is not None and settings.horizon <= len(rounds):
        rule = f"horizon must be more than the {len(rounds)} rounds inherited"
        raise Refused("invalid", f"{rule}, but got {settings.horizon}", field="horizon")
    # A round that was open at the pause, or not reported since, may have been played after it.
    late = [any((report[3] or at) >= at for report in rounds[last - 1][2]) if last else False for last, at in pauses]
    begun = [[last + (not open), last] for (last, _), open in zip(pauses, late, strict=True)]
    return Inherit(source, rounds, begun, skipped)
