"""Worlds at human scale: their effects, paths and changes against what the page says of them, by second formulas."""

from typing import Any

import numpy as np
import pytest
from tests.refusals import refuses

import aftereffect as ae
from aftereffect.losses.year import CHANGES, CURVES, PATHS


@pytest.mark.parametrize("curves", CURVES)
@pytest.mark.parametrize("n_arms", [2, 4, 6])
def test_the_best_arm_is_ahead_by_the_gap_and_all_effects_end(curves: str, n_arms: int) -> None:
    world = ae.year(seed=n_arms, n_arms=n_arms, curves=curves, gap=0.15, noise=0.0)
    ordered = np.sort(world.means)[::-1]
    assert ordered[0] - ordered[1] == pytest.approx(0.15)
    assert ordered[1] == pytest.approx(0.4)
    assert n_arms == 2 or ordered[-1] == pytest.approx(0.25)
    # Without noise, components are the curves: their sums are the means, and totals settle at the mean of an arm.
    assert world.components()[3].sum(axis=0) == pytest.approx(world.means)
    assert world.arm_totals()[200] == pytest.approx(world.means)


def test_curves_have_the_shapes_of_their_names() -> None:
    alike, apart, last, negative = (ae.year(seed=5, curves=name, noise=0.0) for name in CURVES)
    shares = alike.params.curves / alike.means[:, np.newaxis]
    assert np.ptp(shares, axis=0).max() < 1e-12
    assert shares[0, 3] / shares[0, 0] == pytest.approx(0.5), "the half-life is 3 rounds"
    ratios = apart.params.curves[:, 1] / apart.params.curves[:, 0]
    assert len(set(ratios.round(6))) == 4
    assert (ratios >= 0.5 ** (1 / 1.5)).all()
    assert (ratios <= 0.5 ** (1 / 6)).all()
    best = last.best_arm()
    assert last.params.curves[best, :7].max() == 0.0
    assert (np.delete(last.params.curves, best, axis=0)[:, 0] > 0.1 * np.delete(last.means, best)).all()
    best = negative.best_arm()
    assert (np.delete(negative.params.curves, best, axis=0).min(axis=1) < 0.0).all()
    assert negative.params.curves[best].min() > 0.0


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("change", CHANGES)
def test_every_effect_lies_in_the_range_that_is_stated(path: str, change: str) -> None:
    world = ae.year(seed=3, path=path, change=change, curves="negative")
    world.checked = False
    world.check()
    assert world.checked


def test_paths_are_what_their_names_say() -> None:
    def path(kind: str, horizon: int = 20_000) -> Any:
        return ae.year(seed=2, horizon=horizon, path=kind, noise=0.2).params.path

    white, ar = path("white"), path("ar")
    # Five standard errors: of a standard deviation σ/√(2n), of a correlation about 1/√n.
    assert white.std() == pytest.approx(0.2, abs=5 * 0.2 / np.sqrt(40_000))
    assert abs(np.corrcoef(white[1:], white[:-1])[0, 1]) < 5 / np.sqrt(20_000)
    assert np.corrcoef(ar[1:], ar[:-1])[0, 1] == pytest.approx(0.7, abs=5 / np.sqrt(20_000))
    assert ar.std() == pytest.approx(0.2, rel=0.1)
    week = path("season").reshape(-1, 7)[:, :] if 20_000 % 7 == 0 else path("season", 21_000).reshape(-1, 7)
    means = week.mean(axis=0)
    assert np.ptp(means) > 0.5
    assert (week - means).std() == pytest.approx(0.2, rel=0.05)
    levels = path("jumps", 450)
    within = [np.abs(np.diff(levels[a : a + 45])).mean() for a in range(0, 405, 45)]
    assert np.mean(within) < 0.5
    assert levels.std() > 0.3
    trend = path("trend", 1000)
    assert abs(np.polyfit(np.arange(1000) / 1000, trend, 1)[0]) == pytest.approx(0.8, abs=5 * 0.2 * np.sqrt(12 / 1000))


def test_noise_of_the_round_does_not_enter_regret() -> None:
    quiet, loud = (ae.year(seed=4, noise=noise) for noise in (0.0, 1.0))
    arms = np.random.default_rng(0).integers(4, size=365)
    assert loud.regret(arms) == pytest.approx(quiet.regret(arms), abs=1e-9)
    # Apart from the effects that arrive after the last round, regret is the sum of the gaps.
    gaps = quiet.means.max() - quiet.means[arms]
    assert quiet.regret(arms) == pytest.approx(gaps.sum(), rel=0.05)


def test_redraws_have_the_same_effects_and_other_noise() -> None:
    world = ae.year(seed=4, change="drift", path="season")
    other = world.redraw(9)
    assert (world.params.curves == other.params.curves).all()
    assert (world.params.factors == other.params.factors).all()
    assert (world.params.path != other.params.path).any()
    assert (ae.year(seed=9).params.curves != ae.year(seed=4).params.curves).any()


def test_changes_change_the_best_arm() -> None:
    swap = ae.year(seed=6, change="swap", noise=0.0)
    early, late = swap.arm_totals()[150], swap.arm_totals()[300]
    best, worst = int(early.argmax()), int(early.argmin())
    assert (late[best], late[worst]) == pytest.approx((early[worst], early[best]))
    for n_arms in (2, 4):
        hidden = ae.year(seed=6, change="hidden", noise=0.0, n_arms=n_arms)
        totals = hidden.arm_totals()
        assert totals[70].argmin() == totals[200].argmax() == hidden.best_arm()
    drift = ae.year(seed=6, change="drift", noise=0.0)
    assert np.ptp(drift.arm_totals()[20:], axis=0).min() > 0.05


def test_an_arm_that_is_repeated_tires_and_recovers_at_once() -> None:
    world = ae.year(seed=1, change="fatigue", noise=0.0, max_delay=0, n_arms=2)
    stream = world.stream()
    first = world.params.curves[:, 0]
    played = [stream.play(arm) for arm in (0, 0, 0, 1, 0)]
    expected = [first[0], 0.93 * first[0], 0.93**2 * first[0], first[1], first[0]]
    assert played == pytest.approx(expected)
    # Always the same arm: a geometric series.
    assert world.arm_sums() == pytest.approx(first * (1 - 0.93**365) / 0.07)
    found = ae.simulate(ae.rivals.ABTest(2, test_rounds=365, direction="maximize", low=-1.0, high=1.0), world, runs=1)
    assert found.engine == "loop"
    assert found.mean_regret == pytest.approx(world.arm_sums().max() - 183 * first[0] - 182 * first[1])
    with pytest.raises(ae.InvalidArgument, match="engine must be 'loop' for losses that react to what is played"):
        ae.simulate(ae.rivals.ABTest(2, test_rounds=9, direction="maximize"), world, runs=1, engine="rounds")


test_bad_settings_are_refused = refuses([
    ({"half_life": 0.0}, "half_life must be greater than 0, but got"),
    ({"gap": 0.4}, "gap must be less than 0"),
    ({"noise": -1.0}, "noise must be at least 0, but got"),
    ({"curves": "odd"}, "curves must be one of 'alike', 'apart', 'last', 'negative', but got 'odd'"),
    ({"path": "odd"}, "path must be one of 'white'"),
    ({"change": "odd"}, "change must be one of 'none'"),
    ({"world": -1}, "world must be at least 0, but got -1"),
], lambda settings: ae.year(seed=0, **settings))
