"""`CompositeLosses`: a case by hand, and the input that it refuses."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from aftereffect.core.errors import InvalidLosses
from aftereffect.losses.protocol import STRETCH, CompositeLosses

# Multiples of 1/8 add exactly, so that brute force and the check cannot differ by rounding.
eighths = st.integers(-12, 12).map(lambda n: n / 8.0)
shapes = st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(2, 3))


def by_hand() -> np.ndarray:
    components = np.zeros((4, 3, 2))
    components[0, :, 0] = [0.125, 0.25, 0.5]
    components[1, :, 1] = [0.0, 0.5, 0.25]
    components[2, :, 0] = [0.5, 0.0, 0.0]
    components[3, :, 0] = [0.25, 0.25, 0.25]
    components[3, :, 1] = [0.125, 0.0, 0.0]
    return components


def test_by_hand():
    losses = CompositeLosses(by_hand())
    assert (losses.horizon, losses.max_delay, losses.n_arms) == (4, 2, 2)
    # round 1 gets 0.25 from play 0; round 2: 0.5 + 0.5 + 0.5; round 3: 0.25 + 0 + 0.125
    assert losses.totals([0, 1, 0, 1]).tolist() == [0.125, 0.25, 1.5, 0.375]
    assert losses.arm_totals().tolist() == [[0.125, 0.0], [0.25, 0.0], [1.0, 0.5], [0.25, 0.375]]
    assert losses.arm_sums().tolist() == [1.625, 0.875]
    assert losses.best_arm() == 1
    assert losses.regret([0, 1, 0, 1]) == 1.375
    np.testing.assert_array_equal(losses.components(), by_hand())
    assert losses.means is None


def test_rewards_by_hand():
    losses = CompositeLosses(by_hand(), direction="maximize")
    assert losses.best_arm() == 0
    assert losses.regret([0, 1, 0, 1]) == -0.625


def test_the_given_array_is_copied():
    components = by_hand()
    losses = CompositeLosses(components)
    components[:] = 0.0
    np.testing.assert_array_equal(losses.components(), by_hand())


@given(data=st.data(), low=st.sampled_from([-1.0, -0.5, 0.0, 0.5]), high=st.sampled_from([0.75, 1.0, 2.0]))
def test_accepts_exactly_what_brute_force_accepts(data, low, high):
    components = data.draw(shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=eighths)))
    count = components.shape[1]
    parts = [components[:, a:b].sum(axis=1) for a in range(count) for b in range(a + 1, count + 1)]
    lo, hi = min(low, 0.0), max(high, 0.0)
    fits = all(lo <= part.min() and part.max() <= hi for part in parts)
    try:
        CompositeLosses(components, low=low, high=high)
        accepted = True
    except InvalidLosses:
        accepted = False
    assert accepted == fits


@given(shape=shapes, data=st.data(), bad=st.sampled_from([np.nan, np.inf, -np.inf, -0.25, -5e-324]))
def test_one_bad_component_is_named(shape, data, bad):
    components = np.zeros(shape)
    where = tuple(data.draw(st.integers(0, n - 1)) for n in shape)
    components[where] = bad
    with pytest.raises(InvalidLosses) as caught:
        CompositeLosses(components)
    assert f"components[{', '.join(map(str, where))}] is {bad!r}" in str(caught.value)


@given(shape=shapes, data=st.data())
def test_a_sum_above_1_is_named(shape, data):
    components = np.full(shape, 1.0 / shape[1])
    t, i = data.draw(st.integers(0, shape[0] - 1)), data.draw(st.integers(0, shape[2] - 1))
    components[t, -1, i] += 0.25
    with pytest.raises(InvalidLosses, match=rf"a part of components\[{t}, :, {i}\] sums to 1\.2"):
        CompositeLosses(components)


@pytest.mark.parametrize("shape", [(3,), (3, 2), (0, 1, 2), (3, 0, 2), (3, 2, 1), (3, 2, 0), (1, 1, 2, 2)])
def test_wrong_shapes(shape):
    with pytest.raises(InvalidLosses, match=r"components must have shape .* but got shape"):
        CompositeLosses(np.zeros(shape))


@pytest.mark.parametrize("value", ["text", [[["a", "b"]]], [[[True, False]]], [[[1j, 0.0]]], None])
def test_not_numbers(value):
    with pytest.raises(InvalidLosses, match="components must be an array of numbers"):
        CompositeLosses(value)


def test_rounding_is_forgiven_where_it_may_occur():
    CompositeLosses(np.full((1, 10, 2), 0.1))
    CompositeLosses([[[1.0 + 1e-9, -0.0]]])
    with pytest.raises(InvalidLosses, match=r"a part of components\[0, :, 0\] sums to 1\.000000002"):
        CompositeLosses([[[1.0 + 2e-9, 0.0]]])


def test_ranges_below_zero_and_across():
    CompositeLosses([[[-0.5, -1.0]]], low=-1.0, high=-0.25)
    with pytest.raises(InvalidLosses, match=r"must not be positive where \[low, high\] spans \[-1, 0\]"):
        CompositeLosses([[[-0.5, 0.5]]], low=-1.0, high=-0.25)
    up_and_down = [[[0.75, 0.0], [-1.0, 0.0], [0.75, 0.0]]]
    CompositeLosses(up_and_down, low=-1.0)
    with pytest.raises(InvalidLosses, match=r"in \[-0\.5, 1\], but a part of .*\[0, :, 0\] sums to -1\.0"):
        CompositeLosses(up_and_down, low=-0.5)


def test_a_late_error_is_found_behind_the_first_stretch():
    components = np.zeros((STRETCH // 4 + 10, 2, 2))
    components[-3, :, 1] = 0.75
    with pytest.raises(InvalidLosses, match=rf"components\[{len(components) - 3}, :, 1\] sums to 1\.5"):
        CompositeLosses(components)


def test_single_precision_is_kept_and_not_copied_as_a_whole():
    components = np.full((40_000, 9, 4), 0.0625, dtype=np.float32)
    tracemalloc.start()
    losses = CompositeLosses(components)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # One copy, with the delay as the last axis, and a few chunks of rounds for the check.
    assert components.nbytes < peak < 2 * components.nbytes + 40 * STRETCH
    assert losses.params.values.dtype == np.float32
    # All sums are of double precision: those of the same numbers as doubles.
    arms = np.arange(40_000) % 4
    assert losses.totals(arms).tolist() == CompositeLosses(components.astype(np.float64)).totals(arms).tolist()
