"""What a study has found so far: rows, times, failures, and what is left to do."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aftereffect.studies.cells import cell_id

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from aftereffect.studies.spec import Study


@dataclass(frozen=True, eq=False)
class Results:
    """The results of a study's cells, and of no others that may be in its folder.

    rows: one per cell and checkpoint, sorted by (cell, round); see `measure.py` for the columns. times: one row per
    cell. failures: errors by cell id: "error", "message", "traceback". missing: ids of cells that have not been run.
    """

    rows: "pl.DataFrame"
    times: "pl.DataFrame"
    failures: dict[str, dict[str, Any]]
    missing: list[str]

    @property
    def finished(self) -> int:
        """How many cells are finished."""
        return int(self.rows["cell"].n_unique())

    def to_pandas(self) -> "pd.DataFrame":
        """Return the rows as a pandas frame (extra `frames`)."""
        import pandas as pd

        return pd.DataFrame(self.rows.to_dict(as_series=False))

    def __repr__(self) -> str:
        """Count cells."""
        left = f"{len(self.failures)} failed, {len(self.missing)} to do"
        return f"Results({self.finished} cells finished, {left}; {len(self.rows)} rows)"


def read_results(study: "Study", folder: str | Path) -> Results:
    """Return what a folder holds of a study."""
    import polars as pl

    from aftereffect.studies.store import Store

    store = Store(folder)
    ids = [cell_id(cell) for cell in study.cells()]
    mine = pl.col("cell").is_in(ids)
    rows, times = (frame.filter(mine) for frame in store.read())
    done = set(rows["cell"].unique())
    failures = {cell: error for cell, error in store.failures().items() if cell in ids and cell not in done}
    return Results(rows, times, failures, [cell for cell in ids if cell not in done and cell not in failures])
