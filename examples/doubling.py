"""Algorithm 1 (Section 3) for an unknown horizon: the wrapper of Corollary 7 in epochs of doubling length.

    epoch       0         1                   2
    rounds      T₀        2T₀                 4T₀
    rate        η(T₀)     η(2T₀)              η(4T₀)        ...

β = 1/(2d+1) does not depend on the horizon, the learning rate η does. Each epoch restarts the base and the coins
(Definition 1 counts its rounds from 1), so its first clean window begins after its round d and ends in its round 2d+1
or later: a window never contains effects of an earlier epoch.
"""

import math
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from aftereffect import theory
from aftereffect.bandits.tsallis import TsallisFTRL, TsallisParams
from aftereffect.core import checks, kernel
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState, helper
from aftereffect.players.base import KernelPlayer, number
from aftereffect.players.kernels import block_size
from aftereffect.players.limits import Common, Limits
from aftereffect.players.wrapper.kernels import WrapperParams
from aftereffect.players.wrapper.wrapper import CompositeLossWrapper

# The epochs together have (2³² − 1)·T₀ rounds; after them the last one is repeated. The number of epochs is fixed, so
# that one compiled kernel serves every T₀.
EPOCHS = 32
LONGEST_FIRST = 1 << 32


class DoublingParams(NamedTuple):
    """bases: the base's parameters for each epoch. first_horizon: T₀. wrapper: the parameters of the first wrapper."""

    bases: tuple[TsallisParams, ...]
    first_horizon: int
    wrapper: WrapperParams
    limits: Limits


# state, after what every player has: the epoch, the rounds left in it; then the state of the epoch's wrapper.
EPOCH, LEFT, WRAPPER = OWN, OWN + 1, OWN + 2


@helper
def of_epoch(params: DoublingParams, epoch: int) -> WrapperParams:
    """Return the parameters of the wrapper of an epoch."""
    one = params.wrapper
    return WrapperParams(params.bases[epoch], one.base_at, one.coins, one.max_delay, one.limits, one.window_bounds)


def size(params: DoublingParams, n_arms: int) -> int:
    """Two scalars and the state of one wrapper, which has the same size in all epochs."""
    return WRAPPER + block_size(of_epoch(params, 0), n_arms)


def begin(params: DoublingParams, n_arms: int, state: FloatState) -> None:
    """Write the state before round 1 of epoch 0."""
    state[LEFT] = params.first_horizon
    kernel.player_begin(of_epoch(params, 0), n_arms, state[WRAPPER:])


