"""The state of an experiment: the learner, the recent rounds, the counts.

Changes are applied without checks: `experiment.py` checks that a command is allowed before it calls this.
"""

import hashlib
import struct
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, reduce
from operator import add
from typing import Any, Self

import orjson

from aftereffect.core import saved
from aftereffect.core.checks import shown
from aftereffect.core.errors import AftereffectError, InvalidArgument, InvalidState
from aftereffect.players.registry import restore
from aftereffect.players.wrapper.panel import Panel
from aftereffect.service.errors import Corrupt
from aftereffect.service.experiment import learner
from aftereffect.service.experiment.learner import Rhythm
from aftereffect.service.experiment.round import RecentRounds, Report, Round, Row, date_of, later, whole_between
from aftereffect.service.messages import Status
from aftereffect.service.settings import ExperimentSettings

COUNTS = ("reports", "missing", "void", "out_of_range", "amended", "substituted", "withheld")
PLAIN = (
    *("phase", "last", "waiting", "block", "block_start", "block_closed", "updates", "warm_until", "mixed_until"),
    *("away", "arm_was_away", "plays", "counts", "sum", "shift", "paused_at", "started_at", "finished_at"),
    *("inherited", "history", "skipped", "idle"),
)
"""The attributes of `State` that are plain JSON values."""
COPIED = ("mixed_until", "away", "plays", "counts", "skipped")
"""Those of them that are lists or dicts."""


def substitute(
    seed: int, block_start: int, unit: int, probabilities: Sequence[float], away: Collection[int]
) -> tuple[int, float]:
    """Return an arm to play instead of one that is away, and the probability with which it was drawn.

    It is drawn with the learner's probabilities, restricted to the available arms. The draw depends only on seed, block
    and unit, so it is the same in all rounds of a block and when the log is replayed.
    """
    present = [i for i in range(len(probabilities)) if i not in away]
    whole = sum(probabilities[i] for i in present)
    # If all available arms have probability 0, draw uniformly.
    shares = [probabilities[i] / whole if whole > 0.0 else 1.0 / len(present) for i in present]
    words = hashlib.sha256(f"stand-in:{seed}:{block_start}:{unit}".encode()).digest()
    left = int.from_bytes(words[:6], "big") / 2**48
    for arm, share in zip(present, shares, strict=True):
        if left < share:
            return arm, share
        left -= share
    return present[-1], shares[-1]


def fingerprint(probabilities: Sequence[float]) -> list[float] | str:
    """Return probabilities as stored in an event: unchanged for up to 16 arms, otherwise as a SHA-256 hash."""
    if len(probabilities) <= 16:
        return list(probabilities)
    return hashlib.sha256(struct.pack(f"<{len(probabilities)}d", *probabilities)).hexdigest()


def digest(fields: Mapping[str, Any]) -> str:
    """Return the SHA-256 hash of the fields of a state as JSON."""
    return hashlib.sha256(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)).hexdigest()


