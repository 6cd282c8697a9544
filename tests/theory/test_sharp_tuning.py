"""The sharper bounds as functions: by hand, against the printed ones, against numeric minimisation, and measured."""

import functools
import math
from typing import Any

import numpy as np
import pytest
from tests.refusals import refuses

import aftereffect as ae
from aftereffect import theory

GRID = [
    (K, d, T)
    for K in (2, 3, 5, 6, 50, 10_000)
    for d in (0, 1, 2, 10, 100, 10_000)
    for T in {*(max(1, (2 * d + 1) * m + e) for m in (1, 2, 30, 10_000) for e in (-1, 0, d)), 10**3, 10**5, 10**8}
]


def by_the_book(K: int, d: int, T: int, beta: float, eta: float, base: str = "tsallis", rewards: bool = False) -> float:
    """The bound of docs/theory/sharper.md, written out once more."""
    p, w = beta * (1 - beta) ** (2 * d), (2 * d + 1) / (d + 1)
    moves = 1.5 * d * p * (T - 2 * d - 1)
    head = d + d * w
    if base == "exp3":
        fed = w * (T - 2 * d) if rewards else min(T, w * (T - 2 * d))
        return head + w * math.log(K) / (eta * p) + eta * (moves * (K - 1) / K + K * fed / 2)
    C = K**0.5 if K >= 6 else 3 * K / 7
    ways = [w * (T - 2 * d) * C / eta] if rewards else [w * (T - 2 * d) * C / eta, T * C / eta + moves / eta**2]
    return head + w * 2 * eta * (K**0.5 - 1) / p + moves * 6 / 7 / eta + min(ways)


def test_by_hand() -> None:
    # d = 1, β = 1/2: p = 1/8, (2d+1)/(d+1) = 3/2. K = 9, T = 103, η = 10: C = 3, moves = 1.5·100/8 = 18.75.
    # 2.5 + 1.5·2·10·2·8 + 18.75·6/70 + min(1.5·101·3/10, 103·3/10 + 18.75/100).
    assert theory.sharp_terms(1, 103, 0.5) == (2.5, 1.5, 12.0)
    losses = 2.5 + 480 + 18.75 * 6 / 70 + 31.0875
    assert theory.tsallis_wrapper_bound(9, 1, 103, 0.5, 10.0) == pytest.approx(losses, rel=1e-14)
    rewards = 2.5 + 480 + 18.75 * 6 / 70 + 45.45
    assert theory.tsallis_wrapper_bound(9, 1, 103, 0.5, 10.0, "maximize") == pytest.approx(rewards, rel=1e-14)
    # Exp3, K = 2, η = 1/10: 2.5 + 12·10 ln 2 + (18.75/2 + 103)/10; rewards count 151.5 rounds in place of 103.
    exp3 = 2.5 + 120 * math.log(2) + 11.2375
    assert theory.exp3_wrapper_bound(2, 1, 103, 0.5, 0.1) == pytest.approx(exp3, rel=1e-14)
    assert theory.exp3_wrapper_bound(2, 1, 103, 0.5, 0.1, "maximize") == pytest.approx(exp3 + 4.85, rel=1e-14)
    assert theory.wrapper_regret_bound_sharp(1, 103, 0.5, 0.04, 8.0) == pytest.approx(2.5 + 0.75 + 96.0, rel=1e-14)
    # Without delay nothing but the base's regret is left, whatever its stability.
    assert theory.wrapper_regret_bound_sharp(0, 10, 1.0, math.inf, 4.0) == 4.0
    assert theory.tsallis_stability_sharp(3.0) == pytest.approx(2 / 7, rel=1e-15)
    assert theory.exp3_stability_sharp(5, 0.5) == pytest.approx(0.4, rel=1e-15)
    assert theory.tsallis_regret_bound_sharp(4, 70.0, 5.0) == pytest.approx(10 + 24, rel=1e-14)


