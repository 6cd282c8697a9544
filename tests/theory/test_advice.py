"""docs/theory/advice.md: the inequality in every run, and expectations over all coins and all arms, for advisers of
every kind. Nothing is shared with the player but the formulas of the page."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.theory.adaptive_reference import State, Vector, distribution, estimates, mass, stability, step
from tests.theory.enumeration import random_components
from tests.theory.stretches import Block, Mean, Play, arms_played
from tests.theory.test_stopping import arrives, fed

import aftereffect as ae
from aftereffect import theory
from aftereffect.bandits.adaptive_tsallis import MEAN

TINY = 1e-9
# Called with the arms and totals of all rounds so far, and the ends of all blocks, which only one that peeks looks at.
Adviser = Callable[[list[int], Any, list[int]], Any]


def dot(x: Any, y: Any) -> float:
    return math.fsum(a * b for a, b in zip(x, y, strict=True))


def potential(losses: Vector, rate: float) -> float:
    """Φ by its definition."""
    q = distribution(losses, rate)
    return dot(losses, q) - 2.0 * rate * math.fsum(map(math.sqrt, q))


def added(x: Any, y: Any) -> Vector:
    return tuple(float(a + b) for a, b in zip(x, y, strict=True))


class Advice:
    """A, Z and the mass moved, by the page; bisection for the largest step."""

    def __init__(self, A: Vector, Z: float = 0.0, moved: float = 0.0) -> None:
        self.A, self.Z, self.moved = A, Z, moved

    def price(self) -> float:
        return max(self.A) - self.Z

    def step(self, losses: Vector, rate: float, A: Vector) -> "Advice":
        """losses: L̂, without advice."""
        before, after = added(losses, self.A), added(losses, A)
        moved = mass(distribution(before, rate), distribution(after, rate))
        Z = self.Z + potential(after, rate) - potential(before, rate)
        return Advice(A, Z, self.moved + moved)

    def towards(self, losses: Vector, rate: float, p: Any, budget: float, drift: float) -> "Advice":
        """The largest step, by bisection, to a mixture of the present distribution and p."""
        q = distribution(added(losses, self.A), rate)

        def tried(part: float) -> Advice:
            mixed = [(1.0 - part) * x + part * y for x, y in zip(q, p, strict=True)]
            return self.step(losses, rate, tuple(rate / math.sqrt(x) - y for x, y in zip(mixed, losses, strict=True)))

        low, high, part = 0.0, 1.0, 1.0
        while high - low > 1e-7:
            found = tried(part)
            if found.price() + drift * found.moved <= budget:
                low = part
            else:
                high = part
            if low == 1.0:
                break
            part = 0.5 * (low + high)
        return tried(low) if low else self


class Advised(Play):
    """Algorithm 1 fed stretches, with an adviser; b = first + share·(hη₁ + Σ(cost + penalty))."""

    def __init__(self, components: Any, beta: float, adviser: Adviser, first: float, share: float, **more: Any) -> None:
        super().__init__(components, beta, 0.3, **more)
        self.adviser, self.first, self.share = adviser, first, share
        self.F = self.C / (1.0 - beta) ** self.d

    def histories(self, stretches: Any) -> Any:
        # The rounds of the opening are blocks of their own that are not fed.
        first = len(self.opening)
        fed = [(t, rounds) for t, rounds in stretches if t <= self.T and self.heard(rounds)]
        updates = [*((t, ()) for t in range(1, first + 1)), *fed]
        ends = [t for t, _ in updates]

        def play(n: int, chance: float, blocks: Any, state: State, advice: Advice, seen: Any, gap: Any) -> Any:
            # state: with L̂ alone. gap: Σ⟨ẑ, q − e_u⟩ for every u.
            state, advice = state, self.followed(n, ends, blocks, state, advice, float(seen[0]))
            whole = added(state.losses, advice.A)
            limit = self.first + self.share * (self.h * self.first_rate + seen[0])
            assert advice.price() + self.d / self.F * advice.moved <= limit + TINY
            # The inequality in every run, and the withdrawn price.
            run = self.h * self.first_rate + seen[0]
            assert (gap <= run + np.array(advice.A) - advice.Z + TINY).all()
            taken_back = potential(whole, state.rate) - potential(state.losses, state.rate) - advice.Z
            assert taken_back <= advice.price() + TINY
            assert gap.max() <= run + taken_back + TINY
            q = distribution(whole, state.rate)
            for arm in range(self.K):
                now = (*blocks, Block(arm, state._replace(losses=whole)))
                if n == len(updates):
                    extra = (advice.moved, limit, taken_back)
                    yield chance * q[arm], (*self.show(stretches, ends, now, seen), *extra)
                    continue
                losses, weight, offset, top = self.feed(updates[n][1], arms_played(ends[:n], blocks))
                done = step(state._replace(losses=whole), arm, float(losses[arm]), weight, offset, top, self.exact)
                paid = dot(q, done.estimates)
                added_up = (done.cost + done.penalty, done.moved * (updates[n][0] < self.T), paid, top * top)
                after = done.after._replace(losses=added(state.losses, done.estimates))
                later = gap + paid - np.array(done.estimates)
                yield from play(n + 1, chance * q[arm], now, after, advice, seen + np.array(added_up), later)

        start = State((0.0,) * self.K, self.first_rate)
        played = tuple(Block(arm, start) for arm in self.opening)
        yield from play(first, 1.0, played, start, Advice((0.0,) * self.K), np.zeros(4), np.zeros(self.K))

    def followed(self, n: int, ends: Any, blocks: Any, state: State, advice: Advice, costs: float) -> Advice:
        """Ask after n updates, before the next draw."""
        arms = arms_played(ends[:n], blocks)
        heard = self.totals(arms + [0] * (self.T - len(arms)))[: len(arms)]
        p = self.adviser(arms, heard, [*ends[n:], self.T])
        if p is None:
            return advice
        limit = self.first + self.share * (self.h * self.first_rate + costs)
        return advice.towards(state.losses, state.rate, p, limit, self.d / self.F)


def erratic(arms: list[int], totals: Any, ahead: list[int]) -> Any:
    """Uses every total, wildly."""
    if len(arms) % 5 == 3:
        return None
    x = math.sin(100.0 * float(np.dot(totals, np.arange(1.0, len(totals) + 1.0)))) + 0.3 * sum(arms)
    p = 0.5 + 0.49 * math.sin(37.0 * x)
    return (p, 1.0 - p)


def malicious(arms: list[int], totals: Any, ahead: list[int]) -> Any:
    """All that may be spent on arm 1, in the tests the one with the larger mean."""
    return (1e-9, 1.0 - 1e-9)


def peeking(arms: list[int], totals: Any, ahead: list[int]) -> Any:
    """Plays arm 1 in blocks that will be long, arm 0 in others: it knows the coins to come."""
    long = ahead[0] - len(arms) > 3
    return (0.02, 0.98) if long else (0.98, 0.02)


CASES = [(0, 5, 0.5), (1, 6, 0.5), (2, 7, 1 / 3)]


@pytest.mark.parametrize("adviser", [erratic, malicious])
@pytest.mark.parametrize("budget", [(0.5, 0.5), (8.0, 0.5), (0.0, 1.0)])
@pytest.mark.parametrize(("d", "T", "beta"), CASES)
def test_any_adviser_over_all_coins_and_arms(d: int, T: int, beta: float, budget: Any, adviser: Adviser) -> None:
    parts = random_components(np.random.default_rng(d + T), T, d, 2)
    parts[:, :, 0] *= 0.3
    game = Advised(parts, beta, adviser, *budget)
    values = game.averages()
    mean = Mean(*values[:-3])
    moved, limit, taken_back = values[-3:]
    assert mean.chance == pytest.approx(1.0)
    # (9) of adaptive.md: what is fed says what the stale part of the regret is.
    assert mean.stale == pytest.approx(mean.fresh * game.F, abs=TINY)
    # First brackets: at most d for each unit of mass, moved by an update or a step.
    assert mean.drift.max() <= d * (mean.moved + moved).max() + TINY
    bound = d + d * mean.moved + game.F * (mean.base + limit)
    assert (mean.regret <= bound + TINY).all()
    certificate = d + d * (mean.moved + moved) + game.F * (mean.base + taken_back)
    assert (mean.regret <= certificate + TINY).all()
    h = game.h * game.first_rate
    V = (1.0 - beta) ** d * (1.0 + beta * (T - d - 1))
    most = (1.0 + budget[1]) * (h + 4.0 * math.sqrt(2.0 * V)) + budget[0]
    updates = theory.adaptive_mass_moved(2, beta * (1.0 - beta) ** d * (T - d - 1), V, 0.3)
    worst = theory.stretch_worst_case(2, d, T, beta, 0.3, advice=budget)
    assert worst == pytest.approx(d + d * updates + game.F * most)
    assert mean.regret.max() <= worst


@pytest.mark.parametrize(("d", "T", "beta"), [(1, 6, 0.3), (2, 7, 1 / 3)])
def test_an_adviser_that_knows_coins_to_come_breaks_the_identity(d: int, T: int, beta: float) -> None:
    """It may then play the bad arm where rounds are not clean, and what is fed does not show it."""
    parts = np.zeros((T, d + 1, 2))
    parts[:, 0, 1] = 1.0
    game = Advised(parts, beta, peeking, 8.0, 0.5)
    mean = Mean(*game.averages()[:-3])
    assert abs(mean.stale - mean.fresh * game.F).max() > 0.01
    honest = Advised(parts, beta, erratic, 8.0, 0.5)
    mean = Mean(*honest.averages()[:-3])
    assert mean.stale == pytest.approx(mean.fresh * honest.F, abs=TINY)


@pytest.mark.parametrize("opening", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize(("d", "T", "beta"), [(0, 5, 0.5), (1, 6, 0.4), (2, 7, 1 / 3)])
def test_an_opening_costs_no_more_than_its_rounds(d: int, T: int, beta: float, opening: Any) -> None:
    """Theorem 2′, whatever is played there; (9) holds from the first clean round of the first block."""
    parts = random_components(np.random.default_rng(d + T), T, d, 2)
    parts[:, :, 0] *= 0.3
    game, n0 = Advised(parts, beta, malicious, 2.0, 0.5, opening=opening), len(opening)
    values = game.averages()
    mean, (moved, limit, taken_back) = Mean(*values[:-3]), values[-3:]
    assert mean.chance == pytest.approx(1.0)
    assert (mean.early <= n0 + d + TINY).all()
    assert mean.stale == pytest.approx(mean.fresh * game.F, abs=TINY)
    certificate = n0 + d + d * (mean.moved + moved) + game.F * (mean.base + taken_back)
    assert (mean.regret <= certificate + TINY).all()
    assert (mean.regret <= n0 + d + d * mean.moved + game.F * (mean.base + limit) + TINY).all()
    assert mean.regret.max() <= n0 + theory.stretch_worst_case(2, d, T - n0, beta, 0.3, advice=(2.0, 0.5))


def test_clean_rounds_hold_nothing_of_the_opening() -> None:
    """What is fed is what the block's arm brings alone; in the d rounds after the opening the total is another one."""
    parts = random_components(np.random.default_rng(3), 8, 2, 2)
    game = Advised(parts, 0.4, malicious, 2.0, 0.5, opening=(1, 0, 1))
    arms = [1, 0, 1, 0, 0, 0, 0, 0]
    mixed = np.flatnonzero(abs(game.totals(arms) - game.rho[:, 0]) > TINY) + 1
    assert mixed.tolist() == [1, 2, 3, 4, 5]
    fed = {t for stretches in game.schedules() for _, rounds in stretches for t in rounds}
    assert fed == {6, 7, 8}


