"""Sharing a simulation out: chunks of runs over threads, tiles of rounds over time.

Compiled code runs without the GIL, so threads are enough. Between tiles a chunk reports its progress and
looks whether it should stop, so a Ctrl-C takes effect within one tile.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from aftereffect.engines.plan import Plan, Stopped

# More runs in a chunk share more of each tile; their states must still fit the second-level cache.
MOST_RUNS = 1024
# A tile is also a step between looks at the stop sign: so many arms updated, some tens of milliseconds.
MOST_TILE_WORK = 1 << 23

Advanced = Callable[[int], None]


def tile_rounds(horizon: int, n_arms: int, shortest_block: int, cache_bytes: int, runs: int) -> int:
    """Return how many rounds a tile should have: what fits the cache if many runs share it, else as many as may be."""
    longest = max(1, MOST_TILE_WORK * shortest_block // (runs * n_arms))
    if runs >= 8:
        # D and W of a round are 16 bytes an arm.
        longest = min(longest, max(16, cache_bytes // (16 * n_arms)))
    return min(horizon, longest)


def tiles(horizon: int, tile: int) -> Iterator[tuple[int, int]]:
    """Yield the last round of each tile and its length."""
    for first in range(0, horizon, tile):
        until = min(first + tile, horizon)
        yield until, until - first


def spread_over(threads: int, work: Callable[[int, Callable[[], None]], None], count: int) -> None:
    """Call work(k, go_on) for k = 0..count−1 on so many threads.

    `work` calls go_on() now and then: it raises `Stopped` once another call failed or the main thread was interrupted.
    """
    stop = threading.Event()

    def go_on() -> None:
        if stop.is_set():
            raise Stopped

    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(work, k, go_on) for k in range(count)]
        try:
            # Wake up now and then: a wait without end would not see Ctrl-C.
            while wait(futures, timeout=0.1, return_when=FIRST_EXCEPTION).not_done:
                if any(future.done() and future.exception() for future in futures):
                    break
        finally:
            # On the way out of an error or a Ctrl-C nothing new starts, and what runs ends at its next look.
            stop.set()
            for future in futures:
                future.cancel()
    errors = [future.exception() for future in futures if not future.cancelled()]
    # A call that was told to stop is not the cause.
    for error in sorted((e for e in errors if e is not None), key=lambda e: isinstance(e, Stopped)):
        raise error


def share_out(plan: Plan, work: Callable[[int, int, Advanced], None]) -> None:
    """Call work(first run, number of runs, advanced) for chunks of runs, on `plan.threads` threads."""
    waves = -(-plan.runs // (plan.threads * MOST_RUNS))
    size = -(-plan.runs // (plan.threads * waves))

    def chunk(k: int, go_on: Callable[[], None]) -> None:
        def advanced(rounds: int) -> None:
            go_on()
            plan.advanced(rounds)

        work(k * size, min(size, plan.runs - k * size), advanced)

    spread_over(plan.threads, chunk, -(-plan.runs // size))
