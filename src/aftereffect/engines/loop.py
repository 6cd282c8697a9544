"""The reference simulator: ask the player, play the arm, tell the total. The other engines must give the same results.

A labelled player is told instead the whole losses that are complete in the round (`rounds.py`).
"""

import math
from typing import Any

import numpy as np

from aftereffect.core import kernel
from aftereffect.core.errors import InvalidArgument
from aftereffect.engines.prefix_sums import arm_sums_at
from aftereffect.engines.rounds import covers, rounds_as_blocks, whole_play
from aftereffect.engines.workload import Outcome, Workload
from aftereffect.losses.protocol import Losses
from aftereffect.players.protocol import LabelledPlayer
from aftereffect.players.wrapper.panel import Panel


def unit_losses(losses: Losses, n_units: int, seed: int, first_run: int) -> list[Losses]:
    """Return the losses of each unit of a panel: those given, then draws of them with the same means."""
    seeds = np.random.SeedSequence(seed, spawn_key=(first_run, 3)).generate_state(n_units - 1, np.uint64)
    return [losses, *(losses.redraw(int(each)) for each in seeds)]


def simulate_loop(load: Workload, form: Any = None) -> Outcome:
    """Run a workload round by round, with the interactive player.

    Each unit of a panel plays losses of its own; results are then averages over the units.
    """
    losses, pseudo = np.zeros((2, load.runs, len(load.checkpoints)))
    updates = np.zeros(load.runs, dtype=np.int64)
    traces, horizon = [], load.losses.horizon
    if labelled := isinstance(load.player, LabelledPlayer):
        covers(load)
    play_whole, scratch = kernel.compiled(whole_play, load.losses.params), np.zeros(load.losses.max_delay + 1)
    panel = isinstance(load.player, Panel)
    units = unit_losses(load.losses, load.player.n_units if panel else 1, load.seed, load.first_run)
    for run in range(load.runs):
        player = load.player.fresh(load.seed, load.first_run + run)
        streams = [unit.stream() for unit in units]
        # The whole losses of plays, by the round in which their last component arrives.
        due: dict[int, list[tuple[int, float]]] = {}
        trace = np.zeros((horizon if load.trace else 0, 3))
        loss, gap, checkpoint = 0.0, 0.0, 0
        for t in range(1, horizon + 1):
            arm = player.ask()
            if panel:
                told: Any = [stream.play(each) for stream, each in zip(streams, arm, strict=True)]
                total = math.fsum(told) / len(told)
            else:
                told = total = streams[0].play(arm)
            if labelled:
                whole, last = play_whole(load.losses.params, t - 1, arm, load.losses.max_delay, scratch)
                due.setdefault(t + last, []).append((t, whole))
                told = due.pop(t, [])
            played = player.tell(told)
            if played is None:
                raise InvalidArgument(f"player.tell must return a Round, but that of {player!r} returned None")
            made = played.updates if labelled else played.update
            loss += total
            gap += float(load.gaps[arm].mean()) if panel else load.gaps[arm]
            updates[run] += made
            if load.trace:
                trace[t - 1] = arm, played.draw, played.fed_loss if made else math.nan
            if t == load.checkpoints[checkpoint]:
                losses[run, checkpoint], pseudo[run, checkpoint] = loss, gap
                checkpoint += 1
            if t % 4096 == 0 or t == horizon:
                load.advanced((t - 1) % 4096 + 1)
        if load.trace:
            traces.append(rounds_as_blocks(trace))
    sums = np.mean([arm_sums_at(unit, load.checkpoints) for unit in units], axis=0)
    return Outcome(losses, pseudo, updates, sums, traces if load.trace else None)
