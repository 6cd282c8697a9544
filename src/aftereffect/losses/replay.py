"""Losses from what was recorded: a person's own history, or real data, as the ℓ_t^(s)(i) of Section 2.

R_T compares a player with arms it did not play, so replay needs the effect of *every* arm in *every* round. Three
kinds of history give it:

    panel    every arm was played in every round (in different shops, say): `History.replay`, nothing is invented
    series   whole effects of every arm in every round, and a kernel that spreads them: `replay_series`
    log      one arm a round: what the others would have done is unknown. `History.resample` draws, for every round and
             arm, one of that arm's recorded plays at random. That is a bootstrap: it keeps how an arm's effect varies
             and arrives, and loses how it depends on the season or on who was targeted.

Which record a resampled play is made of is hashed from (key, t, i) as it is needed, so that any number of rounds takes
no more memory than the records. Averages of many records would be too slow to make anew in every run: they are stored.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aftereffect.core import checks, kernel
from aftereffect.core.checks import FloatArray, by_keyword
from aftereffect.core.effects import Effects
from aftereffect.core.effects import effects as checked_range
from aftereffect.core.errors import InvalidLosses
from aftereffect.losses.composite import TOLERANCE, CompositeLosses, Dense, check_parts, extreme_parts
from aftereffect.losses.protocol import Losses
from aftereffect.losses.seeds import RECORDS, recipe, sequence
from aftereffect.losses.spreads import hashed_uniform, kernels, linear_composite

MARGIN = 0.1
"""By what share of the recorded range an inferred range is wider: the next play may do more than any so far."""


class Resampled(NamedTuple):
    """records[n, s]: recorded plays, arm by arm; those of arm i are records[starts[i]:starts[i + 1]].

    key: where the hash starts that picks one of them for each round and arm.
    """

    records: FloatArray
    starts: NDArray[np.int64]
    key: np.uint64


@kernel.helper
def picked(starts: NDArray[np.int64], key: np.uint64, arm: int, count: int) -> int:
    """Return the row of one of the arm's records, all equally likely: pick number `count` of this key."""
    size = starts[arm + 1] - starts[arm]
    return int(starts[arm] + int(hashed_uniform(key, count) * size))


def spread(params: Any, t: int, arm: int, pending: FloatArray, at: int) -> None:
    """Add the components of the record that was picked."""
    row = picked(params.starts, params.key, arm, t * (len(params.starts) - 1) + arm)
    for s in range(params.records.shape[1]):
        pending[at + s] += params.records[row, s]


kernel.register(Resampled, kernel.LossKernel(spread))


def fill_averages(
    records: FloatArray, starts: NDArray[np.int64], key: np.uint64, batch: int, values: FloatArray
) -> None:
    """Write into values[t, i, :], which are zeros, the average of `batch` records of arm i."""
    rounds, n_arms, parts = values.shape
    for t in range(rounds):
        for arm in range(n_arms):
            for j in range(batch):
                row = picked(starts, key, arm, (t * n_arms + arm) * batch + j)
                for s in range(parts):
                    values[t, arm, s] += records[row, s]
            for s in range(parts):
                values[t, arm, s] /= batch


