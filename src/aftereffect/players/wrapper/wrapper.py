"""Algorithm 1 (Section 3): the Composite Loss Wrapper, which turns a Bandit into a Player.

    coin B_t     . . . 1 0 0 0 0 1          d = 2: an update needs a one after 2d zeros
    round        U D S S S S S U D          D draw, S stay, U update
    total seen         x x ├─────┤          the last d+1 totals hold effects of this block's arm alone

It plays one arm for a block of at least 2d+1 rounds, feeds its base the sum of the block's last d+1 totals divided by
2d+1 (at most 1, by Lemma 2), and draws the next arm. The ends of blocks are random, so that an oblivious adversary
cannot predict the first d rounds of a block, whose totals are mixed. `coins.read(t)` returns whether round t is an
update round; `tell` then ends the block if its window is complete.
"""

import copy
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Never, Self, Unpack

import numpy as np

from aftereffect import theory
from aftereffect.bandits.adaptive_tsallis import AdaptiveTsallis
from aftereffect.bandits.exp3 import Exp3
from aftereffect.bandits.kernel_bandit import KernelBandit, check_many
from aftereffect.bandits.protocol import Bandit
from aftereffect.bandits.tsallis import TsallisFTRL
from aftereffect.core import checks, effects, random, saved
from aftereffect.core.errors import AftereffectWarning, InvalidArgument, InvalidState, OutOfTurn
from aftereffect.core.kernel import WordState
from aftereffect.players.base import OWNERS, PAST, BanditPlayer, draw_arm, feed, load
from aftereffect.players.limits import Common, limits_of
from aftereffect.players.protocol import Round
from aftereffect.players.wrapper import certificate as certificates
from aftereffect.players.wrapper.coins import DrawnCoins, make_coins, restore_coins
from aftereffect.players.wrapper.kernels import TOTALS, WrapperParams
from aftereffect.players.wrapper.windows import CleanWindow, Counts
from aftereffect.theory.sharp import FORMS


