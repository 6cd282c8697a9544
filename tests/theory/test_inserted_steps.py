"""docs/theory/inserted_steps.md: the inequality in every run, and expectations over all coins and all arms."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from tests.theory.adaptive_reference import State, distribution, mass, step
from tests.theory.enumeration import random_components

import aftereffect as ae

TINY = 1e-9


def dot(x: Any, y: Any) -> float:
    return math.fsum(a * b for a, b in zip(x, y, strict=True))


def inserted(state: State, g: Any) -> State:
    return state._replace(losses=tuple(x + y for x, y in zip(state.losses, g, strict=True)))


@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("first_rate", [0.05, 0.3, 4.0])
def test_the_regret_in_estimates_in_every_run(K: int, first_rate: float) -> None:
    rng = np.random.default_rng(K)
    h, state, paid, bound = 2.0 * (math.sqrt(K) - 1.0), State((0.0,) * K, first_rate), 0.0, 0.0
    for n in range(150):
        q = distribution(state.losses, state.rate)
        arm = int(rng.choice(K, p=np.array(q) / sum(q)))
        done = step(state, arm, float(rng.integers(2)))
        paid, bound, state = paid + dot(q, done.estimates), bound + done.cost + done.penalty, done.after
        if n % 3 == 0:
            # Steps of any sign and size, on one arm or on all.
            g = rng.normal(size=K) * 10.0 ** rng.uniform(-2.0, 2.0)
            state = inserted(state, g if n % 2 else g * np.eye(K)[arm])
            paid += dot(g if n % 2 else g * np.eye(K)[arm], distribution(state.losses, state.rate))
        assert paid - min(state.losses) <= h * first_rate + bound + TINY


def test_the_learner_solves_an_inserted_step_as_bisection_does() -> None:
    rng = np.random.default_rng(5)
    bandit, moved = ae.MatchedTsallis(3, prior=[1.0, 3.0, 1.5]), 0.0
    assert bandit.probabilities == pytest.approx(distribution((0.0, 2.0, 0.5), bandit.first_rate), rel=1e-12)
    assert bandit.moved == 0.0
    for size in (0.0, 1e-9, 0.3, -0.3, 5.0, -40.0, 1e6, -1e6, 1e150):
        bandit.update(int(rng.choice(3, p=bandit.probabilities)), rng.random())
        losses, rate, before = bandit.estimated_losses, bandit.learning_rate, bandit.probabilities
        costs, moved = (bandit.cost, bandit.penalty, bandit.squares), bandit.moved
        g = rng.permutation([0.0, size, -0.5 * size])
        bandit.insert(g)
        after = distribution(tuple(losses + g), rate)
        assert bandit.probabilities == pytest.approx(after, rel=1e-9, abs=1e-300)
        assert (bandit.learning_rate, bandit.cost, bandit.penalty, bandit.squares) == (rate, *costs)
        assert bandit.moved - moved == pytest.approx(mass(tuple(before), tuple(after)), abs=1e-9)


class Restated:
    """Algorithm 1 fed stretches, over all coins and arms; totals of some rounds are restated later.

    restated: round → (the round after which the restated total is known, the change for each arm). prior: G.
    """

    def __init__(self, seed: int, restated: dict[int, tuple[int, Any]], prior: Any, d: int, T: int, beta: float):
        self.d, self.T, self.beta, self.rate, self.K = d, T, beta, 0.3, 2
        self.parts = random_components(np.random.default_rng(seed), T, d, self.K)
        self.restated, self.prior, self.C = restated, prior, ae.theory.stretch_scale(d, beta)
        self.true = np.array([self.totals([i] * T) for i in range(self.K)]).T
        self.first = self.true.copy()
        for x, (_, change) in restated.items():
            self.first[x - 1] -= change
        # Means: regret against each arm; costs and penalties, with v for an open stretch; S; Σẑ + Σg; the sum of the
        # fed losses, corrected, of each arm and of the arm played; the price of corrections.
        self.chance, self.regret, self.bound, self.moved = 0.0, np.zeros(self.K), 0.0, 0.0
        self.estimated, self.fed, self.paid, self.corrections = np.zeros(self.K), np.zeros(self.K), 0.0, 0.0
        for coins in itertools.product((0, 1), repeat=T):
            chance = math.prod(beta if coin else 1.0 - beta for coin in coins)
            self.play(coins, chance)

    def totals(self, arms: Any) -> Any:
        seen = np.zeros(self.T + self.d)
        for t, arm in enumerate(arms):
            seen[t : t + self.d + 1] += self.parts[t, :, arm]
        return seen[: self.T]

    def play(self, coins: Any, chance: float) -> None:
        ends, latest = [], 0
        for t in (t for t, coin in enumerate(coins, 1) if coin):
            if t - latest > self.d:
                ends.append((latest + self.d + 1, t))
            latest = t
        begin = inserted(State((0.0,) * self.K, self.rate), self.prior)
        self.block(ends, latest, 0, begin, chance, (), 0.0, 0.0, 0.0, np.array(self.prior), np.zeros(self.K), 0.0)

    def block(self, ends: Any, latest: int, n: int, state: State, chance: float, blocks: Any, *sums: Any) -> None:
        q = distribution(state.losses, state.rate)
        for arm in range(self.K):
            self.end(ends, latest, n, state, chance * q[arm], (*blocks, (arm, q[arm])), *sums)

    def end(self, ends: Any, latest: int, n: int, state: State, chance: float, blocks: Any, *sums: Any) -> None:
        costs, moved, price, estimated, fed, paid = sums
        arm, q = blocks[-1][0], distribution(state.losses, state.rate)
        if n == len(ends):
            open_rounds = self.T - latest - self.d
            v = (open_rounds + self.d) / self.C if open_rounds > 0 else 0.0
            arms = [blocks[min(sum(e < t for _, e in ends), n)][0] for t in range(1, self.T + 1)]
            self.chance += chance
            self.regret += chance * (self.totals(arms).sum() - self.true.sum(axis=0))
            self.bound += chance * (costs + v)
            self.moved += chance * moved
            self.estimated += chance * estimated
            self.fed += chance * fed
            self.paid += chance * paid
            self.corrections += chance * price
            return
        first, end = ends[n]
        # A total that is restated before the end of its block is corrected in the window.
        known = {x for x, (at, _) in self.restated.items() if at < end}
        totals = [(self.true if x in known else self.first)[x - 1] for x in range(first, end + 1)]
        m, whole = end - first + 1, np.sum(totals, axis=0)
        done = step(state, arm, whole[arm] / self.C, weight=m / self.C, top=(m + self.d) / self.C)
        after, estimated = done.after, estimated + np.array(done.estimates)
        fed, paid = fed + whole / self.C, paid + whole[arm] / self.C
        g, change = np.zeros(self.K), 0.0
        # At the end of this block, insert the corrections of closed blocks that arrived since the previous one ended.
        for x, (at, size) in self.restated.items():
            since = ends[n - 1][1] if n else 0
            for k, (a, e) in enumerate(ends[: n + 1]):
                if a <= x <= e <= at and since < at <= end:
                    played, chance_then = blocks[k]
                    g[played] += size[played] / self.C / chance_then
                    change += size[played] / self.C
                    fed = fed + size / self.C
        if g.any():
            after, paid = inserted(after, g), paid + change
            price += change - dot(g, distribution(after.losses, after.rate))
        q_after = distribution(after.losses, after.rate)
        moved += done.moved if not g.any() else mass(q, distribution(done.after.losses, done.after.rate)) + mass(
            distribution(done.after.losses, done.after.rate), q_after
        )
        sums = (costs + done.cost + done.penalty, moved, price, estimated + g, fed, paid)
        self.block(ends, latest, n + 1, after, chance, blocks, *sums)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("d", "T", "beta"), [(0, 5, 0.5), (1, 6, 0.5), (2, 7, 1 / 3)])
def test_late_corrections_over_all_coins_and_arms(seed: int, d: int, T: int, beta: float) -> None:
    rng = np.random.default_rng(seed)
    # Reported too low or too high, for each arm; known one or two rounds later.
    restated = {x: (x + int(rng.integers(1, 3)), rng.uniform(-0.5, 0.5, 2)) for x in (1, 2, 3)}
    game = Restated(seed, restated, (0.0, 0.0), d, T, beta)
    assert game.chance == pytest.approx(1.0)
    # Unbiased for the corrected losses, and the price makes up for what was paid meanwhile.
    assert game.estimated == pytest.approx(game.fed, abs=TINY)
    h = 2.0 * (math.sqrt(2.0) - 1.0)
    assert game.paid - game.fed.min() <= h * game.rate + game.bound + game.corrections + TINY
    assert game.corrections != 0.0
    # If every change is known and inserted by T, this bounds the regret in the restated totals.
    early = Restated(seed, {1: (3, restated[1][1]), 2: (4, restated[2][1])}, (0.0, 0.0), 0, 5, 1.0)
    assert early.estimated == pytest.approx(early.true.sum(axis=0), abs=TINY)
    assert early.regret.max() <= h * early.rate + early.bound + early.corrections + TINY


@pytest.mark.parametrize("prior", [(0.0, 1.5), (4.0, 0.0), (0.3, 0.1)])
@pytest.mark.parametrize(("d", "T", "beta"), [(0, 5, 1.0), (1, 6, 0.5)])
def test_a_prior_over_all_coins_and_arms(d: int, T: int, beta: float, prior: Any) -> None:
    game = Restated(1, {}, prior, d, T, beta)
    assert game.estimated - np.array(prior) == pytest.approx(game.fed, abs=TINY)
    bandit = ae.MatchedTsallis(2, first_rate=game.rate, prior=prior)
    q, h = distribution(tuple(prior), game.rate), 2.0 * (math.sqrt(2.0) - 1.0)
    most = max(prior) - dot(prior, q)
    assert bandit.prior_price == pytest.approx(most + 2.0 * game.rate * (sum(map(math.sqrt, q)) - math.sqrt(2.0)))
    assert 0.0 < bandit.prior_price <= most
    factor = game.C / (1.0 - beta) ** d
    bound = d + d * game.moved + factor * (h * game.rate + game.bound + bandit.prior_price)
    assert game.regret.max() <= bound + TINY


def test_without_its_price_a_wrong_prior_breaks_the_bound() -> None:
    """So the term is needed: arm 0 costs 1 in every round, arm 1 nothing, and the prior says the opposite."""
    bandit = ae.MatchedTsallis(2, first_rate=0.01, prior=[0.0, 30.0])
    for _ in range(20):
        bandit.update(0, 1.0)
    regret = 20.0 * float(bandit.probabilities[0])
    assert regret > bandit.realised_bound() - bandit.prior_price
    assert regret < bandit.realised_bound()


@pytest.mark.parametrize("n_units", [1, 3])
def test_the_player_inserts_what_the_page_says(n_units: int) -> None:
    """A closed block is corrected while another is open; the price is as on the page, from recorded probabilities."""
    K, d = 3, 1
    rng = np.random.default_rng(n_units)
    panel = ae.Panel(ae.default_player(K, max_delay=d, direction="maximize", high=2.0, seed=3), n_units=n_units)
    bandit: Any = panel.player.bandit
    # The sums of the latest closed block, its rounds, arms and probabilities.
    closed: Any = None
    history, price, corrected, waiting = np.zeros((0, n_units)), 0.0, 0, []
    for t in range(1, 80):
        arms, before = panel.ask(), panel.probabilities
        totals = rng.uniform(0.0, 2.0, n_units)
        losses, rate = bandit.estimated_losses, bandit.learning_rate
        played = panel.tell(totals.tolist())
        history = np.vstack([history[: t - panel.block_start], totals])
        if played.update:
            if waiting:
                # Σ(δ − g·q_after): what the update alone would have given is not observable, so q_after is taken as is.
                for change, arm, q in waiting:
                    price += change * (1.0 - float(panel.probabilities[arm]) / q)
                waiting = []
            assert panel.player.corrections in (None, pytest.approx(price))
            closed = (arms, before, history[-played.measured :].sum(axis=0), played.measured)
        elif closed is not None and corrected < 6:
            then, q, sums, m = closed
            u = int(rng.integers(n_units))
            now = 0.5 * sums[u]
            change = (sums[u] - now) / (2.0 * panel.player.scale) / n_units
            probability = float(q[then[u]])
            panel.correct(unit=u, arm=then[u], probability=probability, measured=m, was=sums[u], now=now, units=n_units)
            assert (bandit.estimated_losses == losses).all()
            assert bandit.learning_rate == rate
            waiting.append((change, then[u], probability))
            closed, corrected = None, corrected + 1
    assert corrected == 6
    assert panel.counts.amended == 6
    certificate = panel.certificate()
    assert certificate.terms["corrections"] == pytest.approx(n_units * 2.0 * panel.player.factor * price)
    assert certificate.any_time is None
    assert "corrected" in certificate.if_stopped()
