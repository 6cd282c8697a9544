"""Bounds for ½-Tsallis FTRL with a capped baseline and an adaptive rate; the proofs are in docs/theory/adaptive.md.

The rate starts at η₁ = `first_rate`, and update n, with a loss in [0, v_n], increases it. With a *matched* rate, that
of MatchedTsallis, the increase is at least cost_n/h, h = 2(√K − 1), and its penalty at most cost_n; then
E[regret] <= hη₁ + 4√(K·V), V = E Σ v_n², for every fixed number of updates. AdaptiveTsallis increases it by
ϱ·cost_n/h: `growth` is ϱ = 5/2 for it, and None for a matched rate. The wrapper around it, Algorithm 1, feeds it either
*windows*, as in the paper, or *stretches*. A stretch consists of the rounds t > d of a block whose d preceding coins
are 0, where a block ends at the first coin equal to 1 that comes at least d+1 rounds after the previous one.

A certificate is a bound on the regret with terms that a run can compute; its mean bounds the mean regret. All values
are in units of the range, hi − lo: 1 for losses in [0, 1].
"""

import math

from numpy.typing import ArrayLike

from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument
from aftereffect.theory.paper import enough_rounds, update_rate
from aftereffect.theory.sharp import sharp_terms

ADAPTIVE_GROWTH = 2.5
"""ϱ of AdaptiveTsallis: an update increases the rate by ϱ/h times its cost."""
MATCHED_SQUARES = 4100.0
"""With a matched rate, E[η²] <= η₁² + 4100·V."""
NO_ADVICE = (0.0, 0.0)


def entropy_range(n_arms: int) -> float:
    """Return h = 2(√K − 1), the range of 2Σ√q(i) over distributions of K = `n_arms` arms.

    >>> entropy_range(4)
    2.0
    """
    return 2.0 * (math.sqrt(checks.integer("n_arms", n_arms, low=2)) - 1.0)


def adaptive_regret_bound(n_arms: int, squares: float, first_rate: float, growth: float | None = None) -> float:
    """Return hη₁ + 4√(K·V), a bound on the mean regret over updates with losses in [0, v_n].

    K = `n_arms`, η₁ = `first_rate`, V = `squares`, the mean of Σ v_n², which is the number of updates if every
    v_n = 1. Since it is concave in V, a random V that does not depend on the arms drawn may be replaced by its mean.
    With ϱ = `growth`, the factor is (1 + 1/ϱ)√(4ϱ) instead of 4.

    >>> round(adaptive_regret_bound(n_arms=4, squares=10_000.0, first_rate=0.5), 1)
    801.0
    >>> round(adaptive_regret_bound(n_arms=4, squares=10_000.0, first_rate=0.5, growth=2.5), 1)
    886.4
    """
    h, rho = entropy_range(n_arms), _growth(growth)
    V = checks.real("squares", squares, low=0.0)
    factor = (1.0 + 1.0 / rho) * math.sqrt(4.0 * rho)
    return h * checks.real("first_rate", first_rate, above=0.0) + factor * math.sqrt(n_arms * V)


def _growth(growth: float | None) -> float:
    # A matched rate grows at least as fast as with ϱ = 1.
    return 1.0 if growth is None else checks.real("growth", growth, low=1.0, high=ADAPTIVE_GROWTH)


def adaptive_mass_moved(
    n_arms: int, updates: float, squares: float, first_rate: float, growth: float | None = None
) -> float:
    """Return a bound on E[S], the mass moved by N updates: min(N, √(hNM/ln 2) + M/ln 2 + 2Λ).

    N = `updates` and V = `squares` are means. M = ½ ln(1 + 4KV/(hη₁)²), and Λ = ½ ln(1 + 4100V/η₁²) bounds the mean of
    ln(η/η₁) after N updates. With ϱ = `growth`, h/ϱ and ϱK take the places of h before N and of K, and Λ = M.

    >>> round(adaptive_mass_moved(n_arms=4, updates=10_000.0, squares=10_000.0, first_rate=0.5), 1)
    443.3
    >>> round(adaptive_mass_moved(n_arms=4, updates=10_000.0, squares=10_000.0, first_rate=0.5, growth=2.5), 1)
    295.0
    """
    h, rho = entropy_range(n_arms), _growth(growth)
    N = checks.real("updates", updates, low=0.0)
    V = checks.real("squares", squares, low=0.0)
    eta = checks.real("first_rate", first_rate, above=0.0)
    slow = _log_growth(math.sqrt(4.0 * rho * n_arms * V) / (h * eta))
    whole = slow if growth is not None else _log_growth(math.sqrt(MATCHED_SQUARES * V) / eta)
    return min(N, math.sqrt(h / rho * N * slow / math.log(2.0)) + slow / math.log(2.0) + 2.0 * whole)


