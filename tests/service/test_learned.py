"""What all totals say of the arms, against a model told the same by hand; and the player "model", which plays by it."""

import datetime
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.table import Table
from tests.refusals import refuses

import aftereffect as ae
from aftereffect.service import words
from aftereffect.service.cli import output
from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Amend, Ask, Away, Back, Pause, Resume, Tell
from aftereffect.service.messages import Learned
from aftereffect.service.settings import checked_settings
from aftereffect.service.store.store import Store

ARMS = ["a", "b", "c"]
MODEL: dict[str, Any] = {"name": "m", "arms": ARMS, "seed": 3}
ADVISED: dict[str, Any] = {**MODEL, "high": 40, "max_delay": 2}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path}/s.db") as found:
        yield found


class Hand:
    """Plays an experiment a round a day, and tells a model of its own what happened."""

    def __init__(self, store: Store, **settings: Any) -> None:
        self.store, self.day = store, datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
        store.now = lambda: self.day.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        view = store.create(settings)
        self.id, self.units = view.id, view.units
        self.rng, self.effects = np.random.default_rng(0), {"a": 1.0, "b": 4.0, "c": 2.0, "d": 0.0}
        self.arms: list[list[int]] = []
        self.totals: list[list[float]] = []
        self.places: list[int] = []
        self.max_lag = view.max_lag or 14

    def play(self, rounds: int) -> None:
        for _ in range(rounds):
            asked = self.store.perform(self.id, Ask())
            arms = asked.get("arms") or {asked["unit"]: asked["arm"]}
            self.places.append(len(self.arms))
            self.arms.append(["abcd".index(arms[unit]) for unit in self.units])
            self.totals.append([])
            for unit in self.units:
                total = round(5.0 + self.effects[arms[unit]] + float(self.rng.normal()), 3)
                self.store.perform(self.id, Tell(asked["round"], total, unit))
                self.totals[-1].append(total)
            self.day += datetime.timedelta(days=1)

    def pause(self, days: int) -> None:
        self.store.perform(self.id, Pause())
        self.day += datetime.timedelta(days=days)
        self.store.perform(self.id, Resume())
        for _ in range(min(days, self.max_lag)):
            self.arms.append([-1] * len(self.units))
            self.totals.append([math.nan] * len(self.units))

    def amend(self, number: int, total: float | None, u: int = 0) -> None:
        self.store.perform(self.id, Amend(number, total, self.units[u]))
        self.totals[self.places[number - 1]][u] = math.nan if total is None else total

    def model(self, n_arms: int = 3) -> ae.LagModel:
        model = ae.LagModel(n_arms, 14, 7, len(self.units), direction="maximize")
        model.learn(self.arms, self.totals)
        return model


def agrees(found: Learned, model: ae.LagModel, arms: list[str]) -> None:
    whole, lags = model.effects(), model.by_lag()
    by_arm = {each.arm: each for each in found.arms}
    for i, arm in enumerate(arms):
        assert by_arm[arm].effect == pytest.approx([whole.mean[i], whole.low[i], whole.high[i]], rel=1e-9, abs=1e-12)
        assert by_arm[arm].best == pytest.approx(model.best[i], rel=1e-9)
        assert [band[0] for band in by_arm[arm].by_lag] == pytest.approx(lags.mean[i].tolist(), rel=1e-9, abs=1e-12)
    assert found.loss_of_settling == pytest.approx(model.loss_of_settling * model.n_units, rel=1e-9, abs=1e-15)
    assert [each.best for each in found.arms] == sorted((each.best for each in found.arms), reverse=True)


@pytest.mark.parametrize("settings", [MODEL, {**MODEL, "units": 2}, ADVISED, {**ADVISED, "units": 2}], ids=str)
def test_the_report_is_that_of_a_model_told_every_total_by_hand(store: Store, settings: dict[str, Any]) -> None:
    hand = Hand(store, **settings)
    hand.play(12)
    hand.pause(3)
    hand.play(6)
    hand.amend(2, 9.25)
    hand.amend(15, None, len(hand.units) - 1)
    store.perform(hand.id, Away("b"))
    hand.play(5)
    store.perform(hand.id, Back("b"))
    hand.pause(40)
    hand.play(8)
    found = store.learned(hand.id)
    agrees(found, hand.model(), ARMS)
    assert found.rounds == len(hand.arms)
    assert sum(each.plays for each in found.arms) == 31 * len(hand.units)
    assert store.learned(hand.id) is found
    assert [verdict.finding for verdict in store.verify()] == [None]


def test_the_player_learns_from_the_same_record_and_after_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    with Store.open(url) as store:
        hand = Hand(store, **MODEL, units=2)
        hand.play(10)
        hand.pause(2)
        hand.play(3)
        hand.amend(1, 20.0)
        hand.play(1)
        player = store._writer._loaded[hand.id].experiment.panel.player
        known = player.model.effects()
        assert known.mean.tolist() == hand.model().effects().mean.tolist()
        twin = store.create({**MODEL, "name": "twin", "units": 2}).id
    with Store.open(url) as store:
        again = Hand(store, **{**MODEL, "name": "again"}, units=2)
        again.id, again.arms, again.places = hand.id, hand.arms, hand.places
        again.totals, again.day = hand.totals, hand.day
        again.play(4)
        agrees(store.learned(hand.id), again.model(), ARMS)
        assert store.learned(twin).reason == "No unit has reported two totals yet."
        assert all(verdict.ok for verdict in store.verify())


