"""Backtests: what players would have earned on a recorded history, observing one total per round.

The history (`histories.py`) is replayed as recorded or, with `resample`, as rounds drawn from it. Each player plays it
many times. For comparison each arm is played throughout; regret is measured against the best of these (R_T of
Section 2).
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from aftereffect.core import VERSION, checks
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.text import amount, counted, printed_table
from aftereffect.engines.simulation import Simulation, simulate, standard_error
from aftereffect.losses.protocol import Losses
from aftereffect.losses.replay import MARGIN
from aftereffect.players import registry
from aftereffect.players.default import default_player
from aftereffect.players.limits import Range
from aftereffect.studies.histories import Recording, read_history
from aftereffect.studies.player_tables import Contender, contenders
from aftereffect.studies.report.charts import Drawing, band, drawn, looks
from aftereffect.studies.report.page import Page

if TYPE_CHECKING:
    from rich.console import Console

PLAYERS = ("default_player", "CompositeLossWrapper", "Naive", "CompositeLossWrapper:uniform")
"""The players of a backtest by default."""
FEW = 30
"""With fewer decisions than this, the default player learns almost nothing."""


class Score(NamedTuple):
    """outcome: the sum of all totals, as a mean over runs. standard_error: of that mean; 0 if it is deterministic."""

    name: str
    outcome: float
    standard_error: float
    regret: float


@dataclass(frozen=True, eq=False)
class Backtest:
    """A history, the losses built from it, and the simulations of each player.

    inferred: which ends of the range, "low" and "high", were taken from the history. resampled: whether rounds were
    drawn from the history.
    """

    recording: Recording
    losses: Losses
    resampled: bool
    inferred: tuple[str, ...]
    simulations: dict[str, Simulation]

    @property
    def best(self) -> str:
        """The words for the arm that brings most if it is always played; in a column of totals it need not be best."""
        return "the highest mean in the column" if self.recording.maybe_totals else "the best arm"

    def blocks(self) -> tuple[float, float]:
        """Return how many rounds the default player keeps an arm on average, and how many decisions that leaves."""
        losses, d = self.losses, self.losses.max_delay
        common: Range = {"direction": losses.direction, "low": losses.low, "high": losses.high}
        _, beta = default_player(losses.n_arms, max_delay=d, **common).certified_base()
        rate = beta * (1.0 - beta) ** d
        return 1.0 / rate, rate * max(losses.horizon - d - 1, 0)

    def scores(self) -> list[Score]:
        """Return scores of the players and of always playing each arm, from best to worst."""
        sign = 1.0 if self.losses.effects.maximize else -1.0
        sums, best = self.losses.arm_sums().tolist(), self.losses.best_arm()
        names = [f"always {arm}{f' ({self.best})' * (i == best)}" for i, arm in enumerate(self.recording.arms)]
        top = sums[best]
        always = [Score(name, whole, 0.0, sign * (top - whole)) for name, whole in zip(names, sums, strict=True)]
        played = [
            Score(name, top - sign * sim.mean_regret, sim.standard_error * (not sim.deterministic), sim.mean_regret)
            for name, sim in self.simulations.items()
        ]
        return sorted([*always, *played], key=lambda score: score.regret)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return headings and rows of a table of the scores; ± is a standard error, none if deterministic."""
        rows, top = [], float(self.losses.arm_sums()[self.losses.best_arm()])
        for name, outcome, error, regret in self.scores():
            share = f"{outcome / top:.1%}" if top > 0.0 else ""
            each = amount(outcome / self.losses.horizon)
            rows.append([name, amount(outcome), amount(error) if error else "none", each, share, amount(regret)])
        verb = "reward" if self.losses.effects.maximize else "cost"
        return ["player", verb, "±", "per round", "of the best", "regret"], rows

    def remarks(self) -> list[str]:
        """Return sentences that explain the scores: where rounds and range come from, and how much can be learned."""
        recording, losses = self.recording, self.losses
        found = [
            f"{recording.name}: {len(recording.rounds):,} plays of {len(recording.arms)} arms "
            f"in {recording.horizon:,} rounds; effects arrive up to {counted(recording.max_delay, 'round')} late."
        ]
        if recording.gaps:
            found.append(f"Rounds missing between the first and the last: {recording.gaps:,}; the gaps are closed up.")
        if self.resampled:
            found.append(
                f"The {losses.horizon:,} rounds consist of recorded plays, drawn at random for each arm: "
                "seasonality and targeting are lost, so this is a simulation, not evidence."
            )
        ends = f" ({' and '.join(self.inferred)} inferred: the recorded range, {MARGIN:.0%} wider at each end but 0)"
        span = f"between {amount(losses.low)} and {amount(losses.high)}{ends if self.inferred else ''}"
        found.append(f"The effect of one play is assumed to lie {span}.")
        if losses.max_delay == 0 or recording.kernel is not None:
            found.append(
                "The column is assumed to hold the whole effect of each play. If it holds the totals of rounds, this "
                "is not valid where effects linger: a total does not say which play it came from."
            )
        rounds, decisions = self.blocks()
        kept = counted(round(rounds), "round")
        remark = f"The default player keeps an arm for about {kept}: about {decisions:,.0f} decisions."
        if decisions < FEW:
            remark += f" With fewer than {FEW} it learns almost nothing, whatever the scores say."
        return [*found, remark]

    def verdict(self) -> str:
        """Return a sentence on the regret of the default player, or else the first; none on what may be totals.

        It is compared with the expected regret of uniform play, which is known exactly.
        """
        if self.recording.maybe_totals:
            words = "No verdict, as the column may hold totals: `aftereffect carryover` estimates from those. "
            return words + "If effects are whole and arrive at once, say --kernel 1."
        first = "default player" if "default player" in self.simulations else next(iter(self.simulations))
        simulation, decisions = self.simulations[first], self.blocks()[1]
        (*_, low), (*_, high) = simulation.curve[2:]
        uniform = float(simulation.uniform_regrets[0, -1])
        few = f" Only about {decisions:,.0f} decisions: too few to learn from." if decisions < FEW else ""
        if uniform <= 0.0 or first == "uniform play":
            return f"'{first}' has a regret of {amount(simulation.mean_regret)} against the best arm."
        if low <= uniform <= high:
            return f"After {self.losses.horizon:,} rounds, '{first}' cannot be distinguished from uniform play.{few}"
        return f"'{first}' has {simulation.mean_regret / uniform:.0%} of the regret of uniform play.{few}"


