"""From settings to the learner that decides: a panel of units around one player, and what its rhythm is.

    default   `default_player`: AdaptiveTsallis, fed all coin-clean rounds of its blocks. Nothing to tune, no horizon.
    paper     `CompositeLossWrapper.tuned`: Algorithm 1 at the rates of Corollary 7 for the horizon, which it needs;
              tuning may name another base ("exp3") or the rates of the sharper bounds (form "sharp").

An experiment is replayed with the learner its settings give, arm by arm and bit for bit. So what a name stands for must
not change under experiments that run: a better player gets a name of its own.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from aftereffect import theory
from aftereffect.core.errors import AftereffectError, InvalidArgument
from aftereffect.players.default import default_player
from aftereffect.players.wrapper import certificate
from aftereffect.players.wrapper.coin_clean import CoinCleanWrapper
from aftereffect.players.wrapper.panel import Panel
from aftereffect.players.wrapper.wrapper import BlockWrapper, CompositeLossWrapper
from aftereffect.service.settings import Design

FAR = 2**44
"""No experiment lasts so many rounds: a bound that says nothing until then never will."""


def build(design: Design, seed: int) -> Panel:
    """Return the unplayed learner of an experiment; the same design and seed give the same learner."""
    given: dict[str, Any] = {"n_arms": len(design.arms), "max_delay": design.max_delay, "seed": seed}
    given |= {"direction": design.direction, "low": design.low, "high": design.high, "out_of_range": "void"}
    player: BlockWrapper
    if design.player == "default":
        player = default_player(**given)
    else:
        given |= {"horizon": design.horizon, **design.tuning.given()}
        player = CompositeLossWrapper.tuned(**given)
    return Panel(player, n_units=len(design.units))


class Rhythm(NamedTuple):
    """In rounds: the shortest block, the mean one, and how many at its end are learned from on average.

    informative_from: the round from which on the worst case is below what any way of playing can lose; None if there
    is none.
    """

    shortest_block: int
    mean_block: float
    mean_measured: float
    informative_from: int | None


def rhythm(panel: Panel) -> Rhythm:
    """Return the rhythm of a learner that `build` made, played or not."""
    player, d = panel.player, panel.max_delay
    beta = player.update_probability
    if beta is None:
        raise InvalidArgument("coins must be a bias for a rhythm, but got a given sequence")
    if isinstance(player, CoinCleanWrapper):
        mean = 1.0 / (beta * (1.0 - beta) ** d)
        return Rhythm(d + 1, mean, 1.0 / beta, certificate.informative_from(player.worst_case))
    mean = theory.mean_block_length(d, beta)
    try:
        since = lasting_from(lambda T: panel.regret_bound(T) < trivial(panel, T), 2 * d + 1)
    except AftereffectError:
        # Theorem 4 is for effects that are never negative.
        since = FAR
    return Rhythm(2 * d + 1, mean, d + 1.0, since if since < FAR else None)


def trivial(panel: Panel, rounds: int) -> float:
    """Return the most that any way of playing can lose."""
    span = panel.player.effects
    # Multiplied in the order of the bound, so that one that is cut here is equal to the last bit.
    return panel.n_units * (rounds * (span.hi - span.lo))


def tuned_from(design: Design) -> int:
    """Return the horizon from which on a learner with these settings, tuned for it, has a bound that says something."""

    def below(T: int) -> bool:
        panel = build(design.model_copy(update={"horizon": T}), 0)
        return panel.regret_bound(T) < trivial(panel, T)

    return lasting_from(below, 2 * design.max_delay + 1)


def lasting_from(below: Callable[[int], bool], period: int) -> int:
    """Return the round from which on a bound is below the trivial one; FAR if there is none.

    The bound's share of T falls in T, but where T is a multiple of `period` a floor in it steps up. So search the
    multiples by doubling and by halves, then the stretch before the first one that is below.
    """
    least, most = 0, 1
    while not below(most * period):
        least, most = most, 2 * most
        if most * period > FAR:
            return FAR
    most = _first(lambda k: below(k * period), least, most)
    return _first(below, (most - 1) * period, most * period)


def _first(holds: Callable[[int], bool], least: int, most: int) -> int:
    """Return the first number after `least` at which what holds at `most` holds; once it does, it goes on."""
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if holds(middle) else (middle, most)
    return most