def _log_growth(ratio: float) -> float:
    """Return ½ ln(1 + ratio²)."""
    return 0.5 * math.log1p(ratio * ratio) if ratio < 1e150 else math.log(ratio)


def window_certificate(max_delay: int, update_probability: float, moved: float, base: float, missing: int = 0) -> float:
    """Return d(3d+2)/(d+1) + (3d/2)·S + (2d+1)/((d+1)p)·𝓡 + (2d+1)·M, for Algorithm 1 fed windows, T >= 2d+1.

    d = `max_delay`, p = β(1−β)^{2d}, β = `update_probability`; S = `moved`, the mass moved up to T; 𝓡 = `base`, whose
    mean bounds the base's mean regret over its updates; M = `missing`, the number of rounds without a total. Infinite
    if p = 0.

    >>> window_certificate(max_delay=1, update_probability=0.5, moved=4.0, base=8.0)
    104.5
    """
    boundary, per_moved, per_regret = sharp_terms(max_delay, 2 * max_delay + 1, update_probability)
    S, regret = checks.real("moved", moved, low=0.0), checks.real("base", base)
    lost = checks.integer("missing", missing, low=0)
    if math.isinf(per_regret):
        return math.inf
    return boundary + per_moved * S + per_regret * regret + (2 * max_delay + 1) * lost


def stretch_scale(max_delay: int, update_probability: float) -> float:
    """Return C = √E(m+d)² for a stretch of m rounds, m geometric with mean 1/β: C² = (2−β)/β² + 2d/β + d².

    A stretch of m rounds contains one part of each of m + d actions, so its sum divided by C lies in [0, v] with
    v = (m+d)/C, and the mean of v² is 1.

    >>> stretch_scale(max_delay=0, update_probability=1.0)
    1.0
    >>> round(stretch_scale(max_delay=2, update_probability=0.5) ** 2, 12)
    18.0
    """
    d = checks.integer("max_delay", max_delay, low=0)
    beta = checks.real("update_probability", update_probability, above=0.0, high=1.0)
    return math.hypot(math.sqrt(2.0 - beta) / beta, math.sqrt(2.0 * d / beta), d)


def stretch_certificate(
    max_delay: int, update_probability: float, moved: float, base: float, missing: int = 0
) -> float:
    """Return d + d·S + (1−β)^{−d}·C·𝓡 + (d + 2/β − 1)·M, for Algorithm 1 fed the sums of stretches over C, any T.

    S and M are as in `window_certificate`; a missing round invalidates its whole stretch. If a stretch of m >= 1 rounds
    is incomplete at T, 𝓡 = `base` must include (m+d)/C for it, unless 𝓡 counts the update that it would make at T.
    Infinite if β = 1 and d >= 1.

    >>> stretch_certificate(max_delay=2, update_probability=0.5, moved=4.0, base=0.0)
    10.0
    """
    C = stretch_scale(max_delay, update_probability)
    S, regret = checks.real("moved", moved, low=0.0), checks.real("base", base)
    lost = checks.integer("missing", missing, low=0)
    clean = (1.0 - update_probability) ** max_delay
    if clean == 0.0:
        return math.inf
    each = max_delay + 2.0 / update_probability - 1.0
    return max_delay * (1.0 + S) + C / clean * regret + each * lost


def stopping_price(
    max_delay: int, update_probability: float, open_rounds: int | None, *, windows: bool = False
) -> float:
    """Return what a certificate needs in addition if the run is stopped by what it shows; all reports must be there.

    The certificate is that of the updates so far, without (m+d)/C for an incomplete stretch. `open_rounds` is None if
    the last round was an update, else the number of rounds since the last coin equal to 1, less d (for windows 2d), or
    0 if that is negative. For stretches, with m = `open_rounds`, the price is

        3d,    and unless m is None    + w + (3/2)·(1−β)^{−d}·(m + 1/β + d),

    where w bounds the mean wait for the next update: 1/β if m > 0, else 1/(β(1−β)^d). For windows it is 9d/2 + w +
    (3/2)(2d+1)/((d+1)p), with 2d instead of d in w. Infinite if no update is possible.

    >>> stopping_price(max_delay=1, update_probability=0.5, open_rounds=None)
    3.0
    >>> stopping_price(max_delay=1, update_probability=0.5, open_rounds=0)      # 3 + 4 + 3·(0 + 2 + 1)
    16.0
    """
    d, beta = checks.integer("max_delay", max_delay, low=0), update_probability
    quiet = 2 * d if windows else d
    price, clean = (4.5 if windows else 3.0) * d, (1.0 - beta) ** quiet
    if open_rounds is None:
        return price
    m = checks.integer("open_rounds", open_rounds, low=0)
    if clean == 0.0:
        return math.inf
    last = sharp_terms(d, 2 * d + 1, beta).per_regret if windows else (m + 1.0 / beta + d) / clean
    return price + 1.0 / (beta if m else beta * clean) + 1.5 * last