def play(
    recording: Any,
    *,
    players: Sequence[str] = PLAYERS,
    resample: int | None = None,
    direction: str = "maximize",
    low: float | None = None,
    high: float | None = None,
    runs: int = 200,
    seed: int = 0,
) -> Backtest:
    """Simulate players on a recorded history: what `read_history` returns, or what it reads.

    players: names of `players/registry.py`, with a base after a colon ("CompositeLossWrapper:exp3"), or "all" for every
    player that needs no labels and supports the problem. resample: draw this many rounds from the recorded plays
    instead of replaying them. low, high: the range of one play's effect. seed: for the draws and the players' runs.
    """
    checks.integer("runs", runs, low=2)
    recording = recording if isinstance(recording, Recording) else read_history(recording)
    losses = recording.losses(resample=resample, seed=seed, direction=direction, low=low, high=high)
    sizes = (losses.n_arms, losses.max_delay, losses.horizon)
    problem = registry.Problem(*sizes, direction=direction, low=losses.low, high=losses.high)
    built = {entry.label(settings): entry.build(problem, **settings) for entry, settings in chosen(players, problem)}
    simulations = {label: simulate(player, losses, runs=runs, seed=seed) for label, player in built.items()}
    inferred = tuple(name for name, given in (("low", low), ("high", high)) if given is None)
    return Backtest(recording, losses, resample is not None, inferred, simulations)


