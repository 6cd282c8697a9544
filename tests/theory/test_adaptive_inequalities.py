"""docs/theory/adaptive.md, sections 2 to 6: every inequality, in states from uniform to a corner, at rates from greedy
to cautious, with losses at both ends of their range. Beside each stands how near it comes to being attained."""

import functools
import math

import numpy as np
import pytest
from tests.theory.adaptive_reference import (
    State,
    Vector,
    baselines,
    cap,
    charge,
    distribution,
    divergence,
    estimates,
    mass,
    stability,
    step,
)

from aftereffect import theory

TINY = 1e-9


class Case:
    """A state, as q and η, with the top v of losses and a prediction."""

    def __init__(self, q: Vector, rate: float, top: float, expected: float) -> None:
        self.q, self.rate, self.top, self.K = q, rate, top, len(q)
        self.losses = tuple(rate / math.sqrt(x) for x in q)
        self.b = baselines(q, rate, expected, top)
        self.h = 2.0 * (math.sqrt(self.K) - 1.0)


@functools.cache
def cases() -> list[Case]:
    rng = np.random.default_rng(11)
    found = []
    for _ in range(700):
        q = rng.dirichlet(np.full(rng.integers(2, 9), 10.0 ** rng.uniform(-1.5, 1.5))) + 10.0 ** rng.uniform(-12, -2)
        top = 10.0 ** rng.uniform(-1.0, 1.0)
        share = (0.0, 10.0 ** rng.uniform(-2.0, 0.0), 1.0, 10.0)[rng.integers(4)]
        found.append(Case(tuple((q / q.sum()).tolist()), 10.0 ** rng.uniform(-3.0, 3.0), top, share * top))
    corners: list[Vector] = [(0.5, 0.5), (0.25, 0.75), (1e-9, 1 - 1e-9), (1e-4, 0.5, 0.5 - 1e-4), (0.25,) * 4]
    found += [Case(q, eta, 1.0, 1.0) for q in corners for eta in (1e-3, 0.5, 1.0, 2.0, 1e3)]
    return found


def losses_of(case: Case, arm: int) -> tuple[float, ...]:
    """Both ends, the baseline itself, and one between."""
    return 0.0, case.top, min(case.b[arm], case.top), 0.37 * case.top


def test_the_cap_is_the_largest_baseline_that_both_conditions_allow() -> None:
    def room(a: float, g: float) -> float:
        return 1.0 - a * g - a * a * max(1.0, g)

    for g in 10.0 ** np.linspace(-6, 6, 200):
        for top in (0.1, 1.0, 7.0):
            b = cap(top, top / (g * 0.3), 0.09)
            assert 0.0 < b <= top
            assert b < (top / g) * (1.0 + TINY)
            assert room(b / top, g) == pytest.approx(0.0, abs=1e-9 * max(1.0, g))
            assert room(b / top * 1.001, g) < 0.0
    # Small rates: nearly all of η√q. Large: nearly all of v.
    assert cap(1.0, 1e-3, 1.0) == pytest.approx(1e-3, rel=2e-3)
    assert cap(1.0, 1e3, 1.0) == pytest.approx(1.0, rel=1e-3)


def test_shifts_that_are_always_valid() -> None:
    least = 1.0
    for case in cases():
        q, eta, b = case.q, case.rate, case.b
        for arm in range(case.K):
            for loss in losses_of(case, arm):
                z = estimates(q, b, arm, loss)
                for i in range(case.K):
                    own, low = ((z[i] - c) * math.sqrt(q[i]) / eta for c in (b[arm], min(b)))
                    assert min(own, low) > -1.0
                    if i != arm:
                        assert own >= -math.sqrt(q[i] * q[arm]) - TINY
                        assert low >= -TINY
                    else:
                        least = min(least, 1.0 + own)
    # The cap lets 1 + s come near 0: it is not the old cap, which kept it above 1/2.
    assert 0.0 < least < 0.01


