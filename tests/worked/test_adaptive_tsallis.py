"""`AdaptiveTsallis` and `MatchedTsallis`: numbers computed by hand, and every update by bisection in plain NumPy."""

import copy
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.contracts.kits import many_updates, taught

import aftereffect as ae
from aftereffect.bandits import adaptive_tsallis as kernel_functions
from aftereffect.bandits.adaptive_tsallis import COST, PENALTY, RATE
from aftereffect.core.jit import compiled

Floats = NDArray[np.float64]

GROWTH = 2.5
"""ϱ."""


class Told(NamedTuple):
    """An update: arms and losses of the units, and weight, offset and top of the loss (1, 0, 1 for a plain loss)."""

    arms: list[int]
    losses: list[float]
    weight: float = 1.0
    offset: float = 0.0
    top: float = 1.0


def solved(losses: Floats, rate: float) -> Floats:
    """argmin ⟨L, q⟩ − 2ηΣ√q, by bisection for u in [1, √K]: q = ((L − min L)/η + u)⁻²."""
    y = (losses - losses.min()) / rate
    left, right = 1.0, math.sqrt(len(y))
    for _ in range(80):
        u = 0.5 * (left + right)
        left, right = (u, right) if math.fsum((y + u) ** -2.0) > 1.0 else (left, u)
    return np.asarray((y + 0.5 * (left + right)) ** -2.0)


def baselines(bandit: ae.AdaptiveTsallis, mean: float, told: Told) -> Floats:
    """b(i) = min(prediction, 1/(1/v + 1/(η√q)))."""
    q = bandit.probabilities
    cap = 1.0 / (1.0 / told.top + 1.0 / (bandit.learning_rate * np.sqrt(q)))
    return np.minimum(max(told.offset + told.weight * mean, 0.0), cap)


def estimates(q: Floats, b: Floats, told: Told) -> Floats:
    """The average over units of b(i) + 1{J=i}(ℓ − b(i))/q(i)."""
    z = np.tile(b, (len(told.arms), 1))
    for unit, (arm, loss) in enumerate(zip(told.arms, told.losses, strict=True)):
        z[unit, arm] += (loss - b[arm]) / q[arm]
    return np.asarray(z.mean(axis=0))


def stability(q: Floats, after: Floats, rate: float) -> float:
    """The least possible cost: the divergence D(q, q̃) = Σ η(√q − √q̃)²/√q̃, with q̃ the solution at the old rate."""
    return float((rate * (np.sqrt(q) - np.sqrt(after)) ** 2 / np.sqrt(after)).sum())


def plain(q: Floats, b: Floats, told: Told, rate: float) -> float:
    """The cost in the proofs: at shift b(J) with 2 for 1/(1 + s) of every other arm; for averages at the least b(i)."""
    if len(told.arms) == 1:
        arm, x = told.arms[0], told.losses[0] - b[told.arms[0]]
        return float(x * x / (rate * math.sqrt(q[arm]) + x) + 2.0 / rate * (q**1.5 * (b - b[arm]) ** 2).sum())
    return at_shift(q, estimates(q, b, told), rate, float(b.min()))


def at_shift(q: Floats, z: Floats, rate: float, shift: float) -> float:
    """Σ (z − c)² q^{3/2}/(η(1 + s)), infinite if some s ≤ −1."""
    s = (z - shift) * np.sqrt(q) / rate
    return float(((z - shift) ** 2 * q**1.5 / (rate * (1.0 + s))).sum()) if s.min() > -1.0 else math.inf


def feed(bandit: ae.AdaptiveTsallis, told: Told) -> None:
    terms = (told.weight, told.offset, told.top)
    if terms == (1.0, 0.0, 1.0):
        bandit.update_many(told.arms, told.losses)
    else:
        bandit.learn_sums(told.arms, told.losses, *terms)


