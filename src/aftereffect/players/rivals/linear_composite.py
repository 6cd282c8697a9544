"""Linear composite losses with known coefficients (Dekel, Ding, Koren and Peres 2014).

The total of round t is Σ_i a_i ℓ_{t−i}(x_{t−i}), with known coefficients a_0..a_m that are the same for all arms. Each
loss can then be reconstructed: with d = min{i : a_i ≠ 0}, subtract from the total of round t the contributions of the
rounds before t−d, whose losses are already known; what remains is a_d times the loss of round t−d. This reduces the
problem to feedback with a fixed delay d, for which d+1 copies of a base algorithm take turns. Section 2 of the paper
mentions these losses as a special case of composite losses; there the coefficients are not known.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from aftereffect.bandits.kernel_bandit import KernelBandit, kernel_base
from aftereffect.core import checks, effects, kernel, random
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState
from aftereffect.players.base import KernelPlayer, tuned_base
from aftereffect.players.limits import Common, Limits


class LinearCompositeParams(NamedTuple):
    """base: the parameters of the base algorithm; base_size: the length of its state. lags: a_d, a_{d+1}, ..., a_m."""

    base: Any
    base_size: int
    delay: int
    lags: FloatArray
    limits: Limits


# state, after what every player has: the round; the latest m−d+1 reconstructed losses; the latest d+1 arms;
# then the states of d+1 bases. Copy s mod (d+1) plays round s.
ROUND, LOSSES = OWN, OWN + 1


def size(params: LinearCompositeParams, n_arms: int) -> int:
    """One scalar, m−d+1 losses, d+1 arms, the states of d+1 bases."""
    return LOSSES + len(params.lags) + (params.delay + 1) * (1 + params.base_size)


def begin(params: LinearCompositeParams, n_arms: int, state: FloatState) -> None:
    """Write the state before round 1; losses before round 1 are 0."""
    bases = LOSSES + params.lags.shape[0] + params.delay + 1
    for copy in range(params.delay + 1):
        kernel.bandit_start(params.base, n_arms, state[bases + copy * params.base_size :])


def ask(params: LinearCompositeParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Draw an arm from the copy that plays this round."""
    state[DREW] = 1.0
    state[ROUND] += 1.0
    copies = params.delay + 1
    copy = int(state[ROUND]) % copies
    arms = LOSSES + params.lags.shape[0]
    base = state[arms + copies + copy * params.base_size :]
    arm = kernel.bandit_draw(params.base, n_arms, base, random.uniform(rng[random.ARMS]))
    state[arms + copy] = arm
    return arm


