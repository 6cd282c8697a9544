"""Base algorithms for players in kernel form: checked, or tuned to the updates there will be."""

import math
from typing import Any

from aftereffect.bandits.exp3 import Exp3
from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.bandits.tsallis import TsallisFTRL
from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument


def kernel_base(bandit: Any) -> KernelBandit:
    """Return a copy of `bandit` if it is an unplayed base algorithm in kernel form, as players in kernel form need."""
    if not isinstance(bandit, KernelBandit):
        raise InvalidArgument(
            f"bandit must be a base algorithm in kernel form, such as Exp3, but got {checks.shown(bandit)}"
        )
    # The player starts the kernel afresh; what the object has learned would be lost without a word.
    twin = bandit.fresh()
    if bandit.state() != twin.state():
        raise InvalidArgument(f"bandit must be unplayed, but {bandit!r} has learned")
    return twin


def tuned_base(base: str, n_arms: int, updates: int) -> TsallisFTRL | Exp3:
    """Return Algorithm 2 ("tsallis", Theorem 6) or Exp3 ("exp3") at its best rate for so many updates.

    The rates are √(N/2) and √(2 ln K/(KN)). With no update at all the rate does not matter.
    """
    checks.choice("base", base, ("tsallis", "exp3"))
    n_arms = checks.integer("n_arms", n_arms, low=2)
    if base == "tsallis":
        return TsallisFTRL(n_arms, learning_rate=math.sqrt(updates / 2))
    return Exp3(n_arms, learning_rate=math.sqrt(2 * math.log(n_arms) / (n_arms * max(updates, 1))))
