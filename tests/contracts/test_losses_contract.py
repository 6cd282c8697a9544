"""The contract of loss sequences: order of summation, seeds, ranges, redraws."""

import pickle
from collections.abc import Callable

import numpy as np
import pytest
from tests.refusals import refuses

from aftereffect.core.checks import frozen
from aftereffect.core.errors import AftereffectError, InvalidArgument, InvalidLosses, OutOfTurn
from aftereffect.losses import spreads
from aftereffect.losses.hard import Stacked, hard
from aftereffect.losses.protocol import CompositeLosses, Losses
from aftereffect.losses.tables import Table, constrained, drifting, iid, seasonal, switching

T, K = 37, 3
MEANS = [0.3, 0.5, 0.7]


def plain(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((T, K))


def signed(seed: int) -> Table:
    return Table(plain(seed) - 0.5, low=-0.5, high=0.5)


def dense(seed: int, horizon: int = T, max_delay: int = 4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(max_delay + 1), size=(horizon, K)).transpose(0, 2, 1)
    return rng.random((horizon, 1, K)) * shares


FIXED: dict[str, Callable[[int], Losses]] = {
    "composite": lambda seed: CompositeLosses(dense(seed)),
    "composite, T < d": lambda seed: CompositeLosses(dense(seed, 3, 8)),
    "composite, d = 0": lambda seed: CompositeLosses(dense(seed, T, 0)),
    "composite, rewards": lambda seed: CompositeLosses(dense(seed), direction="maximize"),
    "at_once": lambda seed: spreads.at_once(plain(seed)),
    "at_once, d = 5": lambda seed: spreads.at_once(plain(seed), max_delay=5),
    "delayed by 3": lambda seed: spreads.delayed(plain(seed), delays=3),
    "delayed by round": lambda seed: spreads.delayed(plain(seed), delays=np.arange(T) % 7),
    "delayed by arm": lambda seed: spreads.delayed(plain(seed), delays=np.arange(T * K).reshape(T, K) % 5, max_delay=9),
    "geometric": lambda seed: spreads.geometric(plain(seed), half_life=2.0),
    "kernels": lambda seed: spreads.kernels(plain(seed), weights=[[1.0, 0.0], [0.5, 0.5], [0.0, 0.25]]),
    "linear": lambda seed: spreads.linear_composite(signed(seed), coefficients=[1.0, -0.5, 0.25]),
    "linear, T < d": lambda seed: spreads.linear_composite(plain(seed), coefficients=np.full(50, 0.02)),
    "stacked": lambda seed: Losses(Stacked(frozen(plain(seed)), 2), horizon=3 * T, max_delay=2, n_arms=K),
    "stacked, short group": lambda seed: Losses(Stacked(frozen(plain(seed)), 4), horizon=100, max_delay=4, n_arms=K),
}
DRAWN: dict[str, Callable[[int], Losses]] = {
    "iid at once": lambda seed: spreads.at_once(iid(T, means=MEANS, seed=seed)),
    "beta, geometric": lambda seed: spreads.geometric(iid(T, means=MEANS, seed=seed, law="beta"), half_life=3.0),
    "switching, kernels": lambda seed: spreads.kernels(switching(T, n_arms=K, seed=seed), weights=[[0.25] * 4] * K),
    "constrained, delayed": lambda seed: spreads.delayed(constrained(T, n_arms=K, seed=seed), delays=6),
    "drifting, split": lambda seed: spreads.random_split(drifting(T, n_arms=K, seed=seed), max_delay=5, seed=seed),
    "seasonal, linear": lambda seed: spreads.linear_composite(
        seasonal(T, n_arms=K, seed=seed, period=12.0), coefficients=[0.5, 0.5]
    ),
    "split": lambda seed: spreads.random_split(plain(0), max_delay=6, seed=seed),
    "split, T < d": lambda seed: spreads.random_split(signed(0), max_delay=60, seed=seed),
    "randomly delayed": lambda seed: spreads.randomly_delayed(plain(0), max_delay=8, seed=seed),
    "randomly delayed by arm": lambda seed: spreads.randomly_delayed(plain(0), max_delay=8, seed=seed, per_arm=True),
    "anonymous": lambda seed: spreads.anonymous_iid(
        horizon=T, means=MEANS, delay_law=("exponential", 5.0), seed=seed, max_delay=10
    ),
    "hard": lambda seed: hard(K, max_delay=3, horizon=T, seed=seed),
    "hard, shared noise": lambda seed: hard(K, max_delay=3, horizon=T, seed=seed, noise="shared"),
}
ALL = {**FIXED, **DRAWN}

every = pytest.mark.parametrize("make", ALL.values(), ids=ALL.keys())
drawn = pytest.mark.parametrize("make", DRAWN.values(), ids=DRAWN.keys())
fixed = pytest.mark.parametrize("make", FIXED.values(), ids=FIXED.keys())


def arms_for(losses: Losses, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(losses.n_arms, size=losses.horizon)


def naive_totals(components: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """The total of the paper: the sum over s of component s of play t-s, oldest play first."""
    totals = np.zeros(len(arms))
    for t in range(len(arms)):
        for s in range(components.shape[1] - 1, -1, -1):
            if t - s >= 0:
                totals[t] += components[t - s, s, arms[t - s]]
    return totals


@every
def test_totals_follow_the_definition_in_the_canonical_order(make):
    losses = make(0)
    arms = arms_for(losses)
    components = losses.components()
    assert components.shape == (losses.horizon, losses.max_delay + 1, losses.n_arms)
    np.testing.assert_array_equal(losses.totals(arms), naive_totals(components, arms))


@every
def test_arm_totals_are_the_totals_of_constant_arms(make):
    losses = make(0)
    each = [losses.totals(np.full(losses.horizon, i)) for i in range(losses.n_arms)]
    np.testing.assert_array_equal(losses.arm_totals(), np.stack(each, axis=1))
    np.testing.assert_array_equal(losses.arm_sums(), [totals.sum() for totals in each])


@every
def test_the_stream_gives_the_same_totals_and_ends_at_the_horizon(make):
    losses = make(0)
    arms = arms_for(losses)
    stream = losses.stream()
    played = [stream.play(int(arm)) for arm in arms]
    np.testing.assert_array_equal(played, losses.totals(arms))
    assert stream.round == losses.horizon
    with pytest.raises(OutOfTurn, match=f"at most horizon={losses.horizon} times"):
        stream.play(0)


@every
def test_best_arm_and_regret_agree_with_enumeration(make):
    losses = make(0)
    arms = arms_for(losses)
    sums = [naive_totals(losses.components(), np.full(losses.horizon, i)).sum() for i in range(losses.n_arms)]
    best = max(sums) if losses.direction == "maximize" else min(sums)
    gained = losses.totals(arms).sum()
    wanted = best - gained if losses.direction == "maximize" else gained - best
    assert sums[losses.best_arm()] == pytest.approx(best, abs=1e-12)
    assert losses.regret(arms) == pytest.approx(wanted, abs=1e-12)
    assert losses.regret(np.full(losses.horizon, losses.best_arm())) == 0.0


@every
def test_every_contiguous_part_of_an_effect_lies_in_the_range(make):
    losses = make(0)
    ends = np.concatenate([np.zeros((losses.horizon, 1, K)), losses.components().cumsum(axis=1)], axis=1)
    for a in range(losses.max_delay + 1):
        parts = ends[:, a + 1 :] - ends[:, a : a + 1]
        assert parts.min() >= losses.effects.lo - 1e-9
        assert parts.max() <= losses.effects.hi + 1e-9


@every
def test_kernels_see_read_only_contiguous_arrays_also_after_pickling(make):
    losses = make(0)
    for copy in (losses, pickle.loads(pickle.dumps(losses))):
        arrays = [part for part in copy.params if isinstance(part, np.ndarray)]
        assert len(arrays) >= 1
        assert all(part.flags.c_contiguous and not part.flags.writeable for part in arrays)
        np.testing.assert_array_equal(copy.components(), losses.components())
    assert copy.stochastic == losses.stochastic


@drawn
def test_seeds_decide_and_redraw_draws_anew(make):
    losses = make(4)
    np.testing.assert_array_equal(make(4).components(), losses.components())
    assert not np.array_equal(make(5).components(), losses.components())
    again = losses.redraw(11)
    np.testing.assert_array_equal(losses.redraw(11).components(), again.components())
    assert not np.array_equal(losses.redraw(12).components(), again.components())
    np.testing.assert_array_equal(again.redraw(12).components(), losses.redraw(12).components())
    assert (again.horizon, again.max_delay, again.n_arms) == (losses.horizon, losses.max_delay, losses.n_arms)
    assert again.effects == losses.effects
    assert losses.stochastic
    with pytest.raises(InvalidArgument, match="seed must be at least 0, but got -1"):
        losses.redraw(-1)


@drawn
def test_a_pickled_recipe_draws_the_same(make):
    losses = make(4)
    again = pickle.loads(pickle.dumps(losses)).redraw(11)
    np.testing.assert_array_equal(again.components(), losses.redraw(11).components())
    assert not any(part.flags.writeable for part in again.params if isinstance(part, np.ndarray))


@fixed
def test_fixed_losses_cannot_be_redrawn(make):
    assert not make(0).stochastic
    with pytest.raises(InvalidLosses, match=r"must have a stochastic recipe to be redrawn, but .* is fixed"):
        make(0).redraw(1)


@pytest.mark.parametrize("max_delay", [0, 3, 2047, 2048, 3000])
def test_buffers_are_carried_over_from_chunk_to_chunk(max_delay):
    horizon = 5000
    rng = np.random.default_rng(0)
    values, delays = rng.random((horizon, K)), rng.integers(max_delay + 1, size=horizon)
    losses = spreads.delayed(values, delays=delays, max_delay=max_delay)
    arms = arms_for(losses)
    wanted = np.zeros(horizon + max_delay)
    for t in range(horizon):
        wanted[t + delays[t]] += values[t, arms[t]]
    np.testing.assert_array_equal(losses.totals(arms), wanted[:horizon])
    stream = losses.stream()
    np.testing.assert_array_equal([stream.play(int(arm)) for arm in arms], wanted[:horizon])


test_bad_arms_are_named = refuses([
    ([0, 1], r"arms must be 4 whole numbers, one per round, but got int64, shape \(2,\)"),
    ([0.0, 1.0, 0.0, 1.0], r"arms must be 4 whole numbers, one per round, but got float64, shape \(4,\)"),
    ([True, False, True, True], r"4 whole numbers, one per round, but got bool, shape \(4,\)"),
    ([0, 1, 2, 0], r"arms must lie in 0\.\.1, but arms\[2\] is 2"),
    ([0, -1, 0, 0], r"arms must lie in 0\.\.1, but arms\[1\] is -1"),
    ([[0], [1, 0], 0, 0], r"arms must be an array of numbers, but got \[\[0\], \[1, 0\], 0, 0\]"),
], lambda arms: spreads.at_once(np.zeros((4, 2))).totals(arms))


def test_arms_may_be_of_any_integer_type_and_layout():
    losses = spreads.at_once(plain(0))
    arms = np.arange(T) % K
    strided = np.repeat(arms, 2)[::2]
    strided.flags.writeable = False
    for given in (arms.astype(np.uint8), strided, arms.tolist()):
        np.testing.assert_array_equal(losses.totals(given), losses.totals(arms))


def test_a_refused_play_changes_nothing():
    losses = spreads.at_once(plain(0))
    stream = losses.stream()
    with pytest.raises(InvalidArgument, match="arm must be at most 2, but got 3"):
        stream.play(3)
    assert (stream.round, stream.play(1)) == (0, losses.components()[0, 0, 1])


def test_losses_need_a_registered_kernel():
    with pytest.raises(AftereffectError, match="params must be registered with their kernel"):
        Losses((1.0,), horizon=1, max_delay=0, n_arms=2)


def test_repr_names_kernel_and_sizes():
    sizes = "horizon=37, max_delay=3, n_arms=3"
    assert repr(spreads.delayed(plain(0), delays=3)) == f"Losses(Delayed, {sizes}, direction='minimize')"
