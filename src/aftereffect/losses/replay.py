"""Losses from recorded data, as the ℓ_t^(s)(i) of Section 2.

R_T compares a player with arms it did not play, so a replay needs the effect of *every* arm in *every* round. Three
kinds of data provide it:

    panel    every arm was played in every round (in different shops, say): `History.replay` uses the data unchanged
    series   whole effects of every arm in every round, and a kernel that spreads them: `replay_series`
    log      one arm per round; the effects of the others are unknown. `History.resample` draws, for every round and
             arm, one of that arm's recorded plays at random. This is a bootstrap: it preserves how an arm's effect
             varies and arrives, but not how it depends on the season or on who was targeted.

The record used for a resampled play is computed by a hash of (key, t, i) when it is needed, so that memory does not
grow with the number of rounds. Averages of several records would be too slow to recompute and are stored.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aftereffect.core import checks, kernel
from aftereffect.core.checks import FloatArray
from aftereffect.core.effects import Effects, extreme_parts
from aftereffect.core.errors import InvalidLosses
from aftereffect.core.random import RECORDS, hashed_uniform, recipe, sequence
from aftereffect.losses.protocol import TOLERANCE, CompositeLosses, Dense, Losses, check_parts
from aftereffect.losses.spreads import kernels

MARGIN = 0.1
"""Each nonzero end of an inferred range is widened by this fraction, as future effects may exceed the recorded ones."""


class Resampled(NamedTuple):
    """records[n, s]: recorded plays, arm by arm; those of arm i are records[starts[i]:starts[i + 1]].

    key: the key of the hash that picks one of them for each round and arm.
    """

    records: FloatArray
    starts: NDArray[np.int64]
    key: np.uint64


@kernel.helper
def picked(starts: NDArray[np.int64], key: np.uint64, arm: int, count: int) -> int:
    """Return the row of a random record of the arm, all equally likely: draw number `count` of this key."""
    size = starts[arm + 1] - starts[arm]
    return int(starts[arm] + int(hashed_uniform(key, count) * size))


def spread(params: Any, t: int, arm: int, pending: FloatArray, at: int) -> None:
    """Add the components of the record drawn for this round and arm."""
    row = picked(params.starts, params.key, arm, t * (len(params.starts) - 1) + arm)
    for s in range(params.records.shape[1]):
        pending[at + s] += params.records[row, s]


kernel.register(Resampled, kernel.LossKernel(spread))


def fill_averages(
    records: FloatArray, starts: NDArray[np.int64], key: np.uint64, batch: int, values: FloatArray
) -> None:
    """Write into values[t, i, :], which must be zeros, the average of `batch` random records of arm i."""
    rounds, n_arms, parts = values.shape
    for t in range(rounds):
        for arm in range(n_arms):
            for j in range(batch):
                row = picked(starts, key, arm, (t * n_arms + arm) * batch + j)
                for s in range(parts):
                    values[t, arm, s] += records[row, s]
            for s in range(parts):
                values[t, arm, s] /= batch


class History(checks.ReadOnly):
    """Recorded plays: arm arms[n], played in round rounds[n], had the effect effects[n, s] s rounds later, s = 0..d.

    rounds: labels that can be ordered; rounds without a record are skipped. arms: whole numbers from 0; every arm up
    to the greatest must have a play. No play may be recorded twice. horizon: the number of rounds with a play.
    complete: whether every arm was recorded in every round, which makes the history a panel.

    >>> history = History([1, 1, 2, 2], [0, 1, 0, 1], [[3.0, 1.0], [0.0, 5.0], [2.0, 1.0], [0.0, 6.0]])
    >>> history.complete, history.horizon, history.max_delay, history.span()
    (True, 2, 1, (0.0, 6.6))
    >>> history.replay().totals([1, 0])          # 0, then the second effect of arm 1 and the first of arm 0: 5 + 2
    array([0., 7.])
    """

    def __init__(self, rounds: ArrayLike, arms: ArrayLike, effects: ArrayLike) -> None:
        numbers = checks.array("effects", effects, shape=("plays", "d+1"), error=InvalidLosses)
        labels, played = checks.as_array("rounds", rounds, InvalidLosses), checks.as_array("arms", arms, InvalidLosses)
        if numbers.shape[0] < 1 or numbers.shape[1] < 1:
            raise InvalidLosses(f"effects must have shape (plays, d+1), both at least 1, but got {numbers.shape}")
        for name, given in (("rounds", labels), ("arms", played)):
            if given.shape != numbers.shape[:1]:
                raise InvalidLosses(f"{name} must have {len(numbers)} items, one per play, but got shape {given.shape}")
        if played.dtype.kind not in "iu" or played.min() < 0:
            raise InvalidLosses(f"arms must be whole numbers of at least 0, but got {checks.shown(arms)}")
        self.n_arms = int(played.max()) + 1
        counts = np.bincount(played, minlength=self.n_arms)
        if self.n_arms < 2 or not counts.all():
            raise InvalidLosses(
                "arms must be at least 2, each with a play, but the plays of arms 0, 1, ... are "
                f"{checks.shown(counts.tolist())}"
            )
        self.labels, when = np.unique(labels, return_inverse=True)
        cells = when * self.n_arms + played
        _, first = np.unique(cells, return_index=True)
        if len(first) < len(cells):
            n = int(np.setdiff1d(np.arange(len(cells)), first)[0])
            raise InvalidLosses(f"plays must be recorded once, but round {labels[n]}, arm {played[n]} occurs twice")
        order = np.lexsort((when, played))
        self.effects = checks.owned(numbers[order])
        self.starts = checks.owned(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
        self._rounds = when[order]
        self.horizon, self.max_delay = len(self.labels), numbers.shape[1] - 1
        self.complete = len(numbers) == self.horizon * self.n_arms

    def span(self, margin: float = MARGIN) -> tuple[float, float]:
        """Return (low, high): the range of the recorded plays, each nonzero end widened by `margin` of its length."""
        return widened(*self.extremes(), margin)

    def extremes(self) -> tuple[float, float]:
        """Return the least and the greatest sum of a contiguous part of a recorded play; the empty part sums to 0."""
        least, most = extreme_parts(self.effects.T[np.newaxis])
        return float(least.min()), float(most.max())

    def replay(self, *, direction: str = "maximize", low: float | None = None, high: float | None = None) -> Losses:
        """Return the recorded effects unchanged; raise `InvalidLosses` unless the history is a panel.

        low, high: the range of one play's effect; by default `span()`.
        """
        if not self.complete:
            seen = np.zeros((self.n_arms, self.horizon), dtype=bool)
            seen[np.repeat(np.arange(self.n_arms), np.diff(self.starts)), self._rounds] = True
            t, i = (int(n) for n in np.argwhere(~seen.T)[0])
            raise InvalidLosses(
                "effects must be known for every arm in every round to be replayed (else use resample), "
                f"but round {self.labels[t]} has no play of arm {i}"
            )
        components = self.effects.reshape(self.n_arms, self.horizon, -1).transpose(1, 2, 0)
        low, high = _range(low, high, *self.extremes())
        return CompositeLosses(components, direction=direction, low=low, high=high)

    def resample(
        self,
        horizon: int,
        *,
        seed: int,
        batch: int = 1,
        direction: str = "maximize",
        low: float | None = None,
        high: float | None = None,
    ) -> Losses:
        """Return `horizon` rounds in which every play of an arm is drawn from that arm's recorded plays.

        Draws are independent and with replacement. batch: a play is the average of `batch` draws; if above 1, all
        T (d+1) K numbers are stored. low, high: the range of one play's effect; by default `span()`. A narrower range
        is allowed for averages: it is checked against the averages drawn, not against the records.
        """
        horizon, batch = checks.integer("horizon", horizon, low=1), checks.integer("batch", batch, low=1)
        low, high = _range(low, high, *self.extremes())
        key = sequence(seed, RECORDS).generate_state(1, np.uint64)[0]
        sizes = horizon, self.max_delay, self.n_arms
        params: Dense | Resampled = Resampled(self.effects, self.starts, key)
        if batch > 1:
            values = np.zeros((horizon, self.n_arms, self.max_delay + 1))
            kernel.compiled(fill_averages)(self.effects, self.starts, key, batch, values)
            params = Dense(checks.owned(values))
        means = np.add.reduceat(self.effects.sum(axis=1), self.starts[:-1]) / np.diff(self.starts)
        again = recipe(self.resample, horizon=horizon, batch=batch, direction=direction, low=low, high=high)
        losses = Losses.made(params, sizes, (direction, low, high), means, again)
        if batch > 1:
            check_parts(losses.params.values.transpose(0, 2, 1), losses.effects)
        else:
            self._check_records(losses.effects)
        return losses

    def _check_records(self, span: Effects) -> None:
        """Raise an error if a recorded play is outside the range."""
        margin = TOLERANCE * (span.hi - span.lo)
        for part in self.extremes():
            if not span.lo - margin <= part <= span.hi + margin:
                raise InvalidLosses(
                    "low and high must cover every contiguous part of a recorded play, "
                    f"but got [{span.lo:g}, {span.hi:g}] and a part that sums to {part!r}"
                )


def replay_series(
    series: ArrayLike,
    *,
    weights: ArrayLike,
    direction: str = "maximize",
    low: float | None = None,
    high: float | None = None,
) -> Losses:
    """Return losses with whole effects series[t, i]; the fraction weights[s], or weights[i, s], arrives s rounds later.

    low, high: the range of one play's effect, which must cover the series too; by default the range of the data,
    each nonzero end widened by 10% of its length.

    >>> replay_series([[8.0, 0.0], [0.0, 4.0]], weights=[0.5, 0.25, 0.25]).totals([0, 1])
    array([4., 4.])
    """
    values = checks.array("series", series, shape=("T", "K"), error=InvalidLosses)
    axes = ("d+1",) if checks.as_array("weights", weights, InvalidLosses).ndim < 2 else ("K", "d+1")
    shares = checks.array("weights", weights, shape=axes, error=InvalidLosses)
    rows = shares if shares.ndim > 1 else np.tile(shares, (values.shape[1], 1))
    least, most = extreme_parts(rows.T[np.newaxis])
    factors = float(least.min(initial=0.0)), float(most.max(initial=1.0))
    ends = [f * float(v) for f in factors for v in (values.min(initial=0.0), values.max(initial=0.0))]
    low, high = _range(low, high, min(ends), max(ends))
    return kernels(values, weights=rows, direction=direction, low=low, high=high)


def widened(least: float, most: float, margin: float) -> tuple[float, float]:
    """Return (low, high): [least, most] with each nonzero end widened by `margin` of its length.

    >>> widened(-10.0, 30.0, 0.1)
    (-14.0, 34.0)
    """
    room = checks.real("margin", margin, low=0.0) * (most - least)
    if not math.isfinite(room) or most <= least:
        raise InvalidLosses(f"effects must span a range to infer low and high, but got [{least:g}, {most:g}]")
    return (least - room if least < 0.0 else least), (most + room if most > 0.0 else most)


def _range(low: float | None, high: float | None, least: float, most: float) -> tuple[float, float]:
    """Return (low, high), with None replaced by the value inferred from [least, most]."""
    if low is None or high is None:
        inferred = widened(least, most, MARGIN)
        low, high = inferred[0] if low is None else low, inferred[1] if high is None else high
    return low, high
