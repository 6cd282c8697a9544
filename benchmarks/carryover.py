"""Coverage of the bands of `ae.carryover`: `python benchmarks/carryover.py [repetitions] [first seed] [case ...]`.

Every repetition plans a pilot with a new seed, simulates its totals, and checks whether all arms and lags are inside
the band at once: for effects by lag, effects arrived, shares, and effects that remain. `apart` is how often "all arms
fade alike" is refuted: at most 5% is wanted where they do, and much where they do not. Prints one line per case as soon
as it is done. Each case has 10,000 seeds of its own, counted from the first seed; an estimator chosen by some is judged
by others.
"""

import sys
from dataclasses import dataclass

import numpy as np

import aftereffect as ae
from aftereffect.carryover import Curves, Pilot, estimate


@dataclass(frozen=True)
class Case:
    """One instance. kind: of the curves. rho: autocorrelation of the noise, which has standard deviation 1.

    told: whether `estimate` is told the season. player: the d of the default player that plays in place of a pilot.
    """

    n_arms: int = 4
    rounds: int = 600
    max_lag: int = 10
    units: int | None = None
    kind: str = "alike"
    rho: float = 0.0
    season: float = 0.0
    told: bool = True
    missing: float = 0.0
    plays: float = 0.0
    shared: float = 0.0
    player: int | None = None


CASES = {
    "white noise": Case(),
    "no effects": Case(kind="none"),
    "autocorrelated noise, 0.8": Case(rho=0.8),
    "season of 7, told": Case(season=7.0, rho=0.4),
    "season of 7, not told": Case(season=7.0, told=False),
    "season of 90, not told": Case(season=90.0, told=False),
    "gains and losses": Case(kind="gains and losses", rho=0.4),
    "fade apart": Case(kind="apart", rho=0.4),
    "2 arms": Case(n_arms=2, rho=0.4),
    "2 arms, apart": Case(n_arms=2, kind="apart", rho=0.4),
    "6 arms": Case(n_arms=6, rho=0.4),
    "6 arms, apart": Case(n_arms=6, kind="apart", rho=0.4),
    "10% missing": Case(missing=0.1, rho=0.6),
    "noise of plays": Case(plays=1.0, rho=0.4),
    "20 units": Case(units=20, rounds=120, rho=0.4),
    "20 units, shared shocks": Case(units=20, rounds=120, rho=0.4, shared=1.0),
    "20 units, 6 arms, apart, missing": Case(n_arms=6, units=20, rounds=120, kind="apart", missing=0.1, rho=0.4),
    "short pilot, 200 rounds": Case(rounds=200, max_lag=6, rho=0.4),
    "player": Case(n_arms=2, max_lag=4, player=2),
    "player, 400 rounds": Case(n_arms=2, max_lag=4, rounds=400, player=2),
    "player, 1,000 rounds, apart": Case(n_arms=2, max_lag=6, rounds=1000, kind="apart", player=2),
    "player, autocorrelated noise, 0.4": Case(n_arms=2, max_lag=4, rounds=1000, rho=0.4, player=2),
    "player, noise of plays": Case(n_arms=2, max_lag=4, rounds=1000, plays=1.0, player=2),
    "player, 3 arms": Case(n_arms=3, max_lag=4, rounds=1000, player=1),
}


def curves(case: Case) -> np.ndarray:
    """Return the effects by arm and lag."""
    K, lags = case.n_arms, np.arange(case.max_lag + 1)
    whole = np.linspace(0.5, 2.0, K)
    fast, slow = 0.5**lags, 0.85**lags
    alike = np.outer(whole, slow / slow.sum())
    if case.kind == "none":
        return np.zeros_like(alike)
    if case.kind == "alike":
        return alike
    if case.kind == "apart":
        shapes = np.where((np.arange(K) % 2 == 0)[:, np.newaxis], fast / fast.sum(), slow[::-1] / slow.sum())
        return 2.0 * whole[:, np.newaxis] * shapes
    gain = fast / fast.sum() - 0.8 * slow[::-1] / slow.sum()
    return np.outer(whole * np.where(np.arange(K) % 2 == 0, 1.0, -1.0), gain)


def noise(rng: np.random.Generator, rounds: int, units: int, rho: float) -> np.ndarray:
    """Return autocorrelated noise of standard deviation 1."""
    found = rng.normal(size=(rounds, units))
    for t in range(1, rounds):
        found[t] = rho * found[t - 1] + np.sqrt(1.0 - rho**2) * found[t]
    return found


