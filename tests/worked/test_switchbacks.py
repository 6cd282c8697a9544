"""Switchback trials with dairy cows, measured and analysed by others: what `estimate` finds is what was published.

The published analyses give each cow a level and a trend of its own, and each period an effect, which over three periods
is a wave of two periods beside the trends.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import aftereffect as ae

TRIALS = pd.read_csv(Path(__file__).parents[2] / "benchmarks" / "data" / "switchbacks.csv")
COLUMNS = {"round_column": "period", "arm_column": "feed", "total_column": "milk", "unit_column": "cow"}


def curves(trial: str, **settings: object) -> ae.carryover.Curves:
    table = TRIALS[TRIALS.trial == trial].drop(columns="trial")
    return ae.carryover.estimate(table, max_lag=0, trend="unit", clusters="units", **COLUMNS, **settings)


def p_value(found: ae.carryover.Curves) -> float:
    size = len(found.differences)
    statistic = found.differences @ np.linalg.solve(found.covariance, found.differences) / size
    return float(stats.f.sf(statistic, size, found.dof))


def test_brandt_found_that_the_second_feed_brings_22_pounds_more() -> None:
    # "The average increase was 21.7 pounds per cow for a 28-day period"; by an F test of 8.97 with 1 and 9 degrees.
    found = curves("brandt")
    assert found.differences == pytest.approx([21.71])
    assert float(np.sqrt(found.covariance[0, 0])) == pytest.approx(21.71 / np.sqrt(8.9718), rel=1e-4)
    assert (found.effects.lower > 0.0).any()


def test_patterson_and_lucas_left_as_much_unexplained() -> None:
    # Their table: residuals 44.1 with 8 degrees; feeds 58.3 with 3, F = 3.52, p = 0.069.
    found = curves("patterson", season=2)
    assert found.noise**2 == pytest.approx(5.511, abs=5e-4)
    assert found.dof == 8
    assert p_value(found) > 0.05
    # Without the effects of the periods, no F test can be significant either.
    assert p_value(curves("patterson")) > 0.05


def test_feeds_that_were_all_the_same_are_not_told_apart() -> None:
    # Lucas named the feeds afterwards: "uniformity data". Sanders and Gaynor (1987) have F = 2.8, p = 0.13.
    found = curves("lucas", season=2)
    assert ((found.effects.lower < 0.0) & (found.effects.upper > 0.0)).all()
    assert p_value(found) > 0.05


def test_three_periods_are_too_few_for_clusters_by_periods() -> None:
    table = TRIALS[TRIALS.trial == "brandt"].drop(columns="trial")
    with pytest.raises(ae.InvalidArgument, match=r"rounds with totals must be more than 3 .* or say clusters='units'"):
        ae.carryover.estimate(table, max_lag=0, trend="unit", **COLUMNS)
