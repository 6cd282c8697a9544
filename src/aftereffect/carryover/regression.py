"""`estimate`: the effect of every arm by lag, from the arms played and the totals observed.

A distributed-lag regression: the total of a round on the arms of that round and of the max_lag rounds before it. The
noise may be autocorrelated: it is whitened by an autoregression, and the covariance is robust to noise that depends on
the arms. docs/theory/carryover.md has the mathematics.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aftereffect.carryover.effects_by_lag import Alike, Bands, Curves, doubled_bins
from aftereffect.carryover.rows import Units, beside_effects, draw_weights, fit_units, known_arms
from aftereffect.core import checks, frames
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import AftereffectWarning, InvalidArgument

DRAWS = 20_000
"""Draws of a multivariate t for a critical value, whose standard error is then about 0.01."""
MAX_ORDER = 10
"""The highest order of the autoregression of the noise."""
NOISE_ROWS = 20_000
"""With more totals than this, the noise is that of units, evenly chosen, that have so many."""
FEWEST_DRAWS = 10
"""An arm that a player drew less often is not measured. Chosen here."""
LARGEST = 1e70
"""The largest total: fourth powers must not overflow; nor may those of residuals underflow."""
NO_NOISE = 1e-20
"""Residuals whose share of the sum of squares is not above this are rounding errors."""


def estimate(
    arms: Any,
    totals: ArrayLike | None = None,
    *,
    max_lag: int,
    n_arms: int | None = None,
    control: int | str | None = None,
    season: float | None = None,
    level: float = 0.95,
    exposure: str = "randomised",
    probabilities: ArrayLike | None = None,
    trend: str = "common",
    clusters: str = "rounds",
    round_column: str | None = None,
    arm_column: str | None = None,
    total_column: str | None = None,
    unit_column: str | None = None,
) -> Curves:
    """Return the effect of every arm by lag, with simultaneous bands.

    arms: the arm played in each round, shape (rounds,), or (rounds, units) for units that are played side by side; -1
        where it is not known. totals: of the same shape; NaN where missing. Or, instead of both, a table of pandas,
        polars or Arrow with a row per round and unit (`core/frames.py`), in which the arms have names.
    max_lag: effects last at most so many rounds. What arrives later is noise that depends on the arms.
    n_arms: K; by default the greatest arm and those below it.
    control: an arm that does nothing, with a table its name. Effects are relative to it; by default to the mean of the
        arms.
    season: a period of the totals, in rounds: 7 for days of a week.
    level: of the bands.
    exposure: how the arms were chosen. "randomised": in advance, as in a pilot. "adaptive": drawn by a player that
        looks at totals, with these `probabilities`; an arm that it drew less than 10 times is not measured. "recorded":
        unknown; a warning is given, because whatever moved both arms and totals is taken for an effect.
    probabilities: of the same shape; in a round in which an arm was drawn, the probability with which this arm was
        drawn; NaN in a round that kept the arm of the round before.
    trend: with units, whether they have a linear trend in "common" or one per "unit".
    clusters: with units, whether totals of different units are correlated in the same round ("rounds", of which there
        must be many), or those of different rounds in the same unit ("units", of which there must be many).
    round_column, arm_column, total_column, unit_column: the columns of a table; by default found by their names.

    >>> from aftereffect import load_example
    >>> columns = {"round_column": "date", "arm_column": "campaign", "total_column": "sales", "unit_column": "store"}
    >>> found = estimate(load_example("stores"), max_lag=7, control="none", season=7, **columns)
    >>> dict(zip(found.names, found.arrived.values[:, -1].round().tolist()))       # 30, 60, 0 and 45 in truth
    {'email': 28.0, 'letter': 61.0, 'none': 0.0, 'visit': 47.0}
    """
    names: tuple[str, ...] = ()
    if totals is None:
        columns = {"round_column": round_column, "arm_column": arm_column, "total_column": total_column}
        table = frames.round_table(arms, **columns, unit_column=unit_column)
        names, arms, totals, n_arms = table.arms, table.played, table.totals, len(table.arms)
        if control is not None:
            control = names.index(checks.choice("control", control, names))
    D = checks.integer("max_lag", max_lag, low=0)
    played, observed, K = series(arms, totals, n_arms)
    if control is not None:
        checks.integer("control", control, low=0, high=K - 1)
    level = checks.real("level", level, low=0.5, high=0.9999)
    if len(played) <= D:
        raise InvalidArgument(f"arms must be those of more than max_lag = {D} rounds, but got {len(played)}")
    if checks.choice("exposure", exposure, ("randomised", "adaptive", "recorded")) == "recorded":
        message = "the arms were not chosen at random: whatever moved both arms and totals is taken for an effect"
        warnings.warn(message, AftereffectWarning, stacklevel=2)
    q = _checked_probabilities(exposure, probabilities, played)
    if probabilities is not None:
        played, measured = _drawn_arms(played, q, K, control)
    else:
        measured = np.arange(K)
        if len(missing := np.setdiff1d(measured, played)):
            rule = f"arms must contain every arm below n_arms = {K}"
            raise InvalidArgument(f"{rule}, but arm {missing[0]} was never played")
    M = len(measured)
    y = observed[D:]
    by = cluster_kind(played.shape[1], checks.choice("clusters", clusters, ("rounds", "units")))
    used = known_arms(played, D) & np.isfinite(y)
    # Totals far from 0 would lose digits.
    counts = used.sum(axis=0)
    centre = np.array([y[rows, unit].mean() if rows.any() else 0.0 for unit, rows in enumerate(used.T)])
    own_trend = checks.choice("trend", trend, ("common", "unit")) == "unit" and by != "totals"
    units = Units(played, y - centre, used, D, M, *beside_effects(len(y), season, own_trend))
    _check_counts(units, by)
    dof = degrees(used, units.columns, by)
    ar = _noise(units)
    found = fit_units(units, ar, draw_weights(q, K, D + len(ar))[D:], by)
    size = units.effects
    _check_rank(found.triangle, size + 1 - own_trend, season, len(y))
    clear = float((found.clear + (centre * counts).sum()) / counts.sum())
    relative = None if control is None else int(np.searchsorted(measured, int(control)))
    contrast, running, later = combinations(M, D + 1, relative)
    fit = Fit(found.params[:size], found.covariance[:size, :size], dof, 1.0 - level, M)
    effects, largest = bands_of(contrast, fit)
    p_value = _alike(effects, largest, fit)
    labels = names or tuple(map(str, range(K)))
    mean = "the mean of the arms" if M == K else f"the mean of arms {', '.join(labels[i] for i in measured)}"
    return Curves(
        relative_to=mean if control is None else f"arm {labels[int(control)]}",
        level=level,
        exposure=exposure,
        effects=_placed(effects, measured, K),
        arrived=_placed(bands_of(running, fit)[0], measured, K),
        shares=_placed(_shares(running, fit), measured, K),
        remaining=_placed(bands_of(later, fit)[0], measured, K),
        alike=Alike(p_value, "apart" if p_value < fit.alpha else "not refuted"),
        # Effects of arm 0 are the negative of what the others are relative to.
        base=clear - float((running @ fit.params)[D]),
        rounds=int(used.sum()),
        order=len(ar),
        noise=float(np.sqrt(found.squares / (used.sum() - units.columns))),
        differences=fit.params,
        covariance=fit.covariance,
        dof=dof,
        clustered=by != "totals",
        unmeasured=tuple(np.setdiff1d(np.arange(K), measured).tolist()),
        names=names,
    )


def _drawn_arms(
    played: NDArray[np.int64], q: FloatArray, n_arms: int, control: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the column of each round's arm, −1 for none, and the arms that a player drew often enough to have one.

    What was drawn before the first known draw, or after an unknown arm and before the next known draw, is not known,
    and arms that were drawn too seldom have no columns.
    """
    drawn, time = np.isfinite(q), np.arange(len(q))[:, np.newaxis]
    measured = np.flatnonzero(np.bincount(played[drawn & (played >= 0)], minlength=n_arms) >= FEWEST_DRAWS)
    if len(measured) < 2 or (control is not None and control not in measured):
        wanted = "two arms" if control is None else f"the control, arm {control}, and another arm"
        raise InvalidArgument(
            f"{wanted} must have been drawn {FEWEST_DRAWS} times, but got {measured.tolist()} as arms that were"
        )
    latest, lost = (np.where(where, time, -1) for where in (drawn, (played < 0) & ~drawn))
    known = np.where(np.maximum.accumulate(latest) > np.maximum.accumulate(lost), played, -1)
    column = np.full(n_arms + 1, -1)
    column[measured] = np.arange(len(measured))
    return column[known], measured


