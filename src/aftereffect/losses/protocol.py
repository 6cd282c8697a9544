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

import copy
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aftereffect.core import checks, kernel
from aftereffect.core.checks import FloatArray
from aftereffect.core.effects import Effects, effects, extreme_parts
from aftereffect.core.errors import AftereffectWarning, InvalidArgument, InvalidLosses, OutOfTurn

Sizes = tuple[int, int, int]
Range = tuple[str, float, float]
Recipe: TypeAlias = "Callable[[int], Losses] | None"

# Rounds per call of compiled code: enough that the call itself costs little, few enough for the first-level cache.
CHUNK = 2048
TOLERANCE = 1e-9
"""The sum of a play's components may exceed the range by this fraction of it, to allow for rounding."""
STRETCH = 1 << 18
"""Components are checked in chunks of rounds with about this many numbers, to save memory."""
GUARD = 8
"""How many places beyond the d+1 of a play must stay empty when losses are checked."""


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


def write_components(params: Any, rounds: NDArray[np.int64], n_arms: int, width: int, flat: FloatArray) -> None:
    """Add the components of these rounds to `flat`, ordered by round, arm and delay, `width` numbers for each play."""
    for k in range(len(rounds)):
        for arm in range(n_arms):
            kernel.spread(params, rounds[k], arm, flat, (k * n_arms + arm) * width)


