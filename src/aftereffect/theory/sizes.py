"""The three sizes of a problem (Section 2), checked in one place; how many updates fit (Theorem 4); what is tuned.

K = `n_arms` arms, at least 2; d = `max_delay`, the longest an effect may be late, in rounds, at
least 0; T = `horizon` rounds, at least 1.
"""

from typing import NamedTuple

from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument


class Tuning(NamedTuple):
    """β and η for the wrapper around a base algorithm, and the bound on R_T they come with."""

    update_probability: float
    learning_rate: float
    bound: float


def sizes(n_arms: int, max_delay: int, horizon: int) -> tuple[int, int, int]:
    """Return K, d and T, checked."""
    d, T = checks.integer("max_delay", max_delay, low=0), checks.integer("horizon", horizon, low=1)
    return checks.integer("n_arms", n_arms, low=2), d, T


def most_updates(max_delay: int, horizon: int) -> int:
    """Return ⌊T/(2d+1)⌋, the most updates T rounds can hold: a block has at least 2d+1 rounds (Figure 1).

    >>> most_updates(max_delay=2, horizon=23)
    4
    """
    d = checks.integer("max_delay", max_delay, low=0)
    T = checks.integer("horizon", horizon, low=1)
    return T // (2 * d + 1)


def enough_rounds(max_delay: int, horizon: int) -> None:
    """Raise an error unless an update can happen: T >= 2d+1."""
    if most_updates(max_delay, horizon) < 1:
        raise InvalidArgument(f"horizon must be at least 2*max_delay + 1 = {2 * max_delay + 1}, but got {horizon}")
