"""The contract kit of players under composite anonymous feedback (Section 2), with any base; see `kits.py`.

To test a class, add one line to the table in `test_players.py`. Cases about saved states are in `saving_kit.py`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.contracts.kits import refused, total_at

import aftereffect as ae


class PlayerRow(NamedTuple):
    """A factory of players with a seed, and their properties. The cases check each flag, whether it is True or False.

    random: the arms depend on the seed. redraws: it may choose a new arm without an update before, as at the end of a
    void block, a bridge or an epoch. learns_late: it learns from a block even if the last report of the block is
    missing. compiled: it has a kernel form, so that simulations use a compiled engine. unit: it feeds losses in [0, 1];
    otherwise sums over blocks, which exceed 1 for long blocks. feeds: it feeds a base algorithm or means of its own.
    """

    make: Callable[[int | None], Any]
    random: bool = True
    redraws: bool = False
    learns_late: bool = False
    compiled: bool = True
    unit: bool = True
    feeds: bool = True


PlayerCase = Callable[[PlayerRow], None]
PLAYER_KIT: list[PlayerCase] = []
BAD_TOTALS: tuple[Any, ...] = (math.nan, math.inf, -math.inf, "0.5", True, 1j, [0.5], b"1")


def player_case(case: PlayerCase) -> PlayerCase:
    PLAYER_KIT.append(case)
    return case


def report(t: int, arm: Any, unit: int = 0) -> Any:
    """Return the report of a round, every 13th of which is missing; for the arms of a panel those of its units."""
    if isinstance(arm, list):
        return [report(t, own, unit) for unit, own in enumerate(arm)]
    return None if (t + 4 * unit) % 13 == 0 else total_at(t + 5 * unit, arm)


def play(player: Any, rounds: int, after: int = 0) -> list[Any]:
    """Play `rounds` rounds after round `after`; return the results of `tell`."""
    return [player.tell(report(t, player.ask())) for t in range(after + 1, after + rounds + 1)]


@player_case
def is_a_player(row: PlayerRow) -> None:
    player = row.make(0)
    assert isinstance(player, ae.Player)
    assert type(player.n_arms) is int
    assert player.n_arms >= 2
    first = f"n_arms={player.inside}" if isinstance(player.inside, int) else repr(player.inside)
    assert repr(player).startswith(f"{type(player).__name__}({first}, ")


@player_case
def asks_the_same_arm_until_told(row: PlayerRow) -> None:
    player = row.make(1)
    for t in range(1, 60):
        arm = player.ask()
        assert type(arm) is int
        assert 0 <= arm < player.n_arms
        state = player.state()
        assert [player.ask() for _ in range(3)] == [arm] * 3
        assert player.state() == state
        assert player.tell(0.25)[:2] == (t, arm)


@player_case
def tells_what_happened(row: PlayerRow) -> None:
    arm, update = None, True
    redrawn, learned_late, most = 0, 0, 0.0
    for t, played in enumerate(play(row.make(2), 300), start=1):
        assert type(played) is ae.Round
        assert played.round == t
        assert played.draw or not update, "the round after an update must draw"
        assert played.draw or played.arm == arm
        assert (played.fed_loss is not None) is played.update
        assert played.fed_loss is None or played.fed_loss >= 0.0
        most = max(most, played.fed_loss or 0.0)
        redrawn += played.draw and not update
        learned_late += played.update and t % 13 == 0
        arm, update = played.arm, played.update
    assert (redrawn > 0) is row.redraws
    assert (learned_late > 0) is row.learns_late
    assert (most <= 1.0) is row.unit


@player_case
def takes_turns(row: PlayerRow) -> None:
    player = row.make(3)
    before = player.state()
    assert refused(lambda: player.tell(0.1), ae.OutOfTurn) == "tell must follow ask, but no round is open"
    assert player.state() == before
    player.ask()
    player.tell(0.1)
    refused(lambda: player.tell(0.1), ae.OutOfTurn)
    arm = player.ask()
    with pytest.raises(TypeError, match="tell takes the total alone"):
        player.tell(arm, 0.1)
    assert player.rounds_played == 1


@player_case
def bad_totals_change_nothing(row: PlayerRow) -> None:
    player = row.make(4)
    play(player, 37)
    arm = player.ask()
    before = player.state()
    for bad in BAD_TOTALS:
        message = refused(lambda bad=bad: player.tell(bad), ae.InvalidTotal)
        assert message.startswith(f"total must be a finite number, but got {bad!r}")
        assert player.state() == before
        assert player.ask() == arm


@player_case
def same_seed_same_play(row: PlayerRow) -> None:
    first = play(row.make(5), 400)
    assert play(row.make(5), 400) == first
    assert (play(row.make(6), 400) != first) is row.random


@player_case
def makes_fresh_copies(row: PlayerRow) -> None:
    template = row.make(8)
    before = template.state()
    assert play(template.fresh(21), 200) == play(row.make(21), 200)
    assert play(template.fresh(21, 0), 50) == play(template.fresh(21), 50)
    assert (play(template.fresh(21, 1), 200) != play(template.fresh(21), 200)) is row.random
    assert template.state() == before
    template.ask()
    assert refused(lambda: template.fresh(0)).startswith("player must be unplayed to be copied, but ")


@player_case
def runs_and_seeds_count_from_zero(row: PlayerRow) -> None:
    template = row.make(8)
    assert refused(lambda: template.fresh(0, -1), ae.InvalidArgument) == "run must be at least 0, but got -1"
    assert refused(lambda: template.fresh(-1), ae.InvalidArgument) == "seed must be at least 0, but got -1"


@player_case
def a_seed_from_the_system_can_be_used_again(row: PlayerRow) -> None:
    player = row.make(None)
    assert player.seed != row.make(None).seed
    assert play(row.make(player.seed), 100) == play(player, 100)


@player_case
def every_engine_plays_it_alike(row: PlayerRow) -> None:
    template = row.make(9)
    before = template.state()
    components = np.random.default_rng(9).random((300, 2, template.n_arms)) / 5
    losses = ae.CompositeLosses(components, direction=template.direction)
    auto, loop = (ae.simulate(template, losses, runs=3, seed=9, engine=e, trace=True) for e in ("auto", "loop"))
    assert auto.engine in (("rounds", "blocks") if row.compiled else ("loop",))
    assert (template.kernel() is not None) is row.compiled
    assert (auto.updates == loop.updates).all()
    assert bool(loop.updates.min() > 0) is row.feeds
    # The blocks engine sums losses in another order; the arms and the fed losses are equal bit for bit.
    assert np.abs(auto.regrets - loop.regrets).max() <= (1e-9 if auto.engine == "blocks" else 0.0)
    for one, other in zip(auto.traces, loop.traces, strict=True):
        for found, expected in zip(one, other, strict=True):
            np.testing.assert_array_equal(found, expected)
    assert template.state() == before
