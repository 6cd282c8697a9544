"""`aftereffect study` (new, run, status, report, list) and `aftereffect backtest`.

Exit status of `study`: 0 if all cells are finished, 1 if some failed or are unfinished, 2 on bad input (`cli.main`),
130 after Ctrl-C.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.text import counted

if TYPE_CHECKING:
    from aftereffect.studies.results import Results

study = typer.Typer(name="study", help="Run studies and report on them.", no_args_is_help=True)

Source = Annotated[str, typer.Argument(metavar="NAME_OR_FILE", help="A built-in study's name, or a TOML file.")]
Quick = Annotated[bool, typer.Option("--quick", help="The study's small setting.")]
Out = Annotated[Path | None, typer.Option(help="The folder of the study; by default out/studies/NAME.")]


def _opened(source: str, quick: bool, out: Path | None) -> tuple[Any, Path]:
    """Return a study and its folder; the quick setting has its own folder."""
    from aftereffect.studies.study import Study

    loaded = Study.load(source, quick)
    # This module needs polars.
    checks.optional("aftereffect.studies.report.sections", "a study", "studies").planned(loaded)
    return loaded, out if out is not None else Path("out/studies") / (loaded.name + "-quick" * loaded.quick)


def _print_status(loaded: Any, results: "Results", folder: Path) -> None:
    """Print how many cells are finished, and the errors of failed cells; exit with 1 unless all are finished."""
    counts = f"{results.finished} finished, {len(results.failures)} failed, {len(results.missing)} to do"
    left = f", {results.time_left(loaded.cells())}" if results.missing else ""
    typer.echo(f"{folder}: {counts} of {len(loaded.cells())} cells{left}")
    told: dict[str, list[str]] = {}
    for cell, failure in results.failures.items():
        told.setdefault(f"{failure.get('error')}: {failure.get('message')}", []).append(cell)
    for text, failed in told.items():
        more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
        typer.echo(f"  {failed[0]}{more}: {text}")
    if results.failures or results.missing:
        raise typer.Exit(1)


@study.command()
def new() -> None:
    """Print a study file with comments, to be edited: aftereffect study new > mine.toml."""
    typer.echo(Path(__file__).with_name("template.toml").read_text(encoding="utf-8"), nl=False)


@study.command()
def run(
    source: Source,
    quick: Quick = False,
    out: Out = None,
    executor: Annotated[str, typer.Option(help="local, processes or dask.")] = "local",
    scheduler: Annotated[str | None, typer.Option(help="The address of a Dask scheduler.")] = None,
    workers: Annotated[int | None, typer.Option(help="How many workers; by default one per core.", min=1)] = None,
    engine: Annotated[str, typer.Option(help="auto, or cuda: on an NVIDIA GPU (extra cuda).")] = "auto",
) -> None:
    """Simulate the unfinished cells. It can be stopped at any time; run it again to continue."""
    from aftereffect.engines.workload import cores

    loaded, folder = _opened(source, quick, out)
    # This module needs polars, which is looked for before.
    from aftereffect.studies.run import opened

    many = cores() if workers is None else workers
    before = loaded.results(folder)
    if count := len(before.missing) + len(before.failures):
        typer.echo(f"{counted(count, 'cell')} to simulate, {before.time_left(loaded.cells())} in one process")
    try:
        with opened(executor, many, scheduler) as pool:
            # A scheduler's workers may be on other machines with an unknown number of cores: one thread per task.
            threads, at_once = (None, many) if scheduler is None else (1, None)
            results = loaded.run(folder, pool, threads=threads, workers=at_once, engine=engine)
    except KeyboardInterrupt:
        counts = f"{loaded.results(folder).finished} of {len(loaded.cells())} cells stored"
        typer.echo(f"Stopped: {counts}; run the same command again to continue.", err=True)
        raise typer.Exit(130) from None
    _print_status(loaded, results, folder)


@study.command()
def status(source: Source, quick: Quick = False, out: Out = None) -> None:
    """Print how many cells are finished, failed and unfinished, and about how long the latter take."""
    loaded, folder = _opened(source, quick, out)
    _print_status(loaded, loaded.results(folder), folder)


@study.command()
def report(source: Source, quick: Quick = False, out: Out = None) -> None:
    """Write a report on the finished cells: one HTML page, and its figures as files."""
    loaded, folder = _opened(source, quick, out)
    from aftereffect.studies.report.sections import write_report

    typer.echo(f"Report: {write_report(loaded, loaded.results(folder), folder)}")


@study.command("list")
def list_studies() -> None:
    """List the built-in studies."""
    from aftereffect.studies.study import Study, builtin_names

    for name in builtin_names():
        loaded = Study.load(name)
        typer.echo(f"{name:14} {len(loaded.cells()):5} cells  {loaded.title}")


def backtest(
    file: Annotated[Path, typer.Argument(help="A CSV file: round, arm, and effects by lag (lag0, lag1, ...).")],
    effects: Annotated[
        str | None,
        typer.Option(help="The columns with effects, separated by commas; by default lag0,lag1,... or effect."),
    ] = None,
    round_column: Annotated[str, typer.Option(help="The column with rounds or dates.")] = "round",
    arm_column: Annotated[str, typer.Option(help="The column with the arms' names.")] = "arm",
    sum_rows: Annotated[bool, typer.Option("--sum-rows", help="Add up several rows of an arm in a round.")] = False,
    kernel: Annotated[
        str | None, typer.Option(help="Shares of a whole effect that arrive 0, 1, ... rounds later: 0.5,0.3,0.2.")
    ] = None,
    direction: Annotated[str, typer.Option(help="maximize or minimize.")] = "maximize",
    low: Annotated[float | None, typer.Option(help="The smallest effect of one play; inferred by default.")] = None,
    high: Annotated[float | None, typer.Option(help="The largest effect of one play; inferred by default.")] = None,
    resample: Annotated[
        int | None, typer.Option(help="Draw this many rounds from each arm's recorded plays.", min=1)
    ] = None,
    player: Annotated[list[str] | None, typer.Option(help="A player, NAME or NAME:BASE; repeatable, or all.")] = None,
    runs: Annotated[int, typer.Option(help="Runs of each player.", min=2)] = 200,
    seed: Annotated[int, typer.Option(help="The seed of all random draws.", min=0)] = 0,
    out: Annotated[Path, typer.Option(help="The folder for the report.")] = Path("out/backtest"),
) -> None:
    """Simulate players on a recorded history: print a table of what each would have earned, and write a report."""
    from rich.console import Console

    checks.optional("polars", "backtest", "studies")
    from aftereffect.studies.backtest import PLAYERS, play, print_scores, write_page
    from aftereffect.studies.histories import read_history

    recording = read_history(
        file,
        effects=None if effects is None else [column.strip() for column in effects.split(",")],
        kernel=None if kernel is None else _numbers("kernel", kernel),
        round_column=round_column,
        arm_column=arm_column,
        sum_rows=sum_rows,
    )
    settings: dict[str, Any] = {"direction": direction, "low": low, "high": high, "runs": runs, "seed": seed}
    found = play(recording, players=player or PLAYERS, resample=resample, **settings)
    console = Console()
    print_scores(console, found)
    console.print(f"Report: {write_page(found, out)}", soft_wrap=True)


def _numbers(name: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidArgument(f"{name} must be numbers separated by commas, but got {checks.shown(text)}") from None
