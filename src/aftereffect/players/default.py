"""The recommended player: it needs only the number of arms, the maximal delay and the range of effects."""

from typing import Unpack

from aftereffect.bandits.adaptive_tsallis import MatchedTsallis
from aftereffect.players.base import Common
from aftereffect.players.wrapper.coin_clean import CoinCleanWrapper


def default_player(n_arms: int, *, max_delay: int, **common: Unpack[Common]) -> CoinCleanWrapper:
    """Return the recommended player: MatchedTsallis, fed with coin-clean rounds.

    It needs no horizon or tuning. Its bound holds for all losses and at every round fixed in advance, and for losses of
    one law its regret grows only with ln T. A player tuned to a known horizon can have a smaller worst case.

    n_arms: K, the number of arms, at least 2.
    max_delay: d, how many rounds after its own an action's effect can still arrive.

    The other arguments are those of `CoinCleanWrapper`.

    >>> player = default_player(n_arms=3, max_delay=2, seed=7)
    >>> for total in (0.5, 0.2, 0.4, 0.3):
    ...     arm = player.ask()
    ...     played = player.tell(total)
    >>> player.rounds_played
    4
    """
    if others := common.keys() - Common.__annotations__.keys():
        accepted = ", ".join(["n_arms", "max_delay", *Common.__annotations__])
        raise TypeError(f"default_player has no argument {min(others)!r}; it accepts {accepted}")
    return CoinCleanWrapper(MatchedTsallis(n_arms), max_delay=max_delay, **common)
