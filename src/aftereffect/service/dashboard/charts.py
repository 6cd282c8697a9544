"""The data of the charts: which arm was played when, totals, probabilities, and the outcome against an equal split.

The server draws the timeline of arms itself, so that it is there without JavaScript; Figure 1 of the paper shows a
block in the same way. The other charts are JSON for `static/charts.js`.

        round   1 2 3 4 5 6 7 8 9
        A       ░ ░ ▒ ▒ █ █ █•          ░ wash-in  ▒ played, not measured  █ measured  • update
        B                     ░ ░

Probabilities change only at updates, so their values at the draws are complete. The equal split is estimated from the
measured windows, which hold effects of one arm alone (Lemma 2).
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from aftereffect.core.text import counted

Json = dict[str, Any]
View = Mapping[str, Any]
Rows = Sequence[Mapping[str, Any]]

COLOURS = 8
"""Arms with a colour of their own; later ones share a grey."""
PARTS = {"measured": "measured", "washin": "wash-in", "between": "played"}
NORMAL_95 = 1.96
MOST_LANES, MOST_DRAWN_LANES = 30, 12
LANE, THICK = 44, 16


def colour_of(arms: Sequence[str], arm: str | None) -> int:
    """Return the number of an arm's colour."""
    return min(arms.index(arm), COLOURS) if arm in arms else COLOURS


def stretches(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, int, str, int, int]]:
    """Yield (arm, block, part, first round, last round) for consecutive rounds of one arm in one part of a block."""

    def key(row: Mapping[str, Any]) -> tuple[str, int, str]:
        part = "measured" if row["measured"] else "washin" if row["washin"] else "between"
        return row["arm"], row["block"], part

    for (arm, block, part), run in groupby(rows, key=key):
        rounds = [row["round"] for row in run]
        yield arm, block, part, rounds[0], rounds[-1]


def timeline(rows: Rows, arms: Sequence[str]) -> Json:
    """Return the drawing of one unit's rows, in order of rounds. Arms that were not played have no lane."""
    first, last = (rows[0]["round"], rows[-1]["round"]) if rows else (1, 1)
    step = 100.0 / (last - first + 1)
    plays = Counter(row["arm"] for row in rows)
    names = [arm for arm in arms if arm in plays]
    # Without carry-over every round is an update, and marks would hide the bars.
    marked = [row for row in rows if row["update"]] if any(row["washin"] for row in rows) else []
    lanes = []
    for i, name in enumerate(names[:MOST_DRAWN_LANES]):
        bars = [
            {
                "kind": part,
                "x": f"{(start - first) * step:.3f}",
                "width": f"{(end - start + 1) * step:.3f}",
                "words": f"{name}: rounds {start:,} to {end:,}, {PARTS[part]}, block {block:,}",
            }
            for arm, block, part, start, end in stretches(rows)
            if arm == name
        ]
        updates = [f"{(row['round'] - first + 1) * step:.3f}" for row in marked if row["arm"] == name]
        lanes.append(
            {"name": name, "colour": colour_of(arms, name), "bars": bars, "updates": updates, "top": i * LANE + 20}
        )
    words = [f"{name} {counted(plays[name], 'round')}" for name in names[:MOST_DRAWN_LANES]]
    if len(names) > MOST_DRAWN_LANES:
        words.append(f"{counted(len(names) - MOST_DRAWN_LANES, 'arm')} more are not drawn")
    return {
        "lanes": lanes,
        "height": len(lanes) * LANE + 28,
        "thick": THICK,
        "first": first,
        "last": last,
        "words": f"Rounds {first:,} to {last:,}: {'; '.join(words)}",
    }


def charts(view: View, rows: Rows, draws: View, unit: str) -> Json:
    """Return what the charts show. rows: the latest of all units; draws: rounds and probabilities of the draws."""
    own = [row for row in rows if row["unit"] == unit]
    plays = Counter(row["arm"] for row in own)
    kept = {arm for arm, _ in plays.most_common(MOST_LANES)}
    lanes: list[Json] = [{"name": arm, "colour": min(i, COLOURS)} for i, arm in enumerate(view["arms"]) if arm in kept]
    if len(plays) > len(kept):
        lanes.append({"name": "other arms", "colour": COLOURS})
    place = {lane["name"]: i for i, lane in enumerate(lanes)}
    rest = len(lanes) - 1
    marked = own if view["max_delay"] else []
    return {
        "lanes": lanes,
        "bars": [[place.get(arm, rest), PARTS[part], *span] for arm, _, part, *span in stretches(own)],
        "updates": [[row["round"], place.get(row["arm"], rest)] for row in marked if row["update"]],
        "totals": [
            [row["round"], place.get(row["arm"], rest), row["total"], row["status"], row["date"]] for row in own
        ],
        "probabilities": probabilities(view, draws),
        "outcome": outcome(rows, view),
    }


def probabilities(view: View, draws: View) -> Json:
    """Return the probability of each arm at each draw, and now; of many arms only of the eight likeliest now."""
    now, arms = view["probabilities"], view["arms"]
    likeliest = sorted(sorted(now, key=lambda arm: -now[arm])[:COLOURS], key=arms.index)
    lines = [
        {"name": arm, "colour": colour_of(arms, arm), "values": [*draws["probabilities"].get(arm, []), now[arm]]}
        for arm in likeliest
    ]
    return {"rounds": [*draws["round"], view["round"] + 1], "arms": lines}


def equal_split(view: View) -> tuple[float, float] | None:
    """Return the estimated mean report under an equal split and its standard error, None while an arm is unseen.

    >>> equal_split({"measured": {"A": {"windows": 2, "mean": 1.0, "standard_error": 0.3},
    ...                           "B": {"windows": 2, "mean": 2.0, "standard_error": 0.4}}})
    (1.5, 0.25)
    """
    seen = view["measured"].values()
    if not all(arm["windows"] >= 2 for arm in seen):
        return None
    mean = sum(arm["mean"] for arm in seen) / len(seen)
    return mean, math.sqrt(sum(arm["standard_error"] ** 2 for arm in seen)) / len(seen)


def outcome(rows: Rows, view: View) -> Json:
    """Return the sum of all totals after each round, and the estimate for an equal split with its 95% interval."""
    good = [row for row in rows if row["status"] == "reported"]
    total = view["sum_of_totals"] - sum(row["total"] for row in good)
    reports = view["counts"]["reports"] - view["counts"]["void"] - len(good)
    after: dict[int, tuple[float, int]] = {}
    for row in rows:
        if row["status"] == "reported":
            total, reports = total + row["total"], reports + 1
        if row["status"] != "open":
            after[row["round"]] = total, reports
    found: Json = {"rounds": list(after), "own": [level for level, _ in after.values()], "equal": None}
    split = equal_split(view)
    if split is not None:
        mean, margin = split[0], NORMAL_95 * split[1]
        for name, value in (("equal", mean), ("low", mean - margin), ("high", mean + margin)):
            found[name] = [n * value for _, n in after.values()]
    return found
