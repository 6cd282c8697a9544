"""`DoublingWrapper`: its epochs are runs of the tuned wrapper, in every engine."""

import math
from typing import Any

import numpy as np
import pytest
from doubling import DoublingWrapper
from tests.refusals import refuses
from tests.rounds import tell_all

import aftereffect as ae
from aftereffect.core import random


def split(K: int, d: int, T: int, **span: Any) -> ae.Losses:
    return ae.spreads.random_split(
        ae.tables.iid(T, means=np.linspace(0.2, 0.7, K), seed=5), max_delay=d, seed=6, **span
    )


def twin_of(player: DoublingWrapper, horizon: int) -> ae.CompositeLossWrapper:
    """The tuned wrapper for `horizon`, with the random streams of `player` at their current positions."""
    twin = ae.CompositeLossWrapper.tuned(n_arms=player.n_arms, max_delay=player.max_delay, horizon=horizon, seed=0)
    twin.coins = twin.coins.fresh(player._streams[random.COINS].copy())
    twin._arm_stream = player._streams[random.ARMS].copy()
    return twin


def test_every_epoch_is_a_run_of_the_tuned_wrapper() -> None:
    d, first = 2, 20
    player = DoublingWrapper(3, max_delay=d, first_horizon=first, seed=11)
    stream = split(3, d, first * 31).stream()
    updates = 0
    for epoch in range(5):
        twin = twin_of(player, first * 2**epoch)
        for t in range(1, first * 2**epoch + 1):
            arm = player.ask()
            assert arm == twin.ask()
            assert player.epoch == epoch
            total = stream.play(arm)
            told = None if t % 17 == 0 else total
            played, expected = player.tell(told), twin.tell(told)
            assert played[1:] == expected[1:]
            updates += played.update
        np.testing.assert_array_equal(player.probabilities, twin.probabilities)
    assert updates > 20


def test_without_delay_the_first_epoch_is_the_base_itself() -> None:
    player = DoublingWrapper(4, max_delay=0, first_horizon=200, seed=3)
    bandit = ae.Naive(ae.TsallisFTRL(4, learning_rate=math.sqrt(100.0)), seed=3)
    stream = split(4, 0, 200).stream()
    for _ in range(200):
        arm = player.ask()
        assert arm == bandit.ask()
        total = stream.play(arm)
        assert player.tell(total) == bandit.tell(total)


def test_what_lingers_from_an_epoch_is_in_no_window() -> None:
    d, first = 3, 14
    player = DoublingWrapper(2, max_delay=d, first_horizon=first, seed=1)
    fed = []
    for epoch in range(6):
        for t in range(first * 2**epoch):
            player.ask()
            played = player.tell(1.0 if epoch > 0 and t < d else 0.0)
            assert played.draw == (t == 0) or t > 2 * d
            fed.append(played.fed_loss)
    losses = [loss for loss in fed if loss is not None]
    assert len(losses) > 20
    assert set(losses) == {0.0}


def test_rewards_are_losses_flipped() -> None:
    losing = DoublingWrapper(2, max_delay=1, first_horizon=40, seed=2)
    rewards: dict[str, Any] = {"direction": "maximize", "low": -1.0, "high": 0.0}
    winning = DoublingWrapper(2, max_delay=1, first_horizon=40, seed=2, **rewards)
    for t in range(280):
        arm = losing.ask()
        assert arm == winning.ask()
        total = (arm + 1) * 0.25 + (t % 3) * 0.125
        played, flipped = losing.tell(total), winning.tell(-total)
        assert played[:4] == flipped[:4]
        assert (played.fed_loss is None) == (flipped.fed_loss is None)
        assert played.fed_loss is None or flipped.fed_loss == pytest.approx(played.fed_loss, abs=1e-12)


def test_impossible_totals_are_refused_and_change_nothing() -> None:
    player = DoublingWrapper(2, max_delay=1, first_horizon=60, seed=5)
    while player.epoch == 0:
        player.ask()
        player.tell(0.5)
    player.ask()
    before = player.state()
    message = (
        r"total must lie in \[0, 2\], and in an update round keep the sum of the last 2 totals in \[0, 3\] "
        r"\(Lemma 2\), but got 2\.25"
    )
    with pytest.raises(ae.InvalidTotal, match=message):
        player.tell(2.25)
    assert player.state() == before
    # A total of 2 is possible, but not two of them in one window.
    refused = 0
    for _ in range(100):
        player.ask()
        before = player.state()
        try:
            player.tell(2.0)
        except ae.InvalidTotal:
            refused += 1
            assert player.state() == before
            player.tell(1.0)
    assert refused > 3
    with pytest.raises(ae.OutOfTurn):
        player.tell(0.5)


@pytest.mark.parametrize(("out_of_range", "updates"), [("void", False), ("clip", True)])
def test_impossible_totals_can_be_void_or_clipped(out_of_range: str, updates: bool) -> None:
    player = DoublingWrapper(2, max_delay=1, first_horizon=60, seed=5, out_of_range=out_of_range)
    fed = {played.fed_loss for played in tell_all(player, [7.0] * 180)}
    assert fed - {None} == ({1.0} if updates else set())


@pytest.mark.filterwarnings("ignore::aftereffect.AftereffectWarning")
@pytest.mark.parametrize("engine", ["loop", "rounds"])
def test_engines_refuse_losses_that_linger_too_long(engine: str) -> None:
    components = np.zeros((40, 4, 2))
    components[0::4, 3], components[1::4, 2], components[2::4, 1] = 1.0, 1.0, 1.0
    player = DoublingWrapper(2, max_delay=0, first_horizon=10)
    with pytest.raises(ae.InvalidTotal, match=r"total must .* 3\.0"):
        ae.simulate(player, ae.CompositeLosses(components), runs=1, engine=engine)


test_bad_arguments_are_named = refuses([
    ({"max_delay": 1, "first_horizon": 0}, "first_horizon must be at least 1, but got 0"),
], lambda settings: DoublingWrapper(2, **settings))


def test_defaults_and_words() -> None:
    player = DoublingWrapper(3, max_delay=2, seed=0)
    assert player.settings["first_horizon"] == 8 * 3 * 5
    assert repr(player).startswith("DoublingWrapper(n_arms=3, max_delay=2, first_horizon=120")
