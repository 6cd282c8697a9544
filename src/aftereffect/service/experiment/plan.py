"""What a carry-over means before the first round: block lengths, decisions per quarter, when the guarantee speaks.

All of it is about the learner that will play (`learner.py`). The default player's block lasts at least d+1 rounds and
1/(β(1−β)^d) on average, about e(d+1), or 3.7(d+1) where effects are gains; the paper's at least 2d+1 and about
e(2d+1) (Definition 1). The guarantee says something once it is below what any way of playing can lose.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from aftereffect.core.checks import integer, shown
from aftereffect.core.errors import AftereffectError
from aftereffect.players.panel import Panel
from aftereffect.service.errors import Refused
from aftereffect.service.experiment import learner
from aftereffect.service.experiment.figures import amount, counted
from aftereffect.service.experiment.learner import Rhythm
from aftereffect.service.settings import LEFT_OVER, MOST_ARMS, ExperimentSettings, checked_settings, said

QUARTER = 365.25 / 4


class Plan(NamedTuple):
    """max_delay: d. Blocks in rounds; decisions_per_quarter: drawings of an arm, all units share them.

    informative_from: the round from which on the worst case is below the trivial bound; None if there is none.
    """

    max_delay: int
    shortest_block: int
    mean_block: float
    decisions_per_quarter: float
    informative_from: int | None
    sentences: list[str]

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain JSON."""
        return self._asdict()


def plan(settings: ExperimentSettings, panel: Panel | None = None) -> Plan:
    """Return what the settings of an experiment mean. panel: its learner, made from the settings if it is not given.

    >>> from aftereffect.service.settings import checked_settings
    >>> plan(checked_settings({"name": "Mail", "arms": ["A", "B", "C"], "max_delay": 7})).shortest_block
    8
    """
    found = learner.rhythm(learner.build(settings.seeded(0)) if panel is None else panel)
    per_quarter = QUARTER / (found.mean_block * settings.round_length)
    sentences = [*_rhythm(settings, found), *_pace(settings, per_quarter), *_promise(settings, found)]
    blocks = found.shortest_block, found.mean_block
    return Plan(settings.max_delay, *blocks, per_quarter, found.informative_from, sentences)


def _rhythm(settings: ExperimentSettings, found: Rhythm) -> list[str]:
    """Say what a block is, and why an arm stays for so long."""
    d, r, shortest, mean = settings.max_delay, settings.round_length, found.shortest_block, found.mean_block
    if d == 0:
        return ["The whole effect of an action arrives in its own round: every round is a decision of its own."]
    first = "total of a block still holds" if d == 1 else f"{d} totals of a block still hold"
    if settings.player == "default":
        learned = f"of the others the last ones are, {found.mean_measured:.1f} on average"
    else:
        learned = f"only the last {d + 1} are"
    return [
        f"Carry-over: effects arrive up to {counted(d, 'round')} ({said(d * r)}) after their own. Other tools call "
        "this the attribution window, conversion window, max_lag, lookback or washout.",
        f"An arm stays for a block of at least {shortest} rounds ({said(shortest * r)}), {mean:.1f} on average "
        f"({_days(mean * r)}). The first {first} effects of the arm before, not learned from; {learned}.",
        *_tail(settings),
    ]


def _tail(settings: ExperimentSettings) -> list[str]:
    """Say what a half-life leaves out."""
    if "half_life" not in (settings.carry_over or {}):
        return []
    return [
        f"The half-life is counted until {100 * LEFT_OVER:g}% of an effect is left; what comes later breaks the "
        "guarantee's assumption by that much."
    ]


def _days(length: float) -> str:
    return f"{length:.1f} days" if length >= 1.0 else f"{24.0 * length:.1f} hours"


def _pace(settings: ExperimentSettings, per_quarter: float) -> list[str]:
    """Say how many decisions that makes, and what to do if they are few."""
    K, d, M = len(settings.arms), settings.max_delay, len(settings.units)
    where = f" in each of {M} units" if M > 1 else ""
    lines = [f"That makes about {amount(round(per_quarter, 1))} decisions per quarter{where}."]
    # To try every arm a few times within a year is the least that learning needs.
    if 4.0 * per_quarter * M < 5.0 * K:
        advice = f"This is slow: in a year each of the {K} arms is tried about {4 * per_quarter * M / K:.1f} times. "
        advice += "More units (regions, stores, segments) learn side by side; "
        advice += "fewer arms help too." if d == 0 else "fewer arms, shorter rounds or a shorter carry-over help too."
        lines.append(advice)
    return lines


def _promise(settings: ExperimentSettings, found: Rhythm) -> list[str]:
    """Say when the guarantee is worth anything, and whether the horizon is long enough."""
    T, since = settings.horizon, found.informative_from
    lines = []
    if since is None and settings.low < 0.0 and settings.player == "paper":
        lines.append("No guarantee is known for this player where an effect can be negative.")
    elif since is None and settings.player == "default":
        lines.append("The guarantee never says anything: it promises no more than any way of playing.")
    elif since is None:
        needed = learner.tuned_from(settings)
        lines.append(
            "With rates for this horizon the guarantee never says anything: it promises no more than any way of "
            f"playing. That takes a horizon of {needed:,} rounds or more. Learning starts earlier."
        )
    else:
        lines.append(
            f"The guarantee, for whatever the effects may be, says something from round {since:,} on "
            f"({since * settings.round_length / 365.25:.1f} years); until then it is not informative: it promises no "
            "more than any way of playing. Learning starts earlier."
        )
        if settings.player == "default":
            lines.append(
                "As the experiment runs, a certificate counts what its own course has cost so far; as a rule that "
                "says something sooner."
            )
    if T is not None and found.mean_block > T:
        rounds = counted(T, "round")
        lines.append(f"The horizon of {rounds} is shorter than one mean block: hardly anything can be learned.")
    elif T is not None and since is not None and since > T:
        lines.append(f"The horizon of {counted(T, 'round')} ends before the guarantee says anything.")
    return lines


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