def best_stop(game: Advised, u: int) -> float:
    """The largest mean, over stopping rules, of the regret against u minus the certificate of stopped runs."""
    d, beta, K = game.d, game.beta, game.K
    always = np.cumsum(game.rho[:, u])

    def after(t: int, z: int, arm: int | None, heard: Any, state: State, advice: Advice, seen: Any) -> float:
        """z: rounds since the last coin. arm: None after an update. seen: costs, and the mass moved by updates."""
        costs, moved = seen
        arms, totals = heard
        n0 = len(game.opening)
        if arm is None and t >= n0:
            budget = game.first + game.share * (game.h * game.first_rate + costs)
            p = game.adviser(list(arms), np.array(totals), [])
            if p is not None:
                advice = advice.towards(state.losses, state.rate, p, budget, d / game.F)
        here = -math.inf
        if t:
            extra = min(t, n0) + d + theory.stopping_price(d, beta, None if arm is None else max(z - d, 0))
            base = game.h * game.first_rate + costs + advice.price()
            here = sum(totals) - always[t - 1] - extra - d * (moved + advice.moved) - game.F * base
        if t == game.T:
            return here
        if t < n0:
            now = (*arms, game.opening[t])
            return max(here, after(t + 1, 0, None, (now, (*totals, arrives(game, now))), state, advice, seen))
        whole = state._replace(losses=added(state.losses, advice.A))
        onward, q = 0.0, distribution(whole.losses, state.rate)
        for a, coin in itertools.product(range(K) if arm is None else (arm,), (0, 1)):
            chance = (q[a] if arm is None else 1.0) * (beta if coin else 1.0 - beta)
            played, gap = (*arms, a), z + 1
            now = played, (*totals, arrives(game, played))
            if coin and gap > d:
                losses, weight, offset, top = game.feed(fed(game, t + 1, gap), [])
                done = step(whole, a, float(losses[a]), weight, offset, top, game.exact)
                own = done.after._replace(losses=added(state.losses, done.estimates))
                told = costs + done.cost + done.penalty, moved + done.moved
                onward += chance * after(t + 1, 0, None, now, own, advice, told)
            else:
                onward += chance * after(t + 1, 0 if coin else gap, a, now, state, advice, seen)
        return max(here, onward)

    return after(0, 0, None, ((), ()), State((0.0,) * K, game.first_rate), Advice((0.0,) * K), (0.0, 0.0))


