"""An experiment: commands in, answers, events and rows out. Pure and deterministic: no clock, no I/O, all in memory.

    draft ──Start──► running ◄──Resume── paused        Ask opens a round, Tell closes it when the last unit
                        │  ──Pause──►      │           is told; at the horizon, or by Finish, it is finished.
                        └──────Finish──────┴──► finished

A pause opens no rounds; the round that is open stays open, and reports and corrections are still taken. After a
resume the next max_delay rounds (and the one left open, if effects linger) are warm-up. Finish closes an open round
as missing where it has no report. Corrections are taken in every state, as long as their block is open.
"""

import hashlib
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from aftereffect.core import checks, saved
from aftereffect.core.errors import AftereffectError
from aftereffect.service.errors import Corrupt, Refused
from aftereffect.service.experiment import commands, view
from aftereffect.service.experiment.commands import Amend, Ask, Away, Back, Command, Finish, Pause, Resume, Start, Tell
from aftereffect.service.experiment.rounds import MISSING, OPEN, ROW, Played, Row
from aftereffect.service.experiment.state import Progress, command_of, resumed, saved_state
from aftereffect.service.settings import LARGEST, ExperimentSettings

FEW = 16
"""Up to so many probabilities stand in an event as they are, more as their SHA-256."""


class Done(NamedTuple):
    """What a command did. event: what to store, None if nothing is new. rows: the round rows that changed."""

    answer: dict[str, Any]
    event: dict[str, Any] | None
    rows: list[Row]


def event(
    kind: str, at: str, body: dict[str, Any], round: int | None = None, unit: str | None = None
) -> dict[str, Any]:
    """Return an event as it is stored."""
    return {"kind": kind, "round": round, "unit": unit, "body": body, "at": at}


def fingerprint(probabilities: Sequence[float]) -> list[float] | str:
    """Return probabilities so that two of them are equal if and only if every bit is."""
    if len(probabilities) <= FEW:
        return list(probabilities)
    return hashlib.sha256(struct.pack(f"<{len(probabilities)}d", *probabilities)).hexdigest()


def checked_total(total: Any) -> float | None:
    """Return a total from outside as a finite float, or None for a missing one."""
    if total is None:
        return None
    try:
        return checks.real("total", total)
    except AftereffectError as error:
        raise Refused("invalid", str(error)) from None


def checked_round(progress: Progress, value: Any) -> int:
    """Return the number of a round that has been opened."""
    if type(value) is int and 0 < value <= progress.last:
        return value
    try:
        found = checks.integer("round", value, low=1, high=LARGEST)
    except AftereffectError as error:
        raise Refused("invalid", str(error)) from None
    if found > progress.last:
        latest = f"the latest is {progress.last}" if progress.last else "none is"
        raise Refused("not_open", f"round must be open to be reported, but got {found} and {latest}", round=found)
    return found


def checked_unit(progress: Progress, unit: Any) -> int:
    """Return the index of a unit; it may be left out where there is only one."""
    if unit is None:
        if progress.n_units > 1:
            units = checks.shown(list(progress.settings.units))
            raise Refused("invalid", f"unit must be given, one of {units}, but it is missing")
        return 0
    if isinstance(unit, int) and not isinstance(unit, bool):
        unit = str(unit)
    found = progress.unit_index.get(unit) if isinstance(unit, str) else None
    if found is None:
        units = checks.shown(list(progress.settings.units))
        raise Refused("invalid", f"unit must be one of {units}, but got {checks.shown(unit)}")
    return found

REASONS = {
    "draft": "it is a draft: start it first",
    "paused": "it is paused: resume it first",
    "finished": "it is finished: no more rounds are opened",
}


def ask(progress: Progress, command: Ask, at: str) -> Done:
    """Answer with the arm of a unit; with no unit named, of the first that is not yet told, and with everybody's."""
    if progress.phase != "running":
        reason = REASONS[progress.phase]
        raise Refused("wrong_state", f"the experiment must be running to ask, but {reason}", state=progress.phase)
    named = None if command.unit is None else checked_unit(progress, command.unit)
    played = progress.open
    if played is not None:
        u = _first_open(played) if named is None else named
        return Done(_turn(progress, played, u, named is None), None, [])
    played = progress.open_round(at)
    if progress.started_at is None:
        progress.started_at = at
    u = named or 0
    progress.asked = rows = [played.row(progress.settings, v) for v in range(progress.n_units)]
    body: dict[str, Any] = {"arms": list(played.arms), "block": played.block}
    if played.arms is not played.drawn:
        body["drawn"] = list(played.drawn)
    if played.draw:
        body["probabilities"] = fingerprint(progress.odds)
    found = _turn(progress, played, u, named is None, rows[u])
    return Done(found, event("ask", at, body, played.number, command.unit), rows)


