"""docs/theory/both_worlds.md: every inequality, in states from uniform to a corner, with exact means over the arm drawn
and the worst loss of each arm; whole runs; the bounds by hand. Beside each stands how near it comes to equality."""

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from tests.refusals import refuses
from tests.theory.adaptive_reference import Vector, baselines, charge, distribution, divergence, estimates, mass

import aftereffect as ae
from aftereffect import theory

TINY = 1e-9
LATE = 32.0
"""An update is late if η >= 32v."""
FACTOR = 1.0 / (1.0 - math.sqrt(13.0) / LATE)


class Case:
    """A state, as q and η, with the top v of losses and a prediction."""

    def __init__(self, q: Vector, rate: float, top: float, expected: float, matching: float) -> None:
        self.q, self.rate, self.top, self.K, self.matching = q, rate, top, len(q), matching
        self.losses = tuple(rate / math.sqrt(x) for x in q)
        self.b = baselines(q, rate, expected, top)
        self.epsilon = top / rate
        self.leader = max(range(self.K), key=lambda i: q[i])
        self.above = excess(q)

    def others(self, arm: int) -> tuple[float, float]:
        """a and p: the sums of √q and of q over all arms but one."""
        rest = [x for i, x in enumerate(self.q) if i != arm]
        return math.fsum(math.sqrt(x) for x in rest), math.fsum(rest)


def excess(q: Vector) -> float:
    """Σ√q − 1, without cancellation: Σ√q over all arms but the first in size, minus (1 − q)/(1 + √q) of that."""
    *rest, most = sorted(q)
    return math.fsum(math.sqrt(x) for x in rest) - math.fsum(rest) / (1.0 + math.sqrt(most))


@functools.cache
def cases(late: bool) -> list[Case]:
    rng = np.random.default_rng(7)
    found = []
    for _ in range(260):
        K = int(rng.integers(2, 9) if rng.random() < 0.85 else rng.integers(9, 40))
        q = rng.dirichlet(np.full(K, 10.0 ** rng.uniform(-1.5, 1.5))) + 10.0 ** rng.uniform(-12, -2)
        top = 10.0 ** rng.uniform(-1.0, 1.0)
        share = (0.0, 10.0 ** rng.uniform(-2.0, 0.0), 1.0, 10.0)[rng.integers(4)]
        rate = top * (LATE * 10.0 ** max(rng.uniform(-2.0, 3.0), 0.0) if late else 10.0 ** rng.uniform(-2.0, 2.0))
        found.append(Case(tuple((q / q.sum()).tolist()), rate, top, share * top, float(rng.uniform(0.2, 1.0))))
    corners: list[Vector] = [(0.5, 0.5), (0.26, 0.74), (1e-9, 1 - 1e-9), (1e-4, 0.5, 0.5 - 1e-4), (0.25,) * 4]
    rates = (LATE, 100.0, 1e4) if late else (0.1, 1.0, 8.0)
    found += [Case(q, eta, 1.0, p, 0.5) for q in corners for eta in rates for p in (0.0, 1.0)]
    return found


def losses_of(case: Case, arm: int) -> tuple[float, ...]:
    """Both ends, the baseline itself, and one between."""
    return 0.0, case.top, min(case.b[arm], case.top), 0.37 * case.top


class Charge(NamedTuple):
    cost: float
    """The learner's own cost: the smaller of the plain charge and what is charged at the shift δ."""
    quadratic: float
    """Q′(δ)."""
    factor: float
    """max((1+σ)/(1+s), 1/(1−θ)); infinite where the moments are not used."""
    s: float
    """s of the arm played, at the shift δ."""


