"""The timeline of arms, drawn by the server: a lane an arm, a bar a stretch of rounds, a dot an update.

        round   1 2 3 4 5 6 7 8 9
        A       ░ ░ ▒ ▒ █ █ █•          ░ wash-in  ▒ played, not measured  █ measured  • update
        B                     ░ ░

Figure 1 of the paper shows a block in the same way.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from aftereffect.service.dashboard.presenting import colour_of
from aftereffect.service.dashboard.rendering import counted, whole

LANE, THICK = 44, 16
MOST_LANES = 12


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
    for i, name in enumerate(names[:MOST_LANES]):
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
        f"{name} {counted(sum(row['arm'] == name for row in rows), 'round')}" for name in names[:MOST_LANES]
    )
    if len(names) > MOST_LANES:
        words += f"; {counted(len(names) - MOST_LANES, 'arm')} more are not drawn"
    height = len(lanes) * LANE + 28
    return {"lanes": lanes, "height": height, "thick": THICK, "first": first, "last": last, "words": words}
