"""Tsallis-INF on the experiments of its paper: stochastic losses, and a stochastically constrained adversary.

The wrapper at d = 0 with coins that are always 1 is its base: every round is a block of its own. Means are
compared at z = 4 standard errors, a false alarm in 32,000 for a mean that lies on the bound; where one mean
has to be below another, at z = 3, one in 740. Seeds are fixed.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest

from aftereffect import CompositeLossWrapper, Simulation, compare, simulate, spreads, tables
from aftereffect.bandits.baselines import UCB1
from aftereffect.bandits.tsallis_inf import ESTIMATORS, TsallisINF
from aftereffect.losses.protocol import Losses

SETTINGS = [(8, 20_000, 0.125, 120), (2, 100_000, 0.25, 60)]


def stochastic(n_arms: int, horizon: int, gap: float) -> Losses:
    means = np.full(n_arms, (1.0 + gap) / 2.0)
    means[0] = (1.0 - gap) / 2.0
    return spreads.at_once(tables.iid(horizon, means=means, seed=0))


def constrained(n_arms: int, horizon: int, gap: float) -> Losses:
    return spreads.at_once(tables.constrained(horizon, n_arms=n_arms, seed=0, gap=gap))


def play(bandit: TsallisINF | UCB1, losses: Losses, runs: int) -> Simulation:
    player = CompositeLossWrapper(bandit, max_delay=0, coins=1.0)
    # A table for each run: runs that share one are not independent.
    return simulate(player, losses, runs=runs, seed=11, instances=runs, checkpoints=1, progress=False)


def self_bounding(estimator: str, n_arms: int, horizon: int, gap: float) -> float:
    """Return the published bound for gaps that stay, all alike, typed in from the paper."""
    log, others = math.log(horizon), (n_arms - 1) / gap
    if estimator == "importance_weighted":
        return others * (4.0 * log + 12.0) + 4.0 * log + 1.0 / gap + 1.5 * math.sqrt(n_arms) + 8.0
    return others * (log + 3.0) + 28.0 * n_arms * log + 1.0 / gap + 1.5 * math.sqrt(n_arms) + 32.0


@pytest.mark.parametrize("world", [stochastic, constrained])
@pytest.mark.parametrize(("n_arms", "horizon", "gap", "runs"), SETTINGS)
def test_regret_is_under_its_bounds_and_falls_with_the_variance(
    world: Callable[[int, int, float], Losses], n_arms: int, horizon: int, gap: float, runs: int
) -> None:
    losses = world(n_arms, horizon, gap)
    played = {}
    for estimator in ESTIMATORS:
        bandit = TsallisINF(n_arms, estimator=estimator)
        result = played[estimator] = play(bandit, losses, runs)
        assert result.updates.tolist() == [horizon] * runs
        bound = min(bandit.regret_bound(horizon), self_bounding(estimator, n_arms, horizon, gap))
        assert result.mean_regret + 4.0 * result.standard_error <= bound
        # Uniform play loses the gap wherever it does not hit the best arm: learning is far below it.
        assert result.mean_regret <= 0.25 * horizon * gap * (1.0 - 1.0 / n_arms)
    plain, reduced = (played[estimator] for estimator in ESTIMATORS)
    difference = compare(plain, reduced)
    assert difference.mean > 3.0 * difference.standard_error


def test_ucb1_fails_where_the_level_moves() -> None:
    """The point of the second experiment: UCB1 takes a jump of the level for a change of the arms."""
    n_arms, horizon, gap, runs = SETTINGS[0]
    losses = constrained(n_arms, horizon, gap)
    difference = compare(play(UCB1(n_arms), losses, runs), play(TsallisINF(n_arms), losses, runs))
    assert difference.mean > 3.0 * difference.standard_error
