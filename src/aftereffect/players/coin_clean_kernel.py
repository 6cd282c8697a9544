"""The player of coin_clean.py in kernel form: round by round, and block by block."""

from typing import Any, NamedTuple

from aftereffect.core import effects, kernel, random
from aftereffect.core.kernel import DREW, FED, OWN
from aftereffect.players.coins import Coins, next_update
from aftereffect.players.wrapper_kernel import CLIP, RAISE, VOID


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
# of the coins, the sum of the stretch so far (NaN: one is missing or void); then the base's state.
ROUND, END, ARM, DRAW, PLACE, SUM, BASE = OWN, OWN + 1, OWN + 2, OWN + 3, OWN + 4, OWN + 7, OWN + 8


def size(params: CoinCleanParams, n_arms: int) -> int:
    """A few scalars, the base's state."""
    return BASE + kernel.BANDITS[type(params.base)].size(n_arms)


def begin(params: CoinCleanParams, n_arms: int, state: kernel.FloatState) -> None:
    """Stand before round 1."""
    for i in range(BASE):
        state[i] = 0.0
    state[DRAW] = 1.0
    kernel.bandit_start(params.base, n_arms, state[BASE:])


def ask(params: CoinCleanParams, n_arms: int, state: kernel.FloatState, rng: kernel.WordState) -> int:
    """Begin a round: draw if a block begins, else stay."""
    state[DREW] = state[DRAW]
    if state[DRAW] == 1.0:
        state[ARM] = kernel.bandit_draw(params.base, n_arms, state[BASE:], random.uniform(rng[random.ARMS]))
        state[DRAW] = 0.0
    state[ROUND] += 1.0
    t = int(state[ROUND])
    # A script is looked up one update round at a time, drawn coins are known up to the second place.
    known = state[END] if params.coins.script.shape[0] > 0 else state[PLACE + 1]
    if t > known:
        state[END] = next_update(params.coins, rng[random.COINS], state[PLACE:], params.max_delay, t)
    return int(state[ARM])


def tell(
    params: CoinCleanParams, n_arms: int, state: kernel.FloatState, rng: kernel.WordState, arm: int, total: float
) -> int:
    """End a round; feed the base if it is an update round with a sound stretch."""
    d, t, end = params.max_delay, int(state[ROUND]), int(state[END])
    state[FED] = float("nan")
    least, most = params.total_bounds
    if total < least or total > most:
        if params.policy == RAISE:
            return -1
        total = min(max(total, least), most) if params.policy == CLIP else float("nan")
    # The latest one before the stretch: known with its end, or the latest of all while no end is in sight. Where that
    # is yet to come, this gap is too short for a stretch, and what is summed is not used.
    latest = int(state[PLACE]) if end < t else end - int(state[PLACE + 2])
    if t == latest + d + 1:
        state[SUM] = 0.0
    if t > latest + d:
        state[SUM] += total
    if t != end:
        return 0
    gap = end - latest
    least, most = effects.stretch_bounds(params.span, d, gap - d)
    whole = state[SUM]
    if not least <= whole <= most:
        if whole != whole or params.policy == VOID:
            return 0
        if params.policy == RAISE:
            return -1
    state[FED] = effects.stretch_loss(params.span, d, gap - d, params.scale, whole)
    learn(params, n_arms, state[BASE:], arm, state[FED], gap)
    state[DRAW] = 1.0
    return 1


def quiet(params: CoinCleanParams) -> int:
    """d zeros before a one end a block."""
    return params.max_delay


def window(params: CoinCleanParams) -> int:
    """A row of W is one total."""
    return 0


def loss(params: CoinCleanParams, rows: kernel.FloatState, end: int, gap: int, arm: int) -> float:
    """Add up the stretch, oldest first as the player does, and scale it."""
    d = params.max_delay
    whole = 0.0
    for t in range(end - (gap - d) + 1, end + 1):
        whole += rows[t, 1, arm]
    return effects.stretch_loss(params.span, d, gap - d, params.scale, whole)


@kernel.helper
def learn(params: CoinCleanParams, n_arms: int, state: kernel.FloatState, arm: int, loss: float, gap: int) -> None:
    """Feed the base a stretch's loss, with what was to be expected of its length."""
    weight, offset, top = effects.stretch_terms(params.span, params.max_delay, gap - params.max_delay, params.scale)
    kernel.bandit_update_sum(params.base, n_arms, state, arm, loss, weight, offset, top)


kernel.register(CoinCleanParams, kernel.PlayerKernel(size, begin, ask, tell))
kernel.register(CoinCleanParams, kernel.BlockKernel(quiet, window, loss, learn))