def test_the_stability_is_the_least_charge_over_all_shifts() -> None:
    nearest = math.inf
    for case in cases()[::3]:
        q, eta = case.q, case.rate
        for arm in range(case.K):
            for loss in losses_of(case, arm)[:2]:
                z = estimates(q, case.b, arm, loss)
                exact = stability(case.losses, eta, z)
                scale = max(exact, 1e-12 * case.top)
                assert exact >= -TINY * scale
                lowest = min(z[i] + eta / math.sqrt(q[i]) for i in range(case.K))
                for c in (case.b[arm], min(case.b), *(lowest - 10.0**k * case.top for k in range(-3, 2))):
                    assert exact <= charge(q, eta, z, c) * (1.0 + 1e-6) + 1e-9 * case.top
                # The best shift is the difference of the multipliers: then q̃ needs no multiplier of its own.
                after = distribution(tuple(x + y for x, y in zip(case.losses, z, strict=True)), eta)
                top = max(range(case.K), key=lambda i: after[i])
                best = case.losses[top] + z[top] - eta / math.sqrt(after[top])
                assert charge(q, eta, z, best) == pytest.approx(exact, rel=1e-3, abs=1e-6 * case.top)
                nearest = min(nearest, abs(charge(q, eta, z, best) / scale - 1.0))
    assert nearest < 1e-9


def test_every_cost_is_at_most_twice_the_top() -> None:
    own, low = 0.0, 0.0
    for case in cases():
        for arm in range(case.K):
            for loss in losses_of(case, arm):
                z = estimates(case.q, case.b, arm, loss)
                own = max(own, charge(case.q, case.rate, z, case.b[arm]) / case.top)
                low = max(low, charge(case.q, case.rate, z, min(case.b)) / case.top)
    # The part of the arm played alone comes up to v.
    assert 0.99 < own <= 2.0
    assert 0.99 < low <= 2.0


def test_the_other_arms_cost_at_most_the_top() -> None:
    # 2√t(1−t−w)^{3/2} + w² <= 1 for t + w <= 1, in (0, 1].
    worst = 0.0
    for t in np.linspace(1e-4, 1.0, 101):
        for w in np.linspace(0.0, 1.0 - t, 101):
            worst = max(worst, 2.0 * math.sqrt(t) * max(1.0 - t - w, 0.0) ** 1.5 + w * w)
    assert 0.99 < worst <= 1.0


def factor(q: Vector, twice: float) -> float:
    return math.fsum(math.sqrt(x) + twice * x**1.5 * (1.0 - x) for x in q)


def test_the_mean_cost_over_the_arm_played() -> None:
    reached = {1.0: 0.0, 2.0: 0.0}
    for case in cases():
        q, eta, v = case.q, case.rate, case.top
        for twice in reached:
            mean = 0.0
            for arm in range(case.K):
                shift = case.b[arm] if twice == 2.0 else min(case.b)
                # The adversary picks each arm's loss to make its own part worst.
                mean += q[arm] * max(
                    charge(q, eta, estimates(q, case.b, arm, loss), shift) for loss in losses_of(case, arm)
                )
            reached[twice] = max(reached[twice], mean / (v * v / eta * factor(q, twice)))
    assert all(0.8 < x <= 1.0 + TINY for x in reached.values())


def test_the_factor_is_largest_at_uniform() -> None:
    for case in cases():
        assert factor(case.q, 2.0) <= (case.K + 2.0 - 2.0 / case.K) / math.sqrt(case.K) + TINY
        assert factor(case.q, 1.0) <= (case.K + 1.0 - 1.0 / case.K) / math.sqrt(case.K) + TINY
    assert factor((0.25,) * 4, 2.0) == pytest.approx((4 + 2 - 0.5) / 2)
    # f'' has the sign of −1 + 6q − 30q², and of −1 + 3q − 15q² for the other shift: no real root.
    assert 6.0**2 - 4.0 * 30.0 < 0.0
    assert 3.0**2 - 4.0 * 15.0 < 0.0


def test_four_k() -> None:
    for K in range(2, 5000):
        x = math.sqrt(K)
        A, h = (K + 2.0 - 2.0 / K) / x, 2.0 * (x - 1.0)
        assert 2.0 * A * h + 4.0 <= 4.0 * K
        # What is left over: 4(x−1)(x³−2x²+2)/x³.
        left = 4.0 * (x - 1.0) * (x**3 - 2.0 * x**2 + 2.0) / x**3
        assert 4.0 * K - 2.0 * A * h - 4.0 == pytest.approx(left, abs=1e-8 * K)


