"""The summary of an experiment that users see: names, figures, sentences, alarms and the guarantee.

The guarantee is a worst-case regret bound that holds in advance, and a certificate computed from the run so far. Both
bound the regret in expectation over the player's randomness (`players/wrapper/certificate.py`); with several units, the
sum of the units' regrets against one common arm. The certificate accounts for missing, void and withheld reports; the
worst case assumes complete reports.
"""

import datetime
import math

from aftereffect.core.errors import AftereffectError
from aftereffect.core.text import utc_text
from aftereffect.players.wrapper.certificate import Certificate
from aftereffect.service import messages, words
from aftereffect.service.experiment import learner
from aftereffect.service.experiment.plan import plan
from aftereffect.service.experiment.state import COUNTS, State
from aftereffect.service.messages import Comparison, Due, Learned, NextDecision, Overview

SAME = ("updates", "block", "warm_until", "inherited", "started_at", "finished_at")
"""The attributes of a state that users see by the same names."""


def view(state: State, id: str, created_at: str) -> Overview:
    """Return the summary of an experiment; raise ValueError if a value is not of its type."""
    settings, arms = state.settings, state.settings.arms
    voids = 0 if state.models else state.panel.counts.void_windows
    fields = {
        **settings.model_dump(mode="json", exclude={"draft", "warm_start"}),
        **{name: getattr(state, name) for name in SAME},
        "max_delay": None if state.models else settings.max_delay,
        "max_lag": settings.longest_lag if state.models else None,
        "id": id,
        "created_at": created_at,
        "carry_over": settings.carry_over and settings.carry_over.given(),
        "state": state.phase,
        "round": state.last,
        "open_round": state.open and state.open.number,
        "block_start": state.block_start if state.last else None,
        "probabilities": dict(zip(arms, state.probabilities, strict=True)),
        "plays": dict(zip(arms, state.plays, strict=True)),
        "away": [arms[i] for i in state.away],
        "counts": {name: state.counts[name] for name in COUNTS} | {"void_windows": voids},
        "sum_of_totals": state.sum,
        "next_decision": _decision(state),
        "alarms": words.alarms(state),
        "plan": plan(settings, None if state.models else state.rhythm),
        "guarantee": None if state.models else guarantee(state),
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
    return Due(round=number, date=date, at=utc_text(end))


def comparison(view: Overview, learned: Learned) -> Comparison:
    """Return the most important figures of an experiment."""
    reports = view.counts["reports"] - view.counts["void"]
    decision = view.next_decision
    figures = {
        "reports": reports,
        "mean": view.sum_of_totals / reports if reports else None,
        "best": learned.arms[0].best if learned.arms else None,
        "next_decision": None if decision is None else decision.date,
        "alarms": len(view.alarms),
    }
    known = {**dict(learned), **dict(view), **figures}
    return Comparison(**{name: known[name] for name in Comparison.model_fields})


def _decision(state: State) -> NextDecision | None:
    """Return when the next draw falls; None unless the arms stay for blocks."""
    if state.phase != "running" or state.models:
        return None
    likely, earliest = next_decision(state)
    dates = {"date": state.date_ahead(likely), "earliest_date": state.date_ahead(earliest)}
    said = words.next_decision(state, likely, earliest)
    return NextDecision(round=likely, earliest_round=earliest, **dates, words=said)


def next_decision(state: State) -> tuple[int, int]:
    """Return the expected round of the next draw, and the earliest possible one.

    After its shortest length, a block ends in every round with nearly the same probability.
    """
    if state.block_closed or state.block == 0:
        return state.last + 1, state.last + 1
    shortest, mean = state.rhythm.shortest_block, state.rhythm.mean_block
    # If no round is open, the block has not ended yet: it goes on for at least one round.
    earliest = max(state.block_start + shortest, state.last + (2 if state.open is None else 1))
    return earliest + max(round(mean) - shortest, 0), earliest


def guarantee(state: State) -> messages.Guarantee:
    """Return the worst case over the horizon (or the rounds so far), the certificate so far, and both in words."""
    panel = state.panel
    rounds = max(panel.rounds_played, 1) if state.settings.horizon is None else state.settings.horizon
    trivial, value, so_far, unknown = learner.trivial(panel, rounds), math.inf, None, None
    try:
        value = panel.regret_bound(rounds) + learner.late_price(state.settings) * trivial
        so_far = _certificate(state)
    except AftereffectError as error:
        unknown = str(error)
    sentence, paragraphs = words.guarantee(state, value, trivial, so_far, unknown)
    prior = state.settings.prior
    if prior is not None and not state.void:
        warm = words.warm_beginning(prior.experiment, prior.updates, learner.prior_price(panel))
        paragraphs.append(warm)
        sentence = f"{sentence} {warm}"
    return messages.Guarantee(
        value=value,
        per_round=value / (rounds * state.n_units),
        horizon=rounds,
        trivial=trivial,
        informative_from=state.rhythm.informative_from,
        informative=value < trivial and not state.void,
        void=state.void,
        certificate=None if so_far is None else messages.CertificateSoFar(**so_far._asdict()),
        sentence=sentence,
        words=" ".join(paragraphs),
        paragraphs=paragraphs,
    )


def _certificate(state: State) -> Certificate | None:
    """Return the certificate so far with the price of late effects; None if there is none."""
    if not state.panel.rounds_played or state.settings.player == "paper":
        return None
    found = state.panel.certificate()
    if extra := learner.late_price(state.settings) * found.trivial:
        found = found._replace(
            value=found.value + extra,
            terms=found.terms | {"late effects": extra},
            # Stopping by what a run shows is not covered by the proof for late effects.
            any_time=None,
            worst_case=found.worst_case + extra,
            worst_case_from=state.rhythm.informative_from,
        )
    return found._replace(informative=found.value < found.trivial and not state.void)

