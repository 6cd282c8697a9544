"""Measurements of each arm during an experiment: which arm leads and how surely, the gain over an equal split, and when
the best arm is likely to be known.

Only measured windows are used: the totals at the end of a block that the learner uses contain effects of the block's
arm alone. Each window contributes its mean total per round, whatever its length.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aftereffect.core.text import amount, counted

LEADS = (
    (3.0, "clear", "clearly ahead of"),
    (2.0, "likely", "probably ahead of"),
    (0.0, "open", "not clearly ahead of"),
)
"""The minimum lead in standard errors of the difference, the value of `sure`, and the words for it."""
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


def table(arms: Sequence[str], tallies: Sequence[Tally]) -> dict[str, dict[str, Any]]:
    """Return windows, mean and standard error of every arm."""
    return {
        arm: {
            "windows": tally.count,
            "mean": tally.mean if tally.count else None,
            "standard_error": tally.standard_error,
        }
        for arm, tally in zip(arms, tallies, strict=True)
    }


def leader(arms: Sequence[str], tallies: Sequence[Tally], direction: str, prior: str | None = None) -> dict[str, Any]:
    """Return the arm with the best mean, its lead over the second, and an explanation.

    arm: None if several means are equal, or unless at least two arms were measured.
    sure: "clear", "likely", "open" (the lead is within two standard errors) or "unknown" (too few windows).
    prior: what the learner has begun with, in words, if anything.
    """
    sign = 1.0 if direction == "maximize" else -1.0
    seen = [i for i, tally in enumerate(tallies) if tally.count]
    ranked = sorted(seen, key=lambda i: (-sign * tallies[i].mean, i))
    first = [i for i in ranked if _equal(tallies[i].mean, tallies[ranked[0]].mean)]
    one = len(first) == 1 < len(ranked)
    found: dict[str, Any] = {
        "arm": arms[first[0]] if one else None,
        "runner_up": arms[ranked[1]] if one else None,
        "difference": None,
        "standard_error": None,
        "sure": "unknown",
        "never_measured": [arm for i, arm in enumerate(arms) if not tallies[i].count],
    }
    found["words"] = _tie(found, first, arms, tallies) if len(first) > 1 else _lead(found, ranked, arms, tallies)
    if prior is not None and not seen:
        found["words"] = f"No window was measured: the probabilities of the arms come from {prior} alone."
    return found


def winner(
    arms: Sequence[str],
    tallies: Sequence[Tally],
    probabilities: Sequence[float],
    direction: str,
    prior: str | None = None,
) -> dict[str, Any]:
    """Return the leader at the end of an experiment. favourite: the arm with the highest probability; None if tied."""
    favourites = [arm for arm, p in zip(arms, probabilities, strict=True) if _equal(p, max(probabilities))]
    found = leader(arms, tallies, direction, prior) | {"favourite": favourites[0] if len(favourites) == 1 else None}
    found["words"] = " ".join([found["words"], *_caveats(found, favourites, len(arms), max(probabilities))])
    return found


def equal_split(measured: Mapping[str, Mapping[str, Any]]) -> tuple[float, float] | None:
    """Return the estimated mean report under an equal split, and its standard error. measured: as from `table`.

    None while an arm has fewer than two measured windows.

    >>> equal_split({"A": {"windows": 2, "mean": 1.0, "standard_error": 0.3},
    ...              "B": {"windows": 2, "mean": 2.0, "standard_error": 0.4}})
    (1.5, 0.25)
    """
    seen = measured.values()
    if not all(arm["windows"] >= 2 for arm in seen):
        return None
    mean = sum(arm["mean"] for arm in seen) / len(seen)
    return mean, math.sqrt(sum(arm["standard_error"] ** 2 for arm in seen)) / len(seen)


def gain(measured: Mapping[str, Mapping[str, Any]], total: float, reports: int, direction: str) -> dict[str, Any]:
    """Return how much better the reports so far were than those of an equal split, with 95% confidence limits.

    total, reports: the sum and the number of the totals. per_report, in_total, percent: each [estimate, low, high];
    positive is better; None if the equal split cannot be estimated yet, or (percent) is 0.
    """
    split = equal_split(measured) if reports else None
    if split is None:
        fewer = [arm for arm, seen in measured.items() if seen["windows"] < 2]
        who = f"{fewer[0]} has" if len(fewer) == 1 else f"{len(fewer)} arms have"
        words = f"An equal split cannot be estimated yet: {who} fewer than two measured windows."
        words = words if reports else "There is no usable report yet."
        return {"per_report": None, "in_total": None, "percent": None, "equal_split": None, "words": words}
    gap = (total / reports - split[0]) * (1.0 if direction == "maximize" else -1.0)
    margin = NORMAL_95 * split[1]
    limits = [gap, gap - margin, gap + margin]
    percent = [100.0 * each / abs(split[0]) for each in limits] if split[0] else None
    sums = [reports * each for each in limits]
    better = "better" if gap >= 0.0 else "worse"
    chance = "" if abs(gap) > margin else ", which is within the margin of error"
    share = f" ({abs(percent[0]):.1f}%)" if percent else ""
    words = (
        f"So far {amount(abs(sums[0]))}{share} {better} than an equal split over the arms{chance}: between "
        f"{amount(sums[1])} and {amount(sums[2])} with 95% confidence, over {counted(reports, 'report')}."
    )
    return {"per_report": limits, "in_total": sums, "percent": percent, "equal_split": split[0], "words": words}


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


def _tie(found: dict[str, Any], first: Sequence[int], arms: Sequence[str], tallies: Sequence[Tally]) -> str:
    """Return the words for several arms with the same best mean; set the difference to 0."""
    found["difference"], found["sure"] = 0.0, "open"
    names = ", ".join(arms[i] for i in first[:-1]) + f" and {arms[first[-1]]}"
    windows = ", ".join(f"{tallies[i].count:,}" for i in first[:-1]) + f" and {tallies[first[-1]].count:,}"
    mean = amount(tallies[first[0]].mean)
    return f"No difference yet: {names} had equally good measured windows ({mean} per round over {windows})."


def _lead(found: dict[str, Any], ranked: Sequence[int], arms: Sequence[str], tallies: Sequence[Tally]) -> str:
    """Return the words on which arm leads and by how much; set `difference`, `standard_error` and `sure`."""
    if not ranked:
        return "No window was measured, so nothing can be said about which arm is best."
    first = tallies[ranked[0]]
    measured = f"({amount(first.mean)} per round over {first.count:,})"
    if len(ranked) == 1:
        return f"No arm can be called best: only {arms[ranked[0]]} was measured {measured}, with nothing to compare."
    best = f"{arms[ranked[0]]} had the best measured windows {measured}"
    second = tallies[ranked[1]]
    gap = abs(first.mean - second.mean)
    found["difference"] = gap
    error_1, error_2 = first.standard_error, second.standard_error
    against = f"{arms[ranked[1]]} ({amount(second.mean)} over {second.count:,})"
    if error_1 is None or error_2 is None:
        return f"{best}, ahead of {against}; with a single window for one of them, the error is unknown."
    found["standard_error"] = error = math.hypot(error_1, error_2)
    by = f"by {amount(gap)}, with a standard error of {amount(float(f'{error:.2g}'))}"
    if error == 0.0:
        by = f"by {amount(gap)}; all windows of an arm are equal"
    found["sure"], words = next((sure, words) for least, sure, words in LEADS if gap >= least * error)
    return f"{best}, {words} {against}: {by}."


def _caveats(found: dict[str, Any], favourites: Sequence[str], n_arms: int, most: float) -> list[str]:
    """Return the words on the learner's final probabilities, unmeasured arms, and the limits of the figures."""
    on = favourites[0] if len(favourites) == 1 else f"each of {', '.join(favourites)}"
    lines = [f"The learner ended with probability {most:.2f} on {on}."]
    if len(favourites) == n_arms:
        lines = [f"The learner ended with equal probabilities: {most:.2f} on each arm."]
    if found["never_measured"]:
        lines.append(f"Never measured: {', '.join(found['never_measured'])}.")
    lines.append(
        "Arms that did badly early were tried less often, so the figures describe what was observed, but are "
        "not the result of a randomised trial."
    )
    return lines
