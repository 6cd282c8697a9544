"""The two flaws of the 2018 proof (Appendix E), by enumeration of the coins; and the player's update rate.

Rounds count from 0. The toy bases say what n updates make of the distribution, whatever they are fed.
"""

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest

from aftereffect.bandits.exp3 import Exp3
from aftereffect.engines.simulation import simulate
from aftereffect.losses.spreads import at_once
from aftereffect.players.rivals.wrappers import CLW2018
from aftereffect.players.wrapper.coins import update_rounds

Updates = Callable[[tuple[int, ...]], list[int]]


def updates_2018(coins: tuple[int, ...], d_c: int) -> list[int]:
    """A one, and no update in the 2 d_c - 1 rounds before."""
    found: list[int] = []
    for t, coin in enumerate(coins):
        if coin and (not found or t - found[-1] >= 2 * d_c):
            found.append(t)
    return found


def updates_2022(coins: tuple[int, ...], d: int) -> list[int]:
    """Definition 1."""
    return [t - 1 for t in update_rounds([bool(coin) for coin in coins], d)]


def sequences(rounds: int, bias: Fraction) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Every sequence of coins with its probability."""
    for coins in itertools.product((0, 1), repeat=rounds):
        ones = sum(coins)
        yield coins, bias**ones * (1 - bias) ** (rounds - ones)


def chance_of_arm_1(updates: list[int], t: int) -> Fraction:
    """A base that halves the probability of arm 1 in each update, from 1/2 on: P(I_t = 1 | coins)."""
    return Fraction(1, 2) ** (1 + sum(u < t for u in updates))


def update_given_arm(rule: Updates, bias: Fraction, t: int, back: int) -> tuple[Fraction, Fraction]:
    """P(t is an update round | I_{t-back} = i) for both arms."""
    both, alone = [Fraction(0), Fraction(0)], [Fraction(0), Fraction(0)]
    for coins, chance in sequences(t + 1, bias):
        found = rule(coins)
        one = chance_of_arm_1(found, t - back)
        for arm, share in enumerate((1 - one, one)):
            alone[arm] += chance * share
            both[arm] += chance * share * (t in found)
    return both[0] / alone[0], both[1] / alone[1]


@pytest.mark.parametrize("t", [6, 8, 10])
def test_flaw_1_an_update_depends_on_the_arm_in_2018_and_not_in_2022(t: int) -> None:
    """d = 1. An update at t means one arm since t - 3 in 2018 (d_c = 2), and since t - 2d = t - 2 in 2022."""
    colt = update_given_arm(lambda coins: updates_2018(coins, 2), Fraction(1, 6), t, 3)
    assert abs(colt[0] / colt[1] - 1) > Fraction(1, 100)
    journal = update_given_arm(lambda coins: updates_2022(coins, 1), Fraction(1, 3), t, 2)
    assert journal == (Fraction(4, 27), Fraction(4, 27))  # beta (1 - beta)^2


def update_chances(rounds: int, d_c: int) -> list[Fraction]:
    """P(t is an update round) in 2018: q (1 - sum over the 2 d_c - 1 rounds before, disjoint events)."""
    q = Fraction(1, 2 * (2 * d_c - 1))
    chances: list[Fraction] = []
    for t in range(rounds):
        chances.append(q * (1 - sum(chances[max(0, t - 2 * d_c + 1) : t])))
    return chances


def test_the_recursion_is_the_enumeration() -> None:
    counted = [Fraction(0)] * 10
    for coins, chance in sequences(10, Fraction(1, 6)):
        for t in updates_2018(coins, 2):
            counted[t] += chance
    assert update_chances(10, 2) == counted


@pytest.mark.parametrize("d_c", [2, 4])
def test_flaw_1_the_lower_bound_is_none_where_regret_is_negative(d_c: int) -> None:
    """E sum_U Delta_t >= q (1 - q (2 d_c - 1)) sum E Delta_t holds for Delta = 1 and fails for Delta = -1."""
    horizon, first = 200, 2 * d_c - 2
    q = Fraction(1, 2 * (2 * d_c - 1))
    claimed = q * (1 - q * (2 * d_c - 1)) * (horizon - first)
    found = sum(update_chances(horizon, d_c)[first:], Fraction(0))
    assert found >= claimed  # Delta = 1
    assert not -found >= -claimed  # Delta = -1
    # In the long run 1/3 against 1/4, in units of T/(2 d_c - 1).
    assert float(claimed / (horizon - first)) == pytest.approx(1 / (4 * (2 * d_c - 1)))
    assert float(update_chances(horizon, d_c)[-1]) == pytest.approx(1 / (3 * (2 * d_c - 1)), rel=1e-3)


def test_what_2022_has_in_its_place_is_an_equality() -> None:
    """E sum_U r_t(I_t) = p sum E r_t(I_{t-2d}), for r of both signs: here r_t(0) = -1, r_t(1) = (-1)^t t."""
    d, rounds, beta = 1, 10, Fraction(1, 3)
    fed, played = Fraction(0), Fraction(0)
    for coins, chance in sequences(rounds, beta):
        found = updates_2022(coins, d)
        for t in range(2 * d, rounds):
            one = chance_of_arm_1(found, t - 2 * d)
            regret = chance * (one * (-1) ** t * t - (1 - one))
            played += regret
            fed += regret * (t in found)
    assert fed == beta * (1 - beta) ** (2 * d) * played


def moved(updates: list[int], t: int, d_c: int, xi: Fraction) -> Fraction:
    """The sum over s < d_c and i of (p_{t-s}(i) - p_{t-d_c+1}(i))^+; this base moves xi back and forth."""
    p = [Fraction(1, 2) + xi * (sum(u < t - s for u in updates) % 2) for s in range(d_c)]
    return sum((abs(p[s] - p[d_c - 1]) for s in range(d_c)), Fraction(0))


def test_flaw_2_an_update_is_summed_d_times() -> None:
    """d = 3: given an update in round t - d_c + 1 the term is 3 xi, not the xi that is claimed."""
    d_c, t, xi = 4, 12, Fraction(1, 10)
    weight, given, whole = Fraction(0), Fraction(0), Fraction(0)
    for coins, chance in sequences(t + 1, Fraction(1, 14)):
        found = updates_2018(coins, d_c)
        term = moved(found, t, d_c, xi)
        whole += chance * term
        if t - d_c + 1 in found:
            weight += chance
            given += chance * term
    assert given / weight == 3 * xi
    chances = update_chances(t + 1, d_c)
    assert whole == xi * sum(chances[u] * (t - u) for u in range(t - d_c + 1, t))


@pytest.mark.parametrize(("d", "fails"), [(3, False), (11, False), (12, True), (60, True)])
def test_flaw_2_the_claimed_inequality_fails_on_average_too(d: int, fails: bool) -> None:
    """E of the term tends to xi d(d+1)/(6(2d+1)): Theta(d xi), more than the claimed xi from d = 12 on."""
    d_c, t = d + 1, 16 * (d + 1)
    chances = update_chances(t + 1, d_c)
    in_units_of_xi = sum((chances[u] * (t - u) for u in range(t - d_c + 1, t)), Fraction(0))
    assert (in_units_of_xi > 1) is fails
    assert float(in_units_of_xi) == pytest.approx(d * (d + 1) / (6 * (2 * d + 1)), rel=0.01)


def test_the_player_updates_as_often_as_its_renewal_process_says() -> None:
    """The mean over 400 runs against the exact one; z = 5, fewer than 1e-6 false alarms."""
    d, horizon = 2, 1500
    world = at_once([[0.5, 0.5]] * horizon, max_delay=d)
    sim = simulate(CLW2018(Exp3(2, learning_rate=0.1), max_delay=d, seed=1), world, runs=400, seed=6)
    expected = float(sum(update_chances(horizon, d + 1)))
    error = sim.updates.std(ddof=1) / 400**0.5
    assert abs(sim.updates.mean() - expected) < 5 * error
    assert expected == pytest.approx(horizon / (6 * d + 3), rel=0.02)
