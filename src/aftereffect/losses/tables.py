"""Tables of whole losses ℓ_t(i), before they are spread over rounds: stochastic, switching, drifting, seasonal.

A spread (`spreads.py`) turns a table into losses. All functions return numbers in [0, 1] and take `law`: "bernoulli"
draws 0 or 1 with the stated mean, "constant" returns the means themselves.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from aftereffect.core import checks
from aftereffect.core.checks import FloatArray
from aftereffect.core.effects import effects
from aftereffect.core.errors import InvalidArgument, InvalidLosses
from aftereffect.core.random import TABLE, recipe, sequence
from aftereffect.core.text import Facts

__all__ = ["Table", "constrained", "drifting", "iid", "seasonal", "switching"]

LAWS = ("bernoulli", "constant")


class Table(checks.ReadOnly, Facts):
    """values[t, i]: the whole effect of playing arm i in round t, in [low, high].

    means: the expectation of values[t], if known and the same for all t. recipe: a function from a seed to a fresh
    draw; None if the values are fixed.

    >>> Table([[0.0, 1.0], [0.5, 0.25]]).values.sum(axis=0)
    array([0.5 , 1.25])
    """

    def __init__(
        self,
        values: ArrayLike,
        *,
        low: float = 0.0,
        high: float = 1.0,
        means: ArrayLike | None = None,
        recipe: "Callable[[int], Table] | None" = None,
    ) -> None:
        effects("minimize", low, high)
        numbers = checks.array("table", values, shape=("T", "K"), error=InvalidLosses)
        if numbers.shape[0] < 1 or numbers.shape[1] < 2:
            raise InvalidLosses(f"table must have shape (T >= 1, K >= 2), but got shape {numbers.shape}")
        outside = (numbers < low) | (numbers > high)
        if outside.any():
            t, i = (int(n) for n in np.argwhere(outside)[0])
            given = f"table[{t}, {i}] is {float(numbers[t, i])!r}; low= and high= set the range"
            raise InvalidLosses(f"table must lie in [{low:g}, {high:g}], but {given}")
        known = None if means is None else checks.frozen(checks.array("means", means, shape=(numbers.shape[1],)))
        self.values, self.low, self.high = checks.frozen(numbers), float(low), float(high)
        self.means, self.recipe = known, recipe

    def redraw(self, seed: int) -> "Table":
        """Return a fresh draw from the same distribution."""
        seed = checks.integer("seed", seed, low=0)
        if self.recipe is None:
            raise InvalidLosses("table must have a stochastic recipe to be redrawn, but its values are fixed")
        return self.recipe(seed)

    def _facts(self) -> dict[str, str]:
        means = self.values.mean(axis=0) if self.means is None else self.means
        listed = ", ".join(f"{mean:.4g}" for mean in means[:8]) + ", ..." * (len(means) > 8)
        horizon, n_arms = self.values.shape
        return {"rounds": f"{horizon}", "arms": f"{n_arms}", "range": f"[{self.low:g}, {self.high:g}]", "means": listed}


TableLike = Table | ArrayLike
Bound = float | None
"""An end of the range of one action's effect. None: the table's own, or for a plain array that of [0, 1]."""


def as_table(table: TableLike, low: Bound, high: Bound) -> Table:
    """Return a Table; None for `low` or `high` means the table's own, or 0 and 1 for a plain array."""
    if not isinstance(table, Table):
        return Table(table, low=0.0 if low is None else low, high=1.0 if high is None else high)
    low, high = table.low if low is None else low, table.high if high is None else high
    if (low, high) == (table.low, table.high):
        return table
    return Table(table.values, low=low, high=high, means=table.means, recipe=table.recipe)