def test_the_square_of_the_rate_grows_by_a_constant_on_average() -> None:
    reached = 0.0
    for case in cases():
        q, eta, h, v = case.q, case.rate, case.h, case.top
        grown = 0.0
        for arm in range(case.K):
            cost = max(
                charge(q, eta, estimates(q, case.b, arm, loss), case.b[arm]) for loss in losses_of(case, arm)
            )
            grown += q[arm] * ((eta + cost / h) ** 2 - eta * eta)
        assert grown <= v * v * (2.0 * factor(q, 2.0) / h + 4.0 / h**2) * (1.0 + TINY)
        reached = max(reached, grown / (v * v * 4.0 * case.K / h**2))
    assert 0.25 < reached <= 1.0


def test_mass_moved_by_estimates_and_by_the_rate() -> None:
    reached, rated = 0.0, 0.0
    for case in cases():
        q, eta = distribution(case.losses, case.rate), case.rate
        for arm in range(case.K):
            for loss in losses_of(case, arm)[:2]:
                z = estimates(case.q, case.b, arm, loss)
                after = distribution(tuple(x + y for x, y in zip(case.losses, z, strict=True)), eta)
                d = divergence(q, after, eta)
                assert mass(q, after) <= math.sqrt(d / eta) + 1e-7
                if mass(q, after) > 1e-3:
                    reached = max(reached, mass(q, after) / math.sqrt(d / eta))
        for ratio in (1.001, 1.5, 20.0):
            moved = mass(q, distribution(case.losses, ratio * eta))
            assert moved <= 2.0 * math.log(ratio) + TINY
            rated = max(rated, moved / (2.0 * math.log(ratio)))
    assert reached > 0.95
    assert rated > 0.2


def test_mass_moved_from_anywhere_to_anywhere() -> None:
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(3000):
        K = int(rng.integers(2, 6))
        q, after = (tuple((x / x.sum()).tolist()) for x in rng.dirichlet(np.full(K, 0.3), 2) + 1e-9)
        assert math.fsum(math.sqrt(y) * (math.sqrt(x) + math.sqrt(y)) ** 2 for x, y in zip(q, after, strict=True)) <= 4
        worst = max(worst, mass(q, after) / math.sqrt(divergence(q, after, 1.0)))
    assert 0.8 < worst <= 1.0


ADVERSARIES = ("zeros and ones", "ones", "late best", "against the leader", "noise", "below the baseline")


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("first_rate", [0.02, 0.5, 5.0])
def test_in_every_run(adversary: str, exact: bool, first_rate: float) -> None:
    """Regret in estimates, the certificate, twice the costs; the mass moved."""
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
            done = step(state, arm, top * loss, weight=top, top=top, exact=exact)
            assert done.cost <= 2.0 * top
            # Σ⟨ẑ, q⟩ in a run.
            paid += math.fsum(x * y for x, y in zip(q, done.estimates, strict=True))
            cost, penalty, moved = cost + done.cost, penalty + done.penalty, moved + done.moved
            halves += min(1.0, math.sqrt(done.cost / state.rate))
            state = done.after
            plug_in = paid - min(state.losses)
            assert plug_in <= h * first_rate + penalty + cost + TINY
            assert penalty <= cost + TINY
            assert state.rate == pytest.approx(first_rate + cost / h)
            growth = math.log(state.rate / first_rate)
            assert moved <= halves + 2.0 * growth + TINY
            assert halves <= math.sqrt(h * (n + 1) * growth / math.log(2.0)) + growth / math.log(2.0) + TINY


