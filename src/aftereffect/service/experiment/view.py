"""The summary of an experiment that users see: names, figures, sentences and alarms."""

import datetime
import math
from collections.abc import Mapping
from typing import Any

from aftereffect.core.text import counted
from aftereffect.service import words
from aftereffect.service.experiment import outcome
from aftereffect.service.experiment.guarantee import guarantee
from aftereffect.service.experiment.state import State
from aftereffect.service.messages import ACTIVE


def view(state: State) -> dict[str, Any]:
    """Return the summary of an experiment."""
    settings, counts = state.settings, state.counts
    arms = settings.arms
    over = state.phase == "finished"
    shown = ("missing", "void", "out_of_range", "amended", "substituted", "withheld", "reports")
    return {
        **settings.model_dump(mode="json", exclude={"draft", "warm_start"}),
        "carry_over": settings.carry_over and settings.carry_over.given(),
        "accepted": _accepted(state),
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
        "standing": standing(state),
        "alarms": alarms(state),
        "plan": state.plan.model_dump(),
        "guarantee": guarantee(state),
        "winner": outcome.winner(arms, state.tallies, state.probabilities, settings.direction, state.prior)
        if over
        else None,
        "started_at": state.started_at,
        "finished_at": state.finished_at,
        "due": due(state),
    }


def _accepted(state: State) -> dict[str, Any] | None:
    if state.accepted is None:
        return None
    return {**state.accepted, "attention": [words.against_delay(each) for each in state.accepted["attention"]]}


def due(state: State) -> dict[str, Any] | None:
    """Return the round to be reported next, its date, and the time when it is over; None unless rounds are played."""
    if state.phase not in ACTIVE:
        return None
    number = state.last + (state.open is None)
    date = state.date_ahead(number) if state.open is None else state.open.date
    begun = f"{date}T00:00:00Z"
    if state.settings.start_date is None or date is None:
        latest = state.recent.rounds.get(state.last)
        told = [] if latest is None else [latest.asked_at, *(report.told_at or "" for report in latest.reports)]
        begun = max(told, default=state.started_at) or ""
        if not begun:
            return None
    try:
        end = datetime.datetime.fromisoformat(begun) + datetime.timedelta(days=state.settings.round_length)
    except OverflowError:
        # After the year 9999.
        return None
    return {"round": number, "date": date, "at": end.isoformat(timespec="milliseconds").replace("+00:00", "Z")}


def comparison(view: Mapping[str, Any]) -> dict[str, Any]:
    """Return the most important figures of an experiment from its view; `messages.Comparison`."""
    standing, counts = view["standing"], view["counts"]
    reports = counts["reports"] - counts["void"]
    likeliest, probability = max(view["probabilities"].items(), key=lambda pair: pair[1])
    decision = standing["next_decision"]
    return {
        **{name: view[name] for name in ("id", "name", "state", "round")},
        "reports": reports,
        "mean": view["sum_of_totals"] / reports if reports else None,
        "leader": standing["leader"]["arm"],
        "sure": standing["leader"]["sure"],
        "gain": standing["gain"]["in_total"],
        "percent": standing["gain"]["percent"],
        "likeliest": likeliest,
        "probability": probability,
        "next_decision": decision and decision["date"],
        "alarms": len(view["alarms"]),
    }


