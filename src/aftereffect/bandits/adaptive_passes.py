"""The passes over the arms in an update of `AdaptiveTsallis` (adaptive_kernel.py; proofs: docs/theory/adaptive.md).

With L counted from the leader's on, q(i)^(−1/2) = y(i) = L(i)/η + u, as in tsallis.py.

- *Loops that divide do nothing else*: so the compiler takes several arms at once, to the same last bit.
- *Sums go over even and odd arms side by side*, for each addition waits for the one before. Their order is fixed: rows
  are the same on every machine.
- *The last step needs no division*, as in tsallis.py, with one term more: up to |v| = 1e−4 the error is (v/y)⁴.
"""

import math

from aftereffect.core import kernel
from aftereffect.core.kernel import helper

LAST_SHIFT = 1e-4
# Up to here a term less will do.
SHORT_SHIFT = 3e-6
MOST = 1e300

# state: q in [0, K), L in [K, 2K), √q in [2K, 3K), in [3K, 4K) baselines or estimates ẑ while an update lasts, and from
# 4K on these numbers: η, 1/η, u, Σ q^{3/2}, Σ q², the mean of what is usual, and what there has been so far.
RATE, INVERSE, LEVEL, CUBES, FOURTHS, MEAN, SEEN, COST, PENALTY, MOVED, SQUARES, NUMBERS = range(12)


@helper
def parts(
    n_arms: int, state: kernel.FloatState
) -> tuple[kernel.FloatState, kernel.FloatState, kernel.FloatState, kernel.FloatState]:
    """Return the state from L, √q, the baselines and the numbers on; from q on it is the state itself."""
    return state[n_arms:], state[2 * n_arms :], state[3 * n_arms :], state[4 * n_arms :]


@helper
def predict(n_arms: int, state: kernel.FloatState, expected: float, top: float) -> None:
    """Write every arm's baseline."""
    behind, _, z, numbers = parts(n_arms, state)
    inverse, u = numbers[INVERSE], numbers[LEVEL]
    for i in range(n_arms):
        z[i] = baseline(behind[i] * inverse + u, expected, inverse, top)


@helper
def baseline(y: float, expected: float, inverse: float, top: float) -> float:
    """Return what is expected, as far as the rate can bear a loss of 0 instead; y = q^(−1/2)."""
    # The cap is taken a hair lower: rounding must not bring 1 + s to 0.
    return min(expected, (1.0 - 1e-9) * top / (1.0 + top * inverse * y))


@helper
def gathered(n_arms: int, state: kernel.FloatState, b: float) -> tuple[float, float, float]:
    """Add the baselines to L; return Σ w(b(i) − b) and Σ w(b(i) − b)², w = q^{3/2}, and min L."""
    behind, roots, z, _ = parts(n_arms, state)
    pull_a = pull_b = others_a = others_b = 0.0
    least_a = least_b = MOST
    for k in range(n_arms // 2):
        i = 2 * k
        x = z[i] - b
        a = state[i] * roots[i] * x
        pull_a += a
        others_a += a * x
        behind[i] += z[i]
        least_a = min(least_a, behind[i])
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
    return pull_a + pull_b, others_a + others_b, min(least_a, least_b)


@helper
def charged(n_arms: int, state: kernel.FloatState, shift: float, otherwise: float) -> float:
    """Return the cost at a shift, Σ z²q^{3/2}/(η(1 + s)), if that is allowed and less than another shift's."""
    _, roots, z, numbers = parts(n_arms, state)
    eta = numbers[RATE]
    cost = 0.0
    room = eta
    for i in range(n_arms):
        # In an order that cannot overflow.
        x = z[i] - shift
        reach = x * roots[i]
        room = min(room, eta + reach)
        cost += x * state[i] * (reach / (eta + reach))
    # NaN compares false.
    return cost if room > 0.0 and cost < otherwise else otherwise


@helper
def learn(
    n_arms: int, state: kernel.FloatState, least: float, level: float, rate: float, cost: float, top: float
) -> None:
    """Take L from its least on, solve Σ (L/η + u)⁻² = 1 from the guess given as in tsallis.py, and keep account."""
    behind, roots, z, numbers = parts(n_arms, state)
    inverse = 1.0 / rate
    u = level * inverse
    for i in range(n_arms):
        behind[i] -= least
    # The baselines' place holds 1/y on the way.
    fifths = 0.0
    for _ in range(100):
        # NaN compares false: an overflow in the guess starts from the safe end too.
        if not u >= 1.0:
            u = 1.0
        for i in range(n_arms):
            z[i] = 1.0 / (behind[i] * inverse + u)
        whole, mass, cubes, fourths = powers(n_arms, z)
        # Series reversal of Σ (y+v)⁻² = 1, that is mass − 2·cubes·v + 3·fourths·v² − 4·fifths·v³ = 1.
        half = 0.5 / cubes
        first = (mass - 1.0) * half
        bend = 3.0 * fourths * half
        v = first + first * first * bend
        # √q's place is free by now.
        if SHORT_SHIFT < abs(v) <= LAST_SHIFT:
            for i in range(n_arms):
                roots[i] = z[i] * z[i] * (z[i] * z[i]) * z[i]
            fifths = added(n_arms, roots)
            v += first * first * first * (2.0 * bend * bend - 4.0 * fifths * half)
        if abs(v) <= LAST_SHIFT:
            break
        u += mass * (math.sqrt(mass) - 1.0) / cubes
    for i in range(n_arms):
        a = v * z[i]
        r = z[i] - z[i] * a * (1.0 - a + a * a)
        roots[i] = r
        z[i] = max(r * r - state[i], 0.0)
        state[i] = r * r
    moved = added(n_arms, z)
    whole -= v * (mass - v * (cubes - v * fourths))
    numbers[PENALTY] += 2.0 * (rate - numbers[RATE]) * max(whole - 1.0, 0.0)
    numbers[RATE] = rate
    numbers[INVERSE] = inverse
    numbers[LEVEL] = u + v
    numbers[CUBES] = cubes - 3.0 * v * (fourths - 2.0 * v * fifths)
    numbers[FOURTHS] = fourths - 4.0 * v * fifths
    numbers[COST] += cost
    numbers[MOVED] += moved
    numbers[SQUARES] += top * top


@helper
def added(n_arms: int, x: kernel.FloatState) -> float:
    """Return the sum of the first K numbers."""
    even = odd = 0.0
    for k in range(n_arms // 2):
        even += x[2 * k]
        odd += x[2 * k + 1]
    return even + odd + (x[n_arms - 1] if n_arms % 2 == 1 else 0.0)


@helper
def powers(n_arms: int, r: kernel.FloatState) -> tuple[float, float, float, float]:
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
