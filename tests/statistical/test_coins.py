"""The coins of Algorithm 1: block lengths against their law (Definition 1), counts of updates, the gap table.

Every test has a fixed seed; each states its false-alarm rate, the chance that it fails on right code.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

import aftereffect as ae
from aftereffect import theory
from aftereffect.core import random
from aftereffect.players.wrapper.coins import GUIDE_BITS, DrawnCoins, bernoulli

FALSE_ALARM = 1e-6


def player(max_delay: int, bias: float) -> ae.CompositeLossWrapper:
    return ae.CompositeLossWrapper(ae.Uniform(2), max_delay=max_delay, coins=bias, seed=0)


def silent(horizon: int) -> ae.Losses:
    return ae.spreads.at_once(np.zeros((horizon, 2)))


def update_rounds(max_delay: int, bias: float, horizon: int, seed: int) -> NDArray[np.int64]:
    """Return the update rounds that a player's coins make, read one by one as the player reads them."""
    coins = DrawnCoins(bias, 2 * max_delay, random.stream(seed, 0, random.COINS))
    return np.array([t for t in range(1, horizon + 1) if coins.read(t)])


def p_value(lengths: NDArray[np.int64], law: NDArray[np.float64]) -> float:
    """Return the chi-square p-value of block lengths against P(L = n), n put together until 20 are expected."""
    n, counts = len(lengths), np.bincount(lengths, minlength=len(law))
    seen, means = [0], [0.0]
    for count, mean in zip(counts.tolist(), (n * law).tolist(), strict=True):
        if means[-1] >= 20.0:
            seen.append(0)
            means.append(0.0)
        seen[-1] += count
        means[-1] += mean
    # All that is longer than the law's table belongs to the last cell.
    means[-1] += n - sum(means)
    statistic = sum((count - mean) ** 2 / mean for count, mean in zip(seen, means, strict=True))
    return float(chi2.sf(statistic, len(seen) - 1))


CASES = [(0, 0.3), (0, 0.9), (1, 1 / 3), (1, 0.05), (2, 0.2), (2, 0.7), (5, 1 / 11), (20, 1 / 41)]


@pytest.mark.parametrize(("d", "beta"), CASES)
def test_block_lengths_follow_their_law(d: int, beta: float) -> None:
    # The first 80% of the blocks that T rounds are due: a number fixed in advance, so that none is cut short.
    T = 200_000
    blocks = int(0.8 * T * theory.update_rate(d, beta))
    ends = update_rounds(d, beta, T, seed=d)
    lengths = np.diff(ends, prepend=0)[:blocks]
    assert len(lengths) == blocks
    law = theory.block_length_law(d, beta, longest=int(lengths.max()))
    assert p_value(lengths, law) >= FALSE_ALARM


@pytest.mark.parametrize(("d", "beta"), CASES)
def test_the_engine_draws_the_same_blocks(d: int, beta: float) -> None:
    sim = ae.simulate(player(d, beta), silent(20_000), runs=1, seed=d, trace=True)
    ends = update_rounds(d, beta, 20_000, seed=d)
    assert sim.updates.tolist() == [len(ends)]
    # A block begins in round 1 and after every update but one in the last round.
    assert sim.traces[0].starts.tolist() == [1, *(ends[ends < 20_000] + 1).tolist()]


def test_the_first_block_has_the_law_of_all() -> None:
    # 6000 players, and the round in which each updates first.
    d, beta = 2, 0.2
    firsts = []
    for run in range(6000):
        coins = DrawnCoins(beta, 2 * d, random.stream(1, run, random.COINS))
        t = 1
        while not coins.read(t):
            t += 1
        firsts.append(t)
    law = theory.block_length_law(d, beta, longest=max(firsts))
    assert p_value(np.array(firsts), law) >= FALSE_ALARM


@pytest.mark.parametrize(("d", "beta"), CASES)
def test_the_number_of_updates_has_its_mean(d: int, beta: float) -> None:
    # 5 standard errors: false-alarm rate 6e-7 per case.
    T, runs = 3001, 2000
    updates = ae.simulate(player(d, beta), silent(T), runs=runs, seed=7).updates
    error = updates.std(ddof=1) / math.sqrt(runs)
    assert abs(updates.mean() - theory.expected_updates(d, T, beta)) <= 5.0 * error
    assert updates.max() <= theory.most_updates(d, T)


