"""Invalid input to base algorithms and players: messages name the argument, the rule and the value; nothing changes."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.refusals import refuses

import aftereffect as ae

NAN, INF = math.nan, math.inf
WHOLE = "must be an int, but got"
HAS = "bandit must have the attributes n_arms, probabilities, update (see aftereffect.Bandit), but got"
FINITE = "must be a finite number, but got"


def wrapper(**changes: Any) -> Any:
    settings = {"bandit": ae.Uniform(2), "max_delay": 1, "coins": 0.3, "seed": 0}
    return ae.CompositeLossWrapper(**(settings | changes))


def tuned(**changes: Any) -> Any:
    return ae.CompositeLossWrapper.tuned(**({"n_arms": 2, "max_delay": 1, "horizon": 100, "seed": 0} | changes))


def naive(**changes: Any) -> Any:
    return ae.Naive(**({"bandit": ae.Uniform(2), "seed": 0} | changes))


def tsallis(n_arms: Any = 2, learning_rate: Any = 1.0) -> Any:
    return ae.TsallisFTRL(n_arms, learning_rate=learning_rate)


def exp3(n_arms: Any = 2, learning_rate: Any = 1.0) -> Any:
    return ae.Exp3(n_arms, learning_rate=learning_rate)


def uniform(n_arms: Any = 2) -> Any:
    return ae.Uniform(n_arms)


class Armless:
    """A bandit without `probabilities` and `update`."""

    n_arms, stability, regret_bound = 2, None, None

    def __repr__(self) -> str:
        return "Armless()"


class OneArmed:
    n_arms, probabilities, update = 1, (1.0,), None


N_ARMS = "n_arms must be at least 2, but got 1"
COINS = "coins must be a bias in (0, 1] or a sequence of bools, but got"
IN_ROUND = "coins must be 0 or 1 in every round, but in round"

test_constructors = refuses([
    (lambda: exp3(1), N_ARMS),
    (lambda: uniform(1), N_ARMS),
    (lambda: tuned(n_arms=1), N_ARMS),
    (lambda: tsallis(1), N_ARMS),
    (lambda: tsallis(True), f"n_arms {WHOLE} True"),
    (lambda: tsallis(np.array([2, 3])), f"n_arms {WHOLE} array([2, 3])"),
    (lambda: tsallis(2, NAN), f"learning_rate {FINITE} nan"),
    (lambda: tsallis(2, "1"), f"learning_rate {FINITE} '1'"),
    (lambda: tsallis(2, np.complex128(1 + 2j)), f"learning_rate {FINITE} {np.complex128(1 + 2j)!r}"),
    (lambda: tsallis(2, 10**400), f"learning_rate {FINITE} 1" + "0" * 76 + "..."),
    (lambda: tsallis(2, -1e-9), "learning_rate must be at least 0, but got -1e-09"),
    (lambda: exp3(2, -1.0), "learning_rate must be greater than 0, but got -1.0"),
    (lambda: tuned(max_delay=-1), "max_delay must be at least 0, but got -1"),
    (lambda: wrapper(max_delay=None), f"max_delay {WHOLE} None"),
    (lambda: tuned(horizon=0), "horizon must be at least 1, but got 0"),
    (lambda: tuned(horizon=1e6), f"horizon {WHOLE} 1000000.0"),
    (lambda: tuned(base="ucb"), "base must be one of 'tsallis', 'exp3', but got 'ucb'"),
    (lambda: wrapper(coins=0.0), "coins must be greater than 0, but got 0.0"),
    (lambda: wrapper(coins=1.5), "coins must be at most 1, but got 1.5"),
    (lambda: wrapper(coins=NAN), f"coins {FINITE} nan"),
    (lambda: wrapper(coins=True), f"{COINS} True"),
    (lambda: wrapper(coins="0101"), f"{COINS} '0101'"),
    (lambda: wrapper(coins=[0, 2]), f"{IN_ROUND} 2 got 2"),
    (lambda: wrapper(coins=[0.5]), f"{IN_ROUND} 1 got 0.5"),
    (lambda: wrapper(coins=np.array([1.0, NAN])), f"{IN_ROUND} 1 got 1.0"),
    (lambda: wrapper(coins=np.eye(2, dtype=int)), f"{IN_ROUND} 1 got [1, 0]"),
    (lambda: wrapper(coins=[0, 1]).regret_bound(10), "coins must be a bias for Theorem 4 to hold, but got a given seq"),
    (lambda: wrapper(low=-0.5).regret_bound(10), "low must be at least 0 for Theorem 4 to hold, but got -0.5"),
    (lambda: wrapper().regret_bound(0), "horizon must be at least 1, but got 0"),
    (lambda: wrapper().regret_bound(10.0), f"horizon {WHOLE} 10.0"),
], plain=True)

COMMON = [
    ({"seed": -1}, "seed must be at least 0, but got -1"),
    ({"direction": "up"}, "direction must be one of 'minimize', 'maximize', but got 'up'"),
    ({"low": NAN}, f"low {FINITE} nan"),
    ({"high": INF}, f"high {FINITE} inf"),
    ({"low": 1.0}, "low must be less than high, but got low=1.0 and high=1.0"),
    ({"high": -0.5}, "low must be less than high, but got low=0.0 and high=-0.5"),
]
OUT_OF_RANGE = [
    ({"out_of_range": bad}, f"must be one of 'raise', 'void', 'clip', but got {bad!r}") for bad in ("ignore", None)
]
BANDIT = [
    ({"bandit": None}, f"{HAS} None, without n_arms, probabilities, update"),
    ({"bandit": Armless()}, f"{HAS} Armless(), without probabilities, update"),
    ({"bandit": OneArmed()}, "bandit.n_arms must be at least 2, but got 1"),
]
test_wrappers = refuses([*COMMON, *OUT_OF_RANGE, *BANDIT], lambda bad: wrapper(**bad), plain=True)
test_tuned_wrappers = refuses([*COMMON, *OUT_OF_RANGE], lambda bad: tuned(**bad), plain=True)
test_naive_players = refuses([*COMMON, *BANDIT], lambda bad: naive(**bad), plain=True)


def test_every_maker_is_fine_without_bad_input() -> None:
    for make in (tsallis, exp3, uniform, wrapper, tuned, naive):
        assert make().n_arms == 2


def test_every_error_is_a_value_error() -> None:
    names = [name for name in dir(ae) if isinstance(getattr(ae, name), type) and name not in ("Bandit", "Player")]
    errors = [getattr(ae, name) for name in names if issubclass(getattr(ae, name), Exception)]
    errors.remove(ae.AftereffectWarning)
    assert len(errors) >= 8
    assert all(issubclass(error, ae.AftereffectError) and issubclass(error, ValueError) for error in errors)


MANY = "must be at most 10+, but got 1000000000"

test_sizes_beyond_memory_are_refused_at_once = refuses([
    (lambda: ae.Exp3(10**9, learning_rate=0.1), f"n_arms {MANY}"),
    (lambda: ae.default_player(10**9, max_delay=1), f"n_arms {MANY}"),
    (lambda: ae.default_player(2, max_delay=10**9), f"max_delay {MANY}"),
    (lambda: ae.CompositeLossWrapper.tuned(2, max_delay=10**9, horizon=10), f"max_delay {MANY}"),
    (lambda: ae.hard(2, max_delay=10**9, horizon=10, seed=0), f"max_delay {MANY}"),
    (lambda: ae.spreads.random_split(np.zeros((9, 2)), max_delay=10**9, seed=0), f"max_delay {MANY}"),
])


@pytest.mark.parametrize("make", [
    lambda ragged: ae.CompositeLosses([ragged]),
    lambda ragged: ae.spreads.at_once(ragged),
    lambda ragged: ae.spreads.delayed([[0.1, 0.2], [0.3, 0.4]], delays=ragged),
    lambda ragged: ae.replay_series([[0.1, 0.2], [0.3, 0.4]], weights=ragged),
    lambda ragged: ae.tables.seasonal(9, n_arms=2, seed=0, level=ragged),
    lambda ragged: ae.History([1, 2], ragged, [[0.1], [0.2]]),
    lambda ragged: ae.spreads.at_once([[0.1, 0.2], [0.3, 0.4]]).totals(ragged),
])
def test_lists_of_unequal_rows(make: Callable[..., Any]) -> None:
    with pytest.raises(ae.InvalidArgument, match=r"must be an array of numbers, but got .* of rows unequal in length"):
        make([[0.1, 0.2], [0.3]])
