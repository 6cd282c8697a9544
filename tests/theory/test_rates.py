"""Rates and the lower bound: values by hand, and the proof's inequality in numbers."""

import math

import pytest

from aftereffect import theory
from aftereffect.core.errors import InvalidArgument

SIZES = [(K, d, T) for K in (2, 3, 10, 500) for d in (0, 1, 7, 100) for T in (1, 2, 9, 100, 1234, 10**6)]


def test_the_table_of_section_1() -> None:
    # √(9·4) = 6, √((0+9)·4) = 6, √(1·9·4) = 6 without delay; d = 16: √(25·4) = 10, √(17·36).
    assert theory.rates(9, 0, 4) == (6.0, 6.0, 6.0)
    found = theory.rates(9, 16, 4)
    assert (found.no_delay, found.delayed) == (6.0, 10.0)
    assert math.isclose(found.composite, 6 * math.sqrt(17), rel_tol=1e-15)


def test_anonymity_never_helps() -> None:
    for K, d, T in SIZES:
        found = theory.rates(K, d, T)
        assert found.no_delay <= found.delayed <= found.composite * (1 + 1e-15)


def test_lower_bound_by_hand() -> None:
    # K = 4, d = 3, T = 40000: n = 10⁴, s = 1/√(8 ln 80000) = 0.1052..., √(4·4·40000) = 800.
    assert math.isclose(theory.lower_bound(4, 3, 40_000), 50 / math.sqrt(8 * math.log(80_000)), rel_tol=1e-14)
    # Rounds beyond the last full stretch of d+1 add nothing.
    assert theory.lower_bound(4, 3, 40_003) == theory.lower_bound(4, 3, 40_000)
    # n = 1 < K/4 = 4: 2n takes the place of √(Kn).
    assert math.isclose(theory.lower_bound(16, 1, 2), 0.25 / math.sqrt(8 * math.log(32)), rel_tol=1e-14)
    assert theory.lower_bound(4, 3, 3) == 0.0


def test_lower_bound_rate_by_hand() -> None:
    # ln T counts only from T = 3 on.
    assert theory.lower_bound_rate(2, 1, 1) == 2.0
    assert math.isclose(theory.lower_bound_rate(2, 1, 100), 20 / math.sqrt(math.log(100)), rel_tol=1e-15)


def test_lower_bounds_lie_below_upper_bounds() -> None:
    for K, d, T in SIZES:
        assert theory.lower_bound(K, d, T) < theory.tuned_bound(K, d, T)
        assert theory.lower_bound_rate(K, d, T) <= theory.rates(K, d, T).composite


def proven(K: int, n: int) -> float:
    """Return the instance's regret in units of s(d+1): what information allows, less what boundedness costs.

    x_t(i) is normal with variance 1/4. With Y_t = max_i x_t(i) − x_t(J), E Y_t² <= (K−1)(1/2 + μ²). A vector
    is out if it has an entry beyond √(2 ln(2Kn)). Replacing tables with such a vector by zeros costs at most
    Σ_t E[Y_t; vector t is out] + Σ_t E[Y_t]·P(another is out), the first bounded by Cauchy and Schwarz.
    """
    mu = min(math.sqrt(K / n) / 4, 0.5)
    limit = math.sqrt(2 * math.log(2 * K * n))

    def beyond(distance: float) -> float:
        return 0.5 * math.erfc(math.sqrt(2) * distance)

    out = (K - 1) * 2 * beyond(limit) + beyond(limit - mu) + beyond(limit + mu)
    spread = math.sqrt((K - 1) * (0.5 + mu**2))
    learned = 2 / 3 * n * math.sqrt(n / K)
    if n < 3000:
        learned = math.fsum(math.sqrt((t - 1) / K) for t in range(1, n + 1))
    information = mu * (n * (1 - 1 / K) - mu * learned)
    return information - n * spread * math.sqrt(out) - n * (n - 1) * spread * out


@pytest.mark.parametrize("K", [2, 3, 4, 5, 8, 13, 50, 300, 10_000])
def test_the_proof_gives_at_least_the_stated_constant(K: int) -> None:
    for n in (*range(1, 60), 100, 500, 2500, 10**4, 10**6, 10**9):
        stated = theory.lower_bound(K, 0, n) * math.sqrt(8 * math.log(2 * K * n))
        assert 0.0 < stated < proven(K, n), n


def test_bad_input() -> None:
    for function in (theory.rates, theory.lower_bound, theory.lower_bound_rate):
        with pytest.raises(InvalidArgument, match=r"^n_arms must be at least 2, but got 0$"):
            function(0, 1, 10)
        with pytest.raises(InvalidArgument, match=r"^max_delay must be an int, but got 'a'$"):
            function(2, "a", 10)
        with pytest.raises(InvalidArgument, match=r"^horizon must be an int, but got True$"):
            function(2, 1, True)
