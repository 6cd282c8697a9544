"""The adversary of the lower bound (Section 5): linear bandit losses, stacked as in the proof of Lemma 8.

With rounds counted from 1, component s of round t is nonzero only if t + s = 0 mod (d+1), and is then the loss
of linear round ⌈t/(d+1)⌉. So d+1 plays are charged in one total, which equals (d+1) ℓ·q, where q(i) is the
fraction of these plays in which arm i was played:

    round        1    2    3  |  4    5    6        d = 2
    plays pay    . -> . -> Σ  |  . -> . -> Σ

If T is not a multiple of d+1, the plays of the last, incomplete group would be charged after T: they cost nothing.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from aftereffect.core import checks, kernel
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.random import HARD, recipe, sequence
from aftereffect.losses.protocol import Losses

NOISES = ("independent", "shared")


class Stacked(NamedTuple):
    """linear[n, i]: the loss of arm i in linear round n. max_delay: d."""

    linear: FloatArray
    max_delay: int


def spread(params: Any, t: int, arm: int, pending: FloatArray, at: int) -> None:
    """Add the only nonzero component, in the last round of the group of d+1 rounds that round t (from 0) belongs to."""
    group = t // (params.max_delay + 1)
    into = t - group * (params.max_delay + 1)
    pending[at + params.max_delay - into] += params.linear[group, arm]


kernel.register(Stacked, kernel.LossKernel(spread))


def published_gap(n_arms: int, *, rounds: int) -> float:
    """Return the gap μ of Shamir's lower bound for n = `rounds` linear rounds: √(K/n)/4, or 1/2 if n < K/4.

    >>> published_gap(4, rounds=10_000)
    0.005
    """
    n_arms = checks.integer("n_arms", n_arms, low=2)
    rounds = checks.integer("rounds", rounds, low=1)
    return 0.25 * math.sqrt(n_arms / rounds) if rounds >= n_arms / 4 else 0.5


def noise_scale(n_arms: int, rounds: int, noise: str) -> float:
    """Return σ = 1/√(8 ln(2m)) for n = `rounds`; m is the number of normal variables: Kn, or n if shared."""
    width = n_arms if noise == "independent" else 1
    return 1.0 / math.sqrt(8.0 * math.log(2.0 * width * rounds))


class HardLosses(Losses):
    """The losses that `hard` returns.

    best: the planted best arm J. linear: the loss vectors, (⌈T/(d+1)⌉, K). gap: μ. scale: σ. The best arm's mean is
    1/2 − scale · gap, that of every other arm 1/2.
    """

    best: int
    linear: FloatArray
    gap: float
    scale: float


def hard(
    n_arms: int,
    *,
    max_delay: int,
    horizon: int,
    seed: int,
    gap: float | None = None,
    noise: str = "independent",
    best_arm: int | None = None,
) -> HardLosses:
    """Draw an instance of the lower bound Ω̃(√((d+1)KT)) of Theorem 10.

    Linear losses are 1/2 + σx with x normal of variance 1/4 and mean -μ for a planted arm J, 0 for the
    others; J is drawn uniformly unless `best_arm` is given. `gap` is μ; the default is the published one
    (`published_gap` for the n = ⌊T/(d+1)⌋ linear rounds that are charged), at which no algorithm can tell the arms
    apart; choose a multiple of it to see learning. noise: "independent" for each arm, or "shared" by all arms of a
    round.

    σ = 1/√(8 ln(2m)), with m the number of normal variables (Kn, or n if shared), brings losses into [0, 1].
    Noise of absolute value above 1/2 - σμ would leave [0, 1] and is set to 0. This is symmetric, so the means remain
    exactly 1/2 and 1/2 - σμ. The gap must satisfy σμ <= 1/4; then on average at most one variable is set to 0.

    Reference: Shamir, "On the complexity of bandit linear optimization", COLT 2015, Theorem 5 and Appendix B.

    >>> losses = hard(n_arms=4, max_delay=3, horizon=400, seed=0, best_arm=2)
    >>> losses.best, losses.linear.shape, losses.gap
    (2, (100, 4), 0.05)
    """
    n_arms, max_delay, horizon = checks.sizes(n_arms, max_delay, horizon)
    checks.choice("noise", noise, NOISES)
    random = np.random.default_rng(sequence(seed, HARD))
    drawn_best = int(random.integers(n_arms))
    best = drawn_best if best_arm is None else checks.integer("best_arm", best_arm, low=0, high=n_arms - 1)
    paid = max(1, horizon // (max_delay + 1))
    mu = published_gap(n_arms, rounds=paid) if gap is None else checks.real("gap", gap, low=0.0)
    scale = noise_scale(n_arms, paid, noise)
    if scale * mu > 0.25:
        raise InvalidArgument(f"gap must be at most {0.25 / scale:g} to fit losses in [0, 1], but got {mu!r}")
    shift = np.zeros(n_arms)
    shift[best] = scale * mu
    shape = (-(-horizon // (max_delay + 1)), n_arms if noise == "independent" else 1)
    wobble = scale * random.normal(0.0, 0.5, size=shape)
    wobble[np.abs(wobble) > 0.5 - scale * mu] = 0.0
    params, sizes = Stacked(checks.owned(0.5 - shift + wobble), max_delay), (horizon, max_delay, n_arms)
    again = recipe(hard, n_arms, max_delay=max_delay, horizon=horizon, gap=gap, noise=noise, best_arm=best_arm)
    losses = HardLosses.made(params, sizes, ("minimize", 0.0, 1.0), 0.5 - shift, again)
    losses.best, losses.linear, losses.gap, losses.scale = best, params.linear, mu, scale
    return losses
