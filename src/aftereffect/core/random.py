"""Random streams: one xoshiro256++ generator per run and purpose, seeded by NumPy's SeedSequence.

Stream `(run, purpose)` of a seed is `SeedSequence(seed, spawn_key=(run, purpose))`; its first four 64-bit words
are the generator's state. The interactive player is run 0. The functions that work in place on a uint64 array are
kernels: always run them compiled, because they rely on uint64 overflow, for which NumPy issues a warning.

NumPy takes about 15 µs to seed a stream, longer than a whole short run. `streams` computes the same words for many
runs at once; a test compares the two.

References: Blackman and Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 47 (2021); O'Neill,
"Developing a seed_seq alternative" (2015), in the form that NumPy documents as stable; Steele, Lea and Flood, "Fast
splittable pseudorandom number generators", OOPSLA 2014 (`hashed_uniform`).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import checks
from aftereffect.core.kernel import FloatState, WordState, helper
from aftereffect.core.real import normal_quantile

Drawn = TypeVar("Drawn")

COINS, ARMS = 0, 1
"""The purposes of a run's two streams."""
TABLE, DELAYS, SPLIT, HARD, CHILDREN, RECORDS, PILOT = range(7)
"""The purposes of a seed of losses or of a pilot, so that a table and a spread with the same seed are independent."""

_12, _17, _19, _23, _41, _45 = (np.uint64(n) for n in (12, 17, 19, 23, 41, 45))
_27, _30, _31 = (np.uint64(n) for n in (27, 30, 31))
_GOLDEN, _MIX1, _MIX2 = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))

# SeedSequence: the words in its pool, the start and the factor of both its hashes, and the factors that mix two words.
POOL = 4
_A, _B, _MIX = (0x43B0D7E5, 0x931E8875), (0x8B51F9DD, 0x58F38DED), (0xCA01F9DD, 0x4973F715)


def sequence(seed: int, purpose: int) -> np.random.SeedSequence:
    """Return the SeedSequence of losses for one purpose; its spawn key has three parts, that of a run two.

    >>> bool(sequence(7, TABLE).generate_state(1) == sequence(7, DELAYS).generate_state(1))
    False
    """
    return np.random.SeedSequence(checks.integer("seed", seed, low=0), spawn_key=(purpose, 0, 0))


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


def stream(seed: int, run: int, purpose: int) -> NDArray[np.uint64]:
    """Return the generator's state at the start of one stream."""
    return np.random.SeedSequence(seed, spawn_key=(run, purpose)).generate_state(4, np.uint64).astype(np.uint64)


def streams(seed: int, first_run: int, runs: int) -> NDArray[np.uint64]:
    """Return the states of both streams of `runs` consecutive runs, shape (runs, 2, 4)."""
    if runs == 1 or first_run + runs > 1 << 32:
        each = range(first_run, first_run + runs)
        return np.array([[stream(seed, run, purpose) for purpose in (COINS, ARMS)] for run in each])
    # The pool once it holds the seed, read as 32-bit words; each word has been hashed into all of the pool.
    mixer = np.random.SeedSequence(seed)
    pool: list[NDArray[np.uint32]] = [np.full((runs, 2), word, dtype=np.uint32) for word in mixer.pool]
    words = max(POOL, -(-seed.bit_length() // 32))
    constant = _A[0] * pow(_A[1], POOL * words, 1 << 32) % (1 << 32)
    run = np.arange(first_run, first_run + runs, dtype=np.uint32)[:, np.newaxis]
    for key in (run, np.array([COINS, ARMS], dtype=np.uint32)):
        for i in range(POOL):
            before, constant = constant, constant * _A[1] % (1 << 32)
            hashed = (key ^ np.uint32(before)) * np.uint32(constant)
            hashed ^= hashed >> np.uint32(16)
            mixed = pool[i] * np.uint32(_MIX[0]) - hashed * np.uint32(_MIX[1])
            pool[i] = mixed ^ (mixed >> np.uint32(16))
    found = np.empty((runs, 2, 8), dtype=np.uint32)
    constant = _B[0]
    for k in range(8):
        before, constant = constant, constant * _B[1] % (1 << 32)
        value = (pool[k % POOL] ^ np.uint32(before)) * np.uint32(constant)
        found[:, :, k] = value ^ (value >> np.uint32(16))
    return found.view("<u8").astype(np.uint64)


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
def normal(rng: WordState) -> float:
    """Return a standard normal number: the quantile of one uniform number."""
    return normal_quantile(uniform(rng))


@helper
def hashed_uniform(key: np.uint64, count: int) -> float:
    """Return number `count` of this key, uniform in (0, 1): word `count` of the splitmix64 sequence that starts there.

    It can be computed in any order and as often as needed, as the losses of a round and an arm must be. A key is
    `sequence(seed, purpose).generate_state(1, np.uint64)[0]`.
    """
    z = key + np.uint64(count + 1) * _GOLDEN
    z = (z ^ (z >> _30)) * _MIX1
    z = (z ^ (z >> _27)) * _MIX2
    z ^= z >> _31
    return float(z >> _12) * 2.220446049250313e-16 + 1.1102230246251565e-16


@helper
def scan(weights: FloatState, n_arms: int, threshold: float) -> int:
    """Return the arm in whose interval of the cumulative sum of weights `threshold` lies; never an arm of weight 0.

    It counts instead of searching, because a branch that depends on a random number is often mispredicted. The two
    halves are summed separately, so that the additions of one need not wait for those of the other.
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
