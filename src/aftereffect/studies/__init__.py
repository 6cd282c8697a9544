"""Studies: one file → cells → rows (Parquet) → figures and a report, on one machine or many.

    study       the file: instances × players × grids           run         simulates the unfinished cells
    cells       units of simulation, identified by content      executors   where they run
    instances   losses by name                                  results     finished cells on disk
    players     players by name                                 report/     from rows to a page
    measure     from a cell to its rows                         cli         `aftereffect study`, `aftereffect backtest`

    backtest    players on a recorded history (`histories`)     campaigns   recorded coupon campaigns as an instance
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aftereffect.studies.executors import ExecutorBroken
from aftereffect.studies.study import InvalidStudy, Study, builtin_names

if TYPE_CHECKING:
    from aftereffect.studies.results import FolderUnusable, Results

__all__ = ["ExecutorBroken", "FolderUnusable", "InvalidStudy", "Results", "Study", "builtin_names"]


def __getattr__(name: str) -> Any:
    """Import the names that need polars (extra `studies`) on first access."""
    if name not in ("FolderUnusable", "Results"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.results"), name)
    except ModuleNotFoundError as error:
        raise AttributeError(f"{__name__}.{name} needs {error.name}: pip install 'aftereffect[studies]'") from error
