"""The Boolean sequence B of Algorithm 1, its update rounds (Definition 1), and Figure 1 for any sequence.

Round t is an update round if B_t = 1, the 2d coins before it are 0, and t ≥ 2d+1. The gap of a round with coin 1 is its
distance from the previous round with coin 1, where round 0 counts as one. The update rounds are then the rounds with a
gap of at least 2d+1. So instead of a coin for every round, the geometric gaps of a Bernoulli(β) sequence are drawn,
about e of them per block. `quiet` is the number of zeros that an update needs before it: 2d for Algorithm 1, d for the
player that feeds coin-clean rounds (`coin_clean.py`).

A gap is computed from 64 random bits x and a table of the integers ⌊(1−β)^g · 2⁶⁴⌋: gap > g if and only if x <
table[g]. This uses integer arithmetic and no logarithm, so it gives the same result on every machine. A table ends
after N entries; x below its last entry means that the next N coins are 0, and since the geometric distribution is
memoryless, the rest of the gap is drawn from new bits when needed.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import checks, kernel, random, saved
from aftereffect.core.checks import owned
from aftereffect.core.errors import CoinsExhausted, InvalidArgument, InvalidState
from aftereffect.core.kernel import FloatState, WordState, helper
from aftereffect.core.random import next_word

LONGEST_TABLE = 1 << 16
GUIDE_BITS = 12
_SHIFT, _1 = np.uint64(64 - GUIDE_BITS), np.uint64(1)
NEVER = np.iinfo(np.int64).max


class Coins(NamedTuple):
    """A Boolean sequence in kernel form: the gap table of a Bernoulli sequence or the update rounds of a given one.

    thresholds: ⌊(1−β)^g · 2⁶⁴⌋ for g = 1..N.
    guide: for each value of the leading bits of x, how many thresholds exceed every such x; the search starts there.
    script: the update rounds of a given sequence with their gaps, then NEVER; empty for a Bernoulli sequence.
    """

    thresholds: NDArray[np.uint64]
    guide: NDArray[np.int32]
    script: NDArray[np.int64]


@functools.lru_cache(maxsize=64)
def bernoulli(bias: float) -> Coins:
    """Return Bernoulli coins with bias β in (0, 1]."""
    # Powers are computed to 128 bits and then truncated to 64.
    r = int((1 - Fraction(bias)) * (1 << 128))
    power = r
    powers = [min(r >> 64, (1 << 64) - 1)]
    # Entries beyond (1−β)^N = 2⁻⁸ would rarely be read.
    while len(powers) < LONGEST_TABLE and power >> 120:
        power = power * r >> 128
        powers.append(min(power >> 64, (1 << 64) - 1))
    thresholds = np.array(powers, dtype=np.uint64)
    # The greatest x with each value of the leading bits.
    tops = ~(np.arange((1 << GUIDE_BITS) - 1, -1, -1, dtype=np.uint64) << _SHIFT)
    guide = len(powers) - np.searchsorted(thresholds[::-1], tops, side="right")
    return Coins(owned(thresholds), owned(guide.astype(np.int32)), owned(np.empty((0, 2), dtype=np.int64)))


def update_rounds(coins: Sequence[bool], max_delay: int) -> list[int]:
    """Return the update rounds of a Boolean sequence, counted from 1 (Definition 1).

    >>> update_rounds([int(c) for c in "10100001001000000100001"], max_delay=2)
    [8, 18, 23]
    """
    return [t for t, _ in long_gaps(coins, 2 * max_delay)]


def long_gaps(coins: Sequence[bool], quiet: int) -> list[tuple[int, int]]:
    """Return the rounds with coin 1 and at least `quiet` zeros directly before them, each with its gap."""
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
    """Draw coins until the next update round or, if there is none, up to round `limit`; return the update round, or 0.

    place: (the latest round with coin 1, the round up to which coins are known, the gap of the update round returned
    last), all 0 at the start; updated in place. Coins may be drawn past `limit`, by at most one gap. For a given
    sequence: (entries used, 0, gap). Floats represent rounds exactly up to 2⁵³.
    """
    if coins.script.shape[0] > 0:
        entry = int(place[0])
        found = coins.script[entry, 0]
        if found == NEVER:
            return 0
        place[0] += 1
        place[2] = coins.script[entry, 1]
        return int(found)
    latest = int(place[0])
    known = int(place[1])
    size = coins.thresholds.shape[0]
    while known < limit:
        zeros = zeros_before_one(coins, rng)
        if zeros == size:
            known += size
            continue
        known += zeros + 1
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


@helper
def zeros_before_one(coins: Coins, rng: WordState) -> int:
    """Return how many zeros come before the next one; N, the length of the table, if the next N coins are zeros."""
    table = coins.thresholds
    size = np.uint64(table.shape[0])
    x = next_word(rng)
    # An unsigned index cannot count from the end, which would have to be checked.
    g = np.uint64(coins.guide[x >> _SHIFT])
    while g < size and x < table[g]:
        g += _1
    return int(np.int64(g))


class DrawnCoins:
    """Bernoulli coins, drawn gap by gap from a stream."""


    def __init__(self, bias: float, quiet: int, rng: WordState, place: FloatState | None = None, end: int = 0) -> None:
        """bias: β. quiet: how many zeros an update needs before it. rng: the stream to draw from.

        place, end: the position from which to continue, as `state()` returned them.
        """
        self.bias = bias
        self._quiet = quiet
        self._rng = rng
        self._table = bernoulli(bias)
        self._place = np.zeros(3) if place is None else place
        self._known = int(self._place[1])
        self._end = end
        self._next_update: Callable[..., int] | None = None

    def read(self, t: int) -> bool:
        """Return whether round t, the next round, is an update round."""
        if t > self._known:
            if self._next_update is None:
                self._next_update = kernel.entry(next_update, self._table, self._rng, self._place, 0, 0)
            # Coins do not depend on the arms played, so drawing ahead of t changes only the number of calls.
            limit = t + 8 * (self._quiet + 1)
            self._end = self._next_update(self._table, self._rng, self._place, self._quiet, limit)
            self._known = int(self._place[1])
        return t == self._end

    @property
    def gap(self) -> int:
        """The number of rounds from the previous coin that is 1 to the latest update round found."""
        return int(self._place[2])

    def since(self, t: int) -> int:
        """Return the number of rounds from the last coin that is 1 to round t, the last round read.

        It is 0 if coins have been drawn ahead and t lies in a gap too short for an update.
        """
        latest = self._end - self.gap if self._end > t else int(self._place[0])
        # If the latest coin that is 1 lies after t and is not an update, its gap is too short for one.
        return max(t - latest, 0)

    def fresh(self, rng: WordState) -> "DrawnCoins":
        """Return coins of the same bias, drawn from another stream."""
        return DrawnCoins(self.bias, self._quiet, rng)

    def begin_after(self, rounds: int) -> None:
        """Begin after so many rounds without coins; the last of them counts as a coin that is 1."""
        self._place[:2] = self._known = rounds

    def kernel(self) -> Coins:
        """Return the coins in kernel form."""
        return self._table

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy through the saved state, because compiled code cannot be pickled."""
        return restore_coins, (self.state(), self._quiet, 0)

    def state(self) -> dict[str, Any]:
        """Return the bias and the position in the stream."""
        words = saved.words_to_hex(self._rng)
        return {"bias": self.bias, "stream": words, "place": self._place.tolist(), "end": self._end}


