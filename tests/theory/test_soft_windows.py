"""docs/theory/soft_windows.md: effects that outlast the d that the player is told, over all coins and all arms."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.theory.enumeration import corner, random_components
from tests.theory.stretches import Play, arms_played
from tests.theory.test_adaptive_enumeration import signed

from aftereffect import theory
from aftereffect.core.errors import InvalidArgument

TINY = 1e-9
# n_arms, the d that is told, the longest delay, horizon, update_probability, first_rate
CASES = [
    (2, 0, 2, 4, 1.0, 0.1),
    (2, 0, 3, 4, 0.5, 0.5),
    (2, 1, 5, 6, 0.4, 0.1),
    (3, 1, 3, 5, 0.5, 0.1),
    (2, 2, 4, 7, 1 / 3, 0.5),
]
WEIGHTS = {
    "fading": lambda lags: 0.5**lags,
    "hump": lambda lags: np.minimum(lags + 1.0, len(lags) - lags),
    "late": lambda lags: 0.2 + lags,
}


class Found(NamedTuple):
    """Means over coins and arms. regret: with tails. head: without them. early, drift, fresh, moved, base: as in
    `stretches.Mean`, of what is fed. paid: the tails of the arms played. owed: the tails of each arm, always played.
    unseen, missed: what arrives after the own block, of the arms played and of each arm."""

    regret: Any
    head: Any
    early: Any
    drift: Any
    stale: Any
    fresh: Any
    moved: Any
    base: Any
    paid: Any
    owed: Any
    unseen: Any
    missed: Any


class Outlasting(Play):
    """effects[t−1, s, i] for s up to the longest delay. The player is told d, and clips totals and sums."""

    def __init__(self, effects: Any, max_delay: int, beta: float, first_rate: float, **options: Any) -> None:
        super().__init__(effects[:, : max_delay + 1], beta, first_rate, **options)
        self.effects = np.asarray(effects)
        self.always = np.array([self.observed([i] * self.T) for i in range(self.K)]).T

    def observed(self, arms: list[int]) -> Any:
        seen = np.zeros(self.T + self.effects.shape[1])
        for r in range(self.T):
            seen[r : r + self.effects.shape[1]] += self.effects[r, :, arms[r]]
        return seen[: self.T]

    def feed(self, rounds: tuple[int, ...], before: list[int]) -> tuple[Any, float, float, float]:
        _, weight, offset, top = super().feed(rounds, before)
        d, parts, losses = self.d, len(rounds) + self.d, []
        scale = 2 * d + 1 if self.windows else self.C
        for arm in range(self.K):
            totals = self.observed(before + [arm] * (self.T - len(before)))[np.array(rounds) - 1]
            whole = np.clip(totals, (d + 1) * self.lo, (d + 1) * self.hi).sum()
            best = self.lo if self.sign > 0.0 else self.hi
            whole = min(max(whole, parts * self.lo), parts * self.hi)
            losses.append(self.sign * (whole - parts * best) / ((self.hi - self.lo) * scale))
        return np.array(losses), weight, offset, top

    def show(self, stretches: Any, ends: list[int], blocks: Any, seen: Any) -> Found:
        mean = super().show(stretches, ends, blocks, seen)
        d, T = self.d, self.T
        arms = arms_played([*ends, T], blocks)
        paid, owed, unseen, missed = 0.0, np.zeros(self.K), 0.0, np.zeros(self.K)
        for r in range(1, T + 1):
            last = min((end for end in ends if end >= r), default=T + 1)
            for s in range(d + 1, min(self.effects.shape[1], T - r + 1)):
                part = self.effects[r - 1, s]
                paid, owed = paid + part[arms[r - 1]], owed + part
                if r + s - d > last:
                    unseen, missed = unseen + part[arms[r - 1]], missed + part
        regret = self.sign * (self.observed(arms)[:, None] - self.always).sum(axis=0)
        return Found(
            regret, mean.regret, mean.early, mean.drift, mean.stale, mean.fresh, mean.moved, mean.base,
            paid, owed, unseen, missed,
        )  # fmt: skip

    def found(self) -> Found:
        return Found(*self.averages())


def check(game: Outlasting, found: Found) -> float:
    """The tail theorem and its steps; returns its share of the bound's tail term that was needed."""
    d, beta, span = game.d, game.beta, game.hi - game.lo
    factor, losses = span * game.C / (1.0 - beta) ** d, game.sign > 0.0
    assert found.head == pytest.approx(found.early + found.drift + found.stale, abs=TINY)
    assert found.early.max() <= d * span + TINY
    assert (found.drift <= d * found.moved * span + TINY).all()
    fed = found.owed - found.missed + found.unseen if losses else found.paid
    assert (found.stale <= factor * found.fresh + fed + TINY).all()
    assert (found.fresh <= found.base + TINY).all()
    price = 2.0 * found.paid if losses else found.owed
    bound = span * theory.stretch_certificate(d, beta, found.moved[0], found.base[0])
    assert (found.regret <= bound + price + TINY).all()
    worst = span * theory.stretch_worst_case(game.K, d, game.T, beta, game.first_rate)
    tail = game.effects[:, d + 1 :].sum(axis=1).max(axis=1).sum()
    direction = "minimize" if losses else "maximize"
    assert found.regret.max() <= span * theory.tail_bound(worst / span, tail / span, direction) + TINY
    assert (price <= (2.0 if losses else 1.0) * tail + TINY).all()
    exact = found.early + found.drift + factor * found.fresh
    return float(((found.regret - exact) / np.maximum(price, TINY)).max())