@pytest.mark.parametrize("opening", [(), (1, 1)])
@pytest.mark.parametrize("adviser", [erratic, malicious])
@pytest.mark.parametrize(("d", "T", "beta"), [(0, 5, 0.5), (1, 6, 0.5), (2, 6, 1 / 3)])
def test_no_stopping_rule_exceeds_the_certificate(d: int, T: int, beta: float, adviser: Adviser, opening: Any) -> None:
    """Theorem 4 of adaptive.md, with F·Π, the mass moved by steps and the opening, by backward induction."""
    parts = random_components(np.random.default_rng(T), T, d, 2)
    parts[:, :, 0] *= 0.3
    game = Advised(parts, beta, adviser, 8.0, 0.5, opening=opening)
    assert max(best_stop(game, u) for u in range(2)) <= TINY


def test_an_adviser_that_knows_the_next_arm_biases_the_estimates() -> None:
    """Arm 0 is drawn if u < q(0). Told u, it raises q(0) from 0.5 to 0.6 where that changes the arm, and only there:
    the loss of arm 1, which is 1, is then estimated as 0.8."""
    estimates = []
    for u in (np.arange(1000) + 0.5) / 1000.0:
        first = 0.6 if 0.5 <= u < 0.6 else 0.5
        estimates.append(1.0 / (1.0 - first) if u >= first else 0.0)
    assert np.mean(estimates) == pytest.approx(0.8)


