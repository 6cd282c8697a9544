"""Rewards of a linear dynamical system whose inputs are the arms (Mussi, Metelli and Restelli, ICML 2023).

The input of a round is the vector u of the arm played, and its reward is the sum of the components of y:

    x_{t+1} = A x_t + B u_t + w_t        y_t = C x_t + D u_t + v_t

Effects superpose, so this is composite anonymous feedback: the response of u at lag 0 is 1ᵀD u, at lag s ≥ 1 it is
1ᵀC A^{s−1} B u. The noises w and v reach every total in the same way whatever is played. Here the noise of round t, all
of it, is component 0 of each arm in round t: the totals are those of the system, and the noise does not enter regret.

Responses shrink by the spectral radius of A per round but never end; those after max_delay are left out. Noise is
normal and limited to five standard deviations, so that effects have a range.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from aftereffect.core import checks, kernel
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.random import TABLE, recipe, sequence
from aftereffect.losses.protocol import Losses, noisy_range

DIGITS = 12
"""Responses are rounded to this many decimals: products of matrices may differ in the last bits between machines."""
FILTER = 64
"""The number of rounds over which noise in the state is followed."""
WIDEST = 5.0
"""The limit of noise, in standard deviations."""


class Responses(NamedTuple):
    """values[i, s]: the response of arm i at lag s. noise[t]: added to component 0 of round t."""

    values: FloatArray
    noise: FloatArray


def spread(params: Any, t: int, arm: int, pending: FloatArray, at: int) -> None:
    """Add the noise of the round and the responses of the arm."""
    pending[at] += params.noise[t]
    for s in range(params.values.shape[1]):
        pending[at + s] += params.values[arm, s]


kernel.register(Responses, kernel.LossKernel(spread))


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """The matrices A, B, C and D; the vector u of each arm, (K, p); σ, the standard deviation of each noise.

    A must have a spectral radius below 1, so that responses fade.

    >>> ADVERTISING.responses(40).sum(axis=0).round(3).tolist()      # the total effect of each arm
    [0.088, 0.017, 0.232, 0.089, 0.305, 0.233]
    >>> ADVERTISING.responses(0)[0].round(3).tolist()                # the immediate effect
    [0.225, 0.42, 0.085, 0.475, 0.14, 0.335]
    >>> round(ADVERTISING.spectral_radius, 4)
    0.6669
    """

    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray
    arms: FloatArray
    noise: float

    def __post_init__(self) -> None:
        n = len(checks.array("A", self.A, shape=("n", "n")))
        p = checks.array("arms", self.arms, shape=("K", "p")).shape[1]
        outputs = len(checks.array("C", self.C, shape=("outputs", "n")))
        shapes: dict[str, tuple[int | str, ...]] = {"A": (n, n), "B": (n, p), "C": (outputs, n), "D": (outputs, p)}
        for name, shape in (shapes | {"arms": ("K", p)}).items():
            object.__setattr__(self, name, checks.array(name, getattr(self, name), shape=shape))
        checks.real("noise", self.noise, low=0.0)
        if not self.spectral_radius < 1.0:
            raise InvalidArgument(f"A must have a spectral radius below 1, but got {self.spectral_radius:g}")

    @property
    def spectral_radius(self) -> float:
        """ρ(A), the factor by which responses shrink per round in the long run."""
        return float(np.abs(np.linalg.eigvals(self.A)).max())

    def filter(self, lags: int) -> FloatArray:
        """Return 1ᵀC A^{s−1} for s = 1..lags, shape (lags, n): what noise in the state adds to later totals."""
        rows = [self.C.sum(axis=0)]
        for _ in range(lags - 1):
            rows.append(rows[-1] @ self.A)
        return np.array(rows[:lags]).reshape(lags, len(self.A)).round(DIGITS)

    def responses(self, max_delay: int) -> FloatArray:
        """Return the response of each arm at lags 0..d, shape (d+1, K)."""
        rows = np.concatenate([self.D.sum(axis=0)[np.newaxis], self.filter(max_delay) @ self.B])
        return np.asarray((rows @ self.arms.T).round(DIGITS))


def system_rewards(system: LinearSystem, *, max_delay: int, horizon: int, seed: int) -> Losses:
    """Return `horizon` rounds of rewards of a linear system, with fresh noise.

    >>> losses = system_rewards(ADVERTISING, max_delay=40, horizon=100, seed=1)
    >>> losses.direction, losses.best_arm(), losses.low, losses.high
    ('maximize', 4, -0.42, 0.58)
    """
    n_arms, max_delay, horizon = checks.sizes(len(system.arms), max_delay, horizon)
    values, filtered = system.responses(max_delay), system.filter(FILTER)
    random = np.random.default_rng(sequence(seed, TABLE))
    noise = system.noise * random.normal(size=(horizon, len(system.C))).sum(axis=1)
    before = system.noise * random.normal(size=(horizon, len(system.A)))
    for s in range(1, min(FILTER, horizon - 1) + 1):
        noise[s:] += sum(filtered[s - 1, j] * before[:-s, j] for j in range(len(system.A)))
    limit = round(WIDEST * system.noise * float(np.sqrt(len(system.C) + (filtered**2).sum())), DIGITS)
    noise = np.clip(noise, -limit, limit)
    params, sizes = Responses(checks.owned(values.T), checks.owned(noise)), (horizon, max_delay, n_arms)
    again = recipe(system_rewards, system, max_delay=max_delay, horizon=horizon)
    return Losses.made(params, sizes, ("maximize", *noisy_range(values, values, limit)), values.sum(axis=0), again)


ADVERTISING = LinearSystem(
    A=np.array([[0.38, 0.33, 0.6], [0.07, 0.76, -0.54], [0.18, 0.34, 0.05]]),
    B=np.array([[0.14, 0.34, -0.05], [-0.17, 0.03, -0.01], [0.04, -0.09, 0.17]]),
    C=np.array([[0.25, -0.14, 0.01], [-0.55, 0.2, -0.13], [-0.31, -0.1, -0.01]]),
    D=np.array([[0.11, 0.1, 0.01], [0.01, 0.36, 0.01], [0.01, -0.05, 0.0]]),
    arms=np.array([[0, 0.5, 1], [0, 1, 0.5], [0.5, 0, 1], [0.5, 1, 0], [1, 0, 0.5], [1, 0.5, 0]]),
    noise=0.01,
)
"""A real advertising system with three channels; the arms are the six ways to give them budgets of 1, 1/2 and 0.

The second channel has the largest immediate effect, 0.41 per unit, and a negative total effect, −0.036. Source: file
config/testcase_realdata.json of https://github.com/marcomussi/DLB (MIT licence), the system identified from real data
in "Dynamical linear bandits" (ICML 2023).
"""

SYSTEMS = {"advertising": ADVERTISING}
"""Known systems by name."""
