"""The COLT 2018 wrapper (Cesa-Bianchi, Gentile and Mansour), which Algorithm 1 replaced (Appendix E).

    coin B_t     1 1 0 0 1 0 1 0 0 1 ...     d = 1, d_c = d+1 = 2
    round        U D S S U D S S S U ...     an update needs a one, and no update in the 2d_c−1 rounds before

It counts d_c = d+1 components. Its blocks end when a coin shows a one, but coins are ignored for 2d_c−1
rounds after each update: a renewal process with mean block 2d_c−1 + 1/q = 3(2d_c−1) = 6d+3 at its q =
1/(2(2d_c−1)).
"""

import math
from typing import Any, ClassVar, NamedTuple, Self

from aftereffect.bandits.exp3 import Exp3
from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.core import checks, effects, kernel, random
from aftereffect.core.kernel import DREW, FED, OWN
from aftereffect.players.base import KernelPlayer, kernel_base


class CLW2018Params(NamedTuple):
    """base: the parameters of the base algorithm. update_probability: the coins' bias q."""

    base: Any
    max_delay: int
    update_probability: float
    span: effects.Effects
    total_bounds: tuple[float, float]


# state, after what every player has: round, latest update round, arm, whether to draw next; the d+1 latest
# totals; then the base's state.
ROUND, LATEST, ARM, DRAW, TOTALS = OWN, OWN + 1, OWN + 2, OWN + 3, OWN + 4


def size(params: CLW2018Params, n_arms: int) -> int:
    """Four scalars, d+1 totals, the base's state."""
    return TOTALS + params.max_delay + 1 + kernel.BANDITS[type(params.base)].size(n_arms)


def begin(params: CLW2018Params, n_arms: int, state: kernel.FloatState) -> None:
    """Stand before round 1, in which an update is allowed; the totals before it are 0."""
    base = TOTALS + params.max_delay + 1
    for i in range(base):
        state[i] = 0.0
    state[LATEST] = -1.0 - 2 * params.max_delay
    state[DRAW] = 1.0
    kernel.bandit_start(params.base, n_arms, state[base:])


def ask(params: CLW2018Params, n_arms: int, state: kernel.FloatState, rng: kernel.WordState) -> int:
    """Draw after an update, else stay."""
    state[DREW] = state[DRAW]
    if state[DRAW] == 1.0:
        base = state[TOTALS + params.max_delay + 1 :]
        state[ARM] = kernel.bandit_draw(params.base, n_arms, base, random.uniform(rng[random.ARMS]))
        state[DRAW] = 0.0
    state[ROUND] += 1.0
    return int(state[ARM])


def tell(
    params: CLW2018Params,
    n_arms: int,
    state: kernel.FloatState,
    rng: kernel.WordState,
    arm: int,
    total: float,
) -> int:
    """Toss the round's coin; on a one, if the latest update is old enough, feed the d+1 latest totals."""
    d = params.max_delay
    t = int(state[ROUND])
    state[FED] = float("nan")
    state[TOTALS + t % (d + 1)] = effects.clipped(params.total_bounds, total)
    coin = random.uniform(rng[random.COINS]) < params.update_probability
    if not coin or t - state[LATEST] < 2 * d + 2:
        return 0
    window = 0.0
    for s in range(t + 1, t + d + 2):
        window += state[TOTALS + s % (d + 1)]
    if window != window:
        return 0
    state[FED] = effects.average_loss(params.span, 2 * d + 2, window)
    kernel.bandit_update(params.base, n_arms, state[TOTALS + d + 1 :], arm, state[FED])
    state[LATEST] = t
    state[DRAW] = 1.0
    return 1


kernel.register(CLW2018Params, kernel.PlayerKernel(size, begin, ask, tell))


