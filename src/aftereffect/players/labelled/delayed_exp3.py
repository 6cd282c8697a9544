"""Delayed Exp3: exponential weights that apply each importance-weighted loss when it arrives.

One agent of Exp3-Coop (Cesa-Bianchi, Gentile, Mansour and Minora 2016, "Delay and cooperation in
nonstochastic bandits"), under the name DEW in Thune, Cesa-Bianchi and Seldin 2019, "Nonstochastic multiarmed
bandits with unrestricted delays". With D the sum of all delays its regret is of order √((KT + D) ln K): the
delay adds to the cost of K arms, whereas under anonymous feedback it multiplies that cost.
"""

import math
from typing import NamedTuple, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from aftereffect.bandits import exp3
from aftereffect.core import checks, effects, kernel, random
from aftereffect.core.kernel import FED, OWN, FloatState, WordState
from aftereffect.players.base import LabelledKernelPlayer
from aftereffect.players.kernels import begin_ask
from aftereffect.players.limits import Range


class DelayedExp3Params(NamedTuple):
    """base: η. max_delay: d. span: the range of a loss."""

    base: exp3.Exp3Params
    max_delay: int
    span: effects.Effects


# The state must not hold infinities, which JSON cannot represent.
MOST = 1e300

# state, after what every player has: the round; 1/q of the arm played, for the d+1 latest rounds; the state
# of an Exp3.
ROUND, INVERSES = OWN, OWN + 1


def size(params: DelayedExp3Params, n_arms: int) -> int:
    """A scalar, d+1 inverse probabilities, the weights."""
    return INVERSES + params.max_delay + 1 + exp3.size(n_arms)


def begin(params: DelayedExp3Params, n_arms: int, state: FloatState) -> None:
    """Write the state before round 1, with equal weights."""
    kernel.bandit_start(params.base, n_arms, state[INVERSES + params.max_delay + 1 :])


def ask(params: DelayedExp3Params, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Draw an arm from q_t and store 1/q_t of that arm."""
    begin_ask(state)
    weights = state[INVERSES + params.max_delay + 1 :]
    arm = kernel.bandit_draw(params.base, n_arms, weights, random.uniform(rng[random.ARMS]))
    inverse = weights[2 * n_arms] / weights[arm]
    state[INVERSES + int(state[ROUND]) % (params.max_delay + 1)] = min(inverse, MOST)
    return arm


def tell_one(
    params: DelayedExp3Params, n_arms: int, state: FloatState, rng: WordState, played: int, arm: int, loss: float
) -> int:
    """L̂(I_s) += ℓ_s/q_s(I_s), with the probability q_s(I_s) of the arm when it was drawn."""
    if loss != loss:
        return 0
    state[FED] = effects.fed_loss(params.span, 0, loss)
    if state[FED] == 0.0:
        return 1
    step = params.base.learning_rate * state[FED] * state[INVERSES + played % (params.max_delay + 1)]
    exp3.lower(n_arms, state[INVERSES + params.max_delay + 1 :], arm, step)
    return 1


kernel.register(DelayedExp3Params, kernel.PlayerKernel(size, begin, ask, tell_one, labelled=True))


class DelayedExp3(LabelledKernelPlayer):
    """Exp3 under labelled delays: q_t(i) ∝ exp(−η Σ ℓ_s 1{I_s = i}/q_s(i)), summed over the plays s reported
    before t.

    learning_rate: η > 0. max_delay: d; a play is reported at most d rounds after its own round.
    direction, low, high, seed: as for every player; the range is that of the whole effect of one play.

    >>> player = DelayedExp3(2, learning_rate=0.5, max_delay=1, seed=7)
    >>> arm = player.ask()
    >>> player.tell([]).updates                     # nothing is known yet
    0
    >>> later = player.ask()
    >>> player.tell([(1, 1.0)]).updates             # q_1 was (1/2, 1/2), so its L̂ is 2: odds of e⁻¹ to 1
    1
    >>> float(player.probabilities[arm].round(6))
    0.268941

    References: Cesa-Bianchi et al. (2016), Section 6; Thune et al. (2019) for the order of the bound. The constants of
    the bound and the tuning are this library's.
    """

    def __init__(self, n_arms: int, *, learning_rate: float, max_delay: int, **common: Unpack[Range]) -> None:
        self.learning_rate = checks.real("learning_rate", learning_rate, above=0.0)
        self.max_delay = d = checks.integer("max_delay", max_delay, low=0)
        base = exp3.Exp3Params(self.learning_rate)
        super().__init__(n_arms, DelayedExp3Params(base, d, self.init_common(**common)))

    @classmethod
    def tuned(
        cls, n_arms: int, *, max_delay: int, horizon: int, total_delay: float | None = None, **common: Unpack[Range]
    ) -> Self:
        """Return the player with the η that minimises `regret_bound`: √(ln K/(eKT/2 + D)), at most 1/(2ed).

        total_delay: D, the sum of the delays of all T = `horizon` plays; dT unless given.
        """
        n_arms, max_delay, horizon = checks.sizes(n_arms, max_delay, horizon)
        whole = max_delay * horizon if total_delay is None else checks.real("total_delay", total_delay, low=0.0)
        rate = math.sqrt(math.log(n_arms) / (0.5 * math.e * n_arms * horizon + whole))
        if max_delay > 0:
            rate = min(rate, 0.5 / (math.e * max_delay))
        return cls(n_arms, learning_rate=rate, max_delay=max_delay, **common)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The distribution q of the next arm, given the losses reported so far."""
        weights = self._numbers[-exp3.size(self.n_arms) :]
        return np.array(weights[: self.n_arms] / weights[2 * self.n_arms])

    def regret_bound(self, n: int, total_delay: float | None = None) -> float:
        """Return ln K/η + η(eKn/2 + D) times the range, a bound on the regret in whole losses; needs η ≤ 1/(2ed).

        total_delay: D, the sum of the delays; dn unless given. For the regret in composite losses, which are cut off at
            the horizon, add d.
        """
        n = checks.integer("n", n, low=0)
        d = self._params.max_delay
        whole = d * n if total_delay is None else checks.real("total_delay", total_delay, low=0.0)
        eta = self.learning_rate
        checks.real("learning_rate", eta, high=0.5 / (math.e * d) * (1.0 + 1e-12) if d else None)
        bound = math.log(self.n_arms) / eta + eta * (0.5 * math.e * self.n_arms * n + whole)
        return bound * (self.effects.hi - self.effects.lo)