def test_a_model_finds_the_best_arm_without_being_told_how_long_effects_last(store: Store) -> None:
    hand = Hand(store, **{**MODEL, "seed": 1})
    hand.play(150)
    view, found = store.experiment(hand.id), store.learned(hand.id)
    assert (view.player, view.max_delay, view.max_lag, view.high, view.guarantee) == ("model", None, 14, None, None)
    assert (found.leader, found.sure) == ("b", "certain")
    assert found.sentences[0].startswith("b brings most (probability ")
    assert not any("carry-over" in sentence for sentence in found.sentences)
    assert view.plays["b"] == max(view.plays.values())
    lines = [*output.status(view, found)]
    (table,) = [line for line in lines if isinstance(line, Table)]
    assert [column.header for column in table.columns] == ["arm", "best with probability", "plays"]
    best = {each.arm: words.chance(each.best) for each in found.arms}
    arms, shares, _ = (list(column.cells) for column in table.columns)
    assert dict(zip(arms, shares, strict=True)) == best
    assert f"(probability {best['b']})" in " ".join(line for line in lines if isinstance(line, str))
    assert "probability" not in store.rounds(hand.id)["items"][-1]["why"]
    truth = sum(view.plays[arm] * (hand.effects[arm] - 7.0 / 3.0) for arm in ARMS)
    assert found.gain[1] < truth < found.gain[2]


def test_a_continuation_remembers_the_record_and_can_have_a_guarantee(store: Store) -> None:
    hand = Hand(store, **MODEL)
    hand.play(30)
    more = store.continue_with(hand.id, add=["d"])
    assert (more.player, more.prior) == ("model", None)
    agrees(store.learned(more.id), hand.model(4), [*ARMS, "d"])
    sure = store.continue_with(more.id, changes={"max_delay": 1, "high": 12})
    assert (sure.player, sure.max_delay) == ("advised", 1)
    assert max(sure.prior.means, key=lambda arm: (sure.prior.means[arm], arm == "b")) == "b"
    assert sure.prior.updates == 5.0
    hand.id = sure.id
    hand.play(5)
    agrees(store.learned(sure.id), hand.model(4), [*ARMS, "d"])
    corrected = store.correct(sure.id, {"high": 20})
    agrees(store.learned(corrected.id), hand.model(4), [*ARMS, "d"])
    assert all(verdict.ok for verdict in store.verify())


def test_totals_with_effects_of_a_retired_arm_are_left_out(store: Store) -> None:
    hand = Hand(store, **MODEL)
    hand.play(20)
    kept = store.continue_with(hand.id, retire=["c"])
    since = math.inf
    for arms, totals in zip(hand.arms, hand.totals, strict=True):
        since = 0 if arms[0] == 2 else since + 1
        if since <= 14:
            totals[0] = math.nan
        arms[0] = -1 if arms[0] == 2 else arms[0]
    if all(math.isnan(total) for (total,) in hand.totals):
        assert store.learned(kept.id).reason is not None
    else:
        agrees(store.learned(kept.id), hand.model(2), ["a", "b"])


def test_before_the_first_total_the_answer_has_all_fields_and_says_nothing_of_arms(store: Store) -> None:
    one = store.create(MODEL).id
    store.perform(one, Ask())
    found = store.learned(one).data
    assert found.keys() == Learned.model_fields.keys()
    assert (found["arms"], found["leader"], found["sentences"]) == ([], None, ["No unit has reported two totals yet."])


def test_an_arm_without_a_total_is_not_compared(store: Store) -> None:
    one = store.create({**ADVISED, "player": "paper", "horizon": 500}).id
    only = "Nothing can be compared yet: only one arm has been reported."
    for number in range(1, 100):
        arm = store.perform(one, Ask())["arm"]
        found = store.learned(one)
        if len([plays for plays in store.experiment(one).plays.values() if plays]) > 1:
            break
        store.perform(one, Tell(number, 9.0, "1"))
    # The second arm is to be played, but has no total.
    assert (found.leader, found.gain, found.sentences) == (None, None, [only])
    store.perform(one, Tell(number, 9.0, "1"))
    assert arm in {each.arm for each in store.learned(one).arms}
    assert store.learned(one).leader is not None


def test_beyond_a_size_there_is_no_model_and_the_report_says_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    hand = Hand(store, **ADVISED)
    hand.play(9)
    monkeypatch.setattr("aftereffect.service.settings.MOST_MODEL_ROUNDS", 8 * 9)
    hand.play(1)
    found = store.learned(hand.id)
    assert found.reason == "With 3 arms in 1 unit there is no model of more than 8 rounds: nothing is said of effects."
    assert (found.arms, found.leader, found.sentences) == ([], None, [found.reason])
    last = store.create(MODEL).id
    for number in range(1, 9):
        store.perform(last, Ask())
        told = store.perform(last, Tell(number, 1.0))
    assert told["state"] == "finished"


test_what_a_model_does_not_need_is_refused = refuses([
    ({"high": 1}, "high must be omitted for player 'model', which is that of settings without max_delay and"),
    ({"player": "model", "max_delay": 2}, "max_delay and carry_over must be omitted for player 'model', but got 2"),
    ({"player": "advised", "high": 1}, "max_delay or carry_over must be given for player 'advised', but both are"),
    ({"max_delay": 2}, "high must be given for player 'advised', but is missing"),
    ({"max_delay": 2, "high": 1, "max_lag": 9}, "max_lag must be omitted unless player is 'model', but got 9"),
    ({"max_lag": 61}, "max_lag must be at most 60, but got 61"),
    ({"arms": [str(i) for i in range(21)]}, "arms must be at most 20 for player 'model', but got 21"),
    ({"horizon": 30_000}, "horizon must be at most 22,222 for player 'model' with so many arms and units, but got"),
], lambda changes: checked_settings({**MODEL, **changes}), error=Refused, plain=True)