@functools.lru_cache(maxsize=100_000)
def charged(case: Case, arm: int, loss: float) -> Charge:
    q, eta, b = case.q, case.rate, case.b
    x, r = loss - b[arm], math.sqrt(q[arm])
    sigma = x / (eta * r)
    rest, pull, spread = (
        math.fsum(q[i] ** 1.5 * (b[i] - b[arm]) ** k for i in range(case.K) if i != arm) for k in range(3)
    )
    shift = (pull * (1.0 + sigma) + x * r) / (rest * (1.0 + sigma) + q[arm] ** 1.5)
    s = (x - shift * q[arm]) / (eta * r)
    theta = max(b[arm] + shift, 0.0) * math.sqrt(max(q)) / eta
    around = math.fsum(q[i] ** 1.5 * (b[i] - b[arm] - shift) ** 2 for i in range(case.K) if i != arm)
    quadratic = q[arm] ** 1.5 / (1.0 + sigma) * (x / q[arm] - shift) ** 2 + around
    plain = x * x / (eta * r + x) + 2.0 * spread / eta
    if theta <= 0.5 and s > -1.0:
        bound = (x - shift * q[arm]) * s / (1.0 + s) + around / (eta * (1.0 - theta))
        return Charge(min(plain, bound), quadratic, max((1.0 + sigma) / (1.0 + s), 1.0 / (1.0 - theta)), s)
    z = estimates(q, b, arm, loss)
    each = [(z[i] - b[arm] - shift) * math.sqrt(q[i]) / eta for i in range(case.K)]
    if min(each) > -1.0:
        exact = math.fsum(eta * math.sqrt(q[i]) * t * t / (1.0 + t) for i, t in enumerate(each))
        return Charge(min(plain, exact), quadratic, math.inf, s)
    return Charge(plain, quadratic, math.inf, s)


class Update(NamedTuple):
    """What one update with a matched rate does."""

    cost: float
    grown: float
    """Δη."""
    rise: float
    middle: Vector
    """q̃, at the old rate."""
    after: Vector

    def matched(self, matching: float) -> float:
        """W − 1 = κ·cost/(2Δη)."""
        return 0.5 * matching * self.cost / self.grown

    @property
    def penalty(self) -> float:
        return 2.0 * self.grown * excess(self.after)


@functools.lru_cache(maxsize=100_000)
def updated(case: Case, arm: int, loss: float) -> Update:
    """The matched rule: Δη by a guess of Σ√q − 1, and once more by what was found if the penalty exceeds the cost."""
    cost, _, _, s = charged(case, arm, loss)
    z = estimates(case.q, case.b, arm, loss)
    losses = tuple(x + y for x, y in zip(case.losses, z, strict=True))
    rise = math.sqrt(case.q[arm]) * max(1.0 / (1.0 + s) - 1.0, 0.0)
    widest, most = max(case.rate, 2.0 * case.top), case.matching * (math.sqrt(case.K) - 1.0)
    grown = min(0.5 * case.matching * cost / min(case.above + rise, most), widest)
    after = distribution(losses, case.rate + grown)
    if 2.0 * grown * excess(after) > cost:
        grown = min(0.5 * case.matching * cost / min(excess(after), most), grown)
        after = distribution(losses, case.rate + grown)
    return Update(cost, grown, rise, distribution(losses, case.rate), after)


def updates(case: Case, arm: int) -> list[Update]:
    """The updates by either end, where the cost is not lost in rounding."""
    ends = [loss for loss in (0.0, case.top) if charged(case, arm, loss).cost > 1e-10 * case.top]
    return [updated(case, arm, loss) for loss in ends]


# Section 2: the mean cost.


def test_the_quadratic_form_on_average() -> None:
    reached, least = 0.0, math.inf
    for case in [*cases(late=False), *cases(late=True)]:
        whole = math.fsum(x**1.5 for x in case.q)
        form = math.fsum(math.sqrt(x) * (1.0 - x**1.5 / whole) for x in case.q)
        mean = 0.0
        for arm in range(case.K):
            forms = [charged(case, arm, loss).quadratic for loss in losses_of(case, arm)]
            # It is convex in the loss.
            assert max(forms) <= max(forms[:2]) * (1.0 + TINY)
            mean += case.q[arm] * max(forms)
        assert mean <= case.top**2 * form * (1.0 + TINY)
        reached = max(reached, mean / (case.top**2 * form))
        for arm in range(case.K):
            a = case.others(arm)[0]
            assert form <= 1.1185 * a * (1.0 + TINY)
            least = min(least, a / form)
    assert reached > 0.99
    assert least < 1.0 / 1.118


