"""Reports repeated, reordered, late, corrected, unknown: an experiment against a simple model of what should hold.

The model keeps a table of reports and drives a panel of its own with what the learner should hear. It knows nothing
of memory, events or rows. Whatever is refused must leave no trace, the log must replay to the same state, and an
experiment put away and taken up again must go on as if nothing had happened.
"""

import functools
import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import aftereffect as ae
from aftereffect.core.effects import effects, stretch_bounds
from aftereffect.lags.kernels import KEEP, judgement_size
from aftereffect.players.advisers import AGAIN, FIRST, Lags, Setting, model_at
from aftereffect.service.errors import Refused
from aftereffect.service.experiment import commands
from aftereffect.service.experiment.experiment import Done, Experiment
from aftereffect.service.experiment.round import with_block
from aftereffect.service.settings import checked_settings

SOAK = os.environ.get("AFTEREFFECT_SOAK") == "1"
TOTALS = st.one_of(st.none(), st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0, -1.0, 1e300]), st.floats(0.0, 1.0))


class ByHand(Lags):
    """The lag model as an adviser, which learns the whole record again whenever it is asked."""

    def __init__(self, max_lag: int, season: int) -> None:
        super().__init__(max_lag, season)
        self.record: list[tuple[list[int], list[float | None]]] = []

    def begin(self, setting: Setting) -> None:
        super().begin(setting)
        self.setting = setting

    def hear(self, arms: Sequence[int], totals: Sequence[float | None]) -> None:
        pass

    def learn(self) -> None:
        fresh = Lags(self.max_lag, self.season)
        fresh.begin(self.setting)
        for arms, totals in self.record:
            fresh.hear(arms, totals)
        place = model_at(self._params, self._n_arms)
        self._numbers[place:] = fresh._numbers[place:]

    def advise(self) -> Any:
        self.learn()
        return super().advise()

    def play(self, stream: Any) -> Any:
        self.learn()
        return super().play(stream)

    @property
    def best(self) -> list[float]:
        last = model_at(self._params, self._n_arms) - judgement_size(self._n_arms) + 2 * KEEP
        found = self._numbers[last : last + self._n_arms]
        return (found / found.sum() if found.sum() else np.ones(self._n_arms) / self._n_arms).tolist()


