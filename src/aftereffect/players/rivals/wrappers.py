"""Other wrappers, which play a base algorithm in blocks: FixedBlock, MiniBatch, Blinded and CLW2018.

FixedBlock is Algorithm 1 (Section 3) without its coins, every block exactly 2d+1 rounds long:

    round        D S S S S│D S S S S│        d = 2: a block is 2d+1 = 5 rounds of one arm
    total seen   x x ├───┤ x x ├───┤         the last d+1 totals hold effects of this block's arm alone

It updates about e times as often as the wrapper. But the first rounds of its blocks are known in advance: losses that
arrive in the first d rounds of a block are never used, and an oblivious adversary can put all differences between the
arms there.

MiniBatch (Arora, Dekel and Tewari 2012) was the first algorithm against an adversary with memory (Section 1 of the
paper compares rates with it). Its blocks of fixed length are fed whole, so the first d totals are mixed with effects of
the previous arm. Instead the block length grows with the horizon, which makes that error small: regret of order
T^{2/3}, for constant d.

Blinded (Dekel, Hazan and Koren 2014) is the predecessor of Algorithm 1:

    coin b_t     1 0 0 1 1 0 1 1             fair coins
    round        D S S U D S U D             an update needs a one after one zero

In that setting the feedback of a round is lost if the arm differs from that of the previous round. An update only after
the coins 0, 1 ensures that it does not differ, and the update rounds do not depend on the arms played. Definition 1 of
the paper requires 2d zeros instead of one, and uses the last d+1 totals instead of one.

CLW2018 is the wrapper of COLT 2018 (Cesa-Bianchi, Gentile and Mansour), which Algorithm 1 replaced (Appendix E):

    coin B_t     1 1 0 0 1 0 1 0 0 1 ...     d = 1, d_c = d+1 = 2
    round        U D S S U D S S S U ...     an update needs a one, and no update in the 2d_c−1 rounds before

Its parameter is d_c = d+1, the number of components of a loss. A block ends when the coin is 1, but coins are ignored
for 2d_c−1 rounds after each update. The updates form a renewal process with mean block length 2d_c−1 + 1/q =
3(2d_c−1) = 6d+3 at the default q = 1/(2(2d_c−1)).
"""

import math
from typing import Any, NamedTuple, Self, Unpack

from aftereffect import theory
from aftereffect.bandits.exp3 import Exp3
from aftereffect.bandits.kernel_bandit import KernelBandit, kernel_base
from aftereffect.core import checks, effects, kernel, random
from aftereffect.core.kernel import FloatState, WordState
from aftereffect.players.base import KernelPlayer, tuned_base
from aftereffect.players.kernels import BLOCK, block_ask, block_begin, block_size, block_sum, block_update
from aftereffect.players.limits import Common, Limits


class FixedParams(NamedTuple):
    """base: the parameters of the base algorithm; base_at: where its state begins.

    length: the rounds of a block, of which the first `skipped` are left out. parts: the number of actions that
    contribute to the sum of the others.
    """

    base: Any
    base_at: int
    length: int
    skipped: int
    parts: int
    limits: Limits


