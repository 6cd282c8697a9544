"""docs/theory/adaptive.md, sections 2 to 6: every inequality, in states from uniform to a corner, at rates from greedy
to cautious, with losses at both ends of their range. Beside each stands how near it comes to being attained."""

import functools
import math

import numpy as np
import pytest
from tests.theory import adaptive_reference as ref

TINY = 1e-9


class Case:
    """A state, as q and η, with the top v of losses and a prediction; the cap, or the widest there is."""

    def __init__(self, q: ref.Vector, rate: float, top: float, expected: float, widest: bool) -> None:
        self.q, self.rate, self.top, self.K = q, rate, top, len(q)
        self.losses = tuple(rate / math.sqrt(x) for x in q)
        self.b = ref.baselines(q, rate, expected, top, widest)
        self.widest = widest
        self.h = 2.0 * (math.sqrt(self.K) - 1.0)


@functools.cache
def cases() -> list[Case]:
    rng = np.random.default_rng(11)
    found = []
    for _ in range(700):
        q = rng.dirichlet(np.full(rng.integers(2, 9), 10.0 ** rng.uniform(-1.5, 1.5))) + 10.0 ** rng.uniform(-12, -2)
        top = 10.0 ** rng.uniform(-1.0, 1.0)
        share = (0.0, 10.0 ** rng.uniform(-2.0, 0.0), 1.0, 10.0)[rng.integers(4)]
        rate, widest = 10.0 ** rng.uniform(-3.0, 3.0), bool(rng.integers(2))
        found.append(Case(tuple((q / q.sum()).tolist()), rate, top, share * top, widest))
    corners: list[ref.Vector] = [(0.5, 0.5), (0.25, 0.75), (1e-9, 1 - 1e-9), (1e-4, 0.5, 0.5 - 1e-4), (0.25,) * 4]
    rates = (1e-3, 0.5, 1.0, 2.0, 1e3)
    found += [Case(q, eta, 1.0, 1.0, widest) for q in corners for eta in rates for widest in (False, True)]
    return found


def losses_of(case: Case, arm: int) -> tuple[float, ...]:
    """Both ends, the baseline itself, and one between."""
    return 0.0, case.top, min(case.b[arm], case.top), 0.37 * case.top


def test_the_cap_meets_both_conditions_and_the_widest_is_as_large_as_can_be() -> None:
    def room(a: float, g: float) -> float:
        return 1.0 - a * g - a * a * max(1.0, g)

    for g in 10.0 ** np.linspace(-6, 6, 200):
        for top in (0.1, 1.0, 7.0):
            rate = top / (g * 0.3)
            b, widest = ref.cap(top, rate, 0.09), ref.widest_cap(top, rate, 0.09)
            assert 0.0 < b <= widest * (1.0 + 1e-12) <= top * (1.0 + TINY)
            assert widest < (top / g) * (1.0 + TINY)
            assert room(b / top, g) >= -TINY
            assert room(widest / top, g) == pytest.approx(0.0, abs=1e-9 * max(1.0, g))
            assert room(widest / top * 1.001, g) < 0.0
            # What the other arms' part rests on: b²/(η√q) <= v/4, and 0.382 v for the widest.
            assert b * b * g <= 0.25 * top * top * (1.0 + TINY)
            assert widest * widest * g <= 0.382 * top * top
    # Small rates: nearly all of η√q. Large: nearly all of v.
    assert ref.cap(1.0, 1e-3, 1.0) == pytest.approx(1e-3, rel=2e-3)
    assert ref.cap(1.0, 1e3, 1.0) == pytest.approx(1.0, rel=2e-3)


def test_shifts_that_are_always_valid() -> None:
    least = 1.0
    for case in cases():
        q, eta, b = case.q, case.rate, case.b
        for arm in range(case.K):
            for loss in losses_of(case, arm):
                z = ref.estimates(q, b, arm, loss)
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
                z = ref.estimates(q, case.b, arm, loss)
                exact = ref.stability(case.losses, eta, z)
                scale = max(exact, 1e-12 * case.top)
                assert exact >= -TINY * scale
                lowest = min(z[i] + eta / math.sqrt(q[i]) for i in range(case.K))
                for c in (case.b[arm], min(case.b), *(lowest - 10.0**k * case.top for k in range(-3, 2))):
                    assert exact <= ref.charge(q, eta, z, c) * (1.0 + 1e-6) + 1e-9 * case.top
                # The best shift is the difference of the multipliers: then q̃ needs no multiplier of its own.
                after = ref.distribution(tuple(x + y for x, y in zip(case.losses, z, strict=True)), eta)
                top = max(range(case.K), key=lambda i: after[i])
                best = case.losses[top] + z[top] - eta / math.sqrt(after[top])
                assert ref.charge(q, eta, z, best) == pytest.approx(exact, rel=1e-3, abs=1e-6 * case.top)
                nearest = min(nearest, abs(ref.charge(q, eta, z, best) / scale - 1.0))
    assert nearest < 1e-9


