"""The lag model and its player at human scale: what they lose, what they claim, and how often that is true.

    python benchmarks/lags.py [PARTS] [RUNS] [WORKERS]

For example: worlds,units 40; by default all parts, 40 runs a world.

    worlds        96 worlds of a year as the design was chosen on, with other seeds
    unlike        48 worlds with numbers of arms, half-lives, gaps and noise that it was not chosen on
    units         60 units for 90 days, and 5
    advertising   the advertising system for 365 and for 2,000 days
    wrong         best and worst arm swap; the best arm looks worst for a fifth; arms tire; and whether `checks` says so
    calibration   by tenths, how often an arm is best that is said to be so; coverage of 95% intervals. 100 · RUNS runs
                  a kind, in WORKERS processes, by default as many as there are cores; it needs no library of tables
    times         a year simulated, and a round of 60 units

The first five print the regret of each player as a share of an equal split's. Worlds are those of `losses/year.py`,
with curves and noise of their own in each run; but for the calibration, one process and one thread.
"""

import itertools
import os
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import aftereffect as ae
from aftereffect.lags.model import lag_params
from aftereffect.losses.year import CURVES, Days

if TYPE_CHECKING:
    from aftereffect.studies.cells import Cell

sys.path.append(str(Path(__file__).parents[1] / "docs" / "studies"))

SEED = 2025
KINDS = "white", "ar", "season", "jumps"
LAG, DEFAULT = {"name": "LagPlayer"}, {"name": "default_player"}
TESTS = [
    {"name": "ABTest", "share": share, **how}
    for share in (0.125, 0.25)
    for how in ({"hold": 11}, {"hold": 3, "order": "random", "winner": "lags"})
]
SPLIT = {"name": "ABTest", "share": 1.0, "order": "random"}


def cells(runs: int, sizes: tuple[int, int, int], players: list[dict[str, Any]], **world: Any) -> "list[Cell]":
    """Return the cells of a world, one per player; sizes: arms, the longest lag, rounds."""
    from aftereffect.studies.cells import instance_table, player_table

    units, found = world.pop("n_units", 1), instance_table({"name": "year", **world})
    shared: Cell = {"measure": "regret", "instance": found, "runs": runs, "instances": runs, "seed": SEED}
    shared |= {"checkpoints": 1, **dict(zip(("n_arms", "max_delay", "horizon"), sizes, strict=True))}
    shared |= {"n_units": units} if units > 1 else {}
    return [shared | {"player": player_table(player)} for player in players]


def told(path: str) -> dict[str, Any]:
    """Return the player, which is told of a season."""
    return LAG | ({"season": 7} if path == "season" else {})


def worlds(runs: int) -> "Iterator[Cell]":
    """Yield worlds as in the search for the design; the noise goes round."""
    noises = itertools.cycle((0.1, 0.2, 0.3))
    for half_life, curves, path, K in itertools.product((1.0, 3.0), CURVES, KINDS, (2, 4, 6)):
        world = {"half_life": half_life, "curves": curves, "path": path, "noise": next(noises)}
        yield from cells(runs, (K, 14, 365), [told(path), DEFAULT, *TESTS], **world)


def unlike(runs: int) -> "Iterator[Cell]":
    """Yield worlds of other sizes."""
    noises = itertools.cycle((0.05, 0.15, 0.25, 0.4, 0.2))
    sizes = itertools.cycle(itertools.product((3, 5), (2.0, 5.0), (0.1, 0.3)))
    for curves, path, _ in itertools.product(CURVES, KINDS, range(3)):
        K, half_life, gap = next(sizes)
        world = {"half_life": half_life, "curves": curves, "path": path, "noise": next(noises), "gap": gap}
        yield from cells(runs, (K, 14, 365), [told(path), DEFAULT, *TESTS], **world)


