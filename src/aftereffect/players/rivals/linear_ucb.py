"""Optimism in linear models of the totals: DynLin-UCB and AR-UCB.

DynLin-UCB (Mussi, Metelli and Restelli 2023) is for rewards of a linear dynamical system with a hidden state. The model
is that of `losses/linear_system.py`: the total of a round is linear in the vectors u of the arms played so far, with
responses that shrink by ρ̄ per round. In the long run an arm that is always played is worth hᵀu per round. To learn h,
the player holds an arm for an epoch and regresses the last total of the epoch on u:

    epoch m       ├───────── arm u held for 1 + ⌊ln m / ln(1/ρ̄)⌋ rounds ─────────┤
    totals          discarded: effects of earlier arms are still arriving     used

    V = λI + Σ u uᵀ     ĥ = V⁻¹ Σ u y     the next arm is the one with the largest ĥᵀu + β √(uᵀV⁻¹u)

    β  = c₁√λ + (c₂/√λ) ln(e(t+1)) + √(2σ̄²(ln T + (p/2) ln(1 + tU²/(pλ))))
    c₁ = Θ + ΩBΦ/(1−ρ̄)    c₂ = UΩΦ(UB + U)/(1−ρ̄)    σ̄² = σ²(1 + Ω²Φ²/(1−ρ̄²))

after t rounds, with U the largest norm of a vector, p its length, and for the system

    Θ ≥ ‖1ᵀD‖    Ω ≥ ‖1ᵀC‖    B ≥ ‖B‖    Φ ≥ sup_s ‖Aˢ‖/ρ̄ˢ    σ the standard deviation of each noise

Lengths, index and constants are those of the authors' program (https://github.com/marcomussi/DLB, MIT licence), which
differs in two details: it draws the first arm at random and holds it for one round more.

AR-UCB (Bacchiocchi and others 2024) is for totals that depend on the totals before them. The model is an autoregression
of order k whose coefficients depend on the arm:

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

import numpy as np
from numpy.typing import ArrayLike

from aftereffect.core import checks, effects, kernel, real
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState, helper
from aftereffect.losses.linear_system import LinearSystem
from aftereffect.players.base import KernelPlayer
from aftereffect.players.limits import Common, Limits

LEFT_AFTER_DELAY = 0.01
"""`tuned` assumes that responses have shrunk to this share after max_delay rounds."""


@helper
def product(u: FloatState, p: int, j: int, parts: FloatState) -> float:
    """Return component j of V⁻¹u; parts: Σ u y, room for V⁻¹u, and V⁻¹ by rows."""
    found = 0.0
    for k in range(p):
        found += parts[2 * p + j * p + k] * u[k]
    return found


@helper
def upper_bound(u: FloatState, beta: float, parts: FloatState) -> float:
    """Return ĥᵀu + β√(uᵀV⁻¹u)."""
    p = u.shape[0]
    mean = square = 0.0
    for j in range(p):
        entry = product(u, p, j, parts)
        mean += parts[j] * entry
        square += u[j] * entry
    return mean + beta * math.sqrt(max(square, 0.0))


@helper
def regress(u: FloatState, reward: float, parts: FloatState) -> float:
    """Add u uᵀ to V and u·reward to the sums; V⁻¹ changes by the formula of Sherman and Morrison.

    Returned is 1 + uᵀV⁻¹u, by which the determinant of V has grown.
    """
    p = u.shape[0]
    scale = 1.0
    for j in range(p):
        parts[p + j] = product(u, p, j, parts)
        scale += u[j] * parts[p + j]
        parts[j] = min(max(parts[j] + u[j] * reward, -1e300), 1e300)
    for j in range(p):
        for k in range(p):
            parts[2 * p + j * p + k] -= parts[p + j] * parts[p + k] / scale
    return scale


class DynLinUCBParams(NamedTuple):
    """features: u of each arm, (K, p). rate: ln(1/ρ̄). first, second: c₁√λ and c₂/√λ. variance: 2σ̄².

    log_horizon: ln T. growth: U²/(pλ). ridge: λ.
    """

    features: FloatArray
    rate: float
    first: float
    second: float
    variance: float
    log_horizon: float
    growth: float
    ridge: float
    limits: Limits


# state, after what every player has: rounds told, the epoch, rounds left in it, its arm; then Σ u y, p numbers; room
# for V⁻¹u, p numbers; V⁻¹, p² numbers by rows.
ROUND, EPOCH, LEFT, ARM, SUMS = (OWN + k for k in range(5))


def dyn_size(params: DynLinUCBParams, n_arms: int) -> int:
    """Four scalars, two vectors and a matrix."""
    p = params.features.shape[1]
    return int(SUMS + 2 * p + p * p)


def dyn_begin(params: DynLinUCBParams, n_arms: int, state: FloatState) -> None:
    """Write the state before round 1, with V = λI."""
    p = params.features.shape[1]
    for j in range(p):
        state[SUMS + 2 * p + j * (p + 1)] = 1.0 / params.ridge


def dyn_ask(params: DynLinUCBParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Choose an arm when an epoch begins, else keep the arm."""
    state[DREW] = 0.0
    if state[LEFT] == 0.0:
        state[EPOCH] += 1.0
        state[LEFT] = 1.0 + math.floor(math.log(state[EPOCH]) / params.rate)
        state[ARM] = largest_index(params, n_arms, state[ROUND], state[SUMS:])
        state[DREW] = 1.0
    return int(state[ARM])


