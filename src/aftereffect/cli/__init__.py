"""The command line: one function per command.

Errors that the library raises on purpose are printed as one line on standard error, with exit status 2. Slow imports
are inside the functions, so that `aftereffect --help` answers at once.
"""

import math
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

import aftereffect as ae
from aftereffect.cli import carryover
from aftereffect.service.cli import mount
from aftereffect.service.cli.arguments import command
from aftereffect.studies.cli import backtest, study

app = typer.Typer(name="aftereffect", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

FIGURE_1 = "10100001001000000100001"


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(ae.__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_print_version)] = False,
) -> None:
    """Choose well when the effects of actions arrive late, spread over time and unlabelled."""


@app.command(rich_help_panel="First steps")
def demo(
    full: Annotated[bool, typer.Option("--full", help="Every player on every kind of losses; takes minutes.")] = False,
    out: Annotated[Path | None, typer.Option(help="The results folder; by default that of the study rivals.")] = None,
) -> None:
    """Run eight players on four kinds of losses: a table, a report. The first run takes a minute at most."""
    from rich.console import Console

    from aftereffect.studies import player_tables

    console = Console()
    study = ae.Study.load("rivals", quick=not full)
    folder = Path("out/studies") / ("rivals" if full else "rivals-quick")
    path = player_tables.demonstrate(console, out or folder, study)
    console.print(f"Report, with figures and every number: {path}", highlight=False, soft_wrap=True)


@app.command(rich_help_panel="First steps")
def compare(
    arms: Annotated[int, typer.Option(help="K: how many arms.", min=2)] = 5,
    max_delay: Annotated[int, typer.Option(help="d: how many rounds late an effect can arrive.", min=0)] = 10,
    horizon: Annotated[int, typer.Option(help="T: rounds in a run.", min=1)] = 20_000,
    gap: Annotated[float, typer.Option(help="The best arm's mean loss is 0.5 - gap, all others' is 0.5.")] = 0.2,
    spread: Annotated[str, typer.Option(help="How losses arrive: delays, split or fading.")] = "delays",
    runs: Annotated[int, typer.Option(help="Runs of each player.", min=2)] = 100,
    instances: Annotated[int | None, typer.Option(help="Draws of the losses; must divide the runs.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="The random seed.", min=0)] = 0,
) -> None:
    """Simulate every player on one problem and print a table of regrets, times and assumptions.

    (In Python, aftereffect.compare compares two simulations.)
    """
    from rich.console import Console
    from rich.progress import track

    from aftereffect.studies import player_tables

    console = Console()
    draws = math.gcd(runs, 20) if instances is None else instances
    losses, problem = player_tables.one_good_arm(arms, max_delay, horizon, gap, spread, seed)
    means = ", ".join(f"{mean:g}" for mean in sorted({*losses.means} if losses.means is not None else ()))
    console.print(
        f"{arms} arms with means {means}; effects arrive up to {max_delay} rounds late ({spread}). "
        f"{runs} runs of {horizon:,} rounds on {draws} draws of the losses."
    )
    rows = []
    for entry, settings in track(player_tables.contenders(problem), "comparing", console=console, transient=True):
        player = entry.build(problem, **settings)
        # Compile first, so that the measured time is the engine's alone.
        ae.simulate(player, losses, runs=1, seed=seed, progress=False)
        begun, most = time.perf_counter(), min(runs, player_tables.MOST_RUNS.get(entry.name, runs))
        simulation = ae.simulate(player, losses, runs=most, seed=seed, instances=math.gcd(most, draws), progress=False)
        rows.append(((entry, settings), simulation, time.perf_counter() - begun))
    player_tables.print_comparison(console, rows)
    for (entry, settings), simulation, _ in rows:
        if simulation.runs < runs:
            console.print(f"{entry.label(settings)}: {simulation.runs} runs only, as its rounds take long.")
    if missing := player_tables.left_out(problem):
        console.print(missing)


@app.command(rich_help_panel="First steps")
def blocks(
    max_delay: Annotated[int, typer.Option(help="d: how many rounds late an effect can arrive.")] = 2,
    coins: Annotated[str, typer.Option(help="The Boolean sequence, as zeros and ones.")] = FIGURE_1,
) -> None:
    """Show in which rounds the wrapper draws, stays and updates. Without options: Figure 1 of the paper."""
    from aftereffect.players.wrapper.coins import read_coins, text_diagram

    typer.echo(text_diagram(read_coins(coins), max_delay))


app.add_typer(study, rich_help_panel="Studies and histories")
app.command(rich_help_panel="Studies and histories")(backtest)
mount(app)
for verb in (carryover.pilot, carryover.carryover):
    app.command(rich_help_panel="How long effects last")(command(verb))


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; `arguments` defaults to sys.argv[1:]."""
    try:
        app(arguments)
    except (ae.AftereffectError, OSError) as error:
        typer.echo(f"aftereffect: {error}", err=True)
        sys.exit(2)