def units(runs: int) -> "Iterator[Cell]":
    """Yield units that share a learner."""
    for count, noise in ((60, 0.1), (60, 0.3), (60, 1.0), (5, 0.3)):
        yield from cells(runs, (4, 14, 90), [LAG, DEFAULT, TESTS[3]], noise=noise, n_units=count)


def advertising(runs: int) -> "Iterator[Cell]":
    """Yield the advertising system."""
    for days in (365, 2000):
        yield from cells(runs, (6, 40, days), [LAG, DEFAULT, *TESTS], name="advertising")


def wrong(runs: int) -> "Iterator[Cell]":
    """Yield worlds in which effects change, or arms tire."""
    for change in ("swap", "hidden", "fatigue"):
        yield from cells(runs, (4, 14, 365), [LAG, DEFAULT, *TESTS, SPLIT], change=change)


def shares(part: str, listed: "list[Cell]") -> None:
    """Print the share of each player by world, and over all of them."""
    from equal_split import earned, player_name

    from aftereffect.studies.cells import groups
    from aftereffect.studies.run import simulate_all

    found: dict[str, list[float]] = {}
    for group in groups(listed):
        texts, control = [], 0.0
        finals = [finished.rows.to_dicts()[-1] for finished in simulate_all(group, 1)]
        tiring = group[0]["instance"].get("change") == "fatigue"
        if tiring:
            control = earned(finals[-1])
        for cell, row in zip(group, finals, strict=True):
            who = player_name(cell["player"]["name"], cell["player"])
            whole = row["uniform_regret"]
            share = earned(row) / control if tiring else row["regret"] / whole
            texts.append(f"{who} {share:.3f} ± {row['standard_error'] / (control or whole):.3f}")
            if not tiring:
                found.setdefault(who.removesuffix(", told the season"), []).append(share)
        cell = group[0]
        place = " ".join(str(value) for value in cell["instance"].values())
        sizes = f"K={cell['n_arms']} T={cell['horizon']} units={cell.get('n_units', 1)}"
        print(f"{part}: {place} {sizes}{', earnings' if tiring else ''}: {'; '.join(texts)}", flush=True)
    for who, values in found.items():
        print(f"{part}: {who}: mean {np.mean(values):.3f}, worst {max(values):.3f} of {len(values)} worlds", flush=True)


def learned(losses: ae.Losses, seed: int) -> ae.LagModel:
    """Let a player play these losses, and return what it has learned."""
    player, stream = ae.LagPlayer(losses.n_arms, direction="maximize", seed=seed), losses.stream()
    for _ in range(losses.horizon):
        player.tell(stream.play(player.ask()))
    return player.model


def notices(runs: int) -> None:
    """Print how often `checks` speaks at the end of a year, by what effects do."""
    for change in ("none", "swap", "hidden", "fatigue"):
        said = {"changed": 0, "held": 0}
        for seed in range(runs):
            for finding in learned(ae.year(seed=seed, change=change), seed).checks():
                said[finding.name] = said.get(finding.name, 0) + finding.found
        print(f"checks: {change}: changed {said['changed']}, held {said['held']} of {runs}", flush=True)


def drawn(kind: str, seed: int) -> ae.Losses:
    """Return losses whose sizes and effects are drawn: from the model itself, or a world with noise of this kind."""
    draw = np.random.default_rng([seed, SEED])
    K, T = int(draw.integers(2, 5)), int(draw.choice([60, 120, 240], p=[0.4, 0.35, 0.25]))
    law = {"half_life": float(2.0 ** draw.uniform(0.0, 2.0)), "curves": str(draw.choice(CURVES))}
    law |= {"gap": float(draw.uniform(0.0, 0.3)), "noise": float(draw.uniform(0.1, 0.3))}
    if kind != "model":
        return ae.year(n_arms=K, horizon=T, **law, path=kind, seed=seed)
    params = lag_params(K, 14, 0, 0, "maximize", 1)
    one = np.linalg.inv(params.precisions.reshape(-1, params.knots, params.knots)[draw.integers(len(params.logs))])
    scale = float(draw.choice(params.scales))
    at_knots = scale * draw.multivariate_normal(np.zeros(params.knots), one, size=K)
    curves = at_knots @ params.weights.reshape(-1, params.knots).T
    days, bound = Days(curves, np.ones((T, K)), draw.standard_normal(T)), 1e6
    whole = curves.sum(axis=1)
    sizes = {"horizon": T, "n_arms": K, "max_delay": 14}
    return ae.Losses(days, **sizes, direction="maximize", low=-bound, high=bound, means=whole)


