"""From a pilot to a running player on an advertising system: `python benchmarks/advertising_pilot.py [seeds] [first]`.

The system is that of Mussi and others, "Dynamical Linear Bandits" (ICML 2023), with white noise of several sizes added
to the totals. A user who knows nothing about delays runs a pilot, takes the d of `ae.choose_delay`, and then plays the
default player. The improvement over uniform play, pilot included, is compared to that of a user who is told d = 14 and
needs no pilot. One line per pilot and noise.
"""

import sys
import warnings

import numpy as np

import aftereffect as ae
from aftereffect.core.effects import extreme_parts
from aftereffect.losses.linear_system import ADVERTISING

T, TOLD, LAST = 20_000, 14, 40


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
    effects = ADVERTISING.responses(LAST).T
    least, most = extreme_parts(effects.T[np.newaxis])
    given = {"direction": "maximize", "low": float(least.min()), "high": float(most.max())}
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
