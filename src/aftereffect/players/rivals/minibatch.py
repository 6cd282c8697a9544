"""Mini-batches (Arora, Dekel and Tewari 2012): blocks of a fixed length, fed with the average of all of it.

The oldest way to play against an adversary that remembers (Section 1 of the paper compares rates with it).
Nothing is left out of a block, so the first d totals are mixed with effects of the previous arm; blocks grow
with the horizon instead, until that does not matter: regret of order T^{2/3}, for any d that does not grow.
"""

import math
from typing import Any, ClassVar, NamedTuple, Self

from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.core import checks, effects, kernel, random
from aftereffect.core.kernel import DREW, FED, OWN
from aftereffect.players.base import KernelPlayer, kernel_base, tuned_base


class MiniBatchParams(NamedTuple):
    """base: the parameters of the base algorithm. parts: τ + d. bounds: of a block's sum."""

    base: Any
    block_length: int
    parts: int
    span: effects.Effects
    bounds: tuple[float, float]


# state, after what every player has: rounds of the block that are over, its arm, the sum of its totals,
# whether to draw next; then the base's state.
PLACE, ARM, SUM, DRAW, BASE = OWN, OWN + 1, OWN + 2, OWN + 3, OWN + 4


def size(params: MiniBatchParams, n_arms: int) -> int:
    """Four scalars, the base's state."""
    return BASE + kernel.BANDITS[type(params.base)].size(n_arms)


def begin(params: MiniBatchParams, n_arms: int, state: kernel.FloatState) -> None:
    """Stand before round 1."""
    for i in range(BASE):
        state[i] = 0.0
    state[DRAW] = 1.0
    kernel.bandit_start(params.base, n_arms, state[BASE:])


def ask(params: MiniBatchParams, n_arms: int, state: kernel.FloatState, rng: kernel.WordState) -> int:
    """Draw after an update, else stay."""
    state[DREW] = state[DRAW]
    if state[DRAW] == 1.0:
        state[ARM] = kernel.bandit_draw(params.base, n_arms, state[BASE:], random.uniform(rng[random.ARMS]))
        state[DRAW] = 0.0
    return int(state[ARM])


def tell(
    params: MiniBatchParams,
    n_arms: int,
    state: kernel.FloatState,
    rng: kernel.WordState,
    arm: int,
    total: float,
) -> int:
    """Add up the totals of the block, and feed their average when it ends."""
    state[FED] = float("nan")
    state[PLACE] += 1.0
    state[SUM] += effects.clipped(params.bounds, total)
    if state[PLACE] < params.block_length:
        return 0
    whole = state[SUM]
    state[PLACE] = 0.0
    state[SUM] = 0.0
    if whole != whole:
        return 0
    state[FED] = effects.average_loss(params.span, params.parts, whole)
    kernel.bandit_update(params.base, n_arms, state[BASE:], arm, state[FED])
    state[DRAW] = 1.0
    return 1


kernel.register(MiniBatchParams, kernel.PlayerKernel(size, begin, ask, tell))


def block_length(constant: float, power: float, horizon: int) -> int:
    """Return τ = C^{−1/(2−q)} T^{(1−q)/(2−q)}, rounded, in 1..T, for a base whose regret is at most C·N^q.

    C = `constant`, q = `power`, T = `horizon`. With a memory of m the policy regret is at most
    τ·C·(T/τ)^q + Tm/τ + τ; this τ makes the first two alike at m = 1, and both of order T^{1/(2−q)}.

    >>> block_length(constant=4.0, power=0.5, horizon=128)      # (128/16)^{1/3}
    2
    """
    C = checks.real("constant", constant, above=0.0)
    q = checks.real("power", power, low=0.0, high=1.0)
    T = checks.integer("horizon", horizon, low=1)
    length = math.pow(math.pow(T, 1.0 - q) / C, 1.0 / (2.0 - q))
    return min(max(round(length), 1), T)


class MiniBatch(KernelPlayer):
    """Plays `bandit` in blocks of τ = `block_length` rounds and feeds it the average total of each block.

    A block's τ totals hold one contiguous part of each of τ + d actions, so their sum lies in (τ+d)·[lo, hi].
    What is fed is (sum/(τ+d) − lo)/(hi − lo), flipped for rewards. The original asks for losses in [0, 1] a
    round and divides by τ; dividing by τ + d, rather than a total's own range d+1 in each round, is chosen
    here, by the reasoning of Lemma 2. At `max_delay` = 0, the default for those who do not know d, it is the
    plain average, and what exceeds the range is clipped.

    bandit: the base algorithm, in kernel form.
    block_length: τ ≥ 1; `tuned` chooses it. max_delay: d, used for scaling only.
    direction, low, high: as for the wrapper. A missing total voids its block: nothing is fed, the arm stays.

    >>> from aftereffect import Exp3
    >>> player = MiniBatch(Exp3(n_arms=2, learning_rate=0.1), block_length=3, max_delay=1, seed=7)
    >>> for total in (0.25, 0.5, 0.25):
    ...     arm = player.ask()
    ...     played = player.tell(total)
    >>> played.update, played.fed_loss           # 1/(3 + 1)
    (True, 0.25)

    Reference: Arora, Dekel and Tewari, "Online bandit learning against an adaptive adversary: from regret to
    policy regret" (ICML 2012); block length and bound as remembered, not read again.
    """

    needs: ClassVar[tuple[str, ...]] = ("horizon",)

    def __init__(
        self,
        bandit: KernelBandit,
        *,
        block_length: int,
        max_delay: int = 0,
        seed: int | None = None,
        direction: str = "minimize",
        low: float = 0.0,
        high: float = 1.0,
    ) -> None:
        """Start before round 1."""
        base = kernel_base(bandit)
        self.block_length = checks.integer("block_length", block_length, low=1)
        self.max_delay = checks.integer("max_delay", max_delay, low=0)
        self.effects = effects.effects(direction, low, high)
        self.direction, self.low, self.high = direction, float(low), float(high)
        parts = self.block_length + self.max_delay
        # No total can exceed what a whole block can: its own range is (d+1)·[lo, hi], and τ ≥ 1.
        bounds = effects.total_bounds(self.effects, parts - 1)
        params = MiniBatchParams(base.params, self.block_length, parts, self.effects, bounds)
        settings: dict[str, Any] = {"block_length": self.block_length, "max_delay": self.max_delay}
        settings |= {"direction": direction, "low": self.low, "high": self.high}
        super().__init__(base, params, seed, settings)

    @classmethod
    def tuned(
        cls,
        *,
        n_arms: int,
        horizon: int,
        max_delay: int = 0,
        base: str = "tsallis",
        seed: int | None = None,
        direction: str = "minimize",
        low: float = 0.0,
        high: float = 1.0,
    ) -> Self:
        """Return the player with τ for its base's regret bound C√N, and the base tuned to ⌊T/τ⌋ updates.

        C is 2√(2K) for base="tsallis" (Theorem 6) and √(2K ln K) for base="exp3".
        """
        length = block_length(tuned_base(base, n_arms, 1).regret_bound(1), 0.5, horizon)
        bandit = tuned_base(base, n_arms, horizon // length)
        settings: dict[str, Any] = {"direction": direction, "low": low, "high": high}
        return cls(bandit, block_length=length, max_delay=max_delay, seed=seed, **settings)
