"""Cells: the units of a study, each a plain JSON dict whose id is a hash of its content.

    measure      "regret", or a module with a class of the user's own (`measure.Measure`)
    instance     {"name": ..., settings...}: the losses (`instances.py`)
    player       {"name": ..., settings...}: the player (`players.py`)
    n_arms, max_delay, horizon     K, d, T of the losses
    n_units                        the number of units of a panel, only if there are several
    runs, instances                the number of runs, divided evenly over this many draws of the losses
    seed, checkpoints
    player_max_delay               the d given to the player, only if it differs from that of the losses

The id depends on nothing else, so equal cells of two studies have the same id. Cells that differ only in player,
measure, runs or checkpoints form a group: they share the same losses and the same random streams.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

from aftereffect.core.saved import canonical

Cell = dict[str, Any]

SHARED = ("instance", "n_arms", "max_delay", "horizon", "n_units", "seed")
"""The keys that the cells of a group have in common; the losses depend on these alone."""


def cell_id(cell: Cell) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of the cell's canonical JSON."""
    return hashlib.sha256(canonical(cell).encode()).hexdigest()[:16]


def cell_seed(cell: Cell, purpose: str) -> int:
    """Return the seed for a draw of the losses ("losses 0", "losses 1", ...) or for the players' streams ("runs").

    All cells of a group have the same seed, and no other cell has it: players get the same losses, and run r of each
    player uses common random numbers. Sizes enter the seed, so that points of a grid are independent, as fits assume.
    """
    text = f"{purpose} {canonical({key: cell[key] for key in SHARED if key in cell})}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")


def groups(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Return the cells by group; groups and cells keep their order.

    >>> one, other = {"player": 1}, {"player": 2}
    >>> sizes = {"instance": {"name": "split"}, "n_arms": 2, "max_delay": 1, "horizon": 9, "seed": 0}
    >>> [len(group) for group in groups([one | sizes, one | sizes | {"seed": 1}, other | sizes])]
    [2, 1]
    """
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(canonical({key: cell[key] for key in SHARED if key in cell}), []).append(cell)
    return list(found.values())
