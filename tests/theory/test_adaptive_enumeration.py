"""docs/theory/adaptive.md, sections 7 to 10: regret under composite anonymous feedback, over all coins and all arms.

Each identity and each inequality is asserted on random components and on components made worse by a search.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.theory.enumeration import corner, random_components
from tests.theory.stretches import Mean, Play, arms_played

from aftereffect import theory

TINY = 1e-9
# n_arms, max_delay, horizon, update_probability, first_rate
CASES = [
    (2, 0, 6, 0.5, 0.5),
    (3, 0, 5, 1.0, 0.1),
    (2, 1, 8, 0.5, 0.5),
    (2, 1, 8, 0.25, 5.0),
    (2, 1, 2, 0.4, 0.1),
    (3, 1, 6, 0.5, 0.1),
    (2, 2, 8, 1 / 3, 0.5),
    (2, 2, 8, 0.2, 0.05),
    (2, 3, 8, 0.25, 1.0),
    (2, 3, 3, 0.25, 1.0),
]


def check(game: Play, mean: Mean) -> None:
    """Every step of the proof for stretches."""
    K, d, T, beta, span = game.K, game.d, game.T, game.beta, game.hi - game.lo
    clean, M = (1.0 - beta) ** d, sum(t > d for t in game.missing)
    assert mean.chance == pytest.approx(1.0)
    assert mean.regret == pytest.approx(mean.early + mean.drift + mean.stale, abs=TINY)
    assert clean * mean.stale == pytest.approx(span * game.C * (mean.fresh + mean.void), abs=TINY)
    assert mean.early.max() <= d * span + TINY
    assert (mean.drift <= d * mean.moved * span + TINY).all()
    assert game.C * mean.void.max() <= clean * (d + 2.0 / beta - 1.0) * M + TINY
    if not M:
        begun = clean * (1.0 + beta * (T - d - 1)) if d < T else 0.0
        assert (mean.squares <= begun + TINY).all()
        assert mean.updates == pytest.approx(beta * clean * max(T - d - 1, 0), abs=TINY)
        assert (mean.moved <= theory.adaptive_mass_moved(K, mean.updates[0], begun, game.first_rate) + TINY).all()
        assert mean.fresh.max() <= theory.adaptive_regret_bound(K, begun, game.first_rate) + TINY
        worst = theory.stretch_worst_case(K, d, T, beta, game.first_rate)
        assert mean.regret.max() <= span * worst + TINY
    for base in (mean.base, mean.virtual, mean.plug_in):
        assert (mean.fresh <= base + TINY).all()
        bound = theory.stretch_certificate(d, beta, mean.moved[0], base[0], missing=M)
        assert mean.regret.max() <= span * bound + TINY
    assert (mean.plug_in <= mean.base + TINY).all()


def check_windows(game: Play, mean: Mean) -> None:
    """The same for windows, whose own steps are those of docs/theory/sharper.md."""
    d, T, beta, span, p = game.d, game.T, game.beta, game.hi - game.lo, theory.update_rate(game.d, game.beta)
    for base in (mean.base, mean.plug_in):
        assert (mean.fresh <= base + TINY).all()
        bound = theory.window_certificate(d, beta, mean.moved[0], base[0], missing=len(game.missing))
        assert mean.regret.max() <= span * bound + TINY
    assert (mean.plug_in <= mean.base + TINY).all()
    if not game.missing:
        assert mean.squares == pytest.approx(p * (T - 2 * d))
        worst = theory.window_worst_case(game.K, d, T, beta, game.first_rate)
        assert mean.regret.max() <= span * worst + TINY


def signed(rng: np.random.Generator, T: int, d: int, K: int) -> Any:
    """Effects that change sign, every contiguous part within [−0.5, 1], one of them at an end."""
    parts = rng.uniform(-1.0, 1.0, (T, d + 1, K))
    sums = [parts[:, a:b].sum(axis=1) for a in range(d + 1) for b in range(a + 1, d + 2)]
    return parts / max(max(-2.0 * x.min(), x.max()) for x in sums)


@pytest.mark.parametrize(("K", "d", "T", "beta", "rate"), CASES)
@pytest.mark.parametrize("kind", ["losses", "corners", "rewards", "signed", "signed rewards"])
def test_every_step_for_stretches(kind: str, K: int, d: int, T: int, beta: float, rate: float) -> None:
    rng = np.random.default_rng(T + 10 * d)
    parts = signed(rng, T, d, K) if "signed" in kind else random_components(rng, T, d, K)
    parts = np.round(parts) if kind == "corners" else parts
    lo, sign = (-0.5 if "signed" in kind else 0.0), (-1.0 if "rewards" in kind else 1.0)
    for exact in (True, False):
        game = Play(parts, beta, rate, lo=lo, sign=sign, exact=exact)
        check(game, game.means())


@pytest.mark.parametrize("missing", [(3,), (4, 5), (1, 7), (2, 3, 4, 5, 6, 7)])
@pytest.mark.parametrize(("d", "beta"), [(1, 0.5), (2, 1 / 3)])
@pytest.mark.parametrize("windows", [False, True])
def test_rounds_that_are_missing(windows: bool, d: int, beta: float, missing: tuple[int, ...]) -> None:
    rng = np.random.default_rng(d)
    for parts in (random_components(rng, 8, d, 2), np.ones((8, 1, 2)) * np.eye(d + 1)[0][None, :, None] * [0.0, 1.0]):
        game = Play(parts, beta, 0.1, missing=missing, windows=windows)
        (check_windows if windows else check)(game, game.means())


class Late(Play):
    """The report of round t is known from round t + late[t] on; `updates` is the number of void updates."""

    late: dict[int, float]

    def heard(self, rounds: tuple[int, ...]) -> bool:
        return not any(rounds[-1] < t + self.late.get(t, 0.0) for t in rounds)

    def show(self, stretches: Any, ends: Any, blocks: Any, seen: Any) -> Any:
        found = super().show(stretches, ends, blocks, seen)
        void = sum(not self.heard(rounds) for t, rounds in stretches if t <= self.T)
        # A stretch open at T has the price of every open stretch, also if it is void.
        last, rounds = stretches[-1] if stretches else (0, ())
        added = (len(rounds) + self.d) / self.C if last > self.T and not self.heard(rounds) else 0.0
        return found._replace(updates=void, base=found.base + added)


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize(("d", "T", "beta"), [(0, 5, 0.4), (1, 7, 0.5), (1, 7, 0.2), (2, 8, 1 / 3)])
def test_the_price_of_what_is_void(d: int, T: int, beta: float, windows: bool) -> None:
    rng = np.random.default_rng(10 * d + T)
    clean = (1.0 - beta) ** d
    for _ in range(4):
        game = Late(np.zeros((11, d + 1, 2)), beta, 0.1, windows=windows)
        game.late = {t: float(rng.choice([0.0, 1.0, 2.0, 5.0, math.inf])) for t in range(1, 12)}
        ended = [
            (chance, [len(rounds) for t, rounds in stretches if t <= game.T and not game.heard(rounds)])
            for stretches, chance in game.schedules().items()
        ]
        number = math.fsum(chance * len(void) for chance, void in ended)
        if not windows:
            length = math.fsum(chance * sum(m + d for m in void) for chance, void in ended)
            assert 0.0 < length <= (d + 2.0 / beta - 1.0) * number + TINY
        game = Late(random_components(rng, T, d, 2), beta, 0.1, windows=windows)
        game.late = {t: float(rng.choice([0.0, 1.0, 2.0, math.inf], p=[0.4, 0.2, 0.2, 0.2])) for t in range(1, T + 1)}
        mean = game.means()
        if windows:
            price = theory.sharp_terms(d, 2 * d + 1, beta).per_regret
            bound = theory.window_certificate(d, beta, mean.moved[0], mean.base[0]) + price * mean.updates[0]
        else:
            price = (d + 2.0 / beta - 1.0) / clean
            bound = theory.stretch_certificate(d, beta, mean.moved[0], mean.base[0]) + price * mean.updates[0]
        assert mean.regret.max() <= bound + TINY


@pytest.mark.parametrize(("K", "d", "T", "beta", "rate"), [case for case in CASES if case[2] > 2 * case[1]])
@pytest.mark.parametrize("kind", ["losses", "rewards", "signed"])
def test_certificate_and_worst_case_for_windows(kind: str, K: int, d: int, T: int, beta: float, rate: float) -> None:
    rng = np.random.default_rng(T + 10 * d)
    parts = signed(rng, T, d, K) if kind == "signed" else random_components(rng, T, d, K)
    sign = -1.0 if kind == "rewards" else 1.0
    game = Play(parts, beta, rate, lo=-0.5 if kind == "signed" else 0.0, sign=sign, windows=True)
    check_windows(game, game.means())


class Split(NamedTuple):
    """Means of the terms of (1) in docs/theory/sharper.md, in units of effects; regret and moved: as in `Mean`.

    ends: Σ v_t c_t. mixed: term I, over all windows. heard, void: term II over windows that are not void, and over void
    windows. fed: (ℓ̃(I) − ℓ̃(i)) over updates.
    """

    regret: Any
    moved: Any
    ends: Any
    mixed: Any
    heard: Any
    void: Any
    fed: Any


class Windows(Play):
    """Algorithm 1 fed windows, with the terms of its proof computed from their definitions."""

    def reach(self, play: int, window: int) -> Any:
        """The part of a play that arrives in a window, for every arm."""
        first, last = max(window - self.d - play, 0), min(window - play, self.d)
        return self.parts[play - 1, first : max(last + 1, first)].sum(axis=0)

    def show(self, stretches: Any, ends: Any, blocks: Any, seen: Any) -> Any:
        d, T = self.d, self.T
        arms = arms_played([*ends, T], blocks)
        gained = self.totals(arms)[:, None] - self.rho
        outside = [(min(d + 1, max(2 * d + 1 - t, 0)) + max(t + d - T, 0)) / (d + 1) for t in range(1, T + 1)]
        mixed, heard, void, fed = (np.zeros(self.K) for _ in range(4))
        for window in range(2 * d + 1, T + 1):
            rounds, old = tuple(range(window - d, window + 1)), arms[window - 2 * d - 1]
            for play in range(window - 2 * d, window + 1):
                part = self.reach(play, window)
                mixed += (part[arms[play - 1]] - part[old]) / (d + 1)
            whole = self.rho[window - d - 1 : window].sum(axis=0) / (2 * d + 1)
            into = heard if self.heard(rounds) else void
            into += whole[old] - whole
            if window in ends:
                fed += whole[old] - whole
        return Split(gained.sum(axis=0), seen[1], np.array(outside) @ gained, mixed, heard, void, fed)


def test_signed_effects_with_missing_rounds_for_windows() -> None:
    # d = 3: an update in round 7, a play in round 8, and round 9 is missing.
    d, T, missing, span = 3, 13, 9, 2.0
    worst = np.array([1.0, -1.0, 1.0, 0.0])
    parts = np.zeros((T, d + 1, 2))
    parts[:7, 0] = [1.0, -1.0]
    parts[7:] = np.stack([-worst, worst], axis=1)
    # Over all windows the weights of the components are monotone, over those that are not void they are not.
    for windows, weights in ((range(8, 14), [4, 4, 4, 3]), ((8, 13), [1, 0, 1, 1])):
        assert [sum(0 <= window - 8 - s <= d for window in windows) for s in range(d + 1)] == weights
    assert np.array([1, 0, 1, 1]) @ worst == 2.0
    beta = 1 / 7
    p = theory.update_rate(d, beta)
    for components in (parts, -parts, signed(np.random.default_rng(4), T, d, 2)):
        game = Windows(components, beta, 0.1, lo=-1.0, missing=(missing,), windows=True)
        found = Split(*game.averages())
        factor = (2 * d + 1) / (d + 1)
        assert found.regret == pytest.approx(found.ends + found.mixed + factor * (found.heard + found.void), abs=TINY)
        assert found.ends.max() <= span * d * (3 * d + 2) / (d + 1) + TINY
        assert found.mixed.max() <= span * 1.5 * d * found.moved[0] + TINY
        assert found.void.max() <= span * (d + 1) + TINY
        assert p * found.heard == pytest.approx(found.fed, abs=TINY)
    assert found.moved[0] > 0.0


def drift_share(game: Play, mean: Mean) -> float:
    return float((mean.drift / (game.d * mean.moved)).max()) if mean.moved[0] > 0.0 else 0.0


def base_share(game: Play, mean: Mean) -> float:
    return float((mean.fresh / mean.plug_in).max())


def regret_share(game: Play, mean: Mean) -> float:
    return float(mean.regret.max()) / theory.stretch_certificate(game.d, game.beta, mean.moved[0], mean.plug_in[0])


def squares_share(game: Play, mean: Mean) -> float:
    return float(mean.fresh.max()) / theory.adaptive_regret_bound(game.K, float(mean.squares[0]), game.first_rate)


# What each search reaches in at least one case; none may pass 1.
REACHED = {drift_share: 0.15, base_share: 0.3, regret_share: 0.1, squares_share: 0.05}


@pytest.mark.parametrize("share", REACHED)
def test_every_step_on_searched_losses(share: Callable[[Play, Mean], float]) -> None:
    found = []
    for K, d, T, beta, rate in ((2, 1, 6, 0.5, 0.05), (2, 2, 7, 1 / 3, 0.5)):
        rng = np.random.default_rng(T)
        parts, best = random_components(rng, T, d, K), -math.inf
        for _ in range(30):
            trial = corner(rng, parts)
            game = Play(trial, beta, rate)
            mean = game.means()
            check(game, mean)
            if share(game, mean) >= best:
                parts, best = trial, share(game, mean)
        found.append(best)
    assert REACHED[share] < max(found) <= 1.0


class Means(Play):
    """The same game, with the mean of a stretch in place of its sum."""

    def feed(self, rounds: tuple[int, ...], before: list[int]) -> tuple[Any, float, float, float]:
        losses, weight, offset, top = super().feed(rounds, before)
        return losses / len(rounds), weight / len(rounds), offset, top


def test_the_mean_of_a_stretch_says_something_else_than_its_sum() -> None:
    # Fed sums, the base's regret is C⁻¹(1−β)^d times the stale regret, against every arm. Means have no such factor.
    parts = random_components(np.random.default_rng(1), 8, 1, 2)
    sums, means = Play(parts, 0.5, 0.05).means(), Means(parts, 0.5, 0.05).means()
    assert sums.fresh / sums.stale == pytest.approx([0.5 / math.sqrt(11.0)] * 2)
    first, second = means.fresh / means.stale
    assert abs(first - second) > 0.005 * abs(first)
