"""`choose_delay`: which d to tell a player if effects fade, with the bound for every d.

A longer d makes blocks longer, a shorter one leaves more of an effect to arrive later, where it may be credited to
another arm. docs/theory/soft_windows.md has the bounds.
"""

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aftereffect import theory
from aftereffect.carryover.effects_by_lag import Curves
from aftereffect.carryover.mix_models import AdstockCurves
from aftereffect.core import checks
from aftereffect.core.checks import FloatArray
from aftereffect.core.effects import extreme_parts
from aftereffect.core.errors import AftereffectWarning, InvalidArgument
from aftereffect.core.random import TABLE, sequence
from aftereffect.core.text import Facts, amount, plain_axes, to_pandas
from aftereffect.players import advisers
from aftereffect.players.default import default_player
from aftereffect.players.limits import Range
from aftereffect.players.wrapper.certificate import informative_from
from aftereffect.theory.tails import checked_weights

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from aftereffect.losses.protocol import Losses
    from aftereffect.players.wrapper.coin_clean import CoinCleanWrapper

EVERY, MOST = 32, 64
"""Each d below EVERY is in the table; longer ones are on a grid, of at most MOST values in all."""
LARGEST = 2 * 10**7
"""The most components of losses that are simulated from measured curves."""
NEGLIGIBLE = 1e-4
"""With a half-life, the share of an effect that is left after the longest d of the table."""


class Placeholder(advisers.Adviser):
    """Has the bounds of another adviser, without its model."""

    def __init__(self, adviser: advisers.Adviser) -> None:
        self.plays_opening = adviser.plays_opening


