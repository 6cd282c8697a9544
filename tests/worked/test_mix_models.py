"""Curves of marketing-mix models: tables of the documented form in, rows of a lift test out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import aftereffect as ae
from aftereffect.carryover import best_probabilities, lift_rows, meridian_curves, pymc_curves


def meridian(rates: dict[str, float], step: float = 0.1, most: float = 8.0) -> dict[str, list[Any]]:
    """Return columns as `Analyzer.adstock_decay` has them: fractional times, 1 at time 0, prior and posterior."""
    times = np.arange(0.0, most + step / 2, step)
    rows = [
        (channel, float(t), kind, float((rate if kind == "posterior" else 0.9) ** t), 0.9, 0.1)
        for channel, rate in rates.items() for kind in ("prior", "posterior") for t in times
    ]  # fmt: skip
    names = ("channel", "time_units", "distribution", "mean", "ci_hi", "ci_lo")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


@dataclass
class Array:
    """What is used of an array of xarray."""

    dims: tuple[str, ...]
    values: np.ndarray
    coords: dict[str, Any]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_table_of_meridian_gives_the_shares_by_round(library: Any) -> None:
    found = meridian_curves(library(meridian({"tv": 0.6, "search": 0.2})), arms=["tv", "search"])
    assert found.names == ("tv", "search")
    for row, rate in zip(found.weights, (0.6, 0.2), strict=True):
        wanted = rate ** np.arange(9)
        np.testing.assert_allclose(row, wanted / wanted.sum(), rtol=1e-9)
    assert found.half_lives() == {"tv": 1, "search": 0}


def test_weeks_become_days() -> None:
    found = meridian_curves(pl.DataFrame(meridian({"a": 0.5, "b": 0.5}, step=1 / 7)), rounds_per_unit=7)
    wanted = 0.5 ** (np.arange(57) / 7.0)
    np.testing.assert_allclose(found.weights[0], wanted / wanted.sum(), rtol=1e-6)
    # Half of what a geometric curve brings within 8 weeks has arrived when it has fallen to (1 + 2^-8)/2.
    assert abs(found.half_lives()["a"] - 7.0) <= 1.0


def test_an_array_of_pymc_marketing_gives_the_mean_over_samples() -> None:
    rng = np.random.default_rng(1)
    alpha = rng.uniform(0.2, 0.8, size=(2, 50, 3))
    lags = np.arange(6)
    values = (alpha[..., np.newaxis] ** lags).transpose(0, 1, 3, 2)
    coords = {"time since exposure": lags, "channel": ["x1", "x2", "x3"]}
    curve = Array(("chain", "draw", "time since exposure", "channel"), values, coords)
    mean = np.array([[np.mean(alpha[:, :, i] ** s) for s in lags] for i in range(3)])
    found = pymc_curves(curve)
    np.testing.assert_allclose(found.weights, mean / mean.sum(axis=1, keepdims=True), rtol=1e-9)
    other = Array(("sample", "channel", "time since exposure"), values.transpose(0, 1, 3, 2).reshape(100, 3, 6), coords)
    np.testing.assert_allclose(pymc_curves(other, arms=["x3", "x1"]).weights, found.weights[[2, 0]], rtol=1e-9)


def test_curves_choose_a_delay_and_probabilities_advise_a_player() -> None:
    found = meridian_curves(pl.DataFrame(meridian({"tv": 0.6, "search": 0.2})))
    choice = ae.choose_delay(n_arms=2, curves=found, horizon=50_000)
    lags = np.arange(9)
    by_hand = [0.2**lags * 0.8 / (1 - 0.2**9), 0.6**lags * 0.4 / (1 - 0.6**9)]
    same = ae.choose_delay(n_arms=2, curves=by_hand, horizon=50_000)
    assert choice.max_delay == same.max_delay
    q = best_probabilities(np.random.default_rng(2).normal([0.4, 0.6], 0.1, size=(4000, 2)))
    # P(N(0.2, 0.1 sqrt 2) > 0)
    assert q[1] == pytest.approx(0.921, abs=0.02)
    np.testing.assert_allclose(best_probabilities([[1.0, 2.0, 3.0]], direction="minimize"), [1.0, 0.0, 0.0])
    player = ae.default_player(
        n_arms=2, max_delay=choice.max_delay, direction="maximize", adviser=ae.advisers.Opinion(q), seed=1
    )
    assert player.ask() in (0, 1)


def test_measured_effects_are_rows_of_a_lift_test() -> None:
    rng = np.random.default_rng(5)
    arms = np.repeat(rng.integers(0, 3, size=(100, 4)), 2, axis=0)
    effect = np.array([0.0, 3.0, 8.0])
    totals = effect[arms] + 0.5 * effect[np.roll(arms, 1, axis=0)] + rng.normal(size=arms.shape)
    names = np.array(["none", "search", "tv"])
    table = pd.DataFrame(
        {"round": np.repeat(np.arange(200), 4), "unit": np.tile(list("abcd"), 200),
         "arm": names[arms].ravel(), "total": totals.ravel()}
    )  # fmt: skip
    curves = ae.carryover.estimate(table, max_lag=2, control="none")
    rows = lift_rows(curves, spend={"search": 100.0, "tv": 400.0})
    assert [row["channel"] for row in rows] == ["search", "tv"]
    for row, whole in zip(rows, (4.5, 12.0), strict=True):
        assert abs(row["delta_y"] - whole) < 4.0 * row["sigma"]
        assert 0.05 < row["sigma"] < 0.5
    assert (rows[1]["x"], rows[1]["delta_x"]) == (0.0, 400.0)
    arm = curves.names.index("tv")
    # The standard error of a sum of effects, by their covariance.
    ones = np.zeros(len(curves.differences))
    ones[(arm - 1) * 3 : arm * 3] = 1.0
    assert rows[1]["sigma"] == pytest.approx(float(np.sqrt(ones @ curves.covariance @ ones)), rel=1e-6)
    with pytest.raises(ae.InvalidArgument, match="spend must be one of 'none', 'search', 'tv', but got 'radio'"):
        lift_rows(curves, spend={"radio": 1.0})
    with pytest.raises(ae.InvalidArgument, match=r"spend\['tv'\] must be greater than 0"):
        lift_rows(curves, spend={"tv": 0.0})
    with pytest.raises(ae.InvalidArgument, match="curves must be those of a table, relative to a control"):
        lift_rows(ae.carryover.estimate(table, max_lag=2), spend={"tv": 1.0})


TABLE = meridian({"tv": 0.6, "search": 0.2}, step=1.0)


@pytest.mark.parametrize(("change", "more", "message"), [
    ({"mean": None}, {}, "table must have the columns channel, time_units, distribution, mean, but mean is not in"),
    ({}, {"distribution": "both"}, "distribution must be one of 'posterior', 'prior', but got 'both'"),
    ({}, {"arms": ["radio", "tv"]}, "arms must be one of 'search', 'tv', but got 'radio'"),
    ({}, {"arms": ["tv", "search", "tv"]}, "arms must differ from each other, but got"),
    ({name: [] for name in TABLE}, {}, "table must have rows, but has none"),
    ({}, {"rounds_per_unit": 0.0}, "rounds_per_unit must be greater than 0"),
    ({"mean": [0.0] * 36}, {}, "the curve of 'search' must not be negative, nor sum to 0, but got"),
    ({"time_units": [0.0] * 36}, {}, "time_units must occur once for each channel, but do not for 'search'"),
])
def test_bad_curves_are_refused(change: dict[str, Any], more: dict[str, Any], message: str) -> None:
    columns = {name: values for name, values in (TABLE | change).items() if values is not None}
    with pytest.raises(ae.InvalidArgument, match=message):
        meridian_curves(pl.DataFrame(columns), **more)


def test_an_array_without_channels_or_time_is_refused() -> None:
    with pytest.raises(ae.InvalidArgument, match="curve must be an array of xarray, but got <class 'list'>"):
        pymc_curves([1.0])
    with pytest.raises(ae.InvalidArgument, match="one for channels, but got sample, time since exposure"):
        pymc_curves(Array(("sample", "time since exposure"), np.ones((2, 3)), {}))