@pytest.mark.parametrize("beta", [1.0, 0.9, 0.5, 0.25, 1 / 3, 0.2, 1 / 7, 0.14, 1 / 201])
def test_the_gap_table_in_exact_arithmetic(beta: float) -> None:
    # ⌊(1−β)^g·2⁶⁴⌋; a running product cut to 128 bits may fall short of an integer by one unit of 2⁻⁶⁴.
    table = bernoulli(beta).thresholds.tolist()
    power = Fraction(1)
    for g in range(min(len(table), 400)):
        power *= 1 - Fraction(beta)
        exact = math.floor(power * 2**64)
        assert exact - 1 <= table[g] <= exact
    assert table == sorted(table, reverse=True)
    # The last entry leaves at most 2⁻⁸ to be drawn afresh, or the table has its full length.
    assert table[-1] < 2**57 or len(table) == 1 << 16


@pytest.mark.parametrize("beta", [0.5, 0.2, 1 / 41, 1e-4])
def test_the_guide_never_starts_behind_the_answer(beta: float) -> None:
    coins = bernoulli(beta)
    table = [int(x) for x in coins.thresholds]
    assert len(coins.guide) == 1 << GUIDE_BITS
    for lead in range(1 << GUIDE_BITS):
        greatest = ((lead + 1) << (64 - GUIDE_BITS)) - 1
        start = int(coins.guide[lead])
        assert all(greatest < threshold for threshold in table[:start])
        assert start == len(table) or greatest >= table[start]


@pytest.mark.parametrize("beta", [1e-12, 1e-300, 5e-324])
def test_tiny_biases_do_not_hang(beta: float) -> None:
    # A million rounds see a one with probability 1e-6 at most.
    p = player(1, beta)
    for _ in range(1000):
        p.ask()
        assert not p.tell(0.0).update
    sim = ae.simulate(player(1, beta), silent(1_000_000), runs=1, seed=0)
    assert sim.updates.tolist() == [0]


def test_gaps_longer_than_the_table() -> None:
    # β = 1e-4: the table of 55,000 entries ends at 2⁻⁸, so that 1 gap in 256 goes on in a second draw. Gaps are
    # geometric: the mean is 1/β with standard error 1/(β√n), tail probabilities are binomial; 5 errors each.
    beta, n = 1e-4, 10_000
    coins = bernoulli(beta)
    size = len(coins.thresholds)
    assert size < 1 << 16
    sim = ae.simulate(player(0, beta), silent(int(1.2 * n / beta / 40)), runs=40, seed=3, trace=True)
    gaps = np.concatenate([np.diff(trace.starts, prepend=1)[1 : n // 40 + 1] for trace in sim.traces])
    assert len(gaps) == n
    assert abs(gaps.mean() - 1 / beta) <= 5.0 / (beta * math.sqrt(n))
    tail = (1 - beta) ** size
    beyond = int((gaps > size).sum())
    assert abs(beyond - n * tail) <= 5.0 * math.sqrt(n * tail)


@pytest.mark.parametrize(("d", "always"), [(0, True), (1, False), (4, False)])
def test_coins_that_are_always_one(d: int, always: bool) -> None:
    p = player(d, 1.0)
    for _ in range(200):
        p.ask()
        assert p.tell(0.0).update is always
    sim = ae.simulate(player(d, 1.0), silent(5000), runs=3, seed=0)
    assert sim.updates.tolist() == [5000 * always] * 3


def test_coins_and_arms_have_streams_of_their_own() -> None:
    # Another base, other totals: the blocks of a seed are the same.
    first, second = (
        player(2, 0.2),
        ae.CompositeLossWrapper(ae.Exp3(5, learning_rate=1.0), max_delay=2, coins=0.2, seed=0),
    )
    for _ in range(500):
        first.ask()
        second.ask()
        assert first.tell(0.1).update == second.tell(0.9).update
