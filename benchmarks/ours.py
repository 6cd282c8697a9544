"""The measures of this library: its three engines, and `ask` and `tell` from Python.

Losses fade over the rounds (d > 0) or are immediate (d = 0). Arms are Bernoulli with means 0.3 to 0.7; the peers get
rewards with one minus these means. The engine's rows D and W are built once per loss sequence, before the timing, since
all runs and players share them; the time to build them is shown separately.
"""

import time
from typing import Any

import numpy as np
from sample import Measure, Sample

import aftereffect as ae

N_ARMS = 10
ENGINE, OBJECT, BUILD = "engines", "ask and tell", "built once"


class Worlds:
    """The loss sequences, built once and kept; `builds` are the measures of building the engine's rows."""

    def __init__(self, horizon: int) -> None:
        """Set T = `horizon` for all sequences."""
        self.horizon = horizon
        self.builds: list[Measure] = []
        self._known: dict[tuple[int, int, str], ae.Losses] = {}

    def losses(self, n_arms: int, max_delay: int, law: str = "bernoulli") -> ae.Losses:
        """Return the losses for K, d and a law, with the block engine's rows built."""
        key = (n_arms, max_delay, law)
        if key not in self._known:
            table = ae.tables.iid(self.horizon, means=np.linspace(0.3, 0.7, n_arms), seed=1, law=law)
            made = spread(table, max_delay)
            player = wrapper(n_arms, max_delay, self.horizon)
            # A first call on a few rounds compiles or reads the cache, so that only building the rows is timed.
            ae.simulate(player, spread(table.values[:64], max_delay), runs=1, progress=False)
            begin = time.perf_counter()
            ae.simulate(player, made, runs=1, progress=False)
            spent = time.perf_counter() - begin
            setting = {"K": n_arms, "d": max_delay, "T": self.horizon, "law": law}
            built = Measure(f"rows of K={n_arms}, d={max_delay}, {law}", BUILD, setting)
            built.samples.append(Sample(spent, self.horizon, 0))
            self.builds.append(built)
            self._known[key] = made
        return self._known[key]


def spread(table: Any, max_delay: int) -> ae.Losses:
    """Return the losses of a table, spread geometrically over d+1 rounds."""
    if max_delay == 0:
        return ae.spreads.at_once(table)
    return ae.spreads.geometric(table, half_life=max_delay / 4, max_delay=max_delay)


def wrapper(n_arms: int, max_delay: int, horizon: int, base: str = "tsallis") -> ae.CompositeLossWrapper:
    """Return the tuned player."""
    tuned = ae.CompositeLossWrapper.tuned
    return tuned(n_arms=n_arms, max_delay=max_delay, horizon=horizon, base=base, seed=5)


def simulated(
    name: str, player: Any, losses: ae.Losses, runs: int, threads: int, engine: str, law: str = "bernoulli"
) -> Measure:
    """Return the measure of one call of `simulate`, after a first run that compiles."""
    ae.simulate(player, losses, runs=1, engine=engine, threads=1, progress=False)

    def play() -> tuple[int, int]:
        sim = ae.simulate(player, losses, runs=runs, seed=7, engine=engine, threads=threads, progress=False)
        return runs * losses.horizon, int(sim.updates.sum())

    setting = {"K": losses.n_arms, "d": losses.max_delay, "T": losses.horizon, "law": law}
    return Measure(name, ENGINE, setting | {"runs": runs, "threads": threads}, play)


def asked(max_delay: int, rounds: int) -> Measure:
    """Return the measure of a wrapper played from Python with totals drawn beforehand."""
    totals = np.random.default_rng(9).random(rounds).tolist()

    def play() -> tuple[int, int]:
        player = wrapper(N_ARMS, max_delay, 1_000_000)
        ask, tell = player.ask, player.tell
        for total in totals:
            ask()
            tell(total)
        return rounds, 0

    setting = {"K": N_ARMS, "d": max_delay, "rounds": rounds}
    return Measure(f"ask + tell, d={max_delay}", OBJECT, setting, play)


def measures(worlds: Worlds, cores: int, quick: bool) -> list[Measure]:
    """Return all measures of this library."""
    horizon = worlds.horizon
    many, few = (64, 8) if quick else (1024, 32)
    found = []
    lingering = worlds.losses(N_ARMS, 10)
    for threads in (1, 2):
        player = wrapper(N_ARMS, 10, horizon)
        name = f"blocks, d=10, threads={threads}"
        found.append(simulated(name, player, lingering, many, threads, "blocks"))
    player = wrapper(N_ARMS, 100, horizon)
    losses = worlds.losses(N_ARMS, 100)
    found.append(simulated("blocks, d=100, threads=1", player, losses, many, 1, "blocks"))
    for n_arms in (2, 3, 4):
        player = wrapper(n_arms, 10, horizon)
        losses = worlds.losses(n_arms, 10)
        found.append(simulated(f"blocks, K={n_arms}, d=10, threads=1", player, losses, many, 1, "blocks"))
    at_once = worlds.losses(N_ARMS, 0)
    for base in ("tsallis", "exp3"):
        player = wrapper(N_ARMS, 0, horizon, base)
        found.append(simulated(f"blocks, d=0, {base}, all cores", player, at_once, few, cores, "blocks"))
    # With Bernoulli losses about half of the losses are 0 and need no update; with beta losses none are.
    losses, player = worlds.losses(N_ARMS, 0, "beta"), wrapper(N_ARMS, 0, horizon)
    name = "blocks, d=0, tsallis, beta losses, all cores"
    found.append(simulated(name, player, losses, few, cores, "blocks", "beta"))
    naive = ae.Naive(ae.Exp3(n_arms=N_ARMS, learning_rate=0.01), seed=5)
    found.append(simulated("rounds, naive Exp3, d=10, threads=1", naive, lingering, few, 1, "rounds"))
    length = 20_000 if quick else 200_000
    short = spread(ae.tables.iid(length, means=np.linspace(0.3, 0.7, N_ARMS), seed=1), 10)
    player = wrapper(N_ARMS, 10, short.horizon)
    found.append(simulated("loop, d=10", player, short, 1, 1, "loop"))
    rounds = 50_000 if quick else 300_000
    return [*found, asked(10, rounds), asked(0, rounds)]
