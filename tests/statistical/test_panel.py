"""A panel's regret: less per unit the more units there are, and in all below what `regret_bound` states.

Runs are independent: each has its own seed for the player and for the losses. Units of one run share a learner and are
not independent, so every standard error is taken over runs.
"""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import aftereffect as ae


def played(panel: ae.Panel, table: Any) -> Any:
    """Play against losses (T, M, K) that arrive whole, d rounds late; return the arms, (T, M)."""
    T, M, _ = table.shape
    d, units, zeros = panel.max_delay, np.arange(M), [0.0] * M
    arms = np.empty((T, M), dtype=np.int64)
    for t in range(T):
        arms[t] = panel.ask()
        panel.tell(table[t - d, units, arms[t - d]].tolist() if t >= d else zeros)
    return arms


def regret_per_unit(bandit: Any, units: int, runs: int, T: int) -> tuple[float, float]:
    """Return the mean pseudo-regret of a unit and its standard error: iid losses, arm 0 better by 0.2, d = 2."""
    values = []
    for run in range(runs):
        rng = np.random.default_rng((units, run))
        table = (rng.random((T, units, 5)) < [0.3, 0.5, 0.5, 0.5, 0.5]).astype(float)
        player = ae.CompositeLossWrapper(bandit.fresh(), max_delay=2, coins=0.2, seed=1000 * units + run)
        values.append(0.2 * float((played(ae.Panel(player, n_units=units), table) != 0).sum()) / units)
    return float(np.mean(values)), float(np.std(values, ddof=1)) / math.sqrt(runs)


@pytest.mark.parametrize(
    "bandit", [ae.TsallisFTRL(5, learning_rate=0.25), ae.Exp3(5, learning_rate=1.0)], ids=["tsallis", "exp3"]
)
def test_regret_per_unit_falls_as_units_grow(bandit: ae.TsallisFTRL | ae.Exp3) -> None:
    # Rates at which a unit alone has little but noise to learn from. Each fourfold panel must be better by 3 standard
    # errors of the difference; where it is not better at all that happens in 0.13% of cases, per comparison.
    T = 2500
    found = [regret_per_unit(bandit, units, runs, T) for units, runs in ((1, 32), (4, 32), (16, 16), (64, 10))]
    for (few, few_error), (many, many_error) in itertools.pairwise(found):
        assert few - many >= 3.0 * math.hypot(few_error, many_error), found
    # Among 64 a unit loses less than a fifth of what it does alone, and of what random play does (0.16 a round).
    assert found[3][0] <= found[0][0] / 5.0
    assert found[3][0] <= 0.16 * T / 5.0


def turning(T: int, M: int, K: int) -> Any:
    """Arm 0 leads for a third of the game and then never again; half the units are late to notice."""
    table = np.full((T, M, K), 0.8)
    table[:, :, 1] = 0.4
    table[: T // 3, :, 0] = 0.0
    table[: T // 2, M // 2 :, 0] = 0.0
    return table


def noisy(T: int, M: int, K: int) -> Any:
    """Units whose own best arms differ, with one arm that is best for all together."""
    means = np.full((M, K), 0.6)
    means[:, 0] = 0.35
    means[::4, 1] = 0.1
    return (np.random.default_rng(T + M).random((T, M, K)) < means).astype(float)


@pytest.mark.parametrize("table", [turning, noisy], ids=["turning", "noisy"])
@pytest.mark.parametrize(("base", "M", "K", "d", "T", "runs"), [
    *(("tsallis", 4, 2, 0, 2000, 12), ("tsallis", 16, 9, 0, 1500, 8)),
    *(("exp3", 4, 2, 0, 2000, 30), ("tsallis", 4, 2, 1, 30_000, 4)),
])
def test_the_sum_over_units_is_below_the_bound(
    base: str, M: int, K: int, d: int, T: int, runs: int, table: Any
) -> None:
    # Expected regret in all, against the one best arm for all units; 3 standard errors on top make it stricter.
    losses = table(T, M, K)
    values = []
    player = ae.CompositeLossWrapper.tuned(n_arms=K, max_delay=d, horizon=T, base=base, seed=0)
    panel = ae.Panel(player, n_units=M)
    bound = panel.regret_bound(T)
    assert bound < M * player.regret_bound(T), "sharing promises something"
    assert bound < 0.9 * M * T, "a trivial bound would prove nothing"
    for run in range(runs):
        arms = played(panel.fresh(5, run), losses)
        suffered = np.take_along_axis(losses, arms[:, :, None], axis=2)[: T - d].sum()
        values.append(float(suffered - losses[: T - d].sum(axis=(0, 1)).min()))
    assert float(np.mean(values)) + 3.0 * float(np.std(values, ddof=1)) / math.sqrt(runs) <= bound
