"""The data of the charts and the timeline."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from aftereffect.service.dashboard.views import COLOURS, Json, Reads, colour_of, counted, latest, rounded, whole
from aftereffect.service.errors import Refused

NORMAL_95 = 1.96
MOST_LANES = 30


def charts(store: Reads, experiment_id: str, unit: str) -> Json:
    """Return everything the charts of an experiment show, for one unit where it matters."""
    view = store.experiment(experiment_id)
    units = view["units"]
    if unit and unit not in units:
        raise Refused("not_found", f"unit must be one of the experiment's, but got {unit!r}")
    rows, odds = latest(store, view)
    own = [row for row in rows if row["unit"] == (unit or units[0])]
    lanes = lanes_of(own, view["arms"])
    place = {lane["name"]: i for i, lane in enumerate(lanes)}
    rest = len(lanes) - 1
    marked = own if view["max_delay"] else []
    return {
        "lanes": lanes,
        "bars": [[place.get(arm, rest), SAID[part], *span] for arm, _, part, *span in stretches(own)],
        "updates": [[row["round"], place.get(row["arm"], rest)] for row in marked if row["update"]],
        "totals": [
            [row["round"], place.get(row["arm"], rest), row["total"], row["status"], row["date"]] for row in own
        ],
        "chances": chances(odds, view),
        "outcome": outcome(rows, view),
    }


def lanes_of(rows: Sequence[Mapping[str, Any]], arms: Sequence[str]) -> list[Json]:
    """Return the arms that were played, with their colours; of very many the most played, and one lane for the rest."""
    plays = Counter(row["arm"] for row in rows)
    kept = {arm for arm, _ in plays.most_common(MOST_LANES)}
    lanes: list[Json] = [{"name": arm, "colour": min(i, COLOURS)} for i, arm in enumerate(arms) if arm in kept]
    if len(plays) > len(kept):
        lanes.append({"name": "other arms", "colour": COLOURS})
    return lanes


def chances(odds: Mapping[str, Any], view: Mapping[str, Any]) -> Json:
    """Return the chances of each arm at each draw, and now; of many arms only the eight likeliest now."""
    now = view["probabilities"]
    ranked = sorted(now, key=lambda arm: -now[arm])[:COLOURS]
    arms = sorted(ranked, key=view["arms"].index)
    before = odds["probabilities"]
    lines = [
        {
            "name": arm,
            "colour": min(view["arms"].index(arm), COLOURS),
            "values": [*before.get(arm, []), now[arm]],
        }
        for arm in arms
    ]
    return {"rounds": [*odds["round"], view["round"] + 1], "arms": lines}


def equal_split(view: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the estimated mean report under equal split and its standard error, None while an arm is unseen.

    >>> equal_split({"measured": {"A": {"windows": 2, "mean": 1.0, "standard_error": 0.3},
    ...                           "B": {"windows": 2, "mean": 2.0, "standard_error": 0.4}}})
    (1.5, 0.25)
    """
    seen = view["measured"].values()
    if not all(arm["windows"] >= 2 for arm in seen):
        return None
    n = len(seen)
    mean = sum(arm["mean"] for arm in seen) / n
    return mean, math.sqrt(sum(arm["standard_error"] ** 2 for arm in seen)) / n


def outcome(rows: Sequence[Mapping[str, Any]], view: Mapping[str, Any]) -> Json:
    """Return the sum of all totals after each round, and that of an equal split as estimated, with a 95% interval."""
    good = [row for row in rows if row["status"] == "reported"]
    level = view["sum_of_totals"] - sum(row["total"] for row in good)
    reports = view["counts"]["reports"] - view["counts"]["void"] - len(good)
    split = equal_split(view)
    rounds: list[int] = []
    own: list[float] = []
    counts: list[int] = []
    for row in rows:
        if row["status"] == "open":
            continue
        if row["status"] == "reported":
            level += row["total"]
            reports += 1
        if rounds and rounds[-1] == row["round"]:
            own[-1], counts[-1] = level, reports
        else:
            rounds.append(row["round"])
            own.append(level)
            counts.append(reports)
    found: Json = {"rounds": rounds, "own": own, "equal": None, "words": outcome_words(view)}
    if split is not None:
        mean, error = split
        found["equal"] = [n * mean for n in counts]
        found["low"] = [n * (mean - NORMAL_95 * error) for n in counts]
        found["high"] = [n * (mean + NORMAL_95 * error) for n in counts]
    return found


