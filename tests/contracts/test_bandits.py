"""The contract of `Bandit`, for every base algorithm; to add a class, add one line to the table."""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
import pytest
from exp3_ix import Exp3IX
from log_barrier import LogBarrier
from numpy.typing import NDArray
from scipy.stats import chi2
from tests.contracts import kits
from tests.contracts.kits import BanditRow

import aftereffect as ae
from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.core import checks, random, saved
from aftereffect.players import registry


class HedgedLeader:
    """A user's base in plain Python: half of the probability is uniform, half on the arm of least estimated loss."""

    def __init__(self, n_arms: int) -> None:
        self.n_arms = n_arms
        self._sums = np.zeros(n_arms)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        leaders = self._sums == self._sums.min()
        result: NDArray[np.float64] = 0.5 / self.n_arms + 0.5 * leaders / leaders.sum()
        return result

    def update(self, arm: int, loss: float) -> None:
        arm = checks.integer("arm", arm, low=0, high=self.n_arms - 1)
        self._sums[arm] += checks.real("loss", loss, low=0.0, high=1.0) / self.probabilities[arm]

    def stability(self) -> float:
        return 0.5

    def regret_bound(self, n: int) -> float:
        return float(checks.integer("n", n, low=0))

    def state(self) -> dict[str, Any]:
        return saved.seal("HedgedLeader", {"sums": self._sums.tolist()})

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        sums = saved.unseal(state, "HedgedLeader", ["sums"])["sums"]
        twin = cls(len(sums))
        twin._sums[:] = sums
        return twin


BANDITS: dict[str, BanditRow] = {
    "tsallis": BanditRow(lambda: ae.TsallisFTRL(4, learning_rate=3.0)),
    "tsallis, greedy": BanditRow(lambda: ae.TsallisFTRL(3, learning_rate=1e-6)),
    "tsallis, cautious": BanditRow(lambda: ae.TsallisFTRL(2, learning_rate=1e6)),
    "tsallis, follow the leader": BanditRow(lambda: ae.TsallisFTRL(3, learning_rate=0.0)),
    "tsallis, many arms": BanditRow(lambda: ae.TsallisFTRL(300, learning_rate=10.0)),
    "adaptive": BanditRow(lambda: ae.AdaptiveTsallis(4), fading=True),
    "adaptive, bold": BanditRow(lambda: ae.AdaptiveTsallis(3, first_rate=1e-3, memory=1.0), fading=True),
    "adaptive, many arms": BanditRow(lambda: ae.AdaptiveTsallis(300, first_rate=10.0), fading=True),
    "matched": BanditRow(lambda: ae.MatchedTsallis(4), fading=True),
    "matched, bold": BanditRow(lambda: ae.MatchedTsallis(3, first_rate=1e-3, memory=1.0, matching=1.0), fading=True),
    "log barrier": BanditRow(lambda: LogBarrier(4), fading=True),
    "log barrier, bold": BanditRow(lambda: LogBarrier(3, first_rate=1e-3, memory=1.0), fading=True),
    "exp3": BanditRow(lambda: ae.Exp3(4, learning_rate=0.1)),
    "exp3, greedy": BanditRow(lambda: ae.Exp3(3, learning_rate=1e3)),
    "exp3, cautious": BanditRow(lambda: ae.Exp3(2, learning_rate=1e-9)),
    "exp3-ix": BanditRow(lambda: Exp3IX(4, learning_rate=0.1)),
    "exp3-ix, bold": BanditRow(lambda: Exp3IX(3, learning_rate=1.0, exploration=0.0)),
    "tsallis-inf": BanditRow(lambda: ae.TsallisINF(4), fading=True),
    "tsallis-inf, reduced variance": BanditRow(lambda: ae.TsallisINF(3, estimator="reduced_variance"), fading=True),
    "ucb1": BanditRow(lambda: ae.UCB1(3), certain=True, fading=True),
    "ucb1, greedy": BanditRow(lambda: ae.UCB1(4, width=0.0), certain=True, fading=True),
    "epsilon-greedy": BanditRow(lambda: ae.EpsilonGreedy(4), fading=True),
    "thompson": BanditRow(lambda: ae.GaussianThompson(3), fading=True, exact=1e-10),
    "uniform": BanditRow(lambda: ae.Uniform(5)),
    "plain Python": BanditRow(lambda: HedgedLeader(3)),
}


@pytest.mark.parametrize("row", BANDITS.values(), ids=BANDITS.keys())
@pytest.mark.parametrize("case", kits.BANDIT_KIT, ids=lambda case: case.__name__)
def test_contract(case: Callable[[BanditRow], None], row: BanditRow) -> None:
    case(row)


def test_every_bandit_has_a_row() -> None:
    exported = {thing for thing in vars(ae).values() if isinstance(thing, type) and issubclass(thing, KernelBandit)}
    assert exported == set(registry.BANDITS), "what is exported can be restored"
    assert {type(row.make()) for row in BANDITS.values()} == {*registry.BANDITS, Exp3IX, LogBarrier, HedgedLeader}


KERNELS = [name for name in BANDITS if name != "plain Python"]


@pytest.mark.parametrize("name", KERNELS)
def test_fresh_is_unplayed_and_alike(name: str) -> None:
    bandit = kits.taught(BANDITS[name].make(), 10)
    assert bandit.fresh().state() == BANDITS[name].make().state()


@pytest.mark.parametrize("name", KERNELS)
def test_draws_follow_the_distribution(name: str) -> None:
    # Chi-square over the arms with at least 10 expected draws; false-alarm rate 1e-6 per case.
    bandit = kits.taught(BANDITS[name].make(), 3)
    n, stream, q = 40_000, random.stream(5, 0, random.ARMS), bandit.probabilities
    counts = np.bincount([bandit.draw(stream) for _ in range(n)], minlength=bandit.n_arms)
    assert counts[q == 0.0].sum() == 0
    often = n * q >= 10.0
    # If only one arm is frequent, the test is trivial: its count is n minus those of the rare arms.
    assert often.any()
    chi_square = float((((counts - n * q) ** 2)[often] / (n * q)[often]).sum())
    assert chi2.sf(chi_square, max(int(often.sum()) - 1, 1)) >= 1e-6


@pytest.mark.parametrize("name", KERNELS)
def test_an_arm_of_probability_zero_cannot_have_been_drawn(name: str) -> None:
    bandit = BANDITS[name].make()
    for _ in range(50):
        arm = int(bandit.probabilities.argmax())
        bandit.update(arm, 1.0)
    impossible = np.flatnonzero(bandit.probabilities == 0.0)
    before = bandit.state()
    for arm in impossible.tolist():
        message = kits.refused(lambda arm=arm: bandit.update(arm, 0.5), ae.InvalidArgument)
        assert message == f"arm must have positive probability, but arm {arm} has probability 0"
    assert bandit.state() == before
    # Deterministic and greedy bandits give some arms probability 0, so that the loop above is not empty for them.
    ruled_out = BANDITS[name].certain or name in {"tsallis, follow the leader", "exp3, greedy"}
    assert (len(impossible) > 0) is ruled_out
