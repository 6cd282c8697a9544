"""The contract of `Panel`: which players it accepts; it is saved, copied and restored bit for bit."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.contracts import player_kit, saving_kit
from tests.contracts.kits import refused
from tests.contracts.test_bandits import BANDITS, HedgedLeader
from tests.contracts.test_players import COINS, REWARDS

import aftereffect as ae
from aftereffect.core import saved


class Averaging(HedgedLeader):
    """A base in plain Python with averaged updates, as a panel needs."""

    def update_many(self, arms: Any, losses: Any) -> None:
        q = self.probabilities
        for arm, loss in zip(arms, losses, strict=True):
            self._sums[arm] += loss / (len(arms) * q[arm])

    def state(self) -> dict[str, Any]:
        return saved.seal("Averaging", {"sums": self._sums.tolist()})

    @classmethod
    def from_state(cls, state: Any) -> Any:
        twin = cls(len(state["sums"]))
        twin._sums[:] = saved.unseal(state, "Averaging", ["sums"])["sums"]
        return twin


BASES: dict[str, Callable[[], Any]] = {
    "tsallis": BANDITS["tsallis"].make,
    "exp3": BANDITS["exp3"].make,
    "adaptive": BANDITS["adaptive"].make,
    "plain Python": lambda: Averaging(3),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "d=0": {"max_delay": 0, "coins": 1.0},
    "d=2": {"max_delay": 2, "coins": 0.2},
    "given coins": {"max_delay": 2, "coins": COINS},
    "rewards": {"max_delay": 1, "coins": 0.3, "out_of_range": "clip", **REWARDS},
}
ROWS = [(base, settings, units) for base in ("tsallis", "coin-clean") for settings in SETTINGS for units in (1, 3)]
ROWS += [(base, "d=2", 3) for base in BASES if base != "tsallis"]
each_row = pytest.mark.parametrize(("base", "settings", "units"), ROWS)


def make(base: str, settings: str, units: int, seed: int | None = 7) -> ae.Panel:
    if base == "coin-clean":
        return ae.Panel(ae.CoinCleanWrapper(BASES["adaptive"](), seed=seed, **SETTINGS[settings]), n_units=units)
    return ae.Panel(ae.CompositeLossWrapper(BASES[base](), seed=seed, **SETTINGS[settings]), n_units=units)


CASES = (
    player_kit.makes_fresh_copies,
    saving_kit.goes_on_from_any_state,
    saving_kit.copies_go_on_alike_and_share_nothing,
    saving_kit.a_state_is_a_snapshot,
)


@each_row
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_contract(case: player_kit.PlayerCase, base: str, settings: str, units: int) -> None:
    case(player_kit.PlayerRow(lambda seed: make(base, settings, units, seed)))


def test_numpy_numbers_are_saved_as_plain_ones() -> None:
    panel = make("tsallis", "d=2", 3)
    twin = ae.Panel(make("tsallis", "d=2", 1).player, n_units=np.int64(3))
    assert json.dumps(twin.state()) == json.dumps(panel.state())
    assert panel.state()["inside"] == panel.player.state()


@each_row
def test_altered_states_are_refused(base: str, settings: str, units: int) -> None:
    panel = make(base, settings, units)
    player_kit.play(panel, 20)
    state = panel.state()
    fields = {name: value for name, value in state.items() if name not in ("kind", "version", "digest")}
    inside = fields["inside"]

    def sealed(**changes: object) -> dict[str, object]:
        own = {name: value for name, value in inside.items() if name not in ("kind", "version", "digest")}
        return saved.seal(inside["kind"], own | changes)

    others = (
        None,
        panel.player.bandit.state(),
        ae.Naive(ae.Exp3(2, learning_rate=1.0)).state(),
        inside | {"round": 1},
        state,
        sealed(arms=[99] * units),
        sealed(arms=[0] * (units + 1)),
        sealed(arms=[], windows=[]),
        sealed(windows=[{}] * units),
    )
    for other in others:
        bad = saved.seal("Panel", {"inside": other})
        refused(lambda bad=bad: ae.restore(bad, [Averaging]), ae.InvalidState)
    bare = {name: value for name, value in state.items() if name != "inside"}
    message = "state of kind 'Panel' must have the field 'inside', but it is missing"
    assert refused(lambda: ae.restore(bare), ae.InvalidState) == message


def test_whom_it_takes() -> None:
    class Another(ae.CompositeLossWrapper):
        pass

    def wrapper(bandit: Any, cls: Any = ae.CompositeLossWrapper) -> Any:
        return cls(bandit, max_delay=1, coins=0.5, seed=0)

    played = wrapper(ae.Exp3(2, learning_rate=0.1))
    played.ask()
    many = "to be shared by units, but"
    whom = "player must be one of CompositeLossWrapper, CoinCleanWrapper, AdvisedWrapper, ABTest, LagPlayer"
    cases: list[tuple[Any, Any, str]] = [
        (ae.Exp3(2, learning_rate=0.1), 2, f"{whom}, but got Exp3(n_arms=2, learning_rate=0.1)"),
        (wrapper(ae.Exp3(2, learning_rate=0.1), Another), 2, f"{whom}, but got "),
        (played, 2, f"player must be unplayed {many} it is in round 1"),
        (wrapper(ae.UCB1(2)), 2, f"bandit must have averaged updates, an update_many in its kernel, {many} UCB1("),
        (wrapper(HedgedLeader(2)), 2, "bandit must have averaged updates, a method update_many(arms, losses), "),
        (wrapper(ae.Exp3(2, learning_rate=0.1)), 0, "n_units must be at least 1, but got 0"),
        (wrapper(ae.Exp3(2, learning_rate=0.1)), 1.5, "n_units must be an int, but got 1.5"),
        (wrapper(ae.Exp3(2, learning_rate=0.1)), True, "n_units must be an int, but got True"),
    ]
    for player, units, message in cases:
        found = refused(lambda player=player, units=units: ae.Panel(player, n_units=units), ae.InvalidArgument)
        assert found.startswith(message)


def test_a_player_without_blocks_is_not_amended_by_its_panel() -> None:
    panel = ae.Panel(ae.LagPlayer(2, max_lag=1, seed=1), n_units=2)
    panel.ask()
    panel.tell([1.0, 2.0])
    for method, call in (
        ("amend", lambda: panel.amend(1, 0.5, 0)),
        ("correct", lambda: panel.correct(unit=0, units=2, arm=0, measured=1, was=1.0, now=0.5)),
    ):
        message = refused(call, ae.InvalidArgument)
        assert message.startswith(f"player must be a wrapper to {method} a panel's totals, but got LagPlayer(")
        assert message.endswith("it has a correct of its own")


def test_says_what_it_is() -> None:
    panel = make("exp3", "d=2", 3)
    assert repr(panel) == f"Panel({panel.player!r}, n_units=3)"
    assert (panel.n_units, panel.n_arms, panel.max_delay, panel.block_start, panel.rounds_played) == (3, 4, 2, 1, 0)
    panel.ask()
    assert panel.rounds_played == 0
    panel.tell([0.5, None, 0.5])
    assert panel.rounds_played == 1