def test_where_nothing_is_known() -> None:
    assert theory.tsallis_stability_sharp(0.0) == math.inf
    assert theory.tsallis_regret_bound_sharp(4, 70.5, 0.0) == 70.5
    assert theory.tsallis_wrapper_bound(2, 1, 10, 0.3, 0.0) == math.inf
    assert theory.exp3_wrapper_bound(2, 1, 10, 0.3, 0.0) == math.inf
    assert theory.tsallis_wrapper_bound(2, 1, 10, 1.0, 1.0) == math.inf
    assert theory.wrapper_regret_bound_sharp(1, 10, 1.0, 0.1, 1.0) == math.inf
    assert theory.tuning(3, 5, 10, form="sharp") == (1 / 11, 0.0, 10.0)
    assert theory.exp3_tuning_sharp(3, 5, 10)[2] == 10.0


def test_sharp_is_never_above_printed() -> None:
    rng = np.random.default_rng(0)
    for K, d, T in GRID:
        assert theory.tuned_bound(K, d, T, form="sharp") <= theory.tuned_bound(K, d, T) <= T
        if theory.most_updates(d, T) == 0:
            continue
        N = theory.most_updates(d, T)
        for _ in range(4):
            # The same β and η in both, good or bad.
            beta, eta = rng.uniform(0.01, 0.99) ** 3, 10.0 ** rng.uniform(-2, 4)
            for direction in ("minimize", "maximize"):
                xi, regret = theory.tsallis_stability(K, eta), theory.tsallis_regret_bound(K, N, eta)
                printed = theory.wrapper_regret_bound(d, T, beta, xi, regret)
                assert theory.tsallis_wrapper_bound(K, d, T, beta, eta, direction) <= printed * (1 + 1e-12)
                xi, regret = theory.exp3_stability(1 / eta), theory.exp3_regret_bound(K, N, 1 / eta)
                printed = theory.wrapper_regret_bound(d, T, beta, xi, regret)
                assert theory.exp3_wrapper_bound(K, d, T, beta, 1 / eta, direction) <= printed * (1 + 1e-12)
            mean = theory.expected_updates(d, T, beta)
            regret = theory.tsallis_regret_bound_sharp(K, mean, eta)
            general = theory.wrapper_regret_bound_sharp(d, T, beta, theory.tsallis_stability_sharp(eta), regret)
            assert theory.tsallis_wrapper_bound(K, d, T, beta, eta) <= general * (1 + 1e-12)


def test_the_constant_is_a_third_of_the_printed_one() -> None:
    c = 2 * math.sqrt(8 * math.e)
    assert 9.32 < c < 9.33
    shares = [theory.tuned_bound(*size, form="sharp") / math.sqrt((size[1] + 1) * size[0] * size[2]) for size in GRID]
    assert 9.2 < max(shares) <= c


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("base", ["tsallis", "exp3"])
@pytest.mark.parametrize(("K", "d", "T"), [(2, 0, 500), (2, 1, 10**4), (5, 3, 10**5), (50, 10, 10**6), (7, 2, 600)])
def test_tuning_is_the_minimum_over_a_grid(K: int, d: int, T: int, base: str, direction: str) -> None:
    tune = theory.tsallis_tuning_sharp if base == "tsallis" else theory.exp3_tuning_sharp
    beta, eta, bound = tune(K, d, T, direction)
    rewards = direction == "maximize"
    own = by_the_book(K, d, T, beta, eta, base, rewards)
    assert min(own, T) == pytest.approx(bound, rel=1e-13)
    brute = min(
        by_the_book(K, d, T, float(b), float(e), base, rewards)
        for b in np.linspace(0.0, 1.0, 152)[1 : None if d == 0 else -1]
        for e in eta * np.geomspace(0.2, 5.0, 101)
    )
    assert own <= brute * (1 + 1e-13)
    near = min(by_the_book(K, d, T, beta, float(e), base, rewards) for e in eta * np.geomspace(0.98, 1.02, 401))
    assert own <= near * (1 + 1e-13)


