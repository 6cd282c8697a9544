"""Plain records that pass between the layers."""

from typing import NamedTuple


class Round(NamedTuple):
    """What happened in one round of a Player, as `tell` returns it.

    round: its number, from 1.
    arm: the arm that was played.
    draw: the arm was drawn in this round (Definition 1 and Figure 1: D); else it was kept (S).
    update: the base algorithm was fed at the end of this round (U).
    fed_loss: the loss it was fed, in [0, 1]; None unless `update`.
    """

    round: int
    arm: int
    draw: bool
    update: bool
    fed_loss: float | None