def test_the_largest_of_a_quotient() -> None:
    t = np.linspace(0.0, 1.0, 100_001)
    assert 0.1184 < np.max(t * t * (1.0 - t) / (1.0 + t**3)) < 0.1185
    assert 0.529 < np.max(t / (1.0 + t**3)) < 0.53


def test_an_arm_below_the_mean_of_the_baselines() -> None:
    # r²(B²−y²) + y²k + g(r²(B−y) + yk)² <= k for y = 1/(1+g), B = 1/(1+gr), r <= √½, k >= ½: a loss of 0 there.
    nearest = 0.0
    for g, r, k in itertools.product(10.0 ** np.linspace(-4, 4, 60), np.linspace(0.01, 0.5**0.5, 40), (0.5, 0.7, 1.0)):
        y, B = 1.0 / (1.0 + g), 1.0 / (1.0 + g * r)
        found = r * r * (B * B - y * y) + y * y * k + g * (r * r * (B - y) + y * k) ** 2
        assert found <= k * (1.0 + TINY)
        nearest = max(nearest, found / k)
        assert B - y == pytest.approx(g * (1.0 - r) * y * B, abs=1e-12)
        assert r * r * (1.0 - r) * B * (B + y) <= 0.2963
        assert r**4 * g * g * (1.0 - r) ** 2 * y * B * B <= 0.0346
        assert 2.0 * r * r * k * g * (1.0 - r) * y * B <= 0.2963 * k
    assert nearest > 0.99
    assert 0.2963 + 0.0346 < 0.5 * (1.0 - 0.2963)


def test_the_mean_cost() -> None:
    reached, used = 0.0, 0
    for case in cases(late=True):
        mean = 0.0
        for arm in range(case.K):
            found = [charged(case, arm, loss) for loss in losses_of(case, arm)]
            if max(case.q) >= 1.0 / 13.0:
                used += 1
                assert max(x.factor for x in found) <= FACTOR * (1.0 + TINY)
                for x in found:
                    assert x.cost <= x.factor * x.quadratic / case.rate * (1.0 + TINY)
            mean += case.q[arm] * max(x.cost for x in found)
        for arm in range(case.K):
            a = case.others(arm)[0]
            assert mean * case.rate <= 1.27 * case.top**2 * a
            reached = max(reached, mean * case.rate / (case.top**2 * a))
            if max(case.q) <= 1.0 / 13.0:
                plain = math.fsum(math.sqrt(x) + 2.0 * x**1.5 * (1.0 - x) for x in case.q)
                assert plain <= 1.25 * a
    assert used > 500
    assert reached > 1.1
    assert FACTOR * 1.1185 < 1.27


def test_costs_and_their_squares() -> None:
    most, reached, one = 0.0, 0.0, 0.0
    for case in cases(late=True):
        v, square = case.top, 0.0
        for arm in range(case.K):
            p = case.others(arm)[1]
            cost = max(charged(case, arm, loss).cost for loss in losses_of(case, arm))
            square += case.q[arm] * cost * cost
            most = max(most, cost / v)
            if case.q[arm] >= 0.5:
                bound = 1.0463 * v * case.epsilon * p**1.5 / case.q[arm] ** 2
                assert cost <= bound * (1.0 + TINY)
                one = max(one, cost / bound)
        for arm in range(case.K):
            p = case.others(arm)[1]
            assert square <= 1.14 * v * v * p
            reached = max(reached, square / (v * v * p))
    assert 0.99 < most <= 1.06
    assert reached > 0.9
    assert one > 0.2


# Section 3: Σ√q after an update, and the rate.


