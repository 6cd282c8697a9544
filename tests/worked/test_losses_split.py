"""Random numbers in losses: the hash and the simplex points of `random_split`, the distributions of delays."""

import math

import numpy as np
import pytest
from scipy import stats

from aftereffect.core.jit import compiled
from aftereffect.core.random import ARMS, COINS, children, hashed_uniform, sequence, stream
from aftereffect.losses.delay_laws import draw_delays
from aftereffect.losses.spreads import random_split

T, K = 23, 3
VALUES = np.random.default_rng(0).random((T, K))
# |Z| > 5 has probability 6e-7; fewer than 60 comparisons: a false alarm rate below 4e-5.
Z = 5.0


def test_the_hash_is_splitmix64():
    # The first words of the sequence that starts at 1234567, as published with the reference implementation.
    words = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    numbers = [uniform_number(np.uint64(1234567), count) for count in range(4)]
    assert numbers == [((word >> 12) + 0.5) * 2.0**-52 for word in words]


def uniform_number(key: np.uint64, count: int) -> float:
    return float(compiled(hashed_uniform)(key, count))


def splitmix64(key: int, count: int) -> int:
    mask = (1 << 64) - 1
    z = (key + (count + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


@pytest.mark.parametrize("max_delay", [0, 4, 15, 16, 40])
def test_random_split_normalises_exponential_numbers(max_delay):
    losses = random_split(VALUES, max_delay=max_delay, seed=5)
    parts = max_delay + 1
    key = int(losses.params.key)
    dense = np.empty((T, parts, K))
    for t in range(T):
        for i in range(K):
            hashes = [splitmix64(key, (t * K + i) * parts + s) for s in range(parts)]
            exponential = [-math.log(((z >> 12) + 0.5) * 2.0**-52) for z in hashes]
            dense[t, :, i] = VALUES[t, i] * np.array(exponential) / math.fsum(exponential)
    np.testing.assert_allclose(losses.components(), dense, rtol=1e-12)
    np.testing.assert_allclose(losses.components().sum(axis=1), VALUES, rtol=1e-13)


def test_random_split_is_uniform_on_the_simplex():
    n, d = 20_000, 4
    parts = random_split(np.ones((n, 2)), max_delay=d, seed=9).components()
    # A coordinate of Dirichlet(1, ..., 1) is Beta(1, d): mean 1/(d+1), variance d/((d+1)²(d+2)).
    deviation = np.abs(parts.mean(axis=0) - 1.0 / (d + 1))
    assert (deviation <= Z * math.sqrt(d / ((d + 1) ** 2 * (d + 2)) / n)).all()
    # Six tests at level 1e-6; pairs of coordinates sum to Beta(2, d-1).
    for s in range(d + 1):
        assert stats.kstest(parts[:, s, 0], stats.beta(1, d).cdf).pvalue > 1e-6
    assert stats.kstest(parts[:, 0, 1] + parts[:, 3, 1], stats.beta(2, d - 1).cdf).pvalue > 1e-6
    # Independent from round to round and from arm to arm: correlations have a standard error of 1/√n.
    assert abs(np.corrcoef(parts[1:, 0, 0], parts[:-1, 0, 0])[0, 1]) <= Z / math.sqrt(n)
    assert abs(np.corrcoef(parts[:, 0, 0], parts[:, 0, 1])[0, 1]) <= Z / math.sqrt(n)


def test_a_seed_serves_each_purpose_with_other_numbers():
    words = [tuple(sequence(3, purpose).generate_state(4, np.uint64)) for purpose in range(5)]
    words += [tuple(stream(3, run, purpose)) for run in range(5) for purpose in (COINS, ARMS)]
    assert len(set(words)) == 15
    assert len({*children(3, 2), *children(4, 2), 3, 4}) == 6


# the law, then mean and variance after rounding but before truncation at d, to 1e-3 for the continuous laws
MOMENTS = [
    (("fixed", 7), 7.0, 0.0),
    (("uniform", 3, 9), 6.0, 4.0),
    ("uniform", 200.0, (401**2 - 1) / 12),
    (("exponential", 20.0), 1 / (2 * math.sinh(1 / 40)), 400.0 + 1 / 12),
    (("poisson", 20.0), 20.0, 20.0),
    (("half_normal", 50.0, 25.0), 50.0, 25.0 * (1 - 2 / math.pi) + 1 / 12),
    (("positive_normal", 50.0, 25.0), 50.0, 25.0 + 1 / 12),
]


@pytest.mark.parametrize(("law", "mean", "variance"), MOMENTS)
def test_laws_of_delays_have_their_moments(law, mean, variance):
    n = 100_000
    drawn = draw_delays(law, 400, (n, 1), np.random.default_rng(2)).astype(float)
    assert drawn.min() >= 0
    assert abs(drawn.mean() - mean) <= Z * math.sqrt(variance / n) + 1e-3 * (variance > 0)
    kurtosis = 9.0
    assert abs(drawn.var() - variance) <= Z * variance * math.sqrt((kurtosis - 1) / n) + 1e-2 * (variance > 0)


def test_a_cut_delay_arrives_on_the_last_round_there_is():
    n, mean, d = 100_000, 50.0, 75
    drawn = draw_delays(("exponential", mean), d, (n, 1), np.random.default_rng(2))
    share = math.exp(-(d - 0.5) / mean)
    assert drawn.max() == d
    assert abs((drawn == d).mean() - share) <= Z * math.sqrt(share * (1 - share) / n)
