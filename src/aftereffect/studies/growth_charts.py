"""The drawings of how regret grows: against d+1, K and T, and the exponents from one size to the next."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from aftereffect.core.checks import FloatArray
from aftereffect.engines.simulation import Z95
from aftereffect.studies.charts import log_axes, ticked
from aftereffect.studies.figures import Drawing, legend_above, looks, panels, styled
from aftereffect.studies.fits import Local, PowerLaw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

APART = 0.055
"""How far apart numbers beside lines must be, as a share of the axis."""


def scaling(parts: Mapping[str, tuple[pl.DataFrame, PowerLaw]]) -> Drawing:
    """Draw regret against d+1, K and T, and the fitted power laws.

    Each measured regret is brought by its fit to the geometric means of the other two sizes; dots are the geometric
    means of these, so that the line through them has the fitted exponent.
    """
    fits = [fit for _, fit in parts.values()]
    names = [name for name in ("d+1", "K", "T") if any(name in fit.exponents for fit in fits)]
    look = looks(parts)
    with styled():
        figure, axes = panels(len(names), columns=3, height=3.1)
        for ax, name in zip(axes, names, strict=True):
            ticks: set[float] = set()
            ends: list[tuple[float, float, str, str]] = []
            for who, (part, fit) in parts.items():
                if name not in fit.exponents:
                    continue
                x, y = _partial(part, fit, name)
                power, (colour, mark, _) = fit.exponents[name].value, look[who]
                line = np.exp(np.log(y).mean()) * (x / np.exp(np.log(x).mean())) ** power
                ax.plot(x, y, ls="none", marker=mark, color=colour, label=who)
                ax.plot(x, line, color=colour, lw=1.2)
                ends.append((float(x[-1]), float(line[-1]), f"{power:.2f}", colour))
                ticks |= set(x.tolist())
            log_axes(ax, sorted(ticks), 5)
            ax.margins(x=0.2)
            _beside(ax, ends)
            ax.set_xlabel(name)
        axes[0].set_ylabel("worst regret")
        legend_above(figure, axes, 3)
    return Drawing("scaling", figure, "Worst regret against " + ", ".join(names) + " in log-log, with fitted lines.")


def _beside(ax: "Axes", ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write a number beside the end of each line, moved up where it would cover the one below."""
    bottom, top = (math.log(limit) for limit in ax.get_ylim())
    last = -math.inf
    for x, y, text, colour in sorted(ends, key=lambda end: end[1]):
        at = max(math.log(y), last + APART * (top - bottom))
        last = at
        ax.annotate(
            text, (x, math.exp(at)), (5, 0), textcoords="offset points", va="center", color=colour, fontsize=8.5
        )


def _partial(part: pl.DataFrame, fit: PowerLaw, name: str) -> tuple[FloatArray, FloatArray]:
    """Return the values of one variable, and the mean regret at each with the other variables' part taken out."""
    sizes = {"d+1": part["max_delay"].to_numpy() + 1.0, "K": part["n_arms"].to_numpy(), "T": part["horizon"].to_numpy()}
    logs = np.log(part["regret"].to_numpy())
    for other, power in fit.exponents.items():
        if other != name:
            logs = logs - power.value * (np.log(sizes[other]) - np.log(sizes[other]).mean())
    x = np.unique(sizes[name]).astype(np.float64)
    return x, np.array([math.exp(logs[sizes[name] == value].mean()) for value in x])


def slopes(found: Mapping[str, Mapping[str, Sequence[tuple[Local, float]]]], names: Sequence[str]) -> Drawing:
    """Draw exponents between neighbouring sizes, measured and expected, against the sizes' geometric mean."""
    look = looks(found)
    with styled():
        figure, axes = panels(len(names), columns=2, height=3.0)
        for ax, name in zip(axes, names, strict=True):
            ticks: set[float] = set()
            for who, by_name in found.items():
                steps = by_name.get(name, ())
                if not steps:
                    continue
                x = [math.sqrt(local.low * local.high) for local, _ in steps]
                y = [local.exponent.value for local, _ in steps]
                half = [Z95 * local.exponent.standard_error for local, _ in steps]
                colour, mark, _ = look[who]
                ax.errorbar(x, y, yerr=half, ls="none", marker=mark, elinewidth=1.0, label=who, color=colour)
                ax.plot(x, [expected for _, expected in steps], lw=1.2, color=colour)
                ticks |= {end for local, _ in steps for end in (local.low, local.high)}
            ax.axhline(0.5, color="#6b737c", ls="--", lw=1.1, label="1/2")
            ax.set_xscale("log")
            ticked(ax, sorted(ticks))
            ax.set_ylim(0.0, None)
            ax.set_xlabel(name)
        axes[0].set_ylabel("exponent")
        legend_above(figure, axes, 3)
    return Drawing("slopes", figure, "Exponents from one size to the next of " + ", ".join(names) + ".")
