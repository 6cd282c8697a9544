"""What to expect of settings before the first round: block lengths, decisions, when the guarantee is informative.

Everything is computed from the learner that will play (`learner.py`). With carry-over d, a block of the default player
lasts at least d+1 rounds, and 1/(β(1−β)^d) on average: about e(d+1), or 3.7(d+1) if effects are gains. A block of the
paper's player lasts at least 2d+1 rounds, and about e(2d+1) on average (Definition 1). The guarantee is informative
once it is below the largest possible regret.
"""

from collections.abc import Mapping
from typing import Any

from aftereffect.core.text import amount, counted
from aftereffect.players.wrapper.panel import Panel
from aftereffect.service.errors import checked
from aftereffect.service.experiment import learner
from aftereffect.service.experiment.learner import Rhythm
from aftereffect.service.messages import Plan
from aftereffect.service.settings import Design, PlanQuestion, duration

QUARTER = 365.25 / 4


def plan(design: Design, panel: Panel | None = None, before: int | None = None) -> Plan:
    """Return the plan of a design.

    panel: its learner, by default built from the design. before: how many rounds its pilot had, if it is over.

    >>> from aftereffect.service.settings import PlanQuestion
    >>> plan(PlanQuestion(arms=3, carry_over={"window": "7 days"})).shortest_block
    8
    """
    found = learner.rhythm(learner.build(design, 0) if panel is None else panel, learner.late_price(design))
    if found.informative_from is not None and design.pilot is not None:
        first = design.pilot.rounds if before is None else before
        found = found._replace(informative_from=found.informative_from + first)
    ahead = _pilot(design) if before is None else []
    per_quarter = QUARTER / (found.mean_block * design.round_length)
    return Plan(
        max_delay=design.max_delay,
        shortest_block=found.shortest_block,
        mean_block=found.mean_block,
        decisions_per_quarter=per_quarter,
        informative_from=found.informative_from,
        sentences=[*ahead, *_rhythm(design, found), *_pace(design, per_quarter), *_promise(design, found)],
    )


def planned(question: Mapping[str, Any] | PlanQuestion) -> dict[str, Any]:
    """Validate a question and return its plan as plain data.

    >>> planned({"n_arms": 3, "carry_over": {"window": "7 days"}})["shortest_block"]
    8
    """
    return plan(checked(PlanQuestion, question, "a plan")).model_dump()


def _pilot(design: Design) -> list[str]:
    """Return sentences on the pilot, if there is one."""
    if design.pilot is None:
        return []
    n, longest = design.pilot.rounds, design.max_delay
    return [
        f"The experiment begins with a pilot of {n:,} rounds ({duration(n * design.round_length)}): a random schedule "
        f"plays every arm about equally often, so that effects up to {counted(longest, 'round')} later can be measured."
        " Then you accept a carry-over (max_delay), and the learner begins with what the pilot has shown.",
        f"The figures below assume a max_delay of {counted(longest, 'round')}; a shorter one gives shorter blocks.",
    ]


def _rhythm(design: Design, found: Rhythm) -> list[str]:
    """Return sentences on the length of blocks and the reason for it."""
    d, r, shortest, mean = design.max_delay, design.round_length, found.shortest_block, found.mean_block
    late = design.late_share
    rest = f"{late:.1%} of an effect arrives later than that. The guarantee includes this part; with a longer "
    rest += "carry-over it would be smaller, but blocks would be longer."
    if d == 0 and late:
        return [f"Carry-over: effects count in the round of the action only. {rest}", "Every round is a decision."]
    if d == 0:
        return ["The whole effect of an action arrives in its own round, so every round is a separate decision."]
    first = "total of a block still holds" if d == 1 else f"{d} totals of a block still hold"
    learned = f"only the last {d + 1} are"
    if design.player != "paper":
        learned = f"the last ones are, {found.mean_measured:.1f} on average"
    return [
        f"Carry-over: effects arrive up to {counted(d, 'round')} ({duration(d * r)}) after the action. Other tools "
        "call this the attribution window, conversion window, max_lag, lookback or washout.",
        f"An arm stays for a block of at least {shortest} rounds ({duration(shortest * r)}), {mean:.1f} on average "
        f"({_days(mean * r)}). The first {first} effects of the previous arm and are not learned from; {learned}.",
        *([rest] if late else []),
    ]


def _days(length: float) -> str:
    return f"{length:.1f} days" if length >= 1.0 else f"{24.0 * length:.1f} hours"


def _pace(design: Design, per_quarter: float) -> list[str]:
    """Return sentences on the number of decisions, with advice if it is low."""
    K, d, M = len(design.arms), design.max_delay, len(design.units)
    where = f" in each of {M} units" if M > 1 else ""
    lines = [f"That makes about {amount(round(per_quarter, 1))} decisions per quarter{where}."]
    # Learning needs at least five trials of each arm in a year.
    if 4.0 * per_quarter * M < 5.0 * K:
        advice = f"This is slow: in a year each of the {K} arms is tried about {4 * per_quarter * M / K:.1f} times. "
        advice += "More units (regions, stores, segments) learn in parallel; "
        advice += "fewer arms help too." if d == 0 else "fewer arms, shorter rounds or a shorter carry-over help too."
        lines.append(advice)
    return lines


def _promise(design: Design, found: Rhythm) -> list[str]:
    """Return sentences on when the guarantee is informative, and whether the horizon is long enough."""
    T, since = design.horizon, found.informative_from
    lines = []
    if since is None and design.low < 0.0 and design.player == "paper":
        lines.append("No guarantee is known for this player if effects can be negative.")
    elif since is None and design.player != "paper":
        lines.append("The guarantee is never informative: it is never below the largest possible loss.")
    elif since is None:
        needed = learner.tuned_from(design)
        lines.append(
            "With rates for this horizon the guarantee is never informative: it is never below the largest possible "
            f"loss. An informative one takes a horizon of {needed:,} rounds or more. Learning starts earlier."
        )
    else:
        lines.append(
            f"The guarantee, which holds whatever the effects are, is informative from round {since:,} on "
            f"({since * design.round_length / 365.25:.1f} years); until then it is not below the largest possible "
            "loss. Learning starts earlier."
        )
        if design.player != "paper":
            lines.append(
                "During the experiment, a certificate bounds the regret so far from the run itself; it is usually "
                "informative sooner."
            )
    if T is not None and found.mean_block > T:
        rounds = counted(T, "round")
        lines.append(f"The horizon of {rounds} is shorter than one mean block: very little can be learned.")
    elif T is not None and since is not None and since > T:
        lines.append(f"The horizon of {counted(T, 'round')} ends before the guarantee is informative.")
    return lines

