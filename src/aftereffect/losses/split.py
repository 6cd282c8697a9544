"""A spread at random: each effect is cut into d+1 parts, uniformly on the simplex, anew for each play.

This is Dirichlet(1, ..., 1): exponential numbers E_s = -ln U_s over their sum. Nothing is stored, since U_s
is hashed from (key, t, i, s) inside the kernel: word (tK + i)(d+1) + s of the splitmix64 sequence that starts at `key`.

Reference: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from aftereffect.core import checks, kernel
from aftereffect.core.checks import FloatArray
from aftereffect.losses.protocol import Losses
from aftereffect.losses.seeds import SPLIT, children, sequence
from aftereffect.losses.tables import Table, as_table

_GOLDEN, _MIX1, _MIX2 = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_12, _27, _30, _31 = (np.uint64(n) for n in (12, 27, 30, 31))

# A product of 16 numbers of at least 2^-53 is far above the least double: one logarithm serves them all.
GROUP = 16


class Split(NamedTuple):
    """values[t, i]: whole effects. key: where the hash starts. max_delay: d."""

    values: FloatArray
    key: np.uint64
    max_delay: int


@kernel.helper
def hashed_uniform(key: np.uint64, count: int) -> float:
    """Return number `count` of the key's uniform numbers, each the midpoint of one of 2^52 cells of (0, 1).

    For compiled code only: NumPy warns about the wrap-around of uint64 that the hash lives on.
    """
    z = key + np.uint64(count + 1) * _GOLDEN
    z = (z ^ (z >> _30)) * _MIX1
    z = (z ^ (z >> _27)) * _MIX2
    z ^= z >> _31
    return float(z >> _12) * 2.220446049250313e-16 + 1.1102230246251565e-16


def spread(params: Any, t: int, arm: int, pending: FloatArray, at: int) -> None:
    """Add values[t, arm] · E_s / (E_0 + ... + E_d)."""
    parts = params.max_delay + 1
    first = (t * params.values.shape[1] + arm) * parts
    whole = 0.0
    for begin in range(0, parts, GROUP):
        product = 1.0
        for s in range(begin, min(begin + GROUP, parts)):
            product *= hashed_uniform(params.key, first + s)
        whole -= math.log(product)
    scale = -params.values[t, arm] / whole
    for s in range(parts):
        pending[at + s] += scale * math.log(hashed_uniform(params.key, first + s))


kernel.register(Split, kernel.LossKernel(spread))


def random_split(
    table: Table | ArrayLike,
    max_delay: int,
    seed: int,
    *,
    direction: str = "minimize",
    low: float | None = None,
    high: float | None = None,
) -> Losses:
    """Cut each effect into d+1 parts, uniformly at random on the simplex.

    >>> parts = random_split([[1.0, 0.5]], max_delay=4, seed=3).components()[0]
    >>> parts.shape, parts.sum(axis=0).round(12)
    ((5, 2), array([1. , 0.5]))
    """
    whole = as_table(table, low, high)
    max_delay = checks.integer("max_delay", max_delay, low=0)
    key = sequence(seed, SPLIT).generate_state(1, np.uint64)[0]
    horizon, n_arms = whole.values.shape
    return Losses(
        Split(whole.values, key, max_delay),
        horizon=horizon,
        max_delay=max_delay,
        n_arms=n_arms,
        direction=direction,
        low=whole.low,
        high=whole.high,
        means=whole.means,
        recipe=partial(_again, whole, max_delay, direction),
    )


def _again(table: Table, max_delay: int, direction: str, seed: int) -> Losses:
    """Redraw the cuts, and the table where it has a recipe."""
    for_table, for_cuts = children(seed, 2)
    fresh = table if table.recipe is None else as_table(table.redraw(for_table), table.low, table.high)
    return random_split(fresh, max_delay, for_cuts, direction=direction)
