"""`Pilot`: rounds with random arms, from which the effect of every arm by lag can be estimated."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aftereffect.carryover.effects_by_lag import Curves
from aftereffect.carryover.regression import LARGEST, Fit, bands_of, cluster_kind, combinations, degrees, estimate
from aftereffect.carryover.rows import Units, beside_effects, fit_units
from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.random import PILOT, sequence
from aftereffect.core.text import amount, counted
from aftereffect.players.default import Prior, default_player


@dataclass(frozen=True)
class ExpectedWidth:
    """Half-widths of the bands: the mean over arms and lags for the effect at a lag, over arms for the whole effect.

    >>> half = Pilot(n_arms=2, rounds=300, max_lag=2, seed=1).expected_width(noise=0.1, control=0)
    >>> round(half.effect, 3), round(half.whole, 3)
    (0.028, 0.051)
    """

    effect: float
    whole: float


class Pilot:
    """A schedule of random arms: blocks of mixed lengths, with every arm once in every K blocks, in random order.

    arms: the arm of every round, shape (rounds,), or (rounds, units) if units are given; every unit has its own
    schedule. Lengths of blocks are powers of two up to the longest that is at most max_lag + 1, all equally likely:
    short blocks tell the lags apart, long ones measure the whole effect.

    >>> pilot = Pilot(n_arms=3, rounds=12, max_lag=3, seed=1)
    >>> pilot.arms.shape, sorted(set(pilot.arms.tolist()))
    ((12,), [0, 1, 2])
    """

    def __init__(self, *, n_arms: int, rounds: int, max_lag: int, units: int | None = None, seed: int) -> None:
        self.n_arms = checks.integer("n_arms", n_arms, low=2)
        self.max_lag = checks.integer("max_lag", max_lag, low=0)
        self.rounds = checks.integer("rounds", rounds, low=self.max_lag + 2)
        self.units = None if units is None else checks.integer("units", units, low=1)
        # Raw words: NumPy may change how it shuffles, and a schedule must be the same when a record is replayed.
        bits = np.random.PCG64(sequence(seed, PILOT))
        schedules = np.stack([self._schedule(bits) for _ in range(self.units or 1)], axis=1)
        self.arms: NDArray[np.int64] = checks.owned(schedules[:, 0] if units is None else schedules)

    def _schedule(self, bits: np.random.PCG64) -> NDArray[np.int64]:
        lengths = 2 ** np.arange((self.max_lag + 1).bit_length())
        order = np.argsort(bits.random_raw((self.rounds // self.n_arms + 1, self.n_arms)), axis=1).ravel()
        return np.repeat(order, lengths[bits.random_raw(len(order)) % len(lengths)])[: self.rounds]

    def __repr__(self) -> str:
        units = "" if self.units is None else f" of {counted(self.units, 'unit')}"
        return f"Pilot({self.n_arms} arms, {counted(self.rounds, 'round')}{units}, max_lag={self.max_lag})"

    def expected_width(
        self,
        *,
        noise: float,
        autocorrelation: float = 0.0,
        level: float = 0.95,
        control: int | None = None,
        season: float | None = None,
    ) -> ExpectedWidth:
        """Return how wide the bands will be, before the first round.

        noise: a guess of the standard deviation of a unit's total if the arms never change. autocorrelation: of this
        noise from one round to the next. The others: as for `estimate`.
        """
        noise = checks.real("noise", noise, low=0.0, high=LARGEST)
        rho = checks.real("autocorrelation", autocorrelation, low=-0.99, high=0.99)
        alpha = 1.0 - checks.real("level", level, low=0.5, high=0.9999)
        K, lags = self.n_arms, self.max_lag + 1
        arms = self.arms.reshape(self.rounds, -1)
        used = np.ones((self.rounds - self.max_lag, arms.shape[1]), dtype=bool)
        units = Units(arms, np.zeros(used.shape), used, self.max_lag, K, *beside_effects(len(used), season))
        triangle = np.empty((0, 0))
        if used.size > units.columns:
            triangle = fit_units(units, np.array([rho] if rho else []), np.ones(used.shape), "rounds").triangle
        if not triangle.size or np.linalg.matrix_rank(triangle) < len(triangle):
            raise InvalidArgument(f"rounds must be more, to tell {K} arms apart at {lags} lags, but got {self.rounds}")
        # A process with innovations of variance 1 has variance 1/(1-ρ²).
        inverse = np.asarray(np.linalg.inv(triangle.T @ triangle), dtype=np.float64)[: units.effects, : units.effects]
        dof = degrees(used, units.columns, cluster_kind(used.shape[1]))
        # Around effects of 0.
        fit = Fit(np.zeros(units.effects), noise**2 * (1.0 - rho**2) * inverse, dof, alpha, K)
        shown = np.arange(K) != control
        effect, whole = (bands_of(combined, fit)[0].upper[shown] for combined in combinations(K, lags, control)[:2])
        return ExpectedWidth(float(effect.mean()), float(whole[:, -1].mean()))

    def estimate(
        self, totals: ArrayLike, *, control: int | None = None, season: float | None = None, level: float = 0.95
    ) -> Curves:
        """Return the effects by lag from the totals of the pilot's rounds, NaN where missing: see `estimate`."""
        return estimate(
            self.arms, totals, max_lag=self.max_lag, n_arms=self.n_arms, control=control, season=season, level=level
        )


def prior(
    curves: Curves, *, rounds: int, max_delay: int, direction: str = "minimize", low: float = 0.0, high: float = 1.0
) -> Prior:
    """Return what a pilot of so many rounds has shown of the arms, for a default player that begins after it.

    The estimated whole effects are shrunk towards their mean, by the share of their variance that is due to noise
    (empirical Bayes, by the method of moments). They are worth as many updates as the player would have made in these
    rounds. max_delay, direction, low, high: as for the player. An arm that was not measured gets the mean of the
    others. The mean total is the mean whole effect of an action: it may be outside the range from low to high by no
    more than the noise.

    >>> pilot = Pilot(n_arms=2, rounds=200, max_lag=1, seed=1)
    >>> totals = 0.5 + 0.2 * pilot.arms + np.random.default_rng(0).normal(0.0, 0.1, 200)
    >>> found = prior(pilot.estimate(totals), rounds=200, max_delay=1, high=2.0)
    >>> np.round(found.means, 1).tolist(), found.updates
    ([0.9, 1.1], 50.0)
    """
    player = default_player(curves.n_arms, max_delay=max_delay, direction=direction, low=low, high=high)
    rounds = checks.integer("rounds", rounds, low=0)
    span, arms = player.effects, np.setdiff1d(np.arange(curves.n_arms), curves.unmeasured)
    whole = curves.arrived
    value, error = whole.values[arms, -1], (whole.upper - whole.lower)[arms, -1] / (2.0 * whole.factor)
    level = curves.base + float(value.mean())
    if not span.lo - curves.noise <= level <= span.hi + curves.noise:
        raise InvalidArgument(
            f"low and high must include the mean total of the curves, {amount(level)}, which is the mean effect of one "
            f"action with all that comes whatever is played, but got low={low!r} and high={high!r}"
        )
    share = max(0.0, 1.0 - float(error @ error) / max(float(value @ value), 1e-300))
    means = np.full(curves.n_arms, (span.lo + span.hi) / 2.0 + share * value.mean())
    means[arms] = np.clip((span.lo + span.hi) / 2.0 + share * value, span.lo, span.hi)
    beta = player.update_probability or 1.0
    return Prior(means.tolist(), rounds * beta * (1.0 - beta) ** max_delay)
