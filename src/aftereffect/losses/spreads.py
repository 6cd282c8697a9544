"""Spreads: how the whole effects of a table arrive over the rounds. None stores (T, d+1, K) numbers.

    at_once            all in the round of the play
    delayed            all, some rounds later: a fixed delay, one a round, or one a round and arm
    randomly_delayed   the same, with delays drawn from a law (`laws.py`)
    anonymous_iid      Bernoulli rewards with independent delays
    geometric          fading with a half-life (adstock)
    kernels            a fixed kernel per arm
    linear_composite   the same coefficients for every arm
    random_split       cut uniformly on the simplex, anew for each round and arm

Each takes a `Table` or a plain (T, K) array, and the keywords `direction`, `low` and `high`; a Table has its
own range, which these may widen.
"""

from aftereffect.losses.delayed import anonymous_iid, at_once, delayed, randomly_delayed
from aftereffect.losses.split import random_split
from aftereffect.losses.weighted import geometric, kernels, linear_composite

__all__ = [
    "anonymous_iid",
    "at_once",
    "delayed",
    "geometric",
    "kernels",
    "linear_composite",
    "random_split",
    "randomly_delayed",
]
