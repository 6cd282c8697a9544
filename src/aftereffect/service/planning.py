"""The planner for questions from outside: a carry-over in rounds or in words, and what follows from it.

Needs no store: `aftereffect plan` answers from the package alone, and a server from the same. The rules are those of an
experiment's settings.
"""

from collections.abc import Mapping
from typing import Any

from aftereffect.core.checks import integer, shown
from aftereffect.core.errors import AftereffectError
from aftereffect.service.errors import Refused
from aftereffect.service.planner import plan
from aftereffect.service.settings import MOST_ARMS, checked_settings

QUESTION = (
    *("arms", "n_arms", "max_delay", "carry_over", "round_length", "horizon", "units"),
    *("direction", "low", "high", "player", "tuning"),
)
"""What a plan can depend on. Arms by name, or how many: as arms or as n_arms."""


def planned(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plan for a question: arms or n_arms; max_delay or carry_over and the rest as in settings.

    >>> planned({"n_arms": 3, "carry_over": {"window": "7 days"}})["shortest_block"]
    8
    """
    unknown = sorted(str(key) for key in question if key not in QUESTION)
    if unknown:
        raise Refused("invalid", f"a plan has no {shown(unknown[0])}; it has {', '.join(QUESTION)}")
    arms, numbered = question.get("arms"), question.get("n_arms")
    if (arms is None) == (numbered is None):
        raise Refused(
            "invalid", f"exactly one of arms and n_arms must be given, but got {shown(arms)} and {shown(numbered)}"
        )
    if not isinstance(arms, list | tuple):
        name, count = ("n_arms", numbered) if arms is None else ("arms", arms)
        try:
            K = integer(name, count, low=2, high=MOST_ARMS)
        except AftereffectError as error:
            raise Refused("invalid", str(error)) from None
        arms = [str(arm + 1) for arm in range(K)]
    rest = {key: value for key, value in question.items() if key not in ("arms", "n_arms")}
    return plan(checked_settings({**rest, "name": "plan", "arms": arms})).to_json()
