"""Every sentence about an experiment that the page, the command line and the API show.

What is stored are facts; the words for them are rendered here, when they are shown. So a sentence can be reworded
without a change to any store. Refusals state their rule where it is checked.
"""

from collections.abc import Mapping
from typing import Any

from aftereffect.carryover import Longer
from aftereffect.core.text import amount
from aftereffect.service.settings import Design


def why(row: Mapping[str, Any], settings: Design) -> str:
    """Return why a round plays its arm, and how its total is used. row: as stored. settings: with the max_delay of now.

    >>> from aftereffect.service.settings import PlanQuestion
    >>> row = {"arm": "A", "drawn": "B", "round": 9, "block": 2, "block_start": 8, "withheld": False}
    >>> why({**row, "reason": "substitute"}, PlanQuestion(arms=2, max_delay=3))
    'B is away, so A is played in its place; B is credited with what A brings.'
    """
    arm, place, block = row["arm"], row["round"] - row["block_start"] + 1, row["block"]
    match row["reason"]:
        case "pilot":
            rounds = 0 if settings.pilot is None else settings.pilot.rounds
            still = "; effects of earlier actions still arrive, so this total is not used" if row["washin"] else ""
            return f"Pilot round {row['round']:,} of {rounds:,}: the random schedule plays {arm}{still}."
        case "inherited":
            used = "recorded but not learned from" if row["withheld"] else "learned from like any other"
            return f"{arm} was played in the experiment whose rounds this one inherits; this total is {used}."
        case "substitute":
            then = f"{row['drawn']} is credited with what {arm} brings"
            if row["withheld"]:
                then = "earlier effects still arrive, so this total is recorded but not learned from"
            return f"{row['drawn']} is away, so {arm} is played in its place; {then}."
        case "warm_up":
            return f"{arm}, round {place} of block {block}: warm-up after a pause, recorded but not learned from."
        case "mixed":
            still = "effects of a substitute still arrive, so this total is recorded but not learned from"
            return f"{arm}, round {place} of block {block}: {still}."
    return _place_in_block(row, place, settings)


def _place_in_block(row: Mapping[str, Any], place: int, settings: Design) -> str:
    """Return why a round that the learner has drawn plays its arm."""
    d, arm, block = settings.max_delay, row["arm"], row["block"]
    drawn = f"{arm} was drawn with probability {row['probability']:.3f}"
    if d == 0:
        return f"{drawn}; effects do not linger, so every round counts."
    # An update needs d zeros before its coin; for the player "paper" it needs 2d.
    shortest = (1 if settings.player != "paper" else 2) * d + 1
    if place == 1:
        return f"{drawn} for block {block} and stays for at least {shortest} rounds."
    if place <= d:
        first = block == 1 and settings.pilot is None
        still = "effects are still building up" if first else "effects of earlier rounds still arrive"
        return f"{arm} stays: wash-in, round {place} of block {block}; {still}, so this total is not measured."
    if place < shortest:
        return f"{arm} stays: round {place} of block {block}, which lasts at least {shortest} rounds."
    last = "rounds" if settings.player != "paper" else f"{d + 1} rounds"
    return f"{arm} stays: round {place} of block {block}, which may end any round now; its last {last} count."


def possible(settings: Design) -> str:
    """Return the range of a total.

    >>> from aftereffect.service.settings import PlanQuestion
    >>> possible(PlanQuestion(arms=2, high=50, max_delay=2))
    '[0, 150]'
    """
    low, high = settings.limits
    return f"[{amount(low)}, {amount(high)}]"


def out_of_range(row: Mapping[str, Any], settings: Design) -> str:
    """Return what is done with a total out of range."""
    then = (
        "it is recorded, but nothing is learned from it. If the total is right, low, high or max_delay is wrong: "
        "correct the settings. If it is a typing error, correct the total."
    )
    if row["status"] == "clipped":
        low, high = settings.limits
        then = f"it is recorded, and learned from as {amount(min(max(row['total'], low), high))}."
    return f"{amount(row['total'])} is outside {possible(settings)}, the range of a total with these settings: {then}"


RECORD_ONLY = {
    "pilot": "the pilot is over, and what was accepted from it stays",
    "not_measured": "it had not been learned from",
    "substitute": "it was attributed to the arm that was away",
    "inherited": "it was learned from as a round of the experiment before",
}
"""Why a late correction is not learned from."""


def late_correction(unlearned: str | None, block_closed: bool) -> str:
    """Return what a correction after the end of its block did. unlearned: a key of RECORD_ONLY, or None."""
    if unlearned is not None:
        return f"The total is corrected in the record only, because {RECORD_ONLY[unlearned]}."
    when = "at once" if block_closed else "when the open block ends"
    words = f"The total had been learned from; what was learned is corrected {when}, and the certificate says what "
    return f"{words}the late correction cost."


def level(mean: float, low: float, high: float) -> str:
    """Return, without a full stop, that a mean total is no possible effect of one action."""
    return (
        f"The mean total is {amount(mean, digits=3)}, but one action's effect is said to lie between "
        f"{amount(low)} and {amount(high)}. What comes whatever is played, such as base sales, counts as part of the "
        "effect: correct low and high"
    )


def against_delay(finding: Mapping[str, Any]) -> str:
    """Return what in a pilot speaks against the max_delay accepted; a finding of `lag_estimates.attention`."""
    facts = {**finding}
    if facts.pop("finding") == "level":
        return within("In the pilot", f"{level(**facts)}.")
    return within("In the pilot", Longer(**facts).sentence)


def within(where: str, sentence: str) -> str:
    """Return a sentence with where it holds before it.

    >>> within("In the pilot", "No sign.")
    'In the pilot: no sign.'
    """
    return f"{where}: {sentence[0].lower()}{sentence[1:]}"
