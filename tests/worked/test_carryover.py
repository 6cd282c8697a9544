"""`ae.carryover`: the regression, its bands and the schedule of a pilot, against independent computations."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

import aftereffect as ae
from aftereffect.carryover.regression import autocovariances, critical, fieller, rank_one_distance
from aftereffect.carryover.rows import MOST_WEIGHT, Units, Whitening, beside_effects, draw_weights, known_arms

D, K = 3, 3
ALIKE = np.outer([0.0, 1.0, 3.0], [0.4, 0.3, 0.2, 0.1])
APART = np.array([[0.0, 0.0, 0.0, 0.0], [1.0, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, 2.0]])


def totals(arms: np.ndarray, effects: np.ndarray, noise: float, seed: int = 0, rho: float = 0.0) -> np.ndarray:
    """Return totals of given arms, shape (rounds, units); before the first round nothing was played."""
    rng = np.random.default_rng([seed, 1])
    found = np.zeros(arms.shape)
    for t in range(len(arms)):
        for s in range(min(t, effects.shape[1] - 1) + 1):
            found[t] += effects[arms[t - s], s]
    shocks = noise * rng.normal(size=arms.shape)
    for t in range(1, len(arms)):
        shocks[t] = rho * shocks[t - 1] + np.sqrt(1.0 - rho**2) * shocks[t]
    return found + shocks


def pilot(rounds: int = 200, units: int | None = None, seed: int = 0, n_arms: int = K) -> ae.carryover.Pilot:
    return ae.carryover.Pilot(n_arms=n_arms, rounds=rounds, max_lag=D, units=units, seed=seed)


def design(arms: np.ndarray, max_lag: int, n_arms: int, season: float | None = None) -> np.ndarray:
    """Return all columns of the regression: of each unit in turn, its effects, what units have in common, its own."""
    used = known_arms(arms, max_lag)
    units = Units(arms, np.zeros(used.shape), used, max_lag, n_arms, *beside_effects(len(used), season))
    return np.stack([np.concatenate([x, units.own], axis=1) for _, x in units.each()], axis=1)


@pytest.mark.parametrize(("season", "columns"), [(2.0, 1), (4.0, 3), (7.0, 6), (30.0, 6)])
def test_a_season_adds_independent_columns(season: float, columns: int):
    arms = pilot(60).arms[:, np.newaxis]
    plain, seasonal = design(arms, D, K)[:, 0], design(arms, D, K, season)[:, 0]
    assert seasonal.shape[1] - plain.shape[1] == columns
    assert np.linalg.matrix_rank(seasonal) == seasonal.shape[1]


@pytest.mark.parametrize(("control", "base"), [(None, ALIKE.mean(axis=0)), (1, ALIKE[1])])
@pytest.mark.parametrize("units", [None, 3])
def test_without_noise_the_effects_are_found_exactly(control: int | None, base: np.ndarray, units: int | None):
    plan = pilot(units=units)
    observed = totals(plan.arms, ALIKE, 1e-7)
    observed[50:60] = np.nan
    found = plan.estimate(observed, control=control)
    truth = ALIKE - base
    np.testing.assert_allclose(found.effects.values, truth, atol=1e-5)
    np.testing.assert_allclose(found.arrived.values, truth.cumsum(axis=1), atol=1e-5)
    later = truth.sum(axis=1, keepdims=True) - truth.cumsum(axis=1)
    np.testing.assert_allclose(found.remaining.values, later, atol=1e-5)
    assert found.base == pytest.approx(base.sum(), abs=1e-5)
    assert found.ends() == D
    some = np.arange(K) != (1 if control else None)
    if control:
        np.testing.assert_allclose(found.shares.values[some], np.tile([0.4, 0.7, 0.9, 1.0], (2, 1)), atol=1e-4)
    assert (found.n_arms, found.max_lag) == (K, D)


def test_rounds_with_unknown_arms_are_left_out_with_all_that_they_may_reach():
    plan = pilot()
    observed, arms = totals(plan.arms, ALIKE, 1e-7), plan.arms.copy()
    arms[100] = -1
    observed[100 : 100 + D + 1] += 50.0
    found = ae.carryover.estimate(arms, observed, max_lag=D)
    assert found.rounds == 200 - D - (D + 1)
    np.testing.assert_allclose(found.effects.values, ALIKE - ALIKE.mean(axis=0), atol=1e-5)


def test_the_fit_is_generalised_least_squares_of_what_was_observed():
    rho, rng = 0.6, np.random.default_rng(5)
    values, used = rng.normal(size=(40, 1, 3)), rng.random((40, 1)) < 0.8
    rows = Whitening(np.array([rho]), 40).rows(values[:, 0], used[:, 0])
    when = np.flatnonzero(used[:, 0])
    covariance = rho ** np.abs(when[:, np.newaxis] - when) / (1.0 - rho**2)
    wanted = values[when, 0].T @ np.linalg.inv(covariance) @ values[when, 0]
    np.testing.assert_allclose(rows.T @ rows, wanted, rtol=1e-9)


def test_the_autocovariances_of_the_noise_are_unbiased():
    # The mean over noise with known covariance, by its exact formula E[ee'] = R Σ R.
    rng = np.random.default_rng(6)
    used = rng.random((60, 2)) < 0.9
    x = rng.normal(size=(60, 2, 5)).cumsum(axis=0)
    basis = np.zeros_like(x)
    basis[used] = np.linalg.qr(x[used])[0]
    gamma = np.array([1.0, 0.5, 0.2, 0.0, 0.0, 0.0])
    apart = np.abs(np.arange(60)[:, np.newaxis] - np.arange(60))
    root = np.linalg.cholesky(np.append(gamma, np.zeros(60))[apart])
    # `autocovariances` is a quadratic form of y: its mean is the sum over the columns of a root of the covariance.
    mean = np.zeros(6)
    for unit in range(2):
        for column in root.T:
            y = np.zeros((60, 2))
            y[:, unit] = column
            mean += autocovariances(np.where(used, y, 0.0), basis, used)
    np.testing.assert_allclose(mean, gamma, atol=1e-9)


def widths_by_hand(found, codes: np.ndarray, arms: np.ndarray, observed: np.ndarray, w: np.ndarray) -> float:
    """See that effects and HC3 errors are those of weighted least squares in a coding; return widths over errors."""
    x = np.array([[1.0, t, *np.concatenate([codes[arms[t - s]] for s in range(D + 1)])] for t in range(D, 300)])
    inverse = np.linalg.inv((x.T * w) @ x)
    params = inverse @ (x.T * w) @ observed[D:]
    leverage = w * np.einsum("ij,jk,ik->i", x, inverse, x)
    scores = x * (w * (observed[D:] - x @ params) / (1.0 - leverage))[:, np.newaxis]
    covariance = inverse @ scores.T @ scores @ inverse
    width, ratios = (found.effects.upper - found.effects.lower) / 2.0, []
    for s in range(D + 1):
        at = slice(2 + s * (K - 1), 2 + (s + 1) * (K - 1))
        np.testing.assert_allclose(found.effects.values[:, s], codes @ params[at], atol=1e-8)
        ratios.append(width[:, s] / np.sqrt(np.diag(codes @ covariance[at, at] @ codes.T)))
    np.testing.assert_allclose(ratios, ratios[0][0], rtol=1e-6)
    return ratios[0][0]


def test_the_standard_errors_are_hc3_and_the_effects_those_of_another_coding():
    # White noise that depends on the arm, so that a classical covariance would be wrong.
    for seed in range(20):
        plan = pilot(300, seed=seed)
        rng = np.random.default_rng(seed)
        observed = totals(plan.arms, ALIKE, 0.0) + rng.normal(size=300) * (1.0 + plan.arms)
        found = plan.estimate(observed, level=0.9)
        if found.order == 0:
            break
    assert found.order == 0
    codes = np.vstack([np.eye(K - 1), -np.ones(K - 1)])
    width = widths_by_hand(found, codes, plan.arms, observed, np.ones(300 - D))
    # Between the quantile of one t and Bonferroni's for all arms and lags.
    one, all_of_them = stats.t.ppf([0.95, 1.0 - 0.05 / (K * (D + 1))], 300 - D - 2 - (D + 1) * (K - 1))
    assert one < width < all_of_them + 0.03


def test_the_critical_value_needs_no_singular_value_decomposition(monkeypatch):
    """Which fails for some correlations at long lags. Twice the standard error of a critical value is 0.02."""
    root = np.random.default_rng(2).standard_normal((6, 4))
    usual = critical(root @ root.T, 30.0, 0.05)[0]

    def failed(*_, **__):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", failed)
    assert usual != critical(root @ root.T, 30.0, 0.05)[0] == pytest.approx(usual, abs=0.04)


def test_the_critical_value_of_independent_and_of_equal_statistics():
    independent = critical(np.diag([1.0, 4.0, 9.0, 0.25, 1.0]), 1e6, 0.05)[0]
    assert independent == pytest.approx(stats.norm.ppf((1.0 + 0.95**0.2) / 2.0), abs=0.03)
    equal = critical(np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]), 12.0, 0.05)[0]
    assert equal == pytest.approx(stats.t.ppf(0.975, 12.0), abs=0.04)


def test_fiellers_interval_holds_the_ratios_that_are_not_refuted():
    top, whole, spread = 2.0, 3.0, np.array([[0.5, 0.2], [0.2, 0.4]])
    ratios = np.linspace(-5.0, 5.0, 100_001)
    limit = spread[0, 0] - 2 * ratios * spread[0, 1] + ratios**2 * spread[1, 1]
    accepted = ratios[(top - ratios * whole) ** 2 <= limit]
    lower, upper = fieller(*(np.array([v]) for v in (top, whole, spread[0, 0], spread[0, 1], spread[1, 1])))
    assert (lower[0], upper[0]) == pytest.approx((accepted[0], accepted[-1]), abs=2e-4)
    lower, upper = fieller(*(np.array([v]) for v in (1.0, 0.5, 0.5, 0.2, 0.4)))
    assert (lower[0], upper[0]) == (-np.inf, np.inf)


def test_the_distance_to_rank_one_with_equal_variances_is_the_rest_of_the_singular_values():
    table = np.random.default_rng(2).normal(size=(4, 3))
    singular = np.linalg.svd(table)[1]
    wanted = (singular[1:] ** 2).sum()
    assert rank_one_distance(table, np.eye(12)) == pytest.approx(wanted, rel=1e-3)
    left, right = np.random.default_rng(3).normal(size=(2, 4, 4))
    rows, columns = left @ left.T + np.eye(4), (right @ right.T + np.eye(4))[:3, :3]
    scaled = np.linalg.solve(np.linalg.cholesky(rows), table) @ np.linalg.inv(np.linalg.cholesky(columns)).T
    wanted = (np.linalg.svd(scaled)[1][1:] ** 2).sum()
    assert rank_one_distance(table, np.kron(rows, columns)) == pytest.approx(wanted, rel=1e-3)


def test_arms_that_fade_apart_are_told_from_arms_that_fade_alike():
    plan = pilot(400)
    assert plan.estimate(totals(plan.arms, APART, 0.5)).alike.verdict == "apart"
    assert plan.estimate(totals(plan.arms, ALIKE, 0.5)).alike.verdict == "not refuted"


def test_effects_later_than_max_delay_are_found_where_there_are_some():
    plan = pilot(200)
    short = np.array([[0.5, 0.2, 0.0, 0.0], [1.0, 0.5, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]])
    found = plan.estimate(totals(plan.arms, short, 0.5))
    assert [found.longer_than(d).verdict for d in range(3)] == ["longer", "not refuted", "not refuted"]
    assert "No sign of effects later than 2 rounds, up to 3" in found.longer_than(2).sentence
    late = plan.estimate(totals(plan.arms, APART, 0.5), control=1).longer_than(2)
    assert late.verdict == "longer"
    assert late.sentence.startswith("Effects last longer than 2 rounds (p = ")
    with pytest.raises(ae.InvalidArgument, match="max_delay must be at most 2, but got 3"):
        found.longer_than(3)


def test_the_test_of_later_effects_is_that_of_a_restricted_regression():
    # White noise of one variance, and as many totals that HC3 is the classical covariance but for little.
    plan = pilot(4000)
    observed = totals(plan.arms, ALIKE, 30.0, seed=8)
    found = plan.estimate(observed).longer_than(0)
    full = design(plan.arms[:, np.newaxis], D, K)[:, 0]
    # Without later effects, those of lags 1 and of 2 and 3 together are 0: the rest is free.
    free = np.delete(full, [1, 2, 3, 5, 6, 7], axis=1)
    free = np.column_stack([free, full[:, 2] - full[:, 3], full[:, 6] - full[:, 7]])
    rests = [np.sum((y - x @ np.linalg.lstsq(x, y, rcond=None)[0]) ** 2) for x in (free, full) for y in [observed[D:]]]
    statistic = (rests[0] - rests[1]) / 4 / (rests[1] / (len(full) - full.shape[1]))
    assert found.p_value == pytest.approx(stats.f.sf(statistic, 4, len(full) - full.shape[1]), abs=0.02)


def test_the_test_of_later_effects_keeps_its_level_with_few_rounds():
    # A covariance from 7 rounds, as with units; four sums are tested. By F(4, 6) a quarter would be alarms.
    plan, rng, runs, dof = pilot(80, units=2), np.random.default_rng(6), 400, 6
    found = plan.estimate(totals(plan.arms, ALIKE, 1.0))
    size, alarms = len(found.differences), 0
    for _ in range(runs):
        scores = rng.normal(size=(dof, size))
        estimated = {"differences": rng.normal(size=size), "covariance": scores.T @ scores / dof, "dof": float(dof)}
        alarms += dataclasses.replace(found, **estimated).longer_than(0).verdict == "longer"
    assert abs(alarms / runs - 0.05) < 3.0 * np.sqrt(0.05 * 0.95 / runs)


def test_a_panel_of_too_few_rounds_is_refused():
    # Two arms relative to the first, and sums over lags 0, 1-2 and 3.
    for rounds, units in ((D + 2, 60), (D + 6, 20)):
        plan = pilot(rounds, units=units)
        with pytest.raises(ae.InvalidArgument, match=f"rounds with totals must be more than 6 .* got {rounds - D}"):
            plan.estimate(np.random.default_rng(1).normal(size=plan.arms.shape))
    plan = pilot(D + 7, units=20)
    assert plan.estimate(np.random.default_rng(1).normal(size=plan.arms.shape)).longer_than(0).p_value > 0.0


def test_without_lags_there_are_effects_at_once_only():
    plan = ae.carryover.Pilot(n_arms=3, rounds=60, max_lag=0, seed=1)
    found = plan.estimate(totals(plan.arms, ALIKE[:, :1], 0.01))
    np.testing.assert_allclose(found.effects.values, ALIKE[:, :1] - ALIKE[:, 0].mean(), atol=0.02)
    assert found.ends() == 0
    assert (found.remaining.lower == 0.0).all()
    assert (found.remaining.upper == 0.0).all()
    with pytest.raises(ae.InvalidArgument, match="max_lag must be at least 1, so that a lag is left to test"):
        found.longer_than(0)
    with_choice = ae.choose_delay(n_arms=3, curves=found, horizon=1000, low=-5.0, high=5.0)
    assert with_choice.max_delay == 0
    assert plan.expected_width(noise=0.0) == ae.carryover.pilot.ExpectedWidth(0.0, 0.0)


def test_a_constant_added_to_all_totals_changes_the_base_only():
    plan = pilot(units=2)
    # Multiples of 2^-10, to which the constant is added without rounding.
    observed = np.round(totals(plan.arms, ALIKE, 1.0) * 1024.0) / 1024.0
    plain, shifted = plan.estimate(observed), plan.estimate(observed + np.array([1e12, 2e12]))
    np.testing.assert_allclose(shifted.effects.lower, plain.effects.lower, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(shifted.effects.upper, plain.effects.upper, rtol=1e-6, atol=1e-8)
    assert shifted.noise == pytest.approx(plain.noise, rel=1e-6)
    assert shifted.base == pytest.approx(1.5e12)


def test_two_arms_fade_apart_if_their_difference_changes_its_sign():
    plan = pilot(400, n_arms=2)
    crossing = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.5, 1.5]])
    assert plan.estimate(totals(plan.arms, crossing, 0.3)).alike.verdict == "apart"
    assert plan.estimate(totals(plan.arms, ALIKE[1:], 0.3)).alike.verdict == "not refuted"


@pytest.mark.parametrize("rho", [0.0, 0.7])
@pytest.mark.parametrize("units", [None, 4])
def test_the_width_is_known_before_the_start(rho: float, units: int | None):
    plan = pilot(300, units=units)
    expected = plan.expected_width(noise=2.0, autocorrelation=rho)
    found = plan.estimate(totals(plan.arms, ALIKE, 2.0, rho=rho))
    assert (found.effects.upper - found.effects.lower).mean() / 2.0 == pytest.approx(expected.effect, rel=0.15)
    assert (found.arrived.upper - found.arrived.lower)[:, -1].mean() / 2.0 == pytest.approx(expected.whole, rel=0.2)
    assert found.noise == pytest.approx(2.0, rel=0.15)


def test_the_bands_cover_all_arms_and_lags_at_once():
    effects = ALIKE[1:]
    truth, covered, runs = effects - effects.mean(axis=0), 0, 20
    for seed in range(runs):
        plan = pilot(120, seed=seed, n_arms=2)
        found = plan.estimate(totals(plan.arms, effects, 1.0, seed, rho=0.5))
        covered += bool(np.all((found.effects.lower <= truth) & (truth <= found.effects.upper)))
    assert covered / runs >= 0.93 - 3.0 * np.sqrt(0.95 * 0.05 / runs)


def test_a_pilot_plays_every_arm_once_in_every_k_blocks():
    plan = ae.carryover.Pilot(n_arms=4, rounds=2000, max_lag=9, seed=3)
    assert np.bincount(plan.arms).min() > 400
    after = {(int(a), int(b)) for a, b in zip(plan.arms, plan.arms[1:], strict=False)}
    assert len(after) == 16
    changes = np.flatnonzero(np.diff(plan.arms)) + 1
    # Two blocks of one arm may follow each other, at the border of two orders.
    assert set(np.diff(changes).tolist()) >= {1, 2, 4, 8}
    again = ae.carryover.Pilot(n_arms=4, rounds=2000, max_lag=9, seed=3)
    np.testing.assert_array_equal(plan.arms, again.arms)
    units = pilot(50, units=3).arms
    assert units.shape == (50, 3)
    assert not np.array_equal(units[:, 0], units[:, 1])


def test_the_table_and_the_plot_show_every_arm():
    plan = pilot(120)
    found = plan.estimate(totals(plan.arms, ALIKE, 1.0))
    frame = found.to_frame()
    assert frame.shape == (K * (D + 1), 14)
    np.testing.assert_array_equal(frame.query("arm == 2").effect, found.effects.values[2])
    assert len(found.plot(names=["a", "b", "c"]).lines) == K + 1
    assert "relative to: the mean of the arms" in repr(found)


def drawn(rounds: int, seed: int, effects: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return arms, totals and probabilities of blocks of random lengths, drawn with probabilities that change."""
    rng = np.random.default_rng([seed, 4])
    arms, q = np.empty(rounds, dtype=int), np.full(rounds, np.nan)
    start = 0
    while start < rounds:
        chances = rng.dirichlet(np.full(len(effects), 3.0))
        arms[start:] = rng.choice(len(effects), p=chances)
        q[start] = chances[arms[start]]
        start += rng.integers(1, 6)
    return arms, totals(arms, effects, noise, seed), q


