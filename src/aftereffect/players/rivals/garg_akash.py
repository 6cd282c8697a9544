"""Phased elimination for stochastic effects that are spread over the rounds after a play (Garg and Akash 2019).

The effect of a play is drawn from its arm's distribution and arrives in parts, within max_delay = d rounds, however
it is divided. By the end of phase m = 1, 2, ... every active arm has been played n_m rounds, in one stretch per phase.
The sum of the totals of a stretch differs from that of its own effects by what arrives from before it and what is still
to come: two sums of parts of d effects, which differ by at most d(hi − lo). So by Hoeffding's inequality the mean of m
stretches errs by at most

    md/n_m + √(ln(T D²)/(2 n_m))          with probability 1 − 2/(T D²), in units of hi − lo

and n_m is the least number for which this is at most D/2, D = 2⁻ᵐ:

    n_m = ⌈ (2D²)⁻¹ ( √ℓ + √(ℓ + 4Dmd) )² ⌉,        ℓ = ln(T D²)

which is (28) of `odaaf.py`. Then two arms whose means differ by more than D differ indeed, and the worse is eliminated.
"""

from typing import Unpack

from aftereffect.core import checks
from aftereffect.players.base import Common
from aftereffect.players.rivals.odaaf import LONGEST, PhasedElimination, naive_length


class GargAkash(PhasedElimination):
    """Phased elimination for stochastic effects that arrive in parts within d rounds.

    max_delay: d. horizon: T. order, bridge: as in `ODAAF`.
    direction, low, high, out_of_range: as for the wrapper. seed: not used; the algorithm is deterministic.

    Only the paper's abstract was read: the setting, and phases that extend UCB. The lengths of phases are chosen here,
    the least for which Hoeffding's inequality and the bias of late parts justify an elimination (see
    `players/rivals/garg_akash.py`). `ODAAFB` without a mean delay has the same lengths; it plays better arms first, and
    the best one between phases.

    >>> GargAkash(2, horizon=250_000, max_delay=50).lengths[:4]
    array([  385,  1476,  4609, 13229])

    Reference: Garg and Akash, "Stochastic bandits with delayed composite anonymous feedback", arXiv 1910.01161 (2019).
    """

    def __init__(
        self,
        n_arms: int,
        *,
        horizon: int,
        max_delay: int,
        order: str = "index",
        bridge: bool = False,
        **common: Unpack[Common],
    ) -> None:
        T = checks.integer("horizon", horizon, low=1, high=LONGEST)
        self.max_delay = d = checks.integer("max_delay", max_delay, low=0, high=LONGEST)
        limits = self.limits(d + 1, **common)
        named = {"horizon": T, "max_delay": d}
        super().__init__(n_arms, lambda m: naive_length(T, m, d), limits, order=order, bridge=bridge, **named)
