"""The block engine: Algorithm 1 at O(K) per block, exact, on all cores.

One arm is played throughout a block, so a block is one step: the coins determine its end, its feedback is W at its
end, and its cost is a difference of D (`prefix_sums.py`). The arms, updates and fed losses of a run equal those of the
loop bit for bit; cumulative losses differ by rounding.

Runs advance together through tiles of rounds that fit in the second-level cache: all runs of a chunk read the same
rows of D and W while these are cached, so the table is read from memory once per chunk, not once per run. Within a
tile a few runs take turns, one block each: the operations of one block depend on each other, and the processor can
execute those of other runs meanwhile.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import kernel, random
from aftereffect.core.checks import FloatArray
from aftereffect.engines.prefix_sums import prepare_owed, prepare_rows
from aftereffect.engines.workload import Advanced, Blocks, Outcome, Workload, share_out
from aftereffect.players.wrapper.coins import next_update

TILE_BYTES = 1 << 19
# A tile is also the interval between two checks for a stop: this many arms updated, some tens of milliseconds.
MOST_TILE_WORK = 1 << 23
GROUP = 8

# The variables of a run, apart from its streams and its base's state. Doubles represent rounds exactly up to 2^53.
START, END, ARM, BEFORE, UPDATES, LOSS, GAP, CHECKPOINT, DUE, PLACE, LANE = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12


class Tables(NamedTuple):
    """What all runs look up (`prefix_sums.py`): D and W, the checkpoints with A and O, and the gaps of the arms."""

    rows: FloatArray
    checkpoints: NDArray[np.int64]
    sums: FloatArray
    owed: FloatArray
    gaps: FloatArray


class Runs(NamedTuple):
    """What a chunk of runs reads and writes, each array by run: players, variables and results."""

    states: FloatArray
    words: NDArray[np.uint64]
    lanes: FloatArray
    losses: FloatArray
    pseudo: FloatArray
    trace: FloatArray
    watched: FloatArray


def begin_blocks(player: Any, n_arms: int, horizon: int, due: float, runs: Runs) -> None:
    """Start every run's base, first arm and first block; due: the first checkpoint."""
    quiet = kernel.block_quiet(player)
    for run in range(len(runs.lanes)):
        lane = runs.lanes[run]
        begin_run(player, n_arms, due, runs.states[run], runs.words[run], lane)
        lane[END] = next_update(player.coins, runs.words[run, random.COINS], lane[PLACE:], quiet, horizon)


def advance_blocks(
    player: Any, n_arms: int, horizon: int, until: int, tables: Tables, runs: Runs, watch: NDArray[np.int64]
) -> None:
    """Advance every run through the blocks that end by round `until`, and record the checkpoints up to there."""
    quiet = kernel.block_quiet(player)
    states, words, lanes, losses, pseudo, trace, watched = runs
    for first in range(0, len(lanes), GROUP):
        last = min(first + GROUP, len(lanes))
        busy = True
        while busy:
            busy = False
            for run in range(first, last):
                lane = lanes[run]
                end = int(lane[END])
                # end = 0: the block does not end within the horizon.
                ends = 0 < end <= until
                stop = end if ends else until
                due = lane[DUE] <= stop
                if due:
                    passed = int(lane[CHECKPOINT])
                    record(lane, stop, tables, losses[run], pseudo[run])
                    keep(states[run], watch, passed, int(lane[CHECKPOINT]), watched[run])
                    if trace.shape[1] > 0:
                        note(player, horizon, lane, until, tables.rows, trace[run])
                if not ends:
                    continue
                busy = True
                # The coins come first, so that their branches are resolved while the arithmetic below still runs.
                gap = int(lane[PLACE + 2])
                following = next_update(player.coins, words[run, random.COINS], lane[PLACE:], quiet, horizon)
                end_block(player, n_arms, end, gap, tables, states[run], words[run], lane)
                lane[END] = following
                # The state after a checkpoint contains the update of its own round.
                k = int(lane[CHECKPOINT]) - 1
                if due and k >= 0 and tables.checkpoints[k] == end:
                    keep(states[run], watch, k, k + 1, watched[run])


@kernel.helper
def begin_run(
    player: Any, n_arms: int, due: float, state: FloatArray, words: NDArray[np.uint64], lane: FloatArray
) -> None:
    """Start a run's base and draw its first arm; due: the first checkpoint."""
    kernel.bandit_start(player.base, n_arms, state)
    lane[ARM] = kernel.bandit_draw(player.base, n_arms, state, random.uniform(words[random.ARMS]))
    lane[BEFORE] = -1.0
    lane[DUE] = due


@kernel.helper
def end_block(
    player: Any, n_arms: int, end: int, gap: int, tables: Tables, state: FloatArray, words: NDArray[np.uint64],
    lane: FloatArray
) -> None:
    """Charge a run for its block, which ends in round `end`, let it learn, and draw the next block's arm."""
    rows, start, arm = tables.rows, int(lane[START]), int(lane[ARM])
    fed = kernel.block_loss(player, rows, end, gap, arm)
    lane[LOSS] += rows[end, arm, 0] - rows[start, arm, 0]
    lane[GAP] += (end - start) * tables.gaps[arm]
    lane[UPDATES] += 1.0
    kernel.block_learn(player, n_arms, state, arm, fed, gap)
    u = random.uniform(words[random.ARMS])
    lane[START], lane[BEFORE] = end, arm
    lane[ARM] = kernel.bandit_draw(player.base, n_arms, state, u)


