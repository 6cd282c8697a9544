"""The contract of a base algorithm A (Section 3 of the paper): a bandit under immediate feedback."""

import math
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import checks
from aftereffect.core.errors import BadDistribution, InvalidArgument


@runtime_checkable
class Bandit(Protocol):
    """A K-armed bandit algorithm for immediate losses in [0, 1].

    It maintains a distribution q_n over its arms. The caller draws J_n from q_n and calls `update(J_n, loss)` once,
    which yields q_{n+1}. Between updates the distribution does not change. Any object with these attributes may be
    wrapped by `CompositeLossWrapper`, which then owns it.

    Two more methods are optional: a player has a bound on its regret only if its base has both. `stability()` returns
    ξ of Definition 3, a bound on E Σ_i (q_{n+1}(i) − q_n(i))⁺ in every round; `regret_bound(n)` returns 𝓡_n, a bound on
    the expected regret after n rounds, for all losses. It must hold for this bandit with its settings as they are, for
    every n, and must not decrease in n: the number of updates is random. A formula with a learning rate that is tuned
    to n, such as 2√(2Kn) for Algorithm 2, is not a bound for any one bandit, and the wrapper's bound would be wrong. To
    be saved, a bandit needs `state()` and a class method `from_state(state)`.

    >>> from aftereffect import Bandit, Exp3, default_player
    >>> isinstance(Exp3(2, learning_rate=0.1), Bandit), isinstance(default_player(2, max_delay=0), Bandit)
    (True, False)
    """

    @property
    def n_arms(self) -> int:
        """K, at least 2."""

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """q_n: K nonnegative numbers that sum to 1."""

    def update(self, arm: int, loss: float) -> None:
        """Learn that playing `arm`, drawn from `probabilities`, cost `loss` in [0, 1]."""


def checked_distribution(bandit: Bandit) -> checks.FloatArray:
    """Return the distribution of a user's base algorithm; raise `BadDistribution` if it is not one over its arms."""
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
