"""Successive elimination under delays: against the rule in plain Python, and what delays and lost reports cost."""

import math

import numpy as np

import aftereffect as ae
from aftereffect.losses.spreads import delayed
from aftereffect.losses.tables import iid
from aftereffect.players.labelled import SuccessiveElimination


def test_arms_are_those_of_the_rule() -> None:
    """Random losses, each reported after 0 to 7 rounds, a fifth of them never."""
    rng, K, T = np.random.default_rng(2), 4, 3000
    player = SuccessiveElimination(K, horizon=T)
    losses: list[list[float]] = [[] for _ in range(K)]
    active, turn = list(range(K)), list(range(K))
    due: dict[int, list[tuple[int, float | None, int]]] = {}
    for t in range(1, T + 1):
        if not turn:
            means = [float(np.sum(seen)) / max(len(seen), 1) for seen in losses]
            radii = [math.sqrt(2.0 * math.log(T) / max(len(seen), 1)) for seen in losses]
            least = min(means[i] + radii[i] for i in active)
            active = [i for i in active if means[i] - radii[i] <= least]
            turn = list(active)
        arm = turn.pop(0)
        assert player.ask() == arm
        loss = None if rng.random() < 0.2 else float(rng.random() < 0.1 + 0.28 * arm)
        due.setdefault(t + int(rng.integers(8)), []).append((t, loss, arm))
        arrived = due.pop(t, [])
        player.tell([(played, loss) for played, loss, _ in arrived])
        for _, loss, of in arrived:
            if loss is not None:
                losses[of].append(loss)
    assert active == [0]


def plays_of_the_worse_arm(share: int, delay: int) -> int:
    """Arm 1 loses 1 in every play, arm 0 nothing; of an arm's reports only every `share`-th arrives, `delay` late."""
    player = SuccessiveElimination(2, horizon=10)
    arms: list[int] = []
    for t in range(1, 400):
        arms.append(player.ask())
        played = t - delay
        if played < 1:
            player.tell([])
            continue
        of = arms[played - 1]
        known = arms[:played].count(of) % share == 0
        player.tell([(played, float(of) if known else None)])
    return arms.count(1)


def test_a_delay_costs_the_plays_of_its_length_and_lost_reports_their_share() -> None:
    # The least n with 2 sqrt(2 ln 10 / n) < 1 is 19.
    assert plays_of_the_worse_arm(share=1, delay=0) == 19
    assert plays_of_the_worse_arm(share=2, delay=0) == 2 * 19
    assert plays_of_the_worse_arm(share=5, delay=0) == 5 * 19
    for delay in (10, 40, 100):
        assert abs(plays_of_the_worse_arm(share=1, delay=delay) - (19 + delay / 2)) <= 1


def test_the_cost_of_a_delay_does_not_grow_with_what_is_to_be_learned() -> None:
    """The published rate is a sum: with gaps of 0.2, a delay d adds at most about 0.2 d, whatever ln T / gap is."""
    found = {}
    for d in (0, 300):
        losses = delayed(iid(20_000, means=[0.3, 0.5, 0.5, 0.5], seed=1), delays=np.full((20_000, 4), d))
        player = SuccessiveElimination(4, horizon=20_000)
        sim = ae.simulate(player, losses, runs=24, instances=24, seed=3, progress=False)
        found[d] = sim.pseudo_regret.mean(), sim.pseudo_regret.std() / math.sqrt(24.0)
    (none, error_none), (late, error_late) = found.values()
    error = 4.0 * math.hypot(error_none, error_late)
    assert 0.1 * 300 - error < late - none < 0.2 * 300 + error
    # On the event that all bounds hold, an arm is dropped when its radius is at most a quarter of its gap.
    assert none < 3 * (32.0 * math.log(20_000) / 0.2 + 0.2)