def test_players_take_the_form() -> None:
    sizes: dict[str, Any] = {"n_arms": 3, "max_delay": 2, "horizon": 10**5}
    for base, tune, bound in (
        ("tsallis", theory.tsallis_tuning_sharp, theory.tsallis_wrapper_bound),
        ("exp3", theory.exp3_tuning_sharp, theory.exp3_wrapper_bound),
    ):
        for direction in ("minimize", "maximize"):
            player = ae.CompositeLossWrapper.tuned(**sizes, base=base, form="sharp", direction=direction, high=2.0)
            beta, eta, value = tune(*sizes.values(), direction)
            assert (player.update_probability, player.bandit.learning_rate) == (beta, eta)
            assert player.regret_bound(10**5, form="sharp") == pytest.approx(2 * value, rel=1e-14)
            printed = ae.CompositeLossWrapper.tuned(**sizes, base=base, direction=direction, high=2.0)
            assert printed.regret_bound(10**5, form="sharp") < printed.regret_bound(10**5)
            rate = printed.bandit.learning_rate
            sharp = 2 * bound(*sizes.values(), 0.2, rate, direction)
            assert printed.regret_bound(10**5, form="sharp") == pytest.approx(sharp, rel=1e-14)
            assert player.regret_bound(4, form="sharp") == 8.0
    short = ae.CompositeLossWrapper.tuned(n_arms=2, max_delay=9, horizon=10, form="sharp", seed=0)
    assert (short.bandit.learning_rate, short.regret_bound(10, form="sharp")) == (0.0, 10.0)


def test_other_bases_speak_for_themselves() -> None:
    class Own(ae.TsallisFTRL):
        """A subclass may learn otherwise, so only what it says of itself counts: ⌊T/(2d+1)⌋ updates."""

    d, T, beta = 1, 30_001, 0.25
    player = ae.CompositeLossWrapper(Own(2, learning_rate=30.0), max_delay=d, coins=beta)
    own = player.bandit
    stated = theory.wrapper_regret_bound_sharp(d, T, beta, own.stability(), own.regret_bound(10_000))
    assert player.regret_bound(T, form="sharp") == pytest.approx(stated, rel=1e-14)


@pytest.mark.parametrize("base", ["tsallis", "exp3"])
@pytest.mark.parametrize(("K", "d", "T"), [(2, 0, 2_000), (2, 1, 10_000), (5, 4, 60_000), (10, 10, 200_000)])
def test_mean_regret_is_below_the_sharp_bound(base: str, K: int, d: int, T: int) -> None:
    # Bounded in the mean; 3 standard errors on top make the test stricter. Each bound is far from trivial.
    player = ae.CompositeLossWrapper.tuned(n_arms=K, max_delay=d, horizon=T, base=base, form="sharp")
    bound = player.regret_bound(T, form="sharp")
    assert bound < 0.8 * T
    worse = np.full((T, K), 0.75)
    worse[:, 1], worse[: T // 3, 0] = 0.4, 0.0
    for table in (ae.tables.iid(T, means=np.linspace(0.3, 0.7, K), seed=K), worse):
        losses = ae.spreads.random_split(table, max_delay=d, seed=d)
        sim = ae.simulate(player, losses, runs=48, seed=1, checkpoints=1)
        assert sim.mean_regret + 3.0 * sim.standard_error <= bound


TUNED = functools.partial(ae.CompositeLossWrapper.tuned, 2, max_delay=1, horizon=100)
FORMS = "form must be one of 'printed', 'sharp', but got 'blunt'"

test_bad_input = refuses([
    (lambda: TUNED().regret_bound(10, form="blunt"), FORMS),
    (lambda: TUNED(form="blunt"), FORMS),
    (lambda: theory.sharp_terms(2, 4, 0.5), "horizon must be at least 2*max_delay + 1 = 5, but got 4"),
    (lambda: theory.tsallis_tuning_sharp(2, 1, 10, "up"), "direction must be one of 'minimize', 'maximize'"),
    (lambda: theory.exp3_wrapper_bound(2, 1, 10, 0.3, -1.0), "learning_rate must be at least 0, but got -1.0"),
    (lambda: theory.tsallis_regret_bound_sharp(2, -1.0, 1.0), "rounds must be at least 0, but got -1.0"),
], plain=True)