def test_a_weight_is_the_root_of_the_ratio_over_the_draws_that_a_row_touches():
    q = drawn(80, 1, ALIKE, 1.0)[2]
    q = np.stack([q, np.roll(q, 3)], axis=1)
    found = draw_weights(q, K, 5)
    for t in range(80):
        for u in range(2):
            touched, r = {}, t
            while r >= 0 and (r >= t - 5 or not touched.get("old")):
                if np.isfinite(q[r, u]):
                    touched[r] = q[r, u]
                    touched["old"] = r <= t - 5
                r -= 1
            touched.pop("old", None)
            wanted = np.prod([1.0 / (K * p) for p in touched.values()]) ** 0.5
            assert found[t, u] == pytest.approx(min(wanted, MOST_WEIGHT))


def test_rounds_of_a_player_are_fitted_by_weighted_least_squares():
    for seed in range(20):
        arms, observed, q = drawn(300, seed, ALIKE, 1.0)
        found = ae.carryover.estimate(arms, observed, max_lag=D, exposure="adaptive", probabilities=q)
        if found.order == 0:
            break
    assert found.order == 0
    codes = np.vstack([-np.ones(K - 1), np.eye(K - 1)])
    assert widths_by_hand(found, codes, arms, observed, draw_weights(q[:, np.newaxis], K, D)[D:, 0]) > 0.0


