"""Search for the oblivious instances on which the default player does worst (docs/theory/worst_instance.md).

    python benchmarks/adaptive_search.py --seconds 60 --max-delay 0 --out found.json

First random piecewise instances (`docs/studies/pieces.py`), then steps from the worst so far, by two measures: mean
regret over √(K(d+1)T), and mean regret over that of the paper's tuning. The worst of thousands of noisy means
overestimates the regret, so the worst instances are played again with new draws and many more runs; only these results
are reported.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import aftereffect as ae
from aftereffect.core.checks import FloatArray
from aftereffect.losses import spreads

sys.path.append(str(Path(__file__).parents[1] / "docs" / "studies"))
from pieces import piecewise

SPREADS = ("fixed", "immediate", "delays")


class Found(NamedTuple):
    """Mean regrets of the default player and the paper's tuning, with standard errors, on one instance."""

    instance: dict[str, Any]
    own: float
    own_error: float
    paper: float
    paper_error: float

    def size(self) -> float:
        """Return √(K(d+1)T)."""
        given = self.instance
        return math.sqrt(given["n_arms"] * (given["max_delay"] + 1) * given["horizon"])

    def score(self, aim: str) -> float:
        """Return the regret minus two standard errors, so that noise does not direct the search, relative to the aim.

        In a ratio the regret of the paper's tuning counts as at least 0.1 √(K(d+1)T).
        """
        sure = self.own - 2.0 * self.own_error
        return sure / (self.size() if aim == "size" else max(self.paper, 0.1 * self.size()))


def losses(instance: dict[str, Any], seed: int) -> Any:
    """Build an instance's losses."""
    given = dict(instance)
    d, spread = given.pop("max_delay"), given.pop("spread")
    table = piecewise(given.pop("horizon"), given.pop("n_arms"), seed, **given)
    if spread == "delays":
        return spreads.randomly_delayed(table, max_delay=d, seed=seed)
    return spreads.delayed(table, delays=d if spread == "fixed" else 0, max_delay=d)


