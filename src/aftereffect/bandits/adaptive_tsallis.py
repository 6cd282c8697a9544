"""½-Tsallis FTRL with an adaptive rate and a baseline that reduces the variance of importance weighting.

Algorithm 2 (Section 4) multiplies the whole loss by 1/q(J). Here a prediction b(i), fixed before the draw, is
subtracted first and added to every arm: ẑ(i) = b(i) + 1{J=i}(ℓ − b(i))/q(i) has the same mean and a much smaller
variance. A loss below its baseline makes ẑ(J) negative, which the regulariser allows only down to −η/√q(J). So for
losses in [0, v] the baseline is capped, and then the largest deviation costs no more than a loss of v:

    1/cap(i) = 1/v + 1/(η√q(i)),      b(i) = min(prediction, cap(i)).

Each update increases the rate according to its cost: with z = ẑ − c for a shift c (FTRL is invariant to shifts),

    cost = Σ z(i)² q(i)^{3/2} / (η (1 + s(i))),  s(i) = z(i)√q(i)/η > −1.

For the arms not played a common bound on 1/(1 + s) is enough, so their part of the cost follows from two moments of
their baselines. Increasing the rate by Δη has a price of its own, the penalty 2Δη(Σ√q − 1) with q after the update.
There are two rules for Δη; h = 2(√K − 1):

- *MatchedTsallis*: the penalty is about κ times the cost, κ = 1/2, never more than the cost, and Δη ≥ cost/h. Σ√q after
  the update is not known before Δη is, so it is guessed; if the penalty exceeds the cost, Δη is computed again from the
  Σ√q found. E[regret] ≤ hη₁ + 4√(K Σv²), and logarithmic in the number of updates for losses of one law.
- *AdaptiveTsallis*: Δη = ϱ·cost/h with ϱ = 5/2, as in versions before 0.2. E[regret] ≤ hη₁ + 4.43√(K Σv²).

Nothing is tuned to a horizon; Σv² is N for N losses in [0, 1]. `realised_bound` is a bound computed from the costs of a
run. The proofs are in docs/theory/adaptive.md and docs/theory/both_worlds.md.

The kernel. With L relative to the leader's, q(i)^(−1/2) = y(i) = L(i)/η + u, as in tsallis.py. The arm played, J, needs
only a few numbers: if x is its loss minus its baseline, ẑ(J) − b(J) = x·y², and s(J) = x·y/η at shift b(J). For the
other arms two moments of their baselines are enough, both for the cost and for a good guess of the next multiplier, so
an update needs few divisions apart from two per arm.

- *Loops that divide do nothing else*, so that the compiler can vectorise them; the results are identical.
- *Sums are taken over even and odd arms separately*, because each addition waits for the previous one. Their order is
  fixed, so that results are the same on every machine.
- *The last step needs no division*, as in tsallis.py, with one more term: up to |v| = 1e−4 the error is (v/y)⁴.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from aftereffect import theory
from aftereffect.bandits.kernel_bandit import start_uniform, stored_draw, stored_probabilities
from aftereffect.bandits.tsallis import FTRLBandit, number
from aftereffect.core import checks, kernel
from aftereffect.core.kernel import FloatState, IntState, Terms, helper
from aftereffect.theory.adaptive import ADAPTIVE_GROWTH

FIRST_RATE = 1.5
MEMORY = 20.0
MATCHED_FIRST_RATE = 0.3
MATCHING = 0.5
LAST_SHIFT = 1e-4
# Up to this shift one term fewer is enough.
SHORT_SHIFT = 3e-6
MOST = 1e300
# Σ√q − 1 is not known more precisely than this. Taken as 0, it would let the smallest cost double the rate.
LEAST_EXCESS = 1e-15
NO_PRIOR = np.zeros(0)

# state: q in [0, K), L in [K, 2K), √q in [2K, 3K), in [3K, 4K) baselines or estimates ẑ during an update, and from 4K
# on these numbers: η, 1/η, u, Σ q^{3/2}, Σ q², the usual loss, the number of updates and the sums over them.
RATE, INVERSE, LEVEL, CUBES, FOURTHS, MEAN, SEEN, COST, PENALTY, MOVED, SQUARES, NUMBERS = range(12)


class AdaptiveParams(NamedTuple):
    """first_rate: η₁. memory: the number of updates over which the prediction averages.

    matching: κ, the ratio of penalty to cost; 0 if the rate grows in proportion to the costs. prior: the estimated
    losses before the first update, K of them, or none if they are all 0.
    """

    first_rate: float
    memory: float
    matching: float
    prior: FloatState = NO_PRIOR


def size(n_arms: int) -> int:
    """Four numbers per arm, and the scalars."""
    return 4 * n_arms + NUMBERS


def start(params: AdaptiveParams, n_arms: int, state: FloatState) -> None:
    """No losses yet, η = η₁: q uniform and u = √K, unless there is a prior."""
    own = 4 * n_arms
    start_uniform(n_arms, 3 * n_arms + NUMBERS, state)
    root = math.sqrt(1.0 / n_arms)
    for i in range(n_arms):
        state[2 * n_arms + i] = root
    state[own + RATE] = params.first_rate
    state[own + INVERSE] = 1.0 / params.first_rate
    state[own + LEVEL] = math.sqrt(n_arms)
    state[own + CUBES] = root
    state[own + FOURTHS] = 1.0 / n_arms
    if params.prior.shape[0] > 0:
        insert_step(params, n_arms, state, params.prior)
        # Only mass that moves while effects arrive counts.
        state[own + MOVED] = 0.0


@helper
def insert_step(params: AdaptiveParams, n_arms: int, state: FloatState, step: FloatState) -> None:
    """Add a step to L outside an update, at an unchanged rate."""
    behind, _, _, numbers = parts(n_arms, state)
    least = MOST
    for i in range(n_arms):
        behind[i] = min(max(behind[i] + step[i], -MOST), MOST)
        least = min(least, behind[i])
    eta = numbers[RATE]
    learn(params, n_arms, state, least, least + numbers[LEVEL] * eta, eta, 0.0, 0.0)


def update(params: AdaptiveParams, n_arms: int, state: FloatState, arm: int, loss: float) -> None:
    """Learn from a loss in [0, 1]."""
    update_sum(params, n_arms, state, arm, loss, (1.0, 0.0, 1.0))


@helper
def update_sum(params: AdaptiveParams, n_arms: int, state: FloatState, arm: int, loss: float, terms: Terms) -> None:
    """Learn from a loss in [0, top] that is expected to be offset + weight · the usual loss."""
    weight, offset, top = terms
    behind, roots, z, numbers = parts(n_arms, state)
    eta, inverse, u = numbers[RATE], numbers[INVERSE], numbers[LEVEL]
    expected = max(offset + numbers[MEAN] * weight, 0.0)
    q, r = state[arm], roots[arm]
    y = behind[arm] * inverse + u
    b = baseline(y, expected, inverse, top)
    predict(n_arms, state, expected, top)
    x = loss - b
    behind[arm] = min(behind[arm] + x * y * y, MOST)
    pull, others, least, roots_sum = gathered(n_arms, state, b)
    # Shifts are measured from b(J). At the shift b(J), 1/(1 + s(i)) ≤ 2 for every arm except J.
    steep = y * inverse
    wide = 1.0 + x * steep
    otherwise = x * (x * steep / wide) + 2.0 * others * inverse
    # A nearly optimal shift is the mean of the estimates with weights q^{3/2}, for J divided by 1 + s(J).
    played = q * r
    rest = max(numbers[CUBES] - played, 0.0)
    gap = x * rest - q * pull
    below = rest * wide + played
    each = 1.0 / below
    shift = (pull * wide + r * x) * each
    # At this shift: x − shift·q(J), s(J), and 1/(1 + s(J)) by a division that does not wait for the first one.
    left = gap * wide * each
    s = gap * wide * steep * each
    light = below / (below + gap * wide * steep)
    # For the other arms: Σ w(shift − b(i) + b(J)), and Σ w(b(i) − b(J) − shift)².
    lag = gap * r * each
    spread = max(others + shift * (lag - pull), 0.0)
    # Their s ≥ −(b(J) + shift)·max √q/η, and max √q = 1/u, which gives an upper bound on 1/(1 + s).
    heavy = u / (u - max(b + shift, 0.0) * inverse)
    if light > 0.0 and 0.0 < heavy <= 2.0:
        cost = min(left * s * light + heavy * (spread * inverse), otherwise)
    else:
        z[arm] = b + x * y * y
        cost = charged(n_arms, state, b + shift, otherwise)
    # A guess of Σ√q after the update: a rise of the arm played counts, the others change little.
    rate = increased(params, n_arms, eta, cost, roots_sum + r * max(light - 1.0, 0.0), top)
    # A guess of the next multiplier: one step from there towards Σ q/(1 + s)² = 1, to second order for the other arms,
    # plus the increase of the rate times 1/Σ w(1 + s)⁻³.
    slope = 3.0 * (numbers[FOURTHS] - q * q) / rest
    excess = 2.0 * lag * inverse + slope * spread * inverse * inverse - q * (1.0 - light * light)
    near = 1.0 / (rest + slope * lag * inverse + played * light * light * light)
    level = u * eta - b - shift + eta * excess * (0.5 + 0.375 * excess) * near
    learn(params, n_arms, state, least, least + level + (rate - eta) * near, rate, cost, top)
    follow(params, numbers, (loss - offset) / weight)


def update_many(params: AdaptiveParams, n_arms: int, state: FloatState, arms: IntState, losses: FloatState) -> None:
    """Learn from the losses of several units, each in [0, 1]."""
    update_many_sums(params, n_arms, state, arms, losses, (1.0, 0.0, 1.0))


@helper
def update_many_sums(
    params: AdaptiveParams, n_arms: int, state: FloatState, arms: IntState, losses: FloatState, terms: Terms
) -> None:
    """Learn from the average of the units' estimates; see `update_sum`."""
    weight, offset, top = terms
    behind, roots, z, numbers = parts(n_arms, state)
    units = arms.shape[0]
    eta = numbers[RATE]
    predict(n_arms, state, max(offset + numbers[MEAN] * weight, 0.0), top)
    lowest = kernel.least(n_arms, z)
    mean = 0.0
    for m in range(units):
        mean += losses[m] / units
    pull = 0.0
    whole = 0.0
    roots_sum = 0.0
    for i in range(n_arms):
        roots_sum += roots[i]
        # The losses of the units that played arm i, minus its baseline.
        beyond = 0.0
        for m in range(units):
            if arms[m] == i:
                beyond += losses[m] - z[i]
        if beyond != 0.0:
            z[i] = min(z[i] + beyond / (units * state[i]), MOST)
        # For an average of estimates, every s(i) > −1 if the shift is the lowest baseline.
        w = state[i] * roots[i] / (eta + (z[i] - lowest) * roots[i])
        pull += w * z[i]
        whole += w
    shift = pull / whole
    cost = charged(n_arms, state, shift, charged(n_arms, state, lowest, math.inf))
    rate = increased(params, n_arms, eta, cost, roots_sum, top)
    least = math.inf
    for i in range(n_arms):
        behind[i] = min(behind[i] + z[i], MOST)
        least = min(least, behind[i])
    # The next multiplier to first order: it moves with the mean of the estimates and with the rate.
    level = least + numbers[LEVEL] * eta - shift + (rate - eta) / numbers[CUBES]
    learn(params, n_arms, state, least, level, rate, cost, top)
    follow(params, numbers, (mean - offset) / weight)


