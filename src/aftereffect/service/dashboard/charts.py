"""What the charts show, as JSON: one unit's latest rounds, the chances at each draw, the outcome and an equal split's.

Chances change only at updates, so those at the draws are all there are. The equal split is estimated from the measured
windows, which hold effects of one arm alone (Lemma 2).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from aftereffect.service.dashboard.presenting import COLOURS
from aftereffect.service.dashboard.reading import Json, Reads, latest
from aftereffect.service.dashboard.rendering import counted, rounded
from aftereffect.service.dashboard.timeline import SAID, stretches
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
