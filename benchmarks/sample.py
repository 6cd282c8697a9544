"""Measures: functions that are timed several times, of which the best time counts."""

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Sample:
    """One timed run. rounds, updates: 0 if not applicable."""

    seconds: float
    rounds: int
    updates: int


@dataclass
class Measure:
    """name: unique, the key of the results. play: runs once and returns (rounds, updates).

    note: a remark, such as the reason for a missing result. clock: the function that returns the time in seconds.
    """

    name: str
    group: str
    setting: dict[str, Any] = field(default_factory=dict)
    play: Callable[[], tuple[int, int]] | None = None
    samples: list[Sample] = field(default_factory=list)
    note: str = ""
    clock: Callable[[], float] = time.perf_counter

    def repeat(self) -> None:
        """Time one more run."""
        if self.play is not None:
            begin = self.clock()
            rounds, updates = self.play()
            self.samples.append(Sample(self.clock() - begin, rounds, updates))

    @property
    def rounds_per_second(self) -> float | None:
        """The best of the repeats; None without samples or rounds."""
        return best(sample.rounds / sample.seconds for sample in self.samples)

    @property
    def updates_per_second(self) -> float | None:
        """The best of the repeats; None without samples or updates."""
        return best(sample.updates / sample.seconds for sample in self.samples)

    @property
    def microseconds(self) -> float | None:
        """The time per round in the best repeat."""
        rate = self.rounds_per_second
        return None if rate is None else 1e6 / rate

    def record(self) -> dict[str, Any]:
        """Return the measure and its results in plain JSON types."""
        return {
            "name": self.name,
            "group": self.group,
            "setting": self.setting,
            "rounds_per_second": self.rounds_per_second,
            "updates_per_second": self.updates_per_second,
            "microseconds_a_round": self.microseconds,
            "samples": [asdict(sample) for sample in self.samples],
            "note": self.note,
        }


def best(rates: Iterable[float]) -> float | None:
    """Return the greatest rate if it is above 0, else None."""
    found = max(rates, default=0.0)
    return found if found > 0.0 else None
