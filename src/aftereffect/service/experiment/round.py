"""A round of an experiment: its row in the record, its date, and the rounds kept in memory.

All units share the rounds; in each round a unit has its arm, its total and the status of its report:
open → reported | missing | void or clipped (the total is outside the possible range). A withheld total is recorded, but
passed to the learner as missing: in the warm-up after a pause, when it mixes effects of an arm and of its substitute,
and when an inherited round played another arm than the learner would have.
"""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from aftereffect.service import messages
from aftereffect.service.settings import ExperimentSettings

Row = dict[str, Any]
"""A row as plain data, with the fields of `messages.StoredRow`, in their order."""
ROW = tuple(messages.StoredRow.model_fields)


class Report(NamedTuple):
    """The report of one unit for a round, with its time."""

    total: float | None = None
    status: messages.Status = "open"
    told_at: str | None = None


@dataclass(slots=True)
class Round:
    """A round. Each sequence has one entry per unit; arms are indices.

    block: its number, 0 in the opening. drawn: the arms drawn by the learner; arms: the arms played; probabilities:
    those with which `arms` were drawn.
    measured: whether the total was learned from at the end of its block; None until that is known. fed: the loss fed
    to the learner for each unit, if the round ended with an update. warm: in the warm-up after a pause. inherited: the
    round was played in an experiment with other settings; `drawn` are the arms that these settings would have played.
    notes: empty if there are none.

    Only `reports` and `notes` are modified in place; the other fields are replaced.
    """

    number: int
    block: int
    block_start: int
    asked_at: str
    date: str | None
    drawn: Sequence[int]
    arms: Sequence[int]
    probabilities: Sequence[float]
    withheld: Sequence[bool]
    measured: Sequence[bool | None]
    fed: Sequence[float | None]
    reports: list[Report]
    update: bool = False
    warm: bool = False
    inherited: bool = False
    notes: list[str | None] = field(default_factory=list)

    def row(self, settings: ExperimentSettings, u: int) -> Row:
        """Return the row of this round for unit u."""
        total, status, told_at = self.reports[u]
        return {
            "round": self.number,
            "unit": settings.units[u],
            "arm": settings.arms[self.arms[u]],
            "total": total,
            "status": status,
            "draw": self.number == self.block_start,
            "block": self.block,
            "block_start": self.block_start,
            "probability": self.probabilities[u],
            "washin": self.block > 0 and self.number - self.block_start < settings.max_delay,
            "measured": self.measured[u],
            "update": self.update,
            "fed": self.fed[u],
            "date": self.date,
            "substituted": self.arms[u] != self.drawn[u] and not self.inherited,
            "reason": self._reason(u),
            "drawn": settings.arms[self.drawn[u]],
            "withheld": self.withheld[u],
            "asked_at": self.asked_at,
            "told_at": told_at,
            "note": self.notes[u] if self.notes else None,
        }

    def rows(self, settings: ExperimentSettings) -> list[Row]:
        """Return the rows of all units."""
        return [self.row(settings, u) for u in range(len(settings.units))]

    def _reason(self, u: int) -> messages.Reason:
        """Return why unit u plays its arm, or its total is withheld."""
        if self.inherited:
            return "inherited"
        if self.arms[u] != self.drawn[u]:
            return "substitute"
        if self.block == 0:
            return "opening"
        if self.warm:
            return "warm_up"
        return "mixed" if self.withheld[u] else "learner"

    def state(self) -> list[Any]:
        """Return the round as a list of plain JSON values."""
        *before, reports, update, warm, inherited, notes = _fields(self)
        return [*before, [*map(list, reports)], update, warm, inherited, [*notes]]

    @classmethod
    def from_state(cls, state: list[Any]) -> "Round":
        """Restore a round from the result of `state`."""
        found = cls(*state)
        found.reports = [Report(*report) for report in found.reports]
        return found


_fields = attrgetter(*Round.__slots__)


class RecentRounds:
    """The rounds kept in memory, by number: those of the open block and a few before it.

    If missing reports make a block very long, only its latest `CELLS` reports are kept, or its latest `LONG` times d+1
    rounds if that is more. The window learned from at the end of a block starts earlier than that once in about five
    million blocks, e^(−0.4(LONG − 1)); `measured` of the rounds dropped by then stays None.
    """

    CELLS = 4096
    LONG = 40

    def __init__(self, max_delay: int, n_units: int, rounds: Sequence[Round] = ()) -> None:
        self._least = max(max_delay + 1, min(4, self.CELLS // n_units))
        self._most = max(self._least, self.CELLS // n_units, self.LONG * (max_delay + 1))
        self.rounds = {played.number: played for played in rounds}

    def add(self, played: Round) -> None:
        """Add a round and drop those no longer needed."""
        rounds = self.rounds
        rounds[played.number] = played
        while len(rounds) > self._least and (next(iter(rounds)) < played.block_start or len(rounds) > self._most):
            del rounds[next(iter(rounds))]

    def since(self, number: int) -> list[Round]:
        """Return the rounds in memory from this number on."""
        return [played for t, played in self.rounds.items() if t >= number]

    def state(self) -> list[list[Any]]:
        """Return the rounds as JSON."""
        return [played.state() for played in self.rounds.values()]


def with_block(row: Row, block: Iterable[Row]) -> Row:
    """Return a row with what a correction needs after the end of its block.

    block: the rows of the unit in that block, and those of all units in its last round. totals: those of the unit that
    were learned from. units: the number of units that were learned from.
    """
    block = list(block)
    totals = [each["total"] for each in block if each["unit"] == row["unit"] and each["measured"]]
    return {**row, "totals": totals, "units": sum(each["fed"] is not None for each in block)}


def date_of(settings: ExperimentSettings, number: int, at: str, shift: int) -> str | None:
    """Return the date of a round: the start date plus the earlier rounds and `shift`, the days of all pauses.

    Without a start date it is the date of `at`, when the round was opened. None for dates after the year 9999.
    """
    if settings.start_date is None:
        return at[:10]
    return later(settings.start_date, int((number - 1) * settings.round_length) + shift)


def later(date: str, days: int) -> str | None:
    """Return the date so many days later; None after the year 9999."""
    day = datetime.date.fromisoformat(date).toordinal() + days
    return datetime.date.fromordinal(day).isoformat() if day <= datetime.date.max.toordinal() else None


def whole_between(begun: str, ended: str, days: float = 1.0) -> int:
    """Return how many whole periods of so many days are between two times in ISO 8601 format; 0 if none is."""
    elapsed = datetime.datetime.fromisoformat(ended) - datetime.datetime.fromisoformat(begun)
    return max(int(elapsed / datetime.timedelta(days=days)), 0)
