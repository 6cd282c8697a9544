"""The multiplier λ of FTRL with Tsallis entropy (Lemmas 12 and 13, Appendix B), by a simple, slow method.

With weights w (the estimated losses so far) and learning rate η > 0, Algorithm 2 plays the minimiser over the
simplex of Σ_i w(i) q(i) − 2η Σ_i √q(i). It is q(i) = η²/(w(i) − λ)², where λ < min w makes these numbers sum
to 1.

`solve` in `bandits/tsallis.py` finds λ by Newton's method. Here it is found by bisection, which requires only that the
sum increases in λ; the result is the reference for the fast solver.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from aftereffect.core import checks
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument


def _checked(weights: ArrayLike, learning_rate: float) -> tuple[list[float], float]:
    """Return w and η, checked."""
    w: list[float] = checks.array("weights", weights, shape=("K",)).tolist()
    if len(w) < 2:
        raise InvalidArgument(f"weights must hold at least 2 numbers, one per arm, but got {len(w)}")
    eta = checks.real("learning_rate", learning_rate, above=0.0)
    checks.real("max(weights) - min(weights)", max(w) - min(w))
    return w, eta


def _scaled(w: list[float], eta: float) -> tuple[list[float], float]:
    """Return v = (w − min w)/η and the root u of Σ_i (v(i) − u)^{−2} = 1, so that λ = min w + η·u.

    At u = −1 an arm with v = 0 contributes 1, so the sum is at least 1; at u = −√K each arm contributes at most
    1/K. The loop ends when no double lies between `left` and `right`.
    """
    lowest = min(w)
    v = [(x - lowest) / eta for x in w]
    left, right = -math.sqrt(len(v)), -1.0
    while True:
        middle = 0.5 * (left + right)
        if not left < middle < right:
            return v, middle
        if math.fsum((x - middle) ** -2.0 for x in v) < 1.0:
            left = middle
        else:
            right = middle


def multiplier(weights: ArrayLike, learning_rate: float) -> float:
    """Return λ_{w,η}, the only number below min w with Σ_i η²/(w(i) − λ)² = 1 (Lemma 12).

    For equal weights it is w − η√K.

    >>> multiplier([1.0, 1.0, 1.0, 1.0], learning_rate=3.0)
    -5.0
    """
    w, eta = _checked(weights, learning_rate)
    _, u = _scaled(w, eta)
    return min(w) + eta * u


def tsallis_distribution(weights: ArrayLike, learning_rate: float) -> FloatArray:
    """Return q(i) = η²/(w(i) − λ)², the distribution of Algorithm 2 for estimated losses w (Lemma 12).

    It is computed from the differences w(i) − min w, so that no precision is lost if the weights are large.

    >>> tsallis_distribution([7.0, 7.0, 7.0, 7.0], learning_rate=3.0).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    w, eta = _checked(weights, learning_rate)
    v, u = _scaled(w, eta)
    return np.array([(x - u) ** -2.0 for x in v])


def multiplier_variation_bound(rank: int, delta: float) -> float:
    """Return δ/j, a bound on the increase of λ when the j-th smallest weight increases by δ (Lemma 13).

    λ_{w+δe_j,η} − λ_{w,η} <= δ/j for w(1) <= ... <= w(K), with j = `rank` from 1 and δ = `delta`. Equal weights may
    be ordered arbitrarily, so the largest of their ranks gives the best bound.

    >>> multiplier_variation_bound(rank=4, delta=2.0)
    0.5
    """
    j = checks.integer("rank", rank, low=1)
    return checks.real("delta", delta, low=0.0) / j