def crude(case: Case, arm: int, loss: float) -> float:
    """The charge at b_J with 2 for every other arm's 1/(1+s)."""
    q, eta, b = case.q, case.rate, case.b
    x = loss - b[arm]
    others = math.fsum((b[i] - b[arm]) ** 2 * q[i] ** 1.5 for i in range(case.K))
    return x * x / (eta * math.sqrt(q[arm]) + x) + 2.0 * others / eta


def by_moments(case: Case, arm: int, loss: float, shift: float) -> float:
    """The bound on the charge at b_J + shift by moments of the others' baselines; infinite where it says nothing."""
    q, eta, b = case.q, case.rate, case.b
    left = loss - b[arm] - shift * q[arm]
    s = left / (eta * math.sqrt(q[arm]))
    theta = max(b[arm] + shift, 0.0) * math.sqrt(max(q)) / eta
    if theta >= 1.0 or s <= -1.0:
        return math.inf
    rest, pull, others = (
        math.fsum(q[i] ** 1.5 * (b[i] - b[arm]) ** k for i in range(case.K) if i != arm) for k in range(3)
    )
    spread = others - 2.0 * shift * pull + shift * shift * rest
    return left * s / (1.0 + s) + max(spread, 0.0) / (eta * (1.0 - theta))


def test_moments_of_the_other_arms_bound_the_charge() -> None:
    used, nearest = 0, math.inf
    for case in cases():
        q, eta, b = case.q, case.rate, case.b
        for arm in range(case.K):
            for loss in losses_of(case, arm):
                x, r = loss - b[arm], math.sqrt(q[arm])
                rest, pull = (
                    math.fsum(q[i] ** 1.5 * (b[i] - b[arm]) ** k for i in range(case.K) if i != arm) for k in (0, 1)
                )
                wide, played = 1.0 + x / (eta * r), q[arm] ** 1.5
                # The mean by weights q^{3/2}, lighter for the arm played; and what is said of it without it.
                shift = (pull + played / wide * x / q[arm]) / (rest + played / wide)
                below, gap = rest * wide + played, x * rest - q[arm] * pull
                scale = max(abs(x), case.top)
                assert shift == pytest.approx((pull * wide + x * r) / below, rel=1e-9, abs=1e-12 * scale / q[arm])
                assert x - shift * q[arm] == pytest.approx(wide * gap / below, rel=1e-7, abs=1e-9 * scale)
                assert shift * rest - pull == pytest.approx(r * gap / below, rel=1e-7, abs=1e-9 * scale)
                for c in (shift, 0.0, 0.5 * shift, -0.3 * case.top, 0.1 * eta):
                    bound = by_moments(case, arm, loss, c)
                    if bound == math.inf:
                        continue
                    exact = ref.charge(q, eta, ref.estimates(q, b, arm, loss), b[arm] + c)
                    assert exact <= bound * (1.0 + 1e-7) + 1e-9 * case.top
                    used += 1
                    if exact > 1e-3 * case.top:
                        nearest = min(nearest, bound / exact)
    assert used > 20_000
    assert nearest < 1.0 + 1e-6


def test_every_cost_is_at_most_half_as_much_again_as_the_top() -> None:
    reached = {"own": 0.0, "low": 0.0, "crude": 0.0, "others": 0.0}
    for case in cases():
        q, eta, b = case.q, case.rate, case.b
        most = 1.764 if case.widest else 1.5
        for arm in range(case.K):
            for loss in losses_of(case, arm):
                z = ref.estimates(q, b, arm, loss)
                x = loss - b[arm]
                alone = x * x / (eta * math.sqrt(q[arm]) + x)
                found = {
                    "own": ref.charge(q, eta, z, b[arm]) / case.top,
                    "low": ref.charge(q, eta, z, min(b)) / case.top,
                    "crude": crude(case, arm, loss) / case.top,
                    "others": (crude(case, arm, loss) - alone) / case.top,
                }
                assert found["own"] <= found["crude"] * (1.0 + TINY) + TINY
                assert max(found.values()) <= most + TINY
                assert found["others"] <= most - 1.0 + TINY
                reached = {name: max(reached[name], found[name]) for name in reached}
    # The part of the arm played alone comes up to v.
    assert min(reached["own"], reached["low"], reached["crude"]) > 0.99
    assert reached["others"] > 0.1


