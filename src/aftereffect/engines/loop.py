"""The obvious simulator: ask the player, play the arm, tell the total. What the other engines must equal."""

import numpy as np

from aftereffect.engines.plan import Blocks, Outcome, Plan
from aftereffect.engines.prepared import arm_sums_at


def simulate_loop(plan: Plan) -> Outcome:
    """Run a plan round by round, with the interactive objects."""
    shape = (plan.runs, len(plan.checkpoints))
    losses, pseudo = np.zeros(shape), np.zeros(shape)
    updates = np.zeros(plan.runs, dtype=np.int64)
    traces = []
    for run in range(plan.runs):
        player = plan.player.fresh(plan.seed, plan.first_run + run)
        stream = plan.losses.stream()
        starts: list[int] = []
        arms: list[int] = []
        fed: list[float] = []
        loss, gap, checkpoint = 0.0, 0.0, 0
        for t in range(1, plan.losses.horizon + 1):
            arm = player.ask()
            total = stream.play(arm)
            played = player.tell(total)
            loss += total
            gap += plan.gaps[arm]
            updates[run] += played.update
            if plan.trace:
                if played.draw:
                    starts.append(t)
                    arms.append(arm)
                    fed.append(float("nan"))
                if played.update:
                    fed[-1] = played.fed_loss
            if t == plan.checkpoints[checkpoint]:
                losses[run, checkpoint], pseudo[run, checkpoint] = loss, gap
                checkpoint += 1
            if t % 4096 == 0 or t == plan.losses.horizon:
                plan.advanced((t - 1) % 4096 + 1)
        traces.append(Blocks(np.array(starts, dtype=np.int64), np.array(arms, dtype=np.int64), np.array(fed)))
    sums = arm_sums_at(plan.losses, plan.checkpoints)
    return Outcome(losses, pseudo, updates, sums, traces if plan.trace else None)
