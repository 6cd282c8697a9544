"""The contract of a player under composite anonymous feedback (Section 2 of the paper).

    round t:      ask() ──► arm I_t ──► the world plays it ──► total ℓ°_t ──► tell(ℓ°_t)

The total of a round is the sum of all effects that arrive in it, of this play and of earlier ones. How much each play
contributed is not observed.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, runtime_checkable


class Round(NamedTuple):
    """What happened in one round of a Player, as `tell` returns it.

    round: its number, from 1.
    arm: the arm that was played.
    draw: the arm was drawn in this round (Definition 1 and Figure 1: D); else it was kept (S).
    update: the base algorithm was fed at the end of this round (U).
    fed_loss: the loss that the base algorithm was fed; None unless `update`. It lies in [0, 1], except that
        CoinCleanWrapper feeds scaled sums, which may exceed 1.

    >>> from aftereffect import Exp3, Naive
    >>> player = Naive(Exp3(2, learning_rate=0.1), seed=7)
    >>> arm = player.ask()
    >>> player.tell(0.25)
    Round(round=1, arm=1, draw=True, update=True, fed_loss=0.25)
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
    draw: new arms were drawn in this round; else they were kept.
    update: the base algorithm was fed at the end of this round.
    fed_losses: the loss that each unit contributed; None if its window was void, or unless `update`.
    measured: the number of rounds, ending with this one, whose totals were summed for the update; 0 unless `update`.

    >>> from aftereffect import Panel, default_player
    >>> panel = Panel(default_player(n_arms=2, max_delay=0, seed=7), n_units=2)
    >>> arms = panel.ask()
    >>> panel.tell([0.25, 0.75])
    PanelRound(round=1, arms=[1, 0], draw=True, update=True, fed_losses=[0.25, 0.75], measured=1)
    """

    round: int
    arms: list[int]
    draw: bool
    update: bool
    fed_losses: list[float | None]
    measured: int


@runtime_checkable
class Player(Protocol):
    """A player under anonymous feedback: it plays one arm per round and observes one total per round.

    `ask` returns the same arm until `tell` ends the round. `tell` before `ask`, or a total that is not a
    finite number, raises a `ValueError` and changes nothing; a total out of range is refused, taken as missing or
    clipped, according to `out_of_range`. To be simulated over many runs a player also needs `fresh(seed, run)`, which
    returns an unplayed copy with its own random streams; to be saved it needs `state()`.

    >>> from aftereffect import Exp3, Player, default_player
    >>> isinstance(default_player(2, max_delay=0), Player), isinstance(Exp3(2, learning_rate=0.1), Player)
    (True, False)
    """

    @property
    def n_arms(self) -> int:
        """K."""

    def ask(self) -> int:
        """Return the arm to play in this round, 0..K−1."""

    def tell(self, total: float | None) -> Round:
        """Report the total of this round, None if it is missing, and end the round."""

    def state(self) -> dict[str, Any]:
        """Return the player's complete state, in plain JSON types, for `aftereffect.restore`."""


Arrival = tuple[int, float | None]
"""The number of a round, from 1, and the whole loss of its play; None if the report is lost."""


# Not a `Round`: any number of losses may arrive in a round.


class LabelledRound(NamedTuple):
    """What happened in one round of a LabelledPlayer, as `tell` returns it.

    round: its number, from 1. arm: the arm that was played. draw: a new arm was chosen in this round.
    updates: how many losses the player learned from at the end of the round. fed_loss: the last of these losses,
        scaled to [0, 1]; None if there were none.

    >>> from aftereffect import labelled
    >>> player = labelled.DelayedUCB1(2)
    >>> arm = player.ask()
    >>> player.tell([(1, 0.5)])
    LabelledRound(round=1, arm=0, draw=True, updates=1, fed_loss=0.5)
    """

    round: int
    arm: int
    draw: bool
    updates: int
    fed_loss: float | None


@runtime_checkable
class LabelledPlayer(Protocol):
    """A player under labelled feedback: it plays one arm per round and learns the loss of each play, possibly late.

    `ask` returns the same arm until `tell` ends the round. `tell` takes the losses that became known in this
    round, of this play or earlier ones, in any order; each play is reported once. `tell` before `ask`, an unknown
    round, or a loss out of range raises a `ValueError` and changes nothing. To be simulated over many runs a player
    also needs `fresh(seed, run)`; to be saved it needs `state()`.

    >>> from aftereffect import default_player, labelled
    >>> isinstance(labelled.DelayedUCB1(2), labelled.LabelledPlayer)
    True
    >>> isinstance(default_player(2, max_delay=0), labelled.LabelledPlayer)
    False
    """

    @property
    def n_arms(self) -> int:
        """K."""

    @property
    def outstanding(self) -> tuple[int, ...]:
        """The rounds whose losses have not been reported yet, ascending; a Player does not have this attribute."""

    def ask(self) -> int:
        """Return the arm to play in this round, 0..K−1."""

    def tell(self, arrivals: Iterable[Arrival]) -> LabelledRound:
        """Report the losses that became known in this round, if any, and end the round."""

    def state(self) -> dict[str, Any]:
        """Return the player's complete state, in plain JSON types, for `aftereffect.restore`."""
