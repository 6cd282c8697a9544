"""Two ways to play a player: with reports that are given, and on losses."""

from collections.abc import Iterable
from typing import Any

import aftereffect as ae


def tell_all(player: Any, reports: Iterable[Any]) -> list[Any]:
    """Play a round with each report; return the results of `tell`."""
    return [(player.ask(), player.tell(report))[1] for report in reports]


def arms_on(player: Any, losses: ae.Losses, rounds: int | None = None) -> list[int]:
    """Play so many rounds of losses, or all; return the arms."""
    stream, arms = losses.stream(), list[int]()
    for _ in range(losses.horizon if rounds is None else rounds):
        arms.append(player.ask())
        player.tell(stream.play(arms[-1]))
    return arms
