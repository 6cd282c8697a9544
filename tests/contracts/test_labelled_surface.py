"""Labelled players in the public interface: `simulate`, `restore` and copies, for every exported class."""

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest
from tests.contracts.kits import refused
from tests.contracts.saving_kit import scribble
from tests.contracts.test_labelled import MAKERS, REWARDS, K, Make, T, late_rewards, play, split_losses

import aftereffect as ae
from aftereffect.core import saved
from aftereffect.players import registry

AROUND_A_BASE = ("BOLD", "QPMD")


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Make:
    return MAKERS[request.param]


def test_every_labelled_player_is_covered() -> None:
    registered = {entry.player for entry in registry.PLAYERS.values() if entry.labelled}
    assert {type(make(seed=0)) for make in MAKERS.values()} == registered


@pytest.mark.parametrize("rewards", [False, True])
def test_simulate_compiles_it_and_plays_as_the_loop(make: Make, rewards: bool) -> None:
    losses, template = (late_rewards(), make(seed=0, **REWARDS)) if rewards else (split_losses(), make(seed=0))
    before = template.state()
    options = {"runs": 3, "seed": 9, "trace": True, "checkpoints": [1, 511, 513, T], "threads": 2}
    auto, loop = (ae.simulate(template, losses, engine=engine, **options) for engine in ("auto", "loop"))
    assert auto.engine == "rounds"
    assert loop.engine == "loop"
    np.testing.assert_array_equal(auto.regrets, loop.regrets)
    np.testing.assert_array_equal(auto.updates, loop.updates)
    assert loop.updates.min() > T - 200
    for one, other in zip(auto.traces, loop.traces, strict=True):
        for found, expected in zip(one, other, strict=True):
            np.testing.assert_array_equal(found, expected)
    assert template.state() == before


def test_copies_go_on_alike_and_share_nothing(make: Make) -> None:
    losses, player, arms = split_losses(), make(seed=5), []
    play(player, losses, arms, 40)
    for _ in range(2):  # before ask, then in the middle of the round
        before, state = list(arms), player.state()
        restored = ae.restore(json.loads(json.dumps(player.state(), allow_nan=False)))
        twins = [copy.deepcopy(player), pickle.loads(pickle.dumps(player)), restored]
        told = [play(twin, losses, list(before), 60) for twin in twins]
        assert [type(twin) for twin in twins] == [type(player)] * 3
        assert player.state() == state
        player.ask()
    assert [play(player, losses, arms, 60)] * 3 == told
    assert [twin.state() for twin in twins] == [player.state()] * 3


def test_a_state_is_a_snapshot(make: Make) -> None:
    player = make(seed=5)
    player.ask()
    before = json.dumps(player.state())
    scribble(player.state())
    assert json.dumps(player.state()) == before


def test_altered_states_are_refused(make: Make) -> None:
    # With a valid digest, so that the fields themselves are checked; every fault must raise InvalidState.
    player = make(seed=5)
    player.ask()
    state = player.state()
    fields = {name: value for name, value in state.items() if name not in ("kind", "version", "digest")}
    altered = [fields | {name: None} for name in fields]
    altered += [fields | {"settings": fields["settings"] | bad} for bad in ({"colour": 1}, {"low": None})]
    altered += [fields | {"numbers": [*fields["numbers"], 0.0]}, fields | {"outstanding": [[1]]}]
    for bad in altered:
        refused(lambda bad=bad: ae.restore(saved.seal(state["kind"], bad)), ae.InvalidState)


def test_numpy_numbers_are_saved_as_plain_ones(make: Make) -> None:
    player = make(seed=np.int64(5))
    inside = np.int64(player.inside) if isinstance(player.inside, int) else player.inside
    build: Any = type(player)
    twin = build(inside, **player.settings, seed=5)
    assert json.dumps(twin.state()) == json.dumps(player.state())


@pytest.mark.parametrize("name", AROUND_A_BASE)
def test_the_base_is_unplayed_and_copied(name: str) -> None:
    base = ae.Exp3(K, learning_rate=0.1)
    build: Any = getattr(ae.labelled, name)
    player = build(base, max_delay=2, seed=0)
    before = player.state()
    base.update(0, 1.0)
    assert player.state() == before
    with pytest.raises(ae.InvalidArgument, match=r"^bandit must be unplayed, but Exp3.* has learned$"):
        build(base, max_delay=2, seed=0)
