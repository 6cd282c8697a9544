"""The model that advises the player "advised": what it is told, when it learns, and what is said of it."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.service.test_learned import ADVISED, ARMS, Hand

from aftereffect.players.advisers import Lags, Setting, ToldLags
from aftereffect.service.experiment.commands import Ask, Away, Back, Tell
from aftereffect.service.experiment.plan import plan
from aftereffect.service.settings import checked_settings
from aftereffect.service.store import writer
from aftereffect.service.store.store import Store

PRIOR: dict[str, Any] = {"means": {"a": 1.0, "b": 2.0, "c": 1.0}, "updates": 0.1}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path}/s.db") as found:
        yield found


def told(hand: Hand, n_arms: int = 3, max_delay: int = 2) -> list[float]:
    """Return what a lag model advises that is told the record directly."""
    model = Lags(season=7)
    model.begin(Setting(n_arms, len(hand.units), max_delay, "maximize", 0.0, 40.0))
    for arms, totals in zip(hand.arms, hand.totals, strict=True):
        model.hear(arms, totals)
    return list(model.advise())


def advised(store: Store, id: str) -> list[float]:
    """Return what the adviser of an experiment advises now, recalling its record if need be."""
    loaded = store._writer._loaded[id]
    adviser = loaded.experiment.adviser
    if adviser.forgotten:
        with store._database.reading.connect() as connection:
            writer.Changes(connection).recall(loaded)
    # It judges anew, however few rounds there are since the last time, and forgets that.
    own = adviser._numbers[: adviser._own].copy()
    adviser._numbers[0] = 0.0
    found = list(adviser.advise())
    adviser._numbers[: adviser._own] = own
    return found


def story(hand: Hand, later: int = 6) -> None:
    """Play with pauses, corrections, missing and void totals, and an arm away."""
    hand.play(12)
    hand.pause(3)
    hand.play(6)
    hand.amend(2, 9.25)
    hand.amend(15, None, len(hand.units) - 1)
    hand.amend(16, 1e9)
    hand.totals[hand.places[15]][0] = math.nan
    hand.store.perform(hand.id, Away("b"))
    hand.play(5)
    hand.store.perform(hand.id, Back("b"))
    hand.play(later)


@pytest.mark.parametrize("changes", [{}, {"units": 2}, {"prior": PRIOR}, {"prior": PRIOR, "units": 2}], ids=str)
def test_it_advises_as_a_lag_model_told_what_really_happened(tmp_path: Path, changes: dict[str, Any]) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    with Store.open(url) as store:
        hand = Hand(store, **ADVISED, **changes)
        story(hand)
        assert advised(store, hand.id) == told(hand)
    with Store.open(url) as store:
        hand.store = store
        store.now = lambda: hand.day.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        store.perform(hand.id, Ask())
        assert advised(store, hand.id) == told(hand)
        hand.play(3)
        assert advised(store, hand.id) == told(hand)
        assert [verdict.finding for verdict in store.verify()] == [None]


def test_interrupted_after_every_day_it_plays_the_same(tmp_path: Path) -> None:
    rows: list[list[Any]] = []
    for name, again in (("one", False), ("two", True)):
        url = f"sqlite:///{tmp_path}/{name}.db"
        store = Store.open(url)
        hand = Hand(store, **{**ADVISED, "max_delay": 1, "high": 20})
        for _ in range(80):
            hand.play(1)
            if again:
                store.close()
                hand.store = store = Store.open(url)
                store.now = lambda hand=hand: hand.day.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        found = store.rounds(hand.id, limit=1000)["items"]
        rows.append([[row["arm"], row["total"], row["probability"], row["reason"], row["update"]] for row in found])
        assert {row["reason"] for row in found} == {"opening", "learner"}
        assert any(row["update"] for row in found)
        assert store.verify()[0].ok
        store.close()
    assert rows[0] == rows[1]


def test_a_command_that_decides_nothing_does_not_wait_for_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    with Store.open(url) as store:
        hand = Hand(store, **ADVISED, prior=PRIOR)
        hand.play(30)
        asked = store.perform(hand.id, Ask())
        while store._writer._loaded[hand.id].experiment.panel.player.consults:
            store.perform(hand.id, Tell(asked["round"], 5.0))
            asked = store.perform(hand.id, Ask())
    monkeypatch.setattr(ToldLags, "_catch_up", lambda self: 1 / 0)
    monkeypatch.setattr(writer.Changes, "recall", lambda *given: 1 / 0)
    with Store.open(url) as store:
        assert store.perform(hand.id, Ask())["round"] == asked["round"]
        assert store.perform(hand.id, Tell(asked["round"], 5.0))["status"] == "reported"
        assert store.experiment(hand.id).round == asked["round"]


def test_models_that_are_dropped_to_save_memory_learn_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MOST_MODELS", 1)
    hands = [Hand(store, **{**ADVISED, "name": name, "seed": seed}) for name, seed in (("x", 1), ("y", 2))]
    for _ in range(15):
        for hand in hands:
            hand.play(2)
    for hand in hands:
        assert advised(store, hand.id) == told(hand)
    assert all(verdict.ok for verdict in store.verify())


def test_beyond_a_size_it_advises_no_more_and_the_page_says_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aftereffect.service.settings.MOST_MODEL_ROUNDS", 8 * 9)
    hand = Hand(store, **ADVISED)
    # The opening is no longer than half of the rounds that a model may have.
    assert "In the first 4 rounds (4 days)" in " ".join(store.experiment(hand.id).plan.sentences)
    hand.play(60)
    told = " ".join(store.experiment(hand.id).guarantee.paragraphs)
    assert "There is no model of more than 8 rounds, so nothing is advised any more." in told
    assert store.verify()[0].ok


@pytest.mark.parametrize("units", [1, 2])
@pytest.mark.parametrize("total", [None, 1e9], ids=["missing", "void"])
def test_a_block_whose_last_report_is_not_heard_does_not_wait_for_the_model(
    store: Store, units: int, total: float | None
) -> None:
    hand = Hand(store, **{**ADVISED, "max_delay": 0}, prior=PRIOR, units=units)
    hand.play(8)
    ended = 0
    for _ in range(12):
        number = store.perform(hand.id, Ask())["round"]
        ended += store._writer._loaded[hand.id].experiment.panel.player.consults
        for unit in hand.units:
            store.perform(hand.id, Tell(number, total, unit))
        # As it is loaded from its last checkpoint and the events since then.
        assert store.experiment(hand.id).round == number
    assert ended > 3
    assert store.verify()[0].ok


@pytest.mark.parametrize("most", range(6, 12))
def test_a_block_that_ends_in_the_first_round_beyond_the_model_does_not_wait_for_it(
    store: Store, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("aftereffect.service.settings.MOST_MODEL_ROUNDS", most * 9)
    hand = Hand(store, **{**ADVISED, "max_delay": 0}, prior=PRIOR)
    for number in range(1, most + 4):
        hand.play(1)
        assert store.experiment(hand.id).round == number
    assert store.verify()[0].ok


@pytest.mark.parametrize("changes", [{"arms": [str(i) for i in range(21)]}, {"max_delay": 61}], ids=["arms", "delay"])
def test_where_a_model_would_be_too_large_nobody_advises(store: Store, changes: dict[str, Any]) -> None:
    view = store.create({**ADVISED, **changes})
    assert store.perform(view.id, Ask())["reason"] == "learner"
    said = " ".join([*view.plan.sentences, *view.guarantee.paragraphs])
    assert "model of all totals" not in said
    assert "the last ones are learned from" in said


def test_a_continuation_knows_the_rounds_before_and_has_no_opening(store: Store) -> None:
    hand = Hand(store, **ADVISED)
    hand.play(40)
    view = store.continue_with(hand.id, add=["d"])
    hand.id = view.id
    # It is advised before the first draw.
    assert store.perform(view.id, Ask())["reason"] == "learner"
    assert advised(store, view.id) == told(hand, 4)
    assert "The model of all totals advises a " in " ".join(store.experiment(view.id).guarantee.paragraphs)
    hand.play(5)
    corrected = store.correct(view.id, {"high": 50})
    assert advised(store, corrected.id) == told(hand, 4)
    assert all(verdict.ok for verdict in store.verify())


def test_the_first_draw_of_a_continuation_has_the_probability_that_advice_gave_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    with Store.open(url) as store:
        hand = Hand(store, **ADVISED)
        hand.play(40)
        hand.id = store.continue_with(hand.id, add=["d"]).id
        before = store.experiment(hand.id).probabilities
        first = store.perform(hand.id, Ask())
        player = store._writer._loaded[hand.id].experiment.panel.player
        assert first["probability"] == player.probabilities["abcd".index(first["arm"])] != before[first["arm"]]
        store.perform(hand.id, Tell(1, 5.0))
    with Store.open(url) as store:
        # The block goes on with what its arm was drawn with.
        assert store.perform(hand.id, Ask())["probability"] == first["probability"]
        assert store.verify(hand.id)[0].ok


def test_what_is_said_of_the_first_rounds_and_of_the_advice(store: Store) -> None:
    hand = Hand(store, **ADVISED)
    first = store.perform(hand.id, Ask())
    assert first["why"] == (
        f"{first['arm']} is played: the model tries the arms that may be the best, "
        "the likeliest most often."
    )
    assert (first["reason"], first["block"], first["draw"], first["washin"]) == ("opening", 0, True, False)
    hand.play(1)
    view = store.experiment(hand.id)
    # n₀ = ⌈8F⌉, F = C/(1−β)², β = 0.7/3, C² = (2−β)/β² + 4/β + 4 (docs/theory/adaptive.md).
    beta = 0.7 / 3.0
    rounds = math.ceil(8.0 * math.sqrt((2.0 - beta) / beta**2 + 4.0 / beta + 4.0) / (1.0 - beta) ** 2)
    assert f"In the first {rounds} rounds ({rounds} days) a model of all totals" in " ".join(view.plan.sentences)
    terms = view.guarantee.certificate.terms
    assert (terms["opening"], terms["ends"]) == (40.0, 0.0)
    assert f"For {rounds - 1} more rounds the model of all totals chooses the arms itself." in view.guarantee.words
    assert view.next_decision.round == 2
    assert view.guarantee.void is False
    hand.play(rounds + 30)
    view = store.experiment(hand.id)
    shares = [f"{arm} " for arm in ARMS]
    (said,) = [each for each in view.guarantee.paragraphs if each.startswith("The model of all totals advises")]
    assert all(share in said for share in shares)
    assert "If all advice is wrong, that adds " in said
    assert "adds -" not in said
    whys = {row["why"].partition(" ")[2].partition(":")[0] for row in store.rounds(hand.id, limit=1000)["items"]}
    assert {"is played", "stays"} <= whys
    assert not any("not measured" in row["why"] for row in store.rounds(hand.id, limit=1000)["items"])


def test_a_plan_for_an_advised_player_forecasts_that_player() -> None:
    import aftereffect as ae
    from aftereffect.service.experiment.plan import forecast

    question = {"name": "x", "arms": ["a", "b"], "high": 10.0, "max_delay": 0, "horizon": 30}
    found = forecast(checked_settings(question), 1.0, 0.5)
    same = ae.plan(n_arms=2, rounds=30, max_delay=0, gap=1.0, noise=0.5, player="advised")
    assert found.player == same.player.gain
    assert plan(checked_settings(question)).sentences[1].startswith("In the first 8 rounds")