@pytest.mark.parametrize("prior", [0.0, 1.5])
@pytest.mark.parametrize("K", [2, 3, 5])
def test_withdrawn_advice_panels_and_priors_in_every_run(K: int, prior: float) -> None:
    """Averages over three units, with corrections inserted in between: the inequality holds with both prices."""
    rng = np.random.default_rng(K)
    G = tuple((prior * rng.random(K)).tolist())
    own, state, advice = G, State((0.0,) * K, 0.3), Advice((0.0,) * K)
    h, gap = 2.0 * (math.sqrt(K) - 1.0), -np.array(G)
    # hη₁ + Σ(cost + penalty), and what a prior adds: −2η₁√K becomes the potential of G.
    run = -potential(G, state.rate) - 2.0 * state.rate
    assert run == pytest.approx(h * state.rate) if prior == 0.0 else run < h * state.rate
    for n in range(80):
        whole = added(own, advice.A)
        q = distribution(whole, state.rate)
        arms = rng.choice(K, size=3, p=np.array(q) / sum(q))
        z = np.zeros(K)
        for arm in arms:
            z[arm] += rng.random() / q[arm] / 3.0
        after = added(whole, z)
        stability = dot(z, q) + potential(whole, state.rate) - potential(after, state.rate)
        rate = state.rate + stability / h
        penalty = 2.0 * (rate - state.rate) * (math.fsum(map(math.sqrt, distribution(after, rate))) - 1.0)
        run, gap, own, state = run + stability + penalty, gap + dot(z, q) - z, added(own, z), State(own, rate)
        if n % 4 == 0:
            g = rng.normal(size=K)
            own = added(own, g)
            # Lemma 1': ⟨g, q after⟩ − g(u).
            gap = gap + dot(g, distribution(added(own, advice.A), rate)) - g
        advice = advice.towards(own, rate, rng.dirichlet(np.ones(K) * 0.3) * 0.99 + 0.01 / K, 4.0 + 0.5 * run, 0.0)
        assert (gap <= run + np.array(advice.A) - advice.Z + TINY).all()
        taken_back = potential(added(own, advice.A), rate) - potential(own, rate) - advice.Z
        assert gap.max() <= run + taken_back + TINY
        assert taken_back <= advice.price() + TINY


