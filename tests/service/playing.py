"""An experiment to try things on, and ways to play it."""

from typing import Any

import pytest

import aftereffect as ae
from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Ask, Command, Tell
from aftereffect.service.experiment.experiment import Experiment
from aftereffect.service.settings import checked_settings
from aftereffect.service.store.store import Store

AT = "2026-03-01T08:00:00+00:00"
ARMS = ["red", "green", "blue"]


def made(**changes: Any) -> Experiment:
    return Experiment(checked_settings({"name": "x", "arms": ARMS, "high": 1.0, "max_delay": 1, "seed": 7, **changes}))


def learner(experiment: Experiment) -> ae.Panel:
    """Return a copy of the learner inside."""
    return ae.restore(experiment.state()["panel"], sealed=False)


def refused(
    experiment: Experiment, command: Command, code: str, words: str, recalled: dict[str, Any] | None = None
) -> Refused:
    """Carry out a command that must be refused, and see that nothing has changed."""
    before = experiment.state()["digest"]
    with pytest.raises(Refused) as caught:
        experiment.do(command, AT, recalled)
    assert (caught.value.code, caught.value.problem()["code"]) == (code, code)
    assert words in caught.value.detail
    assert experiment.state()["digest"] == before
    return caught.value


def repeated(experiment: Experiment, command: Command, recalled: dict[str, Any] | None = None) -> dict[str, Any]:
    """Carry out a command that is a repetition, and see that nothing has changed."""
    before = experiment.state()["digest"]
    done = experiment.do(command, "later", recalled)
    assert (done.event, done.rows, experiment.state()["digest"]) == (None, [], before)
    return done.answer


def play(experiment: Experiment, total: float | None = 0.5) -> dict[str, Any]:
    """Play one round of an experiment with one unit."""
    asked = experiment.do(Ask(), AT).answer
    return experiment.do(Tell(asked["round"], total), AT).answer


def play_in(store: Store, identity: str, rounds: int, total: Any = lambda number, arm: number % 4 / 4) -> list[str]:
    """Play rounds of an experiment with one unit in a store; return the arms."""
    arms = []
    for _ in range(rounds):
        asked = store.perform(identity, Ask())
        arms.append(asked["arm"])
        store.perform(identity, Tell(asked["round"], total(asked["round"], asked["arm"])))
    return arms


def to_open_block(experiment: Experiment, length: int = 2) -> int:
    """Play until a block has begun and `length` of its rounds are told; return the first."""
    while True:
        told = play(experiment)
        if told["draw"] and not told["update"]:
            start = int(told["round"])
            if all(not play(experiment)["update"] for _ in range(length - 1)):
                return start
