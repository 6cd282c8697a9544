"""From settings to the learner that decides: a panel of units around one player (Algorithm 1, Corollary 7).

"paper" is the player of Corollary 7 for the horizon given. "default" is the same player; without a horizon its rates
are those for OPEN_ENDED rounds. An experiment is replayed with the learner its settings give, so what a name stands
for must not change under experiments that run.
"""

from aftereffect.core.errors import InvalidArgument
from aftereffect.players.panel import Panel
from aftereffect.players.wrapper import CompositeLossWrapper
from aftereffect.service.settings import ExperimentSettings

OPEN_ENDED = 100_000
"""The horizon that stands in for "no end in sight" where the rates need one."""


def build(settings: ExperimentSettings) -> Panel:
    """Return the unplayed learner of an experiment; the same settings and seed give the same learner."""
    if settings.seed is None:
        raise InvalidArgument("seed must be drawn before the learner is built, but got None")
    horizon = settings.tuning.get("horizon") or settings.horizon or OPEN_ENDED
    player = CompositeLossWrapper.tuned(
        n_arms=len(settings.arms),
        max_delay=settings.max_delay,
        horizon=horizon,
        seed=settings.seed,
        direction=settings.direction,
        low=settings.low,
        high=settings.high,
        out_of_range="void",
    )
    return Panel(player, len(settings.units))
