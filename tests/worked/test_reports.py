"""Reports to a player: missing, late, corrected and impossible totals; rewards and ranges (by hand)."""

from typing import Any

import pytest
from tests.rounds import tell_all

import aftereffect as ae
from aftereffect.players.wrapper.windows import Counts


def wrapped(coins: Any, max_delay: int, **settings: Any) -> ae.CompositeLossWrapper:
    return ae.CompositeLossWrapper(ae.Uniform(2), max_delay=max_delay, coins=coins, seed=0, **settings)


def fed_rounds(player: ae.CompositeLossWrapper, totals: list[float | None]) -> dict[int, float | None]:
    played = tell_all(player, totals)
    return {r.round: r.fed_loss for r in played if r.update}


# d = 1, a 1 every third round: the windows are rounds (2, 3), (5, 6), (8, 9); each feeds its sum divided by 3.
THIRDS = [0, 0, 1] * 3


@pytest.mark.parametrize(("missing", "fed"), [
    ([], {3: 0.25, 6: 0.25, 9: 0.25}),
    ([1, 4, 7], {3: 0.25, 6: 0.25, 9: 0.25}),  # mixed rounds are in no window
    ([2], {6: 0.25, 9: 0.25}),
    ([3], {6: 0.25, 9: 0.25}),
    ([2, 6], {9: 0.25}),
    ([3, 5, 8], {}),
])
def test_a_missing_total_voids_the_windows_that_hold_it(missing: list[int], fed: dict[int, float]) -> None:
    player = wrapped(THIRDS, 1)
    totals = [None if t in missing else 0.375 for t in range(1, 10)]
    assert fed_rounds(player, totals) == fed
    assert player.counts == Counts(missing=len(missing), void_windows=3 - len(fed))


def test_a_void_window_keeps_the_arm_and_the_block() -> None:
    player = ae.CompositeLossWrapper(ae.Uniform(50), max_delay=1, coins=THIRDS, seed=1)
    played = tell_all(player, [None if t == 3 else 0.5 for t in range(1, 10)])
    assert [r.round for r in played if r.draw] == [1, 7]
    assert len({r.arm for r in played[:6]}) == 1


def test_a_late_total_fills_its_hole() -> None:
    player = wrapped(THIRDS, 1)
    tell_all(player, [0.5, None])
    player.amend(2, 0.25)
    assert tell_all(player, [0.5])[-1].fed_loss == 0.25
    assert player.counts == Counts(missing=1, amended=1)


def test_a_total_is_amended_in_the_middle_of_a_round() -> None:
    player = wrapped(THIRDS, 1)
    tell_all(player, [0.5, 1.0])
    player.ask()
    player.amend(2, 0.25)
    player.amend(2, 0.5)
    assert player.tell(0.25).fed_loss == 0.25
    assert player.counts.amended == 2


def test_a_total_can_be_withdrawn() -> None:
    player = wrapped(THIRDS, 1)
    tell_all(player, [0.5, 0.5])
    player.amend(2, None)
    assert not tell_all(player, [0.5])[-1].update
    assert player.counts == Counts(missing=1, void_windows=1, amended=1)


def test_an_amendment_outside_the_window_has_no_effect() -> None:
    # Round 1 is in the open block, but in no window.
    player = wrapped([0, 0, 0, 1], 1)
    tell_all(player, [0.5, 0.25, 0.25])
    player.amend(1, 1.0)
    assert tell_all(player, [0.5])[-1].fed_loss == 0.25
    assert player.counts.amended == 1


CLOSED = "round must be in the open block, but the block of round {} has been closed and learned from"
AMENDMENTS: list[tuple[Any, Any, type[Exception], str]] = [
    (0, 0.1, ae.InvalidArgument, "round must be at least 1, but got 0"),
    (4.0, 0.1, ae.InvalidArgument, "round must be an int, but got 4.0"),
    (6, 0.1, ae.OutOfTurn, "round must have been reported before it is amended, but got 6"),
    (1, 0.1, ae.OutOfTurn, CLOSED.format(1)),
    (5, float("nan"), ae.InvalidTotal, "total must be a finite number, but got nan; a missing total is None"),
    (
        *(5, 2.5, ae.InvalidTotal),
        "total must lie in [0, 2], the range of one action's effect (low=0, high=1) "
        "times max_delay + 1 = 2, but got 2.5",
    ),
]


@pytest.mark.parametrize(("round_", "total", "error", "message"), AMENDMENTS)
@pytest.mark.parametrize("asked", [False, True])
def test_amendments_that_cannot_be(round_: Any, total: Any, error: type[Exception], message: str, asked: bool) -> None:
    player = wrapped(THIRDS, 1)
    tell_all(player, [0.5] * 5)
    if asked:
        player.ask()
    before = player.state()
    with pytest.raises(error) as found:
        player.amend(round_, total)
    assert str(found.value) == message
    assert player.state() == before


