"""The command line: one function per verb.

Errors the library raises on purpose end in one line on standard error and exit status 2, as a wrong option does.
Imports that take long happen inside the functions, so that `aftereffect --help` answers at once.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import aftereffect as ae

app = typer.Typer(
    name="aftereffect",
    help="Choose well when the effect of an action lingers and nobody labels it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

FIGURE_1 = "10100001001000000100001"

# The demo's players, by the names they go by.
TSALLIS, EXP3 = "wrapper around Tsallis FTRL", "wrapper around Exp3"
UNIFORM, NAIVE = "uniform play", "naive crediting with Exp3"
COLOURS = {TSALLIS: "#2b7bba", EXP3: "#3d9a50", UNIFORM: "#8a929b", NAIVE: "#e07b12"}


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(ae.__version__)


@app.command()
def blocks(
    max_delay: Annotated[int, typer.Option(help="d: how many rounds after its own an effect can arrive.")] = 2,
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
            simulations[name] = ae.simulate(player, losses, runs=runs, seed=0)
            progress.advance(task)
    print_regrets(console, players, simulations, horizon)
    console.print(verdict(simulations))
    console.print(f"Regret over time: {plot_regrets(simulations, out / 'demo.png')}")


def late_bills(horizon: int) -> ae.Losses:
    """Return the demo's losses: arm 0 costs least and bills at once, each next one costs more and bills later.

    Whoever credits a total to the arm just played sees arm 0 add to it, and the others not.
    """
    table = ae.tables.iid(horizon, means=[0.3, 0.5, 0.6, 0.7], seed=0)
    return ae.spreads.kernels(table, np.eye(9)[[0, 2, 5, 8]])
