"""Algorithm 1 fed coin-clean rounds (`coin_clean.py`), which follows an adviser within a budget.

    round        O O O D S S S S S U D      O opening, D draw, S stay, U update
    adviser      h h h h h h h h h h h      hears every round
                 p p p                      plays the opening, if it knows how
                     a             a        advises after it and after an update, before the next arm is drawn

Whatever the adviser says, the worst case grows by the budget and the opening alone: with b = B₀ + c·R, where R bounds
the base's regret, to (1 + c) times the base's part plus B₀, plus one for each round of the opening
(docs/theory/advice.md).
"""

import copy
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self, Unpack

import numpy as np

from aftereffect import theory
from aftereffect.bandits import advice
from aftereffect.bandits.adaptive_tsallis import MOST, AdaptiveTsallis
from aftereffect.bandits.advice import Budget
from aftereffect.bandits.protocol import Bandit
from aftereffect.core import checks, kernel, random, saved
from aftereffect.core.errors import AftereffectError, InvalidArgument, InvalidState
from aftereffect.core.kernel import DREW, FloatState, WordState, helper
from aftereffect.core.text import amount, counted
from aftereffect.players import advisers
from aftereffect.players.advisers import Adviser, Setting
from aftereffect.players.base import AnonymousPlayer
from aftereffect.players.kernels import block_size
from aftereffect.players.limits import Common, Limits
from aftereffect.players.wrapper import certificate as certificates
from aftereffect.players.wrapper.coin_clean import CoinCleanWrapper
from aftereffect.players.wrapper.coins import DrawnCoins
from aftereffect.players.wrapper.kernels import PLACE, ROUND, CoinCleanParams

BUDGET = (8.0, 0.5)
FLOOR = 0.02
MOST_BUDGET, LONGEST = 1e100, 2**53
"""The largest budget, and the longest opening."""


class AdvisedParams(NamedTuple):
    """player: the player in kernel form. memory_at, adviser_at: where the states of the steps and the adviser begin.

    opening: n₀, how many rounds the adviser plays before the first block.
    """

    player: CoinCleanParams
    adviser: Any
    budget: Budget
    memory_at: int
    adviser_at: int
    limits: Limits
    opening: int


def advised_size(params: AdvisedParams, n_arms: int) -> int:
    """Return the length of the state."""
    return int(params.adviser_at + kernel.ADVISERS[type(params.adviser)].size(params.adviser, n_arms))


def advised_begin(params: AdvisedParams, n_arms: int, state: FloatState) -> None:
    """Write the state before round 1."""
    kernel.player_begin(params.player, n_arms, state)
    kernel.adviser_begin(params.adviser, n_arms, state[params.adviser_at :])
    # As if the last round of the opening had a coin that is 1.
    state[PLACE] = state[PLACE + 1] = params.opening
    if params.opening == 0:
        consult(params, n_arms, state)


