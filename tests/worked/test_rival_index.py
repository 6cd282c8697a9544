"""Index policies on fixed and growing blocks, against slow implementations that use the whole history."""

import math

import numpy as np
import pytest

from aftereffect.core import random
from aftereffect.core.jit import compiled
from aftereffect.engines.simulation import simulate
from aftereffect.losses.protocol import CompositeLosses
from aftereffect.losses.spreads import delayed
from aftereffect.losses.tables import iid
from aftereffect.players.base import KernelPlayer
from aftereffect.players.rivals.ars import ARSUCB, ARSExp3, block_size
from aftereffect.players.rivals.block_ucb import BlockUCB

SEED = 8
Blocks = list[tuple[int, list[float]]]


def arms_of(player: KernelPlayer, totals: list[float]) -> list[int]:
    return [(player.ask(), player.tell(total))[0] for total in totals]


def slow_index(n_arms: int, notes: list[tuple[int, float, float]], rounds: int, width: float) -> int:
    """Return the first arm without observations, else the arm of least index; notes: (arm, sum, number)."""
    indices = []
    for i in range(n_arms):
        number = sum(n for arm, _, n in notes if arm == i)
        if number == 0:
            return i
        mean = sum(x for arm, x, _ in notes if arm == i) / number
        indices.append(mean - width * math.sqrt(math.log(rounds) / number))
    return int(np.argmin(indices))


def arrivals(horizon: int, n_arms: int) -> list[float]:
    return [float(x) for x in np.random.default_rng(5).random(horizon) * n_arms / 2]


@pytest.mark.parametrize(("max_delay", "width"), [(0, math.sqrt(2.0)), (2, 0.7)])
def test_block_ucb_by_its_rule(max_delay: int, width: float) -> None:
    """At d = 0 and width sqrt(2) this is UCB1, for losses."""
    n_arms, length = 3, 2 * max_delay + 1
    totals = [x / 2 for x in arrivals(60 * length, n_arms)]
    notes: list[tuple[int, float, float]] = []
    expected: list[int] = []
    for first in range(0, len(totals), length):
        arm = slow_index(n_arms, notes, first, width)
        expected += [arm] * length
        window = sum(totals[first + max_delay : first + length]) / (max_delay + 1)
        notes.append((arm, window, 1.0))
    assert arms_of(BlockUCB(n_arms, max_delay=max_delay, width=width, seed=1), totals) == expected
    assert len(set(expected[n_arms * length :])) > 1


def test_ties_go_to_the_first_arm() -> None:
    """Equal counts and equal sums make equal indices."""
    assert arms_of(BlockUCB(3, max_delay=0, seed=1), [0.0] * 4) == [0, 1, 2, 0]


def test_rewards_are_losses_turned_round() -> None:
    """An arm that pays 1 - x under "maximize" is played as one that costs x."""
    totals = arrivals(90, 2)
    turned = [1.0 - x for x in totals]
    for make in (lambda way: ARSUCB(2, direction=way, seed=1), lambda way: ARSExp3(2, direction=way, seed=1)):
        assert arms_of(make("maximize"), turned) == arms_of(make("minimize"), totals)


def test_ars_ucb_by_its_rule() -> None:
    n_arms, width = 3, 5.0
    totals = [min(x, t) for t, x in enumerate(arrivals(800, n_arms), start=1)]
    notes: list[tuple[int, float, float]] = []
    expected: list[int] = []
    while len(expected) < len(totals):
        first = len(expected)
        arm = slow_index(n_arms, notes, first, math.sqrt(width))
        length = (sum(a == arm for a, _, _ in notes) + 1) ** 2
        expected += [arm] * length
        notes.append((arm, sum(totals[first : first + length]), float(length)))
    assert arms_of(ARSUCB(n_arms, seed=1), totals) == expected[: len(totals)]


def test_ars_exp3_by_its_rule() -> None:
    n_arms = 3
    totals = [min(x, 1.0) for x in arrivals(400, n_arms)]
    words, uniform = random.stream(SEED, 0, random.ARMS), compiled(random.uniform)
    estimates = np.zeros(n_arms)
    expected: list[int] = []
    k, squares = 0, 0
    while len(expected) < len(totals):
        k += 1
        length = math.isqrt(k - 1) + 1
        squares += length**2
        q = np.exp(-math.sqrt(math.log(n_arms) / (n_arms * squares)) * estimates)
        q /= q.sum()
        arm = int((np.cumsum(q)[:-1] <= uniform(words)).sum())
        block = totals[len(expected) : len(expected) + length]
        estimates[arm] += sum(block) / q[arm]
        expected += [arm] * length
    assert arms_of(ARSExp3(n_arms, seed=SEED), totals) == expected[: len(totals)]
    assert set(expected) == {0, 1, 2}


def test_ars_exp3_survives_certainty() -> None:
    """If the step is so large that an arm's weight underflows, the other arm is played forever; there is no NaN."""
    player = ARSExp3(2, step=1e200, seed=1)
    arms = [player.ask()]
    player.tell(1.0)
    arms += arms_of(player, [0.0] * 20)
    assert set(arms[1:]) == {1 - arms[0]}
    assert player.state()["numbers"].count(None) == 1  # only the loss fed last: its block is open


def test_block_sizes_are_whole_powers() -> None:
    assert [block_size(0.5, k) for k in (1, 2, 4, 5, 9, 10, 1e6, 1e6 + 1)] == [1, 2, 2, 3, 3, 4, 1000, 1001]
    assert [block_size(1 / 3, k**3) for k in range(1, 50)] == list(range(1, 50))
    assert [block_size(2.0, k) for k in (1, 2, 3)] == [1, 4, 9]
    assert block_size(0.0, 7) == 1


def test_the_bound_of_ars_exp3_by_hand() -> None:
    """Length j occurs 2j-1 times: up to j = 20 there are 400 blocks, 5530 rounds and a sum of squares of 85330."""
    learned = 2 * math.sqrt(2 * math.log(2) * 85330)
    assert ARSExp3(2).regret_bound(5530, max_delay=1) == pytest.approx(learned + 2 * 400 + 20, rel=1e-12)
    assert ARSExp3(2, high=3.0).regret_bound(7, max_delay=1) == 21.0


def test_ars_exp3_counts_rounds_not_blocks() -> None:
    """Arm 0 has no losses in the first half of the blocks (0.35 of the rounds), arm 1 in the second.

    Exp3 on averages would prefer arm 0 until the last block, with regret 0.3T. z = 5: false alarms below 1e-6.
    """
    horizon = 20_000
    free = int(0.5**1.5 * horizon)
    components = np.zeros((horizon, 1, 2))
    components[free:, 0, 0] = 1.0
    components[:free, 0, 1] = 1.0
    player = ARSExp3(2, seed=1)
    sim = simulate(player, CompositeLosses(components), runs=40, seed=2)
    assert player.regret_bound(horizon, max_delay=0) < 0.1 * horizon
    assert sim.mean_regret + 5 * sim.standard_error < player.regret_bound(horizon, max_delay=0)


def test_ars_ucb_learns_without_knowing_the_delay() -> None:
    """Effects are 7 rounds late, one arm costs 0.4 more: uniform play has regret 0.2T. z = 5, below 1e-6."""
    horizon = 20_000
    world = delayed(iid(horizon, means=[0.3, 0.7], seed=3), delays=7)
    sim = simulate(ARSUCB(2, seed=1), world, runs=20, instances=20, seed=4)
    assert sim.mean_regret + 5 * sim.standard_error < 0.05 * horizon
