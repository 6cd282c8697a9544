"""`UnknownDelayWrapper` against numbers by hand, a brute-force test of feasibility, and every engine."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.refusals import refuses
from unknown_delay import UnknownDelayWrapper

import aftereffect as ae


def told(player: UnknownDelayWrapper, totals: Sequence[float | None]) -> list[int]:
    """Report totals; return the guess after each."""
    guesses = []
    for total in totals:
        player.ask()
        player.tell(total)
        guesses.append(player.guess)
    return guesses


def sure(guess: int = 0, **settings: Any) -> UnknownDelayWrapper:
    """A player with the deterministic test only."""
    return UnknownDelayWrapper(2, horizon=100, guess=guess, false_alarm=0.0, seed=1, **settings)


def test_stretches_that_cannot_be_by_hand() -> None:
    # A total of 1.5 needs two plays, 2.5 three; and 2.5 doubles the guess twice, from 0 to 2.
    assert told(sure(), [1.0, 1.0, 1.5, 1.5]) == [0, 0, 1, 1]
    assert told(sure(), [0.0, 0.0, 2.5]) == [0, 0, 2]
    # g = 1 allows totals of 2. Two consecutive totals sum to at most 3 (Lemma 2), three to at most 4.
    assert told(sure(1), [0.0, 2.0, 0.0, 2.0, 1.0]) == [1, 1, 1, 1, 1]
    assert told(sure(1), [0.0, 0.0, 2.0, 1.25]) == [1, 1, 1, 2]
    assert told(sure(1), [0.0, 0.0, 1.5, 1.5, 1.25]) == [1, 1, 1, 1, 2]
    # A missing total ends the stretch.
    assert told(sure(1), [0.0, 0.0, 1.5, 1.5, None, 1.25]) == [1] * 6
    # Effects down to −1: the test of the lower bound.
    assert told(sure(low=-1.0), [-1.0, -1.5, 1.0, 1.0, 1.0, 1.0]) == [0, 1, 1, 1, 1, 1]


def fills(totals: list[float], delay: int) -> bool:
    """Whether plays with effects of at most 1, in their own and the next `delay` rounds, can give these totals."""
    left = [1.0] * len(totals)
    for t, total in enumerate(totals):
        for play in range(max(t - delay, 0), t + 1):
            part = min(left[play], total)
            left[play] -= part
            total -= part
        if total > 1e-9:
            return False
    return True


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=30), st.integers(0, 3))
def test_the_certain_test_is_complete(plays: list[tuple[int, int]], guess: int) -> None:
    # Each play loses a multiple of 1/4, as a whole after some delay. The guess doubles exactly if the totals are not
    # feasible for it.
    totals = [0.0] * (len(plays) + 5)
    for t, (delay, fourths) in enumerate(plays):
        totals[t + delay] += fourths / 4
    totals = totals[: len(plays)]
    expected = guess
    for t, found in enumerate(told(sure(guess), totals)):
        while not fills(totals[: t + 1], expected):
            expected = max(1, 2 * expected)
        assert found == expected


def test_rewards_are_losses_flipped() -> None:
    losing = UnknownDelayWrapper(2, horizon=200, guess=1, seed=2)
    winning = UnknownDelayWrapper(2, horizon=200, guess=1, seed=2, direction="maximize", low=-1.0, high=0.0)
    for t in range(200):
        arm = losing.ask()
        assert arm == winning.ask()
        total = (arm + 1) * 0.25 + (t % 3) * 0.125 + (2.0 if t == 100 else 0.0)
        played, flipped = losing.tell(total), winning.tell(-total)
        assert played[:4] == flipped[:4]
        assert played.fed_loss is None or flipped.fed_loss == pytest.approx(played.fed_loss, abs=1e-12)
        assert losing.guess == winning.guess == (1 if t < 100 else 2)


def test_totals_that_no_delay_explains_are_refused_and_change_nothing() -> None:
    player = UnknownDelayWrapper(2, horizon=50, guess=0, seed=5, high=2.0)
    told(player, [0.0, 0.0])
    player.ask()
    before = player.state()
    rule = "total must lie in [0, 6], the range of one action's effect (low=0, high=2) times the 3 actions so far"
    for bad in (-0.5, 6.5):
        with pytest.raises(ae.InvalidTotal) as caught:
            player.tell(bad)
        assert str(caught.value) == f"{rule}, but got {bad}"
        assert player.state() == before
    assert player.tell(6.0).round == 3
    with pytest.raises(ae.OutOfTurn):
        player.tell(0.5)


@pytest.mark.filterwarnings("ignore::aftereffect.AftereffectWarning")
def test_the_engine_refuses_them_too() -> None:
    components = np.full((30, 1, 2), 2.0)
    losses = ae.CompositeLosses(components, high=2.0)
    with pytest.raises(ae.InvalidTotal, match=r"in round 1 of run 0 it is 2\.0"):
        ae.simulate(UnknownDelayWrapper(2, horizon=30), losses, runs=1, engine="rounds")


test_bad_arguments_are_named = refuses([
    ({"horizon": 10, "guess": -1}, "guess must be at least 0, but got -1"),
    ({"horizon": 10, "guess": 11}, "guess must be at most 10, but got 11"),
    ({"horizon": 10, "false_alarm": 1.0}, "false_alarm must be less than 1, but got 1.0"),
], lambda settings: UnknownDelayWrapper(2, **settings))


def test_what_is_guaranteed_by_hand() -> None:
    # guess 0, K = 2, T = 200: 2√(2KT) = 40√2; with the statistical test 5% of 200 more, and only for i.i.d. losses.
    sure_of_it = UnknownDelayWrapper(2, horizon=200, guess=0, false_alarm=0.0, high=3.0)
    assert sure_of_it.regret_bound(0) == pytest.approx(3 * 40 * math.sqrt(2))
    assert sure_of_it.regret_bound(1) == 600.0
    tested = UnknownDelayWrapper(2, horizon=200, guess=0)
    assert tested.regret_bound(0) == 200.0
    assert tested.regret_bound(0, stochastic=True) == pytest.approx(40 * math.sqrt(2) + 10.0)
    assert tested.regret_bound(1, stochastic=True) == 200.0
    assert UnknownDelayWrapper(2, horizon=20, guess=10).regret_bound(3, stochastic=True) == 20.0
    # guess 1: p = 4/27, N = 30,000, η = √15,000, ξ = 2(1 + ln 2)/η, 𝓡 = 2√(4N).
    wide = UnknownDelayWrapper(2, horizon=90_000, guess=1, false_alarm=0.0)
    xi = 2 * (1 + math.log(2)) / math.sqrt(15_000)
    inner = 3 + 2 * (4 / 27) * xi * 90_000 + 2 * math.sqrt(120_000) * 27 / 4
    assert wide.regret_bound(1) == wide.regret_bound(0) == pytest.approx(2 + 1.5 * inner)
    message = r"low must be at least 0 for Theorem 4 to hold, but got -1\.0"
    with pytest.raises(ae.InvalidArgument, match=message):
        UnknownDelayWrapper(2, horizon=20, low=-1.0).regret_bound(0)


def test_a_restart_is_tuned_to_what_is_left() -> None:
    player = UnknownDelayWrapper(2, horizon=102, guess=0, seed=1)
    assert player.learning_rate == math.sqrt(51)
    told(player, [0.0, 1.5])
    assert player.guess == 1
    # 100 rounds remain, with at most 33 updates.
    assert player.learning_rate == math.sqrt(16.5)
    assert player.probabilities.tolist() == [0.5, 0.5]