class Statement(NamedTuple):
    """What a run says and what is true: best and arm, the probabilities and the best arm; covered, a share of arms."""

    best: list[float]
    arm: int
    covered: float


def stated(kind: str, seed: int) -> Statement:
    """Return what a player says in the end. Seasons are not told."""
    losses = drawn(kind, seed)
    model, means = learned(losses, seed), losses.means
    effects, whole = model.effects(), means - means.mean()
    covered = np.mean((effects.low <= whole) & (whole <= effects.high))
    return Statement(model.best.tolist(), int(means.argmax()), float(covered))


def calibration(runs: int, workers: int) -> None:
    """Print what share of the arms that are best with probability p are best, by tenths, and how often intervals hold.

    From each run comes one statement, of an arm whose tenth has the fewest so far: that depends on what was said, not
    on what is true.
    """
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for kind in ("model", *KINDS):
            said, true, covered = [[] for _ in range(10)], [0] * 10, []
            for found in pool.map(partial(stated, kind), range(runs), chunksize=20):
                tenths = [min(int(10.0 * p), 9) for p in found.best]
                arm = min(range(len(tenths)), key=lambda i: len(said[tenths[i]]))
                said[tenths[arm]].append(found.best[arm])
                true[tenths[arm]] += int(arm == found.arm)
                covered.append(found.covered)
            lines = [f"{np.mean(p):.3f} → {n / len(p):.3f} ({len(p)})" for p, n in zip(said, true, strict=True) if p]
            print(f"calibration, {kind}: intervals hold in {np.mean(covered):.3f} of {runs} runs")
            print(f"  said → true (statements): {', '.join(lines)}", flush=True)


def times(runs: int) -> None:
    """Print the least time of a year of one unit in the simulator, and the median one of a round of 60 units."""
    year, player = ae.year(seed=1), ae.LagPlayer(4, direction="maximize")
    taken = []
    for _ in range(5):
        begun = time.perf_counter()
        ae.simulate(player, year, runs=4, threads=1)
        taken.append((time.perf_counter() - begun) / 4)
    panel, rounds = ae.Panel(ae.LagPlayer(4, direction="maximize", seed=1), n_units=60), []
    draw = np.random.default_rng(1)
    for _ in range(90):
        begun = time.perf_counter()
        arms = panel.ask()
        panel.tell((np.array(arms) + draw.standard_normal(60)).tolist())
        rounds.append(time.perf_counter() - begun)
    print(f"times: a year {min(taken):.3f} s; a round of 60 units {1000.0 * np.median(rounds[5:]):.2f} ms, ", end="")
    print(f"at most {1000.0 * max(rounds[5:]):.1f} ms")


PARTS = {"worlds": worlds, "unlike": unlike, "units": units, "advertising": advertising, "wrong": wrong}


def main(parts: str = "", runs: str = "40", workers: str = "") -> None:
    """Print all parts asked for."""
    warnings.simplefilter("ignore", ae.AftereffectWarning)
    for part in parts.split(",") if parts else [*PARTS, "calibration", "times"]:
        begun = time.perf_counter()
        if part in PARTS:
            shares(part, list(PARTS[part](int(runs))))
        if part == "wrong":
            notices(int(runs))
        elif part == "calibration":
            calibration(100 * int(runs), int(workers or os.cpu_count() or 1))
        elif part == "times":
            times(int(runs))
        print(f"{part}: {time.perf_counter() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
