"""Backtests: what players would have made of a person's own history, seeing one total a round.

The history (`histories.py`) is replayed as it was recorded or, with `resample`, as rounds drawn from it. Each player
plays it many times; beside them stand the arms, each played throughout. The best of these is what regret is counted
against (R_T of Section 2).
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument
from aftereffect.engines.simulation import Simulation, compare, simulate
from aftereffect.losses.protocol import Losses
from aftereffect.losses.replay import MARGIN
from aftereffect.players.catalogue import Entry, Problem, catalogue
from aftereffect.players.wrapper.coin_clean import usual_bias
from aftereffect.studies.histories import Recording, read_history
from aftereffect.studies.settings import slug

PLAYERS = ("default_player", "wrapper_tsallis_ftrl", "naive_exp3", "uniform_play")
"""Who plays unless told otherwise, by the slugs of the catalogue's names."""

FEW = 30
"""Fewer decisions than this teach a player next to nothing."""


class Score(NamedTuple):
    """outcome: what was seen to come in over all rounds, the mean over runs; standard_error: 0 for an arm."""

    name: str
    outcome: float
    standard_error: float
    regret: float


@dataclass(frozen=True, eq=False)
class Backtest:
    """A history, the losses made of it, and what each player's runs came to.

    inferred: which ends of the range, "low" and "high", were taken from the history. resampled: rounds were drawn.
    """

    recording: Recording
    losses: Losses
    resampled: bool
    inferred: tuple[str, ...]
    simulations: dict[str, Simulation]

    def scores(self) -> list[Score]:
        """Return the best arm, the players in the order they were named, and the other arms from good to bad."""
        sign = 1.0 if self.losses.effects.maximize else -1.0
        sums = self.losses.arm_sums()
        order = np.argsort(-sign * sums, kind="stable")
        top = float(sums[order[0]])
        always = [
            Score(f"always {self.recording.arms[i]}", float(sums[i]), 0.0, sign * (top - float(sums[i])))
            for i in order
        ]
        played = [
            Score(name, top - sign * simulation.mean_regret, simulation.standard_error, simulation.mean_regret)
            for name, simulation in self.simulations.items()
        ]
        return [always[0]._replace(name=f"{always[0].name} (the best arm)"), *played, *always[1:]]

    def remarks(self) -> list[str]:
        """Say what one has to know to read the scores: where rounds and range are from, how much can be learned."""
        recording, losses = self.recording, self.losses
        found = [
            f"{recording.name}: {recording.plays:,} plays of {len(recording.arms)} arms "
            f"in {recording.horizon:,} rounds; effects arrive up to {recording.max_delay} rounds late."
        ]
        if self.resampled:
            found.append(
                f"The {losses.horizon:,} rounds played are made up of recorded plays, drawn at random for each arm: "
                "seasons and targeting are lost, so take this as a rehearsal, not as evidence."
            )
        inferred = ""
        if self.inferred:
            ends = " and ".join(self.inferred)
            inferred = f" ({ends} inferred: what was recorded, {MARGIN:.0%} wider at each end but 0)"
        span = f"between {amount(losses.low)} and {amount(losses.high)}"
        found.append(f"One play's effect is taken to lie {span}{inferred}.")
        d, T = losses.max_delay, losses.horizon
        beta = usual_bias(d, losses.direction, losses.low, losses.high)
        rate = beta * (1.0 - beta) ** d
        length, decisions = 1.0 / rate, rate * max(T - d - 1, 0)
        remark = f"The default player keeps an arm for some {length:,.0f} rounds: about {decisions:,.0f} decisions."
        if decisions < FEW:
            remark += f" Fewer than {FEW} teach next to nothing, whatever the scores say."
        return [*found, remark]

    def verdict(self) -> str:
        """Say in one sentence what the first player made of it, against blind play where that played too."""
        first, simulation = next(iter(self.simulations.items()))
        blind = self.simulations.get("uniform play")
        if blind is None or blind is simulation or blind.mean_regret <= 0.0:
            return f"'{first}' has a regret of {amount(simulation.mean_regret)} against the best arm."
        apart = compare(simulation, blind)
        if apart.low <= 0.0 <= apart.high:
            return f"After {self.losses.horizon:,} rounds, '{first}' cannot be told from choosing blindly."
        return f"'{first}' has {simulation.mean_regret / blind.mean_regret:.0%} of the regret of choosing blindly."


