"""Pike-Burke et al. (2018), Figure 3: the ratio of regret to that of QPM-D at T, next to the published numbers.

`python benchmarks/odaaf_ratios.py [--repetitions 200]`: two Bernoulli arms with means 0.5 and 0.6,
T = 250,000, pseudo-regret, each repetition on its own draw of the rewards. ± is one standard error of the ratio of two
means over the same draws. The published means are over 200 repetitions too, so their errors are about as large.

The published N₊(50, σ²) is taken as the half-normal law whose variance fits the curves, σ²(1 − 2/π).
"""

import argparse
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as Page

import aftereffect as ae
from aftereffect.bandits.ucb1 import UCB1
from aftereffect.losses.tables import Table
from aftereffect.players.labelled.joulani2013 import QPMD
from aftereffect.players.rivals.odaaf import ODAAF, ODAAFB, ODAAFV

HORIZON, MEANS = 250_000, (0.5, 0.6)
COMMON: dict[str, Any] = {"horizon": HORIZON, "direction": "maximize"}
HALF_NORMAL = 1.0 - 2.0 / math.pi

# Labelled feedback reports a play when its effect has arrived. A reward of 0 has no effect that could arrive; with this
# value it is reported with the same delays as any other reward, and adds nothing to a total.
NOTHING = 1e-100

# The number of draws in memory at once.
BATCH = 25

Done = Callable[[int], None]


class Row(NamedTuple):
    """A delay law, truncated at max_delay; the mean delay; ODAAF's published ratio; a variant and its ratio."""

    name: str
    law: tuple[Any, ...]
    max_delay: int
    mean_delay: float
    published: float
    variant: Any
    published_variant: float


class Ratio(NamedTuple):
    """A ratio of two means, and its standard error."""

    value: float
    error: float


def bounded(mean_delay: float, max_delay: int) -> ODAAFB:
    """Return ODAAF-B."""
    return ODAAFB(2, mean_delay=mean_delay, max_delay=max_delay, **COMMON)


def varying(delay_variance: float) -> ODAAFV:
    """Return ODAAF-V with mean delay 50."""
    return ODAAFV(2, mean_delay=50.0, delay_variance=delay_variance, **COMMON)


EXPONENTIAL = ("exponential", 50.0)
ROWS = (
    Row("Unif(0,50)", ("uniform", 0, 50), 50, 25.0, 16.6, bounded(25.0, 50), 8.5),
    Row("Unif(0,100)", ("uniform", 0, 100), 100, 50.0, 24.6, bounded(50.0, 100), 9.8),
    Row("Exp(50), d=75", EXPONENTIAL, 75, 50.0, 25.0, bounded(50.0, 75), 10.0),
    Row("Exp(50), d=250", EXPONENTIAL, 250, 50.0, 25.2, bounded(50.0, 250), 10.1),
    Row("Exp(50)", EXPONENTIAL, 1000, 50.0, 25.0, varying(2500.0), 44.7),
    Row("Pois(50)", ("poisson", 50.0), 150, 50.0, 25.0, varying(50.0), 15.0),
    Row("N₊(50,25)", ("half_normal", 50.0, 25.0), 150, 50.0, 24.6, varying(25.0 * HALF_NORMAL), 10.8),
    Row("N₊(50,250)", ("half_normal", 50.0, 250.0), 250, 50.0, 24.3, varying(250.0 * HALF_NORMAL), 18.2),
)


def rewards(seed: int) -> Table:
    """Draw the rewards, with NOTHING in place of 0."""
    values = np.maximum(ae.tables.iid(HORIZON, means=MEANS, seed=seed).values, NOTHING)
    return Table(values, means=MEANS, recipe=rewards)


def regrets(row: Row, players: list[Any], repetitions: int, done: Done) -> NDArray[np.float64]:
    """Return the pseudo-regret of each player, (players, repetitions), on the same draws."""
    losses = ae.spreads.randomly_delayed(rewards(1), max_delay=row.max_delay, seed=2, law=row.law, direction="maximize")
    parts = []
    for first in range(0, repetitions, BATCH):
        draws = min(BATCH, repetitions - first)
        asked: dict[str, Any] = {"runs": draws, "instances": draws, "seed": first, "checkpoints": 1}
        sims = [ae.simulate(player, losses, progress=False, **asked) for player in players]
        parts.append([sim.pseudo_regret for sim in sims])
        done(draws)
    return np.concatenate(parts, axis=1)


def ratio(above: NDArray[np.float64], below: NDArray[np.float64]) -> Ratio:
    """Return the ratio of the means of paired numbers, and its standard error by the delta method."""
    value = float(above.mean() / below.mean())
    apart = above - value * below
    return Ratio(value, float(apart.std(ddof=1) / math.sqrt(len(apart)) / below.mean()))


def measured(row: Row, repetitions: int, done: Done) -> tuple[float, Ratio, Ratio]:
    """Return QPM-D's mean regret, and the ratios of ODAAF and of its variant to it."""
    plain = ODAAF(2, mean_delay=row.mean_delay, mean_delay_offset=1, **COMMON)
    labelled = QPMD(UCB1(2), max_delay=row.max_delay, direction="maximize")
    by_plain, by_variant, base = regrets(row, [plain, row.variant, labelled], repetitions, done)
    return float(base.mean()), ratio(by_plain, base), ratio(by_variant, base)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Regret of ODAAF over that of QPM-D, next to the published ratio.")
    parser.add_argument("--repetitions", type=int, default=200, help="draws per row, at least 2")
    repetitions = parser.parse_args().repetitions
    if repetitions < 2:
        parser.error(f"--repetitions must be at least 2, but got {repetitions}")
    console = Console()
    page = Page("delays", "QPM-D", "ODAAF", "published", "variant", "ratio", "published", box=None)
    for row in ROWS:
        with console.status(row.name) as status:
            count = 0

            def done(draws: int, name: str = row.name) -> None:
                nonlocal count
                count += draws
                status.update(f"{name}: {count} of {repetitions}")

            base, plain, variant = measured(row, repetitions, done)
        page.add_row(
            *(row.name, f"{base:.0f}", f"{plain.value:.1f} ± {plain.error:.1f}", f"{row.published}"),
            type(row.variant).__name__,
            *(f"{variant.value:.1f} ± {variant.error:.1f}", f"{row.published_variant}"),
        )
    console.print(page)


if __name__ == "__main__":
    main()
