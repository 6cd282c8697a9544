"""What a page needs from the Store: the open round, a page of the table, the rounds of one unit for the timeline."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

Json = dict[str, Any]
PAGE_ROWS = 30
TIMELINE_ROUNDS = 150
MOST_ROWS = 1000
CHART_ROUNDS, CHART_ROWS = 2000, 20_000
CHART_FIELDS = ("round", "unit", "arm", "total", "status", "block", "washin", "measured", "update", "date")


class Reads(Protocol):
    """The part of the Store that a page reads from."""

    def experiment(self, id: str, /) -> Json:
        """Return an experiment's view."""

    def rounds(self, id: str, /, after: str | int | None = None, limit: int = 100) -> Json:
        """Return round rows after a cursor, in order of rounds and units."""

    def series(self, id: str, /, last: int = 2000) -> Json:
        """Return the columns behind the charts, over the latest rows."""


class RoundsPage(NamedTuple):
    """Rows of the table, the latest first, and where its neighbours begin; None if there are none."""

    rows: list[Json]
    newer: int | None
    older: int | None


def open_rows(store: Reads, view: Mapping[str, Any]) -> list[Json]:
    """Return the rows of the open round, one a unit."""
    if view["open_round"] is None:
        return []
    return _between(store, view, view["open_round"], view["open_round"])


def table(store: Reads, view: Mapping[str, Any], before: int | None) -> RoundsPage:
    """Return the rounds before `before`, or the latest."""
    step = max(1, PAGE_ROWS // len(view["units"]))
    end = view["round"] if before is None else min(before - 1, view["round"])
    start = max(1, end - step + 1)
    rows = _between(store, view, start, end)
    units = {unit: i for i, unit in enumerate(view["units"])}
    rows.sort(key=lambda row: (-row["round"], units[row["unit"]]))
    newer = min(end + step, view["round"]) + 1 if end < view["round"] else None
    return RoundsPage(rows, newer, start if start > 1 else None)


def of_unit(store: Reads, view: Mapping[str, Any], unit: str) -> list[Json]:
    """Return the latest rounds of one unit, as many as the timeline shows and one question to the store can give."""
    count = max(1, min(TIMELINE_ROUNDS, MOST_ROWS // len(view["units"])))
    rows = _between(store, view, max(1, view["round"] - count + 1), view["round"])
    return [row for row in rows if row["unit"] == unit]


def latest(store: Reads, view: Mapping[str, Any]) -> tuple[list[Json], Json]:
    """Return the latest rounds of all units, in order, and the chances at the draws among them."""
    series = store.series(view["id"], last=min(CHART_ROWS, CHART_ROUNDS * len(view["units"])))
    columns = {name: series[name] for name in CHART_FIELDS}
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return rows, series["odds"]


def _between(store: Reads, view: Mapping[str, Any], first: int, last: int) -> list[Json]:
    if last < first:
        return []
    limit = min(MOST_ROWS, (last - first + 1) * len(view["units"]))
    found: list[Json] = store.rounds(view["id"], after=first - 1, limit=limit)["items"]
    return found