class BlockWrapper(BanditPlayer):
    """Base class of Algorithm 1 and its variants: coins, blocks, units, saved states.

    A subclass defines how many zeros an update needs, what is fed to the base, and the bounds on the regret.
    """

    # A service asks thousands of players in turn; slots keep the data of each compact in memory.
    FLAGS = ("draw_next", "drawn", "measured", "block_start")
    OWN_SAVED: tuple[str, ...] = ("arm_stream", "coins", "arms", "windows", *FLAGS)
    LATER_SAVED = ("corrections",)
    # A round is an update round if its coin is 1 and at least the QUIET · d coins before it are 0.
    QUIET: int

    def __init__(self, bandit: Bandit, *, max_delay: int, coins: Any = None, **common: Unpack[Common]) -> None:
        super().__init__(bandit, **common)
        self.max_delay = checks.integer("max_delay", max_delay, low=0)
        coins = theory.best_update_probability(max_delay) if coins is None else coins
        self.coins = make_coins(coins, self.QUIET * self.max_delay, self.seed)
        self._set_units(1)
        self._block_start = 1
        self._draw_next, self._drawn, self._measured = True, False, False
        # The price of the corrections inserted so far; the sum of those that wait for the end of the block, and their
        # step, one number per arm. None if there are none.
        self._corrections: checks.FloatArray | None = None
        OWNERS[id(bandit)] = self

    @property
    def update_probability(self) -> float | None:
        """β, or None if the coins were given."""
        return self.coins.bias if isinstance(self.coins, DrawnCoins) else None

    @property
    def counts(self) -> Counts:
        """The counts of irregular reports, summed over all units."""
        return Counts(*(sum(column) for column in zip(*self.unit_counts, strict=True)))

    @property
    def unit_counts(self) -> list[Counts]:
        """The counts of irregular reports of each unit."""
        return [window.counts for window in self._windows]

    @property
    def block_start(self) -> int:
        """The first round of the latest block that `ask` has begun."""
        return self._block_start

    @property
    def open_rounds(self) -> int | None:
        """The rounds since the last coin that is 1, less those that an update needs; None right after an update."""
        T = self.rounds_played
        if self._draw_next or self._block_start > T:
            return None
        return max(self.coins.since(T) - self.QUIET * self.max_delay, 0)

    @property
    def unheard(self) -> int:
        """The number of units whose report of the last round is missing or void; 0 if it was an update round."""
        return sum(window.unheard for window in self._windows)

    @property
    def corrections(self) -> float | None:
        """What late corrections add to the base's regret so far, a number that may be negative; None without any.

        Corrections that wait for the end of the open block count as if they were inserted now.
        """
        if self._corrections is None:
            return None
        return self._priced(copy.copy(self.bandit)) if self._corrections[1:].any() else float(self._corrections[0])

    @property
    def advice_prices(self) -> tuple[float, float] | None:
        """What advice adds to the base's regret as far as this run shows, and at most; None without an adviser."""
        return None

    def share(self, n_units: int) -> None:
        """Let `n_units` units share this player, which must be unplayed.

        Each unit has its own arm and its own window; all update the same base. Afterwards use `ask_units` and
        `tell_units`, as `Panel` does.
        """
        check_many(self.bandit)
        super().share(n_units)

    def set_first_rate(self, first_rate: float) -> None:
        """Give the base, an unplayed AdaptiveTsallis, another initial rate."""
        bandit: Any = self.bandit
        OWNERS.pop(id(bandit), None)
        self.bandit = self.inside = type(bandit)(bandit.n_arms, **(bandit.settings | {"first_rate": first_rate}))
        OWNERS[id(self.bandit)] = self

    def _set_units(self, n_units: int) -> None:
        """Create a window and an arm for each unit."""
        self._windows = [self._new_window() for _ in range(n_units)]
        self._arms = [0] * n_units

    def _new_window(self) -> CleanWindow:
        raise NotImplementedError

    def learn(self, arms: list[int], losses: list[float], gap: int) -> None:
        """Feed the base the losses of the windows that end now; gap: rounds since the previous coin that is 1."""
        raise NotImplementedError

    def regret_bound(self, horizon: int, form: str = "printed") -> float:
        """Return a bound on the expected regret after `horizon` rounds, in units of the losses."""
        raise NotImplementedError

    def prices(self) -> certificates.Prices:
        """Return the factors of the terms of a certificate."""
        raise NotImplementedError

    def certified_base(self) -> tuple[AdaptiveTsallis, float]:
        """Return the base and β; raise an error if there is no certificate for them."""
        bandit: Any = self.bandit
        if not isinstance(bandit, AdaptiveTsallis):
            raise InvalidArgument(
                "bandit must be an AdaptiveTsallis for a certificate, which is computed from its costs, "
                f"but got {bandit!r}"
            )
        if self.update_probability is None:
            raise InvalidArgument(
                "coins must be a bias for a certificate, but got a given sequence, on which the losses may depend"
            )
        return bandit, self.update_probability

    def ask(self) -> int:
        """Return the arm to play in this round; the same until `tell`."""
        if self._open:
            return self._arms[0]
        t, draw = self._round + 1, self._draw_next
        if draw:
            if self.tuned_horizon is not None and self._round >= PAST * self.tuned_horizon:
                text = f"player is tuned for {self.tuned_horizon} rounds, but has played {PAST} times as many"
                warnings.warn(text, AftereffectWarning, stacklevel=2)
            # Draw from a copy of the stream, so that an error from the bandit or the coins changes nothing.
            ahead = self._arm_words()
            arms = self._drawn_arms(ahead)
            self._measured = self.coins.read(t)
            self._arms, self._arm_stream = arms, ahead
            self._block_start = t
            self._draw_next = False
        else:
            self._measured = self.coins.read(t)
        self._drawn, self._round = draw, t
        self._open = True
        return self._arms[0]

    def _drawn_arms(self, stream: WordState) -> list[int]:
        """Draw an arm for each unit."""
        return [draw_arm(self.bandit, stream) for _ in self._windows]

    def tell(self, total: float | None, *extra: Never) -> Round:
        """Report the total of the open round (None: missing) and end the round."""
        if extra or self._measured or not self._open or len(self._arms) != 1:
            return super().tell(total, *extra)
        # As `_tell_all`, but faster.
        window = self._windows[0]
        value, counts = window.read(total)
        window.put(self._round, value, counts)
        self._open = False
        return Round(self._round, self._arms[0], self._drawn, False, None)

    def _tell_all(self, totals: Sequence[float | None], fed: list[float | None]) -> int:
        """End the round of all units; in an update round the base learns from the units whose windows are not void."""
        t, gap = self._round, self.coins.gap if self._measured else 0
        told: list[tuple[float | None, Counts]] = []
        for window, total in zip(self._windows, totals, strict=True):
            value, counts = window.read(total)
            loss = None
            if self._measured:
                loss, counts = window.feed(t, value, counts, gap)
            told.append((value, counts))
            fed.append(loss)
        heard = [(arm, loss) for arm, loss in zip(self._arms, fed, strict=True) if loss is not None]
        if heard:
            self.learn([arm for arm, _ in heard], [loss for _, loss in heard], gap)
            self._draw_next = True
            if self._corrections is not None:
                self._insert()
        for window, (value, counts) in zip(self._windows, told, strict=True):
            window.put(t, value, counts)
            # Also if the window is void: no later window contains rounds up to this one.
            if self._measured:
                window.begin(t + 1)
        self._open = False
        return self._windows[0].rounds(gap) if heard else 0

    def amend(self, round: int, total: float | None, unit: int = 0) -> None:
        """Correct the total of an earlier round of the open block, or report it late."""
        window = self._windows[checks.integer("unit", unit, low=0, high=len(self._windows) - 1)]
        round = checks.integer("round", round, low=1)
        if round > self.rounds_played:
            raise OutOfTurn(f"round must have been reported before it is amended, but got {round}")
        if self._learned_from(round):
            raise OutOfTurn(
                f"round must be in the open block, but the block of round {round} has been closed and learned from"
            )
        value, counts = window.read(total)
        window.put(round, value, counts._replace(amended=counts.amended + 1))

    def _learned_from(self, round: int) -> bool:
        """Return whether the block of an earlier round has been closed."""
        return round < self._block_start or self._draw_next

    def correct(
        self, *, arm: int, probability: float, measured: int, was: float, now: float, unit: int = 0, units: int = 1
    ) -> None:
        """Correct the sum of the totals that were learned from at the end of a closed block.

        arm, probability: the arm of the block, and the probability with which it was drawn. measured: how many totals
        the sum has; d+1 for the paper's windows. was, now: the sum, as known before and after the correction. unit:
        whose block. units: the number of units whose losses were fed at the end of the block.

        The estimated loss of the arm changes by the change of the loss divided by the probability, at once if no block
        is open, else at the end of the open block. So the estimates are unbiased again. What the late correction has
        cost by then is the term "corrections" of the certificate (docs/theory/inserted_steps.md).
        """
        bandit: Any = self.bandit
        if not isinstance(bandit, AdaptiveTsallis):
            raise InvalidArgument(
                f"bandit must be an AdaptiveTsallis for a correction after the end of a block, but got {bandit!r}"
            )
        window = self._windows[checks.integer("unit", unit, low=0, high=len(self._windows) - 1)]
        arm = checks.integer("arm", arm, low=0, high=self.n_arms - 1)
        # A smaller probability than any draw has; the change of the estimate must be finite.
        probability = checks.real("probability", probability, low=1e-100, high=1.0)
        units = checks.integer("units", units, low=1, high=len(self._windows))
        if not bandit.updates:
            raise OutOfTurn("a block must have been closed to be corrected, but none has been")
        measured = checks.integer("measured", measured, low=1, high=self.rounds_played)
        if window.rounds(measured + self.max_delay) != measured:
            raise InvalidArgument(f"measured must be max_delay + 1 = {self.max_delay + 1}, but got {measured}")
        change, counts = window.change(measured, was, now)
        if self._corrections is None:
            self._corrections = np.zeros(2 + self.n_arms)
        self._corrections[1] += change / units
        self._corrections[2 + arm] += change / units / probability
        window.counts = counts._replace(amended=counts.amended + 1)
        if self._draw_next:
            self._insert()

    def _insert(self) -> None:
        """Add the corrections that wait to the estimated losses, and their price to that of the earlier ones."""
        waiting: Any = self._corrections
        if waiting[1:].any():
            waiting[0] = self._priced(self.bandit)
            waiting[1:] = 0.0

    def _priced(self, bandit: Any) -> float:
        """Insert the corrections that wait into a base, and return the price of all so far."""
        price, change, *step = np.asarray(self._corrections).tolist()
        bandit.insert(step)
        price += change
        # Not by `sum`, whose rounding depends on the version of Python.
        for g, q in zip(step, bandit.probabilities.tolist(), strict=True):
            price -= g * q
        return float(price)

    def certificate(self) -> certificates.Certificate:
        """Return the certificate of the expected regret so far; the base must be an AdaptiveTsallis."""
        return certificates.make(self, self.prices())

    @classmethod
    def _made(cls, inside: Any, settings: Mapping[str, Any], seed: int) -> Self:
        # The caller replaces the coins; an empty sequence needs no stream.
        return cls(inside, **settings, coins=(), seed=seed)

    def _begin_run(self, template: Self, seed: int, run: int) -> None:
        super()._begin_run(template, seed, run)
        self.coins = template.coins.fresh(random.stream(seed, run, random.COINS))
        self._set_units(len(template._windows))

    def _saved(self) -> dict[str, Any]:
        late = {} if self._corrections is None else {"corrections": self._corrections.tolist()}
        return super()._saved() | late | {
            "coins": self.coins.state(),
            "arms": self._arms.copy(),
            "windows": [window.state() for window in self._windows],
            **{name: getattr(self, f"_{name}") for name in self.FLAGS},
        }

    def _resume(self, fields: Mapping[str, Any]) -> None:
        super()._resume(fields)
        load(self, self.FLAGS, fields)
        self.coins = restore_coins(fields["coins"], self.QUIET * self.max_delay, self._round)
        arms, windows = self._valid_arms(fields["arms"]), fields["windows"]
        if not isinstance(windows, list) or len(arms) != len(windows):
            raise InvalidState(
                "arms and windows must be lists, one entry per unit, "
                f"but got {checks.shown(arms)} and {checks.shown(windows)}"
            )
        if "corrections" in fields:
            self._corrections = saved.numbers("corrections", fields["corrections"], 2 + self.n_arms)
        self._set_units(len(arms))
        self._arms = arms
        for window, kept in zip(self._windows, windows, strict=True):
            window.resume(kept)

    def __repr__(self) -> str:
        coins = "given" if self.update_probability is None else repr(self.update_probability)
        return super().__repr__().replace(", seed=", f", coins={coins}, seed=")


