"""NumPy's SeedSequence for many runs at once.

`SeedSequence(seed, spawn_key=(run, purpose)).generate_state(4, uint64)` costs some 15 µs a stream in NumPy,
more than a whole short run. The same words are computed here by a kernel, for a range of runs; a test holds
it to NumPy's.

Reference: O'Neill, "Developing a seed_seq alternative" (2015), in the form NumPy documents as stable.
"""

import numpy as np
from numpy.typing import NDArray

from aftereffect.core.kernel import WordState, helper

POOL = 4
_MASK = np.uint64(0xFFFFFFFF)
_INIT_A, _MULT_A = np.uint64(0x43B0D7E5), np.uint64(0x931E8875)
_INIT_B, _MULT_B = np.uint64(0x8B51F9DD), np.uint64(0x58F38DED)
_LEFT, _RIGHT = np.uint64(0xCA01F9DD), np.uint64(0x4973F715)
_16, _32 = np.uint64(16), np.uint64(32)


def seed_words(seed: int) -> NDArray[np.uint64]:
    """Return a seed as 32-bit words, least first, at least POOL of them, as SeedSequence reads it."""
    words = [seed >> (32 * i) & 0xFFFFFFFF for i in range(max(POOL, -(-seed.bit_length() // 32)))]
    return np.array(words, dtype=np.uint64)


@helper
def absorb(word: np.uint64, pool: WordState) -> None:
    """Mix one 32-bit word into the pool; pool[POOL] holds the running hash constant."""
    for i in range(POOL):
        pool[i] = blend(pool[i], hashed(word, pool))


@helper
def hashed(word: np.uint64, pool: WordState) -> np.uint64:
    """Return the word scrambled with the running hash constant, and move that on."""
    constant = pool[POOL]
    following = (constant * _MULT_A) & _MASK
    pool[POOL] = following
    value: np.uint64 = ((word ^ constant) * following) & _MASK
    return value ^ (value >> _16)


@helper
def blend(x: np.uint64, y: np.uint64) -> np.uint64:
    """Return two words mixed into one."""
    value = (_LEFT * x - _RIGHT * y) & _MASK
    return value ^ (value >> _16)


def fill_streams(seed: WordState, first_run: int, base: WordState, pool: WordState, words: WordState) -> None:
    """Write the first words of every stream, words[run, purpose, :]; base, pool: room for POOL + 1 words."""
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
            # A run beyond 32 bits is two words of the spawn key.
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