def test_a_price_by_the_gradient_is_larger() -> None:
    """⟨g, q⟩ in place of the potential overstates a step by at least η·(mass moved)²."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        K, rate = int(rng.integers(2, 6)), float(10.0 ** rng.uniform(-1.0, 2.0))
        losses = tuple((rng.exponential(size=K) * rate).tolist())
        after = added(losses, rng.normal(size=K) * rate)
        g = np.array(after) - np.array(losses)
        q, p = distribution(losses, rate), distribution(after, rate)
        lost = potential(after, rate) - potential(losses, rate) - dot(g, p)
        assert lost >= rate * mass(q, p) ** 2 - 1e-6 * rate


def test_against_the_best_arm_right_advice_has_no_price() -> None:
    """A(u) − Z ≤ 0 if no step changes A(u) or lowers another entry."""
    rng = np.random.default_rng(2)
    for _ in range(100):
        K, rate, own, advice = 4, 0.5, (0.0,) * 4, Advice((0.0,) * 4)
        for _ in range(6):
            own = added(own, rng.exponential(size=K))
            A = tuple(advice.A[i] + (0.0 if i == 0 else float(rng.exponential())) for i in range(K))
            advice = advice.step(own, rate, A)
            assert advice.A[0] - advice.Z <= TINY


def test_the_logarithmic_bound_with_advice() -> None:
    """B1 and B2 with (1 + c)βC and c̄ + B₀/(1 + c), solved by iteration."""
    gaps, N, first, share = [0.2, 0.5], 10_000, 8.0, 0.5
    h = 2.0 * (math.sqrt(3.0) - 1.0)
    Gamma = 1.5**2 / 2.0 * (2.71 * 7.0 + 7.2 / 0.2)
    late, c0 = 0.5 * math.log1p(N / 256.0), h * 0.3 + 64.0 * h + 3.0
    X = 1.0
    for _ in range(500):
        X = (1.0 + share) * (c0 + 2.0 * math.sqrt(late * Gamma * X)) + first
    found = theory.stretch_stochastic_bound(gaps, 0, N, 1.0, 0.3, 0.5, advice=(first, share))
    assert found == pytest.approx(X)
    assert theory.stretch_stochastic_bound(gaps, 0, N, 1.0, 0.3, 0.5) < found


def mean_costs(L: Any, rate: float, expected: float) -> tuple[Any, float, float]:
    """q, and the means of cost and cost² of the learner's own update over its arm, each with its worst loss, v = 1."""
    K = len(L)
    bandit: Any = ae.MatchedTsallis(K, first_rate=rate, prior=L)
    q, first, second = bandit.probabilities, 0.0, 0.0
    for arm in range(K):
        costs = []
        for loss in (0.0, 1.0):
            twin: Any = ae.MatchedTsallis(K, first_rate=rate, prior=L)
            twin._state[4 * K + MEAN] = expected
            twin.update(arm, loss)
            costs.append(twin.cost)
        first += q[arm] * max(costs)
        second += q[arm] * max(costs) ** 2
    return q, first, second


