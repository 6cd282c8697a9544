"""Zimmert and Seldin 2020: follow the regularised leader with a hybrid of two entropies, under labelled delays.

"An optimal algorithm for adversarial bandits with arbitrary delays", AISTATS 2020. The Tsallis entropy accounts for
the K arms and the negative entropy for the delays. The regret is at most 4√(KT) + √(8 D ln K), with D the sum of all
delays, without knowledge of D, d or T.

The distribution has z(i) = x(i)^(−1/2) with a·z + b·ln z = L(i) − λ, for a = √t and b = 2/η_t; so z =
(b/a)·ω((L(i) − λ)/b + ln(a/b)) with ω the Wright omega function, and λ is the unique number for which x sums to 1.
With L measured from its minimum, Newton's method for λ starts at −a, where the best arm alone has mass 1, and decreases
monotonically to the root.
"""

import math
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import checks, effects, kernel, random
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.kernel import FED, OWN, FloatState, WordState, helper
from aftereffect.players.base import LabelledKernelPlayer
from aftereffect.players.kernels import begin_ask
from aftereffect.players.limits import Range

# The limits of the formulas for ω.
#
# Below TINY ω = e^y to the last bit: ω = e^y·e^{−ω}, and ω < 1e−17.
TINY = -40.0
# Above HUGE ln y / y² is below the last bit of y, and ω = y − ln y.
HUGE = 1e9


@helper
def wright_omega(y: float) -> float:
    """Return ω(y).

    Below −2 the equation is solved as ω = e^y·e^{−ω}, since y − ln ω would lose digits by cancellation. Above, the
    residual r = y − ω − ln ω is as exact as y itself, and the iteration converges with order four: two steps are
    enough from these starting values. Compared with 45-digit values the relative error is below 4e−16; where ω is
    smaller than the least double the result is 0.

    ω increases; it behaves as e^y for y → −∞, has ω(1) = 1, and behaves as y − ln y for y → ∞:

    >>> wright_omega(1.0), wright_omega(1.0 + math.e)
    (1.0, 2.718281828459045)
    >>> wright_omega(-800.0), wright_omega(1e300)
    (0.0, 1e+300)
    >>> [abs(wright_omega(y) + math.log(wright_omega(y)) - y) < 1e-15 for y in (-1.5, 0.0, 0.5)]
    [True, True, True]
    """
    return omega_step(y, omega_step(y, omega_start(y)))


@helper
def omega_start(y: float) -> float:
    """Return an approximation of ω(y) from which two steps are enough; ω(y) itself where steps are not used."""
    if y < TINY:
        return math.exp(y)
    if y > HUGE:
        return y - math.log(y)
    if y < -2.0:
        power = math.exp(y)
        w = power
        # Each Newton step doubles the number of correct digits; the first error is below w² < 0.02.
        for _ in range(3):
            decayed = power * math.exp(-w)
            w -= (w - decayed) / (1.0 + decayed)
        return w
    return math.exp((y - 1.0) * (2.0 / 3.0)) if y < 1.0 else y - math.log(y) + math.log(y) / y


@helper
def omega_step(y: float, w: float) -> float:
    """Return a better approximation of ω(y) than w."""
    if y < -2.0 or y > HUGE:
        return w
    r = y - w - math.log(w)
    q = 1.0 + w
    t = q * (q + r * (2.0 / 3.0))
    return w * (1.0 + (r / q) * (t - 0.5 * r) / (t - r))


TUNINGS = ("simple", "advanced")
# The state must not hold infinities, which JSON cannot represent.
MOST = 1e300


class ZimmertSeldinParams(NamedTuple):
    """max_delay: d. advanced: which tuning. span: the range of a loss."""

    max_delay: int
    advanced: bool
    span: effects.Effects


# state, after what every player has: the round t, the number of outstanding plays that count, D, the first round that
# has not been removed from the count; for the d+1 latest rounds 1/x of the arm played and whether the play counts; x
# and L of each arm.
ROUND, COUNT, DELAYS, KEPT, INVERSES = OWN, OWN + 1, OWN + 2, OWN + 3, OWN + 4


@helper
def arms_at(params: ZimmertSeldinParams) -> int:
    """Return where x begins; L follows it."""
    return INVERSES + 2 * (params.max_delay + 1)


def size(params: ZimmertSeldinParams, n_arms: int) -> int:
    """Four scalars, two numbers for each of the d+1 latest plays, two numbers per arm."""
    return arms_at(params) + 2 * n_arms


def begin(params: ZimmertSeldinParams, n_arms: int, state: FloatState) -> None:
    """Write the state before round 1."""
    state[KEPT] = 1.0
    for i in range(n_arms):
        state[arms_at(params) + i] = 1.0 / n_arms


