"""Numbers, facts and tables formatted for reading."""

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from aftereffect.core import checks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from rich.table import Table


def amount(value: float, digits: int | None = None) -> str:
    """Return a number as text: rounded to an integer from 1,000 on, else to three or four significant digits.

    digits: round to this number of significant digits first.

    >>> amount(340_000.0), amount(1234.56), amount(12.345), amount(0.5), amount(0.0000123), amount(0.0)
    ('340,000', '1,235', '12.35', '0.5', '0.0000123', '0')
    >>> amount(1234.56, digits=3), amount(12.345, digits=3)
    ('1,230', '12.3')
    >>> amount(-4.0), amount(2e18), amount(math.inf)
    ('-4', '2e+18', 'without limit')
    """
    if not math.isfinite(value):
        return "without limit"
    if digits is not None:
        value = float(f"{value:.{digits}g}")
    size = abs(value)
    if size == 0.0:
        return "0"
    if not 1e-9 <= size < 1e15:
        return f"{value:.3g}"
    if size >= 999.95:
        return f"{value:,.0f}"
    if size >= 1.0:
        return f"{value:.4g}"
    # Three significant digits.
    return f"{value:.{2 - math.floor(math.log10(size))}f}".rstrip("0")


def counted(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> counted(1, "round"), counted(0, "update"), counted(7056, "round")
    ('1 round', '0 updates', '7,056 rounds')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def duration(seconds: float) -> str:
    """Return a time that is known roughly.

    >>> duration(0.2), duration(41.0), duration(200.0), duration(9_000.0)
    ('under 2 seconds', 'about 41 seconds', 'about 3 minutes', 'about 2.5 hours')
    """
    if seconds < 2.0:
        return "under 2 seconds"
    if seconds < 100.0:
        return f"about {seconds:.0f} seconds"
    return f"about {seconds / 60.0:.0f} minutes" if seconds < 6000.0 else f"about {seconds / 3600.0:.1f} hours"


def utc_text(moment: datetime) -> str:
    """Return a time in UTC in ISO 8601, in milliseconds.

    >>> utc_text(datetime.fromisoformat("2026-03-02T08:00+00:00"))
    '2026-03-02T08:00:00.000Z'
    """
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Facts:
    """An object that shows itself as a list of facts, by name, in text and in notebooks."""

    def _facts(self) -> dict[str, str]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}: {fact}' for name, fact in self._facts().items())})"

    def _repr_html_(self) -> str:
        cells = ((html.escape(name), html.escape(fact)) for name, fact in self._facts().items())
        rows = (f'<th style="text-align:left">{name}</th><td>{fact}</td>' for name, fact in cells)
        return f"<table><tr>{'</tr><tr>'.join(rows)}</tr></table>"


def to_pandas(columns: Mapping[str, Any]) -> "pd.DataFrame":
    """Return columns as a pandas frame (extra `frames`)."""
    found: pd.DataFrame = checks.optional("pandas", "a pandas frame", "frames").DataFrame(columns)
    return found


def plain_axes(ax: "Axes | None", height: float = 4.2) -> "Axes":
    """Return axes without a frame: those given, or those of a new figure of this height (extra `plots`)."""
    if ax is None:
        plt = checks.optional("matplotlib.pyplot", "plot", "plots")
        _, ax = plt.subplots(figsize=(7, height), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def printed_table(headings: Sequence[str], rows: Iterable[Sequence[str]], words: Sequence[str] = ()) -> "Table":
    """Return a table for a terminal, with names in the first column and numbers in the others.

    words: the headings of further columns of text.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for k, heading in enumerate(headings):
        text = not k or heading in words
        table.add_column(heading, justify="left" if text else "right", no_wrap=not text)
    for row in rows:
        table.add_row(*row)
    return table
