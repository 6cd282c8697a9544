"""The mean certificate of a cell's runs, from the accounts their bases keep (docs/theory/adaptive.md).

A certificate of one run says little; what bounds the regret is its mean. The block engine hands over the bases' last
states, which hold all its terms but one: the stretch that is open at T depends on coins alone, so its mean is exact.
"""

from typing import Any

from aftereffect import theory
from aftereffect.bandits.adaptive_tsallis import COST, MOVED, PENALTY, AdaptiveTsallis
from aftereffect.core.checks import FloatArray
from aftereffect.losses.protocol import Losses
from aftereffect.players.wrapper.coin_clean import CoinCleanWrapper


def certified(player: Any, losses: Losses, engine: str) -> bool:
    """Say whether the certificate can be had of a player here."""
    return (
        engine == "blocks"
        and isinstance(player, CoinCleanWrapper)
        and isinstance(player.bandit, AdaptiveTsallis)
        and player.update_probability is not None
        and player.max_delay >= losses.max_delay
    )


def certificates(player: Any, states: FloatArray, horizon: int) -> FloatArray:
    """Return the certificate of each run after T = `horizon` rounds, in units of effects, the open stretch at its mean.

    states: the bases' last states, (runs, size).
    """
    K, d, beta, C = player.n_arms, player.max_delay, player.update_probability, player.scale
    own = states[:, 4 * K :]
    base = own[:, COST] + own[:, PENALTY]
    base = base + theory.entropy_range(K) * player.bandit.first_rate + open_stretch(d, horizon, beta) / C
    values = min(d, horizon) + d * own[:, MOVED] + C / (1.0 - beta) ** d * base
    scaled: FloatArray = values * (player.effects.hi - player.effects.lo)
    return scaled


def open_stretch(max_delay: int, horizon: int, update_probability: float) -> float:
    """Return the mean of (m + d)·1{m >= 1}, m = T − d − the latest coin: the rounds that no update has used at T.

    The latest coin is a rounds old with probability β(1−β)^a, a < T, or there was none, with probability (1−β)^T.
    Summed over a > d that is r^{d+1}(d + 1 + r/β) − r^{T+1}/β, r = 1 − β.

    >>> open_stretch(max_delay=1, horizon=3, update_probability=0.5)      # 2 with chance 1/8, 3 with 1/8
    0.625
    """
    d, T, r = max_delay, horizon, 1.0 - update_probability
    if d >= T or r == 0.0:
        return 0.0
    mean: float = r ** (d + 1) * (d + 1 + r / update_probability) - r ** (T + 1) / update_probability
    return mean
