"""`load_example`: small tables to try things on. They are made here, by the rules below, and are the same everywhere.

    stores      a pilot: 12 stores, 120 days; each store plays a campaign for 4 days at a time, drawn at random. A play
                adds its effect over 8 days on top of the level of the store, a weekly season and noise; 16 totals are
                missing. The whole effects of none, email, letter and visit are 0, 30, 60 and 45; half of an email's
                effect arrives on the first day, a letter's peaks after three days.
    mailings    recorded plays: 40 weeks, three mailings in each of them (to different people), and what they brought
                0, 1, 2 and 3 weeks later
    adstock     curves of three channels as Meridian's `Analyzer.adstock_decay()` returns them, of a weekly model
"""

import random
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

from aftereffect.core import checks
from aftereffect.core.errors import MissingExtra

SHAPES = {
    "none": [0.0] * 8,
    "email": [15.0, 7.5, 3.75, 1.875, 0.9375, 0.46875, 0.234375, 0.234375],
    "letter": [2.0, 6.0, 12.0, 16.0, 12.0, 6.0, 4.0, 2.0],
    "visit": [9.0, 9.0, 9.0, 6.0, 6.0, 3.0, 2.0, 1.0],
}
"""The effect of a play in the table `stores`, by lag in days."""


def load_example(name: str, library: str | None = None) -> Any:
    """Return an example table: "stores", "mailings" or "adstock".

    library: "pandas", "polars" or "pyarrow"; by default the first of them that is installed.

    >>> load_example("stores", "polars").shape, load_example("mailings", "polars").columns
    ((1440, 4), ['week', 'mailing', 'lag0', 'lag1', 'lag2', 'lag3'])
    """
    columns = MAKERS[checks.choice("name", name, tuple(MAKERS))]()
    import narwhals

    make: Any = narwhals.from_dict
    libraries = ("pandas", "polars", "pyarrow")
    tried = libraries if library is None else (checks.choice("library", library, libraries),)
    for each in tried:
        try:
            return make(columns, backend=each).to_native()
        except ModuleNotFoundError:
            continue
    raise MissingExtra(f"load_example needs {' or '.join(tried)}: pip install {tried[0]}")


def _normal(rng: random.Random) -> float:
    """Return a sum of uniform numbers, almost normal; `random.Random.random` is the same on every machine."""
    return sum(rng.random() for _ in range(12)) - 6.0


def _stores() -> dict[str, list[Any]]:
    rng, names = random.Random(11), tuple(SHAPES)
    columns: dict[str, list[Any]] = {"date": [], "store": [], "campaign": [], "sales": []}
    rows = []
    for store in range(12):
        level, noise = 400.0 + 40.0 * store, 0.0
        plays: list[str] = []
        for day in range(120):
            plays.append(names[int(rng.random() * 4)] if day % 4 == 0 else plays[-1])
            noise = 0.4 * noise + 12.0 * _normal(rng)
            effects = sum(SHAPES[plays[day - s]][s] for s in range(min(day, 7) + 1))
            total = level + (40.0 if day % 7 >= 5 else 0.0) + effects + noise
            lost = rng.random() < 0.012
            when = date(2025, 3, 3) + timedelta(days=day)
            rows.append((when, f"store {store + 1:02d}", plays[-1], None if lost else round(total, 2)))
    for row in sorted(rows, key=lambda row: row[:2]):
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    return columns


def _mailings() -> dict[str, list[Any]]:
    rng, shares = random.Random(12), {"coupon": (6, 3, 1, 0), "catalogue": (1, 4, 5, 4), "postcard": (2, 2, 1, 1)}
    columns: dict[str, list[Any]] = {name: [] for name in ("week", "mailing", "lag0", "lag1", "lag2", "lag3")}
    for week in range(40):
        for mailing, means in shares.items():
            columns["week"].append(date(2025, 1, 6) + timedelta(weeks=week))
            columns["mailing"].append(mailing)
            for s, mean in enumerate(means):
                columns[f"lag{s}"].append(round(max(0.0, mean * (1.0 + 0.3 * _normal(rng))), 2))
    return columns


def _adstock() -> dict[str, list[Any]]:
    rates = {"tv": 0.75, "search": 0.2, "radio": 0.5}
    names = ("channel", "time_units", "distribution", "mean", "ci_hi", "ci_lo")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for channel, posterior in rates.items():
        for distribution, rate in (("prior", 0.5), ("posterior", posterior)):
            for tenth in range(81):
                t = tenth / 10.0
                curve = (round(each**t, 6) for each in (rate, rate + 0.1, rate - 0.1))
                for name, value in zip(names, (channel, t, distribution, *curve), strict=True):
                    columns[name].append(value)
    return columns


MAKERS: dict[str, Callable[[], dict[str, list[Any]]]] = {
    "stores": _stores, "mailings": _mailings, "adstock": _adstock
}  # fmt: skip
