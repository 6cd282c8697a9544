"""Losses given component by component: ℓ_t^(s)(i) of Section 2 is `components[t, s, i]`."""

import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from aftereffect.core import checks, kernel
from aftereffect.core.checks import FloatArray
from aftereffect.core.effects import effects
from aftereffect.core.errors import InvalidLosses
from aftereffect.losses.protocol import Losses, check_parts


class Dense(NamedTuple):
    """values[t, i, s] = ℓ_t^(s)(i): the delay is the last axis, so that one play's components are contiguous.

    They may be of single precision; sums are of double precision.
    """

    values: FloatArray


def spread(params: Any, t: int, arm: int, pending: FloatArray, at: int) -> None:
    """Add the stored components."""
    for s in range(params.values.shape[2]):
        pending[at + s] += params.values[t, arm, s]


kernel.register(Dense, kernel.LossKernel(spread))


class CompositeLosses(Losses):
    """Losses from an array of shape (T, d+1, K).

    With the default range [0, 1] this is the paper's assumption: components[t, s, i] >= 0, and the sum of
    components[t, :, i], which is ℓ_t(i), is at most 1. In general every contiguous part of components[t, :, i] must
    sum to a number in [min(low, 0), max(high, 0)] (`core/effects.py`).

    >>> components = np.zeros((3, 2, 2))
    >>> components[:, 0, 0] = 0.5               # arm 0 costs 1/2 at once
    >>> components[:, 1, 1] = 0.25              # arm 1 costs 1/4 one round later
    >>> losses = CompositeLosses(components)
    >>> losses.totals([0, 1, 0])
    array([0.5 , 0.  , 0.75])
    >>> losses.best_arm(), losses.regret([0, 1, 0])
    (1, 0.75)
    """

    def __init__(
        self, components: ArrayLike, *, direction: str = "minimize", low: float = 0.0, high: float = 1.0
    ) -> None:
        numbers = checks.array("components", components, shape=("T", "d+1", "K"), error=InvalidLosses, single=True)
        horizon, delays, n_arms = numbers.shape
        if horizon < 1 or delays < 1 or n_arms < 2:
            raise InvalidLosses(
                f"components must have shape (T, d+1, K) with T >= 1, d >= 0 and K >= 2, but got shape {numbers.shape}"
            )
        check_parts(numbers, effects(direction, low, high))
        super().__init__(
            Dense(checks.owned(numbers.transpose(0, 2, 1))),
            horizon=horizon,
            max_delay=delays - 1,
            n_arms=n_arms,
            direction=direction,
            low=low,
            high=high,
        )
        self.checked = True


def stored(losses: Losses) -> Losses:
    """Return the same losses with all components stored, T (d+1) K numbers: a play is looked up, not computed.

    They play bit for bit alike.

    >>> from aftereffect.losses.spreads import random_split
    >>> losses = random_split([[1.0, 0.5], [0.25, 0.0]], max_delay=4, seed=3)
    >>> bool((stored(losses).totals([1, 0]) == losses.totals([1, 0])).all())
    True
    """
    twin = copy.copy(losses)
    twin.params = Dense(checks.owned(losses.plays(np.arange(losses.horizon))))
    return twin