def test_how_much_the_sum_of_roots_grows() -> None:
    reached = {True: 0.0, False: 0.0}
    for case in [*cases(late=False)[::2], *cases(late=True)[::2]]:
        H, epsilon = case.above, case.epsilon
        whole = math.fsum(x**1.5 for x in case.q)
        # Σq^{3/2}·Σ√q >= 1, and no arm's √q is above that of the leader.
        assert all(math.sqrt(x) / whole - 1.0 <= math.sqrt(x) * H * (1.0 + TINY) + TINY for x in case.q)
        assert math.sqrt(max(case.q)) >= whole * (1.0 - TINY)
        for arm in range(case.K):
            for loss in losses_of(case, arm)[:2]:
                z = estimates(case.q, case.b, arm, loss)
                losses = tuple(x + y for x, y in zip(case.losses, z, strict=True))
                found = excess(distribution(losses, case.rate))
                up = loss >= case.b[arm]
                bound = math.exp(2.0 * epsilon) * H if up else math.exp(epsilon) * (H + epsilon * (arm != case.leader))
                assert found <= bound * (1.0 + 1e-6) + 1e-12
                reached[up] = max(reached[up], found / bound)
        for ratio in (1.01, 2.0, 10.0):
            assert excess(distribution(case.losses, ratio * case.rate)) <= ratio * H * (1.0 + 1e-6) + 1e-12
    assert min(reached.values()) > 0.8


def test_the_rise_that_is_guessed() -> None:
    most, one = 0.0, 0.0
    for case in cases(late=True):
        for arm, loss in itertools.product(range(case.K), (0.0, 0.5 * case.top, case.top)):
            s = charged(case, arm, loss).s
            assert s > -1.0
            rise = math.sqrt(case.q[arm]) * max(1.0 / (1.0 + s) - 1.0, 0.0)
            assert rise <= case.epsilon / (1.0 - case.epsilon) * (1.0 + TINY)
            most = max(most, rise / case.epsilon)
            if case.q[arm] >= 0.5:
                bound = 1.0463 * case.epsilon * (case.others(arm)[1] / case.q[arm]) ** 1.5
                assert rise <= bound * (1.0 + TINY) + 1e-14
                one = max(one, rise / bound)
    assert most > 0.9
    assert one > 0.5


def test_the_rule() -> None:
    repeated = 0
    for case in [*cases(late=False)[::3], *cases(late=True)[::2]]:
        h, kappa = 2.0 * (math.sqrt(case.K) - 1.0), case.matching
        for arm in range(case.K):
            for done in updates(case, arm):
                cost, grown = done.cost, done.grown
                assert cost / h <= grown * (1.0 + TINY)
                assert done.penalty <= cost * (1.0 + 1e-6)
                assert grown <= cost / (2.0 * case.above) * (1.0 + TINY)
                after, matched = excess(done.after), done.matched(kappa)
                both = 2.0 * (1.0 + kappa) ** 2 / kappa * grown * cost * max(after, matched)
                assert (cost + done.penalty) ** 2 <= both * (1.0 + 1e-6)
                assert 2.0 * grown * max(after, matched) <= cost * (1.0 + 1e-6)
                guess = min(case.above + done.rise, kappa * (math.sqrt(case.K) - 1.0))
                repeated += matched > guess * (1.0 + 1e-6) and grown < 0.99 * max(case.rate, 2.0 * case.top)
                if case.rate < LATE * case.top:
                    continue
                e, epsilon = cost / case.rate, case.epsilon
                for best in range(case.K):
                    a, p = case.others(best)
                    spare = 2.0 * math.exp(epsilon) * epsilon
                    if arm == best and case.q[arm] >= 0.5:
                        spare = 1.0463 * epsilon * (p / case.q[arm]) ** 1.5
                    bound = math.exp(2.0 * epsilon) * (a + 0.5 * e) + spare
                    assert max(after, matched) <= bound * (1.0 + 1e-6)
    assert repeated > 20


