"""The contract of `Player`, for every player with every kind of base; to add a class, add one line to the table."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from doubling import DoublingWrapper
from tests.contracts.player_kit import PLAYER_KIT, PlayerRow, play
from tests.contracts.saving_kit import saved_and_restored
from tests.contracts.test_bandits import BANDITS
from unknown_delay import UnknownDelayWrapper

import aftereffect as ae
from aftereffect.players import registry, rivals

Around = Callable[[Any, int | None], Any]

# A fixed Boolean sequence, longer than any play of the kit; blocks of 5 to 7 rounds at d = 2.
COINS = [t % 17 in (0, 5, 12) for t in range(500)]
FEATURES = [[1.0, 0.5], [0.5, 1.0], [0.0, 0.5]]
REWARDS: dict[str, Any] = {"direction": "maximize", "low": -1.0, "high": 2.0}


def with_base(kind: Any, **settings: Any) -> Around:
    return lambda base, seed: kind(base, seed=seed, **settings)


AROUND_ANY_BASE: dict[str, Around] = {
    "wrapper, d=2": with_base(ae.CompositeLossWrapper, max_delay=2, coins=0.2),
    "naive": with_base(ae.Naive),
}

# Other settings of the same players, for which one base is enough.
AROUND_ONE_BASE: dict[str, Around] = {
    "wrapper, d=0": with_base(ae.CompositeLossWrapper, max_delay=0, coins=0.4),
    "wrapper, given coins": with_base(ae.CompositeLossWrapper, max_delay=2, coins=COINS),
    "wrapper, rewards": with_base(ae.CompositeLossWrapper, max_delay=1, coins=0.3, out_of_range="clip", **REWARDS),
    "naive, rewards": with_base(ae.Naive, **REWARDS),
}

# These need a base that learns from sums.
COIN_CLEAN: dict[str, Around] = {
    "coin-clean, d=0": with_base(ae.CoinCleanWrapper, max_delay=0, coins=0.4),
    "coin-clean, d=2": with_base(ae.CoinCleanWrapper, max_delay=2),
    "coin-clean, given coins": with_base(ae.CoinCleanWrapper, max_delay=2, coins=COINS),
    "coin-clean, rewards": with_base(ae.CoinCleanWrapper, max_delay=1, coins=0.3, out_of_range="clip", **REWARDS),
}

# The kinds of bases with which each player of AROUND_ANY_BASE is tested; variants of one base would add nothing.
BASES = ("tsallis", "exp3", "plain Python")

# Rivals have their base in their own kernel, so one base is enough.
RIVALS_AROUND_A_BASE: dict[str, Around] = {
    "CLW2018": with_base(rivals.CLW2018, max_delay=2),
    "MiniBatch": with_base(rivals.MiniBatch, block_length=4, max_delay=1),
    "Blinded": with_base(rivals.Blinded, **REWARDS),
    "FixedBlock": with_base(rivals.FixedBlock, max_delay=2),
    "LinearComposite": with_base(rivals.LinearComposite, coefficients=[0.0, 0.75, 0.25]),
}


def alone(kind: Any, n_arms: int, **settings: Any) -> Callable[[int | None], Any]:
    return lambda seed: kind(n_arms, seed=seed, **settings)


def around(make: Around, base: str) -> Callable[[int | None], Any]:
    return lambda seed: make(BANDITS[base].make(), seed)


ROWS: dict[str, PlayerRow] = {
    f"{name}, {base}": PlayerRow(around(make, base), redraws=name.startswith("naive"), compiled=base != "plain Python")
    for name, make in AROUND_ANY_BASE.items()
    for base in BASES
}
ROWS |= {
    name: PlayerRow(around(make, "tsallis"), redraws=name.startswith("naive")) for name, make in AROUND_ONE_BASE.items()
}
ROWS |= {
    name: PlayerRow(around(make, "exp3"), redraws=name == "LinearComposite")
    for name, make in RIVALS_AROUND_A_BASE.items()
}
# The kit's totals are 1/4 on average, so the scaled sums stay below 1; for rewards the corresponding losses exceed 1.
ROWS |= {
    name: PlayerRow(around(make, "adaptive"), unit=name != "coin-clean, rewards")
    for name, make in COIN_CLEAN.items()
}
ROWS |= {
    # A base that learns nothing, and one that is deterministic.
    "wrapper, d=2, uniform": PlayerRow(around(AROUND_ANY_BASE["wrapper, d=2"], "uniform")),
    "naive, uniform": PlayerRow(around(AROUND_ANY_BASE["naive"], "uniform"), redraws=True),
    "naive, Thompson": PlayerRow(around(AROUND_ANY_BASE["naive"], "thompson"), redraws=True),
    "naive, ε-greedy": PlayerRow(around(AROUND_ANY_BASE["naive"], "epsilon-greedy"), redraws=True),
    "naive, UCB1": PlayerRow(around(AROUND_ANY_BASE["naive"], "ucb1"), random=False, redraws=True),
    "BlockUCB": PlayerRow(alone(rivals.BlockUCB, 3, max_delay=2), random=False, redraws=True),
    "LagPlayer": PlayerRow(alone(ae.LagPlayer, 3, max_lag=2), redraws=True, feeds=False),
    "LagPlayer, rewards": PlayerRow(
        alone(ae.LagPlayer, 2, max_lag=3, season=7, horizon=300, direction="maximize"), redraws=True, feeds=False
    ),
    "ABTest": PlayerRow(alone(rivals.ABTest, 3, test_rounds=40), random=False, redraws=True),
    "ABTest, random holds": PlayerRow(
        alone(rivals.ABTest, 3, test_rounds=100, hold=2, order="random", **REWARDS), redraws=True
    ),
    "ABTest, by lags": PlayerRow(alone(rivals.ABTest, 3, test_rounds=40, winner="lags"), random=False, redraws=True),
    "ODAAF": PlayerRow(alone(rivals.ODAAF, 2, horizon=40, mean_delay=1.0, **REWARDS), random=False),
    # 34 rounds per arm in its first phase, then a bridge.
    "ODAAFB": PlayerRow(alone(rivals.ODAAFB, 2, horizon=100, max_delay=1, mean_delay=None), random=False, redraws=True),
    "ODAAFV": PlayerRow(alone(rivals.ODAAFV, 3, horizon=40, mean_delay=1.0, delay_variance=0.5), random=False),
    "GargAkash": PlayerRow(alone(rivals.GargAkash, 2, horizon=100, max_delay=1), random=False),
    "DynLinUCB": PlayerRow(alone(rivals.DynLinUCB, 3, horizon=100, spectral_radius=0.3), random=False),
    "DynLinUCB, rewards": PlayerRow(
        alone(rivals.DynLinUCB, 3, horizon=100, spectral_radius=0.0, features=FEATURES, **REWARDS), random=False
    ),
    "ARUCB": PlayerRow(alone(rivals.ARUCB, 3, horizon=100, order=2), random=False, redraws=True),
    "ARUCB, rewards": PlayerRow(alone(rivals.ARUCB, 3, horizon=100, order=0, **REWARDS), random=False, redraws=True),
    "ARSUCB": PlayerRow(alone(rivals.ARSUCB, 3), random=False, learns_late=True),
    "ARSExp3": PlayerRow(alone(rivals.ARSExp3, 3), learns_late=True),
    "ARSExp3, blocks of 1": PlayerRow(alone(rivals.ARSExp3, 3, growth=0.0), redraws=True),
    "DoublingWrapper": PlayerRow(alone(DoublingWrapper, 3, max_delay=1, first_horizon=20), redraws=True),
    "UnknownDelayWrapper": PlayerRow(alone(UnknownDelayWrapper, 3, horizon=300, guess=1)),
    # The kit's totals reach 5/11, more than the effect of one action.
    "UnknownDelayWrapper, wrong guess": PlayerRow(
        alone(UnknownDelayWrapper, 3, horizon=300, guess=0, high=0.4), redraws=True
    ),
}


# Some players assume another delay, range or horizon than the kit's losses have.
@pytest.mark.filterwarnings("ignore::aftereffect.AftereffectWarning")
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
@pytest.mark.parametrize("case", PLAYER_KIT, ids=lambda case: case.__name__)
def test_contract(case: Callable[[PlayerRow], None], row: PlayerRow) -> None:
    case(row)


def test_every_player_has_a_row() -> None:
    made = {type(row.make(0)) for row in ROWS.values()}
    registered = {entry.player for entry in registry.PLAYERS.values() if not entry.labelled}
    assert made == {*registered, DoublingWrapper, UnknownDelayWrapper}


# The words of `needs`, and the corresponding arguments of constructors.
ASSUMPTIONS = {
    "max_delay": "max_delay",
    "horizon": "horizon",
    "mean delay": "mean_delay",
    "delay variance": "delay_variance",
    "coefficients": "coefficients",
    "stochastic losses": None,
}


@pytest.mark.parametrize("entry", registry.PLAYERS.values(), ids=registry.PLAYERS)
def test_needs_names_the_assumptions(entry: registry.Entry) -> None:
    needs = entry.needs()
    assert len(set(needs)) == len(needs)
    assert set(needs) <= {*ASSUMPTIONS, *registry.CONDITIONS}
    if entry.labelled:
        # For labelled players max_delay determines only the size of the memory; the algorithm does not use it.
        needs += ("max_delay",)
    arguments = inspect.signature(entry.player).parameters
    for word, argument in ASSUMPTIONS.items():
        if argument in arguments and arguments[argument].default is inspect.Parameter.empty:
            assert word in needs, "a required argument must be among the needs"


@pytest.mark.parametrize("base", ["tsallis", "exp3"])
@pytest.mark.parametrize(
    "make", [*AROUND_ANY_BASE.values(), *RIVALS_AROUND_A_BASE.values()], ids=[*AROUND_ANY_BASE, *RIVALS_AROUND_A_BASE]
)
def test_a_template_around_a_base_that_has_learned_is_refused(make: Around, base: str) -> None:
    # Runs start from an unplayed base; silently discarding what this base has learned would be wrong.
    bandit = BANDITS[base].make()
    bandit.update(0, 1.0)
    with pytest.raises(ae.InvalidArgument, match="unplayed"):
        make(bandit, 0).fresh(0)


@pytest.mark.parametrize("make", RIVALS_AROUND_A_BASE.values(), ids=RIVALS_AROUND_A_BASE.keys())
def test_what_becomes_of_the_base_elsewhere_does_not_touch_a_rival(make: Around) -> None:
    bandit = ae.Exp3(3, learning_rate=0.1)
    player = make(bandit, 0)
    before = player.state()
    bandit.update(0, 1.0)
    assert player.state() == before
    assert play(player.fresh(0), 50) == play(saved_and_restored(player), 50)


@pytest.mark.parametrize("make", RIVALS_AROUND_A_BASE.values(), ids=RIVALS_AROUND_A_BASE.keys())
def test_rivals_want_a_base_in_kernel_form(make: Around) -> None:
    with pytest.raises(ae.InvalidArgument, match="bandit must be a base algorithm in kernel form, such as Exp3, but"):
        make(BANDITS["plain Python"].make(), 0)


TUNED = ae.CompositeLossWrapper.tuned


@pytest.mark.parametrize(("build", "wrong"), [
    (lambda: rivals.BlockUCB(3, max_delay=2, widht=0.3), "BlockUCB has no argument 'widht'; it accepts n_arms, max"),
    (lambda: ae.default_player(3, max_delay=2, sead=1), "default_player has no argument 'sead'; it accepts n_arms, "),
    (lambda: ae.Naive(ae.UCB1(2), hihg=2.0), "Naive has no argument 'hihg'; it accepts bandit, max_delay, "),
    (lambda: TUNED(2, max_delay=1, horizon=9, seeds=1), "'seeds'; it accepts bandit, .*; tuned accepts n_arms, max_de"),
    (lambda: ae.labelled.DelayedUCB1(2, out_of_range="clip"), "'out_of_range'; it accepts n_arms, direction, low"),
])
def test_a_wrong_keyword_names_the_class_and_what_it_accepts(build: Callable[[], Any], wrong: str) -> None:
    with pytest.raises(TypeError, match=wrong):
        build()
