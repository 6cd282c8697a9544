"""The registry of players: complete, readable without building players, sufficient to play, save and restore them."""

import inspect
from typing import Any

import pytest

import aftereffect as ae
from aftereffect.players import registry
from aftereffect.players.registry import COMPARED, PLAYERS, Entry, Problem

PROBLEM = Problem(3, 1, 200, 0.5, 0.25, [0.5, 0.5])
ROWS = [pytest.param(name, settings, id=PLAYERS[name].label(settings)) for name, settings in COMPARED]


def test_every_public_player_is_registered() -> None:
    def players(module: Any) -> set[type]:
        found = (getattr(module, name) for name in module.__all__)
        return {thing for thing in found if inspect.isclass(thing) and hasattr(thing, "fresh") and "tell" in dir(thing)}

    # Panel is not registered: it is constructed from a player.
    public = players(ae) | players(ae.rivals) | players(ae.labelled)
    assert public - {ae.Panel} == {entry.player for entry in PLAYERS.values()}
    for name, entry in PLAYERS.items():
        assert any(hasattr(module, name) for module in (ae, ae.rivals, ae.labelled))
        assert name == entry.name
    assert {name for name, _ in COMPARED} == set(PLAYERS)


@pytest.mark.parametrize(("name", "settings"), ROWS)
def test_every_player_is_built_plays_and_is_restored(name: str, settings: dict[str, Any]) -> None:
    entry = registry.find(name)
    player = entry.build(PROBLEM, seed=4, **settings)
    assert type(player) is entry.player
    assert registry.label_of(player) == entry.label(settings)
    assert isinstance(player, ae.labelled.LabelledPlayer) == entry.labelled
    twin = entry.build(PROBLEM, seed=4, **settings)
    for t in range(1, 60):
        arm = player.ask()
        assert arm == twin.ask()
        report = [(t, 0.25 * arm)] if entry.labelled else 0.25 * arm
        assert player.tell(report) == twin.tell(report)
        twin = ae.restore(twin.state())
    assert twin.state() == player.state()


def test_labels_are_told_apart() -> None:
    labels = [PLAYERS[name].label(settings) for name, settings in COMPARED]
    assert len(set(labels)) == len(labels)


def test_labels_and_needs_follow_the_settings() -> None:
    wrapper = registry.find("CompositeLossWrapper")
    assert wrapper.label() == "wrapper, Tsallis FTRL"
    assert wrapper.label({"base": "exp3", "max_delay": 4}) == "wrapper, Exp3, max delay 4"
    assert wrapper.label({"base": "uniform"}) == "uniform play"
    assert wrapper.needs() == ("max_delay", "horizon")
    assert wrapper.needs({"base": "ucb1"}) == ("max_delay", "stochastic losses")
    assert registry.find("ZimmertSeldin2020").label({"tuning": "advanced"}) == "Zimmert-Seldin, advanced"


@pytest.mark.parametrize(("name", "problem", "lacking"), [
    ("Blinded", Problem(2, 2, 100), ("short delay",)),
    ("Blinded", Problem(2, 1, 100), ()),
    ("ODAAFV", Problem(2, 2, 100, mean_delay=1.0), ("delay variance",)),
    ("ODAAFB", Problem(2, 2, 100), ("mean delay",)),
    ("LinearComposite", Problem(2, 2, 100), ("coefficients",)),
    ("BlockUCB", Problem(2, 2, 100), ()),
])
def test_a_player_says_what_a_problem_lacks(name: str, problem: Problem, lacking: tuple[str, ...]) -> None:
    assert registry.find(name).lacks(problem) == lacking
    if lacking:
        with pytest.raises(ae.InvalidArgument, match=f"problem must have what {name} needs, {lacking[0]}, but got"):
            registry.find(name).build(problem)


@pytest.mark.parametrize(("name", "settings", "message"), [
    ("wrapper", {}, r"player.name must be one of CompositeLossWrapper, .*, but got 'wrapper'"),
    ("BlockUCB", {"width": -1.0}, "player.width must be at least 0, but got -1.0"),
    ("ARSUCB", {"base": "exp3"}, r"player.base must be a setting of 'ARSUCB' \(it has .*\), but it is not"),
    ("Naive", {"base": "tsallis"}, "player.base must be one of 'exp3', 'ucb1', 'tsallis_inf', 'thompson', "),
    ("CompositeLossWrapper", {"update_probability_factor": 9.0}, "must keep β at most 1, but β would be 3"),
])
def test_unknown_names_and_settings_are_refused(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ae.InvalidArgument, match=message):
        registry.find(name).build(PROBLEM, **settings)


def test_an_entry_is_all_that_a_new_player_needs() -> None:
    class Steady(ae.rivals.BlockUCB):
        """A user-defined rival."""

    checks = {"width": lambda name, value: float(value)}
    entry = Entry(Steady, "steady", ("max_delay",), ("max_delay",), checks, name="Steady")
    assert (entry.name, entry.label(), entry.needs(), entry.labelled) == ("Steady", "steady", ("max_delay",), False)
    player = entry.build(PROBLEM, width=1)
    assert (type(player), player.width, player.max_delay) == (Steady, 1.0, 1)
