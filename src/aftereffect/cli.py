"""The command line: one function per verb.

Errors the library raises on purpose end in one line on standard error and exit status 2. Imports that take
long happen inside the functions, so that `aftereffect --help` answers at once.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

import aftereffect as ae

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    name="aftereffect",
    help="Choose well when the effect of an action lingers and nobody labels it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

FIGURE_1 = "10100001001000000100001"

# The demo's players, by the names they go by.
TSALLIS, EXP3, UNIFORM, NAIVE = "wrapped Tsallis FTRL", "wrapped Exp3", "uniform play", "naive Exp3"
COLOURS = {TSALLIS: "#2b7bba", EXP3: "#3d9a50", UNIFORM: "#8a929b", NAIVE: "#e07b12"}


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(ae.__version__)


@app.command()
def blocks(
    max_delay: Annotated[int, typer.Option(help="d: how many rounds late an effect can arrive.")] = 2,
    coins: Annotated[str, typer.Option(help="The Boolean sequence, as zeros and ones.")] = FIGURE_1,
    svg: Annotated[Path | None, typer.Option(help="Also draw it into this file.")] = None,
) -> None:
    """Show which rounds draw, stay and update. Without options: Figure 1 of the paper."""
    from aftereffect.players.diagram import read_coins, svg_diagram, text_diagram

    sequence = read_coins(coins)
    typer.echo(text_diagram(sequence, max_delay))
    if svg is not None:
        svg.write_text(svg_diagram(sequence, max_delay), encoding="utf-8")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder for the plot.")] = Path("out"),
    runs: Annotated[int, typer.Option(help="Runs of each player.", min=2)] = 100,
    horizon: Annotated[int, typer.Option(help="T: rounds in a run.", min=1)] = 1_000_000,
) -> None:
    """Let four players loose on one problem: a table of regrets, and a plot."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console()
    losses = late_bills(horizon)
    console.print(
        f"Four suppliers: the dearer, the later the bill, up to {losses.max_delay} rounds. "
        f"You see only the sum that falls due in a round. {runs} runs of {horizon:,} rounds."
    )
    players = contenders(losses)
    simulations: dict[str, ae.Simulation] = {}
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("simulating", total=len(players))
        for name, player in players.items():
            progress.update(task, description=name)
            simulations[name] = ae.simulate(player, losses, runs=runs, seed=0, progress=False)
            progress.advance(task)
    print_regrets(console, players, simulations, horizon)
    console.print(verdict(simulations))
    console.print(f"Regret over time: {plot_regrets(simulations, out / 'demo.png')}")


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; `arguments` default to those of the process."""
    try:
        app(None if arguments is None else list(arguments))
    except (ae.AftereffectError, OSError) as error:
        typer.echo(f"aftereffect: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
