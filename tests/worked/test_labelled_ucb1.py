"""`DelayedUCB1` against a slow implementation that uses the whole history, and by hand."""

import math

import numpy as np
import pytest
from tests.rounds import tell_all

from aftereffect.players.labelled.joulani2013 import DelayedUCB1


def slow_choice(t: int, n_arms: int, arms: list[int], known: dict[int, float]) -> int:
    """Return the arm of round t (from 1), given the arms played and the rewards reported so far, by round."""
    index = []
    for arm in range(n_arms):
        rewards = [known[s] for s in known if arms[s - 1] == arm]
        never = math.inf if not rewards else 0.0
        width = math.sqrt(2.0 * math.log(t) / len(rewards)) if rewards else 0.0
        index.append((never, -arms.count(arm) if never else math.fsum(rewards) / len(rewards) + width))
    return max(range(n_arms), key=lambda arm: index[arm])


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_against_a_slow_one(direction: str) -> None:
    horizon, n_arms = 400, 4
    rng = np.random.default_rng(1)
    table = rng.random((horizon, n_arms)) * [0.5, 0.7, 0.9, 1.0]
    delays = rng.integers(0, 30, (horizon, n_arms))
    player = DelayedUCB1(n_arms, direction=direction)
    arms: list[int] = []
    known: dict[int, float] = {}
    for t in range(1, horizon + 1):
        assert player.ask() == slow_choice(t, n_arms, arms, known)
        arms.append(player.ask())
        landed = [s for s in range(1, t + 1) if s + delays[s - 1, arms[s - 1]] == t]
        player.tell([(s, table[s - 1, arms[s - 1]]) for s in landed])
        for s in landed:
            loss = table[s - 1, arms[s - 1]]
            known[s] = loss if direction == "maximize" else 1.0 - loss
    assert len(set(arms[-200:])) > 1


def test_takes_turns_until_all_arms_are_reported() -> None:
    player = DelayedUCB1(3)
    arms = []
    for _ in range(7):
        arms.append(player.ask())
        player.tell([])
    assert arms == [0, 1, 2, 0, 1, 2, 0]
    player.ask()
    player.tell([(1, 1.0), (3, 1.0)])
    # Arm 1 is the only one without a report.
    assert [player.ask(), player.tell([]).arm, player.ask()] == [1, 1, 1]


def test_no_bound_on_the_delay_where_nothing_is_kept() -> None:
    player = DelayedUCB1(3)
    tell_all(player, [[]] * 50)
    player.ask()
    assert player.tell([(1, 0.5)]).updates == 1


def test_the_bound_by_hand() -> None:
    # Gaps 1/4 and 1/2: Σ (3.5 + 4)Δ = 7.5·0.75, and 8 ln n·Σ 1/Δ = 48 ln n.
    bound = DelayedUCB1(3).regret_bound(1, [0.25, 0.5, 0.0], 4.0)
    assert bound == pytest.approx(7.5 * 0.75)
    more = DelayedUCB1(3).regret_bound(1000, [0.25, 0.5, 0.0], 4.0) - bound
    assert more == pytest.approx(48.0 * 6.907755278982137)
