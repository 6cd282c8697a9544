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
# A tile is also a step between looks at the stop sign: some tens of milliseconds at most.
MOST_TILE_WORK = 1 << 26

Advanced = Callable[[int], None]


def tile_rounds(horizon: int, bytes_per_round: int, cache_bytes: int, runs: int) -> int:
    """Return how many rounds a tile should have: what fits the cache if many runs share it, else as many as may be."""
    longest = max(1, MOST_TILE_WORK // runs)
    if runs >= 8:
        longest = min(longest, max(16, cache_bytes // bytes_per_round))
    return min(horizon, longest)


def tiles(horizon: int, tile: int) -> Iterator[int]:
    """Yield the last round of each tile."""
    yield from range(tile, horizon, tile)
    yield horizon


def share_out(plan: Plan, work: Callable[[int, int, Advanced], None]) -> None:
    """Call work(first run, number of runs, advanced) for chunks of runs, on `plan.threads` threads."""
    stop = threading.Event()

    def advanced(rounds: int) -> None:
        if stop.is_set():
            raise Stopped
        plan.advanced(rounds)

    waves = -(-plan.runs // (plan.threads * MOST_RUNS))
    size = -(-plan.runs // (plan.threads * waves))
    with ThreadPoolExecutor(plan.threads) as pool:
        futures = [
            pool.submit(work, first, min(size, plan.runs - first), advanced) for first in range(0, plan.runs, size)
        ]
        try:
            # Wake up now and then: a wait without end would not see Ctrl-C.
            while not wait(futures, timeout=0.1, return_when=FIRST_EXCEPTION).done.issuperset(futures):
                if any(future.done() and future.exception() for future in futures):
                    break
        finally:
            # On the way out of an error or a Ctrl-C: nothing new starts, and what runs ends after its tile.
            stop.set()
            for future in futures:
                future.cancel()
    errors = [future.exception() for future in futures if not future.cancelled()]
    # A chunk that was told to stop is not the cause.
    for error in sorted((e for e in errors if e is not None), key=lambda e: isinstance(e, Stopped)):
        raise error
