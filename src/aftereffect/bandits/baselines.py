"""What many people would run: uniform play, ε-greedy, UCB1 and Thompson sampling.

All but uniform play are designed for losses drawn independently from the same laws in every round; against an adversary
they have no guarantee, and Theorem 4 gives no useful bound for the wrapper around them.
"""

import math
from typing import Any, NamedTuple

from aftereffect.bandits.kernel_bandit import KernelBandit, start_uniform, stored_draw, stored_probabilities
from aftereffect.core import checks, kernel
from aftereffect.core.kernel import FloatState, helper
from aftereffect.core.real import exp, normal_cdf


class UniformParams(NamedTuple):
    """No parameters; the type identifies the algorithm."""


def uniform_size(n_arms: int) -> int:
    """K probabilities."""
    return n_arms


def uniform_start(params: Any, n_arms: int, state: FloatState) -> None:
    """All arms are equally likely."""
    start_uniform(n_arms, 0, state)


def uniform_draw(params: Any, n_arms: int, state: FloatState, u: float) -> int:
    """Return ⌊uK⌋; u < 1, but uK may round up to K."""
    return min(int(u * n_arms), n_arms - 1)


def uniform_update(params: Any, n_arms: int, state: FloatState, arm: int, loss: float) -> None:
    """Do nothing."""


kernel.register(
    UniformParams, kernel.BanditKernel(uniform_size, uniform_start, uniform_draw, uniform_update, stored_probabilities)
)


class Uniform(KernelBandit):
    """Plays every arm with probability 1/K in every round.

    >>> Uniform(n_arms=4).probabilities
    array([0.25, 0.25, 0.25, 0.25])
    """

    def __init__(self, n_arms: int) -> None:
        super().__init__(n_arms, UniformParams())

    def stability(self) -> float:
        """Return 0: the distribution never changes."""
        return 0.0

    def regret_bound(self, n: int) -> float:
        """Return n(1 − 1/K): all arms but one may lose 1 in every round."""
        return checks.integer("n", n, low=0) * (1.0 - 1.0 / self.n_arms)


class Unguaranteed(KernelBandit):
    """A base algorithm without a guarantee for all losses: its bounds are those that hold for every algorithm."""

    def stability(self) -> float:
        """Return 1, which holds for every algorithm: one update may move all the mass."""
        return 1.0

    def regret_bound(self, n: int) -> float:
        """Return n, the trivial bound: an adversary that knows the algorithm can make its regret linear in n."""
        return float(checks.integer("n", n, low=0))


class EpsilonGreedyParams(NamedTuple):
    """ε, the probability of a random arm."""

    epsilon: float


# state: the distribution in [0, K), the number of losses of each arm in [K, 2K), their sums in [2K, 3K).


def greedy_size(n_arms: int) -> int:
    """Three numbers per arm."""
    return 3 * n_arms


def greedy_start(params: EpsilonGreedyParams, n_arms: int, state: FloatState) -> None:
    """No arm has been played; all are equally likely."""
    start_uniform(n_arms, 2 * n_arms, state)


def greedy_update(params: EpsilonGreedyParams, n_arms: int, state: FloatState, arm: int, loss: float) -> None:
    """Record the loss; the arms of least mean share 1 − ε, and an arm never played counts as one of mean 0."""
    counts, sums = state[n_arms:], state[2 * n_arms :]
    counts[arm] += 1.0
    sums[arm] += loss
    least, ties = 2.0, 0
    for i in range(n_arms):
        mean = sums[i] / max(counts[i], 1.0)
        if mean < least:
            least, ties = mean, 0
        ties += mean == least
    for i in range(n_arms):
        leads = sums[i] / max(counts[i], 1.0) == least
        state[i] = params.epsilon / n_arms + (1.0 - params.epsilon) / ties * leads


kernel.register(
    EpsilonGreedyParams,
    kernel.BanditKernel(greedy_size, greedy_start, stored_draw, greedy_update, stored_probabilities),
)


class EpsilonGreedy(Unguaranteed):
    """Plays the arm of least mean loss with probability 1 − ε, else any arm with equal probabilities.

    With a fixed ε it explores for ever, so its regret grows linearly. Ties share the probability. An arm that was never
    played counts as one of mean loss 0, so each is tried early.

    epsilon: ε in [0, 1].

    >>> bandit = EpsilonGreedy(n_arms=2, epsilon=0.1)
    >>> bandit.update(0, 1.0)
    >>> bandit.probabilities
    array([0.05, 0.95])

    Reference: Sutton and Barto, "Reinforcement learning" (2018), Section 2.2.
    """

    def __init__(self, n_arms: int, *, epsilon: float = 0.1) -> None:
        self.epsilon = checks.real("epsilon", epsilon, low=0.0, high=1.0)
        super().__init__(n_arms, EpsilonGreedyParams(self.epsilon))


class UCB1Params(NamedTuple):
    """α, the width of the confidence interval."""

    width: float


# state: the counts N in [0, K), the sums of losses in [K, 2K), then n and the arm to play next.


def ucb1_size(n_arms: int) -> int:
    """K counts, K sums, two scalars."""
    return 2 * n_arms + 2


def ucb1_start(params: UCB1Params, n_arms: int, state: FloatState) -> None:
    """No arm has been played; arm 0 is next."""
    for i in range(2 * n_arms + 2):
        state[i] = 0.0


def ucb1_draw(params: UCB1Params, n_arms: int, state: FloatState, u: float) -> int:
    """Return the arm chosen by the latest update; u is not used."""
    return int(state[2 * n_arms + 1])


