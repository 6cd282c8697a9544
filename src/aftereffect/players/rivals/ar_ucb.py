"""AR-UCB: optimism for totals that depend on the totals before them (Bacchiocchi and others 2024).

The model is an autoregression of order k whose coefficients depend on the arm:

    x_t = γ₀(a) + γ₁(a) x_{t−1} + ... + γ_k(a) x_{t−k} + noise        z_{t−1} = (1, x_{t−1}, ..., x_{t−k})

What an arm does lingers because later totals build on earlier ones. If γ₁, ..., γ_k are not negative, the arm that is
best for the next total is best for all later ones too (Theorem 1). So the player estimates γ(a) by ridge regression on
the rounds in which it played a, and plays the arm of the largest index:

    V(a) = λI + Σ z zᵀ     γ̂(a) = V(a)⁻¹ Σ z x      index = γ̂(a)ᵀz + β(a) √(zᵀV(a)⁻¹z)
    β(a) = √(λ(m²+1)) + σ √(2 ln(K/δ) + ln det V(a) − (k+1) ln λ)          δ = 1/(2T)

Totals before round 1 are 0. This is no composite loss unless the coefficients are the same for all arms.
"""

import math
from typing import Any, NamedTuple, Self, Unpack

from aftereffect.core import checks, effects, kernel, real
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState
from aftereffect.players.base import Common, KernelPlayer, Limits
from aftereffect.players.rivals.dyn_lin_ucb import product, regress


class ARUCBParams(NamedTuple):
    """order: k. ridge: λ. first: √(λ(m²+1)). noise: σ. log_confidence: 2 ln(K/δ)."""

    order: int
    ridge: float
    first: float
    noise: float
    log_confidence: float
    limits: Limits


# state, after what every player has: in how many rounds z is known again; z, k+1 numbers; then for each
# arm ln det V − (k+1) ln λ, Σ z x, room for V⁻¹z, and V⁻¹ by rows.
GAP, Z = OWN, OWN + 1


def size(params: ARUCBParams, n_arms: int) -> int:
    """One scalar and z; for each arm a scalar, two vectors and a matrix."""
    p = params.order + 1
    return Z + p + n_arms * (1 + 2 * p + p * p)


def begin(params: ARUCBParams, n_arms: int, state: FloatState) -> None:
    """Write the state before round 1: z = (1, 0, ..., 0), and V = λI for every arm."""
    p = params.order + 1
    state[Z] = 1.0
    for arm in range(n_arms):
        for j in range(p):
            state[Z + p + arm * (1 + 2 * p + p * p) + 1 + 2 * p + j * (p + 1)] = 1.0 / params.ridge


def ask(params: ARUCBParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Return the first arm with the largest index."""
    p = params.order + 1
    state[DREW] = 1.0
    z, best, most = state[Z : Z + p], 0, 0.0
    for arm in range(n_arms):
        at = Z + p + arm * (1 + 2 * p + p * p)
        parts = state[at + 1 :]
        mean = square = 0.0
        for j in range(p):
            entry = product(z, p, j, parts)
            mean += parts[j] * entry
            square += z[j] * entry
        beta = params.first + params.noise * math.sqrt(params.log_confidence + state[at])
        index = mean + beta * math.sqrt(max(square, 0.0))
        if arm == 0 or index > most:
            best, most = arm, index
    return best


def tell(params: ARUCBParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Learn from a total if it and the k totals before it are known; a missing one is carried forward in z."""
    p = params.order + 1
    missing = total != total
    learned = not missing and state[GAP] == 0.0
    reward = (state[Z + 1] if p > 1 else 0.0) if missing else total if params.limits.span.maximize else -total
    if learned:
        state[FED] = effects.fed_loss(params.limits.span, 0, total)
        at = Z + p + arm * (1 + 2 * p + p * p)
        state[at] += real.log(regress(state[Z : Z + p], reward, state[at + 1 :]))
    state[GAP] = params.order if missing else max(state[GAP] - 1.0, 0.0)
    for j in range(p - 1, 1, -1):
        state[Z + j] = state[Z + j - 1]
    if p > 1:
        state[Z + 1] = min(max(reward, -1e150), 1e150)
    return 1 if learned else 0


kernel.register(ARUCBParams, kernel.PlayerKernel(size, begin, ask, tell))


class ARUCB(KernelPlayer):
    """Plays the arm whose next total has the largest upper confidence bound, in an autoregression per arm.

    n_arms: K. horizon: T, in the confidence δ = 1/(2T).
    order: k ≥ 0, how many totals before it a total depends on; too large an order costs little.
    level: m, an upper bound on |γ₀|; by default max(|lo|, |hi|), chosen here. noise: σ; by default (hi − lo)/2, which
        holds for noise in a range of that width. ridge: λ > 0, the published 1.
    confidence: δ, if another is wanted; the authors' program has 0.01.
    direction, low, high, out_of_range: as for the wrapper; totals may be as large as t·[lo, hi]. For losses the model
        is that of their negatives. seed: not used; the algorithm is deterministic, and ties go to the arm of the lowest
        number.

    A total is learned from if it and the k totals before it are known. The fed loss of a trace is the total, scaled to
    a loss.

    Regret: Õ((m+σ)(k+1)^{3/2} √(KT)/(1−Γ)²) against the best policy, where Γ < 1 bounds γ₁ + ... + γ_k (Theorem 5).

    >>> player = ARUCB(2, horizon=100, order=1, direction="maximize")
    >>> arms = []
    >>> for _ in range(6):
    ...     arms.append(player.ask())
    ...     played = player.tell(0.25 + 0.5 * arms[-1])
    >>> arms
    [0, 1, 1, 0, 1, 1]

    Reference: Bacchiocchi, Genalti, Maran, Mussi, Restelli, Gatti and Metelli, "Autoregressive bandits", AISTATS 2024:
    Algorithm 1 with the exploration coefficients (7).
    """

    def __init__(
        self,
        n_arms: int,
        *,
        horizon: int,
        order: int,
        level: float | None = None,
        noise: float | None = None,
        ridge: float = 1.0,
        confidence: float | None = None,
        **common: Unpack[Common],
    ) -> None:
        K, T = checks.integer("n_arms", n_arms, low=2), checks.integer("horizon", horizon, low=1)
        k = checks.integer("order", order, low=0, high=1000)
        lam = checks.real("ridge", ridge, above=0.0)
        delta = checks.real("confidence", 0.5 / T if confidence is None else confidence, above=0.0, below=1.0)
        limits = self.limits(None, **common)
        lo, hi, _ = limits.span
        m = checks.real("level", max(-lo, hi) if level is None else level, low=0.0)
        sigma = checks.real("noise", (hi - lo) / 2.0 if noise is None else noise, low=0.0)
        params = ARUCBParams(k, lam, math.sqrt(lam * (m * m + 1.0)), sigma, 2.0 * math.log(K / delta), limits)
        settings: dict[str, Any] = {"horizon": T, "order": k, "level": m, "noise": sigma, "ridge": lam}
        super().__init__(K, params, **settings, confidence=delta)

    @classmethod
    def tuned(cls, n_arms: int, *, max_delay: int, horizon: int, **others: Any) -> Self:
        """Return the player of order 1, that of effects that fade by a factor; of order 0 if max_delay is 0."""
        d = checks.integer("max_delay", max_delay, low=0)
        settings: dict[str, Any] = {"order": min(d, 1)} | others
        return cls(n_arms, horizon=horizon, **settings)
