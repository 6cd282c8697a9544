"""Every player on one problem: what `aftereffect compare` plays and prints."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import aftereffect as ae
from aftereffect.core import checks
from aftereffect.players import registry
from aftereffect.players.registry import Problem

if TYPE_CHECKING:
    from rich.console import Console

SPREADS = ("delays", "split", "fading")
LAW = {"mean delay": "mean", "delay variance": "var", "coefficients": "all"}
REASONS = {"short delay": "for delays of at most 1", "coefficients": "for known coefficients: --spread fading"}


class Row(NamedTuple):
    """A player of the comparison: its label, what it needs, whether it sees labels, and itself."""

    label: str
    needs: tuple[str, ...]
    labelled: bool
    player: Any


def contenders(problem: Problem) -> list[Row]:
    """Return every player that can play the problem, tuned to it."""
    rows = []
    for name, settings in registry.COMPARED:
        entry = registry.find(name)
        if not entry.lacks(problem, settings):
            player = entry.build(problem, **settings)
            rows.append(Row(entry.label(settings), entry.needs(settings), entry.labelled, player))
    return rows


def one_good_arm(
    arms: int, max_delay: int, horizon: int, gap: float, spread: str, seed: int
) -> tuple[ae.Losses, Problem]:
    """Return losses of one good arm among equals, spread as asked, and what a player may know of them."""
    gap = checks.real("gap", gap, low=0.0, high=0.5)
    checks.choice("spread", spread, SPREADS)
    # In the middle: whoever tries arms in order, or has seen nothing and plays the first, gains nothing by it.
    means = [0.5] * arms
    means[arms // 2] -= gap
    table = ae.tables.iid(horizon, means=means, seed=seed)
    lags = np.arange(max_delay + 1)
    weights = np.full(max_delay + 1, 1.0 / (max_delay + 1))
    if spread == "delays":
        losses = ae.spreads.randomly_delayed(table, max_delay, seed=seed)
    elif spread == "split":
        losses = ae.spreads.random_split(table, max_delay, seed=seed)
    else:
        weights = 0.5 ** (lags / max(max_delay / 4, 0.25))
        weights /= weights.sum()
        losses = ae.spreads.linear_composite(table, weights)
    mean = float(weights @ lags)
    coefficients = weights.tolist() if spread == "fading" else None
    variance = float(weights @ (lags - mean) ** 2)
    return losses, Problem(arms, max_delay, horizon, mean, variance, coefficients)


def print_comparison(console: "Console", rows: Sequence[tuple[Row, ae.Simulation, float]]) -> None:
    """Print each player's regret, time and assumptions, the labelled ones apart; it fits 80 columns."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("player", no_wrap=True)
    for heading in ("regret", "±", "time"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("d", "T", "law", "iid", "labels"):
        table.add_column(heading, justify="center", no_wrap=True)
    for k, (row, simulation, seconds) in enumerate(rows):
        numbers = (f"{simulation.mean_regret:,.0f}", f"{simulation.standard_error:,.0f}", f"{seconds:.2f} s")
        law = "+".join(short for need, short in LAW.items() if need in row.needs)
        d, T, iid = ("•" if need in row.needs else "" for need in ("max_delay", "horizon", "stochastic losses"))
        apart = k + 1 < len(rows) and rows[k + 1][0].labelled and not row.labelled
        table.add_row(row.label, *numbers, d, T, law, iid, "•" if row.labelled else "", end_section=apart)
    console.print(table)
    console.print(
        "What each has to know or assume: d the longest delay, T the horizon, the law of delays, losses drawn iid, "
        "labels that say which round a loss is from (nobody has these here)."
    )


def left_out(problem: Problem) -> str:
    """Say which players the problem has no room for, and why; nothing if all of them play."""
    reasons = []
    for name, settings in registry.COMPARED:
        entry = registry.find(name)
        if lacking := entry.lacks(problem, settings):
            reasons.append(f"{entry.label(settings)} ({REASONS[lacking[0]]})")
    return f"Not here: {', '.join(reasons)}." if reasons else ""
