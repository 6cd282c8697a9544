"""The engine for labelled feedback: players that are told the whole loss of each play, with its round.

The components of a play are charged as usual, so the regret is comparable with that of players under anonymous
feedback. Only the feedback differs: the player is told the whole loss of the play of round t at the end of the round
in which its last nonzero component arrives (of round t itself if the loss is 0). Losses that are complete only after
the horizon are never told.

The results equal those of the loop (`loop.py`) bit for bit.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import kernel
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.engines.rounds import CHECKPOINT, DONE, GAP, LOSS, UPDATES, walk_rounds
from aftereffect.engines.workload import Outcome, Plan
from aftereffect.losses.protocol import carry_over

# The mail of a run: linked lists of the plays to be told in each round, stored by round modulo d+1. FIRST and LAST: the
# first and the last play told in a round. AFTER: the play told after this one. ARM: the arm of a play. Plays are
# identified by their rounds from 0; −1 means none.
FIRST, LAST, AFTER, ARM, MAIL = 0, 1, 2, 3, 4


@kernel.helper
def whole_play(world: Any, t: int, arm: int, delay: int, play: FloatArray) -> tuple[float, int]:
    """Return a play's whole loss and the delay of its last nonzero component; `play` must be zeros, and is left so."""
    kernel.spread(world, t, arm, play, 0)
    last = delay
    while last > 0 and play[last] == 0.0:
        last -= 1
    whole = 0.0
    for s in range(last + 1):
        whole += play[s]
        play[s] = 0.0
    return whole, last


def advance_labelled(
    player: Any,
    world: Any,
    n_arms: int,
    delay: int,
    until: int,
    checkpoints: NDArray[np.int64],
    gaps: FloatArray,
    states: FloatArray,
    words: NDArray[np.uint64],
    lanes: FloatArray,
    pending: FloatArray,
    mail: NDArray[np.int64],
    wholes: FloatArray,
    known: FloatArray,
    delays: NDArray[np.int64],
    losses: FloatArray,
    pseudo: FloatArray,
    trace: FloatArray,
) -> int:
    """Advance every run to round `until`; return −1, as no total is refused.

    wholes: the whole losses of each run's outstanding plays. known, delays: the results of `whole_play` for the plays
        of this tile, shared by all runs; a delay of −1 means not computed yet. The last row of `pending` is zeros,
        scratch space for `whole_play`.
    """
    for k in range(len(delays)):
        for arm in range(n_arms):
            delays[k, arm] = -1
    places = delay + 1
    play = pending[len(lanes)]
    for run in range(len(lanes)):
        lane = lanes[run]
        state = states[run]
        first = int(lane[DONE])
        checkpoint = int(lane[CHECKPOINT])
        updates, loss, gap = lane[UPDATES], lane[LOSS], lane[GAP]
        owing = pending[run]
        post = mail[run]
        for t in range(first, until):
            k = t - first
            arm = kernel.labelled_ask(player, n_arms, state, words[run])
            kernel.spread(world, t, arm, owing, k)
            if delays[k, arm] < 0:
                whole, last = whole_play(world, t, arm, delay, play)
                known[k, arm] = whole
                delays[k, arm] = last
            now = t % places
            wholes[run, now] = known[k, arm]
            post[ARM, now] = arm
            post[AFTER, now] = -1
            due = (t + delays[k, arm]) % places
            if post[FIRST, due] < 0:
                post[FIRST, due] = t
            else:
                post[AFTER, post[LAST, due] % places] = t
            post[LAST, due] = t
            told = post[FIRST, now]
            post[FIRST, now] = -1
            while told >= 0:
                at = told % places
                updates += kernel.labelled_tell_one(
                    player, n_arms, state, words[run], told + 1, post[ARM, at], wholes[run, at]
                )
                told = post[AFTER, at]
            loss += owing[k]
            gap += gaps[arm]
            if trace.shape[1] > 0:
                trace[run, t, 0] = arm
                trace[run, t, 1] = state[kernel.DREW]
                trace[run, t, 2] = state[kernel.FED]
            if t + 1 == checkpoints[checkpoint]:
                losses[run, checkpoint] = loss
                pseudo[run, checkpoint] = gap
                checkpoint += 1
        carry_over(owing, delay, until - first)
        lane[DONE], lane[CHECKPOINT] = until, checkpoint
        lane[UPDATES], lane[LOSS], lane[GAP] = updates, loss, gap
    return -1


def covers(plan: Plan) -> None:
    """Raise an error unless a labelled player's max_delay and range cover those of the losses."""
    room, span = getattr(plan.player, "max_delay", None), getattr(plan.player, "effects", None)
    delay, (lo, hi, _) = plan.losses.max_delay, plan.losses.effects
    if room is not None and room < delay:
        raise InvalidArgument(f"player must have at least the max_delay of losses, {delay}, but got {room}")
    if span is not None and not span.lo <= lo <= hi <= span.hi:
        raise InvalidArgument(
            f"player must have a range that covers that of losses, [{lo:g}, {hi:g}], but got [{span.lo:g}, {span.hi:g}]"
        )


def simulate_labelled(plan: Plan, player: Any) -> Outcome:
    """Run a plan round by round with a labelled player in kernel form, compiled."""
    covers(plan)
    n_arms, places = plan.losses.n_arms, plan.losses.max_delay + 1

    def scratch(count: int, tile: int) -> tuple[Any, ...]:
        mail = np.full((count, MAIL, places), -1, dtype=np.int64)
        return mail, np.zeros((count, places)), np.zeros((tile, n_arms)), np.empty((tile, n_arms), dtype=np.int64)

    size = kernel.LABELLED[type(player)].size(player, n_arms)
    return walk_rounds(plan, player, size, kernel.labelled_begin, advance_labelled, scratch)