def _turn(progress: Progress, played: Played, u: int, everybody: bool, row: Row | None = None) -> dict[str, Any]:
    """Return the row of a unit, with the arms of all units where several play and none was named."""
    found = row.copy() if row is not None else played.row(progress.settings, u)
    found["warmup"] = played.warm
    found["state"] = progress.phase
    if everybody and progress.n_units > 1:
        settings = progress.settings
        found["arms"] = {unit: settings.arms[i] for unit, i in zip(settings.units, played.arms, strict=True)}
    return found


def _first_open(played: Played) -> int:
    return next(u for u, report in enumerate(played.reports) if report.status == OPEN)

def tell(progress: Progress, command: Tell, at: str) -> Done:
    """Take a report for the open round; repeated with the same total it is answered again."""
    u = checked_unit(progress, command.unit)
    total = checked_total(command.total)
    number = checked_round(progress, command.round)
    played = progress.open
    if played is None or played.number != number or played.reports[u].status != OPEN:
        return _again(progress, number, u, total)
    status = progress.record(played, u, total, at)
    body: dict[str, Any] = {"total": total, "status": status, "closed": progress.waiting == 0}
    rows = close(progress, u, body, at) if progress.waiting == 0 else [progress.told(played, u)]
    unit = progress.settings.units[u]
    return Done(_answer(progress, rows[0], False), event("tell", at, body, number, unit), rows)


def close(progress: Progress, u: int, body: dict[str, Any], at: str) -> list[Row]:
    """Close the round that is complete, write into `body` what came of it, and return the rows that changed."""
    outcome, rows = progress.close_round(u)
    body |= outcome
    if outcome["update"]:
        body["probabilities"] = fingerprint(progress.odds)
    if progress.phase == "finished":
        progress.finished_at = at
        body["state"] = "finished"
    return rows


def amend(progress: Progress, command: Amend, at: str) -> Done:
    """Correct a report, or bring a late one, while the block of its round is open."""
    u = checked_unit(progress, command.unit)
    total = checked_total(command.total)
    number = checked_round(progress, command.round)
    if number < progress.block_start or progress.block_closed:
        raise Refused(
            "closed",
            f"round must be in the open block to be amended, but the block of round {number} has been closed and "
            "learned from: its total stays as it was reported",
            round=number,
        )
    played = progress.memory.get(number)
    before = _recalled(progress, number, u) if played is None else played.row(progress.settings, u)
    if before["status"] == OPEN:
        raise Refused("conflict", f"round must have a report to be amended, but round {number} waits for one: tell it")
    if same(before, total):
        return Done(_answer(progress, before, True), None, [])
    body: dict[str, Any] = {"total": total, "was": before["total"], "was_status": before["status"]}
    if played is None:
        body["recalled"] = before
        row = {**before, "total": total, "status": progress.status_of(total), "told_at": at}
        progress.recount(before["status"], before["total"], row["status"], total)
    else:
        progress.correct(played, u, total, at)
        row = played.row(progress.settings, u)
    body["status"] = row["status"]
    return Done(_answer(progress, row, False), event("amend", at, body, number, row["unit"]), [row])


def same(row: Mapping[str, Any], total: float | None) -> bool:
    """Whether a round has been reported with this very total, or closed as missing like this report."""
    if total is None:
        return bool(row["status"] == MISSING)
    return bool(row["status"] != MISSING and row["total"] == total)


def _again(progress: Progress, number: int, u: int, total: float | None) -> Done:
    """Answer a report for a round that has one."""
    played = progress.memory.get(number)
    row = _recalled(progress, number, u) if played is None else played.row(progress.settings, u)
    if same(row, total):
        return Done(_answer(progress, row, True), None, [])
    has = "was closed as missing" if row["status"] == MISSING else f"was reported as {row['total']!r}"
    given = "missing" if total is None else repr(total)
    amendable = number >= progress.block_start and not progress.block_closed
    then = "amend it to change that" if amendable else "its block is closed and learned from, so it stays as it is"
    raise Refused(
        "conflict",
        f"total must be the one already there, but round {number} {has} and now {given} came: {then}",
        round=number,
        unit=row["unit"],
        reported=row["total"],
        amendable=amendable,
    )