class State:
    """The state of an experiment. panel: the learner, by default built from the settings, or its saved state.

    open: the open round; waiting: the number of units without a report in it. last: the
    latest round opened. block: its block, from 1, 0 in the opening; block_closed: it has ended. warm_until: the last
    round of the latest warm-up. mixed_until: for each unit, the last round whose total mixes effects of an arm and of
    its substitute. away: the unavailable arms; arm_was_away: whether there ever was one. shift: the days of all pauses.
    inherited: the experiment whose rounds were taken over, and how many; None if there is none. history: the rounds of
    another experiment before round 1, which models know; skipped: [t, n] for n rounds without an arm before round t, in
    pauses, as far as models know them; idle: those before the next round. may_have_decided: the adviser
    may have learned in the latest command.
    """

    def __init__(self, settings: ExperimentSettings, panel: Mapping[str, Any] | None = None) -> None:
        if settings.seed is None:
            raise InvalidArgument("seed must be drawn before an experiment begins, but got None")
        self.settings, self.seed, self.n_units = settings, settings.seed, len(settings.units)
        self.unit_index = {name: u for u, name in enumerate(settings.units)}
        self._arms = {name: i for i, name in enumerate(settings.arms)}
        self.recent = RecentRounds(settings.max_delay, self.n_units)
        self.models, self._saved = settings.player == "model", panel
        self.least, self.most = settings.heard_limits
        self.last_round = settings.last_round
        # None if no model advises the learner.
        self.adviser = learner.adviser(settings)
        if not self.models:
            # The record of a model is learned again when it is needed: a page or a report of one unit does not wait.
            self.probabilities = self.chances()
        self.open: Round | None = None
        self.waiting = self.last = self.block = self.updates = self.warm_until = 0
        self.block_start = 1
        self.block_closed = False
        self.mixed_until = [0] * self.n_units
        self.away: list[int] = []
        self.arm_was_away = False
        self.plays = [0] * len(settings.arms)
        self.counts = dict.fromkeys(COUNTS, 0)
        self.sum = 0.0
        self.shift = 0
        self.paused_at: str | None = None
        self.started_at: str | None = None
        self.finished_at: str | None = None
        self.inherited: dict[str, Any] | None = None
        self.history = self.idle = 0
        self.skipped: list[list[int]] = []
        self.may_have_decided = False
        self.phase = "draft" if settings.draft else "running"

    @cached_property
    def panel(self) -> Panel:
        """The learner."""
        if self._saved is None:
            return learner.build(self.settings, self.seed, self.adviser)
        found: Panel = restore(self._saved, sealed=False, adviser=self.adviser)
        return found

    @cached_property
    def opening(self) -> int:
        """How many rounds the adviser chooses itself, before the first block."""
        return 0 if self.adviser is None else learner.opening_of(self.panel)

    def forget(self) -> None:
        """Drop what the adviser has learned, to save memory; the record is to be recalled then."""
        if self.adviser is not None:
            self.adviser.forget()

    def recall(self, arms: Sequence[list[int]], totals: Sequence[list[float | None]]) -> None:
        """Give the adviser the record of all rounds that are closed, once more."""
        if self.adviser is not None:
            known = self.adviser.rounds
            self.adviser.recall(arms, totals)
            if self.adviser.rounds != known:
                raise Corrupt(f"the record must have {known} rounds, pauses among them, but has {len(arms)}")

    @property
    def void(self) -> bool:
        """Whether there is no guarantee: an arm has been away, rounds were inherited, or the range is wrong."""
        return self.arm_was_away or self.inherited is not None or self.unexplained > 0

    @property
    def unexplained(self) -> int:
        """How many totals were out of range, unless they are clipped and covered as late effects."""
        explained = self.settings.out_of_range == "clip" and self.settings.late_share > 0.0
        return 0 if explained else self.panel.counts.out_of_range

    @property
    def gaps(self) -> int:
        """How many reports are missing, void or withheld."""
        told = sum(self.counts[name] for name in ("missing", "void", "withheld"))
        # A report that came after its block had ended leaves the block without it.
        return told or self.panel.counts.void_windows

    @cached_property
    def probabilities(self) -> list[float]:
        """The learner's probabilities when an arm was last chosen."""
        return self.chances()

    def chances(self) -> list[float]:
        """Return the probability of each arm now: to be drawn, or, where a model chooses, to be the best."""
        if self.adviser is not None and self.panel.rounds_played < self.opening:
            return self.adviser.probabilities
        found: list[float] = self.panel.player.probabilities.tolist()
        return found

    @cached_property
    def rhythm(self) -> Rhythm:
        """The block lengths of the learner; not for the player "model"."""
        return learner.rhythm(self.panel, self.settings)

    def date_ahead(self, number: int) -> str | None:
        """Return the date of a round that is still to come, None if nothing is known about dates."""
        if self.settings.start_date is not None or not self.last:
            return date_of(self.settings, number, "", self.shift) or None
        latest = self.recent.rounds[self.last].asked_at[:10]
        return later(latest, int((number - self.last) * self.settings.round_length))

    def begin_round(self, at: str, past: Sequence[Any] | None = None) -> Round:
        """Open the next round: draw arms from the learner, and substitute those that are away.

        past: the date, arms and probabilities of a round that is inherited.
        """
        t, M = self.last + 1, self.n_units
        if self.idle:
            self.skipped.append([t, self.idle])
            self.learn([[-1] * M] * self.idle, [[None] * M] * self.idle)
            self.idle = 0
        drawn, start = self.panel.ask(), t if self.models else self.panel.block_start
        opening = t <= self.opening
        if self.models or opening or t == 1:
            # Without an opening, but with rounds of another experiment, advice comes before the first draw.
            self.probabilities = self.chances()
        self.last = t
        if start == t:
            self.block += not opening
            self.block_start = start
            self.block_closed = False
        arms, probabilities = self._played(drawn) if past is None else past[1:]
        if not self.models and t > start and (self.arm_was_away or self.inherited is not None):
            self._note_mixed(arms)
        # Effects of what was done in a pause still arrive.
        warm = t <= self.warm_until
        played = Round(
            number=t,
            block=self.block,
            block_start=start,
            asked_at=at,
            date=date_of(self.settings, t, at, self.shift) if past is None else past[0],
            drawn=drawn,
            arms=arms,
            probabilities=probabilities,
            withheld=[not opening and (warm or t <= limit) for limit in self.mixed_until],
            measured=[False if opening or t - start < self.settings.max_delay else None] * M,
            fed=[None] * M,
            reports=[Report()] * M,
            warm=warm,
        )
        if past is not None:
            played.inherited = True
            others = [arm != own for arm, own in zip(arms, drawn, strict=True)]
            if not self.models and not opening:
                played.withheld = [hidden or other for hidden, other in zip(played.withheld, others, strict=True)]
        for arm in arms:
            self.plays[arm] += 1
        self.open, self.waiting = played, M
        self.recent.add(played)
        return played

    def _played(self, drawn: Sequence[int]) -> tuple[Sequence[int], list[float]]:
        """Return the arms to play, drawn or substituted, with their probabilities.

        The learner attributes the result of a substitute to the arm that is away. So blocks end as usual, and while an
        arm is away it is credited with the results of the others: it neither gains on them nor falls behind.
        """
        probabilities = [self.probabilities[i] for i in drawn]
        if not any(arm in self.away for arm in drawn):
            return drawn, probabilities
        arms = list(drawn)
        for u, arm in enumerate(drawn):
            if arm in self.away:
                arms[u], probabilities[u] = substitute(self.seed, self.block_start, u, self.probabilities, self.away)
                self.counts["substituted"] += 1
        return arms, probabilities

    def _note_mixed(self, arms: Sequence[int]) -> None:
        """Set `mixed_until` for units whose arm differs from the previous round: d totals mix effects of both arms."""
        before = self.recent.since(self.last - 1)[0].arms
        for u, (was, now) in enumerate(zip(before, arms, strict=True)):
            if was != now:
                self.mixed_until[u] = self.last + self.settings.max_delay - 1

    def record(self, played: Round, u: int, total: float | None, at: str) -> Status:
        """Record a report in the open round; return its status."""
        self.waiting -= 1
        status = self._count(total, 1)
        played.reports[u] = Report(total, status, at)
        return status

    def correct(self, played: Round, u: int, total: float | None, at: str) -> Status:
        """Replace a total; amend it in the learner too, unless the round is still open or the total is withheld."""
        if not self.models and played.block > 0 and played is not self.open and not played.withheld[u]:
            self.panel.amend(played.number, total, u)
        status = self.recount(played.number, u, played.reports[u].total, total)
        played.reports[u] = Report(total, status, at)
        return status

    def _learn_again(self, number: int, u: int, total: float | None) -> None:
        """Correct a total of a closed round in the model."""
        place = number + self.history + sum(count for first, count in self.skipped if first <= number)
        if self.models:
            player: Any = self.panel.player
            player.correct(place, total, u)
        elif self.adviser is not None:
            self.adviser.relearn(place, self.settings.heard(total), u)

    def correct_late(self, u: int, row: Row, total: float | None, at: str, learn: bool) -> Status:
        """Replace a total whose block has ended, and return its status. row: as `with_block` returns it, if measured.

        learn: correct the learner too, with the probability of the draw.
        """
        was = row["total"]
        if learn and total is not None:
            # What the learner heard of the totals. Not by `sum`, which depends on the version of Python.
            heard = reduce(add, map(self._heard, row["totals"]))
            now = heard - self._heard(was) + self._heard(total)
            given = {"unit": u, "arm": self._arms[row["arm"]], "measured": len(row["totals"])}
            given |= {"probability": row["probability"], "units": row["units"]}
            self.panel.correct(**given, was=heard, now=now)
            if self.block_closed:
                self.probabilities = self.chances()
        status = self.recount(row["round"], u, was, total)
        if row["round"] in self.recent.rounds:
            self.recent.rounds[row["round"]].reports[u] = Report(total, status, at)
        return status

    def learn(self, arms: list[list[int]], totals: list[list[float | None]]) -> None:
        """Let a model learn from rounds that it was not asked for."""
        model: Any = self.panel.player if self.models else self.adviser
        if model is not None:
            model.learn(arms, totals)

    def _heard(self, total: float) -> float:
        return min(max(total, self.least), self.most)

    def recount(self, number: int, u: int, was: float | None, total: float | None) -> Status:
        """Count a correction of one total to another, and let a model learn again; return the new status."""
        if self.open is None or number != self.last:
            self._learn_again(number, u, total)
        self._count(was, -1)
        self.counts["amended"] += 1
        return self._count(total, 1)

    def _count(self, total: float | None, sign: int) -> Status:
        """Count a report (sign 1) or remove it from the counts (sign -1); return its status."""
        if total is None:
            self.counts["missing"] += sign
            return "missing"
        self.counts["reports"] += sign
        if self.least <= total <= self.most:
            self.sum += sign * total
            return "reported"
        # Totals out of range stay counted after a correction.
        self.counts["out_of_range"] += sign > 0
        if self.settings.out_of_range == "clip":
            self.sum += sign * self._heard(total)
            return "clipped"
        self.counts["void"] += sign
        return "void"

    def inherit(
        self, source: str, rounds: Sequence[Any], pauses: Sequence[Sequence[int]], skipped: Sequence[Sequence[int]]
    ) -> list[Row]:
        """Play the rounds of another experiment, `source`, again, and return their rows; see `commands.Inherit`.

        The learner is asked and told as ever, and hears a total only if it would have played the arm that was played;
        a block whose arm was not played goes on until it was. So it learns from what it would have seen itself.
        """
        found: dict[tuple[int, str], Row] = {}
        self.inherited = {"experiment": source, "rounds": len(rounds)}
        idle = {pause[0]: pause[1] for pause in skipped}
        for date, asked_at, units in rounds:
            self.idle = idle.get(self.last + 1, 0)
            for first, last in pauses:
                if first == self.last + 1:
                    self.warm_until = last + self.settings.max_delay
            arms, probabilities, totals, told, notes = zip(*units, strict=True)
            played = self.begin_round(asked_at, (date, list(arms), list(probabilities)))
            played.notes = list(notes) if any(notes) else []
            for u, at in enumerate(told):
                if at is not None:
                    self.record(played, u, totals[u], at)
            changed = self.end_round(0, max(told))[1] if self.waiting == 0 else []
            found |= {(row["round"], row["unit"]): row for row in [*played.rows(self.settings), *changed]}
        if rounds and self.settings.start_date is not None and rounds[-1][0] is not None:
            planned = date_of(self.settings, len(rounds), "", 0)
            self.shift = whole_between(planned or rounds[-1][0], rounds[-1][0])
        self.started_at = rounds[0][1] if rounds else self.started_at
        return list(found.values())

    def end_round(self, u: int, at: str) -> tuple[dict[str, Any], list[Row]]:
        """Pass the complete round to the learner; return fields for the event, and the rows that changed.

        u: the unit that reported last; its row comes first.
        """
        played = self.open
        if played is None:
            raise RuntimeError("no round is open")
        self.open = None
        heard = [report.total for report in played.reports]
        if True in played.withheld:
            heard = [None if hidden else total for total, hidden in zip(heard, played.withheld, strict=True)]
            self.counts["withheld"] += sum(played.withheld)
        if self.adviser is not None:
            known = [report.total if report.status != "void" else None for report in played.reports]
            clipped = [None if total is None else self._heard(total) for total in known]
            self.adviser.learn([[*played.arms]], [clipped])
        result = self.panel.tell(heard, played.arms) if self.models else self.panel.tell(heard)
        outcome: dict[str, Any] = {"update": result.update}
        if self.last == self.last_round:
            self.phase, self.finished_at = "finished", at
            outcome["state"] = "finished"
        if played.number == self.opening:
            self.probabilities = self.chances()
        if not result.update:
            return outcome, [played.row(self.settings, u)]
        played.update, self.block_closed = True, True
        self.updates += 1
        if self.models:
            played.measured = [total is not None for total in heard]
            rest = [v for v in range(self.n_units) if v != u]
            return outcome, [played.row(self.settings, v) for v in (u, *rest)]
        played.fed = result.fed_losses
        self.probabilities = self.chances()
        changed = self._measure(played, u, result.measured)
        outcome |= {"fed": list(played.fed), "probabilities": fingerprint(self.probabilities)}
        return outcome, [p.row(self.settings, v) for p, v in changed]

    def _measure(self, end: Round, told_last: int, measured: int) -> list[tuple[Round, int]]:
        """Set `measured` in the rounds of a block that has ended; return the rounds and units that changed.

        The unit that reported last comes first.
        """
        first, known = end.number - measured + 1, [fed is not None for fed in end.fed]
        changed = [(end, told_last), *((end, u) for u in range(self.n_units) if u != told_last)]
        end.measured = known
        for played in self.recent.since(end.block_start)[:-1]:
            before, played.measured = played.measured, known if played.number >= first else [False] * self.n_units
            changed += [(played, u) for u, was in enumerate(before) if was is not played.measured[u]]
        return changed

    def state(self) -> dict[str, Any]:
        """Return the complete state as plain JSON, with kind, version and digest; `from_state` restores it exactly."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in PLAIN}
        fields |= {name: fields[name].copy() for name in COPIED}
        fields |= {"settings": self.settings.to_json(), "rounds": self.recent.state()}
        untouched = self._saved is not None and "panel" not in self.__dict__
        fields["panel"] = self._saved if untouched else self.panel.unsealed()
        fields["odds"] = self.probabilities if self.models else None
        fields |= {"kind": "Experiment", "version": saved.VERSION}
        return {**fields, "digest": digest(fields)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Restore an experiment from the result of `state`."""
        try:
            fields = {**state}
            if (sealed := fields.pop("digest")) != digest(fields):
                raise InvalidState(f"digest must match the fields (an altered state?), but got {shown(sealed)}")
            fields = saved.unseal(fields, "Experiment", ("settings", "panel", "rounds", "odds", *PLAIN))
            settings = ExperimentSettings.from_json(fields["settings"])
            found = cls(settings, fields["panel"])
            if fields["odds"] is not None:
                found.probabilities = fields["odds"]
            fields |= {name: fields[name].copy() for name in COPIED}
            for name in PLAIN:
                setattr(found, name, fields[name])
            rounds = [Round.from_state(each) for each in fields["rounds"]]
            found.recent = RecentRounds(settings.max_delay, found.n_units, rounds)
            found.open = rounds[-1] if found.waiting else None
        except Corrupt:
            raise
        except (AftereffectError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise Corrupt(f"a state must hold what state() saved, but {error}") from None
        return found
