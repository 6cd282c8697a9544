"""From a cell to its rows: one for each checkpoint, the same on any machine and for any number of threads.

`measure` simulates, `summary` makes rows of what it found.

    regret          mean over runs, with its standard error and quantiles, against the best arm of that prefix
    uniform_regret  what uniform play has in expectation, exactly: the mean of the arms' sums against the best one's
    bound           Theorem 4 for this player at the horizon, never above T; null if it says nothing about it
    corollary_bound, tuned_bound, lower_bound     for the sizes of the losses, at the horizon
    value           the mean of the runs' certificates at the horizon, where the player has one (`certificates.py`)
    value, theory   measure "stability": the mean move of an update since the checkpoint before, and ξ. There,
                    standard_error and quantiles are those of the runs' mean moves, and regret is null

Rows are columns of plain Python values, so that they travel between processes.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aftereffect import theory
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.engines.plan import Outcome, Plan
from aftereffect.engines.simulation import checkpoint_rounds, choose, fits, mean_gaps, run_engine, standard_error
from aftereffect.losses.protocol import Losses
from aftereffect.players.wrapper.wrapper import CompositeLossWrapper
from aftereffect.studies.builders import Draws
from aftereffect.studies.cells import Cell, cell_id, player_words, runs_seed, split_name
from aftereffect.studies.certificates import certificates, certified
from aftereffect.studies.entrants import entrant
from aftereffect.studies.moves import Moves, moves, runs_at_once

Columns = dict[str, list[Any]]

WORDS = ("cell", "measure", "instance", "instance_params", "player", "player_params")
COUNTS = ("n_arms", "max_delay", "horizon", "seed", "runs", "instances")
LEVELS = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}
BOUNDS = ("bound", "corollary_bound", "tuned_bound", "lower_bound")
SCHEMA: dict[str, str] = {
    **dict.fromkeys(WORDS, "str"),
    **dict.fromkeys(COUNTS, "i64"),
    "engine": "str",
    "round": "i64",
    **dict.fromkeys(("regret", "standard_error", *LEVELS, "pseudo_regret", "updates", "uniform_regret"), "f64"),
    **dict.fromkeys((*BOUNDS, "value", "theory"), "f64"),
}
"""The columns of the rows, in order, with their kinds."""


class Played(NamedTuple):
    """A cell's outcomes put together, and its constants.

    pseudo is None where means are not known, moves where nobody asked, certificate where there is none.
    """

    engine: str
    rounds: NDArray[np.int64]
    regrets: FloatArray
    pseudo: FloatArray | None
    updates: NDArray[np.int64]
    uniform: FloatArray
    moves: Moves | None
    certificate: float | None
    constants: dict[str, float | None]


def measure(cell: Cell, draws: Draws, threads: int) -> Played:
    """Simulate a cell on the losses of its group."""
    losses = draws[0]
    player = entrant(cell, losses)
    played = play(cell, player, draws, threads)
    constants = bounds(cell, player, losses)
    constants["updates"] = float(played.updates.mean())
    if played.certificate is not None:
        constants["value"] = played.certificate
    constants["theory"] = player.bandit.stability() if played.moves else None
    return played._replace(constants=constants)


def summary(cell: Cell, played: Played) -> Columns:
    """Return the rows of a cell that was simulated, column by column."""
    points = len(played.rounds)
    columns: Columns = {name: [value] * points for name, value in heading(cell, played.engine).items()}
    columns["round"] = played.rounds.tolist()
    columns |= _of_moves(played.moves) if played.moves else _of_regrets(played.regrets)
    columns["pseudo_regret"] = [None] * points if played.pseudo is None else played.pseudo.mean(axis=0).tolist()
    columns["uniform_regret"] = played.uniform.tolist()
    columns |= {name: [value] * points for name, value in played.constants.items()}
    return {name: [_plain(value) for value in columns.get(name, [None] * points)] for name in SCHEMA}


def heading(cell: Cell, engine: str) -> dict[str, Any]:
    """Return what says which cell a row is of."""
    named = (*split_name(cell["instance"]), *player_words(cell))
    words = dict(zip(WORDS, (cell_id(cell), cell["measure"], *named), strict=True))
    return words | {name: cell[name] for name in COUNTS} | {"engine": engine}


def play(cell: Cell, player: Any, draws: Draws, threads: int) -> Played:
    """Simulate the runs of a cell, draw by draw of its losses: with one draw, what `simulate` does."""
    share = cell["runs"] // cell["instances"]
    points = checkpoint_rounds(cell["checkpoints"], cell["horizon"])
    outcomes: list[Outcome] = []
    walked: list[Moves] = []
    vouched: list[FloatArray] = []
    uniform = np.zeros(len(points))
    means = True
    engine = ""
    for draw in range(cell["instances"]):
        losses = draws[draw]
        fits(player, losses)
        means = means and losses.means is not None
        gaps = np.zeros(losses.n_arms) if losses.means is None else mean_gaps(losses)
        traced = cell["measure"] == "stability"
        engine = choose(player, losses, "blocks" if traced else "auto")
        step = min(share, runs_at_once(losses.horizon, player.max_delay)) if traced else share
        first = draw * share
        for start in range(first, first + share, step):
            runs = min(step, first + share - start)
            known = not traced and certified(player, losses, engine)
            seed = runs_seed(cell)
            plan = Plan(player, losses, seed, start, runs, points, gaps, traced, threads, _go_on, known)
            outcome = run_engine(engine, plan)
            if outcome.states is not None:
                vouched.append(certificates(player, outcome.states, losses.horizon))
            if outcome.traces is not None:
                walked.append(moves(player, outcome.traces, points))
            outcomes.append(outcome._replace(losses=_regrets(losses, outcome), traces=None, states=None))
        uniform += _uniform_regret(losses, outcomes[-1].arm_sums)
    return Played(
        engine,
        points,
        np.concatenate([outcome.losses for outcome in outcomes]),
        np.concatenate([outcome.pseudo for outcome in outcomes]) if means else None,
        np.concatenate([outcome.updates for outcome in outcomes]),
        uniform / cell["instances"],
        Moves(*(np.concatenate(parts) for parts in zip(*walked, strict=True))) if walked else None,
        float(np.concatenate(vouched).mean()) if vouched else None,
        {},
    )


def bounds(cell: Cell, player: Any, losses: Losses) -> dict[str, float | None]:
    """Return the bounds of theory at the horizon, in units of the losses' range; null where they do not apply."""
    sizes = (losses.n_arms, losses.max_delay, losses.horizon)
    if losses.effects.lo < 0.0:
        return dict.fromkeys(BOUNDS)
    theorem = None
    if isinstance(player, CompositeLossWrapper) and player.max_delay >= losses.max_delay:
        try:
            theorem = player.regret_bound(losses.horizon)
        except InvalidArgument:
            theorem = None
    functions = (theory.corollary_bound, theory.tuned_bound, theory.lower_bound)
    return {"bound": theorem} | {f.__name__: losses.effects.hi * f(*sizes) for f in functions}


