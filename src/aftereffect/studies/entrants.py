"""Building who plays a cell: an unplayed player, tuned to the sizes of the losses and what is known of them."""

import math
from typing import Any

from aftereffect import theory
from aftereffect.bandits.exp3 import Exp3
from aftereffect.bandits.protocol import Bandit
from aftereffect.bandits.tsallis import TsallisFTRL
from aftereffect.bandits.tsallis_inf import TsallisINF
from aftereffect.bandits.ucb1 import UCB1
from aftereffect.bandits.uniform import Uniform
from aftereffect.core.errors import InvalidArgument
from aftereffect.losses.protocol import Losses
from aftereffect.players.catalogue import Problem, entries
from aftereffect.players.default import default_player
from aftereffect.players.rivals.block_ucb import BlockUCB
from aftereffect.players.rivals.naive import Naive
from aftereffect.players.wrapper.wrapper import CompositeLossWrapper
from aftereffect.studies.builders import known
from aftereffect.studies.cells import Cell
from aftereffect.studies.settings import (
    NEED_COEFFICIENTS,
    NEED_MEAN,
    NEED_SHORT_DELAY,
    NEED_VARIANCE,
    PLAYERS,
    slug,
)


def has_room(cell: Cell) -> bool:
    """Say whether the cell's player can play at all: some need d <= 1, or to know the law of delays."""
    name = cell["player"]["name"]
    if name in PLAYERS:
        return cell["measure"] == "regret" or name in ("wrapper", "tsallis_inf")
    if cell["measure"] != "regret":
        return False
    mean, variance, coefficients = known(cell)
    return not (
        (name in NEED_MEAN and mean is None)
        or (name in NEED_VARIANCE and variance is None)
        or (name in NEED_COEFFICIENTS and coefficients is None)
        or (name in NEED_SHORT_DELAY and _reckoned(cell) > 1)
    )


def entrant(cell: Cell, losses: Losses) -> Any:
    """Return the cell's player for these losses, unplayed.

    >>> cell = {"player": {"name": "wrapper", "base": "exp3"}, "n_arms": 2, "max_delay": 3, "horizon": 1000}
    >>> from aftereffect import CompositeLosses
    >>> import numpy as np
    >>> player = entrant(cell, CompositeLosses(np.zeros((1000, 4, 2))))
    >>> round(player.bandit.learning_rate, 4)    # p = (1/7)(6/7)^6 = 0.05665: sqrt(12.235 / (339.9 + 2521.6))
    0.0654
    """
    given = cell["player"]
    name = given["name"]
    if name == "wrapper":
        bandit, coins = _tuned(cell, given.get("base", "tsallis"), given)
        return _wrapped(cell, losses, bandit, coins)
    beta = theory.best_update_probability(_reckoned(cell))
    if name == "tsallis_inf":
        estimator = given.get("estimator", "reduced_variance")
        return _wrapped(cell, losses, TsallisINF(cell["n_arms"], estimator=estimator), beta)
    if name == "uniform":
        return _wrapped(cell, losses, Uniform(cell["n_arms"]), beta)
    if name == "naive":
        return _naive(cell, losses)
    if name == "default_player":
        return _default(cell, losses)
    if name == "ucb_on_clean_windows" and "width" in given:
        return BlockUCB(cell["n_arms"], max_delay=_reckoned(cell), width=given["width"], seed=0, **_ends(losses))
    return _from_catalogue(cell, losses)


def _reckoned(cell: Cell) -> int:
    """Return the d the player reckons with."""
    reckoned: int = cell["player_max_delay"] if "player_max_delay" in cell else cell["max_delay"]
    return reckoned


def _tuned(cell: Cell, base: str, given: dict[str, Any]) -> tuple[Bandit, float]:
    """Return a base algorithm and β: those of Corollary 7 or, with tuning="best", of the smallest Theorem 4."""
    K, d, T = cell["n_arms"], _reckoned(cell), cell["horizon"]
    factor = given.get("learning_rate_factor", 1.0)
    coins = theory.best_update_probability(d) * given.get("update_probability_factor", 1.0)
    if coins > 1.0:
        raise InvalidArgument(f"update_probability_factor must keep β at most 1, but β would be {coins!r}")
    if base == "tsallis":
        best = given.get("tuning", "corollary") == "best"
        eta = theory.tuning(K, d, T).learning_rate if best else theory.corollary_learning_rate(d, T)
        return TsallisFTRL(K, learning_rate=factor * eta), coins
    if base == "exp3":
        return Exp3(K, learning_rate=factor * theory.exp3_learning_rate(K, d, T)), coins
    plain: Bandit = TsallisINF(K, estimator="reduced_variance") if base == "tsallis_inf" else _plain(base, K)
    return plain, coins


def _plain(base: str, n_arms: int) -> Bandit:
    return UCB1(n_arms) if base == "ucb1" else Uniform(n_arms)


def _wrapped(cell: Cell, losses: Losses, bandit: Bandit, coins: float) -> CompositeLossWrapper:
    policy = _policy(cell, losses)
    return CompositeLossWrapper(
        bandit, max_delay=_reckoned(cell), coins=coins, seed=0, out_of_range=policy, **_ends(losses)
    )


def _default(cell: Cell, losses: Losses) -> CompositeLossWrapper:
    policy = _policy(cell, losses)
    return default_player(cell["n_arms"], _reckoned(cell), seed=0, out_of_range=policy, **_ends(losses))


def _policy(cell: Cell, losses: Losses) -> str:
    """Return what to do with the impossible: cut it off where effects last longer than the player reckons with."""
    short = _reckoned(cell) < losses.max_delay
    policy: str = cell["player"].get("out_of_range", "clip" if short else "raise")
    return policy


def _ends(losses: Losses) -> dict[str, Any]:
    return {"direction": losses.direction, "low": losses.low, "high": losses.high}


def _naive(cell: Cell, losses: Losses) -> Naive:
    """Return naive play with the rate that suits its base under immediate feedback."""
    K, T, base = cell["n_arms"], cell["horizon"], cell["player"].get("base", "exp3")
    bandit: Bandit
    if base == "exp3":
        bandit = Exp3(K, learning_rate=math.sqrt(2.0 * math.log(K) / (K * T)))
    else:
        bandit = UCB1(K) if base == "ucb1" else TsallisINF(K, estimator="reduced_variance")
    # A naive player's range is a total's: d+1 effects may arrive at once.
    parts = losses.max_delay + 1
    low, high = parts * losses.effects.lo, parts * losses.effects.hi
    return Naive(bandit, seed=0, direction=losses.direction, low=low, high=high)


def _from_catalogue(cell: Cell, losses: Losses) -> Any:
    name = cell["player"]["name"]
    mean, variance, coefficients = known(cell)
    problem = Problem(
        cell["n_arms"],
        _reckoned(cell),
        cell["horizon"],
        mean,
        variance,
        coefficients,
        losses.direction,
        losses.low,
        losses.high,
    )
    for entry in entries(problem):
        if slug(entry.name) == name:
            return entry.player
    raise InvalidArgument(f"player.name must be one who can play here, but {name!r} cannot on {losses!r}")
