"""Labelled players on random instances: under their bounds, and better than players who are not told.

Seeds are fixed. A mean over independent runs has to stay z = 4 standard errors below its limit: if the true
mean is 8 standard errors below it, or more, the false-alarm rate is at most 3.2e-5 a comparison.
"""

from typing import Any

import numpy as np
import pytest

from aftereffect import CompositeLossWrapper, simulate
from aftereffect.bandits.baselines import UCB1
from aftereffect.bandits.exp3 import Exp3
from aftereffect.engines.rounds import simulate_rounds
from aftereffect.engines.workload import Workload
from aftereffect.losses.protocol import Losses
from aftereffect.losses.spreads import delayed, random_split
from aftereffect.losses.tables import iid
from aftereffect.players.labelled.delayed_exp3 import DelayedExp3
from aftereffect.players.labelled.joulani2013 import BOLD, QPMD, DelayedUCB1
from aftereffect.players.labelled.zimmert_seldin import ZimmertSeldin2020

K, D, T, RUNS, Z = 3, 10, 6000, 60, 4.0
MEANS = [0.3, 0.6, 0.6]
GAPS = np.array([0.0, 0.3, 0.3])
# Exp3's best rate for T/(d+1) rounds, √(2 ln K/(KN)) with N = 546.
BOLD_RATE = 0.0366


def run(player: Any, losses: Losses) -> tuple[Any, Any]:
    """Return the regrets and pseudo-regrets of all runs."""
    points = np.array([losses.horizon], dtype=np.int64)
    plan = Workload(player, losses, 1, 0, RUNS, points, GAPS, False, 1, lambda rounds: None)
    outcome = simulate_rounds(plan, player.kernel())
    return outcome.losses[:, 0] - outcome.arm_sums.min(), outcome.pseudo[:, 0]


def error(values: Any) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def late() -> Losses:
    """Every loss arrives whole after exactly d rounds."""
    return delayed(iid(T, means=MEANS, seed=3), delays=D)


ADVERSARIAL = {
    "DelayedExp3": DelayedExp3.tuned(K, max_delay=D, horizon=T),
    "BOLD": BOLD(Exp3(K, learning_rate=BOLD_RATE), max_delay=D),
    "ZimmertSeldin2020": ZimmertSeldin2020(K, max_delay=D),
}


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_regret_is_under_its_bound_and_far_under_that_of_uniform_play(name: str) -> None:
    player, losses = ADVERSARIAL[name], late()
    regret, _ = run(player, losses)
    # In composite losses what is owed at the horizon is not counted: at most d for the best arm.
    assert regret.mean() + Z * error(regret) < player.regret_bound(T) + D
    uniform = losses.arm_sums().mean() - losses.arm_sums().min()
    assert regret.mean() + Z * error(regret) < 0.5 * uniform


def test_the_advanced_tuning_learns_too() -> None:
    losses = late()
    regret, _ = run(ZimmertSeldin2020(K, max_delay=D, tuning="advanced"), losses)
    simple, _ = run(ZimmertSeldin2020(K, max_delay=D), losses)
    # Same streams in run r of both, so differences are paired; on a fixed delay the rates differ by about √2.
    difference = regret - simple
    assert abs(difference.mean()) + Z * error(difference) < 0.5 * simple.mean()


@pytest.mark.parametrize("name", ["DelayedUCB1", "QPMD"])
def test_pseudo_regret_of_index_players(name: str) -> None:
    player = DelayedUCB1(K) if name == "DelayedUCB1" else QPMD(UCB1(K), max_delay=D)
    points = np.array([T], dtype=np.int64)
    found = []
    for seed in range(RUNS):
        plan = Workload(player, late_draw(seed), 1, 0, 1, points, GAPS, False, 1, lambda rounds: None)
        found.append(simulate_rounds(plan, player.kernel()).pseudo[0, 0])
    pseudo = np.array(found)
    # The same bound serves both: UCB1's own for the base, and Δ·(d+1) for each arm's outstanding plays.
    assert pseudo.mean() + Z * error(pseudo) < DelayedUCB1(K).regret_bound(T, GAPS, D + 1)
    # Uniform play has T times the mean gap.
    assert pseudo.mean() + Z * error(pseudo) < 0.1 * T * GAPS.mean()


def late_draw(seed: int) -> Losses:
    return delayed(iid(T, means=MEANS, seed=100 + seed), delays=D)


def test_what_anonymity_costs() -> None:
    # Both see the same losses; one is told each play's whole loss, the other only totals.
    losses = random_split(iid(T, means=MEANS, seed=5), max_delay=D, seed=6)
    labelled, _ = run(DelayedExp3.tuned(K, max_delay=D, horizon=T), losses)
    wrapper = CompositeLossWrapper.tuned(n_arms=K, max_delay=D, horizon=T)
    anonymous = simulate(wrapper, losses, runs=RUNS, seed=1).regret
    cost = anonymous.mean() - labelled.mean()
    assert cost > Z * np.hypot(error(anonymous), error(labelled))
    assert anonymous.mean() > 2.0 * labelled.mean()
