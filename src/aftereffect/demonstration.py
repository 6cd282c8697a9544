"""Four players and late bills: what `aftereffect demo` plays, prints and draws."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import aftereffect as ae

if TYPE_CHECKING:
    from rich.console import Console

# The demo's players, by the names they go by.
TSALLIS, EXP3, UNIFORM, NAIVE = "wrapped Tsallis FTRL", "wrapped Exp3", "uniform play", "naive Exp3"
COLOURS = {TSALLIS: "#2b7bba", EXP3: "#3d9a50", UNIFORM: "#8a929b", NAIVE: "#e07b12"}


def late_bills(horizon: int) -> ae.Losses:
    """Return the demo's losses: arm 0 costs least and bills at once, each next costs more and bills later.

    Whoever credits a total to the arm just played sees arm 0 add to it, and the others not.
    """
    table = ae.tables.iid(horizon, means=[0.3, 0.5, 0.6, 0.7], seed=0)
    return ae.spreads.kernels(table, np.eye(9)[[0, 2, 5, 8]])


def contenders(losses: ae.Losses) -> dict[str, ae.CompositeLossWrapper | ae.Naive]:
    """Return the demo's players; the naive one has the rate that suits Exp3 under immediate feedback."""
    K, d, T = losses.n_arms, losses.max_delay, losses.horizon
    eta = math.sqrt(2.0 * math.log(K) / (K * T))
    tuned = ae.CompositeLossWrapper.tuned
    return {
        TSALLIS: tuned(n_arms=K, max_delay=d, horizon=T, base="tsallis", seed=0),
        EXP3: tuned(n_arms=K, max_delay=d, horizon=T, base="exp3", seed=0),
        UNIFORM: ae.CompositeLossWrapper(
            ae.Uniform(K), max_delay=d, coins=ae.theory.best_update_probability(d), seed=0
        ),
        NAIVE: ae.Naive(ae.Exp3(K, eta), seed=0, high=d + 1.0),
    }


def print_regrets(
    console: "Console",
    players: Mapping[str, ae.CompositeLossWrapper | ae.Naive],
    simulations: Mapping[str, ae.Simulation],
    horizon: int,
) -> None:
    """Print regret, its standard error, and what Theorem 4 guarantees, where that is less than T."""
    from rich.table import Table

    table = Table("player")
    for heading in ("regret", "standard error", "bound", "updates a run"):
        table.add_column(heading, justify="right")
    for name, simulation in simulations.items():
        player = players[name]
        bound = player.regret_bound(horizon) if isinstance(player, ae.CompositeLossWrapper) else math.inf
        bound = bound if bound < horizon else math.inf
        numbers = (simulation.mean_regret, simulation.standard_error, bound, simulation.updates.mean())
        table.add_row(name, *(f"{x:,.0f}" if x < math.inf else "none" for x in numbers))
    console.print(table)


def verdict(simulations: Mapping[str, ae.Simulation]) -> str:
    """Say in one sentence what the table shows."""
    wrapper, control = simulations[TSALLIS].mean_regret, simulations[UNIFORM].mean_regret
    naive = simulations[NAIVE].mean_regret
    if control <= 0.0:
        return "Too few rounds for a verdict: choosing blindly had no regret."
    return (
        f"Wrapped, Tsallis FTRL has {wrapper / control:.0%} of the regret of choosing blindly; naive Exp3, "
        f"which blames each total on the arm just played, has {naive / control:.0%}."
    )


def plot_regrets(simulations: Mapping[str, ae.Simulation], path: Path) -> Path:
    """Draw the regret curves with their 95% bands into a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.subplots()
    for name, simulation in simulations.items():
        simulation.plot(axes, label=name, color=COLOURS[name])
    axes.set_title("Four players, late bills: regret against the best arm", loc="left")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(alpha=0.25)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path
