"""What to expect of settings before the first round: a simulated forecast, block lengths, when the guarantee speaks.

Block lengths are computed from the learner that will play (`learner.py`). With carry-over d, a block of the default
player lasts at least d+1 rounds, and 1/(β(1−β)^d) on average: about e(d+1), or 3.7(d+1) if effects are gains. A block
of the paper's player lasts at least 2d+1 rounds, and about e(2d+1) on average (Definition 1). The guarantee is
informative once it is below the largest possible regret.
"""

import functools
from collections.abc import Mapping
from typing import Any

from aftereffect.service import words
from aftereffect.service.errors import checked
from aftereffect.service.experiment import learner
from aftereffect.service.experiment.learner import Rhythm
from aftereffect.service.messages import Forecast, Plan
from aftereffect.service.settings import DAYS, Design, PlanQuestion, days

YEAR = 365.25
GUESS = 0.1
"""A guess of the gap between the best arms, and of the noise of a total, as shares of the range of effects."""


def plan(design: Design, found: Rhythm | None = None) -> Plan:
    """Return the plan of a design.

    found: the block lengths of its learner, by default of one built from the design.

    >>> from aftereffect.service.settings import PlanQuestion
    >>> plan(PlanQuestion(arms=3, carry_over={"window": "7 days"})).shortest_block
    8
    """
    if design.player == "model":
        return Plan(sentences=words.model_plan(design))
    found = learner.rhythm(learner.build(design, 0, learner.adviser(design)), design) if found is None else found
    per_quarter = YEAR / 4 / (found.mean_block * design.round_length)
    blocks = not found.opening_lasts(design.horizon)
    return Plan(
        max_delay=design.max_delay,
        shortest_block=found.shortest_block if blocks else None,
        mean_block=found.mean_block if blocks else None,
        decisions_per_quarter=per_quarter if blocks else None,
        informative_from=found.informative_from,
        sentences=words.plan(design, found, per_quarter),
    )


def planned(question: Mapping[str, Any] | PlanQuestion) -> Plan:
    """Validate a question and return its plan, with all fields set.

    >>> planned({"arms": 3, "carry_over": {"window": "7 days"}}).shortest_block
    8
    """
    design = checked(PlanQuestion, question, "a plan")
    return Plan(**{**dict(plan(design)), "forecast": forecast(design, design.gap, design.noise)})


def forecast(design: Design, gap: float | None = None, noise: float | None = None) -> Forecast | None:
    """Return what the player of a design is expected to bring; None if settings of this size are not simulated.

    gap, noise: guesses in the units of totals, by default a tenth of the range. Without a horizon it is that of a year.
    Where nobody knows how long effects last, they last half as long as the model looks for them.
    """
    # Imported here because it is slow.
    from aftereffect.engines.planner import LARGEST, LONGEST, MOST_ARMS

    K, M, guess = len(design.arms), len(design.units), GUESS * (design.span[1] - design.span[0])
    rounds = max(round(YEAR / design.round_length), 2 * K) if design.horizon is None else design.horizon
    if K > MOST_ARMS or not 2 * K <= rounds <= min(LONGEST, LARGEST // M) or design.max_delay >= rounds:
        return None
    half_life = None if design.carry_over is None else design.carry_over.half_life
    found = _simulated(
        n_arms=K,
        rounds=rounds,
        n_units=M,
        max_delay=design.longest_lag // 2 if design.player == "model" else design.max_delay,
        half_life=None if half_life is None else days(half_life) / design.round_length,
        gap=guess if gap is None else gap,
        noise=guess if noise is None else noise,
        player="unadvised" if design.player == "advised" and not design.advised else design.player,
    )
    return Forecast(
        recommended=next(name for name in ("player", "test", "model") if getattr(found, name) is found.recommended),
        worthwhile=found.worthwhile,
        rounds=rounds,
        gap=found.setting.gap,
        noise=found.setting.noise,
        most=found.most,
        player=found.player.gain,
        test=found.test.gain,
        test_rounds=found.test.test_rounds or 0,
        test_winner="lags" if found.test.winner == "lags" else "means",
        model=None if found.model is None else found.model.gain,
        enough_rounds=found.enough_rounds,
        enough_units=found.enough_units,
        sentences=found.sentences(next((name for name in DAYS if DAYS[name] == design.round_length), "round")),
    )


@functools.lru_cache(maxsize=256)
def _simulated(**setting: Any) -> Any:
    """Return the forecast of a setting, as it was the first time."""
    from aftereffect.engines.planner import plan

    return plan(**setting)
