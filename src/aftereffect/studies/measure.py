"""From a cell to its rows: one per checkpoint, identical on any machine and for any number of threads.

`measure` simulates, `rows` summarises the simulations:

    regret          mean over runs, with its standard error and quantiles, against the best arm of the rounds so far
    uniform_regret  the expected regret of uniform play
    bound           the player's `regret_bound` at the horizon, at most T times the range; null if it has none
    corollary_bound, tuned_bound, lower_bound     for the sizes of the losses, at the horizon
    value           the mean of the runs' certificates at the horizon, if the player has one
    value, theory   measure "stability": the mean of Σ_i (q_{n+1}(i) − q_n(i))⁺, the distance by which an update moves
                    the base, since the previous checkpoint, and ξ of Definition 3. In this measure standard_error and
                    quantiles are those of the runs' means, and regret is null
"""

import dataclasses
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from aftereffect import theory
from aftereffect.core import kernel
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.saved import canonical
from aftereffect.engines.simulation import Simulation, choose, simulate, standard_error
from aftereffect.engines.workload import Blocks
from aftereffect.losses.protocol import Losses
from aftereffect.players.wrapper.wrapper import BlockWrapper, CompositeLossWrapper
from aftereffect.studies.cells import Cell, cell_id, cell_seed
from aftereffect.studies.instances import Draws
from aftereffect.studies.players import build_player

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


class Moves(NamedTuple):
    """How far updates move the base: sum and number of moves between checkpoints, each (runs, checkpoints)."""

    sums: FloatArray
    counts: FloatArray


class Measured(NamedTuple):
    """The simulations of a cell, one or more for each draw of its losses.

    uniform: the expected regret of uniform play at the checkpoints, for each draw. moves: for the measure "stability".
    certificates: of the runs, if the player has them. constants: the columns that are equal in all rows.
    """

    simulations: list[Simulation]
    uniform: list[FloatArray]
    moves: list[Moves]
    certificates: list[FloatArray]
    constants: dict[str, float | None]


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
    traced = cell["measure"] == "stability"
    # True if the player's certificate holds on these losses and can be computed from its base's last state.
    places = player.certificate_places() if isinstance(player, BlockWrapper) else []
    certified = bool(places) and not traced and player.max_delay >= draws[0].max_delay
    share = cell["runs"] // cell["instances"]
    at_once = TRACE_BYTES // (24 * (cell["horizon"] // (2 * player.max_delay + 1) + 1)) if traced else share
    step = max(1, min(share, at_once))
    options: dict[str, Any] = {"seed": cell_seed(cell, "runs"), "checkpoints": cell["checkpoints"], "threads": threads}
    if traced or (engine == "cuda" and choose(player, draws[0], "auto")[0] != "blocks"):
        engine = "blocks" if traced else "auto"
    options |= {"engine": engine, "trace": traced, "states": certified, "progress": False}
    measured = before or Measured([], [], [], [], bounds(player, draws[0]))
    if traced:
        with suppress(InvalidArgument):
            measured.constants["theory"] = player.bandit.stability()
    for draw in range(cell["instances"]) if wave is None else wave:
        end = (draw + 1) * share
        for first in range(draw * share, end, step):
            one = simulate(player, draws[draw], runs=min(step, end - first), first_run=first, **options)
            if one.traces is not None:
                measured.moves.append(moves(player, one.traces, one.rounds))
            if one.states is not None:
                measured.certificates.append(player.run_certificates(one.states[:, places], cell["horizon"]))
            measured.simulations.append(dataclasses.replace(one, traces=None, states=None))
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
    if not measured.moves:
        regrets = np.concatenate([one.regrets for one in found])
        columns |= {"regret": regrets.mean(axis=0), "standard_error": standard_error(regrets)}
        columns |= zip(LEVELS, np.quantile(regrets, list(LEVELS.values()), axis=0), strict=True)
    else:
        columns |= _of_moves(Moves(*(np.concatenate(parts) for parts in zip(*measured.moves, strict=True))))
    pseudo = [one.pseudo_regrets for one in found if one.pseudo_regrets is not None]
    if len(pseudo) == len(found):
        columns["pseudo_regret"] = np.concatenate(pseudo).mean(axis=0)
    # A single run has no standard error: NaN becomes null.
    return pl.DataFrame({name: columns.get(name) for name in ROWS}, schema=ROWS).fill_nan(None)


def moves(player: CompositeLossWrapper, traces: list[Blocks], checkpoints: NDArray[np.int64]) -> Moves:
    """Return how far the updates of traced runs moved the player's base."""
    form = player.kernel()
    K = player.n_arms
    replay = kernel.compiled(replay_base, form.base)
    state = np.zeros(kernel.BANDITS[type(form.base)].size(K))
    before, after = np.zeros(K), np.zeros(K)
    found = Moves(np.zeros((len(traces), len(checkpoints))), np.zeros((len(traces), len(checkpoints))))
    for run, blocks in enumerate(traces):
        # A block ends before the next begins, the last one at the horizon; only blocks with a fed loss made an update.
        ends = np.append(blocks.starts[1:] - 1, checkpoints[-1])
        fed = ~np.isnan(blocks.fed_losses)
        moved = np.zeros(int(fed.sum()))
        replay(form.base, K, blocks.arms[fed], blocks.fed_losses[fed], state, before, after, moved)
        between = np.searchsorted(checkpoints, ends[fed])
        found.sums[run] = np.bincount(between, moved, len(checkpoints))
        found.counts[run] = np.bincount(between, minlength=len(checkpoints))
    return found


def replay_base(params: Any, n_arms: int, arms: Any, fed: Any, state: Any, before: Any, after: Any, moved: Any) -> None:
    """Feed the losses of one run to a base, and write to `moved` how far each update moves it."""
    kernel.bandit_start(params, n_arms, state)
    kernel.bandit_probabilities(params, n_arms, state, before)
    for n in range(len(arms)):
        kernel.bandit_update(params, n_arms, state, arms[n], fed[n])
        kernel.bandit_probabilities(params, n_arms, state, after)
        total = 0.0
        for i in range(n_arms):
            total += max(after[i] - before[i], 0.0)
            before[i] = after[i]
        moved[n] = total


def _of_moves(found: Moves) -> dict[str, list[float | None]]:
    """Average moves over the updates of all runs; standard error and quantiles are over the runs with an update."""
    columns: dict[str, list[float | None]] = {name: [] for name in ("value", "standard_error", *LEVELS)}
    for sums, counts in zip(found.sums.T, found.counts.T, strict=True):
        each = sums[counts > 0] / counts[counts > 0]
        summary: list[float | None] = [None] * len(columns)
        if len(each):
            mean, error = float(sums.sum() / counts.sum()), float(standard_error(each))
            summary = [mean, error, *np.quantile(each, list(LEVELS.values())).tolist()]
        for name, value in zip(columns, summary, strict=True):
            columns[name].append(value)
    return columns
