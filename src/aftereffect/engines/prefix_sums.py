"""The sums that the block engine looks up: D, W and the outstanding charges at checkpoints, for each arm always played.

Plays are counted from 0, and time t = 0..T means after t rounds:

- D_i(t): the whole loss of t plays of arm i, including charges after t. A block over rounds a..b−1 costs
  D_i(b) − D_i(a) in total.
- W_i(t): the sum of the d+1 totals up to time t, **added oldest first, as the player adds them**, from totals
  that are themselves added in the order of play. So it equals the player's window bit for bit, which a
  difference of prefix sums would not.
- A_i(c): the sum of totals up to checkpoint c.
- O_i(c, m): the charges of the last m plays before c that fall due after c, m = 0..d.

D and W of a round and an arm are adjacent in memory, because the end of a block reads both. They are computed in one
streaming pass per arm, on all cores, and kept as long as the losses exist.
"""

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import checks, kernel
from aftereffect.core.checks import FloatArray
from aftereffect.engines.workload import Advanced, spread_over
from aftereffect.losses.protocol import Losses, carry_over

# Rounds whose sums fit the first-level cache, and rounds between two checks for a stop.
CHUNK, PART = 2048, 1 << 16
Made = TypeVar("Made")
_latest: "weakref.WeakKeyDictionary[Losses, dict[str, tuple[Any, Any] | None]]" = weakref.WeakKeyDictionary()


def latest(name: str, losses: Losses, key: Any, build: Callable[[], Made]) -> Made:
    """Return what `build` returns; by name, the result for the latest key is kept as long as the losses exist."""
    kept = _latest.setdefault(losses, {})
    known = kept.get(name)
    if known is None or known[0] != key:
        # Release the former result first: two may not fit in memory.
        known = kept[name] = None
        known = kept[name] = key, build()
    found: Made = known[1]
    return found


@kernel.helper
def charge(play: FloatArray, pending: FloatArray) -> float:
    """Add a play's components to what is pending, clear them, and return their sum.

    The sum is taken in four interleaved sums: its last bit does not matter.
    """
    a = b = c = d = 0.0
    quarters = len(play) // 4
    for s in range(len(play)):
        pending[s] += play[s]
    for k in range(quarters):
        a += play[4 * k]
        b += play[4 * k + 1]
        c += play[4 * k + 2]
        d += play[4 * k + 3]
    for s in range(4 * quarters, len(play)):
        a += play[s]
    for s in range(len(play)):
        play[s] = 0.0
    return (a + b) + (c + d)


@kernel.helper
def accumulate(carry: FloatArray, x: float) -> float:
    """Add x to a sum carried in two doubles, so that it has the error of a single rounding, and return the sum."""
    high = carry[0] + x
    carry[1] += (carry[0] - high) + x if abs(carry[0]) >= abs(x) else (x - high) + carry[0]
    carry[0] = high
    return float(high + carry[1])


@kernel.helper
def fill_rows(
    params: Any,
    arm: int,
    early: int,
    begin: int,
    end: int,
    delay: int,
    window: int,
    scratch: FloatArray,
    carry: FloatArray,
    rows: FloatArray,
    summed: bool,
) -> None:
    """Write D and W of one arm for rounds begin..end−1.

    early: the first round played: delay + window rounds before `begin`, or `begin` if `scratch` is what the previous
    call left. At the first call it is zeros. delay: d of the losses. window: d of the player. carry: D so far.
    summed: False writes the whole losses of the plays in place of their sums D, which are in `carry` alone.
    """
    # scratch: [one play: delay+1][pending: chunk+delay][totals: window+chunk][sums: chunk], at fixed offsets.
    chunk = (len(scratch) - 2 * delay - 1 - window) // 3
    play, pending = scratch[: delay + 1], scratch[delay + 1 : chunk + 2 * delay + 1]
    totals, sums = scratch[chunk + 2 * delay + 1 : -chunk], scratch[-chunk:]
    for first in range(early, end, chunk):
        count = min(chunk, end - first)
        # The number of this chunk's rounds before `begin`.
        skipped = min(max(begin - first, 0), count)
        for k in range(count):
            kernel.spread(params, first + k, arm, play, 0)
            whole = charge(play, pending[k:])
            totals[window + k] = pending[k]
            if k >= skipped:
                paid = accumulate(carry, whole)
                rows[first + k + 1, arm, 0] = paid if summed else whole
        for k in range(count):
            sums[k] = 0.0
        for j in range(window + 1):
            latest = totals[j:]
            for k in range(count):
                sums[k] += latest[k]
        for k in range(skipped, count):
            rows[first + k + 1, arm, 1] = sums[k]
        carry_over(pending, delay, count)
        for j in range(window):
            totals[j] = totals[count + j]


