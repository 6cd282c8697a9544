"""An experiment as people see it: names, words, figures."""

from typing import Any

from aftereffect.service.experiment import outcome
from aftereffect.service.experiment.alarms import alarms
from aftereffect.service.experiment.guarantee import guarantee
from aftereffect.service.experiment.state import Progress


def view(progress: Progress) -> dict[str, Any]:
    """Return everything there is to show."""
    settings, counts = progress.settings, progress.counts
    arms = settings.arms
    over = progress.phase == "finished"
    shown = ("missing", "void", "out_of_range", "amended", "substituted", "withheld", "reports")
    return {
        "name": settings.name,
        "state": progress.phase,
        "arms": list(arms),
        "units": list(settings.units),
        "direction": settings.direction,
        "low": settings.low,
        "high": settings.high,
        "max_delay": settings.max_delay,
        "carry_over": settings.words(),
        "horizon": settings.horizon,
        "player": settings.player,
        "tuning": dict(settings.tuning),
        "seed": settings.seed,
        "start_date": settings.start_date,
        "round_length": settings.round_length,
        "round": progress.last,
        "open_round": progress.open_round_number(),
        "updates": progress.updates,
        "block": progress.block,
        "block_start": progress.block_start if progress.last else None,
        "warm_until": progress.warm_until,
        "probabilities": dict(zip(arms, progress.odds, strict=True)),
        "plays": dict(zip(arms, progress.plays, strict=True)),
        "away": [arms[i] for i in sorted(progress.away)],
        "counts": {name: counts[name] for name in shown} | {"void_windows": progress.panel.counts.void_windows},
        "sum_of_totals": progress.sum,
        "measured": outcome.table(arms, progress.tallies),
        "alarms": alarms(progress),
        "plan": progress.plan.model_dump(),
        "guarantee": guarantee(progress),
        "winner": outcome.winner(arms, progress.tallies, progress.odds, settings.direction) if over else None,
        "started_at": progress.started_at,
        "finished_at": progress.finished_at,
    }