@kernel.helper
def record(lane: FloatArray, stop: int, tables: Tables, losses: FloatArray, pseudo: FloatArray) -> None:
    """Write a run's cumulative loss and gap at the checkpoints of its block up to round `stop`."""
    rows, checkpoints, sums, owed, gaps = tables
    delay = owed.shape[1] - 1
    start, arm, before = int(lane[START]), int(lane[ARM]), int(lane[BEFORE])
    k = int(lane[CHECKPOINT])
    while k < len(checkpoints) and checkpoints[k] <= stop:
        c = checkpoints[k]
        age = c - start
        # The whole losses of all earlier plays, minus the charges of the last `delay` plays that fall due after c.
        loss = lane[LOSS] - rows[start, arm, 0]
        if age >= delay or before < 0:
            loss += sums[k, arm]
        else:
            loss += rows[c, arm, 0] - owed[k, age, arm]
            loss -= owed[k, delay, before] - owed[k, age, before]
        losses[k] = loss
        pseudo[k] = lane[GAP] + age * gaps[arm]
        k += 1
    lane[CHECKPOINT] = k
    lane[DUE] = checkpoints[k] if k < len(checkpoints) else np.inf


@kernel.helper
def keep(state: FloatArray, watch: NDArray[np.int64], first: int, last: int, watched: FloatArray) -> None:
    """Write the watched places of a base's state for the checkpoints first..last−1."""
    for k in range(first, last):
        for j in range(len(watch)):
            watched[k, j] = state[watch[j]]


@kernel.helper
def note(player: Any, horizon: int, lane: FloatArray, until: int, rows: FloatArray, trace: FloatArray) -> None:
    """Write the first round, arm and fed loss of a block that ends now, or of the last block, for a trace."""
    start, end, arm, block = int(lane[START]), int(lane[END]), int(lane[ARM]), int(lane[UPDATES])
    ends = 0 < end <= until
    if ends or (until == horizon and start < horizon):
        trace[block, 0] = start + 1
        trace[block, 1] = arm
        trace[block, 2] = kernel.block_loss(player, rows, end, int(lane[PLACE + 2]), arm) if ends else np.nan
    lane[DUE] = 0.0


def simulate_blocks(load: Workload, player: Any) -> Outcome:
    """Run a workload block by block."""
    horizon, n_arms = load.losses.horizon, load.losses.n_arms
    form = kernel.BLOCKS[type(player)]
    shortest = form.quiet(player) + 1
    rows = prepare_rows(load.losses, form.window(player), load.threads)
    owed = prepare_owed(load.losses, load.checkpoints, load.threads)
    # A: all that has been charged up to the checkpoints.
    sums = rows[load.checkpoints, :, 0] - owed[:, -1]
    tables = Tables(rows, load.checkpoints, sums, owed, load.gaps)
    begin, advance = kernel.compiled(begin_blocks, player), kernel.compiled(advance_blocks, player)
    losses, pseudo = np.zeros((2, load.runs, len(load.checkpoints)))
    lanes = np.zeros((load.runs, LANE))
    longest = horizon // shortest + 1 if load.trace else 0
    trace = np.zeros((load.runs, longest, 3))
    size = kernel.BANDITS[type(player.base)].size(n_arms)
    watch = np.array(load.watch, dtype=np.int64)
    watched = np.zeros((load.runs, len(load.checkpoints), len(watch)))

    def work(first: int, count: int, advanced: Advanced) -> None:
        part = slice(first, first + count)
        states = np.zeros((count, size))
        words = random.streams(load.seed, load.first_run + first, count)
        runs = Runs(states, words, lanes[part], losses[part], pseudo[part], trace[part], watched[part])
        # For a trace the first checkpoint is 0, so that every block is recorded.
        begin(player, n_arms, horizon, 0.0 if load.trace else float(load.checkpoints[0]), runs)
        tile = max(1, MOST_TILE_WORK * shortest // (count * n_arms))
        if count >= 8:
            # Many runs share a tile that fits in the cache; D and W of a round take 16 bytes per arm.
            tile = min(tile, max(16, TILE_BYTES // (16 * n_arms)))
        for done in range(0, horizon, tile):
            until = min(done + tile, horizon)
            advance(player, n_arms, horizon, until, tables, runs, watch)
            advanced(count * (until - done))

    share_out(load, work)
    updates = lanes[:, UPDATES].astype(np.int64)
    traces = None
    if load.trace:
        blocks = [trace[run, : updates[run] + (trace[run, updates[run], 0] > 0)] for run in range(load.runs)]
        traces = [Blocks(b[:, 0].astype(np.int64), b[:, 1].astype(np.int64), b[:, 2].copy()) for b in blocks]
    return Outcome(losses, pseudo, updates, sums, traces, watched)
