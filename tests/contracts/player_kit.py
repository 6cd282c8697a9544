"""The contract kit of players under composite anonymous feedback (Section 2), over any base; see `kits.py`.

Covering a class takes one line in the table of `test_players.py`.
"""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from tests.contracts.kits import refused, total_at

import aftereffect as ae

MakePlayer = Callable[[int], Any]
PLAYER_KIT: list[Callable[[MakePlayer], None]] = []
BAD_TOTALS: tuple[Any, ...] = (math.nan, math.inf, -math.inf, "0.5", True, 1j, [0.5], b"1")


def player_case(case: Callable[[MakePlayer], None]) -> Callable[[MakePlayer], None]:
    PLAYER_KIT.append(case)
    return case


def play(player: Any, rounds: int) -> list[Any]:
    """Play some rounds, every thirteenth report missing; return what `tell` returned."""
    played: list[Any] = []
    for _ in range(rounds):
        arm = player.ask()
        t = (played[-1].round if played else 0) + 1
        played.append(player.tell(None if t % 13 == 0 else total_at(t, arm)))
    return played


@player_case
def is_a_player(make: MakePlayer) -> None:
    player = make(0)
    assert isinstance(player, ae.Player)
    assert player.n_arms >= 2
    assert repr(player.bandit) in repr(player)


@player_case
def asks_the_same_arm_until_told(make: MakePlayer) -> None:
    player = make(1)
    for t in range(1, 60):
        arm = player.ask()
        assert type(arm) is int
        assert 0 <= arm < player.n_arms
        state = player.state()
        assert [player.ask() for _ in range(3)] == [arm] * 3
        assert player.state() == state
        assert player.tell(0.25)[:2] == (t, arm)


@player_case
def tells_what_happened(make: MakePlayer) -> None:
    player = make(2)
    # Naive draws in every round, also after a missing report.
    always = not hasattr(player, "max_delay")
    arm, update = None, True
    for t, played in enumerate(play(player, 300), start=1):
        assert played.round == t
        assert played.draw is update, "a block begins exactly where one has ended"
        assert played.draw or played.arm == arm
        assert (played.fed_loss is not None) is played.update
        assert played.fed_loss is None or 0.0 <= played.fed_loss <= 1.0
        assert t % 13 != 0 or not played.update, "a round without a report cannot update"
        arm, update = played.arm, played.update or always


@player_case
def takes_turns(make: MakePlayer) -> None:
    player = make(3)
    before = player.state()
    assert refused(lambda: player.tell(0.1), ae.OutOfTurn) == "tell must follow ask, but no round is open"
    assert player.state() == before
    player.ask()
    player.tell(0.1)
    refused(lambda: player.tell(0.1), ae.OutOfTurn)


@player_case
def bad_totals_change_nothing(make: MakePlayer) -> None:
    player = make(4)
    play(player, 37)
    arm = player.ask()
    before = player.state()
    for bad in BAD_TOTALS:
        message = refused(lambda bad=bad: player.tell(bad), ae.InvalidTotal)
        assert message == f"total must be a finite number, but got {bad!r}"
        assert player.state() == before
        assert player.ask() == arm


@player_case
def same_seed_same_play(make: MakePlayer) -> None:
    first = play(make(5), 400)
    assert play(make(5), 400) == first
    assert [r.arm for r in play(make(6), 400)] != [r.arm for r in first]


@player_case
def goes_on_from_any_state(make: MakePlayer) -> None:
    whole = make(7)
    expected = play(whole, 120)
    for stop in (0, 1, 12, 13, 40, 77):
        player = make(7)
        played = play(player, stop)
        for _ in range(2):  # before ask, then in the middle of the round
            text = json.dumps(player.state(), allow_nan=False)
            player = ae.restore(json.loads(text), classes=[type(player.bandit)])
            assert json.dumps(player.state()) == text
            player.ask()
        while len(played) < 120:
            t = len(played) + 1
            arm = player.ask()
            played.append(player.tell(None if t % 13 == 0 else total_at(t, arm)))
        assert played == expected
        assert player.state() == whole.state()


@player_case
def makes_fresh_copies(make: MakePlayer) -> None:
    template = make(8)
    before = template.state()
    assert play(template.fresh(21), 200) == play(make(21), 200)
    assert play(template.fresh(21, 0), 50) == play(template.fresh(21), 50)
    assert [r.arm for r in play(template.fresh(21, 1), 200)] != [r.arm for r in play(template.fresh(21), 200)]
    assert template.state() == before
    template.ask()
    assert refused(lambda: template.fresh(0)).startswith("player must be unplayed to be copied, but ")


@player_case
def every_engine_plays_it_alike(make: MakePlayer) -> None:
    template = make(9)
    K, direction = template.n_arms, template.direction
    components = np.random.default_rng(9).random((300, 2, K)) / 4
    losses = ae.CompositeLosses(components, direction=direction)
    auto, loop = (ae.simulate(template, losses, runs=3, seed=9, engine=e) for e in ("auto", "loop"))
    assert (auto.updates == loop.updates).all()
    assert np.abs(auto.regrets - loop.regrets).max() <= 1e-9