def _go_on(rounds: int) -> None:
    """Let the engine go on."""


def _regrets(losses: Losses, outcome: Outcome) -> FloatArray:
    best = outcome.arm_sums.max(axis=1) if losses.effects.maximize else outcome.arm_sums.min(axis=1)
    regrets: FloatArray = best - outcome.losses if losses.effects.maximize else outcome.losses - best
    return regrets


def _uniform_regret(losses: Losses, sums: FloatArray) -> FloatArray:
    mean = sums.mean(axis=1)
    regret: FloatArray = sums.max(axis=1) - mean if losses.effects.maximize else mean - sums.min(axis=1)
    return regret


def _of_regrets(regrets: FloatArray) -> Columns:
    quantiles = np.quantile(regrets, list(LEVELS.values()), axis=0)
    found = {"regret": regrets.mean(axis=0).tolist(), "standard_error": standard_error(regrets).tolist()}
    return found | {name: row.tolist() for name, row in zip(LEVELS, quantiles, strict=True)}


def _of_moves(found: Moves) -> Columns:
    """Average moves over the updates of all runs; the spread is that of the runs which updated at all."""
    columns: Columns = {name: [] for name in ("value", "standard_error", *LEVELS)}
    for sums, counts in zip(found.sums.T, found.counts.T, strict=True):
        each = sums[counts > 0] / counts[counts > 0]
        columns["value"].append(float(sums.sum() / counts.sum()) if len(each) else None)
        columns["standard_error"].append(float(standard_error(each)) if len(each) else None)
        quantiles = np.quantile(each, list(LEVELS.values())).tolist() if len(each) else [None] * len(LEVELS)
        for name, value in zip(LEVELS, quantiles, strict=True):
            columns[name].append(value)
    return columns


def _plain(value: Any) -> Any:
    """Turn not-a-number (the standard error of a single run) into null."""
    return None if isinstance(value, float) and value != value else value
