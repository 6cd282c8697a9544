"""Algorithm 1 (Section 3): the Composite Loss Wrapper, which turns a Bandit into a Player.

    coin B_t     . . . 1 0 0 0 0 1          d = 2: an update needs a one after 2d zeros
    round        U D S S S S S U D          D draw, S stay, U update
    total seen         x x ├─────┤          the last d+1 totals hold effects of this block's arm alone

It plays one arm for a block of at least 2d+1 rounds, feeds its base the sum of the block's last d+1 totals
over 2d+1 (at most 1, by Lemma 2), and draws the next arm. Block ends are random, so that an oblivious
adversary cannot aim at the first d rounds of a block, whose totals are mixed.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from aftereffect import theory
from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.bandits.protocol import Bandit
from aftereffect.core import checks, effects, random, saved
from aftereffect.core.errors import InvalidArgument, OutOfTurn
from aftereffect.players import base
from aftereffect.players.protocol import Round
from aftereffect.players.wrapper import certificate as certificates
from aftereffect.players.wrapper.coins import DrawnCoins, make_coins, restore_coins
from aftereffect.players.wrapper.kernels import WrapperParams
from aftereffect.players.wrapper.windows import OUT_OF_RANGE, CleanWindow, Counts

SETTINGS = ("max_delay", "direction", "low", "high", "out_of_range")
PLACE = ("round", "open", "draw_next", "drawn", "measured", "arm", "block_start")
# A saved player's fields.
FIELDS = (*SETTINGS, "seed", "bandit", "coins", "arm_stream", "window", *PLACE)


class CompositeLossWrapper:
    """Algorithm 1: plays `bandit` under d-delayed composite anonymous feedback.

    bandit: the base algorithm A, any object with the Bandit attributes; from now on it belongs to the wrapper.
    max_delay: d ≥ 0, how many rounds after its own an action's effect can still arrive.
    coins: the Boolean sequence B: a bias β in (0, 1] for Bernoulli coins (Theorem 4 asks for these), or an
        iterable of bools.
    seed: of the random streams for coins and arms; None takes one from the operating system.
    direction, low, high: "minimize" losses or "maximize" rewards; the least and most one action can
        do in all. With lo = min(low, 0) and hi = max(high, 0), every contiguous part of one action's effect
        must lie in [lo, hi].
    out_of_range: what to do with a total, or a clean window, that the range makes impossible: "raise" an
        error and change nothing, take it as "void" (as if missing), or "clip" it; the latter two are counted.

    >>> from aftereffect.bandits.tsallis import TsallisFTRL
    >>> player = CompositeLossWrapper(TsallisFTRL(n_arms=2, learning_rate=2.0), max_delay=1, coins=[0, 0, 1, 0], seed=7)
    >>> for total in (0.5, 0.5, 0.25):
    ...     arm = player.ask()
    ...     played = player.tell(total)
    >>> played                                   # fed (0.5 + 0.25)/3: the last d+1 totals over 2d+1
    Round(round=3, arm=1, draw=False, update=True, fed_loss=0.25)

    Reference: Algorithm 1, Definition 1 and Theorem 4 of the paper.
    """

    # A service holds thousands of players, and asks each in turn: what they consist of is kept close together.
    __slots__ = (
        *("bandit", "coins", "direction", "effects", "high", "low", "seed"),
        *("_arm", "_arm_stream", "_block_start", "_draw_next", "_drawn", "_max_delay", "_measured"),
        *("_open", "_round", "_window"),
    )

    def __init__(
        self,
        bandit: Bandit,
        *,
        max_delay: int,
        coins: Any,
        seed: int | None = None,
        direction: str = "minimize",
        low: float = 0.0,
        high: float = 1.0,
        out_of_range: str = "raise",
    ) -> None:
        """Start before round 1."""
        self.bandit = base.checked_bandit(bandit)
        self._max_delay = checks.integer("max_delay", max_delay, low=0)
        self.effects = effects.effects(direction, low, high)
        self.direction, self.low, self.high = direction, float(low), float(high)
        self._window = self._new_window(out_of_range)
        self.seed = random.checked_seed("seed", seed)
        self.coins = make_coins(coins, self._quiet(), random.stream(self.seed, 0, random.COINS))
        self._arm_stream = random.stream(self.seed, 0, random.ARMS)
        self._round, self._open = 0, False  # rounds begun; asked, not yet told
        self._arm, self._block_start = 0, 1
        self._draw_next, self._drawn, self._measured = True, False, False

    @classmethod
    def tuned(
        cls,
        *,
        n_arms: int,
        max_delay: int,
        horizon: int,
        base: str = "tsallis",
        form: str = "printed",
        seed: int | None = None,
        direction: str = "minimize",
        low: float = 0.0,
        high: float = 1.0,
        out_of_range: str = "raise",
    ) -> Self:
        """Return the player of Corollary 7 (base="tsallis"), or the same with Exp3 at the rate that minimises
        Theorem 4; with form="sharp", the rates that minimise the bounds of docs/theory/sharper.md.

        β = 1/(2d+1) maximises the rate of updates. For horizon < 2d+1 no update can happen: play is uniform.
        """
        bandit, coins = certificates.tuned_base(base, n_arms, max_delay, horizon, form, direction)
        ends: dict[str, Any] = {"direction": direction, "low": low, "high": high, "out_of_range": out_of_range}
        return cls(bandit, max_delay=max_delay, coins=coins, seed=seed, **ends)

    def _quiet(self) -> int:
        """How many zeros before a one make an update round."""
        return 2 * self._max_delay

    def _new_window(self, out_of_range: str) -> CleanWindow:
        return CleanWindow(self.effects, self._max_delay, out_of_range)

    @property
    def n_arms(self) -> int:
        """K."""
        return self.bandit.n_arms

    @property
    def max_delay(self) -> int:
        """Return d, the longest delay the player reckons with."""
        return self._max_delay

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """p_t: the distribution the current block's arm was drawn from, or the next will be."""
        return np.array(self.bandit.probabilities, dtype=np.float64)

    @property
    def update_probability(self) -> float | None:
        """β, or None if the coins were given."""
        return self.coins.bias if isinstance(self.coins, DrawnCoins) else None

    @property
    def counts(self) -> Counts:
        """What did not go as it should."""
        return self._window.counts

    @property
    def out_of_range(self) -> str:
        """What is done with an impossible total: "raise", "void" or "clip"."""
        return self._window.out_of_range

    @property
    def rounds_played(self) -> int:
        """How many rounds have been told."""
        return self._round - self._open

    def ask(self) -> int:
        """Return the arm to play in this round; the same until `tell`."""
        if self._open:
            return self._arm
        if self._draw_next:
            # The stream moves only once all is well: a bad distribution or the end of the coins changes nothing.
            ahead = self._arm_stream.copy()
            arm = base.draw_arm(self.bandit, ahead)
            self._measured = self.coins.read(self._round + 1)
            self._arm, self._arm_stream = arm, ahead
            self._block_start = self._round + 1
        else:
            self._measured = self.coins.read(self._round + 1)
        self._drawn, self._draw_next = self._draw_next, False
        self._round += 1
        self._open = True
        return self._arm

    def tell(self, total: float | None) -> Round:
        """Report the total of the round `ask` opened (None: missing) and end it.

        On an update round whose window holds d+1 totals, the base is fed their sum over 2d+1, scaled to [0, 1].
        """
        if not self._open:
            raise OutOfTurn("tell must follow ask, but no round is open")
        t = self._round
        value, counts = self._window.read(total)
        fed = None
        if self._measured:
            gap = self.coins.gap
            fed, counts = self._window.feed(t, value, counts, gap)
            if fed is not None:
                self.learn([self._arm], [fed], gap)
                self._draw_next = True
        self._window.put(t, value, counts)
        if self._measured:
            # Also where it is void: no later window reaches back across an update round.
            self._window.begin(t + 1)
        self._open = False
        return Round(t, self._arm, self._drawn, fed is not None, fed)

    def learn(self, arms: list[int], losses: list[float], gap: int) -> None:
        """Feed the base the losses of windows that end now, `gap` rounds after the latest one; a panel has many."""
        base.feed_all(self.bandit, arms, losses)

    def amend(self, round: int, total: float | None) -> None:
        """Correct the total of an earlier round, or report it late, while its block is open."""
        round = checks.integer("round", round, low=1)
        if round > self.rounds_played:
            raise OutOfTurn(f"round must have been reported before it is amended, but got {round}")
        if round < self._block_start or self._draw_next:
            raise OutOfTurn(
                f"round must be in the open block, but the block of round {round} has been closed and learned from"
            )
        value, counts = self._window.read(total)
        counts = counts._replace(amended=counts.amended + 1)
        # One that is out of every window to come is only noted.
        if self._window.holds(round, self.rounds_played):
            self._window.put(round, value, counts)
        else:
            self._window.counts = counts

    def regret_bound(self, horizon: int, form: str = "printed") -> float:
        """Return min(Theorem 4, T) times the range, for effects that are never negative and Bernoulli coins.

        form="sharp" gives the smaller constants of docs/theory/sharper.md.
        """
        beta = self.update_probability
        return certificates.regret_bound(self.bandit, self._max_delay, beta, self.effects, horizon, form)

    def worst_case(self, horizon: int) -> float:
        """Return a bound on R_T, in units of the range and not cut at T, for a base that keeps account of its costs."""
        bandit, beta = certificates.certified_base(self)
        if theory.most_updates(self._max_delay, horizon) == 0:
            return float(horizon)
        return theory.window_worst_case(self.n_arms, self._max_delay, horizon, beta, bandit.first_rate)

    def certificate(self) -> certificates.Certificate:
        """Return what can be said of the regret so far, on average (certificate.py); needs AdaptiveTsallis as base."""
        return certificates.make(self, self.prices(), [self.counts])

    def prices(self) -> certificates.Prices:
        """Return what each part of a certificate counts for (docs/theory/sharper.md)."""
        _, beta = certificates.certified_base(self)
        d, T = self._max_delay, self.rounds_played
        ends, moved, regret = theory.sharp_terms(d, 2 * d + 1, beta)
        return certificates.Prices(min(ends, T), moved, regret, 0.0, 2.0 * d + 1.0, self.worst_case(max(T, 1)))

    def measured_rounds(self, gap: int) -> int:
        """Return over how many rounds totals are added up at the end of a block, `gap` after the one before."""
        return self._max_delay + 1

    def kernel(self) -> WrapperParams | None:
        """Return the player in kernel form, None if its base has no such form."""
        if not isinstance(self.bandit, KernelBandit):
            return None
        d, span = self._max_delay, self.effects
        bounds = effects.total_bounds(span, d), effects.window_bounds(span, d)
        policy = OUT_OF_RANGE.index(self._window.out_of_range)
        return WrapperParams(self.bandit.params, self.coins.kernel(), d, span, *bounds, policy)

    def fresh(self, seed: int, run: int = 0) -> Self:
        """Return an unplayed copy with the streams of (seed, run); only an unplayed player has one."""
        if self._round:
            raise InvalidArgument(f"player must be unplayed to be copied, but it is in round {self._round}")
        seed, run = checks.integer("seed", seed, low=0), checks.integer("run", run, low=0)
        twin = type(self)(base.unplayed_copy(self.bandit), coins=1.0, seed=seed, **self._settings())
        twin.coins = self.coins.fresh(random.stream(seed, run, random.COINS))
        twin._arm_stream = random.stream(seed, run, random.ARMS)
        return twin

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in SETTINGS}

    def state(self) -> dict[str, Any]:
        """Return all there is to know, in plain JSON types; `aftereffect.restore` goes on from it bit for bit."""
        fields = self._settings() | {
            "seed": f"{self.seed:x}",
            "bandit": base.bandit_state(self.bandit),
            "coins": self.coins.state(),
            "arm_stream": saved.words_to_hex(self._arm_stream),
            "window": self._window.state(),
        }
        return saved.seal(type(self).__name__, fields | base.dump(self, PLACE))

    @classmethod
    def from_state(cls, state: Mapping[str, Any], bandit: Bandit) -> Self:
        """Return the player that `state()` described, around a base that has been restored already."""
        fields = saved.unseal(state, cls.__name__, FIELDS)
        settings = {name: fields[name] for name in SETTINGS}
        player = cls(bandit, coins=1.0, seed=saved.whole_number("seed", fields["seed"]), **settings)
        base.load(player, PLACE, fields)
        player._arm_stream = saved.hex_to_words("arm_stream", fields["arm_stream"], 4)
        player.coins = restore_coins(fields["coins"], player._quiet(), player._round)
        player._window.resume(fields["window"])
        return player

    def __repr__(self) -> str:
        """Show the base inside."""
        shown = "given" if self.update_probability is None else repr(self.update_probability)
        ranged = base.shown_range(self.direction, self.low, self.high)
        settings = f"max_delay={self._max_delay}, coins={shown}{ranged}, seed={self.seed}"
        return f"{type(self).__name__}({self.bandit!r}, {settings})"
