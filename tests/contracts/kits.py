"""The contract kit of base algorithms (Section 3): test cases that every Bandit must pass, including users' own.

A case is a function of a row, which has a factory and flags for the properties in which bandits may differ. To test a
class, add one line to the table in `test_bandits.py`; to test a further property of all classes, add one function here.
`player_kit.py` is the kit for players.
"""

import copy
import json
import math
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import aftereffect as ae
from aftereffect.core import kernel, random


class BanditRow(NamedTuple):
    """A factory of unplayed bandits, and their properties. The cases check each flag, whether it is True or False.

    certain: the bandit is deterministic and breaks ties by the lowest number. fading: an update changes the weight of
    older losses, or counts the play, so that even a loss of 0 changes the state. exact: how far probabilities may
    depend on the order of the arms.
    """

    make: Callable[[], Any]
    certain: bool = False
    fading: bool = False
    exact: float = 1e-12


BanditCase = Callable[[BanditRow], None]
BANDIT_KIT: list[BanditCase] = []

NAN, INF = math.nan, math.inf
BAD_LOSSES: tuple[Any, ...] = (-0.1, 1.0 + 1e-12, NAN, INF, -INF, "0.5", None, True, 1j, [0.5])
BAD_ARMS: tuple[Any, ...] = (-1, 10_000, 0.0, "0", None, True, [0])


def bandit_case(case: BanditCase) -> BanditCase:
    BANDIT_KIT.append(case)
    return case


def refused(call: Callable[[], Any], error: type[Exception] = ae.AftereffectError) -> str:
    """Return the message of the error that `call` must raise."""
    try:
        call()
    except error as found:
        return str(found)
    raise AssertionError("nothing was raised")


def taught(bandit: Any, updates: int, seed: int = 0) -> Any:
    """Feed a bandit random losses of arms drawn from its distribution."""
    rng = np.random.default_rng(seed)
    for _ in range(updates):
        q = bandit.probabilities
        bandit.update(int(rng.choice(bandit.n_arms, p=q / q.sum())), float(rng.random()))
    return bandit


def many_updates(params: Any, n_arms: int, state: Any, losses: Any, uniforms: Any, updates: int) -> None:
    """Draw arms and feed their losses, in compiled code."""
    for n in range(updates):
        arm = kernel.bandit_draw(params, n_arms, state, uniforms[n % len(uniforms)])
        kernel.bandit_update(params, n_arms, state, arm, losses[n % len(losses), arm])


def total_at(t: int, arm: int) -> float:
    """Return a total in [0, 1/2) that depends on round and arm, at most 4/11 in round 1 of three arms."""
    return ((7 * t + 3 * arm + 1) % 11) / 22


@bandit_case
def has_the_protocol(row: BanditRow) -> None:
    bandit = row.make()
    assert isinstance(bandit, ae.Bandit)
    assert type(bandit.n_arms) is int
    assert bandit.n_arms >= 2
    assert type(bandit).__name__ in repr(bandit)


@bandit_case
def starts_impartial(row: BanditRow) -> None:
    bandit = row.make()
    if row.certain:
        assert bandit.probabilities.tolist() == [1.0] + [0.0] * (bandit.n_arms - 1)
    else:
        assert np.abs(bandit.probabilities * bandit.n_arms - 1.0).max() <= 1e-15


@bandit_case
def stays_a_distribution(row: BanditRow) -> None:
    bandit = row.make()
    for n in range(60):
        taught(bandit, 5, seed=n)
        q = bandit.probabilities
        assert q.shape == (bandit.n_arms,)
        assert q.dtype == np.float64
        assert q.min() >= 0.0
        assert abs(math.fsum(q) - 1.0) <= 1e-12
        assert not row.certain or sorted(q)[-2:] == [0.0, 1.0]


@bandit_case
def changes_only_when_fed(row: BanditRow) -> None:
    bandit = taught(row.make(), 10)
    q = bandit.probabilities
    kept = q.copy()
    bandit.probabilities[:] = 7.0
    bandit.stability()
    bandit.regret_bound(5)
    assert (bandit.probabilities == kept).all()
    bandit.update(int(q.argmax()), 1.0)
    assert (q == kept).all(), "an array that was handed out must not change"


@bandit_case
def a_loss_never_helps_its_arm(row: BanditRow) -> None:
    bandit = row.make()
    for n in range(40):
        arm = n % bandit.n_arms
        before = bandit.probabilities
        if before[arm] == 0.0:
            continue
        bandit.update(arm, 0.5)
        after = bandit.probabilities
        # If the bandit predicted this loss, only rounding errors change the distribution.
        assert after[arm] <= before[arm] + (1e-15 if row.fading else 0.0)
        others = np.arange(bandit.n_arms) != arm
        # With fading, the distribution also becomes more even, so that good arms may lose probability.
        assert row.fading or (after[others] >= before[others] - 1e-15).all()