class Machine(RuleBasedStateMachine):
    """Rules try everything in every state; the model says what must come of it."""

    @initialize(
        n_arms=st.integers(2, 4),
        max_delay=st.integers(0, 2),
        units=st.integers(1, 3),
        horizon=st.sampled_from([None, None, 30, 60]),
        draft=st.booleans(),
        paper=st.booleans(),
        known=st.booleans(),
        seed=st.integers(0, 2**64 - 1),
    )
    def begin(
        self,
        n_arms: int,
        max_delay: int,
        units: int,
        horizon: int | None,
        draft: bool,
        paper: bool,
        known: bool,
        seed: int,
    ) -> None:
        self.arms = [f"arm {i}" for i in range(n_arms)]
        self.units = [str(u + 1) for u in range(units)]
        self.d, self.horizon = max_delay, horizon
        given = {"name": "m", "arms": self.arms, "high": 1.0, "max_delay": max_delay, "units": units}
        self.paper = paper and horizon is not None
        player = "paper" if self.paper else "advised"
        # With a prior there is no opening.
        means = [i / n_arms for i in range(n_arms)] if known and not self.paper else None
        given["prior"] = None if means is None else {"means": dict(zip(self.arms, means, strict=True)), "updates": 0.5}
        self.settings = checked_settings({**given, "horizon": horizon, "seed": seed, "draft": draft, "player": player})
        self.experiment = Experiment(self.settings)
        self.seed = seed
        self.reports: dict[tuple[int, int], float | None] = {}
        self.statuses: dict[tuple[int, int], str] = {}
        self.withheld: set[tuple[int, int]] = set()
        self.drawn: dict[int, list[int]] = {}
        self.last, self.open = 0, False
        self.least, self.most = stretch_bounds(effects("maximize", 0.0, 1.0), max_delay, 1)
        make = ae.CompositeLossWrapper.tuned if self.paper else ae.default_player
        sizes: dict[str, Any] = {"n_arms": n_arms, "max_delay": max_delay, "seed": seed}
        self.adviser = ByHand(14 if max_delay else 0, 7)
        prior = None if means is None else ae.Prior(means, 0.5)
        sizes |= {"horizon": horizon} if self.paper else {"adviser": self.adviser, "prior": prior}
        self.panel = ae.Panel(make(**sizes, direction="maximize", out_of_range="void"), n_units=units)
        self.opening = 0 if self.paper else self.panel.player.opening
        assert (self.opening > 0) is not (self.paper or known)
        self.state = "draft" if draft else "running"
        # First round, last round, what was fed, first round that was learned from.
        self.blocks: list[tuple[int, int | None, list[float | None], int]] = []
        self.played: list[int] = []
        self.away: set[int] = set()
        self.ever_away = False
        self.warm_until = 0
        self.stained = [0] * units
        self.amended = 0
        self.rows: dict[tuple[int, str], dict[str, Any]] = {}
        self.log: list[dict[str, Any]] = []
        self.clock = 0

    # What the experiment is told, and what must come of it.

    def carry_out(self, command: commands.Command) -> Done:
        self.clock += 1
        wanted = self.experiment.forgotten(command)
        recalled = None if wanted is None else self.rows[wanted]
        if recalled is not None and recalled["measured"]:
            recalled = with_block(recalled, [row for row in self.rows.values() if row["block"] == recalled["block"]])
        if self.experiment.lacks_record(command):
            self.experiment.recall([arms for arms, _ in self.adviser.record], [told for _, told in self.adviser.record])
        done = self.experiment.do(command, f"2026-01-01T00:00:00.{self.clock:06d}Z", recalled)
        json.dumps([done.answer, done.event, done.rows], allow_nan=False)
        self.rows |= {(row["round"], row["unit"]): row for row in done.rows}
        if done.event is not None:
            self.log.append(done.event)
        return done

    def refuse(self, command: commands.Command, code: str) -> None:
        before = self.experiment.state()["digest"]
        with pytest.raises(Refused) as caught:
            self.carry_out(command)
        assert caught.value.code == code, (command, caught.value.detail)
        assert self.experiment.state()["digest"] == before

    def repeat(self, command: commands.Command) -> Done:
        before = self.experiment.state()["digest"]
        done = self.carry_out(command)
        assert (done.event, done.rows) == (None, [])
        assert self.experiment.state()["digest"] == before
        return done

    def status(self, total: float | None) -> str:
        if total is None:
            return "missing"
        return "reported" if self.least <= total <= self.most else "void"

    def block_is_open(self, number: int) -> bool:
        if number <= self.opening:
            return number == self.last and self.open
        if not self.blocks:
            return number > self.last
        start, end, *_ = self.blocks[-1]
        return number >= start and end is None

    def close(self) -> None:
        heard = [
            None if (self.last, u) in self.withheld else self.reports[self.last, u] for u in range(len(self.units))
        ]
        reports = [(self.reports[self.last, u], self.statuses[self.last, u]) for u in range(len(self.units))]
        self.adviser.record.append((self.played, [None if status == "void" else total for total, status in reports]))
        result = self.panel.tell(heard)
        self.open = False
        if result.update:
            first = self.last - result.measured + 1
            self.blocks[-1] = (self.blocks[-1][0], self.last, result.fed_losses, first)
        if self.last == self.horizon:
            self.state = "finished"

    # The rules.

    @rule()
    def start(self) -> None:
        if self.state == "draft":
            assert self.carry_out(commands.Start()).answer["state"] == "running"
            self.state = "running"
        elif self.state == "running":
            self.repeat(commands.Start())
        else:
            self.refuse(commands.Start(), "wrong_state")

    @rule(u=st.none() | st.integers(0, 2))
    def ask(self, u: int | None) -> None:
        unit = None if u is None else self.units[u % len(self.units)]
        if self.state != "running":
            self.refuse(commands.Ask(unit), "wrong_state")
            return
        if self.open:
            answer = self.repeat(commands.Ask(unit)).answer
            waits = [v for v in self.units if (self.last, self.units.index(v)) not in self.reports]
            assert answer["unit"] == (waits[0] if unit is None else unit)
            row = self.rows[self.last, answer["unit"]]
            assert {name: answer[name] for name in row} == row
            return
        self.check_opened(self.carry_out(commands.Ask(unit)), unit)

    def check_opened(self, done: Done, unit: str | None) -> None:
        self.last += 1
        self.open = True
        drawn = self.panel.ask()
        self.drawn[self.last] = drawn
        opening = self.last <= self.opening
        fresh = self.panel.block_start == self.last and not opening
        if fresh:
            self.blocks.append((self.last, None, [], 0))
        assert [row["unit"] for row in done.rows] == self.units
        assert done.answer["unit"] == (unit or self.units[0])
        for u, row in enumerate(done.rows):
            arm = self.arms.index(row["arm"])
            assert arm not in self.away
            assert row["substituted"] == (drawn[u] in self.away)
            if not opening and not fresh and arm != self.played[u]:
                self.stained[u] = self.last + self.d - 1
            if not row["substituted"]:
                assert arm == drawn[u]
                assert row["probability"] == (self.adviser.best if opening else self.panel.probabilities)[arm]
            if not opening and self.last <= max(self.warm_until, self.stained[u]):
                self.withheld.add((self.last, u))
            assert (row["round"], row["status"], row["total"]) == (self.last, "open", None)
            assert row["block"] == len(self.blocks)
            assert row["block_start"] == (self.last if opening else self.blocks[-1][0])
        self.played = [self.arms.index(row["arm"]) for row in done.rows]

    @rule(u=st.integers(0, 2), total=TOTALS)
    def tell(self, u: int, total: float | None) -> None:
        """Report the open round, or the last one once more."""
        self.report(self.last, u % len(self.units), total)

    @rule(back=st.integers(-2, 60), u=st.integers(0, 2), total=TOTALS)
    def tell_any(self, back: int, u: int, total: float | None) -> None:
        """Report a round long gone, or one that is yet to come."""
        self.report(self.last - back, u % len(self.units), total)

    @rule(back=st.integers(0, 60), u=st.integers(0, 2))
    def tell_again(self, back: int, u: int) -> None:
        """Deliver a report twice."""
        u %= len(self.units)
        key = (self.last - back, u)
        if key in self.reports:
            self.report(*key, self.reports[key])

    def report(self, number: int, u: int, total: float | None) -> None:
        command = commands.Tell(number, total, self.units[u])
        if number < 1:
            self.refuse(command, "invalid")
        elif number > self.last:
            self.refuse(command, "not_open")
        elif (number, u) in self.reports:
            if self.reports[number, u] == total:
                answer = self.repeat(command).answer
                assert (answer["total"], answer["repeated"]) == (total, True)
            else:
                self.refuse(command, "conflict")
        else:
            done = self.carry_out(command)
            self.reports[number, u], self.statuses[number, u] = total, self.status(total)
            assert (done.answer["status"], done.answer["total"]) == (self.status(total), total)
            if all((number, v) in self.reports for v in range(len(self.units))):
                self.close()

    @rule(rounds=st.integers(1, 40), total=st.sampled_from([0.0, 0.25, 0.5]), stop=st.booleans())
    def play_on(self, rounds: int, total: float, stop: bool) -> None:
        """Get on, perhaps until a block is closed: most blocks are longer than most sequences of single steps."""
        for _ in range(rounds):
            if self.state != "running":
                return
            if not self.open:
                self.check_opened(self.carry_out(commands.Ask()), None)
            for u in range(len(self.units)):
                if (self.last, u) not in self.reports:
                    self.report(self.last, u, total)
            if stop and self.blocks and self.blocks[-1][1] == self.last:
                return

    @rule(back=st.integers(-2, 12), u=st.integers(0, 2), total=TOTALS)
    def amend_any(self, back: int, u: int, total: float | None) -> None:
        self.correct(self.last - back, u % len(self.units), total)

    @rule(back=st.integers(0, 1), u=st.integers(0, 2), total=st.sampled_from([None, 0.25, 0.75]))
    def amend(self, back: int, u: int, total: float | None) -> None:
        """Correct a round that has just been told."""
        self.correct(self.last - back, u % len(self.units), total)

    @rule(u=st.integers(0, 2), total=st.sampled_from([None, 0.25, 0.75]), was=TOTALS)
    def amend_if(self, u: int, total: float | None, was: float | None) -> None:
        """Correct the last round, if it has the total that somebody has seen."""
        u %= len(self.units)
        key = (self.last, u)
        known = self.reports.get(key)
        if key in self.reports and total != known and was != known:
            self.refuse(commands.Amend(*(self.last, total, self.units[u]), was=was), "conflict")
        self.correct(self.last, u, total, **({"was": known} if key in self.reports else {}))

    @precondition(lambda self: self.state != "draft" and not self.paper)
    @rule(pick=st.integers(0, 30), total=st.sampled_from([0.0, 0.125, 0.75, 1.0]), further=st.integers(0, 2))
    def restate(self, pick: int, total: float, further: int) -> None:
        """Play until a block ends, and perhaps further, and correct a total that was learned from."""
        self.play_on(10, 0.5, True)
        self.play_on(further, 0.5, False)
        learned = [(t, u) for t, u in self.reports if self.measured(t, u) and self.reports[t, u] != total]
        if learned:
            self.correct(*learned[-1 - pick % len(learned)], total)

    def correct(self, number: int, u: int, total: float | None, **was: float | None) -> None:
        command = commands.Amend(number, total, self.units[u], **was)
        if number < 1:
            self.refuse(command, "invalid")
        elif number > self.last:
            self.refuse(command, "not_open")
        elif (number, u) not in self.reports:
            self.refuse(command, "conflict")
        elif self.reports[number, u] == total:
            self.repeat(command)
        elif not self.block_is_open(number) and self.measured(number, u):
            self.correct_late(command, number, u, total)
        else:
            done = self.carry_out(command)
            assert done.answer["status"] == self.status(total)
            self.reports[number, u], self.statuses[number, u] = total, self.status(total)
            self.amended += 1
            self.restated(number, u)
            if number <= self.opening:
                assert "learned" not in done.answer
            elif not self.block_is_open(number):
                assert done.answer["learned"] is not self.paper
            elif (number < self.last or not self.open) and (number, u) not in self.withheld:
                self.panel.amend(number, total, u)

    def restated(self, number: int, u: int) -> None:
        """The adviser hears corrections of closed rounds."""
        if number <= len(self.adviser.record) and not self.paper:
            void = self.statuses[number, u] == "void"
            self.adviser.record[number - 1][1][u] = None if void else self.reports[number, u]
            # It judges anew, however few rounds there are since the last time.
            self.adviser._numbers[AGAIN] = FIRST

    def correct_late(self, command: commands.Amend, number: int, u: int, total: float | None) -> None:
        """Correct a total that was learned from: what was learned follows, unless a substitute was played."""
        _, end, fed, first = next(block for block in reversed(self.blocks) if block[0] <= number)
        row = self.rows[number, self.units[u]]
        sums = []
        for totals in (self.reports, self.reports | {(number, u): total}):
            sums.append([totals[t, u] for t in range(first, (end or 0) + 1)])
        if total is None or (self.paper and not row["substituted"]):
            self.refuse(command, "closed")
            return
        m, (was, now) = len(sums[0]), sums
        possible = stretch_bounds(effects("maximize", 0.0, 1.0), self.d, m)
        if not row["substituted"] and (self.status(total) == "void" or not possible[0] <= sum(now) <= possible[1]):
            self.refuse(command, "invalid")
            return
        done = self.carry_out(command)
        assert done.answer["learned"] is not (row["substituted"] and self.paper)
        if not row["substituted"]:
            units = sum(loss is not None for loss in fed)
            given: dict[str, Any] = {"unit": u, "arm": self.drawn[number][u], "measured": m, "units": units}
            before = functools.reduce(float.__add__, was)
            after = before - self.reports[number, u] + total
            self.panel.correct(**given, probability=row["probability"], was=before, now=after)
        self.reports[number, u], self.statuses[number, u] = total, self.status(total)
        self.amended += 1
        self.restated(number, u)

    @rule()
    def pause(self) -> None:
        if self.state == "running":
            self.carry_out(commands.Pause())
            self.state = "paused"
        elif self.state == "paused":
            self.repeat(commands.Pause())
        else:
            self.refuse(commands.Pause(), "wrong_state")

    @rule()
    def resume(self) -> None:
        if self.state == "paused":
            self.carry_out(commands.Resume())
            self.state = "running"
            if self.d:
                self.warm_until = self.last + self.d
                if self.open and self.last > self.opening:
                    self.withheld |= {(self.last, u) for u in range(len(self.units))}
        elif self.state == "running":
            self.repeat(commands.Resume())
        else:
            self.refuse(commands.Resume(), "wrong_state")

    @precondition(lambda self: self.state == "running")
    @rule(asked=st.booleans())
    def interrupt(self, asked: bool) -> None:
        """Pause and resume, with a round open or not, and play on into the warm-up."""
        if asked and not self.open:
            self.check_opened(self.carry_out(commands.Ask()), None)
        self.pause()
        self.resume()
        self.play_on(2, 0.5, False)

    @rule(arm=st.integers(0, 3))
    def arm_away(self, arm: int) -> None:
        arm %= len(self.arms)
        command = commands.Away(self.arms[arm])
        if arm in self.away:
            self.repeat(command)
        elif self.state == "finished":
            self.refuse(command, "wrong_state")
        elif len(self.away) == len(self.arms) - 1:
            self.refuse(command, "conflict")
        else:
            self.carry_out(command)
            self.away.add(arm)
            self.ever_away = True

    @rule(arm=st.integers(0, 3))
    def arm_back(self, arm: int) -> None:
        arm %= len(self.arms)
        command = commands.Back(self.arms[arm])
        if arm not in self.away:
            self.repeat(command)
        elif self.state == "finished":
            self.refuse(command, "wrong_state")
        else:
            self.carry_out(command)
            self.away.discard(arm)

    @precondition(lambda self: self.state == "running" and self.last)
    @rule(u=st.integers(0, 2))
    def send_away_for_a_while(self, u: int) -> None:
        """Take away an arm of the block, play a round with its stand-in, and go on once it is back."""
        arm = self.drawn[self.last][u % len(self.units)]
        self.play_on(1, 0.5, False)
        self.arm_away(arm)
        self.play_on(1, 0.5, False)
        self.arm_back(arm)
        self.play_on(2, 0.5, False)

    @precondition(lambda self: self.last > 20)
    @rule(asked=st.booleans())
    def finish(self, asked: bool) -> None:
        if asked and self.state == "running" and not self.open:
            self.check_opened(self.carry_out(commands.Ask()), None)
        if self.state == "finished":
            self.repeat(commands.Finish())
            return
        self.carry_out(commands.Finish())
        if self.open:
            missing = [(self.last, u) for u in range(len(self.units)) if (self.last, u) not in self.reports]
            self.reports |= dict.fromkeys(missing)
            self.statuses |= dict.fromkeys(missing, "missing")
            self.close()
        self.state = "finished"

    @rule()
    def put_away_and_take_up(self) -> None:
        state = json.loads(json.dumps(self.experiment.state(), allow_nan=False))
        digest = self.experiment.state()["digest"]
        self.experiment = Experiment.from_state(state)
        assert self.experiment.state()["digest"] == digest

    # What must hold at any time.

    @invariant()
    def the_learner_has_heard_what_it_should(self) -> None:
        found, wanted = self.experiment.state()["panel"], self.panel.unsealed()
        for panel in (found, wanted):
            panel["inside"] = {name: value for name, value in panel["inside"].items() if name != "adviser"}
        assert found == wanted

    @invariant()
    def the_view_says_what_the_model_knows(self) -> None:
        view = self.experiment.view()
        assert (view.state, view.round) == (self.state, self.last)
        assert view.open_round == (self.last if self.open else None)
        opening = self.last - self.open < self.opening
        assert list(view.probabilities.values()) == list(self.adviser.best if opening else self.panel.probabilities)
        ended = [end for _, end, *_ in self.blocks if end is not None]
        assert (view.block, view.updates) == (len(self.blocks), len(ended))
        statuses = list(self.statuses.values())
        counts = view.counts
        assert (counts["missing"], counts["void"]) == (statuses.count("missing"), statuses.count("void"))
        assert (counts["amended"], counts["reports"]) == (self.amended, len(statuses) - statuses.count("missing"))
        assert view.guarantee.void == (self.ever_away or self.panel.counts.out_of_range > 0)
        shown = view.guarantee.certificate
        assert (shown is None) == (self.paper or not self.panel.rounds_played)
        if shown is not None:
            own = self.panel.certificate()
            assert (shown.value, shown.terms, shown.rounds) == (own.value, own.terms, own.rounds)
            assert view.plan.informative_from == own.worst_case_from
        assert sum(view.plays.values()) == self.last * len(self.units)

    def measured(self, number: int, u: int) -> bool | None:
        if number <= self.opening:
            return False
        start, end, fed, first = next(block for block in reversed(self.blocks) if block[0] <= number)
        if end is not None:
            return number >= first and fed[u] is not None
        return False if number < start + self.d else None

    @invariant()
    def the_rows_are_the_table_of_reports(self) -> None:
        assert set(self.rows) == {(t, unit) for t in range(1, self.last + 1) for unit in self.units}
        for (number, unit), row in self.rows.items():
            u = self.units.index(unit)
            if (number, u) in self.reports:
                assert (row["total"], row["status"]) == (self.reports[number, u], self.statuses[number, u])
            else:
                assert (row["total"], row["status"]) == (None, "open")
            assert row["measured"] == self.measured(number, u), (row, self.blocks)
            updated = any(block[1] == number for block in self.blocks)
            assert row["update"] == updated

    def teardown(self) -> None:
        if not hasattr(self, "log"):
            return
        twin, rows = Experiment(self.settings), {}
        for event in json.loads(json.dumps(self.log)):
            rows |= {(row["round"], row["unit"]): row for row in twin.replay(event)}
        assert twin.state()["digest"] == self.experiment.state()["digest"]
        assert rows == self.rows


Machine.TestCase.settings = settings(
    max_examples=2000 if SOAK else 60,
    stateful_step_count=80 if SOAK else 40,
    deadline=None,
    derandomize=not SOAK,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
TestDelivery = Machine.TestCase
