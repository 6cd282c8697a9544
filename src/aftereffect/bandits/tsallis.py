"""Algorithm 2 (Section 4): follow the regularised leader with ½-Tsallis entropy, at a fixed learning rate.

The distribution is q(i) = η²/(L(i) − λ)², where λ < min L is the only number for which it sums to 1 (Lemma 12). In
units of η and measured from the leader, y(i) = (L(i) − min L)/η + u and q(i) = y(i)⁻², with u = (min L − λ)/η
between 1 (the leader has all the mass) and √K (all arms are equal). So each update solves for one unknown, u, in
G(u) = Σ y⁻² = 1:

- *Secular Newton*: G^(−1/2) is concave and nearly linear, so u += G(√G − 1)/Σy⁻³ converges from below without
  overshooting the root; from above it overshoots once, and u ≥ 1 then keeps it away from the pole at 0.
- *The first step needs no loop*: only L(J) has changed, so G and Σy⁻³ at the old u differ from their previous
  values in one term.
- *The last step needs no division*: once the remaining shift v is below 3e−6, 1/(y+v) = r(1 − vr + v²r²) with
  r = 1/y has an error of (vr)³ < 3e−17.

η = 0 is follow-the-leader: uniform over the arms of least estimated loss, which is the limit of the above.
Rates below 1e−300 are treated as 0, so that 1/η cannot overflow.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aftereffect import theory
from aftereffect.bandits.kernel_bandit import KernelBandit, start_uniform, stored_draw, stored_probabilities
from aftereffect.core import checks, kernel
from aftereffect.core.kernel import FloatState, IntState, helper

LEAST_RATE = 1e-300
LAST_SHIFT = 3e-6


class TsallisParams(NamedTuple):
    """η, the learning rate."""

    learning_rate: float


# state: q in [0, K), the estimated losses L in [K, 2K), then min L, u and Σ y⁻³.


def size(n_arms: int) -> int:
    """K probabilities, K estimated losses, three scalars."""
    return 2 * n_arms + 3


def start(params: TsallisParams, n_arms: int, state: FloatState) -> None:
    """No losses yet: q uniform, u = √K."""
    start_uniform(n_arms, n_arms + 1, state)
    state[2 * n_arms + 1] = math.sqrt(n_arms)
    state[2 * n_arms + 2] = 1.0 / math.sqrt(n_arms)


def update(params: TsallisParams, n_arms: int, state: FloatState, arm: int, loss: float) -> None:
    """L(J) += ℓ/q(J), then solve for the new distribution."""
    if loss == 0.0:
        return
    step = loss / state[arm]
    before = state[n_arms + arm]
    state[n_arms + arm] = min(before + step, 1e300)
    least = state[2 * n_arms]
    if before == least:
        least = kernel.least(n_arms, state[n_arms:])
    eta = params.learning_rate
    if eta < LEAST_RATE:
        follow_leader(n_arms, state, least)
    else:
        # 1/y(J) before and after, at the old multiplier; then the first step and the shift of the leader.
        inverse = 1.0 / eta
        r = math.sqrt(state[arm])
        t = kernel.quotient(r, 1.0 + step * inverse * r)
        excess = (t - r) * (t + r)
        cubes = state[2 * n_arms + 2] + (t * t * t - r * r * r)
        mass = 1.0 + excess
        v = mass * (math.sqrt(mass) - 1.0) / cubes
        solve(n_arms, state, inverse, least, state[2 * n_arms + 1] + (least - state[2 * n_arms]) * inverse + v)
    state[2 * n_arms] = least


def update_many(params: TsallisParams, n_arms: int, state: FloatState, arms: IntState, losses: FloatState) -> None:
    """L(i) += Σ ℓ/(M q(i)) over those of the M units that played arm i, then solve for the new distribution."""
    units = arms.shape[0]
    heard = False
    for m in range(units):
        if losses[m] > 0.0:
            heard = True
            at = n_arms + arms[m]
            state[at] = min(state[at] + losses[m] / (units * state[arms[m]]), 1e300)
    if not heard:
        return
    least = kernel.least(n_arms, state[n_arms:])
    if params.learning_rate < LEAST_RATE:
        follow_leader(n_arms, state, least)
    else:
        # Several terms have changed, so the first step needs a loop: start from the old multiplier.
        inverse = 1.0 / params.learning_rate
        solve(n_arms, state, inverse, least, state[2 * n_arms + 1] + (least - state[2 * n_arms]) * inverse)
    state[2 * n_arms] = least


@helper
def follow_leader(n_arms: int, state: FloatState, least: float) -> None:
    """Distribute the mass equally over the arms of least estimated loss."""
    leaders = 0
    for i in range(n_arms):
        leaders += state[n_arms + i] == least
    for i in range(n_arms):
        state[i] = 1.0 / leaders if state[n_arms + i] == least else 0.0


@helper
def solve(n_arms: int, state: FloatState, inverse: float, least: float, u: float) -> None:
    """Find u with Σ y⁻² = 1 from the initial guess `u`, and write q, u and Σ y⁻³."""
    # NaN compares false, so a guess that overflowed is replaced by 1 too, the least possible u.
    if not u >= 1.0:
        u = 1.0
    for _ in range(100):
        for i in range(n_arms):
            state[i] = kernel.quotient(1.0, (state[n_arms + i] - least) * inverse + u)
        mass = 0.0
        cubes = 0.0
        fourths = 0.0
        for i in range(n_arms):
            r = state[i]
            square = r * r
            mass += square
            cubes += square * r
            fourths += square * square
        # Series reversal of Σ (y+v)⁻² = 1, that is mass − 2·cubes·v + 3·fourths·v² = 1.
        half = kernel.quotient(0.5, cubes)
        v = (mass - 1.0) * half
        v += 3.0 * fourths * half * v * v
        if abs(v) <= LAST_SHIFT:
            for i in range(n_arms):
                r = state[i]
                a = v * r
                r -= r * a * (1.0 - a)
                state[i] = r * r
            state[2 * n_arms + 1] = u + v
            state[2 * n_arms + 2] = cubes - 3.0 * fourths * v
            return
        u += mass * (math.sqrt(mass) - 1.0) / cubes
        # Far above the root all powers underflow and 0/0 is NaN: continue from 1.
        if not u >= 1.0:
            u = 1.0


kernel.register(TsallisParams, kernel.BanditKernel(size, start, stored_draw, update, stored_probabilities, update_many))


def number(place: int, title: str, kind: type = float) -> Any:
    """Return an attribute of a bandit whose state has four numbers per arm, then others: that in this place of them."""
    return property(lambda bandit: kind(bandit._state[4 * bandit.n_arms + place]), doc=title)


class FTRLBandit(KernelBandit):
    """Follow the regularised leader: a kernel that stores estimated losses in state[K:2K]."""

    @property
    def estimated_losses(self) -> NDArray[np.float64]:
        """L̂, the estimated losses so far; relative to the least of them if the rate is adaptive."""
        return self._state[self.n_arms : 2 * self.n_arms].copy()


class TsallisFTRL(FTRLBandit):
    """Algorithm 2: q_n = argmin over the simplex of ⟨L̂_{n−1}, q⟩ − 2η Σ √q(i), with importance-weighted
    losses L̂.

    learning_rate: η ≥ 0. A large η is cautious, a small one greedy; 0 follows the leader (ties share equally).
        Theorem 6 uses √(N/2) for N rounds.

    >>> bandit = TsallisFTRL(n_arms=2, learning_rate=1.0)
    >>> bandit.update(0, 1.0)                    # q was (1/2, 1/2), so L̂ = (2, 0)
    >>> bandit.probabilities.round(6)
    array([0.106924, 0.893076])
    >>> bool(abs((1 / bandit.probabilities**0.5) @ [1, -1] - 2) < 1e-12)     # Lemma 12: η/√q(i) − L̂(i) = −λ for every i
    True

    References: Abernethy, Lee and Tewari (2015); Zimmert and Seldin (2021); Theorems 5 and 6 of the paper.
    """

    def __init__(self, n_arms: int, *, learning_rate: float) -> None:
        self.learning_rate = checks.real("learning_rate", learning_rate, low=0.0)
        super().__init__(n_arms, TsallisParams(self.learning_rate))

    def stability(self) -> float:
        """Return ξ = 2(1 + ln K)/η (Theorem 5)."""
        return theory.tsallis_stability(self.n_arms, self.learning_rate)

    def regret_bound(self, n: int) -> float:
        """Return 2η√K + n√K/η (Theorem 6 at any rate)."""
        n = checks.integer("n", n, low=0)
        return theory.tsallis_regret_bound(self.n_arms, n, self.learning_rate)

    def shared_regret_bound(self, n: int, n_units: int) -> float:
        """Return 2η√K + n(√K/M + 1 − 1/M)/η, for averages over M = `n_units` units; `stability` holds as well.

        *Regret.* A round's price is at most Σ_i c_i² q(i)^{3/2}/η for estimates c ≥ 0, as derived in
        `theory.tsallis_regret_bound`. Here c_i is the average of M independent estimates, each of mean at most
        1 and mean square at most 1/q(i), so that E[c_i²] ≤ 1/(Mq(i)) + 1 − 1/M. With Σ√q(i) ≤ √K and
        Σq(i)^{3/2} ≤ 1 the expected price is at most (√K/M + 1 − 1/M)/η.

        *Stability.* Estimated losses only increase, so the multiplier increases, and q(i) decreases by no more than it
        would at the old multiplier, q(i)(1 − (1 + c_i√q(i)/η)⁻²) ≤ 2c_i q(i)^{3/2}/η. The mass gained equals the mass
        lost, which is on average at most 2Σq(i)^{3/2}/η ≤ 2/η for all estimates of mean at most 1. Theorem 5 allows
        more.
        """
        alone = self.regret_bound(n)
        M = checks.integer("n_units", n_units, low=1)
        # Follow the leader has only the trivial bound.
        if self.learning_rate < LEAST_RATE:
            return alone
        return alone - n * (1.0 - 1.0 / M) * (math.sqrt(self.n_arms) - 1.0) / self.learning_rate