def iid(horizon: int, *, means: ArrayLike, seed: int, law: str = "bernoulli", concentration: float = 10.0) -> Table:
    """Draw every round independently with the same K means.

    law: "bernoulli", "constant", or "beta", whose two parameters add up to `concentration` (means then in (0, 1)).

    >>> iid(3, means=[0.2, 0.8], seed=0, law="constant").values[2]
    array([0.2, 0.8])
    """
    horizon = checks.integer("horizon", horizon, low=1)
    mu = checks.array("means", means, shape=("K",), unit=True)
    checks.integer("len(means)", len(mu), low=2)
    checks.choice("law", law, (*LAWS, "beta"))
    total, shape = checks.real("concentration", concentration, above=0.0), (horizon, len(mu))
    random = np.random.default_rng(sequence(seed, TABLE))
    if law != "beta":
        drawn = draw(np.broadcast_to(mu, shape), law, random)
    elif ((mu > 0.0) & (mu < 1.0)).all():
        drawn = random.beta(total * mu, total * (1.0 - mu), size=shape)
    else:
        raise InvalidArgument(f"means must lie in (0, 1) for law 'beta', but got {checks.shown(mu.tolist())}")
    again = recipe(iid, horizon, means=mu, law=law, concentration=total)
    return Table(checks.owned(drawn), means=mu, recipe=None if law == "constant" else again)