class History:
    """Recorded plays: in round rounds[n], arm arms[n] had the effects[n, s] s rounds later, s = 0..d.

    rounds: labels that can be ordered; rounds that nobody recorded do not count. arms: whole numbers from 0; every
    arm up to the greatest needs a play. No play may be recorded twice.

    >>> history = History([1, 1, 2, 2], [0, 1, 0, 1], [[3.0, 1.0], [0.0, 5.0], [2.0, 1.0], [0.0, 6.0]])
    >>> history.complete, history.horizon, history.max_delay, history.span()
    (True, 2, 1, (0.0, 6.6))
    >>> history.replay().totals([1, 0])          # 0, then what is left of arm 1 with the first of arm 0: 5 + 2
    array([0., 7.])
    """

    def __init__(self, rounds: ArrayLike, arms: ArrayLike, effects: ArrayLike) -> None:
        numbers = checks.array("effects", effects, shape=("plays", "d+1"), error=InvalidLosses)
        labels, played = np.asarray(rounds), np.asarray(arms)
        if numbers.shape[0] < 1 or numbers.shape[1] < 1:
            raise InvalidLosses(f"effects must have shape (plays, d+1), both at least 1, but got {numbers.shape}")
        for name, given in (("rounds", labels), ("arms", played)):
            if given.shape != numbers.shape[:1]:
                raise InvalidLosses(f"{name} must be {len(numbers)}, one a play, but got shape {given.shape}")
        if played.dtype.kind not in "iu" or played.min() < 0:
            raise InvalidLosses(f"arms must be whole numbers from 0 on, but got {checks.shown(arms)}")
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
            raise InvalidLosses(f"plays must be recorded once, but round {labels[n]}, arm {played[n]} is there again")
        order = np.lexsort((when, played))
        self.effects = checks.owned(numbers[order])
        self.starts = checks.owned(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
        self._rounds = when[order]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the arrays read-only again, as compiled code expects them: pickle does not keep that."""
        for name, value in state.items():
            setattr(self, name, checks.owned(value) if isinstance(value, np.ndarray) else value)

    @property
    def horizon(self) -> int:
        """How many rounds have a play."""
        return len(self.labels)

    @property
    def max_delay(self) -> int:
        """Return d."""
        return int(self.effects.shape[1]) - 1

    @property
    def complete(self) -> bool:
        """Whether every arm was recorded in every round: a panel."""
        return len(self.effects) == self.horizon * self.n_arms

    def span(self, margin: float = MARGIN) -> tuple[float, float]:
        """Return (low, high): what the recorded plays span, widened by `margin` of it at each end but 0."""
        return widened(*self.extremes(), margin)

    def extremes(self) -> tuple[float, float]:
        """Return the least and the greatest contiguous part of a recorded play; the empty part is 0."""
        least, most = extreme_parts(self.effects.T[np.newaxis])
        return float(least.min()), float(most.max())

    def replay(self, *, direction: str = "maximize", low: float | None = None, high: float | None = None) -> Losses:
        """Return the recorded effects, as they were; an error unless the history is a panel.

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
        """Return `horizon` rounds in which every play of an arm is drawn from that arm's recorded ones.

        Draws are independent and with replacement. batch: a play is the average of so many draws (stored: T (d+1) K
        numbers; single draws are not). low, high: the range of one play's effect; by default `span()`. Averages may
        have a narrower one, which is held against what was drawn.
        """
        horizon, batch = checks.integer("horizon", horizon, low=1), checks.integer("batch", batch, low=1)
        low, high = _range(low, high, *self.extremes())
        key = sequence(seed, RECORDS).generate_state(1, np.uint64)[0]
        losses = Losses(
            self._drawn(horizon, batch, key),
            horizon=horizon,
            max_delay=self.max_delay,
            n_arms=self.n_arms,
            direction=direction,
            low=low,
            high=high,
            means=np.add.reduceat(self.effects.sum(axis=1), self.starts[:-1]) / np.diff(self.starts),
            recipe=recipe(self.resample, horizon=horizon, batch=batch, direction=direction, low=low, high=high),
        )
        if batch > 1:
            check_parts(losses.params.values.transpose(0, 2, 1), losses.effects)
        else:
            self._check_records(losses.effects)
        return losses

    def _drawn(self, horizon: int, batch: int, key: np.uint64) -> Dense | Resampled:
        """Return the drawn plays in kernel form."""
        from aftereffect.core.jit import compiled

        if batch == 1:
            return Resampled(self.effects, self.starts, key)
        values = np.zeros((horizon, self.n_arms, self.max_delay + 1))
        compiled(fill_averages)(self.effects, self.starts, key, batch, values)
        return Dense(checks.owned(values))

    def _check_records(self, span: Effects) -> None:
        """Raise an error if a recorded play, any of which may be drawn, leaves the range."""
        margin = TOLERANCE * (span.hi - span.lo)
        for part in self.extremes():
            if not span.lo - margin <= part <= span.hi + margin:
                raise InvalidLosses(
                    "low and high must hold every contiguous part of a recorded play, "
                    f"but got [{span.lo:g}, {span.hi:g}] and a part that is {part!r}"
                )


@by_keyword
def replay_series(
    series: ArrayLike,
    *,
    weights: ArrayLike,
    direction: str = "maximize",
    low: float | None = None,
    high: float | None = None,
) -> Losses:
    """Return whole effects series[t, i], of which the share weights[s], or weights[i, s], arrives s rounds later.

    low, high: the range of one play's effect, which has to hold the series too; by default what it spans, widened by
    10% at each end but 0.

    >>> replay_series([[8.0, 0.0], [0.0, 4.0]], weights=[0.5, 0.25, 0.25]).totals([0, 1])
    array([4., 4.])
    """
    values = checks.array("series", series, shape=("T", "K"), error=InvalidLosses)
    axes = ("d+1",) if np.ndim(weights) < 2 else ("K", "d+1")
    shares = checks.array("weights", weights, shape=axes, error=InvalidLosses)
    by_arm = np.atleast_2d(shares)
    least, most = extreme_parts(by_arm.T[np.newaxis])
    factors = (min(0.0, float(least.min())), max(1.0, float(most.max())))
    ends = [f * float(v) for f in factors for v in (values.min(initial=0.0), values.max(initial=0.0))]
    low, high = _range(low, high, min(ends), max(ends))
    if shares.ndim == 1:
        return linear_composite(values, coefficients=shares, direction=direction, low=low, high=high)
    return kernels(values, weights=shares, direction=direction, low=low, high=high)


def widened(least: float, most: float, margin: float) -> tuple[float, float]:
    """Return (low, high) around [least, most], wider by `margin` of its length at each end that is not 0.

    >>> widened(-10.0, 30.0, 0.1)
    (-14.0, 34.0)
    """
    room = checks.real("margin", margin, low=0.0) * (most - least)
    if not math.isfinite(room) or most <= least:
        raise InvalidLosses(f"effects must span a range to infer low and high from, but got [{least:g}, {most:g}]")
    return (least - room if least < 0.0 else least), (most + room if most > 0.0 else most)


def _range(low: float | None, high: float | None, least: float, most: float) -> tuple[float, float]:
    """Return the range as given, with what [least, most] suggests in place of None."""
    if low is None or high is None:
        inferred = widened(least, most, MARGIN)
        low, high = inferred[0] if low is None else low, inferred[1] if high is None else high
    checked_range("minimize", low, high)
    return low, high