def test_an_average_of_units_costs_at_most_the_average() -> None:
    rng = np.random.default_rng(8)
    strict = 0
    for case in cases()[::2]:
        q, eta = case.q, case.rate
        arms = rng.choice(case.K, size=3, p=np.array(q) / sum(q))
        each = [estimates(q, case.b, int(j), float(rng.choice(losses_of(case, int(j))))) for j in arms]
        together = tuple(math.fsum(z[i] for z in each) / 3 for i in range(case.K))
        low = min(case.b)
        apart = math.fsum(charge(q, eta, z, low) for z in each) / 3
        assert charge(q, eta, together, low) <= apart * (1.0 + TINY) + 1e-12
        strict += charge(q, eta, together, low) < 0.9 * apart
        mean = math.fsum(case.b[int(j)] for j in arms) / 3
        own = math.fsum(charge(q, eta, z, case.b[int(j)]) for z, j in zip(each, arms, strict=True)) / 3
        assert charge(q, eta, together, mean) <= own * (1.0 + TINY) + 1e-12
    assert strict > 50


def test_bounds_by_hand() -> None:
    assert theory.entropy_range(9) == 4.0
    assert theory.adaptive_regret_bound(9, 100.0, 0.25) == pytest.approx(1.0 + 4.0 * 30.0)
    # h = 2, Λ = ½ ln(1 + 16·15/(2·2)²) = ½ ln 16 = 2 ln 2: √(2·100·2) + 4 ln 2 + 2.
    moved = theory.adaptive_mass_moved(4, 100.0, 15.0, 2.0)
    assert moved == pytest.approx(20.0 + 4.0 * math.log(2.0) + 2.0)
    assert theory.adaptive_mass_moved(4, 3.0, 15.0, 2.0) == 3.0
    assert theory.window_certificate(1, 0.5, 4.0, 8.0, missing=2) == pytest.approx(104.5 + 6.0)
    assert theory.window_certificate(1, 1.0, 4.0, 8.0) == math.inf
    # d = 1, β = 1/2: C² = 6 + 4 + 1, clean with chance 1/2.
    assert theory.stretch_certificate(1, 0.5, 4.0, 8.0, missing=2) == pytest.approx(5.0 + 16.0 * math.sqrt(11.0) + 4.0)
    assert theory.stretch_certificate(1, 1.0, 4.0, 8.0) == math.inf
    # T = 21: 1/2·(1 + 19/2) stretches begun, 19/4 ended before T.
    worst = theory.stretch_worst_case(4, 1, 21, 0.5, 2.0)
    moved = theory.adaptive_mass_moved(4, 4.75, 5.25, 2.0)
    assert worst == pytest.approx(1.0 + moved + 2.0 * math.sqrt(11.0) * (4.0 + 8.0 * math.sqrt(5.25)))
    assert theory.stretch_worst_case(4, 5, 3, 0.5, 2.0) == 5.0


@pytest.mark.parametrize(("b", "constant"), [(1.0, 14.75), (0.55, 13.10)])
def test_the_leading_constant(b: float, constant: float) -> None:
    d, K = 2000, 400
    T = 10**15
    rate = theory.stretch_worst_case(K, d, T, b / (d + 1), 0.5) / math.sqrt(K * (d + 1) * T)
    # S adds d√(hNΛ/ln 2), of the order of √(√K (d+1) T ln T).
    assert 4.0 * math.sqrt((2.0 / b + 2.0 + b) * math.exp(b)) == pytest.approx(constant, abs=0.01)
    N = (b / (d + 1)) * (1.0 - b / (d + 1)) ** d * (T - d - 1)
    moved = theory.adaptive_mass_moved(K, N, N, 0.5)
    assert rate - d * moved / math.sqrt(K * (d + 1) * T) == pytest.approx(constant, rel=2e-3)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="moved must be at least 0, but got -1"):
        theory.window_certificate(1, 0.5, -1.0, 0.0)
    with pytest.raises(ValueError, match="missing must be at least 0, but got -1"):
        theory.stretch_certificate(1, 0.5, 1.0, 0.0, missing=-1)
    with pytest.raises(ValueError, match="first_rate must be greater than 0, but got 0"):
        theory.adaptive_regret_bound(2, 1.0, 0.0)
    with pytest.raises(ValueError, match="horizon must be at least 2\\*max_delay \\+ 1 = 5, but got 4"):
        theory.window_worst_case(2, 2, 4, 0.2, 0.5)
