"""The clean window of Algorithm 1: the latest d+1 totals, what may be in them, and the loss they feed.

A total is missing, or out of range, or fine. A window with a hole is void: nothing is fed and the block goes
on, because a window filled in by a guess would feed the base a loss nobody suffered.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from aftereffect.core import checks, effects
from aftereffect.core.errors import InvalidState, InvalidTotal
from aftereffect.players.base import checked_total

OUT_OF_RANGE = ("raise", "void", "clip")


class Counts(NamedTuple):
    """What did not go as it should: reports missing, totals and windows out of range, windows void, totals amended."""

    missing: int = 0
    out_of_range: int = 0
    void_windows: int = 0
    amended: int = 0


class CleanWindow:
    """The latest d+1 totals. `read` and `feed` look and count but change nothing; `put` does."""

    __slots__ = ("_least", "_max_delay", "_most", "_span", "_totals", "counts", "out_of_range")

    def __init__(self, span: effects.Effects, max_delay: int, out_of_range: str) -> None:
        """Take the range of one action's effect, d, and what to do with the impossible."""
        self.out_of_range = checks.choice("out_of_range", out_of_range, OUT_OF_RANGE)
        self.counts = Counts()
        self._span = span
        self._max_delay = max_delay
        self._least, self._most = effects.total_bounds(span, max_delay)
        # The total of round t at t mod (d+1), None where it is missing or void.
        self._totals: list[float | None] = [None] * (max_delay + 1)

    def read(self, total: Any) -> tuple[float | None, Counts]:
        """Return a reported total as it will be used (None: void) and the counts after it."""
        counts = self.counts
        # NaN fails the comparison; a plain float in range, nearly every report, is done with here.
        if type(total) is float and self._least <= total <= self._most:
            return total, counts
        if total is None:
            return None, counts._replace(missing=counts.missing + 1)
        value = checked_total(total)
        if self._least <= value <= self._most:
            return value, counts
        if self.out_of_range == "raise":
            d, span = self._max_delay, self._span
            raise InvalidTotal(
                f"total must lie in [{(d + 1) * span.lo:g}, {(d + 1) * span.hi:g}], the range of one action's effect "
                f"times max_delay + 1 = {d + 1}, but got {value!r}"
            )
        counts = counts._replace(out_of_range=counts.out_of_range + 1)
        return (None if self.out_of_range == "void" else min(max(value, self._least), self._most)), counts

    def feed(self, t: int, value: float | None, counts: Counts, gap: int) -> tuple[float | None, Counts]:
        """Return the loss fed by the window that ends in round t with this total (None: void), and the counts.

        gap: how many rounds before t the latest one lies, at least 2d+1; the window is the last d+1 of them.
        """
        d = self._max_delay
        window = 0.0
        # Oldest first: the engines add in this order too, and agree to the last bit.
        for s in range(t - d, t + 1):
            part = value if s == t else self._totals[s % (d + 1)]
            if part is None:
                return None, counts._replace(void_windows=counts.void_windows + 1)
            window += part
        least, most = effects.window_bounds(self._span, d)
        if not least <= window <= most:
            if self.out_of_range == "raise":
                raise InvalidTotal(
                    f"total must keep the sum of the last {d + 1} totals in [{(2 * d + 1) * self._span.lo:g}, "
                    f"{(2 * d + 1) * self._span.hi:g}] (Lemma 2), but with total {value!r} the sum is {window!r}"
                )
            counts = counts._replace(out_of_range=counts.out_of_range + 1)
            if self.out_of_range == "void":
                return None, counts._replace(void_windows=counts.void_windows + 1)
        return effects.fed_loss(self._span, d, window), counts

    def put(self, t: int, value: float | None, counts: Counts) -> None:
        """Keep the total of round t, which `read` returned, and the counts."""
        self._totals[t % (self._max_delay + 1)] = value
        self.counts = counts

    def holds(self, t: int, latest: int) -> bool:
        """Return whether the total of round t can still be in a window after round `latest`: one of the d+1 latest."""
        return t > latest - self._max_delay - 1

    def begin(self, t: int) -> None:
        """Begin a block in round t: nothing to do, a window looks back d+1 rounds whatever they are."""

    def state(self) -> dict[str, Any]:
        """Return totals and counts."""
        return {"totals": list(self._totals), "counts": list(self.counts)}

    def resume(self, state: Any) -> None:
        """Take up a saved window."""
        if not isinstance(state, Mapping) or set(state) != {"totals", "counts"}:
            raise InvalidState(f"window must have totals and counts, but got {checks.shown(state)}")
        totals, counts = state["totals"], state["counts"]
        fits = isinstance(totals, list) and len(totals) == self._max_delay + 1
        if not fits or not all(total is None or isinstance(total, float) for total in totals):
            raise InvalidState(
                f"window.totals must be {self._max_delay + 1} floats or nulls, but got {checks.shown(totals)}"
            )
        self._totals = list(totals)
        self._resume_counts(counts)

    def _resume_counts(self, counts: Any) -> None:
        if not isinstance(counts, list) or len(counts) != len(Counts._fields):
            raise InvalidState(f"window.counts must be {len(Counts._fields)} numbers, but got {checks.shown(counts)}")
        self.counts = Counts(*(checks.integer("window.counts", count, low=0) for count in counts))


