"""Seeds: one per purpose, so that a table and a spread with the same seed share no randomness."""

import numpy as np

from aftereffect.core import checks

TABLE, DELAYS, SPLIT, HARD, CHILDREN = range(5)
"""What a seed is used for. Runs of players use keys of two parts (`core/random.py`), these have three."""


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
    """Return `count` independent seeds made from one, each of 128 bits.

    >>> len(set(children(0, 3) + children(1, 3)))
    6
    """
    spawned = sequence(seed, CHILDREN).spawn(count)
    words = (child.generate_state(2, np.uint64) for child in spawned)
    return [(int(high) << 64) | int(low) for high, low in words]
