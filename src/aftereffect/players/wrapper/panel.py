"""A panel: several units that share one learner and its coins, under Algorithm 1 (Section 3).

    coin B_t      . . . 1 0 0 0 0 1          d = 2, as in wrapper.py
    round         U D S S S S S U D          the same for every unit
    unit 0 plays  2 0 0 0 0 0 0 0 1          each unit draws its own arm, all from one distribution q
    unit 1 plays  1 2 2 2 2 2 2 2 0
    update        ^             ^            once per block, with the average of the units' estimates

Units are, for example, regions, shops or segments, for which the same arm should be good. All units change arms in the
same rounds, so that every arm is drawn from the distribution by which its loss is weighted.
"""

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Self

import numpy as np

from aftereffect import theory
from aftereffect.bandits.adaptive_tsallis import AdaptiveTsallis, MatchedTsallis
from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.core import checks, saved
from aftereffect.core.errors import InvalidArgument, InvalidState, InvalidTotal
from aftereffect.players.lag_player import LagPlayer
from aftereffect.players.protocol import PanelRound
from aftereffect.players.rivals.ab_test import ABTest
from aftereffect.players.wrapper.advised import AdvisedWrapper
from aftereffect.players.wrapper.certificate import Certificate
from aftereffect.players.wrapper.coin_clean import CoinCleanWrapper
from aftereffect.players.wrapper.wrapper import BlockWrapper, CompositeLossWrapper

# Not isinstance: another subclass may feed its base differently, and `tell_units` would not do so.
SHARED = (CompositeLossWrapper, CoinCleanWrapper, AdvisedWrapper, ABTest, LagPlayer)
"""The players that units can share."""


