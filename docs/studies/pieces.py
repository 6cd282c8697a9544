"""Losses with piecewise constant means, on which the default player does badly: the instance `pieces`.

The shapes were found by a search for high regret (docs/theory/worst_instance.md), and rounded.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from aftereffect.core import checks
from aftereffect.core.checks import FloatArray
from aftereffect.core.random import TABLE, children, sequence
from aftereffect.losses.protocol import Losses
from aftereffect.losses.tables import Table
from aftereffect.studies.cells import SPREADS, spread_out

SHAPES: dict[str, dict[str, Any]] = {
    # The largest regrets over √(KT) found without delay: a common level that flips every round masks the gaps.
    "hidden": {
        "shares": [0.24, 0.13, 0.16, 0.42, 0.05],
        "levels": [[0.57, 0.61], [0.02, 0.13], [0.67, 0.77], [0.07, 1.0], [0.0, 0.0]],
        "noise": 0.1,
        "swing": 0.9,
        "period": 1,
    },
    "covered": {
        "shares": [0.09, 0.07, 0.84],
        "levels": [
            [0.0, 0.41, 0.41, 0.41, 0.43, 0.41],
            [0.07, 0.41, 0.58, 0.41, 0.41, 0.43],
            [0.0, 0.41, 0.41, 0.41, 0.43, 0.41],
        ],
        "noise": 1.0,
        "swing": 0.9,
        "period": 1,
    },
    # The largest over √(K(d+1)T) found with delay: two arms take turns, and a common level flips every 150 rounds.
    "turns": {
        "shares": [0.055, 0.29, 0.12, 0.535],
        "levels": [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]],
        "noise": 0.03,
        "swing": 0.9,
        "period": 150,
    },
    # Nearly as large: constant losses near 1, with many arms slightly worse.
    "near_one": {"shares": [0.1, 0.9], "levels": [[0.84, 0.93, 0.95, 1.0], [0.86, 0.93, 0.99, 1.0]], "noise": 0.0},
    # The largest ratio to the paper's tuning: predictions fail, and the gaps are too small for any player.
    "waves": {
        "shares": [1.0],
        "levels": [[0.75, 0.72, 0.72, 0.8, 0.74, 0.75]],
        "noise": 0.0,
        "swing": 0.9,
        "period": 50,
    },
    # The widest spread over runs: the best arm is bad at first, and some runs return to it too late.
    "late_best": {"shares": [0.2, 0.8], "levels": [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]], "noise": 0.0},
}
"""Arguments of `piecewise` by name."""


def losses(
    horizon: int, *, n_arms: int, max_delay: int, seed: int, shape: str = "hidden", spread: str = "split"
) -> Losses:
    """Return losses with the means of a shape. spread: how a loss is spread over rounds, by the name of an instance.

    >>> losses(100, n_arms=2, max_delay=3, seed=1, shape="turns", spread="fixed").max_delay
    3
    """
    for_table, for_spread = children(seed, 2)
    table = piecewise(horizon, n_arms, for_table, **SHAPES[checks.choice("shape", shape, SHAPES)])
    cell = {"instance": {"name": checks.choice("spread", spread, SPREADS)}, "max_delay": max_delay}
    return spread_out(table, cell, for_spread)


def piecewise(
    horizon: int,
    n_arms: int,
    seed: int,
    *,
    shares: Sequence[float],
    levels: Sequence[Sequence[float]],
    noise: float = 1.0,
    swing: float = 0.0,
    period: int = 1,
) -> Table:
    """Return losses with piecewise constant means, with noise and an alternating level.

    Piece n lasts for the share shares[n] of the horizon; arm i has the mean levels[n][i], further arms the last one.
    noise: the probability that a loss is Bernoulli with its mean; else it is the mean itself. So 1 gives Bernoulli
    losses, 0 constant losses. swing: every `period` rounds the means switch between (1 − swing)μ and
    (1 − swing)μ + swing.

    >>> piecewise(4, 3, 0, shares=[1.0, 3.0], levels=[[0.0, 0.5], [1.0, 0.25]], noise=0.0).values.tolist()
    [[0.0, 0.5, 0.5], [1.0, 0.25, 0.25], [1.0, 0.25, 0.25], [1.0, 0.25, 0.25]]
    """
    weights, rows = np.array(shares), np.array(levels)
    ends = np.cumsum(weights) / weights.sum()
    piece = np.minimum(np.searchsorted(ends * horizon, np.arange(horizon) + 0.5), len(weights) - 1)
    values: FloatArray = rows[piece][:, np.minimum(np.arange(n_arms), rows.shape[1] - 1)]
    if swing > 0.0:
        high = (np.arange(horizon) // period) % 2
        values = (1.0 - swing) * values + swing * high[:, np.newaxis]
    if noise > 0.0:
        random = np.random.default_rng(sequence(seed, TABLE))
        drawn = (random.random(values.shape) < values).astype(np.float64)
        values = drawn if noise == 1.0 else np.where(random.random(values.shape) < noise, drawn, values)
    settings: dict[str, Any] = {"shares": shares, "levels": levels, "noise": noise, "swing": swing, "period": period}
    again = partial(piecewise, horizon, n_arms, **settings)
    return Table(checks.owned(values), recipe=again if noise > 0.0 else None)
