"""The advised default player beside the unadvised one, and beside what people would do otherwise.

    python benchmarks/advice.py [PARTS] [PROCESSES] [ADVISER]     for example: abc 16 lags

    a   worlds of a year of days (`losses/year.py`), told three half-lives: share of the regret of an equal split
    b   60 units for 90 days: the same share
    c   the advertising system, told 14 days: the same share after 365 and 2,000 days
    d   24 cells that no study has, T = 20,000 to 60,000: ratio to the paper's tuning
    e   60 cells of the study `adaptive`, T up to 50,000, and a useless and a malicious adviser too: ratio to the
        unadvised player, and to the best rival of the published rows in hindsight
    f   a malicious adviser, d = 0, K = 2, gap 0.2

Each row is a mean over runs, on the same losses for all players. Cells were chosen before anything was measured on
them. By default all parts, on one core, with the adviser "lags"; ADVISER may be module:name, what makes an adviser.
"""

import importlib
import itertools
import math
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from bad_advisers import malicious as malicious_player
from bad_advisers import useless

import aftereffect as ae
from aftereffect.core.saved import canonical
from aftereffect.studies.cells import Cell, Draws, cell_seed
from aftereffect.studies.study import Study

STUDIES = Path(__file__).parents[1] / "docs" / "studies"
# Some instances lie there; other processes inherit the path.
sys.path.append(str(STUDIES))
PUBLISHED = STUDIES / "adaptive" / "rows.parquet"
LEAST_SHARE = 0.01
"""Regrets are taken as at least this share of uniform play's, as in the study `adaptive`."""
SEED = 26


class Row(NamedTuple):
    """The mean regret of a player in a cell with its standard error, that of uniform play, and the range of effects."""

    player: str
    regret: float
    error: float
    uniform: float
    unit: float


def cell(name: str, sizes: tuple[int, int, int], runs: int, instances: int, **more: Any) -> Cell:
    """Return a cell; sizes: K, d and T. told: the d that players are told. units: how many share a player."""
    told, units, seed = more.pop("told", None), more.pop("units", None), more.pop("seed", SEED)
    found = {"instance": {"name": name, **more}, "runs": runs, "instances": instances, "seed": seed}
    found |= dict(zip(("n_arms", "max_delay", "horizon"), sizes, strict=True))
    return found | ({} if told is None else {"told": told}) | ({} if units is None else {"n_units": units})


