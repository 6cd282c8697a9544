"""Saving and restoring: bit for bit, also in another process; the errors for invalid states."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.test_bandits import HedgedLeader
from tests.rounds import tell_all

import aftereffect as ae
from aftereffect.core import saved
from aftereffect.players import registry
from aftereffect.players.wrapper.wrapper import BlockWrapper

COINS = [t % 7 in (0, 5) for t in range(400)]


def player(name: str) -> Any:
    if name == "naive":
        return ae.Naive(ae.TsallisFTRL(3, learning_rate=1.0), seed=5)
    if name == "own":
        return ae.CompositeLossWrapper(HedgedLeader(3), max_delay=2, coins=0.2, seed=5, out_of_range="void")
    coins = COINS if name == "given" else 0.15
    base = ae.Exp3(3, learning_rate=0.5) if name == "rewards" else ae.TsallisFTRL(3, learning_rate=1.0)
    settings: dict[str, Any] = {"direction": "maximize", "low": -0.1} if name == "rewards" else {}
    return ae.CompositeLossWrapper(base, max_delay=2, coins=coins, seed=2**70, out_of_range="void", **settings)


NAMES = ["drawn", "given", "rewards", "own", "naive"]


def act(p: Any, t: int) -> Any:
    """Play round t: every ninth report is missing, some come late, some are corrected, one is impossible."""
    arm = p.ask()
    played = p.tell(None if t % 9 == 0 else 40.0 if t == 50 else ((5 * t + 2 * arm) % 17) / 10)
    if isinstance(p, BlockWrapper) and not played.update and t % 9 in (0, 4):
        p.amend(t, 0.1 * (t % 3))
    return played


@pytest.mark.parametrize("name", NAMES)
def test_saved_and_restored_after_every_call(name: str) -> None:
    straight, broken = player(name), player(name)
    for t in range(1, 200):
        for _ in range(2):
            text = json.dumps(broken.state(), allow_nan=False)
            broken = ae.restore(json.loads(text), classes=[HedgedLeader])
            assert json.dumps(broken.state()) == text
            broken.ask()
        assert act(straight, t) == act(broken, t)
        assert straight.state() == broken.state()


def test_in_another_process(tmp_path: Path) -> None:
    here = [player(name) for name in NAMES if name != "own"]
    for each in here:
        for t in range(1, 41):
            act(each, t)
        each.ask()
    (tmp_path / "states.json").write_text(json.dumps([each.state() for each in here]))
    program = (
        "import json, sys, aftereffect as ae\n"
        "players = [ae.restore(state) for state in json.load(open(sys.argv[1]))]\n"
        "rounds = [(p.ask(), p.tell(t % 4 / 8)) for p in players for t in range(300)]\n"
        "print(json.dumps([rounds, [p.state() for p in players]]))"
    )
    source = str(Path(ae.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", program, str(tmp_path / "states.json")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    rounds = [(each.ask(), each.tell(t % 4 / 8)) for each in here for t in range(300)]
    assert json.loads(done.stdout) == json.loads(json.dumps([rounds, [each.state() for each in here]]))


def test_a_state_is_plain_and_named() -> None:
    state = player("drawn").state()
    assert (state["kind"], state["version"], len(state["digest"])) == ("CompositeLossWrapper", 2, 64)
    assert state["inside"]["kind"] == "TsallisFTRL"
    assert json.loads(json.dumps(state)) == state


def test_what_cannot_be_saved() -> None:
    class Forgetful:
        n_arms, probabilities, update, stability, regret_bound = 2, (0.5, 0.5), None, None, None

        def __repr__(self) -> str:
            return "Forgetful()"

    base: Any = Forgetful()
    with pytest.raises(ae.InvalidArgument) as error:
        ae.Naive(base, seed=0).state()
    assert str(error.value) == "bandit must have a method state() to be saved, but got Forgetful()"


def resealed(state: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a state with changed fields and a valid digest."""
    fields = {k: v for k, v in state.items() if k not in ("kind", "version", "digest")}
    return saved.seal(state["kind"], fields | changes)


GOOD = player("drawn").state()
EXP3 = ae.Exp3(2, learning_rate=0.5).state()
PLAYERS = {entry.player.__name__ for entry in registry.PLAYERS.values()} | {"AdvisedWrapper", "Panel"}
KINDS = sorted([*PLAYERS, *(cls.__name__ for cls in registry.BANDITS)])
ALTERED = "digest must match the fields (an altered state?), but got "
HELD = "state must hold what state() saved, but "


