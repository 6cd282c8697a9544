"""The block engine: Algorithm 1 at O(K) per block, exact, on all cores.

Inside a block the arm does not change, so a block is one step: its end comes from the coins, its feedback is
W at its end, its cost is the difference of D (`prepared.py`). The arms, updates and fed losses of a run equal
the loop's bit for bit; cumulative losses differ by rounding.

Runs advance together through tiles of rounds small enough for the second-level cache: all runs of a chunk
read the same rows of D and W while they are at hand, so the table streams from memory once per chunk, not
once per run.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import effects, kernel, random
from aftereffect.core.checks import FloatArray
from aftereffect.engines import chunks
from aftereffect.engines.plan import Blocks, Outcome, Plan
from aftereffect.engines.prepared import prepare_owed, prepare_rows
from aftereffect.players.coins import next_update
from aftereffect.players.wrapper_kernel import WrapperParams

TILE_BYTES = 1 << 19

# What a run carries besides its streams and its base's state. Floats hold rounds exactly up to 2^53.
START, END, ARM, BEFORE, UPDATES, LOSS, GAP, CHECKPOINT, PLACE, LANE = 0, 1, 2, 3, 4, 5, 6, 7, 8, 10


def begin_blocks(
    player: Any, n_arms: int, horizon: int, states: FloatArray, words: NDArray[np.uint64], lanes: FloatArray
) -> None:
    """Start every run's base, first arm and first block."""
    for run in range(len(lanes)):
        kernel.bandit_start(player.base, n_arms, states[run])
        lanes[run, ARM] = kernel.bandit_draw(player.base, n_arms, states[run], random.uniform(words[run, random.ARMS]))
        lanes[run, BEFORE] = -1.0
        lanes[run, END] = next_update(
            player.coins, words[run, random.COINS], lanes[run, PLACE:], player.max_delay, horizon
        )


def advance_blocks(
    player: Any,
    n_arms: int,
    horizon: int,
    until: int,
    rows: FloatArray,
    checkpoints: NDArray[np.int64],
    sums: FloatArray,
    owed: FloatArray,
    gaps: FloatArray,
    states: FloatArray,
    words: NDArray[np.uint64],
    lanes: FloatArray,
    losses: FloatArray,
    pseudo: FloatArray,
    trace: FloatArray,
) -> None:
    """Advance every run through the blocks that end by round `until`, and record the checkpoints up to there."""
    d = player.max_delay
    delay = owed.shape[1] - 1
    for run in range(len(lanes)):
        lane = lanes[run]
        state = states[run]
        arm_words = words[run, random.ARMS]
        coin_words = words[run, random.COINS]
        start, end, arm, before = int(lane[START]), int(lane[END]), int(lane[ARM]), int(lane[BEFORE])
        updates, checkpoint = int(lane[UPDATES]), int(lane[CHECKPOINT])
        loss, gap = lane[LOSS], lane[GAP]
        while True:
            # end = 0: no end is known up to the horizon; the block lasts.
            stop = until if end == 0 else min(end, until)
            while checkpoint < len(checkpoints) and checkpoints[checkpoint] <= stop:
                c = checkpoints[checkpoint]
                age = c - start
                # All earlier plays in full, less what is still owed at c by the last `delay` of them.
                value = loss - rows[start, 0, arm]
                if age >= delay or before < 0:
                    value += sums[checkpoint, arm]
                else:
                    value += rows[c, 0, arm] - owed[checkpoint, age, arm]
                    value -= owed[checkpoint, delay, before] - owed[checkpoint, age, before]
                losses[run, checkpoint] = value
                pseudo[run, checkpoint] = gap + age * gaps[arm]
                checkpoint += 1
            if end == 0 or end > until:
                break
            fed = effects.fed_loss(player.span, d, rows[end, 1, arm])
            loss += rows[end, 0, arm] - rows[start, 0, arm]
            gap += (end - start) * gaps[arm]
            if trace.shape[1] > 0:
                trace[run, updates, 0] = start + 1
                trace[run, updates, 1] = arm
                trace[run, updates, 2] = fed
            updates += 1
            kernel.bandit_update(player.base, n_arms, state, arm, fed)
            start = end
            before = arm
            arm = kernel.bandit_draw(player.base, n_arms, state, random.uniform(arm_words))
            end = next_update(player.coins, coin_words, lane[PLACE:], d, horizon)
        if trace.shape[1] > 0 and until == horizon and start < horizon:
            trace[run, updates, 0] = start + 1
            trace[run, updates, 1] = arm
            trace[run, updates, 2] = np.nan
        lane[START], lane[END], lane[ARM], lane[BEFORE] = start, end, arm, before
        lane[UPDATES], lane[CHECKPOINT] = updates, checkpoint
        lane[LOSS], lane[GAP] = loss, gap


def simulate_blocks(plan: Plan, player: WrapperParams) -> Outcome:
    """Run a plan block by block."""
    from aftereffect.core.jit import compiled

    horizon, n_arms = plan.losses.horizon, plan.losses.n_arms
    rows = prepare_rows(plan.losses, player.max_delay, plan.threads).rows
    sums, owed = prepare_owed(plan.losses, rows, plan.checkpoints, plan.threads)
    begin, advance = compiled(begin_blocks, player), compiled(advance_blocks, player)
    losses = np.zeros((plan.runs, len(plan.checkpoints)))
    pseudo = np.zeros_like(losses)
    lanes = np.zeros((plan.runs, LANE))
    longest = horizon // (2 * player.max_delay + 1) + 1 if plan.trace else 0
    trace = np.zeros((plan.runs, longest, 3))
    size = kernel.BANDITS[type(player.base)].size(n_arms)

    def work(first: int, count: int, advanced: chunks.Advanced) -> None:
        part = slice(first, first + count)
        states = np.zeros((count, size))
        words = random.streams(plan.seed, plan.first_run + first, count)
        begin(player, n_arms, horizon, states, words, lanes[part])
        tile = chunks.tile_rounds(horizon, n_arms, 2 * player.max_delay + 1, TILE_BYTES, count)
        for until, length in chunks.tiles(horizon, tile):
            advance(
                *(player, n_arms, horizon, until, rows, plan.checkpoints, sums, owed, plan.gaps, states, words),
                *(lanes[part], losses[part], pseudo[part], trace[part]),
            )
            advanced(count * length)

    chunks.share_out(plan, work)
    updates = lanes[:, UPDATES].astype(np.int64)
    traces = None
    if plan.trace:
        blocks = [trace[run, : updates[run] + (trace[run, updates[run], 0] > 0)] for run in range(plan.runs)]
        traces = [Blocks(b[:, 0].astype(np.int64), b[:, 1].astype(np.int64), b[:, 2].copy()) for b in blocks]
    return Outcome(losses, pseudo, updates, sums, traces)
