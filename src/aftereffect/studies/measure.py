"""From a cell to its rows: one per checkpoint, identical on any machine and for any number of threads.

`measure` simulates, `rows` summarises the simulations:

    regret          mean over runs, with its standard error and quantiles, against the best arm of the rounds so far
    uniform_regret  the expected regret of uniform play
    bound           the player's `regret_bound` at the horizon, at most T times the range; null if it has none
    corollary_bound, tuned_bound, lower_bound     for the sizes of the losses, at the horizon
    value           the mean of the runs' certificates at the horizon, if the player has one

A measure of the user's own (`Measure`) writes other columns in place of regret, such as docs/studies/stability.py.
"""

import dataclasses
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl

from aftereffect import theory
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.saved import canonical
from aftereffect.engines.simulation import Simulation, choose, simulate, standard_error
from aftereffect.losses.protocol import Losses
from aftereffect.players.wrapper.wrapper import BlockWrapper
from aftereffect.studies.cells import Cell, Draws, build_player, cell_id, cell_seed, own

LEVELS = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}
BOUNDS = ("bound", "corollary_bound", "tuned_bound", "lower_bound")
COUNTS = ("n_arms", "max_delay", "horizon", "seed", "runs", "instances")
MEANS = ("regret", "standard_error", *LEVELS, "pseudo_regret", "updates", "uniform_regret", *BOUNDS, "value", "theory")
ROWS = pl.Schema(
    {
        **dict.fromkeys(("cell", "measure", "instance", "instance_params", "player", "player_params"), pl.String()),
        **dict.fromkeys(COUNTS, pl.Int64()),
        "engine": pl.String(),
        "round": pl.Int64(),
        **dict.fromkeys(MEANS, pl.Float64()),
    }
)
"""The columns of the rows."""

TRACE_BYTES = 1 << 26
"""The memory for traces of runs, in bytes; a block takes three doubles."""


class Measure(Protocol):
    """What is measured in place of regret, of one player: a class of the user's own, made with the player."""

    def add(self, simulation: Simulation) -> None:
        """Add runs, with the traces of their blocks."""

    def columns(self) -> dict[str, Any]:
        """Return the columns of the rows; a list has an entry for each checkpoint."""


class Measured(NamedTuple):
    """The simulations of a cell, one or more for each draw of its losses.

    uniform: the expected regret of uniform play at the checkpoints, for each draw. certificates: of the runs, if the
    player has them. constants: the columns that are equal in all rows. own_measure: measured in place of regret, if it
    is the cell's.
    """

    simulations: list[Simulation]
    uniform: list[FloatArray]
    certificates: list[FloatArray]
    constants: dict[str, float | None]
    own_measure: Measure | None


def measure(
    cell: Cell,
    draws: Draws,
    threads: int | None,
    engine: str = "auto",
    wave: range | None = None,
    before: Measured | None = None,
) -> Measured:
    """Simulate a cell on the losses of its group. engine: "cuda" applies to players that the block engine can play.

    wave: which draws; by default all. before: what was measured on earlier draws, to which these are added.
    """
    player = build_player(cell, draws[0])
    made = None if cell["measure"] == "regret" else own("measure", cell["measure"], "Measure")[0](player)
    measured = before or Measured([], [], [], bounds(player, draws[0]), made)
    traced = measured.own_measure is not None
    share = cell["runs"] // cell["instances"]
    at_once = TRACE_BYTES // (24 * (cell["horizon"] // (2 * player.max_delay + 1) + 1)) if traced else share
    step = max(1, min(share, at_once))
    options: dict[str, Any] = {"seed": cell_seed(cell, "runs"), "checkpoints": cell["checkpoints"], "threads": threads}
    if traced or (engine == "cuda" and choose(player, draws[0], "auto")[0] != "blocks"):
        engine = "blocks" if traced else "auto"
    options |= {"engine": engine, "trace": traced, "progress": False}
    for draw in range(cell["instances"]) if wave is None else wave:
        end = (draw + 1) * share
        for first in range(draw * share, end, step):
            one = simulate(player, draws[draw], runs=min(step, end - first), first_run=first, **options)
            if measured.own_measure is not None:
                measured.own_measure.add(one)
            # Certificates hold on losses that come within the player's delay.
            if one.certificates is not None and not traced and player.max_delay >= draws[draw].max_delay:
                measured.certificates.append(one.certificates[:, -1].copy())
            measured.simulations.append(dataclasses.replace(one, traces=None, certificates=None))
        measured.uniform.append(measured.simulations[-1].uniform_regrets[0])
    return measured


def bounds(player: Any, losses: Losses) -> dict[str, float | None]:
    """Return the theoretical bounds at the horizon, in units of effects; none for effects below 0."""
    found: dict[str, float | None] = {}
    if losses.effects.lo >= 0.0:
        if isinstance(player, BlockWrapper) and player.max_delay >= losses.max_delay:
            with suppress(InvalidArgument):
                found["bound"] = player.regret_bound(losses.horizon)
        hi, sizes = losses.effects.hi, (losses.n_arms, losses.max_delay, losses.horizon)
        found["corollary_bound"] = hi * theory.corollary_bound(*sizes)
        found["tuned_bound"] = hi * theory.tuning(*sizes).bound
        found["lower_bound"] = hi * theory.lower_bound(*sizes)
    return found


def rows(cell: Cell, measured: Measured) -> pl.DataFrame:
    """Return the rows of a simulated cell."""
    found, first = measured.simulations, measured.simulations[0]
    columns: dict[str, Any] = {name: cell[name] for name in ("measure", *COUNTS)} | measured.constants
    columns |= {"cell": cell_id(cell), "engine": first.engine, "round": first.rounds}
    columns["uniform_regret"] = sum(measured.uniform[1:], measured.uniform[0]) / cell["instances"]
    columns["updates"] = float(np.concatenate([one.updates for one in found]).mean())
    if measured.certificates:
        columns["value"] = float(np.concatenate(measured.certificates).mean())
    # The d given to the player is one of its settings if it differs from that of the losses; the number of units, if
    # there are several, is a setting of the instance, as each unit has losses of its own.
    told = {"max_delay": cell["player_max_delay"]} if "player_max_delay" in cell else {}
    units = {"n_units": cell["n_units"]} if "n_units" in cell else {}
    for kind, settings in (("instance", cell["instance"] | units), ("player", cell["player"] | told)):
        columns[kind] = settings.pop("name")
        columns[f"{kind}_params"] = canonical(settings)
    if measured.own_measure is None:
        regrets = np.concatenate([one.regrets for one in found])
        columns |= {"regret": regrets.mean(axis=0), "standard_error": standard_error(regrets)}
        columns |= zip(LEVELS, np.quantile(regrets, list(LEVELS.values()), axis=0), strict=True)
    else:
        columns |= measured.own_measure.columns()
    pseudo = [one.pseudo_regrets for one in found if one.pseudo_regrets is not None]
    if len(pseudo) == len(found):
        columns["pseudo_regret"] = np.concatenate(pseudo).mean(axis=0)
    # A single run has no standard error: NaN becomes null.
    return pl.DataFrame({name: columns.get(name) for name in ROWS}, schema=ROWS).fill_nan(None)