def _recalled(progress: Progress, number: int, u: int) -> Row:
    """Return the row of a round that is no longer in memory."""
    found = progress.lookup(number, progress.settings.units[u]) if progress.lookup is not None else None
    if found is None:
        raise Refused("closed", f"round must be a recent one, but round {number} is no longer at hand", round=number)
    return {name: found[name] for name in ROW}


def _answer(progress: Progress, row: Row, repeated: bool) -> dict[str, Any]:
    found = row.copy()
    found["repeated"], found["state"], found["open_round"] = repeated, progress.phase, progress.open_round_number()
    return found

def start(progress: Progress, command: Start, at: str) -> Done:
    """Let a draft run."""
    if progress.phase == "running":
        return _done(progress)
    _require(progress, "draft", "start")
    progress.phase = "running"
    progress.started_at = at
    return _done(progress, event("start", at, {}))


def pause(progress: Progress, command: Pause, at: str) -> Done:
    """Open no more rounds; the one that is open can still be told."""
    if progress.phase == "paused":
        return _done(progress)
    _require(progress, "running", "pause")
    progress.phase = "paused"
    progress.dates.pause(at)
    return _done(progress, event("pause", at, {"last": progress.last}))


def resume(progress: Progress, command: Resume, at: str) -> Done:
    """Go on. What happened in the pause still arrives for d rounds: they are recorded, not learned from."""
    if progress.phase == "running":
        return _done(progress)
    _require(progress, "paused", "resume")
    progress.phase = "running"
    progress.dates.resume(at)
    d, played = progress.settings.max_delay, progress.open
    rows: list[Row] = []
    if d > 0:
        progress.warm_until = progress.last + d
        if played is not None:
            # Nobody can say whether this round was played before the pause or after it.
            played.warm = True
            played.withheld = [True] * progress.n_units
            progress.asked = []
            rows = [played.row(progress.settings, u) for u in range(progress.n_units)]
    return _done(progress, event("resume", at, {"warm_until": progress.warm_until}), rows)


def away(progress: Progress, command: Away, at: str) -> Done:
    """Take an arm out for now; from here on the guarantee is void."""
    arm = _arm(progress, command.arm)
    if arm in progress.away:
        return _done(progress)
    _require_unfinished(progress)
    if len(progress.away) + 1 == len(progress.settings.arms):
        raise Refused("conflict", f"at least one arm must stay, but {command.arm!r} is the last one that is there")
    progress.away.add(arm)
    progress.spoiled = True
    return _done(progress, event("away", at, {"arm": command.arm}))


def back(progress: Progress, command: Back, at: str) -> Done:
    """Let an arm be played again, from the next round on."""
    arm = _arm(progress, command.arm)
    if arm not in progress.away:
        return _done(progress)
    _require_unfinished(progress)
    progress.away.discard(arm)
    return _done(progress, event("back", at, {"arm": command.arm}))


def finish(progress: Progress, command: Finish, at: str) -> Done:
    """End the experiment; what has no report in the open round is closed as missing."""
    if progress.phase == "finished":
        return _done(progress)
    body: dict[str, Any] = {"last": progress.last}
    rows: dict[tuple[int, str], Row] = {}
    played = progress.open
    if played is not None:
        units = [u for u, report in enumerate(played.reports) if report.status == OPEN]
        for u in units:
            progress.record(played, u, None, at)
        changed = close(progress, units[-1], body, at)
        changed += [played.row(progress.settings, u) for u in units]
        rows = {(row["round"], row["unit"]): row for row in changed}
    progress.phase = "finished"
    progress.finished_at = at
    return _done(progress, event("finish", at, body), list(rows.values()))


def _done(progress: Progress, found: dict[str, Any] | None = None, rows: list[Row] | None = None) -> Done:
    settings = progress.settings
    answer = {
        "state": progress.phase,
        "round": progress.last,
        "open_round": progress.open_round_number(),
        "away": [settings.arms[i] for i in sorted(progress.away)],
        "warm_until": progress.warm_until,
        "repeated": found is None,
    }
    return Done(answer, found, rows or [])


def _require(progress: Progress, phase: str, verb: str) -> None:
    if progress.phase != phase:
        raise Refused(
            "wrong_state",
            f"the experiment must be {phase} to {verb} it, but it is {progress.phase}",
            state=progress.phase,
        )


