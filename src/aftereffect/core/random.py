"""Random streams: one xoshiro256++ generator per run and purpose, seeded by NumPy's SeedSequence.

Stream `(run, stream)` of a seed is `SeedSequence(seed, spawn_key=(run, stream))`; its first four 64-bit words
are the generator's state. The interactive player is run 0. The functions below are kernels (they work in
place on a uint64[4] array): always run compiled, because NumPy warns about the wrap-around of uint64 that the
generator lives on.

Reference: Blackman and Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 47 (2021).
"""

import secrets

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import checks
from aftereffect.core.kernel import FloatState, WordState, helper
from aftereffect.core.seeding import POOL, fill_streams, seed_words

COINS, ARMS = 0, 1
"""What a run's streams are for."""

_12, _17, _19, _23, _41, _45 = (np.uint64(n) for n in (12, 17, 19, 23, 41, 45))


def stream(seed: int, run: int, purpose: int) -> NDArray[np.uint64]:
    """Return the generator's state at the start of one stream."""
    words = np.random.SeedSequence(seed, spawn_key=(run, purpose)).generate_state(4, np.uint64)
    return words.astype(np.uint64)


def streams(seed: int, first_run: int, runs: int) -> NDArray[np.uint64]:
    """Return the states of both streams of `runs` consecutive runs, shape (runs, 2, 4)."""
    from aftereffect.core.jit import compiled

    words = np.empty((runs, 2, 4), dtype=np.uint64)
    base, pool = np.empty((2, POOL + 1), dtype=np.uint64)
    compiled(fill_streams)(seed_words(seed), first_run, base, pool, words)
    return words


def checked_seed(name: str, seed: object) -> int:
    """Return a seed; None draws one from the operating system, so that it can be read off and used again."""
    return secrets.randbits(64) if seed is None else checks.integer(name, seed, low=0)


@helper
def next_word(rng: WordState) -> np.uint64:
    """Return 64 random bits and step the generator."""
    a, b, c, d = rng[0], rng[1], rng[2], rng[3]
    s = a + d
    word: np.uint64 = ((s << _23) | (s >> _41)) + a
    t = b << _17
    c ^= a
    d ^= b
    rng[1] = b ^ c
    rng[0] = a ^ d
    rng[2] = c ^ t
    rng[3] = (d << _45) | (d >> _19)
    return word


@helper
def uniform(rng: WordState) -> float:
    """Return a uniform number in the open interval (0, 1): the midpoint of one of 2^52 equal cells."""
    return float(next_word(rng) >> _12) * 2.220446049250313e-16 + 1.1102230246251565e-16


@helper
def scan(weights: FloatState, n_arms: int, threshold: float) -> int:
    """Return the arm whose stretch of the running sum of weights holds `threshold`; never one of weight 0.

    Counts instead of searching: a branch that depends on a random number is mispredicted, an addition is not. The two
    halves are added up side by side: each addition waits for the one before.
    """
    half = n_arms // 2
    early = 0
    late = 0
    running = 0.0
    for i in range(half):
        running += weights[i]
        early += running <= threshold
    rest = threshold - running
    running = 0.0
    for i in range(half, n_arms - 1):
        running += weights[i]
        late += running <= rest
    arm = early + late if early == half else early
    while weights[arm] <= 0.0 and arm > 0:
        arm -= 1
    return arm
