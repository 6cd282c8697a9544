"""The phase lengths of ODAAF: the published formulas in 60 digits, and properties of every table of lengths."""

import math
from decimal import Decimal, getcontext

import numpy as np
import pytest

from aftereffect.players.rivals import phased_elimination as phases
from aftereffect.players.rivals.phased_elimination import ODAAFB


def up(value: Decimal) -> int:
    return int(value.to_integral_value("ROUND_CEILING"))


def printed(T: int, m: int, E: Decimal, V: Decimal, d: int) -> tuple[int, int, int, int]:
    """(14), (18), (25) and (28) as published, with 60 digits."""
    getcontext().prec = 60
    D = Decimal(1) / 2**m
    log = (T * D * D).ln()
    third = Decimal(8) / 3 * D * log

    def form(delay: Decimal) -> int:
        return up(((2 * log).sqrt() + (2 * log + third + delay).sqrt()) ** 2 / D**2)

    by_mean = form(6 * D * m * E)
    wait = min(Decimal(d), Decimal(by_mean) / m)
    by_bound = max(round(m * wait), form(4 * D * E))
    naive = up((log.sqrt() + (log + 4 * D * m * d).sqrt()) ** 2 / (2 * D**2))
    return by_mean, by_bound, form(4 * D * (E + 2 * V)), naive


# With T = 10⁶ all lengths are below T. In phase 1 of (18) the minimum is d for d = 720, and (14) for d = 1000.
DELAYS = [("0", "0", 0), ("25", "208", 50), ("12.5", "0.75", 720), ("12.5", "0.75", 1000)]


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize(("E", "V", "d"), DELAYS)
def test_lengths_are_the_printed_formulas(m: int, E: str, V: str, d: int) -> None:
    T = 10**6
    found = (
        phases.mean_length(T, m, float(E)),
        phases.bounded_length(T, m, float(E), d),
        phases.variance_length(T, m, float(E), float(V)),
        phases.naive_length(T, m, d),
    )
    assert found == printed(T, m, Decimal(E), Decimal(V), d)


def test_the_offset_counts_one_more_mean_delay() -> None:
    # (m + 1)E instead of mE: in phase m this is the same as a mean delay of E(m+1)/m.
    for m in (1, 2, 4):
        raised = phases.mean_length(10**6, m, 24.0 * (m + 1) / m)
        assert phases.mean_length(10**6, m, 24.0, offset=1) == raised


@pytest.mark.parametrize("T", [1, 2, 10, 11, 43, 44, 1000, 250_000, 10**9, 2**53])
@pytest.mark.parametrize("delay", [0, 3, 1000, 10**300])
def test_lengths_grow_and_stay_within_the_horizon(T: int, delay: int) -> None:
    rules = (
        lambda m: phases.mean_length(T, m, float(delay)),
        lambda m: phases.bounded_length(T, m, float(delay), delay),
        lambda m: phases.variance_length(T, m, 1.0, float(delay)),
        lambda m: phases.naive_length(T, m, delay),
    )
    for rule in rules:
        table = phases.phase_lengths(T, rule)
        assert table[0] >= 1
        assert table[-1] <= T
        assert (np.diff(table) > 0).all()
        # Every phase except the first has D ≥ √(e/T), and begins within the horizon.
        assert len(table) == 1 or T * 0.25 ** len(table) >= math.e
        assert (2 * table[:-1] < T).all()


def test_a_bound_alone_takes_the_fourth_formula() -> None:
    player = ODAAFB(2, horizon=1000, max_delay=5, mean_delay=None)
    assert player.lengths.tolist() == [phases.naive_length(1000, m, 5) for m in (1, 2, 3)]
