"""Algorithm 1 in kernel form, for windows (`wrapper`) and coin-clean stretches (`coin_clean`).

Round by round, for losses that linger longer than the player thinks: what `wrapper.py` does, with totals that are
missing (NaN here) or out of range. And block by block, for the engine that visits blocks only.
"""

from typing import Any, NamedTuple

from aftereffect.core import effects, kernel, random
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState, helper
from aftereffect.players.wrapper.coins import Coins, next_update

RAISE, VOID, CLIP = 0, 1, 2


class WrapperParams(NamedTuple):
    """base: the parameters of the base algorithm. Bounds on totals and windows come with their margin for rounding."""

    base: Any
    coins: Coins
    max_delay: int
    span: effects.Effects
    total_bounds: tuple[float, float]
    window_bounds: tuple[float, float]
    policy: int


class CoinCleanParams(NamedTuple):
    """base: the parameters of the base algorithm. scale: C, by which a stretch's sum is divided."""

    base: Any
    coins: Coins
    max_delay: int
    span: effects.Effects
    total_bounds: tuple[float, float]
    policy: int
    scale: float


# state, after what every player has: round, end of the block (0: not known), arm, whether to draw next, three places
# of the coins; then, for windows, the d+1 latest totals (NaN: missing or void), for stretches the sum so far (NaN: a
# total is missing or void); then the base's state.
ROUND, END, ARM, DRAW, PLACE, TOTALS = OWN, OWN + 1, OWN + 2, OWN + 3, OWN + 4, OWN + 7
STRETCH_BASE = TOTALS + 1


def window_size(params: WrapperParams, n_arms: int) -> int:
    """A few scalars, d+1 totals, the base's state."""
    return TOTALS + params.max_delay + 1 + kernel.BANDITS[type(params.base)].size(n_arms)


def window_begin(params: WrapperParams, n_arms: int, state: FloatState) -> None:
    """Stand before round 1."""
    begin(params.base, n_arms, state, TOTALS + params.max_delay + 1)