def advised_ask(params: AdvisedParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Begin a round, in the opening as the adviser plays it."""
    if state[ROUND] >= params.opening:
        return kernel.player_ask(params.player, n_arms, state, rng)
    state[ROUND] += 1.0
    state[DREW] = 1.0
    arm = kernel.adviser_play(params.adviser, n_arms, state[params.adviser_at :], rng)
    if 0 <= arm < n_arms:
        return arm
    state[params.memory_at + 5 * n_arms + advice.FAILED] += 1.0
    base = state[params.player.base_at :]
    return kernel.bandit_draw(params.player.base, n_arms, base, random.uniform(rng[random.ARMS]))


def advised_tell(params: AdvisedParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """End a round: the player learns, the adviser hears and, if it was an update round, advises."""
    told = kernel.player_tell(params.player, n_arms, state, rng, arm, total)
    if told >= 0:
        kernel.adviser_hear(params.adviser, n_arms, state[params.adviser_at :], 0, arm, total)
    if told > 0 or (told == 0 and state[ROUND] == params.opening):
        consult(params, n_arms, state)
    return told


@helper
def consult(params: AdvisedParams, n_arms: int, state: FloatState) -> None:
    """Ask the adviser, and follow it within the budget."""
    memory = state[params.memory_at :]
    if kernel.adviser_advise(params.adviser, n_arms, state[params.adviser_at :], memory[3 * n_arms :]) == 0:
        memory[5 * n_arms + advice.SILENT] += 1.0
        return
    advice.follow(params.player.base, n_arms, state[params.player.base_at :], memory, params.budget)


kernel.register(AdvisedParams, kernel.PlayerKernel(advised_size, advised_begin, advised_ask, advised_tell))


class Advice(NamedTuple):
    """What an adviser has said, and what was made of it.

    adviser: its name. advised: the probabilities it proposed last; None if there are none yet. target: what they make
        together with what the player has learned itself. followed: the part of the way to the target that it went.
    budget, spent: how much the bound on the expected regret may grow by following advice, and has grown, if the advice
        is wrong; in the units of effects, summed over units. price: the same as far as this run shows, which may be
        negative (the term "advice" of a certificate).
    given, cut, silent, failed: how often advice was followed wholly or in part, followed in part only, not given, and
        not usable. error: the latest reason for that. slowest: the longest time that the adviser took, in seconds; the
        first call of each kind is not counted, because code may be compiled in it.
    opening: how many more rounds the adviser plays itself, before the first block.
    """

    adviser: str
    advised: list[float] | None
    target: list[float] | None
    followed: float
    budget: float
    spent: float
    price: float
    given: int
    cut: int
    silent: int
    failed: int
    error: str
    slowest: float
    opening: int

    def __str__(self) -> str:
        """Return the advice in words."""
        if self.opening:
            text = f"{self.adviser} chooses the arms of {counted(self.opening, 'more round')} itself, the opening."
        elif self.advised is None:
            text = f"{self.adviser} has given no advice yet."
        else:
            text = (
                f"{self.adviser} advises {percentages(self.advised)}. With what the player has learned itself that is "
                f"{percentages(self.target or [])}; it went {self.followed:.0%} of the way there."
            )
        text += (
            f" If all advice is wrong, that adds {amount(max(self.spent, 0.0))} to the bound on the expected regret "
            f"(by now at most {amount(self.budget)})."
        )
        if self.cut:
            text += f" The budget cut advice short {self.cut:,} of {counted(self.given, 'time')}."
        if self.failed:
            # A restored player does not know the reason.
            reason = f"; the latest reason: {self.error}" if self.error else ""
            text += f" Advice failed {counted(self.failed, 'time')} and was ignored{reason}."
        if self.slowest > 1.0:
            text += f" The adviser took up to {self.slowest:.1f} seconds."
        return text


def percentages(shares: Sequence[float]) -> str:
    """Return probabilities in words."""
    return ", ".join(f"{share:.0%}" for share in shares)


def reason(error: Exception) -> str:
    """Return an error of an adviser in words."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:
        return name


class AdvisedWrapper(CoinCleanWrapper):
    """A CoinCleanWrapper that follows an adviser, and keeps a guarantee whatever the adviser says.

    bandit: an AdaptiveTsallis or MatchedTsallis.
    adviser: an object with the methods of `aftereffect.advisers.Adviser`. The player owns it; do not use it elsewhere.
    budget: (B₀, c). The worst case is (1 + c) times the base's part of that without advice, plus B₀ times `factor`.
    floor: no arm is advised less than that, unless the base alone would play it less.
    opening: how many rounds the adviser plays itself, before the first block. The worst case grows by as many; effects
        of the opening are not learned from. By default B₀ times `factor`, as much as B₀ adds, if the adviser plays
        openings (`Lags` does), and 0 if not, if coins are given or the bandit has a prior.
    coins: as for CoinCleanWrapper, but by default β = 0.7/(d+1) if an effect of 0 is not a loss of 0.
    The other arguments are those of CoinCleanWrapper.

    >>> from aftereffect import MatchedTsallis, advisers
    >>> player = AdvisedWrapper(MatchedTsallis(3), adviser=advisers.Opinion([8, 1, 1]), max_delay=1, seed=7)
    >>> for total in (0.5, 0.2, 0.4, 0.3):
    ...     arm = player.ask()
    ...     played = player.tell(total)
    >>> bool(player.probabilities[0] > 0.7)
    True
    >>> print(player.advice)
    Opinion advises 80%, 10%, 10%. With what the player has learned itself that is 75%, 12%, 12%; it went 100% of the \
way there. If all advice is wrong, that adds 2.76 to the bound on the expected regret (by now at most 54.53).

    Reference: docs/theory/advice.md.
    """

    # Shorter blocks than without advice: the adviser learns from every round, and speaks once a block.
    SURPLUS = 0.7
    OWN_SAVED: tuple[str, ...] = (*CoinCleanWrapper.OWN_SAVED, "adviser", "advice")

    def __init__(
        self,
        bandit: Bandit,
        *,
        adviser: Any,
        max_delay: int,
        coins: Any = None,
        budget: Sequence[float] = BUDGET,
        floor: float = FLOOR,
        opening: int | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(bandit, max_delay=max_delay, coins=coins, **common)
        if not isinstance(bandit, AdaptiveTsallis):
            raise InvalidArgument(f"bandit must be an AdaptiveTsallis to be advised, but got {checks.shown(bandit)}")
        parts = checks.array("budget", budget, shape=(2,)).tolist()
        self.budget = [checks.real(f"budget[{k}]", part, low=0.0, high=MOST_BUDGET) for k, part in enumerate(parts)]
        self.floor = checks.real("floor", floor, low=0.0, high=1.0)
        self._memory = np.zeros(advice.memory_size(self.n_arms))
        self._error, self._slowest, self._called = "", 0.0, set[str]()
        self.adviser: Adviser = advisers.make(adviser)
        self.adviser.begin(self._setting())
        able = self.adviser.plays_opening and self.update_probability is not None and self.factor < math.inf
        usual = math.ceil(min(self.budget[0] * self.factor, LONGEST)) if able and not bandit.prior_price else 0
        self.opening = usual if opening is None else checks.integer("opening", opening, low=0, high=LONGEST)
        if self.opening and not able:
            rule = "opening must be 0, unless the adviser plays openings, coins are a bias and blocks can end"
            raise InvalidArgument(f"{rule}, but got {self.opening}")
        self._begin_blocks()

    @property
    def consults(self) -> bool:
        """Whether the adviser is asked at the end of the open round, unless reports are missing."""
        return self._measured or self._round == self.opening

    def _setting(self) -> Setting:
        return Setting(self.n_arms, self.n_units, self.max_delay, self.direction, self.low, self.high)

    def _begin_blocks(self) -> None:
        """Let the coins begin after the opening."""
        if isinstance(self.coins, DrawnCoins):
            self.coins.begin_after(self.opening)

    def _limits(self) -> Budget:
        # Given coins have no bound, and no charge for the drift.
        drift = 0.0 if self.update_probability is None else self.max_delay / self.factor
        return Budget(self.budget[0], self.budget[1], drift, self.floor)

    def share(self, n_units: int) -> None:
        """Let `n_units` units share this player, which must be unplayed."""
        super().share(n_units)
        self.adviser.begin(self._setting())

    def ask(self) -> int:
        """Return the arm to play in this round; the same until `tell`."""
        if not self._round and not self.opening:
            self._consult()
        return super().ask()

    def _drawn_arms(self, stream: WordState) -> list[int]:
        """Draw an arm for each unit; in the opening the adviser chooses, and if it fails, all are equally likely."""
        arms = self._guarded(self._opening_arms, stream) if self._round < self.opening else None
        return arms or super()._drawn_arms(stream)

    def _opening_arms(self, stream: WordState) -> list[int] | None:
        given = self.adviser.play(stream)
        return None if given is None else self._unit_arms(given)

    # Not the faster one of wrappers without adviser, who hears every round.
    tell = AnonymousPlayer.tell

    def _tell_all(self, totals: Sequence[float | None], fed: list[float | None]) -> int:
        measured = super()._tell_all(totals, fed)
        used = [window.read(total)[0] for window, total in zip(self._windows, totals, strict=True)]
        self._guarded(self.adviser.hear, self._arms.copy(), used)
        if self._round <= self.opening:
            self._draw_next = True
            for window in self._windows:
                # No total of the opening is ever fed.
                window.begin(self._round + 1)
        if measured or self._round == self.opening:
            self._consult()
        return measured

    def amend(self, round: int, total: float | None, unit: int = 0) -> None:
        """Correct the total of an earlier round of the open block, or report it late; the adviser hears it too."""
        super().amend(round, total, unit)
        self._guarded(self.adviser.correct, round, self._windows[unit].read(total)[0], unit)

    def _learned_from(self, round: int) -> bool:
        # Nothing is learned from the opening, so the adviser alone hears its corrections.
        return round > self.opening and super()._learned_from(round)

    def _consult(self) -> None:
        """Ask the adviser, and follow it within the budget."""
        failed = self._count(advice.FAILED)
        target = self._guarded(self._target)
        if target is not None:
            self._memory[3 * self.n_arms : 4 * self.n_arms] = target
            self.bandit.run(advice.follow, self._memory, self._limits())
        elif self._count(advice.FAILED) == failed:
            self._memory[5 * self.n_arms + advice.SILENT] += 1.0

    def _target(self) -> checks.FloatArray | None:
        """Return what the adviser proposes; None: nothing."""
        given = self.adviser.advise()
        if given is None:
            return None
        target = checks.array("advice", given, shape=(self.n_arms,))
        if target.min() < 0.0 or not 0.0 < target.max() < MOST:
            raise InvalidArgument(f"advice must be nonnegative and not all 0, but got {checks.shown(given)}")
        return target

    def _guarded(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call the adviser; an error is counted, and the player goes on without its answer."""
        began = time.perf_counter()
        try:
            return call(*arguments)
        except Exception as error:
            self._memory[5 * self.n_arms + advice.FAILED] += 1.0
            self._error = reason(error)
            return None
        finally:
            kind = getattr(call, "__name__", "")
            if kind in self._called:
                self._slowest = max(self._slowest, time.perf_counter() - began)
            self._called.add(kind)

    def _count(self, which: int) -> int:
        return int(self._memory[5 * self.n_arms + which])

    @property
    def advice_prices(self) -> tuple[float, float]:
        """What advice adds to the base's regret as far as this run shows, and Π, what it adds at most."""
        twin: Any = copy.copy(self.bandit)
        most = advice.price(self.n_arms, self._memory)
        # Exactly 0 without advice, where the difference would be a rounding error.
        now = twin.run(advice.withdrawn, self._memory.copy()) if self._count(advice.FOLLOWED) else 0.0
        return float(now), most

    @property
    def advice(self) -> Advice:
        """What the adviser said last, what was followed, the budget and what is spent of it."""
        K, numbers = self.n_arms, self._memory[5 * self.n_arms :]
        price, most = self.advice_prices
        unit = self.n_units * (self.effects.hi - self.effects.lo) * self.factor
        first, share = self.budget
        limit = first + share * (self.bandit.realised_bound() - self.bandit.prior_price)
        spent = most + self._limits().drift * float(numbers[advice.MOVED])
        given = bool(numbers[advice.FOLLOWED])
        return Advice(
            adviser=type(self.adviser).__name__,
            advised=self._memory[3 * K : 4 * K].tolist() if given else None,
            target=self._memory[4 * K : 5 * K].tolist() if given else None,
            followed=float(numbers[advice.TAKEN]),
            budget=unit * limit,
            spent=unit * spent,
            price=unit * price,
            given=self._count(advice.FOLLOWED),
            cut=self._count(advice.CUT),
            silent=self._count(advice.SILENT),
            failed=self._count(advice.FAILED),
            error=self._error,
            slowest=self._slowest,
            opening=max(self.opening - self.rounds_played, 0),
        )

    def worst_case(self, horizon: int) -> float:
        """Return a bound on R_T in units of hi − lo, which may exceed T, whatever the adviser says."""
        bandit, beta = self.certified_base()
        if horizon <= self.opening:
            return float(horizon)
        sizes = self.n_arms, self.max_delay, horizon - self.opening
        first, share = self.budget
        bound = theory.stretch_worst_case(*sizes, beta, bandit.first_rate, bandit.growth, advice=(first, share))
        return self.opening + bound + (self.factor * bandit.prior_price if bandit.prior_price else 0.0)

    def prices(self) -> certificates.Prices:
        """Return the factors of the terms of a certificate (docs/theory/advice.md, section 5)."""
        T, n0 = self.rounds_played, self.opening
        return super().prices()._replace(ends=min(self.max_delay, max(T - n0, 0)), opening=min(n0, T))

    def kernel(self) -> Any:
        """Return the player in kernel form; None if its adviser has none."""
        adviser = self.adviser.kernel()
        if adviser is None:
            return None
        player = super().kernel()
        memory_at = block_size(player, self.n_arms)
        places = memory_at, memory_at + len(self._memory)
        return AdvisedParams(player, adviser, self._limits(), *places, player.limits, self.opening)

    @classmethod
    def _made(cls, inside: Any, settings: Mapping[str, Any], seed: int) -> Self:
        # The caller replaces the adviser, as it does the coins.
        made = cls(inside, **{**settings, "opening": 0}, adviser=Silent(), coins=(), seed=seed)
        made.opening = checks.integer("opening", settings.get("opening"), low=0)
        return made

    def _begin_run(self, template: Self, seed: int, run: int) -> None:
        super()._begin_run(template, seed, run)
        self._begin_blocks()
        self.adviser = copy.deepcopy(template.adviser)
        self.adviser.begin(self._setting())

    def _saved(self) -> dict[str, Any]:
        # First, since a failure is counted in the memory.
        own = {"kind": type(self.adviser).__name__, "state": self._guarded(self._adviser_state)}
        return super()._saved() | {"adviser": own, "advice": self._memory.tolist()}

    def _adviser_state(self) -> Any:
        """Return the adviser's state; an error if it is not of plain JSON types."""
        state = self.adviser.state()
        saved.canonical(state)
        return state

    def _resume(self, fields: Mapping[str, Any]) -> None:
        super()._resume(fields)
        self._memory[:] = saved.numbers("advice", fields["advice"], len(self._memory))

    def take_up(self, adviser: Any, state: Mapping[str, Any]) -> None:
        """Go on with this adviser, None for one of the library's, from its part of the player's saved state."""
        own = state["adviser"]
        try:
            self.adviser = advisers.restored(own["kind"], own["state"]) if adviser is None else advisers.make(adviser)
            self.adviser.begin(self._setting())
            if own["state"] is not None:
                self.adviser.resume(own["state"])
        except AftereffectError:
            raise
        except Exception as error:
            rule = "adviser must resume from the state that it returned"
            raise InvalidState(f"{rule}, but got {checks.shown(own)}: {reason(error)}") from error


class Silent(Adviser):
    """An adviser that never says anything."""
