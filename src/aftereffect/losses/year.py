"""Worlds at human scale: a year of days, effects that last for days, and noise that belongs to the day, not to an arm.

A play of arm i in round t brings f_t(i)·curve(i, s) in round t + s. On top of that each round has a level, a season and
noise, the same whatever is played. They are part of component 0 of every arm, so they reach the totals and do not enter
regret. The whole effect of the best arm exceeds that of the next by `gap`, the others are spread over another gap.

    curves      alike: all arms fade with one half-life; apart: half-lives from half to twice as long; last: the effect
                of the best arm begins when that of the others has mostly arrived; negative: all but the best arm bring
                sales forward, and pay them back later
    path        white, ar (ρ = 0.7), season (of 7 rounds), jumps (a new level every 45 rounds), trend
    change      none; drift: effects wander by about a gap; swap: the best and the worst arm exchange effects at half
                time; hidden: the best arm is worst for the first fifth; fatigue: each consecutive play of an arm is 7%
                weaker than the one before. Fatigue reacts to what is played, so only the engine `loop` can play it,
                and regret is against the best arm played throughout, which tires too.

Rewards, normal noise limited to five standard deviations, effects that end after max_delay: so effects have a range.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import checks, kernel
from aftereffect.core.checks import FloatArray
from aftereffect.core.random import SPLIT, TABLE, recipe, sequence
from aftereffect.losses.protocol import Losses, LossStream, noisy_range

CURVES = ("alike", "apart", "last", "negative")
PATHS = ("white", "ar", "season", "jumps", "trend")
CHANGES = ("none", "drift", "swap", "hidden", "fatigue")
MIDDLE = 0.4
"""The whole effect of the second best arm."""
WIDEST = 5.0
"""The limit of noise and of levels, in standard deviations."""
SWING = {"season": 2.0, "jumps": 3.0, "trend": 4.0}
"""The standard deviation of a season or level, the height of a trend: in standard deviations of the noise."""
WEEK, JUMP, RHO, TIRED = 7, 45, 0.7, 0.93


class Days(NamedTuple):
    """curves[i, s]: the effect of arm i at lag s, times factors[t, i]. path[t]: added to component 0 of round t."""

    curves: FloatArray
    factors: FloatArray
    path: FloatArray


def spread(params: Any, t: int, arm: int, pending: FloatArray, at: int) -> None:
    """Add what the round brings whatever is played, and the effects of the arm."""
    factor = params.factors[t, arm]
    pending[at] += params.path[t] + factor * params.curves[arm, 0]
    for s in range(1, params.curves.shape[1]):
        pending[at + s] += factor * params.curves[arm, s]


kernel.register(Days, kernel.LossKernel(spread))


class Tiring(Losses):
    """Losses whose effects weaken while an arm is repeated; see `change="fatigue"`."""

    reacts = True

    def stream(self) -> LossStream:
        """Return a stream that plays these losses round by round."""
        return TiringStream(self)

    def _play(self, arms: NDArray[np.int64]) -> FloatArray:
        stream = self.stream()
        return np.array([stream.play(int(arm)) for arm in arms])


class TiringStream(LossStream):
    """Losses played round by round, where the latest arm tires."""

    def __init__(self, losses: Losses) -> None:
        super().__init__(losses)
        self._due = np.concatenate([losses.params.path, np.zeros(losses.max_delay)])
        self._latest, self._strength = -1, 1.0

    def play(self, arm: int) -> float:
        """Play `arm` and return the total of this round."""
        self._strength = TIRED * self._strength if arm == self._latest else 1.0
        self._latest = arm
        effects = self._strength * self.losses.params.curves[arm]
        self._due[self.round : self.round + len(effects)] += effects
        self.round += 1
        return float(self._due[self.round - 1])


def year(
    *,
    horizon: int = 365,
    n_arms: int = 4,
    max_delay: int = 14,
    seed: int,
    half_life: float = 3.0,
    curves: str = "apart",
    gap: float = 0.2,
    noise: float = 0.2,
    path: str = "white",
    change: str = "none",
    world: int | None = None,
) -> Losses:
    """Return `horizon` rounds of rewards of a world as described above.

    half_life, gap: of the effects. noise: the standard deviation of a round's noise. curves, path, change: see above.
    world: the seed of the curves and their change, by default `seed`; `redraw` draws noise, level and season anew.

    >>> days = year(seed=1)
    >>> days.means.round(2).tolist(), days.direction, days.max_delay
    ([0.3, 0.4, 0.2, 0.6], 'maximize', 14)
    """
    n_arms, max_delay, horizon = checks.sizes(n_arms, max_delay, horizon)
    checks.real("half_life", half_life, above=0.0)
    checks.real("gap", gap, low=0.0, below=MIDDLE)
    checks.real("noise", noise, low=0.0)
    for name, value, options in (("curves", curves, CURVES), ("path", path, PATHS), ("change", change, CHANGES)):
        checks.choice(name, value, options)
    world = checks.integer("seed", seed, low=0) if world is None else checks.integer("world", world, low=0)
    common = np.random.default_rng(sequence(world, SPLIT))
    whole = MIDDLE + gap * np.concatenate([[1.0, 0.0], -np.arange(1, n_arms - 1) / max(n_arms - 2, 1)])
    order = common.permutation(n_arms)
    weights = [_weights(curves, i == 0, half_life, max_delay, gap / whole[i], common) for i in range(n_arms)]
    responses = (whole[:, np.newaxis] * np.array(weights))[order]
    factors = _factors(change, horizon, whole, common)[:, order]
    limit = WIDEST * noise * (1.0 + SWING.get(path, 0.0))
    low, high = noisy_range(responses.T * factors.min(axis=0), responses.T * factors.max(axis=0), limit)
    shape = {"half_life": half_life, "curves": curves, "gap": gap, "noise": noise, "path": path, "change": change}
    kind = Tiring if change == "fatigue" else Losses
    params = Days(checks.owned(responses), checks.owned(factors), checks.owned(_path(path, horizon, noise, seed)))
    means = whole[order] if change == "none" else None
    again = recipe(year, horizon=horizon, n_arms=n_arms, max_delay=max_delay, **shape, world=world)
    return kind.made(params, (horizon, max_delay, n_arms), ("maximize", low, high), means, again)


def _weights(
    curves: str, best: bool, half_life: float, max_delay: int, gap: float, random: np.random.Generator
) -> FloatArray:
    """Return the share of an arm's whole effect that arrives at each lag; gap: in units of that effect."""
    spread = random.uniform(-1.0, 1.0)
    if curves == "apart":
        half_life *= 2.0**spread
    elif curves == "last":
        return _fading(half_life, max_delay, 2.0 * half_life + 1.0) if best else _fading(half_life / 2.0, max_delay)
    plain = _fading(half_life, max_delay)
    if curves != "negative" or best:
        return plain
    early, late = _fading(half_life / 2.0, max_delay), _fading(half_life, max_delay, half_life + 1.0)
    return plain + gap * (1.5 + 0.5 * spread) * (early - late)