def test_an_unknown_arm_of_a_player_hides_what_follows_until_the_next_draw():
    arms, _, q = drawn(300, 1, ALIKE, 1.0)
    observed = totals(arms, ALIKE, 1e-7)
    draws = np.flatnonzero(np.isfinite(q))
    # The draw itself and the round after it are lost; the next known draw is that of round `back`.
    lost = next(t for t in draws[50:] if np.isnan(q[t + 1]) and np.isnan(q[t + 2]) and arms[t] != arms[t - 1])
    back = int(draws[draws > lost][0])
    arms[lost : lost + 2] = -1
    q[lost : lost + 2] = np.nan
    given = {"max_lag": D, "exposure": "adaptive", "probabilities": q}
    whole = ae.carryover.estimate(arms, observed, **given)
    np.testing.assert_allclose(whole.effects.values, ALIKE - ALIKE.mean(axis=0), atol=1e-5)
    assert whole.rounds == 300 - D - (back - lost + D)
    # An unknown arm with the probability of its draw is not counted as an arm.
    q[lost] = 0.5
    again = ae.carryover.estimate(arms, observed, **given)
    assert again.rounds == whole.rounds
    first = int(draws[10])
    arms[first], q[first] = -1, 0.5
    assert ae.carryover.estimate(arms, observed, **given).rounds == whole.rounds - D - 1


