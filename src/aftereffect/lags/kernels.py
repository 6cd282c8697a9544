"""The lag model in kernel form: a Bayesian regression of every total on the arms of the rounds before it.

    y(u, t) = level(u) + season(t) + Σ_l θ(l, arm(u, t−l)) + columns(t)·γ + noise(u, t)

Curves θ(·, i) are linear between knots at lags 0, 1, 2, 3, 5, 8, ..., so a generous longest lag adds few numbers. A
priori they are normal, smooth and fading by lag. Four models of the noise run side by side: white, autoregressive with
ρ = 0.5 and ρ = 0.85, and white with a level that jumps. Each filters totals and regressors of a unit in the same way
(a Kalman filter of level and noise; levels have a flat prior), so that what is left is white, and sums up the rest:

    A = Σ x̃x̃ᵀ,   c = Σ x̃ỹ,   Σ ỹ²,   the number of totals,   Σ ln of the variances.

Given A and c the posterior is normal and inverse gamma, for any scale τ and fading h of the curves. `fit` weighs all
combinations of noise, h and τ by their marginal likelihood, whenever the totals have grown by a tenth. Old rounds count
less: in round t those of round s have the weight (s/t)^MEMORY.

What is approximate: jumps are detected one round at a time (the filter mixes both cases and keeps mean and variance),
with the curves of the latest fit. The last column, "age", is how long the arm has been held. It is left out of all
answers, and tested: its coefficient shows effects that wear off. docs/theory/lags.md has the derivation.
"""

import math
from typing import NamedTuple

from aftereffect.core.kernel import FloatState, helper, routine
from aftereffect.core.real import exp, log

NOISES = (0.0, 0.0), (0.5, 0.0), (0.85, 0.0), (0.0, 1.0)
"""Models of the noise: ρ, and whether the level jumps."""
JUMP, JUMP_VARIANCE = 0.03, 4.0
"""The probability of a jump in a round, and its variance in units of that of the noise."""
MEMORY = 0.5
"""Round s has the weight (s/t)^MEMORY in round t."""
BOOST = (1.0 + 2.0 * MEMORY) / (1.0 + MEMORY)
"""Weights (s/t)^MEMORY make estimates as precise as so many times the sum of the weights of equally weighted totals."""
COMMON = 0.3
"""The variance of what all arms have in common, in units of that of their differences."""
SEASON_VARIANCE, COLUMN_PRECISION, AGE_VARIANCE = 4.0, 1e-10, 16.0
"""Prior variances and precision of the other coefficients, in units of the noise."""
AGE_SCALE = 10.0
"""The column "age" is 1 − e^(−a/10) in the a-th round after the first in which an arm is held."""
GROWTH = 1.1
FADE = 0.95
"""The factor per round by which residuals that tell of a change of effects lose weight."""
CHANGED, KEPT = -4.0, 0.25
"""Predictions that fail by that many standard deviations: effects have changed, and this part of the sums is kept."""
SHARED = 1.25
"""With several units a round says at most that many standard deviations: what disturbs all units is no change."""
WEARS_OFF, RECOVERS = -2.75, -1.5
"""The test of age, in standard deviations, from which on effects are said to wear off, and from which on no more."""
TINY = 1e-280
KEEP = 3
"""Answers mix as many members of the grid as this, the most probable ones."""
DRAWS, PLAN_DRAWS = 512, 32
"""How many normal vectors, and their negatives, integrals over arms take; and for the value of a plan."""

# The numbers that begin the state: rounds, effective number of totals, the number at which to fit next, the sums for
# the test of a change and its result, the number of changes, the test of age and whether effects wear off, the member
# of the grid with the largest weight, and what the open round adds to the sums for the test of a change.
ROUNDS, COUNT, NEXT, MISS, MISS_SQUARE, MISFIT, CHANGES, AGE, TIRING, TOP, PART, PART_SQUARE, HEAD = range(13)


