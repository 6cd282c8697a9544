"""`aftereffect study`: run, status, report, publish, list.

Exit status: 0 all cells are finished, 1 some failed or are left to do, 2 bad input (through `cli.main`).
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from aftereffect.studies.results import Results
    from aftereffect.studies.spec import Study

study = typer.Typer(name="study", help="Run studies and report on them.", no_args_is_help=True)

Source = Annotated[str, typer.Argument(metavar="NAME_OR_FILE", help="A built-in study's name, or a TOML file.")]
Quick = Annotated[bool, typer.Option("--quick", help="The study's small setting.")]
Out = Annotated[Path | None, typer.Option(help="Its folder; by default out/studies/NAME.")]


def folder_of(loaded: "Study", out: Path | None) -> Path:
    """Return the folder of a study; the quick setting has its own."""
    return out if out is not None else Path("out/studies") / (loaded.name + ("-quick" if loaded.quick else ""))


def say(results: "Results", total: int, folder: Path) -> None:
    """Print how far a study is, and the errors of what failed; exit with 1 if that is not to the end."""
    counts = f"{results.finished} finished, {len(results.failures)} failed, {len(results.missing)} to do"
    typer.echo(f"{folder}: {counts} of {total} cells")
    for cell, failure in results.failures.items():
        typer.echo(f"  {cell}: {failure.get('error')}: {failure.get('message')}")
    if results.failures or results.missing:
        raise typer.Exit(1)


@study.command()
def run(
    source: Source,
    quick: Quick = False,
    out: Out = None,
    executor: Annotated[str, typer.Option(help="local, processes or dask.")] = "local",
    scheduler: Annotated[str | None, typer.Option(help="The address of a Dask scheduler.")] = None,
    workers: Annotated[int | None, typer.Option(help="How many workers; by default one a core.", min=1)] = None,
) -> None:
    """Simulate what is not finished yet. Stop it at any time and run it again: it goes on where it was."""
    from aftereffect.studies import executors
    from aftereffect.studies.cluster import cluster_threads
    from aftereffect.studies.runner import cores
    from aftereffect.studies.spec import Study

    loaded = Study.load(source, quick)
    folder = folder_of(loaded, out)
    many = cores() if workers is None else workers
    with executors.opened(executor, many, scheduler) as pool:
        # Machines elsewhere have cores of their own, one for each thread their workers were given.
        remote = pool is not None and scheduler is not None
        at_once = cluster_threads(pool) if remote and pool is not None else many
        results = loaded.run(folder, pool, threads=1 if remote else None, workers=at_once)
    say(results, len(loaded.cells()), folder)


@study.command()
def status(source: Source, quick: Quick = False, out: Out = None) -> None:
    """Say how many cells are finished, failed and to do."""
    from aftereffect.studies.spec import Study

    loaded = Study.load(source, quick)
    folder = folder_of(loaded, out)
    say(loaded.results(folder), len(loaded.cells()), folder)


@study.command()
def report(source: Source, quick: Quick = False, out: Out = None) -> None:
    """Write the report of what is finished: one HTML page, and its figures as files."""
    from aftereffect.studies.report import write_report
    from aftereffect.studies.spec import Study

    loaded = Study.load(source, quick)
    folder = folder_of(loaded, out)
    typer.echo(f"Report: {write_report(loaded, loaded.results(folder), folder)}")


@study.command()
def publish(
    source: Source,
    quick: Quick = False,
    out: Out = None,
    to: Annotated[Path, typer.Option(help="The folder that gets a folder NAME.")] = Path("docs/studies"),
) -> None:
    """Put the report and the rows of a finished study where others read them: NAME/index.html and NAME/rows.parquet."""
    from aftereffect.studies.publish import publish as published
    from aftereffect.studies.spec import Study

    loaded = Study.load(source, quick)
    typer.echo(f"Published: {published(loaded, loaded.results(folder_of(loaded, out)), to)}")


@study.command("list")
def list_studies() -> None:
    """List the studies that come with the package."""
    from aftereffect.studies.spec import Study, builtin_names

    for name in builtin_names():
        loaded = Study.load(name)
        typer.echo(f"{name:14} {len(loaded.cells()):5} cells  {loaded.title}")