class GivenCoins:
    """A Boolean sequence given by the user."""

    def __init__(self, coins: Iterable[Any], quiet: int) -> None:
        self._quiet = quiet
        self._latest = 0
        self.gap = 0
        self.sequence = [coin_value(coin, t) for t, coin in enumerate(coins, start=1)]

    def read(self, t: int) -> bool:
        """Return whether round t, the next round, is an update round."""
        if t > len(self.sequence):
            raise CoinsExhausted(f"coins must have a value for every round, but ended before round {t}")
        update = self.sequence[t - 1] and t - self._latest > self._quiet
        if self.sequence[t - 1]:
            self.gap, self._latest = t - self._latest, t
        return update

    def since(self, t: int) -> int:
        """Return the number of rounds from the last coin that is 1 to round t, the last round read."""
        return t - self._latest

    def fresh(self, rng: WordState) -> "GivenCoins":
        """Return the same sequence, read from its start."""
        return GivenCoins(self.sequence, self._quiet)

    def kernel(self) -> Coins:
        """Return the coins in kernel form."""
        return scripted(self.sequence, self._quiet)

    def state(self) -> dict[str, Any]:
        """Return the sequence; its position follows from the player's round."""
        return {"sequence": "".join("01"[coin] for coin in self.sequence)}


def coin_value(coin: Any, t: int) -> bool:
    """Return a coin as a bool; only False, True, 0 and 1 are valid."""
    if isinstance(coin, bool | np.bool_ | int | np.integer) and coin in (0, 1):
        return bool(coin)
    raise InvalidArgument(f"coins must be 0 or 1 in every round, but in round {t} got {checks.shown(coin)}")


