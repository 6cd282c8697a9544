"""`wash_in`: totals by the rounds since the change of arm, beside what a player's max_delay assumes.

A run is a sequence of rounds with the same arm. In its first d rounds a total still contains effects of the arm before;
if effects end within d, the mean total of an arm is the same from round d+1 of a run on. The table shows whether it is.
It describes and does not test: a player stays longer with arms that do well, and totals may have a trend. The test is
`watch`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aftereffect.carryover.effects_by_lag import axes_for
from aftereffect.carryover.regression import series
from aftereffect.core import checks
from aftereffect.core.checks import FloatArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

FEWEST = 5
"""Means of fewer totals are not plotted. Chosen here."""


@dataclass(frozen=True, eq=False)
class WashIn:
    """Totals by arm and by round since the change to it: row i is arm i, column r is round r+1 of a run.

    late: the mean total of each arm after round 2 max_delay + 1 of a run. means: the mean total less `late`. errors:
    their standard errors, without that of `late`. counts: the number of totals. pooled, pooled_errors: the same for the
    totals of all arms. Entries are NaN where there are no totals, or only one for an error.
    """

    max_delay: int
    late: FloatArray
    means: FloatArray = field(repr=False)
    errors: FloatArray = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)
    pooled: FloatArray = field(repr=False)
    pooled_errors: FloatArray = field(repr=False)

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per arm and round, as a pandas frame (extra `frames`)."""
        K, rounds = self.means.shape
        columns = {"arm": np.repeat(np.arange(K), rounds), "round": np.tile(np.arange(1, rounds + 1), K)}
        columns |= {name: getattr(self, name).ravel() for name in ("means", "errors", "counts")}
        found: pd.DataFrame = checks.optional("pandas", "to_frame", "frames").DataFrame(columns)
        return found

    def plot(self, ax: "Axes | None" = None, names: Sequence[str] | None = None) -> "Axes":
        """Plot the means of every arm (of five totals or more) and of all arms together; return the axes."""
        ax = axes_for(ax)
        K, rounds = self.means.shape
        r = np.arange(1, rounds + 1)
        means = np.where(self.counts >= FEWEST, self.means, np.nan)
        for i in range(K):
            ax.plot(r, means[i], "o-", ms=3, lw=1, alpha=0.8, label=names[i] if names else f"arm {i}")
        label = "all arms, ± 2 standard errors"
        ax.errorbar(r, self.pooled, 2.0 * self.pooled_errors, color="black", lw=1.5, capsize=2, label=label)
        ax.axhline(0.0, color="0.75", lw=1, zorder=1)
        ax.axvspan(0.5, self.max_delay + 0.5, color="0.93", lw=0, zorder=0)
        ax.set_xlim(0.5, rounds + 0.5)
        ax.locator_params(axis="x", integer=True)
        ax.set_xlabel(f"round since the change of arm (level after the shaded ones, if d = {self.max_delay} is enough)")
        ax.set_ylabel("mean total, relative to the arm's late mean")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
        return ax


def wash_in(
    arms: ArrayLike, totals: ArrayLike, *, max_delay: int, n_arms: int | None = None, rounds: int | None = None
) -> WashIn:
    """Return the mean totals by the rounds since the change of arm.

    arms, totals: as for `estimate`; runs before the first change and after an unknown arm are left out.
    max_delay: d, which the player was told. rounds: the number of rounds in the table; by default 4 (max_delay + 1).

    >>> table = wash_in([0, 1, 1, 1, 0, 0, 0, 1, 1], [0.0, 5.0, 2.0, 2.0, 4.0, 1.0, 1.0, 3.0, 2.0], max_delay=0)
    >>> table.means[:, :3].tolist(), table.pooled[:3].tolist()
    ([[3.0, 0.0, 0.0], [2.0, 0.0, 0.0]], [2.3333333333333335, 0.0, 0.0])
    """
    d = checks.integer("max_delay", max_delay, low=0)
    R = 4 * (d + 1) if rounds is None else checks.integer("rounds", rounds, low=1)
    played, observed, K = series(arms, totals, n_arms)
    since = rounds_since_change(played)
    used = (since > 0) & np.isfinite(observed)
    arm, r, y = played[used], since[used], observed[used]
    late = _means(arm[r > 2 * d + 1], y[r > 2 * d + 1], K)[0]
    early = r <= R
    arm, r, y = arm[early], r[early], (y - late[arm])[early]
    # An arm that never had a late round has no level to compare with.
    known = np.isfinite(y)
    arm, r, y = arm[known], r[known], y[known]
    means, errors, counts = (each.reshape(K, R) for each in _means(arm * R + r - 1, y, K * R))
    pooled, pooled_errors, _ = _means(r - 1, y, R)
    return WashIn(d, late, means, errors, counts.astype(np.int64), pooled, pooled_errors)


def rounds_since_change(arms: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each round in its run, from 1; 0 if the start is unknown. arms: of shape (rounds, units)."""
    time = np.arange(len(arms))[:, np.newaxis]
    changed = np.zeros(arms.shape, dtype=bool)
    changed[1:] = arms[1:] != arms[:-1]
    start = np.maximum.accumulate(np.where(changed, time, 0))
    # A run is known if its arm is, and if it came after another arm that is known.
    after = np.vstack([np.full(arms.shape[1], -1), arms])
    known = (np.take_along_axis(after, start, axis=0) >= 0) & (arms >= 0)
    return np.where(known, time - start + 1, 0)


def _means(place: NDArray[np.int64], y: FloatArray, size: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return means, their standard errors and counts of the values of each place."""
    counts = np.bincount(place, minlength=size).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.bincount(place, y, minlength=size) / counts
        squares = np.bincount(place, (y - means[place]) ** 2, minlength=size)
        errors = np.where(counts > 1.0, np.sqrt(squares / (counts - 1.0) / counts), np.nan)
    return means, errors, counts
