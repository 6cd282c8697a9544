"""Random streams: one xoshiro256++ generator per run and purpose, seeded by NumPy's SeedSequence.

Stream `(run, purpose)` of a seed is `SeedSequence(seed, spawn_key=(run, purpose))`; its first four 64-bit words
are the generator's state. The interactive player is run 0. The functions that work in place on a uint64 array are
kernels: always run them compiled, because they rely on uint64 overflow, for which NumPy issues a warning.

NumPy takes about 15 µs to seed a stream, longer than a whole short run. `fill_streams`, compiled, computes the same
words for a range of runs; a test compares the two.

References: Blackman and Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 47 (2021); O'Neill,
"Developing a seed_seq alternative" (2015), in the form that NumPy documents as stable.
"""

import numpy as np
from numpy.typing import NDArray

from aftereffect.core.kernel import FloatState, WordState, helper

COINS, ARMS = 0, 1
"""The purposes of a run's two streams."""

_12, _17, _19, _23, _41, _45 = (np.uint64(n) for n in (12, 17, 19, 23, 41, 45))

# SeedSequence: words in its pool, and its hash constants.
POOL = 4
_MASK = np.uint64(0xFFFFFFFF)
_INIT_A, _MULT_A = np.uint64(0x43B0D7E5), np.uint64(0x931E8875)
_INIT_B, _MULT_B = np.uint64(0x8B51F9DD), np.uint64(0x58F38DED)
_LEFT, _RIGHT = np.uint64(0xCA01F9DD), np.uint64(0x4973F715)
_16, _32 = np.uint64(16), np.uint64(32)


def stream(seed: int, run: int, purpose: int) -> NDArray[np.uint64]:
    """Return the generator's state at the start of one stream."""
    words = np.random.SeedSequence(seed, spawn_key=(run, purpose)).generate_state(4, np.uint64)
    return words.astype(np.uint64)


def streams(seed: int, first_run: int, runs: int) -> NDArray[np.uint64]:
    """Return the states of both streams of `runs` consecutive runs, shape (runs, 2, 4)."""
    from aftereffect.core.jit import compiled

    words = np.empty((runs, 2, 4), dtype=np.uint64)
    base, pool = np.empty((2, POOL + 1), dtype=np.uint64)
    # The seed as SeedSequence reads it: 32-bit words, least first, at least POOL of them.
    count = max(POOL, -(-seed.bit_length() // 32))
    parts = np.array([seed >> (32 * i) & 0xFFFFFFFF for i in range(count)], dtype=np.uint64)
    compiled(fill_streams)(parts, first_run, base, pool, words)
    return words


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


@helper
def absorb(word: np.uint64, pool: WordState) -> None:
    """Mix one 32-bit word into the pool; pool[POOL] holds the running hash constant."""
    for i in range(POOL):
        pool[i] = blend(pool[i], hashed(word, pool))


@helper
def hashed(word: np.uint64, pool: WordState) -> np.uint64:
    """Return the word hashed with the running hash constant, and advance the constant."""
    constant = pool[POOL]
    following = (constant * _MULT_A) & _MASK
    pool[POOL] = following
    value: np.uint64 = ((word ^ constant) * following) & _MASK
    return value ^ (value >> _16)


@helper
def blend(x: np.uint64, y: np.uint64) -> np.uint64:
    """Return the mix of two words."""
    value = (_LEFT * x - _RIGHT * y) & _MASK
    return value ^ (value >> _16)


def fill_streams(seed: WordState, first_run: int, base: WordState, pool: WordState, words: WordState) -> None:
    """Write the first words of every stream, words[run, purpose, :]; base and pool are scratch, POOL + 1 words each."""
    base[POOL] = _INIT_A
    for i in range(POOL):
        base[i] = hashed(seed[i], base)
    for source in range(POOL):
        for i in range(POOL):
            if i != source:
                base[i] = blend(base[i], hashed(base[source], base))
    for k in range(POOL, len(seed)):
        absorb(seed[k], base)
    for run in range(words.shape[0]):
        for purpose in range(words.shape[1]):
            for i in range(POOL + 1):
                pool[i] = base[i]
            absorb(np.uint64(first_run + run) & _MASK, pool)
            # A run number of more than 32 bits takes two words of the spawn key.
            if np.uint64(first_run + run) >> _32 > np.uint64(0):
                absorb(np.uint64(first_run + run) >> _32, pool)
            absorb(np.uint64(purpose), pool)
            constant = _INIT_B
            for k in range(4):
                low = np.uint64(0)
                for half in range(2):
                    value = pool[(2 * k + half) % POOL] ^ constant
                    constant = (constant * _MULT_B) & _MASK
                    value = (value * constant) & _MASK
                    value ^= value >> _16
                    if half == 0:
                        low = value
                    else:
                        words[run, purpose, k] = low | (value << _32)