def cluster_kind(units: int, clusters: str = "rounds") -> str:
    """Return by what a covariance is clustered: by "totals", each for itself, if there is but one unit."""
    return clusters if units > 1 else "totals"


def degrees(used: NDArray[np.bool_], columns: int, by: str) -> float:
    """Return the degrees of freedom of the bands: with units, the number of clusters counts."""
    rows = int(used.sum()) - columns
    return float(rows if by == "totals" else min(rows, _count(used, by) - 1))


def _count(used: NDArray[np.bool_], by: str) -> int:
    """Return the number of rounds or units that have a total."""
    return int(used.any(axis=int(by == "rounds")).sum())


def combinations(n_arms: int, lags: int, control: int | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the matrices that take effects relative to arm 0 to those relative to the control or the mean of the arms.

    The first gives effects by lag, the second effects arrived, the third what remains; all arm by arm.
    """
    base = np.full(n_arms, 1.0 / n_arms) if control is None else np.eye(n_arms)[control]
    by_arm = (np.eye(n_arms) - base)[:, 1:]
    up_to = np.tri(lags)
    return np.kron(by_arm, np.eye(lags)), np.kron(by_arm, up_to), np.kron(by_arm, 1.0 - up_to)


def critical(covariance: FloatArray, dof: float, alpha: float) -> tuple[float, FloatArray]:
    """Return the (1-alpha)-quantile of the maximum of |t| of a multivariate t, and sorted draws of this maximum."""
    stats = checks.optional("scipy.stats", "estimate", "carryover")
    scale = np.sqrt(np.diag(covariance))
    if not scale.any():
        return 0.0, np.zeros(DRAWS)
    some = scale > 1e-9 * scale.max()
    correlation = covariance[np.ix_(some, some)] / np.outer(scale[some], scale[some])
    try:
        draws = stats.multivariate_t(shape=correlation, df=dof, allow_singular=True).rvs(DRAWS, random_state=0)
    except np.linalg.LinAlgError:
        # At long lags the singular value decomposition of a correlation may not converge; its eigenvalues do.
        values, vectors = np.linalg.eigh(correlation)
        root, rng = vectors * np.sqrt(np.maximum(values, 0.0)), np.random.default_rng(0)
        draws = rng.standard_normal((DRAWS, len(root))) @ root.T / np.sqrt(rng.chisquare(dof, (DRAWS, 1)) / dof)
    largest = np.sort(np.abs(draws.reshape(DRAWS, -1)).max(axis=1))
    return float(np.quantile(largest, 1.0 - alpha)), largest


def _checked_probabilities(exposure: str, probabilities: ArrayLike | None, arms: NDArray[np.int64]) -> FloatArray:
    """Return probabilities of shape (rounds, units), all NaN if arms were not drawn by a player."""
    if (exposure == "adaptive") != (probabilities is not None):
        got = "none" if probabilities is None else f"some, and exposure = {exposure!r}"
        raise InvalidArgument(f"probabilities must be given if exposure is 'adaptive', and only then, but got {got}")
    if probabilities is None:
        return np.full(arms.shape, np.nan)
    q = checks.as_array("probabilities", probabilities)
    if q.dtype.kind not in "fiu":
        got = checks.shown(probabilities)
        raise InvalidArgument(f"probabilities must be numbers, NaN where no arm was drawn, but got {got}")
    wrong = q[~(np.isnan(q) | ((q > 0.0) & (q <= 1.0)))]
    if wrong.size:
        raise InvalidArgument(f"probabilities must be in (0, 1], or NaN, but got {checks.shown(wrong.flat[0])}")
    if len(q) != len(arms) or q.size != arms.size:
        raise InvalidArgument(f"probabilities must have the shape of arms, but got {q.shape}")
    q = q.reshape(arms.shape).astype(np.float64)
    changed = np.argwhere(np.isnan(q[1:]) & (arms[1:] != arms[:-1]) & (np.minimum(arms[1:], arms[:-1]) >= 0))
    if len(changed):
        t = int(changed[0][0]) + 1
        raise InvalidArgument(f"probabilities must be given where the arm changes, but got NaN in round {t}")
    return q


def series(arms: ArrayLike, totals: ArrayLike, n_arms: int | None) -> tuple[NDArray[np.int64], FloatArray, int]:
    """Return arms and totals, both of shape (rounds, units), and K."""
    played, observed = checks.as_array("arms", arms), checks.as_array("totals", totals)
    if played.dtype.kind not in "iu" or not played.size or played.min() < -1:
        raise InvalidArgument(f"arms must be whole numbers of at least 0, or -1, but got {checks.shown(arms)}")
    if observed.dtype.kind not in "fiu" or (np.abs(observed) > LARGEST).any():
        rule = f"totals must be finite numbers up to {LARGEST:g}, or NaN where missing"
        raise InvalidArgument(f"{rule}, but got {checks.shown(totals)}")
    if played.ndim not in (1, 2) or played.shape != observed.shape:
        raise InvalidArgument(
            "arms and totals must have the same shape, (rounds,) or (rounds, units), "
            f"but got {played.shape} and {observed.shape}"
        )
    K = checks.integer("n_arms", int(played.max()) + 1 if n_arms is None else n_arms, low=2)
    if played.max() >= K:
        raise InvalidArgument(f"arms must be below n_arms = {K}, but got {int(played.max())}")
    rounds = len(played)
    return played.reshape(rounds, -1).astype(np.int64), observed.reshape(rounds, -1).astype(np.float64), K


def _check_counts(units: Units, by: str) -> None:
    """Raise an error if there are too few totals, rounds or units to estimate the effects and their covariance."""
    used, D, M = units.used, units.max_lag, units.n_arms
    counts, fewest = used.sum(axis=0), 1 + units.own.shape[1]
    if counts.min() < fewest:
        # The first totals of a unit only determine what is its own.
        unit, words = int(counts.argmin()), {2: "two", 3: "three"}[fewest]
        raise InvalidArgument(
            f"every unit must have totals of {words} rounds after the first {D}, with known arms up to {D} rounds "
            f"before, but unit {unit} has {counts[unit] or 'none'}"
        )
    needed = units.columns + 2 * (MAX_ORDER if by == "totals" else _highest_order(used))
    if used.sum() < needed:
        raise InvalidArgument(f"totals must be at least {needed} after the first {D} rounds, but got {int(used.sum())}")
    # A clustered covariance has no higher rank than this; the tests invert that of so many sums. With one round more
    # than what is a unit's own, the rounds' scores would all be 0.
    least = max((M - 1) * len(doubled_bins(D + 1)), fewest * (by == "rounds"))
    if by != "totals" and degrees(used, units.columns, by) < least:
        what, other = ("rounds with totals", "; or say clusters='units'") if by == "rounds" else ("units", "")
        raise InvalidArgument(
            f"{what} must be more than {least} after the first {D}, to measure {M} arms with units, "
            f"but got {_count(used, by)}{other}"
        )


def _check_rank(x: FloatArray, plain: int, season: float | None, rounds: int) -> None:
    """Raise an error if columns are dependent; the first `plain` ones are those without the season."""
    if np.linalg.matrix_rank(x) == x.shape[1]:
        return
    if np.linalg.matrix_rank(x[:, :plain]) == plain:
        raise InvalidArgument(
            f"season must be so short that its waves differ from the trend in {rounds} rounds, but got {season!r}"
        )
    raise InvalidArgument("arms must be varied so that every arm at every lag can be told from the others")


def _noise(units: Units) -> FloatArray:
    """Return the coefficients of an autoregression of the noise, from some of the units if there are very many totals.

    Regressors may be dependent.
    """
    n = units.used.shape[1]
    many = max(2, NOISE_ROWS // len(units.used)) if units.used.sum() > NOISE_ROWS else n
    some = np.unique(np.linspace(0, n - 1, min(many, n)).astype(np.int64))
    few = units._replace(arms=units.arms[:, some], totals=units.totals[:, some], used=units.used[:, some])
    own = np.kron(np.eye(few.used.shape[1])[np.newaxis], few.own[:, np.newaxis])
    x = np.stack([np.concatenate([x, own[:, u]], axis=1) for u, x in few.each()], axis=1)
    linalg, used = checks.optional("scipy.linalg", "estimate", "carryover"), few.used
    q, r, _ = linalg.qr(x[used], mode="economic", pivoting=True)
    sizes = np.abs(np.diag(r))
    basis = np.zeros((*used.shape, int((sizes > 1e-10 * sizes[0]).sum())))
    basis[used] = q[:, : basis.shape[2]]
    if (basis**2).sum(axis=2).max() > 1.0 - 1e-9:
        raise InvalidArgument("arms must be varied so that no effect is seen in a single total only")
    observed = np.where(used, few.totals, 0.0)
    squares, rest = np.sum(observed**2), np.sum((observed - basis @ np.einsum("tuk,tu->k", basis, observed)) ** 2)
    if rest <= max(NO_NOISE * squares, LARGEST**-2):
        raise InvalidArgument(
            "totals must vary by more than what arms, trend and season explain, since the bands are measured by the "
            f"rest, but got a sum of squares of {squares:.3g} with {rest:.3g} left"
        )
    return _autoregression(autocovariances(observed, basis, used), int(used.sum()))


def _highest_order(used: NDArray[np.bool_]) -> int:
    """Return the highest order of the autoregression of the noise for totals in these rounds."""
    return int(max(0, min(MAX_ORDER, used.sum(axis=0).mean() // 10)))


def autocovariances(y: FloatArray, basis: FloatArray, used: NDArray[np.bool_]) -> FloatArray:
    """Return the autocovariances of the noise, from the residuals of y on an orthonormal basis of the regressors.

    Residuals are less correlated than the noise, since the regressors take up some of it. The mean of their products is
    linear in the autocovariances; the linear equations are solved (Worsley and others 2002). y and the basis are 0 in
    rounds that are not used.
    """
    order = _highest_order(used)
    residuals = y - basis @ np.einsum("tuk,tu->k", basis, y)

    def shifted(values: FloatArray, h: int) -> FloatArray:
        """Return values[t + h] in round t, 0 beyond the ends and in rounds that are not used."""
        found = np.zeros_like(values)
        size = len(values) - abs(h)
        found[max(0, -h) :][:size] = values[max(0, h) :][:size]
        found[~used] = 0.0
        return found

    ahead = [shifted(basis, h) for h in range(order + 1)]
    back = [shifted(basis, -h) for h in range(order + 1)]
    # S_j is the shift by j plus its transpose, and the identity for j = 0.
    both = [ahead[0], *(ahead[j] + back[j] for j in range(1, order + 1))]
    flat = basis.reshape(-1, basis.shape[2]).T
    inner_ahead, inner_both = ([flat @ each.reshape(flat.T.shape) for each in shifts] for shifts in (ahead, both))
    system, products = np.empty((order + 1, order + 1)), np.empty(order + 1)
    for h in range(order + 1):
        products[h] = (residuals * shifted(residuals, h)).sum()
        pairs = (used[: len(used) - h] & used[h:]).sum()
        for j in range(order + 1):
            # tr(R D_h R S_j), where R = 1 - QQ' makes residuals, and D_h is the shift by h.
            system[h, j] = pairs * (h == j) - (back[h] * both[j]).sum() - (both[j] * ahead[h]).sum()
            system[h, j] += (inner_ahead[h] * inner_both[j]).sum()
    return np.asarray(np.linalg.solve(system, products), dtype=np.float64)


def _autoregression(covariances: FloatArray, count: int) -> FloatArray:
    """Return the coefficients of an autoregression, by Yule and Walker; AIC chooses the order."""
    tools = checks.optional("statsmodels.tsa.stattools", "estimate", "carryover")
    best, least = np.empty(0), count * np.log(covariances[0])
    for p in range(1, len(covariances)):
        variance, ar, partial, *_ = tools.levinson_durbin(covariances, nlags=p, isacov=True)
        if abs(partial[-1]) >= 1.0 or variance <= 0.0:
            break
        criterion = count * np.log(variance) + 2.0 * p
        if criterion < least:
            best, least = np.asarray(ar), criterion
    return best


class Fit(NamedTuple):
    """The effects relative to the first arm, arm by arm, their covariance, its degrees of freedom, and 1 - level."""

    params: FloatArray
    covariance: FloatArray
    dof: float
    alpha: float
    n_arms: int


def bands_of(matrix: FloatArray, fit: Fit) -> tuple[Bands, FloatArray]:
    """Return the bands of matrix @ params, and sorted draws of the greatest |t|."""
    spread = matrix @ fit.covariance @ matrix.T
    factor, largest = critical(spread, fit.dof, fit.alpha)
    values = (matrix @ fit.params).reshape(fit.n_arms, -1)
    width = (factor * np.sqrt(np.diag(spread))).reshape(fit.n_arms, -1)
    return Bands(values, values - width, values + width, factor), largest


def _placed(bands: Bands, arms: NDArray[np.int64], n_arms: int) -> Bands:
    """Return bands of all arms, from those of the given arms; others are NaN, and their bands infinite."""
    values, lower, upper = (np.full((n_arms, bands.values.shape[1]), fill) for fill in (np.nan, -np.inf, np.inf))
    values[arms], lower[arms], upper[arms] = bands.values, bands.lower, bands.upper
    return Bands(values, lower, upper, bands.factor)


def _shares(running: FloatArray, fit: Fit) -> Bands:
    """Return the shares arrived, with Fieller's intervals at a common critical value (Dilba, Bretz, Guiard 2006)."""
    lags = len(running) // fit.n_arms
    last = np.repeat(running[lags - 1 :: lags], lags, axis=0)
    top, whole = running @ fit.params, last @ fit.params
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(np.abs(whole) > 0.0, top / whole, np.nan)
    gap = running - np.nan_to_num(values)[:, np.newaxis] * last
    gap[lags - 1 :: lags] = 0.0
    lower, upper, factor = np.ones(len(values)), np.ones(len(values)), 0.0
    if lags > 1:
        factor, _ = critical(gap @ fit.covariance @ gap.T, fit.dof, fit.alpha)
        pairs = ((running, running), (running, last), (last, last))
        lower, upper = fieller(top, whole, *(factor**2 * ((a @ fit.covariance) * b).sum(axis=1) for a, b in pairs))
    # By the longest lag all has arrived, by definition.
    lower[lags - 1 :: lags] = upper[lags - 1 :: lags] = values[lags - 1 :: lags] = 1.0
    shape = (fit.n_arms, lags)
    return Bands(values.reshape(shape), lower.reshape(shape), upper.reshape(shape), factor)


def fieller(
    top: FloatArray, whole: FloatArray, var_top: FloatArray, both: FloatArray, var_whole: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of {f: (top - f whole)² ≤ var_top - 2 f both + f² var_whole}; infinite if this is no interval."""
    a, b, c = whole**2 - var_whole, top * whole - both, top**2 - var_top
    some = a > 0.0
    root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
    a = np.where(some, a, 1.0)
    return np.where(some, (b - root) / a, -np.inf), np.where(some, (b + root) / a, np.inf)


def _alike(effects: Bands, largest: FloatArray, fit: Fit) -> float:
    """Return the p-value of "all arms fade alike": no effect changes its sign, and the effects are of rank one."""
    width = (effects.upper - effects.lower) / 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(width > 0.0, effects.values / width, 0.0) * np.quantile(largest, 1.0 - fit.alpha)
    change = np.minimum(t.max(axis=1), -t.min(axis=1)).max()
    by_sign = 1.0 - np.searchsorted(largest, change) / len(largest)
    lags = effects.values.shape[1]
    if fit.n_arms == 2 or lags == 1:
        return float(by_sign)
    bins = doubled_bins(lags)
    collect = np.kron(np.eye(fit.n_arms - 1), bins)
    spread = collect @ fit.covariance @ collect.T
    statistic = rank_one_distance((collect @ fit.params).reshape(fit.n_arms - 1, -1), spread)
    freedom = (fit.n_arms - 2) * (len(bins) - 1)
    stats = checks.optional("scipy.stats", "estimate", "carryover")
    return float(min(1.0, 2.0 * min(by_sign, stats.f.sf(statistic / freedom, freedom, fit.dof))))


def rank_one_distance(table: FloatArray, covariance: FloatArray) -> float:
    """Return the least of (c - m)' V⁻¹ (c - m) over tables m of rank one, row by row (Cragg and Donald 1997)."""
    optimize = checks.optional("scipy.optimize", "estimate", "carryover")
    rows, W = len(table), np.linalg.inv(np.linalg.cholesky(covariance))

    def rest(factors: FloatArray) -> FloatArray:
        # With V⁻¹ = W'W the distance is that of ordinary least squares.
        return np.asarray(W @ (table - np.outer(factors[:rows], factors[rows:])).ravel())

    starts = (np.append(table @ row, row) for row in (np.linalg.svd(table)[2][0], *table))
    return float(min(2.0 * optimize.least_squares(rest, start, method="lm").cost for start in starts))
