"""One round of an experiment, the row that shows it, its date, and the recent rounds.

A round is common to all units; each unit has its arm, its total and the status of its report:
open → reported | missing | void (a total that the range makes impossible). A withheld total is recorded, but the
learner takes it as missing: in the warm-up after a pause, and where effects of an arm and of its substitute mix.
"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from aftereffect.service import messages
from aftereffect.service.settings import ExperimentSettings

OPEN, REPORTED, MISSING, VOID = "open", "reported", "missing", "void"

Row = dict[str, Any]
"""A row as plain data, with the fields of `messages.Row`, in their order."""
ROW = tuple(messages.Row.model_fields)


class Report(NamedTuple):
    """What a unit reported for a round, and when."""

    total: float | None = None
    status: str = OPEN
    told_at: str | None = None


@dataclass(slots=True)
class Round:
    """A round: sequences run over the units; arms are indices.

    drawn: what the learner drew; arms: what is played; probabilities: those the arms were drawn with. measured:
    whether the total was among those that were learned from at the end of its block, None while that is not known.
    fed: the loss each unit fed, if the round ended with an update. warm: in the warm-up after a pause.

    Only `reports` is changed in place; the others are replaced.
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

    def row(self, settings: ExperimentSettings, u: int) -> Row:
        """Return what people see of this round in unit u."""
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
            "washin": self.number - self.block_start < settings.max_delay,
            "measured": self.measured[u],
            "update": self.update,
            "fed": self.fed[u],
            "date": self.date,
            "substituted": self.arms[u] != self.drawn[u],
            "why": self._why(settings, u),
            "asked_at": self.asked_at,
            "told_at": told_at,
        }

    def rows(self, settings: ExperimentSettings) -> list[Row]:
        """Return the rows of all units."""
        return [self.row(settings, u) for u in range(len(settings.units))]

    def _why(self, settings: ExperimentSettings, u: int) -> str:
        """Return why unit u plays its arm in this round, and what becomes of its total."""
        d, arm = settings.max_delay, settings.arms[self.arms[u]]
        place, block = self.number - self.block_start + 1, self.block
        if self.arms[u] != self.drawn[u]:
            gone = settings.arms[self.drawn[u]]
            then = f"{gone} is credited with what {arm} brings"
            if self.withheld[u]:
                then = "earlier effects still arrive, so this total is recorded but not learned from"
            return f"{gone} is away, so {arm} is played in its place; {then}."
        if self.warm:
            return f"{arm}, round {place} of block {block}: warm-up after a pause, recorded but not learned from."
        if self.withheld[u]:
            return (
                f"{arm}, round {place} of block {block}: effects of a substitute still arrive, so this total is "
                "recorded but not learned from."
            )
        drawn = f"{arm} was drawn with probability {self.probabilities[u]:.3f}"
        if d == 0:
            return f"{drawn}; effects do not linger, so every round counts."
        # An update needs d zeros before its coin, the paper's 2d.
        shortest = (1 if settings.player == "default" else 2) * d + 1
        if place == 1:
            return f"{drawn} for block {block} and stays for at least {shortest} rounds."
        if place <= d:
            still = "effects are still building up" if block == 1 else "effects of earlier rounds still arrive"
            return f"{arm} stays: wash-in, round {place} of block {block}; {still}, so this total is not measured."
        if place < shortest:
            return f"{arm} stays: round {place} of block {block}, which lasts at least {shortest} rounds."
        last = "rounds" if settings.player == "default" else f"{d + 1} rounds"
        return f"{arm} stays: round {place} of block {block}, which may end any round now; its last {last} count."

    def state(self) -> list[Any]:
        """Return the round as a list of plain JSON values."""
        return [[*map(list, self.reports)] if name == "reports" else getattr(self, name) for name in self.__slots__]

    @classmethod
    def from_state(cls, state: list[Any]) -> "Round":
        """Read back what `state` returned."""
        found = cls(*state)
        found.reports = [Report(*report) for report in found.reports]
        return found


class RecentRounds:
    """The rounds that may still matter, by number: the open block and a few before.

    Of a block without end, as many missing reports make it, the latest `CELLS` reports are kept, or the latest
    `LONG` times d+1 rounds if that is more. The totals learned from at a block's end reach further back than that once
    in five million blocks, e^(−0.4(LONG − 1)); what is forgotten then stays unknown.
    """

    CELLS = 4096
    LONG = 40

    def __init__(self, max_delay: int, n_units: int, rounds: Sequence[Round] = ()) -> None:
        self._least = max(max_delay + 1, min(4, self.CELLS // n_units))
        self._most = max(self._least, self.CELLS // n_units, self.LONG * (max_delay + 1))
        self.rounds = {played.number: played for played in rounds}
        self._oldest = min(self.rounds, default=1)

    def add(self, played: Round) -> None:
        """Remember a round and forget those that no longer matter."""
        rounds = self.rounds
        rounds[played.number] = played
        while len(rounds) > self._least and (self._oldest < played.block_start or len(rounds) > self._most):
            del rounds[self._oldest]
            self._oldest += 1

    def since(self, number: int) -> list[Round]:
        """Return the rounds from this one on that are remembered."""
        return [self.rounds[t] for t in range(max(number, self._oldest), self._oldest + len(self.rounds))]

    def state(self) -> list[list[Any]]:
        """Return the rounds as JSON."""
        return [played.state() for played in self.rounds.values()]


def date_of(settings: ExperimentSettings, number: int, at: str, shift: int) -> str | None:
    """Return the date of a round: the start date plus the rounds before it and the days of all pauses, `shift`.

    Without a start date it is the day on which the round is asked for; None where the calendar ends.
    """
    if settings.start_date is None:
        return at[:10]
    first = datetime.date.fromisoformat(settings.start_date).toordinal()
    day = first + int((number - 1) * settings.round_length) + shift
    return datetime.date.fromordinal(day).isoformat() if day <= datetime.date.max.toordinal() else None


def days_between(begun: str, ended: str) -> int:
    """Return the whole days from one moment to a later one, both as ISO texts."""
    return max((datetime.datetime.fromisoformat(ended) - datetime.datetime.fromisoformat(begun)).days, 0)
