"""Algorithms from outside the package in kernel form: every engine runs them, and never an old version."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import aftereffect as ae
from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.core import kernel
from aftereffect.core.errors import InvalidArgument, InvalidLosses
from aftereffect.core.random import scan
from aftereffect.players.rivals.naive import Naive


class HedgeParams(NamedTuple):
    """step: how much of its weight an arm loses with a loss of 1."""

    step: float


@kernel.helper
def shrunk(weight: float, by: float) -> float:
    return max(weight * (1.0 - by), 1e-9)


def size(n_arms: int) -> int:
    return n_arms


def start(params: HedgeParams, n_arms: int, state: kernel.FloatState) -> None:
    for i in range(n_arms):
        state[i] = 1.0 / n_arms


def draw(params: HedgeParams, n_arms: int, state: kernel.FloatState, u: float) -> int:
    return scan(state, n_arms, u)


def update(params: HedgeParams, n_arms: int, state: kernel.FloatState, arm: int, loss: float) -> None:
    state[arm] = shrunk(state[arm], params.step * loss)
    whole = 0.0
    for i in range(n_arms):
        whole += state[i]
    for i in range(n_arms):
        state[i] /= whole


def probabilities(params: HedgeParams, n_arms: int, state: kernel.FloatState, q: kernel.FloatState) -> None:
    for i in range(n_arms):
        q[i] = state[i]


kernel.register(HedgeParams, kernel.BanditKernel(size, start, draw, update, probabilities))


class Hedge(KernelBandit):
    """Shrinks the weight of an arm that costs."""

    def __init__(self, n_arms: int, step: float) -> None:
        super().__init__(n_arms, HedgeParams(step))

    def stability(self) -> float:
        return 1.0

    def regret_bound(self, n: int) -> float:
        return float(n)


class RampParams(NamedTuple):
    """The loss of arm i grows from 0 to 1 with i; half comes at once, half a round later."""

    n_arms: int


def ramp(params: Any, t: int, arm: int, pending: kernel.FloatState, at: int) -> None:
    value = arm / (params.n_arms - 1) if t % 3 else 0.5
    pending[at] += 0.5 * value
    pending[at + 1] += 0.5 * value


kernel.register(RampParams, kernel.LossKernel(ramp))


def test_an_own_base_learns_by_hand() -> None:
    bandit = Hedge(2, 0.5)
    bandit.update(0, 1.0)
    # Weights 1/4 and 1/2.
    np.testing.assert_allclose(bandit.probabilities, [1 / 3, 2 / 3], rtol=1e-15)


@pytest.mark.parametrize("max_delay", [0, 2])
def test_an_own_base_in_every_engine(max_delay: int, make: Any, blocks_agree: Any) -> None:
    player = ae.CompositeLossWrapper(Hedge(3, 0.3), max_delay=max_delay, coins=0.2)
    losses = make("split", 3, max_delay, 2_000)
    exact, blocks, rounds = (
        ae.simulate(player, losses, runs=2, engine=engine, trace=True)
        for engine in ("loop", "blocks", "rounds")
    )
    assert exact.updates.min() > 0
    blocks_agree(exact, blocks)
    blocks_agree(exact, rounds, fed=False)
    assert ae.simulate(player, losses, runs=2).engine == "blocks"


def test_own_losses_in_every_engine(blocks_agree: Any) -> None:
    losses = ae.Losses(RampParams(3), horizon=1_000, max_delay=1, n_arms=3)
    # Arm 0 pays 1/4 in the first round and 1/4 in the second, and so on: 1/2 in all every third round.
    assert losses.arm_totals()[:4, 0].tolist() == [0.25, 0.25, 0.0, 0.25]
    player = ae.CompositeLossWrapper(Hedge(3, 0.3), max_delay=1, coins=0.3)
    exact, blocks, rounds = (
        ae.simulate(player, losses, runs=2, engine=engine, trace=True)
        for engine in ("loop", "blocks", "rounds")
    )
    blocks_agree(exact, blocks)
    blocks_agree(exact, rounds, fed=False)


class FaultParams(NamedTuple):
    """kind: what is wrong with arm 2 in rounds 300 to 302; "high" is 1.6 in two parts."""

    kind: int


HIGH, NEGATIVE, NOT_A_NUMBER, BEYOND, ASSIGNED, FINE = range(6)


def fault(params: Any, t: int, arm: int, pending: kernel.FloatState, at: int) -> None:
    pending[at] += 0.25
    if params.kind == ASSIGNED:
        pending[at] = 0.25
    if arm == 2 and 300 <= t < 303:
        if params.kind == HIGH:
            pending[at] += 0.75
            pending[at + 1] += 0.6
        elif params.kind == NEGATIVE:
            pending[at + 1] -= 1e-12
        elif params.kind == NOT_A_NUMBER:
            pending[at + 1] += np.nan
        elif params.kind == BEYOND:
            pending[at + 2] += 0.5


kernel.register(FaultParams, kernel.LossKernel(fault))
FAULTS = {
    HIGH: r"a part of components\[300, :, 2\] sums to 1\.6; low= and high= set the range",
    NEGATIVE: r"must not be negative .* but components\[300, 1, 2\] is -1e-12",
    NOT_A_NUMBER: r"a part of components\[300, :, 2\] sums to nan",
    BEYOND: r"spread must add to pending\[at\] to pending\[at \+ max_delay\] only, max_delay=1",
    ASSIGNED: "spread must add to pending, .* but that of FaultParams called twice",
}


def faulty(kind: int, max_delay: int = 1) -> ae.Losses:
    return ae.Losses(FaultParams(kind), horizon=1_000, max_delay=max_delay, n_arms=3)


@pytest.mark.parametrize("kind", FAULTS)
def test_wrong_losses_of_ones_own_have_one_outcome_for_every_player_and_engine(kind: int) -> None:
    default, naive = ae.default_player(n_arms=3, max_delay=1), Naive(ae.UCB1(3))
    for player, engines in ((default, ("auto", "loop", "rounds", "blocks")), (naive, ("auto", "loop", "rounds"))):
        for engine in engines:
            with pytest.raises(InvalidLosses, match=FAULTS[kind]):
                ae.simulate(player, faulty(kind), runs=2, engine=engine)


def test_a_sample_of_rounds_is_checked_on_request() -> None:
    losses = faulty(HIGH)
    # Rounds 0, 333, 666 and 999.
    losses.check(rounds=4)
    assert not losses.checked
    with pytest.raises(InvalidLosses, match="sums to 1"):
        losses.check(rounds=1_000)
    with pytest.raises(InvalidArgument, match="rounds must be at most 1000, but got 1001"):
        losses.check(rounds=1_001)


def test_what_is_known_to_be_right() -> None:
    own, known = faulty(FINE), ae.spreads.delayed(np.full((9, 2), 0.5), delays=1)
    assert (own.checked, known.checked) == (False, True)
    own.check()
    assert own.checked


def test_bounds_of_a_base_are_optional() -> None:
    bandit = type("Plain", (KernelBandit,), {})(2, HedgeParams(0.5))
    promised = r"bandit must have stability\(\) and regret_bound\(n\) for a bound, but got Plain"
    player = ae.CompositeLossWrapper(bandit, max_delay=1)
    for call in (bandit.stability, lambda: bandit.regret_bound(9), lambda: player.regret_bound(9)):
        with pytest.raises(InvalidArgument, match=promised):
            call()


# A base that always plays the arm its source says, in a file of its own.
FIXED = """
from typing import NamedTuple
import aftereffect as ae
from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.core import kernel
from choices import chosen

