"""The CUDA engine: the block engine's loop on a GPU, one thread a run, from the same kernels (`blocks.py`).

What a run does is `begin_run`, `end_block` and `record` of the block engine, compiled by `numba.cuda`. Only the order
of work differs. A thread goes through its run from the first round to the last; the state of its base lies in shared
memory; and it draws the ends of several blocks ahead, since threads that run in step wait for the one that draws most
often. Runs are divided into waves, several of which are on the GPU at a time: the results of one are fetched while the
next are played. D and W are filled on the GPU as well, by the same functions, a thread for each arm and each tile of
rounds. Where a block adds up the totals of many rounds, they lie arm by arm, so that consecutive rounds of an arm share
a sector.

Coins come out as on the CPU, to the last bit, and so does the number of updates. Everything else is computed by the
same operations, except that the compiler may contract a multiplication and an addition into one rounding, and that a
logarithm (in `random_split`) may differ in its last bit: states differ in their last bits, and in the long run a run
may come to play other arms. Regret agrees in law.

Besides `core/jit.py` this is the only module that imports numba, and it is imported when it is asked for. It needs an
NVIDIA GPU with its driver, and the extra `cuda`. With NUMBA_ENABLE_CUDASIM=1 in the environment, numba's
simulator interprets the kernels without a GPU, slowly: for tests.
"""

import functools
import importlib
import math
import threading
from typing import Any

import llvmlite.ir
import numpy as np
from numba import config, cuda

from aftereffect.core import jit, kernel, random
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.kernel import FloatState, WordState
from aftereffect.engines.blocks import DUE, LANE, PLACE, UPDATES, Tables, begin_run, end_block, record
from aftereffect.engines.prefix_sums import accumulate, fill_rows, latest, prepare_owed
from aftereffect.engines.workload import Outcome, Workload
from aftereffect.players.wrapper.coins import NEVER, Coins, zeros_before_one

# Registers to a thread.
REGISTERS = 128
# The number of tiles into which rounds are divided to fill D and W, at most, and the rounds computed at a time.
TILES, CHUNK = 4096, 32
# Blocks whose ends a thread draws at once.
AHEAD = 16
# Runs to a wave, and waves on the GPU at a time.
WAVE, WAVES = 1 << 15, 8
# A block of threads may have so much shared memory, and each of as many threads as there are registers for so much.
SHARED, EACH = 48 << 10, 440
# Rounds are 32-bit numbers where they are drawn ahead.
LONGEST = 1 << 30
# Memory left for the driver and what numba allocates itself.
SPARE = 256 << 20
# A quotient by so large a number is 0.
MOST = 1e300

# A kernel is compiled when it is first launched: by one thread at a time.
_lock = threading.Lock()
# To free memory is to wait for all that runs on the GPU: let numba do so seldom. A few runs are no reason to warn.
config.CUDA_DEALLOCS_COUNT, config.CUDA_LOW_OCCUPANCY_WARNINGS = 1000, 0


