"""Publish a finished study here: `python docs/studies/publish.py hard` writes hard/index.html and hard/rows.parquet."""

import tempfile
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from aftereffect.core.errors import InvalidArgument
from aftereffect.studies import Results, Study
from aftereffect.studies.report import frames
from aftereffect.studies.report.sections import write_report

MOST = 2_000_000
"""The largest size of a published file, in bytes."""


def publish(study: Study, results: Results, folder: str | Path) -> Path:
    """Write page and rows of a finished study to NAME/index.html and NAME/rows.parquet; return the page's path.

    Both must be small enough for a repository: if all rows are too large, only those at the horizon are written.
    """
    if results.failures or results.missing:
        counts = f"{len(results.failures)} failed and {len(results.missing)} to do"
        raise InvalidArgument(f"results must be those of a finished study to be published, but {study!r} has {counts}")
    home = Path(folder) / study.name
    with tempfile.TemporaryDirectory() as made:
        page = write_report(study, results, made).read_bytes()
    if len(page) > MOST:
        raise InvalidArgument(f"report must have at most {MOST:,} bytes to be published, but has {len(page):,}")
    home.mkdir(parents=True, exist_ok=True)
    write_rows(results.rows, home / "rows.parquet")
    path = home / "index.html"
    path.write_bytes(page)
    return path


def write_rows(rows: pl.DataFrame, path: Path) -> None:
    """Write rows compressed; only those at the horizon if all rows are too large."""
    for kept in (rows, frames.finals(rows)):
        kept.write_parquet(path, compression="zstd", compression_level=19)
        if path.stat().st_size <= MOST:
            return
    raise InvalidArgument(f"rows must fit into {MOST:,} bytes to be published, but even those at the horizon do not")


def main(
    source: Annotated[str, typer.Argument(metavar="NAME_OR_FILE", help="A built-in study's name, or a TOML file.")],
    out: Annotated[Path | None, typer.Option(help="The folder of the study; by default out/studies/NAME.")] = None,
    to: Annotated[Path, typer.Option(help="The folder in which the folder NAME is written.")] = Path(__file__).parent,
) -> None:
    """Write the report and the rows of a finished study to NAME/index.html and NAME/rows.parquet."""
    study = Study.load(source)
    results = study.results(out if out is not None else Path("out/studies") / study.name)
    typer.echo(f"Published: {publish(study, results, to)}")


if __name__ == "__main__":
    typer.run(main)