class CLW2018(KernelPlayer):
    """The wrapper of the paper's preliminary version: `bandit` in random blocks of at least 2d_c rounds.

    Round t is an update round if B_t = 1 and none of the 2d_c−1 rounds before it was one, with d_c = d+1.
    Then the base is fed the sum of the d_c latest totals over 2d_c, and the next round draws. (A first
    block may be shorter: an update is allowed from the first round on, with 0 for the totals before it.)

    It plays well; its proof is what failed, in two places that Appendix E of the paper names.

    1. *An update depends on history.* "No update in the 2d_c−1 rounds before" looks back at rounds that in
       turn depend on the coins before them, hence on how often the base has learned, hence on which arm is
       played: P(t is an update round | I_{t−2d_c+1}) differs from arm to arm. The proof bounds P(t is an
       update round) from below by q(1 − q(2d_c−1)) and multiplies by regrets Δ_t; where Δ_t < 0 that goes
       the wrong way (with Δ_t = −1 throughout, −1/3 is claimed to be at least −1/4, in units of
       T/(2d_c−1)). Definition 1 looks at 2d coins, which are independent of the arm before them, and gets
       an equality.
    2. *The stability term is counted once.* An update at t−d_c+1 moves the distribution in each of the d_c−1
       rounds up to t. The proof charges E Σ_{s<d_c} Σ_i (p_{t−s}(i) − p_{t−d_c+1}(i))⁺ with ξ, but given such
       an update it is dξ, and ξ·d(d+1)/(6(2d+1)) on average over updates: more than ξ from d = 12 on. Right
       is Θ(dξ), as the term 2d·p·ξ·T of Theorem 4 has it.

    bandit: the base algorithm, in kernel form. max_delay: d ≥ 0.
    update_probability: q, by default 1/(2(2d_c−1)) = 1/(4d+2).
    direction, low, high: as for the wrapper. Totals outside (d+1)·[lo, hi] are clipped to it. A window with a
    missing total is not fed: the block goes on.

    >>> player = CLW2018(Exp3(n_arms=2, learning_rate=0.1), max_delay=1, update_probability=1.0, seed=7)
    >>> rounds = [(player.ask(), player.tell(0.5))[1] for _ in range(6)]
    >>> [played.round for played in rounds if played.update]       # at once, then every 2d_c = 4 rounds
    [1, 5]
    >>> rounds[4].fed_loss                                         # (0.5 + 0.5)/4
    0.25

    Reference: Cesa-Bianchi, Gentile and Mansour, "Nonstochastic bandits with composite anonymous feedback"
    (COLT 2018); Appendix E of the paper.
    """

    needs: ClassVar[tuple[str, ...]] = ("max_delay", "horizon")

    def __init__(
        self,
        bandit: KernelBandit,
        *,
        max_delay: int,
        update_probability: float | None = None,
        seed: int | None = None,
        direction: str = "minimize",
        low: float = 0.0,
        high: float = 1.0,
    ) -> None:
        """Start before round 1."""
        base = kernel_base(bandit)
        self.max_delay = checks.integer("max_delay", max_delay, low=0)
        q = 1.0 / (4 * self.max_delay + 2) if update_probability is None else update_probability
        self.update_probability = checks.real("update_probability", q, above=0.0, high=1.0)
        self.effects = effects.effects(direction, low, high)
        self.direction, self.low, self.high = direction, float(low), float(high)
        bounds = effects.total_bounds(self.effects, self.max_delay)
        params = CLW2018Params(base.params, self.max_delay, self.update_probability, self.effects, bounds)
        settings: dict[str, Any] = {"max_delay": self.max_delay}
        settings |= {"update_probability": self.update_probability}
        settings |= {"direction": direction, "low": self.low, "high": self.high}
        super().__init__(base, params, seed, settings)

    @classmethod
    def tuned(
        cls,
        *,
        n_arms: int,
        max_delay: int,
        horizon: int,
        seed: int | None = None,
        direction: str = "minimize",
        low: float = 0.0,
        high: float = 1.0,
    ) -> Self:
        """Return the player over Exp3 at the published rate η = 4√(d_c ln K/((4K+1)T)).

        The bound that came with it, 8√(d_c(4K+1)T ln K) + O(d), rests on the two flawed steps.
        """
        K = checks.integer("n_arms", n_arms, low=2)
        d = checks.integer("max_delay", max_delay, low=0)
        T = checks.integer("horizon", horizon, low=1)
        bandit = Exp3(K, learning_rate=4.0 * math.sqrt((d + 1) * math.log(K) / ((4 * K + 1) * T)))
        return cls(bandit, max_delay=d, seed=seed, direction=direction, low=low, high=high)
