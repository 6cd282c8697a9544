"""Other algorithms for composite anonymous feedback, for comparison with the wrapper.

CLW2018                         the wrapper of the 2018 version of the paper, whose proof has two flaws
MiniBatch, Blinded              its predecessors: fixed blocks (2012), random update rounds (2014)
FixedBlock                      Algorithm 1 without coins
BlockUCB                        UCB on clean windows
ABTest                          a test of all arms, then its winner for good
ODAAF, ODAAFB, ODAAFV           phased elimination for stochastic losses (2018)
GargAkash                       phased elimination for stochastic losses that arrive in parts (2019)
ARSUCB, ARSExp3                 growing blocks for an unknown delay (2021)
LinearComposite                 for known coefficients (2014)
DynLinUCB                       for linear dynamical systems (2023)
ARUCB                           for totals that depend on the totals before them (2024)

`Naive` is exported as `aftereffect.Naive`.
"""

from aftereffect.players.rivals.ab_test import ABTest
from aftereffect.players.rivals.ars import ARSUCB, ARSExp3
from aftereffect.players.rivals.block_ucb import BlockUCB
from aftereffect.players.rivals.linear_composite import LinearComposite
from aftereffect.players.rivals.linear_ucb import ARUCB, DynLinUCB
from aftereffect.players.rivals.phased_elimination import ODAAF, ODAAFB, ODAAFV, GargAkash
from aftereffect.players.rivals.wrappers import CLW2018, Blinded, FixedBlock, MiniBatch

__all__ = [
    "ARSUCB", "ARUCB", "CLW2018", "ODAAF", "ODAAFB", "ODAAFV", "ABTest", "ARSExp3", "Blinded", "BlockUCB",
    "DynLinUCB", "FixedBlock", "GargAkash", "LinearComposite", "MiniBatch",
]