def test_the_first_update_by_hand() -> None:
    # K = 4, η₁ = 1, b = 0: arm 2 loses 1/2, so ẑ = (0, 0, 2, 0). At shift c the terms are (z − c)²/(8(1 + (z −
    # c)/2)): three times c²/(4(2 − c)), and (2 − c)²/(4(4 − c)). Their least sum is the stability. The shift tried
    # is the mean of ẑ by weights 1/8 and, for the arm played, 1/16: 2/7, at 1/28 + 18/91. At shift 0 it would be
    # 1/4. h = 2, ϱ = 5/2.
    bandit = ae.AdaptiveTsallis(4, first_rate=1.0)
    bandit.update(2, 0.5)
    shifts = np.linspace(0.0, 1.9, 190_001)
    least = float((3 * shifts**2 / (4 * (2 - shifts)) + (2 - shifts) ** 2 / (4 * (4 - shifts))).min())
    assert 0.2298 < least < 0.2299
    assert bandit.cost == pytest.approx(1 / 28 + 18 / 91, rel=1e-14)
    assert least <= bandit.cost
    assert bandit.learning_rate == pytest.approx(1.0 + 1.25 * bandit.cost, rel=1e-15)
    assert bandit.estimated_losses.tolist() == [0.0, 0.0, 2.0, 0.0]
    q = solved(np.array([0.0, 0.0, 2.0, 0.0]), bandit.learning_rate)
    assert bandit.probabilities == pytest.approx(q, rel=1e-13)
    penalty = 2.5 * bandit.cost * (float(np.sqrt(q).sum()) - 1.0)
    assert bandit.penalty == pytest.approx(penalty, rel=1e-12)
    assert bandit.moved == pytest.approx(0.25 - q[2], rel=1e-12)
    assert (bandit.updates, bandit.squares) == (1, 1.0)
    assert bandit.realised_bound() == pytest.approx(2.0 + penalty + bandit.cost, rel=1e-14)


def tells(K: int, units: int, rng: np.random.Generator, bandit: ae.AdaptiveTsallis) -> Told:
    """A random update; half of the losses are at an end of the range, a third are sums of up to six rounds."""
    q = bandit.probabilities
    arms = rng.choice(K, size=units, p=q / q.sum()).tolist()
    losses = np.where(rng.random(units) < 0.5, rng.integers(0, 2, units), rng.random(units))
    if rng.random() < 1 / 3:
        rounds = int(rng.integers(1, 7))
        top = (rounds + 2) / 4.0
        return Told(arms, (top * losses).tolist(), rounds / 4.0, float(rng.choice([0.0, 0.25])), top)
    return Told(arms, losses.tolist())


def check_rate(bandit: ae.AdaptiveTsallis, rate: float, cost: float, penalty: float, before: float, top: float) -> None:
    """The increase of the rate after an update of this cost and penalty; before: Σ√q − 1 before it."""
    most, grown = math.sqrt(bandit.n_arms) - 1.0, bandit.learning_rate - rate
    if not isinstance(bandit, ae.MatchedTsallis):
        assert bandit.learning_rate == pytest.approx(rate + 0.5 * GROWTH * cost / most, rel=1e-12)
        return
    slack = 1e-9 * max(rate, top)
    assert grown >= 0.5 * cost / most - slack
    assert penalty <= cost + slack
    assert grown <= max(rate, 2.0 * top) + slack
    assert grown <= 0.5 * cost / before * (1.0 + 1e-6) + slack
    # Unless the step is capped, Σ√q was not guessed too high by far: at most the value before plus the arm played.
    if grown < max(rate, 2.0 * top) * (1.0 - 1e-9):
        assert 0.5 * bandit.matching * cost <= (before + 1.0) * grown + slack