def without(state: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in state.items() if key != name}


UNKNOWN = f"kind must be one of {KINDS} or given in classes, but got"
VERSION = "state must have version 2, the only one supported, but got"
BROKEN: list[tuple[str, Any, str]] = [
    ("not a dict", 5, "state must be a dict made by state(), but got 5"),
    ("empty", {}, "state must have a field 'kind' with a name, but got None"),
    ("unknown kind", {**GOOD, "kind": "Oracle"}, f"{UNKNOWN} 'Oracle'"),
    ("unknown base", resealed(GOOD, inside=HedgedLeader(3).state()), f"{UNKNOWN} 'HedgedLeader'"),
    ("version 1", {**GOOD, "version": 1}, f"{VERSION} 1"),
    ("no version", without(GOOD, "version"), f"{VERSION} None"),
    ("missing", without(GOOD, "round"), "'CompositeLossWrapper' must have the field 'round', but it is missing"),
    ("no base", without(GOOD, "inside"), "'CompositeLossWrapper' must have the field 'inside', but it is missing"),
    ("no digest", without(EXP3, "digest"), "'Exp3' must have the field 'digest', but it is missing"),
    ("extra", {**GOOD, "mood": 1}, "'CompositeLossWrapper' must not have the field 'mood', but it is present"),
    ("altered", {**GOOD, "round": 3}, ALTERED + repr(GOOD["digest"])),
    ("altered base", {**EXP3, "settings": {"learning_rate": 0.6}}, ALTERED + repr(EXP3["digest"])),
    ("base is a list", resealed(GOOD, inside=[1]), "but got [1], without n_arms, probabilities, update"),
    ("rate below 0", resealed(EXP3, settings={"learning_rate": -1.0}), f"{HELD}learning_rate must be greater than 0"),
    ("no rate", resealed(EXP3, settings={}), "settings must be the arguments of Exp3, but got {}"),
    ("short numbers", resealed(EXP3, numbers=[1.0]), "numbers must be a list of 6 numbers, but got [1.0]"),
    ("settings is text", resealed(EXP3, settings="0.5"), "settings must be the arguments of Exp3, but got '0.5'"),
    ("round is text", resealed(GOOD, round="3"), "round must be of type int, but got '3'"),
    ("open is a number", resealed(GOOD, open=1), "open must be of type bool, but got 1"),
    ("seed is a number", resealed(GOOD, seed=7), "seed must be a whole number in hexadecimal, but got 7"),
    ("bad stream", resealed(GOOD, arm_stream=["g"]), "arm_stream must be a list of 4 hexadecimal words, but got ['g']"),
    ("coins", resealed(GOOD, coins={}), "coins must be a bias with its position or a sequence, but got {}"),
    ("a coin", resealed(GOOD, coins={"sequence": "012"}), f"{HELD}coins must be 0 or 1 in every round, but in round 3"),
    ("window", resealed(GOOD, windows=[3]), "window must have first, totals and counts, but got 3"),
    ("no windows", resealed(GOOD, windows=[]), "arms and windows must be lists, one entry per unit, but got"),
    (
        *("totals", resealed(GOOD, windows=[{"first": 1, "totals": ["0"], "counts": [0] * 4}])),
        "window.totals must be a list of floats or nulls, but got ['0']",
    ),
]


@pytest.mark.parametrize(("state", "message"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_states_that_cannot_be_restored(state: Any, message: str) -> None:
    with pytest.raises(ae.InvalidState) as error:
        ae.restore(state)
    assert message in str(error.value)


def test_a_player_of_the_users_own_is_restored():
    class Mine(ae.rivals.BlockUCB):
        pass

    player = Mine(2, max_delay=1, width=0.3, seed=7)
    tell_all(player, (0.0, 0.25, 0.5, 0.5, 0.0))
    twin = ae.restore(json.loads(json.dumps(player.state())), classes=[Mine])
    assert isinstance(twin, Mine)
    assert all(twin.ask() == player.ask() and twin.tell(0.1) == player.tell(0.1) for _ in range(20))
    with pytest.raises(ae.InvalidState, match=r"or given in classes, but got 'Mine'"):
        ae.restore(player.state())