def chosen(players: Sequence[str], problem: registry.Problem) -> list[Contender]:
    """Return the named players in the given order, with their settings."""
    if list(players) == ["all"]:
        return [pair for pair in contenders(problem) if not pair[0].labelled]
    if not players:
        raise InvalidArgument("players must be at least one, but got none")
    named = (each.partition(":") for each in dict.fromkeys(players))
    return [(registry.find(name), {"base": base} if base else {}) for name, _, base in named]


def print_scores(console: "Console", backtest: Backtest) -> None:
    """Print remarks, scores and the verdict."""
    for remark in backtest.remarks():
        console.print(remark, highlight=False)
    console.print(printed_table(*backtest.table()))
    console.print(backtest.verdict(), highlight=False)


def write_page(backtest: Backtest, folder: str | os.PathLike[str]) -> Path:
    """Write report.html and the figures (SVG, PDF, PNG) into a folder; return the page's path."""
    home = Path(folder)
    losses, simulation = backtest.losses, next(iter(backtest.simulations.values()))
    title, footer = f"Backtest on {backtest.recording.name}", f"aftereffect {VERSION}"
    page = Page(title, kind="backtest", lead=backtest.verdict(), footer=footer, figures=home / "figures")
    page.findings = backtest.remarks()
    page.section("Scores")
    caption = f"Totals over {losses.horizon:,} rounds: means over {simulation.runs:,} runs with their standard errors, "
    caption += "over the player's randomness only (none: deterministic). Effects due after the last round "
    caption += f"do not count. Regret is against {backtest.best}."
    page.table(*backtest.table(), caption=caption)
    page.section("Regret over time")
    caption = "Against the best arm of the rounds so far; bands are 95% normal intervals of the mean over the player's "
    caption += "randomness: other rounds would give other curves."
    page.figure(regret_chart(backtest), caption)
    page.section("How effects arrive")
    kernel = "" if backtest.recording.kernel is None else ", as assumed by the kernel"
    caption = f"Mean effect of a recorded play of each arm, by the number of rounds after it{kernel}."
    page.figure(effects_chart(backtest.recording), caption)
    page.section("How it was made")
    drawn = "drawn from the recorded plays" if backtest.resampled else "as recorded"
    facts = [("rounds", f"{losses.horizon:,}, {drawn}"), ("runs", f"{simulation.runs:,}")]
    page.facts([*facts, ("seed", str(simulation.seed)), ("direction", losses.direction)])
    return page.write(home / "report.html")


def regret_chart(backtest: Backtest) -> Drawing:
    """Draw each player's mean regret over the rounds, against the best arm so far, with a 95% band."""
    look = looks(backtest.simulations)
    words = f"Mean regret over {backtest.losses.horizon:,} rounds of {', '.join(backtest.simulations)}."
    with drawn("regret", words, 1, height=3.6) as (drawing, (axes,)):
        for name, simulation in backtest.simulations.items():
            line = {"round": simulation.rounds, "regret": simulation.curve.mean}
            line["standard_error"] = standard_error(simulation.regrets)
            band(axes, line, name, look[name], x="round", y="regret")
        axes.set(xlabel="round", ylabel="regret")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,.0f}")
    return drawing


def effects_chart(recording: Recording) -> Drawing:
    """Draw the mean effect of a recorded play of each arm, by lag."""
    lags = np.arange(recording.max_delay + 1)
    words = f"Mean effect of a play by lag, for the arms {', '.join(recording.arms)}."
    with drawn("arrivals", words, 1, height=3.2) as (drawing, (axes,)):
        for look, means in zip(looks(recording.arms).items(), recording.mean_effects(), strict=True):
            arm, (colour, mark, front) = look
            axes.plot(lags, means, color=colour, marker=mark, label=arm if front else "others", zorder=2 + front)
        axes.set(xlabel="rounds after the play", ylabel="effect")
        axes.locator_params(axis="x", integer=True)
    return drawing
