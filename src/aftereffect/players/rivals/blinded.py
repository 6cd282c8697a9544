"""The blinded bandit (Dekel, Hazan and Koren 2014): the ancestor of Algorithm 1 (Section 3).

    coin b_t     1 0 0 1 1 0 1 1             fair coins
    round        D S S U D S U D             an update needs a one after one zero

There the feedback of a round is lost whenever the arm has just changed. Updating only after the coins 0, 1
makes sure that it has not, at a place that does not depend on what was played. Definition 1 of the paper
asks for 2d zeros in place of one, and for the last d+1 totals in place of one.
"""

from typing import Any, ClassVar, NamedTuple, Self

from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.core import checks, effects, kernel, random
from aftereffect.core.kernel import DREW, FED, OWN
from aftereffect.players.base import KernelPlayer, kernel_base, tuned_base


class BlindedParams(NamedTuple):
    """base: the parameters of the base algorithm. max_delay: 0 or 1."""

    base: Any
    max_delay: int
    span: effects.Effects


# state, after what every player has: the coin of the round before, the arm, whether to draw next; then the
# base's state.
COIN, ARM, DRAW, BASE = OWN, OWN + 1, OWN + 2, OWN + 3


def size(params: BlindedParams, n_arms: int) -> int:
    """Three scalars, the base's state."""
    return BASE + kernel.BANDITS[type(params.base)].size(n_arms)


def begin(params: BlindedParams, n_arms: int, state: kernel.FloatState) -> None:
    """Stand before round 1; the coin before the first counts as a one, so that round 1 never updates."""
    state[DREW] = 0.0
    state[FED] = 0.0
    state[COIN] = 1.0
    state[ARM] = 0.0
    state[DRAW] = 1.0
    kernel.bandit_start(params.base, n_arms, state[BASE:])


def ask(params: BlindedParams, n_arms: int, state: kernel.FloatState, rng: kernel.WordState) -> int:
    """Draw after an update, else stay."""
    state[DREW] = state[DRAW]
    if state[DRAW] == 1.0:
        state[ARM] = kernel.bandit_draw(params.base, n_arms, state[BASE:], random.uniform(rng[random.ARMS]))
        state[DRAW] = 0.0
    return int(state[ARM])


def tell(
    params: BlindedParams,
    n_arms: int,
    state: kernel.FloatState,
    rng: kernel.WordState,
    arm: int,
    total: float,
) -> int:
    """Toss the round's coin; feed the round's total if it is a one after a zero."""
    state[FED] = float("nan")
    before = state[COIN]
    state[COIN] = 1.0 if random.uniform(rng[random.COINS]) < 0.5 else 0.0
    if before == 1.0 or state[COIN] == 0.0 or total != total:
        return 0
    state[FED] = effects.average_loss(params.span, params.max_delay + 1, total)
    kernel.bandit_update(params.base, n_arms, state[BASE:], arm, state[FED])
    state[DRAW] = 1.0
    return 1


kernel.register(BlindedParams, kernel.PlayerKernel(size, begin, ask, tell))


class Blinded(KernelPlayer):
    """Plays `bandit`; tosses a fair coin b_t a round, updates and redraws when (b_{t−1}, b_t) = (0, 1).

    After b_{t−1} = 0 the arm of round t is that of round t−1, so under a delay of at most 1 the total of an
    update round holds effects of one arm alone: two parts, which are divided by 2 and scaled to [0, 1]. An
    update comes in one of four rounds, whatever has been played. For longer delays the totals it feeds are
    mixed; that is what the paper's wrapper mends.

    bandit: the base algorithm, in kernel form.
    max_delay: d, 1 or 0: what is fed is (total/(d+1) − lo)/(hi − lo), flipped for rewards, and clipped.
    direction, low, high: as for the wrapper. A missing total in an update round teaches nothing; the arm
    stays.

    >>> from aftereffect import Exp3
    >>> player = Blinded(Exp3(n_arms=2, learning_rate=0.1), seed=7)
    >>> rounds = [(player.ask(), player.tell(0.5))[1] for _ in range(100)]
    >>> {played.fed_loss for played in rounds if played.update}      # half the total
    {0.25}
    >>> any(a.update and b.update for a, b in zip(rounds, rounds[1:]))
    False

    Reference: Dekel, Hazan and Koren, "The blinded bandit: learning with adaptive feedback" (NIPS 2014):
    regret of order √(KT ln K) over Exp3. The rule is as remembered, not read again; scaling and start are
    chosen here.
    """

    needs: ClassVar[tuple[str, ...]] = ("max_delay", "horizon")

    def __init__(
        self,
        bandit: KernelBandit,
        *,
        max_delay: int = 1,
        seed: int | None = None,
        direction: str = "minimize",
        low: float = 0.0,
        high: float = 1.0,
    ) -> None:
        """Start before round 1."""
        base = kernel_base(bandit)
        self.max_delay = checks.integer("max_delay", max_delay, low=0, high=1)
        self.effects = effects.effects(direction, low, high)
        self.direction, self.low, self.high = direction, float(low), float(high)
        settings = {"max_delay": self.max_delay, "direction": direction, "low": self.low, "high": self.high}
        super().__init__(base, BlindedParams(base.params, self.max_delay, self.effects), seed, settings)

    @classmethod
    def tuned(
        cls,
        *,
        n_arms: int,
        horizon: int,
        max_delay: int = 1,
        base: str = "exp3",
        seed: int | None = None,
        direction: str = "minimize",
        low: float = 0.0,
        high: float = 1.0,
    ) -> Self:
        """Return the player whose base is tuned to the T/4 updates it can expect."""
        bandit = tuned_base(base, n_arms, checks.integer("horizon", horizon, low=1) // 4)
        return cls(bandit, max_delay=max_delay, seed=seed, direction=direction, low=low, high=high)