@pytest.mark.parametrize("units", [1, 2, 5])
@pytest.mark.parametrize("base", [ae.AdaptiveTsallis, ae.MatchedTsallis])
@pytest.mark.parametrize(("K", "first_rate"), [(2, 1.0), (2, 1e-6), (3, 0.05), (10, 1.0), (10, 1e4), (200, 0.3)])
def test_every_update_is_what_the_formulas_say(base: Any, K: int, first_rate: float, units: int) -> None:
    bandit, rng = (base(K, first_rate=first_rate, memory=7.0), np.random.default_rng(K))
    mean, paid, worst = 0.0, np.zeros(K), 0.0
    for n in range(1, 81):
        told = tells(K, units, rng, bandit)
        q, rate, before, cost, penalty = (
            *(bandit.probabilities, bandit.learning_rate, bandit.estimated_losses, bandit.cost, bandit.penalty),
        )
        b = baselines(bandit, mean, told)
        z = estimates(q, b, told)
        feed(bandit, told)
        mean += ((np.mean(told.losses) - told.offset) / told.weight - mean) / min(n, 7)
        charged, scale = bandit.cost - cost, max(1.0, float(np.abs(z).max()))
        ahead = before + z
        assert bandit.estimated_losses == pytest.approx(ahead - ahead.min(), rel=1e-8, abs=1e-8 * scale)
        least = stability(q, solved(ahead, rate), rate)
        # The cost is at least the stability, and at most what the proof allows.
        assert charged >= least - 1e-8 * max(least, 1e-3)
        assert charged <= plain(q, b, told, rate) * (1.0 + 1e-9) + 1e-9
        assert charged <= 1.5 * told.top
        worst = max(worst, charged / max(least, 1e-9))
        # From the bandit's own L̂, so that rounding errors do not accumulate.
        answer = solved(bandit.estimated_losses, bandit.learning_rate)
        assert np.abs(bandit.probabilities - answer).max() <= 1e-12
        assert abs(math.fsum(bandit.probabilities) - 1.0) <= 1e-12
        grown = 2.0 * (bandit.learning_rate - rate) * (math.fsum(np.sqrt(answer)) - 1.0)
        assert bandit.penalty - penalty == pytest.approx(grown, rel=1e-8, abs=1e-10 * max(1.0, penalty))
        check_rate(bandit, rate, charged, grown, math.fsum(np.sqrt(q)) - 1.0, told.top)
        # The certificate of the base holds in this run, for all arms.
        paid += float(z @ q) - z
        assert paid.max() <= bandit.realised_bound() + 1e-7 * max(1.0, float(np.abs(paid).max()))
    assert worst < 3.0, "the shift tried is nearly the best"


@pytest.mark.parametrize("K", [2, 3, 7, 40])
def test_the_cost_is_by_moments_at_usual_rates_and_exact_at_small_ones(K: int) -> None:
    rng, ways = np.random.default_rng(K), {0: 0, 1: 0, 2: 0}
    # The rate is small only in the first updates, so many short runs are needed.
    for first_rate in np.geomspace(1e-3, 0.5, 20):
        bandit, mean = ae.AdaptiveTsallis(K, first_rate=float(first_rate), memory=5.0), 0.0
        for n in range(1, 16):
            told = tells(K, 1, rng, bandit)
            q, rate, cost, arm = bandit.probabilities, bandit.learning_rate, bandit.cost, told.arms[0]
            b = baselines(bandit, mean, told)
            z = estimates(q, b, told)
            # The shift: the mean of the estimates with weights q^{3/2}/(1 + s); s ≠ 0 only for the arm played.
            weights, others = q**1.5, np.arange(K) != arm
            weights[arm] /= 1.0 + (told.losses[0] - b[arm]) / (rate * math.sqrt(q[arm]))
            shift = float(weights @ z / weights.sum())
            theta = max(shift, 0.0) * math.sqrt(q.max()) / rate
            s = (z[arm] - shift) * math.sqrt(q[arm]) / rate
            if theta <= 0.5 and s > -1.0:
                spread = float((q**1.5 * (b - shift) ** 2)[others].sum())
                wanted = rate * math.sqrt(q[arm]) * s * s / (1.0 + s) + spread / (rate * (1.0 - theta))
            else:
                wanted = at_shift(q, z, rate, shift)
            feed(bandit, told)
            mean += ((told.losses[0] - told.offset) / told.weight - mean) / min(n, 5)
            crude = plain(q, b, told, rate)
            assert bandit.cost - cost == pytest.approx(min(wanted, crude), rel=1e-7, abs=1e-9)
            ways[0 if crude < wanted else 1 if theta <= 0.5 else 2] += 1
    assert min(ways[1], ways[2]) > 0, ways


