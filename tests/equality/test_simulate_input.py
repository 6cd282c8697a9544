"""What `simulate` takes and refuses: arguments, checkpoints, and which engine runs which pair."""

import warnings
from typing import Any

import numpy as np
import pytest
from tests.refusals import refuses

import aftereffect as ae


class Stubborn:
    """A base algorithm without a kernel form: all arms alike, for ever."""

    n_arms = 3

    @property
    def probabilities(self) -> Any:
        return np.full(3, 1 / 3)

    def update(self, arm: int, loss: float) -> None:
        assert 0.0 <= loss <= 1.0

    def stability(self) -> float:
        return 0.0

    def regret_bound(self, n: int) -> float:
        return float(n)


def losses(max_delay: int = 2, horizon: int = 100, **options: Any) -> ae.Losses:
    table = np.random.default_rng(1).random((horizon, 3))
    return ae.spreads.random_split(table, max_delay=max_delay, seed=2, **options)


def wrapped(bandit: Any = None, max_delay: int = 2, **options: Any) -> ae.CompositeLossWrapper:
    return ae.CompositeLossWrapper(
        bandit or ae.Exp3(3, learning_rate=0.1), max_delay=max_delay, coins=0.2, seed=0, **options
    )


test_bad_arguments = refuses([
    ({"runs": 0}, "runs must be at least 1, but got 0"),
    ({"runs": 2.0}, r"runs must be an int, but got 2\.0"),
    ({"seed": -1}, "seed must be at least 0, but got -1"),
    ({"engine": "fast"}, "engine must be one of 'auto', 'loop', 'rounds', 'blocks', 'cuda', but got 'fast'"),
    ({"instances": 3}, "runs must be a multiple of instances, but got 10 runs and 3 instances"),
    ({"checkpoints": 0}, "checkpoints must be at least 1, but got 0"),
    ({"checkpoints": "even"}, "checkpoints must be one of 'linear', 'log', but got 'even'"),
    ({"checkpoints": [0, 5]}, r"checkpoints must be whole rounds in 1\.\.100, but got \[0, 5\]"),
    ({"checkpoints": [[1, 2]]}, r"checkpoints must have shape \(any,\), but got shape \(1, 2\)"),
    ({"checkpoints": [np.nan]}, r"checkpoints must be finite, but checkpoints\[0\] is nan"),
], lambda options: ae.simulate(wrapped(), losses(), **{"runs": 10, **options}))


def test_fixed_losses_cannot_be_redrawn() -> None:
    with pytest.raises(ae.InvalidLosses, match="losses must have a stochastic recipe to be redrawn"):
        ae.simulate(wrapped(), ae.CompositeLosses(np.zeros((10, 2, 3))), runs=10, instances=2)


class Own:
    """A player of the user's own: always arm 0, and it says nothing."""

    n_arms = 3

    def ask(self) -> int:
        return 0

    def tell(self, total: float | None) -> None:
        return None

    def fresh(self, seed: int, run: int = 0) -> "Own":
        return self


NO_PLAYER = "player must be a player with a method ask"
NOT_BLOCKS, NOT_ROUNDS = (f"engine must not be '{name}' unless" for name in ("blocks", "rounds"))

test_what_does_not_play_together_is_refused = refuses([
    (lambda: ae.simulate(ae.Exp3, losses()), NO_PLAYER),
    (lambda: ae.simulate(None, losses()), NO_PLAYER),
    (lambda: ae.simulate(ae.Exp3(3, learning_rate=0.1), losses()), rf"{NO_PLAYER}.*but got Exp3\(n_arms=3"),
    (lambda: ae.simulate(wrapped(), np.zeros((10, 2, 3))), "losses must be a Losses"),
    (lambda: ae.simulate(wrapped(), ae.tables.iid(10, means=[0.1, 0.2, 0.3], seed=0)), "losses must be a Losses"),
    (lambda: ae.simulate(wrapped(ae.Exp3(2, learning_rate=0.1)), losses()), "the n_arms of losses, 3, but got 2"),
    (lambda: ae.simulate(wrapped(), losses(direction="maximize")), "direction of losses, 'maximize', but got 'mini"),
    (lambda: ae.simulate(Own(), losses(direction="maximize")), "default, as the player has no attribute direction"),
    (lambda: ae.simulate(Own(), losses(), runs=1), r"player\.tell must return a Round, but .* returned None"),
    (lambda: ae.simulate(wrapped(max_delay=1), losses(), engine="blocks"), NOT_BLOCKS),
    (lambda: ae.simulate(wrapped(high=0.5), losses(), engine="blocks"), NOT_BLOCKS),
    (lambda: ae.simulate(wrapped(Stubborn()), losses(), engine="blocks"), NOT_BLOCKS),
    (lambda: ae.simulate(ae.Naive(ae.Exp3(3, learning_rate=0.1)), losses(), engine="blocks"), NOT_BLOCKS),
    (
        lambda: ae.simulate(ae.default_player(3, max_delay=2, adviser="lags"), losses(), engine="blocks"),
        f"{NOT_BLOCKS} the player is a CompositeLossWrapper or, without an adviser, a CoinCleanWrapper, with a base",
    ),
    (lambda: ae.simulate(wrapped(Stubborn()), losses(), engine="rounds"), NOT_ROUNDS),
    (lambda: ae.simulate(ae.Naive(Stubborn()), losses(), engine="rounds"), NOT_ROUNDS),
])


