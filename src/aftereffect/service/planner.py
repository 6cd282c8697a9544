"""What a carry-over means before the first round: block lengths, decisions per quarter, when the guarantee speaks.

The carry-over d = `max_delay` fixes the rhythm of Algorithm 1: a block lasts at least 2d+1 rounds and about
e·(2d+1) on average (Definition 1 with β = 1/(2d+1), Corollary 7). The guarantee (Theorem 4) says something once
it is below the number of rounds played, which holds for any way of playing.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from aftereffect import theory
from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument
from aftereffect.service.durations import days, said

QUARTER = 365.25 / 4
LEFT_OVER = 0.05
"""The share of an effect with a half-life that may still come after max_delay rounds."""
MOST_ROUNDS = 10_000
FAR = 2**44
"""No experiment lasts so many rounds: a bound that says nothing until then never will."""


class Plan(NamedTuple):
    """max_delay: d. Blocks in rounds; decisions_per_quarter: drawings of an arm, all units share them.

    informative_from: the horizon from which on the regret bound is below the trivial one.
    """

    max_delay: int
    shortest_block: int
    mean_block: float
    decisions_per_quarter: float
    informative_from: int
    sentences: list[str]

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain JSON."""
        return self._asdict()


def rounds_of_carry_over(*, window: Any = None, half_life: Any = None, round_days: Any = 1.0) -> int:
    """Return d for a carry-over given as a window or as a half-life, in days or in words.

    A window of w days reaches ⌈w/r⌉ rounds of r days past its own, whenever in its round the action was. With a
    half-life h the share 2^(−dr/h) of an effect comes later than d rounds on; d is the least that leaves 5%.

    >>> rounds_of_carry_over(window="7 days"), rounds_of_carry_over(window="9 weeks", round_days=7)
    (7, 9)
    >>> rounds_of_carry_over(half_life="2 days")
    9
    """
    if (window is None) == (half_life is None):
        raise InvalidArgument(
            f"carry_over must have exactly one of window and half_life, but got window={checks.shown(window)} and "
            f"half_life={checks.shown(half_life)}"
        )
    length = days("round_length", round_days)
    halvings = math.log2(1.0 / LEFT_OVER)
    reach = days("half_life", half_life) * halvings if window is None else days("window", window)
    # Seven days in rounds of a seventh of a week are 7 rounds, whatever the last bit says.
    rounds = math.ceil(reach / length - 1e-9)
    if rounds > MOST_ROUNDS:
        raise InvalidArgument(f"carry_over must reach at most {MOST_ROUNDS} rounds, but got {rounds}")
    return rounds


def lasting_from(below: Callable[[int], bool], period: int) -> int:
    """Return the round from which on a bound is below the trivial one; FAR if there is none.

    The bound's share of T falls in T, but where T is a multiple of `period` a floor in it steps up. So search the
    multiples by doubling and by halves, then the stretch before the first one that is below.
    """
    least, most = 0, 1
    while not below(most * period):
        least, most = most, 2 * most
        if most * period > FAR:
            return FAR
    most = _first(lambda k: below(k * period), least, most)
    return _first(below, (most - 1) * period, most * period)


def _first(holds: Callable[[int], bool], least: int, most: int) -> int:
    """Return the first number after `least` at which what holds at `most` holds; once it does, it goes on."""
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if holds(middle) else (middle, most)
    return most


@functools.lru_cache(maxsize=512)
def informative_from(n_arms: int, max_delay: int) -> int:
    """Return the horizon from which on the tuned bound on the regret is below the number of rounds."""
    return lasting_from(lambda T: theory.tuned_bound(n_arms, max_delay, T) < T, 2 * max_delay + 1)


def plan(
    n_arms: int, max_delay: int, *, horizon: int | None = None, units: int = 1, round_days: float = 1.0
) -> Plan:
    """Return what a carry-over of `max_delay` rounds means for `n_arms` arms.

    >>> plan(3, 7).shortest_block
    15
    """
    K = checks.integer("n_arms", n_arms, low=2)
    d = checks.integer("max_delay", max_delay, low=0)
    M = checks.integer("units", units, low=1)
    T = None if horizon is None else checks.integer("horizon", horizon, low=1)
    r = days("round_length", round_days)
    shortest = 2 * d + 1
    mean = theory.mean_block_length(d, theory.best_update_probability(d))
    per_quarter = QUARTER / (mean * r)
    informative = informative_from(K, d)
    sentences = [
        *_rhythm(d, shortest, mean, r),
        *_pace(K, d, M, mean, per_quarter),
        *_promise(T, mean, informative, r),
    ]
    return Plan(d, shortest, mean, per_quarter, informative, sentences)


def _rhythm(d: int, shortest: int, mean: float, r: float) -> list[str]:
    """Say what a block is, and why an arm stays for so long."""
    if d == 0:
        return ["The whole effect of an action arrives in its own round: every round is a decision of its own."]
    return [
        f"Carry-over: effects arrive up to {d} rounds ({said(d * r)}) after their own. Other tools call this the "
        "attribution window, conversion window, max_lag, lookback or washout.",
        f"An arm stays for a block of at least {shortest} rounds ({said(shortest * r)}), {mean:.1f} on average "
        f"({mean * r:.1f} days). The first {d} totals of a block still hold effects of the arm before and are not "
        f"learned from; only the last {d + 1} are.",
    ]


def _pace(K: int, d: int, M: int, mean: float, per_quarter: float) -> list[str]:
    """Say how many decisions that makes, and what to do if they are few."""
    where = f" in each of {M} units" if M > 1 else ""
    lines = [f"That makes about {per_quarter:.1f} decisions per quarter{where}."]
    # To try every arm a few times within a year is the least that learning needs.
    if 4.0 * per_quarter * M < 5.0 * K:
        advice = f"This is slow: in a year each of the {K} arms is tried about {4 * per_quarter * M / K:.1f} times. "
        advice += "More units (regions, stores, segments) learn side by side; "
        advice += "fewer arms help too." if d == 0 else "fewer arms, shorter rounds or a shorter carry-over help too."
        lines.append(advice)
    return lines


def _promise(T: int | None, mean: float, informative: int, r: float) -> list[str]:
    """Say when the guarantee is worth anything, and whether the horizon is long enough."""
    lines = [
        f"The guarantee says something from round {informative:,} on ({informative * r / 365.25:.1f} years); until "
        "then it is not informative: it promises no more than any way of playing. Learning starts earlier."
    ]
    if T is not None and mean > T:
        lines.append(f"The horizon of {T} rounds is shorter than one mean block: hardly anything can be learned.")
    elif T is not None and informative > T:
        lines.append(f"The horizon of {T} rounds ends before the guarantee says anything.")
    return lines
