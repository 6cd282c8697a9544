"""What is guaranteed, and from when on it says anything (Theorem 4; for several units, their sum against one arm)."""

from typing import Any

from aftereffect.core.errors import AftereffectError
from aftereffect.service.planner import FAR, informative_from, lasting_from
from aftereffect.service.progress import Progress


def guarantee(progress: Progress) -> dict[str, Any]:
    """Return the bound on the regret over the horizon (so far, if there is none), and words about it.

    informative_from: the round from which on this very learner's bound is below what any way of playing can lose; if
    there is none, the horizon from which on a learner tuned for it would have one.
    """
    settings, units = progress.settings, progress.n_units
    rounds = settings.horizon or max(progress.last, 1)
    worst = units * max(settings.high, 0.0)
    found: dict[str, Any] = {
        "value": None,
        "per_round": None,
        "horizon": rounds,
        "informative_from": informative_from(len(settings.arms), settings.max_delay),
        "informative": False,
        "void": progress.spoiled,
        "words": "",
    }
    try:
        value = progress.panel.regret_bound(rounds)
        if progress.informative_from is None:
            bound = progress.panel.regret_bound
            progress.informative_from = lasting_from(lambda T: bound(T) < T * worst, 2 * settings.max_delay + 1)
    except AftereffectError as error:
        found["words"] = f"No guarantee is known for these settings: {error}."
        return found
    found["value"], found["per_round"] = value, value / (rounds * units)
    if progress.informative_from < FAR:
        found["informative_from"] = progress.informative_from
    found["informative"] = value < rounds * worst and not progress.spoiled
    found["words"] = " ".join(_words(progress, found, rounds * worst))
    return found


def _words(progress: Progress, found: dict[str, Any], trivial: float) -> list[str]:
    units, rounds, horizon = progress.n_units, found["horizon"], progress.settings.horizon
    whom = "the best fixed arm" if units == 1 else f"the best single arm for all {units} units, added up over them"
    lines = []
    if progress.spoiled:
        lines.append("Void: an arm has been away, and the theorem knows no such thing. What held until then:")
    lines.append(
        f"Over {rounds:,} rounds the outcome is, on average over the player's own drawing of lots, at most "
        f"{found['value']:,.4g} worse than {whom}; a single run can do worse than its average."
    )
    if found["value"] >= trivial:
        lines.append(f"This is not yet informative: any way of playing loses at most {trivial:,.4g}.")
        if progress.informative_from == found["informative_from"] and horizon is None:
            lines.append(f"It says something from round {found['informative_from']:,} on.")
        else:
            lines.append(f"It would take a horizon of {found['informative_from']:,} rounds or more to say something.")
    gaps = progress.counts["missing"] + progress.counts["void"] + progress.counts["withheld"]
    if gaps:
        lines.append(f"It is stated for complete reports; {gaps} totals were missing, impossible or held back.")
    lines.append("It assumes that effects last at most max_delay rounds and stay within the range given.")
    return lines