def window_worst_case(
    n_arms: int, max_delay: int, horizon: int, update_probability: float, first_rate: float, growth: float | None = None
) -> float:
    """Return a bound on R_T of Algorithm 1 fed windows, for all losses; not clipped at T = `horizon` >= 2d+1.

    It is `window_certificate` with the bounds for N = p(T−2d) updates with v = 1.

    >>> round(window_worst_case(n_arms=4, max_delay=0, horizon=10_000, update_probability=1.0, first_rate=0.5), 1)
    801.0
    """
    K, d, T = checks.sizes(n_arms, max_delay, horizon)
    enough_rounds(d, T)
    N = update_rate(d, update_probability) * (T - 2 * d)
    moved = adaptive_mass_moved(K, N, N, first_rate, growth)
    return window_certificate(d, update_probability, moved, adaptive_regret_bound(K, N, first_rate, growth))


def stretch_worst_case(
    n_arms: int,
    max_delay: int,
    horizon: int,
    update_probability: float,
    first_rate: float,
    growth: float | None = None,
    advice: tuple[float, float] = NO_ADVICE,
) -> float:
    """Return a bound on R_T of Algorithm 1 fed stretches, for all losses; not clipped at T = `horizon`.

    It is `stretch_certificate` with the bounds for V = (1−β)^d (1 + β(T−d−1)), the mean number of stretches begun by
    round T, and N = β(1−β)^d (T−d−1), the mean number ended before round T. For large d and T and β = b/(d+1) it is
    about 4√((2/b + 2 + b)e^b)·√(K(d+1)T); the constant is 14.7 for b = 1 and 13.1 for b = 0.55.

    advice: (B₀, c) if advice is followed within a budget, which multiplies the base's bound by 1 + c and adds B₀ to it
    (docs/theory/advice.md).

    >>> round(stretch_worst_case(n_arms=4, max_delay=0, horizon=10_000, update_probability=1.0, first_rate=0.5), 1)
    801.0
    """
    K, d, T = checks.sizes(n_arms, max_delay, horizon)
    beta = checks.real("update_probability", update_probability, above=0.0, high=1.0)
    clean = (1.0 - beta) ** d
    later = T - d - 1
    if later < 0:
        return float(d)
    V = clean * (1.0 + beta * later)
    moved = adaptive_mass_moved(K, beta * clean * later, V, first_rate, growth)
    base = (1.0 + advice[1]) * adaptive_regret_bound(K, V, first_rate, growth) + advice[0]
    return stretch_certificate(d, beta, moved, base)


def stochastic_regret_bound(gaps: ArrayLike, updates: float, first_rate: float, matching: float) -> float:
    """Return a bound on the mean regret of MatchedTsallis over N = `updates` losses in [0, 1], logarithmic in N.

    It holds if, given the past, the mean loss of every arm i exceeds that of one best arm by at least Δ_i in every
    update: for losses of one law, and for means that move together. gaps: the K − 1 numbers Δ_i, in (0, 1].
    η₁ = `first_rate`, κ = `matching`. With Λ = ½ ln(1 + N/256), Γ = (1+κ)²/(4κ)·(2.71·Σ1/Δ_i + 7.2/min Δ_i) and
    c = hη₁ + 64h + 3 it is (√(ΛΓ) + √(ΛΓ + c))² <= 4ΛΓ + 2c. The proof is in docs/theory/both_worlds.md.

    >>> round(stochastic_regret_bound(gaps=[0.5], updates=1e6, first_rate=0.3, matching=0.5), 1)
    474.7
    >>> adaptive_regret_bound(n_arms=2, squares=1e6, first_rate=0.3) > 5_600.0
    True
    """
    terms = _gap_terms(gaps, matching)
    return _self_bounded(terms, 1.0, checks.real("updates", updates, low=0.0), 1.0, 1.0, first_rate)[0]


