"""Adaptive round sizes (Wang, Wang and Huang 2021), for an unknown maximal delay.

Arms are played in blocks of growing length, and all totals of a block are credited to its arm. The first d totals of a
block are mixed, which changes its sum by at most d; relative to the growing blocks this error vanishes for every d.
Only the idea and the order of the published bounds are followed, not the published constants: the growth of the blocks,
the width of the index and the step sizes are parameters, with defaults derived here that are *not* the authors'.
Section 1 of the paper compares rates with theirs.
"""

import math
from typing import NamedTuple, Unpack

from aftereffect.core import checks, kernel, random
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState, helper
from aftereffect.players.base import KernelPlayer
from aftereffect.players.kernels import zero_begin
from aftereffect.players.limits import Common, Limits
from aftereffect.players.rivals.block_ucb import least_index


class ARSUCBParams(NamedTuple):
    """growth: γ. width: α."""

    growth: float
    width: float
    limits: Limits


class ARSExp3Params(NamedTuple):
    """growth: γ. step: c."""

    growth: float
    step: float
    limits: Limits


# state of both, after what every player has: the number of rounds told; of the current block the rounds left, the arm,
# the length, the sum of its scaled totals, how many were observed; the number of blocks begun, Σ f², the sum of
# weights. Then by arm: for UCB the sum and number of totals and the number of blocks begun; for Exp3 the weight and the
# estimated loss.
ROUND, LEFT, ARM, LENGTH, SUM, SEEN, BLOCKS, SQUARES, WHOLE, ARMS = (OWN + k for k in range(10))


@helper
def block_size(growth: float, k: float) -> float:
    """Return f(k) = ⌈k^γ⌉; the tolerance prevents rounding errors from increasing whole powers."""
    return float(math.ceil(k**growth - 1e-9))


@helper
def ends_block(limits: Limits, state: FloatState, total: float) -> bool:
    """Add a total to the block; return whether it ended a block with at least one observed total."""
    state[ROUND] += 1.0
    state[LEFT] -= 1.0
    if total == total:
        span = limits.span
        loss = (total - span.lo) / (span.hi - span.lo)
        state[SUM] += 1.0 - loss if span.maximize else loss
        state[SEEN] += 1.0
    if state[LEFT] > 0.0 or state[SEEN] == 0.0:
        return False
    state[FED] = min(max(state[SUM] / state[SEEN], 0.0), 1.0)
    return True


@helper
def open_block(state: FloatState, arm: int, length: float) -> None:
    """Begin a block."""
    state[DREW], state[ARM] = 1.0, arm
    state[LENGTH], state[LEFT] = length, length
    state[SUM], state[SEEN] = 0.0, 0.0


def size(params: ARSUCBParams | ARSExp3Params, n_arms: int) -> int:
    """Nine scalars, three numbers per arm."""
    return ARMS + 3 * n_arms


