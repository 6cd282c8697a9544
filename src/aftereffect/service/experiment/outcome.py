"""What has been seen of each arm, and at the end: which arm won, and how sure that is.

What an arm does is read off its measured windows only: the totals learned from at the end of a block hold effects of
its arm alone. A window counts with its mean total a round, that is what a round brings while the arm stays, however
long it is.
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
"""How many standard errors of the difference make a lead clear or likely, and the words for it."""


@dataclass(slots=True)
class Tally:
    """Count, mean and spread of an arm's measured windows, kept up as they come (Welford's recurrence)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        """Take in one window."""
        self.count += 1
        step = value - self.mean
        self.mean += step / self.count
        self.squares += step * (value - self.mean)

    @property
    def standard_error(self) -> float | None:
        """The standard error of the mean; None for fewer than two windows."""
        if self.count < 2:
            return None
        return math.sqrt(self.squares / (self.count - 1) / self.count)


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
    """Return the arm with the best mean, how far it is ahead, and honest words about it.

    arm, favourite: the arm with the best mean, and the one the learner ended with the highest probability on; None
    where several share that place.
    sure: "clear", "likely", "open" (the lead is within two standard errors) or "unknown" (too little was measured).
    """
    sign = 1.0 if direction == "maximize" else -1.0
    seen = [i for i, tally in enumerate(tallies) if tally.count]
    ranked = sorted(seen, key=lambda i: (-sign * tallies[i].mean, i))
    first = [i for i in ranked if _equal(tallies[i].mean, tallies[ranked[0]].mean)]
    favourites = [arm for arm, p in zip(arms, probabilities, strict=True) if _equal(p, max(probabilities))]
    found: dict[str, Any] = {
        "arm": arms[first[0]] if len(first) == 1 else None,
        "runner_up": arms[ranked[1]] if len(first) == 1 < len(ranked) else None,
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
    """Say that several arms share the first place; none of them is named as if it were ahead."""
    found["difference"], found["sure"] = 0.0, "open"
    names = ", ".join(arms[i] for i in first[:-1]) + f" and {arms[first[-1]]}"
    windows = ", ".join(f"{tallies[i].count:,}" for i in first[:-1]) + f" and {tallies[first[-1]].count:,}"
    mean = amount(tallies[first[0]].mean)
    return [f"No difference yet: {names} had equally good measured windows ({mean} a round over {windows})."]


def _lead(found: dict[str, Any], ranked: Sequence[int], arms: Sequence[str], tallies: Sequence[Tally]) -> list[str]:
    """Say who leads and by how much; fill in the difference and how sure it is."""
    if not ranked:
        return ["No window was measured, so nothing can be said about which arm is best."]
    first = tallies[ranked[0]]
    best = f"{arms[ranked[0]]} had the best measured windows ({amount(first.mean)} a round over {first.count:,})"
    if len(ranked) == 1:
        return [f"{best}, but no other arm was measured."]
    second = tallies[ranked[1]]
    gap = abs(first.mean - second.mean)
    found["difference"] = gap
    error_1, error_2 = first.standard_error, second.standard_error
    against = f"{arms[ranked[1]]} ({amount(second.mean)} over {second.count:,})"
    if error_1 is None or error_2 is None:
        return [f"{best}, ahead of {against}; with a single window on one side nobody can say how sure that is."]
    found["standard_error"] = error = math.hypot(error_1, error_2)
    by = f"by {amount(gap)}, with a standard error of {amount(float(f'{error:.2g}'))}"
    if error == 0.0:
        by = f"by {amount(gap)} in every window, all of an arm's windows being alike"
    found["sure"], words = next((sure, words) for least, sure, words in LEADS if gap >= least * error)
    return [f"{best}, {words} {against}: {by}."]


def _caveats(found: dict[str, Any], favourites: Sequence[str], n_arms: int, most: float) -> list[str]:
    """Say what the learner believes, and what the figures are not."""
    on = favourites[0] if len(favourites) == 1 else f"each of {', '.join(favourites)}"
    lines = [f"The learner ended with probability {most:.2f} on {on}."]
    if len(favourites) == n_arms:
        lines = [f"The learner ended with all alike: probability {most:.2f} on each arm."]
    if found["never_measured"]:
        lines.append(f"Never measured: {', '.join(found['never_measured'])}.")
    lines.append(
        "Arms that did badly early were tried less often, so take the figures as a description of what was seen, "
        "not as the result of a randomised trial."
    )
    return lines