def tell(params: LinearCompositeParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Reconstruct the loss of round t−d and feed it to the copy that played that round."""
    span = params.limits.span
    d = params.delay
    kept = params.lags.shape[0]
    played = int(state[ROUND]) - d
    if played < 1:
        return 0
    slot = LOSSES + played % kept
    # If the total is missing, the loss is taken to be the middle of the range.
    state[slot] = span.lo + 0.5 * (span.hi - span.lo)
    if total != total:
        return 0
    older = 0.0
    for k in range(1, kept):
        # Losses of rounds before the first are 0.
        older += params.lags[k] * state[LOSSES + (played + kept - k) % kept]
    loss = (total - older) / params.lags[0]
    # The true loss lies in the range, so clipping can only reduce the error.
    state[slot] = min(max(loss, span.lo), span.hi)
    state[FED] = effects.fed_loss(span, 0, state[slot])
    arms = LOSSES + kept
    copy = played % (d + 1)
    base = state[arms + d + 1 + copy * params.base_size :]
    kernel.bandit_update(params.base, n_arms, base, int(state[arms + copy]), state[FED])
    return 1


kernel.register(LinearCompositeParams, kernel.PlayerKernel(size, begin, ask, tell))


class LinearComposite(KernelPlayer):
    """Plays d+1 copies of `bandit` in turn; each is fed the losses of its own rounds, reconstructed from the totals.

    With z_s = ℓ_s(x_s), d = min{i : a_i ≠ 0} and z_s = 0 for rounds before the first,

        z_{t−d} = (total_t − Σ_{i>d} a_i z_{t−i})/a_d,    fed to the copy of round t−d, the next to play.

    The published text indexes both z and the copy by t instead of t−d. For d = 0 that is the same; otherwise it is
    taken to be a misprint. The regret is of order √((d+1)KT ln K) with Exp3: the regrets of the copies add up.

    The bound does not account for errors in the reconstruction: an error in one loss enters later losses with the
    factors −a_i/a_d. `error_growth` is the factor by which errors change per round; below 1 they vanish. Above 1
    rounding errors alone eventually ruin the reconstruction (at 3, within 35 rounds), and so do slightly wrong
    coefficients or a single missing total, for which the middle of the range is used.

    bandit: the base algorithm, in kernel form; it is copied d+1 times.
    coefficients: a_0..a_m, not all 0.
    direction, low, high: "minimize" or "maximize"; the range of ℓ itself, before the coefficients are applied.
    out_of_range, seed: as for the wrapper.

    >>> from aftereffect import Exp3
    >>> player = LinearComposite(Exp3(n_arms=2, learning_rate=0.1), coefficients=[0.75, 0.25], seed=7)
    >>> [(player.ask(), player.tell(total))[1].fed_loss for total in (0.75, 0.625)]      # 3/8 over 3/4
    [1.0, 0.5]
    >>> round(player.error_growth, 6)
    0.333333

    Reference: Dekel, Ding, Koren and Peres, "Online learning with composite loss functions" (COLT 2014).
    """

    def __init__(self, bandit: KernelBandit, *, coefficients: ArrayLike, **common: Unpack[Common]) -> None:
        inside = kernel_base(bandit)
        row = checks.array("coefficients", coefficients, shape=("d+1",))
        self.delay = first_lag(row)
        self.coefficients = row.tolist()
        limits = self.limits(len(row), **common)
        lo, hi, _ = limits.span
        margin = effects.ROUNDING * (hi - lo) * float(np.abs(row).sum())
        self._least, self._most = np.minimum(row * lo, row * hi).sum(), np.maximum(row * lo, row * hi).sum()
        limits = limits._replace(least=float(self._least - margin), most=float(self._most + margin))
        length = kernel.BANDITS[type(inside.params)].size(inside.n_arms)
        lags = checks.owned(np.array(row[self.delay :]))
        super().__init__(inside, LinearCompositeParams(inside.params, length, self.delay, lags, limits))

    def refusal(self) -> str:
        """Return the rule for a total, for error messages."""
        return f"total must lie in [{self._least:g}, {self._most:g}], the range implied by the coefficients"

    @classmethod
    def tuned(
        cls, n_arms: int, *, horizon: int, coefficients: Sequence[float], base: str = "exp3", **common: Unpack[Common]
    ) -> Self:
        """Return the player whose copies are tuned to T/(d+1) updates each."""
        copies = first_lag(checks.array("coefficients", coefficients, shape=("d+1",))) + 1
        bandit = tuned_base(base, n_arms, checks.integer("horizon", horizon, low=1) // copies)
        return cls(bandit, coefficients=coefficients, **common)

    @property
    def error_growth(self) -> float:
        """The asymptotic growth factor of errors per round: the largest absolute root of a_d x^{m−d} + ... + a_m."""
        roots = np.roots(self._params.lags)
        return float(np.abs(roots).max()) if roots.size else 0.0


def first_lag(coefficients: FloatArray) -> int:
    """Return d = min{i : a_i ≠ 0}.

    >>> first_lag(np.array([0.0, 0.5, 0.5]))
    1
    """
    found = np.flatnonzero(coefficients)
    if found.size == 0:
        raise InvalidArgument(f"coefficients must not all be 0, but got {coefficients.tolist()}")
    return int(found[0])
