"""Whether the effects of a running experiment last longer than its max_delay, from the first rounds of its learner.

Totals by rounds since the change of arm, and the test of `aftereffect.carryover.watch`, whose error rate holds however
often one looks. Made on demand: a report does not wait for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from aftereffect.carryover import Block, WashIn, wash_in, watch
from aftereffect.carryover.martingale import unplayed, window_rounds
from aftereffect.core.text import counted
from aftereffect.players.wrapper.wrapper import BlockWrapper
from aftereffect.service.messages import Watched

MOST_ROUNDS = 5_000
"""How many of the first rounds are used."""
Row = Mapping[str, Any]
REPORTED = ("reported", "clipped")


def found(arms: Sequence[str], player: BlockWrapper, rows: Sequence[Row], paused: int | None) -> dict[str, Any] | None:
    """Return what can be said; `messages.Watched`. None before the first round.

    player: the learner. rows: of its first rounds, all units in order of rounds. paused: the first round after a pause.
    From then on rows are not used: people choose when to pause, and may do so because of what an arm has shown.
    """
    used = [row for row in rows if paused is None or row["round"] < paused]
    if not used:
        return None
    shape, d, place = (-1, player.n_units), player.max_delay, {arm: i for i, arm in enumerate(arms)}
    played = np.array([place[row["arm"]] for row in used], dtype=np.int64).reshape(shape)
    totals = [row["total"] if row["status"] in REPORTED else np.nan for row in used]
    table = wash_in(played, np.array(totals, dtype=np.float64).reshape(shape), max_delay=d, n_arms=len(arms))
    told: dict[str, Any] = {**dict.fromkeys(Watched.model_fields), "rounds": len(played), **_tables(table, arms)}
    if player.n_units > 1:
        return {**told, "sentence": "Experiments with several units are not tested for effects after max_delay."}
    result = watch(player, _blocks(used, place, player))
    numbers = {name: getattr(result, name) for name in ("blocks", "p_value", "alarm", "no_power")}
    after = f" Only the {counted(len(played), 'round')} before a pause were used." if len(used) < len(rows) else ""
    return {**told, **numbers, "sentence": result.sentence + after}


def _blocks(rows: Sequence[Row], place: Mapping[str, int], player: BlockWrapper) -> Iterator[Block]:
    """Yield the finished blocks, up to the first with a substitute, and one with fed=None if a total of it is void."""
    again, t = unplayed(player), 0
    for _, members in groupby(rows, key=lambda row: row["block"]):
        block = list(members)
        last = block[-1]
        if len({row["arm"] for row in block}) > 1 or any(row["substituted"] for row in block):
            return
        void = any(row["status"] == "void" for row in block)
        for end in range(1, len(block) + 1):
            t += 1
            if again.coins.read(t) and end < len(block):
                # The block did not end here: a total of this window was missing, or was void when it was reported.
                void |= all(row["status"] in REPORTED for row in block[end - window_rounds(again) : end])
        if void:
            yield Block(place[last["arm"]], [], None, 1)
        if void or last["fed"] is None:
            return
        clean = (row for row in block if row["round"] - row["block_start"] >= player.max_delay)
        totals = [row["total"] for row in clean if row["status"] in REPORTED]
        measured = sum(bool(row["measured"]) for row in block)
        yield Block(place[last["arm"]], totals, last["fed"], measured, block[0]["probability"])


def _tables(table: WashIn, arms: Sequence[str]) -> dict[str, Any]:
    """Return the tables by arm, and that of all arms; None where there is no number."""

    def listed(means: Any, errors: Any, counts: Any) -> dict[str, Any]:
        numbers = {"means": means, "errors": errors}
        finite = {key: [float(x) if np.isfinite(x) else None for x in each] for key, each in numbers.items()}
        return {**finite, "counts": counts.tolist()}

    rows = zip(arms, table.means, table.errors, table.counts, strict=True)
    all_arms = listed(table.pooled, table.pooled_errors, table.counts.sum(axis=0))
    return {"wash_in": {arm: listed(*each) for arm, *each in rows}, "all_arms": all_arms}
