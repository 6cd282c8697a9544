"""An experiment: commands in; answers, events and rows out. Deterministic and in memory: no clock, no I/O.

    draft ──Start──► running ◄──Resume── paused        Ask opens a round; the report of the last unit closes it.
                        │  ──Pause──►      │           The experiment is finished at the horizon or by Finish.
                        └──────Finish──────┴──► finished

While paused, no round opens; an open round stays open, and reports and corrections are still accepted. After a resume,
the next max_delay rounds are warm-up, and so is a round left open over the pause if max_delay > 0. Finish closes an
open round, with units that have no report as missing. Corrections are accepted in every state; one that comes after the
end of its block is learned from too, if the total was. Repeating a command that has taken effect changes nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from aftereffect.core.checks import shown
from aftereffect.core.errors import AftereffectError, InvalidTotal
from aftereffect.service import words
from aftereffect.service.errors import Corrupt, Refused
from aftereffect.service.experiment import commands
from aftereffect.service.experiment.commands import Command, Event
from aftereffect.service.experiment.learned import Record, learned
from aftereffect.service.experiment.round import ROW, Round, Row, date_of, whole_between
from aftereffect.service.experiment.state import State, fingerprint
from aftereffect.service.experiment.view import view
from aftereffect.service.messages import Fields, Overview, ReportItem
from aftereffect.service.settings import checked_settings

NOT_RUNNING = {
    "draft": "it is a draft: start it first",
    "paused": "it is paused: resume it first",
    "finished": "it is finished: no more rounds can be opened",
}


Recalled = Mapping[str, Any] | None
"""The row that `Experiment.forgotten` asks for."""
Effect = tuple[Fields, dict[str, Any] | None, list[Row]]
"""The answer to a command, the body of its event (None if nothing changed), and the rows that changed."""


class Done(NamedTuple):
    """The result of a command. event: to be stored, None if nothing changed. rows: the round rows that changed."""

    answer: Fields
    event: Event | None
    rows: list[Row]


class Experiment(State):
    """An experiment: its state, and the commands that change it. settings: must have a seed.

    >>> from aftereffect.service.settings import checked_settings
    >>> given = {"name": "Mail", "arms": ["short", "long"], "high": 1, "max_delay": 0, "seed": 1}
    >>> experiment = Experiment(checked_settings(given))
    >>> asked = experiment.do(commands.Ask(), "2026-01-01T00:00:00Z").answer
    >>> told = experiment.do(commands.Tell(asked["round"], 0.75), "2026-01-01T20:00:00Z")
    >>> told.answer["status"], told.event["kind"], told.rows[0]["total"]
    ('reported', 'tell', 0.75)
    """

    def view(self, id: str = "", created_at: str = "") -> Overview:
        """Return the summary shown to users."""
        return view(self, id, created_at)

    def forgotten(self, command: Command) -> tuple[int, str] | None:
        """Return the round and unit of the row that `do` needs for a command but no longer has in memory, or None.

        The caller must load that row from the store and pass it to `do`; for an Amend, if the total was measured, with
        what `with_block` adds.
        """
        if not isinstance(command, commands.OfRound) or not 1 <= command.round <= self.last:
            return None
        late = isinstance(command, commands.Amend) and not self._amendable(command.round)
        if command.round in self.recent.rounds and not late:
            return None
        return command.round, self.settings.units[self._unit(command.unit)]

    def lacks_record(self, command: Command) -> bool:
        """Return whether `recall` must come before a command: arms may be chosen, and the adviser has no record."""
        return self._may_decide(command) and self.adviser is not None and self.adviser.forgotten

    def _may_decide(self, command: Command) -> bool:
        """Return whether the adviser may learn in a command: not if the last reports of a block turn out missing."""
        if self.adviser is None or self.adviser.rounds > self.adviser.most:
            return False
        player: Any = self.panel.player
        match command:
            case commands.Ask():
                ready = self.open is None and self.phase == "running"
                return ready and (not self.last or (self.last < self.opening and self.adviser.due))
            case commands.Tell():
                return self.waiting == 1 and bool(player.consults)
            case commands.Finish():
                return self.open is not None and bool(player.consults)
        return False

    def do(self, command: Command, at: str, recalled: Recalled = None) -> Done:
        """Carry out a command at time `at` (ISO 8601), or raise Refused with nothing changed.

        recalled: the row that `forgotten` asks for; without it, such a command is refused with code "closed".
        """
        self.may_have_decided = self._may_decide(command)
        if self.lacks_record(command):
            raise Corrupt("the record of all rounds must be recalled before arms are chosen")
        if type(command) not in _METHODS:
            raise Refused("invalid", f"command must be one of {', '.join(commands.KINDS)}, but got {command!r}")
        answer, body, rows = _METHODS[type(command)](self, command, at, recalled)
        if body is None:
            return Done(answer, None, rows)
        number = unit = None
        if isinstance(command, commands.OfRound):
            number, unit = command.round, rows[0]["unit"]
        elif isinstance(command, commands.Ask):
            number, unit = self.last, command.unit
        kind = type(command).__name__.lower()
        return Done(answer, Event(kind=kind, round=number, unit=unit, body=body, at=at), rows)

    def replay(self, event: Event) -> list[Row]:
        """Repeat the command of a stored event and return the changed rows; raise Corrupt if the event differs."""
        try:
            done = self.do(commands.from_event(event), event["at"], event["body"].get("recalled"))
        except Corrupt:
            raise
        except (AftereffectError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise Corrupt(f"an event must be possible at its place in the log, but {error!r}") from None
        if done.event != event:
            raise Corrupt(f"a replayed event must equal the stored one, but {_difference(done.event, event)}")
        return done.rows

    def report(self, reports: commands.Reports, at: str, recall: Callable[[Command], Row | None]) -> Iterator[Done]:
        """Carry out several reports, and yield the results of the asks and tells; raise Refused at the first fault.

        To take all or none, drop the experiment after a fault. recall: returns the row that `forgotten` asks for.
        """
        known, before = self.last, self.recent.rounds.get(self.last)
        for place, item in enumerate(reports.items, 1):
            try:
                u = self._unit(item.unit)
                number = self._number(item, u)
                if number == self.last + 1 and self.open is None:
                    yield self.do(commands.Ask(), at, recall(commands.Ask()))
                command: Command = commands.Tell(number, item.total, item.unit, reports.ahead)
                recalled = recall(command)
                row = self._row(number, u, recalled)
                arm = row["arm"]
                if item.arm is not None and arm != item.arm:
                    rule = f"arm must be {arm!r}, which this round was to play"
                    detail = f"{rule}, but got {shown(item.arm)}: another arm cannot be reported"
                    raise Refused("conflict", detail, field="arm")
                same = before is not None and self.settings.arms[before.arms[u]] == arm
                if item.arm is None and number > known and not same:
                    why = "no round had been opened" if before is None else f"round {known} played another arm"
                    detail = f"arm must be given if a report comes before its round is opened and {why}"
                    detail = f"{detail}, but it is missing: this round was to play {arm!r}"
                    raise Refused("conflict", detail, field="arm")
                if reports.restate and row["status"] != "open" and not _reported(row, item.total):
                    command = commands.Amend(number, item.total, item.unit)
                    recalled = recall(command)
                yield self.do(command, at, recalled)
            except Refused as refusal:
                raise refusal.within(f"report {place}", place=place) from None
        # The same reports again get the same answer, with the round that is open by self.
        if reports.next and self.phase == "running" and (self.open is None or self.last > number):
            yield self.do(commands.Ask(), at, recall(commands.Ask()))

    def _number(self, item: ReportItem, u: int) -> int:
        """Return the number of the round that a report is about."""
        settings, number = self.settings, item.round
        if number is None and item.date is None:
            waits = self.open is not None and self.open.reports[u].status == "open"
            number = self.last if waits else self.last + 1
        elif number is None:
            dated = {t: played.date for t, played in self.recent.rounds.items()}
            if settings.start_date is not None:
                day = whole_between(settings.start_date, item.date or "") - self.shift
                near = int(day / settings.round_length) + 1
                dates = {t: date_of(settings, t, "", self.shift) for t in range(max(near - 1, 1), near + 2)}
                dated = dates | dated
            found = [t for t, date in dated.items() if date == item.date]
            if len(found) != 1:
                how = "none has it" if not found else f"{len(found)} have it"
                detail = f"date must be that of one round, but got {item.date} and {how}; give rounds"
                raise Refused("invalid", detail, field="date")
            number = found[0]
        if number > self.last + (self.open is None):
            latest = f"round {self.last} is open" if self.open is not None else f"the next is {self.last + 1}"
            raise Refused("not_open", f"rounds must be reported in order, but got {number} and {latest}", round=number)
        return number

    def _ask(self, command: commands.Ask, at: str, recalled: Recalled) -> Effect:
        """Answer with the arm of a unit; by default with that of the first unit without a report, and with all arms."""
        if self.phase != "running":
            reason = NOT_RUNNING[self.phase]
            raise Refused("wrong_state", f"the experiment must be running to ask, but {reason}", state=self.phase)
        named = None if command.unit is None else self._unit(command.unit)
        if self.open is not None:
            first = next(u for u, report in enumerate(self.open.reports) if report.status == "open")
            u = first if named is None else named
            return self._turn(self.open, self.open.row(self.settings, u), named is None), None, []
        played = self.begin_round(at)
        if self.started_at is None:
            self.started_at = at
        body: dict[str, Any] = {"arms": list(played.arms), "block": played.block}
        if played.arms is not played.drawn:
            body["drawn"] = list(played.drawn)
        if played.number == played.block_start:
            body["probabilities"] = fingerprint(self.probabilities)
        rows = played.rows(self.settings)
        return self._turn(played, rows[named or 0], named is None), body, rows

    def _turn(self, played: Round, row: Row, everybody: bool) -> Fields:
        answer = {**row, "why": words.why(row, self.settings), "warmup": played.warm, "state": self.phase}
        if everybody and self.n_units > 1:
            answer["arms"] = {unit: self.settings.arms[i] for unit, i in zip(self.unit_index, played.arms, strict=True)}
        return answer

    def _tell(self, command: commands.Tell, at: str, recalled: Recalled) -> Effect:
        """Record a report for the open round; the same report again gets the same answer."""
        u, total, played = self._unit(command.unit), command.total, self._opened(command.round)
        if played is None or played is not self.open or played.reports[u].status != "open":
            return self._tell_again(command, self._row(command.round, u, recalled))
        if not command.ahead and self.settings.start_date is not None and (played.date or "") > at[:10]:
            detail = f"round {command.round} has the date {played.date}, but today is {at[:10]}: report it later, or"
            raise Refused("ahead", f"{detail} confirm that it is meant", round=command.round, date=played.date)
        status = self.record(played, u, total, at)
        body: dict[str, Any] = {"total": total, "status": status, "closed": self.waiting == 0}
        if self.waiting == 0:
            outcome, rows = self.end_round(u, at)
            body |= outcome
        else:
            rows = [played.row(self.settings, u)]
        return self._report(rows[0], False), body, rows

    def _tell_again(self, command: commands.Tell, row: Row) -> Effect:
        """Answer a report for a round that already has one."""
        if _reported(row, command.total):
            return self._report(row, True), None, []
        given = "missing" if command.total is None else repr(command.total)
        then = "use amend to correct it" if self._correctable(row) else "its block is closed, so it cannot be changed"
        detail = f"total must equal the earlier report, but {_told(row)} and now as {given}: {then}"
        raise self._conflict("total", row, detail)

    def _conflict(self, field: str, row: Row, detail: str) -> Refused:
        known = {"round": row["round"], "unit": row["unit"], "reported": row["total"]}
        return Refused("conflict", detail, field=field, **known, amendable=self._correctable(row))

    def _amend(self, command: commands.Amend, at: str, recalled: Recalled) -> Effect:
        """Correct a report, or add a late one."""
        u, total, number = self._unit(command.unit), command.total, command.round
        played = self._opened(number)
        before = self._row(number, u, recalled)
        if before["status"] == "open":
            raise Refused("conflict", f"round {number} must have a report to be amended, but has none: use tell")
        if _reported(before, total):
            return self._report(before, True), None, []
        if not isinstance(command.was, type(...)) and not _reported(before, command.was):
            detail = f"was must be the total to be corrected, but got {command.was!r}, and {_told(before)}"
            raise self._conflict("was", before, detail)
        body: dict[str, Any] = {"total": total, "was": before["total"], "was_status": before["status"]}
        late: Fields = {}
        if not self._amendable(number):
            late = self._correct_late(body, u, before, recalled or {}, at)
        elif played is None:
            body |= {"recalled": before, "status": self.recount(number, u, before["total"], total)}
        else:
            body["status"] = self.correct(played, u, total, at)
        row = {**before, "total": total, "status": body["status"], "told_at": at}
        return self._report(row, False) | late, body, [row]

    def _correct_late(self, body: dict[str, Any], u: int, row: Row, recalled: Mapping[str, Any], at: str) -> Fields:
        """Correct a total whose block has ended; add to the body of the event, and return what to add to the answer."""
        total, number = body["total"], row["round"]
        unlearned = None
        if not row["measured"]:
            unlearned = "not_measured"
        elif total is None:
            detail = f"total must be a number to correct round {number}, which was learned from, but it is missing"
            detail = f"{detail}: what was learned can be corrected, but not withdrawn"
            raise Refused("closed", detail, field="total", round=number)
        elif row["substituted"]:
            unlearned = "substitute"
        elif self.inherited is not None and number <= self.inherited["rounds"]:
            unlearned = "inherited"
        elif not self._correctable(row):
            detail = f"round must be in the open block for player 'paper', but the block of round {number} is closed"
            raise Refused("closed", f"{detail} and was learned from, which this player cannot correct", round=number)
        elif not self.least <= total <= self.most and self.settings.out_of_range == "void":
            rule = f"total must lie in {words.possible(self.settings)}, to correct round {number}"
            raise Refused("invalid", f"{rule}, which was learned from, but got {total!r}", field="total", round=number)
        if row["measured"]:
            if "totals" not in recalled:
                detail = f"round must be in the open block unless its block is recalled, but round {number} is not"
                raise Refused("closed", detail, round=number)
            row = row | {name: recalled[name] for name in ("totals", "units")}
        try:
            body["status"] = self.correct_late(u, row, total, at, unlearned is None)
        except InvalidTotal as error:
            raise Refused("invalid", f"total: {error}", field="total", round=number) from None
        learned = unlearned is None
        body |= {"recalled": row, "learned": learned}
        body |= {"probabilities": fingerprint(self.probabilities)} if learned and self.block_closed else {}
        advised = self.adviser is not None
        said = words.late_correction(unlearned, self.block_closed, advised)
        return {"learned": learned or advised, "correction": said}

    def _report(self, row: Row, repeated: bool) -> Fields:
        answer = {**row, "repeated": repeated, "state": self.phase, "open_round": self.open and self.open.number}
        answer["why"] = words.why(row, self.settings)
        if row["status"] in ("void", "clipped"):
            answer["warning"] = words.out_of_range(row, self.settings)
        return answer

    def _start(self, command: commands.Start, at: str, recalled: Recalled) -> Effect:
        if self.phase == "running":
            return self._change()
        self._require("start it", "draft")
        self.phase, self.started_at = "running", at
        return self._change({})

    def _pause(self, command: commands.Pause, at: str, recalled: Recalled) -> Effect:
        """Open no more rounds; an open round still accepts reports."""
        if self.phase == "paused":
            return self._change()
        self._require("pause it", "running")
        self.phase, self.paused_at = "paused", at
        return self._change({"last": self.last})

    def _resume(self, command: commands.Resume, at: str, recalled: Recalled) -> Effect:
        """Resume. Effects of actions during the pause arrive for d rounds; only a model learns from these."""
        if self.phase == "running":
            return self._change()
        self._require("resume it", "paused")
        d = self.settings.max_delay
        paused = self.paused_at or at
        self.shift += whole_between(paused, at)
        self.idle += min(whole_between(paused, at, self.settings.round_length), self.settings.longest_lag)
        self.phase, self.paused_at = "running", None
        rows: list[Row] = []
        if d > 0:
            self.warm_until = self.last + d
            if self.open is not None:
                # It is unknown whether this round was played before the pause or after it.
                self.open.warm, self.open.withheld = True, [self.open.block > 0] * self.n_units
                rows = self.open.rows(self.settings)
        return self._change({"warm_until": self.warm_until, "idle": self.idle}, rows)

    def _set_away(self, command: commands.Away | commands.Back, at: str, recalled: Recalled) -> Effect:
        """Mark an arm as away, which voids the guarantee from then on, or as back."""
        name, away = command.arm, isinstance(command, commands.Away)
        if name not in self._arms:
            detail = f"arm must be one of {shown(list(self._arms))}, but got {shown(name)}"
            raise Refused("not_found", detail, field="arm")
        if (self._arms[name] in self.away) == away:
            return self._change()
        self._require("change its arms", "draft", "running", "paused")
        if away and len(self.away) + 1 == len(self._arms):
            raise Refused("conflict", f"at least one arm must be available, but {name!r} is the last one")
        self.away = sorted({*self.away} ^ {self._arms[name]})
        self.arm_was_away = True
        return self._change(command._asdict())

    def _finish(self, command: commands.Finish, at: str, recalled: Recalled) -> Effect:
        """End the experiment; units without a report in the open round are closed as missing."""
        if self.phase == "finished":
            return self._change()
        played = self.open
        self.phase, self.finished_at = "finished", at
        body: dict[str, Any] = {"last": self.last}
        rows: list[Row] = []
        if played is not None:
            *others, last = [u for u, report in enumerate(played.reports) if report.status == "open"]
            for u in (*others, last):
                self.record(played, u, None, at)
            outcome, rows = self.end_round(last, at)
            body |= outcome
            if not played.update:
                rows += [played.row(self.settings, u) for u in others]
        return self._change(body, rows)

    def _note(self, command: commands.Note, at: str, recalled: Recalled) -> Effect:
        """Write a note on a round, in any state and whether or not its block is open."""
        u = self._unit(command.unit)
        played = self._opened(command.round)
        row = self._row(command.round, u, recalled)
        if row["note"] == command.note:
            return self._report(row, True), None, []
        body: dict[str, Any] = {"note": command.note}
        if played is None:
            body["recalled"] = row
        else:
            played.notes = played.notes or [None] * self.n_units
            played.notes[u] = command.note
        row = {**row, "note": command.note}
        return self._report(row, False), body, [row]

    def _inherit(self, command: commands.Inherit, at: str, recalled: Recalled) -> Effect:
        """Take over the rounds of another experiment, before anything else."""
        if self.last or self.inherited is not None:
            raise Refused("wrong_state", f"rounds can only be inherited before round 1, but {self.last} were opened")
        rows = self.inherit(*command)
        body = {**command._asdict(), "updates": self.updates, "probabilities": fingerprint(self.probabilities)}
        return self._change(body, rows)

    def _remember(self, command: commands.Remember, at: str, recalled: Recalled) -> Effect:
        """Begin with what another experiment has seen, before anything else."""
        if self.last or self.history:
            raise Refused("wrong_state", f"rounds can only be remembered before round 1, but {self.last} were opened")
        self.history = len(command.arms)
        self.learn(command.arms, command.totals)
        return self._change(command._asdict())

    def _change(self, body: dict[str, Any] | None = None, rows: Sequence[Row] = ()) -> Effect:
        """Return the effect of a command on the whole experiment; without a body it has changed nothing."""
        return {"state": self.phase, "repeated": body is None}, body, list(rows)

    def _opened(self, number: int) -> Round | None:
        """Return a round, or None if it is no longer in memory; refuse a number that has not been opened yet."""
        if number < 1:
            raise Refused("invalid", f"round must be at least 1, but got {number}", field="round")
        if number > (last := self.last):
            latest = f"the latest is {last}" if last else "none is"
            detail = f"round must be open to be reported, but got {number} and {latest}"
            raise Refused("not_open", detail, field="round", round=number)
        return self.recent.rounds.get(number)

    def _row(self, number: int, u: int, recalled: Recalled) -> Row:
        """Return the row of a round from memory, or else the recalled one."""
        played = self.recent.rounds.get(number)
        if played is not None:
            return played.row(self.settings, u)
        if recalled is None:
            detail = f"round must be a recent one, but round {number} is no longer in memory"
            raise Refused("closed", detail, round=number)
        return {name: recalled[name] for name in ROW}

    def _amendable(self, number: int) -> bool:
        """Return whether nothing has been learned from a round but by a model, or its block is still open."""
        return self.models or number <= self.opening or (number >= self.block_start and not self.block_closed)

    def _correctable(self, row: Row) -> bool:
        """Return whether a total can be corrected: the player "paper" cannot correct what it has learned."""
        return self._amendable(row["round"]) or self.settings.player != "paper" or not row["measured"]

    def _unit(self, name: str | None) -> int:
        """Return the index of a unit; the name is optional if there is only one."""
        if name is None and self.n_units == 1:
            return 0
        if name in self.unit_index:
            return self.unit_index[name]
        units = shown(list(self.unit_index))
        if name is None:
            raise Refused("invalid", f"unit must be given, one of {units}, but it is missing", field="unit")
        raise Refused("invalid", f"unit must be one of {units}, but got {shown(name)}", field="unit")

    def _require(self, verb: str, *phases: str) -> None:
        if self.phase not in phases:
            detail = f"the experiment must be {' or '.join(phases)} to {verb}, but it is {self.phase}"
            raise Refused("wrong_state", detail, state=self.phase)


_METHODS: dict[type, Callable[..., Effect]] = {
    commands.Ask: Experiment._ask,
    commands.Tell: Experiment._tell,
    commands.Amend: Experiment._amend,
    commands.Note: Experiment._note,
    commands.Start: Experiment._start,
    commands.Pause: Experiment._pause,
    commands.Resume: Experiment._resume,
    commands.Away: Experiment._set_away,
    commands.Back: Experiment._set_away,
    commands.Finish: Experiment._finish,
    commands.Inherit: Experiment._inherit,
    commands.Remember: Experiment._remember,
}


def warm_up() -> None:
    """Play a few rounds in memory with each player, and make a model, so that code is loaded, and compiled if need be.

    A server does this before it accepts requests.
    """
    for player, units in (("advised", 1), ("paper", 1), ("paper", 2), ("model", 1), ("model", 2)):
        settings: dict[str, Any] = {"name": "warm-up", "arms": ["a", "b"], "seed": 1, "horizon": 100}
        settings |= {} if player == "model" else {"high": 1, "max_delay": 0}
        experiment = Experiment(checked_settings({**settings, "player": player, "units": units}))
        # After eight rounds that the model chooses, it advises.
        for number in range(1, 10):
            for unit in experiment.settings.units:
                experiment.do(commands.Ask(unit), "2026-01-01T00:00:00Z")
                experiment.do(commands.Tell(number, 0.5, unit), "2026-01-01T00:00:00Z")
        Experiment.from_state(experiment.state()).view()
    seen = Record([[0], [1], [0]], [[1.0], [2.0], [1.0]])
    learned("", checked_settings({"name": "warm-up", "arms": ["a", "b"]}), seen, seen, (), 4.0)


def _reported(row: Mapping[str, Any], total: float | None) -> bool:
    """Return whether a row has exactly this total, or is closed as missing if the total is None."""
    if total is None:
        return bool(row["status"] == "missing")
    return bool(row["status"] != "missing" and row["total"] == total)


def _told(row: Mapping[str, Any]) -> str:
    how = "closed as missing" if row["status"] == "missing" else f"reported as {row['total']!r}"
    return f"round {row['round']} was {how}"


def _difference(found: Event | None, stored: Event) -> str:
    """Return a description of the first difference between a replayed event and the stored one."""
    if found is None:
        return f"the command had no effect: {shown(dict(stored))}"
    for mine, other in ((found["body"], stored["body"]), (dict(found), dict(stored))):
        for name in sorted({*mine, *other} - {"body"}):
            if mine.get(name) != other.get(name):
                return f"{name} is {shown(other.get(name))} where it should be {shown(mine.get(name))}"
    return f"the fields differ: {shown(dict(stored))}"
