"""docs/theory/adaptive.md, sections 2 and 5, in whole runs; its inequalities between numbers; its bounds, by hand."""

import math

import numpy as np
import pytest
from tests.refusals import refuses
from tests.theory.adaptive_reference import GROWTH, State, distribution, divergence, mass, step

from aftereffect import theory

TINY = 1e-9
ADVERSARIES = ("zeros and ones", "ones", "late best", "against the leader", "noise", "below the baseline")


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("first_rate", [0.02, 0.5, 5.0])
@pytest.mark.parametrize("growth", [None, GROWTH])
def test_in_every_run(growth: float | None, adversary: str, exact: bool, first_rate: float) -> None:
    """Regret in estimates, the certificate, 1 + ϱ times the costs; the mass moved."""
    rho = 1.0 if growth is None else growth
    for K in (2, 5):
        rng = np.random.default_rng(K)
        h, N = 2.0 * (math.sqrt(K) - 1.0), 120
        state, paid, cost, penalty, moved, halves = State((0.0,) * K, first_rate), 0.0, 0.0, 0.0, 0.0, 0.0
        for n in range(N):
            top = float(rng.choice([0.5, 1.0, 3.0]))
            q = distribution(state.losses, state.rate)
            arm = int(rng.choice(K, p=np.array(q) / sum(q)))
            loss = {
                "zeros and ones": float(rng.integers(2)),
                "ones": 1.0,
                "late best": float((arm == 0) == (n < N // 2)),
                "against the leader": float(q[arm] == max(q)),
                "noise": rng.random(),
                "below the baseline": float(n % 10 != 9),
            }[adversary]
            done = step(state, arm, top * loss, weight=top, top=top, exact=exact, growth=growth)
            assert done.cost <= top * (3.0 - q[arm]) / 2.0 + TINY
            # Σ⟨ẑ, q⟩ in a run.
            paid += math.fsum(x * y for x, y in zip(q, done.estimates, strict=True))
            cost, penalty, moved = cost + done.cost, penalty + done.penalty, moved + done.moved
            halves += min(1.0, math.sqrt(done.cost / state.rate))
            before, state = state.rate, done.after
            plug_in = paid - min(state.losses)
            assert plug_in <= h * first_rate + penalty + cost + TINY
            assert penalty <= rho * cost + TINY
            slow = first_rate + rho * cost / h
            if growth is None:
                # At least the growth of ϱ = 1, and at most doubled, or 2v more.
                assert slow <= state.rate * (1.0 + TINY)
                assert state.rate <= max(2.0 * before, before + 2.0 * top) * (1.0 + TINY)
            else:
                assert state.rate == pytest.approx(slow)
            assert moved <= halves + 2.0 * math.log(state.rate / first_rate) + TINY
            grown = math.log(slow / first_rate)
            assert halves <= math.sqrt(h * (n + 1) * grown / (rho * math.log(2.0))) + grown / math.log(2.0) + TINY


def test_the_other_arms_add_at_most_their_mass_times_half_the_top() -> None:
    # w² + √t(1−t−w)^{3/2} <= 1 − t for t + w <= 1; half of it is the other arms' part in units of v.
    worst = 0.0
    for t in np.linspace(1e-4, 1.0 - 1e-4, 101):
        for w in np.linspace(0.0, 1.0 - t, 101):
            worst = max(worst, (math.sqrt(t) * max(1.0 - t - w, 0.0) ** 1.5 + w * w) / (1.0 - t))
    assert 0.99 < worst <= 1.0


def test_the_squares_of_costs_on_average() -> None:
    # Σ q(3 − q)²/4 <= 9/4 − 5/(4K), with equality in the limit of many arms only.
    rng = np.random.default_rng(4)
    for K in (2, 3, 5, 50):
        bound = 2.25 - 1.25 / K
        for q in [*rng.dirichlet(np.full(K, 0.5), 300), np.full(K, 1.0 / K)]:
            assert float(np.sum(q * (3.0 - q) ** 2)) / 4.0 <= bound + TINY


def test_the_rate_grows_slowly_enough() -> None:
    # 2ϱAh + ϱ²B <= 4ϱK, for as many arms as anyone has; what is left over, by the formula of the text. ϱ = 1 has more.
    spare = {}
    for K in range(2, 5000):
        x = math.sqrt(K)
        A, h, B = (K + 2.0 - 2.0 / K) / x, 2.0 * (x - 1.0), 2.25 - 1.25 / K
        spare[K] = 4.0 * K - 2.0 * A * h - GROWTH * B
        left = 4.0 * (x - 1.0) * (x**3 - 2.0 * x**2 + 2.0) / x**3 - 13.0 / 8.0 + 25.0 / (8.0 * x * x)
        assert spare[K] == pytest.approx(left, abs=1e-8 * K)
        assert 4.0 * K - 2.0 * A * h - B >= spare[K]
    assert min(spare.values()) == spare[3] > 0.0
    assert [round(spare[K], 2) for K in (2, 3, 4, 5)] == [0.42, 0.09, 0.16, 0.41]


def test_mass_moved_from_anywhere_to_anywhere() -> None:
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(3000):
        K = int(rng.integers(2, 6))
        q, after = (tuple((x / x.sum()).tolist()) for x in rng.dirichlet(np.full(K, 0.3), 2) + 1e-9)
        assert math.fsum(math.sqrt(y) * (math.sqrt(x) + math.sqrt(y)) ** 2 for x, y in zip(q, after, strict=True)) <= 4
        worst = max(worst, mass(q, after) / math.sqrt(divergence(q, after, 1.0)))
    assert 0.8 < worst <= 1.0


def test_bounds_by_hand() -> None:
    assert theory.entropy_range(9) == 4.0
    assert theory.adaptive_regret_bound(9, 100.0, 0.25) == 121.0
    old = theory.adaptive_regret_bound(9, 100.0, 0.25, growth=2.5)
    assert old == pytest.approx(1.0 + 1.4 * math.sqrt(10.0) * 30.0)
    # h = 2, Λ = ½ ln(1 + 40·6/(2·2)²) = ½ ln 16 = 2 ln 2: √(2·100·2/2.5) + 4 ln 2 + 2.
    moved = theory.adaptive_mass_moved(4, 100.0, 6.0, 2.0, growth=2.5)
    assert moved == pytest.approx(math.sqrt(160.0) + 4.0 * math.log(2.0) + 2.0)
    # h = 2, M = ½ ln(1 + 16·15/(2·2)²) = 2 ln 2, Λ = ½ ln(1 + 4100·15/2²) = ½ ln 15376: √(2·100·2) + 2 + ln 15376.
    assert theory.adaptive_mass_moved(4, 100.0, 15.0, 2.0) == pytest.approx(22.0 + math.log(15376.0))
    assert theory.adaptive_mass_moved(4, 3.0, 6.0, 2.0) == 3.0
    assert theory.window_certificate(1, 0.5, 4.0, 8.0, missing=2) == pytest.approx(104.5 + 6.0)
    assert theory.window_certificate(1, 1.0, 4.0, 8.0) == math.inf
    # d = 1, β = 1/2: C² = 6 + 4 + 1, clean with chance 1/2.
    assert theory.stretch_certificate(1, 0.5, 4.0, 8.0, missing=2) == pytest.approx(5.0 + 16.0 * math.sqrt(11.0) + 8.0)
    assert theory.stretch_certificate(1, 1.0, 4.0, 8.0) == math.inf
    # T = 21: 1/2·(1 + 19/2) stretches begun, 19/4 ended before T.
    worst = theory.stretch_worst_case(4, 1, 21, 0.5, 2.0)
    moved = theory.adaptive_mass_moved(4, 4.75, 5.25, 2.0)
    assert worst == pytest.approx(1.0 + moved + 2.0 * math.sqrt(11.0) * (4.0 + 8.0 * math.sqrt(5.25)))
    assert theory.stretch_worst_case(4, 5, 3, 0.5, 2.0) == 5.0


@pytest.mark.parametrize(("b", "constant"), [(1.0, 14.74), (0.55, 13.10)])
def test_the_leading_constant(b: float, constant: float) -> None:
    d, K = 2000, 400
    T = 10**15
    rate = theory.stretch_worst_case(K, d, T, b / (d + 1), 0.5) / math.sqrt(K * (d + 1) * T)
    # S adds d√(hNM/ln 2), of the order of √(√K (d+1) T ln T).
    assert 4.0 * math.sqrt((2.0 / b + 2.0 + b) * math.exp(b)) == pytest.approx(constant, abs=0.01)
    N = (b / (d + 1)) * (1.0 - b / (d + 1)) ** d * (T - d - 1)
    moved = theory.adaptive_mass_moved(K, N, N, 0.5)
    assert rate - d * moved / math.sqrt(K * (d + 1) * T) == pytest.approx(constant, rel=2e-3)


test_bad_input = refuses([
    (lambda: theory.window_certificate(1, 0.5, -1.0, 0.0), "moved must be at least 0, but got -1"),
    (lambda: theory.stretch_certificate(1, 0.5, 1.0, 0.0, missing=-1), "missing must be at least 0, but got -1"),
    (lambda: theory.adaptive_regret_bound(2, 1.0, 0.0), "first_rate must be greater than 0, but got 0"),
    (lambda: theory.window_worst_case(2, 2, 4, 0.2, 0.5), "horizon must be at least 2*max_delay + 1 = 5, but got 4"),
], plain=True)