def years() -> Iterator[Cell]:
    """Yield worlds of a year: every curve and path, with other sizes, half-lives and gaps than tuned on."""
    shapes = itertools.product(("alike", "apart", "last", "negative"), ("white", "ar", "season", "jumps"), range(3))
    for n, (curves, path, m) in enumerate(shapes):
        half_life, gap, noise = (2.0, 5.0)[n % 2], (0.1, 0.2, 0.3)[m], (0.1, 0.2, 0.3)[(n // 3 + m) % 3]
        shape = {"curves": curves, "path": path, "half_life": half_life, "gap": gap, "noise": noise}
        yield cell("year", ((3, 5)[n // 2 % 2], 14, 365), 48, 24, told=round(3.0 * half_life), **shape)


def units() -> Iterator[Cell]:
    """Yield 60 units for 90 days."""
    for path in ("white", "season"):
        yield cell("year", (4, 14, 90), 24, 24, told=9, units=60, noise=0.3, path=path)


def advertising() -> Iterator[Cell]:
    """Yield the advertising system after a year and after 2,000 days."""
    for horizon in (365, 2_000):
        yield cell("advertising", (6, 40, horizon), 200, 50, told=14)


def held_out() -> Iterator[Cell]:
    """Yield cells of sizes, gaps and spreads that no study has."""
    sizes = ((3, 5, 20_000), (6, 7, 30_000), (4, 14, 60_000))
    kinds: tuple[dict[str, Any], ...] = (
        {"name": "fixed", "gap": 0.15},
        {"name": "geometric", "gap": 0.15},
        {"name": "stacked", "gap": 0.15},
        {"name": "constrained", "gap": 0.2, "spread": "delays"},
        {"name": "switching", "gap": 0.3, "period": 3_000, "spread": "geometric"},
        {"name": "drifting", "step": 0.005, "spread": "delays"},
        {"name": "pieces", "shape": "late_best", "spread": "geometric"},
        {"name": "seasonal", "spread": "geometric"},
    )
    for kind, size in itertools.product(kinds, sizes):
        yield cell(sizes=size, runs=40, instances=2, **kind)


def named() -> list[Cell]:
    """Return 60 cells of the study `adaptive`: each instance in one size or two, spread over the sizes in turn."""
    groups: dict[str, list[Cell]] = {}
    for one in Study.load(STUDIES / "adaptive.toml").cells():
        small = one["n_arms"] <= 10 and one["max_delay"] <= 10 and one["horizon"] <= 50_000
        if small and one["player"] == {"name": "default_player"}:
            groups.setdefault(canonical(one["instance"]), []).append(one)
    found = []
    for n, cells in enumerate(groups.values()):
        found += [cells[(5 * n + 7 * m) % len(cells)] for m in range(min(2, len(cells)))]
    step = len(found) / 60.0
    return [found[int(step * n)] | {"runs": 40} for n in range(60)]


PARTS = {"a": years, "b": units, "c": advertising, "d": held_out, "e": named}
BAD = {"useless": useless, "malicious": malicious_player}
PLAYERS = {
    "a": ("unadvised", "advised", "A/B test", "UCB"),
    "b": ("unadvised", "advised"),
    "c": ("unadvised", "advised", "A/B test", "UCB"),
    "d": ("unadvised", "advised", "paper"),
    "e": ("unadvised", "advised", *BAD),
}


def advised(name: str) -> Any:
    """Return an adviser by its name, or made by module:name."""
    module, _, made = name.partition(":")
    return getattr(importlib.import_module(module), made)() if made else name


def player(kind: str, one: Cell, losses: ae.Losses, adviser: str) -> Any:
    """Return an unplayed player of a cell."""
    K, told, T = one["n_arms"], one.get("told", one["max_delay"]), one["horizon"]
    common: dict[str, Any] = {"direction": losses.direction, "low": losses.low, "high": losses.high}
    if told < losses.max_delay:
        common["out_of_range"] = "clip"
    if kind == "A/B test":
        return ae.rivals.ABTest(K, test_rounds=min(T // 4, 91), order="random", **common)
    if kind == "UCB":
        return ae.rivals.BlockUCB(K, max_delay=told, width=0.15, **common)
    if kind == "paper":
        return ae.CompositeLossWrapper.tuned(K, max_delay=told, horizon=T, **common)
    if kind in BAD:
        return BAD[kind](K, max_delay=told, **common)
    made = ae.default_player(K, max_delay=told, adviser=None if kind == "unadvised" else advised(adviser), **common)
    return ae.Panel(made, n_units=one["n_units"]) if "n_units" in one else made


def measured(one: Cell, kinds: tuple[str, ...], adviser: str) -> list[Row]:
    """Return the rows of a cell, one per player."""
    warnings.simplefilter("ignore", ae.AftereffectWarning)
    draws, share = Draws(one), one["runs"] // one["instances"]
    rows = []
    for kind in kinds:
        made = player(kind, one, draws[0], adviser)
        regrets, uniform = [], []
        for wave in draws.waves():
            for draw in wave:
                options = {"runs": share, "seed": cell_seed(one, "runs"), "first_run": draw * share}
                found = ae.simulate(made, draws[draw], checkpoints=1, threads=1, progress=False, **options)
                regrets.append(found.regret)
                uniform.append(float(found.uniform_regrets[0, -1]))
        values = np.concatenate(regrets)
        means = np.array([part.mean() for part in regrets])
        spread = means if len(means) > 2 else values
        error = float(spread.std(ddof=1) / math.sqrt(len(spread)))
        unit = draws[0].effects.hi - draws[0].effects.lo
        rows.append(Row(kind, float(values.mean()), error, float(np.mean(uniform)), unit))
    return rows


def described(one: Cell) -> str:
    """Return a cell in words."""
    words = [f"{value:g}" if isinstance(value, float) else str(value) for value in one["instance"].values()]
    return f"{' '.join(words)} K={one['n_arms']} d={one.get('told', one['max_delay'])} T={one['horizon']}"


def best_rival(one: Cell) -> float:
    """Return the least mean regret of the published rivals in a cell of the study `adaptive`."""
    settings = dict(one["instance"])
    rows = pl.read_parquet(PUBLISHED).filter(
        *(pl.col(name) == one[name] for name in ("n_arms", "max_delay", "horizon")),
        *(pl.col("instance") == settings.pop("name"), pl.col("instance_params") == canonical(settings)),
        *(pl.col("round") == one["horizon"], pl.col("player") != "default_player"),
    )
    return min(rows["regret"].to_list())


def geometric_mean(ratios: list[float]) -> float:
    """Return the geometric mean of ratios."""
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


def report(part: str, cells: list[Cell], found: list[list[Row]]) -> None:
    """Print the rows of a part, and what they come to."""
    ratios: dict[str, list[float]] = {}
    for one, rows in zip(cells, found, strict=True):
        by = {row.player: row for row in rows}
        least = LEAST_SHARE * rows[0].uniform
        text = "  ".join(f"{row.player} {row.regret:,.1f} ± {row.error:,.1f}" for row in rows)
        print(f"{part} {described(one)}: uniform {rows[0].uniform:,.1f}  {text}")
        if part in "abc":
            for row in rows:
                ratios.setdefault(row.player, []).append(row.regret / row.uniform)
        elif part == "d":
            for kind in ("unadvised", "advised"):
                ratio = max(by[kind].regret, least) / max(by["paper"].regret, least)
                ratios.setdefault(f"{kind} to the paper's tuning", []).append(ratio)
        else:
            least = rows[0].unit * math.sqrt((one["max_delay"] + 1) * one["n_arms"] * one["horizon"]) / 4.0
            alone, bottom = max(by["unadvised"].regret, least), max(best_rival(one), LEAST_SHARE * rows[0].uniform)
            ratios.setdefault("the least possible, as regrets are taken", []).append(least / alone)
            for kind, row in by.items():
                ratio = max(row.regret, least) / alone
                ratios.setdefault(f"{kind} to unadvised", []).append(ratio)
                sure = ratio - 1.0 > 2.0 * math.hypot(row.error, by["unadvised"].error) / alone
                ratios.setdefault(f"{kind} to unadvised, beyond two errors", []).append(ratio if sure else 1.0)
                ratio = max(row.regret, LEAST_SHARE * rows[0].uniform) / bottom
                ratios.setdefault(f"{kind} to the best rival in hindsight", []).append(ratio)
    for name, values in ratios.items():
        mean = geometric_mean(values) if part in "de" else float(np.mean(values))
        print(f"{part} {'geometric mean' if part in 'de' else 'mean'} {mean:.3f}, worst {max(values):.3f}: {name}")


def malicious(horizon: int) -> str:
    """Return the regret of a player with a malicious adviser."""
    table = ae.tables.iid(horizon, means=[0.4, 0.6], seed=horizon)
    means = []
    for adviser in (None, ae.advisers.Opinion([0.0, 1.0])):
        made = ae.default_player(2, max_delay=0, adviser=adviser)
        given = {"runs": 2000, "instances": 100, "checkpoints": 1, "threads": 1}
        found = ae.simulate(made, ae.spreads.at_once(table), seed=horizon, **given)
        means.append(f"{found.pseudo_regret.mean():.1f}")
    return f"f N={horizon}: unadvised {means[0]}, malicious adviser {means[1]}"


def main() -> None:
    """Run the parts."""
    parts, processes, adviser = [*sys.argv[1:], *("abcdef", "1", "lags")[len(sys.argv) - 1 :]]
    with Pool(int(processes)) as pool:
        waiting = {}
        for part in (part for part in PARTS if part in parts):
            cells = list(PARTS[part]())
            work = partial(measured, kinds=PLAYERS[part], adviser=adviser)
            waiting[part] = cells, pool.map_async(work, cells, chunksize=1)
        for part, (cells, rows) in waiting.items():
            report(part, cells, rows.get())
        if "f" in parts:
            print(*pool.map(malicious, (250, 1_000, 4_000)), sep="\n")


if __name__ == "__main__":
    main()
