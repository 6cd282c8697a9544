"""BOLD and QPM-D against their base algorithm and against slow implementations."""

from collections import deque
from typing import Any

import numpy as np
import pytest

from aftereffect.bandits.baselines import UCB1
from aftereffect.bandits.exp3 import Exp3
from aftereffect.bandits.tsallis import TsallisFTRL
from aftereffect.core import random
from aftereffect.players.labelled.joulani2013 import BOLD, QPMD

T, K = 240, 3


def table(seed: int) -> Any:
    return np.random.default_rng(seed).random((T, K))


def landing(delays: Any, t: int) -> list[int]:
    return [s for s in range(t + 1) if s + delays[s] == t]


@pytest.mark.parametrize(
    "player",
    [BOLD(Exp3(K, learning_rate=0.4), max_delay=0, seed=3), QPMD(Exp3(K, learning_rate=0.4), max_delay=0, seed=3)],
)
def test_without_delay_it_is_the_base(player: Any) -> None:
    losses = table(1)
    bandit, stream = Exp3(K, learning_rate=0.4), random.stream(3, 0, random.ARMS)
    for t in range(T):
        arm = bandit.draw(stream)
        assert player.ask() == arm
        bandit.update(arm, losses[t, arm])
        assert player.tell([(t + 1, losses[t, arm])]) == (t + 1, arm, True, 1, losses[t, arm])


@pytest.mark.parametrize("d", [1, 4])
def test_bold_under_a_fixed_delay_is_d_plus_1_copies_taking_turns(d: int) -> None:
    losses = table(2)
    player = BOLD(TsallisFTRL(K, learning_rate=3.0), max_delay=d, seed=4)
    copies, stream = [TsallisFTRL(K, learning_rate=3.0) for _ in range(d + 1)], random.stream(4, 0, random.ARMS)
    arms: list[int] = []
    for t in range(T):
        arms.append(copies[t % (d + 1)].draw(stream))
        assert player.ask() == arms[t]
        told = t - d
        player.tell([(told + 1, losses[told, arms[told]])] if told >= 0 else [])
        if told >= 0:
            copies[told % (d + 1)].update(arms[told], losses[told, arms[told]])


def test_bold_under_varying_delays_against_a_slow_pool() -> None:
    d, losses = 5, table(5)
    delays = np.random.default_rng(6).integers(0, d + 1, T)
    player = BOLD(Exp3(K, learning_rate=0.4), max_delay=d, seed=7)
    stream, free, busy = random.stream(7, 0, random.ARMS), [], {}
    made, arms = 0, []
    for t in range(T):
        if not free:
            free.append(Exp3(K, learning_rate=0.4))
            made += 1
        busy[t] = free.pop()
        arms.append(busy[t].draw(stream))
        assert player.ask() == arms[t]
        told = landing(delays, t)
        player.tell([(s + 1, losses[s, arms[s]]) for s in told])
        for s in told:
            free.append(busy.pop(s))
            free[-1].update(arms[s], losses[s, arms[s]])
    assert 2 < made <= d + 1


def test_bold_needs_all_its_copies_and_no_more() -> None:
    d = 3
    player = BOLD(Exp3(2, learning_rate=0.1), max_delay=d, seed=1)
    for t in range(1, 40):
        player.ask()
        player.tell([(t - d, 1.0)] if t > d else [])
        assert len(player.outstanding) == min(t, d)


def test_bolds_bound_by_hand() -> None:
    # d + 1 = 4 copies of 250 rounds, each 2η√K + 250√K/η with K = 4 and η = 5: 20 + 100.
    assert BOLD(TsallisFTRL(4, learning_rate=5.0), max_delay=3).regret_bound(1000) == pytest.approx(480.0)


@pytest.mark.parametrize("base", [Exp3(K, learning_rate=0.3), UCB1(K)])
def test_qpmd_against_queues_filled_once_a_round(base: Any) -> None:
    d, losses = 6, table(8)
    delays = np.random.default_rng(9).integers(0, d + 1, T)
    player = QPMD(base, max_delay=d, seed=10)
    bandit, stream = base.fresh(), random.stream(10, 0, random.ARMS)
    queues: list[deque[float]] = [deque() for _ in range(K)]
    choice = bandit.draw(stream)
    arms: list[int] = []
    for t in range(T):
        while queues[choice]:
            bandit.update(choice, queues[choice].popleft())
            choice = bandit.draw(stream)
        arms.append(choice)
        assert player.ask() == choice
        told = landing(delays, t)
        player.tell([(s + 1, losses[s, arms[s]]) for s in told])
        for s in told:
            queues[arms[s]].append(losses[s, arms[s]])