def totals(case: Case, pilot: Pilot, effects: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the totals of one pilot; what was played before it is a random arm in every round."""
    units, D = case.units or 1, case.max_lag
    arms = np.concatenate([rng.integers(case.n_arms, size=(D, units)), pilot.arms.reshape(case.rounds, units)])
    # The size of every play varies around 1, so that noise depends on the arms and lasts as long as effects do.
    size = 1.0 + case.plays * rng.normal(size=arms.shape)
    found = noise(rng, case.rounds, units, case.rho) + 5.0 + np.linspace(0.0, 1.0, case.rounds)[:, np.newaxis]
    for s in range(D + 1):
        found += (size * effects[arms, s])[D - s : D - s + case.rounds]
    if case.season:
        week = np.sin(2 * np.pi * np.arange(case.rounds) / case.season) + rng.normal(size=1)
        found += 1.5 * week[:, np.newaxis]
    found += case.shared * rng.normal(size=(case.rounds, 1))
    found[rng.random(found.shape) < case.missing] = np.nan
    return found.reshape(pilot.arms.shape)


def played(case: Case, effects: np.ndarray, rng: np.random.Generator, seed: int) -> tuple[np.ndarray, ...]:
    """Return arms, probabilities and totals of the default player, which is told that effects lie in [0, 20]."""
    player = ae.default_player(case.n_arms, max_delay=case.player, high=20.0, out_of_range="clip", seed=seed)
    arms, probabilities = np.zeros(case.rounds, dtype=int), np.full(case.rounds, np.nan)
    found = np.append(noise(rng, case.rounds, 1, case.rho)[:, 0] + 5.0, np.zeros(case.max_lag))
    for t, size in enumerate(1.0 + case.plays * rng.normal(size=case.rounds)):
        arms[t] = player.ask()
        if player.block_start == t + 1:
            probabilities[t] = player.probabilities[arms[t]]
        found[t : t + case.max_lag + 1] += size * effects[arms[t]]
        player.tell(found[t])
    return arms, probabilities, found[: case.rounds]


def estimated(case: Case, effects: np.ndarray, seed: int) -> Curves:
    """Return the estimate of one repetition."""
    rng, season = np.random.default_rng([seed, 7]), case.season if case.season and case.told else None
    if case.player is not None:
        arms, q, y = played(case, effects, rng, seed)
        given = {"max_lag": case.max_lag, "n_arms": case.n_arms}
        return estimate(arms, y, exposure="adaptive", probabilities=q, **given)
    pilot = Pilot(n_arms=case.n_arms, rounds=case.rounds, max_lag=case.max_lag, units=case.units, seed=seed)
    return pilot.estimate(totals(case, pilot, effects, rng), season=season)


def coverage(case: Case, repetitions: int, first_seed: int) -> dict[str, float]:
    """Return the share of repetitions in which each band covers, with the mean half-width and the rate of "apart".

    Of a player, only repetitions in which it drew every arm often enough count; `none` is the share of the others.
    """
    effects = curves(case)
    truth = effects - effects.mean(axis=0)
    arrived = truth.cumsum(axis=1)
    counts = dict.fromkeys(("effects", "arrived", "shares", "remaining", "bounded", "apart", "width"), 0.0)
    later = arrived[:, -1:] - arrived
    none = 0
    for seed in range(first_seed, first_seed + repetitions):
        try:
            found = estimated(case, effects, seed)
        except ae.InvalidArgument:
            if case.player is None:
                raise
            none += 1
            continue
        if found.unmeasured:
            none += 1
            continue
        # An arm without a whole effect has no shares.
        some = np.abs(arrived[:, -1]) > 1e-12
        shares = arrived[some] / arrived[some, -1:]
        counts["effects"] += np.all((found.effects.lower <= truth) & (truth <= found.effects.upper))
        counts["arrived"] += np.all((found.arrived.lower <= arrived) & (arrived <= found.arrived.upper))
        inside = (found.shares.lower[some] <= shares + 1e-9) & (shares <= found.shares.upper[some] + 1e-9)
        counts["shares"] += np.all(inside)
        near = 1e-9 + np.stack([found.remaining.upper - later, later - found.remaining.lower])
        counts["remaining"] += np.all(near >= 0.0)
        counts["bounded"] += np.isfinite(found.shares.lower[some]).mean() if some.any() else 0.0
        counts["apart"] += found.alike.verdict == "apart"
        counts["width"] += (found.effects.upper - found.effects.lower).mean() / 2.0
    return {name: count / (repetitions - none) for name, count in counts.items()} | {"none": none / repetitions}


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    first_seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    names = sys.argv[3:] or list(CASES)
    columns = ("effects", "arrived", "shares", "remaining", "bounded", "apart", "width", "none")
    print(f"{'case':<34} " + " ".join(f"{column:>9}" for column in columns))
    for name in names:
        row = coverage(CASES[name], repetitions, first_seed + 10_000 * list(CASES).index(name))
        print(f"{name:<34} " + " ".join(f"{value:>9.3f}" for value in row.values()), flush=True)


if __name__ == "__main__":
    main()