def test_an_arm_that_was_drawn_too_seldom_is_not_measured():
    effects = np.vstack([ALIKE, [0.0, 0.0, 5.0, 0.0]])
    arms, _, q = drawn(400, 2, ALIKE, 1.0)
    start = np.flatnonzero(np.isfinite(q))[40]
    arms = np.where((np.isfinite(q).cumsum() - 1) == np.isfinite(q).cumsum()[start] - 1, 3, arms)
    q[:7] = np.nan
    arms[:7] = arms[0]
    q[7] = 0.5
    found = ae.carryover.estimate(
        arms, totals(arms, effects, 1e-7), max_lag=D, exposure="adaptive", probabilities=q, n_arms=5
    )
    assert found.unmeasured == (3, 4)
    assert "drawn too seldom: arms 3, 4" in repr(found)
    assert found.relative_to == "the mean of arms 0, 1, 2"
    np.testing.assert_allclose(found.effects.values[:3], ALIKE - ALIKE.mean(axis=0), atol=1e-5)
    assert np.isnan(found.arrived.values[3:]).all()
    assert np.isinf(found.effects.upper[3:]).all()
    with pytest.raises(ae.InvalidArgument, match="the control, arm 3, and another arm must have been drawn 10 times"):
        ae.carryover.estimate(arms, arms * 1.0, max_lag=D, exposure="adaptive", probabilities=q, control=3)


