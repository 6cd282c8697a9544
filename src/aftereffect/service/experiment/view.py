"""The summary of an experiment that users see: names, figures, sentences and alarms."""

from typing import Any

from aftereffect.core.text import counted
from aftereffect.service.experiment import outcome
from aftereffect.service.experiment.guarantee import guarantee
from aftereffect.service.experiment.round import possible
from aftereffect.service.experiment.state import State


def view(state: State) -> dict[str, Any]:
    """Return the summary of an experiment."""
    settings, counts = state.settings, state.counts
    arms = settings.arms
    over = state.phase == "finished"
    shown = ("missing", "void", "out_of_range", "amended", "substituted", "withheld", "reports")
    return {
        **settings.model_dump(mode="json", exclude={"draft"}),
        "carry_over": settings.carry_over and settings.carry_over.given(),
        "inherited": state.inherited,
        "tuning": settings.tuning.given(),
        "state": state.phase,
        "round": state.last,
        "open_round": state.open and state.open.number,
        "updates": state.updates,
        "block": state.block,
        "block_start": state.block_start if state.last else None,
        "warm_until": state.warm_until,
        "probabilities": dict(zip(arms, state.probabilities, strict=True)),
        "plays": dict(zip(arms, state.plays, strict=True)),
        "away": [arms[i] for i in state.away],
        "counts": {name: counts[name] for name in shown} | {"void_windows": state.panel.counts.void_windows},
        "sum_of_totals": state.sum,
        "measured": outcome.table(arms, state.tallies),
        "alarms": alarms(state),
        "plan": state.plan.model_dump(),
        "guarantee": guarantee(state),
        "winner": outcome.winner(arms, state.tallies, state.probabilities, settings.direction) if over else None,
        "started_at": state.started_at,
        "finished_at": state.finished_at,
    }


def alarms(state: State) -> list[str]:
    """Return sentences on what needs attention, the most serious first; empty if nothing does."""
    settings, counts = state.settings, state.counts
    found = []
    told = counts["reports"] + counts["missing"]
    outside, used = counts["void"], "are not learned from"
    if settings.out_of_range == "clip":
        outside, used = counts["out_of_range"], "count as the nearest possible one"
    # With one report in a hundred out of range, the range is probably wrong.
    if outside > 0.01 * counts["reports"]:
        found.append(
            f"{outside:,} of {counted(counts['reports'], 'total')} "
            f"({outside / counts['reports']:.1%}) {'is' if outside == 1 else 'are'} outside "
            f"{possible(settings)}, the range of a total with effects of "
            f"{counted(settings.max_delay + 1, 'round')}. Such totals {used}: check low, high and max_delay. Settings "
            "that are wrong can be corrected; a new experiment then inherits the rounds."
        )
    # With one report in ten missing, few windows are complete. Fewer than ten reports are too few to judge.
    if told >= 10 and counts["missing"] > 0.1 * told:
        found.append(
            f"{counts['missing']:,} of {told:,} reports ({counts['missing'] / told:.1%}) are missing; a window with a "
            "missing report is void, so learning is slow."
        )
    if state.away:
        gone = ", ".join(settings.arms[i] for i in state.away)
        found.append(f"Away: {gone}. Other arms are played instead, and the guarantee is void.")
    mean, length, voids = state.plan.mean_block, state.last - state.block_start + 1, state.panel.counts.void_windows
    # Block lengths have a geometric tail, about e^(-n/mean): one block in 160,000 is longer than 12 times the mean.
    if not state.block_closed and length > 12 * mean and voids:
        gaps = counted(voids, "time")
        found.append(
            f"This block has lasted {length:,} rounds (mean {mean:.0f}): {gaps} a missing report kept it from ending."
        )
    if state.phase == "running" and state.last < state.warm_until:
        left = state.warm_until - state.last
        rounds = "round is" if left == 1 else f"{left:,} rounds are"
        found.append(f"Warm-up after a pause: the next {rounds} recorded but not learned from.")
    return found