@pytest.mark.parametrize(("K", "first_rate"), [(2, 0.3), (5, 40.0)])
def test_the_learner_follows_the_rule(K: int, first_rate: float) -> None:
    bandit, rng, mean = ae.MatchedTsallis(K, first_rate=first_rate, matching=0.6), np.random.default_rng(K), 0.0
    for n in range(1, 121):
        case = Case(tuple(bandit.probabilities.tolist()), bandit.learning_rate, 1.0, mean, 0.6)
        # Every tenth time the least probable arm, with a loss of 0.
        arm = int(np.argmin(case.q)) if n % 10 == 0 else int(rng.choice(K, p=np.array(case.q) / sum(case.q)))
        loss = 0.0 if n % 10 == 0 else float(rng.random() < (0.2 if arm == 0 else 0.7))
        cost = bandit.cost
        bandit.update(arm, loss)
        done = updated(case, arm, loss)
        assert bandit.cost - cost == pytest.approx(done.cost, rel=1e-6, abs=1e-9)
        assert bandit.learning_rate - case.rate == pytest.approx(done.grown, rel=1e-6, abs=1e-9)
        mean += (loss - mean) / min(n, 20)


def test_means_that_depend_on_the_rule() -> None:
    reached = {"product": 0.0, "matched": 0.0, "growth": 0.0}
    for case in cases(late=True):
        v, eta, kappa = case.top, case.rate, case.matching
        product, matched, growth = 0.0, 0.0, 0.0
        for arm in range(case.K):
            done = updates(case, arm)
            if not done:
                continue
            q = case.q[arm]
            product += q * max(x.cost * eta * max(excess(x.after), x.matched(kappa)) for x in done)
            matched += q * max(x.matched(kappa) for x in done)
            growth += q * max((eta + x.grown) ** 2 - eta**2 for x in done)
        assert growth <= 4.0 * v * v
        reached["growth"] = max(reached["growth"], growth / (v * v))
        for best in range(case.K):
            a, p = case.others(best)
            bound = math.exp(1.0 / 16.0) * (1.27 * a * a + 0.57 * p) + 2.4 * p
            assert product <= v * v * bound
            reached["product"] = max(reached["product"], product / (v * v * bound))
            assert matched <= 1.2 * a
            reached["matched"] = max(reached["matched"], matched / a)
    assert reached["product"] > 0.45
    assert reached["matched"] > 0.95
    assert reached["growth"] > 1.0


def test_several_units() -> None:
    reached = {"mean": 0.0, "growth": 0.0}
    for case in cases(late=True):
        if case.K > 6:
            continue
        q, eta, v, b, low = case.q, case.rate, case.top, case.b, min(case.b)
        mean = growth = 0.0
        for first, second in itertools.combinations_with_replacement(range(case.K), 2):
            costs = []
            for loss, other in itertools.product((0.0, v), repeat=2):
                pair = zip(estimates(q, b, first, loss), estimates(q, b, second, other), strict=True)
                z = tuple(0.5 * (x + y) for x, y in pair)
                weights = [q[i] ** 1.5 / (1.0 + (z[i] - low) * math.sqrt(q[i]) / eta) for i in range(case.K)]
                shift = math.fsum(w * x for w, x in zip(weights, z, strict=True)) / math.fsum(weights)
                costs.append(min(charge(q, eta, z, low), charge(q, eta, z, shift)))
            chance, cost = (1.0 if first == second else 2.0) * q[first] * q[second], max(costs)
            # The first attempt; a second one is smaller.
            grown = min(0.5 * case.matching * cost / min(case.above, case.matching * (math.sqrt(case.K) - 1.0)), eta)
            mean, growth = mean + chance * cost, growth + chance * ((eta + grown) ** 2 - eta * eta)
        a, top = case.others(case.leader)[0], max(q)
        y = 2.0 * case.epsilon * (1.0 + case.epsilon / math.sqrt(top)) * (math.sqrt(top) + case.epsilon) / top
        factor = 1.17 if top <= 1.0 / 13.0 else 1.1185 / (1.0 - y)
        assert mean <= factor * v * v * a / eta * (1.0 + TINY)
        assert growth <= 3.6 * v * v
        reached["mean"] = max(reached["mean"], mean * eta / (v * v * a))
        reached["growth"] = max(reached["growth"], growth / (v * v))
    assert reached["mean"] > 0.6
    assert reached["growth"] > 0.9
    tops, epsilon = np.linspace(1.0 / 13.0, 1.0, 10_001), 1.0 / LATE
    y = 2.0 * epsilon * (1.0 + epsilon / np.sqrt(tops)) * (np.sqrt(tops) + epsilon) / tops
    assert y.max() <= 0.28
    assert 1.19 < (1.1185 / 2.0 * (1.0 + np.sqrt(tops)) / (1.0 - y)).max() <= 1.2


