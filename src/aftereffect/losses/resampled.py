"""Plays drawn from recorded ones, in kernel form: what `History.resample` (`replay.py`) stands on.

Which record a play is made of is hashed from (key, t, i) as it is needed, so that any number of rounds takes no more
memory than the records. Averages of many records would be too slow to make anew in every run: they are stored.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import kernel
from aftereffect.core.checks import FloatArray
from aftereffect.losses.split import hashed_uniform


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
