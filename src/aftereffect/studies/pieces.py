"""Losses in pieces: means that stay for a while and then jump, under a level that may flip and noise of any size.

Few numbers say a lot of what an oblivious adversary can do: which arm looks good first, when the best one shows itself,
how sudden, how noisy. The search for what hurts a player (docs/theory/worst_instance.md) goes through such instances.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from aftereffect.core import checks
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.losses.seeds import TABLE, generator
from aftereffect.losses.tables import Table

SHAPES: dict[str, dict[str, Any]] = {
    # The greatest regrets over √(KT) that were found without delay: arms hide in a level that flips every round.
    "hidden": {
        "shares": [0.24, 0.13, 0.16, 0.42, 0.05],
        "levels": [[0.57, 0.61], [0.02, 0.13], [0.67, 0.77], [0.07, 1.0], [0.0, 0.0]],
        **{"noise": 0.1, "swing": 0.9, "period": 1},
    },
    "covered": {
        "shares": [0.09, 0.07, 0.84],
        "levels": [
            [0.0, 0.41, 0.41, 0.41, 0.43, 0.41],
            [0.07, 0.41, 0.58, 0.41, 0.41, 0.43],
            [0.0, 0.41, 0.41, 0.41, 0.43, 0.41],
        ],
        **{"noise": 1.0, "swing": 0.9, "period": 1},
    },
    # The greatest over √(K(d+1)T) with delay: two arms take turns under a level that flips now and then.
    "turns": {
        "shares": [0.055, 0.29, 0.12, 0.535],
        "levels": [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]],
        **{"noise": 0.03, "swing": 0.9, "period": 150},
    },
    # Nearly as great: constant losses near 1, many arms worse by a little.
    "near_one": {
        "shares": [0.1, 0.9],
        "levels": [[0.84, 0.93, 0.95, 1.0], [0.86, 0.93, 0.99, 1.0]],
        "noise": 0.0,
    },
    # The greatest ratio to the paper's tuning: no prediction holds, and the gaps are too small for anyone.
    "waves": {
        "shares": [1.0],
        "levels": [[0.75, 0.72, 0.72, 0.8, 0.74, 0.75]],
        **{"noise": 0.0, "swing": 0.9, "period": 50},
    },
    # The widest spread over runs: the best arm is the worst one first, and a run may be slow to forget it.
    "late_best": {
        "shares": [0.2, 0.8],
        "levels": [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]],
        "noise": 0.0,
    },
}
"""What the search found (docs/theory/worst_instance.md), by name, rounded."""


def shaped(horizon: int, n_arms: int, seed: int, *, shape: str = "hidden") -> Table:
    """Return the losses of one of SHAPES."""
    return pieces(horizon, n_arms, seed, **SHAPES[shape])


def pieces(
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
    """Let piece n last the share shares[n] of the horizon, with mean levels[n][i] of arm i, the last for further arms.

    noise: with this chance a loss is drawn as 0 or 1 with its mean, else it is the mean: 1 for Bernoulli losses, 0 for
    constant ones. swing: every `period` rounds all means μ change between (1 − swing)μ and (1 − swing)μ + swing.

    >>> pieces(4, 3, 0, shares=[1.0, 3.0], levels=[[0.0, 0.5], [1.0, 0.25]], noise=0.0).values.tolist()
    [[0.0, 0.5, 0.5], [1.0, 0.25, 0.25], [1.0, 0.25, 0.25], [1.0, 0.25, 0.25]]
    """
    mu = means(horizon, n_arms, shares, levels, swing, period)
    noise = checks.real("noise", noise, low=0.0, high=1.0)
    random = generator(seed, TABLE)
    values = mu
    if noise > 0.0:
        drawn = (random.random(mu.shape) < mu).astype(np.float64)
        values = drawn if noise == 1.0 else np.where(random.random(mu.shape) < noise, drawn, mu)
    again = partial(
        pieces, horizon, n_arms, shares=shares, levels=levels, noise=noise, swing=swing, period=period
    )
    return Table(checks.owned(values), recipe=again if noise > 0.0 else None)


def means(
    horizon: int,
    n_arms: int,
    shares: Sequence[float],
    levels: Sequence[Sequence[float]],
    swing: float,
    period: int,
) -> FloatArray:
    """Return every round's means, shape (T, K)."""
    horizon = checks.integer("horizon", horizon, low=1)
    n_arms = checks.integer("n_arms", n_arms, low=2)
    weights = checks.array("shares", shares, shape=("n",))
    rows = checks.array("levels", levels, shape=(len(weights), "arms"))
    swing = checks.real("swing", swing, low=0.0, high=1.0)
    period = checks.integer("period", period, low=1)
    if not len(weights) or (weights < 0.0).any() or not weights.sum() > 0.0:
        raise InvalidArgument(f"shares must not be negative and not all 0, but got {checks.shown(shares)}")
    if not rows.shape[1] or (rows < 0.0).any() or (rows > 1.0).any():
        raise InvalidArgument(f"levels must lie in [0, 1], for one arm at least, but got {checks.shown(levels)}")
    ends = np.cumsum(weights) / weights.sum()
    piece = np.minimum(np.searchsorted(ends * horizon, np.arange(horizon) + 0.5), len(weights) - 1)
    arm = np.minimum(np.arange(n_arms), rows.shape[1] - 1)
    mu: FloatArray = rows[piece][:, arm]
    if swing > 0.0:
        high = (np.arange(horizon) // period) % 2
        mu = (1.0 - swing) * mu + swing * high[:, np.newaxis]
    return mu