def test_the_leader_and_the_sum_of_roots() -> None:
    for case in [*cases(late=False), *cases(late=True)]:
        for arm in range(case.K):
            assert case.above <= case.others(arm)[0] * (1.0 + TINY)
        a, p = case.others(case.leader)
        assert a <= 2.0 * case.above * (1.0 + TINY)
        assert p <= a * a * (1.0 + TINY)


# Section 5: mass moved.


def test_mass_moved_at_the_old_rate() -> None:
    reached = 0.0
    for case in [*cases(late=False)[::2], *cases(late=True)[::2]]:
        for arm in range(case.K):
            for done in updates(case, arm):
                moved, e = mass(case.q, done.middle), divergence(case.q, done.middle, case.rate) / case.rate
                assert e <= done.cost / case.rate * (1.0 + 1e-4) + 1e-12
                for best in range(case.K):
                    p = case.others(best)[1]
                    bound = 3.0 * e + 2.0 * math.sqrt(p * e)
                    assert moved <= bound * (1.0 + 1e-4) + 1e-9
                    if moved > 1e-4:
                        reached = max(reached, moved / bound)
    assert reached > 0.5
    # The two factors of the logarithm of the rate.
    for K in range(2, 50):
        h = 2.0 * (math.sqrt(K) - 1.0)
        assert 1.0 / math.log(1.25) <= 2.0 + 3.37 * h
        assert 3.0 * 0.25 / math.log(1.25) <= 3.37


# Whole runs: sections 4 and 5 add up.


@pytest.mark.parametrize(("K", "first_rate", "some_late"), [(2, 0.3, False), (3, 70.0, True), (4, 120.0, True)])
def test_in_every_run(K: int, first_rate: float, some_late: bool) -> None:
    rng = np.random.default_rng(K)
    h, kappa, best = 2.0 * (math.sqrt(K) - 1.0), 0.5, 0
    losses, rate, highest, moved, early_cost = (0.0,) * K, first_rate, 0.0, 0.0, 0.0
    # For late updates cost + penalty, a bound on its square and ln(η′/η), and for early ones ln(η′/η).
    late: list[tuple[float, float, float]] = []
    early: list[float] = []
    # Σp(W − 1) over late updates and Σp over early ones, if Δη <= η/4.
    late_mass, early_mass = 0.0, 0.0
    for _ in range(250):
        top = float(rng.geometric(0.5) + 1)
        case = Case(distribution(losses, rate), rate, top, 0.4 * top, kappa)
        arm = int(rng.choice(K, p=np.array(case.q) / sum(case.q)))
        loss = top * float(rng.random() < (0.2 if arm == best else 0.7))
        done = updated(case, arm, loss)
        highest, p = max(highest, top), case.others(best)[1]
        moved += mass(case.q, done.after)
        r, matched = done.grown / rate, done.matched(kappa)
        small = r <= 0.25
        assert not small or done.cost / rate <= 1.1204 * h * math.log1p(r) * (1.0 + TINY)
        if rate < LATE * top:
            early_cost += done.cost
            early.append(math.log1p(r))
            early_mass += p * small
        else:
            square = 2.0 * done.cost * rate * max(excess(done.after), matched) + done.cost**2
            late.append((done.cost + done.penalty, (1.0 + kappa) ** 2 / kappa * square, math.log1p(r)))
            late_mass += p * matched * small
        z = estimates(case.q, case.b, arm, loss)
        losses, rate = tuple(x + y for x, y in zip(losses, z, strict=True)), rate + done.grown
    both, squares, logs = (math.fsum(x[k] for x in late) for k in range(3))
    assert both <= math.sqrt(logs * squares) * (1.0 + TINY)
    assert early_cost <= max(h * (LATE * highest - first_rate), 0.0) + 1.5 * highest
    before = math.fsum(early[:-1])
    assert before <= max(math.log(LATE * highest / first_rate), 0.0) + TINY
    bound = bool(early) + (2.0 + 3.37 * h) * (before + logs)
    bound += 2.0 * math.sqrt(2.2408 / kappa * logs * late_mass) + 2.0 * math.sqrt(1.1204 * h * before * early_mass)
    assert 0.02 * bound < moved <= bound
    assert len(early) > 20
    assert (len(late) > 20) is some_late


