"""Fixed blocks, mini-batches, the blinded bandit and the 2018 wrapper against slow implementations of their rules."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.rounds import tell_all

from aftereffect.bandits.exp3 import Exp3
from aftereffect.bandits.tsallis import TsallisFTRL
from aftereffect.core import random
from aftereffect.core.jit import compiled
from aftereffect.engines.simulation import compare, simulate
from aftereffect.losses.protocol import CompositeLosses
from aftereffect.players.base import KernelPlayer
from aftereffect.players.rivals.wrappers import CLW2018, Blinded, FixedBlock, MiniBatch, block_length
from aftereffect.players.wrapper.wrapper import CompositeLossWrapper

K, RATE, SEED = 3, 0.5, 21
Rule = Callable[[int, list[float], list[int], list[bool]], float | None]


def coins(bias: float) -> Iterator[bool]:
    words, uniform = random.stream(SEED, 0, random.COINS), compiled(random.uniform)
    while True:
        yield uniform(words) < bias


def slow_play(rule: Rule, totals: list[float], bias: float) -> list[tuple[int, bool, float | None]]:
    """Play by a rule on the whole history: (round, totals, update rounds, coins) -> fed loss or None."""
    bandit, words = Exp3(K, learning_rate=RATE), random.stream(SEED, 0, random.ARMS)
    arms: list[int] = []
    updates: list[int] = []
    tossed: list[bool] = []
    found = []
    for t, coin in zip(range(1, len(totals) + 1), coins(bias), strict=False):
        draw = t == 1 or (t - 1) in updates
        arms.append(bandit.draw(words) if draw else arms[-1])
        tossed.append(coin)
        fed = rule(t, totals[:t], updates, tossed)
        if fed is not None:
            bandit.update(arms[-1], fed)
            updates.append(t)
        found.append((arms[-1], draw, fed))
    return found


def quick_play(player: KernelPlayer, totals: list[float]) -> list[tuple[int, bool, float | None]]:
    return [(played.arm, played.draw, played.fed_loss) for played in tell_all(player, totals)]


def fixed_block_rule(t: int, totals: list[float], updates: list[int], tossed: list[bool]) -> Any:
    return sum(totals[-3:]) / 5 if t % 5 == 0 else None  # d = 2


def mini_batch_rule(t: int, totals: list[float], updates: list[int], tossed: list[bool]) -> Any:
    return sum(totals[-4:]) / 6 if t % 4 == 0 else None  # tau = 4, d = 2


def blinded_rule(t: int, totals: list[float], updates: list[int], tossed: list[bool]) -> Any:
    return totals[-1] / 2 if t > 1 and tossed[-1] and not tossed[-2] else None


def clw2018_rule(t: int, totals: list[float], updates: list[int], tossed: list[bool]) -> Any:
    recent = any(t - s in updates for s in range(1, 6))  # d_c = 3, so 2 d_c - 1 = 5
    return sum(totals[-3:]) / 6 if tossed[-1] and not recent else None


def base() -> Exp3:
    return Exp3(K, learning_rate=RATE)


@pytest.mark.parametrize(("player", "rule", "bias"), [
    (lambda: FixedBlock(base(), max_delay=2, seed=SEED), fixed_block_rule, 1.0),
    (lambda: MiniBatch(base(), block_length=4, max_delay=2, seed=SEED), mini_batch_rule, 1.0),
    (lambda: Blinded(base(), seed=SEED), blinded_rule, 0.5),
    (lambda: CLW2018(base(), max_delay=2, seed=SEED), clw2018_rule, 0.1),
], ids=["fixed block", "mini-batch", "blinded", "clw2018"])
def test_the_kernel_plays_by_the_rule(player: Callable[[], KernelPlayer], rule: Rule, bias: float) -> None:
    # Multiples of 1/64 add exactly, so that the two must agree to the last bit but one.
    totals = [float(x) / 64 for x in np.random.default_rng(4).integers(0, 64, 300)]
    slow, quick = slow_play(rule, totals, bias), quick_play(player(), totals)
    assert [played[:2] for played in quick] == [played[:2] for played in slow]
    assert [played[2] is None for played in quick] == [played[2] is None for played in slow]
    fed = [(a[2], b[2]) for a, b in zip(quick, slow, strict=True) if a[2] is not None]
    assert len(fed) > 10
    assert [a for a, _ in fed] == pytest.approx([b for _, b in fed], rel=1e-15)


def test_rewards_and_ranges_by_hand() -> None:
    """Effects in [-1, 3], three totals of sum 2 over 2d+1 = 5 parts: (0.4 + 1)/4 = 0.35, as rewards 0.65."""
    settings: dict[str, Any] = {"low": -1.0, "high": 3.0, "seed": 1}
    totals = [9.0, -3.0, 1.0, 0.5, 0.5]
    for direction, expected in (("minimize", 0.35), ("maximize", 0.65)):
        player = FixedBlock(base(), max_delay=2, direction=direction, **settings)
        assert quick_play(player, totals)[-1][2] == pytest.approx(expected, rel=1e-14)
        # All five, of sum 8, over 5 + 1 parts: (8/6 + 1)/4 = 7/12.
        batch = MiniBatch(base(), block_length=5, max_delay=1, direction=direction, **settings)
        whole = 7 / 12 if direction == "minimize" else 5 / 12
        assert quick_play(batch, [6.0, 0.0, 1.0, 0.5, 0.5])[-1][2] == pytest.approx(whole, rel=1e-14)


def test_a_missing_total_voids_its_window_and_the_arm_stays() -> None:
    player = FixedBlock(base(), max_delay=1, seed=2)
    rounds = tell_all(player, (0.5, None, 0.5, None, 0.5, 0.5, 0.5))
    assert [played.update for played in rounds] == [False, False, False, False, False, True, False]
    assert [played.draw for played in rounds] == [True, False, False, False, False, False, True]
    assert len({played.arm for played in rounds[:6]}) == 1


def test_mini_batch_lengths_by_hand() -> None:
    """q = 1/2 makes tau = (T/C^2)^(1/3)."""
    assert block_length(2.0, 0.5, 4000) == 10
    assert block_length(2.0, 0.5, 4000 * 8) == 20
    assert block_length(100.0, 0.5, 10) == 1
    assert block_length(0.001, 0.0, 10) == 10
    # C = 2 sqrt(2K) = 4 at K = 2: tau = (27 * 16 / 16)^(1/3) = 3, and the rate for 144 blocks is sqrt(72).
    player = MiniBatch.tuned(n_arms=2, horizon=27 * 16, seed=1)
    assert player.block_length == 3
    assert isinstance(player.inside, TsallisFTRL)
    assert player.inside.learning_rate == pytest.approx(72**0.5)


def test_the_published_rate_of_2018() -> None:
    """At d_c = 2, K = 2 and T = 50: eta = 4 sqrt(2 ln 2/(9 * 50)) = (4/15) sqrt(ln 2)."""
    player = CLW2018.tuned(n_arms=2, max_delay=1, horizon=50, seed=1)
    assert player.update_probability == 1 / 6
    assert isinstance(player.inside, Exp3)
    assert player.inside.learning_rate == pytest.approx(4 / 15 * 0.8325546111576977, rel=1e-14)


def aimed_at_fixed_blocks(max_delay: int, blocks: int) -> CompositeLosses:
    """Arm 0 loses 1 in the first d rounds of each block of 2d+1, arm 1 loses 1/2 in the others, without delay."""
    length = 2 * max_delay + 1
    place = np.arange(blocks * length) % length
    components = np.zeros((blocks * length, max_delay + 1, 2))
    components[place < max_delay, 0, 0] = 1.0
    components[place >= max_delay, 0, 1] = 0.5
    return CompositeLosses(components)


def test_an_oblivious_adversary_can_aim_at_fixed_blocks() -> None:
    """Fixed blocks never observe the losses of arm 0: regret is linear, and significantly above the wrapper's.

    With d = 4 arm 0 loses 4 per block and arm 1 loses 2.5, but the fed losses are 0 and 2.5/9. Uniform play has regret
    0.75 per block. For the comparison z = 6: a false alarm in fewer than 1e-8 of seeds.
    """
    d, blocks = 4, 4000
    world = aimed_at_fixed_blocks(d, blocks)
    horizon = world.horizon
    tuned: dict[str, Any] = {"n_arms": 2, "max_delay": d, "horizon": horizon, "base": "exp3", "seed": 1}
    half = [horizon // 2]
    fixed = simulate(FixedBlock.tuned(**tuned), world, runs=40, seed=3, checkpoints=half)
    wrapped = simulate(CompositeLossWrapper.tuned(**tuned), world, runs=40, seed=3, checkpoints=half)
    assert world.best_arm() == 1
    # The windows of arm 0 always sum to 0: its estimate never changes, and it is played more and more.
    assert fixed.regret.min() > 0.75 * blocks
    halves = fixed.regrets.mean(axis=0)
    assert halves[1] > 2.0 * halves[0]
    difference = compare(fixed, wrapped)
    assert difference.mean > 6.0 * difference.standard_error
    assert wrapped.mean_regret < 0.5 * fixed.mean_regret
