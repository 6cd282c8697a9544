"""Fixed blocks: Algorithm 1 (Section 3) without its coins, every block exactly 2d+1 rounds long.

    round        D S S S S│D S S S S│        d = 2: a block is 2d+1 = 5 rounds of one arm
    total seen   x x ├───┤ x x ├───┤         the last d+1 totals hold effects of this block's arm alone

It updates about e times as often as the wrapper. But everybody knows where its blocks begin: losses that land
in the first d rounds of a block are never seen, and an oblivious adversary can put all that matters there.
"""

from typing import Any, ClassVar, NamedTuple, Self

from aftereffect import theory
from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.core import checks, effects, kernel, random
from aftereffect.core.kernel import DREW, FED, OWN
from aftereffect.players.base import KernelPlayer, kernel_base, tuned_base


class FixedBlockParams(NamedTuple):
    """base: the parameters of the base algorithm. total_bounds: what a total can be, with a margin."""

    base: Any
    max_delay: int
    span: effects.Effects
    total_bounds: tuple[float, float]


# state, after what every player has: rounds of the block that are over, its arm, the sum of its clean totals,
# whether to draw next; then the base's state.
PLACE, ARM, WINDOW, DRAW, BASE = OWN, OWN + 1, OWN + 2, OWN + 3, OWN + 4


def size(params: FixedBlockParams, n_arms: int) -> int:
    """Four scalars, the base's state."""
    return BASE + kernel.BANDITS[type(params.base)].size(n_arms)


def begin(params: FixedBlockParams, n_arms: int, state: kernel.FloatState) -> None:
    """Stand before round 1."""
    for i in range(BASE):
        state[i] = 0.0
    state[DRAW] = 1.0
    kernel.bandit_start(params.base, n_arms, state[BASE:])


def ask(params: FixedBlockParams, n_arms: int, state: kernel.FloatState, rng: kernel.WordState) -> int:
    """Draw after an update, else stay."""
    state[DREW] = state[DRAW]
    if state[DRAW] == 1.0:
        state[ARM] = kernel.bandit_draw(params.base, n_arms, state[BASE:], random.uniform(rng[random.ARMS]))
        state[DRAW] = 0.0
    return int(state[ARM])


def tell(
    params: FixedBlockParams,
    n_arms: int,
    state: kernel.FloatState,
    rng: kernel.WordState,
    arm: int,
    total: float,
) -> int:
    """Add up the last d+1 totals of the block, and feed their sum when it ends."""
    d = params.max_delay
    state[FED] = float("nan")
    state[PLACE] += 1.0
    if state[PLACE] > d:
        state[WINDOW] += effects.clipped(params.total_bounds, total)
    if state[PLACE] <= 2 * d:
        return 0
    window = state[WINDOW]
    state[PLACE] = 0.0
    state[WINDOW] = 0.0
    if window != window:
        return 0
    state[FED] = effects.fed_loss(params.span, d, window)
    kernel.bandit_update(params.base, n_arms, state[BASE:], arm, state[FED])
    state[DRAW] = 1.0
    return 1


kernel.register(FixedBlockParams, kernel.PlayerKernel(size, begin, ask, tell))


class FixedBlock(KernelPlayer):
    """Plays `bandit` in blocks of exactly 2d+1 rounds and feeds it the sum of the last d+1 totals over 2d+1.

    What is fed is as clean as the wrapper's, and Lemma 2 bounds it in the same way. What is lost is the
    proof: Theorem 4 needs every round to be equally likely to end a block, so that the fed losses stand for
    all rounds alike. Here rounds 1..d of every block count for nothing. Against losses drawn independently
    of the blocks that is harmless; against losses aimed at the blocks regret grows linearly.

    bandit: the base algorithm, in kernel form.
    max_delay: d ≥ 0, how many rounds after its own an action's effect can still arrive.
    direction, low, high: as for the wrapper. Totals outside (d+1)·[lo, hi] are clipped to it. A missing total
    in the window voids the block: nothing is fed and the arm stays for another block.

    >>> from aftereffect import Exp3
    >>> player = FixedBlock(Exp3(n_arms=2, learning_rate=0.1), max_delay=1, seed=7)
    >>> for total in (0.5, 0.5, 0.25):
    ...     arm = player.ask()
    ...     played = player.tell(total)
    >>> played.update, played.fed_loss           # (0.5 + 0.25)/3: the last d+1 totals over 2d+1
    (True, 0.25)

    References: the blocks of Section 3 of the paper; playing in fixed blocks goes back to Arora, Dekel and
    Tewari (2012), see `MiniBatch`.
    """

    needs: ClassVar[tuple[str, ...]] = ("max_delay", "horizon")

    def __init__(
        self,
        bandit: KernelBandit,
        *,
        max_delay: int,
        seed: int | None = None,
        direction: str = "minimize",
        low: float = 0.0,
        high: float = 1.0,
    ) -> None:
        """Start before round 1."""
        base = kernel_base(bandit)
        self.max_delay = checks.integer("max_delay", max_delay, low=0)
        self.effects = effects.effects(direction, low, high)
        self.direction, self.low, self.high = direction, float(low), float(high)
        bounds = effects.total_bounds(self.effects, self.max_delay)
        params = FixedBlockParams(base.params, self.max_delay, self.effects, bounds)
        settings = {"max_delay": self.max_delay, "direction": direction, "low": self.low, "high": self.high}
        super().__init__(base, params, seed, settings)

    @classmethod
    def tuned(
        cls,
        *,
        n_arms: int,
        max_delay: int,
        horizon: int,
        base: str = "tsallis",
        seed: int | None = None,
        direction: str = "minimize",
        low: float = 0.0,
        high: float = 1.0,
    ) -> Self:
        """Return the player whose base is tuned to its ⌊T/(2d+1)⌋ updates."""
        bandit = tuned_base(base, n_arms, theory.most_updates(max_delay, horizon))
        return cls(bandit, max_delay=max_delay, seed=seed, direction=direction, low=low, high=high)