def simulate_cuda(load: Workload, player: Any) -> Outcome:
    """Run a workload block by block on the GPU."""
    check_available()
    if load.trace:
        raise InvalidArgument("trace must be False with engine 'cuda', which keeps no blocks, but got True")
    losses, n_arms, points = load.losses, load.losses.n_arms, len(load.checkpoints)
    window = kernel.BLOCKS[type(player)].window(player)
    size = kernel.BANDITS[type(player.base)].size(n_arms)
    tile = max(-(-losses.horizon // TILES), losses.max_delay + window, CHUNK)
    scratch = 2 * losses.max_delay + 1 + window + 3 * CHUNK, -(-losses.horizon // tile) * n_arms
    # The losses, the memory to fill D and W, these, and the charges at the checkpoints; for a run its coins and arms,
    # its updates, its curves, and what is watched.
    taken = sum(part.nbytes for part in losses.params if isinstance(part, np.ndarray)) + 8 * math.prod(scratch)
    taken += 8 * n_arms * (2 * (losses.horizon + 1) + points * (losses.max_delay + 1))
    wave = room(taken) // (WAVES * (64 + 8 + 16 * points + 8 * len(load.watch)))
    if wave < 1 or losses.horizon > LONGEST:
        raise InvalidArgument(
            f"losses must have at most {LONGEST} rounds and fit the GPU's memory with engine 'cuda', but got "
            f"{losses.horizon} rounds of {n_arms} arms, {taken / 2**30:.1f} GiB"
        )
    wave = min(wave, load.runs, WAVE)
    stream = cuda.stream()
    key = window, load.checkpoints.tobytes()
    tables, sums = latest("gpu", losses, key, lambda: fill_tables(load, window, tile, scratch, stream))
    function, threads = play_function(n_arms, size, window == 0)
    play = compiled(function, player, max_registers=REGISTERS)
    world = on_gpu(player, stream), losses.horizon, tables, on_gpu(np.array(load.watch, dtype=np.int64), stream)
    stream.synchronize()
    outcome = Outcome(
        np.empty((load.runs, points)),
        np.zeros((load.runs, points)),
        np.empty(load.runs, dtype=np.int64),
        sums,
        None,
        np.full((load.runs, points, len(load.watch)), np.nan),
    )
    last = np.empty((load.runs, len(load.watch))) if load.watch else None
    wanted = [outcome.updates, outcome.losses, outcome.pseudo if load.gaps.any() else None, last]

    def launch(first: int) -> tuple[slice, Any, list[Any]]:
        part, flow = slice(first, min(first + wave, load.runs)), cuda.stream()
        count = part.stop - first
        words = on_gpu(random.streams(load.seed, load.first_run + first, count), flow)
        updates = cuda.device_array(count, np.int64, stream=flow)
        curves = [cuda.device_array((count, points), np.float64, stream=flow) for _ in range(2)]
        watched = cuda.device_array((count, len(load.watch)), np.float64, stream=flow)
        with _lock:
            play[-(-count // threads), threads, flow](*world, words, updates, *curves, watched)
        return part, flow, [updates, *curves, watched]

    def fetch(part: slice, flow: Any, found: list[Any]) -> None:
        for array, device in zip(wanted, found, strict=True):
            if array is not None:
                device.copy_to_host(array[part], flow)
        flow.synchronize()
        found.clear()
        load.advanced((part.stop - part.start) * losses.horizon)

    waves = [launch(first) for first in range(0, min(load.runs, WAVES * wave), wave)]
    for first in range(WAVES * wave, load.runs, wave):
        fetch(*waves.pop(0))
        waves.append(launch(first))
    for each in waves:
        fetch(*each)
    if last is not None and outcome.watched is not None:
        outcome.watched[:, -1] = last
    return outcome


def check_available() -> None:
    """Raise an error that says what is missing where there is no GPU to run on."""
    if not cuda.is_available():
        raise InvalidArgument(
            "engine must not be 'cuda' without an NVIDIA GPU, its driver and the extra 'cuda' "
            "(pip install 'aftereffect[cuda]'), but numba finds no GPU that it can use"
        )


def room(taken: int) -> int:
    """Return how many bytes of the GPU's memory are free for runs."""
    free = cuda.current_context().get_memory_info()[0]
    # The simulator has memory without end.
    return int(min(free, 1 << 50)) - taken - SPARE


def on_gpu(value: Any, stream: Any) -> Any:
    """Return a value with the arrays in it, and in the tuples in it, on the GPU."""
    if isinstance(value, tuple):
        parts = [on_gpu(part, stream) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if not isinstance(value, np.ndarray):
        return value
    return cuda.to_device(value, stream)


def compiled(function: Any, params: Any, **options: Any) -> Any:
    """Return a function compiled for the GPU and the kernels of `params`."""
    if config.ENABLE_CUDASIM:
        return cuda.jit(function)
    with _lock:
        register_quotient()
    return jit.compiled(function, params, decorator=cuda.jit, options=options)


def fill_tables(
    load: Workload, window: int, tile: int, scratch: tuple[int, int], stream: Any
) -> tuple[Tables, FloatArray]:
    """Return the arrays on the GPU that all runs look up, and A, the sums up to the checkpoints, also on the CPU.

    They are D and W as rows[t, arm, 0 or 1], the checkpoints, A, O and the gaps. Rounds are divided into tiles, a
    thread for each tile and arm, with its column of memory of the shape `scratch`. Where a block reads many rows, an
    arm's rounds are adjacent.
    """
    losses, n_arms, many = load.losses, load.losses.n_arms, scratch[1]
    fill, join = compiled(fill_tile, losses.params), compiled(join_tile, ())
    params, checkpoints, gaps = on_gpu((losses.params, load.checkpoints, load.gaps), stream)
    rows = cuda.device_array((losses.horizon + 1, n_arms, 2), order="C" if window else "F", stream=stream)
    memory = cuda.device_array(scratch, stream=stream)
    carry = cuda.device_array((many, 2), stream=stream)
    paid = cuda.device_array((len(load.checkpoints), n_arms), stream=stream)
    with _lock:
        fill[-(-many // 64), 64, stream](params, losses.max_delay, window, tile, memory, carry, rows)
        join[-(-many // 64), 64, stream](tile, carry, checkpoints, paid, rows)
    # Meanwhile on the CPU.
    owed = prepare_owed(losses, load.checkpoints, load.threads)
    sums = paid.copy_to_host(stream=stream)
    stream.synchronize()
    sums -= owed[:, -1]
    sums_there, owed_there = on_gpu((sums, owed), stream)
    return Tables(rows, checkpoints, sums_there, owed_there, gaps), sums


def fill_tile(params: Any, delay: int, window: int, tile: int, scratch: Any, carry: Any, rows: Any) -> None:
    """Write W of one arm in a tile, in place of D the whole losses of the plays, and their sum to `carry`."""
    thread, n_arms = cuda.grid(1), rows.shape[1]
    if thread < carry.shape[0]:
        arm, first = thread % n_arms, thread // n_arms * tile
        end = min(first + tile, rows.shape[0] - 1)
        own, sums = scratch[:, thread], carry[thread]
        for k in range(len(own)):
            own[k] = 0.0
        sums[0] = sums[1] = 0.0
        if first == 0:
            rows[0, arm, 0] = rows[0, arm, 1] = 0.0
        fill_rows(params, arm, max(first - delay - window, 0), first, end, delay, window, own, sums, rows, False)


def join_tile(tile: int, carry: Any, checkpoints: Any, paid: Any, rows: Any) -> None:
    """Write D of one arm in a tile, and those at the checkpoints to `paid`."""
    thread, n_arms = cuda.grid(1), rows.shape[1]
    if thread < carry.shape[0]:
        arm, first = thread % n_arms, thread // n_arms * tile
        end = min(first + tile, rows.shape[0] - 1)
        sums = cuda.local.array(2, np.float64)
        sums[0] = sums[1] = 0.0
        for before in range(arm, thread, n_arms):
            accumulate(sums, carry[before, 0])
            accumulate(sums, carry[before, 1])
        for t in range(first + 1, end + 1):
            rows[t, arm, 0] = accumulate(sums, rows[t, arm, 0])
        for c in range(len(checkpoints)):
            if first < checkpoints[c] <= end:
                paid[c, arm] = rows[checkpoints[c], arm, 0]


@functools.cache
def register_quotient() -> None:
    """Let kernels divide as the GPU does for numbers that are neither large nor small, without a branch for those."""
    extending = importlib.import_module("numba.cuda.extending")

    def approximate(context: Any, y: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = llvmlite.ir.FunctionType(arguments[0].type, [arguments[0].type])
            return builder.call(builder.module.declare_intrinsic("llvm.nvvm.rcp.approx.ftz.d", (), kind), arguments)

        return y(y), emit

    inverse = extending.intrinsic(approximate)

    def quotient(a: Any, b: Any) -> Any:
        def divide(a: float, b: float) -> float:
            a, b = float(a), float(b)
            r = inverse(b)
            error = cuda.fma(-b, r, 1.0)
            r = cuda.fma(r, cuda.fma(error, error, error), r)
            q = a * r
            q = cuda.fma(r, cuda.fma(-b, q, a), q)
            return 0.0 if b >= MOST else q

        return divide

    extending.overload(kernel.quotient, jit_options=jit.INLINED, strict=False, target="cuda")(quotient)


@kernel.helper
def next_updates(
    coins: Coins, rng: WordState, place: FloatState, quiet: int, limit: int, ends: Any, gaps: Any
) -> int:
    """Write the next update rounds with their gaps, as many as there is room for, and return how many there are.

    As `coins.next_update`, which finds them one by one: for threads that run in step, where each would wait at every
    block for the one that needs the most draws.
    """
    if coins.script.shape[0] > 0:
        entry = int(place[0])
        if coins.script[entry, 0] == NEVER:
            return 0
        place[0] += 1
        ends[0], gaps[0] = coins.script[entry, 0], coins.script[entry, 1]
        return 1
    # 32-bit arithmetic is faster on a GPU.
    latest, known, count = np.int32(place[0]), np.int32(place[1]), np.int32(0)
    size, last, room = np.int32(coins.thresholds.shape[0]), np.int32(limit), np.int32(ends.shape[0])
    while known < last and count < room:
        zeros = np.int32(zeros_before_one(coins, rng))
        # No branches, which would part threads that run in step.
        one = zeros < size
        known = np.int32(known + zeros + one)
        gap = np.int32(known - latest)
        ends[count] = known
        gaps[count] = gap
        count = np.int32(count + (one & (gap > quiet)))
        latest = known if one else latest
    place[0] = latest
    place[1] = known
    return int(count)


@functools.cache
def play_function(n_arms: int, size: int, strided: bool) -> tuple[Any, int]:
    """Return what a thread does, for K arms and a base whose state has `size` numbers, and the threads to a block.

    Both are constants of the compiled code, so that loops over arms are unrolled. strided: whether the numbers of a
    thread's state lie apart in shared memory; the compiler then reads them again rather than keep more of them than
    there are registers.
    """
    # Odd numbers, so that threads use different banks.
    stride, row = size | 1, AHEAD + 1
    within = 8 * stride + 4 * row <= EACH
    own = 8 * stride + (4 * row if within else 0)
    threads = next((many for many in (128, 64) if own * many <= SHARED), 32)
    shared = own * threads <= SHARED

    def play(
        player: Any, horizon: int, tables: Tables, watch: Any, words: Any, updates: Any, losses: Any, pseudo: Any,
        watched: Any
    ) -> None:
        run = cuda.grid(1)
        if shared and strided:
            state = cuda.shared.array((size, threads), np.float64)[:, cuda.threadIdx.x]
        elif shared:
            state = cuda.shared.array((threads, stride), np.float64)[cuda.threadIdx.x]
        else:
            state = cuda.local.array(size, np.float64)
        if run >= updates.shape[0]:
            return
        lane = cuda.local.array(LANE, np.float64)
        own = cuda.local.array((2, 4), np.uint64)
        if within:
            ends = cuda.shared.array((threads, row), np.int32)[cuda.threadIdx.x, :AHEAD]
        else:
            ends = cuda.local.array(AHEAD, np.int32)
        lengths = cuda.local.array(AHEAD, np.int32)
        for i in range(LANE):
            lane[i] = 0.0
        for stream in range(2):
            for i in range(4):
                own[stream, i] = words[run, stream, i]
        quiet = kernel.block_quiet(player)
        begin_run(player, n_arms, tables.checkpoints[0], state, own, lane)
        known = at = 0
        while True:
            if at == known:
                known = next_updates(player.coins, own[random.COINS], lane[PLACE:], quiet, horizon, ends, lengths)
                at = 0
            # No end up to the horizon: the block lasts.
            lasts = known == 0 or ends[at] > horizon
            stop = horizon if lasts else ends[at]
            if lane[DUE] <= stop:
                record(lane, stop, tables, losses[run], pseudo[run])
            if lasts:
                break
            end_block(player, n_arms, stop, lengths[at], tables, state, own, lane)
            at += 1
        updates[run] = int(lane[UPDATES])
        for j in range(len(watch)):
            watched[run, j] = state[watch[j]]

    return play, threads
