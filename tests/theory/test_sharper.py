"""docs/theory/sharper.md, step by step: each identity and inequality of the proof, over all coins and all arms.

Nothing is sampled from the player here; losses are drawn at random and then made worse by a search. Beside each
inequality stands how near the search comes to it: a bound that nothing comes near would be tested by nothing.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.theory.enumeration import Exp3, Game, Switch, Terms, Tsallis, corner, random_components

from aftereffect import theory

# n_arms, max_delay, horizon, update_probability, learning_rate
CASES = [
    (2, 0, 7, 1.0, 0.7),
    (2, 0, 6, 0.4, 3.0),
    (3, 0, 5, 0.7, 1.0),
    (2, 1, 3, 0.3, 1.0),
    (2, 1, 10, 1 / 3, 3.0),
    (3, 1, 8, 0.5, 0.5),
    (2, 2, 5, 0.2, 1.0),
    (2, 2, 10, 0.2, 30.0),
    (3, 2, 10, 0.1, 3.0),
]
SEARCHED = [(2, 1, 7, 1 / 3, 0.5), (2, 1, 7, 1 / 3, 30.0), (3, 1, 6, 0.3, 30.0), (2, 2, 9, 0.2, 30.0)]


def boundary(d: int) -> float:
    return d * (3 * d + 2) / (d + 1)


def check(game: Game, terms: Terms) -> None:
    """Every identity, up to rounding, and every inequality of the proof."""
    K, d, T, p, eta = game.K, game.d, game.T, game.p, game.base.eta
    w, tiny = (2 * d + 1) / (d + 1), 1e-12
    assert terms.chance == pytest.approx(1.0, rel=1e-12)
    assert terms.updates == pytest.approx(p * (T - 2 * d), abs=tiny)
    assert terms.regret == pytest.approx(terms.boundary + terms.drift + w * terms.stale, abs=tiny)
    assert terms.fresh == pytest.approx(p * terms.stale, abs=tiny)
    assert terms.boundary.max() <= boundary(d) + tiny
    assert terms.drift <= 1.5 * d * terms.moved + tiny
    if isinstance(game.base, Switch):
        return
    tsallis = isinstance(game.base, Tsallis)
    xi = 6 / (7 * eta) if tsallis else eta * (1 - 1 / K)
    penalty = 2 * eta * (math.sqrt(K) - 1) if tsallis else math.log(K) / eta
    unit = min(math.sqrt(K), 3 * K / 7) / eta if tsallis else eta * K / 2
    late = 1.5 * d * p * (T - 2 * d - 1) / eta**2 if tsallis else 0.0
    assert terms.moved <= xi * p * (T - 2 * d - 1) + tiny
    assert terms.fresh.max() <= penalty + terms.price + tiny
    assert terms.price <= p * (T - 2 * d) * unit + tiny
    if game.sign > 0.0:
        assert w * terms.price / p <= T * unit + late + tiny
    bound = theory.tsallis_wrapper_bound if tsallis else theory.exp3_wrapper_bound
    direction = "minimize" if game.sign > 0.0 else "maximize"
    assert terms.regret.max() <= bound(K, d, T, game.beta, eta, direction)


@pytest.mark.parametrize(("K", "d", "T", "beta", "eta"), CASES)
@pytest.mark.parametrize("base", [Tsallis, Exp3])
def test_every_step_on_random_losses(base: Any, K: int, d: int, T: int, beta: float, eta: float) -> None:
    rng = np.random.default_rng(K + 10 * d + T)
    for components in (random_components(rng, T, d, K), np.round(random_components(rng, T, d, K))):
        for rewards in (False, True):
            game = Game(components, base(eta if base is Tsallis else 1.0 / eta), beta, rewards)
            check(game, game.terms())


def drift_share(game: Game, terms: Terms) -> float:
    return terms.drift / (1.5 * game.d * terms.moved) if terms.moved > 0.0 else 0.0


def moved_share(game: Game, terms: Terms) -> float:
    moves = game.p * (game.T - 2 * game.d - 1)
    return terms.moved / (moves * 6 / (7 * game.base.eta))


def price_share(game: Game, terms: Terms) -> float:
    d, T, p, eta = game.d, game.T, game.p, game.base.eta
    most = T * theory.price_factor(game.K) / eta + 1.5 * d * p * (T - 2 * d - 1) / eta**2
    return (2 * d + 1) / (d + 1) * terms.price / p / most


def boundary_share(game: Game, terms: Terms) -> float:
    return float(terms.boundary.max()) / boundary(game.d)


def regret_share(game: Game, terms: Terms) -> float:
    return float(terms.regret.max()) / theory.tsallis_wrapper_bound(game.K, game.d, game.T, game.beta, game.base.eta)


# What each search reaches in at least one of the cases; no share may pass 1, in any of them.
REACHED = {drift_share: 0.3, moved_share: 0.6, price_share: 0.5, boundary_share: 0.4, regret_share: 0.05}


@pytest.mark.parametrize("share", REACHED)
def test_every_step_on_searched_losses(share: Callable[[Game, Terms], float]) -> None:
    found = []
    for K, d, T, beta, eta in SEARCHED:
        rng = np.random.default_rng(T)
        components, best = random_components(rng, T, d, K), -math.inf
        for _ in range(100):
            trial = corner(rng, components)
            game = Game(trial, Tsallis(eta), beta)
            terms = game.terms()
            check(game, terms)
            if share(game, terms) >= best:
                components, best = trial, share(game, terms)
        found.append(best)
    assert REACHED[share] < max(found) <= 1.0


def test_rewards_pay_the_full_price() -> None:
    # Nothing is ever earned, so each update is fed 1: more than the price of losses, which counts each loss once.
    game = Game(np.zeros((12, 2, 3)), Tsallis(30.0), 1 / 3, rewards=True)
    terms = game.terms()
    check(game, terms)
    assert price_share(game, terms) > 1.05


def test_the_boundary_is_attained() -> None:
    # Arms 0 and 1 cost 1 per play, charged where the round counts least in windows; arm 2 costs nothing.
    for d, T in ((1, 7), (2, 9)):
        share = [sum(not 2 * d < tau <= T for tau in range(t, t + d + 1)) for t in range(1, T + 1)]
        components = np.zeros((T, d + 1, 3))
        for rho in range(T):
            s = int(np.argmax(share[rho : rho + d + 1]))
            components[rho, s, :2] = 1.0
        game = Game(components, Switch(), 1 / (2 * d + 1))
        terms = game.terms()
        check(game, terms)
        assert terms.boundary[2] == pytest.approx(boundary(d), rel=1e-12)


def test_the_drift_is_attained() -> None:
    # d = 1, T = 5, β = 1/2: the first update, which moves all mass to arm 1, is in round 3 or 4, each with chance 1/8.
    # After round 3, play 4 is in the windows of rounds 4 and 5 and play 5 in that of 5: 3 half rounds, 3d/2 rounds.
    # After round 4, play 5 is in the window of round 5: half a round.
    components = np.zeros((5, 2, 2))
    components[:, 0, 1] = 1.0
    terms = Game(components, Switch(), 0.5).terms()
    assert (terms.moved, terms.drift) == pytest.approx((0.25, (1.5 + 0.5) / 8), rel=1e-12)


@functools.cache
def states() -> list[tuple[Any, float]]:
    """Distributions from all but uniform to all but a corner, with rates from greedy to cautious."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(1200):
        q = rng.dirichlet(np.full(rng.integers(2, 9), 10.0 ** rng.uniform(-1.0, 1.5))) + 1e-7
        found.append((q / q.sum(), 10.0 ** rng.uniform(-1.5, 2.5)))
    # Where the inequalities are nearly attained: one arm of 0.309, a uniform three, a tiny arm.
    found += [(np.array(q), 1e3) for q in ([0.309, 0.691], [1 / 3] * 3, [0.0005, 0.9995], [0.5, 0.5])]
    return found