def window_ask(params: WrapperParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Begin a round: draw if a block begins, else stay."""
    d = params.max_delay
    return ask(params.base, params.coins, 2 * d, n_arms, state, state[TOTALS + d + 1 :], rng)


def window_tell(params: WrapperParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """End a round; feed the base if it is an update round with a sound window."""
    d = params.max_delay
    t = int(state[ROUND])
    state[FED] = float("nan")
    total = admitted(params.total_bounds, params.policy, total)
    if total == REFUSED:
        return -1
    state[TOTALS + t % (d + 1)] = total
    if t != state[END]:
        return 0
    window = 0.0
    for s in range(t - d, t + 1):
        window += state[TOTALS + s % (d + 1)]
    verdict = judged(params.window_bounds, params.policy, window)
    if verdict <= 0:
        return verdict
    state[FED] = effects.fed_loss(params.span, d, window)
    kernel.bandit_update(params.base, n_arms, state[TOTALS + d + 1 :], arm, state[FED])
    state[DRAW] = 1.0
    return 1


def stretch_size(params: CoinCleanParams, n_arms: int) -> int:
    """A few scalars, the base's state."""
    return STRETCH_BASE + kernel.BANDITS[type(params.base)].size(n_arms)


def stretch_begin(params: CoinCleanParams, n_arms: int, state: FloatState) -> None:
    """Stand before round 1."""
    begin(params.base, n_arms, state, STRETCH_BASE)


def stretch_ask(params: CoinCleanParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Begin a round: draw if a block begins, else stay."""
    return ask(params.base, params.coins, params.max_delay, n_arms, state, state[STRETCH_BASE:], rng)


def stretch_tell(
    params: CoinCleanParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float
) -> int:
    """End a round; feed the base if it is an update round with a sound stretch."""
    d, t, end = params.max_delay, int(state[ROUND]), int(state[END])
    state[FED] = float("nan")
    total = admitted(params.total_bounds, params.policy, total)
    if total == REFUSED:
        return -1
    # The latest one before the stretch: known with its end, or the latest of all while no end is in sight. Where that
    # is yet to come, this gap is too short for a stretch, and what is summed is not used.
    latest = int(state[PLACE]) if end < t else end - int(state[PLACE + 2])
    if t == latest + d + 1:
        state[TOTALS] = 0.0
    if t > latest + d:
        state[TOTALS] += total
    if t != end:
        return 0
    gap = end - latest
    verdict = judged(effects.stretch_bounds(params.span, d, gap - d), params.policy, state[TOTALS])
    if verdict <= 0:
        return verdict
    state[FED] = effects.stretch_loss(params.span, d, gap - d, params.scale, state[TOTALS])
    stretch_learn(params, n_arms, state[STRETCH_BASE:], arm, state[FED], gap)
    state[DRAW] = 1.0
    return 1


@helper
def begin(base: Any, n_arms: int, state: FloatState, base_at: int) -> None:
    """Write the initial state, with that of the base from `base_at` on."""
    for i in range(base_at):
        state[i] = 0.0
    state[DRAW] = 1.0
    kernel.bandit_start(base, n_arms, state[base_at:])


@helper
def ask(
    base: Any, coins: Coins, quiet: int, n_arms: int, state: FloatState, base_state: FloatState, rng: WordState
) -> int:
    """Draw if a block begins, and look up where it ends."""
    state[DREW] = state[DRAW]
    if state[DRAW] == 1.0:
        state[ARM] = kernel.bandit_draw(base, n_arms, base_state, random.uniform(rng[random.ARMS]))
        state[DRAW] = 0.0
    state[ROUND] += 1.0
    t = int(state[ROUND])
    # A script is looked up one update round at a time, drawn coins are known up to the second place.
    known = state[END] if coins.script.shape[0] > 0 else state[PLACE + 1]
    if t > known:
        state[END] = next_update(coins, rng[random.COINS], state[PLACE:], quiet, t)
    return int(state[ARM])


REFUSED = float("inf")


@helper
def admitted(bounds: tuple[float, float], policy: int, total: float) -> float:
    """Return the total as it will be used: NaN if it is missing or void, REFUSED if it must not be."""
    least, most = bounds
    if total < least or total > most:
        if policy == RAISE:
            return REFUSED
        return min(max(total, least), most) if policy == CLIP else float("nan")
    return total


@helper
def judged(bounds: tuple[float, float], policy: int, whole: float) -> int:
    """Return 1 if a sum of clean totals is to be fed, 0 if it is void, −1 if it must be refused."""
    least, most = bounds
    if least <= whole <= most:
        return 1
    if whole != whole or policy == VOID:
        return 0
    return -1 if policy == RAISE else 1


def window_quiet(params: WrapperParams) -> int:
    """2d zeros before a one end a block (Definition 1)."""
    return 2 * params.max_delay


def window_rows(params: WrapperParams) -> int:
    """A row of W is the sum of d+1 totals."""
    return params.max_delay


def window_loss(params: WrapperParams, rows: FloatState, end: int, gap: int, arm: int) -> float:
    """Return the loss that the window at a block's end feeds."""
    return effects.fed_loss(params.span, params.max_delay, rows[end, 1, arm])


def window_learn(params: WrapperParams, n_arms: int, state: FloatState, arm: int, loss: float, gap: int) -> None:
    """Feed it."""
    kernel.bandit_update(params.base, n_arms, state, arm, loss)


def stretch_quiet(params: CoinCleanParams) -> int:
    """The d zeros before a one that end a block."""
    return params.max_delay


def stretch_rows(params: CoinCleanParams) -> int:
    """A row of W is one total."""
    return 0


def stretch_loss(params: CoinCleanParams, rows: FloatState, end: int, gap: int, arm: int) -> float:
    """Add up the stretch, oldest first as the player does, and scale it."""
    d = params.max_delay
    whole = 0.0
    for t in range(end - (gap - d) + 1, end + 1):
        whole += rows[t, 1, arm]
    return effects.stretch_loss(params.span, d, gap - d, params.scale, whole)


@helper
def stretch_learn(params: CoinCleanParams, n_arms: int, state: FloatState, arm: int, loss: float, gap: int) -> None:
    """Feed the base a stretch's loss, with what was to be expected of its length."""
    terms = effects.stretch_terms(params.span, params.max_delay, gap - params.max_delay, params.scale)
    kernel.bandit_update_sum(params.base, n_arms, state, arm, loss, terms)


kernel.register(WrapperParams, kernel.PlayerKernel(window_size, window_begin, window_ask, window_tell))
kernel.register(CoinCleanParams, kernel.PlayerKernel(stretch_size, stretch_begin, stretch_ask, stretch_tell))
kernel.register(WrapperParams, kernel.BlockKernel(window_quiet, window_rows, window_loss, window_learn))
kernel.register(CoinCleanParams, kernel.BlockKernel(stretch_quiet, stretch_rows, stretch_loss, stretch_learn))
