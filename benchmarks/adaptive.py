"""AdaptiveTsallis compared with Tsallis FTRL at a fixed rate: the time of one update on one core.

Both are fed windows with the same coins. Stretches, which only the adaptive base can be fed, are compared with Tsallis
FTRL on windows. At d = 0 losses are never 0: on a loss of 0 the tuned base returns without an update.
"""

import math
import time
from typing import Any, NamedTuple

import numpy as np
import ours
from sample import Measure

import aftereffect as ae

GROUP = "adaptive against tuned"


class Case(NamedTuple):
    """share: the share of the horizon that is played, to limit the memory for the rows of many arms."""

    n_arms: int
    max_delay: int
    law: str
    runs: int
    share: float = 1.0

    @property
    def text(self) -> str:
        """K and d as text."""
        return f"K={self.n_arms}, d={self.max_delay}"


CASES = (
    Case(2, 10, "bernoulli", 256),
    Case(10, 10, "bernoulli", 256),
    Case(50, 10, "bernoulli", 512, 0.2),
    Case(10, 100, "bernoulli", 1024),
    *(Case(n_arms, 0, "beta", 8) for n_arms in (2, 10)),
    Case(50, 0, "beta", 16, 0.2),
)
FED = {"windows": (0, 10, 100), "stretches": (10, 100)}
# The pairs of measures that are compared.
PAIRS = tuple(
    (f"AdaptiveTsallis, {fed}, {case.text}", f"Tsallis, windows, {case.text}")
    for case in CASES
    for fed, delays in FED.items()
    if case.max_delay in delays
)


def players(case: Case, horizon: int) -> dict[str, Any]:
    """Return the players of a case by the names of their measures."""
    K, d = case.n_arms, case.max_delay
    coins = 1.0 / (2 * d + 1)
    tuned = ae.TsallisFTRL(K, learning_rate=math.sqrt(horizon * coins / 2.0))
    found: dict[str, Any] = {
        f"Tsallis, windows, {case.text}": ae.CompositeLossWrapper(tuned, max_delay=d, coins=coins),
        f"AdaptiveTsallis, windows, {case.text}": ae.CompositeLossWrapper(
            ae.AdaptiveTsallis(K), max_delay=d, coins=coins
        ),
    }
    if d in FED["stretches"]:
        found[f"AdaptiveTsallis, stretches, {case.text}"] = ae.CoinCleanWrapper(ae.AdaptiveTsallis(K), max_delay=d)
    return found


def measures(worlds: ours.Worlds, quick: bool) -> list[Measure]:
    """Return the measures of all cases, in processor time, which is independent of other processes."""
    found = []
    for case in CASES:
        horizon = int(case.share * worlds.horizon)
        table = ae.tables.iid(horizon, means=np.linspace(0.3, 0.7, case.n_arms), seed=1, law=case.law)
        windows, stretches = ours.spread(table, case.max_delay), ours.spread(table, case.max_delay)
        for name, player in players(case, horizon).items():
            # An engine keeps one set of rows per loss sequence, and stretches need other rows than windows.
            losses = stretches if "stretches" in name else windows
            runs = max(8, case.runs // 16) if quick else case.runs
            measure = ours.simulated(name, player, losses, runs, 1, "blocks", case.law)
            measure.group, measure.clock = GROUP, time.process_time
            found.append(measure)
    return found
