"""`simulate`: many runs of one player on one loss sequence, by the fastest engine that is exact for the pair.

It returns a `Simulation`: regret per run, curves, plots and tables; `compare` takes two of them.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aftereffect.core import checks, kernel
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import AftereffectWarning, CoinsExhausted, InvalidArgument
from aftereffect.core.text import Facts, amount, counted, plain_axes, to_pandas
from aftereffect.engines.blocks import simulate_blocks
from aftereffect.engines.loop import simulate_loop
from aftereffect.engines.rounds import simulate_rounds
from aftereffect.engines.workload import Blocks, Outcome, Workload, cores, progress_bar
from aftereffect.losses.protocol import Losses
from aftereffect.players.base import PAST, BasePlayer
from aftereffect.players.registry import label_of
from aftereffect.players.wrapper.coin_clean import CoinCleanWrapper
from aftereffect.players.wrapper.panel import Panel

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from matplotlib.axes import Axes

# Half the width of a 95% normal interval, in standard errors.
Z95 = 1.959963984540054


class Curve(NamedTuple):
    """Mean regret after each number of `rounds`, with a 95% normal interval for the mean."""

    rounds: NDArray[np.int64]
    mean: FloatArray
    low: FloatArray
    high: FloatArray


class Difference(NamedTuple):
    """Mean of paired differences in regret (first minus second), its standard error, and a 95% normal interval."""

    mean: float
    standard_error: float
    low: float
    high: float


def standard_error(values: FloatArray, draws: int = 1) -> Any:
    """Return the standard error of the mean over runs, the first axis; NaN for a single run.

    draws: how many draws of the losses the runs are divided among. Runs on the same draw are not independent, so with
    several draws it is the standard error of the mean of the draws' means.
    """
    if draws > 1:
        values = values.reshape(draws, -1, *values.shape[1:]).mean(axis=1)
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)[()]
    return values.std(axis=0, ddof=1) / np.sqrt(len(values))


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Facts):
    """Many runs of one player on one loss sequence (or on several draws of one).

    engine: the engine that ran. label: the player's name in tables and plots. rounds: the checkpoints. regrets:
    (runs, checkpoints), each against the best arm up to that checkpoint. pseudo_regrets: the same for Σ_t (μ(I_t) −
    μ*), None if the means are not known. updates: (runs,). arm_sums: (instances, K), the sums of totals of always
    playing each arm. uniform_regrets: (instances, checkpoints), the expected regret of uniform play. traces: the blocks
    of every run, if requested. certificates: (runs, checkpoints), for players that have them (`default_player`) in the
    block engine, and at the last checkpoint on a GPU (NaN before); their mean over runs estimates a bound on the mean
    regret.

    >>> import aftereffect as ae
    >>> losses = ae.spreads.at_once(ae.tables.iid(500, means=[0.2, 0.7], seed=1))
    >>> ae.simulate(ae.Naive(ae.UCB1(2)), losses, runs=2)
    Simulation(player: naive UCB1, regret: 18 (deterministic), runs: 2 runs of 500 rounds, seed 0, engine: rounds)
    """

    engine: str
    player: str
    label: str
    n_arms: int
    max_delay: int
    rounds: NDArray[np.int64]
    regrets: FloatArray
    pseudo_regrets: FloatArray | None
    updates: NDArray[np.int64]
    arm_sums: FloatArray
    uniform_regrets: FloatArray
    seed: int
    traces: list[Blocks] | None = None
    certificates: FloatArray | None = None

    @property
    def runs(self) -> int:
        """The number of runs."""
        return len(self.regrets)

    @property
    def horizon(self) -> int:
        """T, the number of rounds of a run."""
        return int(self.rounds[-1])

    @property
    def regret(self) -> FloatArray:
        """The regret of every run after T rounds; the mean over runs estimates R_T of Section 2."""
        return self.regrets[:, -1]

    @property
    def pseudo_regret(self) -> FloatArray:
        """Σ_t (μ(I_t) − μ*) of every run; raises an error if the means are not known."""
        if self.pseudo_regrets is None:
            raise InvalidArgument("losses must have known means for a pseudo-regret, but means is None")
        return self.pseudo_regrets[:, -1]

    @property
    def mean_regret(self) -> float:
        """The mean regret over runs."""
        return float(self.regret.mean())

    @property
    def mean_certificate(self) -> float:
        """The mean certificate after T rounds; raises an error if the simulation has none."""
        if self.certificates is None:
            raise InvalidArgument(
                "player must be a CoinCleanWrapper around an AdaptiveTsallis, such as the default player, in engine "
                f"'blocks' or 'cuda' for certificates, but got {self.player} in {self.engine!r}"
            )
        return float(self.certificates[:, -1].mean())

    @property
    def standard_error(self) -> float:
        """The standard error of `mean_regret`: over runs or, if the losses were redrawn (`instances`), over draws."""
        return float(standard_error(self.regret, len(self.arm_sums)))

    @property
    def deterministic(self) -> bool:
        """Whether all runs have the same regret, up to rounding: there is no randomness for an interval to cover."""
        return self.runs > 1 and bool(np.ptp(self.regret) <= 1e-12 * max(1.0, np.abs(self.arm_sums).max()))

    @property
    def curve(self) -> Curve:
        """Mean regret at the checkpoints, with a 95% normal interval.

        It covers the player's randomness only, unless the losses were redrawn (`instances`).
        """
        mean, half = self.regrets.mean(axis=0), Z95 * standard_error(self.regrets, len(self.arm_sums))
        return Curve(self.rounds, mean, mean - half, mean + half)

    def quantiles(self, levels: ArrayLike) -> FloatArray:
        """Return quantiles of the regret over runs at the checkpoints, shape (levels, checkpoints)."""
        wanted = checks.array("levels", levels, shape=("any",), unit=True)
        return np.asarray(np.quantile(self.regrets, wanted, axis=0))

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per run and checkpoint, as a pandas frame (extra `frames`)."""
        return to_pandas(self._columns())

    def to_polars(self) -> "pl.DataFrame":
        """Return one row per run and checkpoint, as a polars frame (extra `studies`)."""
        found: pl.DataFrame = checks.optional("polars", "to_polars", "studies").DataFrame(self._columns())
        return found

    def _columns(self) -> dict[str, Any]:
        runs, points = self.regrets.shape
        columns: dict[str, Any] = {
            "run": np.repeat(np.arange(runs), points),
            "round": np.tile(self.rounds, runs),
            "regret": self.regrets.ravel(),
        }
        if self.pseudo_regrets is not None:
            columns["pseudo_regret"] = self.pseudo_regrets.ravel()
        if self.certificates is not None:
            columns["certificate"] = self.certificates.ravel()
        return columns

    def plot(self, ax: "Axes | None" = None, label: str | None = None, **style: Any) -> "Axes":
        """Plot the mean regret curve with its 95% band and return the axes: `ax`, or those of a new pyplot figure."""
        ax = plain_axes(ax)
        rounds, mean, low, high = self.curve
        (line,) = ax.plot(rounds, mean, label=label or self.label, **style)
        ax.fill_between(rounds, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
        ax.set(xlabel="round", ylabel="regret")
        ax.legend(frameon=False)
        return ax

    def _facts(self) -> dict[str, str]:
        error = " (deterministic)" if self.deterministic else f" ± {amount(self.standard_error)}"
        runs = f"{counted(self.runs, 'run')} of {counted(self.horizon, 'round')}, seed {self.seed}"
        control = float(self.uniform_regrets[:, -1].mean())
        poor = f", no better than uniform play ({amount(control)})" if self.mean_regret >= control else ""
        regret = f"{amount(self.mean_regret)}{error if self.runs > 1 else ''}{poor}"
        return {"player": self.label, "regret": regret, "runs": runs, "engine": self.engine}


def plot(simulations: Simulation | Iterable[Simulation] | Mapping[str, Simulation], ax: "Axes | None" = None) -> "Axes":
    """Plot the mean regret curves of simulations and return the axes: `ax`, or those of a new pyplot figure.

    simulations: one, or a list, whose players get their names in tables, or a dict with your own names.

    >>> import aftereffect as ae
    >>> losses = ae.spreads.at_once(ae.tables.iid(500, means=[0.2, 0.7], seed=1))
    >>> from matplotlib.figure import Figure
    >>> axes = plot({"naive": ae.simulate(ae.Naive(ae.UCB1(2)), losses, runs=2)}, Figure().subplots())
    >>> [line.get_label() for line in axes.get_lines()]
    ['naive']
    """
    simulations = [simulations] if isinstance(simulations, Simulation) else simulations
    named = simulations.items() if isinstance(simulations, Mapping) else ((sim.label, sim) for sim in simulations)
    for name, simulation in named:
        ax = simulation.plot(ax, name)
    if ax is None:
        raise InvalidArgument("simulations must hold at least one simulation, but there is none")
    return ax


def simulate(
    player: Any,
    losses: Losses,
    *,
    runs: int = 100,
    seed: int = 0,
    engine: str = "auto",
    checkpoints: int | str | ArrayLike = 64,
    instances: int = 1,
    first_run: int = 0,
    threads: int | None = None,
    trace: bool = False,
    progress: bool | None = None,
) -> Simulation:
    """Simulate `runs` independent runs of a player and return their regrets.

    player: an unplayed template; it is copied, never changed. It needs `fresh(seed, run)`. Or a `Panel`, whose units
        play draws of the losses of their own; regrets are then means over the units.
    losses: one loss sequence for all runs, as R_T averages over the player's randomness only. Losses of your own are
        checked first (`Losses.check`).
    seed: run r uses the streams SeedSequence(seed, spawn_key=(r, stream)), so run 0 equals the run of a player that
        was created with this seed.
    engine: "blocks" (Algorithm 1, one step per block), "rounds" (any player in kernel form),
        "loop" (any player), or "auto": the first of these that is exact for the player and the losses; "cuda": as
        "blocks", on an NVIDIA GPU, only on request.
    checkpoints: the rounds at which curves are recorded: a number of evenly spaced rounds; "linear" or "log"; or the
        rounds themselves.
    instances: the number of independent draws of stochastic losses; the runs are divided equally among them. Standard
        errors are then over draws, and cover both kinds of randomness.
    first_run: the number of the first run, so that several calls with one seed can divide the runs among them.
    threads: the number of threads; by default one per core. Results do not depend on it.
    trace: keep every run's blocks (arms, fed losses).
    progress: show progress; by default only for long simulations at a terminal or in a notebook.

    >>> import aftereffect as ae
    >>> losses = ae.spreads.random_split(ae.tables.iid(2000, means=[0.3, 0.6], seed=1), max_delay=2, seed=2)
    >>> player = ae.CompositeLossWrapper.tuned(n_arms=2, max_delay=2, horizon=2000)
    >>> sim = ae.simulate(player, losses, runs=50, seed=3)
    >>> sim.engine, len(sim.regret)
    ('blocks', 50)
    >>> sim.mean_regret + 3 * sim.standard_error < player.regret_bound(2000)
    True
    """
    runs = checks.integer("runs", runs, low=1)
    seed = checks.integer("seed", seed, low=0)
    instances = checks.integer("instances", instances, low=1)
    first_run = checks.integer("first_run", first_run, low=0)
    checks.choice("engine", engine, ENGINES)
    if not isinstance(losses, Losses):
        raise InvalidArgument(
            "losses must be a Losses, made by CompositeLosses or one of aftereffect.spreads, "
            f"but got {checks.shown(losses)}"
        )
    if runs % instances:
        raise InvalidArgument(f"runs must be a multiple of instances, but got {runs} runs and {instances} instances")
    threads = checks.integer("threads", cores() if threads is None else threads, low=1)
    chosen, form = choose(player, losses, engine)
    watch = player.certificate_places() if chosen in ("blocks", "cuda") and isinstance(player, CoinCleanWrapper) else []
    if trace and isinstance(player, Panel):
        raise InvalidArgument(f"trace must be False for a panel, whose units have different arms, but got {trace!r}")
    points = checkpoint_rounds(checkpoints, losses.horizon)
    # With this spawn key the seeds are independent of the players' streams.
    seeds = np.random.SeedSequence(seed, spawn_key=(0, 2)).generate_state(instances, np.uint64)
    known = True
    outcomes = []
    with progress_bar(runs * losses.horizon, progress) as advanced:
        for k in range(instances):
            # One instance at a time, because a table and its prefix sums may fill the memory.
            world = losses if instances == 1 else losses.redraw(int(seeds[k]))
            if not world.checked:
                world.check()
            known = known and world.means is not None
            share = runs // instances
            gaps = np.zeros(losses.n_arms)
            if world.means is not None:
                gaps = np.abs(world.means - (world.means.max() if losses.effects.maximize else world.means.min()))
            first = first_run + k * share
            load = Workload(player, world, seed, first, share, points, gaps, trace, threads, advanced, watch)
            outcomes.append(RUN[chosen](load, form))
    # Those of one instance are not copied: they may be large.
    regrets, pseudo = [_regret(losses, outcome, outcome.losses) for outcome in outcomes], [o.pseudo for o in outcomes]
    return Simulation(
        engine=chosen,
        player=repr(player),
        label=label_of(player),
        n_arms=losses.n_arms,
        max_delay=losses.max_delay,
        rounds=points,
        regrets=regrets[0] if instances == 1 else np.concatenate(regrets),
        pseudo_regrets=(pseudo[0] if instances == 1 else np.concatenate(pseudo)) if known else None,
        updates=np.concatenate([outcome.updates for outcome in outcomes]),
        arm_sums=np.array([outcome.arm_sums[-1] for outcome in outcomes]),
        uniform_regrets=np.array([_regret(losses, outcome, outcome.arm_sums.mean(axis=1)) for outcome in outcomes]),
        seed=seed,
        traces=[blocks for outcome in outcomes for blocks in outcome.traces or []] if trace else None,
        certificates=np.concatenate([player.run_certificates(o.watched, points) for o in outcomes]) if watch else None,
    )


def _regret(losses: Losses, outcome: Outcome, sums: FloatArray) -> FloatArray:
    """Turn these sums of totals at the checkpoints into regrets, in place, against the best arm at each checkpoint."""
    if losses.effects.maximize:
        np.subtract(outcome.arm_sums.max(axis=1), sums, out=sums)
    else:
        sums -= outcome.arm_sums.min(axis=1)
    return sums


def choose(player: Any, losses: Losses, engine: str) -> tuple[str, Any]:
    """Return the engine for this player and these losses, and the player in kernel form, if it has one.

    An error is raised if `engine` or the player does not fit, and a warning given for each assumption of the player
    about losses that does not hold.
    """
    _check_player(player, losses)
    form: Any = player.kernel() if hasattr(player, "kernel") else None
    exact = (
        type(form) in kernel.BLOCKS
        and losses.max_delay <= form.max_delay
        and form.limits.span.lo <= losses.effects.lo
        and losses.effects.hi <= form.limits.span.hi
    )
    if losses.reacts and engine not in ("auto", "loop"):
        raise InvalidArgument(f"engine must be 'loop' for losses that react to what is played, but got {engine!r}")
    if engine == "auto":
        engine = "loop" if losses.reacts or form is None else "blocks" if exact else "rounds"
    if engine in ("blocks", "cuda") and not exact:
        raise InvalidArgument(
            f"engine must not be {engine!r} unless the player is a CompositeLossWrapper or, without an adviser, a "
            "CoinCleanWrapper, with a base in kernel form, and its max_delay and range cover those of the losses, "
            f"but got {player!r} on {losses!r}"
        )
    if engine == "rounds" and form is None:
        raise InvalidArgument(f"engine must not be 'rounds' unless the player has a kernel form, but got {player!r}")
    for text in _misfits(player, losses):
        warnings.warn(f"player {text}", AftereffectWarning, stacklevel=3)
    return engine, form


def _check_player(player: Any, losses: Losses) -> None:
    """Raise an error unless a player, which may be of the user's own class, can play these losses."""
    for name in ("ask", "tell", "fresh"):
        if isinstance(player, type) or not callable(getattr(player, name, None)):
            raise InvalidArgument(
                f"player must be a player with a method {name}, such as a CompositeLossWrapper around a bandit, "
                f"but got {checks.shown(player)}"
            )
    n_arms = getattr(player, "n_arms", None)
    if n_arms != losses.n_arms:
        raise InvalidArgument(f"player must have the n_arms of losses, {losses.n_arms}, but got {n_arms}")
    direction = getattr(player, "direction", "minimize")
    if direction != losses.direction:
        missing = "" if hasattr(player, "direction") else ", the default, as the player has no attribute direction"
        raise InvalidArgument(
            f"player must have the direction of losses, {losses.direction!r}, but got {direction!r}{missing}"
        )
    alone = player.player if isinstance(player, Panel) else player
    if isinstance(alone, BasePlayer):
        alone.check_unplayed()
    given = getattr(getattr(player, "coins", None), "sequence", None)
    if given is not None and len(given) < losses.horizon:
        raise CoinsExhausted(f"coins must have a value for every round, but ended before round {len(given) + 1}")


def _misfits(player: Any, losses: Losses) -> list[str]:
    """Return the assumptions of a player about losses that do not hold, in words."""
    told, span = getattr(player, "max_delay", None), getattr(player, "effects", losses.effects)
    tuned, (lo, hi, _) = getattr(player, "tuned_horizon", None), losses.effects
    found = []
    if told is not None and told < losses.max_delay:
        found.append(f"has max_delay={told}, but effects of these losses arrive up to {losses.max_delay} rounds late")
    if span.lo > lo or span.hi < hi:
        found.append(f"expects effects in [{span.lo:g}, {span.hi:g}], but these losses allow [{lo:g}, {hi:g}]")
    if tuned is not None and losses.horizon > PAST * tuned:
        found.append(f"is tuned for {tuned} rounds, but these losses have {losses.horizon}")
    return found


def _run_cuda(load: Workload, form: Any) -> Outcome:
    from aftereffect.engines.cuda import simulate_cuda

    return simulate_cuda(load, form)


RUN: Mapping[str, Callable[[Workload, Any], Outcome]] = {
    "loop": simulate_loop, "rounds": simulate_rounds, "blocks": simulate_blocks, "cuda": _run_cuda
}  # fmt: skip
"""The engines: functions of a workload and of the player in kernel form, None if it has none."""
ENGINES = ("auto", *RUN)


def checkpoint_rounds(checkpoints: int | str | ArrayLike, horizon: int) -> NDArray[np.int64]:
    """Return the checkpoints as ascending rounds, the last of which is the horizon."""
    if isinstance(checkpoints, str):
        checks.choice("checkpoints", checkpoints, ("linear", "log"))
        marks = np.geomspace(1, horizon, 64) if checkpoints == "log" else np.linspace(0, horizon, 65)[1:]
    elif not isinstance(checkpoints, Sequence) and np.ndim(checkpoints) == 0:
        count = checks.integer("checkpoints", checkpoints, low=1)
        marks = np.linspace(0, horizon, min(count, horizon) + 1)[1:]
    else:
        marks = checks.array("checkpoints", checkpoints, shape=("any",))
        if marks.size and (marks.min() < 1 or marks.max() > horizon or (marks != np.floor(marks)).any()):
            raise InvalidArgument(
                f"checkpoints must be whole rounds in 1..{horizon}, but got {checks.shown(checkpoints)}"
            )
    rounds = np.unique(np.append(np.ceil(marks - 1e-9), horizon)).astype(np.int64)
    return np.clip(rounds, 1, horizon)


def compare(first: Simulation, second: Simulation) -> Difference:
    """Compare two simulations run by run, on common random numbers.

    (The command `aftereffect compare` simulates every player on one problem.)

    Run r of both simulations uses the same random streams, so their regrets are positively correlated, and the
    difference is estimated more precisely than with independent runs.

    >>> import aftereffect as ae
    >>> losses = ae.spreads.at_once(ae.tables.iid(500, means=[0.2, 0.7], seed=1))
    >>> players = ae.CompositeLossWrapper.tuned(2, max_delay=0, horizon=500), ae.Naive(ae.Exp3(2, learning_rate=0.1))
    >>> first, second = (ae.simulate(player, losses, runs=20, seed=3) for player in players)
    >>> found = compare(first, second)
    >>> bool(found.low > 0.0)                     # the second has significantly less regret
    True
    """
    for argument, value in (("first", first), ("second", second)):
        if not isinstance(value, Simulation):
            raise InvalidArgument(f"{argument} must be a Simulation, but got {checks.shown(value)}")
    for name in ("seed", "runs", "horizon", "n_arms", "max_delay"):
        a, b = getattr(first, name), getattr(second, name)
        if a != b:
            raise InvalidArgument(f"second must have the {name} of first, {a}, but got {b}")
    # Engines add in different orders, so the sums of the same losses agree only up to rounding.
    if first.arm_sums.shape != second.arm_sums.shape or not np.allclose(first.arm_sums, second.arm_sums, rtol=1e-9):
        raise InvalidArgument("second must have been run on the losses of first, but the sums of its arms differ")
    differences = first.regret - second.regret
    mean, error = float(differences.mean()), float(standard_error(differences, len(first.arm_sums)))
    return Difference(mean, error, mean - Z95 * error, mean + Z95 * error)
