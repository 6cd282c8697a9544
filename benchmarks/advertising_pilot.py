"""From a pilot to a running player on an advertising system: `python benchmarks/advertising_pilot.py [seeds] [first]`.

The system is that of Mussi and others, "Dynamical Linear Bandits" (ICML 2023), from its public configuration
(marcomussi/DLB, config/testcase_realdata.json): x' = Ax + Bu, y = sum(Cx + Du). The arms are the six ways to give the
budgets 1, 1/2, 0 to three channels. Noise is added to the totals. A user who knows nothing about delays runs a pilot,
takes the d of `ae.choose_delay`, and then plays the default player. The improvement over uniform play, pilot included,
is compared to that of a user who is told d = 14 and needs no pilot. One line per pilot and noise.
"""

import sys
import warnings
from itertools import permutations

import numpy as np

import aftereffect as ae

A = np.array([[0.38, 0.33, 0.6], [0.07, 0.76, -0.54], [0.18, 0.34, 0.05]])
B = np.array([[0.14, 0.34, -0.05], [-0.17, 0.03, -0.01], [0.04, -0.09, 0.17]])
C = np.array([[0.25, -0.14, 0.01], [-0.55, 0.2, -0.13], [-0.31, -0.1, -0.01]])
D = np.array([[0.11, 0.1, 0.01], [0.01, 0.36, 0.01], [0.01, -0.05, 0.0]])
ARMS = np.array(list(permutations([1.0, 0.5, 0.0])))
T, TOLD, LAST = 20_000, 14, 40


def responses() -> np.ndarray:
    """Return the effect of each arm by lag."""
    found = [(D @ ARMS.T).sum(axis=0)]
    power = np.eye(3)
    for _ in range(LAST):
        found.append((C @ power @ B @ ARMS.T).sum(axis=0))
        power = power @ A
    return np.array(found).T


def parts(effects: np.ndarray) -> tuple[float, float]:
    """Return the least and the greatest sum of consecutive components of an effect, rounded outwards to cents."""
    sums = np.append(np.zeros((len(effects), 1)), effects.cumsum(axis=1), axis=1)
    gaps = sums[:, np.newaxis, :] - sums[:, :, np.newaxis]
    later = np.tri(sums.shape[1], k=0).T.astype(bool)
    return float(np.floor(100 * gaps[:, later].min()) / 100), float(np.ceil(100 * gaps[:, later].max()) / 100)


def play(effects: np.ndarray, noise: np.ndarray, player: ae.CoinCleanWrapper, arms: np.ndarray) -> float:
    """Return the regret of a pilot with these arms, and then of the player, which goes on in the same system."""
    totals = np.append(noise, np.zeros(LAST + 1))
    whole = effects.sum(axis=1)
    regret = 0.0
    for t in range(T):
        arm = int(arms[t]) if t < len(arms) else player.ask()
        totals[t : t + LAST + 1] += effects[arm]
        regret += whole.max() - whole[arm]
        if t >= len(arms):
            player.tell(totals[t])
    return regret


def one(seed: int, rounds: int, deviation: float, max_lag: int) -> tuple[float, float, int]:
    """Return the shares of the regret of uniform play of the two users, and the d that was chosen."""
    effects = responses()
    low, high = parts(effects)
    given = {"direction": "maximize", "low": low, "high": high}
    noise = deviation * np.random.default_rng([seed, 1]).normal(size=T)
    pilot = ae.carryover.Pilot(n_arms=6, rounds=rounds, max_lag=max_lag, seed=seed)
    totals = np.append(noise[:rounds], np.zeros(LAST + 1))
    for t, arm in enumerate(pilot.arms):
        totals[t : t + LAST + 1] += effects[arm]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ae.AftereffectWarning)
        chosen = ae.choose_delay(curves=pilot.estimate(totals[:rounds]), n_arms=6, horizon=T, **given).max_delay
    uniform = T * (effects.sum(axis=1).max() - effects.sum(axis=1).mean())
    found = []
    for d, arms in ((chosen, pilot.arms), (TOLD, np.empty(0, dtype=int))):
        player = ae.default_player(6, max_delay=d, out_of_range="clip", seed=seed, **given)
        found.append(play(effects, noise, player, arms) / uniform)
    return found[0], found[1], chosen


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    print(f"{'pilot':>6} {'noise':>6} {'measured':>9} {'told':>6} {'ratio':>6} {'worst':>6} chosen d")
    for rounds, deviation in ((300, 0.05), (300, 0.1), (600, 0.05), (600, 0.1), (600, 0.2), (600, 0.3)):
        rows = np.array([one(seed, rounds, deviation, 20) for seed in range(first, first + seeds)])
        ours, told = 1.0 - rows[:, 0], 1.0 - rows[:, 1]
        chosen = ", ".join(f"{int(d)}" for d in np.sort(rows[:, 2]))
        ratio = ours.mean() / told.mean()
        print(
            f"{rounds:>6} {deviation:>6} {ours.mean():>9.3f} {told.mean():>6.3f} {ratio:>6.3f} "
            f"{(ours / told).min():>6.3f} {chosen}",
            flush=True,
        )


if __name__ == "__main__":
    main()