@helper
def follow(params: AdaptiveParams, numbers: FloatState, value: float) -> None:
    """Update the usual loss: the mean of all losses at first, later of about the last `memory` losses."""
    numbers[SEEN] += 1.0
    numbers[MEAN] += (value - numbers[MEAN]) / min(numbers[SEEN], params.memory)


@helper
def increased(params: AdaptiveParams, n_arms: int, eta: float, cost: float, roots_sum: float, top: float) -> float:
    """Return the next rate, given a guess of Σ√q after the update."""
    most = math.sqrt(n_arms) - 1.0
    if params.matching == 0.0:
        return eta + cost * (0.5 * ADAPTIVE_GROWTH / most)
    above = max(min(max(roots_sum - 1.0, LEAST_EXCESS), params.matching * most), 1e-300)
    return eta + min(0.5 * params.matching * cost / above, max(eta, 2.0 * top))


# The loops over the arms in an update.


@helper
def parts(n_arms: int, state: FloatState) -> tuple[FloatState, FloatState, FloatState, FloatState]:
    """Return views of the state that begin at L, √q, the baselines and the numbers; q begins at 0."""
    return state[n_arms:], state[2 * n_arms :], state[3 * n_arms :], state[4 * n_arms :]


@helper
def predict(n_arms: int, state: FloatState, expected: float, top: float) -> None:
    """Write every arm's baseline."""
    behind, _, z, numbers = parts(n_arms, state)
    inverse, u = numbers[INVERSE], numbers[LEVEL]
    for i in range(n_arms):
        z[i] = baseline(behind[i] * inverse + u, expected, inverse, top)


