"""`Curves`: effects of arms by lag with their bands, as `ae.carryover` estimates them and `choose_delay` reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from aftereffect.core import checks
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.text import Facts, counted, plain_axes, to_pandas

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Bands:
    """Estimates values[i, s] for arm i and lag s, with bands that hold for all arms and lags at once.

    factor: the half-width in standard errors; for shares only approximately.

    >>> from aftereffect.carryover import Pilot
    >>> pilot = Pilot(n_arms=2, rounds=300, max_lag=2, seed=1)
    >>> totals = 0.5 + 0.2 * pilot.arms + np.random.default_rng(0).normal(0.0, 0.1, 300)
    >>> bands = pilot.estimate(totals, control=0).effects
    >>> bands.values.round(1)[1].tolist(), bool(bands.lower[1, 0] < 0.2 < bands.upper[1, 0])
    ([0.2, 0.0, -0.0], True)
    """

    values: FloatArray
    lower: FloatArray
    upper: FloatArray
    factor: float


@dataclass(frozen=True)
class Alike:
    """Whether the effects of all arms fade alike: the same share of each arrives by each lag, and no share is negative.

    verdict: "apart" if p_value is below 1 - level, "not refuted" otherwise: that is no proof that they fade alike.

    >>> from aftereffect.carryover import Pilot
    >>> pilot = Pilot(n_arms=2, rounds=300, max_lag=2, seed=1)
    >>> totals = 0.5 + 0.2 * pilot.arms + np.random.default_rng(0).normal(0.0, 0.1, 300)
    >>> pilot.estimate(totals).alike.verdict         # everything arrives at once
    'not refuted'
    """

    p_value: float
    verdict: str


@dataclass(frozen=True)
class Longer:
    """Whether effects last longer than max_delay rounds.

    verdict: "longer" if p_value is below 1 - level, "not refuted" otherwise: that is no proof that they do not.

    >>> from aftereffect.carryover import Pilot
    >>> pilot = Pilot(n_arms=2, rounds=300, max_lag=2, seed=1)
    >>> totals = 0.5 + 0.2 * pilot.arms + np.random.default_rng(0).normal(0.0, 0.1, 300)
    >>> pilot.estimate(totals).longer_than(0).sentence
    'No sign of effects later than 0 rounds, up to 2 (p = 0.48). That is no proof of their absence.'
    """

    max_delay: int
    max_lag: int
    level: float
    p_value: float
    verdict: str

    @property
    def sentence(self) -> str:
        """The result in words."""
        rounds, p = counted(self.max_delay, "round"), f"p = {self.p_value:.2g}"
        if self.verdict == "longer":
            return f"Effects last longer than {rounds} ({p}; the level of the test is {1.0 - self.level:.2g})."
        return f"No sign of effects later than {rounds}, up to {self.max_lag} ({p}). That is no proof of their absence."


@dataclass(frozen=True, eq=False, repr=False)
class Curves(Facts):
    """Effects by lag. Every total contains effects of some arm, so only differences between arms can be measured.

    relative_to: what the effects are relative to: "the mean of the arms" or the control arm. effects: by lag. arrived:
    up to each lag, so that the last column is the whole effect. shares: arrived over the whole effect; the band is
    infinite where the whole effect may be 0. remaining: what arrives after each lag. Each of the four bands holds
    simultaneously at the given level. base: the mean total of a unit if the arms that effects are relative to are
    played equally often. rounds: the totals used. order: of the autoregression of the noise. noise: its standard
    deviation. differences, covariance, dof: the effects relative to the first measured arm, arm by arm, their
    covariance and its degrees of freedom. clustered: whether this covariance is clustered by rounds. unmeasured: arms
    that were drawn too seldom; their effects are NaN and their bands infinite. names: of the arms, if they have any.

    >>> from aftereffect.carryover import Pilot
    >>> pilot = Pilot(n_arms=2, rounds=300, max_lag=2, seed=1)
    >>> totals = 0.5 + 0.2 * pilot.arms + np.random.default_rng(0).normal(0.0, 0.1, 300)
    >>> found = pilot.estimate(totals, control=0)
    >>> found.arrived.values[1, -1].round(1).item(), found.ends()
    (0.2, 0)
    """

    relative_to: str
    level: float
    exposure: str
    effects: Bands
    arrived: Bands
    shares: Bands
    remaining: Bands
    alike: Alike
    base: float
    rounds: int
    order: int
    noise: float
    differences: FloatArray
    covariance: FloatArray
    dof: float
    clustered: bool = False
    unmeasured: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def n_arms(self) -> int:
        """K, the number of arms."""
        return len(self.effects.values)

    @property
    def max_lag(self) -> int:
        """The longest lag."""
        return int(self.effects.values.shape[1]) - 1

    def longer_than(self, max_delay: int) -> Longer:
        """Test whether anything arrives later than max_delay, up to the longest lag, that differs between the arms."""
        lags = self.max_lag + 1
        if lags == 1:
            raise InvalidArgument("max_lag must be at least 1, so that a lag is left to test, but got 0")
        d = checks.integer("max_delay", max_delay, low=0, high=self.max_lag - 1)
        later = np.pad(doubled_bins(lags - d - 1), ((0, 0), (d + 1, 0)))
        collect = np.kron(np.eye(len(self.differences) // lags), later)
        found = collect @ self.differences
        distance = float(found @ np.linalg.solve(collect @ self.covariance @ collect.T, found))
        stats = checks.optional("scipy.stats", "longer_than", "carryover")
        m = len(found)
        # Hotelling's T² for a covariance from few rounds. `estimate` refuses fewer than m degrees of freedom.
        rest = self.dof - m + 1.0 if self.clustered else self.dof
        p_value = float(stats.f.sf(distance * rest / (self.dof * m), m, rest))
        verdict = "longer" if p_value < 1.0 - self.level else "not refuted"
        return Longer(d, self.max_lag, self.level, p_value, verdict)

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per arm and lag, as a pandas frame (extra `frames`)."""
        lags = self.max_lag + 1
        columns: dict[str, Any] = {
            "arm": np.repeat(np.array(self.names) if self.names else np.arange(self.n_arms), lags),
            "lag": np.tile(np.arange(lags), self.n_arms),
        }
        shown = {"effect": self.effects, "arrived": self.arrived, "share": self.shares, "remaining": self.remaining}
        for name, bands in shown.items():
            columns[name] = bands.values.ravel()
            columns[f"{name}_lower"], columns[f"{name}_upper"] = bands.lower.ravel(), bands.upper.ravel()
        return to_pandas(columns)

    def plot(self, ax: "Axes | None" = None, names: Sequence[str] | None = None) -> "Axes":
        """Plot the effect that has arrived by each lag, with its band, for every arm; return the axes."""
        ax, names = plain_axes(ax), names or self.names
        lags, bands = np.arange(self.max_lag + 1), self.arrived
        for i, (values, lower, upper) in enumerate(zip(bands.values, bands.lower, bands.upper, strict=True)):
            (line,) = ax.plot(lags, values, "o-", ms=3, label=names[i] if names else f"arm {i}")
            ax.fill_between(lags, lower, upper, color=line.get_color(), alpha=0.4 / (self.n_arms + 1), lw=0)
        ax.axhline(0.0, color="0.75", lw=1, zorder=1)
        ax.locator_params(axis="x", integer=True)
        ax.set(xlabel="rounds since the action", ylabel=f"effect arrived, relative to {self.relative_to}")
        # Beside the axes, since bands leave no room inside.
        ax.legend(frameon=False, title=f"{self.level:.0%} bands", loc="center left", bbox_to_anchor=(1.0, 0.5))
        return ax

    def ends(self) -> int:
        """Return the first lag after which no arm's remaining effect differs significantly from 0.

        Significance is by the pointwise interval at `level`, which is narrower than the band. So effects seem to last
        too long rather than too short: a d that is too long costs less than one that is too short.
        """
        later = self.remaining
        if not later.factor:
            return 0
        alone = NormalDist().inv_cdf(0.5 + self.level / 2.0) / later.factor
        apart = np.any(np.abs(later.values) > alone * (later.upper - later.lower) / 2.0, axis=0)
        # Nothing remains after the longest lag.
        return int(np.flatnonzero(np.append(True, apart[:-1]))[-1])

    def _facts(self) -> dict[str, str]:
        return {
            "arms": str(self.n_arms),
            "max_lag": str(self.max_lag),
            "relative to": self.relative_to,
            "totals": f"{self.rounds:,}",
            "later effects": f"not significant after lag {self.ends()}",
            "fade alike": f"{self.alike.verdict} (p = {self.alike.p_value:.3f})",
            **({"drawn too seldom": f"arms {', '.join(map(str, self.unmeasured))}"} if self.unmeasured else {}),
        }


def doubled_bins(lags: int) -> FloatArray:
    """Return a matrix that sums over lags 0, 1-2, 3-6, ...: fewer numbers, each better known."""
    place = np.log2(np.arange(lags) + 1.0).astype(int)
    return np.asarray(place == np.arange(place[-1] + 1)[:, np.newaxis], dtype=np.float64)