class FixedParams(NamedTuple):
    pass

def size(n_arms): return 1
def start(params, n_arms, state): state[0] = 0.0
def draw(params, n_arms, state, u): return CHOICE
def update(params, n_arms, state, arm, loss): pass
def probabilities(params, n_arms, state, q):
    for i in range(n_arms):
        q[i] = 1.0 if i == CHOICE else 0.0

kernel.register(FixedParams, kernel.BanditKernel(size, start, draw, update, probabilities))

class Fixed(KernelBandit):
    def __init__(self, n_arms): super().__init__(n_arms, FixedParams())
    def stability(self): return 0.0
    def regret_bound(self, n): return float(n)

def play():
    losses = ae.spreads.geometric([[0.0, 1.0]] * 20, half_life=1.0, max_delay=1)
    player = ae.CompositeLossWrapper(Fixed(2), max_delay=1, coins=0.5)
    sim = ae.simulate(player, losses, runs=1, trace=True, threads=1)
    return sim.engine, set(sim.traces[0].arms.tolist())
"""

CHOICES = """
from aftereffect.core import kernel

@kernel.helper
def chosen():
    return CHOICE
"""

PLAY = "from fixed import play; print(*play())"

EDIT = """
import fixed, pathlib
path = pathlib.Path(fixed.__file__)
path.write_text(path.read_text().replace("return 0", "return 1"))
print(*fixed.play())
"""


def write(folder: Path, choice: str, helped: str = "0", name: str = "fixed") -> None:
    (folder / f"{name}.py").write_text(FIXED.replace("CHOICE", choice))
    (folder / "choices.py").write_text(CHOICES.replace("CHOICE", helped))


def test_an_edited_kernel_is_compiled_anew(tmp_path: Path, output: Any) -> None:
    write(tmp_path, "0")
    assert output(PLAY, tmp_path) == "blocks {0}"
    write(tmp_path, "1")
    assert output(PLAY, tmp_path) == "blocks {1}"
    write(tmp_path, "0")
    assert output(PLAY, tmp_path) == "blocks {0}"


def test_an_edited_helper_in_another_file_is_compiled_anew(tmp_path: Path, output: Any) -> None:
    write(tmp_path, "chosen()", "0")
    assert output(PLAY, tmp_path) == "blocks {0}"
    write(tmp_path, "chosen()", "1")
    assert output(PLAY, tmp_path) == "blocks {1}"


def test_a_kernel_edited_after_its_import_leaves_nothing_old_behind(tmp_path: Path, output: Any) -> None:
    # A notebook that imported the module before an edit compiles the old code; others must not find that.
    write(tmp_path, "0", "2")
    assert output(EDIT, tmp_path) == "blocks {0}"
    assert output(PLAY, tmp_path) == "blocks {1}"


def test_a_kernel_may_move_to_another_file(tmp_path: Path, output: Any) -> None:
    write(tmp_path, "0", "3")
    assert output(PLAY, tmp_path) == "blocks {0}"
    (tmp_path / "fixed.py").rename(tmp_path / "moved.py")
    assert output(PLAY.replace("fixed", "moved"), tmp_path) == "blocks {0}"


def test_a_kernel_without_a_source_file(output: Any) -> None:
    # As in a notebook or at the prompt.
    code = CHOICES.replace("CHOICE", "0") + FIXED.replace("CHOICE", "1").replace("from choices import chosen", "")
    assert output(f"{code}\nprint(*play())") == "blocks {1}"


class BrokenParams(NamedTuple):
    """step: as for `HedgeParams`, but the kernel misspells it."""

    step: float


def broken_update(params: Any, n_arms: int, state: kernel.FloatState, arm: int, loss: float) -> None:
    state[arm] -= params.stepp * loss


kernel.register(BrokenParams, kernel.BanditKernel(size, start, draw, broken_update, probabilities))


class Broken(KernelBandit):
    """Cannot be compiled."""

    def __init__(self, n_arms: int, step: float) -> None:
        super().__init__(n_arms, BrokenParams(step))


def test_a_kernel_that_cannot_be_compiled_is_named() -> None:
    """In ask and tell and in the engines, with the function, the file, the line and numba's error as the cause."""
    message = (
        r"the kernel of \S*test_own_kernels\.BrokenParams must be compilable, "
        rf"but \S*test_own_kernels\.py, line {broken_update.__code__.co_firstlineno + 1}, is not: "
        r"Unknown attribute 'stepp' of type BrokenParams"
    )
    losses = ae.CompositeLosses(np.zeros((50, 2, 2)))
    with pytest.raises(ae.InvalidArgument, match=message) as by_hand:
        Broken(2, 0.5).update(0, 1.0)
    player = ae.CompositeLossWrapper(Broken(2, 0.5), max_delay=1, coins=0.5, seed=1)
    with pytest.raises(ae.InvalidArgument, match=message):
        ae.simulate(player, losses, runs=2, seed=0)
    assert type(by_hand.value.__cause__).__name__ == "TypingError"


def test_a_kernel_that_is_not_registered_is_refused() -> None:
    class Params(NamedTuple):
        rate: float

    with pytest.raises(InvalidArgument, match=r"params must be registered .* kernel\.register, but .*Params.* is not"):
        KernelBandit(2, Params(0.1))
