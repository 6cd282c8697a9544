"""How far an experiment is: the learner, the rounds still remembered, the counts. Changes things; refuses nothing.

Who may do what, and when, is decided in `experiment.py` before anything here is called.
"""

import datetime
import functools
import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from aftereffect.core import effects, saved
from aftereffect.core.errors import AftereffectError, InvalidArgument
from aftereffect.players.registry import restore
from aftereffect.players.wrapper.panel import Panel
from aftereffect.service.errors import Corrupt
from aftereffect.service.experiment import commands, learner
from aftereffect.service.experiment.outcome import Tally
from aftereffect.service.experiment.plan import plan
from aftereffect.service.experiment.rounds import MISSING, REPORTED, VOID, WAITING, Memory, Played, Report, Row
from aftereffect.service.messages import Plan
from aftereffect.service.settings import ExperimentSettings


def stand_in(
    seed: int, block_start: int, unit: int, probabilities: Sequence[float], away: Collection[int]
) -> tuple[int, float]:
    """Return an arm that is there, and the probability it was chosen with."""
    present = [i for i in range(len(probabilities)) if i not in away]
    whole = sum(probabilities[i] for i in present)
    # A learner that has all but given up on every arm that is there leaves no shares to go by.
    shares = [probabilities[i] / whole if whole > 0.0 else 1.0 / len(present) for i in present]
    words = hashlib.sha256(f"stand-in:{seed}:{block_start}:{unit}".encode()).digest()
    left = int.from_bytes(words[:6], "big") / 2**48
    for arm, share in zip(present, shares, strict=True):
        if left < share:
            return arm, share
        left -= share
    return present[-1], shares[-1]

_LAST = datetime.date.max.toordinal()


class Dates:
    """start: the date of round 1, None to take the day on which a round is asked for. round_length: in days."""

    __slots__ = ("_first", "_length", "paused_at", "shift")

    def __init__(self, start: str | None, round_length: float) -> None:
        """Begin without pauses."""
        self._first = None if start is None else datetime.date.fromisoformat(start).toordinal()
        self._length = round_length
        self.shift = 0
        self.paused_at: str | None = None

    def of(self, number: int, at: str) -> str | None:
        """Return the date of a round that is asked for at a moment; None if there is no such date."""
        if self._first is None:
            return at[:10] if moment(at) is not None else None
        day = self._first + int((number - 1) * self._length) + self.shift
        return datetime.date.fromordinal(day).isoformat() if day <= _LAST else None

    def pause(self, at: str) -> None:
        """Note when a pause began."""
        self.paused_at = at

    def resume(self, at: str) -> None:
        """Move all later rounds on by the whole days the pause took."""
        begun, ended = moment(self.paused_at or ""), moment(at)
        if begun is not None and ended is not None:
            self.shift += max((ended - begun).days, 0)
        self.paused_at = None


@functools.lru_cache(256)
def moment(at: str) -> datetime.datetime | None:
    """Return an ISO time, None if the text is none; a time without a zone is taken as UTC."""
    try:
        found = datetime.datetime.fromisoformat(at)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=datetime.UTC)


COUNTS = ("reports", "missing", "void", "out_of_range", "amended", "substituted", "withheld")


