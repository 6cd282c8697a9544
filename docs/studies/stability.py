"""How far the updates of a wrapper move its base: what the study `stability` measures in place of regret.

The columns `value` and `theory` of its rows are the mean of Σ_i (q_{n+1}(i) − q_n(i))⁺ over the updates since the
previous checkpoint, and ξ of Definition 3; standard_error and quantiles are those of the runs' means.
"""

from contextlib import suppress
from typing import Any

import numpy as np

from aftereffect.core import kernel
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.engines.simulation import Simulation, standard_error
from aftereffect.players.wrapper.wrapper import CompositeLossWrapper
from aftereffect.studies.measure import LEVELS


class Measure:
    """Sums and numbers of the moves between checkpoints, each (runs, checkpoints), of a wrapper's base."""

    def __init__(self, player: CompositeLossWrapper) -> None:
        self.player = player
        self.sums: list[FloatArray] = []
        self.counts: list[FloatArray] = []

    def add(self, simulation: Simulation) -> None:
        """Add traced runs."""
        form, K = self.player.kernel(), self.player.n_arms
        replay = kernel.compiled(replay_base, form.base)
        state = np.zeros(kernel.BANDITS[type(form.base)].size(K))
        before, after = np.zeros(K), np.zeros(K)
        points = simulation.rounds
        sums, counts = np.zeros((2, simulation.runs, len(points)))
        for run, blocks in enumerate(simulation.traces or []):
            # A block ends before the next begins, the last one at the horizon; only blocks with a fed loss made an
            # update.
            ends = np.append(blocks.starts[1:] - 1, points[-1])
            fed = ~np.isnan(blocks.fed_losses)
            moved = np.zeros(int(fed.sum()))
            replay(form.base, K, blocks.arms[fed], blocks.fed_losses[fed], state, before, after, moved)
            between = np.searchsorted(points, ends[fed])
            sums[run] = np.bincount(between, moved, len(points))
            counts[run] = np.bincount(between, minlength=len(points))
        self.sums.append(sums)
        self.counts.append(counts)

    def columns(self) -> dict[str, Any]:
        """Average over the updates of all runs; standard error and quantiles are over the runs with an update."""
        columns: dict[str, Any] = {name: [] for name in ("value", "standard_error", *LEVELS)}
        for sums, counts in zip(np.concatenate(self.sums).T, np.concatenate(self.counts).T, strict=True):
            each = sums[counts > 0] / counts[counts > 0]
            summary: list[float | None] = [None] * len(columns)
            if len(each):
                mean, error = float(sums.sum() / counts.sum()), float(standard_error(each))
                summary = [mean, error, *np.quantile(each, list(LEVELS.values())).tolist()]
            for name, value in zip(columns, summary, strict=True):
                columns[name].append(value)
        bandit: Any = self.player.bandit
        with suppress(InvalidArgument):
            columns["theory"] = bandit.stability()
        return columns


def replay_base(params: Any, n_arms: int, arms: Any, fed: Any, state: Any, before: Any, after: Any, moved: Any) -> None:
    """Feed the losses of one run to a base, and write to `moved` how far each update moves it."""
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
