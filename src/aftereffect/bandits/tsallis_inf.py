"""Tsallis-INF (Zimmert and Seldin 2021): Algorithm 2 of the paper at a rate that needs no horizon.

Round n plays q_n, the minimiser of ⟨L, q⟩ − 2η_n Σ √q(i) with η_n = s√n: the learning rate grows with the
rounds, whereas Algorithm 2 (`tsallis.py`) fixes it for N rounds in advance. In the notation of Zimmert and Seldin the
rate is 2/η_n, so s = 1 is their 2/√n and s = 1/2 their 4/√n. The root u is found as in `tsallis.py`, in units of the
new η. The first step needs no division per arm here either: at the old multiplier each y is multiplied by
η_n/η_{n+1}, except those whose L changed.

The reduced-variance estimator subtracts a baseline B(i) from the loss before it is divided by q(J), and adds
it back to every arm: B(i) = 1/2 where q(i) >= 16/n, else 0. So 1/2 is added to every arm with a baseline, played or
not, and L(J) may decrease.
"""

import math
from typing import Any, NamedTuple

from aftereffect.bandits import tsallis
from aftereffect.bandits.kernel_bandit import stored_draw, stored_probabilities
from aftereffect.bandits.tsallis import FTRLBandit, solve
from aftereffect.core import checks, kernel
from aftereffect.core.kernel import FloatState, helper

ESTIMATORS = ("importance_weighted", "reduced_variance")


class TsallisINFParams(NamedTuple):
    """reduced_variance: whether the reduced-variance estimator is used."""

    reduced_variance: bool


# state: as in tsallis.py (q, L, then min L, u and Σ y⁻³), then the number of updates.


def size(n_arms: int) -> int:
    """K probabilities, K estimated losses, four scalars."""
    return 2 * n_arms + 4


def start(params: TsallisINFParams, n_arms: int, state: FloatState) -> None:
    """No losses yet: q uniform, u = √K."""
    kernel.bandit_start(tsallis.TsallisParams(1.0), n_arms, state)
    state[2 * n_arms + 3] = 0.0


@helper
def estimate(n_arms: int, state: FloatState, arm: int, loss: float, bar: float) -> float:
    """Add a round's estimated losses to L, with B(i) = 1/2 where q(i) >= bar; return the change of L(J)."""
    baseline = 0.5 if state[arm] >= bar else 0.0
    step: float = (loss - baseline) / state[arm]
    for i in range(n_arms):
        if state[i] >= bar:
            state[n_arms + i] += 0.5
    state[n_arms + arm] = min(state[n_arms + arm] + step, 1e300)
    return step + baseline


def update(params: TsallisINFParams, n_arms: int, state: FloatState, arm: int, loss: float) -> None:
    """Estimate the losses of round n, then solve for q_{n+1} at η_{n+1}."""
    n = state[2 * n_arms + 3] + 1.0
    state[2 * n_arms + 3] = n
    scale = 0.5 if params.reduced_variance else 1.0
    # No probability reaches 2, so no arm has a baseline.
    bar = 16.0 / n if params.reduced_variance else 2.0
    old, new = scale * math.sqrt(n), scale * math.sqrt(n + 1.0)
    q, u, cubes = state[arm], state[2 * n_arms + 1], state[2 * n_arms + 2]
    step = estimate(n_arms, state, arm, loss, bar)
    least = kernel.least(n_arms, state[n_arms:])
    # The leader has probability u⁻². If it has a baseline, so have all arms that matter, and λ moves by 1/2 too.
    moved = 0.5 if bar * u * u <= 1.0 else 0.0
    growth = new / old
    z = (old / math.sqrt(q) + step - moved) / new
    mass = growth * growth * (1.0 - q) + 1.0 / (z * z)
    cubes = growth * growth * growth * (cubes - q * math.sqrt(q)) + 1.0 / (z * z * z)
    u = (u * old + least - state[2 * n_arms] - moved) / new + mass * (math.sqrt(mass) - 1.0) / cubes
    solve(n_arms, state, 1.0 / new, least, u)
    state[2 * n_arms] = least


kernel.register(TsallisINFParams, kernel.BanditKernel(size, start, stored_draw, update, stored_probabilities))


class TsallisINF(FTRLBandit):
    """Follow the regularised leader with ½-Tsallis entropy at the rate η_n = √n or √n/2, for any horizon.

    It is best of both worlds: its regret is of order √(Kn) against an adversary, and of order Σ_i (ln n)/Δ_i if the
    gaps Δ_i between the arms' means are constant.

    estimator: how L changes in round n, in which J was played with loss ℓ.
        "importance_weighted": L(J) += ℓ/q_n(J), with η_n = √n.
        "reduced_variance": L(i) += B(i) for every i, and L(J) += (ℓ − B(J))/q_n(J), with B(i) = 1/2 where
        q_n(i) >= 16/n, else 0, and η_n = √n/2.

    >>> bandit = TsallisINF(n_arms=2, estimator="reduced_variance")
    >>> bandit.update(0, 1.0)                    # q was (1/2, 1/2), no baselines yet: L = (2, 0) and η = √2/2
    >>> bandit.probabilities.round(6)            # (2 ∓ √3)/4: a, b = L − λ have 1/a² + 1/b² = 2 and a − b = 2
    array([0.066987, 0.933013])

    Reference: Zimmert and Seldin, "Tsallis-INF: an optimal algorithm for stochastic and adversarial bandits",
    JMLR 22 (2021).
    """

    def __init__(self, n_arms: int, *, estimator: str = "importance_weighted") -> None:
        self.estimator = checks.choice("estimator", estimator, ESTIMATORS)
        super().__init__(n_arms, TsallisINFParams(self.estimator == "reduced_variance"))

    @property
    def learning_rate(self) -> float:
        """η_n of the next round."""
        scale = 0.5 if self.estimator == "reduced_variance" else 1.0
        return scale * math.sqrt(float(self._state[2 * self.n_arms + 3]) + 1.0)

    def stability(self) -> float:
        """Return 1, which holds for every algorithm: the first steps are large, and ξ must hold in every round.

        Theorem 5 assumes the same η in all rounds. For the importance-weighted estimator it bounds the mass that the
        new loss moves in round n by 2(1 + ln K)/√n. The growth of η moves mass too: since
        dq(i)/dη = (2q(i)/η)(1 − √q(i)/Σq^{3/2}), at most 2 ln(η_{n+1}/η_n) = ln(1 + 1/n) between η_n and η_{n+1}. The
        sum of the two is above 1 in round 1 and decreases like 1/√n; Theorem 4 cannot use a bound that depends on the
        round.
        """
        return 1.0

    def regret_bound(self, n: int) -> float:
        """Return 4√(Kn) + 1 (importance-weighted) or 2√(Kn) + 10K ln n + 16 (reduced variance).

        These are the published bounds for an adversary. A formalisation of the second proof reports 14K ln n instead
        of 10K ln n.
        """
        n = checks.integer("n", n, low=0)
        root = math.sqrt(self.n_arms * n)
        if self.estimator == "importance_weighted":
            return 4.0 * root + 1.0
        return 2.0 * root + 10.0 * self.n_arms * math.log(max(n, 1)) + 16.0

    @property
    def settings(self) -> dict[str, Any]:
        """The name of the estimator."""
        return {"estimator": self.estimator}
