"""The contract kit of players, saved states and copies: they continue bit for bit and share no data."""

import contextlib
import copy
import json
import pickle
from typing import Any

import numpy as np
from tests.contracts.kits import refused
from tests.contracts.player_kit import PlayerRow, play, player_case

import aftereffect as ae
from aftereffect.core import saved
from aftereffect.players.base import KernelPlayer


def own_classes(player: Any) -> list[type]:
    """Return the classes that `restore` needs as its argument `classes`: those of a player or bandit of one's own."""
    alone = getattr(player, "player", player)
    return [type(alone), *([type(alone.bandit)] if hasattr(alone, "bandit") else [])]


def saved_and_restored(player: Any) -> Any:
    text = json.dumps(player.state(), allow_nan=False)
    twin = ae.restore(json.loads(text), own_classes(player))
    assert json.dumps(twin.state()) == text
    return twin


def scribble(value: Any) -> None:
    """Overwrite every value in nested lists and dicts."""
    for key in range(len(value)) if isinstance(value, list) else list(value):
        if isinstance(value[key], list | dict):
            scribble(value[key])
        else:
            value[key] = "spoiled"


@player_case
def goes_on_from_any_state(row: PlayerRow) -> None:
    whole = row.make(7)
    expected = play(whole, 120)
    for stop in (0, 1, 12, 13, 40, 77):
        player = row.make(7)
        played = play(player, stop)
        player = saved_and_restored(player)
        player.ask()
        player = saved_and_restored(player)  # in the middle of the round
        assert played + play(player, 120 - stop, after=stop) == expected
        assert player.state() == whole.state()


@player_case
def copies_go_on_alike_and_share_nothing(row: PlayerRow) -> None:
    for stop in (0, 40):
        player = row.make(7)
        play(player, stop)
        for _ in range(2):  # before ask, then in the middle of the round
            before = player.state()
            twins = [copy.deepcopy(player), pickle.loads(pickle.dumps(player))]
            told = [play(twin, 60, after=stop) for twin in twins]
            assert [type(twin) for twin in twins] == [type(player)] * 2
            assert player.state() == before
            player.ask()
        assert [play(player, 60, after=stop)] * 2 == told
        assert [twin.state() for twin in twins] == [player.state()] * 2


@player_case
def huge_totals_are_refused_or_survived(row: PlayerRow) -> None:
    for huge in (1.7e308, -1.7e308):
        player = row.make(4)
        for _ in range(80):
            player.ask()
            before = player.state()
            with contextlib.suppress(ae.InvalidTotal):
                player.tell(huge)
                continue
            assert player.state() == before, "a refused total changes nothing"
            player.tell(0.25)
        assert play(saved_and_restored(player), 60) == play(player, 60)


@player_case
def altered_states_are_refused(row: PlayerRow) -> None:
    # With a valid digest, so that the fields themselves are checked; every fault must raise InvalidState.
    player = row.make(8)
    play(player, 20)
    state = player.state()
    fields = {name: value for name, value in state.items() if name not in ("kind", "version", "digest")}
    altered = [fields | {name: None} for name in fields]
    if isinstance(player, KernelPlayer):
        numbers, settings = fields["numbers"], fields["settings"]
        altered += [fields | {"numbers": bad} for bad in ([*numbers, 0.0], numbers[1:], ["0", *numbers[1:]])]
        wrong = {"colour": 1}, {"low": "0"}, {"low": 1e9, "high": -1e9}, {"direction": "up"}, {"out_of_range": "keep"}
        altered += [fields | {"settings": settings | bad} for bad in wrong]
    for bad in altered:
        refused(lambda bad=bad: ae.restore(saved.seal(state["kind"], bad), own_classes(player)), ae.InvalidState)


@player_case
def a_state_is_a_snapshot(row: PlayerRow) -> None:
    player = row.make(8)
    before = json.dumps(player.state())
    scribble(player.state())
    assert json.dumps(player.state()) == before
    assert play(player.fresh(8), 50) == play(player, 50)


@player_case
def numpy_numbers_are_saved_as_plain_ones(row: PlayerRow) -> None:
    player = row.make(8)
    assert json.dumps(row.make(np.int64(8)).state()) == json.dumps(player.state())
    assert player.fresh(np.int64(21), np.int64(1)).state() == player.fresh(21, 1).state()
    if isinstance(player, KernelPlayer) and isinstance(player.inside, int):
        made: Any = type(player)
        twin = made(np.int64(player.inside), **player.settings, seed=8)
        assert json.dumps(twin.state()) == json.dumps(player.state())
