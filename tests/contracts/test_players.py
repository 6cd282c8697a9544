"""The contract of `Player`, over every player around every base; one line adds a class."""

import functools
from collections.abc import Callable
from typing import Any

import pytest
from tests.contracts import player_kit
from tests.contracts.test_bandits import BANDITS

import aftereffect as ae

# A fixed Boolean sequence, longer than any play of the kit; blocks of 5 to 7 rounds at d = 2.
COINS = [t % 17 in (0, 5, 12) for t in range(500)]

PLAYERS: dict[str, Callable[[Any, int], Any]] = {
    "wrapper, d=0": lambda base, seed: ae.CompositeLossWrapper(base, max_delay=0, coins=1.0, seed=seed),
    "wrapper, d=0, lazy": lambda base, seed: ae.CompositeLossWrapper(base, max_delay=0, coins=0.4, seed=seed),
    "wrapper, d=2": lambda base, seed: ae.CompositeLossWrapper(base, max_delay=2, coins=0.2, seed=seed),
    "wrapper, given coins": lambda base, seed: ae.CompositeLossWrapper(base, max_delay=2, coins=COINS, seed=seed),
    "wrapper, rewards": lambda base, seed: ae.CompositeLossWrapper(
        base, max_delay=1, coins=0.3, seed=seed, direction="maximize", low=-1.0, high=2.0, out_of_range="clip"
    ),
    "naive": lambda base, seed: ae.Naive(base, seed=seed),
    "naive, rewards": lambda base, seed: ae.Naive(base, seed=seed, direction="maximize", low=-1.0, high=2.0),
}

# Every player is tried around every kind of base; variants of one base add nothing here.
BASES = ("tsallis", "exp3", "uniform", "plain Python")


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("make", PLAYERS.values(), ids=PLAYERS.keys())
@pytest.mark.parametrize("case", player_kit.PLAYER_KIT, ids=lambda case: case.__name__)
def test_contract(
    case: Callable[[player_kit.MakePlayer], None], make: Callable[[Any, int], Any], base: str
) -> None:
    case(functools.partial(around, make, base))


def around(make: Callable[[Any, int], Any], base: str, seed: int) -> Any:
    return make(BANDITS[base](), seed)


@pytest.mark.parametrize("base", ["tsallis", "exp3"])
@pytest.mark.parametrize("make", PLAYERS.values(), ids=PLAYERS.keys())
def test_a_template_around_a_base_that_has_learned_is_refused(
    make: Callable[[Any, int], Any], base: str
) -> None:
    # Runs start from an unlearned base: silently forgetting what this one knows would answer another question.
    bandit = BANDITS[base]()
    bandit.update(0, 1.0)
    player = make(bandit, 0)
    with pytest.raises(ae.InvalidArgument, match="unplayed"):
        player.fresh(0)


@pytest.mark.parametrize("make", PLAYERS.values(), ids=PLAYERS.keys())
def test_runs_of_a_template_are_counted_from_zero(make: Callable[[Any, int], Any]) -> None:
    player = make(ae.Uniform(2), 0)
    with pytest.raises(ae.InvalidArgument, match=r"^run must be at least 0, but got -1$"):
        player.fresh(0, -1)
    with pytest.raises(ae.InvalidArgument, match=r"^seed must be at least 0, but got -1$"):
        player.fresh(-1)


@pytest.mark.parametrize("make", PLAYERS.values(), ids=PLAYERS.keys())
def test_a_seed_from_the_system_can_be_used_again(make: Callable[[Any, int], Any]) -> None:
    drawn: Any = None
    player = make(ae.Exp3(3, 0.1), drawn)
    assert player.seed != make(ae.Exp3(3, 0.1), drawn).seed
    assert player_kit.play(make(ae.Exp3(3, 0.1), player.seed), 100) == player_kit.play(player, 100)
