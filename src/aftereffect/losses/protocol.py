"""Loss sequences as the paper defines them (Section 2): oblivious, composite, charged over d+1 rounds.

    round           0    1    2    3    4         d = 2
    play in 0       s0   s1   s2                  component s of the arm played in round t
    play in 1            s0   s1   s2             is charged in round t + s
    play in 2                 s0   s1   s2
    total           Σ    Σ    Σ    Σ    Σ         the player observes only the sum of each column

A `Losses` object is defined by a kernel, whose `spread` adds the components of one play to a buffer
(`core/kernel.py`). **The order of summation is part of the contract**, since all engines must agree bit for bit:
a total starts at 0.0, and plays add their components in the order in which they were played. Charges after the
horizon are never observed.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aftereffect.core import checks, kernel
from aftereffect.core.checks import FloatArray
from aftereffect.core.effects import effects
from aftereffect.core.errors import AftereffectWarning, InvalidArgument, InvalidLosses, OutOfTurn

# Rounds per call of compiled code: enough that the call itself costs little, few enough for the first-level cache.
CHUNK = 2048


@kernel.helper
def carry_over(pending: FloatArray, delay: int, rounds: int) -> None:
    """Move what is due after the first `rounds` rounds to the front, and clear the rest."""
    for k in range(delay):
        pending[k] = pending[rounds + k]
    for k in range(delay, delay + rounds):
        pending[k] = 0.0


def play_rounds(
    params: Any, first: int, arms: NDArray[np.int64], max_delay: int, pending: FloatArray, totals: FloatArray
) -> None:
    """Play `arms` from round `first` on: write the totals, and leave in `pending` the charges of later rounds."""
    rounds = len(arms)
    for k in range(rounds):
        kernel.spread(params, first + k, arms[k], pending, k)
        totals[k] = pending[k]
    carry_over(pending, max_delay, rounds)


def write_components(params: Any, horizon: int, n_arms: int, max_delay: int, flat: FloatArray) -> None:
    """Write all components, ordered by round, arm and delay, into `flat`, which must be zeros."""
    for t in range(horizon):
        for arm in range(n_arms):
            kernel.spread(params, t, arm, flat, (t * n_arms + arm) * (max_delay + 1))


class Losses:
    """A sequence of losses for T = `horizon` rounds, d = `max_delay` and K = `n_arms`, fixed in advance.

    params: the NamedTuple whose type identifies the kernel (register your own with `core.kernel.register`).
    direction, low, high: whether effects are losses or rewards, and the range of the whole effect of one play.
    means: the expected whole effect of a play of each arm, if known and the same in every round; else None.
    recipe: a function from a seed to a fresh draw, for random losses; None for fixed ones.

    To build one, use `CompositeLosses`, the functions of `spreads.py` and `tables.py`, or `hard`.
    """

    def __init__(
        self,
        params: Any,
        *,
        horizon: int,
        max_delay: int,
        n_arms: int,
        direction: str = "minimize",
        low: float = 0.0,
        high: float = 1.0,
        means: ArrayLike | None = None,
        recipe: "Callable[[int], Losses] | None" = None,
    ) -> None:
        """Check the sizes; the kernel's own parameters must be checked by the function that builds them."""
        if type(params) not in kernel.LOSSES:
            raise InvalidArgument(
                f"params must be of a type registered with a LossKernel, but got {checks.shown(type(params))}"
            )
        self.horizon = checks.integer("horizon", horizon, low=1)
        self.max_delay = checks.integer("max_delay", max_delay, low=0)
        self.n_arms = checks.integer("n_arms", n_arms, low=2)
        # Small problems, such as examples, are exempt.
        if self.n_arms > max(self.horizon, 10):
            text = f"losses have more arms than rounds, {self.n_arms} and {self.horizon}: rounds are the first axis"
            warnings.warn(text, AftereffectWarning, stacklevel=4)
        self.effects = effects(direction, low, high)
        # The sum over the horizon must not overflow.
        checks.real("horizon * (high - low)", self.horizon * (self.effects.hi - self.effects.lo))
        self.direction = direction
        self.low = float(low)
        self.high = float(high)
        known = None if means is None else checks.frozen(checks.array("means", means, shape=(self.n_arms,)))
        self.means: FloatArray | None = known
        self.params = params
        self._recipe = recipe
        self._arm_sums: FloatArray | None = None

    @property
    def stochastic(self) -> bool:
        """Whether `redraw` can return a fresh draw of these losses."""
        return self._recipe is not None

    def redraw(self, seed: int) -> "Losses":
        """Return a fresh draw from the same distribution."""
        seed = checks.integer("seed", seed, low=0)
        if self._recipe is None:
            raise InvalidLosses(f"losses must have a stochastic recipe to be redrawn, but {self!r} is fixed")
        return self._recipe(seed)

    def components(self) -> FloatArray:
        """Return all components, shape (T, d+1, K). The array is large: use it for small problems only."""
        flat = np.zeros(self.horizon * self.n_arms * (self.max_delay + 1))
        write = kernel.compiled(write_components, self.params)
        write(self.params, self.horizon, self.n_arms, self.max_delay, flat)
        by_arm = flat.reshape(self.horizon, self.n_arms, self.max_delay + 1)
        return np.ascontiguousarray(by_arm.transpose(0, 2, 1))

    def totals(self, arms: ArrayLike) -> FloatArray:
        """Return the T totals observed if `arms` are played, one per round."""
        return self._play(self._checked_arms(arms))

    def arm_totals(self) -> FloatArray:
        """Return the totals of always playing each arm, shape (T, K)."""
        totals = np.empty((self.horizon, self.n_arms))
        for arm in range(self.n_arms):
            totals[:, arm] = self._play(np.full(self.horizon, arm))
        return totals

    def arm_sums(self) -> FloatArray:
        """Return, for each arm, the sum of totals within the horizon if it is always played, shape (K,)."""
        if self._arm_sums is None:
            sums = [self._play(np.full(self.horizon, arm)).sum() for arm in range(self.n_arms)]
            self._arm_sums = checks.owned(np.array(sums))
        return self._arm_sums

    def best_arm(self) -> int:
        """Return the arm with the least `arm_sums` (for rewards the greatest); the first one in case of ties."""
        sums = self.arm_sums()
        return int(sums.argmax() if self.effects.maximize else sums.argmin())

    def regret(self, arms: ArrayLike) -> float:
        """Return R_T of Section 2: the sum of totals of `arms` minus that of the best arm; for rewards, the reverse."""
        played, best = float(self.totals(arms).sum()), float(self.arm_sums()[self.best_arm()])
        return best - played if self.effects.maximize else played - best

    def stream(self) -> "LossStream":
        """Return a stream that plays these losses round by round."""
        return LossStream(self)

    def _checked_arms(self, arms: ArrayLike) -> NDArray[np.int64]:
        given = checks.as_array("arms", arms)
        if given.dtype.kind not in "iu" or given.shape != (self.horizon,):
            raise InvalidArgument(
                f"arms must be {self.horizon} whole numbers, one per round, but got {given.dtype}, shape {given.shape}"
            )
        bad = (given < 0) | (given >= self.n_arms)
        if bad.any():
            t = int(bad.argmax())
            raise InvalidArgument(f"arms must lie in 0..{self.n_arms - 1}, but arms[{t}] is {given[t]}")
        return given.astype(np.int64, order="C")

    def _play(self, arms: NDArray[np.int64]) -> FloatArray:
        """Return the totals of checked arms, computed chunk by chunk."""
        play = kernel.compiled(play_rounds, self.params)
        chunk = min(self.horizon, max(CHUNK, self.max_delay))
        pending, totals = np.zeros(chunk + self.max_delay), np.empty(self.horizon)
        for a in range(0, self.horizon, chunk):
            play(self.params, a, arms[a : a + chunk], self.max_delay, pending, totals[a : a + chunk])
        return totals

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the arrays read-only again, as compiled code expects: pickle does not preserve the flag."""
        self.__dict__.update(state)
        parts = (checks.owned(part) if isinstance(part, np.ndarray) else part for part in self.params)
        self.params = type(self.params)(*parts)

    def __repr__(self) -> str:
        sizes = f"horizon={self.horizon}, max_delay={self.max_delay}, n_arms={self.n_arms}"
        return f"{type(self).__name__}({type(self.params).__name__}, {sizes}, direction={self.direction!r})"


class LossStream:
    """Losses played round by round: `play(arm)` returns the next round's total; `round` counts the rounds played."""

    def __init__(self, losses: Losses) -> None:
        self.losses = losses
        self.round = 0
        self._chunk = max(CHUNK, losses.max_delay)
        self._pending = np.zeros(self._chunk + losses.max_delay)
        self._at = 0
        self._spread = kernel.entry(kernel.spread, losses.params, 0, 0, self._pending, 0)

    def play(self, arm: int) -> float:
        """Play `arm` and return the total of this round; raise `OutOfTurn` after the last round."""
        losses = self.losses
        arm = checks.integer("arm", arm, low=0, high=losses.n_arms - 1)
        if self.round >= losses.horizon:
            raise OutOfTurn(f"play must be called at most horizon={losses.horizon} times, but all rounds are played")
        if self._at == self._chunk:
            owed = losses.max_delay
            self._pending[:owed] = self._pending[self._chunk :].copy()
            self._pending[owed:] = 0.0
            self._at = 0
        self._spread(losses.params, self.round, arm, self._pending, self._at)
        total = float(self._pending[self._at])
        self.round += 1
        self._at += 1
        return total