def _require_unfinished(progress: Progress) -> None:
    if progress.phase == "finished":
        raise Refused(
            "wrong_state", "arms can go away or come back until the experiment is finished, but it is", state="finished"
        )


def _arm(progress: Progress, name: Any) -> int:
    found = progress.arm_index.get(name) if isinstance(name, str) else None
    if found is None:
        arms = checks.shown(list(progress.settings.arms))
        raise Refused("not_found", f"arm must be one of {arms}, but got {checks.shown(name)}")
    return found


__all__ = ["Done", "Experiment"]

Lookup = Callable[[int, str], Mapping[str, Any] | None]

HANDLERS: dict[type[Any], Callable[[Progress, Any, str], Done]] = {
    Start: start,
    Ask: ask,
    Tell: tell,
    Amend: amend,
    Pause: pause,
    Resume: resume,
    Away: away,
    Back: back,
    Finish: finish,
}


class Experiment:
    """An experiment with these settings, whose seed must be set.

    lookup: rounds that are no longer in memory are asked for here, (round, unit) → row or None. Whoever stores the
    rows may set it; without it, a report repeated after a very long time is answered with code "closed".

    >>> from aftereffect.service.settings import checked_settings
    >>> given = {"name": "Mail", "arms": ["short", "long"], "max_delay": 0, "seed": 1}
    >>> experiment = Experiment(checked_settings(given))
    >>> asked = experiment.do(Ask(), "2026-01-01T00:00:00Z").answer
    >>> told = experiment.do(Tell(asked["round"], 0.75), "2026-01-01T20:00:00Z")
    >>> told.answer["status"], told.event["kind"], told.rows[0]["measured"]
    ('reported', 'tell', True)
    """

    __slots__ = ("progress", "settings")

    def __init__(self, settings: ExperimentSettings) -> None:
        """Stand before round 1, as a draft or running."""
        self.settings = settings
        self.progress = Progress(settings)

    @property
    def lookup(self) -> Lookup | None:
        """Where rounds are found that are no longer in memory."""
        return self.progress.lookup

    @lookup.setter
    def lookup(self, find: Lookup | None) -> None:
        self.progress.lookup = find

    def do(self, command: Command, at: str) -> Done:
        """Carry out a command at a moment, or raise Refused with nothing changed."""
        handler = HANDLERS.get(type(command))
        if handler is None:
            raise Refused("invalid", f"command must be one of {', '.join(commands.KINDS)}, but got {command!r}")
        return handler(self.progress, command, at)

    def view(self) -> dict[str, Any]:
        """Return what people want to know."""
        return view.view(self.progress)

    def state(self) -> dict[str, Any]:
        """Return all there is to know, as plain JSON; `from_state` goes on bit for bit."""
        return saved_state(self.progress)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Experiment":
        """Return the experiment that `state()` described."""
        return cls._of(resumed(state))

    @classmethod
    def _of(cls, progress: Progress) -> "Experiment":
        experiment = cls.__new__(cls)
        experiment.settings, experiment.progress = progress.settings, progress
        return experiment

    def digest(self) -> str:
        """Return the SHA-256 of the state."""
        return saved.digest(self.state())

    def replay(self, event: Mapping[str, Any]) -> list[Row]:
        """Carry out a stored event again and compare all that came of it, to the last bit."""
        lookup = self.lookup
        try:
            command = command_of(event)
            recalled = event["body"].get("recalled")
            self.lookup = lambda _round, _unit: recalled
            done = self.do(command, event["at"])
        except Corrupt:
            raise
        except (AftereffectError, KeyError, TypeError, AttributeError) as error:
            raise Corrupt(f"an event must be possible where it stands, but {error!r}") from None
        finally:
            self.lookup = lookup
        if done.event != dict(event):
            raise Corrupt(f"an event must come out as stored, but {_difference(done.event, event)}")
        return done.rows


def _difference(found: Mapping[str, Any] | None, stored: Mapping[str, Any]) -> str:
    """Say where what came out differs from what is stored."""
    if found is None:
        return f"nothing came of it: {checks.shown(dict(stored))}"
    for mine, other in ((found["body"], stored["body"]), (found, stored)):
        for name in sorted({*mine, *other} - {"body"}):
            if mine.get(name) != other.get(name):
                there, here = checks.shown(other.get(name)), checks.shown(mine.get(name))
                return f"{name} is {there} where it should be {here}"
    return f"it has other fields: {checks.shown(dict(stored))}"
