"""A demo experiment: a year of simulated mailings, to fill a new dashboard.

Each of four regions sends a letter, an email or a leaflet every day and observes one total a day: the orders received,
caused by the mailings of that day and the two days before. Letters bring the most orders, mostly two days later. Some
totals are missing, and one was corrected. The last round is open.
"""

import datetime
from typing import Any

import numpy as np

from aftereffect.service.local import Local
from aftereffect.service.store.store import Store

NAME = "Demonstration: mailings in four regions"
REGIONS = ("north", "east", "south", "west")
DAYS = 365
MOST = 100.0
SEED = 2

# Orders that one mailing brings on average, and how they spread over its own day and the next two.
EFFECTS = {
    "letter": (75.0, (0.1, 0.3, 0.6)),
    "email": (45.0, (0.7, 0.2, 0.1)),
    "leaflet": (30.0, (0.3, 0.4, 0.3)),
}
NOISE = 10.0
MISSING_SHARE = 0.01
CORRECTED_DAY = 100


class World:
    """The customers: orders from a mailing arrive over three days, and only their daily sum is observed."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._owed = {region: [0, 0, 0] for region in REGIONS}

    def day(self, arms: dict[str, str]) -> dict[str, float | None]:
        """Return the orders of a day in each region; None where the total is missing."""
        seen: dict[str, float | None] = {}
        for region, arm in arms.items():
            mean, spread = EFFECTS[arm]
            orders = int(np.clip(np.rint(self._rng.normal(mean, NOISE)), 0, MOST))
            parts = self._rng.multinomial(orders, spread)
            today, *later = (owed + int(part) for owed, part in zip(self._owed[region], parts, strict=True))
            self._owed[region] = [*later, 0]
            seen[region] = None if self._rng.random() < MISSING_SHARE else float(today)
        return seen


def ensure(store: Store, today: datetime.date | None = None, days: int = DAYS) -> str:
    """Return the id of the demo experiment; create it, ending on `today`, if there is none."""
    for one in Local(store).all_experiments():
        if one.name == NAME:
            return one.id
    return fill(store, datetime.date.today() if today is None else today, days)


def fill(store: Store, today: datetime.date, days: int = DAYS) -> str:
    """Create the experiment and play `days` rounds, one a day until yesterday; today's round is left open."""
    first = today - datetime.timedelta(days=days)
    clock, world, service = store.now, World(SEED), Local(store)
    settings: dict[str, Any] = {
        **{"name": NAME, "arms": list(EFFECTS), "units": list(REGIONS), "low": 0.0, "high": MOST, "seed": SEED},
        **{"carry_over": {"window": "2 days"}, "start_date": first.isoformat()},
    }
    try:
        _set_clock(store, first)
        made = service.create(**settings).id
        turn = service.ask(made)
        for day in range(1, days + 1):
            totals = world.day(turn.arms or {})
            if day == CORRECTED_DAY:
                # Two digits were swapped; that is corrected before the round closes.
                service.tell(made, day, (totals[REGIONS[0]] or 0.0) + 9.0, REGIONS[0])
            _set_clock(store, first + datetime.timedelta(days=day))
            told = [{"round": day, "unit": region, "total": total} for region, total in totals.items()]
            turn = service.tell_many(made, told, next=True, restate=True).next or turn
    finally:
        store.now = clock
    return made


def _set_clock(store: Store, day: datetime.date) -> None:
    store.now = lambda: f"{day.isoformat()}T08:00:00.000Z"
