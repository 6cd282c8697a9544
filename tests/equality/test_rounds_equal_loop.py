"""The per-round engine against the obvious loop: bit for bit, cumulative losses too."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.equality.conftest import piled_up
from tests.equality.test_blocks_equal_loop import either

import aftereffect as ae

# Some players assume a shorter delay than that of the losses.
pytestmark = pytest.mark.filterwarnings("ignore::aftereffect.AftereffectWarning")

Maker = Callable[[int, int, int], Any]
HORIZON = 1_200


def both(player: Any, losses: ae.Losses, **options: Any) -> tuple[ae.Simulation, ae.Simulation]:
    settings = {"runs": 2, "seed": 4, "trace": True, "checkpoints": 300, **options}
    exact = ae.simulate(player, losses, engine="loop", **settings)
    quick = ae.simulate(player, losses, engine="rounds", **settings)
    np.testing.assert_array_equal(quick.regrets, exact.regrets)
    return exact, quick


@pytest.mark.parametrize("max_delay", [0, 2])
def test_naive_play_of_every_base(base: Maker, max_delay: int, make: Any, blocks_agree: Any) -> None:
    losses = make("split", 3, max_delay, HORIZON)
    blocks_agree(*both(ae.Naive(base(3, max_delay, HORIZON)), losses), fed=False)


def test_the_wrapper_of_every_base(base: Maker, make: Any, blocks_agree: Any) -> None:
    player = ae.CompositeLossWrapper(base(3, 2, HORIZON), max_delay=2, coins=0.2)
    exact, quick = both(player, make("split", 3, 2, HORIZON))
    assert exact.updates.min() > 0
    blocks_agree(exact, quick, fed=False)


@pytest.mark.parametrize("max_delay", [0, 7, 600])
def test_the_wrapper_on_every_spread(spread: Maker, max_delay: int, blocks_agree: Any) -> None:
    # 600 is longer than a tile of this engine.
    player = ae.CompositeLossWrapper.tuned(n_arms=3, max_delay=max_delay, horizon=2_000)
    blocks_agree(*both(player, spread(3, max_delay, 2_000), runs=1), fed=False)


@pytest.mark.parametrize("horizon", [1, 3, 511, 512, 513, 1_024])
def test_horizons_around_a_tile(horizon: int, make: Any, blocks_agree: Any) -> None:
    player = ae.CompositeLossWrapper(ae.TsallisFTRL(3, learning_rate=1.0), max_delay=1, coins=0.4)
    blocks_agree(*both(player, make("split", 3, 1, horizon)), fed=False)


@pytest.mark.parametrize("max_delay", [0, 2])
def test_given_coins(max_delay: int, make: Any, blocks_agree: Any) -> None:
    coins = (np.random.default_rng(4).random(HORIZON) < 0.2).tolist()
    player = ae.CompositeLossWrapper(ae.TsallisFTRL(3, learning_rate=1.0), max_delay=max_delay, coins=coins)
    exact, quick = both(player, make("split", 3, max_delay, HORIZON))
    assert exact.updates.min() > 50
    blocks_agree(exact, quick, fed=False)


def test_rewards_in_a_range(blocks_agree: Any) -> None:
    table = np.random.default_rng(8).uniform(-2.0, 1.0, (HORIZON, 3))
    span: dict[str, Any] = {"direction": "maximize", "low": -2.0, "high": 1.0}
    losses = ae.spreads.random_split(table, max_delay=3, seed=2, **span)
    blocks_agree(*both(ae.Naive(ae.Exp3(3, learning_rate=0.1), **span), losses), fed=False)
    player = ae.CompositeLossWrapper(ae.Exp3(3, learning_rate=0.1), max_delay=3, coins=0.1, **span)
    blocks_agree(*both(player, losses), fed=False)


@pytest.mark.parametrize("out_of_range", ["void", "clip"])
@pytest.mark.parametrize("claimed", [0, 1, 2])
@either
def test_effects_longer_than_the_player_thinks(player: Any, out_of_range: str, claimed: int, blocks_agree: Any) -> None:
    losses, template = piled_up(HORIZON, 5), player(claimed, 0.3, out_of_range=out_of_range)
    exact, quick = both(template, losses)
    blocks_agree(exact, quick, fed=False)
    assert exact.updates.min() > 0
    # Impossible totals did occur: the interactive player counts them.
    told = template.fresh(4)
    stream = losses.stream()
    for _ in range(HORIZON):
        told.tell(stream.play(told.ask()))
    assert told.counts.out_of_range > 50
    assert (told.counts.void_windows > 0) == (out_of_range == "void")


@pytest.mark.parametrize("out_of_range", ["void", "clip"])
def test_windows_that_cannot_be(out_of_range: str, blocks_agree: Any) -> None:
    # For d = 1 a total of 2 is possible; two in a row make a window of 4, more than 2d+1 = 3 (Lemma 2).
    components = np.zeros((HORIZON, 4, 2))
    components[0::4, 2], components[1::4, 1], components[2::4, 1], components[3::4, 0] = 1.0, 1.0, 1.0, 1.0
    losses = ae.CompositeLosses(components)
    assert losses.arm_totals()[:8, 0].tolist() == [0, 0, 2, 2, 0, 0, 2, 2]
    player = ae.CompositeLossWrapper(ae.Exp3(2, learning_rate=0.2), max_delay=1, coins=0.3, out_of_range=out_of_range)
    exact, quick = both(player, losses)
    blocks_agree(exact, quick, fed=False)
    clipped = ae.CompositeLossWrapper(ae.Exp3(2, learning_rate=0.2), max_delay=1, coins=0.3, out_of_range="clip")
    fewer = exact.updates.sum() < ae.simulate(clipped, losses, runs=2, seed=4).updates.sum()
    assert fewer == (out_of_range == "void")


@pytest.mark.parametrize("engine", ["loop", "rounds", "auto"])
@either
def test_impossible_totals_raise(player: Any, engine: str) -> None:
    with pytest.raises(ae.InvalidTotal, match=r"total must .* (is|got) [3-6]\.[05]$"):
        ae.simulate(player(0, 0.3), piled_up(HORIZON, 5), runs=3, engine=engine)


@pytest.mark.parametrize("engine", ["loop", "rounds"])
def test_impossible_windows_raise(engine: str) -> None:
    components = np.zeros((8, 4, 2))
    components[0, 3], components[1, 2], components[2, 2], components[3, 1] = 1.0, 1.0, 1.0, 1.0
    player = ae.CompositeLossWrapper(ae.Exp3(2, learning_rate=0.2), max_delay=1, coins=[0, 0, 0, 0, 1, 0, 0, 0])
    with pytest.raises(ae.InvalidTotal, match=r"total must"):
        ae.simulate(player, ae.CompositeLosses(components), runs=1, engine=engine)


def test_naive_play_never_refuses(blocks_agree: Any) -> None:
    # A naive player clips totals of 6 to 1.
    blocks_agree(*both(ae.Naive(ae.Exp3(3, learning_rate=0.1)), piled_up(HORIZON, 5)), fed=False)
