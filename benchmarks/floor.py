"""A lower bound on the time of the block engine: memory traffic and arithmetic of its updates, without dependencies.

Per update, as in the engine with the Tsallis base:

- K divisions per pass, 1.3 passes on average, each with a root and the sums of squares, cubes and fourth
  powers;
- one division for the step, and a last pass without divisions;
- one uniform number and the running sum of the draw;
- e = 2.72 random words with look-ups in two tables, for the gaps;
- D and W at the end of a block and D at its start, in tiles, for all runs in turn.

The data dependencies are missing. Arms are uniform and block lengths are uniform with the right mean, so a processor
can start an update before the previous one has finished. The engine must wait, because it draws the arm from the
distribution that the update has just computed.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sample import Measure

import aftereffect as ae
from aftereffect.core import random
from aftereffect.core.jit import compiled

GUIDE = 1024
TILE_BYTES = 1 << 19


def touch(
    n_arms: int,
    until: int,
    shortest: int,
    width: int,
    rows: NDArray[np.float64],
    guide: NDArray[np.int32],
    thresholds: NDArray[np.uint64],
    states: NDArray[np.float64],
    words: NDArray[np.uint64],
    lanes: NDArray[np.float64],
) -> None:
    """Do the work of all blocks that end by round `until`; their lengths are uniform, at least `shortest`."""
    for run in range(len(lanes)):
        state = states[run]
        coins, arms = words[run, 0], words[run, 1]
        start, end = int(lanes[run, 0]), int(lanes[run, 1])
        arm, n = int(lanes[run, 2]), int(lanes[run, 3])
        checksum = lanes[run, 4]
        while end <= until:
            checksum += rows[end, 0, arm] - rows[start, 0, arm]
            step = rows[end, 1, arm] / state[arm]
            # Too small to change the estimates; the compiler cannot remove it.
            state[n_arms + arm] += step * 1e-30
            u = state[2 * n_arms]
            for _ in range(2 if n % 10 < 3 else 1):
                for i in range(n_arms):
                    state[i] = 1.0 / (state[n_arms + i] * 0.01 + u)
                mass = 0.0
                cubes = 0.0
                fourths = 0.0
                for i in range(n_arms):
                    square = state[i] * state[i]
                    mass += square
                    cubes += square * state[i]
                    fourths += square * square
                u += 1e-30 * math.sqrt(mass) * (cubes + fourths)
            for i in range(n_arms):
                r = state[i]
                r -= r * (1e-9 * r) * (1.0 - 1e-9 * r)
                state[i] = r * r
            state[2 * n_arms] = u
            chance = random.uniform(arms)
            running = 0.0
            count = 0
            for i in range(n_arms - 1):
                running += state[i]
                count += running <= chance
            checksum += count
            word = np.uint64(0)
            found = 0
            for _ in range(3 if n % 25 < 18 else 2):
                word = random.next_word(coins)
                g = guide[word >> np.uint64(54)]
                found += g + (word < thresholds[g])
            checksum += found
            arm = int(chance * n_arms)
            start = end
            end += shortest + int(np.float64(word >> np.uint64(12)) * 2.220446049250313e-16 * (width + 1))
            n += 1
        lanes[run, 0], lanes[run, 1], lanes[run, 2], lanes[run, 3] = start, end, arm, n
        lanes[run, 4] = checksum


def measure(n_arms: int, max_delay: int, horizon: int, runs: int) -> Measure:
    """Return the measure of the lower bound for K, d, T and runs, on one thread."""
    beta = ae.theory.best_update_probability(max_delay)
    mean = 1.0 / ae.theory.update_rate(max_delay, beta)
    shortest = 2 * max_delay + 1
    width = 2 * round(mean - shortest)
    random_numbers = np.random.default_rng(11)
    rows = random_numbers.random((horizon + 1, 2, n_arms))
    guide = np.arange(GUIDE, dtype=np.int32) // 8
    thresholds = np.sort(random_numbers.integers(0, 1 << 63, GUIDE // 8, dtype=np.uint64))[::-1].copy()
    tile = max(16, TILE_BYTES // (16 * n_arms))
    work: Any = compiled(touch)
    seeds = random.streams(13, 0, runs)

    def play() -> tuple[int, int]:
        states = np.zeros((runs, 2 * n_arms + 1))
        states[:, :n_arms] = 1.0 / n_arms
        states[:, n_arms : 2 * n_arms] = np.arange(n_arms) * 40.0
        states[:, 2 * n_arms] = 1.5
        words, lanes = seeds.copy(), np.zeros((runs, 5))
        lanes[:, 1] = shortest
        for until in [*range(tile, horizon, tile), horizon]:
            work(n_arms, until, shortest, width, rows, guide, thresholds, states, words, lanes)
        return runs * horizon, int(lanes[:, 3].sum())

    # No block ends by round 0, so this call only compiles.
    idle = np.ones((1, 2 * n_arms + 1)), seeds[:1].copy(), np.ones((1, 5))
    work(n_arms, 0, shortest, width, rows, guide, thresholds, *idle)
    setting = {"K": n_arms, "d": max_delay, "T": horizon, "runs": runs, "threads": 1}
    return Measure(f"floor, K={n_arms}, d={max_delay}", "floor", setting, play)