@helper
def baseline(y: float, expected: float, inverse: float, top: float) -> float:
    """Return the expected loss, capped so that a loss of 0 still has s > −1; y = q^(−1/2)."""
    # The cap is slightly lower, so that rounding cannot bring 1 + s to 0.
    return min(expected, kernel.quotient((1.0 - 1e-9) * top, 1.0 + top * inverse * y))


@helper
def gathered(n_arms: int, state: FloatState, b: float) -> tuple[float, float, float, float]:
    """Add the baselines to L; return Σ w(b(i) − b) and Σ w(b(i) − b)², w = q^{3/2}, min L, and Σ√q."""
    behind, roots, z, _ = parts(n_arms, state)
    pull_a = pull_b = others_a = others_b = root_a = root_b = 0.0
    least_a = least_b = MOST
    for k in range(n_arms // 2):
        i = 2 * k
        x = z[i] - b
        a = state[i] * roots[i] * x
        pull_a += a
        others_a += a * x
        behind[i] += z[i]
        least_a = min(least_a, behind[i])
        root_a += roots[i]
        root_b += roots[i + 1]
        x = z[i + 1] - b
        a = state[i + 1] * roots[i + 1] * x
        pull_b += a
        others_b += a * x
        behind[i + 1] += z[i + 1]
        least_b = min(least_b, behind[i + 1])
    if n_arms % 2 == 1:
        i = n_arms - 1
        x = z[i] - b
        a = state[i] * roots[i] * x
        pull_a += a
        others_a += a * x
        behind[i] += z[i]
        least_a = min(least_a, behind[i])
        root_a += roots[i]
    return pull_a + pull_b, others_a + others_b, min(least_a, least_b), root_a + root_b


@helper
def charged(n_arms: int, state: FloatState, shift: float, otherwise: float) -> float:
    """Return the cost at a shift, Σ z²q^{3/2}/(η(1 + s)), or `otherwise` if that is less or some s ≤ −1."""
    _, roots, z, numbers = parts(n_arms, state)
    eta = numbers[RATE]
    cost = 0.0
    room = eta
    for i in range(n_arms):
        # This order of operations cannot overflow.
        x = z[i] - shift
        reach = x * roots[i]
        room = min(room, eta + reach)
        cost += x * state[i] * (reach / (eta + reach))
    # NaN compares false.
    return cost if room > 0.0 and cost < otherwise else otherwise


@helper
def learn(
    params: AdaptiveParams,
    n_arms: int,
    state: FloatState,
    least: float,
    level: float,
    rate: float,
    cost: float,
    top: float,
) -> None:
    """Make L relative to `least`, solve Σ (L/η + u)⁻² = 1 from a guess as in tsallis.py, and update the sums.

    If the penalty of a matched rate exceeds the cost, Σ√q was guessed too small: the increase is computed again from
    the value found, which exceeds that at any smaller rate.
    """
    behind, roots, z, numbers = parts(n_arms, state)
    eta = numbers[RATE]
    for i in range(n_arms):
        behind[i] -= least
    u, v, whole, cubes, fourths = solved(n_arms, state, level, rate)
    penalty = 2.0 * (rate - eta) * max(whole - 1.0, 0.0)
    if params.matching > 0.0 and penalty > cost:
        smaller = min(rate, increased(params, n_arms, eta, cost, whole, top))
        level = (u + v) * rate + (smaller - rate) / cubes
        rate = smaller
        u, v, whole, cubes, fourths = solved(n_arms, state, level, rate)
        penalty = 2.0 * (rate - eta) * max(whole - 1.0, 0.0)
    for i in range(n_arms):
        a = v * z[i]
        r = z[i] - z[i] * a * (1.0 - a + a * a)
        roots[i] = r
        z[i] = max(r * r - state[i], 0.0)
        state[i] = r * r
    moved = added(n_arms, z)
    numbers[PENALTY] += penalty
    numbers[RATE] = rate
    numbers[INVERSE] = 1.0 / rate
    numbers[LEVEL] = u + v
    numbers[CUBES] = cubes
    numbers[FOURTHS] = fourths
    numbers[COST] += cost
    numbers[MOVED] += moved
    numbers[SQUARES] += top * top


@helper
def solved(n_arms: int, state: FloatState, level: float, rate: float) -> tuple[float, float, float, float, float]:
    """Write 1/y = 1/(L/η + u) to the memory of the baselines, for u near the root u + v of Σ (L/η + u + v)⁻² = 1.

    Return u, v, and at the root Σ√q, Σq^{3/2} and Σq².
    """
    behind, roots, z, _ = parts(n_arms, state)
    inverse = 1.0 / rate
    u = level * inverse
    fifths = 0.0
    for _ in range(100):
        # NaN compares false, so a guess that overflowed is replaced by 1 too, the least possible u.
        if not u >= 1.0:
            u = 1.0
        for i in range(n_arms):
            z[i] = kernel.quotient(1.0, behind[i] * inverse + u)
        whole, mass, cubes, fourths = powers(n_arms, z)
        # Series reversal of Σ (y+v)⁻² = 1, that is mass − 2·cubes·v + 3·fourths·v² − 4·fifths·v³ = 1.
        half = kernel.quotient(0.5, cubes)
        first = (mass - 1.0) * half
        bend = 3.0 * fourths * half
        v = first + first * first * bend
        # The memory of √q is free here.
        if SHORT_SHIFT < abs(v) <= LAST_SHIFT:
            for i in range(n_arms):
                roots[i] = z[i] * z[i] * (z[i] * z[i]) * z[i]
            fifths = added(n_arms, roots)
            v += first * first * first * (2.0 * bend * bend - 4.0 * fifths * half)
        if abs(v) <= LAST_SHIFT:
            break
        u += mass * (math.sqrt(mass) - 1.0) / cubes
    whole -= v * (mass - v * (cubes - v * fourths))
    cubes -= 3.0 * v * (fourths - 2.0 * v * fifths)
    return u, v, whole, cubes, fourths - 4.0 * v * fifths


@helper
def added(n_arms: int, x: FloatState) -> float:
    """Return the sum of the first K numbers."""
    even = odd = 0.0
    for k in range(n_arms // 2):
        even += x[2 * k]
        odd += x[2 * k + 1]
    return even + odd + (x[n_arms - 1] if n_arms % 2 == 1 else 0.0)


@helper
def powers(n_arms: int, r: FloatState) -> tuple[float, float, float, float]:
    """Return Σr, Σr², Σr³, Σr⁴ for the first K numbers r."""
    one_a = one_b = two_a = two_b = three_a = three_b = four_a = four_b = 0.0
    for k in range(n_arms // 2):
        a = r[2 * k]
        b = r[2 * k + 1]
        aa = a * a
        bb = b * b
        aaa = aa * a
        bbb = bb * b
        one_a += a
        one_b += b
        two_a += aa
        two_b += bb
        three_a += aaa
        three_b += bbb
        four_a += aa * aa
        four_b += bb * bb
    if n_arms % 2 == 1:
        a = r[n_arms - 1]
        aa = a * a
        aaa = aa * a
        one_a += a
        two_a += aa
        three_a += aaa
        four_a += aa * aa
    return one_a + one_b, two_a + two_b, three_a + three_b, four_a + four_b


kernel.register(
    AdaptiveParams,
    kernel.BanditKernel(
        size, start, stored_draw, update, stored_probabilities, update_many, update_sum, update_many_sums
    ),
)


class AdaptiveTsallis(FTRLBandit):
    """½-Tsallis FTRL with a capped baseline and a rate that grows with its costs; it needs no horizon or tuning.

    first_rate: η₁ > 0, the initial rate; it adds 2(√K − 1)η₁ to the regret bound.
    memory: the number of updates over which the prediction averages, at least 1.
    prior: the estimated losses with which it begins, one per arm; only their differences matter. By default all are 0.

    `MatchedTsallis` has a better rule for the rate.

    >>> bandit = AdaptiveTsallis(n_arms=2)
    >>> bandit.update(0, 1.0)
    >>> bandit.learning_rate > 1.5               # the update had a cost
    True
    >>> bandit.regret_bound(10_000) < 630.0      # at most hη₁ + 4.43√(KN), for all losses
    True

    Reference: docs/theory/adaptive.md; Algorithm 2 of the paper is the same with b = 0 and a fixed η.
    """

    growth: float | None = ADAPTIVE_GROWTH
    """ϱ, if an update increases the rate by ϱ/h times its cost; None if the rate is matched."""

    def __init__(
        self, n_arms: int, *, first_rate: float = FIRST_RATE, memory: float = MEMORY, prior: ArrayLike | None = None
    ) -> None:
        self._start(n_arms, first_rate, memory, 0.0, prior)

    def _start(self, n_arms: int, first_rate: float, memory: float, matching: float, prior: ArrayLike | None) -> None:
        self.first_rate = checks.real("first_rate", first_rate, low=1e-100, high=1e100)
        self.memory = checks.real("memory", memory, low=1.0)
        G = NO_PRIOR
        if prior is not None:
            G = checks.array("prior", prior, shape=(checks.integer("n_arms", n_arms, low=2),))
            # Not frozen: compiled functions are chosen by the type of the array.
            G = np.array(G - checks.real("prior", float(G.min()), low=-1e100))
            checks.real("prior", float(G.max()), high=1e100)
        self.prior = G
        super().__init__(n_arms, AdaptiveParams(self.first_rate, self.memory, matching, G))
        self.prior_price = 0.0
        if prior is not None:
            # docs/theory/inserted_steps.md, section 3.
            q, roots = self._state[:n_arms], self._state[2 * n_arms : 3 * n_arms]
            spread = float(roots.sum()) - math.sqrt(n_arms)
            self.prior_price = max(float(G.max() - G @ q) + 2.0 * self.first_rate * spread, 0.0)

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments after `n_arms`."""
        given: dict[str, Any] = {"first_rate": self.first_rate, "memory": self.memory}
        return {**given, "prior": self.prior.tolist()} if len(self.prior) else given

    learning_rate: float = number(RATE, "The current η.")
    usual_loss: float = number(MEAN, "The mean of about the last `memory` losses, for the baselines.")
    cost: float = number(COST, "Σ cost: the sum of the costs of all updates so far.")
    penalty: float = number(PENALTY, "Σ 2(η_{n+1} − η_n)(Σ√q_{n+1} − 1): the cost of the growth of the rate so far.")
    moved: float = number(MOVED, "S: the probability mass moved so far.")
    updates: int = number(SEEN, "The number of updates so far.", int)
    squares: float = number(SQUARES, "Σ v², where v is the greatest possible loss of an update.")

    def insert(self, step: ArrayLike) -> None:
        """Add a step, one number per arm, to the estimated losses outside an update, at an unchanged rate.

        What this does to the bounds on the regret is in docs/theory/inserted_steps.md.
        """
        self.run(insert_step, np.array(checks.array("step", step, shape=(self.n_arms,))))

    def realised_bound(self) -> float:
        """Return hη₁ + Σ penalty + Σ cost, and the price of a prior; its mean bounds the mean regret so far."""
        first = 2.0 * (math.sqrt(self.n_arms) - 1.0) * self.first_rate
        return first + self.prior_price + self.penalty + self.cost

    def stability(self) -> float:
        """Return 1: one update may move all the mass, although all updates together move little (`mass_moved`)."""
        return 1.0

    def regret_bound(self, n: int) -> float:
        """Return hη₁ + 4√(Kn) for a matched rate, and hη₁ + 4.43√(Kn) otherwise; plus the price of a prior."""
        n = checks.integer("n", n, low=0)
        bound = theory.adaptive_regret_bound(self.n_arms, float(n), self.first_rate, growth=self.growth)
        return bound + self.prior_price


class MatchedTsallis(AdaptiveTsallis):
    """½-Tsallis FTRL with a capped baseline and a matched rate: each increase of the rate costs about what its update
    costs. It needs no horizon or tuning, and is the base of the default player.

    first_rate: η₁ > 0, the initial rate; it adds 2(√K − 1)η₁ to the regret bound.
    memory: the number of updates over which the prediction averages, at least 1.
    matching: κ, the ratio of the penalty of an increase to the cost of its update, above 0 and at most 1.
    prior: the estimated losses with which it begins, one per arm; only their differences matter. By default all are 0.

    >>> bandit = MatchedTsallis(n_arms=2)
    >>> bandit.update(0, 1.0)
    >>> 0.0 < bandit.penalty <= bandit.cost
    True
    >>> bandit.regret_bound(10_000) < 566.0      # at most hη₁ + 4√(KN), for all losses
    True

    Reference: docs/theory/adaptive.md; docs/theory/both_worlds.md for losses of one law.
    """

    growth = None

    def __init__(
        self,
        n_arms: int,
        *,
        first_rate: float = MATCHED_FIRST_RATE,
        memory: float = MEMORY,
        matching: float = MATCHING,
        prior: ArrayLike | None = None,
    ) -> None:
        self.matching = checks.real("matching", matching, above=0.0, high=1.0)
        self._start(n_arms, first_rate, memory, self.matching, prior)

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments after `n_arms`."""
        return {**super().settings, "matching": self.matching}
