"""Invalid input to base algorithms and players: messages name the argument, the rule and the value; nothing changes."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

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


Call = Callable[..., Any]
CONSTRUCTORS: list[tuple[Call, str, Any, str]] = [
    *((make, "n_arms", 1, "n_arms must be at least 2, but got 1") for make in (exp3, uniform, tuned)),
    *(
        (tsallis, "n_arms", bad, message)
        for bad, message in [
            (1, "n_arms must be at least 2, but got 1"),
            (2.0, f"n_arms {WHOLE} 2.0"),
            (True, f"n_arms {WHOLE} True"),
            (np.array([2, 3]), f"n_arms {WHOLE} array([2, 3])"),
        ]
    ),
    *(
        (tsallis, "learning_rate", bad, message)
        for bad, message in [
            (NAN, f"learning_rate {FINITE} nan"),
            ("1", f"learning_rate {FINITE} '1'"),
            (True, f"learning_rate {FINITE} True"),
            (np.complex128(1 + 2j), f"learning_rate {FINITE} {np.complex128(1 + 2j)!r}"),
            (10**400, f"learning_rate {FINITE} 1" + "0" * 76 + "..."),
        ]
    ),
    (tsallis, "learning_rate", -1e-9, "learning_rate must be at least 0, but got -1e-09"),
    (exp3, "learning_rate", -1.0, "learning_rate must be greater than 0, but got -1.0"),
    (tuned, "max_delay", -1, "max_delay must be at least 0, but got -1"),
    (wrapper, "max_delay", -1, "max_delay must be at least 0, but got -1"),
    (wrapper, "max_delay", None, f"max_delay {WHOLE} None"),
    (tuned, "horizon", 0, "horizon must be at least 1, but got 0"),
    (tuned, "horizon", 1e6, f"horizon {WHOLE} 1000000.0"),
    (tuned, "base", "ucb", "base must be one of 'tsallis', 'exp3', but got 'ucb'"),
    *(
        (make, name, bad, message)
        for make in (wrapper, tuned, naive)
        for name, bad, message in [
            ("seed", -1, "seed must be at least 0, but got -1"),
            ("direction", "up", "direction must be one of 'minimize', 'maximize', but got 'up'"),
            ("low", NAN, f"low {FINITE} nan"),
            ("high", INF, f"high {FINITE} inf"),
            ("low", 1.0, "low must be less than high, but got low=1.0 and high=1.0"),
            ("high", -0.5, "low must be less than high, but got low=0.0 and high=-0.5"),
        ]
    ),
    *(
        (make, "out_of_range", bad, f"out_of_range must be one of 'raise', 'void', 'clip', but got {bad!r}")
        for make in (wrapper, tuned)
        for bad in ("ignore", None)
    ),
    (wrapper, "coins", 0.0, "coins must be greater than 0, but got 0.0"),
    (wrapper, "coins", 1.5, "coins must be at most 1, but got 1.5"),
    (wrapper, "coins", NAN, f"coins {FINITE} nan"),
    (wrapper, "coins", True, "coins must be a bias in (0, 1] or a sequence of bools, but got True"),
    (wrapper, "coins", "0101", "coins must be a bias in (0, 1] or a sequence of bools, but got '0101'"),
    (wrapper, "coins", [0, 2], "coins must be 0 or 1 in every round, but in round 2 got 2"),
    (wrapper, "coins", [0, 1, -1], "coins must be 0 or 1 in every round, but in round 3 got -1"),
    (wrapper, "coins", [0.5], "coins must be 0 or 1 in every round, but in round 1 got 0.5"),
    (wrapper, "coins", ["1"], "coins must be 0 or 1 in every round, but in round 1 got '1'"),
    (wrapper, "coins", np.array([1.0, NAN]), "coins must be 0 or 1 in every round, but in round 1 got 1.0"),
    (wrapper, "coins", np.eye(2, dtype=int), "coins must be 0 or 1 in every round, but in round 1 got [1, 0]"),
    *(
        (make, "bandit", bad, message)
        for make in (wrapper, naive)
        for bad, message in [
            (None, f"{HAS} None, without n_arms, probabilities, update"),
            (Armless(), f"{HAS} Armless(), without probabilities, update"),
            (OneArmed(), "bandit.n_arms must be at least 2, but got 1"),
        ]
    ),
]


@pytest.mark.parametrize(("make", "name", "bad", "message"), CONSTRUCTORS)
def test_constructors(make: Call, name: str, bad: Any, message: str) -> None:
    with pytest.raises(ae.InvalidArgument) as error:
        make(**{name: bad})
    assert str(error.value) == message


def test_every_maker_is_fine_without_bad_input() -> None:
    for make in (tsallis, exp3, uniform, wrapper, tuned, naive):
        assert make().n_arms == 2


def test_theorem_4_holds_for_drawn_coins_and_losses_only() -> None:
    with pytest.raises(ae.InvalidArgument) as error:
        wrapper(coins=[0, 1]).regret_bound(10)
    assert str(error.value) == "coins must be a bias for Theorem 4 to hold, but got a given sequence"
    with pytest.raises(ae.InvalidArgument) as error:
        wrapper(low=-0.5).regret_bound(10)
    assert str(error.value) == "low must be at least 0 for Theorem 4 to hold, but got -0.5"
    for bad, rule in ((0, "must be at least 1, but got 0"), (10.0, f"{WHOLE} 10.0")):
        with pytest.raises(ae.InvalidArgument, match=f"^horizon {rule}$"):
            wrapper().regret_bound(bad)


def test_every_error_is_a_value_error() -> None:
    names = [name for name in dir(ae) if isinstance(getattr(ae, name), type) and name not in ("Bandit", "Player")]
    errors = [getattr(ae, name) for name in names if issubclass(getattr(ae, name), Exception)]
    errors.remove(ae.AftereffectWarning)
    assert len(errors) >= 8
    assert all(issubclass(error, ae.AftereffectError) and issubclass(error, ValueError) for error in errors)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: ae.Exp3(10**9, learning_rate=0.1), "n_arms"),
        (lambda: ae.default_player(10**9, max_delay=1), "n_arms"),
        (lambda: ae.default_player(2, max_delay=10**9), "max_delay"),
        (lambda: ae.CompositeLossWrapper.tuned(2, max_delay=10**9, horizon=10), "max_delay"),
        (lambda: ae.hard(2, max_delay=10**9, horizon=10, seed=0), "max_delay"),
        (lambda: ae.spreads.random_split(np.zeros((9, 2)), max_delay=10**9, seed=0), "max_delay"),
    ],
)
def test_sizes_beyond_memory_are_refused_at_once(make: Call, name: str) -> None:
    with pytest.raises(ae.InvalidArgument, match=rf"{name} must be at most 10+, but got 1000000000"):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda ragged: ae.CompositeLosses([ragged]),
        lambda ragged: ae.spreads.at_once(ragged),
        lambda ragged: ae.spreads.delayed([[0.1, 0.2], [0.3, 0.4]], delays=ragged),
        lambda ragged: ae.replay_series([[0.1, 0.2], [0.3, 0.4]], weights=ragged),
        lambda ragged: ae.tables.seasonal(9, n_arms=2, seed=0, level=ragged),
        lambda ragged: ae.History([1, 2], ragged, [[0.1], [0.2]]),
        lambda ragged: ae.spreads.at_once([[0.1, 0.2], [0.3, 0.4]]).totals(ragged),
    ],
)
def test_lists_of_unequal_rows(make: Call) -> None:
    with pytest.raises(ae.InvalidArgument, match=r"must be an array of numbers, but got .* of rows unequal in length"):
        make([[0.1, 0.2], [0.3]])


def test_values_above_1_and_missing_totals_say_what_to_write() -> None:
    with pytest.raises(ae.InvalidLosses, match=r"table\[0, 1\] is 3\.0; low= and high= set the range"):
        ae.spreads.at_once([[0.5, 3.0]])
    with pytest.raises(ae.InvalidLosses, match=r"sums to 3\.0; low= and high= set the range"):
        ae.CompositeLosses([[[0.5, 3.0]]])
    player = wrapper()
    player.ask()
    with pytest.raises(ae.InvalidTotal, match=r"effect \(low=0, high=1\) times max_delay"):
        player.tell(30.0)
    with pytest.raises(ae.InvalidTotal, match="but got nan; a missing total is None"):
        player.tell(NAN)
