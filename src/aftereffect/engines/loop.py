"""The reference simulator: ask the player, play the arm, tell the total. The other engines must give the same results.

A labelled player is told instead the whole losses that are complete in the round (`rounds.py`).
"""

import math
from collections.abc import Sequence

import numpy as np

from aftereffect.core import kernel
from aftereffect.core.errors import InvalidArgument
from aftereffect.engines.prefix_sums import arm_sums_at
from aftereffect.engines.rounds import covers, whole_play
from aftereffect.engines.workload import Blocks, Outcome, Workload
from aftereffect.losses.protocol import Losses
from aftereffect.players.protocol import LabelledPlayer


class Labels:
    """The whole losses of one run's plays, by the round in which their last component arrives."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._whole_play = kernel.compiled(whole_play, losses.params)
        self._scratch = np.zeros(losses.max_delay + 1)
        self._due: dict[int, list[tuple[int, float]]] = {}

    def play(self, t: int, arm: int) -> list[tuple[int, float]]:
        """Play an arm in round t (from 1); return the plays (round, loss) whose losses are complete in this round."""
        losses = self._losses
        whole, last = self._whole_play(losses.params, t - 1, arm, losses.max_delay, self._scratch)
        self._due.setdefault(t + last, []).append((t, whole))
        return self._due.pop(t, [])


def simulate_panel(load: Workload, units: Sequence[Losses]) -> Outcome:
    """Run a workload whose player is a panel, each unit on losses of its own; results are averages over the units."""
    shape = (load.runs, len(load.checkpoints))
    losses, pseudo = np.zeros(shape), np.zeros(shape)
    updates = np.zeros(load.runs, dtype=np.int64)
    for run in range(load.runs):
        panel = load.player.fresh(load.seed, load.first_run + run)
        streams = [unit.stream() for unit in units]
        loss, gap, checkpoint = 0.0, 0.0, 0
        for t in range(1, load.losses.horizon + 1):
            arms = panel.ask()
            totals = [stream.play(arm) for stream, arm in zip(streams, arms, strict=True)]
            updates[run] += panel.tell(totals).update
            loss += math.fsum(totals) / len(units)
            gap += float(load.gaps[arms].mean())
            if t == load.checkpoints[checkpoint]:
                losses[run, checkpoint], pseudo[run, checkpoint] = loss, gap
                checkpoint += 1
        load.advanced(load.losses.horizon)
    sums = np.mean([arm_sums_at(unit, load.checkpoints) for unit in units], axis=0)
    return Outcome(losses, pseudo, updates, sums, None)


def simulate_loop(load: Workload) -> Outcome:
    """Run a workload round by round, with the interactive player."""
    shape = (load.runs, len(load.checkpoints))
    losses, pseudo = np.zeros(shape), np.zeros(shape)
    updates = np.zeros(load.runs, dtype=np.int64)
    traces = []
    if labelled := isinstance(load.player, LabelledPlayer):
        covers(load)
    for run in range(load.runs):
        player = load.player.fresh(load.seed, load.first_run + run)
        stream = load.losses.stream()
        labels = Labels(load.losses) if labelled else None
        starts: list[int] = []
        arms: list[int] = []
        fed: list[float] = []
        loss, gap, checkpoint = 0.0, 0.0, 0
        for t in range(1, load.losses.horizon + 1):
            arm = player.ask()
            total = stream.play(arm)
            played = player.tell(total if labels is None else labels.play(t, arm))
            if played is None:
                raise InvalidArgument(f"player.tell must return a Round, but that of {player!r} returned None")
            made = played.update if labels is None else played.updates
            loss += total
            gap += load.gaps[arm]
            updates[run] += made
            if load.trace:
                if played.draw:
                    starts.append(t)
                    arms.append(arm)
                    fed.append(float("nan"))
                if made:
                    fed[-1] = played.fed_loss
            if t == load.checkpoints[checkpoint]:
                losses[run, checkpoint], pseudo[run, checkpoint] = loss, gap
                checkpoint += 1
            if t % 4096 == 0 or t == load.losses.horizon:
                load.advanced((t - 1) % 4096 + 1)
        traces.append(Blocks(np.array(starts, dtype=np.int64), np.array(arms, dtype=np.int64), np.array(fed)))
    sums = arm_sums_at(load.losses, load.checkpoints)
    return Outcome(losses, pseudo, updates, sums, traces if load.trace else None)