# Section 6: stretches.


@pytest.mark.parametrize("d", [0, 1, 2])
def test_the_length_of_a_stretch_does_not_depend_on_what_came_before(d: int) -> None:
    """Σ over stretches begun of (a function of the coins before) × (rounds up to T), over all coins."""
    T, beta = 9, 0.4
    rng = np.random.default_rng(d)
    value: dict[tuple[bool, ...], float] = {}
    found = expected = begun = 0.0
    for coins in itertools.product((False, True), repeat=T):
        chance = math.prod(beta if x else 1.0 - beta for x in coins)
        tossed = (True, *coins)
        for t in range(d + 1, T + 1):
            if tossed[t - d - 1] and not any(tossed[t - d : t]):
                before = tossed[:t]
                weight = value.setdefault(before, float(rng.random()))
                length = next((s for s in range(t, T) if tossed[s]), T) - t + 1
                found += chance * weight * length
                expected += chance * weight * (1.0 - (1.0 - beta) ** (T - t + 1)) / beta
                begun += chance
    assert found == pytest.approx(expected, rel=1e-12)
    assert begun == pytest.approx((1.0 - beta) ** d * (1.0 + beta * (T - d - 1)), rel=1e-12)


def test_the_longest_stretch() -> None:
    for beta, N in itertools.product((0.05, 0.3, 0.9, 1.0), (1, 10, 1000)):
        k = np.arange(0, 2000)
        exact = float(np.sum(1.0 - (1.0 - (1.0 - beta) ** k) ** N))
        x = max(1, math.ceil(math.log(N) / -math.log1p(-beta))) if beta < 1.0 else 1
        bound = x + N * (1.0 - beta) ** x / beta
        assert exact <= bound * (1.0 + TINY) <= 3.0 * exact


def test_what_is_left_to_the_gaps() -> None:
    rng = np.random.default_rng(2)
    for _ in range(300):
        K = int(rng.integers(2, 8))
        q, gaps = rng.dirichlet(np.full(K, 0.4))[1:], rng.uniform(0.01, 1.0, K - 1)
        a, p, each = np.sum(np.sqrt(q)), np.sum(q), np.sum(gaps * q)
        every, least = np.sum(1.0 / gaps), gaps.min()
        assert a * a <= every * each * (1.0 + TINY)
        assert p <= each / least * (1.0 + TINY)
        assert a * p <= math.sqrt(every / least) * each * (1.0 + TINY)


# The functions.


