"""How a backtest is shown: a table at the terminal, and a page with figures like a study's."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from aftereffect.core import VERSION
from aftereffect.engines.simulation import Z95, standard_error
from aftereffect.studies.backtest import Backtest, Score, amount
from aftereffect.studies.figures import Drawing, band, legend_above, looks, panels, save, styled
from aftereffect.studies.page import Page

if TYPE_CHECKING:
    from rich.console import Console


def headings(backtest: Backtest) -> tuple[str, ...]:
    """Return the headings of the table of scores."""
    outcome = "brought" if backtest.losses.effects.maximize else "cost"
    return "who", outcome, "±", "a round", "of the best", "regret"


def entries(backtest: Backtest, score: Score) -> tuple[str, ...]:
    """Return a score as the texts of a table's row; ± is a standard error, and an arm has none."""
    top, rounds = backtest.scores()[0].outcome, backtest.losses.horizon
    error = amount(score.standard_error) if score.standard_error else ""
    share = f"{score.outcome / top:.1%}" if top > 0.0 else ""
    regret = amount(score.regret)
    return score.name, amount(score.outcome), error, amount(score.outcome / rounds), share, regret


def print_scores(console: "Console", backtest: Backtest) -> None:
    """Print remarks, scores and the verdict."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    for remark in backtest.remarks():
        console.print(remark, highlight=False)
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in headings(backtest):
        table.add_column(heading, justify="left" if heading == "who" else "right", no_wrap=heading != "who")
    for score in backtest.scores():
        table.add_row(*entries(backtest, score))
    console.print(table)
    console.print(backtest.verdict(), highlight=False)


def regret_curves(backtest: Backtest) -> Drawing:
    """Draw each player's mean regret over the rounds with its 95% band, against the best arm so far."""
    look = looks(backtest.simulations)
    with styled():
        figure, (axes,) = panels(1, height=3.6)
        for name, simulation in backtest.simulations.items():
            half = Z95 * np.asarray(standard_error(simulation.regrets))
            band(axes, simulation.rounds, simulation.regrets.mean(axis=0), half, look[name], name)
        axes.set_xlabel("round")
        axes.set_ylabel("regret")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        legend_above(figure, [axes])
    names = ", ".join(backtest.simulations)
    return Drawing("regret", figure, f"Mean regret over {backtest.losses.horizon:,} rounds of {names}.")


def arrivals(backtest: Backtest) -> Drawing:
    """Draw what a recorded play of each arm brought on average, by lag."""
    from matplotlib.ticker import MaxNLocator

    recording = backtest.recording
    look = looks(recording.arms)
    lags = np.arange(recording.max_delay + 1)
    with styled():
        figure, (axes,) = panels(1, height=3.2)
        for arm, means in zip(recording.arms, recording.mean_effects(), strict=True):
            colour, mark, front = look[arm]
            label, height = (arm, 3) if front else ("others", 2)
            axes.plot(lags, means, color=colour, marker=mark, label=label, zorder=height)
        axes.set_xlabel("rounds after the play")
        axes.set_ylabel("effect")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_formatter("{x:,.4g}")
        legend_above(figure, [axes])
    return Drawing("arrivals", figure, f"Mean effect of a play by lag, for the arms {', '.join(recording.arms)}.")


def write_page(backtest: Backtest, folder: str | os.PathLike[str]) -> Path:
    """Write report.html and the figures (SVG, PDF, PNG) into a folder; return the page's path."""
    home = Path(folder)
    drawings = [regret_curves(backtest), arrivals(backtest)]
    for drawing in drawings:
        save(drawing, home / "figures")
    simulation = next(iter(backtest.simulations.values()))
    page = Page(
        f"What players would have made of {backtest.recording.name}",
        kind="backtest",
        lead=backtest.verdict(),
        footer=f"aftereffect {VERSION}",
    )
    page.section("Scores")
    page.points(backtest.remarks())
    page.table(
        headings(backtest),
        [entries(backtest, score) for score in backtest.scores()],
        caption=(
            f"What came in within {backtest.losses.horizon:,} rounds: means over {simulation.runs:,} runs with their "
            "standard errors. Effects still owed at the end do not count. Regret is against the best arm."
        ),
    )
    page.section("Regret over time")
    page.figure(drawings[0], "Against the best arm of the rounds so far; bands are 95% normal intervals of the mean.")
    page.section("How effects arrive")
    page.figure(drawings[1], "What a recorded play of each arm brought, by the number of rounds after it.")
    page.section("How it was made")
    engines = ", ".join(f"{name}: {sim.engine}" for name, sim in backtest.simulations.items())
    drawn = "drawn from the recorded plays" if backtest.resampled else "as recorded"
    facts = [("rounds", f"{backtest.losses.horizon:,}, {drawn}"), ("runs", f"{simulation.runs:,}")]
    page.facts([*facts, ("seed", str(simulation.seed)), ("direction", backtest.losses.direction), ("engines", engines)])
    return page.write(home / "report.html")