def outcome_words(view: Mapping[str, Any]) -> str:
    """Say how the outcome compares with an equal split."""
    reports = view["counts"]["reports"] - view["counts"]["void"]
    if not reports:
        return "Nothing has been reported yet."
    mean = view["sum_of_totals"] / reports
    begin = f"{rounded(view['sum_of_totals'])} in all, {rounded(mean)} a report over {counted(reports, 'report')}."
    split = equal_split(view)
    if split is None:
        fewer = [arm for arm, seen in view["measured"].items() if seen["windows"] < 2]
        whom = fewer[0] if len(fewer) == 1 else f"{len(fewer)} arms"
        have = "has" if len(fewer) == 1 else "have"
        return f"{begin} An equal split cannot be estimated yet: {whom} {have} fewer than two measured windows."
    gap, error = mean - split[0], NORMAL_95 * split[1]
    better = gap > 0 if view["direction"] == "maximize" else gap < 0
    verdict = "better" if better else "worse"
    clear = "" if abs(gap) > error else ", within what chance explains"
    return (
        f"{begin} Playing every arm equally often would have brought about {rounded(split[0])} a report "
        f"(± {rounded(error)}), so this is {rounded(abs(gap))} a report {verdict}{clear}."
    )


LANE, THICK = 44, 16
DRAWN_LANES = 12


def kind(row: Mapping[str, Any]) -> str:
    """Return which part of its block a round is in: "measured", "washin" or "between"."""
    if row["measured"]:
        return "measured"
    return "washin" if row["washin"] else "between"


def stretches(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, int, str, int, int]]:
    """Yield (arm, block, kind, first round, last round) for each stretch of rounds that look alike."""
    for (arm, block, part), run in groupby(rows, key=lambda row: (row["arm"], row["block"], kind(row))):
        rounds = [row["round"] for row in run]
        yield arm, block, part, rounds[0], rounds[-1]


SAID = {"measured": "measured", "washin": "wash-in", "between": "played"}


def timeline(rows: Sequence[Mapping[str, Any]], arms: Sequence[str]) -> dict[str, Any]:
    """Return what the drawing needs: one unit's rows, in order of rounds. Arms that were not played have no lane."""
    first, last = (rows[0]["round"], rows[-1]["round"]) if rows else (1, 1)
    step = 100.0 / (last - first + 1)
    played = {row["arm"] for row in rows}
    names = [arm for arm in arms if arm in played]
    drawn = list(stretches(rows))
    # Where effects do not linger every round is an update, and marks would hide the bars.
    marked = any(row["washin"] for row in rows)
    lanes = []
    for i, name in enumerate(names[:DRAWN_LANES]):
        top = i * LANE + 20
        bars = [
            {
                "kind": part,
                "x": f"{(start - first) * step:.3f}",
                "width": f"{(end - start + 1) * step:.3f}",
                "words": f"{name}: rounds {whole(start)} to {whole(end)}, {SAID[part]}, block {whole(block)}",
            }
            for arm, block, part, start, end in drawn
            if arm == name
        ]
        learned = [row for row in rows if row["update"] and row["arm"] == name] if marked else []
        updates = [f"{(row['round'] - first + 1) * step:.3f}" for row in learned]
        place = {"text": top - 6, "top": top, "foot": top + THICK + 0.5, "middle": top + THICK / 2}
        lanes.append({"name": name, "colour": colour_of(arms, name), "bars": bars, "updates": updates, **place})
    words = f"Rounds {whole(first)} to {whole(last)}: " + "; ".join(
        f"{name} {counted(sum(row['arm'] == name for row in rows), 'round')}" for name in names[:DRAWN_LANES]
    )
    if len(names) > DRAWN_LANES:
        words += f"; {counted(len(names) - DRAWN_LANES, 'arm')} more are not drawn"
    height = len(lanes) * LANE + 28
    return {"lanes": lanes, "height": height, "thick": THICK, "first": first, "last": last, "words": words}