@pytest.mark.parametrize(("change", "message"), [
    ({"probabilities": None}, "probabilities must be given if exposure is 'adaptive', and only then, but got none"),
    ({"exposure": "randomised"}, "and only then, but got some, and exposure = 'randomised'"),
    ({"probabilities": np.full(100, 1.5)}, r"probabilities must be in \(0, 1\], or NaN, but got .*1.5"),
    ({"probabilities": [None] * 100}, r"must be numbers, NaN where no arm was drawn, but got \[None, "),
    ({"probabilities": np.full(9, 0.5)}, r"probabilities must have the shape of arms, but got \(9,\)"),
    ({"probabilities": np.full(100, np.nan)}, "must be given where the arm changes, but got NaN in round"),
])
def test_probabilities_that_do_not_fit_are_refused(change: dict, message: str):
    arms, observed, q = drawn(100, 3, ALIKE, 1.0)
    given = {"probabilities": q, "exposure": "adaptive"} | change
    with pytest.raises(ae.InvalidArgument, match=message):
        ae.carryover.estimate(arms, observed, max_lag=D, **given)


def test_a_recorded_history_gives_a_warning():
    plan = pilot(120)
    observed = totals(plan.arms, ALIKE, 1.0)
    with pytest.warns(ae.AftereffectWarning, match="not chosen at random"):
        ae.carryover.estimate(plan.arms, observed, max_lag=D, exposure="recorded")