@pytest.mark.parametrize(("player", "text"), [
    (lambda: wrapped(max_delay=1, out_of_range="clip"), "max_delay=1, but .* up to 2 rounds late"),
    (lambda: wrapped(high=0.5, out_of_range="clip"), r"expects effects in \[0, 0\.5\], but .* \[0, 1\]"),
    (lambda: ae.CompositeLossWrapper.tuned(3, max_delay=2, horizon=10), "for 10 rounds, but these losses have 100"),
    (lambda: ae.rivals.ODAAFB(3, max_delay=2, horizon=20, mean_delay=1.0), "tuned for 20 rounds"),
])
def test_a_player_that_does_not_fit_is_warned_about(player: Any, text: str) -> None:
    with pytest.warns(ae.AftereffectWarning, match=text):
        ae.simulate(player(), losses(), runs=2)


def test_a_warning_is_shown_once() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for _ in range(3):
            ae.simulate(wrapped(max_delay=1, out_of_range="clip"), losses(), runs=2)
    assert len(shown) == 1
    assert shown[0].filename == __file__


def test_a_table_with_more_arms_than_rounds() -> None:
    with pytest.warns(ae.AftereffectWarning, match="more arms than rounds, 100 and 3: rounds are the first axis"):
        ae.spreads.at_once(np.zeros((3, 100)))
    ae.spreads.at_once(np.zeros((1, 2)))


@pytest.mark.parametrize(("player", "given", "engine"), [
    (wrapped, losses, "blocks"),
    (lambda: wrapped(max_delay=9), losses, "blocks"),
    (lambda: wrapped(low=-1.0, high=2.0), losses, "blocks"),
    (lambda: wrapped(max_delay=1, out_of_range="clip"), losses, "rounds"),
    (lambda: wrapped(high=0.5, out_of_range="clip"), losses, "rounds"),
    (wrapped, lambda: losses(low=-0.5), "rounds"),
    (lambda: ae.Naive(ae.Exp3(3, learning_rate=0.1)), losses, "rounds"),
    (lambda: wrapped(Stubborn()), losses, "loop"),
    (lambda: ae.Naive(Stubborn()), losses, "loop"),
])
@pytest.mark.filterwarnings("ignore::aftereffect.AftereffectWarning")
def test_auto_takes_the_quickest_exact_engine(player: Any, given: Any, engine: str) -> None:
    assert ae.simulate(player(), given(), runs=2).engine == engine
    assert ae.simulate(player(), given(), runs=2, engine=engine).engine == engine
    assert ae.simulate(player(), given(), runs=2, engine="loop").engine == "loop"


@pytest.mark.parametrize(("checkpoints", "horizon", "rounds"), [
    (4, 10, [3, 5, 8, 10]),  # 2.5, 5, 7.5, 10, rounded up
    (1, 10, [10]),
    (3, 1, [1]),
    (100, 5, [1, 2, 3, 4, 5]),
    ("linear", 640, range(10, 641, 10)),
    ("linear", 3, [1, 2, 3]),
    ("log", 3, [1, 2, 3]),
    ([7, 3, 3], 10, [3, 7, 10]),
    ([10], 10, [10]),
    ([], 10, [10]),
    (np.array([1.0, 4.0]), 10, [1, 4, 10]),
])
def test_checkpoints(checkpoints: Any, horizon: int, rounds: Any) -> None:
    for engine in ("blocks", "rounds", "loop"):
        sim = ae.simulate(wrapped(), losses(horizon=horizon), runs=2, checkpoints=checkpoints, engine=engine)
        assert sim.rounds.tolist() == list(rounds)
        assert sim.regrets.shape == (2, len(sim.rounds))


def test_logarithmic_checkpoints() -> None:
    rounds = ae.simulate(wrapped(), losses(horizon=2**20), runs=1, checkpoints="log").rounds
    # 64 points over 20 octaves: a factor of 2^(20/63) = 1.246 apart once rounding no longer matters.
    assert rounds[0] == 1
    assert rounds[-1] == 2**20
    late = rounds[rounds > 10_000]
    assert late.size > 20
    np.testing.assert_allclose(late[1:] / late[:-1], 2 ** (20 / 63), rtol=2e-4)


def test_64_checkpoints_unless_told() -> None:
    assert ae.simulate(wrapped(), losses(horizon=128), runs=1).rounds.tolist() == list(range(2, 129, 2))
