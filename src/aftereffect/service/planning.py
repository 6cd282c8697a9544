"""The planner for questions from outside: a carry-over in rounds or in words, and what follows from it.

Needs no store: `aftereffect plan` answers from the package alone. The rules are those of an experiment's settings.
"""

from collections.abc import Mapping
from typing import Any

from aftereffect.core.checks import integer
from aftereffect.core.errors import AftereffectError
from aftereffect.service.errors import Refused
from aftereffect.service.planner import plan
from aftereffect.service.settings import MOST_ARMS, checked_settings


def planned(n_arms: int, **question: Any) -> Mapping[str, Any]:
    """Return the plan for `n_arms` arms; max_delay or carry_over, round_length, horizon and units as in settings.

    >>> planned(3, carry_over={"window": "7 days"})["shortest_block"]
    15
    """
    try:
        K = integer("n_arms", n_arms, low=2, high=MOST_ARMS)
    except AftereffectError as error:
        raise Refused("invalid", str(error)) from None
    settings = checked_settings({**question, "name": "plan", "arms": [str(arm + 1) for arm in range(K)]})
    found = plan(
        K,
        settings.max_delay,
        horizon=settings.horizon,
        units=len(settings.units),
        round_days=settings.round_length,
    )
    return found.to_json()