class Progress:
    """The state of an experiment that runs.

    open: the round that waits for reports; waiting: how many units it waits for; asked: its rows as they were when it
    was opened, empty if they have to be made anew. last: the latest round opened. block: its block, from 1;
    block_closed: that block has been learned from. tainted: the last round of each unit whose total holds effects of
    an arm and its stand-in. warm_until: the last round of the latest warm-up.
    """

    # More names than Python keeps close together in a usual object; and every round looks at most of them.
    __slots__ = (
        *("settings", "n_units", "unit_index", "arm_index", "panel", "odds", "memory", "dates", "least", "most"),
        *("phase", "open", "asked", "waiting", "last", "block", "block_start", "block_closed", "updates", "warm_until"),
        *("tainted", "away", "spoiled", "plays", "counts", "tallies", "sum", "started_at", "finished_at", "lookup"),
        *("_no", "_unknown", "_plan"),
    )

    def __init__(self, settings: ExperimentSettings, panel: Panel | None = None) -> None:
        """Stand before round 1; panel: the learner, made from the settings if it is not given."""
        n_arms, self.n_units = len(settings.arms), len(settings.units)
        self.settings = settings
        if panel is None and settings.seed is None:
            raise InvalidArgument("seed must be drawn before the learner is built, but got None")
        self.panel = learner.build(settings, settings.seed or 0) if panel is None else panel
        self.memory = Memory(settings.max_delay, self.n_units)
        self.dates = Dates(settings.start_date, settings.round_length)
        span = effects.effects(settings.direction, settings.low, settings.high)
        self.least, self.most = effects.total_bounds(span, settings.max_delay)
        self.phase = "draft" if settings.draft else "running"
        self.open: Played | None = None
        self.asked: list[Row] = []
        self.waiting = 0
        self.last = 0
        self.block = 0
        self.block_start = 1
        self.block_closed = False
        self.updates = 0
        self.warm_until = 0
        self.tainted = [0] * self.n_units
        self.away: set[int] = set()
        self.spoiled = False
        self.plays = [0] * n_arms
        self.counts = dict.fromkeys(COUNTS, 0)
        self.tallies = [Tally() for _ in range(n_arms)]
        self.sum = 0.0
        self.started_at: str | None = None
        self.finished_at: str | None = None
        self.unit_index = {name: u for u, name in enumerate(settings.units)}
        self.arm_index = {name: i for i, name in enumerate(settings.arms)}
        # What most rounds have in common: nobody's total is withheld, or nothing is known of any unit yet.
        self._no, self._unknown = (False,) * self.n_units, (None,) * self.n_units
        self.lookup: Callable[[int, str], Mapping[str, Any] | None] | None = None
        self.odds: list[float] = self.panel.probabilities.tolist()
        self._plan: Plan | None = None

    @property
    def plan(self) -> Plan:
        """What was to be expected of this very learner before it started."""
        if self._plan is None:
            self._plan = plan(self.settings, self.panel)
        return self._plan

    def open_round_number(self) -> int | None:
        """Return the number of the round that waits for reports."""
        return None if self.open is None else self.open.number

    def open_round(self, at: str) -> Played:
        """Ask the learner, put stand-ins where arms are away, and wait for every unit."""
        drawn = self.panel.ask()
        self.last += 1
        start = self.panel.block_start
        if start == self.last:
            self.block += 1
            self.block_start = start
            self.block_closed = False
        t, d = self.last, self.settings.max_delay
        played = Played(t, self.block, start, at, self.dates.of(t, at))
        played.drawn = played.arms = drawn
        odds = self.odds
        played.odds = [odds[i] for i in drawn]
        played.reports = [WAITING] * self.n_units
        played.withheld = no = self._no
        played.measured = no if t - start < d else self._unknown
        played.fed = self._unknown
        if self.away:
            self._substitute(played)
        if self.spoiled and not played.draw:
            self._taint(played)
        if t <= self.warm_until:
            played.warm = True
            played.withheld = [True] * self.n_units
        elif self.spoiled:
            played.withheld = [t <= limit for limit in self.tainted]
        for i in played.arms:
            self.plays[i] += 1
        self.open, self.waiting = played, self.n_units
        self.memory.add(played)
        return played

    def _substitute(self, played: Played) -> None:
        """Let arms that are there stand in for those away, until the block ends or they are back.

        The learner takes what the stand-in brings for the loss of the arm that is away. So blocks end as ever, and an
        arm is charged what the others bring while it is away: it neither gains on them nor falls behind.
        """
        settings = self.settings
        arms, odds = list(played.drawn), list(played.odds)
        for u, arm in enumerate(played.drawn):
            if arm in self.away:
                arms[u], odds[u] = stand_in(settings.seed or 0, played.block_start, u, self.odds, self.away)
                self.counts["substituted"] += 1
        played.arms, played.odds = arms, odds

    def _taint(self, played: Played) -> None:
        """Where another arm is played than in the round before, d totals are of both."""
        before = self.memory.rounds[played.number - 1].arms
        for u, (was, now) in enumerate(zip(before, played.arms, strict=True)):
            if was != now:
                self.tainted[u] = played.number + self.settings.max_delay - 1

    def status_of(self, total: float | None) -> str:
        """Return what becomes of a report with this total."""
        if total is None:
            return MISSING
        return REPORTED if self.least <= total <= self.most else VOID

    def record(self, played: Played, u: int, total: float | None, at: str) -> str:
        """Write a report into the open round."""
        self.waiting -= 1
        status = self.status_of(total)
        played.reports[u] = Report(total, status, at)
        self.count(status, total, 1)
        return status

    def count(self, status: str, total: float | None, sign: int) -> None:
        """Count a report, or take it out again."""
        if status == MISSING:
            self.counts["missing"] += sign
            return
        self.counts["reports"] += sign
        if status == VOID:
            self.counts["void"] += sign
            # Of those out of range it is counted how many came, also if they were corrected since.
            self.counts["out_of_range"] += sign > 0
        elif total is not None:
            self.sum += sign * total

    def correct(self, played: Played, u: int, total: float | None, at: str) -> str:
        """Put another total in the place of an earlier one; the learner hears of it if it took the first."""
        status = self.status_of(total)
        if played is not self.open and not played.withheld[u]:
            self.panel.amend(u, played.number, total)
        was = played.reports[u]
        self.recount(was.status, was.total, status, total)
        played.reports[u] = Report(total, status, at)
        return status

    def recount(self, before: str, was: float | None, status: str, total: float | None) -> None:
        """Count a correction."""
        self.count(before, was, -1)
        self.count(status, total, 1)
        self.counts["amended"] += 1

    def told(self, played: Played, u: int) -> Row:
        """Return the row of a unit of the open round that has just been told."""
        if not self.asked:
            return played.row(self.settings, u)
        # Nothing else has changed since it was asked for.
        row = self.asked[u].copy()
        row["total"], row["status"], row["told_at"] = played.reports[u]
        return row

    def close_round(self, u: int) -> tuple[dict[str, Any], list[Row]]:
        """Tell the learner the round that is complete; u: the unit told last, whose row changes anyway."""
        played = self.open
        if played is None:
            raise RuntimeError("no round is open")
        heard = [report.total for report in played.reports]
        if True in played.withheld:
            heard = [None if hidden else total for total, hidden in zip(heard, played.withheld, strict=True)]
            self.counts["withheld"] += sum(played.withheld)
        result = self.panel.tell(heard)
        self.open = None
        if result.update:
            played.update = True
            played.fed = result.fed_losses
            self.updates += 1
            self.block_closed = True
            self.odds = self.panel.probabilities.tolist()
            changed = self._measure(played, u, result.measured)
            rows = [p.row(self.settings, v) for p, v in changed]
            outcome: dict[str, Any] = {"update": True, "fed": list(played.fed)}
        else:
            rows, outcome = [self.told(played, u)], {"update": False}
        self.asked = []
        if self.last == self.settings.horizon:
            self.phase = "finished"
        return outcome, rows

    def _measure(self, end: Played, told_last: int, measured: int) -> list[tuple[Played, int]]:
        """Say of the block's rounds whether they were learned from, and keep what the last ones say about the arms.

        Return the rounds and units of which that says something new, the unit told last before all others.
        """
        first, rounds = end.number - measured + 1, self.memory.rounds
        known = [fed is not None for fed in end.fed]
        changed = [(end, told_last), *((end, u) for u in range(self.n_units) if u != told_last)]
        end.measured = known
        for t in range(max(end.block_start, next(iter(rounds))), end.number):
            played = rounds[t]
            before, played.measured = played.measured, known if t >= first else self._no
            changed += [(played, u) for u, was in enumerate(before) if was is not played.measured[u]]
        if first in rounds:
            for u, arm in enumerate(end.arms):
                if known[u]:
                    whole = 0.0
                    for t in range(first, end.number + 1):
                        whole += rounds[t].reports[u].total or 0.0
                    self.tallies[arm].add(whole / measured)
        return changed


