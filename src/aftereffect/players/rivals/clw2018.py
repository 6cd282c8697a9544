"""The COLT 2018 wrapper (Cesa-Bianchi, Gentile and Mansour), which Algorithm 1 replaced (Appendix E).

    coin B_t     1 1 0 0 1 0 1 0 0 1 ...     d = 1, d_c = d+1 = 2
    round        U D S S U D S S S U ...     an update needs a one, and no update in the 2d_c−1 rounds before

Its parameter is d_c = d+1, the number of components of a loss. A block ends when the coin is 1, but coins are ignored
for 2d_c−1 rounds after each update. The updates form a renewal process with mean block length 2d_c−1 + 1/q =
3(2d_c−1) = 6d+3 at the default q = 1/(2(2d_c−1)).
"""

import math
from typing import Any, NamedTuple, Self, Unpack

from aftereffect.bandits.exp3 import Exp3
from aftereffect.bandits.kernel_bandit import KernelBandit, kernel_base
from aftereffect.core import checks, effects, kernel, random
from aftereffect.core.kernel import FloatState, WordState
from aftereffect.players import base as shared
from aftereffect.players.base import BLOCK, REFUSED, Common, KernelPlayer, Limits


class CLW2018Params(NamedTuple):
    """base: the parameters of the base algorithm; base_at: where its state begins. update_probability: q."""

    base: Any
    base_at: int
    max_delay: int
    update_probability: float
    limits: Limits


# state, after what every player in blocks has: the number of rounds told, the number of further rounds in which coins
# are ignored, the d+1 latest totals. The totals before round 1 are 0.
ROUND, WAIT, TOTALS = BLOCK, BLOCK + 1, BLOCK + 2


def tell(params: CLW2018Params, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Toss the round's coin; if it is 1 and no update was made in the last 2d+1 rounds, feed the d+1 latest totals."""
    d = params.max_delay
    total = shared.begin_tell(params.limits, 1.0, state, total)
    if total == REFUSED:
        return -1
    state[ROUND] += 1.0
    t = int(state[ROUND])
    state[TOTALS + t % (d + 1)] = total
    coin = random.uniform(rng[random.COINS]) < params.update_probability
    if state[WAIT] > 0.0:
        state[WAIT] -= 1.0
        return 0
    if not coin:
        return 0
    window = 0.0
    for s in range(t + 1, t + d + 2):
        window += state[TOTALS + s % (d + 1)]
    if window != window:
        return 0
    state[WAIT] = 2 * d + 1
    return shared.block_update(params, n_arms, state, arm, effects.average_loss(params.limits.span, 2 * d + 2, window))


kernel.register(CLW2018Params, kernel.PlayerKernel(shared.block_size, shared.block_begin, shared.block_ask, tell))


class CLW2018(KernelPlayer):
    """The wrapper of the paper's preliminary version: plays `bandit` in random blocks of at least 2d_c rounds.

    Round t is an update round if B_t = 1 and none of the previous 2d_c−1 rounds was an update round, with d_c = d+1.
    Then the base is fed the sum of the d_c latest totals divided by 2d_c, and the next round draws. (The first block
    may be shorter: an update is allowed from round 1 on, and totals before round 1 are 0.)

    It performs well in practice, but its proof has two errors, which Appendix E of the paper describes.

    1. *Update rounds depend on the history.* "No update in the previous 2d_c−1 rounds" is a condition on rounds that in
       turn depend on the coins before them, hence on how often the base has learned, hence on the arm that is played:
       P(t is an update round | I_{t−2d_c+1}) differs from arm to arm. The proof bounds P(t is an update round) from
       below by q(1 − q(2d_c−1)) and multiplies by regrets Δ_t; this fails for Δ_t < 0 (with Δ_t = −1 throughout, it
       claims that −1/3 is at least −1/4, in units of T/(2d_c−1)). Definition 1 depends on 2d coins that are
       independent of the arm before them, and gives an equality.
    2. *The stability term is counted only once.* An update at t−d_c+1 changes the distribution in each of the d_c−1
       rounds up to t. The proof bounds E Σ_{s<d_c} Σ_i (p_{t−s}(i) − p_{t−d_c+1}(i))⁺ by ξ, but given such an update
       it is dξ, and ξ·d(d+1)/(6(2d+1)) on average over updates, which exceeds ξ from d = 12 on. The correct order is
       Θ(dξ), as in the term 2d·p·ξ·T of Theorem 4.

    bandit: the base algorithm, in kernel form. max_delay: d ≥ 0.
    update_probability: q, by default 1/(2(2d_c−1)) = 1/(4d+2).
    direction, low, high, out_of_range, seed: as for the wrapper. A window with a missing total is not fed, and the
        block continues.

    >>> player = CLW2018(Exp3(n_arms=2, learning_rate=0.1), max_delay=1, update_probability=1.0, seed=7)
    >>> rounds = [(player.ask(), player.tell(0.5))[1] for _ in range(6)]
    >>> [played.round for played in rounds if played.update]       # in round 1, then every 2d_c = 4 rounds
    [1, 5]
    >>> rounds[4].fed_loss                                         # (0.5 + 0.5)/4
    0.25

    Reference: Cesa-Bianchi, Gentile and Mansour, "Nonstochastic bandits with composite anonymous feedback"
    (COLT 2018); Appendix E of the paper.
    """

    def __init__(
        self, bandit: KernelBandit, *, max_delay: int, update_probability: float | None = None, **common: Unpack[Common]
    ) -> None:
        inside = kernel_base(bandit)
        self.max_delay = d = checks.integer("max_delay", max_delay, low=0)
        q = 1.0 / (4 * d + 2) if update_probability is None else update_probability
        self.update_probability = checks.real("update_probability", q, above=0.0, high=1.0)
        limits = self.limits(d + 1, **common)
        params = CLW2018Params(inside.params, TOTALS + d + 1, d, self.update_probability, limits)
        super().__init__(inside, params, max_delay=d, update_probability=self.update_probability)

    @classmethod
    def tuned(cls, n_arms: int, *, max_delay: int, horizon: int, **common: Unpack[Common]) -> Self:
        """Return the player with Exp3 at the published rate η = 4√(d_c ln K/((4K+1)T)).

        The published bound, 8√(d_c(4K+1)T ln K) + O(d), depends on the two erroneous steps.
        """
        K = checks.integer("n_arms", n_arms, low=2)
        d = checks.integer("max_delay", max_delay, low=0)
        T = checks.integer("horizon", horizon, low=1)
        bandit = Exp3(K, learning_rate=4.0 * math.sqrt((d + 1) * math.log(K) / ((4 * K + 1) * T)))
        return cls(bandit, max_delay=d, **common)