@pytest.mark.parametrize("first_rate", [1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("K", [2, 3, 5])
def test_estimates_are_unbiased_and_cost_what_the_proof_says_on_average(K: int, first_rate: float) -> None:
    # Exact over the arm drawn, in states along a run: Σ_J q(J) ẑ = ℓ, and Σ_J q(J) cost ≤ (Σ√q + 2Σq^{3/2}(1 − q))/η.
    bandit, rng = ae.AdaptiveTsallis(K, first_rate=first_rate), np.random.default_rng(K)
    for n in range(40):
        losses = rng.random(K) if n % 3 else rng.integers(0, 2, K).astype(float)
        q, before = bandit.probabilities, bandit.estimated_losses
        mean, cost = np.zeros(K), 0.0
        for arm in range(K):
            twin = copy.deepcopy(bandit)
            twin.update(arm, float(losses[arm]))
            mean += q[arm] * (twin.estimated_losses - before)
            cost += q[arm] * (twin.cost - bandit.cost)
        # L̂ is counted from the leader's on: what is known of the mean is known up to a number common to all arms.
        assert mean - mean[0] == pytest.approx(losses - losses[0], abs=1e-9 * max(1.0, float(before.max())))
        assert cost <= float((np.sqrt(q) + 2.0 * q**1.5 * (1.0 - q)).sum()) / bandit.learning_rate * (1 + 1e-9)
        bandit.update(int(rng.choice(K, p=q / q.sum())), float(losses.max()))


@pytest.mark.parametrize("base", [ae.AdaptiveTsallis, ae.MatchedTsallis])
@pytest.mark.parametrize("factor", [2.0**-20, 1e-3, 7.0, 2.0**30])
def test_play_does_not_depend_on_the_unit_of_losses(base: Any, factor: float) -> None:
    plain, scaled = base(4, first_rate=0.5), base(4, first_rate=0.5 * factor)
    rng = np.random.default_rng(3)
    # A power of 2 changes no rounding; with other factors the rounding errors of the updates may add up.
    tolerance = 1e-10 if math.frexp(factor)[0] != 0.5 else 0.0
    for _ in range(60):
        q = plain.probabilities
        arm, loss, top = int(rng.choice(4, p=q / q.sum())), float(rng.random()), float(rng.integers(1, 4))
        plain.learn_sums([arm], [loss], top, 0.25, top)
        # The predicted mean is in units of losses too: the weight is unchanged, the offset and the top are scaled.
        scaled.learn_sums([arm], [loss * factor], top, 0.25 * factor, top * factor)
        assert np.abs(scaled.probabilities - q_of(plain)).max() <= tolerance
    assert scaled.cost == pytest.approx(plain.cost * factor, rel=1e-9)


def q_of(bandit: Any) -> Floats:
    return np.asarray(bandit.probabilities)


@pytest.mark.parametrize("base", [ae.AdaptiveTsallis, ae.MatchedTsallis])
@pytest.mark.parametrize("first_rate", [1e-100, 1e-10, 1.0, 1e10, 1e100])
@pytest.mark.parametrize("K", [2, 10, 10_000])
def test_numbers_at_the_ends(base: Any, K: int, first_rate: float) -> None:
    bandit, rng = base(K, first_rate=first_rate), np.random.default_rng(5)
    for n in range(60):
        q = bandit.probabilities
        # The best arm, the worst arm and a random arm in turn, with losses 0 and 1: most of this is very improbable.
        arm = (int(q.argmax()), int(q.argmin()), int(rng.choice(K, p=q / q.sum())))[n % 3]
        # The probability of some arms becomes 0; these cannot be drawn any more.
        arm = arm if q[arm] > 0.0 else int(q.argmax())
        if n % 5 == 4:
            bandit.update_many([arm, int(q.argmax())], [float(n % 2), 1.0])
        else:
            bandit.update(arm, float(n % 7 < 4))
        q = bandit.probabilities
        assert np.isfinite(bandit._state).all()
        assert q.min() >= 0.0
        assert abs(math.fsum(q) - 1.0) <= 1e-12


@pytest.mark.parametrize("base", [ae.AdaptiveTsallis, ae.MatchedTsallis])
@pytest.mark.parametrize(("K", "first_rate"), [(2, 1.0), (5, 1e-100)])
def test_a_million_updates(base: Any, K: int, first_rate: float) -> None:
    params = base(K, first_rate=first_rate).params
    state, rng = np.zeros(kernel_functions.size(K)), np.random.default_rng(1)
    kernel_functions.start(params, K, state)
    losses = rng.integers(0, 2, (9973, K)).astype(float)
    compiled(many_updates, params)(params, K, state, losses, rng.random(99_991), 1_000_000)
    assert np.isfinite(state).all()
    assert abs(math.fsum(state[:K]) - 1.0) <= 1e-12
    rate, cost, h = state[4 * K + RATE], state[4 * K + COST], 2.0 * (math.sqrt(K) - 1.0)
    growth = 1.0 if base is ae.MatchedTsallis else GROWTH
    # E[(η₁ + ϱΣcost/h)²] ≤ η₁² + 4ϱKN/h², ϱ = 1 for a matched rate; a run of this length stays below.
    assert first_rate + growth * cost / h <= math.sqrt(first_rate**2 + 4.0 * growth * K * 1e6 / h**2)
    if base is ae.MatchedTsallis:
        assert state[4 * K + PENALTY] <= cost
        assert first_rate + cost / h <= rate <= math.sqrt(first_rate**2 + 84e6)
    else:
        assert rate == pytest.approx(first_rate + GROWTH * cost / h, rel=1e-9)


def test_what_it_says_of_itself() -> None:
    # K = 4: h = 2, so the bound is 2η₁ + 2.8√(10n).
    bandit = ae.AdaptiveTsallis(4, first_rate=0.5)
    expected = [1.0, 1.0 + 2.8 * math.sqrt(10.0), 1.0 + 280.0 * math.sqrt(10.0)]
    assert [bandit.regret_bound(n) for n in (0, 1, 10_000)] == pytest.approx(expected)
    assert bandit.stability() == 1.0
    assert taught(bandit, 50).moved <= 50.0
    for bad in ({"first_rate": 0.0}, {"first_rate": math.nan}, {"first_rate": 1e101}, {"memory": 0.5}):
        with pytest.raises(ae.InvalidArgument, match=rf"^{next(iter(bad))} must be "):
            ae.AdaptiveTsallis(4, **bad)


def test_an_arm_that_is_as_good_as_gone_leaves_averages_finite() -> None:
    bandit = ae.AdaptiveTsallis(2)
    while bandit.probabilities[0] > 1e-60:
        bandit.update(0, 1.0)
    while bandit.probabilities[0] > 1e-307:
        y = bandit.probabilities[0] ** -0.5
        bandit.update(0, min(1.0, 10.0**155.7 * bandit.learning_rate / y / y))
    rate = bandit.learning_rate
    bandit.update_many([0, 1], [1.0, 1.0])
    assert rate <= bandit.learning_rate < 2.0 * rate + 10.0
    assert bandit.probabilities[1] == pytest.approx(1.0)


@pytest.mark.parametrize("units", [1, 2])
def test_the_rate_does_not_grow_where_the_sum_of_roots_is_rounded_to_one(units: int) -> None:
    bandit = ae.MatchedTsallis(2)
    while bandit.probabilities[1] > 1e-60:
        bandit.update(1, 1.0)
    rate = bandit.learning_rate
    for n in range(100):
        if units == 1:
            bandit.update(0, float(n % 2))
        else:
            bandit.update_many([0] * units, [float(n % 2)] * units)
    # Δη is at most cost/(2(Σ√q − 1)); both are far below rounding, and the cost falls faster than the other.
    assert bandit.learning_rate == pytest.approx(rate, rel=1e-12)
