"""Studies: one file → cells → rows (Parquet) → figures and a report, on one machine or many.

    study       the file: instances × players × grids           run         simulates the unfinished cells
    cells       units of simulation, their losses, players      results     finished cells on disk
    measure     from a cell to its rows                         report/     from rows to a page
    player_tables   what `aftereffect compare` and `aftereffect demo` print
    cli         `aftereffect study`, `aftereffect backtest`

    backtest    players on a recorded history (`histories`)
"""

from typing import TYPE_CHECKING, Any

from aftereffect.core import checks

if TYPE_CHECKING:
    from aftereffect.core.errors import ExecutorBroken
    from aftereffect.studies.report.power_laws import fit
    from aftereffect.studies.results import FolderUnusable, Results
    from aftereffect.studies.study import InvalidStudy, Study, builtin_names

__all__ = ["ExecutorBroken", "FolderUnusable", "InvalidStudy", "Results", "Study", "builtin_names", "fit"]
_HOMES = {"ExecutorBroken": "run", "FolderUnusable": "results", "Results": "results", "fit": "report.power_laws"}


def __getattr__(name: str) -> Any:
    """Import a name on first access: the command line starts sooner, and results need polars (extra `studies`)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES.get(name, "study")
    return getattr(checks.optional(f"{__name__}.{home}", f"{__name__}.{name}", "studies"), name)
