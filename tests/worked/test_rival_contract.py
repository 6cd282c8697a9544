"""What the contract of players leaves open for rivals: totals out of range, play without delay, bad input."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.contracts.saving_kit import saved_and_restored
from tests.contracts.test_players import ROWS
from tests.refusals import refuses
from tests.rounds import tell_all

from aftereffect.bandits.exp3 import Exp3
from aftereffect.core.errors import AftereffectError
from aftereffect.engines.simulation import simulate
from aftereffect.losses.protocol import CompositeLosses
from aftereffect.players import rivals
from aftereffect.players.base import KernelPlayer
from aftereffect.players.registry import Problem, find
from aftereffect.players.rivals.naive import Naive

K = 3


def base() -> Exp3:
    return Exp3(K, learning_rate=0.5)


# Players of the contract, whose settings are changed here.
AROUND_A_BASE = ["FixedBlock", "MiniBatch", "Blinded", "CLW2018", "LinearComposite"]
everyone = pytest.mark.parametrize("name", [*AROUND_A_BASE, "BlockUCB", "ARSUCB", "ARSExp3", "DynLinUCB"])


def made(name: str, **settings: Any) -> KernelPlayer:
    player = ROWS[name].make(3)
    return type(player)(player.inside, **player.settings | {"direction": "minimize", "low": 0.0} | settings, seed=3)


@everyone
def test_what_is_missing_teaches_nothing(name: str) -> None:
    player = made(name)
    rounds = tell_all(player, [None] * 60)
    assert not any(played.update for played in rounds)
    assert all(played.fed_loss is None for played in rounds)
    saved_and_restored(player)
    assert any(played.update for played in tell_all(player, [0.5] * 60))


ABSURD = [1e308, 1e308, -1e308]


@everyone
def test_absurd_totals_are_clipped_and_the_state_stays_finite(name: str) -> None:
    player = made(name, out_of_range="clip")
    rounds = tell_all(player, ABSURD * 20)
    assert all(0.0 <= played.fed_loss <= 1.0 for played in rounds if played.update)
    saved_and_restored(player)


@everyone
def test_absurd_totals_can_be_taken_as_missing(name: str) -> None:
    given = tell_all(made(name, out_of_range="void"), [0.5, 1e308, 0.25] * 40)
    assert given == tell_all(made(name), [0.5, None, 0.25] * 40)


@pytest.mark.parametrize("make", [
    lambda: rivals.FixedBlock(base(), max_delay=0, seed=1),
    lambda: rivals.MiniBatch(base(), block_length=1, seed=1),
    lambda: rivals.LinearComposite(base(), coefficients=[1.0], seed=1),
])
def test_without_delay_they_are_the_base_itself(make: Callable[[], KernelPlayer]) -> None:
    world = CompositeLosses(np.random.default_rng(11).random((90, 1, K)))
    plain = simulate(Naive(base(), seed=1), world, runs=2, seed=9, engine="rounds")
    found = simulate(make(), world, runs=2, seed=9, engine="rounds")
    assert np.array_equal(found.regrets, plain.regrets)


def dyn_lin_ucb(**settings: Any) -> rivals.DynLinUCB:
    return rivals.DynLinUCB(2, **{"horizon": 9, "spectral_radius": 0.5} | settings)


test_bad_arguments_are_named = refuses([
    (lambda: rivals.MiniBatch(base(), block_length=0), "block_length must be at least 1, but got 0"),
    (lambda: rivals.Blinded(base(), max_delay=2), "max_delay must be at most 1, but got 2"),
    (lambda: rivals.CLW2018(base(), max_delay=1, update_probability=0.0), "update_probability must be greater than 0"),
    (lambda: rivals.BlockUCB(2, max_delay=1, width=-0.5), "width must be at least 0, but got -0.5"),
    (lambda: rivals.ARSUCB(2, growth=-1.0), "growth must be at least 0, but got -1.0"),
    (lambda: rivals.ARSExp3(2, step=0.0), "step must be greater than 0, but got 0.0"),
    (lambda: rivals.ARSExp3(2, low=-1.0).regret_bound(10, 1), "low must be at least 0 for the bound to hold"),
    (lambda: dyn_lin_ucb(spectral_radius=1.0), "spectral_radius must be less than 1, but got 1.0"),
    (lambda: dyn_lin_ucb(norms=[1.0, 1.0, 1.0, 1.0, -1.0]), "norms must be at least 0, but got -1.0"),
    (lambda: dyn_lin_ucb(norms=[1.0]), "norms must have shape (5,), but got shape (1,)"),
    (lambda: dyn_lin_ucb(ridge=0.0), "ridge must be greater than 0, but got 0.0"),
    (lambda: dyn_lin_ucb(features=np.ones((3, 1))), "features must have shape (2, p), but got shape (3, 1)"),
    (lambda: find("DynLinUCB").build(Problem(2, 1, 9), system="advertising"), "n_arms must be 6 for the system 'adv"),
    (lambda: rivals.LinearComposite(base(), coefficients=[0.0]), "coefficients must not all be 0, but got [0.0]"),
    (lambda: rivals.LinearComposite(base(), coefficients=[[1.0]]), "coefficients must have shape (d+1,), but got"),
], error=AftereffectError, plain=True)
