"""A panel: many units, one learner, under Algorithm 1 (Section 3) with coins that all units share.

    coin B_t      . . . 1 0 0 0 0 1          d = 2, as in wrapper.py
    round         U D S S S S S U D          the same for every unit
    unit 0 plays  2 0 0 0 0 0 0 0 1          each unit draws its own arm, all from one distribution q
    unit 1 plays  1 2 2 2 2 2 2 2 0
    update        ^             ^            one a block, with the average of the units' estimates

Regions, shops or segments, alike enough for one arm to be good for all, teach one base algorithm. All change
arms in the same rounds, so that every arm was drawn from the distribution that its loss is weighted by.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from aftereffect import theory
from aftereffect.bandits.adaptive_tsallis import AdaptiveTsallis
from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.core import checks, saved
from aftereffect.core.errors import InvalidArgument, InvalidState, InvalidTotal
from aftereffect.players.protocol import PanelRound
from aftereffect.players.wrapper.certificate import Certificate
from aftereffect.players.wrapper.coin_clean import CoinCleanWrapper
from aftereffect.players.wrapper.windows import Counts
from aftereffect.players.wrapper.wrapper import BlockWrapper, CompositeLossWrapper


class Panel:
    """`n_units` units that each play an arm and report a total every round, and share one learner.

    player: an unplayed CompositeLossWrapper or CoinCleanWrapper (`default_player` returns one); from now on it
        is the panel's, as its clock and first unit. Its base must have averaged updates (`update_many`), as
        AdaptiveTsallis, TsallisFTRL and Exp3 do.
    n_units: M ≥ 1. One unit plays bit for bit as the player alone.

    Arms are drawn from the player's stream in the order of the units. Each unit has its own clean window. At
    the end of a block the base learns once, from the average of the importance-weighted losses of those units
    whose window is whole. Void windows are left out; where all are void the block goes on.

    >>> from aftereffect import TsallisFTRL
    >>> bandit = TsallisFTRL(n_arms=2, learning_rate=2.0)
    >>> panel = Panel(CompositeLossWrapper(bandit, max_delay=1, coins=[0, 0, 1, 0], seed=7), n_units=2)
    >>> for totals in ([0.5, 0.25], [0.5, None], [0.25, 0.5]):
    ...     arms = panel.ask()
    ...     played = panel.tell(totals)
    >>> played                                   # the second unit's window has a gap
    PanelRound(round=3, arms=[1, 0], draw=False, update=True, fed_losses=[0.25, None], measured=2)

    Reference: Algorithm 1 of the paper, which knows one unit only; `regret_bound` has the proof for many.
    """

    __slots__ = ("player",)

    def __init__(self, player: BlockWrapper, *, n_units: int) -> None:
        # Not any subclass: it may feed its base in its own way, which would be passed over here.
        if type(player) not in (CompositeLossWrapper, CoinCleanWrapper):
            raise InvalidArgument(
                f"player must be a CompositeLossWrapper or a CoinCleanWrapper, but got {checks.shown(player)}"
            )
        player.share(n_units)
        self.player = player

    @property
    def n_units(self) -> int:
        """M."""
        return self.player.n_units

    @property
    def n_arms(self) -> int:
        """K."""
        return self.player.n_arms

    @property
    def max_delay(self) -> int:
        """Return d, the longest delay the panel reckons with."""
        return self.player.max_delay

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The one distribution the current block's arms were drawn from, or the next will be."""
        return self.player.probabilities

    @property
    def rounds_played(self) -> int:
        """How many rounds have been told."""
        return self.player.rounds_played

    @property
    def block_start(self) -> int:
        """The first round of the current block, the one `ask` began latest."""
        return self.player.block_start

    @property
    def counts(self) -> Counts:
        """What did not go as it should, over all units."""
        return self.player.counts

    @property
    def unit_counts(self) -> list[Counts]:
        """What did not go as it should, unit by unit."""
        return self.player.unit_counts

    def ask(self) -> list[int]:
        """Return the arm each unit is to play in this round; the same until `tell`."""
        return self.player.ask_units()

    def tell(self, totals: Sequence[float | None]) -> PanelRound:
        """Report each unit's total of the round `ask` opened (None: missing) and end it.

        On an update round the base is fed once, with the units whose windows hold d+1 totals.
        """
        given: Any = totals.tolist() if isinstance(totals, np.ndarray) else totals
        # A list, as it nearly always is, is recognised much faster than a sequence.
        if type(given) is not list and (isinstance(given, str | bytes) or not isinstance(given, Sequence)):
            raise InvalidTotal(f"totals must be a list, one total per unit, but got {checks.shown(given)}")
        if len(given) != self.n_units:
            shown = checks.shown(given)
            raise InvalidTotal(f"totals must be {self.n_units}, one per unit, but got {len(given)}: {shown}")
        return self.player.tell_units(given)

    def amend(self, unit: int, round: int, total: float | None) -> None:
        """Correct a unit's total of an earlier round, or report it late, while its block is open."""
        self.player.amend(round, total, unit)

    def regret_bound(self, horizon: int) -> float:
        """Return a bound on Σ_u R^u_T, the units' expected regrets added up, all against one common arm.

        It says nothing about a single unit, whose own best arm may be another. For effects that are never
        negative, Bernoulli coins and no report missing it is, times the range, M·min(T, B) with

            B = 2d + (2d+1)/(d+1) · (3d + 2d·p·ξ·T + 𝓡/p):

        Theorem 4 with the base's bounds for averaged updates, ξ = `stability` and 𝓡 = `shared_regret_bound`.
        It is at most M times the player's own bound.

        *Proof.* Fix a common arm i* and follow the proof of Theorem 4 for one unit u and its own losses. Up
        to the terms I and II it speaks of this unit's plays alone. Term I compares p_t with p_{t−2d}, which
        the units share and which differ by one averaged update: it is bounded by that update's ξ. For II,
        whether τ is an update round is still decided by the coins τ−2d..τ alone, which are independent of
        the arm of u in round τ−2d. So the unit's term is E Σ_τ (ℓ^u_τ(I^u) − ℓ^u_τ(i*))/p over update
        rounds, ℓ^u_τ(i) being what its window feeds for arm i. Given the past all I^u come from the same q,
        so these terms add up to M·E Σ_τ ⟨q − e_{i*}, ℓ̄_τ⟩/p, with ℓ̄_τ the average of ℓ^u_τ over units.
        That is M/p times the regret of a base with losses ℓ̄ in [0, 1], fed the average of M independent
        unbiased estimates: at most M·𝓡/p. ∎
        """
        M, d, player, bandit = self.n_units, self.max_delay, self.player, self.player.bandit
        alone, beta = player.regret_bound(horizon), player.update_probability
        N = theory.most_updates(d, horizon)
        # What is proved of AdaptiveTsallis, with windows or stretches, is proved of averages too, as it stands.
        averaged = isinstance(bandit, AdaptiveTsallis)
        if N == 0 or beta is None or averaged or not isinstance(bandit, KernelBandit):
            return M * alone
        base = bandit.shared_regret_bound(N, M)
        bound = theory.wrapper_regret_bound(d, horizon, beta, bandit.stability(), base)
        return M * min(alone, bound * player.effects.hi)

    def certificate(self) -> Certificate:
        """Return what can be said of the units' regrets added up, on average, all against one common arm.

        Every term is that of a player with the averaged estimates, times M (docs/theory/adaptive.md).
        """
        return self.player.certificate()

    def fresh(self, seed: int, run: int = 0) -> Self:
        """Return an unplayed copy with the streams of (seed, run); only an unplayed panel has one."""
        return type(self)(self.player.fresh(seed, run), n_units=self.n_units)

    def state(self) -> dict[str, Any]:
        """Return all there is to know, in plain JSON types; `aftereffect.restore` goes on bit for bit."""
        return saved.seal(type(self).__name__, {"inside": self.player.state()})

    @classmethod
    def from_state(cls, state: Mapping[str, Any], player: BlockWrapper) -> Self:
        """Return the panel that `state()` described, around a player that has been restored already."""
        saved.unseal(state, cls.__name__, ("inside",))
        if type(player) not in (CompositeLossWrapper, CoinCleanWrapper):
            raise InvalidState(f"inside must be the state of a wrapper, but got that of {checks.shown(player)}")
        panel = cls.__new__(cls)
        panel.player = player
        return panel

    def __repr__(self) -> str:
        return f"Panel({self.player!r}, n_units={self.n_units})"
