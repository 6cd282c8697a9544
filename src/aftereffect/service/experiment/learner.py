"""The learner of an experiment: a panel of units around one player, built from the settings, and its block lengths.

    advised   `default_player`: MatchedTsallis, fed all coin-clean rounds of its blocks, advised by the lag model of all
              totals, which also chooses the arms of the first rounds. Nothing to tune, no horizon.
    model     `LagPlayer`: learns from every total; needs to know neither how long effects last nor their range.
    paper     `CompositeLossWrapper.tuned`: Algorithm 1 with the rates of Corollary 7 for the horizon (required).

A stored log is replayed with the learner built from its settings, and must give the same arms and numbers bit for bit.
So the player behind a name must never change: a better player gets a new name.
"""

from typing import Any, NamedTuple

from aftereffect import theory
from aftereffect.bandits.adaptive_tsallis import MatchedTsallis
from aftereffect.core.errors import AftereffectError
from aftereffect.players.advisers import ToldLags
from aftereffect.players.default import Prior, default_player
from aftereffect.players.lag_player import LagPlayer
from aftereffect.players.wrapper import certificate
from aftereffect.players.wrapper.advised import AdvisedWrapper
from aftereffect.players.wrapper.coin_clean import CoinCleanWrapper
from aftereffect.players.wrapper.panel import Panel
from aftereffect.players.wrapper.wrapper import CompositeLossWrapper
from aftereffect.service.settings import Design

FAR = 2**44
"""In rounds, more than any experiment has: a bound that is not informative by then is reported as never informative."""


def adviser(design: Design) -> ToldLags | None:
    """Return the adviser of an experiment; None if it has none."""
    return ToldLags(design.season, design.model_rounds) if design.advised else None


def build(design: Design, seed: int, told: ToldLags | None) -> Panel:
    """Return a new learner for an experiment; the same design and seed give the same learner. told: its adviser."""
    K, M = len(design.arms), len(design.units)
    given: dict[str, Any] = {"direction": design.direction, "seed": seed}
    if design.player == "model":
        looks: dict[str, Any] = {"max_lag": design.longest_lag, "season": design.season, "horizon": design.horizon}
        return Panel(LagPlayer(K, **looks, **given), n_units=M)
    given |= {name: getattr(design, name) for name in ("max_delay", "low", "high", "out_of_range")}
    if design.player == "paper":
        tuned = CompositeLossWrapper.tuned(K, **given | {"horizon": design.horizon})
        # An experiment states its guarantee in every round: no warning after its horizon.
        tuned.tuned_horizon = None
        return Panel(tuned, n_units=M)
    prior = design.prior
    known = None if prior is None else Prior([prior.means[arm] for arm in design.arms], prior.updates)
    player = default_player(K, prior=known, adviser=told, **given)
    most = design.model_rounds // 2
    if isinstance(player, AdvisedWrapper) and player.opening > most:
        player = AdvisedWrapper(MatchedTsallis(K), adviser=told, opening=most, **given)
    return Panel(player, n_units=M)


def opening_of(panel: Panel) -> int:
    """Return the number of rounds whose arms the adviser chooses itself."""
    return panel.player.opening if isinstance(panel.player, AdvisedWrapper) else 0


class Rhythm(NamedTuple):
    """Block lengths of a learner, in rounds.

    informative_from: the round from which the worst case stays below the largest possible regret; None if never.
    opening: the rounds before the first block, whose arms the model chooses.
    """

    shortest_block: int
    mean_block: float
    informative_from: int | None
    opening: int = 0

    def opening_lasts(self, horizon: int | None) -> bool:
        """Return whether the opening lasts up to the horizon, so that no block begins."""
        return horizon is not None and self.opening >= horizon


def late_price(design: Design) -> float:
    """Return what effects that arrive after max_delay add to the guarantee in each round, in units of the range."""
    price = theory.tail_price(design.direction, *design.span)
    # Windows pay twice in either direction (docs/theory/soft_windows.md).
    price = max(price, 2.0) if design.player == "paper" else price
    return price * design.late_share


def rhythm(panel: Panel, design: Design) -> Rhythm:
    """Return the block lengths of a learner made by `build`; they do not depend on the rounds played."""
    late = late_price(design)
    player, d = panel.player, panel.max_delay
    # Not None: `build` gives no coins.
    beta: Any = player.update_probability
    if isinstance(player, CoinCleanWrapper):
        mean = 1.0 / (beta * (1.0 - beta) ** d)
        since = None
        if late < 1.0:
            since = certificate.informative_from(lambda T: player.worst_case(T) + late * T < T)
        return Rhythm(d + 1, mean, since, opening_of(panel))
    mean = theory.mean_block_length(d, beta)
    try:
        since = certificate.informative_from(
            lambda T: panel.regret_bound(T) < (1.0 - late) * trivial(panel, T), 2 * d + 1
        )
    except AftereffectError:
        # Theorem 4 requires effects that are never negative.
        since = None
    return Rhythm(2 * d + 1, mean, since if since is not None and since < FAR else None)


def trivial(panel: Panel, rounds: int) -> float:
    """Return the largest possible regret over these rounds, summed over the units."""
    span = panel.player.effects
    # Multiplied in the same order as in the bound, so that a bound capped at this value equals it exactly.
    return panel.n_units * (rounds * (span.hi - span.lo))


def prior_price(panel: Panel) -> float:
    """Return what the prior of a learner adds to its guarantee."""
    player = panel.player
    if not isinstance(player, CoinCleanWrapper):
        return 0.0
    span, bandit = player.effects, player.certified_base()[0]
    return panel.n_units * (span.hi - span.lo) * player.factor * bandit.prior_price
