"""`LagModel`: what every total says about the effects of arms, in Python; the arithmetic is in `kernels.py`."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from aftereffect.core import checks, kernel, random, saved
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument, InvalidState, InvalidTotal
from aftereffect.core.kernel import FloatState, WordState
from aftereffect.core.real import exp, log
from aftereffect.core.text import Facts, amount, counted, plain_axes, to_pandas
from aftereffect.lags import kernels
from aftereffect.lags.kernels import LagParams

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

FADINGS = (3.0, 20.0)
"""The rounds in which the prior standard deviation of an effect halves, twice."""
MOST_HALVINGS = 300.0
"""Later it stays as it is, so that a longest lag of 10,000 rounds leaves numbers that a float holds."""
SCALES = (1.0, 4.0, 16.0)
"""The prior standard deviations of a whole effect, in units of that of the noise."""
SMOOTH = 0.8
"""The prior correlation of the effects at two adjacent lags."""
WEEK, LEAST_WEEKS = 7, 3
"""The period that is taken into account unasked, if totals show it, and how many of it have to be seen."""
POWERS = (1.2, 0.7, 1.4, 1.4)
"""Probabilities of being best are raised to a power, the mean of these over the models of the noise."""
FEW = 15.0
"""With n totals, where old ones count less, that power is divided by 1 + (FEW/n)²."""
LARGEST = 1e100
"""Totals are refused beyond this size: their squares would leave the range of floats."""
MOST_COEFFICIENTS = 400
Z95 = 1.959963984540054


def knots(max_lag: int) -> list[int]:
    """Return the lags between which curves are linear.

    >>> knots(14), knots(2)
    ([0, 1, 2, 3, 5, 8, 12, 14], [0, 1, 2])
    """
    found = [0, 1, 2, 3]
    while found[-1] < max_lag:
        found.append(math.ceil(1.5 * found[-1]))
    return [lag for lag in found if lag < max_lag] + [max_lag]


def hats(places: Sequence[int]) -> FloatArray:
    """Return the hat function of each knot at lags 0..L: 1 at the knot, 0 at the others, linear between them."""
    lags = np.arange(places[-1] + 1)
    return np.array([np.interp(lags, places, row) for row in np.eye(len(places))]).T


def inverse(matrix: FloatArray) -> tuple[FloatArray, float]:
    """Return the inverse of a positive definite matrix and the logarithm of its determinant, by plain arithmetic.

    LAPACK rounds differently on different machines.

    >>> found, logarithm = inverse(np.array([[4.0, 0.0], [0.0, 0.25]]))
    >>> found.tolist(), logarithm == 0.0
    ([[0.25, 0.0], [0.0, 4.0]], True)
    """
    n = len(matrix)
    both = np.hstack([matrix, np.eye(n)])
    logarithm = 0.0
    for j in range(n):
        pivot = float(both[j, j])
        logarithm += log(pivot)
        both[j] = both[j] / pivot
        for i in range(n):
            if i != j:
                both[i] = both[i] - both[i, j] * both[j]
    return both[:, n:], -logarithm


def added(values: Iterable[float]) -> float:
    """Return the sum of numbers, added from the first to the last, as `sum` does before Python 3.12 only.

    >>> added([0.1] * 10)
    0.9999999999999999
    """
    whole = 0.0
    for value in values:
        whole += value
    return whole


def fill(normals: FloatState, rng: WordState) -> None:
    """Draw standard normal numbers."""
    for i in range(normals.shape[0]):
        normals[i] = random.normal(rng)


@lru_cache(maxsize=64)
def lag_params(n_arms: int, max_lag: int, season: int, columns: int, direction: str, n_units: int) -> LagParams:
    """Return the parameters of the kernel."""
    places = knots(max_lag)
    weights = hats(places)
    totals = np.array([added(column) for column in weights.T.tolist()])
    precisions, logs = [], []
    for fading in FADINGS:
        fades = [min(place, MOST_HALVINGS * fading) for place in places]
        ends = list(zip(fades, places, strict=True))
        covariance = np.array(
            [[exp(-log(2.0) * (a + b) / fading) * exp(log(SMOOTH) * abs(p - q)) for b, q in ends] for a, p in ends]
        )
        # Of the whole effect.
        variance = added(
            float(totals[p] * covariance[p, q] * totals[q]) for p in range(len(places)) for q in range(len(places))
        )
        precision, logarithm = inverse(covariance / variance)
        precisions.append(precision)
        logs.append(logarithm)
    normals, words = np.zeros(kernels.DRAWS * n_arms), random.stream(0, 0, random.ARMS)
    kernel.compiled(fill)(normals, words)
    return LagParams(
        np.ascontiguousarray(weights).ravel(),
        totals,
        np.array(precisions).ravel(),
        np.array(logs),
        np.array(SCALES),
        normals,
        max_lag,
        len(places),
        season,
        columns,
        -1.0 if direction == "minimize" else 1.0,
        n_units,
    )


def checked_params(
    n_arms: int, max_lag: int, season: int | None, columns: int, direction: str, n_units: int
) -> LagParams:
    """Return the parameters of the kernel, after checks."""
    n_arms = checks.integer("n_arms", n_arms, low=2)
    max_lag = checks.integer("max_lag", max_lag, low=0, high=10_000)
    period = 0 if season is None else checks.integer("season", season, low=2)
    columns = checks.integer("columns", columns, low=0)
    checks.choice("direction", direction, ("minimize", "maximize"))
    size = n_arms * len(knots(max_lag)) + period + columns
    if size > MOST_COEFFICIENTS:
        raise InvalidArgument(
            f"n_arms must leave at most {MOST_COEFFICIENTS} coefficients with max_lag={max_lag} and season={season}, "
            f"but got {n_arms}, which makes {size}"
        )
    return lag_params(n_arms, max_lag, period, columns, direction, checks.integer("n_units", n_units, low=1))


def checked_total(total: Any) -> float:
    """Return a total as a float; NaN if it is None: missing."""
    return math.nan if total is None else checks.total(total, low=-LARGEST, high=LARGEST)


def checked_arms(arms: Any, n_arms: int) -> list[int]:
    """Return the arms of a round, −1 for none."""
    return [checks.integer("arm", arm, low=-1, high=n_arms - 1) for arm in arms]


def checked_columns(columns: Any, count: int) -> list[float]:
    """Return the columns of a round."""
    found = checks.array("columns", columns, shape=(count,))
    if np.abs(found).max(initial=0.0) > LARGEST:
        raise InvalidArgument(f"columns must lie in [{-LARGEST:g}, {LARGEST:g}], but got {checks.shown(columns)}")
    values: list[float] = found.tolist()
    return values


def checked_table(totals: Any, shape: tuple[int, ...]) -> FloatArray:
    """Return a table of totals, a row per round; NaN where they are missing."""
    given = checks.as_array("totals", totals, InvalidTotal)
    try:
        if given.dtype.kind not in "fiuO":
            raise TypeError
        found = given.astype(np.float64)
    except (TypeError, ValueError):
        rule = "totals must be numbers, NaN where missing"
        raise InvalidTotal(f"{rule}, but got {checks.shown(totals)}") from None
    if found.shape != shape:
        raise InvalidTotal(f"totals must have the shape of arms, {shape}, but got shape {found.shape}")
    if not (np.isnan(found) | (np.abs(found) <= LARGEST)).all():
        largest = np.nanmax(np.abs(found))
        raise InvalidTotal(f"totals must lie in [{-LARGEST:g}, {LARGEST:g}], but got {largest:g} in size")
    return np.asarray(found)


def heard(params: LagParams, n_arms: int, state: FloatState, arms: FloatState, totals: FloatState) -> None:
    """Hear rounds: for each, the arm (−1: none) and the total (NaN: missing) of every unit, in order."""
    for i in range(arms.shape[0]):
        kernels.hear(params, n_arms, state, i % params.n_units, int(arms[i]), totals[i])


Told = tuple[list[int], list[float], list[float]]
"""A round: the arm (−1: none) and the total (NaN: missing) of each unit, and the columns."""


class Estimate(NamedTuple):
    """An estimate with its 95% interval."""

    mean: float
    low: float
    high: float


class Effects(NamedTuple):
    """Estimates with 95% intervals, relative to the mean of the arms: per arm, or per arm and lag."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray


class Finding(NamedTuple):
    """What a check of the model's assumptions has found.

    name: "changed", "held", "jumps", "autocorrelated" or "season". found: whether it speaks against what is assumed;
    the last three are taken into account. statistic: standard deviations for the first two, a probability for the
    others. sentence: the finding in words.
    """

    name: str
    found: bool
    statistic: float
    sentence: str


class LagModel(Facts):
    """A Bayesian regression of every total on the arms of the rounds before it, whoever chose them.

    max_lag: the longest lag; it may be generous. season: a period of the totals, in rounds; without one, answers take
    a week of 7 rounds into account if the totals are more probable with it. n_units: how many units report a total in
    each round; their curves are the same, their levels are not. columns: how many numbers are given with each round
    whose influence on all totals is to be taken out (a holiday, a price).
    direction: whether the best arm has the least or the largest effect.

    Every total contains the effect of some arm, so only differences between arms can be learned: effects are relative
    to the mean of the arms. It assumes that effects add up and follow the same curve each time; `checks` says what
    speaks against that.

    >>> from aftereffect import LagModel
    >>> model = LagModel(n_arms=2, max_lag=3, direction="maximize")
    >>> totals = [5.0, 6.1, 8.0, 8.9, 8.1, 6.0, 5.1, 5.9, 8.0, 9.0, 8.1, 6.1]
    >>> for arm, total in zip([0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0], totals, strict=True):
    ...     model.tell(arm, total)                       # arm 1 brings 1 at once, 2 a round later, 1 after that
    >>> model.difference(1, 0).mean > 3.0, model.best.round(2).tolist()
    (True, [0.0, 1.0])

    Reference: docs/theory/lags.md.
    """

    # The model that answers, once something was asked; see `_answering`.
    _answers: Self | None

    def __init__(
        self,
        n_arms: int,
        max_lag: int = 14,
        season: int | None = None,
        n_units: int = 1,
        *,
        columns: int = 0,
        direction: str = "minimize",
    ) -> None:
        self._params = checked_params(n_arms, max_lag, season, columns, direction, n_units)
        self.n_arms, self.max_lag, self.season = int(n_arms), self._params.max_lag, season
        self.n_units, self.columns, self.direction = self._params.n_units, self._params.columns, direction
        self._learn([])

    def _call(self, function: Any, *arguments: Any) -> Any:
        return kernel.call(function, self._params, self.n_arms, self._numbers, *arguments)

    def _evidence(self) -> float:
        """Return the logarithm of the evidence, up to what models of the same totals have in common."""
        fitted = kernel.call(kernels.fit, self._params, self.n_arms, self._numbers.copy())
        return float(fitted) - 0.5 * log(kernels.SEASON_VARIANCE) * self._params.season

    def _answering(self) -> Self:
        """Return the model that answers: this one, or one of the same rounds with a week that the totals show."""
        if self._answers is None:
            self._answers = self
            room = kernels.width(self._params, self.n_arms) + WEEK <= MOST_COEFFICIENTS
            heard = sum(any(total == total for total in totals) for _, totals, _ in self._record)
            if self.season is None and heard >= LEAST_WEEKS * WEEK and room:
                weekly = type(self)(**(self.settings | {"season": WEEK}))
                weekly._learn(self._record)
                if weekly._evidence() > self._evidence():
                    self._answers = weekly
        return self._answers

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments, as plain JSON values."""
        names = ("n_arms", "max_lag", "season", "n_units", "columns", "direction")
        return {name: getattr(self, name) for name in names}

    @property
    def rounds(self) -> int:
        """The number of rounds told."""
        return len(self._record)

    def tell(
        self,
        arms: int | Sequence[int | None] | None,
        totals: float | Sequence[float | None] | None,
        columns: Sequence[float] = (),
    ) -> None:
        """Report a round: the arm and the total of each unit, without lists if there is one unit.

        An arm of None is a round without an arm, a total of None is missing. columns: the numbers known of the round.
        """
        alone = self.n_units == 1 and not isinstance(arms, Sequence | np.ndarray)
        arms_given: Any = [arms] if alone else arms
        totals_given: Any = [totals] if alone else totals
        for name, given in (("arms", arms_given), ("totals", totals_given)):
            if not isinstance(given, Sequence | np.ndarray) or len(given) != self.n_units:
                raise InvalidArgument(f"{name} must be {self.n_units}, one per unit, but got {checks.shown(given)}")
        played = [-1 if a is None else checks.integer("arm", a, low=0, high=self.n_arms - 1) for a in arms_given]
        found = [checked_total(total) for total in totals_given]
        self._hear([(played, found, checked_columns(columns, self.columns))])

    def learn(self, arms: Sequence[Sequence[int]], totals: Sequence[Sequence[float]]) -> None:
        """Report many rounds at once, each with the arm (−1: none) and the total (NaN: missing) of every unit.

        A model with columns is told round by round.
        """
        if self.columns:
            raise InvalidArgument(f"columns must be 0 to learn many rounds at once, but got {self.columns}")
        played = checks.array("arms", arms, shape=("rounds", self.n_units))
        wrong = played[(played < -1.0) | (played >= self.n_arms) | (played != np.floor(played))]
        if wrong.size:
            raise InvalidArgument(f"arms must be from 0 to {self.n_arms - 1}, or -1 for none, but got {wrong[0]:g}")
        found = checked_table(totals, played.shape)
        self._hear([(*row, []) for row in zip(played.astype(int).tolist(), found.tolist(), strict=True)])

    def _hear(self, rounds: list[Told]) -> None:
        """Record rounds and learn from them; the columns of a round stand in the state while it is heard."""
        self._answers = None
        self._record += rounds
        place = kernels.columns_at(self._params, self.n_arms)
        for some in [[told] for told in rounds] if self.columns else [rounds] * bool(rounds):
            arms, totals, columns = zip(*some, strict=True)
            self._numbers[place : place + self.columns] = columns[0]
            self._call(heard, np.array(arms, dtype=np.float64).ravel(), np.array(totals, dtype=np.float64).ravel())

    def _learn(self, rounds: list[Told]) -> None:
        """Begin anew, and learn from these rounds."""
        self._numbers = np.zeros(kernels.size(self._params, self.n_arms))
        self._call(kernels.begin)
        self._record: list[Told] = []
        self._hear(rounds)

    def correct(self, round: int, total: float | None, unit: int = 0) -> None:
        """Correct the total of a round, from 1, or report it late; everything after it is learned again."""
        round = checks.integer("round", round, low=1, high=self.rounds)
        unit = checks.integer("unit", unit, low=0, high=self.n_units - 1)
        self._record[round - 1][1][unit] = checked_total(total)
        self._learn(self._record)

    def add_arms(self, count: int = 1) -> None:
        """Add arms that have not been played yet; their indices follow those of the others."""
        n_arms = self.n_arms + checks.integer("count", count, low=1)
        self._params = checked_params(n_arms, self.max_lag, self.season, self.columns, self.direction, self.n_units)
        self.n_arms = n_arms
        self._learn(self._record)

    def _judge(self) -> tuple[float, FloatArray]:
        work = np.zeros(kernels.judgement_size(self.n_arms))
        return float(self._call(kernels.judge, work)), work

    @property
    def best(self) -> FloatArray:
        """The probability that each arm is the best one.

        That of the posterior is raised to a power that depends on the noise found and on the number of totals. So of
        the arms said to be best with probability p, about p are best.
        """
        made = self._answering()
        _, work = made._judge()
        square = float(made._numbers[kernels.COUNT]) ** 2
        mean = added([power * weight for power, weight in zip(POWERS, made._noises().tolist(), strict=True)])
        power = mean * square / (square + FEW**2)
        found = work[2 * kernels.KEEP : 2 * kernels.KEEP + self.n_arms].tolist()
        sharp = [kernels.power(p, power) if p > 0.0 else 0.0 for p in found]
        return np.array(sharp) / added(sharp)

    def _noises(self) -> FloatArray:
        """Return the probability of each model of the noise."""
        members = self._numbers[kernels.HEAD : kernels.HEAD + kernels.members(self._params)]
        return np.asarray(members.reshape(len(kernels.NOISES), -1).sum(axis=1))

    @property
    def loss_of_settling(self) -> float:
        """The expected loss per round, against the best arm, of playing the apparently best arm for ever."""
        return self._answering()._judge()[0] if self._heard_two else LARGEST

    @property
    def _heard_two(self) -> bool:
        """Whether some unit has reported two totals; from one, which sets the level, nothing can be said of arms."""
        return bool(self._numbers[kernels.COUNT] > 0.0)

    def _members(self) -> Iterator[tuple[float, FloatArray, FloatArray]]:
        """Yield weight, coefficients of arms and their covariance for the most probable members of the grid."""
        _, work = self._judge()
        n, own = kernels.width(self._params, self.n_arms), self.n_arms * self._params.knots
        place = kernels.scratch_at(self._params, self.n_arms) + 2 * (n + 1)
        for member, weight in work[: 2 * kernels.KEEP].reshape(-1, 2).tolist():
            if weight > 0.0:
                sigma = math.sqrt(self._call(kernels.solve, int(member)))
                factor = np.tril(self._numbers[place : place + n * n].reshape(n, n).T)[:-1, :-1]
                inverse = np.linalg.inv(factor)[:, :own]
                coefficients = self._numbers[place + 2 * n * n : place + 2 * n * n + own].copy()
                yield weight, self._params.sign * coefficients, sigma**2 * inverse.T @ inverse

    def _mixed(self, collect: FloatArray) -> Effects:
        """Return linear functions of the coefficients, with 95% intervals."""
        shape = collect.shape[:-1]
        flat = collect.reshape(-1, collect.shape[-1])
        mean, square = np.zeros((2, len(flat)))
        members = self._answering()._members() if self._heard_two else ()
        freedom = max(float(self._numbers[kernels.COUNT]) - 2.0, 1.0)
        for weight, coefficients, covariance in members:
            value = flat @ coefficients
            variance = np.einsum("ij,jk,ik->i", flat, covariance, flat) * (1.0 + 2.0 / freedom)
            mean += weight * value
            square += weight * (variance + value**2)
        half = Z95 * np.sqrt(np.maximum(square - mean**2, 0.0)) if self._heard_two else LARGEST
        return Effects(*(found.reshape(shape) for found in (mean, mean - half, mean + half)))

    def _curves(self) -> FloatArray:
        """Return the matrix from the coefficients of arms to effects by arm and lag, (K, L+1, K·B)."""
        B = self._params.knots
        collect = np.zeros((self.n_arms, self.max_lag + 1, self.n_arms * B))
        for arm in range(self.n_arms):
            collect[arm, :, arm * B : (arm + 1) * B] = self._params.weights.reshape(-1, B)
        return collect

    def effects(self) -> Effects:
        """Return the whole effect of each arm, relative to the mean of the arms."""
        collect = self._curves().sum(axis=1)
        return self._mixed(collect - collect.mean(axis=0))

    def difference(self, arm: int, other: int) -> Estimate:
        """Return the whole effect of an arm less that of another."""
        arm = checks.integer("arm", arm, low=0, high=self.n_arms - 1)
        other = checks.integer("other", other, low=0, high=self.n_arms - 1)
        collect = self._curves().sum(axis=1)
        return Estimate(*map(float, self._mixed(collect[arm] - collect[other])))

    def by_lag(self) -> Effects:
        """Return the effect of each arm at each lag, relative to the mean of the arms; (K, L+1) arrays."""
        collect = self._curves()
        return self._mixed(collect - collect.mean(axis=0))

    def checks(self) -> list[Finding]:
        """Return what the totals say about the model's assumptions."""
        made = self._answering()
        numbers, weekly = made._numbers, made is not self
        by_noise = made._noises()
        jumps, correlated, changes = float(by_noise[3]), float(by_noise[1] + by_noise[2]), int(numbers[kernels.CHANGES])
        rows = [
            (
                "changed", changes > 0, float(numbers[kernels.MISFIT]),
                f"Effects have changed ({counted(changes, 'time')}): what was learned before counts less.",
                "No sign that effects have changed.",
            ),
            (
                "held", bool(numbers[kernels.TIRING]), float(numbers[kernels.AGE]),
                "Effects wear off while an arm is held.", "No clear sign that effects wear off while an arm is held.",
            ),
            ("jumps", jumps > 0.95, jumps, "The level of the totals jumps.", "No clear sign that the level jumps."),
            (
                "autocorrelated", correlated > 0.95, correlated,
                "What disturbs the total of a round also disturbs the next ones.",
                "No clear sign that totals are disturbed for several rounds.",
            ),
            (
                "season", weekly, float(weekly),
                f"The totals have a season of {WEEK} rounds.",
                f"No sign of a season of {WEEK} rounds." if self.season is None else "The season is the one given.",
            ),
        ]  # fmt: skip
        return [Finding(name, found, statistic, yes if found else no) for name, found, statistic, yes, no in rows]

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per arm: its whole effect with interval, and the probability that it is best (pandas)."""
        found = self.effects()
        table = {"arm": np.arange(self.n_arms), **found._asdict(), "best": self.best}
        return to_pandas(table)

    def plot(self, ax: "Axes | None" = None, names: Sequence[str] = ()) -> "Axes":
        """Plot the whole effect of each arm with its interval; return the axes."""
        ax = plain_axes(ax, height=0.6 * self.n_arms + 1.4)
        for arm, (mean, low, high) in enumerate(zip(*self.effects(), strict=True)):
            ax.plot([low, high], [arm, arm], color=f"C{arm}", lw=3, solid_capstyle="round")
            ax.plot(mean, arm, "o", color=f"C{arm}", ms=8)
        labels = [names[arm] if names else f"arm {arm}" for arm in range(self.n_arms)]
        ax.set_yticks(range(self.n_arms), [f"{name} ({p:.0%})" for name, p in zip(labels, self.best, strict=True)])
        ax.invert_yaxis()
        ax.axvline(0.0, color="0.75", lw=1, zorder=0)
        ax.set_xlabel("whole effect relative to the mean of the arms, with 95% intervals")
        ax.set_title("In brackets: the probability of being the best arm", loc="left", fontsize="medium")
        ax.spines["left"].set_visible(False)
        return ax

    def state(self) -> dict[str, Any]:
        """Return the settings and the record of rounds in plain JSON types; `from_state` learns from it again."""
        arms, totals, columns = ([told[k] for told in self._record] for k in range(3))
        missing = [[None if total != total else total for total in row] for row in totals]
        record = {"arms": arms, "totals": missing, "columns": columns if self.columns else []}
        return saved.seal("LagModel", {"settings": self.settings, "record": record})

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the model saved by `state()`."""
        fields = saved.unseal(state, "LagModel", ("settings", "record"))
        settings, record = fields["settings"], fields["record"]
        try:
            model = cls(**settings)
        except TypeError:
            rule = "settings must be the arguments of LagModel"
            raise InvalidState(f"{rule}, but got {checks.shown(settings)}") from None
        try:
            arms = [checked_arms(row, model.n_arms) for row in record["arms"]]
            totals = [[checked_total(total) for total in row] for row in record["totals"]]
            columns = [checked_columns(row, model.columns) for row in record["columns"] or [[]] * len(arms)]
            rounds = list(zip(arms, totals, columns, strict=True))
            if {tuple(len(part) for part in told) for told in rounds} - {(model.n_units, model.n_units, model.columns)}:
                raise ValueError
        except (TypeError, ValueError, KeyError):
            raise InvalidState(f"record must be rows of arms and totals, but got {checks.shown(record)}") from None
        model._learn(rounds)
        return model

    def _facts(self) -> dict[str, str]:
        arms = [
            f"arm {arm}: {amount(float(mean))} ± {amount(float(high - mean))}, best with probability {p:.0%}"
            for arm, (mean, _, high, p) in enumerate(zip(*self.effects(), self.best, strict=True))
        ]
        units = f" of {counted(self.n_units, 'unit')}" if self.n_units > 1 else ""
        notes = " ".join(finding.sentence for finding in self.checks() if finding.found)
        facts = {"rounds": f"{self.rounds:,}{units}", "relative to the mean of the arms": "; ".join(arms)}
        return facts | ({"checks": notes} if notes else {})