class LagParams(NamedTuple):
    """weights[l·B + b]: hat function b at lag l. totals[b]: its sum. max_lag, knots: L and B.

    precisions, logs: for each h, the inverse covariance of a curve at the knots, whose whole effect has variance 1, and
    the logarithm of its determinant. scales: the values of τ, in standard deviations of the noise.
    normals: standard normal numbers for integrals over K arms, a row each. sign: −1 if totals are losses.
    """

    weights: FloatState
    totals: FloatState
    precisions: FloatState
    logs: FloatState
    scales: FloatState
    normals: FloatState
    max_lag: int
    knots: int
    season: int
    columns: int
    sign: float
    n_units: int


@helper
def power(x: float, exponent: float) -> float:
    """Return x^exponent, x > 0."""
    return exp(exponent * log(x))


@helper
def width(params: LagParams, n_arms: int) -> int:
    """Return the number of coefficients."""
    return int(n_arms * params.knots + params.season + params.columns + 1)


@helper
def members(params: LagParams) -> int:
    """Return the number of combinations of noise, h and τ."""
    return len(NOISES) * len(params.logs) * len(params.scales)


@helper
def sums_size(n: int) -> int:
    """A, c, Σỹ², Σ ln of the variances; the latest coefficients and σ²."""
    return n * n + 2 * n + 3


@helper
def filter_size(n: int) -> int:
    """The covariance of level and noise, and their means for every column and the total."""
    return 3 + 2 * (n + 1)


@helper
def sums_at(params: LagParams, n_arms: int, noise: int) -> int:
    """Return where the sums of a noise model begin."""
    return int(HEAD + members(params) + noise * sums_size(width(params, n_arms)))


@helper
def filter_at(params: LagParams, n_arms: int, noise: int, unit: int) -> int:
    """Return where the filter of a noise model and unit begins."""
    first = sums_at(params, n_arms, len(NOISES))
    return int(first + (noise * params.n_units + unit) * filter_size(width(params, n_arms)))


@helper
def history_at(params: LagParams, n_arms: int, unit: int) -> int:
    """Return where the latest arms of a unit begin, the latest first, followed by the age of the latest one."""
    return int(filter_at(params, n_arms, len(NOISES), 0) + unit * (params.max_lag + 2))


@helper
def columns_at(params: LagParams, n_arms: int) -> int:
    """Return where the columns of the open round begin."""
    return history_at(params, n_arms, params.n_units)


@helper
def scratch_at(params: LagParams, n_arms: int) -> int:
    """Return where what is computed anew in every call begins: nothing after it has to be saved."""
    return int(columns_at(params, n_arms) + params.columns)


@helper
def size(params: LagParams, n_arms: int) -> int:
    """Return the length of the state; in the scratch: a row and a filtered row, 2 factors, a vector, 2 rows per arm."""
    n = width(params, n_arms)
    return int(scratch_at(params, n_arms) + 2 * (n + 1) + 2 * n * n + n + 2 * n_arms * n)


@routine
def begin(params: LagParams, n_arms: int, state: FloatState) -> None:
    """Write the state before round 1."""
    for i in range(size(params, n_arms)):
        state[i] = 0.0
    state[NEXT] = 4.0
    for unit in range(params.n_units):
        past = state[history_at(params, n_arms, unit) :]
        for lag in range(params.max_lag + 1):
            past[lag] = -1.0
    for noise in range(len(NOISES)):
        n = width(params, n_arms)
        state[sums_at(params, n_arms, noise) + sums_size(n) - 1] = 1.0
    for member in range(members(params)):
        state[HEAD + member] = 1.0 / members(params)


@helper
def push(params: LagParams, past: FloatState, arm: int) -> None:
    """Put an arm, −1 for none, at the front of a unit's latest arms, and count for how long it has been held."""
    age = past[params.max_lag + 1]
    past[params.max_lag + 1] = age + 1.0 if past[0] == arm else 0.0
    for lag in range(params.max_lag, 0, -1):
        past[lag] = past[lag - 1]
    past[0] = arm


