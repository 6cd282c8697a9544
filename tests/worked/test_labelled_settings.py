"""Labelled players refuse invalid settings, with their names, and copies have the same settings."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.contracts.test_labelled import MAKERS
from tests.refusals import refuses

from aftereffect.bandits.exp3 import Exp3
from aftereffect.core.errors import InvalidArgument
from aftereffect.players.labelled.delayed_exp3 import DelayedExp3
from aftereffect.players.labelled.joulani2013 import BOLD, QPMD, DelayedUCB1
from aftereffect.players.labelled.zimmert_seldin import ZimmertSeldin2020

test_bad_settings = refuses([
    (lambda: DelayedExp3(2, learning_rate=0.0, max_delay=2), "learning_rate must be greater than 0, but got 0.0"),
    (
        lambda: DelayedExp3.tuned(2, max_delay=3, horizon=9, total_delay=-1),
        "total_delay must be at least 0, but got -1",
    ),
    (lambda: DelayedExp3(2, learning_rate=0.5, max_delay=2).regret_bound(10), "learning_rate must be at most 0.091"),
    (lambda: BOLD(2, max_delay=3), "bandit must be a base algorithm in kernel form, such as Exp3, but got 2"),
    (lambda: BOLD(Exp3(2, learning_rate=0.1), max_delay=1.5), "max_delay must be an int, but got 1.5"),
    (lambda: DelayedUCB1(2).regret_bound(9, [0, -0.5], 1), "gaps must be at least 0, but the least is"),
    (lambda: ZimmertSeldin2020(2, max_delay=3, tuning="best"), "one of 'simple', 'advanced', but got 'best'"),
    (lambda: ZimmertSeldin2020(2, max_delay=3, tuning="advanced").regret_bound(9), "must be 'simple' for a bound"),
])


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_reward_is_scaled_and_flipped_in_copies_too(make: Callable[..., Any]) -> None:
    player = make(seed=0, direction="maximize", low=-1.0, high=3.0)
    twin = player.fresh(4)
    assert twin.settings == player.settings
    twin.ask()
    # 2 out of [-1, 3] is 3/4 of the way up, a loss of 1/4.
    assert twin.tell([(1, 2.0)]).fed_loss == 0.25


@pytest.mark.parametrize("make", [BOLD, QPMD])
def test_only_an_unplayed_base_is_copied(make: Callable[..., Any]) -> None:
    player = make(Exp3(2, learning_rate=0.1), max_delay=3)
    player.inside.update(0, 1.0)
    with pytest.raises(InvalidArgument, match="bandit must be unplayed for its player to be copied"):
        player.fresh(0)
