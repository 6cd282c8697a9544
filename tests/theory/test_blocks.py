"""Blocks: the update rate and the law of block lengths, against all coin sequences and simulated coins."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.refusals import refuses

from aftereffect import theory

BETAS = (Fraction(1, 5), Fraction(1, 2), Fraction(5, 7), Fraction(1))


def is_update(coins: tuple[int, ...], t: int, d: int) -> bool:
    """Definition 1, literally; t counts from 1."""
    return t >= 2 * d + 1 and coins[t - 1] == 1 and not any(coins[t - 1 - s] for s in range(1, 2 * d + 1))


def weight(coins: tuple[int, ...], beta: Fraction) -> Fraction:
    ones = sum(coins)
    return beta**ones * (1 - beta) ** (len(coins) - ones)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize(("d", "rounds"), [(0, 6), (1, 10), (2, 12)])
def test_enumeration_of_all_coins(d: int, rounds: int, beta: Fraction) -> None:
    first = [Fraction(0)] * (rounds + 1)
    updates = [Fraction(0)] * (rounds + 1)
    for coins in itertools.product((0, 1), repeat=rounds):
        mass = weight(coins, beta)
        hits = [t for t in range(1, rounds + 1) if is_update(coins, t, d)]
        for t in hits:
            updates[t] += mass
        if hits:
            first[hits[0]] += mass
    law = theory.block_length_law(d, float(beta), rounds)
    np.testing.assert_allclose(law, [float(x) for x in first], rtol=1e-13, atol=0)
    for t in range(1, rounds + 1):
        expected = theory.update_rate(d, float(beta)) if t >= 2 * d + 1 else 0.0
        assert math.isclose(float(updates[t]), expected, rel_tol=1e-14)
        mean = theory.expected_updates(d, t, float(beta))
        assert math.isclose(mean, float(sum(updates[: t + 1])), rel_tol=1e-13)


@pytest.mark.parametrize(("d", "beta"), [(1, 0.4), (2, 0.2)])
def test_blocks_after_the_first_have_the_same_law(d: int, beta: float) -> None:
    """χ² of all block lengths in simulated coins against the law; false-alarm rate 1e-4 per case."""
    coins = np.random.default_rng(20220823).random(400_000) < beta
    stretches = np.lib.stride_tricks.sliding_window_view(coins, 2 * d + 1)
    lengths = np.diff(np.flatnonzero(stretches[:, -1] & ~stretches[:, :-1].any(axis=1)))
    longest = 8 * (2 * d + 1)
    law = theory.block_length_law(d, beta, longest)
    observed = np.bincount(np.minimum(lengths, longest + 1), minlength=longest + 2)[2 * d + 1 :]
    expected = np.append(law, 1.0 - law.sum())[2 * d + 1 :] * len(lengths)
    assert expected.min() > 5
    assert observed.sum() == len(lengths)
    statistic = float(((observed - expected) ** 2 / expected).sum())
    freedom = len(expected) - 1
    # Wilson and Hilferty: the cube root of χ²/k is nearly normal; 3.719 is the normal quantile of 1 - 1e-4.
    limit = freedom * (1 - 2 / (9 * freedom) + 3.719 * math.sqrt(2 / (9 * freedom))) ** 3
    assert statistic < limit


@pytest.mark.parametrize("d", [0, 1, 4, 20])
def test_law_sums_to_one_and_has_mean_one_over_p(d: int) -> None:
    for beta in (0.5 / (2 * d + 1), theory.best_update_probability(d), min(1.0, 1.5 / (2 * d + 1))):
        law = theory.block_length_law(d, beta, 300 * (2 * d + 1))
        assert math.isclose(law.sum(), 1.0, rel_tol=1e-11)
        mean = float(law @ np.arange(len(law)))
        assert math.isclose(mean, theory.mean_block_length(d, beta), rel_tol=1e-9)


@pytest.mark.parametrize("d", [0, 1, 2, 7, 100])
def test_best_update_probability_maximises_the_rate(d: int) -> None:
    best = theory.update_rate(d, theory.best_update_probability(d))
    grid = np.linspace(0.0, 1.0, 2001)[1:]
    assert all(theory.update_rate(d, float(beta)) <= best * (1 + 1e-12) for beta in grid)


def test_hand_worked_values() -> None:
    # d = 3, β = 1/7: (1/7)(6/7)^6 = 6^6/7^7 = 46656/823543.
    assert math.isclose(theory.update_rate(3, 1 / 7), 46656 / 823543, rel_tol=1e-14)
    # d = 1, β = 1/3: 4/27, so blocks of 27/4 rounds; 10 rounds hold 8 · 4/27 updates.
    assert math.isclose(theory.mean_block_length(1, 1 / 3), 6.75, rel_tol=1e-14)
    assert math.isclose(theory.expected_updates(1, 10, 1 / 3), 32 / 27, rel_tol=1e-14)
    assert math.isclose(theory.mean_block_length(10**4, 1 / 20001) / 20001, math.e, rel_tol=1e-4)


def test_coins_that_are_always_one() -> None:
    assert theory.update_rate(0, 1.0) == 1.0
    assert theory.update_rate(2, 1.0) == 0.0
    assert theory.mean_block_length(2, 1.0) == math.inf
    assert theory.block_length_law(0, 1.0, 3).tolist() == [0.0, 1.0, 0.0, 0.0]
    assert theory.block_length_law(1, 1.0, 9).tolist() == [0.0] * 10


def test_short_horizons_hold_no_update() -> None:
    assert theory.expected_updates(3, 6, 0.1) == 0.0
    assert theory.expected_updates(3, 7, 0.1) == theory.update_rate(3, 0.1)
    assert theory.block_length_law(3, 0.1, 0).tolist() == [0.0]


def test_the_law_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        theory.block_length_law(1, 0.5, 4)[0] = 1.0


test_bad_input = refuses([
    (lambda: theory.update_rate(-1, 0.5), r"^max_delay must be at least 0, but got -1$"),
    (lambda: theory.update_rate(1, 0), r"^update_probability must be greater than 0, but got 0.0$"),
    (lambda: theory.mean_block_length(1, 1.5), r"^update_probability must be at most 1, but got 1.5$"),
    (lambda: theory.best_update_probability(1.0), r"^max_delay must be an int, but got 1.0$"),
    (lambda: theory.block_length_law(1, 0.5, -2), r"^longest must be at least 0, but got -2$"),
    (lambda: theory.expected_updates(1, 0, 0.5), r"^horizon must be at least 1, but got 0$"),
    (lambda: theory.most_updates(1, 0), r"^horizon must be at least 1, but got 0$"),
])
