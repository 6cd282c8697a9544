"""Definition 3 measured: how far updates move a base algorithm, E Σ_i (q_{n+1}(i) − q_n(i))⁺.

The block engine tells which arms a run played and which losses it fed; walking its base through these once more, in
compiled code, gives the distribution before and after every update. Moves are averaged between checkpoints, so that a
profile over time is held against ξ, which bounds every round's mean.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import kernel
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.engines.plan import Blocks
from aftereffect.players.wrapper.wrapper import CompositeLossWrapper

# Blocks of a run are traced in rows of three doubles; so many bytes of them at a time.
TRACE_BYTES = 1 << 26


class Moves(NamedTuple):
    """sums, counts: moves of every run between checkpoints, (runs, checkpoints)."""

    sums: FloatArray
    counts: FloatArray


def walk_base(
    params: Any,
    n_arms: int,
    arms: NDArray[np.int64],
    fed: FloatArray,
    state: FloatArray,
    before: FloatArray,
    after: FloatArray,
    moved: FloatArray,
) -> None:
    """Feed a base the losses of one run, and write how far each update moves it."""
    kernel.bandit_start(params, n_arms, state)
    kernel.bandit_probabilities(params, n_arms, state, before)
    for n in range(len(arms)):
        kernel.bandit_update(params, n_arms, state, arms[n], fed[n])
        kernel.bandit_probabilities(params, n_arms, state, after)
        total = 0.0
        for i in range(n_arms):
            total += max(after[i] - before[i], 0.0)
            before[i] = after[i]
        moved[n] = total


def runs_at_once(horizon: int, max_delay: int) -> int:
    """Return how many runs' traces may be in memory together."""
    return max(1, TRACE_BYTES // (24 * (horizon // (2 * max_delay + 1) + 1)))


def moves(player: CompositeLossWrapper, traces: list[Blocks], checkpoints: NDArray[np.int64]) -> Moves:
    """Return how far the updates of traced runs moved the player's base."""
    from aftereffect.core.jit import compiled

    form = player.kernel()
    if form is None:
        raise InvalidArgument(f"player must have a base in kernel form to measure stability, but got {player!r}")
    K = player.n_arms
    walk = compiled(walk_base, form.base)
    state = np.zeros(kernel.BANDITS[type(form.base)].size(K))
    before, after = np.zeros(K), np.zeros(K)
    found = Moves(np.zeros((len(traces), len(checkpoints))), np.zeros((len(traces), len(checkpoints))))
    for run, blocks in enumerate(traces):
        # A block ends where the next begins, the last one at the horizon; only those with a fed loss updated.
        ends = np.append(blocks.starts[1:] - 1, checkpoints[-1])
        fed = ~np.isnan(blocks.fed_losses)
        moved = np.zeros(int(fed.sum()))
        walk(form.base, K, blocks.arms[fed], blocks.fed_losses[fed], state, before, after, moved)
        between = np.searchsorted(checkpoints, ends[fed])
        found.sums[run] = np.bincount(between, moved, len(checkpoints))
        found.counts[run] = np.bincount(between, minlength=len(checkpoints))
    return found