def check_parts(components: FloatArray, span: Effects, rounds: NDArray[np.int64] | None = None) -> None:
    """Raise an error that names the first play with a contiguous part whose sum is outside [lo, hi].

    components: of shape (rounds, d+1, K). rounds: their numbers; by default 0, 1, ...
    """
    stretch = max(1, STRETCH // (components.shape[1] * components.shape[2]))
    margin = TOLERANCE * (span.hi - span.lo)
    rounds = np.arange(len(components)) if rounds is None else rounds
    for first in range(0, len(components), stretch):
        part = components[first : first + stretch]
        # If one sign is not allowed, it is refused without a margin for rounding.
        wrong = (part < 0.0) if span.lo == 0.0 else (part > 0.0) if span.hi == 0.0 else None
        if wrong is not None and wrong.any():
            t, s, i = (int(n) for n in np.argwhere(wrong)[0])
            sign = "negative" if span.lo == 0.0 else "positive"
            raise InvalidLosses(
                f"components must not be {sign} where [low, high] spans [{span.lo:g}, {span.hi:g}], "
                f"but components[{rounds[first + t]}, {s}, {i}] is {float(part[t, s, i])!r}"
            )
        least, most = extreme_parts(part)
        # A sum that is not a number is not inside either.
        inside = (most <= span.hi + margin) & (least >= span.lo - margin)
        if not inside.all():
            t, i = (int(n) for n in np.argwhere(~inside)[0])
            value = least[t, i] if most[t, i] <= span.hi + margin else most[t, i]
            raise InvalidLosses(
                "every contiguous part of components[t, :, i] must sum to a number "
                f"in [{span.lo:g}, {span.hi:g}], but a part of components[{rounds[first + t]}, :, {i}] "
                f"sums to {float(value)!r}; low= and high= set the range"
            )


def noisy_range(least: FloatArray, most: FloatArray, limit: float) -> tuple[float, float]:
    """Return (low, high), in hundredths, for effects between two (d+1, K) arrays, with noise up to `limit` at lag 0."""
    bounds = np.stack([least, most])
    bounds[:, 0] += np.array([[-limit], [limit]])
    least, most = extreme_parts(bounds)
    return float(np.floor(100.0 * least.min()) / 100.0), float(np.ceil(100.0 * most.max()) / 100.0)


class Losses:
    """A sequence of losses for T = `horizon` rounds, d = `max_delay` and K = `n_arms`, fixed in advance.

    params: the NamedTuple whose type identifies the kernel (register your own with `core.kernel.register`).
    direction, low, high: whether effects are losses or rewards, and the range of the whole effect of one play.
    means: the expected whole effect of a play of each arm, if known and the same in every round; else None.
    recipe: a function from a seed to a fresh draw, for random losses; None for fixed ones.
    checked: whether all effects are known to lie in the range: after `check()`, and if this library made the losses.

    To build one, use `CompositeLosses`, the functions of `spreads.py` and `tables.py`, or `hard`.

    >>> from aftereffect import spreads
    >>> losses = spreads.delayed([[0.5, 1.0], [0.25, 0.0], [0.0, 0.5]], delays=1)
    >>> losses.horizon, losses.max_delay, losses.n_arms, losses.best_arm()
    (3, 1, 2, 0)
    >>> losses.totals([1, 0, 0])
    array([0.  , 1.  , 0.25])
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
        recipe: Recipe = None,
    ) -> None:
        """Check the sizes; `check()` checks what the kernel makes of its parameters."""
        self.costly = kernel.LOSSES[type(params)].costly
        self.n_arms, self.max_delay, self.horizon = checks.sizes(n_arms, max_delay, horizon)
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
        self.checked = False

    @classmethod
    def made(cls, params: Any, sizes: Sizes, span: Range, means: ArrayLike | None, recipe: Recipe) -> Self:
        """Return losses whose effects are in the range for sure; sizes: T, d and K. span: direction, low and high."""
        (horizon, max_delay, n_arms), (direction, low, high) = sizes, span
        settings: dict[str, Any] = {"horizon": horizon, "max_delay": max_delay, "n_arms": n_arms}
        losses = cls(params, **settings, direction=direction, low=low, high=high, means=means, recipe=recipe)
        losses.checked = True
        return losses

    # Whether effects depend on what was played before, so that only the engine `loop` can play them.
    reacts = False

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
        return np.ascontiguousarray(self.plays(np.arange(self.horizon)).transpose(0, 2, 1))

    def plays(self, rounds: NDArray[np.int64], guard: int = 0, times: int = 1) -> FloatArray:
        """Return the components of all plays of these rounds, added `times` times, shape (rounds, K, d+1+guard)."""
        width = self.max_delay + 1 + guard
        found = np.zeros((len(rounds), self.n_arms, width))
        write = kernel.compiled(write_components, self.params)
        for _ in range(times):
            write(self.params, rounds, self.n_arms, width, found.reshape(-1))
        return found

    def check(self, rounds: int | None = None) -> None:
        """Raise `InvalidLosses` if an effect leaves the range, or if the kernel does not do what engines rely on.

        rounds: check only so many, evenly spread over the horizon; by default all. The kernel must add to d+1 places
        only, and the same numbers whenever it is called, which is tested on some rounds. `simulate` and studies call
        this for all losses that they do not know to be right.
        """
        count = self.horizon if rounds is None else checks.integer("rounds", rounds, low=1, high=self.horizon)
        numbers = np.linspace(0, self.horizon - 1, count).round().astype(np.int64)
        step = max(1, STRETCH // ((self.max_delay + 1 + GUARD) * self.n_arms))
        for first in range(0, count, step):
            some = numbers[first : first + step]
            once = self.plays(some, GUARD)
            if once[:, :, self.max_delay + 1 :].any():
                raise InvalidLosses(
                    f"spread must add to pending[at] to pending[at + max_delay] only, max_delay={self.max_delay}, "
                    f"but that of {type(self.params).__name__} adds to other places"
                )
            check_parts(once[:, :, : self.max_delay + 1].transpose(0, 2, 1), self.effects, some)
            margin = TOLERANCE * (self.effects.hi - self.effects.lo)
            if first == 0 and (abs(self.plays(some, GUARD, times=2) - 2.0 * once) > margin).any():
                raise InvalidLosses(
                    "spread must add to pending, and the same numbers whenever it is called, "
                    f"but that of {type(self.params).__name__} called twice does not add up to twice the effect"
                )
        self.checked = self.checked or count == self.horizon

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
    """Losses played round by round: `play(arm)` returns the next round's total; `round` counts the rounds played.

    >>> stream = CompositeLosses([[[0.25, 1.0], [0.5, 0.0]], [[0.0, 0.5], [0.25, 0.0]]]).stream()
    >>> stream.play(0), stream.play(1), stream.round
    (0.25, 1.0, 2)
    """

    def __init__(self, losses: Losses) -> None:
        self.losses = losses
        self.round = 0
        self._chunk = max(CHUNK, losses.max_delay)
        self._pending = np.zeros(self._chunk + losses.max_delay)
        self._spread = kernel.entry(kernel.spread, losses.params, 0, 0, self._pending, 0)

    def play(self, arm: int) -> float:
        """Play `arm` and return the total of this round; raise `OutOfTurn` after the last round."""
        losses = self.losses
        arm = checks.integer("arm", arm, low=0, high=losses.n_arms - 1)
        if self.round >= losses.horizon:
            raise OutOfTurn(f"play must be called at most horizon={losses.horizon} times, but all rounds are played")
        at = self.round % self._chunk
        if at == 0 and self.round > 0:
            kernel.compiled(carry_over)(self._pending, losses.max_delay, self._chunk)
        self._spread(losses.params, self.round, arm, self._pending, at)
        self.round += 1
        return float(self._pending[at])


# Losses given component by component: ℓ_t^(s)(i) of Section 2 is `components[t, s, i]`.


class Dense(NamedTuple):
    """values[t, i, s] = ℓ_t^(s)(i): the delay is the last axis, so that one play's components are contiguous.

    They may be of single precision; sums are of double precision.
    """

    values: FloatArray


def spread_stored(params: Any, t: int, arm: int, pending: FloatArray, at: int) -> None:
    """Add the stored components."""
    for s in range(params.values.shape[2]):
        pending[at + s] += params.values[t, arm, s]


kernel.register(Dense, kernel.LossKernel(spread_stored))


class CompositeLosses(Losses):
    """Losses from an array of shape (T, d+1, K).

    With the default range [0, 1] this is the paper's assumption: components[t, s, i] >= 0, and the sum of
    components[t, :, i], which is ℓ_t(i), is at most 1. In general every contiguous part of components[t, :, i] must
    sum to a number in [min(low, 0), max(high, 0)] (`core/effects.py`).

    >>> components = np.zeros((3, 2, 2))
    >>> components[:, 0, 0] = 0.5               # arm 0 costs 1/2 at once
    >>> components[:, 1, 1] = 0.25              # arm 1 costs 1/4 one round later
    >>> losses = CompositeLosses(components)
    >>> losses.totals([0, 1, 0])
    array([0.5 , 0.  , 0.75])
    >>> losses.best_arm(), losses.regret([0, 1, 0])
    (1, 0.75)
    """

    def __init__(
        self, components: ArrayLike, *, direction: str = "minimize", low: float = 0.0, high: float = 1.0
    ) -> None:
        numbers = checks.array("components", components, shape=("T", "d+1", "K"), error=InvalidLosses, single=True)
        horizon, delays, n_arms = numbers.shape
        if horizon < 1 or delays < 1 or n_arms < 2:
            raise InvalidLosses(
                f"components must have shape (T, d+1, K) with T >= 1, d >= 0 and K >= 2, but got shape {numbers.shape}"
            )
        check_parts(numbers, effects(direction, low, high))
        params = Dense(checks.owned(numbers.transpose(0, 2, 1)))
        settings: dict[str, Any] = {"horizon": horizon, "max_delay": delays - 1, "n_arms": n_arms}
        super().__init__(params, **settings, direction=direction, low=low, high=high)
        self.checked = True


def stored(losses: Losses) -> Losses:
    """Return the same losses with all components stored, T (d+1) K numbers: a play is looked up, not computed.

    They play bit for bit alike.

    >>> from aftereffect.losses.spreads import random_split
    >>> losses = random_split([[1.0, 0.5], [0.25, 0.0]], max_delay=4, seed=3)
    >>> bool((stored(losses).totals([1, 0]) == losses.totals([1, 0])).all())
    True
    """
    twin = copy.copy(losses)
    twin.params = Dense(checks.owned(losses.plays(np.arange(losses.horizon))))
    return twin
