"""How regret grows with d+1, K and T: powers fitted to the rows of a study.

A power law y = c · x_1^{a_1} ··· x_m^{a_m} is a straight line in logarithms, so its exponents come from ordinary least
squares, with the usual standard errors.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument
from aftereffect.studies.report import frames

VARIABLES = ("d+1", "K", "T")


class Exponent(NamedTuple):
    """A fitted exponent and its standard error; the latter is NaN if no degrees of freedom (`freedom`) are left."""

    value: float
    standard_error: float
    freedom: int = 0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of Student's t, as least squares assume (extra `carryover`)."""
        stats = checks.optional("scipy.stats", "fit", "carryover")
        half = float(stats.t.ppf(0.975, self.freedom)) * self.standard_error if self.freedom else math.nan
        return self.value - half, self.value + half


class PowerLaw(NamedTuple):
    """The worst regrets of one player, with the float columns d+1, K and T, and the powers fitted to them."""

    rows: pl.DataFrame
    fit: dict[str, Exponent]


def fit(rows: pl.DataFrame, *, each: bool = False) -> pl.DataFrame:
    """Fit powers of d+1, K and T to the regret of every player at the horizon.

    rows: those of a study (`Results.rows`), with at least three sizes for one varying size, four for two, five for all
    three. each: for every instance by itself; by default the greatest regret over all instances at each size. Regrets
    that are not above 0 are left out, and sizes with d = 0 are fitted separately, since feedback is immediate there.

    Returns a frame with one row for each player, in the order of the rows, and each size that varies: player and
    instance as in reports, variable, exponent, standard_error, the 95% interval low to high (for which it needs the
    extra `carryover`), and sizes, the number of sizes fitted.
    """
    shown = frames.readable(rows.filter(measure="regret"))
    parts = [("worst", shown)]
    if each:
        parts = [(where, shown.filter(where=where)) for where in frames.names(shown, "where")]
    found = [
        (label, where, name, power.value, power.standard_error, *power.interval, one.rows.height)
        for where, part in parts
        for who in frames.names(part, "who")
        for label, one in fitted(frames.worst(part.filter(who=who))).items()
        for name, power in one.fit.items()
    ]
    if not found:
        raise InvalidArgument(
            "rows must hold a player at three sizes or more with a regret above 0, two more sizes than vary, "
            f"but there is none in {rows.height} rows"
        )
    columns = ("player", "instance", "variable", "exponent", "standard_error", "low", "high", "sizes")
    return pl.DataFrame(found, schema=columns, orient="row")


def fitted(worst: pl.DataFrame) -> dict[str, PowerLaw]:
    """Return the power law of each player; players that cannot be fitted are left out.

    At d = 0 feedback is immediate and the wrapper is its base algorithm; these sizes are fitted separately.
    """
    delayed: dict[str, PowerLaw | None] = {}
    immediate: dict[str, PowerLaw | None] = {}
    positive = worst.filter(pl.col("regret") > 0.0)
    for who in sorted(frames.names(positive, "who"), key=lambda who: (not who.startswith("wrapper"), who)):
        part = positive.filter(who=who)
        at_once = part.filter(max_delay=0)
        if 0 < at_once.height < part.height:
            delayed[f"{who}, d > 0"] = _fitted(part.filter(pl.col("max_delay") > 0))
            immediate[f"{who}, d = 0"] = _fitted(at_once)
        else:
            delayed[who] = _fitted(part)
    return {who: one for who, one in (delayed | immediate).items() if one is not None}


def _fitted(part: pl.DataFrame) -> PowerLaw | None:
    """Fit one player's worst regrets; None if there are too few sizes or they do not vary independently."""
    K, d, T = (pl.col(name).cast(pl.Float64) for name in frames.SIZES)
    part = part.with_columns((d + 1.0).alias("d+1"), K.alias("K"), T.alias("T"))
    fit = power_law(variables(part), part["regret"].to_numpy())
    return None if fit is None or part.height < len(fit) + 2 else PowerLaw(part, fit)


def variables(rows: pl.DataFrame) -> dict[str, checks.FloatArray]:
    """Return d+1, K and T of the rows."""
    return {name: rows[name].to_numpy() for name in VARIABLES}


def power_law(variables: Mapping[str, checks.FloatArray], y: checks.FloatArray) -> dict[str, Exponent] | None:
    """Fit y ≈ constant · Π x^exponent by least squares in logarithms; None if the points do not determine it.

    A variable with a single value has no exponent and is left out. All numbers must be above 0.

    >>> fit = power_law({"T": np.array([1, 4, 16, 64]), "K": np.array([2, 2, 2, 2])}, np.array([3, 6, 12, 24]))
    >>> list(fit), round(fit["T"].value, 9)
    (['T'], 0.5)
    """
    logs = np.log(y)
    columns = {name: np.log(values) for name, values in variables.items() if np.ptp(values) > 0.0}
    matrix = np.column_stack([np.ones(len(logs)), *columns.values()])
    solution, _, rank, _ = np.linalg.lstsq(matrix, logs, rcond=None)
    if not columns or rank < matrix.shape[1]:
        return None
    left_over = len(logs) - matrix.shape[1]
    residuals = logs - matrix @ solution
    variance = float(residuals @ residuals) / left_over if left_over else math.nan
    spreads = np.sqrt(variance * np.diag(np.linalg.inv(matrix.T @ matrix)))
    return {name: Exponent(float(solution[k]), float(spreads[k]), left_over) for k, name in enumerate(columns, start=1)}