def ucb1_update(params: UCB1Params, n_arms: int, state: FloatState, arm: int, loss: float) -> None:
    """Record the loss, then choose the first arm never played, or else the first arm of least index."""
    state[arm] += 1.0
    state[n_arms + arm] += loss
    state[2 * n_arms] += 1.0
    spread = params.width * math.log(state[2 * n_arms])
    best = 0
    least = math.inf
    for i in range(n_arms):
        if state[i] == 0.0:
            best = i
            break
        index = state[n_arms + i] / state[i] - math.sqrt(spread / state[i])
        if index < least:
            best = i
            least = index
    state[2 * n_arms + 1] = best


def ucb1_probabilities(params: UCB1Params, n_arms: int, state: FloatState, q: FloatState) -> None:
    """1 for the arm to play next, 0 for the others."""
    for i in range(n_arms):
        q[i] = 0.0
    q[int(state[2 * n_arms + 1])] = 1.0


kernel.register(UCB1Params, kernel.BanditKernel(ucb1_size, ucb1_start, ucb1_draw, ucb1_update, ucb1_probabilities))


class UCB1(Unguaranteed):
    """Plays each arm once, then the arm of least index: mean loss minus a confidence width.

    On losses of one law its regret is of order Σ_i (ln n)/Δ_i for gaps Δ_i between the means. It is deterministic, so
    an oblivious adversary that knows the algorithm can make it lose in every round.

    After n updates, N_i of them with arm i and losses of sum S_i, the index is S_i/N_i − √(α ln n/N_i). Ties go to
    the first arm. The signs are reversed because these are losses, not rewards; an index below 0 is not clipped.

    width: α ≥ 0. Auer et al. use 2; smaller values are greedier and often better in practice; 0 plays the arm of least
        mean loss.

    >>> bandit = UCB1(n_arms=2)
    >>> bandit.update(0, 1.0)                    # the first arm has been played, the second not yet
    >>> bandit.probabilities
    array([0., 1.])
    >>> bandit.update(1, 0.5)                    # indices 1 − √(2 ln 2) and 0.5 − √(2 ln 2)
    >>> bandit.probabilities
    array([0., 1.])

    Reference: Auer, Cesa-Bianchi and Fischer, "Finite-time analysis of the multiarmed bandit problem",
    Machine Learning 47 (2002).
    """

    def __init__(self, n_arms: int, *, width: float = 2.0) -> None:
        self.width = checks.real("width", width, low=0.0)
        super().__init__(n_arms, UCB1Params(self.width))

    @property
    def counts(self) -> checks.FloatArray:
        """N: the number of updates with each arm."""
        return self._state[: self.n_arms].copy()


class GaussianThompsonParams(NamedTuple):
    """No parameters; the type identifies the algorithm."""


# state: the distribution in [0, K), the number of losses N of each arm in [K, 2K), their means in [2K, 3K); then the
# sum of squared deviations of the losses from the means of their arms.

REACH, STEPS = 6, 4
"""The integral over a standard normal number goes from −6 to 6, in steps of 1/4."""
LEAST, CERTAIN = 1e-10, 6.0
"""Terms below LEAST do not count; a normal number is never above CERTAIN."""


def thompson_size(n_arms: int) -> int:
    """Three numbers per arm, one scalar."""
    return 3 * n_arms + 1


def thompson_start(params: GaussianThompsonParams, n_arms: int, state: FloatState) -> None:
    """No arm has been played; all are equally likely."""
    start_uniform(n_arms, 2 * n_arms + 1, state)


def thompson_update(params: GaussianThompsonParams, n_arms: int, state: FloatState, arm: int, loss: float) -> None:
    """Record the loss and compute the distribution."""
    counts, means = state[n_arms:], state[2 * n_arms :]
    counts[arm] += 1.0
    before = loss - means[arm]
    means[arm] += before / counts[arm]
    state[3 * n_arms] += before * (loss - means[arm])
    fewest, played = counts[0], 0.0
    for i in range(n_arms):
        fewest = min(fewest, counts[i])
        played += counts[i]
    variance = 0.0 if fewest < 2.0 else max(state[3 * n_arms] / (played - n_arms), 1e-300)
    total = 0.0
    for i in range(n_arms):
        weight = 1.0 if counts[i] == fewest else 0.0
        if fewest >= 2.0:
            weight = chance_of_best(n_arms, counts, means, i, variance)
        state[i] = weight
        total += weight
    for i in range(n_arms):
        state[i] /= total


@helper
def chance_of_best(n_arms: int, counts: FloatState, means: FloatState, arm: int, variance: float) -> float:
    """Return ∫ φ(z) Π_j P(arm j has a larger mean than m + sz) dz, up to a factor common to all arms."""
    spread = math.sqrt(variance / counts[arm])
    chance = 0.0
    for k in range(-REACH * STEPS, REACH * STEPS + 1):
        z = k / STEPS
        point = means[arm] + spread * z
        others = exp(-0.5 * z * z)
        for j in range(n_arms):
            x = (means[j] - point) / math.sqrt(variance / counts[j])
            if j != arm and x < CERTAIN and others > LEAST:
                others *= normal_cdf(x)
        chance += others
    return chance


kernel.register(
    GaussianThompsonParams,
    kernel.BanditKernel(thompson_size, thompson_start, stored_draw, thompson_update, stored_probabilities),
)


class GaussianThompson(Unguaranteed):
    """Thompson sampling for losses with normal noise of one unknown variance.

    The probabilities are computed, by numerical integration, not sampled, so that one uniform number draws the arm and
    every engine draws the same.

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

    def __init__(self, n_arms: int) -> None:
        super().__init__(n_arms, GaussianThompsonParams())