@routine
def regressors(params: LagParams, n_arms: int, t: int, past: FloatState, columns: FloatState, row: FloatState) -> None:
    """Write the row of round t (from 0) into row[0:n]."""
    n = width(params, n_arms)
    for i in range(n):
        row[i] = 0.0
    for lag in range(params.max_lag + 1):
        arm = int(past[lag])
        if arm >= 0:
            for b in range(params.knots):
                row[arm * params.knots + b] += params.weights[lag * params.knots + b]
    first = n_arms * params.knots
    if params.season > 0:
        row[first + t % params.season] = 1.0
    for i in range(params.columns):
        row[first + params.season + i] = columns[i]
    row[n - 1] = 1.0 - exp(-past[params.max_lag + 1] / AGE_SCALE)


@routine
def filtered(kalman: FloatState, n: int, rho: float, row: FloatState, white: FloatState) -> float:
    """Filter a row with its total, row[n], into white; return its variance, 0 for the first, which sets the level."""
    level, noise = kalman[3:], kalman[4 + n :]
    if kalman[0] == 0.0:
        for i in range(n + 1):
            level[i] = row[i]
            noise[i] = 0.0
        # Level and noise add up to the total: variances 1, covariance −1; then one step.
        kalman[0], kalman[1], kalman[2] = 1.0, -rho, 1.0
        return 0.0
    variance = kalman[0] + 2.0 * kalman[1] + kalman[2]
    to_level, to_noise = (kalman[0] + kalman[1]) / variance, (kalman[1] + kalman[2]) / variance
    scale = 1.0 / math.sqrt(variance)
    for i in range(n + 1):
        error = row[i] - level[i] - noise[i]
        white[i] = error * scale
        level[i] += to_level * error
        noise[i] = rho * (noise[i] + to_noise * error)
    kalman[0] -= to_level * to_level * variance
    kalman[1] = rho * (kalman[1] - to_level * to_noise * variance)
    kalman[2] = rho * rho * (kalman[2] - to_noise * to_noise * variance) + 1.0 - rho * rho
    return float(variance)


@helper
def skipped(kalman: FloatState, n: int, rho: float) -> None:
    """Let a round without a total pass."""
    if kalman[0] == 0.0:
        return
    noise = kalman[4 + n :]
    for i in range(n + 1):
        noise[i] *= rho
    kalman[1] *= rho
    kalman[2] = rho * rho * kalman[2] + 1.0 - rho * rho


@routine
def jump(kalman: FloatState, n: int, row: FloatState, sums: FloatState, spread: FloatState) -> float:
    """Widen the filter if the level seems to have jumped; return twice the logarithm by which that is penalised.

    spread[0] is set to what has to be added to the variance of the level afterwards, as both cases are mixed.
    """
    coefficients, square = sums[n * n + n + 2 :], sums[n * n + 2 * n + 2]
    level, noise = kalman[3:], kalman[4 + n :]
    error = row[n] - level[n] - noise[n]
    for i in range(n):
        error -= (row[i] - level[i] - noise[i]) * coefficients[i]
    ratio = min(error * error / max(square, TINY), 100.0)
    stays = kalman[0] + 2.0 * kalman[1] + kalman[2]
    jumps = stays + JUMP_VARIANCE
    odds = JUMP / (1.0 - JUMP) * math.sqrt(stays / jumps) * exp(0.5 * ratio * (1.0 / stays - 1.0 / jumps))
    p = min(max(odds / (1.0 + odds), 1e-9), 1.0 - 1e-9)
    difference = (kalman[0] + JUMP_VARIANCE + kalman[1]) / jumps - (kalman[0] + kalman[1]) / stays
    spread[0] = p * (1.0 - p) * difference * difference * min(ratio, 25.0)
    kalman[0] += p * JUMP_VARIANCE
    return -2.0 * ((1.0 - p) * log((1.0 - JUMP) / (1.0 - p)) + p * log(JUMP / p))


@routine
def add_up(sums: FloatState, n: int, white: FloatState, logarithm: float) -> None:
    """Add a filtered row to the sums."""
    c = sums[n * n :]
    y = white[n]
    for j in range(n):
        x = white[j]
        if x != 0.0:
            column = sums[j * n :]
            for i in range(j, n):
                column[i] += x * white[i]
            c[j] += x * y
    c[n] += y * y
    c[n + 1] += logarithm


