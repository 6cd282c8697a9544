"""Three campaigns, one revenue total per day, and sales that arrive over a week.

Each day one campaign runs. Its sales arrive over that day and the next seven, and only the day's total is observed.
The totals of some days are missing. Run it: python examples/campaigns.py

>>> shares = campaign_shares(days=20_000, seed=3)
>>> int(shares.argmax())                             # the campaign that sells most is played most
2
"""

import numpy as np

import aftereffect as ae

MEANS = (0.2, 0.3, 0.7)
BEST_DAY = 1_000.0


def campaign_shares(days: int, seed: int) -> np.ndarray:
    """Play this many days, and return the share of each campaign in the last quarter of them."""
    sales = BEST_DAY * ae.tables.iid(days, means=MEANS, seed=seed).values
    shop = ae.spreads.geometric(sales, half_life=1.2, max_delay=7, direction="maximize", high=BEST_DAY)
    player = ae.CompositeLossWrapper.tuned(
        n_arms=3, max_delay=7, horizon=days, seed=seed, direction="maximize", high=BEST_DAY
    )
    till = shop.stream()
    lost = np.random.default_rng(seed).random(days) < 0.01
    played = np.zeros(days, dtype=np.int64)
    for day in range(days):
        played[day] = player.ask()
        revenue = till.play(int(played[day]))
        player.tell(None if lost[day] else revenue)
    return np.bincount(played[-days // 4 :], minlength=3) / (days // 4)


if __name__ == "__main__":
    for campaign, share in enumerate(campaign_shares(days=20_000, seed=3)):
        print(f"campaign {campaign}: mean {MEANS[campaign]:.1f}, played {share:.0%} of the last quarter")