class Panel:
    """`n_units` units that each play an arm and report a total every round, and share one learner.

    player: an unplayed CompositeLossWrapper or CoinCleanWrapper (`default_player` returns one), an ABTest or a
        LagPlayer. The panel uses it as its learner; do not use it elsewhere. The base of a wrapper must have averaged
        updates (`update_many`), as AdaptiveTsallis, TsallisFTRL and Exp3 have.
    n_units: M ≥ 1. A panel of one unit gives the same results, bit for bit, as the player alone.
    first_rate: η₁ of the base, if it is a MatchedTsallis, as that of the default player. By default it is that of the
        player divided by √M, because an average over M units has a variance M times smaller.

    Arms are drawn from the player's stream in the order of the units. Each unit has its own clean window. At the end of
    a block the base is updated once, with the average of the importance-weighted losses of the units whose windows are
    complete. Void windows are skipped; if all are void, the block continues.

    >>> from aftereffect import TsallisFTRL
    >>> bandit = TsallisFTRL(n_arms=2, learning_rate=2.0)
    >>> panel = Panel(CompositeLossWrapper(bandit, max_delay=1, coins=[0, 0, 1, 0], seed=7), n_units=2)
    >>> for totals in ([0.5, 0.25], [0.5, None], [0.25, 0.5]):
    ...     arms = panel.ask()
    ...     played = panel.tell(totals)
    >>> played                                   # in the second unit's window a total is missing
    PanelRound(round=3, arms=[1, 0], draw=False, update=True, fed_losses=[0.25, None], measured=2)

    Reference: Algorithm 1 of the paper, for one unit; the proof for several units is at `regret_bound`.
    """


    def __init__(self, player: Any, *, n_units: int, first_rate: float | None = None) -> None:
        if type(player) not in SHARED:
            names = ", ".join(each.__name__ for each in SHARED)
            raise InvalidArgument(f"player must be one of {names}, but got {checks.shown(player)}")
        player.share(n_units)
        self.player: BlockWrapper = player
        if isinstance(player, BlockWrapper) and isinstance(player.bandit, MatchedTsallis):
            player.set_first_rate(player.bandit.first_rate / math.sqrt(n_units) if first_rate is None else first_rate)

    @property
    def n_units(self) -> int:
        """M."""
        return self.player.n_units

    # What the panel shares with its player.
    n_arms = property(attrgetter("player.n_arms"), doc="K.")
    direction = property(attrgetter("player.direction"), doc="Whether effects are losses or rewards.")
    effects = property(attrgetter("player.effects"), doc="The range of one action's effect.")
    max_delay = property(attrgetter("player.max_delay"), doc="d, the maximal delay.")
    probabilities = property(attrgetter("player.probabilities"), doc="The distribution from which arms are drawn.")
    rounds_played = property(attrgetter("player.rounds_played"), doc="The number of completed rounds.")
    block_start = property(attrgetter("player.block_start"), doc="The first round of the latest block.")
    counts = property(attrgetter("player.counts"), doc="The counts of irregular reports, summed over all units.")
    unit_counts = property(attrgetter("player.unit_counts"), doc="The counts of irregular reports of each unit.")

    def ask(self) -> list[int]:
        """Return the arm of each unit in this round; the same until `tell`."""
        return self.player.ask_units()

    def tell(self, totals: Sequence[float | None], arms: Sequence[int] | None = None) -> PanelRound:
        """Report the total of each unit (None: missing) and end the open round.

        arms: those really played, if some were others than those asked for; only for a LagPlayer.
        In an update round the base is updated once, with the losses of the units whose windows are complete.
        """
        given: Any = totals.tolist() if isinstance(totals, np.ndarray) else totals
        # `type(given) is not list` is much faster than the check for a Sequence.
        if type(given) is not list and (isinstance(given, str | bytes) or not isinstance(given, Sequence)):
            raise InvalidTotal(f"totals must be a list, one total per unit, but got {checks.shown(given)}")
        if arms is None:
            return self.player.tell_units(given)
        if not isinstance(self.player, LagPlayer):
            rule = f"arms must be omitted for {type(self.player).__name__}"
            raise InvalidArgument(f"{rule}, but got {checks.shown(arms)}")
        return self.player.tell_units(given, arms)

    def amend(self, round: int, total: float | None, unit: int) -> None:
        """Correct a unit's total of an earlier round of the open block, or report it late."""
        self._check_blocks("amend")
        self.player.amend(round, total, unit)

    def correct(self, *, unit: int, units: int, **block: Any) -> None:
        """Correct the sum of a unit's totals that were learned from at the end of a closed block.

        The arguments are those of `CoinCleanWrapper.correct`.
        """
        self._check_blocks("correct")
        self.player.correct(unit=unit, units=units, **block)

    def _check_blocks(self, method: str) -> None:
        """Raise an error if the player has no blocks, whose totals could be corrected."""
        if not isinstance(self.player, BlockWrapper):
            more = ": it has a correct of its own" if isinstance(self.player, LagPlayer) else ""
            rule = f"player must be a wrapper to {method} a panel's totals"
            raise InvalidArgument(f"{rule}, but got {checks.shown(self.player)}{more}")

    def regret_bound(self, horizon: int) -> float:
        """Return a bound on Σ_u R^u_T, the sum of the units' expected regrets against one common arm.

        It does not bound the regret of a single unit, whose best arm may be another. For nonnegative effects,
        Bernoulli coins and no missing reports it is, in units of the range, M·min(T, B) with

            B = 2d + (2d+1)/(d+1) · (3d + 2d·p·ξ·T + 𝓡/p):

        Theorem 4 with the base's bounds for averaged updates, ξ = `stability` and 𝓡 = `shared_regret_bound`.
        It is at most M times the player's own bound.

        *Proof.* Fix a common arm i* and follow the proof of Theorem 4 for one unit u and its own losses. Up to the
        terms I and II the proof concerns only this unit's plays. Term I compares p_t with p_{t−2d}, which are common to
        the units and differ by one averaged update: it is bounded by that update's ξ. For II, whether τ is an update
        round is still determined by the coins τ−2d..τ alone, which are independent of the arm of u in round τ−2d. So
        the unit's term is E Σ_τ (ℓ^u_τ(I^u) − ℓ^u_τ(i*))/p over update rounds, where ℓ^u_τ(i) is the loss that its
        window gives for arm i. Given the past, all I^u have the same distribution q, so these terms add up to
        M·E Σ_τ ⟨q − e_{i*}, ℓ̄_τ⟩/p, where ℓ̄_τ is the average of ℓ^u_τ over units. That is M/p times the regret of a
        base with losses ℓ̄ in [0, 1], fed the average of M independent unbiased estimates: at most M·𝓡/p. ∎
        """
        M, d, player, bandit = self.n_units, self.max_delay, self.player, self.player.bandit
        alone, beta = player.regret_bound(horizon), player.update_probability
        N = theory.most_updates(d, horizon)
        # The bounds of AdaptiveTsallis, with windows or stretches, hold unchanged for averaged updates.
        if N == 0 or beta is None or isinstance(bandit, AdaptiveTsallis) or not isinstance(bandit, KernelBandit):
            return M * alone
        base = bandit.shared_regret_bound(N, M)
        bound = theory.wrapper_regret_bound(d, horizon, beta, bandit.stability(), base)
        return M * min(alone, bound * player.effects.hi)

    def certificate(self) -> Certificate:
        """Return the certificate of the sum of the units' expected regrets against one common arm.

        Every term is M times that of one player with the averaged estimates (docs/theory/adaptive.md).
        """
        return self.player.certificate()

    def fresh(self, seed: int, run: int = 0) -> Self:
        """Return an unplayed copy with the streams of (seed, run); the panel itself must be unplayed."""
        rate = getattr(getattr(self.player, "bandit", None), "first_rate", None)
        return type(self)(self.player.fresh(seed, run), n_units=self.n_units, first_rate=rate)

    def state(self) -> dict[str, Any]:
        """Return the state in plain JSON types, from which `aftereffect.restore` continues bit for bit."""
        return saved.seal(type(self).__name__, {"inside": self.player.state()})

    def unsealed(self) -> dict[str, Any]:
        """Return the state without digests, to be saved as a part of another."""
        return {"kind": type(self).__name__, "version": saved.VERSION, "inside": self.player.unsealed()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], player: BlockWrapper) -> Self:
        """Return the panel saved by `state()`; player: its player, already restored."""
        saved.unseal(state, cls.__name__, ("inside",))
        if type(player) not in SHARED:
            raise InvalidState(f"inside must be the state of a wrapper, but got that of {checks.shown(player)}")
        panel = cls.__new__(cls)
        panel.player = player
        return panel

    def __repr__(self) -> str:
        return f"Panel({self.player!r}, n_units={self.n_units})"
