"""The cost of delay: the regret of the wrapper for growing d, next to its proved bound.

The same table of losses is split at random over d+1 rounds, for several d.
Run it: python examples/cost_of_delay.py

>>> regrets = regret_by_delay(delays=(0, 4), horizon=20_000, runs=40)
>>> regrets[0].mean_regret < regrets[4].mean_regret
True
"""

from collections.abc import Iterable

import aftereffect as ae


def regret_by_delay(delays: Iterable[int], horizon: int, runs: int) -> dict[int, ae.Simulation]:
    """Simulate the tuned wrapper for each d on the same table."""
    table = ae.tables.iid(horizon, means=[0.4, 0.5, 0.5, 0.5], seed=1)
    found = {}
    for d in delays:
        losses = ae.spreads.random_split(table, max_delay=d, seed=2)
        player = ae.CompositeLossWrapper.tuned(n_arms=4, max_delay=d, horizon=horizon, seed=0)
        found[d] = ae.simulate(player, losses, runs=runs, seed=0)
    return found


if __name__ == "__main__":
    print(f"{'d':>4} {'regret':>10} {'error':>8} {'bound':>10}")
    for d, simulation in regret_by_delay((0, 1, 2, 4, 8, 16), horizon=200_000, runs=100).items():
        bound = ae.theory.tuned_bound(n_arms=4, max_delay=d, horizon=200_000)
        print(f"{d:4} {simulation.mean_regret:10.1f} {simulation.standard_error:8.1f} {bound:10.0f}")
