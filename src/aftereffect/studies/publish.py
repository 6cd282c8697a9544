"""Putting a finished study where others read it: its page and its rows, both small enough for a repository.

    docs/studies/NAME/index.html      the report, self-contained
    docs/studies/NAME/rows.parquet    the rows it was made of; where these take too much room, those at the horizon
"""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from aftereffect.core.errors import InvalidArgument

if TYPE_CHECKING:
    import polars as pl

    from aftereffect.studies.results import Results
    from aftereffect.studies.spec import Study

MOST = 2_000_000
"""How many bytes a published file may have."""


def publish(study: "Study", results: "Results", folder: str | Path) -> Path:
    """Write page and rows of a finished study into NAME under a folder; return the page's path."""
    from aftereffect.studies.report import write_report

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


def write_rows(rows: "pl.DataFrame", path: Path) -> None:
    """Write rows as small as can be; only those at the horizon where all take too much room."""
    from aftereffect.studies import views

    for kept in (rows, views.finals(rows)):
        kept.write_parquet(path, compression="zstd", compression_level=19)
        if path.stat().st_size <= MOST:
            return
    raise InvalidArgument(f"rows must fit into {MOST:,} bytes to be published, but the last ones alone do not")