class CleanStretch(CleanWindow):
    """The totals of the open block, from which a stretch of any length can be taken.

    scale: C, by which the sum is divided before it is fed.
    """

    __slots__ = ("_first", "scale")

    def __init__(self, span: effects.Effects, max_delay: int, out_of_range: str) -> None:
        """Take the range of one action's effect, d, and what to do with the impossible."""
        super().__init__(span, max_delay, out_of_range)
        self.scale = 1.0
        # The totals of rounds first, first + 1, ...; None where one is missing or void.
        self._first = 1
        self._totals = []

    def feed(self, t: int, value: float | None, counts: Counts, gap: int) -> tuple[float | None, Counts]:
        """Return the loss fed by the stretch that ends in round t with this total (None: void), and the counts."""
        d, rounds = self._max_delay, gap - self._max_delay
        whole = 0.0
        # Oldest first: the engines add in this order too, and agree to the last bit.
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
                    f"{(rounds + d) * self._span.hi:g}], but with total {value!r} the sum is {whole!r}"
                )
            counts = counts._replace(out_of_range=counts.out_of_range + 1)
            if self.out_of_range == "void":
                return None, counts._replace(void_windows=counts.void_windows + 1)
        return effects.stretch_loss(self._span, d, rounds, self.scale, whole), counts

    def terms(self, gap: int) -> tuple[float, float, float]:
        """Return weight, offset and top of what is fed at the end of such a gap."""
        return effects.stretch_terms(self._span, self._max_delay, gap - self._max_delay, self.scale)

    def put(self, t: int, value: float | None, counts: Counts) -> None:
        """Keep the total of round t, which `read` returned, and the counts."""
        if t - self._first == len(self._totals):
            self._totals.append(value)
        else:
            self._totals[t - self._first] = value
        self.counts = counts

    def holds(self, t: int, latest: int) -> bool:
        """Return whether the total of round t can still be in a stretch."""
        return t >= self._first

    def begin(self, t: int) -> None:
        """Begin a block in round t: earlier totals are done with."""
        self._first = t
        self._totals = []

    def state(self) -> dict[str, Any]:
        """Return the open block's totals, its first round, and the counts."""
        return {"first": self._first, "totals": list(self._totals), "counts": list(self.counts)}

    def resume(self, state: Any) -> None:
        """Take up a saved stretch."""
        if not isinstance(state, Mapping) or set(state) != {"first", "totals", "counts"}:
            raise InvalidState(f"window must have first, totals and counts, but got {checks.shown(state)}")
        first, totals = checks.integer("window.first", state["first"], low=1), state["totals"]
        if not isinstance(totals, list) or not all(total is None or isinstance(total, float) for total in totals):
            raise InvalidState(f"window.totals must be a list of floats or nulls, but got {checks.shown(totals)}")
        self._first, self._totals = first, list(totals)
        self._resume_counts(state["counts"])
