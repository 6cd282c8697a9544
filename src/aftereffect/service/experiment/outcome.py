"""Measurements of each arm during an experiment: which arm leads and how surely, the gain over an equal split, and when
the best arm is likely to be known.

Only measured windows are used: the totals at the end of a block that the learner uses contain effects of the block's
arm alone. Each window contributes its mean total per round, whatever its length.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from aftereffect.service import words
from aftereffect.service.messages import Gain, Lead, Measured, Sure, Winner
from aftereffect.service.words import Seen

LEADS: tuple[tuple[float, Sure], ...] = ((3.0, "clear"), (2.0, "likely"), (0.0, "open"))
"""The minimum lead in standard errors of the difference, and how sure it is."""
NORMAL_95 = 1.96
RUNS = 200
"""How many continuations of an experiment are simulated; fewer with more than ten arms."""
LONGEST = 3652.5
"""How many days they go on: ten years."""


@dataclass(slots=True)
class Tally:
    """Count, mean and sum of squared deviations of an arm's measured windows, updated by Welford's recurrence."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        """Add one window."""
        self.count += 1
        step = value - self.mean
        self.mean += step / self.count
        self.squares += step * (value - self.mean)

    def replace(self, was: float, value: float) -> None:
        """Replace the value of a window by a corrected one."""
        before = self.mean
        self.mean += (value - was) / self.count
        self.squares = max(self.squares + (value - was) * (value - self.mean + was - before), 0.0)

    @property
    def standard_error(self) -> float | None:
        """The standard error of the mean; None for fewer than two windows."""
        return math.sqrt(self.squares / (self.count - 1) / self.count) if self.count > 1 else None


def table(arms: Sequence[str], tallies: Sequence[Tally]) -> dict[str, Measured]:
    """Return windows, mean and standard error of every arm."""
    return {
        arm: Measured(
            windows=tally.count, mean=tally.mean if tally.count else None, standard_error=tally.standard_error
        )
        for arm, tally in zip(arms, tallies, strict=True)
    }


def leader(arms: Sequence[str], tallies: Sequence[Tally], direction: str) -> Lead:
    """Return the arm with the best mean and its lead over the second."""
    sign = 1.0 if direction == "maximize" else -1.0
    seen = [Seen(arm, tally.mean, tally.count) for arm, tally in zip(arms, tallies, strict=True) if tally.count]
    ranked = sorted(seen, key=lambda each: -sign * each.mean)
    best = [each for each in ranked if _equal(each.mean, ranked[0].mean)]
    second, error, gap = None, None, None
    sure: Sure = "unknown"
    if len(best) > 1:
        gap, sure = 0.0, "open"
    elif len(ranked) > 1:
        second, gap = ranked[1], abs(ranked[0].mean - ranked[1].mean)
        errors = [tallies[arms.index(each.arm)].standard_error for each in ranked[:2]]
        if errors[0] is not None and errors[1] is not None:
            error = math.hypot(errors[0], errors[1])
            sure = next(word for least, word in LEADS if gap >= least * error)
    return Lead(
        arm=None if second is None else best[0].arm,
        runner_up=None if second is None else second.arm,
        difference=gap,
        standard_error=error,
        sure=sure,
        never_measured=[arm for arm, tally in zip(arms, tallies, strict=True) if not tally.count],
        words=words.lead(best, second, error, sure),
    )


def winner(
    arms: Sequence[str],
    tallies: Sequence[Tally],
    probabilities: Sequence[float],
    direction: str,
) -> Winner:
    """Return the leader at the end of an experiment."""
    most = max(probabilities)
    favourites = [arm for arm, p in zip(arms, probabilities, strict=True) if _equal(p, most)]
    found = leader(arms, tallies, direction).model_dump()
    found["words"] += " " + words.ending(favourites, len(arms), most, found["never_measured"])
    return Winner(**found, favourite=favourites[0] if len(favourites) == 1 else None)


def equal_split(measured: Mapping[str, Measured]) -> tuple[float, float] | None:
    """Return the estimated mean report under an equal split, and its standard error. measured: as from `table`.

    None while an arm has fewer than two measured windows.

    >>> equal_split(table(["A", "B"], [Tally(2, 1.0, 0.18), Tally(2, 2.0, 0.32)]))
    (1.5, 0.25)
    """
    if any(arm.windows < 2 for arm in measured.values()):
        return None
    mean = sum(arm.mean or 0.0 for arm in measured.values()) / len(measured)
    return mean, math.sqrt(sum((arm.standard_error or 0.0) ** 2 for arm in measured.values())) / len(measured)


def gain(arms: Sequence[str], tallies: Sequence[Tally], total: float, reports: int, direction: str) -> Gain:
    """Return how much better the reports so far were than those of an equal split, with 95% confidence limits.

    total, reports: the sum and the number of the totals.
    """
    split = equal_split(table(arms, tallies)) if reports else None
    if split is None:
        fewer = [arm for arm, tally in zip(arms, tallies, strict=True) if tally.count < 2]
        said = words.no_gain(reports, fewer)
        return Gain(per_report=None, in_total=None, percent=None, equal_split=None, words=said)
    gap = (total / reports - split[0]) * (1.0 if direction == "maximize" else -1.0)
    margin = NORMAL_95 * split[1]
    limits = [gap, gap - margin, gap + margin]
    percent = [100.0 * each / abs(split[0]) for each in limits] if split[0] else None
    sums = [reports * each for each in limits]
    said = words.gain(sums, percent, reports)
    return Gain(per_report=limits, in_total=sums, percent=percent, equal_split=split[0], words=said)


def blocks_to_know(
    tallies: Sequence[Tally], probabilities: Sequence[float], units: int, seed: int, most: int = 4096
) -> int | None:
    """Return after how many more blocks, at most `most`, one arm is likely to lead by two standard errors, or None.

    That many blocks suffice in half of the simulated continuations. In each of them the true mean of each arm and the
    common variance of windows are drawn from their distributions given what was measured, and arms are drawn with the
    present probabilities. Every arm must have been measured twice.
    """
    counts = np.array([tally.count for tally in tallies], dtype=np.float64)
    if counts.min() < 2.0:
        return None
    means = np.array([tally.mean for tally in tallies])
    runs, rng = max(20, min(RUNS, 10 * RUNS // len(tallies))), np.random.default_rng(seed)
    squares = sum(tally.squares for tally in tallies)
    spread = np.sqrt(squares / rng.chisquare(counts.sum() - len(tallies), (runs, 1)))
    true = means + spread / np.sqrt(counts) * rng.standard_normal((runs, len(tallies)))
    shares = np.array(probabilities) / sum(probabilities)
    windows, sums, known, done = np.zeros_like(true), np.zeros_like(true), np.zeros(runs, dtype=bool), 0
    while done < most:
        step = min(1 + done // 6, most - done)
        more = rng.multinomial(step * units, shares, runs).astype(np.float64)
        sums += more * true + spread * np.sqrt(more) * rng.standard_normal(true.shape)
        windows, done = windows + more, done + step
        seen = (counts * means + sums) / (counts + windows)
        rows, best = np.arange(runs), np.argmax(seen, axis=1)
        variance = spread**2 / (counts + windows)
        lead = seen[rows, best][:, None] - seen
        lead[rows, best] = np.inf
        known |= (lead >= 2.0 * np.sqrt(variance[rows, best][:, None] + variance)).all(axis=1)
        if 2 * int(known.sum()) >= runs:
            return done
    return None


def _equal(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9)
