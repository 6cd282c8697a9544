"""Tsallis-INF, Exp3-IX and UCB1: numbers by hand, second implementations, stability by enumeration."""

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pytest
from exp3_ix import Exp3IX
from numpy.typing import NDArray
from tests.refusals import refuses

from aftereffect import Exp3, restore
from aftereffect.bandits.baselines import UCB1
from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.bandits.tsallis_inf import ESTIMATORS, TsallisINF
from aftereffect.core import saved
from aftereffect.core.errors import InvalidState

Floats = NDArray[np.float64]
Rival = TsallisINF | Exp3IX | UCB1
CLASSES = (TsallisINF, Exp3IX, UCB1)
AnyRival = TypeVar("AnyRival", bound=KernelBandit)
MAKERS: dict[str, Callable[[int], Rival]] = {
    "tsallis_inf_iw": TsallisINF,
    "tsallis_inf_rv": lambda n_arms: TsallisINF(n_arms, estimator="reduced_variance"),
    "exp3_ix": lambda n_arms: Exp3IX(n_arms, learning_rate=0.1),
    "ucb1": UCB1,
}
def walk(bandit: Rival, rounds: int, seed: int) -> list[tuple[int, float]]:
    """Play arms drawn from the bandit's own distribution; arm 0 is worst, the last is best."""
    rng = np.random.default_rng(seed)
    played = []
    for _ in range(rounds):
        arm = int(rng.choice(bandit.n_arms, p=bandit.probabilities))
        loss = float(rng.random() < 0.9 - 0.8 * arm / (bandit.n_arms - 1))
        bandit.update(arm, loss)
        played.append((arm, loss))
    return played


def branch(bandit: AnyRival, arm: int, loss: float) -> AnyRival:
    """Return a copy that has learned one more loss."""
    twin = type(bandit).from_state(bandit.state())
    twin.update(arm, loss)
    return twin


def tsallis_by_bisection(L: Floats, rate: float) -> Floats:
    """Return the weights 4/(rate(L − x))² of Zimmert and Seldin, with x by bisection to the last bit."""
    low, high = L.min() - 2.0 * math.sqrt(len(L)) / rate, L.min()
    for _ in range(200):
        x = 0.5 * (low + high)
        low, high = (x, high) if x < high and np.sum(4.0 / (rate * (L - x)) ** 2) < 1.0 else (low, x)
    return np.asarray(4.0 / (rate * (L - low)) ** 2)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("n_arms", [2, 5])
def test_tsallis_inf_is_what_zimmert_and_seldin_define(estimator: str, n_arms: int) -> None:
    bandit = TsallisINF(n_arms, estimator=estimator)
    reduced = estimator == "reduced_variance"
    L, w, baselines = np.zeros(n_arms), np.full(n_arms, 1.0 / n_arms), 0
    for t, (arm, loss) in enumerate(walk(TsallisINF(n_arms, estimator=estimator), 400, seed=n_arms), start=1):
        bandit.update(arm, loss)
        rate = (4.0 if reduced else 2.0) / math.sqrt(t)
        B = 0.5 * (w >= rate**2) if reduced else np.zeros(n_arms)
        baselines += int(np.count_nonzero(B))
        played = np.arange(n_arms) == arm
        L = L + played * (loss - B) / w + B
        w = tsallis_by_bisection(L, (4.0 if reduced else 2.0) / math.sqrt(t + 1))
        np.testing.assert_allclose(bandit.probabilities, w, rtol=1e-9, atol=0.0)
        np.testing.assert_allclose(bandit.estimated_losses, L, rtol=1e-9, atol=1e-9)
    # The comparison is meaningful only if baselines were used for some arms and not for others.
    assert 0 < baselines < 400 * n_arms if reduced else baselines == 0


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_tsallis_inf_estimates_are_unbiased(estimator: str) -> None:
    bandit = TsallisINF(4, estimator=estimator)
    walk(bandit, 300, seed=1)
    losses = np.array([0.9, 0.2, 0.0, 1.0])
    after = [branch(bandit, arm, float(losses[arm])).estimated_losses for arm in range(4)]
    assert bandit.probabilities @ (after - bandit.estimated_losses) == pytest.approx(losses, abs=1e-9)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("updates", [1.0, 31.0, 1e7])
def test_tsallis_inf_survives_extremes(estimator: str, updates: float) -> None:
    """From extreme states, one update gives the distribution that bisection finds."""
    rng = np.random.default_rng(5)
    for spread in (0.0, 1.0, 1e4, 1e8):
        rate = (4.0 if estimator == "reduced_variance" else 2.0) / math.sqrt(updates)
        L = 1e7 + spread * rng.random(6)
        w = tsallis_by_bisection(L, rate)
        numbers = [*w, *L, L.min(), 1.0 / math.sqrt(w.max()), float(np.sum(w**1.5)), updates - 1.0]
        fields = {"n_arms": 6, "settings": {"estimator": estimator}, "numbers": [float(number) for number in numbers]}
        for arm in (int(w.argmin()), int(w.argmax())):
            for loss in (0.0, 1.0):
                bandit = TsallisINF.from_state(saved.seal("TsallisINF", fields))
                bandit.update(arm, loss)
                q = bandit.probabilities
                assert math.fsum(q) == pytest.approx(1.0, abs=1e-13)
                wanted = tsallis_by_bisection(bandit.estimated_losses, 2.0 / bandit.learning_rate)
                # λ is known to an ulp of 1e7, about 2e-9, next to L − λ of at least η.
                np.testing.assert_allclose(q, wanted, rtol=2e-8, atol=0.0)