def ask_ucb(params: ARSUCBParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Choose the arm of least index when a block begins, else keep the arm."""
    state[DREW] = 0.0
    if state[LEFT] == 0.0:
        counts = state[ARMS + n_arms :]
        arm = least_index(1.0, math.sqrt(params.width), state[ROUND], n_arms, state[ARMS:], counts)
        state[ARMS + 2 * n_arms + arm] += 1.0
        open_block(state, arm, block_size(params.growth, state[ARMS + 2 * n_arms + arm]))
    return int(state[ARM])


def tell_ucb(params: ARSUCBParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """At the end of a block credit its totals to its arm."""
    if not ends_block(params.limits, state, total):
        return 0
    state[ARMS + arm] += state[SUM]
    state[ARMS + n_arms + arm] += state[SEEN]
    return 1


def ask_exp3(params: ARSExp3Params, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Compute the weights and draw an arm when a block begins, else keep the arm."""
    state[DREW] = 0.0
    if state[LEFT] == 0.0:
        weights, losses = state[ARMS:], state[ARMS + n_arms :]
        state[BLOCKS] += 1.0
        length = block_size(params.growth, state[BLOCKS])
        state[SQUARES] += length * length
        eta = params.step * math.sqrt(math.log(n_arms) / (n_arms * state[SQUARES]))
        least = kernel.least(n_arms, losses)
        state[WHOLE] = 0.0
        for i in range(n_arms):
            weights[i] = math.exp(-eta * (losses[i] - least))
            state[WHOLE] += weights[i]
        arm = random.scan(weights, n_arms, random.uniform(rng[random.ARMS]) * state[WHOLE])
        open_block(state, arm, length)
    return int(state[ARM])


def tell_exp3(params: ARSExp3Params, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """At the end of a block add its loss, divided by its arm's probability, to the estimate of the arm."""
    if not ends_block(params.limits, state, total):
        return 0
    if state[FED] > 0.0:  # avoids 0·∞ where 1/q(J) overflows
        step = state[FED] * state[LENGTH] * (state[WHOLE] / state[ARMS + arm])
        state[ARMS + n_arms + arm] = min(state[ARMS + n_arms + arm] + step, 1e300)
    return 1


kernel.register(ARSUCBParams, kernel.PlayerKernel(size, zero_begin, ask_ucb, tell_ucb))
kernel.register(ARSExp3Params, kernel.PlayerKernel(size, zero_begin, ask_exp3, tell_exp3))


class ARSUCB(KernelPlayer):
    """Plays the arm of least index M(i)/N(i) − √(α ln t/N(i)); the k-th block of an arm has ⌈k^γ⌉ rounds.

    M(i) is the sum of all totals of arm i's blocks, in units of hi − lo, and N(i) their number. The error of a block's
    sum is at most d, so the error of an arm's mean after k blocks is at most d·k/N with N ≈ k^{γ+1}/(γ+1). At γ = 1
    that is d√(2/N), of the same order as the width of the index; at γ = 2 it is about 1.44·d/N^{2/3} and vanishes
    faster. An arm of gap Δ is then played O(ln T/Δ² + (d/Δ)^{1+1/γ}) times: the regret is of order ln T, as published,
    and the cost of not knowing the delay does not grow with T.

    growth: γ in [0, 8]. width: α ≥ 0; UCB1 has 2. The default, 5, is this library's choice: the totals of a block are
        not independent, which requires wider intervals.
    direction, low, high, out_of_range, seed: as for the wrapper. Missing totals are skipped.

    >>> player = ARSUCB(n_arms=2, seed=7)
    >>> [(player.ask(), player.tell(0.5))[0] for _ in range(10)]        # blocks of 1, 1, 4 and 4 rounds
    [0, 1, 0, 0, 0, 0, 1, 1, 1, 1]

    Reference: Wang, Wang and Huang, "Adaptive algorithms for multi-armed bandit with composite and anonymous
    feedback" (AAAI 2021), for the idea; growth, width and the anytime logarithm are this library's choices.
    """

    def __init__(self, n_arms: int, *, growth: float = 2.0, width: float = 5.0, **common: Unpack[Common]) -> None:
        self.growth = checks.real("growth", growth, low=0.0, high=8.0)
        self.width = checks.real("width", width, low=0.0)
        super().__init__(n_arms, ARSUCBParams(self.growth, self.width, self.limits(None, **common)))


class ARSExp3(KernelPlayer):
    """Plays Exp3 on blocks: block k has f(k) = ⌈k^γ⌉ rounds, and its arm is drawn from q_k ∝ exp(−η_k L̂).

    A block's loss Y is its average total, in units of hi − lo and clipped to [0, 1], times f(k). At the end of a block
    of arm J, Y/q_k(J) is added to L̂(J). The rate η_k = c√(ln K/(K Σ_{j≤k} f(j)²)) needs no horizon. At c = 1 the
    regret in the losses Y after B blocks is at most 2√(K ln K·Σ f²) (Exp3 with a decreasing rate, losses up to f(k)).
    Mixing changes a block's sum by at most d, clipping by at most d more, and the last block may be cut short:

        R_T ≤ hi·( 2√(K ln K·Σ_{k≤B} f(k)²) + 2dB + f(B) ),     for effects that are never negative.

    With γ = ½, B ≈ (3T/2)^{2/3} and Σ f² ≈ B²/2: order (d + √(K ln K))·T^{2/3}; T^{2/3} is the published rate. L̂ must
    contain sums, not averages: with averages of growing blocks, one early round would have the same weight as many late
    ones, and the regret could be linear.

    growth: γ in [0, 8], ½ by default. step: c > 0, 1 by default.
    direction, low, high, out_of_range, seed: as for the wrapper. Missing totals are skipped.

    >>> player = ARSExp3(n_arms=2, seed=7)
    >>> [(player.ask(), player.tell(0.5))[1].draw for _ in range(7)]    # blocks of 1, 2, 2 and 2 rounds
    [True, True, False, True, False, True, False]

    Reference: as for `ARSUCB`; growth, weights and step sizes are this library's choices.
    """

    def __init__(self, n_arms: int, *, growth: float = 0.5, step: float = 1.0, **common: Unpack[Common]) -> None:
        self.growth = checks.real("growth", growth, low=0.0, high=8.0)
        self.step = checks.real("step", step, above=0.0)
        super().__init__(n_arms, ARSExp3Params(self.growth, self.step, self.limits(None, **common)))

    def regret_bound(self, horizon: int, max_delay: int) -> float:
        """Return the smaller of T·hi and the bound above, in which c + 1/c replaces 2 if step c is not 1."""
        K, d, T = checks.sizes(self.n_arms, max_delay, horizon)
        if self.effects.lo < 0.0:
            raise InvalidArgument(f"low must be at least 0 for the bound to hold, but got {self.low!r}")
        blocks, played, squares, length = 0, 0.0, 0.0, 0.0
        while played < T:
            blocks += 1
            length = block_size(self.growth, blocks)
            played += length
            squares += length * length
        learned = (self.step + 1.0 / self.step) * math.sqrt(K * math.log(K) * squares)
        return min(learned + 2 * d * blocks + length, T) * self.effects.hi
