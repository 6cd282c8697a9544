"""One round of an experiment as it is remembered, and the row that shows it.

A round is common to all units; each unit has its arm, its total and the state of its report:
open → reported | missing | void (a total the range makes impossible). A withheld total is recorded, but the
learner takes it as missing: warm-up after a pause, or effects of two arms since one of them stands in for the other.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from aftereffect.service.experiment.learner import shortest_block
from aftereffect.service.settings import ExperimentSettings


def _why(played: "Played", settings: ExperimentSettings, u: int, washin: bool) -> str:
    """Return why unit u plays its arm in this round."""
    d, names = settings.max_delay, settings.arms
    arm = names[played.arms[u]]
    if played.arms[u] != played.drawn[u]:
        gone = names[played.drawn[u]]
        then = f"{gone} is credited with what {arm} brings"
        if played.withheld[u]:
            then = "earlier effects still arrive, so this total is recorded but not learned from"
        return f"{gone} is away, so {arm} is played in its place; {then}."
    place = played.number - played.block_start + 1
    if played.warm:
        return f"{arm}, round {place} of block {played.block}: warm-up after a pause, recorded but not learned from."
    if played.withheld[u]:
        return (
            f"{arm}, round {place} of block {played.block}: effects of a stand-in still arrive, so this total is "
            "recorded but not learned from."
        )
    if d == 0:
        return f"{arm} was drawn with probability {played.odds[u]:.3f}; effects do not linger, so every round counts."
    shortest = shortest_block(settings.player, d)
    if played.draw:
        return (
            f"{arm} was drawn with probability {played.odds[u]:.3f} for block {played.block} and stays for at least "
            f"{shortest} rounds."
        )
    if washin:
        still = "effects are still building up" if played.block == 1 else "effects of earlier rounds still arrive"
        return f"{arm} stays: wash-in, round {place} of block {played.block}; {still}, so this total is not measured."
    if place < shortest:
        return f"{arm} stays: round {place} of block {played.block}, which lasts at least {shortest} rounds."
    last = "rounds" if settings.player == "default" else f"{d + 1} rounds"
    return f"{arm} stays: round {place} of block {played.block}, which may end any round now; its last {last} count."


OPEN, REPORTED, MISSING, VOID = "open", "reported", "missing", "void"

Row = dict[str, Any]
ROW = (
    *("round", "unit", "arm", "total", "status", "draw", "block", "block_start", "probability", "washin", "measured"),
    *("update", "fed", "date", "substituted", "why", "asked_at", "told_at"),
)
"""The fields of a row."""


class Report(NamedTuple):
    """What a unit said of a round, and when."""

    total: float | None
    status: str
    told_at: str | None


WAITING = Report(None, OPEN, None)


PLAIN = ("number", "block", "block_start", "asked_at", "date", "draw", "update", "warm")
"""What is one for all units in a round that was played."""


class Played:
    """A round: sequences run over the units; arms are indices.

    drawn: what the learner drew; arms: what is played. odds: the probabilities the arms were drawn with. measured:
    whether the total was among those that were learned from at the end of its block, None while that is not known.
    fed: the loss each unit fed, if the round ended with an update.

    Only `reports` is changed in place; the others are replaced, so that many rounds may share one.
    """

    __slots__ = (*PLAIN, "drawn", "arms", "odds", "withheld", "reports", "measured", "fed")

    drawn: Sequence[int]
    arms: Sequence[int]
    odds: Sequence[float]
    withheld: Sequence[bool]
    reports: list[Report]
    measured: Sequence[bool | None]
    fed: Sequence[float | None]

    def __init__(self, number: int, block: int, block_start: int, asked_at: str, date: str | None) -> None:
        """Begin a round; what runs over the units is filled in by the one who asked."""
        self.number, self.block, self.block_start = number, block, block_start
        self.asked_at, self.date = asked_at, date
        self.draw = number == block_start
        self.update = False
        self.warm = False

    def row(self, settings: ExperimentSettings, u: int) -> Row:
        """Return what people see of this round in unit u."""
        arm, drawn = self.arms[u], self.drawn[u]
        total, status, told_at = self.reports[u]
        washin = self.number - self.block_start < settings.max_delay
        return {
            "round": self.number,
            "unit": settings.units[u],
            "arm": settings.arms[arm],
            "total": total,
            "status": status,
            "draw": self.draw,
            "block": self.block,
            "block_start": self.block_start,
            "probability": self.odds[u],
            "washin": washin,
            "measured": self.measured[u],
            "update": self.update,
            "fed": self.fed[u],
            "date": self.date,
            "substituted": arm != drawn,
            "why": _why(self, settings, u, washin),
            "asked_at": self.asked_at,
            "told_at": told_at,
        }

    def state(self) -> list[Any]:
        """Return the round as a JSON list: what is one for all units, then lists over the units."""
        over_units = (self.drawn, self.arms, self.odds, self.withheld, *zip(*self.reports, strict=True))
        return [*(getattr(self, name) for name in PLAIN), *map(list, (*over_units, self.measured, self.fed))]

    @classmethod
    def from_state(cls, state: list[Any]) -> "Played":
        """Read back what `state` returned."""
        *plain, drawn, arms, odds, withheld, totals, statuses, told_at, measured, fed = state
        played = cls(*plain[:5])
        for name, value in zip(PLAIN, plain, strict=True):
            setattr(played, name, value)
        played.drawn, played.arms, played.odds, played.withheld = drawn, arms, odds, withheld
        played.reports = list(map(Report, totals, statuses, told_at))
        played.measured, played.fed = measured, fed
        return played


class Memory:
    """The rounds that may still matter: the open block and a few before.

    Of a block without end, as many missing reports make it, the latest `CELLS` reports are kept, or the latest
    `LONG` times d+1 rounds if that is more. The totals learned from at a block's end reach further back than that once
    in five million blocks, e^(−0.4(LONG − 1)); then what is forgotten stays unknown.
    """

    __slots__ = ("_least", "_most", "_oldest", "rounds")

    CELLS = 4096
    LONG = 40

    def __init__(self, max_delay: int, n_units: int) -> None:
        """Remember nothing yet."""
        self._least = max(max_delay + 1, min(4, self.CELLS // n_units))
        self._most = max(self._least, self.CELLS // n_units, self.LONG * (max_delay + 1))
        self.rounds: dict[int, Played] = {}
        self._oldest = 1

    def add(self, played: Played) -> None:
        """Remember a round and forget those that no longer matter."""
        rounds = self.rounds
        rounds[played.number] = played
        while len(rounds) > self._least and (self._oldest < played.block_start or len(rounds) > self._most):
            del rounds[self._oldest]
            self._oldest += 1

    def get(self, number: int) -> Played | None:
        """Return a round, None if it is forgotten."""
        return self.rounds.get(number)

    def state(self) -> list[list[Any]]:
        """Return the rounds as JSON."""
        return [played.state() for played in self.rounds.values()]

    def resume(self, state: list[list[Any]]) -> None:
        """Take up saved rounds."""
        self.rounds = {played.number: played for played in map(Played.from_state, state)}
        self._oldest = min(self.rounds, default=1)