@pytest.mark.parametrize("K", [2, 3, 4, 6, 12])
def test_the_mean_cost_of_the_learner(K: int) -> None:
    """Section 8: E[cost] is above (v²/η)Σ√q(1 − w/R) by less than 10⁻⁵ of it here; the constants of late updates."""
    rng, largest = np.random.default_rng(K), 0.0
    for n in range(250):
        rate = float(10.0 ** rng.uniform(-2.0, 3.0)) if n % 2 else 32.0 + 10.0 * rng.random()
        L = rng.exponential(size=K) * rate * 10.0 ** rng.uniform(-3.0, 2.0)
        q = np.array(distribution(tuple(L), rate))
        caps = 1.0 / (1.0 + 1.0 / (rate * np.sqrt(q)))
        q, mean, square = mean_costs(L, rate, float(rng.choice([0.0, *caps])))
        w = q**1.5
        ratio = mean * rate / float(np.sqrt(q) @ (1.0 - w / w.sum()))
        largest = max(largest, ratio)
        assert ratio <= 1.0 + 1e-5
        if rate >= 32.0:
            assert mean <= 1.127 * (K - 1.0) / math.sqrt(K) / rate
            assert square <= 1.14 * (1.0 - 1.0 / K)
    assert largest > 0.95


def test_the_charge_breaks_the_bound_on_stability() -> None:
    """Section 8: K = 2, η = 423.4516, prediction 0: the learner's charge is above the bound, the stability below."""
    rate, share = 423.4516414728111, 0.48665504
    L = (rate * (share**-0.5 - (1.0 - share) ** -0.5), 0.0)
    q, mean, _ = mean_costs(L, rate, 0.0)
    w = q**1.5
    bound = float(np.sqrt(q) @ (1.0 - w / w.sum())) / rate
    assert mean / bound - 1.0 == pytest.approx(2.7e-6, abs=1e-7)
    pairs = [(arm, estimates(tuple(q), (0.0, 0.0), arm, 1.0)) for arm in range(2)]
    exact = math.fsum(q[arm] * stability(L, rate, z) for arm, z in pairs)
    assert exact < bound * (1.0 - 5e-6)


@pytest.mark.parametrize(
    ("K", "N", "known", "found", "advised"), [(2, 10_000, 566, 281, 429), (4, 10_000, 801, 567, 859)]
)
def test_what_late_updates_pay_for(K: int, N: int, known: float, found: float, advised: float) -> None:
    """The numbers of section 8."""
    h, first = theory.entropy_range(K), 0.3
    D = 2.0 * 1.127 * (K - 1.0) / (h * math.sqrt(K)) + 1.14 * (1.0 - 1.0 / K) / h**2
    bound = 2.0 * h * math.sqrt(32.0**2 + 96.0 / h + 2.25 / h**2 + D * N) - h * first
    assert theory.adaptive_regret_bound(K, N, first) == pytest.approx(known, abs=1.0)
    assert bound == pytest.approx(found, abs=1.0)
    assert 1.5 * bound + 8.0 == pytest.approx(advised, abs=1.5)