@routine
def hear(params: LagParams, n_arms: int, state: FloatState, unit: int, arm: int, total: float) -> None:
    """Learn from the arm (−1: none) and the total (NaN: missing) of a unit in a round; the last unit ends the round."""
    n, t = width(params, n_arms), int(state[ROUNDS])
    if unit == 0 and t > 0:
        fade(params, n_arms, state, 1.0 - MEMORY / (t + MEMORY))
    past = state[history_at(params, n_arms, unit) :]
    push(params, past, arm)
    row = state[scratch_at(params, n_arms) :]
    if total == total:
        regressors(params, n_arms, t, past, state[columns_at(params, n_arms) :], row)
        row[n] = params.sign * total
    counted = 0.0
    for k in range(len(NOISES)):
        rho, jumps = NOISES[k]
        kalman = state[filter_at(params, n_arms, k, unit) :]
        if total != total:
            skipped(kalman, n, rho)
        elif add_total(params, n_arms, state, k, kalman, rho, jumps > 0.0):
            counted = 1.0
    state[COUNT] += counted
    if unit == params.n_units - 1:
        if params.n_units > 1:
            watch_round(params, n_arms, state)
        state[ROUNDS] += 1.0
        if state[COUNT] >= state[NEXT]:
            fit(params, n_arms, state)
            state[NEXT] = max(GROWTH * state[COUNT], state[COUNT] + 1.0)


@routine
def add_total(
    params: LagParams, n_arms: int, state: FloatState, k: int, kalman: FloatState, rho: float, jumps: bool
) -> bool:
    """Add the row in the scratch to the sums of noise model k; False if it only set the level."""
    n = width(params, n_arms)
    row = state[scratch_at(params, n_arms) :]
    white = row[n + 1 :]
    sums = state[sums_at(params, n_arms, k) :]
    penalty, more = 0.0, white[n + 1 :]
    more[0] = 0.0
    if jumps and kalman[0] > 0.0 and state[COUNT] >= 8.0:
        penalty = jump(kalman, n, row, sums, more)
    variance = filtered(kalman, n, rho, row, white)
    kalman[0] += more[0]
    if variance == 0.0:
        return False
    if k == int(state[TOP]) // (len(params.logs) * len(params.scales)):
        watch(params, n_arms, state, sums, white)
    add_up(sums, n, white, log(variance) + penalty)
    return True


@routine
def watch(params: LagParams, n_arms: int, state: FloatState, sums: FloatState, white: FloatState) -> None:
    """Compare the total with what the effects of arms let expect."""
    n = width(params, n_arms)
    if state[COUNT] < 30.0:
        return
    coefficients, square = sums[n * n + n + 2 :], sums[n * n + 2 * n + 2]
    expected, rest = 0.0, white[n]
    for i in range(n - 1):
        part = white[i] * coefficients[i]
        rest -= part
        if i < n_arms * params.knots:
            expected += part
    deviation = math.sqrt(max(square, TINY))
    expected, rest = expected / deviation, min(max(rest / deviation, -4.0), 4.0)
    state[PART] += rest * expected
    state[PART_SQUARE] += expected * expected
    if params.n_units == 1:
        watch_round(params, n_arms, state)


@routine
def watch_round(params: LagParams, n_arms: int, state: FloatState) -> None:
    """Forget most of what was learned if predictions of the latest rounds have failed."""
    part = state[PART]
    if params.n_units > 1:
        most = SHARED * math.sqrt(state[PART_SQUARE])
        part = min(max(part, -most), most)
    state[MISS] = FADE * state[MISS] + part
    state[MISS_SQUARE] = FADE * FADE * state[MISS_SQUARE] + state[PART_SQUARE]
    state[PART], state[PART_SQUARE] = 0.0, 0.0
    if state[MISS_SQUARE] > 0.0:
        state[MISFIT] = state[MISS] / math.sqrt(state[MISS_SQUARE])
    if state[MISFIT] < CHANGED:
        fade(params, n_arms, state, KEPT)
        state[MISS], state[MISS_SQUARE], state[MISFIT] = 0.0, 0.0, 0.0
        state[CHANGES] += 1.0
        state[NEXT] = state[COUNT]


