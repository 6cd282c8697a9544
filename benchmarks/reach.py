"""The goals of the benchmarks, and how far the results of a run are from them.

Each goal names its measure; it is met if its ratio is 1 or more.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import adaptive
from sample import Measure

Measures = Mapping[str, Measure]
ONE, TWO = "blocks, d=10, threads=1", "blocks, d=10, threads=2"


class Goal(NamedTuple):
    """text: the goal in words. about: the name of the measure. ratio: result over goal, None without a result."""

    text: str
    about: str
    ratio: Callable[[Measures], float | None]


class Verdict(NamedTuple):
    """A goal with its ratio."""

    text: str
    about: str
    ratio: float | None


def over(a: float | None, b: float | None) -> float | None:
    """Return a / b, None if either is missing."""
    return None if a is None or b is None else a / b


def best_peer(measures: Measures) -> float | None:
    """Return the most rounds per second of any peer."""
    rates = [m.rounds_per_second for m in measures.values() if m.group == "peers"]
    return max((rate for rate in rates if rate is not None), default=None)


def rounds(name: str, wanted: float) -> Callable[[Measures], float | None]:
    """Return the ratio for a goal of at least `wanted` rounds per second."""
    return lambda measures: over(measures[name].rounds_per_second, wanted)


def updates(name: str, wanted: float) -> Callable[[Measures], float | None]:
    """Return the ratio for a goal of at least `wanted` updates per second."""
    return lambda measures: over(measures[name].updates_per_second, wanted)


def times(name: str, other: str, wanted: float) -> Callable[[Measures], float | None]:
    """Return the ratio for a goal of at least `wanted` times the rounds per second of another measure."""

    def ratio(measures: Measures) -> float | None:
        rival = measures[other].rounds_per_second if other in measures else None
        return over(over(measures[name].rounds_per_second, rival), wanted)

    return ratio


def at_most(name: str, microseconds: float) -> Callable[[Measures], float | None]:
    """Return the ratio for a goal of at most this many microseconds per round."""
    return lambda measures: over(microseconds, measures[name].microseconds)


def update_time(name: str, other: str, most: float) -> Callable[[Measures], float | None]:
    """Return the ratio for a goal of at most `most` times the time per update of another measure."""
    return lambda measures: over(
        most, over(measures[other].updates_per_second, measures[name].updates_per_second)
    )


GOALS = (
    Goal("5M updates/s a core", ONE, updates(ONE, 5e6)),
    Goal("280M rounds/s a core", ONE, rounds(ONE, 280e6)),
    Goal("1.8 × one thread", TWO, times(TWO, ONE, 1.8)),
    Goal("2,000 × the best peer", TWO, lambda m: over(rounds(TWO, 2000.0)(m), best_peer(m))),
    Goal("1.5G rounds/s a core", "blocks, d=100, threads=1", rounds("blocks, d=100, threads=1", 1.5e9)),
    *(
        Goal("8M updates/s a core", name, updates(name, 8e6))
        for name in (f"blocks, K={k}, d=10, threads=1" for k in (2, 3, 4))
    ),
    Goal(
        "10,000 × SMPyBandits' Tsallis-INF",
        "blocks, d=0, tsallis, all cores",
        times("blocks, d=0, tsallis, all cores", "SMPyBandits: Tsallis-INF", 1e4),
    ),
    Goal(
        "400 × river's Exp3",
        "blocks, d=0, exp3, all cores",
        times("blocks, d=0, exp3, all cores", "river: Exp3, pull and update", 400.0),
    ),
    *(Goal("at most 1.5 × Tsallis an update", name, update_time(name, other, 1.5)) for name, other in adaptive.PAIRS),
    Goal("at most 2.5 µs a round", "ask + tell, d=10", at_most("ask + tell, d=10", 2.5)),
    Goal("at most 6 µs a round", "ask + tell, d=0", at_most("ask + tell, d=0", 6.0)),
)


def verdicts(measures: Measures) -> list[Verdict]:
    """Compare the results of a run with every goal."""
    return [Verdict(goal.text, goal.about, goal.ratio(measures)) for goal in GOALS]