def ask(params: ZimmertSeldinParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Add the outstanding plays to D, solve for x_t, and draw an arm."""
    begin_ask(state)
    t = int(state[ROUND])
    places = params.max_delay + 1
    state[DELAYS] += state[COUNT]
    inverse_rate = math.sqrt((1.0 if params.advanced else 2.0) * state[DELAYS] / math.log(n_arms))
    solve(n_arms, math.sqrt(t), 2.0 * inverse_rate, state[arms_at(params) :])
    if params.advanced:
        # From the next round on, plays older than 1/η_t rounds do not count.
        while t - state[KEPT] > inverse_rate:
            flag = INVERSES + places + int(state[KEPT]) % places
            # A play more than d rounds old has been reported, and its place in the state is reused.
            if t - state[KEPT] <= params.max_delay:
                state[COUNT] -= state[flag]
                state[flag] = 0.0
            state[KEPT] += 1.0
    x = state[arms_at(params) :]
    arm = random.scan(x, n_arms, random.uniform(rng[random.ARMS]))
    state[INVERSES + t % places] = min(1.0 / x[arm], MOST)
    state[INVERSES + places + t % places] = 1.0
    state[COUNT] += 1.0
    return arm


@helper
def solve(n_arms: int, a: float, b: float, arms: FloatState) -> None:
    """Write x, which precedes L: the minimiser of ⟨x, L⟩ − 2a Σ √x(i) + (b/2) Σ x(i) ln x(i) on the simplex."""
    least = kernel.least(n_arms, arms[n_arms:])
    shift = math.log(a / b) if b > 0.0 else 0.0
    multiplier = -a
    for _ in range(200):
        # ω of all arms, a step for each in turn: the processor computes several at a time, as they do not depend on
        # each other.
        for step in range(3 if b > 0.0 else 0):
            for i in range(n_arms):
                y = (arms[n_arms + i] - least - multiplier) / b + shift
                arms[i] = omega_start(y) if step == 0 else omega_step(y, arms[i])
        mass = 0.0
        slope = 0.0
        for i in range(n_arms):
            z = b / a * arms[i] if b > 0.0 else (arms[n_arms + i] - least - multiplier) / a
            x = 1.0 / (z * z)
            arms[i] = x
            mass += x
            slope += 2.0 * x / (a * z + b)
        further = multiplier - (mass - 1.0) / slope
        if not further < multiplier:
            return
        multiplier = further


def tell_one(
    params: ZimmertSeldinParams, n_arms: int, state: FloatState, rng: WordState, played: int, arm: int, loss: float
) -> int:
    """L(A_s) += ℓ_s/x_s(A_s), and the play is no longer outstanding."""
    places = params.max_delay + 1
    flag = INVERSES + places + played % places
    state[COUNT] -= state[flag]
    state[flag] = 0.0
    if loss != loss:
        return 0
    state[FED] = effects.fed_loss(params.span, 0, loss)
    at = arms_at(params) + n_arms + arm
    state[at] = min(state[at] + state[FED] * state[INVERSES + played % places], MOST)
    return 1


kernel.register(ZimmertSeldinParams, kernel.PlayerKernel(size, begin, ask, tell_one, labelled=True))


class ZimmertSeldin2020(LabelledKernelPlayer):
    """x_t = argmin over the simplex of ⟨x, L_t⟩ − 2√t Σ √x(i) + η_t⁻¹ Σ x(i) ln x(i).

    L_t is the sum of the importance-weighted losses ℓ_s/x_s(A_s) of the plays s reported before round t.

    tuning: "simple" has η_t⁻¹ = √(2D_t/ln K), with D_t the sum, over the rounds up to t, of the number of plays
        outstanding at the start of the round.
        "advanced" has η_t⁻¹ = √(D_t/ln K) and stops counting a play once it has been outstanding for more than η_t⁻¹
        rounds, so that a few very long delays do not spoil the rate; their losses are still used when they arrive.
    max_delay: d; a play is reported at most d rounds after its own round. It determines only the size of the state.
    direction, low, high, seed: as for every player; the range is that of the whole effect of one play.

    >>> player = ZimmertSeldin2020(2, max_delay=0, seed=7)
    >>> arm = player.ask()
    >>> told = player.tell([(1, 1.0)])               # x was (1/2, 1/2), so L of this arm is 2
    >>> later = player.ask()                         # without delays √2·(z(arm) − z(other)) = 2
    >>> x = player.probabilities
    >>> float(round(x[arm] ** -0.5 - x[1 - arm] ** -0.5, 12)) == round(2**0.5, 12)
    True

    Reference: Zimmert and Seldin (2020), Algorithm 1 with both of its tunings. The paper has no experiments.
    """

    def __init__(self, n_arms: int, *, max_delay: int, tuning: str = "simple", **common: Unpack[Range]) -> None:
        self.max_delay = d = checks.integer("max_delay", max_delay, low=0)
        self.tuning = checks.choice("tuning", tuning, TUNINGS)
        super().__init__(n_arms, ZimmertSeldinParams(d, tuning == "advanced", self.init_common(**common)))

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """x_t, the distribution from which the latest arm was drawn; uniform before the first round."""
        first = arms_at(self._params)
        return self._numbers[first : first + self.n_arms].copy()

    def regret_bound(self, n: int, total_delay: float | None = None) -> float:
        """Return 4√(Kn) + √(8 D ln K) times the range, a bound on the regret in whole losses for the simple tuning.

        total_delay: D, the sum of the delays; dn unless given. For the regret in composite losses, which are cut off at
            the horizon, add d.
        """
        n = checks.integer("n", n, low=0)
        d = self._params.max_delay
        whole = d * n if total_delay is None else checks.real("total_delay", total_delay, low=0.0)
        if self.tuning != "simple":
            raise InvalidArgument(f"tuning must be 'simple' for a bound in numbers, but got {self.tuning!r}")
        bound = 4.0 * math.sqrt(self.n_arms * n) + math.sqrt(8.0 * whole * math.log(self.n_arms))
        return bound * (self.effects.hi - self.effects.lo)
