"""Algorithm 1 in kernel form, for windows (`wrapper`) and coin-clean stretches (`coin_clean`).

The PlayerKernels play round by round, as `wrapper.py` does, and accept totals that are missing (NaN) or out of range;
they are needed if losses have longer delays than the player assumes. The BlockKernels are for the engine that computes
only the ends of blocks.
"""

from typing import Any, NamedTuple

import numpy as np

from aftereffect.core import effects, kernel, random
from aftereffect.core.kernel import FED, FloatState, WordState, helper
from aftereffect.players.kernels import BLOCK, DRAW, block_ask, block_begin, block_size, block_update
from aftereffect.players.limits import RAISE, VOID, Limits
from aftereffect.players.wrapper.coins import Coins, next_update

# An unsigned index cannot count from the end, which would have to be checked.
_1, _2, _3, _4 = (np.uint64(n) for n in (1, 2, 3, 4))


class WrapperParams(NamedTuple):
    """base: the parameters of the base algorithm; base_at: where its state begins.

    window_bounds: the least and the greatest possible sum of the d+1 totals of a window, with a margin for rounding.
    """

    base: Any
    base_at: int
    coins: Coins
    max_delay: int
    limits: Limits
    window_bounds: tuple[float, float]


class CoinCleanParams(NamedTuple):
    """base, base_at: as in `WrapperParams`. scale: C, by which the sum of a stretch is divided."""

    base: Any
    base_at: int
    coins: Coins
    max_delay: int
    limits: Limits
    scale: float


# state, after what every player in blocks has: the round, the end of the block (0: not known), the three numbers of
# `place` in `next_update`; then for windows the d+1 latest totals (NaN: missing or void), for stretches the sum so far
# (NaN: a total is missing or void); then the base's state.
ROUND, END, PLACE, TOTALS = BLOCK, BLOCK + 1, BLOCK + 2, BLOCK + 5


def clean_ask(params: WrapperParams | CoinCleanParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Begin a round: read its coin; draw an arm if a block begins, else keep the arm."""
    state[ROUND] += 1.0
    t = int(state[ROUND])
    # A given sequence is known up to the end of the block, drawn coins up to the round in place[1].
    known = state[END] if params.coins.script.shape[0] > 0 else state[PLACE + 1]
    if t > known:
        state[END] = next_update(params.coins, rng[random.COINS], state[PLACE:], kernel.block_quiet(params), t)
    return block_ask(params, n_arms, state, rng)


def window_tell(params: WrapperParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """End a round; feed the base if it is an update round with a valid window."""
    d = params.max_delay
    t = int(state[ROUND])
    state[TOTALS + t % (d + 1)] = total
    if t != state[END]:
        return 0
    window = 0.0
    for s in range(t - d, t + 1):
        window += state[TOTALS + s % (d + 1)]
    verdict = judged(params.window_bounds, params.limits.policy, window)
    if verdict <= 0:
        return verdict
    return block_update(params, n_arms, state, arm, effects.fed_loss(params.limits.span, d, window))


def stretch_tell(
    params: CoinCleanParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float
) -> int:
    """End a round; feed the base if it is an update round with a valid stretch."""
    d, t, end = params.max_delay, int(state[ROUND]), int(state[END])
    # The latest round before the stretch whose coin is 1. If the end of the block is not known, it is the latest such
    # round drawn so far; if that lies after t, the gap before it is too short for a stretch, and the sum is not used.
    latest = int(state[PLACE]) if end < t else end - int(state[PLACE + 2])
    if t == latest + d + 1:
        state[TOTALS] = 0.0
    if t > latest + d:
        state[TOTALS] += total
    if t != end:
        return 0
    gap = end - latest
    verdict = judged(effects.stretch_bounds(params.limits.span, d, gap - d), params.limits.policy, state[TOTALS])
    if verdict <= 0:
        return verdict
    state[FED] = effects.stretch_loss(params.limits.span, d, gap - d, params.scale, state[TOTALS])
    stretch_learn(params, n_arms, state[params.base_at :], arm, state[FED], gap)
    state[DRAW] = 1.0
    return 1


@helper
def judged(bounds: tuple[float, float], policy: int, whole: float) -> int:
    """Return 1 if a sum of clean totals is to be fed, 0 if it is void, −1 if it is refused."""
    least, most = bounds
    if least <= whole <= most:
        return 1
    if whole != whole or policy == VOID:
        return 0
    return -1 if policy == RAISE else 1


def window_quiet(params: WrapperParams) -> int:
    """An update needs 2d zeros before its one (Definition 1)."""
    return 2 * params.max_delay


def window_loss(params: WrapperParams, rows: FloatState, end: int, gap: int, arm: int) -> float:
    """Return the loss fed for the window at the end of a block."""
    return effects.fed_loss(params.limits.span, params.max_delay, rows[end, arm, 1])


def window_learn(params: WrapperParams, n_arms: int, state: FloatState, arm: int, loss: float, gap: int) -> None:
    """Feed the base the loss of a window."""
    kernel.bandit_update(params.base, n_arms, state, arm, loss)


def stretch_quiet(params: CoinCleanParams) -> int:
    """An update needs d zeros before its one."""
    return params.max_delay


def stretch_loss(params: CoinCleanParams, rows: FloatState, end: int, gap: int, arm: int) -> float:
    """Return the loss fed for the stretch at the end of a block, summed oldest first as the player does."""
    d = params.max_delay
    totals = rows[:, arm, 1]
    whole = 0.0
    t, last = np.uint64(end - (gap - d) + 1), np.uint64(end)
    # Four at a time: they are fetched together, and added in the same order.
    while t + _3 <= last:
        a, b, c, e = totals[t], totals[t + _1], totals[t + _2], totals[t + _3]
        whole = whole + a + b + c + e
        t += _4
    while t <= last:
        whole += totals[t]
        t += _1
    return effects.stretch_loss(params.limits.span, d, gap - d, params.scale, whole)


@helper
def stretch_learn(params: CoinCleanParams, n_arms: int, state: FloatState, arm: int, loss: float, gap: int) -> None:
    """Feed the base the loss of a stretch, with the weight, offset and top for its length."""
    terms = effects.stretch_terms(params.limits.span, params.max_delay, gap - params.max_delay, params.scale)
    kernel.bandit_update_sum(params.base, n_arms, state, arm, loss, terms)


kernel.register(WrapperParams, kernel.PlayerKernel(block_size, block_begin, clean_ask, window_tell))
kernel.register(CoinCleanParams, kernel.PlayerKernel(block_size, block_begin, clean_ask, stretch_tell))
# A row of W is the sum of d+1 totals for windows, and one total for stretches.
kernel.register(WrapperParams, kernel.BlockKernel(window_quiet, lambda form: form.max_delay, window_loss, window_learn))
kernel.register(CoinCleanParams, kernel.BlockKernel(stretch_quiet, lambda form: 0, stretch_loss, stretch_learn))
