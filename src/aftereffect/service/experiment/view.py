"""An experiment as people see it: names, words, figures."""

from typing import Any

from aftereffect.service.experiment import outcome
from aftereffect.service.experiment.alarms import alarms
from aftereffect.service.experiment.guarantee import guarantee
from aftereffect.service.experiment.state import State


def view(state: State) -> dict[str, Any]:
    """Return everything there is to show."""
    settings, counts = state.settings, state.counts
    arms = settings.arms
    over = state.phase == "finished"
    shown = ("missing", "void", "out_of_range", "amended", "substituted", "withheld", "reports")
    return {
        **settings.model_dump(mode="json", exclude={"draft"}),
        "carry_over": settings.carry_over and settings.carry_over.given(),
        "tuning": settings.tuning.given(),
        "state": state.phase,
        "round": state.last,
        "open_round": state.open_round,
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
