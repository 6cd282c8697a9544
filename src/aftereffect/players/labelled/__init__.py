"""Baselines under labelled feedback, which observe each loss with the number of its round. One module per paper."""

from aftereffect.players.labelled.delayed_exp3 import DelayedExp3
from aftereffect.players.labelled.joulani2013 import BOLD, QPMD, DelayedUCB1
from aftereffect.players.labelled.successive_elimination import SuccessiveElimination
from aftereffect.players.labelled.zimmert_seldin import ZimmertSeldin2020
from aftereffect.players.protocol import LabelledPlayer, LabelledRound

__all__ = [
    "BOLD", "QPMD", "DelayedExp3", "DelayedUCB1", "LabelledPlayer", "LabelledRound", "SuccessiveElimination",
    "ZimmertSeldin2020"
]