def stretch_stochastic_bound(
    gaps: ArrayLike,
    max_delay: int,
    horizon: int,
    update_probability: float,
    first_rate: float,
    matching: float,
    advice: tuple[float, float] = NO_ADVICE,
) -> float:
    """Return a bound on R_T of Algorithm 1 fed stretches, with base MatchedTsallis; logarithmic in T = `horizon`.

    It holds if, given the losses of plays before round t − d, the mean total of round t > d exceeds that of one best
    arm by at least Δ_i if arm i is played throughout; for losses of one law Δ_i is the difference of their means. The
    arguments are those of `stochastic_regret_bound` and `stretch_worst_case`. The base adds at most
    (1−β)^{−d}(4βC²ΛΓ + 2Cc), with Λ and c for stretches, and the mass moved d(1 + E[S]); infinite if β = 1 and d >= 1.
    See docs/theory/both_worlds.md. advice: as in `stretch_worst_case`; the adviser must not know more of the losses to
    come than the player does.

    >>> bound = stretch_stochastic_bound([0.5], 0, 10**6, update_probability=1.0, first_rate=0.3, matching=0.5)
    >>> bound == stochastic_regret_bound([0.5], 10**6, first_rate=0.3, matching=0.5)
    True
    """
    n_arms, every, least, _ = terms = _gap_terms(gaps, matching)
    _, d, T = checks.sizes(n_arms, max_delay, horizon)
    C = stretch_scale(d, update_probability)
    beta, h = float(update_probability), entropy_range(n_arms)
    clean = (1.0 - beta) ** d
    if d >= T:
        return float(d)
    if clean == 0.0:
        return math.inf
    # The mean number of stretches begun, and a bound on the mean length of the longest.
    V = clean * (1.0 + beta * (T - d - 1))
    x = max(1, math.ceil(math.log(max(V, 1.0)) / -math.log1p(-beta))) if beta < 1.0 else 1
    top = (d + x + V * (1.0 - beta) ** x / beta) / C
    X, late = _self_bounded(terms, beta * C, V, (1.0 + d) / C, top, first_rate, advice)
    early = math.log1p(32.0 * top / first_rate)
    moved = 1.0 + (2.0 + 3.37 * h) * (early + late)
    moved += 2.0 * math.sqrt(2.7 * late * X / matching * math.sqrt(every / least))
    moved += 2.0 * math.sqrt(1.13 * h * early * X / least)
    return d * (1.0 + moved) + X / (beta * clean)


def _gap_terms(gaps: ArrayLike, matching: float) -> tuple[int, float, float, float]:
    """Return K, Σ 1/Δ_i, min Δ_i and Γ."""
    each = checks.array("gaps", gaps, shape=("K - 1",), unit=True)
    least = float(each.min(initial=math.inf))
    if not 0.0 < least <= 1.0:
        raise InvalidArgument(f"gaps must be one or more numbers greater than 0, but got {checks.shown(gaps)}")
    kappa = checks.real("matching", matching, above=0.0, high=1.0)
    every = math.fsum(1.0 / x for x in each.tolist())
    return len(each) + 1, every, least, (1.0 + kappa) ** 2 / (4.0 * kappa) * (2.71 * every + 7.2 / least)


def _self_bounded(
    terms: tuple[int, float, float, float],
    scale: float,
    squares: float,
    low: float,
    top: float,
    first_rate: float,
    advice: tuple[float, float] = NO_ADVICE,
) -> tuple[float, float]:
    """Return the largest X with X <= scale·(c + 2√(ΛΓX)), c = hη₁ + (64h + 3)·top, and Λ = ½ ln(1 + V/(16·low)²)."""
    h = entropy_range(terms[0])
    late = 0.5 * math.log1p(squares / (16.0 * low) ** 2)
    first = h * checks.real("first_rate", first_rate, above=0.0) + (64.0 * h + 3.0) * top
    first += advice[0] / (1.0 + advice[1])
    scale *= 1.0 + advice[1]
    root = scale * math.sqrt(late * terms[3])
    both = root + math.sqrt(root * root + scale * first)
    return both * both, late


def open_stretch(max_delay: int, horizon: int, update_probability: float) -> float:
    """Return the mean of (m + d)·1{m >= 1}, m = T − d − the latest coin: the rounds that no update has used at T.

    The latest coin is a rounds old with probability β(1−β)^a, a < T; with probability (1−β)^T there is none.
    Summed over a > d that is r^{d+1}(d + 1 + r/β) − r^{T+1}/β, r = 1 − β.

    >>> open_stretch(max_delay=1, horizon=3, update_probability=0.5)      # 2 and 3, each with probability 1/8
    0.625
    """
    d, T, r = max_delay, horizon, 1.0 - update_probability
    if d >= T or r == 0.0:
        return 0.0
    return float(r ** (d + 1) * (d + 1 + r / update_probability) - r ** (T + 1) / update_probability)
