"""A demonstration experiment: a year of made-up mailings, so that a new dashboard has something to show.

Four regions each send a letter, an email or a leaflet every day and see one figure a day: the orders that came in,
of today's mailing and of the two before. Letters bring most, and mostly two days later. Some figures are missing and
one was corrected, as happens. The last round is open: report it.
"""

import datetime
from typing import Any

import numpy as np

from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Amend, Ask, Command, Tell
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
    """What customers do: orders of a mailing arrive over three days, and only their sum is seen."""

    def __init__(self, seed: int) -> None:
        """Start on a day without earlier mailings."""
        self._rng = np.random.default_rng(seed)
        self._owed = {region: [0, 0, 0] for region in REGIONS}

    def day(self, arms: dict[str, str]) -> dict[str, float | None]:
        """Return the orders of a day in each region; None where nobody wrote them down."""
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
    """Return the id of the demonstration experiment; make it if it is not there, ending on `today`."""
    after: str | None = None
    while True:
        page = store.experiments(after=after, limit=1000)
        for one in page["items"]:
            if one["name"] == NAME:
                return str(one["id"])
        after = page["next"]
        if after is None:
            return fill(store, datetime.date.today() if today is None else today, days)


def fill(store: Store, today: datetime.date, days: int = DAYS) -> str:
    """Make the experiment and play `days` rounds, one a day up to yesterday; today's round is left open."""
    first = today - datetime.timedelta(days=days)
    clock = store.now
    try:
        _set_clock(store, first, 8)
        made = store.create(
            {
                "name": NAME,
                "arms": list(EFFECTS),
                "units": list(REGIONS),
                "low": 0.0,
                "high": MOST,
                "carry_over": {"window": "2 days"},
                "seed": SEED,
                "start_date": first.isoformat(),
            }
        )
        _play(store, str(made["id"]), first, days)
    finally:
        store.now = clock
    return str(made["id"])


def _play(store: Store, experiment: str, first: datetime.date, days: int) -> None:
    world = World(SEED)
    turn = store.perform(experiment, Ask())
    for day in range(1, days + 1):
        totals = world.day(turn["arms"])
        told: list[Command] = [Tell(day, total, region) for region, total in totals.items()]
        if day == CORRECTED_DAY and (right := totals[REGIONS[0]]) is not None:
            # The first figure of the day had two digits swapped; noticed before the day was closed.
            told[:1] = [Tell(day, right + 9.0, REGIONS[0]), Amend(day, right, REGIONS[0])]
        _set_clock(store, first + datetime.timedelta(days=day), 8)
        turn = _all_done(store.perform_many([(experiment, command) for command in [*told, Ask()]]))[-1]


def _all_done(answers: list[Any]) -> list[dict[str, Any]]:
    for answer in answers:
        if isinstance(answer, Refused):
            raise answer
    return answers


def _set_clock(store: Store, day: datetime.date, hour: int) -> None:
    moment = f"{day.isoformat()}T{hour:02}:00:00.000Z"
    store.now = lambda: moment
