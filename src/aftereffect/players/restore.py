"""From a saved state back to the object that goes on from it."""

from collections.abc import Iterable, Mapping
from typing import Any

from aftereffect.bandits.adaptive_tsallis import AdaptiveTsallis
from aftereffect.bandits.exp3 import Exp3
from aftereffect.bandits.exp3_ix import Exp3IX
from aftereffect.bandits.log_barrier import LogBarrier
from aftereffect.bandits.protocol import Bandit
from aftereffect.bandits.tsallis import TsallisFTRL
from aftereffect.bandits.tsallis_inf import TsallisINF
from aftereffect.bandits.ucb1 import UCB1
from aftereffect.bandits.uniform import Uniform
from aftereffect.core import saved
from aftereffect.core.errors import AftereffectError, InvalidState
from aftereffect.players import labelled, rivals
from aftereffect.players.coin_clean import CoinCleanWrapper
from aftereffect.players.naive import Naive
from aftereffect.players.panel import Panel
from aftereffect.players.wrapper import CompositeLossWrapper

BANDITS: tuple[type, ...] = (TsallisFTRL, AdaptiveTsallis, LogBarrier, Exp3, Uniform, TsallisINF, Exp3IX, UCB1)
# Each player's class, and the field of its state that holds its base algorithm (or the number of arms); for a
# panel, its player.
PLAYERS: dict[str, tuple[Any, str]] = {
    "CompositeLossWrapper": (CompositeLossWrapper, "bandit"),
    "CoinCleanWrapper": (CoinCleanWrapper, "bandit"),
    "Naive": (Naive, "bandit"),
    "Panel": (Panel, "player"),
}
PLAYERS |= {cls.__name__: (cls, "subject") for cls in (*rivals.PLAYERS, *labelled.PLAYERS)}


def restore(state: Mapping[str, Any], classes: Iterable[type] = ()) -> Any:
    """Return the player or bandit that `state()` described; it goes on bit for bit, in another process too.

    classes: bandit classes of your own that may be in the state; each needs `state()`, whose field "kind" is
        the name of the class, and a class method `from_state(state)`.

    >>> from aftereffect import CompositeLossWrapper, restore
    >>> player = CompositeLossWrapper.tuned(n_arms=3, max_delay=2, horizon=1000, seed=1)
    >>> twin = restore(player.state())
    >>> twin.ask() == player.ask()
    True
    """
    known = {cls.__name__: cls for cls in (*BANDITS, *classes)}
    try:
        return restore_any(state, known)
    except InvalidState:
        raise
    except AftereffectError as error:
        raise InvalidState(f"state must hold what state() saved, but {error}") from None


def restore_any(state: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    """Return the player or base algorithm that a state describes, from the inside out."""
    kind = saved.kind_of(state)
    if kind not in PLAYERS:
        return restore_bandit(state, known)
    cls, field = PLAYERS[kind]
    if field not in state:
        raise InvalidState(f"state of kind {kind!r} must have the field {field!r}, but it is missing")
    subject = state[field]
    if isinstance(subject, Mapping):
        subject = restore_any(subject, known) if field == "player" else restore_bandit(subject, known)
    return cls.from_state(state, subject)


def restore_bandit(state: Mapping[str, Any], known: Mapping[str, Any]) -> Bandit:
    """Return the base algorithm that a state describes."""
    kind = saved.kind_of(state)
    if kind not in known:
        raise InvalidState(f"kind must be one of {sorted([*PLAYERS, *known])} or given in classes, but got {kind!r}")
    bandit: Bandit = known[kind].from_state(state)
    return bandit
