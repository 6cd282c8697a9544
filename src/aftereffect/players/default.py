"""The player to begin with: nothing to tune but the arms, how long effects linger, and their range."""

from typing import Unpack

from aftereffect.bandits.adaptive_tsallis import AdaptiveTsallis
from aftereffect.players.base import Common
from aftereffect.players.wrapper.coin_clean import CoinCleanWrapper


def default_player(n_arms: int, *, max_delay: int, **common: Unpack[Common]) -> CoinCleanWrapper:
    """Return the best proved player there is here: AdaptiveTsallis, fed the coin-clean rounds of its blocks.

    It needs no horizon: its guarantee holds at every round. The arguments are those of CompositeLossWrapper.

    >>> player = default_player(n_arms=3, max_delay=2, seed=7)
    >>> for total in (0.5, 0.2, 0.4, 0.3):
    ...     arm = player.ask()
    ...     played = player.tell(total)
    >>> player.rounds_played
    4
    """
    return CoinCleanWrapper(AdaptiveTsallis(n_arms), max_delay=max_delay, **common)
