"""One sentence for each round: why this arm, and what becomes of its total. "The same arm again?" is asked first."""

from typing import TYPE_CHECKING

from aftereffect.service.learners import shortest_block
from aftereffect.service.settings import ExperimentSettings

if TYPE_CHECKING:
    from aftereffect.service.rounds import Played


def why(played: "Played", settings: ExperimentSettings, u: int, washin: bool) -> str:
    """Return why unit u plays its arm in this round."""
    d, names = settings.max_delay, settings.arms
    arm = names[played.arms[u]]
    if played.arms[u] != played.drawn[u]:
        gone = names[played.drawn[u]]
        then = f"{gone} is credited with what {arm} brings"
        if played.withheld[u]:
            then = "earlier effects still arrive, so this total is recorded but not learned from"
        return f"{gone} is away, so {arm} is played in its place; {then}."
    place = played.number - played.block_start + 1
    if played.warm:
        return f"{arm}, round {place} of block {played.block}: warm-up after a pause, recorded but not learned from."
    if played.withheld[u]:
        return (
            f"{arm}, round {place} of block {played.block}: effects of a stand-in still arrive, so this total is "
            "recorded but not learned from."
        )
    if d == 0:
        return f"{arm} was drawn with probability {played.odds[u]:.3f}; effects do not linger, so every round counts."
    shortest = shortest_block(settings.player, d)
    if played.draw:
        return (
            f"{arm} was drawn with probability {played.odds[u]:.3f} for block {played.block} and stays for at least "
            f"{shortest} rounds."
        )
    if washin:
        still = "effects are still building up" if played.block == 1 else "effects of earlier rounds still arrive"
        return f"{arm} stays: wash-in, round {place} of block {played.block}; {still}, so this total is not measured."
    if place < shortest:
        return f"{arm} stays: round {place} of block {played.block}, which lasts at least {shortest} rounds."
    last = "rounds" if settings.player == "default" else f"{d + 1} rounds"
    return f"{arm} stays: round {place} of block {played.block}, which may end any round now; its last {last} count."
