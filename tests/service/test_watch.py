"""The watch of a running experiment: from the store's rows to the tables and the test."""

import numpy as np
import pytest
from tests.service.calling import api
from tests.service.pages import get, identity, played

import aftereffect as ae
from aftereffect.carryover import Watch, blocks_of, wash_in
from aftereffect.service import lag_estimates as module
from aftereffect.service.experiment.commands import Amend, Ask, Away, Pause, Resume, Tell
from aftereffect.service.store.store import Store

GIVEN = {"name": "Bills", "arms": ["soon", "late"], "high": 1, "direction": "minimize", "max_delay": 0, "seed": 3}


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as opened:
        yield opened


@pytest.fixture
def call(tmp_path):
    with api(tmp_path) as client:
        yield client


def play(store: Store, id: str, rounds: int, seed: int) -> tuple[list[int], list[float]]:
    """Play rounds in which the arm "late" costs one round later; return the arms and totals."""
    rng, arms, totals = np.random.default_rng(seed), [], []
    owed = 0.0
    for _ in range(rounds):
        asked = store.perform(id, Ask())
        cost = float(rng.random() < (0.4 if asked["arm"] == "soon" else 0.8))
        total = min(owed + (cost if asked["arm"] == "soon" else 0.0), 1.0)
        owed = cost if asked["arm"] == "late" else 0.0
        store.perform(id, Tell(asked["round"], total))
        arms.append(GIVEN["arms"].index(asked["arm"]))
        totals.append(total)
    return arms, totals


def test_the_store_says_what_the_library_says(store: Store) -> None:
    id = store.create(GIVEN).id
    assert store.carryover(id)["watch"] is None
    arms, totals = play(store, id, 80, 2)
    whole = store.carryover(id)
    assert whole["sentences"][-1].startswith("In the latest rounds: effects last longer than 0 rounds (p = ")
    found = whole["watch"]
    player = ae.default_player(n_arms=2, max_delay=0, direction="minimize", high=1.0, out_of_range="void", seed=3)
    for total in totals:
        player.ask()
        player.tell(total)
    result = ae.carryover.watch(player, blocks_of(player, totals))
    assert (found["blocks"], found["p_value"], found["sentence"]) == (80, result.p_value, result.sentence)
    assert (found["alarm"], found["no_power"]) == (result.alarm, result.no_power)
    assert found["p_value"] < 1.0
    table = wash_in(arms, totals, max_delay=0)
    assert found["wash_in"]["late"]["means"] == pytest.approx(table.means[1].tolist(), nan_ok=True)
    assert found["wash_in"]["late"]["counts"] == table.counts[1].tolist()
    assert found["all_arms"]["means"] == pytest.approx(table.pooled.tolist())


def test_rounds_after_a_pause_or_a_substitute_are_not_used(store: Store) -> None:
    id = store.create(GIVEN).id
    play(store, id, 20, 2)
    before = store.carryover(id)["watch"]
    store.perform(id, Pause())
    store.perform(id, Resume())
    play(store, id, 20, 5)
    after = store.carryover(id)["watch"]
    assert {**after, "sentence": ""} == {**before, "sentence": ""}
    assert after["sentence"] == f"{before['sentence']} Only the 20 rounds before a pause were used."
    id = store.create(GIVEN).id
    play(store, id, 10, 2)
    store.perform(id, Away("late"))
    play(store, id, 20, 5)
    assert 10 <= store.carryover(id)["watch"]["blocks"] < 30
    assert store.carryover(id)["watch"]["rounds"] == 30


@pytest.mark.parametrize("corrected", [False, True])
def test_the_test_stops_at_the_first_void_total(store: Store, corrected: bool) -> None:
    id = store.create(GIVEN).id
    play(store, id, 10, 2)
    asked = store.perform(id, Ask())
    store.perform(id, Tell(asked["round"], 7.0))
    if corrected:
        # The block went on nevertheless.
        store.perform(id, Amend(asked["round"], 0.5))
    play(store, id, 20, 5)
    found = store.carryover(id)["watch"]
    assert (found["rounds"], found["blocks"]) == (31, 10)
    assert "stopped before block 11, in which reported totals were out of range" in found["sentence"]


def test_the_test_stops_at_a_void_sum_and_after_a_late_correction(store: Store) -> None:
    id = store.create({**GIVEN, "max_delay": 1}).id
    for t in range(1, 21):
        store.perform(id, Ask())
        # Possible as a total of two actions, but not twice in a row.
        store.perform(id, Tell(t, 2.0 if t > 8 else 0.5))
    found = store.carryover(id)["watch"]
    assert 0 < found["blocks"] < 8
    assert "in which reported totals were out of range" in found["sentence"]
    id = store.create(GIVEN).id
    _, totals = play(store, id, 10, 2)
    store.perform(id, Amend(3, 1.0 - totals[2]))
    play(store, id, 10, 5)
    found = store.carryover(id)["watch"]
    assert found["blocks"] == 10
    assert "stopped before block 11, whose recorded probability differs from the replayed one" in found["sentence"]


def test_several_units_have_a_table_but_no_test(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    id = store.create({**GIVEN, "units": ["north", "south"]}).id
    for t in range(1, 13):
        store.perform(id, Ask())
        for unit in ("north", "south"):
            store.perform(id, Tell(t, 0.5, unit=unit))
    found = store.carryover(id)["watch"]
    assert (found["rounds"], found["blocks"], found["alarm"]) == (12, None, None)
    assert "several units are not tested" in found["sentence"]
    # With many units, fewer rounds are read.
    monkeypatch.setattr("aftereffect.service.store.store.MOST_CELLS", 10)
    assert store.carryover(id)["watch"]["rounds"] == 5


def test_a_total_too_large_to_compute_with_does_not_hide_the_rest(store: Store) -> None:
    id = store.create({**GIVEN, "out_of_range": "clip"}).id
    play(store, id, 30, 1)
    store.perform(id, Amend(29, 1e90))
    found = store.carryover(id)
    assert (found["watch"], found["reason"] is None) == (None, False)


def test_the_page_shows_the_watch_and_its_alarm_on_demand(call, monkeypatch: pytest.MonkeyPatch) -> None:
    path = played(call, 12)
    assert "Do effects last longer" not in get(call, path).words
    page = get(call, f"{path}?curves=yes")
    sentence = call.store.carryover(identity(path))["watch"]["sentence"]
    assert "the test finds no sign" in sentence
    assert sentence in page.words
    assert page.words.count("Effects last longer than") == 0
    assert any("data-since" in attributes for attributes in page.all("div"))
    monkeypatch.setattr(module, "watch", lambda player, blocks: Watch(0, 0.05, 9, (4.1, 0.0), 3.4, 0.1, 0.0))
    # In the list of alarms, and beside the table.
    assert get(call, f"{path}?curves=yes").words.count("Effects last longer than 0 rounds: the totals of a block") == 2
    assert get(call, path).words.count("Effects last longer than 0 rounds") == 0
