"""To and from marketing-mix models: adstock curves in, probabilities for an adviser, measured effects out.

    meridian_curves       the table of Meridian's `Analyzer.adstock_decay()`
    pymc_curves           the array of PyMC-Marketing's `adstock.sample_curve(...)`
    best_probabilities    how likely each arm is best, by draws of the arms' whole effects
    lift_rows             measured effects as rows of a lift test, on which such a model can be calibrated

Neither package is needed. A curve becomes the shares of an effect that arrive 0, 1, ... rounds later, for
`choose_delay`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from aftereffect.carryover.effects_by_lag import Curves
from aftereffect.core import checks, frames
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument

MERIDIAN = ("channel", "time_units", "distribution", "mean")
SAMPLES = ("sample", "chain", "draw")
"""Dimensions of an array of PyMC-Marketing over which a curve is averaged."""


@dataclass(frozen=True, eq=False)
class AdstockCurves:
    """weights[i, s]: the share of the effect of arm names[i] that arrives s rounds later; a row sums to 1.

    `ae.choose_delay(n_arms=len(curves.names), curves=curves, ...)` takes them.

    >>> curves = AdstockCurves(("tv", "search"), np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]]))
    >>> curves.half_lives()
    {'tv': 0, 'search': 0}
    """

    names: tuple[str, ...]
    weights: FloatArray

    def half_lives(self) -> dict[str, int]:
        """Return for each arm the first lag by which half of its effect has arrived."""
        reached = (self.weights.cumsum(axis=1) >= 0.5 - 1e-12).argmax(axis=1)
        return dict(zip(self.names, reached.tolist(), strict=True))


def meridian_curves(
    table: Any, *, arms: Sequence[str] | None = None, distribution: str = "posterior", rounds_per_unit: float = 1.0
) -> AdstockCurves:
    """Return the curves of a table of Meridian: channel, time_units, distribution, mean.

    table: of pandas, polars or Arrow. arms: the channels, in the order of the arms; by default all, sorted.
    rounds_per_unit: how many rounds a time unit has: 7 for a weekly model and daily rounds. Between the times of the
    table a curve is interpolated.

    >>> import polars
    >>> rates = {"tv": 0.5, "search": 0.0}
    >>> rows = [(name, s, "posterior", rate**s) for name, rate in rates.items() for s in range(4)]
    >>> found = meridian_curves(polars.DataFrame(rows, schema=list(MERIDIAN), orient="row"))
    >>> found.names, (found.weights * 15).round(6).tolist()
    (('search', 'tv'), [[15.0, 0.0, 0.0, 0.0], [8.0, 4.0, 2.0, 1.0]])
    """
    frame = frames.opened(table)
    if missing := [name for name in MERIDIAN if name not in frame.columns]:
        got = checks.shown(list(frame.columns))
        raise InvalidArgument(f"table must have the columns {', '.join(MERIDIAN)}, but {missing[0]} is not in {got}")
    if not len(frame):
        raise InvalidArgument("table must have rows, but has none")
    checks.choice("distribution", distribution, sorted(set(frame["distribution"].to_list())))
    frame = frame.filter(frame["distribution"] == distribution).sort("time_units")
    curves = {}
    for name in sorted(set(frame["channel"].to_list())):
        part = frame.filter(frame["channel"] == name)
        curves[name] = (frames.numbers("time_units", part["time_units"]), frames.numbers("mean", part["mean"]))
    return _shares(curves, arms, rounds_per_unit)


def pymc_curves(curve: Any, *, arms: Sequence[str] | None = None, rounds_per_unit: float = 1.0) -> AdstockCurves:
    """Return the curves of an array (xarray) of PyMC-Marketing, with a dimension for time and one for channels.

    curve: of `adstock.sample_curve(parameters)`; samples are averaged. arms, rounds_per_unit: as for Meridian.

    >>> from types import SimpleNamespace            # what is used of an array of xarray
    >>> coords = {"time since exposure": [0, 1], "channel": ["tv", "search"]}
    >>> curve = SimpleNamespace(dims=tuple(coords), coords=coords, values=[[1.0, 1.0], [0.25, 0.0]])
    >>> pymc_curves(curve).weights.tolist()
    [[0.8, 0.2], [1.0, 0.0]]
    """
    try:
        dims, values, coords = tuple(map(str, curve.dims)), np.asarray(curve.values), curve.coords
    except AttributeError:
        raise InvalidArgument(f"curve must be an array of xarray, but got {checks.shown(type(curve))}") from None
    time = [dim for dim in dims if "time" in dim]
    others = [dim for dim in dims if dim not in (*SAMPLES, *time)]
    if len(time) != 1 or len(others) != 1:
        raise InvalidArgument(f"curve must have a dimension for time and one for channels, but got {', '.join(dims)}")
    kept = [others[0], time[0]]
    values = values.mean(axis=tuple(k for k, dim in enumerate(dims) if dim not in kept))
    by_channel = values if dims.index(others[0]) < dims.index(time[0]) else values.T
    channels = [str(name) for name in np.asarray(coords[others[0]])]
    times = np.asarray(coords[time[0]], dtype=np.float64)
    return _shares({name: (times, row) for name, row in zip(channels, by_channel, strict=True)}, arms, rounds_per_unit)


def _shares(
    curves: dict[str, tuple[FloatArray, FloatArray]], arms: Sequence[str] | None, rounds_per_unit: float
) -> AdstockCurves:
    """Return the shares by round of curves that are given by channel as times and values."""
    rate = checks.real("rounds_per_unit", rounds_per_unit, above=0.0)
    names = tuple(curves if arms is None else arms)
    if len(set(names)) < len(names):
        raise InvalidArgument(f"arms must differ from each other, but got {checks.shown(names)}")
    last = max(float(times.max()) for times, _ in curves.values())
    rounds = np.arange(int(np.floor(last * rate + 1e-9)) + 1)
    rows = []
    for name in names:
        times, values = curves[checks.choice("arms", name, tuple(curves))]
        if (np.diff(times) <= 0.0).any():
            raise InvalidArgument(f"time_units must occur once for each channel, but do not for {name!r}")
        row = np.interp(rounds / rate, times, values, right=0.0)
        if not np.isfinite(values).all() or values.min() < 0.0 or not row.sum() > 0.0:
            rule = f"the curve of {name!r} must not be negative, nor sum to 0"
            raise InvalidArgument(f"{rule}, but got {checks.shown(values.round(4).tolist())}")
        rows.append(row / row.sum())
    return AdstockCurves(names, checks.frozen(np.array(rows)))


def best_probabilities(draws: ArrayLike, *, direction: str = "maximize") -> FloatArray:
    """Return the share of draws in which each arm is best, for `ae.advisers.Opinion`.

    draws: the whole effect of a play of each arm, shape (draws, K), from the posterior of a model.

    >>> best_probabilities([[1.0, 2.0], [3.0, 1.0], [1.0, 4.0], [0.0, 1.0]]).tolist()
    [0.25, 0.75]
    """
    values = checks.array("draws", draws, shape=("draws", "K"))
    checks.integer("len(draws)", len(values), low=1)
    sign = 1.0 if checks.choice("direction", direction, ("maximize", "minimize")) == "maximize" else -1.0
    return np.bincount((sign * values).argmax(axis=1), minlength=values.shape[1]) / len(values)


def lift_rows(curves: Curves, *, spend: Mapping[str, float], base: float = 0.0) -> list[dict[str, Any]]:
    """Return measured whole effects as rows of a lift test: channel, x, delta_x, delta_y, sigma.

    curves: of `estimate` with a table and a control. spend: what a play of an arm costs more than the control, by the
    name of the arm. base: the spend of the control. PyMC-Marketing takes these rows in
    `MMM.add_lift_test_measurements`; delta_y / delta_x is the return with which a prior for Meridian can be set.

    >>> from aftereffect import carryover, load_example
    >>> columns = {"round_column": "date", "arm_column": "campaign", "total_column": "sales", "unit_column": "store"}
    >>> found = carryover.estimate(load_example("stores"), max_lag=7, control="none", season=7, **columns)
    >>> (row,) = lift_rows(found, spend={"letter": 20.0})
    >>> row["channel"], row["delta_x"], round(row["delta_y"]), round(row["sigma"])
    ('letter', 20.0, 61, 2)
    """
    if not curves.names or not curves.relative_to.startswith("arm "):
        raise InvalidArgument(f"curves must be those of a table, relative to a control, but got {curves!r}")
    rows = []
    for name, cost in spend.items():
        arm, whole = curves.names.index(checks.choice("spend", name, curves.names)), curves.arrived
        error = float(whole.upper[arm, -1] - whole.lower[arm, -1]) / (2.0 * whole.factor) if whole.factor else 0.0
        effect = float(whole.values[arm, -1])
        more = checks.real(f"spend[{name!r}]", cost, above=0.0)
        rows.append({"channel": name, "x": float(base), "delta_x": more, "delta_y": effect, "sigma": error})
    return rows
