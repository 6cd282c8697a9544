"""What every player does around its own idea: whose turn it is, reading a total, holding a base algorithm."""

import copy
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.bandits.protocol import Bandit
from aftereffect.core import checks
from aftereffect.core.errors import BadDistribution, InvalidArgument, InvalidState, InvalidTotal
from aftereffect.core.kernel import WordState
from aftereffect.core.random import scan, uniform


def draw_from(q: Any, n_arms: int, rng: WordState) -> int:
    """Draw an arm from a distribution with the next uniform number of a stream."""
    return scan(q, n_arms, uniform(rng))


def checked_bandit(bandit: Any) -> Bandit:
    """Return `bandit` if it has what the Bandit protocol asks for."""
    if isinstance(bandit, type):
        raise InvalidArgument(f"bandit must be an object, not a class (call it first), but got {checks.shown(bandit)}")
    for name in ("n_arms", "probabilities", "update", "stability", "regret_bound"):
        if not hasattr(bandit, name):
            raise InvalidArgument(
                f"bandit must have the attribute {name!r} (see aftereffect.Bandit), but got {bandit!r}"
            )
    checks.integer("bandit.n_arms", bandit.n_arms, low=2)
    found: Bandit = bandit
    return found


def checked_distribution(bandit: Bandit) -> checks.FloatArray:
    """Return the distribution of a base algorithm written elsewhere, or say what is wrong with it."""
    try:
        q = checks.array("bandit.probabilities", bandit.probabilities, shape=(bandit.n_arms,))
    except InvalidArgument as error:
        raise BadDistribution(str(error)) from None
    if q.min() < 0.0:
        raise BadDistribution(
            f"bandit.probabilities must be at least 0, but arm {int(q.argmin())} has {float(q.min())!r}"
        )
    if abs(math.fsum(q) - 1.0) > 1e-9:
        raise BadDistribution(f"bandit.probabilities must sum to 1, but sum to {math.fsum(q)!r}")
    return np.ascontiguousarray(q)


def draw_arm(bandit: Bandit, rng: WordState) -> int:
    """Draw an arm from a base algorithm's distribution; nothing changes if it is not one."""
    if isinstance(bandit, KernelBandit):
        return bandit.draw(rng)
    # Compiling is for whoever draws: a player with a kernel base never comes here.
    from aftereffect.core.jit import compiled

    return int(compiled(draw_from)(checked_distribution(bandit), bandit.n_arms, rng))


def feed(bandit: Bandit, arm: int, loss: float) -> None:
    """Feed a base algorithm a loss in [0, 1]."""
    if isinstance(bandit, KernelBandit):
        bandit.learn(arm, loss)
    else:
        bandit.update(arm, loss)


def feed_all(bandit: Any, arms: list[int], losses: list[float]) -> None:
    """Feed a base algorithm the losses of units that drew from it together, or of one."""
    if len(arms) == 1 and not hasattr(bandit, "update_many"):
        bandit.update(arms[0], losses[0])
    elif len(arms) == 1 and isinstance(bandit, KernelBandit):
        bandit.learn(arms[0], losses[0])
    elif isinstance(bandit, KernelBandit):
        bandit.learn_many(arms, losses)
    else:
        bandit.update_many(arms, losses)


def unplayed_copy(bandit: Bandit) -> Bandit:
    """Return a base algorithm like this unplayed one, which shares nothing with it."""
    if not isinstance(bandit, KernelBandit):
        return copy.deepcopy(bandit)
    twin = bandit.fresh()
    if twin.state() != bandit.state():
        raise InvalidArgument(f"bandit must be unplayed for its player to be copied, but {bandit!r} has learned")
    return twin


def checked_total(total: Any) -> float:
    """Return a reported total as a finite float."""
    try:
        return checks.real("total", total)
    except InvalidArgument as error:
        raise InvalidTotal(str(error)) from None


def bandit_state(bandit: Bandit) -> dict[str, Any]:
    """Return the saved state of a base algorithm."""
    if not hasattr(bandit, "state"):
        raise InvalidArgument(f"bandit must have a method state() to be saved, but got {bandit!r}")
    state: dict[str, Any] = bandit.state()
    return state


def dump(player: object, names: Iterable[str]) -> dict[str, Any]:
    """Return a player's plain private numbers and flags by name."""
    return {name: getattr(player, f"_{name}") for name in names}


def load(player: object, names: Iterable[str], fields: Mapping[str, Any]) -> None:
    """Set a player's plain private numbers and flags, each to a value of the type it has."""
    for name in names:
        wanted = type(getattr(player, f"_{name}"))
        if type(fields[name]) is not wanted:
            raise InvalidState(f"{name} must be of type {wanted.__name__}, but got {checks.shown(fields[name])}")
        setattr(player, f"_{name}", fields[name])


def shown_range(direction: str, low: float, high: float) -> str:
    """Return direction and range as they appear in a repr: only where they are not losses in [0, 1]."""
    named = (("direction", direction, "minimize"), ("low", low, 0.0), ("high", high, 1.0))
    return "".join(f", {name}={value!r}" for name, value, usual in named if value != usual)
