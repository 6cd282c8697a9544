"""The clean stretch of a block: all its coin-clean rounds, of which the paper's window takes the last d+1 only.

A round t > d is coin-clean if the d coins before it are 0: the arm has been the same since round t − d, so its total
holds effects of this arm alone. A block that ends `gap` rounds after the latest one has gap − d of them, at its end.
"""

from collections.abc import Mapping
from typing import Any

from aftereffect.core import checks, effects
from aftereffect.core.errors import InvalidState, InvalidTotal
from aftereffect.players.window import CleanWindow, Counts


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