def fill_owed(params: Any, arm: int, times: NDArray[np.int64], delay: int, play: FloatArray, owed: FloatArray) -> None:
    """Write the charges after times[c] of the play m rounds before it to owed[c, m, arm]."""
    done = 0
    for c in range(len(times)):
        # Plays before `done` were written for an earlier time, and for this one too.
        for t in range(max(done, times[c] - delay), times[c]):
            for s in range(delay + 1):
                play[s] = 0.0
            kernel.spread(params, t, arm, play, 0)
            # Replace each component by the sum of itself and all later ones.
            for s in range(delay - 1, 0, -1):
                play[s] += play[s + 1]
            k = c
            while k < len(times) and times[k] - t <= delay:
                owed[k, times[k] - t, arm] = play[times[k] - t]
                k += 1
        done = times[c]


def prepare_rows(losses: Losses, max_delay: int, threads: int) -> FloatArray:
    """Return D and W for a player with this `max_delay`: rows[t, i, 0] = D_i(t), rows[t, i, 1] = W_i(t), t = 0..T."""

    def build() -> FloatArray:
        fill, delay = kernel.compiled(fill_rows, losses.params), losses.max_delay
        rows = np.zeros((losses.horizon + 1, losses.n_arms, 2))

        def work(arm: int, advanced: Advanced) -> None:
            scratch, carry = np.zeros(2 * delay + 1 + max_delay + 3 * CHUNK), np.zeros(2)
            for first in range(0, losses.horizon, PART):
                advanced(0)
                end = min(first + PART, losses.horizon)
                fill(losses.params, arm, first, first, end, delay, max_delay, scratch, carry, rows, True)

        spread_over(threads, work, [(arm,) for arm in range(losses.n_arms)])
        rows.flags.writeable = False
        return rows

    return latest("rows", losses, max_delay, build)


def prepare_owed(losses: Losses, checkpoints: NDArray[np.int64], threads: int) -> FloatArray:
    """Return O, the outstanding charges at the checkpoints: owed[c, m, i] = O_i(c, m)."""

    def build() -> FloatArray:
        fill, delay = kernel.compiled(fill_owed, losses.params), losses.max_delay
        owed = np.zeros((len(checkpoints), delay + 1, losses.n_arms))

        def work(arm: int, advanced: Advanced) -> None:
            fill(losses.params, arm, checkpoints, delay, np.zeros(delay + 1), owed)

        spread_over(threads, work, [(arm,) for arm in range(losses.n_arms)])
        # From the play m rounds before the checkpoint to the last m plays.
        return np.cumsum(owed, axis=1, out=owed)

    return latest("owed", losses, checkpoints.tobytes(), build)


def arm_sums_at(losses: Losses, checkpoints: NDArray[np.int64]) -> FloatArray:
    """Return A, the sums of totals of always playing each arm, at the checkpoints, by direct summation."""

    def build() -> FloatArray:
        totals = (losses.totals(np.full(losses.horizon, arm)) for arm in range(losses.n_arms))
        return checks.owned(np.stack([each.cumsum()[checkpoints - 1] for each in totals], axis=1))

    return latest("sums", losses, checkpoints.tobytes(), build)
