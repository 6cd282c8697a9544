"""Tests of whether effects last longer than d: `python benchmarks/watch.py RUNS [PROCESSES [CASE ...]]`.

The cases of pilots have K = 4 arms and 600 rounds, those of players K = 4 and 5,000 rounds. Every run has seeds of its
own. Prints how often each case gave an alarm at the 5% level, with the 95% interval of this share.
"""

import functools
import sys
from multiprocessing import Pool
from typing import NamedTuple

import numpy as np
from scipy import stats

import aftereffect as ae
from aftereffect.carryover import Pilot, blocks_of, watch

K = 4
SEED = 9_000_000


class Case(NamedTuple):
    """delay: D of the late bills. told: d. max_lag: of the pilot; a player if it is None. noise: added, with its rho.

    season: the period of a change of level of all losses, 0 for none.
    """

    delay: int
    told: int
    max_lag: int | None = None
    noise: float = 0.0
    rho: float = 0.0
    season: int = 0


CASES = {
    "pilot, late bills to 12, d = 3": Case(12, 3, 12),
    "pilot, late bills to 40, d = 10": Case(40, 10, 40),
    "pilot, late bills to 12, d = 3, noise 1": Case(12, 3, 12, 1.0),
    "pilot, ends by d = 3": Case(3, 3, 12),
    "pilot, ends by d = 10": Case(10, 10, 40),
    "pilot, ends by d = 3, noise 1": Case(3, 3, 12, 1.0),
    "pilot, ends by d = 3, noise 1, rho 0.6": Case(3, 3, 12, 1.0, 0.6),
    "pilot, ends by d = 3, season of 7": Case(3, 3, 12, season=7),
    "player, late bills to 12, d = 3": Case(12, 3),
    "player, ends by d = 3": Case(3, 3),
    "player, ends by d = 3, season of 7": Case(3, 3, season=7),
    "player, ends by d = 3, season of 100": Case(3, 3, season=100),
}


def bills(case: Case, rounds: int, seed: int) -> ae.Losses:
    """Return late bills; with a season half the periods have losses that are higher by up to 0.5."""
    table = ae.tables.iid(rounds, means=[0.3, *np.linspace(0.5, 0.7, K - 1)], seed=seed)
    if case.season:
        level = 0.5 * (np.arange(rounds) % case.season >= case.season / 2)
        table = ae.tables.Table(0.5 * table.values + level[:, np.newaxis])
    lags = [round(i * case.delay / (K - 1)) for i in range(K)]
    return ae.spreads.kernels(table, weights=np.eye(case.delay + 1)[lags])


def pilot_alarm(case: Case, seed: int) -> bool:
    pilot = Pilot(n_arms=K, rounds=600, max_lag=case.max_lag or 0, seed=seed)
    rng = np.random.default_rng([seed, 1])
    # Before the pilot arms were random, so that its first totals have effects of earlier actions too.
    arms = np.concatenate([rng.integers(K, size=case.delay), pilot.arms])
    totals = bills(case, len(arms), seed).totals(arms)[case.delay :]
    shocks = rng.normal(size=600)
    for t in range(1, 600):
        shocks[t] = case.rho * shocks[t - 1] + np.sqrt(1.0 - case.rho**2) * shocks[t]
    return pilot.estimate(totals + case.noise * shocks).longer_than(case.told).verdict == "longer"


def player_alarm(case: Case, seed: int) -> bool:
    stream, totals = bills(case, 5000, seed).stream(), []
    player = ae.default_player(n_arms=K, max_delay=case.told, out_of_range="clip", seed=seed)
    for _ in range(5000):
        totals.append(stream.play(player.ask()))
        player.tell(totals[-1])
    return watch(player, blocks_of(player, totals)).alarm


def main() -> None:
    runs, processes = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for name in sys.argv[3:] or CASES:
        case = CASES[name]
        first = SEED + 10_000 * list(CASES).index(name)
        alarm = functools.partial(player_alarm if case.max_lag is None else pilot_alarm, case)
        with Pool(processes) as pool:
            alarms = sum(pool.imap_unordered(alarm, range(first, first + runs)))
        low, high = stats.binomtest(alarms, runs).proportion_ci()
        print(f"{name:<42} {alarms:>5} of {runs:,} alarms: {alarms / runs:7.2%}  [{low:.2%}, {high:.2%}]", flush=True)


if __name__ == "__main__":
    main()
