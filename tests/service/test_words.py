"""Words at the edge: what is stored are facts, so a sentence can be reworded without a change to any store."""

import inspect
import json
from typing import Any

import pytest
from tests.service.playing import AT, made

from aftereffect.service import words
from aftereffect.service.experiment import commands
from aftereffect.service.experiment.experiment import Experiment
from aftereffect.service.experiment.learned import Record, learned


def reworded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace every sentence by another."""

    def other(said: Any) -> Any:
        return type(said)(map(other, said)) if isinstance(said, list | tuple) else f"<{said}>"

    for name, function in inspect.getmembers(words, inspect.isfunction):
        if function.__module__ == words.__name__ and not name.startswith("_"):
            monkeypatch.setattr(words, name, lambda *given, _say=function, **named: other(_say(*given, **named)))


def rounds(numbers: range, total: float = 0.5) -> list[commands.Command]:
    return [each for t in numbers for each in (commands.Ask(), commands.Tell(t, total))]


def stored(experiment: Experiment, script: list[commands.Command]) -> list[str]:
    """Return all that is stored of an experiment, as text: the events, the rows and the state."""
    found, rows = [], {}
    for command in script:
        needed = experiment.forgotten(command)
        # Rows with no block to learn from again.
        done = experiment.do(command, AT, None if needed is None else rows[needed] | {"measured": False})
        rows |= {(row["round"], row["unit"]): row for row in done.rows}
        found += [json.dumps(done.event), json.dumps(done.rows)]
    return [*found, json.dumps(experiment.state())]


def spoken(settings: dict[str, Any]) -> list[str]:
    """Return the sentences that are shown of an experiment in its first round."""
    experiment = made(**settings)
    asked, view = experiment.do(commands.Ask(), AT).answer, experiment.view()
    guarantee, seen = view.guarantee, Record([[t % 2] for t in range(9)], [[float(t % 3)] for t in range(9)])
    known = learned("x", experiment.settings, seen, seen, [], 9.0).sentences
    lines = [asked["why"], view.next_decision.words, *known, *view.plan.sentences]
    return [*lines, *guarantee.paragraphs, guarantee.sentence, *view.alarms]


def scripts() -> list[tuple[dict[str, Any], list[commands.Command]]]:
    """Return settings and commands of experiments with each kind of round, report and event."""
    arm = made().do(commands.Ask(), AT).answer["arm"]
    common = [*rounds(range(1, 30)), commands.Ask(), commands.Tell(30, 7.0), commands.Amend(30, 0.25)]
    common += [commands.Amend(2, 0.75), commands.Note(3, "fair"), commands.Away(arm), *rounds(range(31, 50))]
    common += [commands.Back(arm), commands.Ask(), commands.Pause(), commands.Resume(), commands.Tell(50, 0.5)]
    common += rounds(range(51, 60))
    past = [["2026-01-01", AT, [[t % 3, 0.5, 0.25, AT, None]]] for t in range(20)]
    return [
        ({}, [*common, commands.Finish()]),
        ({"player": "paper", "horizon": 1000, "out_of_range": "clip"}, [*common, commands.Finish()]),
        ({"max_delay": 2}, [commands.Inherit("other", past, [[5, 4]], []), *rounds(range(21, 40))]),
    ]


@pytest.mark.parametrize("which", range(3))
def test_rewording_every_sentence_changes_nothing_that_is_stored(monkeypatch: pytest.MonkeyPatch, which: int) -> None:
    settings, script = scripts()[which]
    before, shown = stored(made(**settings), script), spoken(settings)
    reworded(monkeypatch)
    assert stored(made(**settings), script) == before
    # All that is shown is reworded, and so comes from the one module.
    assert [old for old, new in zip(shown, spoken(settings), strict=True) if old == new] == []