def test_stability_and_price_of_tsallis_in_every_state() -> None:
    reached = {"price": 0.0, "moved": 0.0, "root": 0.0}
    for q, eta in states():
        base, weights = Tsallis(eta), tuple((eta / np.sqrt(q)).tolist())
        moved = 0.0
        for arm, chance in enumerate(q.tolist()):
            after = base.q(base.learn(weights, arm, 1.0))
            assert after.sum() == pytest.approx(1.0, rel=1e-12)
            mass = float(np.maximum(after - q, 0.0).sum())
            # Only the arm that was played falls; with s = 1/(η√q), it keeps a share of at least (1+s)^{−2}.
            assert (np.delete(after - q, arm) >= -1e-12).all()
            assert mass <= chance * (1.0 - (1.0 + 1.0 / (eta * math.sqrt(chance))) ** -2) + 1e-12
            assert mass <= min(2.0 * math.sqrt(chance), 6 / 7) / eta + 1e-12
            moved += chance * mass
            root = (math.sqrt(chance) - math.sqrt(after[arm])) * eta
            price = base.price(weights, arm, 1.0) * chance * eta / min(math.sqrt(chance), 3 / 7)
            half = base.price(weights, arm, 0.5) * chance * eta / min(math.sqrt(chance), 3 / 7)
            # The price grows with the loss, faster than in proportion.
            assert half <= price / 2 + 1e-9
            reached["price"], reached["root"] = max(reached["price"], price), max(reached["root"], root)
        reached["moved"] = max(reached["moved"], moved * eta)
    assert 0.98 < reached["price"] <= 1.0 + 1e-9
    assert 0.9 < reached["root"] <= 1.0 + 1e-9
    assert 0.76 < reached["moved"] <= 6 / 7


def test_stability_and_price_of_exp3_in_every_state() -> None:
    reached = {"price": 0.0, "moved": 0.0}
    for q, rate in states():
        base, weights = Exp3(1.0 / rate), tuple((-rate * np.log(q)).tolist())
        moved = 0.0
        for arm, chance in enumerate(q.tolist()):
            after = base.q(base.learn(weights, arm, 1.0))
            moved += chance * float(np.maximum(after - q, 0.0).sum())
            reached["price"] = max(reached["price"], base.price(weights, arm, 1.0) * chance * rate * 2.0)
        reached["moved"] = max(reached["moved"], moved * rate / (1.0 - 1.0 / len(q)))
    assert 0.93 < reached["price"] <= 1.0 + 1e-9
    assert 0.97 < reached["moved"] <= 1.0 + 1e-9


def test_three_sevenths() -> None:
    # h(q)/q = x/((1+x³)√(1+x²)) with x = √(q/(1−q)); its derivative has the sign of 1 − 2x³ − 3x⁵.
    x = 0.66885
    assert 2 * x**3 + 3 * x**5 == pytest.approx(1.0, abs=2e-4)
    assert 0.42790 < x / ((1 + x**3) * math.sqrt(1 + x**2)) < 0.42792 < 3 / 7
    for q in np.linspace(0.001, 0.5, 500):
        h = 1.0 / (q**-1.5 + (1.0 - q) ** -1.5)
        assert h / q <= 0.42792
        assert h <= 2.0**-2.5 + 1e-15
