"""Thompson sampling with normal posteriors: each arm is drawn with the probability that it is best.

It is designed for losses drawn from one law per arm, and has no guarantee on others. The probabilities are computed, by
numerical integration, not sampled, so that one uniform number draws the arm and every engine draws the same.
"""

import math
from typing import NamedTuple

from aftereffect.bandits.kernel_bandit import Unguaranteed
from aftereffect.core import checks, kernel
from aftereffect.core.kernel import FloatState, helper
from aftereffect.core.random import scan
from aftereffect.core.real import exp, normal_cdf


class GaussianThompsonParams(NamedTuple):
    """No parameters; the type identifies the algorithm."""


# state: the number of losses N of each arm in [0, K), their means in [K, 2K), the distribution in [2K, 3K); then the
# sum of squared deviations of the losses from the means of their arms.

REACH, STEPS = 6, 4
"""The integral over a standard normal number goes from −6 to 6, in steps of 1/4."""
LEAST, CERTAIN = 1e-10, 6.0
"""Terms below LEAST do not count; a normal number is never above CERTAIN."""


def size(n_arms: int) -> int:
    """Three numbers per arm, one scalar."""
    return 3 * n_arms + 1


def start(params: GaussianThompsonParams, n_arms: int, state: FloatState) -> None:
    """No arm has been played; all are equally likely."""
    for i in range(3 * n_arms + 1):
        state[i] = 1.0 / n_arms if 2 * n_arms <= i < 3 * n_arms else 0.0


def draw(params: GaussianThompsonParams, n_arms: int, state: FloatState, u: float) -> int:
    """Return the arm in whose interval u lies."""
    return scan(state[2 * n_arms :], n_arms, u)


def update(params: GaussianThompsonParams, n_arms: int, state: FloatState, arm: int, loss: float) -> None:
    """Record the loss and compute the distribution."""
    state[arm] += 1.0
    before = loss - state[n_arms + arm]
    state[n_arms + arm] += before / state[arm]
    state[3 * n_arms] += before * (loss - state[n_arms + arm])
    fewest, played = state[0], 0.0
    for i in range(n_arms):
        fewest = min(fewest, state[i])
        played += state[i]
    variance = 0.0 if fewest < 2.0 else max(state[3 * n_arms] / (played - n_arms), 1e-300)
    total = 0.0
    for i in range(n_arms):
        weight = 1.0 if state[i] == fewest else 0.0
        if fewest >= 2.0:
            weight = chance_of_best(n_arms, state, i, variance)
        state[2 * n_arms + i] = weight
        total += weight
    for i in range(n_arms):
        state[2 * n_arms + i] /= total


@helper
def chance_of_best(n_arms: int, state: FloatState, arm: int, variance: float) -> float:
    """Return ∫ φ(z) Π_j P(arm j has a larger mean than m + sz) dz, up to a factor common to all arms."""
    spread = math.sqrt(variance / state[arm])
    chance = 0.0
    for k in range(-REACH * STEPS, REACH * STEPS + 1):
        z = k / STEPS
        point = state[n_arms + arm] + spread * z
        others = exp(-0.5 * z * z)
        for j in range(n_arms):
            x = (state[n_arms + j] - point) / math.sqrt(variance / state[j])
            if j != arm and x < CERTAIN and others > LEAST:
                others *= normal_cdf(x)
        chance += others
    return chance


def probabilities(params: GaussianThompsonParams, n_arms: int, state: FloatState, q: FloatState) -> None:
    """Copy the distribution."""
    for i in range(n_arms):
        q[i] = state[2 * n_arms + i]


kernel.register(GaussianThompsonParams, kernel.BanditKernel(size, start, draw, update, probabilities))


class GaussianThompson(Unguaranteed):
    """Thompson sampling for losses with normal noise of one unknown variance.

    With N_i losses of arm i, of mean m_i, and the pooled variance v of the losses around the means of their arms, the
    mean of arm i is taken as normal with mean m_i and variance v/N_i, and each arm is drawn with the probability that
    its mean is the least. Until every arm has two losses, the arms with the fewest are drawn.

    >>> bandit = GaussianThompson(n_arms=2)
    >>> for arm, loss in ((0, 0.25), (1, 0.5), (0, 0.75), (1, 1.0)):
    ...     bandit.update(arm, loss)
    >>> bandit.probabilities.round(4)            # means ½ and ¾, v = ⅛: Φ(¼/√(⅛/2 + ⅛/2)) = Φ(0.7071)
    array([0.7602, 0.2398])

    Reference: Thompson, "On the likelihood that one unknown probability exceeds another", Biometrika 25 (1933);
    Honda and Takemura, "Optimality of Thompson sampling for Gaussian bandits depends on priors" (2014).
    """

    @checks.by_keyword
    def __init__(self, n_arms: int) -> None:
        super().__init__(n_arms, GaussianThompsonParams())