def play(
    recording: Recording,
    *,
    players: Sequence[str] = PLAYERS,
    resample: int | None = None,
    direction: str = "maximize",
    low: float | None = None,
    high: float | None = None,
    runs: int = 200,
    seed: int = 0,
) -> Backtest:
    """Let players loose on a recorded history.

    players: slugs of the catalogue's names, or "all" for everyone who needs no labels. resample: draw so many rounds
    from the recorded plays instead of replaying them. low, high: the range of one play's effect. seed: of the draws
    and of the players' runs.
    """
    checks.integer("runs", runs, low=2)
    losses = recording.losses(resample=resample, seed=seed, direction=direction, low=low, high=high)
    sizes = (losses.n_arms, losses.max_delay, losses.horizon)
    problem = Problem(*sizes, direction=direction, low=losses.low, high=losses.high)
    entries = chosen(catalogue(problem), players)
    simulations = {entry.name: simulate(entry.player, losses, runs=runs, seed=seed) for entry in entries}
    inferred = tuple(name for name, given in (("low", low), ("high", high)) if given is None)
    return Backtest(recording, losses, resample is not None, inferred, simulations)


def chosen(entries: Sequence[Entry], players: Sequence[str]) -> list[Entry]:
    """Return the entries with these slugs, in that order."""
    known = {slug(entry.name): entry for entry in entries}
    if list(players) == ["all"]:
        return [entry for entry in entries if "labels" not in entry.needs]
    if not players:
        raise InvalidArgument("players must be at least one, but got none")
    for name in players:
        checks.choice("players", name, known)
    return [known[name] for name in dict.fromkeys(players)]


def backtest(
    file: Annotated[Path, typer.Argument(help="A CSV file: round, arm, and effects by lag (lag0, lag1, ...).")],
    effects: Annotated[
        str | None, typer.Option(help="The columns with effects, by commas; lag0,lag1,... or effect unless given.")
    ] = None,
    kernel: Annotated[
        str | None, typer.Option(help="Shares of a whole effect that arrive 0, 1, ... rounds later: 0.5,0.3,0.2.")
    ] = None,
    direction: Annotated[str, typer.Option(help="maximize or minimize.")] = "maximize",
    low: Annotated[float | None, typer.Option(help="The least one play can do in all; inferred unless given.")] = None,
    high: Annotated[float | None, typer.Option(help="The most one play can do in all; inferred unless given.")] = None,
    resample: Annotated[
        int | None, typer.Option(help="Draw so many rounds from each arm's recorded plays.", min=1)
    ] = None,
    player: Annotated[list[str] | None, typer.Option(help="Who plays; more than once for more, or all.")] = None,
    runs: Annotated[int, typer.Option(help="Runs of each player.", min=2)] = 200,
    seed: Annotated[int, typer.Option(help="Of everything.", min=0)] = 0,
    out: Annotated[Path, typer.Option(help="The folder for the report.")] = Path("out/backtest"),
) -> None:
    """Replay players on your own history: a table of what each would have brought, and a report."""
    from rich.console import Console

    from aftereffect.studies.backtest_page import print_scores, write_page

    recording = read_history(
        file,
        effects=None if effects is None else [column.strip() for column in effects.split(",")],
        kernel=None if kernel is None else numbers("kernel", kernel),
    )
    settings: dict[str, Any] = {"direction": direction, "low": low, "high": high, "runs": runs, "seed": seed}
    found = play(recording, players=player or PLAYERS, resample=resample, **settings)
    console = Console()
    print_scores(console, found)
    console.print(f"Report: {os.fspath(write_page(found, out))}", soft_wrap=True)


def amount(value: float) -> str:
    """Return an amount as people read it: whole and with commas from a thousand on, else four digits.

    >>> amount(11425712.3), amount(0.58403), amount(-1234.5)
    ('11,425,712', '0.584', '-1,234')
    """
    return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.4g}"


def numbers(name: str, text: str) -> list[float]:
    """Read numbers parted by commas.

    >>> numbers("kernel", "0.5, 0.3, 0.2")
    [0.5, 0.3, 0.2]
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidArgument(f"{name} must be numbers parted by commas, but got {checks.shown(text)}") from None
