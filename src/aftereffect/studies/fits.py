"""Which power of d+1, K and T a measured regret grows with, and which rate of Section 1's table it agrees with.

A power law y = c · x_1^{a_1} ··· x_m^{a_m} is a straight line in logarithms, so its exponents come from ordinary least
squares, with the usual standard errors. A rate that is a theory's, such as √((d+1)KT), leaves one thing to fit, the
constant; how far the measured values then scatter about it says how well the theory describes them.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from aftereffect.core import checks
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument


class Exponent(NamedTuple):
    """A fitted exponent and its standard error; NaN where no point is left over to tell it from."""

    value: float
    standard_error: float


class PowerLaw(NamedTuple):
    """y ≈ constant · Π x^exponent. scatter: the residual standard deviation of ln y. points: how many were fitted."""

    constant: float
    exponents: dict[str, Exponent]
    scatter: float
    points: int


class Local(NamedTuple):
    """The exponent between two neighbouring values of a variable, all else equal."""

    low: float
    high: float
    exponent: Exponent


class Agreement(NamedTuple):
    """How a rate describes measured values: y ≈ constant · rate, up to a typical factor of exp(scatter)."""

    rate: str
    constant: float
    scatter: float

    @property
    def percent(self) -> float:
        """The scatter as a typical deviation in percent."""
        return 100.0 * math.expm1(self.scatter)

    def ties(self, other: "Agreement") -> bool:
        """Say whether both describe the values equally well, as rates do that are the same at these sizes."""
        return math.isclose(self.scatter, other.scatter, rel_tol=1e-6, abs_tol=1e-9)


def power_law(variables: Mapping[str, ArrayLike], y: ArrayLike) -> PowerLaw:
    """Fit exponents in log-log by least squares; a variable with a single value has none and is left out.

    variables: by name, each as long as y; all numbers must be above 0.

    >>> fit = power_law({"T": [1, 4, 16, 64], "K": [2, 2, 2, 2]}, [3, 6, 12, 24])
    >>> list(fit.exponents), round(fit.exponents["T"].value, 9), round(fit.constant, 9)
    (['T'], 0.5, 3.0)
    """
    logs = _logarithms("y", y)
    columns = {name: _logarithms(name, values, len(logs)) for name, values in variables.items()}
    columns = {name: column for name, column in columns.items() if np.ptp(column) > 0.0}
    matrix = np.column_stack([np.ones(len(logs)), *columns.values()])
    if len(logs) < matrix.shape[1] or np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        names = ", ".join(columns) or "no variable"
        raise InvalidArgument(f"variables must vary apart from each other, but {len(logs)} points do not tell {names}")
    solution = np.linalg.lstsq(matrix, logs, rcond=None)[0]
    left_over = len(logs) - matrix.shape[1]
    residuals = logs - matrix @ solution
    variance = float(residuals @ residuals) / left_over if left_over else math.nan
    spreads = np.sqrt(variance * np.diag(np.linalg.inv(matrix.T @ matrix)))
    exponents = {name: Exponent(float(solution[k]), float(spreads[k])) for k, name in enumerate(columns, start=1)}
    return PowerLaw(math.exp(solution[0]), exponents, math.sqrt(variance), len(logs))


def agreements(rates: Mapping[str, ArrayLike], y: ArrayLike) -> list[Agreement]:
    """Return how each rate describes y, the best first: one constant each, by least squares in logarithms.

    >>> [found] = agreements({"√(KT)": [2.0, 4.0]}, [10.0, 20.0])
    >>> round(found.constant, 9), round(found.percent, 9)
    (5.0, 0.0)
    """
    logs = _logarithms("y", y)
    checks.integer("len(y)", len(logs), low=2)
    found = []
    for name, rate in rates.items():
        ratios = logs - _logarithms(name, rate, len(logs))
        found.append(Agreement(name, math.exp(ratios.mean()), float(ratios.std(ddof=1))))
    return sorted(found, key=lambda agreement: agreement.scatter)


def local_exponents(variables: Mapping[str, ArrayLike], name: str, y: ArrayLike, errors: ArrayLike) -> list[Local]:
    """Return, for neighbouring values of one variable, the mean slope of ln y between points that differ in it alone.

    errors: the standard errors of y, from which those of the slopes follow.

    >>> local_exponents({"K": [4, 16, 4], "T": [9, 9, 1]}, "K", [2.0, 4.0, 7.0], [0.0, 0.0, 0.0])
    [Local(low=4.0, high=16.0, exponent=Exponent(value=0.5, standard_error=0.0))]
    """
    points = {key: checks.array(key, values, shape=("n",)) for key, values in variables.items()}
    logs = _logarithms("y", y)
    shares = checks.array("errors", errors, shape=(len(logs),)) / np.exp(logs)
    rest = [key for key in points if key != name]
    by_place: dict[tuple[float, ...], dict[float, int]] = {}
    for k, x in enumerate(points[name].tolist()):
        by_place.setdefault(tuple(float(points[key][k]) for key in rest), {})[x] = k
    values = sorted(set(points[name].tolist()))
    found = []
    for low, high in itertools.pairwise(values):
        pairs = [(place[low], place[high]) for place in by_place.values() if low in place and high in place]
        if pairs:
            first, second = (list(side) for side in zip(*pairs, strict=True))
            width = math.log(high / low) * len(pairs)
            slope = float((logs[second] - logs[first]).sum()) / width
            error = math.sqrt(float((shares[first] ** 2 + shares[second] ** 2).sum())) / width
            found.append(Local(low, high, Exponent(slope, error)))
    return found


def section_one(n_arms: ArrayLike, max_delay: ArrayLike, horizon: ArrayLike) -> dict[str, FloatArray]:
    """Return the three rates of the table in Section 1 at many sizes, by how they are written.

    >>> {name: float(rate[0]) for name, rate in section_one([4], [5], [100]).items()}
    {'√(KT)': 20.0, '√((d+K)T)': 30.0, '√((d+1)KT)': 48.98979485566356}
    """
    K, d, T = (np.asarray(sizes, dtype=np.float64) for sizes in (n_arms, max_delay, horizon))
    return {"√(KT)": np.sqrt(K * T), "√((d+K)T)": np.sqrt((d + K) * T), "√((d+1)KT)": np.sqrt((d + 1) * K * T)}


def powers(fit: PowerLaw, errors: bool = True) -> str:
    """Return the fitted powers as a product.

    >>> powers(PowerLaw(4.0, {"d+1": Exponent(0.5, 0.01), "K": Exponent(1.0, 0.02)}, 0.05, 12))
    '(d+1)^0.50±0.01 · K^1.00±0.02'
    """
    return " · ".join(
        f"{f'({key})' if '+' in key else key}^{power.value:.2f}" + (f"±{power.standard_error:.2f}" if errors else "")
        for key, power in fit.exponents.items()
    )


def sentence(name: str, fit: PowerLaw, best: Sequence[Agreement]) -> str:
    """Say in a sentence what was fitted and which rate agrees best.

    >>> fit = PowerLaw(4.0, {"d+1": Exponent(0.5, 0.01)}, 0.05, 12)
    >>> sentence("wrapper", fit, [Agreement("√((d+1)KT)", 4.0, 0.05), Agreement("√(KT)", 9.0, 0.9)])
    'wrapper: regret grows as (d+1)^0.50±0.01; of the rates compared, 4.0·√((d+1)KT) describes it best, with a typical \
deviation of 5%, against 146% for the next, √(KT).'
    """
    text = f"{name}: regret grows as {powers(fit)}"
    if not best:
        return text + "."
    text += f"; of the rates compared, {best[0].constant:.1f}·{best[0].rate} describes it best, with a typical "
    text += f"deviation of {best[0].percent:.0f}%"
    worse = [agreement for agreement in best if not agreement.ties(best[0])]
    if worse:
        text += f", against {worse[0].percent:.0f}% for the next, {worse[0].rate}"
    return text + "."


def _logarithms(name: str, values: ArrayLike, length: int | None = None) -> FloatArray:
    numbers = checks.array(name, values, shape=("n" if length is None else length,))
    checks.integer(f"len({name})", len(numbers), low=1)
    if numbers.min() <= 0.0:
        raise InvalidArgument(f"{name} must be above 0 to have logarithms, but got {float(numbers.min())!r}")
    logs: FloatArray = np.log(numbers)
    return logs
