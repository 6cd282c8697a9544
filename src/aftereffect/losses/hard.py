"""The adversary of the lower bound (Section 5): linear bandit losses, stacked as in the proof of Lemma 8.

With rounds counted from 1, component s of round t is not zero iff t + s = 0 mod (d+1), and is then the loss
of linear round ⌈t/(d+1)⌉. So d+1 plays are paid in one total, which shows (d+1) ℓ·q for the fractions q they
were played in:

    round        1    2    3  |  4    5    6        d = 2
    plays pay    . -> . -> Σ  |  . -> . -> Σ

If T is no multiple of d+1, the plays of the last, short group fall due after T: they cost nothing, and nobody
sees them.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from aftereffect.core import checks, kernel
from aftereffect.core.checks import FloatArray, by_keyword
from aftereffect.core.errors import InvalidArgument, InvalidLosses
from aftereffect.losses import seeds
from aftereffect.losses.protocol import Losses
from aftereffect.losses.seeds import HARD, generator
from aftereffect.losses.tables import check_range

NOISES = ("independent", "shared")


class Stacked(NamedTuple):
    """linear[n, i]: the loss of arm i in linear round n. max_delay: d."""

    linear: FloatArray
    max_delay: int


def spread(params: Any, t: int, arm: int, pending: FloatArray, at: int) -> None:
    """Add the one component that is not zero: at the end of the group of d+1 rounds that t (from 0) is in."""
    group = t // (params.max_delay + 1)
    into = t - group * (params.max_delay + 1)
    pending[at + params.max_delay - into] += params.linear[group, arm]


kernel.register(Stacked, kernel.LossKernel(spread))


@by_keyword
def stacked(
    linear_losses: ArrayLike,
    *,
    max_delay: int,
    horizon: int | None = None,
    direction: str = "minimize",
    low: float = 0.0,
    high: float = 1.0,
) -> Losses:
    """Stack given linear losses, shape (n, K), as Lemma 8 does; T = n(d+1) unless given.

    >>> stacked([[0.25, 1.0], [0.5, 0.0]], max_delay=1).totals([0, 1, 0, 0])
    array([0.  , 1.25, 0.  , 1.  ])
    """
    linear = checks.array("linear_losses", linear_losses, shape=("n", "K"), error=InvalidLosses)
    max_delay = checks.integer("max_delay", max_delay, low=0)
    groups = checks.integer("len(linear_losses)", len(linear), low=1)
    longest = groups * (max_delay + 1)
    horizon = longest if horizon is None else checks.integer("horizon", horizon, low=1, high=longest)
    check_range("linear_losses", linear, low, high)
    return Losses(
        Stacked(checks.frozen(linear), max_delay),
        horizon=horizon,
        max_delay=max_delay,
        n_arms=linear.shape[1],
        direction=direction,
        low=low,
        high=high,
    )


@by_keyword
def published_gap(n_arms: int, *, rounds: int) -> float:
    """Return μ of Shamir's lower bound for `rounds` linear rounds: √(K/n)/4, but 1/2 where n < K/4.

    >>> published_gap(4, rounds=10_000)
    0.005
    """
    n_arms = checks.integer("n_arms", n_arms, low=2)
    rounds = checks.integer("rounds", rounds, low=1)
    return 0.25 * math.sqrt(n_arms / rounds) if rounds >= n_arms / 4 else 0.5


def noise_scale(n_arms: int, rounds: int, noise: str) -> float:
    """Return σ = 1/√(8 ln(2m)), m the number of normal variables in so many linear rounds: Kn, or n if shared."""
    width = n_arms if noise == "independent" else 1
    return 1.0 / math.sqrt(8.0 * math.log(2.0 * width * rounds))


class HardLosses(Losses):
    """What `hard` draws. best: the planted arm J. linear: the loss vectors, (⌈T/(d+1)⌉, K). gap: μ. scale: σ.

    The best arm's mean is lower by scale · gap than the 1/2 of all others.
    """

    best: int
    linear: FloatArray
    gap: float
    scale: float


@by_keyword
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
    others; J is uniform unless `best_arm` names it. `gap` is μ; the default is the published one
    (`published_gap` for the n = ⌊T/(d+1)⌋ linear rounds that are paid), at which nobody can tell the arms
    apart: multiply it to see learning. noise: "independent" for each arm, or "shared" by all arms of a round.

    σ = 1/√(8 ln(2m)), with m the number of normal variables (Kn, or n if shared), brings losses into [0, 1].
    Noise beyond 1/2 - σμ, the room there is, is set to 0. As that cuts both sides alike, means stay exactly
    1/2 and 1/2 - σμ. The gap must leave half the room, σμ <= 1/4; then on average at most one variable is
    cut.

    Reference: Shamir, "On the complexity of bandit linear optimization", COLT 2015, Theorem 5 and Appendix B.

    >>> losses = hard(n_arms=4, max_delay=3, horizon=400, seed=0, best_arm=2)
    >>> losses.best, losses.linear.shape, losses.gap
    (2, (100, 4), 0.05)
    """
    n_arms = checks.integer("n_arms", n_arms, low=2)
    max_delay = checks.integer("max_delay", max_delay, low=0)
    horizon = checks.integer("horizon", horizon, low=1)
    checks.choice("noise", noise, NOISES)
    random = generator(seed, HARD)
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
    losses = HardLosses(
        Stacked(checks.owned(0.5 - shift + wobble), max_delay),
        horizon=horizon,
        max_delay=max_delay,
        n_arms=n_arms,
        means=0.5 - shift,
        recipe=seeds.recipe(
            hard, n_arms, max_delay=max_delay, horizon=horizon, gap=gap, noise=noise, best_arm=best_arm
        ),
    )
    losses.best, losses.linear, losses.gap, losses.scale = best, losses.params.linear, mu, scale
    return losses