def test_bounds_by_hand() -> None:
    # N = 256(e² − 1): Λ = 1. κ = 1, gaps 1 and ½: Γ = 2.71·3 + 7.2·2 = 22.53, E = hη₁ + 64h + 3.
    h = 2.0 * (math.sqrt(3.0) - 1.0)
    E = h * 0.5 + 64.0 * h + 3.0
    bound = theory.stochastic_regret_bound([1.0, 0.5], 256.0 * math.expm1(2.0), 0.5, 1.0)
    assert bound == pytest.approx((math.sqrt(22.53) + math.sqrt(22.53 + E)) ** 2)
    assert bound == pytest.approx(E + 2.0 * math.sqrt(22.53 * bound))
    assert bound <= 4.0 * 22.53 + 2.0 * E
    # d = 1, β = ½, T = 21, K = 2, gap ¼: C² = 11, V = ½(1 + 19/2), x = 3.
    h, C, V = 2.0 * (math.sqrt(2.0) - 1.0), math.sqrt(11.0), 5.25
    longest = (1.0 + 3.0 + V / 8.0 * 2.0) / C
    late, early = 0.5 * math.log(1.0 + V * 11.0 / 32.0**2), math.log(1.0 + 32.0 * longest / 0.5)
    gamma, E = 1.125 * 9.91 * 4.0, h * 0.5 + (64.0 * h + 3.0) * longest
    root = 0.5 * C * math.sqrt(late * gamma)
    X = (root + math.sqrt(root**2 + 0.5 * C * E)) ** 2
    assert 0.5 * C * (E + 2.0 * math.sqrt(late * gamma * X)) == pytest.approx(X)
    S = 1.0 + (2.0 + 3.37 * h) * (early + late)
    S += 2.0 * math.sqrt(5.4 * late * X * 4.0) + 2.0 * math.sqrt(1.13 * h * early * X * 4.0)
    assert theory.stretch_stochastic_bound([0.25], 1, 21, 0.5, 0.5, 0.5) == pytest.approx(1.0 + S + 4.0 * X)
    assert theory.stretch_stochastic_bound([0.25], 5, 3, 0.5, 0.5, 0.5) == 5.0
    assert theory.stretch_stochastic_bound([0.25], 1, 3, 1.0, 0.5, 0.5) == math.inf


def test_the_bounds_are_logarithmic_and_fall_below_the_worst_case() -> None:
    gaps = [0.2, 0.5]
    base = [theory.stochastic_regret_bound(gaps, 10.0**k, 0.3, 0.5) for k in (8, 12, 16)]
    wrapped = [theory.stretch_stochastic_bound(gaps, 10, 10**k, 1.0 / 11.0, 0.3, 0.5) for k in (8, 12, 16)]
    for values in (base, wrapped):
        assert values[2] - values[1] == pytest.approx(values[1] - values[0], rel=0.02)
    assert base[0] < 0.1 * theory.adaptive_regret_bound(3, 1e8, 0.3)
    assert wrapped[0] < theory.stretch_worst_case(3, 10, 10**8, 1.0 / 11.0, 0.3)
    assert theory.stretch_stochastic_bound(gaps, 0, 1000, 1.0, 0.3, 0.5) == pytest.approx(
        theory.stochastic_regret_bound(gaps, 1000, 0.3, 0.5)
    )


test_bad_input = refuses([
    (lambda: theory.stochastic_regret_bound((), 10.0, 0.3, 0.5), "gaps must be one or more numbers greater than 0"),
    (lambda: theory.stochastic_regret_bound((0.0, 0.1), 10.0, 0.3, 0.5), "numbers greater than 0, but got (0.0, 0.1)"),
    (lambda: theory.stochastic_regret_bound((0.1, 1.5), 10.0, 0.3, 0.5), "gaps must lie in [0, 1], but got 1.5"),
    (lambda: theory.stochastic_regret_bound([0.1], 10.0, 0.3, 2.0), "matching must be at most 1, but got 2"),
    (lambda: theory.stochastic_regret_bound([0.1], -1.0, 0.3, 0.5), "updates must be at least 0, but got -1"),
    (lambda: theory.stretch_stochastic_bound([0.1], 1, 10, 0.5, 0.0, 0.5), "first_rate must be greater than 0"),
], plain=True)
