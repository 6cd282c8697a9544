"""Random streams: NumPy's seeding, the published generator, uniform numbers, and draws from weights."""

import numpy as np
import pytest

import aftereffect as ae
from aftereffect.core import random
from aftereffect.core.jit import compiled

MASK = (1 << 64) - 1


def reference_words(state: list[int], count: int) -> list[int]:
    """xoshiro256++ in unbounded Python integers, written from the paper's description."""

    def rotl(x: int, k: int) -> int:
        return ((x << k) | (x >> (64 - k))) & MASK

    s, words = list(state), []
    for _ in range(count):
        words.append((rotl((s[0] + s[3]) & MASK, 23) + s[0]) & MASK)
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)
    return words


def next_word(rng):
    return random.next_word(rng)


def uniform(rng):
    return random.uniform(rng)


def scan(weights, n_arms, threshold):
    return random.scan(weights, n_arms, threshold)


@pytest.mark.parametrize("seed", [0, 1, 7, 2**32 - 1, 2**32, 2**64 + 5, 2**128 + 3, 2**200 + 11])
@pytest.mark.parametrize("first", [0, 1, 2**32 - 2, 2**40])
def test_streams_are_numpys_seed_sequences(seed, first):
    found = random.streams(seed, first, 4)
    for run in range(4):
        for purpose in (random.COINS, random.ARMS):
            wanted = np.random.SeedSequence(seed, spawn_key=(first + run, purpose)).generate_state(4, np.uint64)
            np.testing.assert_array_equal(found[run, purpose], wanted)
            np.testing.assert_array_equal(random.stream(seed, first + run, purpose), wanted)


def test_words_are_xoshiro256_plus_plus():
    # From state (1, 2, 3, 4): s0 + s3 = 5, rotated by 23 is 5·2²³, plus s0.
    assert int(compiled(next_word)(np.array([1, 2, 3, 4], dtype=np.uint64))) == 5 * 2**23 + 1
    state = random.stream(11, 3, random.ARMS)
    wanted = reference_words([int(word) for word in state], 1000)
    assert [int(compiled(next_word)(state)) for _ in range(1000)] == wanted


def test_uniform_numbers_are_midpoints_in_the_open_interval():
    state = random.stream(5, 0, random.ARMS)
    words = reference_words([int(word) for word in state], 1000)
    draws = [compiled(uniform)(state) for _ in range(1000)]
    assert draws == [((word >> 12) + 0.5) / 2**52 for word in words]
    assert min(draws) > 0.0
    assert max(draws) < 1.0


def test_scan_follows_the_running_sum_and_never_picks_weight_zero():
    weights = np.array([0.25, 0.0, 0.5, 0.25, 0.0])
    cases = [(0.0, 0), (0.2499, 0), (0.25, 2), (0.7499, 2), (0.75, 3), (0.999, 3), (1.0, 3), (2.0, 3)]
    for threshold, arm in cases:
        assert compiled(scan)(weights, 5, threshold) == arm


def test_a_seed_from_the_system_is_a_number_to_use_again():
    first, second = (ae.rivals.ARSExp3(n_arms=2) for _ in range(2))
    assert isinstance(first.seed, int)
    assert first.seed != second.seed
