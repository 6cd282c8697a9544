"""The Boolean sequence B of Algorithm 1: where update rounds lie (Definition 1).

Round t is an update round when B_t = 1, the 2d coins before it are 0, and t ≥ 2d+1. Call the distance between
consecutive ones a gap, and let the start count as a one at round 0. Then update rounds are exactly the ones
whose gap is at least 2d+1: so instead of tossing a coin every round, the geometric gaps of a Bernoulli(β)
sequence are drawn, about e of them per block. `quiet` is how many zeros an update needs before it: 2d here, d for
the player that feeds coin-clean rounds (`coin_clean.py`).

A gap comes from 64 random bits x and a table of whole numbers ⌊(1−β)^g · 2⁶⁴⌋, computed in whole numbers:
gap > g if and only if x < table[g]. No logarithm, so it is the same on every machine. A table ends after N
entries; x below its last entry says that the next N coins are 0, and by the lack of memory of the geometric
law the rest is drawn afresh, when it is needed.
"""

import bisect
import functools
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aftereffect.core.checks import owned
from aftereffect.core.kernel import FloatState, WordState, helper
from aftereffect.core.random import next_word

LONGEST_TABLE = 1 << 16
GUIDE_BITS = 10
_SHIFT = np.uint64(64 - GUIDE_BITS)
NEVER = np.iinfo(np.int64).max


class Coins(NamedTuple):
    """A Boolean sequence in kernel form: the gap table of a Bernoulli sequence, or the update rounds of a
    given one.

    thresholds: ⌊(1−β)^g · 2⁶⁴⌋ for g = 1..N.
    guide: for each value of the leading bits of x, how many thresholds lie above all such x; a search starts
    there. script: the update rounds of a sequence that was given with their gaps, then NEVER; empty for a
    Bernoulli sequence.
    """

    thresholds: NDArray[np.uint64]
    guide: NDArray[np.int32]
    script: NDArray[np.int64]


@functools.lru_cache(maxsize=64)
def bernoulli(bias: float) -> Coins:
    """Return Bernoulli coins with a bias β in (0, 1]."""
    # Every power is exact to 2⁻¹²⁸ before it is cut to 64 bits.
    r = int((1 - Fraction(bias)) * (1 << 128))
    power = r
    powers = [min(r >> 64, (1 << 64) - 1)]
    # Beyond r^N = 2⁻⁸ the table is hardly ever read.
    while len(powers) < LONGEST_TABLE and power >> 120:
        power = power * r >> 128
        powers.append(min(power >> 64, (1 << 64) - 1))
    ascending = [-threshold for threshold in powers]
    tops = [((lead + 1) << (64 - GUIDE_BITS)) - 1 for lead in range(1 << GUIDE_BITS)]
    guide = [bisect.bisect_left(ascending, -top) for top in tops]
    return Coins(
        owned(np.array(powers, dtype=np.uint64)),
        owned(np.array(guide, dtype=np.int32)),
        owned(np.empty((0, 2), dtype=np.int64)),
    )


def update_rounds(coins: Sequence[bool], max_delay: int) -> list[int]:
    """Return the update rounds, from 1, that a Boolean sequence makes (Definition 1).

    >>> update_rounds([int(c) for c in "10100001001000000100001"], max_delay=2)
    [8, 18, 23]
    """
    return [t for t, _ in long_gaps(coins, 2 * max_delay)]


def long_gaps(coins: Sequence[bool], quiet: int) -> list[tuple[int, int]]:
    """Return the ones with at least `quiet` zeros before them, each with its gap."""
    latest, found = 0, []
    for t, coin in enumerate(coins, start=1):
        if coin:
            if t - latest > quiet:
                found.append((t, t - latest))
            latest = t
    return found


def scripted(coins: Sequence[bool], quiet: int) -> Coins:
    """Return a given Boolean sequence in kernel form."""
    always = bernoulli(1.0)
    found = [*long_gaps(coins, quiet), (NEVER, 0)]
    return Coins(always.thresholds, always.guide, owned(np.array(found, dtype=np.int64)))


@helper
def next_update(coins: Coins, rng: WordState, place: FloatState, quiet: int, limit: int) -> int:
    """Return the next update round if it is settled by looking at coins up to `limit`, else 0.

    place: (the latest one, the round up to which coins are known, the gap of the update round returned last), all 0
    at the start; moved along. It may look past `limit` by one gap. For a script: (entries used, 0, gap). Floats hold
    rounds exactly up to 2⁵³.
    """
    if coins.script.shape[0] > 0:
        entry = int(place[0])
        found = coins.script[entry, 0]
        if found == NEVER:
            return 0
        place[0] += 1
        place[2] = coins.script[entry, 1]
        return int(found)
    table = coins.thresholds
    size = table.shape[0]
    latest = int(place[0])
    known = int(place[1])
    while known < limit:
        x = next_word(rng)
        g = int(coins.guide[x >> _SHIFT])
        while g < size and x < table[g]:
            g += 1
        if g == size:
            known += size
            continue
        known += g + 1
        gap = known - latest
        latest = known
        if gap > quiet:
            place[0] = latest
            place[1] = latest
            place[2] = gap
            return latest
    place[0] = latest
    place[1] = known
    return 0