@dataclass(frozen=True, eq=False, repr=False)
class DelayChoice(Facts):
    """A choice of d, with one entry in each array for every d that was considered.

    max_delay: the d with the least bound at the horizon. If no bound there is below half of the largest regret, or
    without a horizon: the d whose bound falls below half first. assume: "anything" or "alike". delays: the values of d.
    inside: the share of an effect that arrives up to d rounds after the action, for the arm with the smallest. bounds:
    on the regret at the horizon, in units of effects, at most T times their range; NaN without a horizon. since: the
    first round at which the bound is below half of the largest possible regret; infinite if there is none. regrets: the
    simulated regret, None unless `runs` are given.

    With measured curves, `bounds` are as if the estimate were right and effects ended at `Curves.ends`, and the largest
    possible regret is that of the arm that seems worst. left: how much one arm's effect may still differ from another's
    after d, at the worst end of the bands. worst: the bound if that is so. inside: 1 less the estimated difference that
    is left after d, relative to the greatest.

    >>> choice = choose_delay(n_arms=3, weights=[0.75, 0.25], horizon=20_000)
    >>> choice.max_delay, choice.delays.tolist(), choice.inside.tolist()
    (1, [0, 1], [0.75, 1.0])
    >>> float(choice.bounds[choice.place]) < 4_000.0
    True
    """

    max_delay: int
    assume: str
    n_arms: int
    horizon: int | None
    delays: NDArray[np.int64]
    inside: FloatArray
    bounds: FloatArray
    since: FloatArray
    regrets: FloatArray | None = None
    left: FloatArray | None = None
    worst: FloatArray | None = None

    @property
    def place(self) -> int:
        """The index of the chosen d in the arrays."""
        return int(np.flatnonzero(self.delays == self.max_delay)[0])

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per d, as a pandas frame (extra `frames`)."""
        columns: dict[str, Any] = {"d": self.delays, "inside": self.inside, "bound": self.bounds, "since": self.since}
        columns |= {"left": self.left, "worst": self.worst, "regret": self.regrets}
        return to_pandas({name: values for name, values in columns.items() if values is not None})

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Plot the bound, and the simulated regret if there is one, by d; return the axes: `ax`, or new ones."""
        ax = plain_axes(ax)
        if self.horizon is None:
            ax.plot(self.delays, self.since, "o-", label="bound below half of the largest regret from this round on")
        else:
            ax.plot(self.delays, self.bounds, "o-", ms=4, label="bound")
            if self.worst is not None:
                ax.plot(self.delays, self.worst, "^:", ms=4, label="bound at the worst end of the bands")
        if self.regrets is not None:
            ax.plot(self.delays, self.regrets, "s--", ms=4, label="simulated regret")
        ax.axvline(self.max_delay, color="0.75", lw=3, zorder=1, label=f"chosen: d = {self.max_delay}")
        ax.locator_params(axis="x", integer=True)
        shown = "round" if self.horizon is None else f"regret after {self.horizon:,} rounds"
        ax.set(xlabel="d that the player is told", ylabel=shown, yscale="log")
        ax.legend(frameon=False)
        return ax

    def _facts(self) -> dict[str, str]:
        k = self.place
        facts = {"max_delay": str(self.max_delay), "assume": self.assume, "inside": f"{self.inside[k]:.1%}"}
        if self.horizon is not None:
            facts["bound"] = f"{amount(self.bounds[k])} after {self.horizon:,} rounds"
        since = "never" if math.isinf(self.since[k]) else f"from round {self.since[k]:,.0f}"
        facts["below half of the largest regret"] = since
        if self.left is not None and self.worst is not None:
            facts["may be left after d"] = amount(self.left[k])
            if self.horizon is not None:
                facts["bound if so"] = amount(self.worst[k])
        return facts if self.regrets is None else facts | {"simulated regret": amount(self.regrets[k])}

    def __str__(self) -> str:
        """Return the table, with about a dozen of its rows; without a horizon, with `since` in place of the bound."""
        bound = ("since", 13, self.since) if self.horizon is None else ("bound", 13, self.bounds)
        more = [bound, ("left", 9, self.left), ("bound if so", 13, self.worst), ("regret", 9, self.regrets)]
        columns = [(name, width, values) for name, width, values in more if values is not None]
        lines = [f"{'d':>7} {'inside':>7}" + "".join(f" {name:>{width}}" for name, width, _ in columns)]
        shown = {*range(0, len(self.delays), max(1, len(self.delays) // 8)), self.place - 1, self.place, self.place + 1}
        for k in sorted(shown & {*range(len(self.delays))}):
            line = f"{self.delays[k]:>7} {self.inside[k]:>7.1%}"
            line += "".join(f" {amount(values[k]):>{width}}" for _, width, values in columns)
            lines.append(line + (" <- chosen" if k == self.place else ""))
        if self.horizon is not None and self.since[self.place] > self.horizon:
            when = "never" if math.isinf(self.since[self.place]) else f"from round {self.since[self.place]:,.0f} on"
            lines.append(f"No bound is below half of the largest regret by then; that of the chosen d is so {when}.")
        return "\n".join(lines)


def choose_delay(
    *,
    n_arms: int,
    half_life: float | None = None,
    weights: ArrayLike | None = None,
    curves: "ArrayLike | AdstockCurves | Curves | None" = None,
    horizon: int | None = None,
    assume: str = "anything",
    direction: str = "minimize",
    low: float = 0.0,
    high: float = 1.0,
    runs: int = 0,
    means: Sequence[float] | None = None,
    seed: int = 0,
    adviser: Any = None,
) -> DelayChoice:
    """Return the d to tell the default player, with the bound for every d.

    Give one of half_life: in rounds, every effect fades by half in this time; weights: the shares of an effect that
    arrive 0, 1, ... rounds after the action, for all arms; curves: such weights for each arm, shape (K, lags), those of
    a marketing-mix model (`carryover.AdstockCurves`), or the `Curves` that `ae.carryover.estimate` returns. Measured
    effects may have either sign, and only what differs between arms counts; what cannot be told from 0 is taken as 0,
    and `left` and `worst` say what that may cost.
    horizon: T, open-ended if None.
    assume: "anything": what arrives later than d is credited to the wrong arm at worst. "alike": the effects of all
        arms arrive by the same weights, whatever they are. What others still owe is then the same for every arm, and
        a short d is cheap. This is an assumption: if it is wrong, a short d can be ruinous. It is refused if measured
        curves refute it.
    direction, low, high: as for the player, which needs out_of_range="clip".
    runs: also simulate so many runs for each d, on Bernoulli effects that arrive by these weights, or with measured
        curves, on the estimated effects with white noise. means: the means of the arms, not with measured curves; by
        default the first arm is better by 0.2. seed: of the simulation.
    adviser: of the player. Its bounds then have the budget and, with "lags", the opening, which grow with d.

    >>> choose_delay(half_life=3, n_arms=5, horizon=50_000).max_delay > 10
    True
    >>> choose_delay(half_life=3, n_arms=5, horizon=50_000, assume="alike")    # doctest: +ELLIPSIS
    DelayChoice(max_delay: 0, assume: alike, inside: 20.6%, bound: ... after 50,000 rounds, ...)
    """
    K, T = checks.integer("n_arms", n_arms, low=2), horizon
    if T is not None:
        checks.integer("horizon", T, low=1)
    checks.choice("assume", assume, ("anything", "alike"))
    if isinstance(curves, AdstockCurves):
        curves = curves.weights
    measured = curves if isinstance(curves, Curves) else None
    rows = _rows(K, half_life, weights, curves)
    if measured is not None and means is not None:
        raise InvalidArgument(f"means must not be given with measured curves, but got {checks.shown(means)}")
    if assume == "alike":
        _check_alike(rows, curves)
    common: Range = {"direction": direction, "low": low, "high": high}
    players = _players(rows.shape[1] - (1 if half_life is None else 2), K, common, adviser)
    found = _by_bounds(rows, measured, players, assume, T)
    if not checks.integer("runs", runs, low=0):
        return found
    if T is None:
        raise InvalidArgument("horizon must be given if runs are, but got None")
    if measured is None:
        losses = _bernoulli(rows, K, T, direction, means, seed)
        common |= {"low": 0.0, "high": 1.0}
    else:
        losses = _noisy(measured, T, direction, seed)
    return replace(found, regrets=_simulated(losses, found.delays, common, runs, seed, adviser))


def _players(longest: int, n_arms: int, common: Range, adviser: Any) -> "list[CoinCleanWrapper]":
    """Return a player for each d that is compared, up to the longest."""
    grid = np.concatenate([np.arange(EVERY), np.rint(np.geomspace(EVERY, max(longest, EVERY), MOST - EVERY))])
    delays = np.unique(np.minimum(grid, longest)).astype(np.int64).tolist()
    unplayed = None if adviser is None else Placeholder(advisers.make(adviser))
    return [default_player(n_arms=n_arms, max_delay=d, adviser=unplayed, **common) for d in delays]


def _by_bounds(
    rows: FloatArray, measured: Curves | None, players: "Sequence[CoinCleanWrapper]", assume: str, horizon: int | None
) -> DelayChoice:
    """Return the choice of d by the bounds of these players, without simulated regrets."""
    delays, span = np.array([player.max_delay for player in players]), players[0].effects
    width, left, worst = span.hi - span.lo, None, None

    def bounds_of(prices: Iterable["Price"]) -> FloatArray:
        """Return the bound for each player at the horizon, NaN without one."""
        if horizon is None:
            return np.full(len(delays), math.nan)
        pairs = zip(players, prices, strict=True)
        return np.array([width * min(horizon, price.bound(player, horizon)) for player, price in pairs])

    if measured is None:
        # What arrives more than d rounds after the action, of the arm with most of it.
        tails = np.append(rows[:, :0:-1].cumsum(axis=1)[:, ::-1].max(axis=0), 0.0)[delays]
        inside, most = 1.0 - tails, 1.0
        each = theory.tail_price(players[0].direction, players[0].low, players[0].high)
        prices = [Price(1.0, 0.0, each * tail) for tail in tails]
    else:
        spreads, left, largest = _spreads(measured, width)
        inside, most = 1.0 - spreads[delays] / max(largest, spreads.max()), largest / width
        prices = [_late(spreads / width, player) for player in players]
    if assume == "alike":
        prices = [_alike(rows[0], player) for player in players]
    bounds = bounds_of(prices)
    if left is not None:
        worst = np.maximum(bounds, bounds_of(_late(left / width, player) for player in players))
        left = left[delays]
    since = np.array([_since(player, price, most) for player, price in zip(players, prices, strict=True)])
    useful = horizon is not None and (since <= horizon).any()
    chosen = int(delays[(bounds if useful else since).argmin()])
    return DelayChoice(chosen, assume, players[0].n_arms, horizon, delays, inside, bounds, since, None, left, worst)


class Price(NamedTuple):
    """What effects later than d add to a player's worst case W: factor · W(T) + ends + per_round · T bounds R_T."""

    factor: float
    ends: float
    per_round: float

    def bound(self, player: "CoinCleanWrapper", horizon: int) -> float:
        """Return the bound on R_T, in units of the range."""
        return self.factor * player.worst_case(horizon) + self.ends + self.per_round * horizon


def _alike(weights: FloatArray, player: "CoinCleanWrapper") -> Price:
    """Return the price if all arms' effects arrive by these weights."""
    share = theory.seen_share(weights, player.max_delay, player.update_probability or 1.0)
    return Price(math.inf if share == 0.0 else 1.0 / share, float(weights @ np.arange(len(weights))), 0.0)


def _late(spreads: FloatArray, player: "CoinCleanWrapper") -> Price:
    """Return the price if arms differ by so much in what arrives after each lag."""
    per_round, ends = theory.late_price(spreads, player.max_delay, player.update_probability or 1.0)
    return Price(1.0, ends, per_round)


def _since(player: "CoinCleanWrapper", price: Price, most: float) -> float:
    """Return the first round at which the bound is below half of the largest possible regret, or infinity."""
    if price.factor == math.inf or price.per_round >= 0.5 * most:
        return math.inf
    doubled = Price(*(2.0 / most * part for part in price))
    return informative_from(lambda T: doubled.bound(player, T) < T) or math.inf


def _check_alike(rows: FloatArray, curves: "ArrayLike | Curves | None") -> None:
    """Raise an error if curves are known not to fade alike."""
    if isinstance(curves, Curves):
        if curves.alike.verdict == "apart":
            got = f"curves that do not (p = {curves.alike.p_value:.2g})"
            raise InvalidArgument(f"curves must fade alike if assume is 'alike', but got {got}")
    elif not np.allclose(rows, rows[0]):
        got = checks.shown(curves)
        raise InvalidArgument(f"curves must be the same for all arms if assume is 'alike', but got {got}")


def _spreads(curves: Curves, width: float) -> tuple[FloatArray, FloatArray, float]:
    """Return by lag the greatest difference between arms in what remains: estimated, and at the worst end of the bands.

    The third is the estimated difference of whole effects. width: of the range of effects.
    """
    arms = np.setdiff1d(np.arange(curves.n_arms), curves.unmeasured)
    whole, later, ends = curves.arrived, curves.remaining, curves.ends()
    least = float(whole.lower[arms, -1].max() - whole.upper[arms, -1].min())
    if least > width:
        raise InvalidArgument(f"high - low must be at least {least:g}, by which arms differ, but got {width:g}")
    if curves.unmeasured:
        message = f"arms {list(curves.unmeasured)} are not measured, and not considered"
        warnings.warn(message, AftereffectWarning, stacklevel=4)
    if not any(((bands.lower > 0.0) | (bands.upper < 0.0)).any() for bands in (curves.effects, whole, later)):
        message = "no effect of any arm can be told from 0, so that the chosen d is no finding: measure longer"
        warnings.warn(message, AftereffectWarning, stacklevel=4)
    spreads = np.ptp(later.values[arms] - later.values[arms, ends, np.newaxis], axis=0)
    spreads[ends:] = 0.0
    largest = max(float(np.ptp(whole.values[arms, ends])), 1e-9 * width)
    return spreads, later.upper[arms].max(axis=0) - later.lower[arms].min(axis=0), largest


def _rows(n_arms: int, half_life: float | None, weights: ArrayLike | None, curves: Any) -> FloatArray:
    """Return the weights by delay of every arm; one row if they are the same for all."""
    given = {"half_life": half_life, "weights": weights, "curves": curves}
    names = [name for name, value in given.items() if value is not None]
    if len(names) != 1:
        got = " and ".join(names) or "none"
        raise InvalidArgument(f"exactly one of {', '.join(given)} must be given, but got {got}")
    if half_life is not None:
        half_life = checks.real("half_life", half_life, low=1e-9, high=1e5)
        left = np.exp2(-np.arange(math.ceil(half_life * math.log2(1.0 / NEGLIGIBLE)) + 1) / half_life)
        # What is left at the end is in the last weight.
        return np.asarray([left - np.append(left[1:], 0.0)])
    if weights is not None:
        return np.asarray([checked_weights(weights)])
    if isinstance(curves, Curves):
        if curves.n_arms != n_arms:
            raise InvalidArgument(f"curves must be of n_arms = {n_arms} arms, but got curves of {curves.n_arms}")
        # The weights of effects that fade alike: the mean of their shares, each with the square of the whole effect.
        effects = np.nan_to_num(curves.effects.values[:, : curves.ends() + 1])
        common = np.maximum(effects.sum(axis=1) @ effects, 0.0)
        found = np.zeros((1, curves.max_lag + 1))
        found[0, : len(common)] = common / common.sum() if common.any() else np.eye(1, len(common))
        return found
    table = checks.array("curves", curves, shape=(n_arms, "lags"), unit=True)
    return np.array([checked_weights(row, f"curves[{i}]") for i, row in enumerate(table)])


def _bernoulli(
    rows: FloatArray, n_arms: int, horizon: int, direction: str, means: Sequence[float] | None, seed: int
) -> "Losses":
    """Return Bernoulli effects that arrive by these weights."""
    from aftereffect.losses.spreads import kernels
    from aftereffect.losses.tables import iid

    if means is None:
        means = [0.7 if direction == "maximize" else 0.3] + [0.5] * (n_arms - 1)
    table = iid(horizon, means=checks.array("means", means, shape=(n_arms,), unit=True), seed=seed)
    return kernels(table, weights=np.broadcast_to(rows, (n_arms, rows.shape[1])), direction=direction)


def _noisy(curves: Curves, horizon: int, direction: str, seed: int) -> "Losses":
    """Return the estimated effects, without what cannot be told from 0, with white noise that is common to all arms."""
    from aftereffect.losses.protocol import CompositeLosses

    lags = curves.ends() + 1
    checks.integer("horizon", horizon, high=LARGEST // (lags * curves.n_arms))
    # An arm that is not measured is played like the mean of the others.
    effects = np.nan_to_num(curves.effects.values[:, :lags].T)
    parts = np.repeat(effects[np.newaxis], horizon, axis=0)
    noise = np.random.default_rng(sequence(seed, TABLE)).normal(curves.base, curves.noise, size=horizon)
    parts[:, 0] += noise[:, np.newaxis]
    least, most = extreme_parts(parts)
    return CompositeLosses(parts, direction=direction, low=min(0.0, least.min()), high=max(0.0, most.max()))


def _simulated(
    losses: "Losses", delays: NDArray[np.int64], common: Range, runs: int, seed: int, adviser: Any
) -> FloatArray:
    """Return the mean regret of the default player for each d."""
    # Imported here because it takes time that the command line and the service, which only need bounds, can save.
    from aftereffect.engines.simulation import simulate

    known: dict[str, Any] = {**common, "out_of_range": "clip", "adviser": adviser}
    players = (default_player(losses.n_arms, max_delay=d, **known) for d in delays.tolist())
    # A d that is too short is intended.
    with warnings.catch_warnings(action="ignore", category=AftereffectWarning):
        found = (simulate(player, losses, runs=runs, seed=seed, progress=False) for player in players)
        return np.array([simulation.mean_regret for simulation in found])