def make_coins(coins: Any, quiet: int, seed: int) -> DrawnCoins | GivenCoins:
    """Return the sequence for the argument `coins`: a bias in (0, 1], or a sequence of bools."""
    # An iterator may have no end, and cannot be read again when the player is saved or simulated.
    if coins is None or isinstance(coins, str | bytes | bool | Iterator):
        raise InvalidArgument(f"coins must be a bias in (0, 1] or a sequence of bools, but got {checks.shown(coins)}")
    if isinstance(coins, np.ndarray):
        coins = coins.tolist()
    if isinstance(coins, Iterable):
        return GivenCoins(coins, quiet)
    return DrawnCoins(checks.real("coins", coins, above=0.0, high=1.0), quiet, random.stream(seed, 0, random.COINS))


def restore_coins(state: Any, quiet: int, rounds_read: int) -> DrawnCoins | GivenCoins:
    """Return the coins saved by `state()`, after `rounds_read` rounds."""
    if isinstance(state, Mapping) and set(state) == {"bias", "stream", "place", "end"}:
        bias = checks.real("coins.bias", state["bias"], above=0.0, high=1.0)
        words = saved.hex_to_words("coins.stream", state["stream"], 4)
        place = saved.numbers("coins.place", state["place"], 3)
        return DrawnCoins(bias, quiet, words, place, checks.integer("coins.end", state["end"], low=0))
    if isinstance(state, Mapping) and set(state) == {"sequence"} and isinstance(state["sequence"], str):
        given = GivenCoins([{"0": 0, "1": 1}.get(letter) for letter in state["sequence"]], quiet)
        for t in range(1, rounds_read + 1):
            given.read(t)
        return given
    raise InvalidState(f"coins must be a bias with its position or a sequence, but got {checks.shown(state)}")


# Figure 1.


def read_coins(text: str) -> list[bool]:
    """Return the Boolean sequence written as a string of the digits 0 and 1.

    >>> read_coins("101")
    [True, False, True]
    """
    if not text or set(text) - set("01"):
        raise InvalidArgument(f"coins must be one or more of the digits 0 and 1, but got {checks.shown(text)}")
    return [digit == "1" for digit in text]


def round_kinds(coins: Iterable[bool], max_delay: int) -> list[str]:
    """Return the kind of each round: "D" (draw) or "S" (stay), followed by "U" if it is an update round (Definition 1).

    Round t updates if t >= 2d+1, b_t = 1 and the 2d coins before it are 0. It draws if t = 1 or t-1 updated.

    >>> round_kinds([1, 0, 0, 1, 1, 0, 0], max_delay=1)
    ['D', 'S', 'S', 'SU', 'D', 'S', 'S']
    >>> round_kinds([1, 0, 1], max_delay=0)
    ['DU', 'D', 'SU']
    """
    b = list(coins)
    ends = set(update_rounds(b, checks.integer("max_delay", max_delay, low=0)))
    return ["DS"[t > 1 and t - 1 not in ends] + "U" * (t in ends) for t in range(1, len(b) + 1)]


def text_diagram(coins: Iterable[bool], max_delay: int, rounds_per_line: int = 23) -> str:
    """Return Figure 1 as text: the coins, the kinds of rounds with `|` between blocks, and the basis of each update.

    The row "needed" repeats the coins that Definition 1 requires for an update; "summed" marks the totals that are fed.

    >>> print(text_diagram([1, 0, 0, 1, 1, 0, 0], max_delay=1))
    coins   1  0  0  1 |1  0  0
    rounds  D  S  S  SU|D  S  S
    needed     0  0  1 |
    summed        +  + |
    """
    b = list(coins)
    kinds = round_kinds(b, max_delay)
    needed, summed = [""] * len(b), [""] * len(b)
    for t in update_rounds(b, max_delay):
        needed[t - 2 * max_delay - 1 : t] = ["0"] * (2 * max_delay) + ["1"]
        summed[t - max_delay - 1 : t] = ["+"] * (max_delay + 1)
    rows = {"coins": [str(int(coin)) for coin in b], "rounds": kinds, "needed": needed, "summed": summed}
    lines = []
    for first in range(0, len(b), rounds_per_line):
        here = range(first, min(first + rounds_per_line, len(b)))
        for name, cells in rows.items():
            row = (f"{cells[t]:2}" + ("|" if kinds[t].endswith("U") else " ") for t in here)
            lines.append(f"{name:8}{''.join(row)}".rstrip())
        lines.append("")
    return "\n".join(lines[:-1])
