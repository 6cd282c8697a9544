"""Cells: the units a study is made of, each a plain JSON dict with an id made of its content.

    measure      "regret" or "stability"
    instance     {"name": ..., settings...}: which losses (`instances.py`)
    player       {"name": ..., settings...}: who plays (`players.py`)
    n_arms, max_delay, horizon     K, d, T of the losses
    runs, instances                the number of runs, shared out evenly over this many draws of the losses
    seed, checkpoints
    player_max_delay               the d the player is told, only where it is not the losses' own

Nothing else is in the id, so the same cell in two studies is the same cell. Cells that differ only in player, measure,
runs or checkpoints form a group: they meet the same losses and the same random streams.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

from aftereffect.core.saved import canonical, digest

Cell = dict[str, Any]

MEASURES = ("regret", "stability")
SHARED = ("instance", "n_arms", "max_delay", "horizon", "seed")
"""What the cells of a group have in common: all that their losses depend on."""


def cell_id(cell: Cell) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of the cell's canonical JSON."""
    return digest(cell)[:16]


def cell_seed(cell: Cell, purpose: str) -> int:
    """Return the seed of "losses 0", "losses 1", ..., the draws of the losses, or of "runs", the players' streams.

    It is the same for every player of the group, and for no other cell: they meet the same losses, and run r of each
    has common random numbers. Sizes are mixed in, so that points of a grid are independent, as fits assume.
    """
    text = f"{purpose} {canonical({key: cell[key] for key in SHARED})}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")


def groups(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Return the cells by group, both in the order they came in.

    >>> one, other = {"player": 1}, {"player": 2}
    >>> sizes = {"instance": {"name": "split"}, "n_arms": 2, "max_delay": 1, "horizon": 9, "seed": 0}
    >>> [len(group) for group in groups([one | sizes, one | sizes | {"seed": 1}, other | sizes])]
    [2, 1]
    """
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(canonical({key: cell[key] for key in SHARED}), []).append(cell)
    return list(found.values())
