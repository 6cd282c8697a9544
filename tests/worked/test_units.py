"""The regression of units side by side, against one with a column for everything that a unit has of its own."""

import numpy as np
import pytest
import statsmodels.api as sm

import aftereffect as ae
from aftereffect.carryover import regression


def panel(rounds: int, units: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two arms at random; arm 1 adds 2 at once and 1 a round later; every unit has its own level and trend."""
    rng = np.random.default_rng(seed)
    arms = rng.integers(0, 2, size=(rounds, units))
    totals = rng.normal(size=(rounds, units)) + 10.0 * rng.normal(size=units)
    totals += np.arange(rounds)[:, np.newaxis] * rng.normal(size=units)
    totals += 2.0 * arms
    totals[1:] += arms[:-1]
    return arms, totals


@pytest.mark.parametrize("clusters", ["rounds", "units"])
@pytest.mark.parametrize("trend", ["common", "unit"])
def test_effects_and_covariance_are_those_of_a_column_for_every_constant_and_trend(trend: str, clusters: str) -> None:
    # Fewer than 10 rounds, so that the noise is taken as white.
    arms, totals = panel(9, 30, seed=4)
    totals[3, 5] = totals[7, 11] = np.nan
    found = ae.carryover.estimate(arms, totals, max_lag=1, trend=trend, clusters=clusters)
    rows, y, rounds, units = [], [], [], []
    for u in range(30):
        for t in range(1, 9):
            if np.isfinite(totals[t, u]):
                constants, trends = np.eye(30)[u], t * (np.eye(30)[u] if trend == "unit" else np.ones(1))
                rows.append([arms[t, u], arms[t - 1, u], *constants, *trends])
                y.append(totals[t, u])
                rounds.append(t)
                units.append(u)
    groups = np.array(rounds if clusters == "rounds" else units)
    fit = sm.OLS(np.array(y), np.array(rows)).fit(cov_type="cluster", cov_kwds={"groups": groups})
    wanted = fit.cov_params()[:2, :2]
    if clusters == "units":
        # The jackknife: the regression again without each unit, whose own columns are then 0.
        some = [np.linalg.lstsq(np.array(rows)[groups != u], np.array(y)[groups != u])[0][:2] for u in range(30)]
        wanted = 29.0 / 30.0 * sum(np.outer(each - fit.params[:2], each - fit.params[:2]) for each in some)
    np.testing.assert_allclose(found.differences, fit.params[:2], rtol=1e-8)
    np.testing.assert_allclose(found.covariance, wanted, rtol=1e-6)
    assert found.noise == pytest.approx(float(np.sqrt(fit.ssr / fit.df_resid)))
    assert found.dof == min(fit.df_resid, len(set(groups.tolist())) - 1)


def test_many_units_take_their_noise_from_some_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    arms, totals = panel(60, 80, seed=7)
    shocks = rng.normal(size=totals.shape)
    for t in range(1, 60):
        shocks[t] += 0.6 * shocks[t - 1]
    whole = ae.carryover.estimate(arms, totals + 3.0 * shocks, max_lag=1, trend="unit")
    monkeypatch.setattr(regression, "NOISE_ROWS", 1200)
    some = ae.carryover.estimate(arms, totals + 3.0 * shocks, max_lag=1, trend="unit")
    assert whole.order >= 1
    assert some.order >= 1
    np.testing.assert_allclose(some.effects.values, whole.effects.values, atol=0.02)
    np.testing.assert_allclose(some.effects.upper - some.effects.lower, 0.25, atol=0.06)
    assert (np.abs(whole.arrived.values - [[-1.0, -1.5], [1.0, 1.5]]) < 0.3).all()


def test_an_effect_seen_in_one_unit_only_has_no_error_by_units() -> None:
    arms, totals = panel(30, 8, seed=2)
    arms[5:9, 3] = 2
    with pytest.raises(ae.InvalidArgument, match=r"told from the others without any one unit.*not without unit 3"):
        ae.carryover.estimate(arms, totals, max_lag=0, clusters="units")


@pytest.mark.parametrize(("rounds", "units", "change", "message"), [
    (3, 10, {"trend": "unit"}, "every unit must have totals of three rounds .* but unit 0 has 2"),
    (9, 2, {"clusters": "units"}, "units must be more than 2 after the first 1, .* but got 2"),
    (9, 9, {"clusters": "weeks"}, "clusters must be one of 'rounds', 'units', but got 'weeks'"),
    (9, 9, {"trend": "none"}, "trend must be one of 'common', 'unit', but got 'none'"),
])
def test_bad_input_is_refused(rounds: int, units: int, change: dict[str, str], message: str) -> None:
    arms, totals = panel(rounds, units, seed=1)
    with pytest.raises(ae.InvalidArgument, match=message):
        ae.carryover.estimate(arms, totals, max_lag=1, **change)
