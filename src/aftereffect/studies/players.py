"""The players of a study: those of `players/registry.py` and the user's own, built for a cell's losses."""

import inspect
from collections.abc import Mapping
from typing import Any

from aftereffect.losses.protocol import Losses
from aftereffect.players import registry
from aftereffect.players.registry import Problem
from aftereffect.players.wrapper.panel import SHARED, Panel
from aftereffect.studies.cells import Cell
from aftereffect.studies.instances import known, own


def find(name: Any) -> registry.Entry:
    """Return the entry of a player in the registry, or one for the user's own at an import path, module:Class."""
    if not isinstance(name, str) or ":" not in name:
        return registry.find(name)
    made, settings = own("player.name", name)
    told = tuple(key for key in ("max_delay", "horizon") if key in inspect.signature(made).parameters)
    return registry.Entry(made if isinstance(made, type) else object, name, told, (), settings, make=made, name=name)


def player_table(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the name and settings of a player's table and return it as plain JSON types."""
    entry, settings = find(given.get("name")), {key: value for key, value in given.items() if key != "name"}
    return {"name": entry.name, **registry.checked_settings("player", entry.name, entry.settings, settings)}


def can_play(cell: Cell) -> bool:
    """Whether the cell's player can play: some need d <= 1, or must know the law of delays; few can be shared."""
    if "n_units" in cell and find(cell["player"]["name"]).player not in SHARED:
        return False
    return not find(cell["player"]["name"]).lacks(_problem(cell), cell["player"])


def build_player(cell: Cell, losses: Losses) -> Any:
    """Return a new player of the cell for these losses.

    >>> cell = {"player": {"name": "CompositeLossWrapper", "base": "exp3"}, "instance": {"name": "split"}}
    >>> from aftereffect import CompositeLosses
    >>> import numpy as np
    >>> sizes = {"n_arms": 2, "max_delay": 3, "horizon": 1000}
    >>> player = build_player(cell | sizes, CompositeLosses(np.zeros((1000, 4, 2))))
    >>> round(player.bandit.learning_rate, 4)    # p = (1/7)(6/7)^6 = 0.05665: sqrt(12.235 / (339.9 + 2521.6))
    0.0654
    """
    settings = dict(cell["player"])
    entry = find(settings.pop("name"))
    problem = _problem(cell)._replace(direction=losses.direction, low=losses.low, high=losses.high)
    if problem.max_delay < losses.max_delay and "out_of_range" in entry.settings:
        # Effects that last longer than the player's d lead to totals outside its range.
        settings = {"out_of_range": "clip"} | settings
    player = entry.build(problem, **settings)
    return Panel(player, n_units=cell["n_units"]) if "n_units" in cell else player


def _problem(cell: Cell) -> Problem:
    """Return what the cell's player may know: K, d and T, and the law of delays if it needs that."""
    told = cell["player_max_delay"] if "player_max_delay" in cell else cell["max_delay"]
    problem = Problem(cell["n_arms"], told, cell["horizon"])
    if registry.CONDITIONS.keys().isdisjoint(find(cell["player"]["name"]).needs(cell["player"])):
        return problem
    return Problem(*problem[:3], *known(cell))
