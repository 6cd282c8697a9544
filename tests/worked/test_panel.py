"""`Panel`: several units with one learner, against numbers by hand and independent computations."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contracts.kits import total_at
from tests.contracts.test_bandits import BANDITS
from tests.rounds import tell_all

import aftereffect as ae
from aftereffect.core import kernel, random
from aftereffect.engines.loop import unit_losses


def can_be_shared(bandit: Any) -> bool:
    form = kernel.BANDITS.get(type(getattr(bandit, "params", None)))
    return form is not None and form.update_many is not None


SHARED = [name for name in BANDITS if can_be_shared(BANDITS[name].make())]
COINS = [t % 17 in (0, 5, 12) for t in range(400)]
WRAPPERS: dict[str, Callable[[Any, int], Any]] = {
    "d=0": lambda base, seed: ae.CompositeLossWrapper(base, max_delay=0, coins=1.0, seed=seed),
    "d=0, lazy": lambda base, seed: ae.CompositeLossWrapper(base, max_delay=0, coins=0.4, seed=seed),
    "d=2": lambda base, seed: ae.CompositeLossWrapper(base, max_delay=2, coins=0.2, seed=seed),
    "d=2, given coins": lambda base, seed: ae.CompositeLossWrapper(base, max_delay=2, coins=COINS, seed=seed),
    "rewards": lambda base, seed: ae.CompositeLossWrapper(
        base, max_delay=1, coins=0.3, seed=seed, direction="maximize", low=-1.0, high=2.0, out_of_range="clip"
    ),
    "stretches": lambda base, seed: ae.CoinCleanWrapper(base, max_delay=3, seed=seed),
    "stretches, given coins": lambda base, seed: ae.CoinCleanWrapper(base, max_delay=1, coins=COINS, seed=seed),
}
# Sums over stretches are for bases whose rate adapts alone.
ADAPTIVE = [name for name in SHARED if isinstance(BANDITS[name].make(), ae.AdaptiveTsallis)]
PAIRS = [(base, name) for name in WRAPPERS for base in (ADAPTIVE if "stretches" in name else SHARED)]


def panel(units: int, coins: Any = 0.3, d: int = 1, **settings: Any) -> ae.Panel:
    bandit = ae.TsallisFTRL(2, learning_rate=1.0)
    return ae.Panel(ae.CompositeLossWrapper(bandit, max_delay=d, coins=coins, seed=3, **settings), n_units=units)


def test_which_bases_can_be_shared() -> None:
    # Importance-weighted estimates can be averaged; UCB1 has none, and all units would play the same arm.
    assert {type(BANDITS[name].make()) for name in SHARED} >= {ae.TsallisFTRL, ae.Exp3}
    assert "ucb1" not in SHARED


@pytest.mark.parametrize(("base", "wrapper"), PAIRS)
def test_one_unit_is_the_plain_player_bit_for_bit(base: str, wrapper: str) -> None:
    for seed in range(12):
        alone = WRAPPERS[wrapper](BANDITS[base].make(), seed)
        twin = WRAPPERS[wrapper](BANDITS[base].make(), seed)
        one = ae.Panel(twin, n_units=1)
        for t in range(1, 301):
            arm = alone.ask()
            assert one.ask() == [arm]
            total = None if t % 13 == 0 else total_at(t, arm)
            (n, played, draw, update, fed) = alone.tell(total)
            assert one.tell([total])[:5] == (n, [played], draw, update, [fed])
            if t % 17 == 3 and not update:
                alone.amend(t, 0.125)
                one.amend(t, 0.125, 0)
        assert one.state()["inside"] == alone.state()
        assert (one.probabilities == alone.probabilities).all()
        assert (one.counts, one.rounds_played, one.max_delay) == (alone.counts, 300, alone.max_delay)


@given(st.integers(1, 6), st.integers(0, 2**64 - 1), st.integers(0, 3))
def test_units_share_blocks_and_draw_in_turn_from_one_stream(units: int, seed: int, d: int) -> None:
    # The same coins and draws, computed independently: the blocks from a plain player with this seed, the draws from a
    # bandit and the stream of arms, the updates from the bandit's `update_many`.
    clock = ae.CompositeLossWrapper(ae.Uniform(3), max_delay=d, coins=0.4, seed=seed)
    bandit, arms_of = ae.Exp3(3, learning_rate=0.5), random.stream(seed, 0, random.ARMS)
    many = ae.Panel(
        ae.CompositeLossWrapper(ae.Exp3(3, learning_rate=0.5), max_delay=d, coins=0.4, seed=seed), n_units=units
    )
    arms: list[int] = []
    windows: list[list[float]] = [[] for _ in range(units)]
    for t in range(1, 60):
        clock.ask()
        blocks = clock.tell(0.25)
        if blocks.draw:
            arms, windows, start = [bandit.draw(arms_of) for _ in range(units)], [[] for _ in range(units)], t
        assert many.ask() == arms == many.ask()
        assert many.block_start == start
        totals = [total_at(t + 5 * unit, arm) for unit, arm in enumerate(arms)]
        for window, total in zip(windows, totals, strict=True):
            window.append(total)
        fed = [sum(window[-d - 1 :], 0.0) / (2 * d + 1) for window in windows] if blocks.update else None
        if fed is not None:
            bandit.update_many(arms, fed)
        measured = d + 1 if blocks.update else 0
        expected = ae.PanelRound(t, arms, blocks.draw, blocks.update, fed or [None] * units, measured)
        assert many.tell(totals if t % 2 else np.array(totals)) == expected
        assert (many.probabilities == bandit.probabilities).all()


def test_void_windows_are_left_out() -> None:
    # K = 2, η = 1, d = 0. Two of three units report, so M = 2: L(i) increases by Σ ℓ/(2·½). If L becomes (5/12, 0) or
    # (0, 5/12), q is (9/25, 16/25) or reversed: 1/√q = 5/3 and 5/4 differ by 5/12.
    three = panel(3, coins=1.0, d=0)
    arms = three.ask()
    first = arms[0]
    played = three.tell([5 / 12, None, 0.0] if arms[2] != first else [1 / 4, None, 1 / 6])
    assert played.update
    assert played.fed_losses[1] is None
    q = three.probabilities
    assert [q[first], q[1 - first]] == pytest.approx([9 / 25, 16 / 25], rel=1e-14)
    assert three.counts == (1, 0, 1, 0)
    assert three.unit_counts == [(0, 0, 0, 0), (1, 0, 1, 0), (0, 0, 0, 0)]


def test_where_all_are_void_the_block_goes_on_and_can_be_mended() -> None:
    two = panel(2, coins=[0, 0, 1, 0, 0, 1, 0])
    arms = two.ask()
    two.tell([0.5, 0.5])
    two.ask()
    two.tell([0.5, None])
    two.ask()
    assert not two.tell([None, 0.5]).update, "a gap in either window"
    assert (two.counts.void_windows, two.block_start) == (2, 1)
    for _ in range(2):
        assert two.ask() == arms
        two.tell([None, 0.25])
    two.amend(5, 0.75, 0)
    two.ask()
    played = two.tell([0.0, 0.5])
    assert played == ae.PanelRound(6, arms, False, True, [0.25, 0.25], 2)
    two.ask()
    assert two.block_start == 7


def test_amendments_name_the_unit_and_keep_to_the_open_block() -> None:
    two = panel(2, coins=[0, 0, 1, 0, 0, 1])
    two.ask()
    two.tell([0.5, 0.5])
    before = two.state()
    refusals: list[tuple[tuple[Any, Any, Any], str]] = [
        ((1, 0.5, 2), "unit must be at most 1, but got 2"),
        ((1, 0.5, -1), "unit must be at least 0, but got -1"),
        ((1, 0.5, "0"), "unit must be an int, but got '0'"),
        ((2, 0.5, 1), "round must have been reported before it is amended, but got 2"),
        ((0, 0.5, 1), "round must be at least 1, but got 0"),
        ((1, math.nan, 1), "total must be a finite number, but got nan; a missing total is None"),
    ]
    for arguments, message in refusals:
        with pytest.raises(ae.AftereffectError) as error:
            two.amend(*arguments)
        assert str(error.value) == message
        assert two.state() == before
    two.amend(1, 0.25, 1)
    assert [counts.amended for counts in two.unit_counts] == [0, 1]
    assert ae.restore(two.state()).unit_counts == two.unit_counts
    for totals in ([0.25, 0.5], [0.5, 0.25]):
        two.ask()
        played = two.tell(totals)
    assert played.fed_losses == [0.25, 0.25]
    with pytest.raises(ae.OutOfTurn, match="the block of round 3 has been closed and learned from"):
        two.amend(3, 0.5, 1)


BAD_TOTALS: list[tuple[Any, str]] = [
    ([0.5], "totals must be 2, one per unit, but got 1: [0.5]"),
    (0.5, "totals must be a list, one total per unit, but got 0.5"),
    ("01", "totals must be a list, one total per unit, but got '01'"),
    ([0.5, math.nan], "totals[1]: total must be a finite number, but got nan; a missing total is None"),
    (["0.5", 0.5], "totals[0]: total must be a finite number, but got '0.5'"),
    (
        [None, 2.5],
        "totals[1]: total must lie in [0, 2], the range of one action's effect (low=0, high=1) "
        "times max_delay + 1 = 2, but got 2.5",
    ),
    (
        [0.5, 2.0],
        "totals[1]: total must keep the sum of the last 2 totals in [0, 3] (Lemma 2), "
        "but with total 2.0 the sum is 4.0",
    ),
]


@pytest.mark.parametrize(("totals", "message"), BAD_TOTALS, ids=[repr(bad[0]) for bad in BAD_TOTALS])
def test_bad_totals_change_nothing(totals: Any, message: str) -> None:
    two = panel(2, coins=[0, 0, 1])
    tell_all(two, [[1.0, 2.0]] * 2)
    arms, before = two.ask(), two.state()
    with pytest.raises(ae.InvalidTotal) as error:
        two.tell(totals)
    assert str(error.value) == message
    assert two.state() == before
    assert two.tell((1.0, 0.5)).arms == arms


@pytest.mark.parametrize("at", [1, 2])
def test_a_shared_player_needs_the_totals_of_all_units(at: int) -> None:
    two = panel(2, coins=[0, 1])
    tell_all(two, [[1.0, 2.0]] * (at - 1))
    arms, before = two.ask(), two.state()
    with pytest.raises(ae.InvalidTotal, match=r"totals must be 2, one per unit, but got 1: \[0\.5\]"):
        two.player.tell(0.5)
    assert two.state() == before
    assert two.tell((1.0, 0.5)).arms == arms


def test_turns_are_kept() -> None:
    two = panel(2, coins=[0, 0, 1])
    with pytest.raises(ae.OutOfTurn, match=r"^tell must follow ask, but no round is open$"):
        two.tell([0.5, 0.5])
    for _ in range(3):
        two.ask()[0] = 7  # changing the returned list must not change the panel
        played = two.tell([0.5, 0.5])
        assert 7 not in played.arms
    before = two.state()
    for _ in range(2):
        with pytest.raises(ae.CoinsExhausted):
            two.ask()
        assert two.state() == before


def stochastic() -> ae.Losses:
    table = ae.tables.iid(300, means=[0.3, 0.6, 0.5], seed=3)
    return ae.spreads.random_split(table, max_delay=2, seed=4)


def test_a_simulated_panel_of_one_unit_is_the_player_alone() -> None:
    losses, player = stochastic(), ae.default_player(3, max_delay=2)
    panel = ae.simulate(ae.Panel(ae.default_player(3, max_delay=2), n_units=1), losses, runs=3, seed=5)
    alone = ae.simulate(player, losses, runs=3, seed=5, engine="loop")
    assert panel.regrets == pytest.approx(alone.regrets, rel=1e-12)
    assert (panel.updates == alone.updates).all()
    assert panel.label == "default player, 1 units"
    assert panel.engine == "loop"


@pytest.mark.parametrize("learner", ["default", "A/B test"])
def test_regret_of_a_simulated_panel_is_per_unit_against_the_best_arm_for_all(learner: str) -> None:
    def made() -> ae.Panel:
        player = ae.default_player(3, max_delay=2) if learner == "default" else ae.rivals.ABTest(3, test_rounds=30)
        return ae.Panel(player, n_units=4)

    losses = stochastic()
    found = ae.simulate(made(), losses, runs=2, seed=5)
    # The same by hand: every unit has its own draw, the first that was given.
    units = unit_losses(losses, 4, 5, 0)
    assert units[0] is losses
    assert len({unit.arm_totals().tobytes() for unit in units}) == 4
    panel = made().fresh(5, 1)
    streams = [unit.stream() for unit in units]
    played = 0.0
    for _ in range(300):
        totals = [stream.play(arm) for stream, arm in zip(streams, panel.ask(), strict=True)]
        panel.tell(totals)
        played += sum(totals) / 4
    best = np.mean([unit.arm_sums() for unit in units], axis=0).min()
    assert found.regret[1] == pytest.approx(played - best)
    assert found.pseudo_regret[1] > 0.0


def test_units_need_losses_that_can_be_redrawn_and_have_no_trace() -> None:
    panel = ae.Panel(ae.default_player(2, max_delay=0), n_units=2)
    with pytest.raises(ae.InvalidLosses, match="losses must have a stochastic recipe to be redrawn"):
        ae.simulate(panel, ae.CompositeLosses(np.zeros((9, 1, 2))), runs=1)
    with pytest.raises(ae.InvalidArgument, match="trace must be False for a panel"):
        ae.simulate(ae.Panel(ae.default_player(3, max_delay=2), n_units=2), stochastic(), runs=1, trace=True)


def test_the_first_rate_of_the_default_player_falls_with_the_number_of_units() -> None:
    def panel(units: int, **given: float) -> Any:
        return ae.Panel(ae.default_player(3, max_delay=2, seed=1), n_units=units, **given)

    assert panel(1).player.bandit.first_rate == 0.3
    assert panel(9).player.bandit.first_rate == pytest.approx(0.1)
    assert panel(9, first_rate=0.3).player.bandit.first_rate == 0.3
    assert panel(9).fresh(4).player.bandit.first_rate == pytest.approx(0.1)
    assert ae.restore(panel(9).state()).player.bandit.first_rate == pytest.approx(0.1)
    # hη₁, in units of the losses, is all of the bound that changes: M·F·h(η₁ − η₁').
    wide, narrow = panel(9, first_rate=0.3), panel(9)
    assert narrow.certificate().value < wide.certificate().value