def judged(instance: dict[str, Any], runs: int, draws: int, seed: int) -> Found:
    """Play an instance with both players, with the runs divided over several draws of its noise."""
    K, d, T = instance["n_arms"], instance["max_delay"], instance["horizon"]
    own: list[FloatArray] = []
    paper: list[FloatArray] = []
    for draw in range(draws):
        world = losses(instance, seed + draw)
        paper_tuned = ae.CompositeLossWrapper.tuned(n_arms=K, max_delay=d, horizon=T, seed=0)
        for player, kept in ((ae.default_player(K, max_delay=d, seed=0), own), (paper_tuned, paper)):
            sim = ae.simulate(player, world, runs=runs // draws, seed=seed + draw, checkpoints=1, threads=1)
            kept.append(sim.regret)
    one, other = np.concatenate(own), np.concatenate(paper)
    root = math.sqrt(len(one))
    return Found(instance, one.mean(), one.std(ddof=1) / root, other.mean(), other.std(ddof=1) / root)


def drawn(random: np.random.Generator, max_delay: int, horizon: int) -> dict[str, Any]:
    """Draw a random instance: the number of pieces and of different arms, and levels of one of five kinds."""
    n_arms = int(random.choice([2, 3, 5, 10]))
    count, apart = int(random.integers(1, 8)), int(random.integers(2, n_arms + 1))
    character = random.integers(5)
    levels = random.random((count, apart))
    if character == 0:
        levels = (levels < random.random()).astype(np.float64)
    elif character == 1:
        levels = np.clip(random.random() + random.choice([0.02, 0.1, 0.3]) * (levels - 0.5), 0.0, 1.0)
    elif character == 2:
        # Late best: the last arm is the worst until the last piece, in which it is the best.
        levels[:, -1] = levels.max(axis=1)
        levels[-1] = np.clip(levels[-1] + random.random(), 0.0, 1.0)
        levels[-1, -1] = 0.0
    elif character == 3:
        # The arms take turns at being the best.
        levels[:] = random.random()
        levels[np.arange(count), np.arange(count) % apart] *= random.random()
    shares = random.dirichlet(np.full(count, random.choice([0.3, 1.0, 5.0])))
    return {
        "n_arms": n_arms,
        "max_delay": max_delay,
        "horizon": horizon,
        "spread": "fixed" if max_delay == 0 else str(random.choice(SPREADS)),
        "shares": shares.round(4).tolist(),
        "levels": levels.round(4).tolist(),
        "noise": float(random.choice([0.0, 0.0, 0.1, 1.0])),
        "swing": float(random.choice([0.0, 0.0, 0.0, 0.5, 0.9])),
        "period": int(random.choice([1, 5, 50, 500, 5000])),
    }


def nearby(random: np.random.Generator, instance: dict[str, Any]) -> dict[str, Any]:
    """Return an instance one random step away."""
    near = dict(instance)
    levels, shares = np.array(near["levels"]), np.array(near["shares"])
    step = 10.0 ** random.uniform(-2.5, -0.3)
    kind = random.integers(8)
    if kind <= 2:
        chosen = random.random(levels.shape) < random.choice([0.2, 1.0])
        levels = np.clip(levels + step * random.standard_normal(levels.shape) * chosen, 0.0, 1.0)
    elif kind == 3:
        levels[random.integers(len(levels)), random.integers(levels.shape[1])] = random.choice([0.0, 0.5, 1.0])
    elif kind <= 5:
        shares = shares * np.exp(step * random.standard_normal(len(shares)))
    elif kind == 6 and len(levels) < 10:
        at = random.integers(len(levels))
        levels, shares = np.insert(levels, at, levels[random.integers(len(levels))], axis=0), np.insert(shares, at, 0.1)
    else:
        near["noise"] = float(random.choice([0.0, 0.03, 0.1, 0.3, 1.0]))
        near["swing"] = float(random.choice([0.0, near["swing"], 0.3, 0.9]))
        near["period"] = max(1, int(near["period"] * random.choice([0.3, 1.0, 3.0])))
    near["levels"], near["shares"] = levels.round(4).tolist(), (shares / shares.sum()).round(4).tolist()
    return near


def search(random: np.random.Generator, max_delay: int, horizon: int, seconds: float, aim: str) -> Iterator[Found]:
    """Yield the instances tried: random ones for half of the time, then steps from the six worst."""
    started = time.process_time()
    worst: list[Found] = []
    while (spent := time.process_time() - started) < seconds:
        if spent < 0.5 * seconds or not worst:
            instance = drawn(random, max_delay, horizon)
        else:
            instance = nearby(random, worst[random.integers(len(worst))].instance)
        found = judged(instance, 16, 2, int(random.integers(2**31)))
        worst = sorted([*worst, found], key=lambda one: -one.score(aim))[:6]
        yield found


def main() -> None:
    """Search, play the worst instances again, and write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of processor time, for each aim")
    parser.add_argument("--max-delay", type=int, default=0)
    parser.add_argument("--horizon", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    random = np.random.default_rng(given.seed)
    kept = {}
    for aim in ("size", "ratio"):
        tried = list(search(random, given.max_delay, given.horizon, given.seconds, aim))
        tried.sort(key=lambda one: -one.score(aim))
        again = [judged(one.instance, 200, 4, 10**6) for one in tried[:12]]
        again.sort(key=lambda one: -one.score(aim))
        scores = np.array([one.score(aim) for one in tried])
        size = np.array([one.own / one.size() for one in tried])
        print(f"{aim}: {len(tried)} instances; seen first {scores.max():.3f}; again {again[0].score(aim):.3f}")
        print(f"  mean of the positive part of regret over √(K(d+1)T): {np.maximum(size, 0.0).mean():.3f}")
        kept[aim] = [one._asdict() | {"score": one.score(aim), "size": one.size()} for one in again]
        for one in again[:3]:
            print(f"  {one.own:.0f} ± {one.own_error:.0f}, paper {one.paper:.0f} ± {one.paper_error:.0f}", one.instance)
    given.out.write_text(json.dumps(kept, indent=1))


if __name__ == "__main__":
    main()
