"""A progress bar over the cells of a study, with the time left: only at a terminal unless it is asked for."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from aftereffect.studies.cells import Cell, cell_id, weight


@contextmanager
def watching(
    cells: Sequence[Cell], left: Sequence[Cell], progress: bool | Callable[[int, int], None] | None
) -> Iterator[Callable[[str], None]]:
    """Yield a function that takes the id of a cell that has been tried.

    The bar moves by simulated rounds, as cells are of very different sizes; cells that were finished before do not
    count into the time left.
    """
    finished = len(cells) - len(left)
    if callable(progress):
        told = progress

        def tell(cell: str) -> None:
            nonlocal finished
            finished += 1
            told(finished, len(cells))

        yield tell
        return
    if progress is False or (progress is None and not sys.stderr.isatty()) or not left:
        yield lambda cell: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    # Whoever asks for a bar gets one, also where standard error is no terminal.
    console = Console(stderr=True, force_terminal=True if progress else None)
    weights = {cell_id(cell): weight(cell) for cell in left}
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(f"{finished}/{len(cells)} cells", total=sum(weights.values()))

        def show(cell: str) -> None:
            nonlocal finished
            finished += 1
            bar.update(task, advance=weights[cell], description=f"{finished}/{len(cells)} cells")

        yield show
