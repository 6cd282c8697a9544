"""`LinearComposite`: exact reconstruction of losses, feedback to the right copy, growth of errors."""

import numpy as np
import pytest

from aftereffect.bandits.exp3 import Exp3
from aftereffect.core import random
from aftereffect.losses.spreads import linear_composite
from aftereffect.players.rivals.linear_composite import LinearComposite

K, RATE, SEED, HORIZON = 3, 0.5, 6, 200


def table() -> np.ndarray:
    return np.random.default_rng(9).random((HORIZON, K))


def test_losses_are_reconstructed_and_fed_to_the_copy_that_played() -> None:
    """Against d+1 separate Exp3 that are fed the true losses of the table, d rounds late."""
    values, coefficients, d = table(), [0.0, 0.0, 0.5, 0.0, 0.3, 0.2], 2
    stream = linear_composite(values, coefficients=coefficients).stream()
    player = LinearComposite(Exp3(K, learning_rate=RATE), coefficients=coefficients, seed=SEED)
    assert player.delay == d
    assert player.error_growth < 1.0
    copies, words = [Exp3(K, learning_rate=RATE) for _ in range(d + 1)], random.stream(SEED, 0, random.ARMS)
    arms: list[int] = []
    for t in range(HORIZON):
        arms.append(player.ask())
        assert arms[-1] == copies[t % (d + 1)].draw(words)
        played = player.tell(stream.play(arms[-1]))
        if t < d:
            assert played.fed_loss is None
            continue
        true = values[t - d, arms[t - d]]
        assert played.fed_loss == pytest.approx(true, abs=1e-13)
        # The copy of round t - d is the one that plays in round t + 1.
        copies[(t - d) % (d + 1)].update(arms[t - d], true)


def test_signed_rewards_are_reconstructed() -> None:
    """With effects in [-2, 2] a reward x is fed as 1 - (x + 2)/4."""
    values = 4.0 * table() - 2.0
    stream = linear_composite(values, coefficients=[0.75, 0.25], direction="maximize", low=-2.0, high=2.0).stream()
    settings = {"direction": "maximize", "low": -2.0, "high": 2.0}
    player = LinearComposite(Exp3(K, learning_rate=RATE), coefficients=[0.75, 0.25], seed=SEED, **settings)
    for t in range(HORIZON):
        arm = player.ask()
        played = player.tell(stream.play(arm))
        assert played.fed_loss == pytest.approx(1.0 - (values[t, arm] + 2.0) / 4.0, abs=1e-13)


def errors(coefficients: list[float], missing: int | None) -> list[float | None]:
    values = table()
    stream = linear_composite(values, coefficients=coefficients).stream()
    player = LinearComposite(Exp3(K, learning_rate=RATE), coefficients=coefficients, seed=SEED)
    found: list[float | None] = []
    for t in range(HORIZON):
        arm = player.ask()
        total = stream.play(arm)
        fed = player.tell(None if t == missing else total).fed_loss
        found.append(None if fed is None else abs(fed - values[t, arm]))
    return found


def test_what_errors_do() -> None:
    """(x + 1/2)^2 has the root -1/2 twice; x + 3 has -3, so an error of 1e-16 is 1 after 34 rounds."""
    base = Exp3(K, learning_rate=RATE)
    assert LinearComposite(base, coefficients=[1.0, 1.0, 0.25]).error_growth == pytest.approx(0.5, abs=1e-7)
    assert LinearComposite(base, coefficients=[0.25, 0.75]).error_growth == pytest.approx(3.0)
    assert LinearComposite(base, coefficients=[0.0, 0.5]).error_growth == 0.0
    assert LinearComposite(base, coefficients=[0.0, 0.5]).delay == 1
    ruined = errors([0.25, 0.75], missing=None)
    assert max(error for error in ruined[:20] if error is not None) < 1e-6
    assert max(error for error in ruined[40:] if error is not None) > 0.1


def test_a_missing_total_leaves_an_error_that_dies_out() -> None:
    """The error of the middle of the range is at most 1/2, and each round divides it by 3."""
    found = errors([0.75, 0.25], missing=50)
    assert found[50] is None
    assert all(error is not None and error < 1e-13 for error in found[:50])
    for late in range(1, 20):
        error = found[50 + late]
        assert error <= 0.5 * 3.0**-late + 1e-13
    assert max(error for error in found[90:] if error is not None) < 1e-13


def test_tuned_copies_share_the_horizon() -> None:
    """d = 1: two copies with 8 updates each, so eta = sqrt(2 ln 2/(2 * 8)) = sqrt(ln 2/8)."""
    player = LinearComposite.tuned(n_arms=2, horizon=16, coefficients=[0.0, 1.0], seed=1)
    assert isinstance(player.inside, Exp3)
    assert player.inside.learning_rate == pytest.approx((0.6931471805599453 / 8) ** 0.5, rel=1e-14)
