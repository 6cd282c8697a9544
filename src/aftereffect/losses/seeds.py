"""Random streams by seed and purpose, so that a table and a spread with the same seed are independent."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from aftereffect.core import checks

Drawn = TypeVar("Drawn")

TABLE, DELAYS, SPLIT, HARD, CHILDREN, RECORDS = range(6)
"""The purposes of a seed. Their spawn keys have three parts; those of players' runs (`core/random.py`) have two."""


def sequence(seed: int, purpose: int) -> np.random.SeedSequence:
    """Return the SeedSequence of a checked seed for one purpose."""
    return np.random.SeedSequence(checks.integer("seed", seed, low=0), spawn_key=(purpose, 0, 0))


def generator(seed: int, purpose: int) -> np.random.Generator:
    """Return the generator of a seed for one purpose.

    >>> float(generator(7, TABLE).random()) == float(generator(7, DELAYS).random())
    False
    """
    return np.random.default_rng(sequence(seed, purpose))


def children(seed: int, count: int) -> list[int]:
    """Return `count` independent seeds of 128 bits, derived from one seed.

    >>> len(set(children(0, 3) + children(1, 3)))
    6
    """
    spawned = sequence(seed, CHILDREN).spawn(count)
    words = (child.generate_state(2, np.uint64) for child in spawned)
    return [(int(high) << 64) | int(low) for high, low in words]


def recipe(build: Callable[..., Drawn], *arguments: Any, **settings: Any) -> Callable[[int], Drawn]:
    """Return a function of a seed that calls `build` with these arguments and the seed; unlike a lambda, it pickles."""
    return partial(_with_seed, build, arguments, settings)


def _with_seed(build: Callable[..., Drawn], arguments: tuple[Any, ...], settings: dict[str, Any], seed: int) -> Drawn:
    return build(*arguments, seed=seed, **settings)
