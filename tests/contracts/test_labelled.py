"""The contract of labelled players: order of calls, reports in any order or lost, equal results of the engines."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.rounds import tell_all

from aftereffect.bandits.exp3 import Exp3
from aftereffect.core import kernel
from aftereffect.core.errors import InvalidArgument, InvalidTotal, OutOfTurn
from aftereffect.engines.loop import simulate_loop
from aftereffect.engines.rounds import simulate_rounds
from aftereffect.engines.workload import Workload
from aftereffect.losses.protocol import Losses
from aftereffect.losses.spreads import random_split, randomly_delayed
from aftereffect.losses.tables import Table, iid
from aftereffect.players.labelled.delayed_exp3 import DelayedExp3
from aftereffect.players.labelled.joulani2013 import BOLD, QPMD, DelayedUCB1
from aftereffect.players.labelled.successive_elimination import SuccessiveElimination
from aftereffect.players.labelled.zimmert_seldin import ZimmertSeldin2020
from aftereffect.players.protocol import LabelledPlayer

K, D, T = 3, 4, 600
Make = Callable[..., Any]
MAKERS: dict[str, Make] = {
    "DelayedExp3": lambda **more: DelayedExp3(K, learning_rate=0.05, max_delay=D, **more),
    "BOLD": lambda **more: BOLD(Exp3(K, learning_rate=0.2), max_delay=D, **more),
    "QPMD": lambda **more: QPMD(Exp3(K, learning_rate=0.1), max_delay=D, **more),
    "DelayedUCB1": lambda **more: DelayedUCB1(K, **more),
    "SuccessiveElimination": lambda **more: SuccessiveElimination(K, horizon=T, **more),
    "ZimmertSeldin2020": lambda **more: ZimmertSeldin2020(K, max_delay=D, **more),
    "ZimmertSeldin2020, advanced": lambda **more: ZimmertSeldin2020(K, max_delay=D, tuning="advanced", **more),
}
BOUNDED = [name for name in MAKERS if name not in ("DelayedUCB1", "SuccessiveElimination")]
REWARDS = {"direction": "maximize", "low": -0.5, "high": 1.5}


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Make:
    return MAKERS[request.param]


def split_losses() -> Losses:
    return random_split(iid(T, means=[0.3, 0.5, 0.6], seed=1), max_delay=D, seed=2)


def late_rewards() -> Losses:
    drawn = np.random.default_rng(3).random((T, K)) * 2.0 - 0.5
    return randomly_delayed(Table(drawn, low=-0.5, high=1.5), max_delay=D, seed=4, per_arm=True, direction="maximize")


def plan_of(player: Any, losses: Losses, runs: int, threads: int = 1) -> Workload:
    points = np.array([1, 511, 513, losses.horizon], dtype=np.int64)
    gaps = np.arange(losses.n_arms) / 8.0
    return Workload(player, losses, 11, 5, runs, points, gaps, True, threads, lambda rounds: None)


def arrivals_of(losses: Losses) -> Callable[[list[int]], list[tuple[int, float]]]:
    """Return a function that computes the reports at the end of the last round of `arms` from the components."""
    components = losses.components()

    def told(arms: list[int]) -> list[tuple[int, float]]:
        found = []
        for played in range(max(1, len(arms) - losses.max_delay), len(arms) + 1):
            parts = components[played - 1, :, arms[played - 1]].tolist()
            last = max((s for s, part in enumerate(parts) if part != 0.0), default=0)
            if played + last == len(arms):
                found.append((played, sum(parts[: last + 1])))
        return found

    return told


def play(player: Any, losses: Losses, arms: list[int], rounds: int) -> list[Any]:
    """Play further rounds, with the reports of each round in reverse order; return the results of `tell`."""
    told = arrivals_of(losses)
    played = []
    for _ in range(rounds):
        arms.append(player.ask())
        played.append(player.tell(reversed(told(arms))))
    return played


def test_is_a_labelled_player(make: Make) -> None:
    player = make(seed=0)
    assert isinstance(player, LabelledPlayer)
    assert kernel.PLAYERS[type(player.kernel())].labelled
    assert repr(player).startswith(type(player).__name__ + "(")


def test_the_interactive_player_is_a_run_and_charged_its_totals(make: Make) -> None:
    losses = late_rewards()
    plan = plan_of(make(seed=0, **REWARDS), losses, 2)
    outcome = simulate_rounds(plan, plan.player.kernel())
    for run in range(2):
        arms: list[int] = []
        played = play(plan.player.fresh(11, 5 + run), losses, arms, T)
        np.testing.assert_allclose(outcome.losses[run, -1], losses.totals(arms).sum(), rtol=1e-12)
        np.testing.assert_allclose(outcome.pseudo[run, -1], plan.gaps[arms].sum(), rtol=1e-12)
        assert outcome.updates[run] == sum(told.updates for told in played)
        assert [told.arm for told in played] == arms
        drawn = [told.round for told in played if told.draw]
        np.testing.assert_array_equal(outcome.traces[run].starts, drawn)


def test_run_0_is_the_player_with_that_seed(make: Make) -> None:
    losses = split_losses()
    arms: list[list[int]] = [[], []]
    play(make(seed=9), losses, arms[0], 100)
    play(make(seed=1).fresh(9), losses, arms[1], 100)
    assert arms[0] == arms[1]


def test_asks_the_same_arm_until_told(make: Make) -> None:
    player = make(seed=6)
    arm = player.ask()
    state = player.state()
    assert [player.ask() for _ in range(3)] == [arm] * 3
    assert player.state() == state
    assert player.outstanding == (1,)
    assert player.tell([(1, 0.5)])[:2] == (1, arm)
    assert player.outstanding == ()


def test_nothing_is_learned_from_lost_reports(make: Make) -> None:
    player = make(seed=7)
    for t in range(1, 30):
        player.ask()
        told = player.tell([(t, None)])
        assert (told.updates, told.fed_loss) == (0, None)
    if hasattr(player, "probabilities"):
        np.testing.assert_allclose(player.probabilities, np.full(K, 1 / K), rtol=1e-12)
    player.ask()
    assert player.tell([(30, 0.25)])[3:] == (1, 0.25)


@pytest.mark.parametrize(("arrivals", "error", "message"), [
    ([(4, 0.5)], InvalidArgument, "round must be at most 3, but got 4"),
    ([(0, 0.5)], InvalidArgument, "round must be at least 1, but got 0"),
    ([(2.0, 0.5)], InvalidArgument, "round must be an int, but got 2.0"),
    ([(2, 0.5), (2, 0.5)], OutOfTurn, "round must be one that is not reported yet, but got 2"),
    ([(1, 0.5)], OutOfTurn, "round must be one that is not reported yet, but got 1"),
    ([(3, 0.5), (2, 1.5)], InvalidTotal, "but got 1.5, in the report of round 2"),
    ([(2, float("nan"))], InvalidTotal, "finite number, but got nan, in the report of round 2"),
    ([(2, "0.5")], InvalidTotal, "loss must be a finite number, but got '0.5'"),
    (0.5, InvalidArgument, "arrivals must be pairs of a round and its loss, but got 0.5"),
    ([0.5], InvalidArgument, r"arrivals must be pairs of a round and its loss, but got \[0.5\]"),
])
def test_bad_reports_change_nothing(make: Make, arrivals: Any, error: type[Exception], message: str) -> None:
    player = make(seed=8)
    tell_all(player, ([(1, 0.25)], []))
    player.ask()
    state = player.state()
    with pytest.raises(error, match=message):
        player.tell(arrivals)
    assert player.state() == state


def test_turns_are_kept(make: Make) -> None:
    player = make(seed=8)
    with pytest.raises(OutOfTurn, match="tell must follow ask, but no round is open"):
        player.tell([])
    player.ask()
    with pytest.raises(InvalidArgument, match="player must be unplayed to be copied, but it is in round 1"):
        player.fresh(0)


@pytest.mark.parametrize("name", BOUNDED)
def test_a_report_that_is_overdue_is_missed(name: str) -> None:
    player = MAKERS[name](seed=9)
    tell_all(player, [[]] * D)
    player.ask()
    message = "within max_delay=4 rounds .None: lost., but at the end of round 5 that of round 1 is missing"
    with pytest.raises(OutOfTurn, match=message):
        player.tell([(2, 0.5)])
    assert player.tell([(1, None), (2, 0.5)]).round == D + 1


@pytest.mark.parametrize("name", BOUNDED)
def test_losses_later_than_max_delay_are_refused(name: str) -> None:
    player = MAKERS[name](seed=0)
    losses = random_split(np.full((5, K), 0.5), max_delay=D + 1, seed=0)
    plan = plan_of(player, losses, 1)
    for simulate in (lambda: simulate_rounds(plan, player.kernel()), lambda: simulate_loop(plan)):
        with pytest.raises(InvalidArgument, match="at least the max_delay of losses, 5, but got 4"):
            simulate()


def test_losses_of_a_wider_range_are_refused(make: Make) -> None:
    player = make(seed=0, direction="maximize")
    with pytest.raises(InvalidArgument, match=r"covers that of losses, \[-0.5, 1.5\], but got \[0, 1\]"):
        simulate_rounds(plan_of(player, late_rewards(), 1), player.kernel())
