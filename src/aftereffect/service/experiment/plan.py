"""What to expect of settings before the first round: block lengths, decisions, when the guarantee is informative.

Everything is computed from the learner that will play (`learner.py`). With carry-over d, a block of the default player
lasts at least d+1 rounds, and 1/(β(1−β)^d) on average: about e(d+1), or 3.7(d+1) if effects are gains. A block of the
paper's player lasts at least 2d+1 rounds, and about e(2d+1) on average (Definition 1). The guarantee is informative
once it is below the largest possible regret.
"""

from collections.abc import Mapping
from typing import Any

from aftereffect.service import words
from aftereffect.service.errors import checked
from aftereffect.service.experiment import learner
from aftereffect.service.experiment.learner import Rhythm
from aftereffect.service.messages import Plan
from aftereffect.service.settings import Design, PlanQuestion

QUARTER = 365.25 / 4


def plan(design: Design, found: Rhythm | None = None, *, ahead: bool = True) -> Plan:
    """Return the plan of a design.

    found: the block lengths of its learner, by default of one built from the design. ahead: its pilot is still to come.

    >>> from aftereffect.service.settings import PlanQuestion
    >>> plan(PlanQuestion(arms=3, carry_over={"window": "7 days"})).shortest_block
    8
    """
    found = learner.rhythm(learner.build(design, 0), design) if found is None else found
    per_quarter = QUARTER / (found.mean_block * design.round_length)
    return Plan(
        max_delay=design.max_delay,
        shortest_block=found.shortest_block,
        mean_block=found.mean_block,
        decisions_per_quarter=per_quarter,
        informative_from=found.informative_from,
        sentences=words.plan(design, found, per_quarter, ahead),
    )


def planned(question: Mapping[str, Any] | PlanQuestion) -> dict[str, Any]:
    """Validate a question and return its plan as plain data.

    >>> planned({"n_arms": 3, "carry_over": {"window": "7 days"}})["shortest_block"]
    8
    """
    return plan(checked(PlanQuestion, question, "a plan")).model_dump()
