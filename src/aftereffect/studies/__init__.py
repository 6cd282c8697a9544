"""Studies: one file → cells → rows (Parquet) → figures and a report, on one machine or many.

    spec        the file: instances × players × grids           store       finished cells on disk, durable
    cells       what is simulated, with ids made of content     runner      what is left to do, and its results
    builders    losses, entrants players by name                executors   where it runs
    measure     from a cell to its rows                         commands    `aftereffect study`
"""

from aftereffect.studies.errors import ExecutorBroken, FolderUnusable, InvalidStudy
from aftereffect.studies.results import Results
from aftereffect.studies.spec import Study, builtin_names

__all__ = ["ExecutorBroken", "FolderUnusable", "InvalidStudy", "Results", "Study", "builtin_names"]
