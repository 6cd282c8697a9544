"""How figures look and how they are saved: as SVG, PDF and PNG, the same bytes for the same numbers.

The colours are those of Okabe and Ito, which people with any common colour blindness can tell apart; lines also
differ in their marks.
"""

import io
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from aftereffect.studies.numbers import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6A51A3", "#4D4D4D")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
FAINT = "#B9BFC6"
"""For lines beyond those that colours can tell apart."""
GREY = "#6b737c"
LAST = ("others", "uniform play, exactly", "rate of the lower bound", "lower bound", "bound of Theorem 4", "1/2")
"""Names that come last in a legend."""
FORMATS = ("svg", "pdf", "png")

STYLE = Path(__file__).parent / "templates" / "figures.mplstyle"


class Drawing(NamedTuple):
    """A figure. name: its file's, without ending. words: what it shows, for readers who cannot see it."""

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
    from matplotlib import style

    with style.context(STYLE):
        yield


def panels(count: int, *, columns: int = 2, height: float = 2.9, legend: bool = True) -> "tuple[Figure, list[Axes]]":
    """Return a figure 7.6 inches wide with this many axes, left to right and down, and room for a legend above."""
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
    """Put one legend for all axes above them, each name once, players before what they are compared with.

    The layout is computed here, once, and not again for every format.
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


def log_axes(ax: "Axes", ticks: Sequence[float], most: int = 9) -> None:
    """Make both axes logarithmic, with the values that were measured marked on the first."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    ticked(ax, ticks, most)


def wide_axis(ax: "Axes", ticks: Sequence[float]) -> None:
    """Make the first axis logarithmic where its values are far apart; a 0 among them has a place of its own."""
    positive = [tick for tick in ticks if tick > 0.0]
    if ticks[0] < 0.0 or not positive or positive[0] * 8 > positive[-1]:
        return
    if ticks[0] == 0.0:
        ax.set_xscale("symlog", linthresh=positive[0], linscale=0.4)
    else:
        ax.set_xscale("log")
    ticked(ax, ticks)


def ticked(ax: "Axes", ticks: Sequence[float], most: int = 9) -> None:
    """Mark the values that were measured, at most `most` beside 0, but for those too close to the one before."""
    kept = [tick for tick in ticks if tick == 0.0]
    positive = [tick for tick in ticks if tick > 0.0]
    apart = math.log(positive[-1] / positive[0]) / most
    for tick in positive:
        if not kept or kept[-1] == 0.0 or math.log(tick / kept[-1]) >= apart:
            kept.append(tick)
    ax.set_xticks(kept, labels=[short(tick) for tick in kept])
    ax.set_xticks([], minor=True)


def band(axes: "Axes", x: ArrayLike, mean: ArrayLike, half: ArrayLike, look: Look, name: str) -> None:
    """Draw a mean with a band of half a width above and below it; no band where that is NaN."""
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