class CompositeLossWrapper(BlockWrapper):
    """Algorithm 1: plays `bandit` under d-delayed composite anonymous feedback.

    bandit: the base algorithm A, any object with the Bandit attributes. The wrapper updates it; do not use it
        elsewhere.
    max_delay: d ≥ 0, how many rounds after its own an action's effect can still arrive.
    coins: the Boolean sequence B: a bias β in (0, 1] for Bernoulli coins (required by Theorem 4), or a sequence of
        bools. The default is β = 1/(2d+1), which maximises the rate of updates.
    seed: the seed of the random streams for coins and arms; None takes one from the operating system.
    direction, low, high: "minimize" losses or "maximize" rewards; bounds on the whole effect of one action. With
        lo = min(low, 0) and hi = max(high, 0), every contiguous part of one action's effect must lie in [lo, hi].
    out_of_range: what to do with a total or a clean window that is impossible for this range: "raise" an error and
        change nothing, treat it as missing ("void"), or "clip" it; "void" and "clip" are counted in `counts`.

    >>> from aftereffect.bandits.tsallis import TsallisFTRL
    >>> player = CompositeLossWrapper(TsallisFTRL(n_arms=2, learning_rate=2.0), max_delay=1, coins=[0, 0, 1, 0], seed=7)
    >>> for total in (0.5, 0.5, 0.25):
    ...     arm = player.ask()
    ...     played = player.tell(total)
    >>> played                                   # fed (0.5 + 0.25)/3: the last d+1 totals, divided by 2d+1
    Round(round=3, arm=1, draw=False, update=True, fed_loss=0.25)

    Reference: Algorithm 1, Definition 1 and Theorem 4 of the paper.
    """

    QUIET = 2

    @classmethod
    def tuned(
        cls,
        n_arms: int,
        *,
        max_delay: int,
        horizon: int,
        base: str = "tsallis",
        form: str = "printed",
        **common: Unpack[Common],
    ) -> Self:
        """Return the player with the base at the rate for this horizon.

        base="tsallis" is Corollary 7; base="exp3" takes the rate that minimises Theorem 4. Both take β = 1/(2d+1),
        which maximises the rate of updates. form="sharp" takes the β and the rate that minimise the bounds of
        docs/theory/sharper.md. For horizon < 2d+1 there are no updates: all arms are equally likely.
        """
        checks.choice("base", base, ("tsallis", "exp3"))
        checks.choice("form", form, FORMS)
        beta = theory.best_update_probability(max_delay)
        if form == "sharp":
            best = theory.tsallis_tuning_sharp if base == "tsallis" else theory.exp3_tuning_sharp
            beta, eta, _ = best(n_arms, max_delay, horizon, common.get("direction", "minimize"))
        elif base == "tsallis":
            eta = theory.corollary_learning_rate(max_delay, horizon)
        else:
            eta = theory.exp3_learning_rate(n_arms, max_delay, horizon)
        bandit = (TsallisFTRL if base == "tsallis" else Exp3)(n_arms, learning_rate=eta)
        player = cls(bandit, max_delay=max_delay, coins=beta, **common)
        player.tuned_horizon = horizon
        return player

    def _new_window(self) -> CleanWindow:
        return CleanWindow(self.effects, self.max_delay, self.out_of_range)

    def learn(self, arms: list[int], losses: list[float], gap: int) -> None:
        """Feed the base the losses of the windows that end now; gap: rounds since the previous coin that is 1."""
        feed(self.bandit, arms, losses)

    def regret_bound(self, horizon: int, form: str = "printed") -> float:
        """Return min(Theorem 4, T) times the range, for effects that are never negative and Bernoulli coins.

        form="sharp" gives the smaller constants of docs/theory/sharper.md.
        """
        bandit: Any = self.bandit
        d, beta, span = self.max_delay, self.update_probability, self.effects
        T = checks.integer("horizon", horizon, low=1)
        checks.choice("form", form, FORMS)
        if beta is None:
            raise InvalidArgument("coins must be a bias for Theorem 4 to hold, but got a given sequence")
        if span.lo < 0.0:
            raise InvalidArgument(f"low must be at least 0 for Theorem 4 to hold, but got {span.lo!r}")
        if not (hasattr(bandit, "stability") and hasattr(bandit, "regret_bound")):
            raise InvalidArgument(f"bandit must have stability() and regret_bound(n) for a bound, but got {bandit!r}")
        updates = theory.most_updates(d, T)
        if updates == 0:
            return T * span.hi
        if isinstance(bandit, AdaptiveTsallis):
            # Its bound has only one form; it bounds the total movement of the distribution, not that of each update.
            bound = self.worst_case(T)
        elif form == "sharp":
            bound = certificates.sharp_bound(bandit, d, beta, span.maximize, T)
        else:
            bound = theory.wrapper_regret_bound(d, T, beta, bandit.stability(), bandit.regret_bound(updates))
        return min(bound, T) * span.hi

    def worst_case(self, horizon: int) -> float:
        """Return a bound on R_T in units of hi − lo, which may exceed T; the base must be an AdaptiveTsallis."""
        bandit, beta = self.certified_base()
        if theory.most_updates(self.max_delay, horizon) == 0:
            return float(horizon)
        d = self.max_delay
        bound = theory.window_worst_case(self.n_arms, d, horizon, beta, bandit.first_rate, bandit.growth)
        # The factor may be infinite.
        factor = theory.sharp_terms(d, 2 * d + 1, beta).per_regret
        return bound + factor * bandit.prior_price if bandit.prior_price else bound

    def prices(self) -> certificates.Prices:
        """Return the factors of the terms of a certificate (docs/theory/sharper.md)."""
        _, beta = self.certified_base()
        d, T = self.max_delay, self.rounds_played
        ends, moved, regret = theory.sharp_terms(d, 2 * d + 1, beta)
        stopping = ends + theory.stopping_price(d, beta, self.open_rounds, windows=True)
        return certificates.Prices(min(ends, T), moved, regret, 0.0, regret, self.worst_case(max(T, 1)), stopping)

    def kernel(self) -> Any:
        """Return the player in kernel form, or None if its base has no kernel form."""
        if not isinstance(self.bandit, KernelBandit):
            return None
        d = self.max_delay
        limits = limits_of(self.effects, d + 1, self.out_of_range)
        bounds = effects.stretch_bounds(self.effects, d, d + 1)
        return WrapperParams(self.bandit.params, TOTALS + d + 1, self.coins.kernel(), d, limits, bounds)
