"""The player to begin with: nothing to tune but the arms, how long effects linger, and their range."""

from aftereffect.bandits.adaptive_tsallis import AdaptiveTsallis
from aftereffect.core import checks
from aftereffect.players.wrapper.coin_clean import CoinCleanWrapper


def default_player(
    n_arms: int,
    max_delay: int,
    horizon: int | None = None,
    *,
    seed: int | None = None,
    direction: str = "minimize",
    low: float = 0.0,
    high: float = 1.0,
    out_of_range: str = "raise",
) -> CoinCleanWrapper:
    """Return the best proved player there is here: AdaptiveTsallis, fed the coin-clean rounds of its blocks.

    horizon: not needed, since its guarantee holds at every round; it is checked and has no effect.
    The other arguments are those of CompositeLossWrapper.

    >>> player = default_player(n_arms=3, max_delay=2, seed=7)
    >>> for total in (0.5, 0.2, 0.4, 0.3):
    ...     arm = player.ask()
    ...     played = player.tell(total)
    >>> player.rounds_played
    4
    """
    if horizon is not None:
        checks.integer("horizon", horizon, low=1)
    bandit = AdaptiveTsallis(n_arms)
    ends = {"low": low, "high": high}
    return CoinCleanWrapper(
        bandit, max_delay=max_delay, seed=seed, direction=direction, out_of_range=out_of_range, **ends
    )
