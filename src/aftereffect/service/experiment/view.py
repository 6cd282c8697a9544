"""The summary of an experiment that users see: names, figures, sentences and alarms."""

import datetime
import math

from aftereffect.service import words
from aftereffect.service.experiment import outcome
from aftereffect.service.experiment.guarantee import guarantee
from aftereffect.service.experiment.plan import plan
from aftereffect.service.experiment.state import State
from aftereffect.service.messages import Comparison, Due, KnownBy, NextDecision, Overview, Standing

COUNTS = ("missing", "void", "out_of_range", "amended", "substituted", "withheld", "reports")


def view(state: State, id: str, created_at: str) -> Overview:
    """Return the summary of an experiment; raise ValueError if a value is not of its type."""
    settings, arms = state.settings, state.settings.arms
    given = arms, state.tallies, state.probabilities, settings.direction
    fields = {
        **settings.model_dump(mode="json", exclude={"draft", "warm_start"}),
        "id": id,
        "created_at": created_at,
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
        "counts": {name: state.counts[name] for name in COUNTS} | {"void_windows": state.panel.counts.void_windows},
        "sum_of_totals": state.sum,
        "measured": outcome.table(arms, state.tallies),
        "standing": standing(state),
        "alarms": words.alarms(state),
        "plan": plan(settings, state.rhythm),
        "guarantee": guarantee(state),
        "winner": outcome.winner(*given) if state.phase == "finished" else None,
        "started_at": state.started_at,
        "finished_at": state.finished_at,
        "due": due(state),
    }
    return Overview.model_validate(fields, strict=True)


def due(state: State) -> Due | None:
    """Return the round to be reported next, its date, and the time when it is over; None unless rounds are played."""
    if state.phase != "running":
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
    return Due(round=number, date=date, at=end.isoformat(timespec="milliseconds").replace("+00:00", "Z"))


def comparison(view: Overview) -> Comparison:
    """Return the most important figures of an experiment."""
    gain, leader, decision = view.standing.gain, view.standing.leader, view.standing.next_decision
    reports = view.counts["reports"] - view.counts["void"]
    likeliest, probability = max(view.probabilities.items(), key=lambda pair: pair[1])
    return Comparison(
        id=view.id,
        name=view.name,
        state=view.state,
        round=view.round,
        reports=reports,
        mean=view.sum_of_totals / reports if reports else None,
        leader=leader.arm,
        sure=leader.sure,
        gain=gain.in_total,
        percent=gain.percent,
        likeliest=likeliest,
        probability=probability,
        next_decision=None if decision is None else decision.date,
        alarms=len(view.alarms),
    )


def standing(state: State) -> Standing:
    """Return what a manager asks first: the gain so far, who leads, when the next decision falls, when it is known."""
    settings, counts = state.settings, state.counts
    reports = counts["reports"] - counts["void"]
    gain = outcome.gain(settings.arms, state.tallies, state.sum, reports, settings.direction)
    leader = outcome.leader(settings.arms, state.tallies, settings.direction)
    lines, decision, known = [gain.words, leader.words], None, None
    if state.phase == "running":
        likely, earliest = next_decision(state)
        dates = {"date": state.date_ahead(likely), "earliest_date": state.date_ahead(earliest)}
        decision = NextDecision(round=likely, earliest_round=earliest, **dates)
        lines.append(words.next_decision(state, likely, earliest))
        if leader.sure in ("open", "unknown") and min(tally.count for tally in state.tallies) >= 2:
            by = _known_by(state, likely)
            known = None if by is None else KnownBy(round=by, date=state.date_ahead(by))
            lines.append(words.known_by(state, by))
    return Standing(gain=gain, leader=leader, next_decision=decision, known_by=known, sentences=lines)


def _known_by(state: State, decision: int) -> int | None:
    """Return the round by which the best arm is likely to be known; None if not within ten years."""
    mean = state.rhythm.mean_block
    most = math.ceil(outcome.LONGEST / (mean * state.settings.round_length))
    given = state.tallies, state.probabilities, state.n_units, state.seed + state.updates
    blocks = outcome.blocks_to_know(*given, min(most, 4096))
    return None if blocks is None else decision + math.ceil((blocks - 1) * mean)


def next_decision(state: State) -> tuple[int, int]:
    """Return the expected round of the next draw, and the earliest possible one.

    After its shortest length, a block ends in every round with nearly the same probability.
    """
    if state.block_closed or not state.last:
        return state.last + 1, state.last + 1
    shortest, mean = state.rhythm.shortest_block, state.rhythm.mean_block
    # If no round is open, the block has not ended yet: it goes on for at least one round.
    earliest = max(state.block_start + shortest, state.last + (2 if state.open is None else 1))
    return earliest + max(round(mean) - shortest, 0), earliest