def dyn_tell(params: DynLinUCBParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Learn from the last total of an epoch; if it is missing, the epoch lasts one round longer."""
    state[ROUND] += 1.0
    if state[LEFT] > 1.0:
        state[LEFT] -= 1.0
        return 0
    if total != total:
        return 0
    state[LEFT] = 0.0
    state[FED] = effects.fed_loss(params.limits.span, 0, total)
    regress(params.features[arm], total if params.limits.span.maximize else -total, state[SUMS:])
    return 1


@helper
def largest_index(params: DynLinUCBParams, n_arms: int, t: float, parts: FloatState) -> int:
    """Return the first arm with the largest index."""
    p = params.features.shape[1]
    log_volume = params.log_horizon + 0.5 * p * math.log(1.0 + t * params.growth)
    beta = params.first + params.second * (1.0 + math.log(t + 1.0)) + math.sqrt(params.variance * log_volume)
    best, most = 0, 0.0
    for i in range(n_arms):
        index = upper_bound(params.features[i], beta, parts)
        if i == 0 or index > most:
            best, most = i, index
    return best


kernel.register(DynLinUCBParams, kernel.PlayerKernel(dyn_size, dyn_begin, dyn_ask, dyn_tell))


class DynLinUCB(KernelPlayer):
    """Holds an arm for ever longer epochs, and chooses it by a linear upper confidence bound on the last totals.

    n_arms: K. horizon: T, in the confidence bound.
    spectral_radius: ρ̄ in [0, 1), an upper bound on the factor by which responses shrink per round.
    features: the vector u of each arm, (K, p); by default the unit vectors, so that arms have nothing in common.
    ridge: λ > 0, the published 1.
    norms: Θ, Ω, B, Φ and σ of `players/rivals/linear_ucb.py`, as those of a known system (`for_system`). Without them
        they are chosen here: B = Φ = 1 and, with H = max(|lo|, |hi|), Θ = (1−ρ̄)√p H and Ω = ρ̄Θ, which hold if every
        effect of a unit vector is a multiple of 1, ρ̄, ρ̄², ...; σ = (hi − lo)/2, which holds for noise in a range of
        that width. Ω/H then takes the place of Ω in σ̄²: a state in units of effects has noise σ/H, and the arms do not
        depend on the units.
    direction, low, high, out_of_range: as for the wrapper; totals may be as large as t·[lo, hi]. seed: not used; the
        algorithm is deterministic, and ties go to the arm of the lowest number.

    The fed loss of a trace is the last total of an epoch, scaled to a loss in [0, 1].

    Regret: Õ(p√T/(1−ρ̄)^{3/2}) against the best constant arm, if totals are those of a linear system.

    >>> player = DynLinUCB(2, horizon=100, spectral_radius=0.5, direction="maximize")
    >>> arms = []
    >>> for _ in range(9):                          # epochs of 1, 2, 2, 3 and 3 rounds
    ...     arms.append(player.ask())
    ...     played = player.tell(float(arms[-1]))
    >>> arms
    [0, 1, 1, 1, 1, 0, 0, 0, 1]

    Reference: Mussi, Metelli and Restelli, "Dynamical linear bandits", ICML 2023: Algorithm 1.
    """

    def __init__(
        self,
        n_arms: int,
        *,
        horizon: int,
        spectral_radius: float,
        features: ArrayLike | None = None,
        ridge: float = 1.0,
        norms: ArrayLike | None = None,
        **common: Unpack[Common],
    ) -> None:
        K, self.horizon = checks.integer("n_arms", n_arms, low=2), checks.integer("horizon", horizon, low=1)
        self.spectral_radius = rho = checks.real("spectral_radius", spectral_radius, low=0.0, below=1.0)
        vectors = np.eye(K) if features is None else checks.array("features", features, shape=(K, "p"))
        self.ridge = lam = checks.real("ridge", ridge, above=0.0)
        limits = self.limits(None, **common)
        lo, hi, _ = limits.span
        if not vectors.size:
            raise InvalidArgument(f"features must have at least one column, but got shape {vectors.shape}")
        p, U = vectors.shape[1], float(np.sqrt((vectors**2).sum(axis=1)).max())
        largest = max(-lo, hi)
        usual = (1.0 - rho) * math.sqrt(p) * largest
        given = [usual, rho * usual, 1.0, 1.0, (hi - lo) / 2.0] if norms is None else norms
        known = checks.array("norms", given, shape=(5,))
        checks.real("norms", float(known.min()), low=0.0)
        theta, omega, b_norm, phi, sigma = known.tolist()
        self.features, self.norms = checks.frozen(vectors), None if norms is None else known
        self.c1 = theta + omega * b_norm * phi / (1.0 - rho)
        self.c2 = U * omega * phi * (U * b_norm + U) / (1.0 - rho)
        in_state = omega / largest if norms is None else omega
        params = DynLinUCBParams(
            features=checks.owned(vectors),
            rate=-math.log(rho) if rho > 0.0 else math.inf,
            first=self.c1 * math.sqrt(lam),
            second=self.c2 / math.sqrt(lam),
            variance=2.0 * sigma**2 * (1.0 + (in_state * phi) ** 2 / (1.0 - rho**2)),
            log_horizon=math.log(self.horizon),
            growth=U**2 / (p * lam),
            ridge=lam,
            limits=limits,
        )
        super().__init__(K, params)

    @classmethod
    def for_system(cls, system: LinearSystem, *, horizon: int, ridge: float = 1.0, **common: Unpack[Common]) -> Self:
        """Return the player with the vectors and constants of a known system, as in the authors' experiments.

        >>> from aftereffect.losses.linear_system import ADVERTISING
        >>> player = DynLinUCB.for_system(ADVERTISING, horizon=10**6, direction="maximize")
        >>> round(player.c1, 3), round(player.c2, 3)
        (2.443, 9.038)
        """
        rho, norm = system.spectral_radius, np.linalg.norm
        if rho == 0.0 and system.A.any():
            raise InvalidArgument("A must be 0 if its spectral radius is, for a bound on its powers, but is not")
        powers = [np.linalg.matrix_power(system.A / rho, s) for s in range(1, 1000)] if rho else [system.A]
        transient = max(float(norm(power, 2)) for power in powers)
        norms = [norm(system.D.sum(axis=0)), norm(system.C.sum(axis=0)), norm(system.B, 2), transient, system.noise]
        settings: dict[str, Any] = {"horizon": horizon, "spectral_radius": rho, "ridge": ridge, "norms": norms}
        return cls(len(system.arms), features=system.arms, **settings, **common)

    @classmethod
    def tuned(cls, n_arms: int, *, max_delay: int, horizon: int, **others: Any) -> Self:
        """Return the player for effects of which a hundredth is left after max_delay rounds (chosen here)."""
        d = checks.integer("max_delay", max_delay, low=0)
        rho = LEFT_AFTER_DELAY ** (1.0 / d) if d else 0.0
        return cls(n_arms, horizon=horizon, **{"spectral_radius": rho, **others})


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


def ar_size(params: ARUCBParams, n_arms: int) -> int:
    """One scalar and z; for each arm a scalar, two vectors and a matrix."""
    p = params.order + 1
    return Z + p + n_arms * (1 + 2 * p + p * p)


def ar_begin(params: ARUCBParams, n_arms: int, state: FloatState) -> None:
    """Write the state before round 1: z = (1, 0, ..., 0), and V = λI for every arm."""
    p = params.order + 1
    state[Z] = 1.0
    for arm in range(n_arms):
        for j in range(p):
            state[Z + p + arm * (1 + 2 * p + p * p) + 1 + 2 * p + j * (p + 1)] = 1.0 / params.ridge


def ar_ask(params: ARUCBParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Return the first arm with the largest index."""
    p = params.order + 1
    state[DREW] = 1.0
    z, best, most = state[Z : Z + p], 0, 0.0
    for arm in range(n_arms):
        at = Z + p + arm * (1 + 2 * p + p * p)
        beta = params.first + params.noise * math.sqrt(params.log_confidence + state[at])
        index = upper_bound(z, beta, state[at + 1 :])
        if arm == 0 or index > most:
            best, most = arm, index
    return best


def ar_tell(params: ARUCBParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
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


kernel.register(ARUCBParams, kernel.PlayerKernel(ar_size, ar_begin, ar_ask, ar_tell))


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
        K, self.horizon = checks.integer("n_arms", n_arms, low=2), checks.integer("horizon", horizon, low=1)
        self.order = checks.integer("order", order, low=0, high=1000)
        self.ridge = lam = checks.real("ridge", ridge, above=0.0)
        usual = 0.5 / self.horizon if confidence is None else confidence
        self.confidence = checks.real("confidence", usual, above=0.0, below=1.0)
        limits = self.limits(None, **common)
        lo, hi, _ = limits.span
        self.level = m = checks.real("level", max(-lo, hi) if level is None else level, low=0.0)
        self.noise = checks.real("noise", (hi - lo) / 2.0 if noise is None else noise, low=0.0)
        first, log_confidence = math.sqrt(lam * (m * m + 1.0)), 2.0 * math.log(K / self.confidence)
        super().__init__(K, ARUCBParams(self.order, lam, first, self.noise, log_confidence, limits))

    @classmethod
    def tuned(cls, n_arms: int, *, max_delay: int, horizon: int, **others: Any) -> Self:
        """Return the player of order 1, that of effects that fade by a factor; of order 0 if max_delay is 0."""
        d = checks.integer("max_delay", max_delay, low=0)
        return cls(n_arms, horizon=horizon, **{"order": min(d, 1), **others})
