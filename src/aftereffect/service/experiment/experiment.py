"""An experiment: commands in, answers, events and rows out. Pure and deterministic: no clock, no I/O, all in memory.

    draft ──Start──► running ◄──Resume── paused        Ask opens a round, Tell closes it when the last unit
                        │  ──Pause──►      │           is told; at the horizon, or by Finish, it is finished.
                        └──────Finish──────┴──► finished

A pause opens no rounds; the round that is open stays open, and reports and corrections are still taken. After a
resume the next max_delay rounds (and the one left open, if effects linger) are warm-up. Finish closes an open round
as missing where it has no report. Corrections are taken in every state, as long as their block is open. A command
that says what already holds changes nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from aftereffect.core.checks import shown
from aftereffect.core.errors import AftereffectError
from aftereffect.service.errors import Corrupt, Refused
from aftereffect.service.experiment import commands
from aftereffect.service.experiment.commands import Amend, Ask, Away, Back, Command, Finish, Pause, Resume, Start, Tell
from aftereffect.service.experiment.rounds import MISSING, OPEN, ROW, Round, Row, days_between
from aftereffect.service.experiment.state import State, fingerprint
from aftereffect.service.experiment.view import view
from aftereffect.service.settings import ExperimentSettings, checked_settings

NOT_RUNNING = {
    "draft": "it is a draft: start it first",
    "paused": "it is paused: resume it first",
    "finished": "it is finished: no more rounds are opened",
}


class Done(NamedTuple):
    """What a command did. event: what to store, None if nothing is new. rows: the round rows that changed."""

    answer: dict[str, Any]
    event: dict[str, Any] | None
    rows: list[Row]


class Experiment:
    """An experiment with these settings, whose seed must be set.

    >>> from aftereffect.service.settings import checked_settings
    >>> given = {"name": "Mail", "arms": ["short", "long"], "max_delay": 0, "seed": 1}
    >>> experiment = Experiment(checked_settings(given))
    >>> asked = experiment.do(Ask(), "2026-01-01T00:00:00Z").answer
    >>> told = experiment.do(Tell(asked["round"], 0.75), "2026-01-01T20:00:00Z")
    >>> told.answer["status"], told.event["kind"], told.rows[0]["measured"]
    ('reported', 'tell', True)
    """

    def __init__(self, settings: ExperimentSettings, state: State | None = None) -> None:
        self.settings = settings
        self._now = State(settings) if state is None else state
        self._units = {name: u for u, name in enumerate(settings.units)}
        self._arms = {name: i for i, name in enumerate(settings.arms)}

    @property
    def phase(self) -> str:
        """One of draft, running, paused, finished."""
        return self._now.phase

    @property
    def last(self) -> int:
        """The number of the latest round opened, 0 before the first."""
        return self._now.last

    def view(self) -> dict[str, Any]:
        """Return what people want to know."""
        return view(self._now)

    def state(self) -> dict[str, Any]:
        """Return all there is to know, as plain JSON; `from_state` goes on bit for bit."""
        return self._now.to_json()

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Experiment":
        """Return the experiment that `state()` described."""
        found = State.from_json(state)
        return cls(found.settings, found)

    def forgotten(self, command: Command) -> tuple[int, str] | None:
        """Return round and unit of the row that a command needs and that is no longer in memory, None if it needs none.

        Whoever stores the rows fetches it and passes it to `do`.
        """
        if not isinstance(command, Tell | Amend) or not 1 <= command.round <= self._now.last:
            return None
        remembered = command.round in self._now.recent.rounds
        if remembered or (isinstance(command, Amend) and not self._amendable(command.round)):
            return None
        return command.round, self.settings.units[self._unit(command.unit)]

    def do(self, command: Command, at: str, recalled: Mapping[str, Any] | None = None) -> Done:
        """Carry out a command at a moment, or raise Refused with nothing changed.

        recalled: the row that `forgotten` named; without it, such a command is refused with code "closed".
        """
        match command:
            case Ask():
                return self._ask(command, at)
            case Tell():
                return self._tell(command, at, recalled)
            case Amend():
                return self._amend(command, at, recalled)
            case Start():
                return self._start(at)
            case Pause():
                return self._pause(at)
            case Resume():
                return self._resume(at)
            case Away():
                return self._set_away(command.arm, True, at)
            case Back():
                return self._set_away(command.arm, False, at)
            case Finish():
                return self._finish(at)
        raise Refused("invalid", f"command must be one of {', '.join(commands.KINDS)}, but got {command!r}")

    def replay(self, event: Mapping[str, Any]) -> list[Row]:
        """Carry out a stored event again, and compare all that came of it to the last bit; return the changed rows."""
        try:
            done = self.do(commands.from_event(event), event["at"], event["body"].get("recalled"))
        except Corrupt:
            raise
        except (AftereffectError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise Corrupt(f"an event must be possible where it stands, but {error!r}") from None
        if done.event != dict(event):
            raise Corrupt(f"an event must come out as stored, but {_difference(done.event, event)}")
        return done.rows

    def _ask(self, command: Ask, at: str) -> Done:
        """Answer with the arm of a unit; without one, of the first that is not yet told, and with the arms of all."""
        now = self._now
        if now.phase != "running":
            reason = NOT_RUNNING[now.phase]
            raise Refused("wrong_state", f"the experiment must be running to ask, but {reason}", state=now.phase)
        named = None if command.unit is None else self._unit(command.unit)
        if now.open is not None:
            first = next(u for u, report in enumerate(now.open.reports) if report.status == OPEN)
            u = first if named is None else named
            return Done(self._turn(now.open, now.open.row(self.settings, u), named is None), None, [])
        played = now.begin_round(at)
        if now.started_at is None:
            now.started_at = at
        body: dict[str, Any] = {"arms": list(played.arms), "block": played.block}
        if played.arms is not played.drawn:
            body["drawn"] = list(played.drawn)
        if played.number == played.block_start:
            body["probabilities"] = fingerprint(now.probabilities)
        rows = played.rows(self.settings)
        event = {"kind": "ask", "round": played.number, "unit": command.unit, "body": body, "at": at}
        return Done(self._turn(played, rows[named or 0], named is None), event, rows)

    def _turn(self, played: Round, row: Row, everybody: bool) -> dict[str, Any]:
        answer = {**row, "warmup": played.warm, "state": self.phase}
        if everybody and len(self._units) > 1:
            answer["arms"] = {unit: self.settings.arms[i] for unit, i in zip(self._units, played.arms, strict=True)}
        return answer

    def _tell(self, command: Tell, at: str, recalled: Mapping[str, Any] | None) -> Done:
        """Take a report for the open round; repeated with the same total it is answered again."""
        now, u, total = self._now, self._unit(command.unit), command.total
        played = self._opened(command.round)
        if played is None or played is not now.open or played.reports[u].status != OPEN:
            return self._tell_again(command, self._row(command.round, u, recalled))
        status = now.record(played, u, total, at)
        body: dict[str, Any] = {"total": total, "status": status, "closed": now.waiting == 0}
        if now.waiting == 0:
            outcome, rows = now.end_round(u, at)
            body |= outcome
        else:
            rows = [played.row(self.settings, u)]
        event = {"kind": "tell", "round": command.round, "unit": rows[0]["unit"], "body": body, "at": at}
        return Done(self._report(rows[0], False), event, rows)

    def _tell_again(self, command: Tell, row: Row) -> Done:
        """Answer a report for a round that has one."""
        if _reported(row, command.total):
            return Done(self._report(row, True), None, [])
        given = "missing" if command.total is None else repr(command.total)
        then = "its block is closed and learned from, so it stays as it is"
        if self._amendable(command.round):
            then = "amend it to change that"
        raise self._conflict(row, f"total must be the one already there, but {_told(row)} and now {given} came: {then}")

    def _conflict(self, row: Row, detail: str) -> Refused:
        known = {"round": row["round"], "unit": row["unit"], "reported": row["total"]}
        return Refused("conflict", detail, **known, amendable=self._amendable(row["round"]))

    def _amend(self, command: Amend, at: str, recalled: Mapping[str, Any] | None) -> Done:
        """Correct a report, or bring a late one, while the block of its round is open."""
        u, total, number = self._unit(command.unit), command.total, command.round
        played = self._opened(number)
        if not self._amendable(number):
            rule = f"round must be in the open block to be amended, but the block of round {number} has been closed"
            raise Refused("closed", f"{rule} and learned from: its total stays as it was reported", round=number)
        before = self._row(number, u, recalled)
        if before["status"] == OPEN:
            raise Refused("conflict", f"round {number} must have a report to be amended, but waits for one: tell it")
        if _reported(before, total):
            return Done(self._report(before, True), None, [])
        if not isinstance(command.was, type(...)) and not _reported(before, command.was):
            detail = f"was must be the total to be corrected, but got {command.was!r} and {_told(before)}"
            raise self._conflict(before, detail)
        body: dict[str, Any] = {"total": total, "was": before["total"], "was_status": before["status"]}
        if played is None:
            body["recalled"] = before
            row = {**before, "total": total, "status": self._now.recount(before["total"], total), "told_at": at}
        else:
            self._now.correct(played, u, total, at)
            row = played.row(self.settings, u)
        body["status"] = row["status"]
        event = {"kind": "amend", "round": number, "unit": row["unit"], "body": body, "at": at}
        return Done(self._report(row, False), event, [row])

    def _report(self, row: Row, repeated: bool) -> dict[str, Any]:
        now = self._now
        return {**row, "repeated": repeated, "state": now.phase, "open_round": now.open and now.open.number}

    def _start(self, at: str) -> Done:
        if self.phase == "running":
            return self._change()
        self._require("start it", "draft")
        self._now.phase, self._now.started_at = "running", at
        return self._change("start", at)

    def _pause(self, at: str) -> Done:
        """Open no more rounds; the one that is open can still be told."""
        if self.phase == "paused":
            return self._change()
        self._require("pause it", "running")
        self._now.phase, self._now.paused_at = "paused", at
        return self._change("pause", at, {"last": self.last})

    def _resume(self, at: str) -> Done:
        """Go on. What happened in the pause still arrives for d rounds: they are recorded, not learned from."""
        if self.phase == "running":
            return self._change()
        self._require("resume it", "paused")
        now, d = self._now, self.settings.max_delay
        now.shift += days_between(now.paused_at or at, at)
        now.phase, now.paused_at = "running", None
        rows: list[Row] = []
        if d > 0:
            now.warm_until = now.last + d
            if now.open is not None:
                # Nobody can say whether this round was played before the pause or after it.
                now.open.warm, now.open.withheld = True, [True] * now.n_units
                rows = now.open.rows(self.settings)
        return self._change("resume", at, {"warm_until": now.warm_until}, rows)

    def _set_away(self, name: str, away: bool, at: str) -> Done:
        """Take an arm out for now, which voids the guarantee from here on, or let it be played again."""
        now = self._now
        if name not in self._arms:
            raise Refused("not_found", f"arm must be one of {shown(list(self._arms))}, but got {shown(name)}")
        if (self._arms[name] in now.away) == away:
            return self._change()
        self._require("change its arms", "draft", "running", "paused")
        if away and len(now.away) + 1 == len(self._arms):
            raise Refused("conflict", f"at least one arm must stay, but {name!r} is the last one that is there")
        now.away = sorted({*now.away} ^ {self._arms[name]})
        now.arm_was_away = True
        return self._change("away" if away else "back", at, {"arm": name})

    def _finish(self, at: str) -> Done:
        """End the experiment; what has no report in the open round is closed as missing."""
        if self.phase == "finished":
            return self._change()
        now, played = self._now, self._now.open
        body: dict[str, Any] = {"last": now.last}
        rows: dict[tuple[int, str], Row] = {}
        if played is not None:
            units = [u for u, report in enumerate(played.reports) if report.status == OPEN]
            for u in units:
                now.record(played, u, None, at)
            outcome, changed = now.end_round(units[-1], at)
            body |= outcome
            changed += [played.row(self.settings, u) for u in units]
            rows = {(row["round"], row["unit"]): row for row in changed}
        now.phase, now.finished_at = "finished", at
        return self._change("finish", at, body, list(rows.values()))

    def _change(
        self, kind: str | None = None, at: str = "", body: dict[str, Any] | None = None, rows: Sequence[Row] = ()
    ) -> Done:
        """Return what a command about the whole experiment led to; kind: of its event, None if nothing is new."""
        event = None if kind is None else {"kind": kind, "round": None, "unit": None, "body": body or {}, "at": at}
        answer = {
            "state": self.phase,
            "round": self.last,
            "open_round": self._now.open and self._now.open.number,
            "away": [self.settings.arms[i] for i in self._now.away],
            "warm_until": self._now.warm_until,
            "repeated": event is None,
        }
        return Done(answer, event, list(rows))

    def _opened(self, number: int) -> Round | None:
        """Return a round that has been opened, None if it is no longer in memory."""
        if number < 1:
            raise Refused("invalid", f"round must be at least 1, but got {number}")
        if number > (last := self._now.last):
            latest = f"the latest is {last}" if last else "none is"
            raise Refused("not_open", f"round must be open to be reported, but got {number} and {latest}", round=number)
        return self._now.recent.rounds.get(number)

    def _row(self, number: int, u: int, recalled: Mapping[str, Any] | None) -> Row:
        """Return the row of a round, as it is in memory or as it was recalled."""
        played = self._now.recent.rounds.get(number)
        if played is not None:
            return played.row(self.settings, u)
        if recalled is None:
            detail = f"round must be a recent one, but round {number} is no longer at hand"
            raise Refused("closed", detail, round=number)
        return {name: recalled[name] for name in ROW}

    def _amendable(self, number: int) -> bool:
        """Whether the block of a round is still open."""
        return number >= self._now.block_start and not self._now.block_closed

    def _unit(self, name: str | None) -> int:
        """Return the index of a unit; it may be left out where there is only one."""
        if name is None and len(self._units) == 1:
            return 0
        if name in self._units:
            return self._units[name]
        units = shown(list(self._units))
        if name is None:
            raise Refused("invalid", f"unit must be given, one of {units}, but it is missing")
        raise Refused("invalid", f"unit must be one of {units}, but got {shown(name)}")

    def _require(self, verb: str, *phases: str) -> None:
        if self.phase not in phases:
            wanted = " or ".join(phases)
            detail = f"the experiment must be {wanted} to {verb}, but it is {self.phase}"
            raise Refused("wrong_state", detail, state=self.phase)


def warm_up() -> None:
    """Play a round in memory with each player, so that its code is loaded, and compiled where that is still to do.

    A server does this before it answers, a command before it takes the lock that others may be waiting for.
    """
    for player in ({}, {"player": "paper", "horizon": 100}):
        settings = {"name": "warm-up", "arms": ["a", "b"], "max_delay": 0, "seed": 1, **player}
        experiment = Experiment(checked_settings(settings))
        experiment.do(Ask(), "2026-01-01T00:00:00Z")
        experiment.do(Tell(1, 0.5), "2026-01-01T00:00:00Z")
        Experiment.from_state(experiment.state()).view()


def _reported(row: Mapping[str, Any], total: float | None) -> bool:
    """Whether a row has this very total, or is closed as missing if there is none."""
    if total is None:
        return bool(row["status"] == MISSING)
    return bool(row["status"] != MISSING and row["total"] == total)


def _told(row: Mapping[str, Any]) -> str:
    how = "closed as missing" if row["status"] == MISSING else f"reported as {row['total']!r}"
    return f"round {row['round']} was {how}"


def _difference(found: Mapping[str, Any] | None, stored: Mapping[str, Any]) -> str:
    """Say where what came out differs from what is stored."""
    if found is None:
        return f"nothing came of it: {shown(dict(stored))}"
    for mine, other in ((found["body"], stored["body"]), (found, stored)):
        for name in sorted({*mine, *other} - {"body"}):
            if mine.get(name) != other.get(name):
                return f"{name} is {shown(other.get(name))} where it should be {shown(mine.get(name))}"
    return f"it has other fields: {shown(dict(stored))}"
