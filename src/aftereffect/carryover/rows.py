"""The rows of the regression of `regression.py`: regressors, weights and whitening, and the fit of many units.

A unit has its own constant and, if asked for, its own trend. These are not columns: they are projected out of the rows
of the unit, which gives the same effects and the same covariance (Frisch, Waugh and Lovell), so that time and memory
grow with the number of rows alone.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import checks
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument

CHUNK, SHORT_CHUNK = 512, 128
"""Rounds that are whitened at once; fewer for many units. The correlation across the borders of chunks is ignored."""
HARMONICS = 3
"""Sines and cosines per season; for a period of up to 7 rounds these are all there are."""
MOST_WEIGHT = 10.0
"""The greatest weight of a row. Chosen here."""
WORST_CONDITION = 1e9
"""Equations without a unit that are worse conditioned than this leave an effect undetermined."""
BLOCK = 64
"""Units whose rows are built at once."""


def known_arms(arms: NDArray[np.int64], max_lag: int) -> NDArray[np.bool_]:
    """Return for every round from max_lag on whether its arm and those of the max_lag rounds before it are known."""
    lags = np.lib.stride_tricks.sliding_window_view(arms >= 0, max_lag + 1, axis=0)
    return np.asarray(lags.all(axis=2))


def beside_effects(rounds: int, season: float | None, own_trend: bool = False) -> tuple[FloatArray, FloatArray]:
    """Return the columns beside the effects, shape (rounds, columns): those of all units, and those of each by itself.

    A unit by itself has a constant and perhaps a linear trend; the trend is otherwise common, as is the season.
    """
    time = np.arange(rounds)
    trend = time / max(1, rounds - 1) - 0.5
    own, common = [np.ones(rounds)], list[FloatArray]()
    (own if own_trend else common).append(trend)
    if season is not None:
        season = checks.real("season", season, low=2.0)
        for h in range(1, min(HARMONICS, int(season // 2)) + 1):
            angle = 2.0 * np.pi * h * time / season
            # At half the period the sine is 0 in every round.
            common += [np.cos(angle)] if 2 * h == season else [np.cos(angle), np.sin(angle)]
    return np.array(common).reshape(-1, rounds).T, np.array(own).T


def lagged(arms: NDArray[np.int64], max_lag: int, n_arms: int) -> FloatArray:
    """Return the indicators of arms 1 to K-1 at lags 0 to max_lag, arm by arm, for every round from max_lag on."""
    lags = np.lib.stride_tricks.sliding_window_view(arms, max_lag + 1, axis=0)[..., ::-1]
    played = lags[:, :, np.newaxis, :] == np.arange(1, n_arms)[:, np.newaxis]
    return np.asarray(played.reshape(*lags.shape[:2], -1), dtype=np.float64)


class Whitening:
    """Decorrelates rows of a unit whose noise is an AR process; ar: the coefficients of the noise on its own past."""

    def __init__(self, ar: FloatArray, rounds: int, chunk: int = CHUNK) -> None:
        self._order, self._chunk = len(ar), chunk
        if self._order:
            self._linalg = checks.optional("scipy.linalg", "estimate", "carryover")
            process = checks.optional("statsmodels.tsa.arima_process", "estimate", "carryover")
            covariances = process.ArmaProcess(np.append(1.0, -ar)).acovf(min(chunk, rounds))
            self._covariance = self._linalg.toeplitz(covariances)
            self._root = self._linalg.cholesky(self._covariance, lower=True)

    def rows(self, values: FloatArray, used: NDArray[np.bool_]) -> FloatArray:
        """Return the rows of `values`, shape (rounds, columns), that are used, decorrelated."""
        if not self._order:
            return values[used]
        parts = [values[:0]]
        for start in range(0, len(values), self._chunk):
            rows = np.flatnonzero(used[start : start + self._chunk])
            if not len(rows):
                continue
            root = self._root[: len(rows), : len(rows)]
            if rows[-1] - rows[0] + 1 > len(rows):
                root = self._linalg.cholesky(self._covariance[np.ix_(rows, rows)], lower=True)
            parts.append(self._linalg.solve_triangular(root, values[start + rows], lower=True))
        return np.concatenate(parts)


def draw_weights(q: FloatArray, n_arms: int, reach: int) -> FloatArray:
    """Return the weight of every round: the square root of Π (1/K)/q over the draws that its last reach+1 rounds touch.

    q: the probability of the arm drawn, shape (rounds, units), NaN where none was drawn. Weights are capped.
    """
    drawn = np.isfinite(q)
    logs = np.cumsum(np.where(drawn, -np.log(n_arms * q), 0.0), axis=0)
    time = np.arange(len(q))
    in_force = np.maximum.accumulate(np.where(drawn, time[:, np.newaxis], 0))
    first = in_force[np.maximum(time - reach, 0)]
    before = np.take_along_axis(np.concatenate([np.zeros_like(logs[:1]), logs]), first, axis=0)
    return np.asarray(np.minimum(np.exp(0.5 * (logs - before)), MOST_WEIGHT))


class Units(NamedTuple):
    """Rounds of units side by side, from round max_lag of the record on; arms: also those of the rounds before.

    totals, used: shape (rounds, units). common, own: the columns of `beside_effects`; the latter are projected out of
    each unit.
    """

    arms: NDArray[np.int64]
    totals: FloatArray
    used: NDArray[np.bool_]
    max_lag: int
    n_arms: int
    common: FloatArray
    own: FloatArray

    @property
    def columns(self) -> int:
        """The number of columns, those of the units included."""
        return int(self.effects + self.common.shape[1] + self.used.shape[1] * self.own.shape[1])

    @property
    def effects(self) -> int:
        """The number of columns that are effects; they come first."""
        return (self.n_arms - 1) * (self.max_lag + 1)

    def each(self) -> Iterator[tuple[int, FloatArray]]:
        """Yield the regressors of each unit, shape (rounds, columns), without those that are its own."""
        for start in range(0, self.used.shape[1], BLOCK):
            effects = lagged(self.arms[:, start : start + BLOCK], self.max_lag, self.n_arms)
            for u in range(effects.shape[1]):
                yield start + u, np.concatenate([effects[:, u], self.common], axis=1)


class UnitsFit(NamedTuple):
    """params: of the effects and the common columns. squares: the sum of squares of what is left of the totals.

    clear: the sum of the totals without the effects. triangle: R of the QR decomposition of the rows.
    """

    params: FloatArray
    covariance: FloatArray
    squares: float
    clear: float
    triangle: FloatArray


def fit_units(units: Units, ar: FloatArray, weights: FloatArray, by: str) -> UnitsFit:
    """Return the fit by weighted least squares of whitened rows.

    by: what clusters its covariance, "totals", "rounds" or "units". By totals and by units it is that of the jackknife,
    which takes each away once (HC3 and CR3): right also with a dozen units.
    """
    chunk = CHUNK if units.used.shape[1] <= BLOCK else SHORT_CHUNK
    whitening, rows, kept, own, taken = Whitening(ar, len(units.used), chunk), [], [], [], []
    p = units.effects + units.common.shape[1]
    triangle = np.zeros((0, p + 1))
    for u, x in units.each():
        use = units.used[:, u]
        values = np.concatenate([x, units.totals[:, u, np.newaxis], units.own], axis=1)
        row = whitening.rows(values, use) * np.sqrt(weights[use, u])[:, np.newaxis]
        basis, corner = np.linalg.qr(row[:, p + 1 :])
        inner = basis.T @ row[:, : p + 1]
        row = row[:, : p + 1] - basis @ inner
        own.append(np.linalg.solve(corner, inner))
        taken.append((basis**2).sum(axis=1))
        rows.append(row)
        kept.append(np.flatnonzero(use))
        triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, row]), mode="r"))
    x_corner, y_corner = triangle[:p, :p], triangle[:p, p]
    params = np.linalg.lstsq(x_corner, y_corner, rcond=None)[0]
    half = np.linalg.pinv(x_corner)
    inverse = half @ half.T
    scores = np.zeros((len(rows) if by == "units" else len(units.used), p))
    for u, (row, when) in enumerate(zip(rows, kept, strict=True)):
        x = row[:, :p]
        score = x * (row[:, p] - x @ params)[:, np.newaxis]
        if by == "rounds":
            scores[when] += score
        elif by == "totals":
            # The leverage is 0 to 1: what the columns of the unit explain of a row, and what the others do.
            scores[when] += score / (1.0 - taken[u] - ((x @ inverse) * x).sum(axis=1))[:, np.newaxis]
        else:
            others = np.eye(p) - x.T @ x @ inverse
            if np.linalg.cond(others) > WORST_CONDITION:
                rule = "every arm at every lag must be told from the others without any one unit"
                raise InvalidArgument(f"{rule}, to cluster by units, but got one that is not without unit {u}")
            scores[u] = np.linalg.solve(others, score.sum(axis=0))
    around = scores @ inverse
    correction = 1.0
    if by == "rounds":
        count, many = int(units.used.sum()), int(units.used.any(axis=1).sum())
        correction = many / (many - 1.0) * (count - 1.0) / (count - units.columns)
    elif by == "units":
        correction = (len(rows) - 1.0) / len(rows)
    squares = clear = 0.0
    for u, x in units.each():
        use, found = units.used[:, u], own[u]
        constant = units.own @ (found[:, p] - found[:, :p] @ params)
        squares += float(((units.totals[:, u] - x @ params - constant)[use] ** 2).sum())
        clear += float((units.totals[:, u] - x[:, : units.effects] @ params[: units.effects])[use].sum())
    return UnitsFit(params, correction * around.T @ around, squares, clear, x_corner)
