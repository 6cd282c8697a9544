"""The contract of a player under labelled feedback: delayed, but each loss comes with its round's number.

    round t:   ask() ──► arm I_t ──► the world plays it ──► what became known ──► tell([(s, ℓ_s), ...])

This is the delayed feedback that Section 1 of the paper sets apart from its own. Under composite losses it
means: the whole loss of a play, Σ_s ℓ_t^(s)(I_t), is reported once, at the end of the round in which its last
nonzero component has landed. A player of this kind knows more than a Player, so it cannot be told totals; it
is here for the comparison.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, runtime_checkable

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