def standing(state: State) -> dict[str, Any]:
    """Return what a manager asks first: the gain so far, who leads, when the next decision falls, when it is known.

    gain: `outcome.gain`. leader: `outcome.leader`. next_decision: the expected round of the next draw and the earliest
    one, with their dates; None unless running. known_by: the round by which the best arm is likely to be known, and its
    date; None if that cannot be said. sentences: all this in words.
    """
    settings, counts = state.settings, state.counts
    measured, reports = outcome.table(settings.arms, state.tallies), counts["reports"] - counts["void"]
    found: dict[str, Any] = {
        "gain": outcome.gain(measured, state.sum, reports, settings.direction),
        "leader": outcome.leader(settings.arms, state.tallies, settings.direction, state.prior),
        "next_decision": None,
        "known_by": None,
    }
    lines = [found["gain"]["words"], found["leader"]["words"]]
    if state.in_pilot:
        told = state.last - (state.open is not None)
        left = "Accept a carry-over (max_delay) to go on." if state.phase == "piloted" else "The arms are random."
        return {**found, "sentences": [f"{told:,} of the {state.pilot_rounds:,} rounds of the pilot are over. {left}"]}
    if state.phase == "running":
        likely, earliest = next_decision(state)
        found["next_decision"] = {
            **{"round": likely, "date": state.date_ahead(likely)},
            **{"earliest_round": earliest, "earliest_date": state.date_ahead(earliest)},
        }
        around = f"around {_when(state, likely)}, at the earliest {_when(state, earliest)}"
        lines.append(f"The next decision falls {f'on {_when(state, likely)}' if likely == earliest else around}.")
        measured_twice = min(tally.count for tally in state.tallies) >= 2
        if found["leader"]["sure"] in ("likely", "clear") or not measured_twice:
            return {**found, "sentences": lines}
        most = math.ceil(outcome.LONGEST / (state.plan.mean_block * settings.round_length))
        given = state.tallies, state.probabilities, state.n_units, state.seed + state.updates
        blocks = outcome.blocks_to_know(*given, min(most, 4096))
        if blocks is None:
            lines.append("The best arm is not likely to be known within ten years: the arms are too much alike.")
        else:
            by = likely + math.ceil((blocks - 1) * state.plan.mean_block)
            found["known_by"] = {"round": by, "date": state.date_ahead(by)}
            lines.append(
                f"Likely to know the best arm by {_when(state, by)}: in half of the simulated continuations of what "
                "was measured, one arm is then ahead by two standard errors."
            )
    return {**found, "sentences": lines}


def next_decision(state: State) -> tuple[int, int]:
    """Return the expected round of the next draw, and the earliest possible one.

    After its shortest length, a block ends in every round with nearly the same probability.
    """
    if state.block_closed or not state.last:
        return state.last + 1, state.last + 1
    shortest, mean = state.plan.shortest_block, state.plan.mean_block
    # If no round is open, the block has not ended yet: it goes on for at least one round.
    earliest = max(state.block_start + shortest, state.last + (2 if state.open is None else 1))
    return earliest + max(round(mean) - shortest, 0), earliest


def _when(state: State, number: int) -> str:
    date = state.date_ahead(number)
    return f"round {number:,}" if date is None else f"{date} (round {number:,})"


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
            f"{words.possible(settings)}, the range of a total with effects of "
            f"{counted(settings.max_delay + 1, 'round')}. Such totals {used}: check low, high and max_delay. Settings "
            "that are wrong can be corrected; a new experiment then inherits the rounds."
        )
    # With one report in ten missing, few windows are complete. Fewer than ten reports are too few to judge.
    if told >= 10 and counts["missing"] > 0.1 * told:
        then = "a window with a missing report is void, so learning is slow"
        then = "the bands of the pilot will be wider" if state.in_pilot else then
        share = f"{counts['missing'] / told:.1%}"
        found.append(f"{counts['missing']:,} of {told:,} reports ({share}) are missing; {then}.")
    if state.away:
        gone = ", ".join(settings.arms[i] for i in state.away)
        found.append(f"Away: {gone}. Other arms are played instead, and the guarantee is void.")
    if state.accepted is not None:
        found += [words.against_delay(each) for each in state.accepted["attention"]]
    mean, length, voids = state.plan.mean_block, state.last - state.block_start + 1, state.panel.counts.void_windows
    # Block lengths have a geometric tail, about e^(-n/mean): one block in 160,000 is longer than 12 times the mean.
    if not state.block_closed and length > 12 * mean and voids:
        gaps = counted(voids, "time")
        found.append(
            f"This block has lasted {length:,} rounds (mean {mean:.0f}): {gaps} a missing report kept it from ending."
        )
    if state.phase in ACTIVE and state.last < state.warm_until:
        left = state.warm_until - state.last
        rounds = "round is" if left == 1 else f"{left:,} rounds are"
        found.append(f"Warm-up after a pause: the next {rounds} recorded but not learned from.")
    return found
