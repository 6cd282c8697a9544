"""What an engine is asked to do, and what it gives back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aftereffect.core.checks import FloatArray
from aftereffect.losses.protocol import Losses


class Stopped(Exception):
    """The simulation was asked to stop."""


@dataclass(frozen=True)
class Plan:
    """Simulate `runs` runs of one player on one loss sequence.

    player: an unplayed template with `fresh(seed, run)`; runs are numbered from `first_run`.
    checkpoints: the rounds, ascending, after which cumulative losses are recorded; the last is the horizon.
    gaps: how much worse than the best arm's each arm's mean is, zeros if means are not known.
    advanced: called with the number of simulated rounds since the last call; raises `Stopped` to stop.
    states: keep the last state of every run's base; the block engine alone does.
    """

    player: Any
    losses: Losses
    seed: int
    first_run: int
    runs: int
    checkpoints: NDArray[np.int64]
    gaps: FloatArray
    trace: bool
    threads: int
    advanced: Callable[[int], None]
    states: bool = False


class Blocks(NamedTuple):
    """The blocks of one run: first round of each (from 1), its arm, and the loss fed at its end (NaN: none)."""

    starts: NDArray[np.int64]
    arms: NDArray[np.int64]
    fed_losses: FloatArray


class Outcome(NamedTuple):
    """What an engine found, at the checkpoints.

    losses, pseudo: cumulative composite losses and pseudo-regret, (runs, checkpoints). updates: (runs,).
    arm_sums: what always playing each arm adds up to, (checkpoints, K).
    states: the bases' states after the last round, in kernel form, (runs, size), if asked for.
    """

    losses: FloatArray
    pseudo: FloatArray
    updates: NDArray[np.int64]
    arm_sums: FloatArray
    traces: list[Blocks] | None
    states: FloatArray | None = None