def fixed_tell(params: FixedParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Sum the totals of the block; at the end of the block feed their average over the parts."""
    # After what every player in blocks has: the number of finished rounds of the block and the sum.
    whole = block_sum(state[BLOCK:], params.skipped, params.length, total)
    if whole != whole:
        return 0
    loss = effects.average_loss(params.limits.span, params.parts, whole)
    return block_update(params, n_arms, state, arm, loss)


kernel.register(FixedParams, kernel.PlayerKernel(block_size, block_begin, block_ask, fixed_tell))


class FixedBlock(KernelPlayer):
    """Plays `bandit` in blocks of exactly 2d+1 rounds and feeds it the sum of the last d+1 totals divided by 2d+1.

    As in the wrapper, the fed totals contain effects of one arm only, and Lemma 2 bounds their sum. But Theorem 4 does
    not apply: it needs every round to be equally likely to end a block, so that the fed losses represent all rounds
    equally. Here the totals of rounds 1..d of every block are ignored. This is harmless if the losses do not depend on
    the position in the block; against losses constructed for these blocks the regret grows linearly.

    bandit: the base algorithm, in kernel form.
    max_delay: d ≥ 0, how many rounds after its own an action's effect can still arrive.
    direction, low, high, out_of_range, seed: as for the wrapper. A missing total in the window voids the block:
        the base is not updated and the arm is kept for another block.

    >>> from aftereffect import Exp3
    >>> player = FixedBlock(Exp3(n_arms=2, learning_rate=0.1), max_delay=1, seed=7)
    >>> for total in (0.5, 0.5, 0.25):
    ...     arm = player.ask()
    ...     played = player.tell(total)
    >>> played.update, played.fed_loss           # (0.5 + 0.25)/3: the last d+1 totals, divided by 2d+1
    (True, 0.25)

    References: Section 3 of the paper for the windows; Arora, Dekel and Tewari (2012) for fixed blocks, see
    `MiniBatch`.
    """

    def __init__(self, bandit: KernelBandit, *, max_delay: int, **common: Unpack[Common]) -> None:
        inside = kernel_base(bandit)
        self.max_delay = d = checks.integer("max_delay", max_delay, low=0)
        length = 2 * d + 1
        super().__init__(inside, FixedParams(inside.params, BLOCK + 2, length, d, length, self.limits(d + 1, **common)))

    @classmethod
    def tuned(
        cls, n_arms: int, *, max_delay: int, horizon: int, base: str = "tsallis", **common: Unpack[Common]
    ) -> Self:
        """Return the player whose base is tuned to its ⌊T/(2d+1)⌋ updates."""
        bandit = tuned_base(base, n_arms, theory.most_updates(max_delay, horizon))
        return cls(bandit, max_delay=max_delay, **common)


def block_length(constant: float, power: float, horizon: int) -> int:
    """Return τ = C^{−1/(2−q)} T^{(1−q)/(2−q)}, rounded, in 1..T, for a base whose regret is at most C·N^q.

    C = `constant`, q = `power`, T = `horizon`. With a memory of m the policy regret is at most
    τ·C·(T/τ)^q + Tm/τ + τ; this τ makes the first two terms equal at m = 1, and both of order T^{1/(2−q)}.

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

    The τ totals of a block contain one contiguous part of each of τ + d actions, so their sum lies in (τ+d)·[lo, hi].
    The fed loss is (sum/(τ+d) − lo)/(hi − lo), or 1 minus that for rewards. The original requires losses in [0, 1] in
    each round and divides by τ. Dividing by τ + d, by the argument of Lemma 2, is this library's choice; scaling each
    total by its own range would divide by τ(d+1). If d is not known, the plain average is fed, clipped to the range.

    bandit: the base algorithm, in kernel form.
    block_length: τ ≥ 1; `tuned` chooses it. max_delay: d, used for the scaling and the range of totals; None, the
        default, if not known.
    direction, low, high, out_of_range, seed: as for the wrapper. A missing total voids its block: the base is not
        updated and the arm is kept.

    >>> from aftereffect import Exp3
    >>> player = MiniBatch(Exp3(n_arms=2, learning_rate=0.1), block_length=3, max_delay=1, seed=7)
    >>> for total in (0.25, 0.5, 0.25):
    ...     arm = player.ask()
    ...     played = player.tell(total)
    >>> played.update, played.fed_loss           # 1/(3 + 1)
    (True, 0.25)

    Reference: Arora, Dekel and Tewari, "Online bandit learning against an adaptive adversary: from regret to
    policy regret" (ICML 2012), for the blocks and the rate T^{1/(2−q)}; the constants of the block length and the
    scaling are this library's, from balancing the two terms of the bound under `block_length`.
    """

    def __init__(
        self, bandit: KernelBandit, *, block_length: int, max_delay: int | None = None, **common: Unpack[Common]
    ) -> None:
        inside = kernel_base(bandit)
        self.block_length = checks.integer("block_length", block_length, low=1)
        self.max_delay = None if max_delay is None else checks.integer("max_delay", max_delay, low=0)
        limits = self.limits(None if self.max_delay is None else self.max_delay + 1, **common)
        parts = self.block_length + (self.max_delay or 0)
        super().__init__(inside, FixedParams(inside.params, BLOCK + 2, self.block_length, 0, parts, limits))

    @classmethod
    def tuned(
        cls, n_arms: int, *, horizon: int, max_delay: int | None = None, base: str = "tsallis", **common: Unpack[Common]
    ) -> Self:
        """Return the player with the τ for the base's regret bound C√N, and the base tuned to ⌊T/τ⌋ updates.

        C is 2√(2K) for base="tsallis" (Theorem 6) and √(2K ln K) for base="exp3".
        """
        length = block_length(tuned_base(base, n_arms, 1).regret_bound(1), 0.5, horizon)
        bandit = tuned_base(base, n_arms, horizon // length)
        return cls(bandit, block_length=length, max_delay=max_delay, **common)


class BlindedParams(NamedTuple):
    """base: the parameters of the base algorithm; base_at: where its state begins. max_delay: 0 or 1."""

    base: Any
    base_at: int
    max_delay: int
    limits: Limits


# state, after what every player in blocks has: whether the previous coin was 0. Before round 1 it counts as 1, so that
# round 1 never updates.
ZERO = BLOCK


def blinded_tell(params: BlindedParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Toss the round's coin; feed the round's total if the coin is 1 and the previous one was 0."""
    before = state[ZERO]
    state[ZERO] = 0.0 if random.uniform(rng[random.COINS]) < 0.5 else 1.0
    if before == 0.0 or state[ZERO] == 1.0 or total != total:
        return 0
    loss = effects.average_loss(params.limits.span, params.max_delay + 1, total)
    return block_update(params, n_arms, state, arm, loss)


kernel.register(BlindedParams, kernel.PlayerKernel(block_size, block_begin, block_ask, blinded_tell))


class Blinded(KernelPlayer):
    """Plays `bandit`; tosses a fair coin b_t each round, updates and redraws when (b_{t−1}, b_t) = (0, 1).

    After b_{t−1} = 0 the arm of round t is that of round t−1, so with a delay of at most 1 the total of an update
    round contains effects of one arm only: two parts, whose sum is divided by 2 and scaled to [0, 1]. On average every
    fourth round is an update round, independently of the arms played. With longer delays the totals that are fed are
    mixed; the paper's wrapper corrects this.

    bandit: the base algorithm, in kernel form.
    max_delay: d, 0 or 1. The fed loss is (total/(d+1) − lo)/(hi − lo), or 1 minus that for rewards.
    direction, low, high, out_of_range, seed: as for the wrapper. If the total of an update round is missing, the base
        is not updated and the arm is kept.

    >>> from aftereffect import Exp3
    >>> player = Blinded(Exp3(n_arms=2, learning_rate=0.1), seed=7)
    >>> rounds = [(player.ask(), player.tell(0.5))[1] for _ in range(100)]
    >>> {played.fed_loss for played in rounds if played.update}      # half the total
    {0.25}
    >>> any(a.update and b.update for a, b in zip(rounds, rounds[1:]))
    False

    Reference: Dekel, Hazan and Koren, "The blinded bandit: learning with adaptive feedback" (NIPS 2014):
    fair coins, an update after (0, 1), regret of order √(KT ln K) with Exp3 as base. The scaling and the first round
    are this library's choices, since losses in that paper are immediate.
    """

    def __init__(self, bandit: KernelBandit, *, max_delay: int = 1, **common: Unpack[Common]) -> None:
        inside = kernel_base(bandit)
        self.max_delay = checks.integer("max_delay", max_delay, low=0, high=1)
        limits = self.limits(self.max_delay + 1, **common)
        super().__init__(inside, BlindedParams(inside.params, BLOCK + 1, self.max_delay, limits))

    @classmethod
    def tuned(
        cls, n_arms: int, *, horizon: int, max_delay: int = 1, base: str = "exp3", **common: Unpack[Common]
    ) -> Self:
        """Return the player whose base is tuned to T/4 updates, the expected number."""
        bandit = tuned_base(base, n_arms, checks.integer("horizon", horizon, low=1) // 4)
        return cls(bandit, max_delay=max_delay, **common)


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


def clw_tell(params: CLW2018Params, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Toss the round's coin; if it is 1 and no update was made in the last 2d+1 rounds, feed the d+1 latest totals."""
    d = params.max_delay
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
    return block_update(params, n_arms, state, arm, effects.average_loss(params.limits.span, 2 * d + 2, window))


kernel.register(CLW2018Params, kernel.PlayerKernel(block_size, block_begin, block_ask, clw_tell))


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
        super().__init__(inside, CLW2018Params(inside.params, TOTALS + d + 1, d, self.update_probability, limits))

    @classmethod
    def tuned(cls, n_arms: int, *, max_delay: int, horizon: int, **common: Unpack[Common]) -> Self:
        """Return the player with Exp3 at the published rate η = 4√(d_c ln K/((4K+1)T)).

        The published bound, 8√(d_c(4K+1)T ln K) + O(d), depends on the two erroneous steps.
        """
        K, d, T = checks.sizes(n_arms, max_delay, horizon)
        bandit = Exp3(K, learning_rate=4.0 * math.sqrt((d + 1) * math.log(K) / ((4 * K + 1) * T)))
        return cls(bandit, max_delay=d, **common)
