"""Algorithm 1 against a slow second implementation and numbers by hand; what it does with bad coins and bases."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.rounds import tell_all

import aftereffect as ae

FIGURE_1 = [int(c) for c in "10100001001000000100001"]


class Scripted:
    """A base that plays a given list of arms and records what it is fed."""

    def __init__(self, n_arms: int, arms: Iterable[int]) -> None:
        self.n_arms = n_arms
        self.arms = list(arms)
        self.fed: list[tuple[int, float]] = []

    @property
    def probabilities(self) -> NDArray[np.float64]:
        q = np.zeros(self.n_arms)
        q[self.arms[len(self.fed) % len(self.arms)]] = 1.0
        return q

    def update(self, arm: int, loss: float) -> None:
        self.fed.append((arm, loss))

    def stability(self) -> float:
        return 1.0

    def regret_bound(self, n: int) -> float:
        return float(n)


class Stated(Scripted):
    """A base whose distribution is set by the test."""

    q: Any = (0.5, 0.5)

    @property
    def probabilities(self) -> Any:
        return self.q


def wrapped(coins: Any, max_delay: int, **settings: Any) -> ae.CompositeLossWrapper:
    return ae.CompositeLossWrapper(Scripted(2, [0, 1]), max_delay=max_delay, coins=coins, seed=0, **settings)


@pytest.mark.parametrize(("d", "bias", "missing"), [(0, 0.6, 0.0), (1, 0.3, 0.0), (3, 0.1, 0.02), (10, 0.05, 0.0)])
def test_against_a_second_implementation(d: int, bias: float, missing: float) -> None:
    # All coins and totals are stored in lists, and every condition is evaluated as in Definition 1.
    K, T, rng = 4, 3000, np.random.default_rng(d)
    B = [False, *(rng.random(T) < bias).tolist()]
    shares = rng.dirichlet(np.ones(d + 1), size=(T, K)).transpose(0, 2, 1)
    parts = rng.random((T, 1, K)) * shares
    script = rng.integers(K, size=T).tolist()
    lost = rng.random(T) < missing
    base = Scripted(K, script)
    player = ae.CompositeLossWrapper(base, max_delay=d, coins=B[1:], seed=0)
    arms: list[int] = []
    seen: list[float | None] = [None]
    fed: list[tuple[int, float]] = []
    fresh = True
    for t in range(1, T + 1):
        draw, fresh = fresh, False
        arms.append(script[len(fed)] if draw else arms[-1])
        assert player.ask() == arms[-1]
        total = math.fsum(parts[t - 1 - s, s, arms[t - 1 - s]] for s in range(min(d, t - 1) + 1))
        seen.append(None if lost[t - 1] else total)
        window = seen[max(t - d, 1) : t + 1]
        loss = None
        if t >= 2 * d + 1 and B[t] and not any(B[t - 2 * d : t]) and None not in window:
            loss = math.fsum(x for x in window if x is not None) / (2 * d + 1)
            fed.append((arms[-1], loss))
            fresh = True
        played = player.tell(seen[-1])
        assert played[:4] == (t, arms[-1], draw, loss is not None)
        if loss is not None:
            assert played.fed_loss == pytest.approx(loss, abs=1e-14)
    assert [arm for arm, _ in base.fed] == [arm for arm, _ in fed]
    assert len(fed) >= 50
    assert player.rounds_played == T
    assert player.counts.missing == int(lost.sum())


def test_given_coins_of_every_kind_play_alike() -> None:
    plays = []
    kinds: list[Any] = [
        FIGURE_1,
        tuple(bool(c) for c in FIGURE_1),
        np.array(FIGURE_1),
        np.array(FIGURE_1, dtype=bool),
        np.array(FIGURE_1, dtype=np.uint8),
        [np.bool_(c) for c in FIGURE_1],
    ]
    for coins in kinds:
        player = wrapped(coins, 2)
        plays.append([(player.ask(), player.tell(t / 30)) for t in range(23)])
        with pytest.raises(ae.CoinsExhausted) as error:
            player.ask()
        assert str(error.value) == "coins must have a value for every round, but ended before round 24"
        assert player.rounds_played == 23
        with pytest.raises(ae.OutOfTurn):
            player.tell(0.0)
    assert all(play == plays[0] for play in plays)


def test_a_list_of_coins_is_copied() -> None:
    coins = [0, 0, 1]
    player = wrapped(coins, 1)
    coins[2] = 0
    assert tell_all(player, [0.5, 0.5, 0.25])[-1].fed_loss == 0.25


def test_bad_coins_are_refused() -> None:
    # Saved, copied and simulated players read their coins again, which an iterator cannot.
    with pytest.raises(ae.InvalidArgument, match=r"^coins must be a bias in \(0, 1\] or a sequence of bools, but"):
        wrapped(iter([1, 0, 1]), 0)


BAD_DISTRIBUTIONS: list[tuple[Any, str]] = [
    ([1.25, -0.25], "bandit.probabilities must be at least 0, but arm 1 has -0.25"),
    ([0.5, 0.25], "bandit.probabilities must sum to 1, but sum to 0.75"),
    ([math.nan, 1.0], "bandit.probabilities must be finite, but bandit.probabilities[0] is nan"),
    ([0.5, 0.25, 0.25], "bandit.probabilities must have shape (2,), but got shape (3,)"),
    ([[0.5, 0.5]], "bandit.probabilities must have shape (2,), but got shape (1, 2)"),
    (["a", "b"], "bandit.probabilities must be an array of numbers of shape (2,), but got ['a', 'b']"),
]


@pytest.mark.parametrize(("q", "message"), BAD_DISTRIBUTIONS)
def test_a_bad_distribution_changes_nothing(q: Any, message: str) -> None:
    def player() -> ae.CompositeLossWrapper:
        return ae.CompositeLossWrapper(Stated(2, [0]), max_delay=0, coins=1.0, seed=3)

    healthy, sick = player(), player()
    for p in (healthy, sick):
        tell_all(p, [0.5] * 7)
    sick.bandit.q = q
    for _ in range(2):
        with pytest.raises(ae.BadDistribution) as error:
            sick.ask()
        assert str(error.value) == message
    assert sick.rounds_played == 7
    with pytest.raises(ae.OutOfTurn):
        sick.tell(0.5)
    sick.bandit.q = (0.5, 0.5)
    after = [[(p.ask(), p.tell(0.5)) for _ in range(30)] for p in (healthy, sick)]
    assert after[0] == after[1], "the arms' stream must not have moved"


def test_an_error_in_the_base_leaves_the_round_open() -> None:
    class Refusing(Scripted):
        ready = False

        def update(self, arm: int, loss: float) -> None:
            if not self.ready:
                raise RuntimeError("not now")
            super().update(arm, loss)

    base = Refusing(2, [0, 1])
    player = ae.CompositeLossWrapper(base, max_delay=1, coins=[0, 0, 1, 0], seed=0)
    tell_all(player, [0.5, 0.5])
    arm = player.ask()
    with pytest.raises(RuntimeError, match="not now"):
        player.tell(0.25)
    assert (player.ask(), player.rounds_played) == (arm, 2)
    base.ready = True
    assert player.tell(0.25) == ae.Round(3, arm, False, True, 0.25)


class Plain:
    """The least that a base must have."""

    n_arms = 2
    probabilities = (0.5, 0.5)

    def update(self, arm: int, loss: float) -> None:
        assert 0.0 <= loss <= 1.0


def test_a_base_with_three_attributes_plays_but_has_no_bound() -> None:
    player = ae.CompositeLossWrapper(Plain(), max_delay=2, seed=0)
    assert player.update_probability == ae.theory.best_update_probability(2) == 1 / 5
    assert ae.simulate(player, ae.spreads.at_once(np.ones((300, 2)), max_delay=2), runs=2).updates.min() > 0
    with pytest.raises(ae.InvalidArgument, match=r"bandit must have stability\(\) and regret_bound\(n\) for a bound"):
        player.regret_bound(1000)


@pytest.mark.parametrize("make", [ae.Naive, lambda bandit: ae.CompositeLossWrapper(bandit, max_delay=1)])
def test_a_base_belongs_to_one_player(make: Any) -> None:
    bandit = ae.Exp3(2, learning_rate=0.1)
    with pytest.raises(ae.InvalidArgument, match="max_delay must be at least 0"):
        ae.CompositeLossWrapper(bandit, max_delay=-1)
    first = ae.CompositeLossWrapper(bandit, max_delay=1)
    with pytest.raises(ae.InvalidArgument, match="bandit must be a new one for each player"):
        make(bandit)
    make(ae.Exp3(2, learning_rate=0.1))
    del first
    make(bandit)


def test_play_far_past_the_horizon_is_warned_about() -> None:
    player = ae.CompositeLossWrapper.tuned(2, max_delay=0, horizon=5, seed=0)
    tell_all(player, [0.5] * 20)
    with pytest.warns(ae.AftereffectWarning, match="tuned for 5 rounds, but has played 4 times as many"):
        player.ask()
