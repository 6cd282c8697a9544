"""Labelled players refuse invalid settings, with their names, and copies have the same settings."""

from collections.abc import Callable
from typing import Any

import pytest

from aftereffect.bandits.exp3 import Exp3
from aftereffect.core.errors import InvalidArgument
from aftereffect.players.labelled.delayed_exp3 import DelayedExp3
from aftereffect.players.labelled.joulani2013 import BOLD, QPMD, DelayedUCB1
from aftereffect.players.labelled.zimmert_seldin import ZimmertSeldin2020

RANGE = {"direction": "maximize", "low": -1.0, "high": 3.0}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: DelayedExp3(1, learning_rate=0.1, max_delay=2), "n_arms must be at least 2, but got 1"),
        (lambda: DelayedExp3(2, learning_rate=0.0, max_delay=2), "learning_rate must be greater than 0, but got 0.0"),
        (lambda: DelayedExp3(2, learning_rate=0.1, max_delay=-1), "max_delay must be at least 0, but got -1"),
        (lambda: DelayedExp3.tuned(2, max_delay=3, horizon=0), "horizon must be at least 1, but got 0"),
        (
            lambda: DelayedExp3.tuned(2, max_delay=3, horizon=9, total_delay=-1),
            "total_delay must be at least 0, but got -1",
        ),
        (
            lambda: DelayedExp3(2, learning_rate=0.5, max_delay=2).regret_bound(10),
            "learning_rate must be at most 0.091",
        ),
        (lambda: BOLD(2, max_delay=3), "bandit must be a base algorithm in kernel form, such as Exp3, but got 2"),
        (lambda: BOLD(Exp3(2, learning_rate=0.1), max_delay=1.5), "max_delay must be an int, but got 1.5"),
        (lambda: QPMD(None, max_delay=3), "bandit must be a base algorithm in kernel form, such as Exp3, but got None"),
        (lambda: QPMD(Exp3(2, learning_rate=0.1), max_delay=3, seed=-1), "seed must be at least 0, but got -1"),
        (lambda: DelayedUCB1(2, low=1.0), "low must be less than high, but got low=1.0 and high=1.0"),
        (lambda: DelayedUCB1(2).regret_bound(9, [0, -0.5], 1), "gaps must be at least 0, but the least is"),
        (lambda: ZimmertSeldin2020(2, max_delay=3, tuning="best"), "one of 'simple', 'advanced', but got 'best'"),
        (lambda: ZimmertSeldin2020(2, max_delay=3, direction="up"), "direction must be one of 'minimize', 'maximize'"),
        (lambda: ZimmertSeldin2020(2, max_delay=3, tuning="advanced").regret_bound(9), "must be 'simple' for a bound"),
    ],
)
def test_bad_settings(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        build()


PLAYERS = pytest.mark.parametrize(
    "player",
    [
        DelayedExp3(2, learning_rate=0.1, max_delay=3, **RANGE),
        BOLD(Exp3(2, learning_rate=0.1), max_delay=3, **RANGE),
        QPMD(Exp3(2, learning_rate=0.1), max_delay=3, **RANGE),
        DelayedUCB1(2, **RANGE),
        ZimmertSeldin2020(2, max_delay=3, tuning="advanced", **RANGE),
    ],
)


@PLAYERS
def test_only_an_unplayed_base_is_copied(player: Any) -> None:
    with pytest.raises(InvalidArgument, match="seed must be at least 0, but got -1"):
        player.fresh(-1)
    if not isinstance(player.inside, int):
        played = type(player)(Exp3(2, learning_rate=0.1), max_delay=3)
        played.inside.update(0, 1.0)
        with pytest.raises(InvalidArgument, match="bandit must be unplayed for its player to be copied"):
            played.fresh(0)


@PLAYERS
def test_a_reward_is_scaled_and_flipped_in_copies_too(player: Any) -> None:
    twin = player.fresh(4)
    assert twin.settings == player.settings
    assert twin.direction == "maximize"
    twin.ask()
    # 2 out of [-1, 3] is 3/4 of the way up, a loss of 1/4.
    assert twin.tell([(1, 2.0)]).fed_loss == 0.25