def test_exp3_ix_by_hand() -> None:
    # q = 1/2 and γ = η/2 = 1/4: estimated loss (3/4)/(3/4) = 1. Then q(1) = 1/(1 + e^(−1/2)), at a loss of 1.
    bandit = Exp3IX(2, learning_rate=0.5)
    bandit.update(0, 0.75)
    share = 1.0 / (1.0 + math.exp(-0.5))
    assert bandit.probabilities == pytest.approx([1.0 - share, share], rel=1e-14)
    bandit.update(1, 1.0)
    odds = math.exp(-0.5 + 0.5 / (share + 0.25))
    assert bandit.probabilities == pytest.approx([odds / (1.0 + odds), 1.0 / (1.0 + odds)], rel=1e-14)


def test_exp3_ix_without_exploration_is_exp3() -> None:
    ix, plain = Exp3IX(3, learning_rate=0.2, exploration=0.0), Exp3(3, learning_rate=0.2)
    for arm, loss in walk(ix, 200, seed=2):
        plain.update(arm, loss)
    assert ix.probabilities.tolist() == plain.probabilities.tolist()


@pytest.mark.parametrize("width", [0.0, 0.5, 2.0])
def test_ucb1_plays_the_least_index(width: float) -> None:
    bandit = UCB1(4, width=width)
    history: list[list[float]] = [[], [], [], []]
    for n, (arm, loss) in enumerate(walk(bandit, 150, seed=3)):
        unplayed = [i for i in range(4) if not history[i]]
        if unplayed:
            assert arm == unplayed[0]
        else:
            index = [math.fsum(x) / len(x) - math.sqrt(width * math.log(n) / len(x)) for x in history]
            assert arm == index.index(min(index))
        history[arm].append(loss)


@pytest.mark.parametrize("name", ["tsallis_inf_iw", "exp3_ix"])
def test_stability_holds_in_every_round(name: str) -> None:
    """Definition 3, summed over the arm drawn; for Tsallis-INF also Theorem 5 plus the drift."""
    bandit, rng = MAKERS[name](3), np.random.default_rng(4)
    for n in range(1, 61):
        q, losses = bandit.probabilities, rng.choice([0.0, 1.0], size=3, p=[0.2, 0.8])
        twins = [branch(bandit, arm, float(losses[arm])) for arm in range(3)]
        moved = sum(float(q[arm] * np.maximum(twins[arm].probabilities - q, 0.0).sum()) for arm in range(3))
        assert moved <= bandit.stability() + 1e-12
        if isinstance(bandit, TsallisINF):
            assert moved <= 2.0 * (1.0 + math.log(3.0)) / math.sqrt(n) + math.log(1.0 + 1.0 / n)
        bandit = twins[int(rng.choice(3, p=q))]


def test_growth_of_the_rate_moves_little_mass() -> None:
    """The drift term of TsallisINF.stability: L fixed, η from √n to √(n+1)."""
    rng = np.random.default_rng(6)
    for n in (1, 2, 10, 1000):
        for spread in (0.1, 1.0, 10.0, 100.0):
            L = spread * math.sqrt(n) * rng.random(7)
            before, after = (tsallis_by_bisection(L, 2.0 / math.sqrt(m)) for m in (n, n + 1))
            assert np.maximum(after - before, 0.0).sum() <= math.log(1.0 + 1.0 / n)


def test_bounds_by_hand() -> None:
    assert TsallisINF(4).regret_bound(100) == 81.0
    assert TsallisINF(4, estimator="reduced_variance").regret_bound(100) == pytest.approx(56.0 + 40.0 * math.log(100.0))
    assert TsallisINF(4, estimator="reduced_variance").regret_bound(0) == 16.0
    assert TsallisINF(4).stability() == 1.0
    assert (UCB1(4).regret_bound(100), UCB1(4).stability()) == (100.0, 1.0)
    assert Exp3IX(2, learning_rate=0.1).stability() == pytest.approx(0.1 / 1.05)
    assert Exp3IX(2, learning_rate=0.1).regret_bound(110) == pytest.approx(10.0 * math.log(2.0) + 20.0)
    assert Exp3IX(2, learning_rate=0.1, exploration=0.0).regret_bound(110) == pytest.approx(
        Exp3(2, learning_rate=0.1).regret_bound(110)
    )


test_bad_input_is_named = refuses([
    (lambda: TsallisINF(2, estimator="rv"), f"estimator must be one of {str(ESTIMATORS)[1:-1]}, but got 'rv'"),
    (lambda: TsallisINF(2).regret_bound(-1), "n must be at least 0, but got -1"),
    (lambda: Exp3IX(2, learning_rate=0.0), "learning_rate must be greater than 0, but got 0.0"),
    (lambda: Exp3IX(2, learning_rate=0.1, exploration=-0.5), "exploration must be at least 0, but got -0.5"),
    (lambda: UCB1(2, width=-1.0), "width must be at least 0, but got -1.0"),
])


def test_a_state_with_an_unknown_estimator_is_refused() -> None:
    state = saved.seal("TsallisINF", {"n_arms": 2, "settings": {"estimator": "rv"}, "numbers": [0.0] * 8})
    with pytest.raises(InvalidState, match=r"state\(\) saved, but estimator must be one of"):
        restore(state, classes=CLASSES)