@pytest.mark.parametrize(("K", "d", "longest", "T", "beta", "rate"), CASES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_tails_cost_what_the_theorem_says(
    sign: float, K: int, d: int, longest: int, T: int, beta: float, rate: float
) -> None:
    rng = np.random.default_rng(longest + 10 * d)
    parts, reached = random_components(rng, T, longest, K), -math.inf
    for _ in range(5):
        trial = corner(rng, parts)
        share = check(game := Outlasting(trial, d, beta, rate, sign=sign), game.found())
        if share > reached:
            parts, reached = trial, share
    # The price is not a formality: some of it is needed.
    assert reached > 0.0


@pytest.mark.parametrize(("K", "d", "longest", "T", "beta", "rate"), CASES)
@pytest.mark.parametrize("windows", [False, True])
def test_effects_of_either_sign_and_windows(
    windows: bool, K: int, d: int, longest: int, T: int, beta: float, rate: float
) -> None:
    rng = np.random.default_rng(T)
    parts = random_components(rng, T, longest, K) if windows else signed(rng, T, longest, K)
    lo, certificate = (0.0, theory.window_certificate) if windows else (-0.5, theory.stretch_certificate)
    for sign in (1.0, -1.0):
        game = Outlasting(parts, d, beta, rate, lo=lo, sign=sign, windows=windows)
        found = game.found()
        tails = np.abs(parts[:, d + 1 :])
        price = 2.0 * tails.max(axis=2).sum() if windows else 5.0 * tails.sum(axis=1).max(axis=1).sum()
        assert (found.fresh <= found.base + TINY).all()
        bound = certificate(d, beta, found.moved[0], found.base[0])
        assert found.regret.max() <= (game.hi - game.lo) * bound + price + TINY


@pytest.mark.parametrize(("K", "d", "longest", "T", "beta", "rate"), CASES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_without_clipping_only_what_the_own_block_misses_is_left(
    sign: float, K: int, d: int, longest: int, T: int, beta: float, rate: float
) -> None:
    # A tenth of an effect in each round: no total and no sum is out of range.
    parts = np.random.default_rng(d).random((T, longest + 1, K)) / 10.0
    game = Outlasting(parts, d, beta, rate, sign=sign)
    found = game.found()
    exact = found.early + found.drift + game.C / (1.0 - beta) ** d * found.fresh
    assert found.regret == pytest.approx(exact + sign * (found.unseen - found.missed), abs=TINY)


@pytest.mark.parametrize(("K", "d", "longest", "T", "beta", "rate"), CASES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_only_differences_between_arms_in_what_comes_late_cost(
    sign: float, K: int, d: int, longest: int, T: int, beta: float, rate: float
) -> None:
    # The same effects in every round, of either sign; none is out of range.
    rng = np.random.default_rng(longest)
    effects = (rng.random((longest + 1, K)) - 0.5) / 10.0
    left = np.append(effects[:0:-1].cumsum(axis=0)[::-1], np.zeros((1, K)), axis=0)
    price, ends = theory.late_price(np.ptp(left, axis=1), d, beta)
    for common in (0.0, 0.03 * rng.random((longest + 1, 1))):
        game = Outlasting(np.tile(effects + common, (T, 1, 1)), d, beta, rate, lo=-1.0, sign=sign)
        found = game.found()
        assert (sign * (found.unseen - found.missed) <= price * T + ends + TINY).all()
        bound = (game.hi - game.lo) * theory.stretch_certificate(d, beta, found.moved[0], found.base[0])
        assert (found.regret <= bound + price * T + ends + TINY).all()


@pytest.mark.parametrize(("d", "beta"), [(0, 1.0), (0, 0.3), (1, 0.5), (2, 0.25), (3, 0.1)])
def test_the_share_that_an_effect_is_seen(d: int, beta: float) -> None:
    # In 9 coins B_1, ..., the rounds from d + 1 on are like any others.
    game = Play(np.zeros((9, d + 1, 2)), beta, 1.0)
    for s in range(10 - d):
        clear = sum(
            chance
            for stretches, chance in game.schedules().items()
            if not any(d < end < d + 1 + max(s - d, 0) for end, _ in stretches)
        )
        assert theory.seen_share(np.eye(10 - d)[s], d, beta) == pytest.approx(clear)


@pytest.mark.parametrize(("K", "d", "longest", "T", "beta", "rate"), CASES)
@pytest.mark.parametrize("kind", WEIGHTS)
def test_effects_that_are_spread_alike(
    kind: str, K: int, d: int, longest: int, T: int, beta: float, rate: float
) -> None:
    rng = np.random.default_rng(longest)
    lags = np.arange(longest + 1)
    weights = WEIGHTS[kind](lags)
    weights /= weights.sum()
    for sign in (1.0, -1.0):
        table = np.round(rng.random((T, 1, K)))
        found = Outlasting(table * weights[:, None], d, beta, rate, sign=sign).found()
        share = theory.seen_share(weights, d, beta)
        larger = max(share, 1.0 - share)
        within = larger * d * (1.0 + found.moved) + theory.stretch_scale(d, beta) / (1.0 - beta) ** d * found.fresh
        ends = theory.alike_bound(0.0, weights, d, beta)
        assert 0.0 <= ends <= weights @ lags + TINY
        assert (found.regret <= within / share + ends + TINY).all()
        certificate = theory.stretch_certificate(d, beta, found.moved[0], found.base[0])
        assert found.regret.max() <= theory.alike_bound(certificate, weights, d, beta) + TINY


@pytest.mark.parametrize(("d", "beta"), [(0, 0.5), (1, 0.4), (2, 1 / 3)])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_a_base_that_never_moves_is_fed_the_seen_share_of_the_regret(kind: str, d: int, beta: float) -> None:
    T, lags = 5, np.arange(4)
    weights = WEIGHTS[kind](lags) / WEIGHTS[kind](lags).sum()
    table = np.random.default_rng(d).random((T, 1, 2))
    table[:d] = 0.0
    game = Outlasting(table * weights[:, None], d, beta, first_rate=1e9)
    found = game.found()
    kept = [weights[: T - t] for t in range(T)]
    seen = [theory.seen_share(part, d, beta) * part.sum() for part in kept]
    gaps = table[:, 0].mean(axis=1, keepdims=True) - table[:, 0]
    assert found.regret == pytest.approx([part.sum() for part in kept] @ gaps, abs=1e-6)
    assert game.C / (1.0 - beta) ** d * found.fresh == pytest.approx(seen @ gaps, abs=1e-6)


def test_arguments() -> None:
    assert theory.alike_bound(1.0, [0.0, 1.0], 0, 1.0) == math.inf
    assert theory.tail_bound(math.inf, 1.0) == math.inf
    for weights in ([], [0.0], [0.6, 0.6], [-0.1, 0.5], [[0.5]]):
        with pytest.raises(InvalidArgument, match="weights must"):
            theory.seen_share(weights, 0, 1.0)
    with pytest.raises(InvalidArgument, match="direction must be one of"):
        theory.tail_bound(1.0, 1.0, "up")