@bandit_case
def a_loss_of_zero_teaches_nothing_but_time(row: BanditRow) -> None:
    bandit = taught(row.make(), 10)
    before, q = bandit.state(), bandit.probabilities
    bandit.update(int(q.argmax()), 0.0)
    assert (bandit.state() != before) is row.fading
    assert row.fading or (bandit.probabilities == q).all()


@bandit_case
def knows_no_arm_by_name(row: BanditRow) -> None:
    plain, turned = row.make(), row.make()
    last = plain.n_arms - 1
    if row.certain:  # ties go to the first arm, so the last cannot have been played
        assert refused(lambda: turned.update(last, 0.5)).startswith("arm must have positive probability")
        return
    for n in range(30):
        arm = int(plain.probabilities.argmax()) if n % 3 else int(plain.probabilities.argmin())
        if plain.probabilities[arm] == 0.0:
            continue
        loss = ((5 * n) % 7) / 7
        plain.update(arm, loss)
        turned.update(last - arm, loss)
        assert np.abs(plain.probabilities - turned.probabilities[::-1]).max() <= row.exact


@bandit_case
def takes_numpy_numbers(row: BanditRow) -> None:
    a, b = row.make(), row.make()
    arm = b.probabilities.argmax()
    assert isinstance(arm, np.int64)
    a.update(arm, np.float64(0.5))
    b.update(int(arm), 0.5)
    assert (a.probabilities == b.probabilities).all()


@bandit_case
def bad_input_changes_nothing(row: BanditRow) -> None:
    bandit = taught(row.make(), 10)
    before = bandit.state()
    arm = int(bandit.probabilities.argmax())
    for bad in BAD_LOSSES:
        message = refused(lambda bad=bad: bandit.update(arm, bad), ae.InvalidArgument)
        assert message.startswith("loss must be "), message
        assert bandit.state() == before
    for bad in BAD_ARMS:
        message = refused(lambda bad=bad: bandit.update(bad, 0.5), ae.InvalidArgument)
        assert message.startswith("arm must be "), message
        assert bandit.state() == before


@bandit_case
def names_the_rounds_of_its_bound(row: BanditRow) -> None:
    bandit = row.make()
    for bad in (-1, 1.5, "3", None):
        message = refused(lambda bad=bad: bandit.regret_bound(bad), ae.InvalidArgument)
        assert message.startswith("n must be "), message


@bandit_case
def states_bounds(row: BanditRow) -> None:
    bandit = row.make()
    assert bandit.stability() >= 0.0
    bounds = [bandit.regret_bound(n) for n in (0, 1, 10, 1000)]
    assert bounds == sorted(bounds)
    assert bounds[0] >= 0.0


@bandit_case
def goes_on_from_its_state(row: BanditRow) -> None:
    bandit = taught(row.make(), 25)
    text = json.dumps(bandit.state(), allow_nan=False)
    twin = ae.restore(json.loads(text), classes=[type(bandit)])
    assert type(twin) is type(bandit)
    assert twin.state() == bandit.state()
    for part in (bandit, twin):
        taught(part, 25, seed=1)
    assert twin.state() == bandit.state()
    assert json.loads(text) != bandit.state() or bandit.stability() == 0.0


@bandit_case
def copies_go_on_alike_and_share_nothing(row: BanditRow) -> None:
    bandit = taught(row.make(), 10)
    before = bandit.state()
    twins = [copy.deepcopy(bandit), pickle.loads(pickle.dumps(bandit))]
    for twin in twins:
        assert type(twin) is type(bandit)
        assert twin.state() == before
        taught(twin, 10, seed=3)
        assert bandit.state() == before
    taught(bandit, 10, seed=3)
    assert [twin.state() for twin in twins] == [bandit.state()] * 2


@bandit_case
def plays_under_the_wrapper_as_alone(row: BanditRow) -> None:
    # With d = 0 and coins that are always 1, Algorithm 1 plays exactly as its base.
    alone, arms = row.make(), random.stream(11, 0, random.ARMS)
    player = ae.CompositeLossWrapper(row.make(), max_delay=0, coins=1.0, seed=11)
    for t in range(1, 101):
        arm = drawn(alone, arms)
        assert player.ask() == arm
        loss = total_at(t, arm)
        assert player.tell(loss) == ae.Round(t, arm, True, True, loss)
        alone.update(arm, loss)
        assert (player.probabilities == alone.probabilities).all()


def drawn(bandit: Any, stream: NDArray[np.uint64]) -> int:
    """Draw an arm as a player does: with `draw` if there is one, else by inversion of the cumulative distribution."""
    if hasattr(bandit, "draw"):
        return int(bandit.draw(stream))
    from aftereffect.core.jit import compiled

    u = compiled(random.uniform)(stream)
    return int(np.searchsorted(np.cumsum(bandit.probabilities)[:-1], u, side="right"))