def factor(q: ref.Vector, twice: float) -> float:
    return math.fsum(math.sqrt(x) + twice * x**1.5 * (1.0 - x) for x in q)


def test_the_mean_cost_over_the_arm_played() -> None:
    reached = {1.0: 0.0, 2.0: 0.0}
    for case in cases():
        q, eta, v = case.q, case.rate, case.top
        for twice in reached:
            mean = 0.0
            for arm in range(case.K):
                shift = min(case.b)
                # The adversary picks each arm's loss to make its own part worst.
                charged = [ref.charge(q, eta, ref.estimates(q, case.b, arm, x), shift) for x in losses_of(case, arm)]
                mean += q[arm] * max([crude(case, arm, x) for x in losses_of(case, arm)] if twice == 2.0 else charged)
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


def test_the_square_of_the_rate_grows_by_a_constant_on_average() -> None:
    reached = 0.0
    for case in cases():
        q, eta, h, v = case.q, case.rate, case.h, case.top
        grown = 0.0
        for arm in range(case.K):
            cost = max(crude(case, arm, loss) for loss in losses_of(case, arm))
            grown += q[arm] * ((eta + ref.GROWTH * cost / h) ** 2 - eta * eta)
        square = 2.25 - 1.25 / case.K
        most = v * v * (2.0 * ref.GROWTH * factor(q, 2.0) / h + ref.GROWTH**2 * square / h**2)
        assert grown <= most * (1.0 + TINY)
        reached = max(reached, grown / (v * v * 4.0 * ref.GROWTH * case.K / h**2))
    assert 0.25 < reached <= 1.0


def test_mass_moved_by_estimates_and_by_the_rate() -> None:
    reached, rated = 0.0, 0.0
    for case in cases():
        q, eta = ref.distribution(case.losses, case.rate), case.rate
        for arm in range(case.K):
            for loss in losses_of(case, arm)[:2]:
                z = ref.estimates(case.q, case.b, arm, loss)
                after = ref.distribution(tuple(x + y for x, y in zip(case.losses, z, strict=True)), eta)
                d = ref.divergence(q, after, eta)
                assert ref.mass(q, after) <= math.sqrt(d / eta) + 1e-7
                if ref.mass(q, after) > 1e-3:
                    reached = max(reached, ref.mass(q, after) / math.sqrt(d / eta))
        for ratio in (1.001, 1.5, 20.0):
            moved = ref.mass(q, ref.distribution(case.losses, ratio * eta))
            assert moved <= 2.0 * math.log(ratio) + TINY
            rated = max(rated, moved / (2.0 * math.log(ratio)))
    # 2^{−1/4} = 0.8409 at (½, ½) and small moves.
    assert 0.84 < reached <= 1.0
    assert rated > 0.19
    # Many arms with next to nothing each, and one with a tenth: nearly all of the mass is on its way out or in.
    q = (0.1,) + (0.9 / 3000,) * 3000
    losses = tuple(1.0 / math.sqrt(x) for x in q)
    assert 0.5 < ref.mass(q, ref.distribution(losses, 1.001)) / (2.0 * math.log(1.001)) <= 1.0


def test_an_average_of_units_costs_at_most_the_average() -> None:
    rng = np.random.default_rng(8)
    strict = 0
    for case in cases()[::2]:
        q, eta = case.q, case.rate
        arms = rng.choice(case.K, size=3, p=np.array(q) / sum(q))
        each = [ref.estimates(q, case.b, int(j), float(rng.choice(losses_of(case, int(j))))) for j in arms]
        together = tuple(math.fsum(z[i] for z in each) / 3 for i in range(case.K))
        low = min(case.b)
        apart = math.fsum(ref.charge(q, eta, z, low) for z in each) / 3
        assert ref.charge(q, eta, together, low) <= apart * (1.0 + TINY) + 1e-12
        strict += ref.charge(q, eta, together, low) < 0.9 * apart
        mean = math.fsum(case.b[int(j)] for j in arms) / 3
        own = math.fsum(ref.charge(q, eta, z, case.b[int(j)]) for z, j in zip(each, arms, strict=True)) / 3
        assert ref.charge(q, eta, together, mean) <= own * (1.0 + TINY) + 1e-12
    assert strict > 50
