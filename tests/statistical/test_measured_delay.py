"""A user who does not know how long effects last: a pilot, then a player, on a real advertising system.

At T = 20,000, pilot included, this must have at least 80% of the improvement over uniform play that the default player
has if it is told d = 14 (less than 1% of an effect is left then). Regret is the sum of the gaps between whole effects.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest

import aftereffect as ae
from aftereffect.losses.linear_system import ADVERTISING, system_rewards

T, K, N, LONGEST = 20_000, 6, 300, 15
KNOWN: dict[str, Any] = {"direction": "maximize", "low": -0.42, "high": 0.58}
WHOLE = ADVERTISING.responses(40).sum(axis=0)
GAPS = WHOLE.max() - WHOLE
UNIFORM = float(GAPS.mean()) * T

pytestmark = pytest.mark.filterwarnings("ignore:player has max_delay:aftereffect.AftereffectWarning")


def rewards(rounds: int, seed: int) -> ae.Losses:
    return system_rewards(ADVERTISING, max_delay=40, horizon=rounds, seed=seed)


def regrets(rounds: int, seed: int, max_delay: int, prior: ae.Prior | None = None, runs: int = 8) -> np.ndarray:
    """Return the regret of every run of the default player, each on a draw of its own."""
    player = ae.default_player(K, max_delay=max_delay, prior=prior, out_of_range="clip", **KNOWN)
    found = ae.simulate(player, rewards(rounds, seed), runs=runs, instances=runs, seed=seed, progress=False)
    return found.pseudo_regret


@cache
def told() -> tuple[float, float]:
    """Return the mean regret of the player that is told d = 14, and its standard error."""
    found = regrets(T, 100, 14, runs=24)
    return float(found.mean()), float(found.std(ddof=1) / np.sqrt(len(found)))


def least_share(measured: np.ndarray) -> float:
    """Return the share of the improvement, three standard errors to the bad side."""
    error = measured.std(ddof=1) / np.sqrt(len(measured))
    mean, other = told()
    return float((UNIFORM - measured.mean() - 3 * error) / (UNIFORM - mean + 3 * other))


def test_a_pilot_and_what_it_shows_are_worth_80_percent_of_knowing_d() -> None:
    assert told()[0] < 0.5 * UNIFORM
    found = []
    for seed in (1, 2):
        pilot = ae.carryover.Pilot(n_arms=K, rounds=N, max_lag=LONGEST, seed=seed)
        curves = pilot.estimate(rewards(N, seed).totals(pilot.arms))
        d = ae.choose_delay(curves=curves, n_arms=K, horizon=T - N, **KNOWN).max_delay
        prior = ae.carryover.prior(curves, rounds=N, max_delay=d, **KNOWN)
        found.append(GAPS[pilot.arms].sum() + regrets(T - N, 10 + seed, d, prior))
    assert least_share(np.concatenate(found)) > 0.8
