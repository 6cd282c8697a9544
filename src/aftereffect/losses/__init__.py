"""Oblivious loss sequences: fixed before play begins. `protocol.py` holds the contract."""

from aftereffect.losses.composite import CompositeLosses
from aftereffect.losses.hard import HardLosses, hard, published_gap, stacked
from aftereffect.losses.protocol import Losses, LossStream
from aftereffect.losses.spreads import (
    anonymous_iid,
    at_once,
    delayed,
    geometric,
    kernels,
    linear_composite,
    random_split,
    randomly_delayed,
)
from aftereffect.losses.tables import Table, constrained, drifting, iid, seasonal, switching

__all__ = [
    "CompositeLosses",
    "HardLosses",
    "LossStream",
    "Losses",
    "Table",
    "anonymous_iid",
    "at_once",
    "constrained",
    "delayed",
    "drifting",
    "geometric",
    "hard",
    "iid",
    "kernels",
    "linear_composite",
    "published_gap",
    "random_split",
    "randomly_delayed",
    "seasonal",
    "stacked",
    "switching",
]
