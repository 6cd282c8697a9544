"""An experiment as a page shows it: the Store's view and round rows, put into words. No I/O here."""

import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from aftereffect.service.dashboard import promising
from aftereffect.service.dashboard.rendering import counted, exact, percent, rounded, whole

COLOURS = 8
"""Arms with a colour of their own; later ones share a grey."""
SHOWN_SHARES = 8
MOST_MEANS = 20


def colour_of(arms: Sequence[str], arm: str | None) -> int:
    """Return the number of an arm's colour."""
    return min(arms.index(arm), COLOURS) if arm in arms else COLOURS


def in_short(view: Mapping[str, Any]) -> str:
    """Return one line on what an experiment is."""
    parts = ["Larger is better" if view["direction"] == "maximize" else "Smaller is better"]
    parts.append(counted(len(view["arms"]), "arm"))
    if len(view["units"]) > 1:
        parts.append(counted(len(view["units"]), "unit"))
    d = view["max_delay"]
    parts.append(f"effects last {counted(d, 'more round')}" if d else "effects arrive at once")
    parts.append(f"{whole(view['horizon'])} rounds in all" if view["horizon"] else "open-ended")
    return " · ".join(parts)


def waiting(view: Mapping[str, Any]) -> str:
    """Say what an experiment waits for."""
    if view["state"] == "draft":
        return "its start"
    if view["state"] == "finished":
        return "nothing"
    if view["open_round"] is not None:
        return f"the total of round {whole(view['open_round'])}"
    return "being resumed" if view["state"] == "paused" else f"round {whole(view['round'] + 1)} to be opened"


def listed(view: Mapping[str, Any]) -> dict[str, Any]:
    """Return an experiment as a line of the list."""
    likely = max(view["probabilities"].items(), key=lambda pair: pair[1])
    ahead = likely[1] > 1.0 / len(view["arms"]) + 1e-9
    leader = {"name": likely[0], "share": likely[1], "colour": colour_of(view["arms"], likely[0])}
    return {
        **{key: view[key] for key in ("id", "name", "state", "round", "horizon", "alarms")},
        "summary": in_short(view),
        "waiting": waiting(view),
        "leader": leader if ahead else None,
    }


