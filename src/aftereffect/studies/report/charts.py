"""The style of figures, and how they are saved: as SVG, PDF and PNG, with equal bytes for equal numbers."""

import io
import math
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from aftereffect.core import checks
from aftereffect.engines.simulation import Z95

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOKS = tomllib.loads(Path(__file__).with_name("looks.toml").read_text(encoding="utf-8"))
COLOURS: dict[str, str] = LOOKS["colours"]
"""The colours of the catalogue's players, in all reports. Other names have those of players that are not shown."""
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
MOST = len(MARKS)
"""The largest number of lines with a colour of their own in a figure."""
FAINT = "#B9BFC6"
"""The colour of further lines when all others are in use."""
GREY = "#6b737c"
LAST = ("others", "uniform play, exactly", "rate of the lower bound", "lower bound", "1/2", "bound of ")
"""Names, or beginnings of names, that come last in a legend."""
FORMATS = ("svg", "pdf", "png")

STYLE = "aftereffect.figures"
"""The name of the style for matplotlib: the file figures.mplstyle of the package."""


class Drawing(NamedTuple):
    """A figure. name: the file name without suffix. words: the alternative text."""

    name: str
    figure: "Figure"
    words: str


class Look(NamedTuple):
    """The style of one line, the same throughout a report. front: drawn above the others, with its own legend entry."""

    colour: str
    mark: str
    front: bool


def looks(names: Iterable[str], first: str | None = None) -> dict[str, Look]:
    """Return a style for each name: players have their own colour, others one that is left; from the ninth on grey.

    first: a name that is never grey.

    >>> [look.colour for look in looks(["b", "wrapper, Tsallis FTRL", "a"], first="a").values()]
    ['#009E73', '#D55E00', '#0072B2']
    """
    listed = list(dict.fromkeys(names))
    front = sorted(listed, key=lambda name: name != first)[:MOST]
    free = (owner for owner in COLOURS if owner not in front)
    owners = {name: name if name in COLOURS else next(free) for name in front}
    marks = {owner: MARKS[k % MOST] for k, owner in enumerate(COLOURS)}
    found = {name: Look(COLOURS[owner], marks[owner], True) for name, owner in owners.items()}
    return {name: found.get(name, Look(FAINT, ".", False)) for name in listed}


@contextmanager
def drawn(
    name: str, words: str, count: int, *, columns: int = 2, height: float = 2.9, legend: int = 4
) -> "Iterator[tuple[Drawing, list[Axes]]]":
    """Make a figure in the style of the library, 7.6 inches wide, with `count` axes in rows of `columns`.

    Yields the drawing and its axes, to be filled. Afterwards one legend for all axes, with at most `legend` columns, is
    added above them: each name once, players first, references (LAST) last. The layout is computed once, for all
    formats.
    """
    style = checks.optional("matplotlib.style", "a report", "studies")
    from matplotlib.figure import Figure

    columns = max(1, min(columns, count))
    lines = -(-count // columns)
    with style.context(STYLE):
        figure = Figure(figsize=(7.6, lines * height + 0.5), layout="constrained")
        axes = list(figure.subplots(lines, columns, squeeze=False).flat)
        for spare in axes[count:]:
            spare.set_axis_off()
        yield Drawing(name, figure, words), axes[:count]
        pairs = [pair for ax in axes for pair in zip(*ax.get_legend_handles_labels(), strict=True)]
        found = {label: handle for handle, label in reversed(pairs)}
        names = list(dict.fromkeys(label for _, label in pairs))
        names.sort(key=lambda label: next((k for k, last in enumerate(LAST) if label.startswith(last)), -1))
        if names:
            width = max(map(len, names))
            columns = min(legend, len(names), 4 if width < 22 else 3 if width < 30 else 2)
            figure.legend([found[label] for label in names], names, loc="outside upper left", ncols=columns)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


def wide_axis(ax: "Axes", ticks: Sequence[float]) -> None:
    """Make the x axis logarithmic if its values are far apart; symmetric-logarithmic if they include 0."""
    positive = [tick for tick in ticks if tick > 0.0]
    if ticks[0] < 0.0 or not positive or positive[0] * 8 > positive[-1]:
        return
    if ticks[0] == 0.0:
        ax.set_xscale("symlog", linthresh=positive[0], linscale=0.4)
    else:
        ax.set_xscale("log")
    ticked(ax, ticks)


def short(value: float) -> str:
    """Return a number in short form, as a tick label.

    >>> short(2_000_000.0), short(50_000.0), short(0.5)
    ('2M', '50k', '0.5')
    """
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k" if value >= 1e4 else f"{value:g}"


def ticked(ax: "Axes", ticks: Sequence[float], most: int = 9) -> None:
    """Put ticks at the measured values, about `most` at most besides 0; values too close together are left out."""
    kept = [tick for tick in ticks if tick == 0.0]
    positive = [tick for tick in ticks if tick > 0.0]
    apart = math.log(positive[-1] / positive[0]) / most
    for tick in positive:
        if not kept or kept[-1] == 0.0 or math.log(tick / kept[-1]) >= apart:
            kept.append(tick)
    ax.set_xticks(kept, labels=[short(tick) for tick in kept])
    ax.set_xticks([], minor=True)


def band(axes: "Axes", line: Any, name: str, look: Look, *, x: str, y: str) -> None:
    """Draw column y of a line against column x, with a 95% band if it has a standard_error."""
    mean, error = (np.asarray(line[column], dtype=np.float64) for column in (y, "standard_error"))
    half = Z95 * np.nan_to_num(error)
    style: dict[str, Any] = {"color": look.colour, "zorder": 3 if look.front else 2}
    axes.plot(line[x], mean, label=name if look.front else "others", lw=1.7 if look.front else 0.9, **style)
    axes.fill_between(line[x], mean - half, mean + half, alpha=0.18, linewidth=0, **style)


@lru_cache(maxsize=4)
def written(drawing: Drawing, form: str) -> bytes:
    """Return the figure in a format, without dates and random ids, so that equal figures have equal bytes."""
    from matplotlib import style

    dates: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    buffer = io.BytesIO()
    with style.context([STYLE, {"svg.hashsalt": drawing.name}]):
        drawing.figure.savefig(buffer, format=form, metadata=dates[form])
    return buffer.getvalue()