def ask(params: DoublingParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Begin the next epoch if this one is over, and ask its wrapper."""
    if state[LEFT] == 0.0:
        state[EPOCH] = min(state[EPOCH] + 1.0, EPOCHS - 1.0)
        state[LEFT] = params.first_horizon * 2.0 ** state[EPOCH]
        for k in range(WRAPPER, state.shape[0]):
            state[k] = 0.0
        kernel.player_begin(of_epoch(params, int(state[EPOCH])), n_arms, state[WRAPPER:])
    arm = kernel.player_ask(of_epoch(params, int(state[EPOCH])), n_arms, state[WRAPPER:], rng)
    state[DREW] = state[WRAPPER + DREW]
    return arm


def tell(params: DoublingParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Tell the epoch's wrapper."""
    wrapper = of_epoch(params, int(state[EPOCH]))
    state[WRAPPER + FED] = math.nan
    told = kernel.player_tell(wrapper, n_arms, state[WRAPPER:], rng, arm, total)
    state[FED] = state[WRAPPER + FED]
    state[LEFT] -= 1.0
    return told


kernel.register(DoublingParams, kernel.PlayerKernel(size, begin, ask, tell))


class DoublingWrapper(KernelPlayer):
    """Algorithm 1 for an unknown horizon: epoch m = 0, 1, ... plays the tuned wrapper for T₀·2^m rounds.

    n_arms: K. max_delay: d ≥ 0.
    The base, Algorithm 2 at Corollary 7's rate, is restarted in each epoch with the rate for its length.
    first_horizon: T₀ ≥ 1; None, the default, means 8K(2d+1), about three blocks per arm, which is this library's
        choice.
    direction, low, high, out_of_range, seed: as for `CompositeLossWrapper`.

    *Bound.* Theorem 4 holds in each epoch, with one correction. Its proof bounds the loss in the first 2d rounds by
    that of their 2d plays. In a later epoch the d plays before it also contribute to these rounds, at most 1 each; its
    windows contain no effects of them. With n_m the number of rounds played in epoch m, and M + 1 epochs begun, for
    effects in [0, 1]

        R_T ≤ Σ_m min(Theorem 4 at (n_m, η_m), n_m) + M·d,    and R_T ≤ T.

    The last epoch may be incomplete: Theorem 4 then holds at n_M, with the rate for T₀2^M. For the Tsallis base each
    summand is at most c√((d+1)K·T₀2^m) (Corollary 7: c = 2√2 for d = 0, else 28). T > T₀(2^M − 1) implies
    Σ_{m≤M} √(T₀2^m) ≤ (√(2(T+T₀)) − √T₀)/(√2 − 1) ≤ √(2T)/(√2 − 1), the latter for T ≥ T₀/8, so that

        R_T ≤ √2/(√2−1) · c√((d+1)KT) + d·⌊log₂(T/T₀ + 1)⌋    for T ≥ T₀/8:

    not knowing T costs a factor of 3.42 in the bound, and d per restart.

    >>> player = DoublingWrapper(n_arms=2, max_delay=1, first_horizon=6, seed=7)
    >>> for _ in range(7):
    ...     arm = player.ask()
    ...     played = player.tell(0.5)
    >>> player.epoch, played.draw, round(player.learning_rate, 4)     # √(⌊12/3⌋/2)
    (1, True, 1.4142)

    Reference: the doubling trick (Cesa-Bianchi and Lugosi, "Prediction, Learning, and Games", 2006), applied to
    Theorem 4 and Corollary 7 of the paper; the correction for effects that cross from one epoch to the next is this
    library's.
    """

    def __init__(
        self, n_arms: int, *, max_delay: int, first_horizon: int | None = None, **common: Unpack[Common]
    ) -> None:
        K = checks.integer("n_arms", n_arms, low=2)
        self.max_delay = d = checks.integer("max_delay", max_delay, low=0)
        if first_horizon is None:
            first_horizon = min(8 * K * (2 * d + 1), LONGEST_FIRST)
        self.first_horizon = first = checks.integer("first_horizon", first_horizon, low=1, high=LONGEST_FIRST)
        rates = (theory.corollary_learning_rate(d, first << epoch) for epoch in range(EPOCHS))
        limits = self.limits(d + 1, **common)
        wrapper = CompositeLossWrapper.tuned(K, max_delay=d, horizon=first, **common).kernel()
        super().__init__(K, DoublingParams(tuple(map(TsallisParams, rates)), first, wrapper, limits))

    epoch: int = number(EPOCH, "The epoch of the latest round, from 0.", int)

    @property
    def learning_rate(self) -> float:
        """η in this epoch."""
        return float(self._params.bases[self.epoch].learning_rate)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The distribution from which the current arm was drawn or, after an update, the next of this epoch will be."""
        q = np.empty(self.n_arms)
        at = WRAPPER + self._params.wrapper.base_at
        kernel.bandit_probabilities(self._params.bases[self.epoch], self.n_arms, self._numbers[at:], q)
        return q

    def refusal(self) -> str:
        """Return the rule for a total, for error messages."""
        d, lo, hi = self.max_delay, self.effects.lo, self.effects.hi
        return (
            f"total must lie in [{(d + 1) * lo:g}, {(d + 1) * hi:g}], and in an update round keep the sum of the "
            f"last {d + 1} totals in [{(2 * d + 1) * lo:g}, {(2 * d + 1) * hi:g}] (Lemma 2)"
        )

    def regret_bound(self, horizon: int) -> float:
        """Return the bound on R_T at T = `horizon`, times hi; for nonnegative effects."""
        left = checks.integer("horizon", horizon, low=1)
        if self.effects.lo < 0.0:
            raise InvalidArgument(f"low must be at least 0 for Theorem 4 to hold, but got {self.low!r}")
        d, epoch, bound = self.max_delay, 0, 0.0
        while left > 0:
            rounds = min(left, self._params.first_horizon << epoch)
            bound += self._epoch_bound(rounds, epoch) + (d if epoch else 0)
            left -= rounds
            # All further epochs have the same length and rate.
            if epoch == EPOCHS - 1 and left >= rounds:
                whole, left = divmod(left, rounds)
                bound += whole * (self._epoch_bound(rounds, epoch) + d)
            epoch = min(epoch + 1, EPOCHS - 1)
        return min(bound, horizon) * self.effects.hi

    def _epoch_bound(self, rounds: int, epoch: int) -> float:
        """Return the bound of Theorem 4 for `rounds` rounds of an epoch, for effects in [0, 1]; at most `rounds`."""
        bandit = TsallisFTRL(self.n_arms, learning_rate=self._params.bases[epoch].learning_rate)
        return CompositeLossWrapper(bandit, max_delay=self.max_delay, seed=0).regret_bound(rounds)
