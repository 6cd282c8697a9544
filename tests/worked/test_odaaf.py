"""`ODAAF`: play against numbers by hand and a slow implementation; saved states; the input that it refuses."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.refusals import refuses

import aftereffect as ae
from aftereffect.players.rivals.phased_elimination import ODAAF, ODAAFB, ODAAFV, GargAkash

PLAYERS: list[Callable[[], Any]] = [
    lambda: ODAAF(3, horizon=6000, mean_delay=2.5, direction="maximize"),
    lambda: ODAAFB(3, horizon=6000, mean_delay=2.5, max_delay=5, direction="maximize"),
    lambda: ODAAFV(3, horizon=6000, mean_delay=2.5, delay_variance=3.0, direction="maximize"),
    lambda: GargAkash(3, horizon=6000, max_delay=5, direction="maximize"),
]
NAMES = ["ODAAF", "ODAAFB", "ODAAFV", "GargAkash"]


def test_without_delay_the_three_are_one() -> None:
    plain = ODAAF(2, horizon=5000, mean_delay=0.0, mean_delay_offset=1).lengths
    assert plain.tolist() == ODAAFB(2, horizon=5000, mean_delay=0.0, max_delay=0).lengths.tolist()
    assert plain.tolist() == ODAAFV(2, horizon=5000, mean_delay=0.0, delay_variance=0.0).lengths.tolist()
    losses = ae.spreads.at_once(ae.tables.iid(5000, means=[0.2, 0.8], seed=3))
    sim = ae.simulate(ODAAF(2, horizon=5000, mean_delay=0.0), losses, runs=1, trace=True)
    # A gap of 0.6 > 1/2 is found in the first phase unless the difference of the means is off by 0.1, which has
    # probability below 2 exp(-0.1² n_1) < 0.06 (Hoeffding); the seed is fixed.
    assert sim.pseudo_regret[0] == pytest.approx(0.6 * plain[0])


def test_phases_of_garg_and_akash_are_the_shortest_that_their_errors_allow() -> None:
    T, d = 100_000, 7
    lengths = GargAkash(2, horizon=T, max_delay=d).lengths
    for m, n in enumerate(lengths.tolist(), start=1):
        D = 0.5**m
        error = [m * d / k + math.sqrt(math.log(T * D * D) / (2 * k)) for k in (n - 1, n)]
        assert error[1] <= D / 2 < error[0]
    assert len(lengths) > 4


def play(player: Any, total_of: Callable[[int], float | None], rounds: int) -> list[int]:
    arms = []
    for _ in range(rounds):
        arms.append(player.ask())
        player.tell(total_of(arms[-1]))
    return arms


def stretches(arms: list[int]) -> list[tuple[int, int]]:
    """Return the arms run-length encoded, as (arm, rounds)."""
    found: list[tuple[int, int]] = []
    for arm in arms:
        if found and found[-1][0] == arm:
            found[-1] = (arm, found[-1][1] + 1)
        else:
            found.append((arm, 1))
    return found


def test_a_worked_example() -> None:
    # T = 1000, no delay: (14) is ℓ D⁻²(√2 + √(2 + 8D/3))², so n_1 = ⌈ln 250 · 4 · 3.239956²⌉ = ⌈231.84⌉ = 232
    # and n_2 = ⌈ln 62.5 · 16 · 3.047207²⌉ = ⌈614.35⌉ = 615, which adds 383. Losses 3/4, 1/4, 1/2: a gap of
    # just 1/2 survives phase 1 (D = 1/2); of the gaps 1/2 and 1/4 only the first exceeds phase 2's D = 1/4.
    losses = (0.75, 0.25, 0.5)
    player = ODAAF(3, horizon=1000, mean_delay=0.0)
    assert player.lengths.tolist() == [232, 615]
    assert stretches(play(player, losses.__getitem__, 3 * 232)) == [(0, 232), (1, 232), (2, 232)]
    assert (player.active_arms, player.phase) == ((0, 1, 2), 2)
    assert stretches(play(player, losses.__getitem__, 3 * 383 - 1)) == [(0, 383), (1, 383), (2, 382)]
    assert player.ask() == 2
    last = player.tell(0.5)
    assert last == (3 * 615, 2, False, True, 0.5)
    assert player.active_arms == (1, 2)
    # After the last phase: the best arm is played forever, without updates.
    assert player.ask() == 1
    assert player.tell(1.0) == (3 * 615 + 1, 1, True, False, None)
    assert play(player, lambda arm: 1.0, 50) == [1] * 50


def test_missing_totals_lengthen_measured_stretches_only() -> None:
    class Bridged(ODAAF):
        BRIDGE = True

    player = Bridged(2, horizon=1000, mean_delay=0.0)
    assert play(player, lambda arm: None, 5) == [0] * 5
    assert stretches(play(player, (0.5, 0.25).__getitem__, 2 * 232)) == [(0, 232), (1, 232)]
    # The bridge on arm 1, whose length does not depend on reports, then phase 2 with arm 0.
    assert play(player, lambda arm: None, 233) == [1] * 232 + [0]


def test_rewards_and_other_ranges_play_alike() -> None:
    losses = (0.75, 0.25, 0.5)
    rounds = 3 * 615 + 20
    wanted = play(ODAAF(3, horizon=1000, mean_delay=0.0), losses.__getitem__, rounds)
    rewards = ODAAF(3, horizon=1000, mean_delay=0.0, direction="maximize")
    assert play(rewards, lambda arm: 1.0 - losses[arm], rounds) == wanted
    wide = ODAAF(3, horizon=1000, mean_delay=0.0, low=-8.0, high=24.0)
    assert play(wide, lambda arm: 32.0 * losses[arm] - 8.0, rounds) == wanted


def slow_odaaf(
    rewards: np.ndarray, delays: np.ndarray, lengths: list[int], best_first: bool, bridge: bool
) -> list[int]:
    """Algorithm 1 of Pike-Burke et al. on a whole instance, as described there, with sets of rounds and means."""
    T, K = rewards.shape
    arriving = np.zeros(T + delays.max() + 1)
    arms: list[int] = []

    def pull(j: int) -> int:
        t = len(arms)
        if t < T:
            arriving[t + delays[t]] += rewards[t, j]
            arms.append(j)
        return t

    recorded: dict[int, list[int]] = {j: [] for j in range(K)}
    active, gap = list(range(K)), 0.5
    before = 0
    for n in lengths:
        for j in active:
            while len(recorded[j]) < n:
                recorded[j].append(pull(j))
        if len(arms) == T:
            return arms
        means = {j: float(np.mean(arriving[recorded[j]])) for j in active}
        top = max(means.values())
        active = [j for j in active if not means[j] + gap < top]
        best = max(active, key=lambda j: means[j])
        if len(active) == 1:
            break
        if best_first:
            active.sort(key=lambda j: -means[j])
        if bridge:
            for _ in range(n - before):
                pull(best)
        before, gap = n, gap / 2
    while len(arms) < T:
        pull(best)
    return arms


@pytest.mark.parametrize(("make", "name"), [*zip(PLAYERS, NAMES, strict=True)], ids=NAMES)
def test_the_player_is_the_slow_algorithm(make: Callable[[], Any], name: str) -> None:
    curves = name in ("ODAAFB", "ODAAFV")
    random = np.random.default_rng(11)
    rewards = (random.random((6000, 3)) < [0.1, 0.9, 0.55]).astype(float)
    delays = random.integers(0, 6, size=6000)
    player = make()
    arms = slow_odaaf(rewards, delays, player.lengths.tolist(), best_first=curves, bridge=curves)
    assert set(arms) == {0, 1, 2}
    losses = ae.spreads.delayed(rewards, delays=delays, direction="maximize")
    stream = losses.stream()
    for t, arm in enumerate(arms):
        assert player.ask() == arm, f"round {t}"
        player.tell(stream.play(arm))
    assert player.active_arms == (1,)


GOOD: dict[str, Any] = {"horizon": 1000, "mean_delay": 2.0}


test_bad_arguments_are_named = refuses([
    (lambda: ODAAF(2, horizon=10, mean_delay=-1), "mean_delay must be at least 0, but got -1.0"),
    (lambda: ODAAF(2, **GOOD, mean_delay_offset=-1), "mean_delay_offset must be at least 0, but got -1"),
    (lambda: ODAAFB(2, **GOOD, max_delay=-1), "max_delay must be at least 0, but got -1"),
    (lambda: ODAAFB(2, **GOOD, max_delay=1), "mean_delay must be at most 1, but got 2.0"),
    (lambda: ODAAFV(2, **GOOD, delay_variance=-1), "delay_variance must be at least 0, but got -1.0"),
])