def _fading(half_life: float, max_delay: int, begin: float = 0.0) -> FloatArray:
    """Return weights that halve every `half_life` rounds from lag `begin` on, and sum to 1."""
    lags = np.arange(max_delay + 1)
    weights = np.where(lags >= min(round(begin), max_delay), np.exp2(-lags / half_life), 0.0)
    return np.asarray(weights / weights.sum())


def _factors(change: str, horizon: int, whole: FloatArray, random: np.random.Generator) -> FloatArray:
    """Return the strength of each arm's effects by round, (T, K); the first arm is the best, the last the worst."""
    factors = np.ones((horizon, len(whole)))
    if change == "swap":
        later = np.arange(horizon) >= horizon // 2
        factors[later, 0], factors[later, -1] = whole[-1] / whole[0], whole[0] / whole[-1]
    elif change == "hidden":
        factors[: horizon // 5, 0] = (whole[-1] - whole[0] + whole[1]) / whole[0]
    elif change == "drift":
        walk = np.cumsum(random.standard_normal((horizon, len(whole))), axis=0) / np.sqrt(horizon)
        factors += (whole[0] - whole[1]) / whole * np.clip(walk, -2.0, 2.0)
    return factors


def _path(kind: str, horizon: int, noise: float, seed: int) -> FloatArray:
    """Return what every round brings whatever is played: noise, and a season, levels or a trend."""
    random = np.random.default_rng(sequence(seed, TABLE))
    steps = np.clip(random.standard_normal(horizon), -WIDEST, WIDEST)
    rounds = np.arange(horizon)
    if kind == "ar":
        for t in range(1, horizon):
            steps[t] = RHO * steps[t - 1] + np.sqrt(1.0 - RHO**2) * steps[t]
    extra = np.zeros(horizon)
    if kind == "season":
        days = np.clip(random.standard_normal(WEEK), -WIDEST, WIDEST)
        extra = (days - days.mean())[rounds % WEEK]
    elif kind == "jumps":
        levels = np.clip(random.standard_normal(horizon // JUMP + 2), -WIDEST, WIDEST)
        extra = levels[(rounds + random.integers(JUMP)) // JUMP]
    elif kind == "trend":
        extra = (1.0 if random.random() < 0.5 else -1.0) * rounds / horizon
    return noise * np.clip(steps, -WIDEST, WIDEST) + noise * SWING.get(kind, 0.0) * extra
