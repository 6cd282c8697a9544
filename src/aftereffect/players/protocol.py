"""The contract of a player under composite anonymous feedback (Section 2 of the paper).

    round t:      ask() ──► arm I_t ──► the world plays it ──► total ℓ°_t ──► tell(ℓ°_t)

The total of a round is the sum of whatever arrives in it, of this and earlier plays; nobody says what came
from where.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, runtime_checkable


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


class PanelRound(NamedTuple):
    """What happened in one round of a Panel, as `tell` returns it.

    round: its number, from 1, common to all units.
    arms: the arm each unit played.
    draw: arms were drawn in this round; else they were kept.
    update: the base algorithm was fed at the end of this round.
    fed_losses: what each unit contributed; None where its window was void, and unless `update`.
    measured: over how many rounds up to this one the totals were added up for that; 0 unless `update`.
    """

    round: int
    arms: list[int]
    draw: bool
    update: bool
    fed_losses: list[float | None]
    measured: int


@runtime_checkable
class Player(Protocol):
    """Someone who plays an arm each round and sees one total a round.

    `ask` returns the same arm until `tell` ends the round. `tell` before `ask`, or a total that is not a
    finite number, raises a `ValueError` and changes nothing; a total out of range is refused, taken as missing or
    clipped, as `out_of_range` says. To be simulated over many runs a player also needs `fresh(seed, run)`, an
    unplayed copy with its own random streams; to be saved, `state()`.
    """

    @property
    def n_arms(self) -> int:
        """K."""
        ...

    def ask(self) -> int:
        """Return the arm to play in this round, 0..K−1."""
        ...

    def tell(self, total: float | None) -> Round:
        """Report the total of this round, None if it is missing, and end the round."""
        ...

    def state(self) -> dict[str, Any]:
        """Return all there is to know, in plain JSON types, for `aftereffect.restore`."""
        ...


Arrival = tuple[int, float | None]
"""A round that was played, from 1, and the whole loss of that play; None: its report is lost."""


# A record of its own: several losses may arrive in a round, or none.


class LabelledRound(NamedTuple):
    """What happened in one round of a LabelledPlayer, as `tell` returns it.

    round: its number, from 1. arm: the arm that was played. draw: the arm was chosen anew in this round.
    updates: how many losses the player learned from at its end. fed_loss: the last of them, scaled to [0, 1];
        None if none.
    """

    round: int
    arm: int
    draw: bool
    updates: int
    fed_loss: float | None


@runtime_checkable
class LabelledPlayer(Protocol):
    """Someone who plays an arm each round and is told, late, what each play cost.

    `ask` returns the same arm until `tell` ends the round. `tell` takes the losses that became known in this
    round, this round's own or those of earlier ones, in any order; each play is reported once. `tell` before
    `ask`, an unknown round, or a loss out of range raises a `ValueError` and changes nothing. To be simulated
    over many runs a player also needs `fresh(seed, run)`; to be saved, `state()`.
    """

    @property
    def n_arms(self) -> int:
        """K."""
        ...

    @property
    def outstanding(self) -> tuple[int, ...]:
        """The rounds, ascending, whose losses have not been reported; a Player has no such attribute."""
        ...

    def ask(self) -> int:
        """Return the arm to play in this round, 0..K−1."""
        ...

    def tell(self, arrivals: Iterable[Arrival]) -> LabelledRound:
        """Report what became known in this round, possibly nothing, and end the round."""
        ...

    def state(self) -> dict[str, Any]:
        """Return all there is to know, in plain JSON types, for `aftereffect.restore`."""
        ...
