"""Baselines that see each loss with the number of its round: what anonymity costs. One module a paper."""

from aftereffect.players.labelled.bold import BOLD
from aftereffect.players.labelled.delayed_exp3 import DelayedExp3
from aftereffect.players.labelled.delayed_ucb1 import DelayedUCB1
from aftereffect.players.labelled.qpmd import QPMD
from aftereffect.players.labelled.zimmert_seldin import ZimmertSeldin2020
from aftereffect.players.protocol import LabelledPlayer, LabelledRound

__all__ = [
    "BOLD",
    "QPMD",
    "DelayedExp3",
    "DelayedUCB1",
    "LabelledPlayer",
    "LabelledRound",
    "ZimmertSeldin2020",
]
