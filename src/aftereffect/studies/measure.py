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
from aftereffect.bandits.adaptive_tsallis import COST, MOVED, PENALTY, AdaptiveTsallis
from aftereffect.core import kernel
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.saved import canonical
from aftereffect.engines.simulation import Simulation, choose, simulate, standard_error
from aftereffect.engines.workload import Blocks
from aftereffect.players.wrapper.coin_clean import CoinCleanWrapper
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

    uniform: the expected regret of uniform play at the checkpoints, averaged over draws. moves: for the measure
    "stability". constants: the columns that are equal in all rows.
    """

    simulations: list[Simulation]
    uniform: FloatArray
    moves: Moves | None
    constants: dict[str, float | None]


def measure(cell: Cell, draws: Draws, threads: int | None, engine: str = "auto") -> Measured:
    """Simulate a cell on the losses of its group. engine: "cuda" applies to players that the block engine can play."""
    player = build_player(cell, draws[0])
    traced = cell["measure"] == "stability"
    # True if the player's certificate holds on these losses and can be computed from its base's last state.
    certified = (
        not traced
        and isinstance(player, CoinCleanWrapper)
        and isinstance(player.bandit, AdaptiveTsallis)
        and player.update_probability is not None
        and player.max_delay >= draws[0].max_delay
    )
    share = cell["runs"] // cell["instances"]
    at_once = TRACE_BYTES // (24 * (cell["horizon"] // (2 * player.max_delay + 1) + 1)) if traced else share
    step = max(1, min(share, at_once))
    options: dict[str, Any] = {"seed": cell_seed(cell, "runs"), "checkpoints": cell["checkpoints"], "threads": threads}
    if traced or (engine == "cuda" and choose(player, draws[0], "auto")[0] != "blocks"):
        engine = "blocks" if traced else "auto"
    options |= {"engine": engine, "trace": traced, "states": certified, "progress": False}
    found: list[Simulation] = []
    moved: list[Moves] = []
    uniform = []
    for draw in range(cell["instances"]):
        end = (draw + 1) * share
        for first in range(draw * share, end, step):
            one = simulate(player, draws[draw], min(step, end - first), first_run=first, **options)
            if one.traces is not None:
                moved.append(moves(player, one.traces, one.rounds))
            found.append(dataclasses.replace(one, traces=None))
        uniform.append(found[-1].uniform_regrets[0])
    losses, constants = draws[0], dict[str, float | None]()
    # The theoretical bounds at the horizon, in units of effects; none for effects below 0.
    if losses.effects.lo >= 0.0:
        if isinstance(player, BlockWrapper) and player.max_delay >= losses.max_delay:
            with suppress(InvalidArgument):
                constants["bound"] = player.regret_bound(losses.horizon)
        hi, sizes = losses.effects.hi, (losses.n_arms, losses.max_delay, losses.horizon)
        constants["corollary_bound"] = hi * theory.corollary_bound(*sizes)
        constants["tuned_bound"] = hi * theory.tuning(*sizes).bound
        constants["lower_bound"] = hi * theory.lower_bound(*sizes)
    constants["updates"] = float(np.concatenate([one.updates for one in found]).mean())
    states = [one.states for one in found if one.states is not None]
    if states:
        constants["value"] = float(certificates(player, np.concatenate(states), cell["horizon"]).mean())
    constants["theory"] = player.bandit.stability() if traced else None
    together = Moves(*(np.concatenate(parts) for parts in zip(*moved, strict=True))) if moved else None
    return Measured(found, sum(uniform[1:], uniform[0]) / cell["instances"], together, constants)


def rows(cell: Cell, measured: Measured) -> pl.DataFrame:
    """Return the rows of a simulated cell."""
    found, first = measured.simulations, measured.simulations[0]
    columns: dict[str, Any] = {name: cell[name] for name in ("measure", *COUNTS)} | measured.constants
    columns |= {"cell": cell_id(cell), "engine": first.engine, "round": first.rounds}
    columns["uniform_regret"] = measured.uniform
    # The d given to the player is one of its settings if it differs from that of the losses.
    told = {"max_delay": cell["player_max_delay"]} if "player_max_delay" in cell else {}
    for kind, settings in (("instance", dict(cell["instance"])), ("player", cell["player"] | told)):
        columns[kind] = settings.pop("name")
        columns[f"{kind}_params"] = canonical(settings)
    if measured.moves is None:
        regrets = np.concatenate([one.regrets for one in found])
        columns |= {"regret": regrets.mean(axis=0), "standard_error": standard_error(regrets)}
        columns |= zip(LEVELS, np.quantile(regrets, list(LEVELS.values()), axis=0), strict=True)
    else:
        columns |= _of_moves(measured.moves)
    pseudo = [one.pseudo_regrets for one in found if one.pseudo_regrets is not None]
    if len(pseudo) == len(found):
        columns["pseudo_regret"] = np.concatenate(pseudo).mean(axis=0)
    # A single run has no standard error: NaN becomes null.
    return pl.DataFrame({name: columns.get(name) for name in ROWS}, schema=ROWS).fill_nan(None)


def certificates(player: Any, states: FloatArray, horizon: int) -> FloatArray:
    """Return the certificate of each run after T = `horizon` rounds, in units of effects (docs/theory/adaptive.md).

    states: the last states of the bases, (runs, size). They contain all terms but one, that of the stretch open at T;
    as this depends on the coins only, its exact mean is used. The mean of the certificates bounds the mean regret.
    """
    K, d, beta, C = player.n_arms, player.max_delay, player.update_probability, player.scale
    own = states[:, 4 * K :]
    base = own[:, COST] + own[:, PENALTY]
    base = base + theory.entropy_range(K) * player.bandit.first_rate + open_stretch(d, horizon, beta) / C
    values = min(d, horizon) + d * own[:, MOVED] + C / (1.0 - beta) ** d * base
    return np.asarray(values * (player.effects.hi - player.effects.lo))


def open_stretch(max_delay: int, horizon: int, update_probability: float) -> float:
    """Return the mean of (m + d)·1{m >= 1}, m = T − d − the latest coin: the rounds that no update has used at T.

    The latest coin is a rounds old with probability β(1−β)^a, a < T; with probability (1−β)^T there is none.
    Summed over a > d that is r^{d+1}(d + 1 + r/β) − r^{T+1}/β, r = 1 − β.

    >>> open_stretch(max_delay=1, horizon=3, update_probability=0.5)      # 2 and 3, each with probability 1/8
    0.625
    """
    d, T, r = max_delay, horizon, 1.0 - update_probability
    if d >= T or r == 0.0:
        return 0.0
    return float(r ** (d + 1) * (d + 1 + r / update_probability) - r ** (T + 1) / update_probability)


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
