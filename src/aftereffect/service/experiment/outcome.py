"""Measurements of each arm during an experiment, and the winner at its end, with the confidence in that choice.

Only measured windows are used: the totals at the end of a block that the learner uses contain effects of the block's
arm alone. Each window contributes its mean total per round, whatever its length.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aftereffect.core.text import amount

LEADS = (
    (3.0, "clear", "clearly ahead of"),
    (2.0, "likely", "probably ahead of"),
    (0.0, "open", "not clearly ahead of"),
)
"""The minimum lead in standard errors of the difference, the value of `sure`, and the words for it."""


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


def winner(
    arms: Sequence[str], tallies: Sequence[Tally], probabilities: Sequence[float], direction: str
) -> dict[str, Any]:
    """Return the arm with the best mean, its lead over the second, and an explanation.

    arm, favourite: the arm with the best mean, and the one with the highest final probability; None if tied. There is
    no best arm unless at least two were measured.
    sure: "clear", "likely", "open" (the lead is within two standard errors) or "unknown" (too few windows).
    """
    sign = 1.0 if direction == "maximize" else -1.0
    seen = [i for i, tally in enumerate(tallies) if tally.count]
    ranked = sorted(seen, key=lambda i: (-sign * tallies[i].mean, i))
    first = [i for i in ranked if _equal(tallies[i].mean, tallies[ranked[0]].mean)]
    one = len(first) == 1 < len(ranked)
    favourites = [arm for arm, p in zip(arms, probabilities, strict=True) if _equal(p, max(probabilities))]
    found: dict[str, Any] = {
        "arm": arms[first[0]] if one else None,
        "runner_up": arms[ranked[1]] if one else None,
        "difference": None,
        "standard_error": None,
        "sure": "unknown",
        "favourite": favourites[0] if len(favourites) == 1 else None,
        "never_measured": [arm for i, arm in enumerate(arms) if not tallies[i].count],
    }
    lead = _tie(found, first, arms, tallies) if len(first) > 1 else _lead(found, ranked, arms, tallies)
    found["words"] = " ".join([*lead, *_caveats(found, favourites, len(arms), max(probabilities))])
    return found


def _equal(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9)


def _tie(found: dict[str, Any], first: Sequence[int], arms: Sequence[str], tallies: Sequence[Tally]) -> list[str]:
    """Return the words for several arms with the same best mean; set the difference to 0."""
    found["difference"], found["sure"] = 0.0, "open"
    names = ", ".join(arms[i] for i in first[:-1]) + f" and {arms[first[-1]]}"
    windows = ", ".join(f"{tallies[i].count:,}" for i in first[:-1]) + f" and {tallies[first[-1]].count:,}"
    mean = amount(tallies[first[0]].mean)
    return [f"No difference yet: {names} had equally good measured windows ({mean} per round over {windows})."]


def _lead(found: dict[str, Any], ranked: Sequence[int], arms: Sequence[str], tallies: Sequence[Tally]) -> list[str]:
    """Return the words on which arm leads and by how much; set `difference`, `standard_error` and `sure`."""
    if not ranked:
        return ["No window was measured, so nothing can be said about which arm is best."]
    first = tallies[ranked[0]]
    measured = f"({amount(first.mean)} per round over {first.count:,})"
    if len(ranked) == 1:
        return [f"No arm can be called best: only {arms[ranked[0]]} was measured {measured}, with nothing to compare."]
    best = f"{arms[ranked[0]]} had the best measured windows {measured}"
    second = tallies[ranked[1]]
    gap = abs(first.mean - second.mean)
    found["difference"] = gap
    error_1, error_2 = first.standard_error, second.standard_error
    against = f"{arms[ranked[1]]} ({amount(second.mean)} over {second.count:,})"
    if error_1 is None or error_2 is None:
        return [f"{best}, ahead of {against}; with a single window for one of them, the error is unknown."]
    found["standard_error"] = error = math.hypot(error_1, error_2)
    by = f"by {amount(gap)}, with a standard error of {amount(float(f'{error:.2g}'))}"
    if error == 0.0:
        by = f"by {amount(gap)}; all windows of an arm are equal"
    found["sure"], words = next((sure, words) for least, sure, words in LEADS if gap >= least * error)
    return [f"{best}, {words} {against}: {by}."]


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
