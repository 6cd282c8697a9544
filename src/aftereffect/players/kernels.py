"""Kernel functions common to several players: to players under labelled feedback, and to those that play in blocks."""

import math
from typing import Any

from aftereffect.core import effects, kernel, random
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState, helper


def zero_begin(params: Any, n_arms: int, state: FloatState) -> None:
    """Leave the state before round 1 as it is given: all zeros."""


# Players under labelled feedback.


@helper
def begin_ask(state: FloatState) -> None:
    """Begin a labelled player's round: an arm is drawn, nothing is fed yet, and state[OWN] counts the rounds."""
    state[DREW] = 1.0
    state[FED] = math.nan
    state[OWN] += 1.0


# Labelled players that count have, after the round, the number of reported losses of each arm, then their sums.
COUNTS = OWN + 1


def count_one(params: Any, n_arms: int, state: FloatState, rng: WordState, played: int, arm: int, loss: float) -> int:
    """Add a loss told with its round to the number and the sum of those of its arm; NaN: lost."""
    if loss != loss:
        return 0
    state[FED] = effects.fed_loss(params.span, 0, loss)
    state[COUNTS + arm] += 1.0
    state[COUNTS + n_arms + arm] += state[FED]
    return 1


# Players that keep an arm for a block and draw the next one after an update. Their parameters have the fields `base`,
# the base algorithm's parameters, and `base_at`, where its state begins. state, after what every player has: the arm,
# whether to draw next; then their own numbers, from BLOCK on; then the base's state.
ARM, DRAW, BLOCK = OWN, OWN + 1, OWN + 2


def block_size(params: Any, n_arms: int) -> int:
    """Return the length of the state."""
    return int(params.base_at + kernel.BANDITS[type(params.base)].size(n_arms))


@helper
def block_begin(params: Any, n_arms: int, state: FloatState) -> None:
    """Write the state before round 1."""
    state[DRAW] = 1.0
    kernel.bandit_start(params.base, n_arms, state[params.base_at :])


@helper
def block_ask(params: Any, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Draw an arm after an update, else keep the arm."""
    state[DREW] = state[DRAW]
    if state[DRAW] == 1.0:
        base = state[params.base_at :]
        state[ARM] = kernel.bandit_draw(params.base, n_arms, base, random.uniform(rng[random.ARMS]))
        state[DRAW] = 0.0
    return int(state[ARM])


@helper
def block_update(params: Any, n_arms: int, state: FloatState, arm: int, loss: float) -> int:
    """Feed the base a loss; the next round draws an arm."""
    state[FED] = loss
    kernel.bandit_update(params.base, n_arms, state[params.base_at :], arm, loss)
    state[DRAW] = 1.0
    return 1


@helper
def block_sum(place: FloatState, skipped: int, length: int, total: float) -> float:
    """Add a total to a block of `length` rounds; at its end return the sum of all totals except the first `skipped`.

    place: two numbers of the state, the number of finished rounds of the block and the sum. NaN is returned before the
    end of the block, and at its end if a total of the sum is missing.
    """
    place[0] += 1.0
    if place[0] > skipped:
        place[1] += total
    if place[0] < length:
        return math.nan
    whole = float(place[1])
    place[0] = place[1] = 0.0
    return whole
