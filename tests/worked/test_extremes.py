"""Numbers at the limits of doubles are either refused, with the argument's name, or handled correctly."""

import numpy as np
import pytest
from doubling import DoublingWrapper

import aftereffect as ae
from aftereffect.core.errors import InvalidArgument


@pytest.mark.parametrize("high", [1e304, 1.7e308, 1e-304, 5e-324])
def test_ranges_that_would_overflow_or_lose_their_digits_are_refused(high):
    with pytest.raises(InvalidArgument, match=r"^high - low must be at (most|least) "):
        ae.CompositeLossWrapper(ae.Exp3(2, learning_rate=0.1), max_delay=1, coins=0.5, high=high)


@pytest.mark.parametrize("high", [1e300, 1e-300])
def test_wide_and_narrow_ranges_feed_what_they_should(high):
    player = ae.CompositeLossWrapper(ae.Exp3(2, learning_rate=0.1), max_delay=1, coins=[0, 0, 1], seed=0, high=high)
    for total in (high, high, high):
        player.ask()
        played = player.tell(total)
    assert played.fed_loss == pytest.approx(2 / 3, rel=1e-12)


def test_a_horizon_must_add_up_to_a_number():
    with pytest.raises(InvalidArgument, match=r"horizon \* \(high - low\) must be a finite number"):
        ae.spreads.at_once(np.zeros((10**6, 2)), low=0.0, high=1e303)


def test_a_bound_over_a_very_long_horizon_is_quick():
    # All further epochs have 2³¹ rounds, so doubling the horizon about doubles the bound.
    player = DoublingWrapper(2, max_delay=0, first_horizon=1)
    once, twice = player.regret_bound(10**18), player.regret_bound(2 * 10**18)
    assert 1.99 < twice / once < 2.01


def test_a_half_life_without_end_asks_for_a_delay():
    with pytest.raises(InvalidArgument, match="half_life without max_delay must be at most 1e"):
        ae.spreads.geometric([[0.5, 0.5]], half_life=1e9)
    assert ae.spreads.geometric([[0.5, 0.5]], half_life=1e9, max_delay=3).max_delay == 3
