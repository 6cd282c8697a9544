"""Algorithm 1 in kernel form, round by round, for losses that linger longer than the player thinks.

It puts together the pieces that `wrapper.py` and the block engine use (`next_update`, `fed_loss`, the base's kernel),
and does what `wrapper.py` does with totals that are missing (NaN here) or out of range.
"""

from typing import Any, NamedTuple

from aftereffect.core import effects, kernel, random
from aftereffect.core.kernel import DREW, FED, OWN
from aftereffect.players.coins import Coins, next_update

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


# state, after what every player has: round, end of the block (0: not known), arm, whether to draw next, three places
# of the coins; the d+1 latest totals (NaN: missing or void); then the base's state.
ROUND, END, ARM, DRAW, PLACE, TOTALS = OWN, OWN + 1, OWN + 2, OWN + 3, OWN + 4, OWN + 7


def size(params: WrapperParams, n_arms: int) -> int:
    """A few scalars, d+1 totals, the base's state."""
    return TOTALS + params.max_delay + 1 + kernel.BANDITS[type(params.base)].size(n_arms)


def begin(params: WrapperParams, n_arms: int, state: kernel.FloatState) -> None:
    """Stand before round 1."""
    for i in range(TOTALS + params.max_delay + 1):
        state[i] = 0.0
    state[DRAW] = 1.0
    kernel.bandit_start(params.base, n_arms, state[TOTALS + params.max_delay + 1 :])


def ask(params: WrapperParams, n_arms: int, state: kernel.FloatState, rng: kernel.WordState) -> int:
    """Begin a round: draw if a block begins, else stay."""
    state[DREW] = state[DRAW]
    if state[DRAW] == 1.0:
        base = state[TOTALS + params.max_delay + 1 :]
        state[ARM] = kernel.bandit_draw(params.base, n_arms, base, random.uniform(rng[random.ARMS]))
        state[DRAW] = 0.0
    state[ROUND] += 1.0
    t = int(state[ROUND])
    # A script is looked up one update round at a time, drawn coins are known up to the second place.
    known = state[END] if params.coins.script.shape[0] > 0 else state[PLACE + 1]
    if t > known:
        state[END] = next_update(params.coins, rng[random.COINS], state[PLACE:], 2 * params.max_delay, t)
    return int(state[ARM])


def tell(
    params: WrapperParams, n_arms: int, state: kernel.FloatState, rng: kernel.WordState, arm: int, total: float
) -> int:
    """End a round; feed the base if it is an update round with a sound window."""
    d = params.max_delay
    t = int(state[ROUND])
    state[FED] = float("nan")
    least, most = params.total_bounds
    if total < least or total > most:
        if params.policy == RAISE:
            return -1
        total = min(max(total, least), most) if params.policy == CLIP else float("nan")
    state[TOTALS + t % (d + 1)] = total
    if t != state[END]:
        return 0
    window = 0.0
    for s in range(t - d, t + 1):
        window += state[TOTALS + s % (d + 1)]
    least, most = params.window_bounds
    if not least <= window <= most:
        if window != window or params.policy == VOID:
            return 0
        if params.policy == RAISE:
            return -1
    state[FED] = effects.fed_loss(params.span, d, window)
    kernel.bandit_update(params.base, n_arms, state[TOTALS + d + 1 :], arm, state[FED])
    state[DRAW] = 1.0
    return 1


def quiet(params: WrapperParams) -> int:
    """2d zeros before a one end a block (Definition 1)."""
    return 2 * params.max_delay


def window(params: WrapperParams) -> int:
    """A row of W is the sum of d+1 totals."""
    return params.max_delay


def loss(params: WrapperParams, rows: kernel.FloatState, end: int, gap: int, arm: int) -> float:
    """Return the loss that the window at a block's end feeds."""
    return effects.fed_loss(params.span, params.max_delay, rows[end, 1, arm])


def learn(params: WrapperParams, n_arms: int, state: kernel.FloatState, arm: int, loss: float, gap: int) -> None:
    """Feed it."""
    kernel.bandit_update(params.base, n_arms, state, arm, loss)


kernel.register(WrapperParams, kernel.PlayerKernel(size, begin, ask, tell))
kernel.register(WrapperParams, kernel.BlockKernel(quiet, window, loss, learn))