@pytest.mark.parametrize(("change", "message"), [
    ({"arms": np.zeros(80)}, "arms must be whole numbers"),
    ({"arms": np.zeros((80, 2), dtype=int)}, "the same shape"),
    ({"arms": np.repeat([0, 1], 40)}, "seen in a single total only"),
    ({"arms": np.tile([0, 1], 40)}, "can be told from the others"),
    ({"totals": np.full(80, np.inf)}, "totals must be finite"),
    ({"totals": np.full(80, np.nan)}, "unit 0 has none"),
    ({"totals": np.where(np.arange(80) == 40, 1.0, np.nan)}, "unit 0 has 1"),
    ({"totals": np.full(80, 0.1)}, "totals must vary by more than what arms, trend and season explain"),
    ({"totals": np.arange(80.0) % 7 * 1e100}, r"totals must be finite numbers up to 1e\+70"),
    ({"season": 1e9}, "season must be so short that its waves differ from the trend in 77 rounds, but got 10"),
    ({"n_arms": 4}, "arms must contain every arm below n_arms = 4, but arm 3 was never played"),
    ({"n_arms": 2}, "arms must be below n_arms = 2, but got 2"),
    ({"max_lag": 30}, "totals must be at least"),
])
def test_input_that_identifies_nothing_is_refused(change: dict, message: str):
    given = {"arms": pilot(80).arms, "totals": np.arange(80.0) % 7, "max_lag": D} | change
    with pytest.raises(ae.InvalidArgument, match=message):
        ae.carryover.estimate(given.pop("arms"), given.pop("totals"), **given)


def test_a_pilot_that_is_too_short_has_no_width():
    with pytest.raises(ae.InvalidArgument, match="rounds must be more, to tell 3 arms apart at 4 lags, but got 12"):
        pilot(12).expected_width(noise=1.0)