def switching(
    horizon: int,
    *,
    n_arms: int,
    seed: int,
    period: int | None = None,
    rounds: Sequence[int] | None = None,
    gap: float = 0.2,
    law: str = "bernoulli",
) -> Table:
    """Draw losses whose best arm is 0, 1, ..., K-1, 0, ... in turn: mean (1 - gap)/2 while best, else (1 + gap)/2.

    It switches every `period` rounds, or in the given `rounds` (counted from 0); by default after every quarter of the
    horizon.

    >>> switching(4, n_arms=2, seed=0, period=2, gap=0.5, law="constant").values.tolist()
    [[0.25, 0.75], [0.25, 0.75], [0.75, 0.25], [0.75, 0.25]]
    """
    horizon, n_arms = _sizes(horizon, n_arms)
    gap = checks.real("gap", gap, low=0.0, high=1.0)
    if period is not None and rounds is not None:
        raise InvalidArgument(f"period must be omitted if rounds are given, but got {period}")
    if rounds is None:
        step = checks.integer("period", -(-horizon // 4) if period is None else period, low=1)
        starts = np.arange(step, horizon, step)
    else:
        starts = np.array([checks.integer("rounds", t, low=1, high=horizon - 1) for t in rounds], dtype=np.int64)
        if (np.diff(starts) <= 0).any():
            raise InvalidArgument(f"rounds must increase, but got {checks.shown(list(rounds))}")
    best = np.searchsorted(starts, np.arange(horizon), side="right") % n_arms
    mu = np.full((horizon, n_arms), (1.0 + gap) / 2.0)
    mu[np.arange(horizon), best] = (1.0 - gap) / 2.0
    return finished(mu, law, seed, switching, n_arms=n_arms, period=period, rounds=rounds, gap=gap)


def constrained(
    horizon: int,
    *,
    n_arms: int,
    seed: int,
    gap: float = 0.125,
    growth: float = 1.6,
    best_arm: int = 0,
    law: str = "bernoulli",
) -> Table:
    """Draw the stochastically constrained adversary: a constant gap at a level that alternates between two extremes.

    The means of (best arm, all others) alternate between (0, gap) and (1 - gap, 1); phase n lasts ⌊growth^n⌋
    rounds. Reference: Zimmert and Seldin, "Tsallis-INF", JMLR 22 (2021), the experiments.

    >>> constrained(3, n_arms=2, seed=0, gap=0.25, growth=1.0, law="constant").values.tolist()
    [[0.0, 0.25], [0.75, 1.0], [0.0, 0.25]]
    """
    horizon, n_arms = _sizes(horizon, n_arms)
    gap = checks.real("gap", gap, low=0.0, high=1.0)
    growth = checks.real("growth", growth, low=1.0)
    best_arm = checks.integer("best_arm", best_arm, low=0, high=n_arms - 1)
    high = np.zeros(horizon, dtype=bool)
    start, phase, length = 0, 0, 1.0
    while start < horizon:
        end = min(start + int(min(length, horizon)), horizon)
        high[start:end] = phase % 2 == 1
        start, phase, length = end, phase + 1, length * growth
    mu = np.repeat(np.where(high, 1.0, gap)[:, np.newaxis], n_arms, axis=1)
    mu[:, best_arm] = np.where(high, 1.0 - gap, 0.0)
    return finished(mu, law, seed, constrained, n_arms=n_arms, gap=gap, growth=growth, best_arm=best_arm)


def drifting(horizon: int, *, n_arms: int, seed: int, step: float = 0.01, law: str = "bernoulli") -> Table:
    """Draw losses whose means are reflected random walks in [0, 1]: uniform start, steps uniform in [-step, step].

    >>> walk = drifting(100, n_arms=2, seed=0, step=0.01, law="constant").values
    >>> bool((abs(np.diff(walk, axis=0)) <= 0.01).all())
    True
    """
    horizon, n_arms = _sizes(horizon, n_arms)
    step = checks.real("step", step, low=0.0, high=1.0)
    walk, noise = np.random.default_rng(sequence(seed, TABLE)).spawn(2)
    path = walk.uniform(-step, step, size=(horizon, n_arms))
    path[0] = walk.random(n_arms)
    # A symmetric walk folded into [0, 1] has the same law as a walk reflected at each step.
    folded = np.mod(np.cumsum(path, axis=0), 2.0)
    mu = np.minimum(folded, 2.0 - folded)
    again = recipe(drifting, horizon, n_arms=n_arms, step=step, law=law)
    return Table(checks.owned(draw(mu, law, noise)), recipe=again)


def seasonal(
    horizon: int,
    *,
    n_arms: int,
    seed: int,
    period: float = 365.0,
    level: ArrayLike = 0.5,
    amplitude: ArrayLike = 0.25,
    phases: ArrayLike | None = None,
    law: str = "bernoulli",
) -> Table:
    """Draw losses with means level_i + amplitude_i cos(2π(t/period - phase_i)); by default the phases are i/K.

    >>> seasonal(4, n_arms=2, seed=0, period=4, law="constant").values.round(2).tolist()
    [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75], [0.5, 0.5]]
    """
    horizon, n_arms = _sizes(horizon, n_arms)
    checks.real("horizon / period", horizon / checks.real("period", period, above=0.0))
    offsets = np.arange(n_arms) / n_arms if phases is None else per_arm("phases", phases, n_arms)
    middle, swing = per_arm("level", level, n_arms), per_arm("amplitude", amplitude, n_arms)
    angle = 2.0 * np.pi * (np.arange(horizon)[:, np.newaxis] / period - offsets)
    checks.array("level ± amplitude", np.r_[middle - abs(swing), middle + abs(swing)], shape=("2K",), unit=True)
    mu = np.clip(middle + swing * np.cos(angle), 0.0, 1.0)
    shape = {"period": period, "level": middle, "amplitude": swing, "phases": offsets}
    return finished(mu, law, seed, seasonal, n_arms=n_arms, **shape)


def _sizes(horizon: int, n_arms: int) -> tuple[int, int]:
    return checks.integer("horizon", horizon, low=1), checks.integer("n_arms", n_arms, low=2)


def per_arm(name: str, value: ArrayLike, n_arms: int) -> FloatArray:
    """Return one number per arm; a single number is used for all arms."""
    if checks.as_array(name, value).ndim == 0:
        return np.full(n_arms, checks.real(name, value))
    return checks.array(name, value, shape=(n_arms,))


def draw(mu: FloatArray, law: str, random: np.random.Generator) -> FloatArray:
    """Return a draw with means `mu`, shape (T, K)."""
    checks.choice("law", law, LAWS)
    return np.array(mu) if law == "constant" else (random.random(mu.shape) < mu).astype(np.float64)


def finished(mu: FloatArray, law: str, seed: int, build: Callable[..., Table], **settings: Any) -> Table:
    """Return a table drawn with means `mu`, shape (T, K); a redraw calls `build` with these settings."""
    again = recipe(build, len(mu), law=law, **settings)
    # Constant losses have no randomness to redraw.
    drawn = draw(mu, law, np.random.default_rng(sequence(seed, TABLE)))
    return Table(checks.owned(drawn), recipe=None if law == "constant" else again)