KIND = "Experiment"
# What is saved as it is.
PLAIN = (
    *("phase", "last", "block", "block_start", "block_closed", "updates", "warm_until", "spoiled"),
    *("sum", "started_at", "finished_at", "plays"),
)
FIELDS = ("settings", "panel", *PLAIN, "tainted", "away", "counts", "tallies", "rounds", "open", "dates")


def saved_state(progress: Progress) -> dict[str, Any]:
    """Return all there is to know, with kind, version and digest."""
    fields = {name: getattr(progress, name) for name in PLAIN}
    dates = progress.dates
    return saved.seal(
        KIND,
        {
            **fields,
            "plays": list(progress.plays),
            "settings": progress.settings.to_json(),
            "panel": progress.panel.state(),
            "tainted": {str(u): limit for u, limit in enumerate(progress.tainted) if limit},
            "away": sorted(progress.away),
            "counts": [progress.counts[name] for name in COUNTS],
            "tallies": [tally.state() for tally in progress.tallies],
            "rounds": progress.memory.state(),
            "open": None if progress.open is None else progress.waiting,
            "dates": [dates.shift, dates.paused_at],
        },
    )


def resumed(found: Mapping[str, Any]) -> Progress:
    """Return an experiment's progress as it was when its state was taken."""
    try:
        fields = saved.unseal(found, KIND, FIELDS)
        progress = Progress(ExperimentSettings.from_json(fields["settings"]), restore(fields["panel"]))
        for name in PLAIN:
            setattr(progress, name, fields[name])
        progress.plays = list(fields["plays"])
        for u, limit in fields["tainted"].items():
            progress.tainted[int(u)] = limit
        progress.away = set(fields["away"])
        progress.counts = dict(zip(COUNTS, fields["counts"], strict=True))
        progress.tallies = [Tally(*numbers) for numbers in fields["tallies"]]
        progress.memory.resume(fields["rounds"])
        if fields["open"] is not None:
            progress.open, progress.waiting = progress.memory.rounds[progress.last], fields["open"]
        progress.dates.shift, progress.dates.paused_at = fields["dates"]
    except Corrupt:
        raise
    except (AftereffectError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise Corrupt(f"a state must hold what state() saved, but {error}") from None
    return progress


def command_of(event: Mapping[str, Any]) -> commands.Command:
    """Return the command a stored event came from."""
    kind, body = event["kind"], event["body"]
    fields: dict[str, Any] = {"kind": kind}
    if kind == "ask":
        fields["unit"] = event["unit"]
    elif kind in ("tell", "amend"):
        fields |= {"round": event["round"], "total": body["total"], "unit": event["unit"]}
    elif kind in ("away", "back"):
        fields["arm"] = body["arm"]
    return commands.from_json(fields)
