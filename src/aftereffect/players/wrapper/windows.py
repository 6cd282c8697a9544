"""The clean rounds at the end of a block: their totals, the range of their sum, and the loss that is fed.

A round t > d is coin-clean if the d coins before it are 0: the arm has been the same since round t − d, so the total
contains effects of this arm only. If a block ends `gap` rounds after the previous coin that is 1, its last gap − d
rounds are coin-clean. The paper's window is the last d+1 of them, a stretch is all of them.

If a total of the window is missing, the window is void: the base is not updated and the block continues. A missing
total is never replaced by an estimate.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from aftereffect.core import checks, effects
from aftereffect.core.errors import InvalidState, InvalidTotal
from aftereffect.players.limits import total_rule


class Counts(NamedTuple):
    """The numbers of missing reports, of totals and windows out of range, of void windows and of amended totals."""

    missing: int = 0
    out_of_range: int = 0
    void_windows: int = 0
    amended: int = 0


class CleanWindow:
    """The totals of the open block, and the paper's window at its end.

    `read` and `feed` return values and new counts but change nothing; `put` and `begin` change the window.
    """

    RULE = " (Lemma 2)"

    def __init__(self, span: effects.Effects, max_delay: int, out_of_range: str) -> None:
        """span: the range of one action's effect. max_delay: d. out_of_range: "raise", "void" or "clip"."""
        self.out_of_range = out_of_range
        self.counts = Counts()
        self._span = span
        self._max_delay = max_delay
        self._least, self._most = effects.stretch_bounds(span, max_delay, 1)
        # The totals of rounds first, first + 1, ...; None for a missing or void total.
        self._first = 1
        self._totals: list[float | None] = []

    @property
    def unheard(self) -> bool:
        """Whether the latest total is missing or void; False after an update round."""
        return bool(self._totals) and self._totals[-1] is None

    def read(self, total: Any) -> tuple[float | None, Counts]:
        """Return a reported total as it will be used (None: missing or void) and the new counts."""
        counts = self.counts
        # The fast path, for a float in range; NaN fails the comparison.
        if type(total) is float and self._least <= total <= self._most:
            return total, counts
        if total is None:
            return None, counts._replace(missing=counts.missing + 1)
        value = checks.total(total)
        if self._least <= value <= self._most:
            return value, counts
        if self.out_of_range == "raise":
            raise InvalidTotal(f"{total_rule(self._span, self._max_delay + 1, 0)}, but got {value!r}")
        counts = counts._replace(out_of_range=counts.out_of_range + 1)
        return (None if self.out_of_range == "void" else min(max(value, self._least), self._most)), counts

    def rounds(self, gap: int) -> int:
        """Return how many totals are summed at the end of a block; gap: rounds since the previous coin that is 1."""
        return self._max_delay + 1

    def loss(self, rounds: int, whole: float) -> float:
        """Return the loss to feed for a sum of `rounds` totals."""
        return effects.fed_loss(self._span, self._max_delay, whole)

    def feed(self, t: int, value: float | None, counts: Counts, gap: int) -> tuple[float | None, Counts]:
        """Return the loss to feed if the block ends in round t (None: the window is void), and the new counts.

        value: the total of round t, from `read`. gap: the number of rounds since the previous coin that is 1.
        """
        d, rounds = self._max_delay, self.rounds(gap)
        whole = 0.0
        # Oldest first, as in the engines, so that results are equal bit for bit.
        for s in range(t - rounds + 1, t + 1):
            part = value if s == t else self._totals[s - self._first]
            if part is None:
                return None, counts._replace(void_windows=counts.void_windows + 1)
            whole += part
        least, most = effects.stretch_bounds(self._span, d, rounds)
        if not least <= whole <= most:
            if self.out_of_range == "raise":
                raise InvalidTotal(
                    f"total must keep the sum of the last {rounds} totals in [{(rounds + d) * self._span.lo:g}, "
                    f"{(rounds + d) * self._span.hi:g}]{self.RULE}, but with total {value!r} the sum is {whole!r}"
                )
            counts = counts._replace(out_of_range=counts.out_of_range + 1)
            if self.out_of_range == "void":
                return None, counts._replace(void_windows=counts.void_windows + 1)
        return self.loss(rounds, whole), counts

    def change(self, measured: int, was: float, now: float) -> tuple[float, Counts]:
        """Return by how much the loss of a block changes if the sum of its totals does, and the new counts."""
        was, now = checks.total(was), checks.total(now)
        least, most = effects.stretch_bounds(self._span, self._max_delay, measured)
        counts = self.counts
        for name, whole in (("was", was), ("now", now)):
            if self.out_of_range != "clip" and not least <= whole <= most:
                low, high = ((measured + self._max_delay) * end for end in (self._span.lo, self._span.hi))
                rule = f"{name} must lie in [{low:g}, {high:g}], the range of a sum of {measured} totals"
                raise InvalidTotal(f"{rule}, but got {whole!r}")
        if not least <= now <= most:
            counts = counts._replace(out_of_range=counts.out_of_range + 1)
        return self.loss(measured, now) - self.loss(measured, was), counts

    def put(self, t: int, value: float | None, counts: Counts) -> None:
        """Store the counts and the total of round t, as returned by `read`; ignore totals of earlier blocks."""
        totals, place = self._totals, t - self._first
        if place == len(totals):
            totals.append(value)
        elif place >= 0:
            totals[place] = value
        self.counts = counts

    def begin(self, t: int) -> None:
        """Discard all totals; the next is that of round t."""
        self._first = t
        self._totals = []

    def state(self) -> dict[str, Any]:
        """Return the stored totals, the round of the first of them, and the counts."""
        return {"first": self._first, "totals": list(self._totals), "counts": list(self.counts)}

    def resume(self, state: Any) -> None:
        """Load a saved window."""
        if not isinstance(state, Mapping) or set(state) != {"first", "totals", "counts"}:
            raise InvalidState(f"window must have first, totals and counts, but got {checks.shown(state)}")
        first, totals = checks.integer("window.first", state["first"], low=1), state["totals"]
        if not isinstance(totals, list) or not all(total is None or isinstance(total, float) for total in totals):
            raise InvalidState(f"window.totals must be a list of floats or nulls, but got {checks.shown(totals)}")
        counts = state["counts"]
        if not isinstance(counts, list) or len(counts) != len(Counts._fields):
            raise InvalidState(f"window.counts must be {len(Counts._fields)} numbers, but got {checks.shown(counts)}")
        self._first, self._totals = first, list(totals)
        self.counts = Counts(*(checks.integer("window.counts", count, low=0) for count in counts))


class CleanStretch(CleanWindow):
    """The totals of the open block, and the stretch of all coin-clean rounds at its end.

    scale: C, by which the sum is divided.
    """

    RULE = ""

    def __init__(self, span: effects.Effects, max_delay: int, out_of_range: str, scale: float) -> None:
        super().__init__(span, max_delay, out_of_range)
        self._scale = scale

    def rounds(self, gap: int) -> int:
        """Return how many totals are summed at the end of a block; gap: rounds since the previous coin that is 1."""
        return gap - self._max_delay

    def loss(self, rounds: int, whole: float) -> float:
        """Return the loss to feed for a sum of `rounds` totals."""
        return effects.stretch_loss(self._span, self._max_delay, rounds, self._scale, whole)

    def terms(self, gap: int) -> tuple[float, float, float]:
        """Return the weight, offset and top of the loss that is fed after this gap (`effects.stretch_terms`)."""
        return effects.stretch_terms(self._span, self._max_delay, self.rounds(gap), self._scale)
