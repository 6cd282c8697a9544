"""Lemma 8: a linear bandit that plays through a Player has exactly 1/(d+1) of the player's regret."""

from typing import Any

import numpy as np
import pytest
from linear_bandit import LinearBandit
from tests.rounds import arms_on

import aftereffect as ae
from aftereffect.losses.hard import Stacked


def players(n_arms: int, d: int, seed: int) -> list[Any]:
    beta = 1 / (2 * d + 1)
    return [
        ae.CompositeLossWrapper(ae.TsallisFTRL(n_arms, learning_rate=2.0), max_delay=d, coins=beta, seed=seed),
        ae.CompositeLossWrapper(ae.Exp3(n_arms, learning_rate=0.3), max_delay=d, coins=beta, seed=seed),
        ae.Naive(ae.Exp3(n_arms, learning_rate=0.3), seed=seed, high=d + 1.0),
    ]


def play_linear(player: Any, losses: Any, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return actions and losses of the linear game."""
    bandit = LinearBandit(player, max_delay=d)
    actions, seen = [], []
    for loss in losses:
        actions.append(bandit.ask())
        seen.append(float(loss @ actions[-1]))
        bandit.tell(seen[-1])
    return np.array(actions), np.array(seen)


@pytest.mark.parametrize("d", [0, 1, 3, 7])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_the_reduction_is_exact(d: int, which: int) -> None:
    # Multiples of 1/64, and d+1 a power of two: sums, fractions and products of either game are exact in doubles.
    n, K = 400, 3
    linear = np.random.default_rng(d).integers(0, 65, size=(n, K)) / 64
    actions, seen = play_linear(players(K, d, 5)[which], linear, d)
    losses = ae.Losses(Stacked(linear, d), horizon=n * (d + 1), max_delay=d, n_arms=K)
    arms = np.array(arms_on(players(K, d, 5)[which], losses))
    counts = np.array([np.bincount(group, minlength=K) for group in arms.reshape(n, d + 1)])
    assert (actions * (d + 1) == counts).all(), "both games ask the player for the same arms"
    linear_regret = seen.sum() - linear.sum(axis=0).min()
    assert losses.regret(arms) == (d + 1) * linear_regret
    assert (losses.totals(arms).reshape(n, d + 1)[:, :d] == 0.0).all()


def test_an_action_is_asked_once() -> None:
    player = ae.CompositeLossWrapper.tuned(n_arms=3, max_delay=3, horizon=400, seed=1)
    bandit = LinearBandit(player, max_delay=3)
    first = bandit.ask()
    assert bandit.n_arms == 3
    assert player.rounds_played == 3
    kept = first.copy()
    first[:] = 7.0
    assert (bandit.ask() == kept).all()
    assert player.rounds_played == 3
    bandit.tell(0.5)
    assert player.rounds_played == 4


@pytest.mark.parametrize(("loss", "message"), [
    (-0.1, "loss must be at least 0, but got -0.1"),
    (1.5, "loss must be at most 1, but got 1.5"),
    (float("nan"), "loss must be a finite number, but got nan"),
    (None, "loss must be a finite number, but got None"),
])
def test_a_bad_loss_changes_nothing(loss: Any, message: str) -> None:
    player = ae.CompositeLossWrapper.tuned(n_arms=3, max_delay=1, horizon=400, seed=1)
    bandit = LinearBandit(player, max_delay=1)
    with pytest.raises(ae.OutOfTurn, match=r"^tell must follow ask, but no linear round is open$"):
        bandit.tell(0.5)
    action = bandit.ask()
    before = player.state()
    with pytest.raises(ae.InvalidArgument) as error:
        bandit.tell(loss)
    assert str(error.value) == message
    assert player.state() == before
    assert (bandit.ask() == action).all()


def test_the_player_must_reckon_with_the_delay() -> None:
    player = ae.CompositeLossWrapper.tuned(n_arms=2, max_delay=1, horizon=100, seed=0)
    with pytest.raises(ae.InvalidArgument) as error:
        LinearBandit(player, max_delay=2)
    assert str(error.value) == "max_delay must be at most 1, but got 2"


@pytest.mark.parametrize("player", [None, 5, ae.Exp3])
def test_the_player_must_be_one(player: Any) -> None:
    with pytest.raises(ae.InvalidArgument) as error:
        LinearBandit(player, max_delay=1)
    assert str(error.value).startswith("player must have a method ask (see aftereffect.Player), but got ")