@routine
def fade(params: LagParams, n_arms: int, state: FloatState, factor: float) -> None:
    """Give all totals so far less weight."""
    n = width(params, n_arms)
    state[COUNT] *= factor
    state[NEXT] *= factor
    for k in range(len(NOISES)):
        sums = state[sums_at(params, n_arms, k) :]
        for i in range(n * n + n + 2):
            sums[i] *= factor


@routine
def precision(params: LagParams, n_arms: int, state: FloatState, member: int, factor: FloatState) -> None:
    """Write the lower triangle of a member's posterior precision, columns one after the other."""
    B, n, scales, fadings = params.knots, width(params, n_arms), len(params.scales), len(params.logs)
    tau, unit = params.scales[member % scales], params.precisions[member // scales % fadings * B * B :]
    for i in range(n * n):
        factor[i] = 0.0
    shared = -COMMON / (1.0 + n_arms * COMMON)
    for a in range(n_arms):
        for b in range(a, n_arms):
            share = (1.0 + shared if a == b else shared) / (tau * tau)
            for p in range(B):
                for q in range(B):
                    factor[(a * B + p) * n + b * B + q] = share * unit[p * B + q]
    first = n_arms * B
    for i in range(params.season):
        factor[(first + i) * n + first + i] = 1.0 / SEASON_VARIANCE
    for i in range(first + params.season, n - 1):
        factor[i * n + i] = COLUMN_PRECISION
    factor[n * n - 1] = 1.0 / AGE_VARIANCE
    sums = state[sums_at(params, n_arms, member // (fadings * scales)) :]
    for j in range(n):
        for i in range(j, n):
            factor[j * n + i] += BOOST * sums[j * n + i]


@routine
def cholesky(matrix: FloatState, n: int) -> None:
    """Replace the lower triangle, columns one after the other, by its Cholesky factor."""
    for j in range(n):
        column = matrix[j * n :]
        for k in range(j):
            left = matrix[k * n :]
            x = left[j]
            if x != 0.0:
                for i in range(j, n):
                    column[i] -= left[i] * x
        root = math.sqrt(max(column[j], TINY))
        column[j] = root
        inverse = 1.0 / root
        for i in range(j + 1, n):
            column[i] *= inverse


@routine
def forward(factor: FloatState, n: int, b: FloatState, m: int) -> None:
    """Solve L z = b in place, for the first m rows and columns."""
    for k in range(m):
        column = factor[k * n :]
        b[k] /= column[k]
        x = b[k]
        for i in range(k + 1, m):
            b[i] -= column[i] * x


@routine
def backward(factor: FloatState, n: int, b: FloatState, m: int) -> None:
    """Solve Lᵀ x = b in place, for the first m rows and columns."""
    for k in range(m - 1, -1, -1):
        column = factor[k * n :]
        x = b[k]
        for i in range(k + 1, m):
            x -= column[i] * b[i]
        b[k] = x / column[k]


@routine
def solve(params: LagParams, n_arms: int, state: FloatState, member: int) -> float:
    """Write the factor of the posterior precision of a member, and its coefficients; return σ².

    They are in the scratch: the factor of all n columns, and the coefficients of all but the last one. σ² is not below
    what rounding leaves of it.
    """
    n = width(params, n_arms)
    sums = state[sums_at(params, n_arms, member // (len(params.logs) * len(params.scales))) :]
    factor = state[scratch_at(params, n_arms) + 2 * (n + 1) :]
    coefficients = factor[2 * n * n :]
    precision(params, n_arms, state, member, factor)
    cholesky(factor, n)
    for i in range(n):
        coefficients[i] = BOOST * sums[n * n + i]
    forward(factor, n, coefficients, n)
    explained = 0.0
    for i in range(n - 1):
        explained += coefficients[i] * coefficients[i]
    backward(factor, n, coefficients, n - 1)
    whole = BOOST * sums[n * n + n]
    return float(max(whole - explained, 1e-20 * whole + TINY) / max(BOOST * state[COUNT], 1.0))


@routine
def fit(params: LagParams, n_arms: int, state: FloatState) -> float:
    """Weigh all members of the grid by their marginal likelihood, and keep the coefficients of the best by noise.

    Return the logarithm of the sum of all marginal likelihoods.
    """
    n, B, scales, fadings = width(params, n_arms), params.knots, len(params.scales), len(params.logs)
    factor = state[scratch_at(params, n_arms) + 2 * (n + 1) :]
    coefficients, weights = factor[2 * n * n :], state[HEAD:]
    count, best, top = BOOST * state[COUNT], -math.inf, 0
    for k in range(len(NOISES)):
        sums = state[sums_at(params, n_arms, k) :]
        mine = -math.inf
        for member in range(k * fadings * scales, (k + 1) * fadings * scales):
            square = solve(params, n_arms, state, member)
            evidence = -0.5 * BOOST * sums[n * n + n + 1] - 0.5 * count * log(square)
            h, tau = member // scales % fadings, params.scales[member % scales]
            evidence += 0.5 * n_arms * params.logs[h] - n_arms * B * log(tau)
            for i in range(n - 1):
                evidence -= log(factor[i * n + i])
            weights[member] = evidence
            if evidence > mine:
                mine = evidence
                for i in range(n):
                    sums[n * n + n + 2 + i] = coefficients[i] if i < n - 1 else 0.0
                sums[n * n + 2 * n + 2] = square
            if evidence > best:
                best, top = evidence, member
    state[TOP] = top
    whole = 0.0
    for member in range(members(params)):
        weights[member] = exp(weights[member] - best)
        whole += weights[member]
    for member in range(members(params)):
        weights[member] /= whole
    state[AGE] = age_test(params, n_arms, state, math.sqrt(solve(params, n_arms, state, top)))
    state[TIRING] = still_tiring(state[AGE], state[TIRING])
    return float(best + log(whole))


@helper
def largest(n: int, values: FloatState) -> int:
    """Return the place of the largest of n values, the first one of equals."""
    best = 0
    for i in range(1, n):
        if values[i] > values[best]:
            best = i
    return best


@helper
def still_tiring(test: float, before: float) -> float:
    """Return 1 if effects seem to wear off while an arm is held, by the test of age and what was said before."""
    if test < WEARS_OFF:
        return 1.0
    return 0.0 if test > RECOVERS else before


@routine
def effect_covariance(params: LagParams, n_arms: int, factor: FloatState, rows: FloatState, out: FloatState) -> None:
    """Write the covariance of whole effects: the products of L⁻¹gᵢ, where gᵢ adds up the curve of arm i."""
    n = width(params, n_arms)
    for a in range(n_arms):
        mine = rows[a * n :]
        for i in range(n):
            mine[i] = 0.0
        for b in range(params.knots):
            mine[a * params.knots + b] = params.totals[b]
        forward(factor, n, mine, n - 1)
        for b in range(a + 1):
            value = 0.0
            for i in range(n - 1):
                value += mine[i] * rows[b * n + i]
            out[a * n_arms + b] = value
            out[b * n_arms + a] = value


@routine
def whole_effects(
    params: LagParams, n_arms: int, state: FloatState, member: int, means: FloatState, covariance: FloatState
) -> float:
    """Write mean and covariance of the whole effects under a member, in units of σ; return σ."""
    n = width(params, n_arms)
    factor = state[scratch_at(params, n_arms) + 2 * (n + 1) :]
    coefficients = factor[2 * n * n :]
    rows = coefficients[n:]
    sigma = math.sqrt(solve(params, n_arms, state, member))
    effect_covariance(params, n_arms, factor, rows, covariance)
    for a in range(n_arms):
        mean = 0.0
        for b in range(params.knots):
            mean += coefficients[a * params.knots + b] * params.totals[b]
        means[a] = mean / sigma
    return sigma


@routine
def square_root(n_arms: int, covariance: FloatState, root: FloatState) -> None:
    """Write a lower triangular root of a covariance, which may be singular."""
    for i in range(n_arms * n_arms):
        root[i] = covariance[i]
    for j in range(n_arms):
        for k in range(j):
            x = root[j * n_arms + k]
            for i in range(j, n_arms):
                root[i * n_arms + j] -= root[i * n_arms + k] * x
        pivot = root[j * n_arms + j]
        scale = 1.0 / math.sqrt(pivot) if pivot > 1e-14 else 0.0
        for i in range(j, n_arms):
            root[i * n_arms + j] *= scale


@routine
def best_arms(
    params: LagParams,
    n_arms: int,
    draws: int,
    means: FloatState,
    root: FloatState,
    scale: float,
    p: FloatState,
    weight: float,
) -> float:
    """Add `weight` times the probability that each arm is best to p; return the expected largest effect.

    Effects are normal: means plus `scale` times `root` times standard normal numbers, `draws` of them and their
    negatives.
    """
    share, expected = weight / (2.0 * draws), 0.0
    for z in range(2 * draws):
        sign = scale if z < draws else -scale
        row = params.normals[(z if z < draws else z - draws) * n_arms :]
        best, largest = 0, -math.inf
        for i in range(n_arms):
            value = 0.0
            for k in range(i + 1):
                value += root[i * n_arms + k] * row[k]
            value = means[i] + sign * value
            if value > largest:
                best, largest = i, value
        p[best] += share
        expected += largest
    return expected / (2.0 * draws)


@routine
def likely_members(params: LagParams, state: FloatState, kept: FloatState) -> int:
    """Write the most probable members of the grid and their weights, which add up to 1; return how many."""
    weights = state[HEAD:]
    count, found, best, most = 0, 0.0, -1, math.inf
    while count < KEEP and found < 0.95:
        # The most probable one after the previous one; of equals the first.
        before, limit = best, most
        best, most = 0, -1.0
        for member in range(members(params)):
            later = weights[member] < limit or (weights[member] == limit and member > before)
            if later and weights[member] > most:
                best, most = member, weights[member]
        kept[2 * count], kept[2 * count + 1] = best, most
        found += most
        count += 1
    for i in range(count):
        kept[2 * i + 1] /= found
    return count


@routine
def age_test(params: LagParams, n_arms: int, state: FloatState, sigma: float) -> float:
    """Return the coefficient of "age" in standard deviations, after `solve`: negative if effects wear off."""
    n = width(params, n_arms)
    factor = state[scratch_at(params, n_arms) + 2 * (n + 1) :]
    return float(factor[2 * n * n + n - 1] / sigma)


@helper
def judgement_size(n_arms: int) -> int:
    """The members that are mixed; per arm its probability, its mean and that of the mixture; covariance, root; AGE."""
    return 2 * KEEP + 3 * n_arms + 2 * n_arms * n_arms + 1


@routine
def judge(params: LagParams, n_arms: int, state: FloatState, work: FloatState) -> float:
    """Write what the totals say about whole effects; return the expected loss per round of settling now.

    work: `judgement_size` numbers. After the members, the probability that each arm is best; means and covariance under
    the most probable member, in units of its σ; a root of that covariance, means of the mixture, and the test of age.
    """
    p, means = work[2 * KEEP :], work[2 * KEEP + n_arms :]
    covariance = means[n_arms:]
    root = covariance[n_arms * n_arms :]
    mixed = root[n_arms * n_arms :]
    for i in range(n_arms):
        p[i] = 0.0
        mixed[i] = 0.0
    expected = 0.0
    for place in range(likely_members(params, state, work) - 1, -1, -1):
        weight = work[2 * place + 1]
        sigma = whole_effects(params, n_arms, state, int(work[2 * place]), means, covariance)
        square_root(n_arms, covariance, root)
        expected += weight * sigma * best_arms(params, n_arms, DRAWS, means, root, 1.0, p, weight)
        for i in range(n_arms):
            mixed[i] += weight * sigma * means[i]
        mixed[n_arms] = age_test(params, n_arms, state, sigma)
    return float(max(expected - mixed[largest(n_arms, mixed)], 0.0))
