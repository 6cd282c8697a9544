"""The data of the charts: which arm was played when, totals, effects by lag, and the outcome against an equal split.

With JavaScript, `static/charts.js` draws all charts from JSON. Without it, a template draws the timeline of arms, in
which a block looks as in Figure 1 of the paper:

        round   1 2 3 4 5 6 7 8 9
        A       ░ ░ ▒ ▒ █ █ █•          ░ wash-in  ▒ played, not measured  █ measured  • update
        B                     ░ ░

Effects by lag and the equal split are estimated by the model of all totals.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from aftereffect.service.experiment.round import COUNTED
from aftereffect.service.messages import Learned, Overview

Json = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]

COLOURS = 8
"""The number of arms with their own colour; the others are grey."""
MOST_LANES = 30


def colour_of(arms: Sequence[str], arm: str | None) -> int:
    """Return the index of an arm's colour."""
    return min(arms.index(arm), COLOURS) if arm in arms else COLOURS


def timeline(rows: Rows, arms: Sequence[str], most: int, *, marked: bool) -> Json:
    """Return which arm was played when, from the rows of one unit in order of rounds.

    lanes: the `most` most played arms and, if there are more, one lane for the others. bars: [lane, part of the block,
    first round, last round]. updates: [round, lane]; empty unless `marked`. dates: of the first and the last round.
    """
    plays = Counter(row["arm"] for row in rows)
    kept = dict(plays.most_common(most))
    lanes = [{"name": arm, "colour": colour_of(arms, arm), "rounds": kept[arm]} for arm in arms if arm in kept]
    if len(plays) > len(kept):
        lanes.append({"name": "other arms", "colour": COLOURS, "rounds": len(rows) - sum(kept.values())})
    lane_of = dict.fromkeys(plays, len(lanes) - 1) | {str(lane["name"]): i for i, lane in enumerate(lanes)}
    bars = []
    for (arm, _, part), run in groupby(rows, key=lambda row: (row["arm"], row["block"], _part(row))):
        rounds = [row["round"] for row in run]
        bars.append([lane_of[arm], part, rounds[0], rounds[-1]])
    updates = [[row["round"], lane_of[row["arm"]]] for row in rows if row["update"] and marked]
    dates = [rows[i]["date"] if rows else None for i in (0, -1)]
    return {"lanes": lanes, "bars": bars, "updates": updates, "dates": dates}


def _part(row: Mapping[str, Any]) -> str:
    return "measured" if row["measured"] else "wash-in" if row["washin"] else "played"


def charts(view: Overview, learned: Learned, rows: Rows, unit: str) -> Json:
    """Return the data of all charts. rows: the latest, of all units."""
    own = [row for row in rows if row["unit"] == unit]
    # Without carry-over every round is an update, and marks would hide the bars.
    drawn = timeline(own, view.arms, MOST_LANES, marked=bool(view.max_delay))
    lane_of = {lane["name"]: i for i, lane in enumerate(drawn["lanes"])}
    rest = len(lane_of) - 1
    totals = [[row["round"], lane_of.get(row["arm"], rest), row["total"], row["status"], row["date"]] for row in own]
    found = {**drawn, "totals": totals, "lags": by_lag(view, learned)}
    return {**found, "outcome": outcome(rows, view, learned)}


def by_lag(view: Overview, learned: Learned) -> list[Json]:
    """Return the effects of each arm by lag, with the ends of their intervals; at most those of eight arms."""
    return [
        {"name": each.arm, "colour": colour_of(view.arms, each.arm), "bands": each.by_lag}
        for each in learned.arms[:COLOURS]
    ]


def outcome(rows: Rows, view: Overview, learned: Learned) -> Json:
    """Return the sum of all totals after each round, and the estimate for an equal split with its 95% interval.

    The equal split has the same totals, without what the arms played have brought more than the mean of the arms.
    """
    good, places = [row for row in rows if row["status"] in COUNTED], {each.arm: each for each in learned.arms}
    total = view.sum_of_totals - sum(_counted(row, view) for row in good)
    after: dict[int, float] = {}
    plays = Counter({arm: view.plays[arm] for arm in view.arms}) - Counter(row["arm"] for row in rows)
    equal: list[list[float]] = []
    for row in rows:
        if row["status"] in COUNTED:
            total += _counted(row, view)
        plays[row["arm"]] += 1
        if row["status"] != "open":
            if row["round"] in after:
                equal.pop()
            after[row["round"]] = total
            mean = sum(plays.values()) / len(view.arms)
            parts = [((plays[arm] - mean), places[arm].effect) for arm in places]
            margin = sum(abs(apart) * (high - low) / 2.0 for apart, (_, low, high) in parts)
            split = total - sum(apart * value for apart, (value, _, _) in parts)
            equal.append([split, split - margin, split + margin])
    found: Json = {"rounds": list(after), "own": list(after.values()), "equal": None}
    if places:
        found |= {name: [each[i] for each in equal] for i, name in enumerate(("equal", "low", "high"))}
    return found


def _counted(row: Mapping[str, Any], view: Overview) -> float:
    """Return a total as it counts in the sum: a clipped one as the nearest possible one."""
    total: float = row["total"]
    if row["status"] != "clipped" or view.high is None or view.max_delay is None:
        return total
    parts = 1 + view.max_delay
    return min(max(total, parts * min(view.low, 0.0)), parts * max(view.high, 0.0))
