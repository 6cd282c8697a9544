"""How figures look, in one place, and how they are kept: as SVG, PDF and PNG, the same bytes for the same numbers.

The colours are those of Okabe and Ito, which people with any common colour blindness can tell apart; lines also
differ in their marks.
"""

import base64
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6A51A3", "#4D4D4D")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
FAINT = "#B9BFC6"
"""For lines beyond those that colours can tell apart."""
LAST = ("others", "uniform play, exactly", "rate of the lower bound", "lower bound", "bound of Theorem 4", "1/2")
"""Names that come last in a legend."""
FORMATS = ("svg", "pdf", "png")

STYLE: Mapping[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelcolor": "#33383f",
    "axes.edgecolor": "#8a929b",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e9ed",
    "grid.linewidth": 0.7,
    "xtick.color": "#5b6470",
    "ytick.color": "#5b6470",
    "lines.linewidth": 1.7,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


class Drawing(NamedTuple):
    """A figure. name: its file's, without ending. words: what it shows, for who cannot see it."""

    name: str
    figure: "Figure"
    words: str


class Look(NamedTuple):
    """How one line is drawn wherever it appears in a report."""

    colour: str
    mark: str
    front: bool


def looks(names: Iterable[str], first: str | None = None) -> dict[str, Look]:
    """Return a look for each name: `first` has the first colour; beyond the eighth all are grey.

    >>> [look.colour for look in looks(["b", "a"], first="a").values()]
    ['#D55E00', '#0072B2']
    """
    listed = list(dict.fromkeys(names))
    order = sorted(listed, key=lambda name: name != first)
    found = {name: Look(PALETTE[k], MARKS[k], True) for k, name in enumerate(order[: len(PALETTE)])}
    return {name: found.get(name, Look(FAINT, ".", False)) for name in listed}


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the library's style inside this context, and leave the caller's settings alone."""
    import matplotlib as mpl

    with mpl.rc_context(dict(STYLE)):
        yield


def panels(count: int, *, columns: int = 2, height: float = 2.9, legend: bool = True) -> "tuple[Figure, list[Axes]]":
    """Return a figure 7.6 inches wide with so many axes, left to right and down, and room for a legend above."""
    from matplotlib.figure import Figure

    columns = max(1, min(columns, count))
    rows = -(-count // columns)
    figure = Figure(figsize=(7.6, rows * height + (0.5 if legend else 0.1)), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    axes = list(grid.flat)
    for spare in axes[count:]:
        spare.set_axis_off()
    return figure, axes[:count]


def legend_above(figure: "Figure", axes: "Sequence[Axes]", columns: int = 4) -> None:
    """Put one legend for all axes above them, each name once, players before what they are held against, and settle
    where everything stands.

    The layout is worked out here, once; else it would be again for every format.
    """
    found: dict[str, Any] = {}
    for ax in axes:
        for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    found = dict(sorted(found.items(), key=lambda item: LAST.index(item[0]) if item[0] in LAST else -1))
    if found:
        width = max(len(name) for name in found)
        columns = min(columns, len(found), 4 if width < 22 else 3 if width < 30 else 2)
        figure.legend(list(found.values()), list(found), loc="outside upper left", ncols=columns)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def band(axes: "Axes", x: ArrayLike, mean: ArrayLike, half: ArrayLike, look: Look, name: str) -> None:
    """Draw a mean with a band of so much above and below it; no band where the half width is NaN."""
    middle, width = np.asarray(mean, dtype=np.float64), np.nan_to_num(np.asarray(half, dtype=np.float64))
    style: dict[str, Any] = {"color": look.colour, "zorder": 3 if look.front else 2}
    axes.plot(x, middle, label=name if look.front else "others", lw=1.7 if look.front else 0.9, **style)
    axes.fill_between(x, middle - width, middle + width, alpha=0.18, linewidth=0, **style)


@lru_cache(maxsize=4)
def written(drawing: Drawing, form: str) -> bytes:
    """Return the figure in a format; without dates and random names, so that equal figures are equal bytes."""
    import matplotlib as mpl

    dates: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    buffer = io.BytesIO()
    with styled(), mpl.rc_context({"svg.hashsalt": drawing.name}):
        drawing.figure.savefig(buffer, format=form, metadata=dates[form])
    return buffer.getvalue()


def save(drawing: Drawing, folder: str | Path) -> list[Path]:
    """Write the figure into a folder as SVG, PDF and PNG; return the paths."""
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    paths = [home / f"{drawing.name}.{form}" for form in FORMATS]
    for path, form in zip(paths, FORMATS, strict=True):
        path.write_bytes(written(drawing, form))
    return paths


def data_address(drawing: Drawing) -> str:
    """Return the figure as an address that holds it whole, for a page that fetches nothing."""
    return "data:image/svg+xml;base64," + base64.b64encode(written(drawing, "svg")).decode("ascii")