def shares(view: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the arms' probabilities, the largest first; what is beyond the first eight is summed."""
    away = set(view.get("away") or ())
    ranked = sorted(view["probabilities"].items(), key=lambda pair: -pair[1])
    most = SHOWN_SHARES if len(ranked) > SHOWN_SHARES + 1 else len(ranked)
    entries = [
        {"name": name, "share": share, "colour": colour_of(view["arms"], name), "away": name in away}
        for name, share in ranked[:most]
    ]
    if ranked[most:]:
        rest = sum(share for _, share in ranked[most:])
        name = f"{whole(len(ranked) - most)} other arms together"
        entries.append({"name": name, "share": rest, "colour": COLOURS, "away": False})
    return entries


def means(view: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what was measured of each arm, the best first; arms that were never played are left out."""
    best = -1.0 if view["direction"] == "maximize" else 1.0
    played = [(arm, seen) for arm, seen in view["measured"].items() if view["plays"][arm]]
    played.sort(key=lambda pair: (pair[1]["mean"] is None, best * (pair[1]["mean"] or 0.0)))
    return [
        {
            "name": arm,
            "colour": colour_of(view["arms"], arm),
            "plays": view["plays"][arm],
            "windows": seen["windows"],
            "mean": "" if seen["mean"] is None else rounded(seen["mean"]),
            "error": "" if seen["standard_error"] is None else rounded(seen["standard_error"]),
        }
        for arm, seen in played[:MOST_MEANS]
    ]


def told(row: Mapping[str, Any]) -> str:
    """Say what was reported."""
    if row["status"] == "open":
        return "open"
    if row["status"] == "missing":
        return "missing"
    return exact(row["total"]) + (" (void: out of range)" if row["status"] == "void" else "")


def part(row: Mapping[str, Any]) -> str:
    """Say which part of its block a round is in."""
    if row["measured"]:
        return "measured"
    if row["washin"]:
        return "wash-in"
    return "not known yet" if row["measured"] is None else "not measured"


def round_row(row: Mapping[str, Any], view: Mapping[str, Any], closed: bool = False) -> dict[str, Any]:
    """Return a round of a unit as the table or the open round shows it. closed: the latest block is learned from."""
    return {
        **row,
        "place": view["units"].index(row["unit"]) if row["unit"] in view["units"] else 0,
        "colour": colour_of(view["arms"], row["arm"]),
        "told": told(row),
        "part": part(row),
        "starts": row["round"] == row["block_start"] and view["max_delay"] > 0,
        "amendable": row["block"] == view["block"] and row["status"] != "open" and not closed,
        "block_words": f"{whole(row['block'])}, {'drawn' if row['draw'] else 'stays'}",
        "learned": "" if not row["update"] else "update" if row["fed"] is not None else "nothing, a gap",
        "tags": tags(row),
    }


def tags(row: Mapping[str, Any]) -> list[str]:
    """Return short facts about the open round."""
    since = row["round"] - row["block_start"] + 1
    measured = "wash-in: not measured" if row["washin"] else "may be measured"
    drawn = "newly drawn" if row["draw"] else f"stays, round {whole(since)} of its block"
    return [drawn, f"block {whole(row['block'])}", f"chance {percent(row['probability'])}", measured]


def range_words(view: Mapping[str, Any]) -> str:
    """Say which totals are possible: d + 1 rounds' actions can each bring an effect between low and high."""
    rounds = view["max_delay"] + 1
    least, most = rounds * min(view["low"], 0.0), rounds * max(view["high"], 0.0)
    return (
        f"Between {rounded(least)} and {rounded(most)}: the effects of up to {counted(rounds, 'action')} meet in "
        "a round. A total outside is void, and counted."
    )


COUNTED = {
    "missing": "Missing reports",
    "void": "Out of range, void",
    "amended": "Corrected reports",
    "substituted": "Stand-ins played",
    "withheld": "Held back from learning",
}


def settings(view: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the settings, in words."""
    return [
        ("Effect of one action", f"{exact(view['low'])} to {exact(view['high'])}"),
        ("Better is", "larger" if view["direction"] == "maximize" else "smaller"),
        ("Carry-over", counted(view["max_delay"], "round")),
        ("Rounds in all", whole(view["horizon"]) if view["horizon"] else "open-ended"),
        ("Player", "default" if view["player"] == "default" else "as published"),
        ("Seed", str(view["seed"])),
        ("Created (UTC)", str(view.get("created_at") or "").replace("T", " ")[:16]),
        ("Id", str(view["id"])),
    ]


def resume_words(view: Mapping[str, Any]) -> str:
    """Say what a pause costs."""
    d = view["max_delay"]
    if not d:
        return "A pause costs nothing: no effect outlasts its round."
    warm = f"{counted(d, 'round')} after it {'is' if d == 1 else 'are'} played"
    return f"Effects fade in a pause, so the first {warm} and recorded but not learned from."


def experiment(
    view: Mapping[str, Any], open_rows: Sequence[Mapping[str, Any]], unit: str | None
) -> dict[str, Any]:
    """Return everything a page says about an experiment. open_rows: its open round; unit: whose charts are wanted."""
    units, arms = view["units"], view["arms"]
    away = set(view.get("away") or ())
    winner = view["winner"]
    copied = (
        "name",
        "state",
        "round",
        "open_round",
        "horizon",
        "max_delay",
        "block",
        "updates",
        "units",
        "alarms",
    )
    left = sum(row["status"] == "open" for row in open_rows)
    return {
        **{key: view[key] for key in copied},
        "path": f"/experiments/{urllib.parse.quote(view['id'], safe='')}",
        "plan": view["plan"],
        "unit": unit if unit in units else units[0],
        "arms": [{"name": arm, "away": arm in away} for arm in arms],
        "summary": in_short(view),
        "shares": shares(view),
        "counts": [(COUNTED[key], n) for key, n in view["counts"].items() if n and key in COUNTED],
        "open": [round_row(row, view) for row in open_rows],
        "open_words": f"{counted(left, 'unit')} of {whole(len(units))} still to be reported.",
        "range_words": range_words(view),
        "resume_words": resume_words(view),
        "guarantee": promising.guarantee(view),
        "settings": settings(view),
        "winner": winner and {**winner, "colour": colour_of(arms, winner["arm"])},
    }
