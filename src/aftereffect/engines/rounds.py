"""The per-round engine: any player in kernel form, compiled, on all cores.

It is for players whose arm may change every round, and for losses whose max_delay exceeds the player's. It performs
the same operations as `loop.py` in the same order, so all results equal the loop's bit for bit, including cumulative
losses.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import kernel, random
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidTotal
from aftereffect.engines.prefix_sums import arm_sums_at
from aftereffect.engines.workload import Advanced, Blocks, Outcome, Plan, share_out
from aftereffect.losses.protocol import carry_over
from aftereffect.players.base import tell_total

TILE = 512

# The variables of a run: rounds done, updates, checkpoints done, cumulative loss and gap, the total that was refused.
DONE, UPDATES, CHECKPOINT, LOSS, GAP, REFUSED, LANE = 0, 1, 2, 3, 4, 5, 6


def advance_rounds(
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
    losses: FloatArray,
    pseudo: FloatArray,
    trace: FloatArray,
) -> int:
    """Advance every run to round `until`; return the first run whose player refused a total, or −1."""
    for run in range(len(lanes)):
        lane = lanes[run]
        state = states[run]
        first = int(lane[DONE])
        checkpoint = int(lane[CHECKPOINT])
        updates, loss, gap = lane[UPDATES], lane[LOSS], lane[GAP]
        owing = pending[run]
        for t in range(first, until):
            arm = kernel.player_ask(player, n_arms, state, words[run])
            kernel.spread(world, t, arm, owing, t - first)
            total = owing[t - first]
            told = tell_total(player, n_arms, state, words[run], arm, total, t + 1)
            if told < 0:
                lane[DONE] = t
                lane[REFUSED] = total
                return run
            updates += told
            loss += total
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


def simulate_rounds(plan: Plan, player: Any) -> Outcome:
    """Run a plan round by round, compiled."""
    size = kernel.PLAYERS[type(player)].size(player, plan.losses.n_arms)
    return walk_rounds(plan, player, size, kernel.player_begin, advance_rounds, lambda count, tile: ())


def walk_rounds(
    plan: Plan,
    player: Any,
    size: int,
    begin_run: Callable[..., None],
    advance_runs: Callable[..., int],
    scratch: Callable[[int, int], tuple[Any, ...]],
) -> Outcome:
    """Run a plan with these two functions, compiled.

    size: the length of a player's state. scratch(count, tile): returns the further arrays that `advance_runs` needs for
    `count` runs and tiles of `tile` rounds.
    """
    world, horizon, n_arms = plan.losses, plan.losses.horizon, plan.losses.n_arms
    begin = kernel.entry(begin_run, player, n_arms, np.zeros(size))
    advance = kernel.compiled(advance_runs, player, world.params)
    losses = np.zeros((plan.runs, len(plan.checkpoints)))
    pseudo = np.zeros_like(losses)
    lanes = np.zeros((plan.runs, LANE))
    trace = np.zeros((plan.runs, horizon if plan.trace else 0, 3))
    tile = min(horizon, TILE)

    def work(first: int, count: int, advanced: Advanced) -> None:
        part = slice(first, first + count)
        states = np.zeros((count, size))
        words = random.streams(plan.seed, plan.first_run + first, count)
        # One row more than runs: zeros, as scratch space.
        pending = np.zeros((count + 1, tile + world.max_delay))
        more = scratch(count, tile)
        for state in states:
            begin(player, n_arms, state)
        for done in range(0, horizon, tile):
            until = min(done + tile, horizon)
            refused = advance(
                *(player, world.params, n_arms, world.max_delay, until, plan.checkpoints, plan.gaps, states, words),
                *(lanes[part], pending, *more, losses[part], pseudo[part], trace[part]),
            )
            if refused >= 0:
                t, total = int(lanes[first + refused, DONE]) + 1, float(lanes[first + refused, REFUSED])
                raise InvalidTotal(
                    "total must be possible for the player's range and delay, alone and summed over its window "
                    "(a player with out_of_range continues if that is 'void' or 'clip'), "
                    f"but in round {t} of run {plan.first_run + first + refused} it is {total!r}"
                )
            advanced(count * (until - done))

    share_out(plan, work)
    updates = lanes[:, UPDATES].astype(np.int64)
    traces = [rounds_as_blocks(played) for played in trace] if plan.trace else None
    return Outcome(losses, pseudo, updates, arm_sums_at(plan.losses, plan.checkpoints), traces)


def rounds_as_blocks(played: FloatArray) -> Blocks:
    """Convert arms, draws and fed losses by round to blocks; a block has the last loss fed in it."""
    starts = np.flatnonzero(played[:, 1] > 0)
    fed = [losses[~np.isnan(losses)] for losses in np.split(played[:, 2], starts[1:])]
    last = np.array([losses[-1] if losses.size else np.nan for losses in fed])
    return Blocks(starts + 1, played[starts, 0].astype(np.int64), last)
