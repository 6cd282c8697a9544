"""The recommended player: it needs only the number of arms, the maximal delay and the range of effects."""

from collections.abc import Sequence
from inspect import signature
from typing import Any, NamedTuple, Unpack

from aftereffect.bandits.adaptive_tsallis import MatchedTsallis
from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument
from aftereffect.players.limits import Common, spelled_out
from aftereffect.players.wrapper.advised import AdvisedWrapper
from aftereffect.players.wrapper.coin_clean import CoinCleanWrapper


class Prior(NamedTuple):
    """What is known about the arms before round 1.

    means: the mean effect of an action of each arm, in the units of the effects.
    updates: the weight of the prior: it counts as that many updates of every arm. If it is wrong, the bound grows by at
        most that many blocks times the largest difference between two means (docs/theory/inserted_steps.md).

    >>> player = default_player(n_arms=2, max_delay=2, prior=Prior(means=[0.2, 0.4], updates=10), seed=7)
    >>> bool(player.probabilities[0] > 0.9)
    True
    """

    means: Sequence[float]
    updates: float


@spelled_out
def default_player(
    n_arms: int, *, max_delay: int, prior: Prior | None = None, adviser: Any = None, **common: Unpack[Common]
) -> CoinCleanWrapper:
    """Return the recommended player: MatchedTsallis, fed with coin-clean rounds.

    It needs no horizon or tuning. Its bound holds for all losses and at every round fixed in advance, and for losses of
    one law its regret grows only with ln T. A player tuned to a known horizon can have a smaller worst case.

    n_arms: K, the number of arms, at least 2.
    max_delay: d, how many rounds after its own an action's effect can still arrive.
    prior: what is known about the arms; the player begins with these estimates.
    adviser: whose advice to follow within a budget: "lags", a model of every total, or an object with the methods of
        `aftereffect.advisers.Adviser`; by default none. Whatever it says, the bound is at most 1.5 times that without
        advice, plus 8 times `factor`. "lags" also plays the first rounds itself, as many as 8 times `factor` (see
        `AdvisedWrapper`), which adds as much again.

    The other arguments are those of `CoinCleanWrapper`.

    >>> player = default_player(n_arms=3, max_delay=2, seed=7)
    >>> for total in (0.5, 0.2, 0.4, 0.3):
    ...     arm = player.ask()
    ...     played = player.tell(total)
    >>> player.rounds_played
    4
    """
    if others := common.keys() - Common.__annotations__.keys():
        accepted = ", ".join(signature(default_player).parameters)
        raise TypeError(f"default_player has no argument {min(others)!r}; it accepts {accepted}")
    kind: Any = CoinCleanWrapper
    given: dict[str, Any] = {"max_delay": max_delay, **common}
    if adviser is not None:
        kind, given = AdvisedWrapper, {**given, "adviser": adviser}
    player: CoinCleanWrapper = kind(MatchedTsallis(n_arms), **given)
    if prior is None:
        return player
    if not isinstance(prior, Prior):
        raise InvalidArgument(f"prior must be a Prior(means, updates), but got {checks.shown(prior)}")
    span = player.effects
    means = checks.array("prior.means", prior.means, shape=(n_arms,))
    for mean in (float(means.min()), float(means.max())):
        checks.real("prior.means", mean, low=span.lo, high=span.hi)
    updates = checks.real("prior.updates", prior.updates, low=0.0, high=1e9)
    # An update is fed 1/β rounds on average, divided by C.
    _, beta = player.certified_base()
    losses = (-means if span.maximize else means) * (updates / (beta * player.scale * (span.hi - span.lo)))
    warm: CoinCleanWrapper = kind(MatchedTsallis(n_arms, prior=losses), **{**given, "seed": player.seed})
    return warm