# Bounds at d = 1: a total is at most 2, a window of two totals at most 3 (Lemma 2).
def test_impossible_totals_raise_by_default() -> None:
    player = wrapped(THIRDS, 1)
    tell_all(player, [2.0, 2.0])
    arm, before = player.ask(), player.state()
    possible = "total must lie in [0, 2], the range of one action's effect (low=0, high=1) times max_delay + 1 = 2, but"
    lemma_2 = "total must keep the sum of the last 2 totals in [0, 3] (Lemma 2), but with total 1.5 the sum is 3.5"
    for bad, message in ((-0.1, f"{possible} got -0.1"), (2.1, f"{possible} got 2.1"), (1.5, lemma_2)):
        with pytest.raises(ae.InvalidTotal) as error:
            player.tell(bad)
        assert str(error.value) == message
        assert (player.ask(), player.state()) == (arm, before)
    assert player.tell(1.0).fed_loss == 1.0
    assert player.counts == Counts()


def test_impossible_totals_can_be_void() -> None:
    player = wrapped(THIRDS, 1, out_of_range="void")
    # The total 2.5 is void; so is the window 2 + 1.5, although its totals are possible; (0.25, 0.5) is valid.
    assert fed_rounds(player, [0.0, 2.5, 0.5, 0.0, 2.0, 1.5, 0.0, 0.25, 0.5]) == {9: 0.25}
    assert player.counts == Counts(out_of_range=2, void_windows=2)


def test_impossible_totals_can_be_clipped() -> None:
    player = wrapped(THIRDS, 1, out_of_range="clip")
    # 9 is clipped to 2 and -9 to 0, up to the margin for rounding; the window 2 + 1.5 to 3.
    fed = fed_rounds(player, [0.0, 9.0, 0.25, 0.0, 2.0, 1.5, 0.0, -9.0, 0.375])
    assert fed[3] == pytest.approx(0.75, abs=2e-8)
    assert fed[6] == 1.0
    assert fed[9] == pytest.approx(0.125, abs=2e-8)
    assert player.counts == Counts(out_of_range=3)


def test_rounding_is_no_reason_to_refuse() -> None:
    player = wrapped([0, 0, 1], 1)
    assert tell_all(player, [-1e-9, 2.0 + 1e-9, 1.0 + 1e-9])[-1].fed_loss == 1.0
    with pytest.raises(ae.InvalidTotal):
        tell_all(wrapped(THIRDS, 1), [2.0 + 1e-6])


# W = 3/4 over two totals at d = 1, so W/(2d+1) = 1/4.
@pytest.mark.parametrize(("settings", "fed"), [
    ({}, 0.25),
    ({"direction": "maximize"}, 0.75),
    ({"low": 0.125}, 0.25),  # low > 0 has no effect: part of an action's effect may be 0
    ({"high": 0.5}, 0.5),
    ({"high": 2.0}, 0.125),
    ({"low": -1.0}, 0.625),
    ({"low": -1.0, "high": 3.0}, 0.3125),
    ({"low": -1.0, "high": 3.0, "direction": "maximize"}, 0.6875),
    ({"low": -1.0, "high": 0.25}, 1.0),
    ({"low": 0.25, "high": 4.0, "direction": "maximize"}, 0.9375),
])
def test_ranges_and_rewards(settings: dict[str, Any], fed: float) -> None:
    assert tell_all(wrapped([0, 0, 1], 1, **settings), [0.0, 0.25, 0.5])[-1].fed_loss == fed


def test_ranges_of_costs_below_zero() -> None:
    # Effects in [-2, -1] mean lo = -2 and hi = 0; W = -3 gives (-1 + 2)/2.
    settings: dict[str, Any] = {"low": -2.0, "high": -1.0}
    assert tell_all(wrapped([0, 0, 1], 1, **settings), [0.0, -2.0, -1.0])[-1].fed_loss == 0.5
    with pytest.raises(ae.InvalidTotal) as error:
        tell_all(wrapped([0, 0, 1], 1, **settings), [0.5])
    assert str(error.value) == (
        "total must lie in [-4, 0], the range of one action's effect (low=-2, high=0) "
        "times max_delay + 1 = 2, but got 0.5"
    )


def test_the_naive_player_scales_and_clips() -> None:
    player = ae.Naive(ae.Uniform(2), seed=0, low=-1.0, high=3.0, direction="maximize")
    fed = [played.fed_loss for played in tell_all(player, (1.0, 3.0, -1.0, 9.0, -5.0, None))]
    assert fed == [0.5, 0.0, 1.0, 0.0, 1.0, None]
    player.ask()
    with pytest.raises(ae.InvalidTotal) as error:
        player.tell(22.0)
    assert str(error.value) == (
        "total must lie in [-7, 21], the range of one action's effect (low=-1, high=3) "
        "times the 7 actions so far, but got 22.0"
    )


def test_a_naive_player_that_knows_the_delay_scales_by_it() -> None:
    player = ae.Naive(ae.Uniform(2), max_delay=1, seed=0, low=-1.0, high=3.0, direction="maximize")
    fed = [played.fed_loss for played in tell_all(player, (2.0, 6.0, -2.0, None))]
    assert fed == [0.5, 0.0, 1.0, None]
    player.ask()
    with pytest.raises(ae.InvalidTotal, match=r"^total must lie in \[-2, 6\], .* max_delay \+ 1 = 2, but got 6.5$"):
        player.tell(6.5)
